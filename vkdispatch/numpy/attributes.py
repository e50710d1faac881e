"""Attributes of arrays as functions, of numbers and sequences as well; shapes."""

from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.arguments import to_array
from vkdispatch.numpy.core.array import Array
from vkdispatch.numpy.core.memory import Shape


def ndim(a: Any) -> int:
    """Return how many axes an array has. See `numpy.ndim`."""
    return a.ndim if isinstance(a, Array) else int(np.ndim(a))


def shape(a: Any) -> Shape:
    """Return the length of each axis of an array. See `numpy.shape`."""
    return a.shape if isinstance(a, Array) else tuple(np.shape(a))


def size(a: Any, axis: Any = None) -> int:
    """Return how many elements an array has, or its length along an axis. See `numpy.size`."""
    if axis is None:
        return a.size if isinstance(a, Array) else int(np.size(a))
    lengths = shape(a)
    axes = axis if isinstance(axis, tuple) else (axis,)
    found = 1
    for each in axes:
        found *= lengths[each]
    return found


def broadcast_shapes(*args: Any) -> Shape:
    """Return the shape to which shapes broadcast. See `numpy.broadcast_shapes`. Else raises ValueError."""
    try:
        return np.broadcast_shapes(*args)
    except ValueError as error:
        raise ArgumentValueError(f"broadcast_shapes: {error}") from None


def isfortran(a: Any) -> bool:
    """Whether an array is contiguous in Fortran's order, and not in C's. See `numpy.isfortran`."""
    array = to_array(a, "a")
    from vkdispatch.numpy.core.array import view_of
    from vkdispatch.numpy.core.memory import is_c_order

    view = view_of(array)
    return not view.is_contiguous and is_c_order(view.shape[::-1], view.strides[::-1])


def min_scalar_type(a: Any) -> "np.dtype[Any]":
    """Return the dtype of an array, or the least one that holds a number. See `numpy.min_scalar_type`."""
    return a.dtype if isinstance(a, Array) else np.min_scalar_type(a)
