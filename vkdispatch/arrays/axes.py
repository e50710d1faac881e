"""Axes of arrays, as arguments give them."""

import math
from collections.abc import Iterable
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError


def checked_axis(axis: object, dimensions: int, name: str = "axis") -> int:
    """Return an axis as an int from 0 on.

    Raises
    ------
    TypeError
        It is no int.
    ValueError
        An array of so many dimensions has no such axis.
    """
    if not hasattr(axis, "__index__") or isinstance(axis, bool):
        raise ArgumentTypeError(f"{name}: expected an int, got {axis!r}")
    number: int = axis.__index__()
    if not -dimensions <= number < dimensions:
        raise ArgumentValueError(
            f"{name}: {number} is no axis of an array of {dimensions} dimensions; expected {-dimensions} to "
            f"{dimensions - 1}"
            if dimensions
            else f"{name}: an array of no dimensions has no axes, got {number}"
        )
    return number % dimensions


def checked_axes(axes: object, dimensions: int, name: str = "axis") -> tuple[int, ...]:
    """Return axes, given as an int or several, as ints from 0 on, in the order given; None: all of them.

    Raises
    ------
    TypeError
        They are no ints.
    ValueError
        There is no such axis, or one is named twice.
    """
    if axes is None:
        return tuple(range(dimensions))
    several: Iterable[Any] = (
        axes if isinstance(axes, Iterable) and not isinstance(axes, (str, bytes)) else (axes,)
    )
    result = tuple(checked_axis(axis, dimensions, name) for axis in several)
    if len(set(result)) < len(result):
        raise ArgumentValueError(f"{name}: an axis is named twice in {axes!r}")
    return result


def around(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """Return how many elements there are before, along, and after an axis."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
