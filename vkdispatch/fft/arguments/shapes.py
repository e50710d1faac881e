"""Shapes, axes and ranges as arguments."""

import math
import operator
from collections.abc import Sequence
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.families import arguments as axes


def parse_shape(shape: Any, what: str = "buffer_shape") -> tuple[int, ...]:
    """Return a shape as a tuple. Raises TypeError or ValueError if it is not one."""
    sizes = shape if isinstance(shape, Sequence) else (shape,)
    try:
        found = tuple(operator.index(size) for size in sizes)
    except TypeError:
        raise ArgumentTypeError(f"{what}: expected an int or a tuple of ints, got {shape!r}") from None
    if not found or min(found) < 1:
        raise ArgumentValueError(f"{what}: expected one or more axes of at least 1, got {shape!r}")
    return found


def parse_axis(axis: object, dimensions: int) -> int:
    """Return an axis counted from the front; None is the last one, and negative ones count from the end.

    Raises
    ------
    TypeError
        It is not an int.
    AxisError
        There is no such axis.
    """
    return dimensions - 1 if axis is None else axes.parse_axis(axis, dimensions)


def require_neighbours(shape: tuple[int, ...], axis: int) -> None:
    """Raise ValueError unless the values along an axis are contiguous, as real transforms require."""
    if math.prod(shape[axis + 1 :]) != 1:
        raise ArgumentValueError(
            f"axis: a real transform is along the last axis, got axis {axis} of the shape {shape}"
        )


def require_axes(name: str, shape: tuple[int, ...], least: int, most: int = 3) -> None:
    """Raise ValueError unless a shape has from `least` to `most` axes. `name` is that of the caller."""
    if not least <= len(shape) <= most:
        wanted = " or ".join(map(str, range(least, min(most, 3) + 1)))
        raise ArgumentValueError(f"buffer: {name} takes one of {wanted} axes, got the shape {shape}")


SignalRange = tuple[int | None, int | None]


def parse_range(signal_range: object, length: int) -> tuple[int, int] | None:
    """Return the start and end of a signal, within 0 and `length`; None for the whole line.

    Raises TypeError or ValueError unless it is None or a pair of ints or None.
    """
    if signal_range is None:
        return None
    if not isinstance(signal_range, (tuple, list)) or len(signal_range) != 2:
        raise ArgumentValueError(f"input_signal_range: expected (start, end), got {signal_range!r}")
    try:
        start, end = (None if each is None else operator.index(each) for each in signal_range)
    except TypeError:
        raise ArgumentTypeError(f"input_signal_range: expected ints or None, got {signal_range!r}") from None
    start = 0 if start is None else start
    end = length if end is None else end
    if start < 0 or end < 0:
        raise ArgumentValueError(f"input_signal_range: expected no negative numbers, got {signal_range!r}")
    start, end = min(start, length), min(end, length)
    return None if (start, end) == (0, length) else (start, end)
