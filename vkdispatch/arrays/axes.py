"""Axes of arrays, as arguments give them: one rule for all functions."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from vkdispatch.arrays.numbers import parse_int
from vkdispatch.base.errors import ArgumentValueError, AxisError

_MOST_AXES = 3


def as_tuple(axes: object) -> tuple[Any, ...]:
    """Return what is given for axes, one or several, as a tuple."""
    alone = isinstance(axes, (str, bytes)) or (isinstance(axes, np.ndarray) and not axes.ndim)
    return tuple(axes) if isinstance(axes, Iterable) and not alone else (axes,)


def parse_axis(axis: object, dimensions: int, name: str = "axis") -> int:
    """Return an axis as an int from 0 on; negative ones count from the end.

    Raises
    ------
    TypeError
        It is no int: a truth value is none, a NumPy integer is one.
    AxisError
        An array of so many dimensions has no such axis.
    """
    number = parse_int(axis, name)
    if not -dimensions <= number < dimensions:
        raise AxisError(
            f"{name}: {number} is no axis of an array of {dimensions} dimensions; expected {-dimensions} to "
            f"{dimensions - 1}"
            if dimensions
            else f"{name}: an array of no dimensions has no axes, got {number}"
        )
    return number % dimensions


def parse_axes(axes: object, dimensions: int, name: str = "axis") -> tuple[int, ...]:
    """Return axes, given as an int or several, as ints from 0 on, in the order given; None: all of them.

    Raises
    ------
    TypeError
        They are no ints.
    AxisError
        There is no such axis, or one is named twice.
    """
    if axes is None:
        return tuple(range(dimensions))
    result = tuple(parse_axis(axis, dimensions, name) for axis in as_tuple(axes))
    if len(set(result)) < len(result):
        raise AxisError(f"{name}: an axis is named twice in {axes!r}")
    return result


def split_shape(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """Return how many elements there are before, along, and after an axis."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def check_rank(count: int, name: str) -> int:
    """Return how many axes a result has. Raises ValueError if buffers have fewer."""
    if count > _MOST_AXES:
        raise ArgumentValueError(
            f"{name}: the result would have {count} axes; buffers have at most {_MOST_AXES}"
        )
    return count
