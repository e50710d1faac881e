"""Arrays and memory of other libraries as buffers: `vd.from_dlpack`, `vd.share`, arguments."""

import copy as copies
import math
from collections.abc import Iterable, Mapping
from typing import Any

from vkdispatch.base import errors
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context, get_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.host_numpy import np
from vkdispatch.base.record import field, record
from vkdispatch.base.sharing import dlpack
from vkdispatch.base.sharing.cuda_link import CUDA, find_link
from vkdispatch.base.sharing.formats import note, start_clock

# ---- Buffers on memory of other libraries: `vd.from_dlpack` and `vd.share` -------------------------------


class WrongArrayError(errors.SharingError, errors.ArgumentTypeError):
    """An array of another library where a buffer is expected, which would have to be copied."""


def from_dlpack(
    x: Any, /, *, device: Context | None = None, copy: bool | None = None, ordered: bool = True
) -> Buffer[Any]:
    """Return a buffer with the elements of an array of another library, without a copy where possible.

    CPUs and integrated GPUs use memory of the host directly: writes to the buffer change the array, and vice
    versa. On other devices, and for elements that are not contiguous in C order at an aligned address, the
    elements are copied. `buf.is_external` is false then.

    Parameters
    ----------
    x
        An array of NumPy, PyTorch or another library with `__dlpack__`. For a buffer or Array of vkdispatch,
        the result is a buffer on the same memory.
    device
        The context of the buffer. None means the current one.
    copy
        True always copies, False never copies, None copies if necessary.
    ordered
        Whether calls that use the shared memory wait until the device has finished, so that the other library
        can use it immediately. With False, call `vd.queue_wait_idle()` or `event.wait()` before that.

    Raises
    ------
    TypeError
        `x` has no `__dlpack__`.
    BufferError, ValueError
        The library does not share the elements, their dtype is not supported, or `copy` is False and a copy
        is necessary.
    MemoryError
        There is not enough device memory for a copy.

    Examples
    --------
    >>> vd.from_dlpack(np.array([1, 2, 3], np.float32)).read(0)
    array([1., 2., 3.], dtype=float32)
    """
    if copy not in (None, False, True):
        raise errors.ArgumentTypeError(f"copy: expected None, False or True, got {copy!r}")
    if isinstance(x, dlpack.SharedMemory):
        x = x.source
    if isinstance(x, Buffer) or hasattr(type(x), "__vkdispatch_buffer__"):
        return _from_own(x, device, copy)
    begin = start_clock()
    context = get_context() if device is None else device
    errors.check_type("device", context, Context, "a vd.Context or None")
    elements = dlpack.take_elements(x, "x", context)
    if copy is not True:
        buffer = _import(elements, context, ordered)
        if isinstance(buffer, Buffer):
            note("take", context, begin)
            return buffer
        if copy is False:
            raise errors.SharingError(f"copy: False was passed, but x must be copied: {buffer}")
    return upload(elements, context)


def share(x: Any, *, ordered: bool = True) -> Any:
    """Share memory with libraries on the host without a copy, in either direction.

    Parameters
    ----------
    x
        A buffer or an Array: the result exports its memory to NumPy, PyTorch and others. An array of another
        library, or an object with Python's buffer protocol: the result is a buffer on its memory, for
        kernels and functions.
    ordered
        Whether calls that use the memory wait until the device has finished. NumPy and others use memory
        immediately; with False, call `vd.queue_wait_idle()` or `event.wait()` before that.

    Returns
    -------
    `SharedMemory` for a buffer or an Array, otherwise a `Buffer`.

    Raises
    ------
    TypeError
        `x` is none of these.
    BufferError, ValueError
        The memory cannot be shared without a copy; the message says why.

    Examples
    --------
    >>> memory = vd.share(np.array([1, 2, 3], np.float32))
    >>> memory.read(0)
    array([1., 2., 3.], dtype=float32)
    """
    lend = getattr(x, "_lend_elements", None)
    if lend is not None:
        return dlpack.SharedMemory(x, lend(ordered), ordered)
    if isinstance(x, dlpack.SharedMemory):
        return share(x.source, ordered=ordered)
    return _share_foreign(x, "x", ordered)


def share_argument(x: Any, name: str, kind: DType | None = None) -> Buffer[Any]:
    """Return a buffer on the memory of an array of another library, given where a buffer is expected.

    If the kind is a vector or matrix, the array may have the axes of its components last.

    Raises
    ------
    BufferError, ValueError
        It would have to be copied; the message says how, and calls it `name`.
    """
    return _share_foreign(x, name, True, kind)


def copy_argument(x: Any, name: str, kind: DType | None) -> Buffer[Any]:
    """Return a buffer with a copy of the elements that `share_argument` cannot share. Raises BufferError."""
    context = get_context()
    return upload(dlpack.take_elements(x, name, context), context, name, kind)


def _share_foreign(x: Any, name: str, ordered: bool, kind: DType | None = None) -> Buffer[Any]:
    what, is_array = dlpack.describe_array(x), dlpack.has_dlpack(x)
    if not is_array:
        try:
            x = np.asarray(memoryview(x))
        except TypeError:
            raise errors.ArgumentTypeError(
                f"{name}: expected a buffer, an array, or an object with Python's buffer protocol, got "
                f"{type(x).__name__}"
            ) from None
    begin = start_clock()
    context = get_context()
    elements = dlpack.merge_components(dlpack.take_elements(x, name, context), kind)
    buffer = _import(elements, context, ordered, name)
    if not isinstance(buffer, Buffer):
        copy = "vd.from_dlpack(x, copy=True)" if is_array else "vd.asbuffer(np.array(x))"
        raise WrongArrayError(f"{name}: {what} cannot be used without a copy: {buffer}; copy it, with {copy}")
    if elements.stream is not None:
        find_link(context).add_visitor(elements.stream)
    note("take", context, begin)
    return buffer


def _find_obstacle(elements: dlpack.Elements, context: Context) -> str | None:
    obstacle = dlpack.find_obstacle(elements, context)
    if obstacle is not None:
        return obstacle
    if not dlpack.is_contiguous(elements):
        return "its elements are not contiguous in C order"
    alignment = context._native.binding_alignment
    if elements.address % alignment and math.prod(elements.shape):
        return f"it begins at the address {elements.address:#x}, which is not a multiple of {alignment} bytes"
    return None


def _import(elements: dlpack.Elements, context: Context, ordered: bool, name: str = "x") -> Buffer[Any] | str:
    """Return a buffer on the memory of elements, or why they have to be copied."""
    obstacle = _find_obstacle(elements, context)
    if obstacle is not None:
        return obstacle
    if math.prod(elements.shape) == 0:
        return Buffer(elements.shape, elements.kind, context=context)
    try:
        imported = dlpack.import_memory(elements, context, ordered, is_whole=True)
        return foreign_buffer(imported, elements, elements.shape, context)
    except errors.VulkanError as error:
        return f"the driver refused it: {error}"


def foreign_buffer(
    imported: dlpack.Imported, elements: dlpack.Elements, shape: tuple[int, ...], context: Context
) -> Buffer[Any]:
    """Return a buffer on imported memory of elements."""
    buffer = Buffer.of_memory(context, imported.memory, shape, elements.kind)
    buffer.is_external, buffer.owns_memory = True, False
    buffer.is_writable = not elements.flags & dlpack.READ_ONLY
    buffer._loan = imported.loan
    return buffer


def upload(
    elements: dlpack.Elements, context: Context, name: str = "x", kind: DType | None = None
) -> Buffer[Any]:
    """Return a buffer with a copy of elements, which are merged as by `merge_components`."""
    merged = dlpack.merge_components(elements, kind)
    buffer: Buffer[Any] = Buffer(merged.shape, merged.kind, context=context)
    if elements.device[0] == CUDA:
        if not dlpack.is_contiguous(elements):
            raise errors.SharingError(
                "x: its elements are not contiguous in C order; copy it with x.contiguous() "
                "or cupy.ascontiguousarray(x)"
            )
        if buffer.size:
            link = find_link(context)
            assert elements.stream is not None
            link.copy_in(buffer._native, elements.address, dlpack.count_bytes(elements), elements.stream)
    elif buffer.size:
        buffer.write(np.ascontiguousarray(dlpack.as_numpy(elements)))
    return buffer


def _from_own(x: Any, device: Context | None, copy: bool | None) -> Buffer[Any]:
    """Return a buffer on the memory of a buffer or array of this library."""
    if isinstance(x, Buffer):
        buffer: Buffer[Any] = x.view(x.var_type)
    elif copy is False and hasattr(x, "__vkdispatch_argument__"):
        try:
            buffer = x.__vkdispatch_argument__(True, False)  # what graphs take without a copy
        except errors.ArgumentValueError:
            raise errors.SharingError(
                f"copy: False was passed, but x must be copied: an array of shape {x.shape} that is a "
                "part of a larger one, not in C order, or read-only, is not a whole buffer"
            ) from None
    else:
        buffer = x.__vkdispatch_buffer__(None)
    if device is not None and device is not buffer.context:
        if copy is False:
            raise errors.SharingError("copy: False was passed, but another context needs a copy")
        moved: Buffer[Any] = Buffer(buffer.shape, buffer.var_type, context=device)
        octets: Any = buffer._read_elements()
        moved._native.write(-1, octets)
        return moved
    return copies.copy(buffer) if copy else buffer


# ---- Arrays where buffers are expected -------------------------------------------------------------------
#
# Of `vkdispatch.numpy`, known by two methods, and of other libraries.
#
# `__vkdispatch_argument__(is_recorded, is_mapped)` returns what stands for an array in a call: its memory
# if the elements fill that in C order, else a copy, which nothing can write, or a map if that will do.
# `__vkdispatch_result__(buffer)` of the class makes an array of a buffer that a function returns. Arrays of
# other libraries are taken by DLPack, if that needs no copy, and results stay buffers.


_NO_KINDS: Mapping[int, DType] = {}
_TAKE, _MAKE = "__vkdispatch_argument__", "__vkdispatch_result__"


@record(eq=False, frozen=False)
class Given:
    """The arrays among the arguments of a call, and the buffers that stand for them.

    Attributes
    ----------
    is_recorded
        Whether the call is recorded, so that it reads memory later.
    pairs
        Each array that was replaced, and its buffer.
    refusals
        Why arrays of other libraries were not replaced; None if that is raised.
    """

    is_recorded: bool
    pairs: list[tuple[Any, Any]] = field(factory=list)
    refusals: list[errors.SharingError] | None = None

    def replace(self, value: Any, foreign: str = "", is_mapped: bool = False) -> Any:
        """Return an argument with the arrays in it replaced.

        Parameters
        ----------
        foreign
            What messages call arrays of other libraries; "" if those are not replaced.
        is_mapped
            Whether the argument can be a map called with its arguments.

        Raises
        ------
        ValueError
            The call is recorded, and an array would have to be copied; or an array of another library would.
        """
        if type(value) in (list, tuple):
            return type(value)(self.replace(item, foreign, is_mapped) for item in value)
        take = getattr(type(value), _TAKE, None)
        if take is None and not (foreign and is_foreign(value)):
            return value
        for known, replaced in self.pairs:
            if known is value and (is_mapped or isinstance(replaced, Buffer)):
                return replaced
        if take is not None:
            buffer: Any = take(value, self.is_recorded, is_mapped)
        else:
            try:
                buffer = share_argument(value, foreign)
            except errors.SharingError as error:
                if self.refusals is None:
                    raise
                self.refusals.append(error)
                return value
        self.pairs.append((value, buffer))
        return buffer

    def restore(self, result: Any, kind: type[Any]) -> Any:
        """Return the result of a call with its buffers of exactly this class as arrays."""
        for array, buffer in self.pairs:
            if result is buffer:
                return array
        if isinstance(result, tuple):
            make = getattr(type(result), "_make", tuple)
            return make([self.restore(item, kind) for item in result])
        make_array = getattr(type(self.pairs[0][0]), _MAKE, None)
        if make_array is not None and type(result) is kind and getattr(result, "_order", None) is None:
            return make_array(result)
        return result


def has_arrays(values: Iterable[Any]) -> bool:
    """Whether there is an array of this library among values, or in the lists and tuples among them."""
    return any(
        has_arrays(value) if type(value) in (list, tuple) else hasattr(type(value), _TAKE) for value in values
    )


def is_foreign(value: object) -> bool:
    """Whether a value is an array of another library."""
    return dlpack.has_dlpack(value) and not isinstance(value, Buffer) and not hasattr(type(value), _TAKE)


def has_foreign(values: Iterable[Any]) -> bool:
    """Whether there is an array of another library among values, or in the lists and tuples among them."""
    return any(has_foreign(value) if type(value) in (list, tuple) else is_foreign(value) for value in values)


def replace_arrays(values: tuple[Any, ...], is_recorded: bool, foreign: str = "") -> tuple[Any, ...] | None:
    """Return values with arrays replaced; None if there are none. Raises as `Given`.

    With a name in `foreign`, arrays of other libraries are replaced, too.
    """
    if not has_arrays(values) and not (foreign and has_foreign(values)):
        return None
    given = Given(is_recorded)
    return tuple(given.replace(value, foreign) for value in values)


def replace_foreign(
    values: tuple[Any, ...], names: Mapping[int, str], kinds: Mapping[int, DType] = _NO_KINDS
) -> tuple[Any, ...] | None:
    """Return values with arrays of other libraries as buffers, at positions with names for messages.

    Where the kind is a vector or matrix, an array may have the axes of its components last. Returns None if
    there are no such arrays. Raises as `Given`.
    """
    if not any(is_foreign(values[position]) for position in names):
        return None
    replaced = list(values)
    known: list[tuple[Any, Buffer[Any]]] = []
    for position, name in names.items():
        value = values[position]
        if is_foreign(value):
            shared = [buffer for array, buffer in known if array is value]
            kind = kinds.get(position)
            replaced[position] = shared[0] if shared else share_argument(value, name, kind)
            known.append((value, replaced[position]))
    return tuple(replaced)
