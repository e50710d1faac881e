"""Arrays to and from other libraries, by DLPack and by NumPy's protocols."""

import math
from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.foreign import foreign_buffer, upload
from vkdispatch.base.buffers.kinds import copy_between_contexts
from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, SharingError, VulkanError
from vkdispatch.base.record import replace
from vkdispatch.base.sharing.cuda_link import CUDA, can_link
from vkdispatch.base.sharing.cuda_memory import lend_by_interface, make_interface
from vkdispatch.base.sharing.dlpack import (
    READ_ONLY,
    Elements,
    Request,
    SharedMemory,
    as_numpy,
    bounds,
    copy_of,
    export,
    find_obstacle,
    import_memory,
    lend_host_memory,
    lend_memory,
    place_of,
    take_elements,
)
from vkdispatch.base.sharing.formats import note, start_clock
from vkdispatch.numpy.basics.inputs import asnumpy, require_array
from vkdispatch.numpy.core.array import Array, array_of, describe, view_of
from vkdispatch.numpy.core.conversion import asarray, from_numpy
from vkdispatch.numpy.core.devices import parse_device
from vkdispatch.numpy.core.dtypes import Kind, kernel_type, numpy_type
from vkdispatch.numpy.core.kernels import gather, memory_of, new_view
from vkdispatch.numpy.core.memory import Storage, View, is_read_only

__all__ = [
    "asbuffer",
    "asnumpy",
    "from_dlpack",
    "to_device",
]


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None, ordered: bool = True) -> Array:
    """Return an array of the elements of an object that has `__dlpack__`, in their memory where possible.

    On CPUs and integrated GPUs, memory of the host is used where it lies, with its strides: writes to the
    array show in the other library, and the other way round. Elsewhere the elements are copied. See
    `numpy.from_dlpack`.

    Parameters
    ----------
    x
        An array of NumPy, PyTorch or any other library. An Array or a `vd.Buffer` gives an array on its
        memory.
    device
        Where; None is the device of `x`, or the current context's.
    copy
        True always copies, False never does, None copies where it has to.
    ordered
        Whether operations that use shared memory finish before they return; see `vd.from_dlpack`.

    Raises
    ------
    TypeError
        `x` has no `__dlpack__`, or arrays cannot have such elements, such as bfloat16.
    BufferError, ValueError
        The other library refuses to share the elements, or `copy` is False and they have to be copied.

    Examples
    --------
    >>> vnp.from_dlpack(np.arange(3))
    Array([0, 1, 2], dtype=int64)
    """
    if isinstance(x, SharedMemory):
        x = x.source
    if isinstance(x, (Array, Buffer)):
        return asarray(x, device=device, copy=copy)
    begin = start_clock()
    place = parse_device(device)
    elements = take_elements(x, "x", place.context)
    kind = numpy_type(elements.kind)
    obstacle = find_obstacle(elements, place.context)
    if copy is not True and obstacle is None:
        try:
            array = _import(elements, kind, place.context, ordered)
            note("take", place.context, begin)
            return array
        except VulkanError as error:
            obstacle = f"the driver refused it: {error}"
    if copy is False:
        raise SharingError(f"copy: False was passed, but x must be copied: {obstacle}")
    if elements.device[0] == CUDA:
        return asarray(upload(elements, place.context))
    return from_numpy(as_numpy(elements), place)


def _import(elements: Elements, kind: Kind, context: Context, ordered: bool) -> Array:
    if not math.prod(elements.shape):
        return array_of(new_view(elements.shape, kind, context))
    imported = import_memory(elements, context, ordered, is_whole=False)
    buffer = foreign_buffer(imported, elements, (imported.memory.size // kind.itemsize,), context)
    low, _ = bounds(elements)
    first = (imported.offset + elements.address - low) // kind.itemsize
    storage = Storage(buffer, is_shared=True)
    return array_of(View(storage, elements.shape, kind, first, elements.strides))


def lend_elements(x: Array, ordered: bool) -> Elements:
    """Return the elements of an array in memory of the host, computed, and with all work on them finished.

    Raises SharingError if they do not lie there.
    """
    dlpack_device(x)
    view = view_of(x)
    storage = view.storage
    storage.share()
    lent = lend_host_memory(storage.context, storage.memory, kernel_type(view.dtype), (), ordered)
    return _show(view, lent)


def _lend(x: Array, stream: Any) -> Elements:
    """Return the elements of an array for the consumer of a DLPack capsule."""
    view = view_of(x)
    storage = view.storage
    storage.share()
    return _show(view, lend_memory(storage.context, storage.memory, kernel_type(view.dtype), (), stream))


def _show(view: View, lent: Elements) -> Elements:
    """Return the elements of a view, of the memory where they lie."""
    return replace(
        lent,
        address=lent.address + view.offset * view.dtype.itemsize if view.size else 0,
        shape=view.shape,
        strides=view.strides,
        flags=lent.flags | (READ_ONLY if is_read_only(view) else 0),
    )


def to_dlpack(x: Array, request: Request) -> Any:
    """Return a DLPack capsule of the elements: `Array.__dlpack__`."""
    return export(
        request,
        lambda: dlpack_device(x),
        lambda: _lend(x, request.stream),
        lambda: copy_of(x.numpy(), kernel_type(x.dtype), x.shape),
        lambda: _lend(x.copy(), request.stream),
    )


def dlpack_device(x: Array) -> tuple[int, int]:
    """Return DLPack's type and number of an array's device: `Array.__dlpack_device__`."""
    return place_of(x.device.context, "x.numpy()")


def cuda_interface(x: Array) -> dict[str, Any]:
    """Return what `Array.__cuda_array_interface__` shows. Raises AttributeError without CUDA."""
    context = x.device.context
    if not can_link(context):  # before the elements are computed
        raise AttributeError("__cuda_array_interface__: CUDA cannot share this memory")
    view = view_of(x)
    view.storage.share()
    buffer = view.storage.buffer
    buffer._cuda_loan = loan = lend_by_interface(context, view.storage.memory, buffer._cuda_loan)
    size = view.dtype.itemsize
    strides = tuple(stride * size for stride in view.strides)
    shown = make_interface(loan, view.shape, view.dtype, strides, view.offset * size)
    if is_read_only(view):
        shown["data"] = shown["data"][0], True
    return shown


def to_device(x: Array, device: Any, /, *, stream: Any = None) -> Array:
    """Return an array on a device: itself if it is there, else a copy.

    Between NVIDIA GPUs that CUDA knows, CUDA copies from one to the other; else the copy goes through host
    memory.

    Raises ValueError for a stream: there are none.

    Examples
    --------
    >>> x = vnp.arange(3)
    >>> vnp.to_device(x, x.device)
    Array([0, 1, 2], dtype=int64)
    """
    if stream is not None:
        raise ArgumentValueError(f"stream: expected None, got {stream!r}")
    place = parse_device(device)
    x = require_array(x)
    if x.device == place:
        return x
    if x.device.context.queue_count > 1:
        return from_numpy(x.numpy(), place)
    view = view_of(x)
    if not view.is_whole:
        view = gather(view)
    copy = new_view(view.shape, view.dtype, place.context)
    if view.size:
        copy_between_contexts(copy.storage.buffer, view.storage.buffer)
    return array_of(copy)


def asbuffer(x: Array) -> Buffer[Any]:
    """Return the memory of an array as a `vd.Buffer`; arrays of more than three axes have one axis there.

    The buffer and the array share their memory if the elements are contiguous in C order and
    not read-only; else it is a copy.

    Examples
    --------
    >>> vnp.asbuffer(vnp.arange(3, dtype=vnp.float32)).read(0)
    array([0., 1., 2.], dtype=float32)
    """
    if not isinstance(x, Array):
        raise ArgumentTypeError(f"x: expected an Array, got {describe(x)}; vd.asbuffer uploads data")
    view = view_of(x)
    if not view.is_whole or view.storage.is_read_only:
        view = gather(view)
    view.storage.share()
    return memory_of(view, view.shape if len(view.shape) <= 3 else (view.size,))
