"""Arrays in pinned host memory, which the device copies to and from by itself."""

import math
from typing import TYPE_CHECKING, Any

from vkdispatch.base.context import Context, get_context
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, OutOfDeviceMemoryError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.integers import as_int
from vkdispatch.base.native_module import native

if TYPE_CHECKING:  # a third of the import that we allow ourselves
    from numpy.typing import DTypeLike

Array = np.ndarray[Any, Any]
_MAX_BYTES = 1 << 62


class _Block(native.HostBlock):
    """Pinned memory, which on a foreign device holds the context: the device may go when that is gone."""

    __slots__ = ("context",)


def empty_pinned(shape: "int | tuple[int, ...]", dtype: "DTypeLike" = np.float32) -> Array:
    """Return a new array in pinned memory, its contents undefined.

    `Buffer.write`, `read(out=...)`, `write_async` and `read_async(out=...)` copy between device memory and
    it, or any contiguous part of it, without a stop on the way: about as fast as the wires are. Otherwise it
    is an array like any other. The memory stays while an array looks at it, even when the context is gone.
    There is less of it than of other memory, and to get it takes longer: keep it.

    Parameters
    ----------
    shape
        An int or a sequence of ints: elements along each axis.
    dtype
        What `np.empty` understands, except for Python objects.

    Raises
    ------
    TypeError
        `dtype` is none, or of Python objects; `shape` holds something that is no int.
    ValueError
        A size is negative.
    MemoryError
        The system has no memory of this kind left, or the device allocates less at once (NVIDIA: 4 GiB).
    """
    return pinned_array(get_context(), 0, _parse_shape(shape), _parse_dtype(dtype))


def pinned_array(context: Context, queue: int, shape: tuple[int, ...], dtype: "np.dtype[Any]") -> Array:
    """Return an array in memory pinned for the device of a queue."""
    count = math.prod(shape)
    if count * dtype.itemsize == 0:
        return np.empty(shape, dtype)
    if count * dtype.itemsize > _MAX_BYTES:
        raise OutOfDeviceMemoryError(f"shape: {count * dtype.itemsize} bytes are more than there can be")
    block: Any = _Block(context._native, queue, count * dtype.itemsize)
    if context.borrowed:
        block.context = context
    return np.frombuffer(block, dtype, count).reshape(shape + dtype.shape)


def _parse_dtype(given: "DTypeLike") -> "np.dtype[Any]":
    try:
        dtype = np.dtype(given)
    except TypeError as error:
        raise ArgumentTypeError(f"dtype: expected a NumPy dtype, got {given!r}") from error
    if dtype.hasobject:
        raise ArgumentTypeError(f"dtype: an array of {dtype} holds Python objects, not numbers")
    return dtype


def _parse_shape(given: object) -> tuple[int, ...]:
    single = as_int(given)
    items = (single,) if single is not None else given
    try:
        sizes = tuple(as_int(item) for item in items)  # type: ignore[attr-defined]
    except TypeError as error:
        raise ArgumentTypeError(f"shape: expected an int or a sequence of ints, got {given!r}") from error
    shape = tuple(size for size in sizes if size is not None)
    if len(shape) != len(sizes):
        raise ArgumentTypeError(f"shape: expected an int or a sequence of ints, got {given!r}")
    if any(size < 0 for size in shape):
        raise ArgumentValueError(f"shape: sizes cannot be negative, got {shape}")
    return shape
