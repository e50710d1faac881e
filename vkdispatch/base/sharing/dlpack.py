"""DLPack capsules: memory given and taken; and memory on the host as protocols show it."""

import math
import operator
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.context import Context, get_context
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, SharingError, VkDispatchError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.memory.data import component_dtype
from vkdispatch.base.native_module import native
from vkdispatch.base.process import as_int
from vkdispatch.base.record import record, replace
from vkdispatch.base.sharing import cuda_link
from vkdispatch.base.sharing.formats import buffer_format, dlpack_format, dtype_of, note, start_clock

# ---- Our memory in DLPack capsules -----------------------------------------------------------------------


# DLPack's numbers of devices, and its flags.
CPU = 1
HOST = (CPU, 0)
READ_ONLY, IS_COPY = 1, 2
Place = tuple[int, int]


@record(eq=False)
class Elements:
    """Elements in memory, as DLPack describes them.

    Attributes
    ----------
    owner
        What keeps the memory. Consumers release it, from any thread.
    address
        Of the first element, on the device.
    device
        DLPack's device type and number.
    kind
        A scalar or complex dtype.
    shape, strides
        Lengths of the axes, and how far apart neighbours along them are, in elements.
    flags
        `READ_ONLY`, `IS_COPY`.
    stream
        The CUDA stream in whose order the elements are what they are; None on other devices.
    """

    owner: Any
    address: int
    device: Place
    kind: dt.DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    flags: int = 0
    stream: int | None = None


def make_capsule(elements: Elements, max_version: tuple[int, int] | None) -> Any:
    """Return a DLPack capsule, of the newest version that its consumer knows.

    Raises SharingError if the elements are read-only and the consumer does not know of that.
    """
    is_versioned = max_version is not None and max_version[0] >= 1
    if elements.flags & READ_ONLY and not is_versioned:
        raise SharingError(
            "the elements are read-only, which DLPack 0.x cannot express; share a copy, or pass "
            "max_version=(1, 0)"
        )
    place = elements.owner, elements.address, elements.device
    layout = dlpack_format(elements.kind), elements.shape, elements.strides
    return native.make_dlpack(*place, *layout, versioned=is_versioned, flags=elements.flags)


@record(eq=False)
class Request:
    """What a consumer asks of `__dlpack__`."""

    stream: Any
    max_version: tuple[int, int] | None
    device: Place | None
    copy: bool | None


def parse_request(stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Request:
    """Return the arguments of `__dlpack__`, checked. Raises TypeError or ValueError."""
    if copy not in (None, False, True):
        raise ArgumentTypeError(f"copy: expected None, False or True, got {copy!r}")
    return Request(stream, _parse_pair("max_version", max_version), _parse_pair("dl_device", dl_device), copy)


def _parse_pair(name: str, value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    try:
        # device types may be members of an enumeration
        first, second = (as_int(getattr(number, "value", number)) for number in value)
    except (TypeError, ValueError):
        first = second = None
    if first is None or second is None:
        raise ArgumentTypeError(f"{name}: expected None or a tuple of two ints, got {value!r}")
    return first, second


def has_host_memory(context: Context) -> bool:
    """Whether buffers of a context lie in memory of the host, one for all queues."""
    return context.queue_count == 1 and context._native.host_mapped


def place_of(context: Context, instead: str) -> Place:
    """Return the DLPack device of a context's memory; see `__dlpack_device__`.

    Raises SharingError, which says to call `instead`, if other libraries cannot use the memory.
    """
    if has_host_memory(context):
        return HOST
    if cuda_link.can_link(context):
        return cuda_link.CUDA, cuda_link.find_link(context).ordinal
    if context.queue_count > 1:
        raise SharingError(
            f"each of the {context.queue_count} queues has a copy of the memory, and other libraries can "
            f"share only one; copy to the host with {instead}"
        )
    raise SharingError(
        f"other libraries cannot use memory of {context._devices} in place; copy to the host with {instead}"
    )


def export(
    request: Request,
    place: Callable[[], Place],
    lend: Callable[[], Elements],
    copy: Callable[[], Elements],
    lend_copy: Callable[[], Elements],
) -> Any:
    """Return the capsule that a consumer asks for.

    Parameters
    ----------
    place
        Returns the device of the memory, or raises SharingError.
    lend
        Returns the elements in place.
    copy
        Returns a copy of the elements on the host.
    lend_copy
        Returns a copy of the elements on their device.

    Raises
    ------
    SharingError
        The memory cannot be shared as the consumer asks.
    ValueError
        A stream is given for memory of the host.
    """
    may_copy_to_host = request.device == HOST and request.copy is not False
    try:
        device = place()
    except SharingError:
        if not may_copy_to_host:
            raise
        return make_capsule(copy(), request.max_version)
    if request.device not in (None, device) and not may_copy_to_host:
        raise SharingError(
            f"dl_device: the memory is on the DLPack device {device}, and cannot be shared as memory of "
            f"{request.device}"
        )
    if device == HOST and request.stream is not None:
        raise ArgumentValueError(
            f"stream: memory of the host has no streams; expected None, got {request.stream!r}"
        )
    if request.device not in (None, device) or (request.copy and device == HOST):
        return make_capsule(copy(), request.max_version)
    if request.copy:
        elements = lend_copy()
        return make_capsule(replace(elements, flags=elements.flags | IS_COPY), request.max_version)
    return make_capsule(lend(), request.max_version)


def lend_host_memory(
    context: Context, memory: native.Buffer, kind: dt.DType, shape: tuple[int, ...], ordered: bool = True
) -> Elements:
    """Return the elements of a buffer in C order, in memory of the host.

    All work that uses the buffer is finished. While anyone holds the memory, calls that use the buffer return
    when the device is done, unless `ordered` is false.

    Raises
    ------
    SharingError
        The buffer does not lie in memory of the host.
    """
    begin = start_clock()
    loan = memory.lend(0, ordered)
    if loan is None:
        raise SharingError("the buffer is not in host memory; copy it with buf.read(0)")
    note("lend", context, begin)
    if context.borrowed:
        context.loans.add(loan)
    flags = READ_ONLY if memory.read_only else 0
    return Elements(loan, loan.address, HOST, kind, shape, native.c_strides(shape), flags)


def lend_memory(
    context: Context, memory: native.Buffer, kind: dt.DType, shape: tuple[int, ...], stream: Any
) -> Elements:
    """Return the elements of a buffer in C order, where the consumer of a DLPack capsule may use them.

    `stream` is the consumer's, if CUDA maps the memory: its later work waits for ours up to now. Memory of
    the host is lent as by `lend_host_memory`.

    Raises
    ------
    SharingError
        Other libraries cannot use the memory in place.
    """
    if has_host_memory(context):
        return lend_host_memory(context, memory, kind, shape)
    begin = start_clock()
    link = cuda_link.find_link(context)
    handle = cuda_link.parse_dlpack_stream(stream)
    if handle is not None:
        link.check_stream(handle, "stream")
    loan = link.lend(memory, handle)
    note("lend", context, begin)
    flags = READ_ONLY if memory.read_only else 0
    return Elements(
        loan, loan.address, (cuda_link.CUDA, link.ordinal), kind, shape, native.c_strides(shape), flags
    )


# ---- Memory of other libraries, taken by DLPack ----------------------------------------------------------


# DLPack's types of devices whose memory the host reads as its own: also pinned for CUDA and ROCm.
_OF_HOST = (CPU, 3, 11)
_NAMES = {
    2: "CUDA",
    4: "OpenCL",
    7: "Vulkan",
    8: "Metal",
    10: "ROCm",
    cuda_link.MANAGED: "CUDA, managed",
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
        if device[0] in (cuda_link.CUDA, cuda_link.MANAGED):
            context = context or get_context()
            _check_device(x, device[1], name, context)
            stream = cuda_link.current_stream(device[1], x)
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
    lies_at = tensor.device if stream is None else (cuda_link.CUDA, tensor.device[1])
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
    if not cuda_link.can_link(context):
        raise SharingError(
            f"{name}: {describe_array(x)} is on a CUDA device, and {context._devices} shares no memory "
            "with CUDA; copy it to the host first, with x.cpu() or x.get()"
        )
    link = cuda_link.find_link(context)
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


def merge_components(elements: Elements, kind: dt.DType | None) -> Elements:
    """Return elements as vectors or matrices of this kind, whose components lie along the last axes.

    Elements that are none stay as they are.
    """
    if kind is None or dt.is_complex(kind) or not (dt.is_vector(kind) or dt.is_matrix(kind)):
        return elements
    tail = kind.true_numpy_shape
    shape = elements.shape[: len(elements.shape) - len(tail)]
    if (
        elements.kind is not dt.component_type(kind)
        or elements.shape != shape + tail
        or not is_contiguous(elements)
    ):
        return elements
    return replace(elements, kind=kind, shape=shape, strides=native.c_strides(shape))


def find_obstacle(elements: Elements, context: Context) -> str | None:
    """Return why a context's devices cannot use elements where they are; None if they can."""
    if elements.device[0] == cuda_link.CUDA:
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
    if obstacle is None and (first % cuda_link.WORD or end % cuda_link.WORD):
        return (
            f"the memory, {end - first} bytes at {first:#x}, does not consist of whole words of "
            f"{cuda_link.WORD} bytes"
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
    return cuda_link.find_link(context).find(first - first % context._native.binding_alignment, end, refusal)


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
    if elements.device[0] == cuda_link.CUDA:
        memory_of_buffer = _find_in_cuda(elements, context)
        if memory_of_buffer is None:
            raise SharingError("the memory is no longer that of a buffer")
        assert elements.stream is not None
        cuda_link.find_link(context).take(elements.stream)
        return Imported(memory_of_buffer, bounds(elements)[0] % context._native.binding_alignment, None)
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


# ---- Memory on the host as Python's, NumPy's and DLPack's protocols show it ------------------------------


Array = np.ndarray[Any, Any]


# What strides in Python's buffer protocol are less than.
_STRIDE_LIMIT = 1 << 63


class HostElements(native.HostView):
    """Elements in memory of the host, with Python's buffer protocol and NumPy's `__array_interface__`."""

    def __init__(self, elements: Elements) -> None:
        size = elements.kind.item_size
        super().__init__(
            elements.owner,
            elements.address,
            buffer_format(elements.kind),
            size,
            elements.shape,
            # that of an axis of one element may be any number
            tuple(stride * size if abs(stride * size) < _STRIDE_LIMIT else 0 for stride in elements.strides),
            bool(elements.flags & READ_ONLY),
        )
        self._elements = elements

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The memory in NumPy's protocol: bfloat16 as uint16, complex32 as pairs of float16."""
        kind, shape, strides = self._elements.kind, self.shape, self.strides
        if kind is dt.complex32:
            shape, strides = (*shape, 2), (*strides, 2)
        return {
            "version": 3,
            "shape": shape,
            "typestr": np.dtype(_COMPLEX.get(kind) or component_dtype(kind)).str,
            "data": (self.address, self.read_only),
            "strides": strides,
        }


# As NumPy writes them.
_COMPLEX: dict[dt.DType, str] = {dt.complex64: "c8", dt.complex128: "c16"}


def as_numpy(elements: Elements) -> Array:
    """Return an array that shows elements in memory of the host, and keeps their owner."""
    return np.asarray(HostElements(elements))


class SharedMemory(HostElements):
    """The memory of a buffer or array on the host: `vd.share` makes it.

    It has Python's buffer protocol, NumPy's `__array_interface__` and DLPack, none of which copies:
    `np.asarray(shared)`, `memoryview(shared)` and `torch.from_dlpack(shared)` are views of the memory. The
    memory lives as long as this object or a view of it is referenced, even if the buffer is destroyed or its
    context closed. A kernel takes it for the buffer or array that it was made of.

    Attributes
    ----------
    shape, strides
        The lengths of the axes, and how many bytes neighbours along them are apart. Vectors and matrices add
        their axes after the buffer's.
    source
        The buffer or array.
    ordered
        Whether calls that use the memory return when the device is done with it.
    read_only
        Whether views of it can only be read.
    """

    def __init__(self, source: Any, elements: Elements, ordered: bool) -> None:
        super().__init__(elements)
        self.source = source
        self.ordered = ordered

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule of the memory. See `Buffer.__dlpack__`."""
        request = parse_request(stream, max_version, dl_device, copy)
        return export(request, self.__dlpack_device__, lambda: self._elements, self._copy, self._copy)

    def __dlpack_device__(self) -> Place:
        """Return DLPack's type and number of the device: the CPU."""
        return HOST

    def _copy(self) -> Elements:
        return copy_of(np.asarray(self), self._elements.kind, self.shape)

    def __vkdispatch_argument__(self, is_recorded: bool, is_mapped: bool) -> Any:
        """Return the buffer to use in calls that take buffers."""
        take = getattr(self.source, "__vkdispatch_argument__", None)
        return self.source if take is None else take(is_recorded, is_mapped)

    @staticmethod
    def __vkdispatch_result__(buffer: Any) -> Any:
        """Return what a function on buffers returns for such arguments: a buffer."""
        return buffer


def copy_of(array: Array, kind: dt.DType, shape: tuple[int, ...]) -> Elements:
    """Return a copy in C order of what an array holds as `as_numpy` shows it: elements of this shape."""
    data = np.array(array, order="C")
    return Elements(data, data.ctypes.data, HOST, kind, shape, native.c_strides(shape), IS_COPY)
