"""Memory of other libraries, taken by DLPack."""

import math
import operator
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from vkdispatch.base.context import Context, get_context
from vkdispatch.base.dtype import DType, component_type, is_complex, is_matrix, is_vector
from vkdispatch.base.errors import ArgumentTypeError, SharingError, VkDispatchError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record, replace
from vkdispatch.base.sharing.cuda import CUDA, MANAGED, can_link, find_link
from vkdispatch.base.sharing.cuda_blocks import WORD
from vkdispatch.base.sharing.cuda_streams import current_stream
from vkdispatch.base.sharing.exports import CPU, READ_ONLY, Elements
from vkdispatch.base.sharing.formats import dtype_of

# DLPack's types of devices whose memory the host reads as its own: also pinned for CUDA and ROCm.
_OF_HOST = (CPU, 3, 11)
_NAMES = {
    2: "CUDA",
    4: "OpenCL",
    7: "Vulkan",
    8: "Metal",
    10: "ROCm",
    MANAGED: "CUDA, managed",
    14: "oneAPI",
    15: "WebGPU",
}
# Libraries whose arrays never change, which their capsules do not say.
_IMMUTABLE = ("jax", "jaxlib", "tensorflow")


def has_dlpack(value: object) -> bool:
    """Whether an object is an array of a library that exports it by DLPack."""
    return hasattr(type(value), "__dlpack__") and hasattr(type(value), "__dlpack_device__")


def take_elements(x: Any, name: str, context: Context | None = None) -> Elements:
    """Return the elements of an object with `__dlpack__`, which stay where they are.

    Those of a CUDA device are for a context on it; None means the current one.

    Raises
    ------
    TypeError
        It is no such object. Messages call it `name`.
    SharingError
        They do not lie in memory of the host, the library refuses to share them, or no dtype here is theirs.
    """
    if not has_dlpack(x):
        raise ArgumentTypeError(
            f"{name}: expected an array with __dlpack__, such as one of NumPy or PyTorch, got "
            f"{type(x).__name__}"
        )
    what = describe_array(x)
    _require_plain(x, name)
    try:
        device = tuple(map(operator.index, x.__dlpack_device__()))
        if len(device) != 2:
            raise SharingError(f"{name}: {what} says that its DLPack device is {device}; expected two ints")
        stream = None
        if device[0] in (CUDA, MANAGED):
            context = context or get_context()
            _check_device(x, device[1], name, context)
            stream = current_stream(device[1], x)
        elif device[0] not in _OF_HOST:
            place = _NAMES.get(device[0], f"DLPack type {device[0]}")
            raise SharingError(
                f"{name}: {what} is on the device {device} ({place}), whose memory cannot be taken "
                "in place; copy it to the host first"
            )
        with nullcontext() if stream is None else _select_device(x, device[1]):
            capsule = _get_capsule(x, stream)
    except VkDispatchError:
        raise
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise SharingError(f"{name}: {what} cannot be shared: {error}") from error
    try:
        tensor = native.ForeignTensor(capsule)
    except (BufferError, ValueError) as error:
        raise SharingError(f"{name}: {what} gave no tensor: {error}") from None
    kind = dtype_of(tensor.dtype, name)
    shape, strides = tensor.shape, tensor.strides
    if tensor.device[0] != device[0] and not (tensor.device[0] in _OF_HOST and device[0] in _OF_HOST):
        raise SharingError(
            f"{name}: {what} says that it lies on the DLPack device {device}, and its tensor on "
            f"{tensor.device}"
        )
    if strides is None:
        strides = native.c_strides(shape)
    flags = READ_ONLY if _find_library(x) in _IMMUTABLE else tensor.flags & READ_ONLY
    lies_at = tensor.device if stream is None else (CUDA, tensor.device[1])
    return Elements(tensor, tensor.address, lies_at, kind, shape, strides, flags, stream)


def _require_plain(x: Any, name: str) -> None:
    """Raise for an array whose memory alone does not say what its elements are.

    Raises
    ------
    TypeError
        It has a mask.
    SharingError
        PyTorch negates its elements when it reads them.
    """
    library = _find_library(x)
    if library == "torch" and x.is_neg():
        raise SharingError(
            f"{name}: {describe_array(x)} with its negative bit set cannot be shared; give x.resolve_neg()"
        )
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    if masked is not None and isinstance(x, masked):
        raise ArgumentTypeError(f"{name}: a masked array's mask cannot be shared; give x.filled(...)")


def _check_device(x: Any, ordinal: int, name: str, context: Context) -> None:
    """Raise SharingError for an array of a CUDA device that a context does not compute on."""
    if not can_link(context):
        raise SharingError(
            f"{name}: {describe_array(x)} is on a CUDA device, and {context._devices} shares no memory "
            "with CUDA; copy it to the host first, with x.cpu() or x.get()"
        )
    link = find_link(context)
    if link.ordinal != ordinal:
        raise SharingError(
            f"{name}: {describe_array(x)} is on CUDA's device {ordinal}, and the context computes on "
            f"{link.ordinal}; copy it there first, or use a context on that device"
        )


def _select_device(x: Any, ordinal: int) -> AbstractContextManager[Any]:
    """Make a device the current one of an array's library, since libraries export nothing of others."""
    library = _find_library(x)
    if library in ("torch", "cupy"):
        cuda = sys.modules[library].cuda
        return cuda.device(ordinal) if library == "torch" else cuda.Device(ordinal)  # type: ignore[no-any-return]
    return nullcontext()


def _get_capsule(x: Any, stream: int | None) -> Any:
    options = {} if stream is None else {"stream": stream}
    try:
        return x.__dlpack__(max_version=native.DLPACK_VERSION, **options)
    except TypeError:  # a library that does not know of versions
        return x.__dlpack__(**options)


def describe_array(x: Any) -> str:
    """Return what messages call an array of another library."""
    library, name = _find_library(x), type(x).__qualname__
    return f"a {library}.{name}" if library not in ("", "builtins") else f"a {name}"


def _find_library(x: Any) -> str:
    """Return the name of the library whose array this is."""
    return (type(x).__module__ or "").partition(".")[0]


def suggest_conversion(x: Any) -> str:
    """Return the call that makes a buffer of a value, for messages."""
    return "vd.from_dlpack(x)" if has_dlpack(x) and not isinstance(x, np.ndarray) else "vd.asbuffer(...)"


def bounds(elements: Elements) -> tuple[int, int]:
    """Return the addresses of the first byte of elements, and of the one after the last."""
    low = high = 0
    for length, stride in zip(elements.shape, elements.strides, strict=True):
        step = (length - 1) * stride
        low, high = (low + step, high) if step < 0 else (low, high + step)
    size = elements.kind.item_size
    return elements.address + low * size, elements.address + (high + 1) * size


def is_contiguous(elements: Elements) -> bool:
    """Whether elements are contiguous in C order."""
    return is_in_c_order(elements.shape, elements.strides)


def is_in_c_order(shape: tuple[int, ...], strides: tuple[int, ...], item_size: int = 1) -> bool:
    """Whether elements with these strides are contiguous in C order. Strides and `item_size` share a unit."""
    return math.prod(shape) == 0 or all(
        length == 1 or stride == expected * item_size
        for length, stride, expected in zip(shape, strides, native.c_strides(shape), strict=True)
    )


def merge_components(elements: Elements, kind: DType | None) -> Elements:
    """Return elements as vectors or matrices of this kind, whose components lie along the last axes.

    Elements that are none stay as they are.
    """
    if kind is None or is_complex(kind) or not (is_vector(kind) or is_matrix(kind)):
        return elements
    tail = kind.true_numpy_shape
    shape = elements.shape[: len(elements.shape) - len(tail)]
    if (
        elements.kind is not component_type(kind)
        or elements.shape != shape + tail
        or not is_contiguous(elements)
    ):
        return elements
    return replace(elements, kind=kind, shape=shape, strides=native.c_strides(shape))


def find_obstacle(elements: Elements, context: Context) -> str | None:
    """Return why a context's devices cannot use elements where they are; None if they can."""
    if elements.device[0] == CUDA:
        return _find_cuda_obstacle(elements, context)
    if not context._native.host_mapped:
        return f"{context._devices} computes in memory of its own"
    if len(context.device_infos) > 1:
        return f"{context._devices} are several devices"
    if not context._native.imports_host_memory:
        return f"{context._devices} cannot use memory of other libraries"
    if math.prod(elements.shape) == 0:
        return None
    obstacle = _find_misalignment(elements)
    first, end = bounds(elements)
    if obstacle is None and (first % WORD or end % WORD):
        return (
            f"the memory, {end - first} bytes at {first:#x}, does not consist of whole words of {WORD} bytes"
        )
    return obstacle


def _find_misalignment(elements: Elements) -> str | None:
    size = elements.kind.item_size
    if elements.address % min(size, 8):
        return f"the address {elements.address:#x} is not a multiple of the {size} bytes of an element"
    return None


def _find_cuda_obstacle(elements: Elements, context: Context) -> str | None:
    if math.prod(elements.shape) == 0:
        return None
    if _find_in_cuda(elements, context) is None:
        return "CUDA allocated its memory, which others cannot use, or its buffer was destroyed"
    return _find_misalignment(elements)


def _find_in_cuda(elements: Elements, context: Context) -> native.Buffer | None:
    """Return the memory of elements, from the last aligned address up to the first one."""
    first, end = bounds(elements)
    refusal = refuse_write if elements.flags & READ_ONLY else None
    return find_link(context).find(first - first % context._native.binding_alignment, end, refusal)


def count_bytes(elements: Elements) -> int:
    """Return how many bytes the elements take."""
    return math.prod(elements.shape) * elements.kind.item_size


@record(eq=False)
class Imported:
    """Device memory that is memory of the host.

    Attributes
    ----------
    memory, offset
        The memory, and where the lowest element lies in it, in bytes.
    loan
        What keeps the order if the memory was shared before; else None.
    """

    memory: native.Buffer
    offset: int
    loan: native.Loan | None


def import_memory(elements: Elements, context: Context, ordered: bool, is_whole: bool) -> Imported:
    """Return device memory that is the memory of elements; `find_obstacle` found nothing.

    While it lives, calls that use it return when the device is done, unless `ordered` is false. If the
    elements are read-only, each write to it raises ValueError. Memory that was shared before is that memory
    again, so that uses of both are in order: any part of it, or with `is_whole` only all of it.

    Raises
    ------
    VkDispatchError
        The driver refuses it.
    """
    if elements.device[0] == CUDA:
        own = _find_in_cuda(elements, context)
        if own is None:
            raise SharingError("the memory is no longer that of a buffer")
        assert elements.stream is not None
        find_link(context).take(elements.stream)
        return Imported(own, bounds(elements)[0] % context._native.binding_alignment, None)
    first, end = bounds(elements)
    is_read_only = bool(elements.flags & READ_ONLY)
    known = native.find_shared(context._native, first, end)
    if known is not None and known[0].read_only == is_read_only:
        memory, offset = known
        fits = memory.size == end - first if is_whole else not offset % elements.kind.item_size
        loan = memory.lend(0, ordered) if fits else None
        if loan is not None:
            return Imported(memory, offset, loan)
    start = first - first % context._native.binding_alignment
    memory = native.Buffer.over_host(context._native, start, end - start, elements.owner, ordered)
    if is_read_only:
        memory.refuse_writes(refuse_write)
    return Imported(memory, first - start, None)


def refuse_write(name: str = "") -> None:
    """Raise SharingError for a write to memory that was shared to be read only; `name` is an argument."""
    raise SharingError(
        f"{name}{': ' if name else ''}the memory was shared by another library to be read only, and would be "
        "written; copy it with vd.from_dlpack(x, copy=True)"
    )
