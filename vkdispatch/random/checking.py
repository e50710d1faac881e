"""Checks of what generators are given."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from vkdispatch.arrays.dtypes import parse_dtype
from vkdispatch.base.buffer import Buffer, checked_shape
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph, global_graph


def checked_size(size: Any, out: Any) -> tuple[int, ...]:
    """Return the shape of a draw.

    Raises
    ------
    TypeError, ValueError
        `size` is no int of 0 or more, nor up to three of them.
    """
    if size is None:
        return out.shape if isinstance(out, Buffer) else ()
    whole = (size,) if is_integer(size) else size
    if not isinstance(whole, Sequence) or isinstance(whole, str) or not all(map(is_integer, whole)):
        raise ArgumentTypeError(f"size: expected an int or up to 3 ints, got {size!r}")
    if len(whole) > 3 or min(whole, default=0) < 0:
        raise ArgumentValueError(f"size: expected up to 3 ints of 0 or more, got {size!r}")
    return checked_shape(tuple(whole))


def is_integer(value: Any) -> bool:
    """Whether a value is an int, and no bool."""
    if isinstance(value, (bool, np.bool_)):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def checked_graph(graph: Any) -> CommandGraph:
    """Return where to record. Raises TypeError for what is no graph, nor None."""
    if graph is None:
        return global_graph()
    if not isinstance(graph, CommandGraph):
        raise ArgumentTypeError(f"graph: expected a CommandGraph or None, got {type(graph).__name__}")
    return graph


def checked_dtype(given: Any, known: tuple[DType, ...]) -> DType:
    """Return one of some dtypes, given as such or as NumPy's. Raises TypeError for another."""
    try:
        kind = parse_dtype(given)
    except (ArgumentTypeError, ArgumentValueError):
        kind = None
    if kind not in known:
        names = ", ".join(each.name for each in known)
        raise ArgumentTypeError(f"dtype: expected one of {names}, got {kind.name if kind else repr(given)}")
    return kind


def checked_number(name: str, value: Any) -> float:
    """Return a finite number. Raises TypeError or ValueError for what is none."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentTypeError(f"{name}: expected a number, got {value!r}")
    number = float(value)
    if not math.isfinite(number):
        raise ArgumentValueError(f"{name}: expected a finite number, got {number}")
    return number


def checked_integer(name: str, value: Any) -> int:
    """Return an int. Raises TypeError for what is none."""
    if not is_integer(value):
        raise ArgumentTypeError(f"{name}: expected an int, got {value!r}")
    return operator.index(value)
