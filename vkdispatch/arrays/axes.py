"""Axes as arguments: one rule for all functions."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from vkdispatch.arrays.numbers import parse_int
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.host_numpy import AxisError

_MOST_AXES = 3


def as_tuple(axes: object) -> tuple[Any, ...]:
    """Return one axis or several axes as a tuple."""
    alone = isinstance(axes, (str, bytes)) or (isinstance(axes, np.ndarray) and not axes.ndim)
    return tuple(axes) if isinstance(axes, Iterable) and not alone else (axes,)


def parse_axis(axis: object, dimensions: int, name: str = "axis") -> int:
    """Return an axis as a nonnegative int; negative axes count from the end.

    Raises
    ------
    TypeError
        The axis is not an int. NumPy integers are ints, booleans are not.
    AxisError
        The axis is out of range.
    """
    number = parse_int(axis, name)
    if not -dimensions <= number < dimensions:
        raise AxisError(
            f"{name}: {number} is out of bounds for an array of {dimensions} dimensions; expected "
            f"{-dimensions} to {dimensions - 1}"
            if dimensions
            else f"{name}: an array of no dimensions has no axes, got {number}"
        )
    return number % dimensions


def parse_axes(axes: object, dimensions: int, name: str = "axis") -> tuple[int, ...]:
    """Return one axis or several axes as nonnegative ints in the given order; None for all of them.

    Raises
    ------
    TypeError
        An axis is not an int.
    AxisError
        An axis is out of range or repeated.
    """
    if axes is None:
        return tuple(range(dimensions))
    result = tuple(parse_axis(axis, dimensions, name) for axis in as_tuple(axes))
    if len(set(result)) < len(result):
        raise AxisError(f"{name}: repeated axis in {axes!r}")
    return result


def split_shape(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """Return the numbers of elements before, along, and after an axis."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def check_rank(count: int, name: str) -> int:
    """Return the number of axes of a result. Raises ValueError if buffers cannot have so many."""
    if count > _MOST_AXES:
        raise ArgumentValueError(
            f"{name}: the result would have {count} axes; buffers have at most {_MOST_AXES}"
        )
    return count
