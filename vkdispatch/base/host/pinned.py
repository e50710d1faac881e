"""Arrays in pinned host memory, which the device accesses directly."""

import math
from typing import TYPE_CHECKING, Any

from vkdispatch.base.context import Context, get_context
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, OutOfDeviceMemoryError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.integers import as_int
from vkdispatch.base.native_module import native

if TYPE_CHECKING:  # it would take a third of the import time
    from numpy.typing import DTypeLike

Array = np.ndarray[Any, Any]
_MAX_BYTES = 1 << 62


class _Block(native.HostBlock):
    """Pinned memory. On a device of another library it keeps the context, and so the device, alive."""

    __slots__ = ("context",)


def empty_pinned(shape: "int | tuple[int, ...]", dtype: "DTypeLike" = np.float32) -> Array:
    """Return a new array in pinned memory, with undefined contents.

    `Buffer.write`, `read(out=...)`, `write_async` and `read_async(out=...)` copy directly between device
    memory and this array or any contiguous part of it, at about the speed of the bus. Otherwise it is an
    ordinary array. The memory is kept while an array uses it, even after the context is gone. Pinned memory
    is limited and slow to allocate: reuse it.

    Parameters
    ----------
    shape
        An int or a sequence of ints: elements along each axis.
    dtype
        Any dtype that `np.empty` accepts, except Python objects.

    Raises
    ------
    TypeError
        `dtype` is not a dtype or has Python objects, or `shape` holds something other than ints.
    ValueError
        A size is negative.
    MemoryError
        The system has not enough pinned memory, or the device limits an allocation (NVIDIA: 4 GiB).

    Examples
    --------
    >>> array = vd.empty_pinned((2, 3), np.float32)
    >>> array.shape
    (2, 3)
    """
    return pinned_array(get_context(), 0, _parse_shape(shape), _parse_dtype(dtype))


def pinned_array(context: Context, queue: int, shape: tuple[int, ...], dtype: "np.dtype[Any]") -> Array:
    """Return an array in memory pinned for the device of a queue."""
    count = math.prod(shape)
    if count * dtype.itemsize == 0:
        return np.empty(shape, dtype)
    if count * dtype.itemsize > _MAX_BYTES:
        raise OutOfDeviceMemoryError(f"shape: {count * dtype.itemsize} bytes are more than any system has")
    block: Any = _Block(context._native, queue, count * dtype.itemsize)
    if context.borrowed:
        block.context = context
    return np.frombuffer(block, dtype, count).reshape(shape + dtype.shape)


def _parse_dtype(value: "DTypeLike") -> "np.dtype[Any]":
    try:
        dtype = np.dtype(value)
    except TypeError as error:
        raise ArgumentTypeError(f"dtype: expected a NumPy dtype, got {value!r}") from error
    if dtype.hasobject:
        raise ArgumentTypeError(f"dtype: an array of {dtype} holds Python objects, not numbers")
    return dtype


def _parse_shape(value: object) -> tuple[int, ...]:
    single = as_int(value)
    items = (single,) if single is not None else value
    try:
        sizes = tuple(as_int(item) for item in items)  # type: ignore[attr-defined]
    except TypeError as error:
        raise ArgumentTypeError(f"shape: expected an int or a sequence of ints, got {value!r}") from error
    shape = tuple(size for size in sizes if size is not None)
    if len(shape) != len(sizes):
        raise ArgumentTypeError(f"shape: expected an int or a sequence of ints, got {value!r}")
    if any(size < 0 for size in shape):
        raise ArgumentValueError(f"shape: sizes cannot be negative, got {shape}")
    return shape
