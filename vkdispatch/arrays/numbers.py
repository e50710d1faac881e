"""Numbers as arguments: one rule for all functions; and powers of two."""

import math
from typing import Any, TypeGuard

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.process import as_int
from vkdispatch.shader.arguments.parameters import describe

Number = bool | int | float | complex | np.generic


def is_int(value: object) -> bool:
    """Whether a value is a Python or NumPy integer; booleans are not."""
    return as_int(value) is not None


def parse_int(
    value: object,
    name: str,
    *,
    least: int | None = None,
    most: int | None = None,
    wanted: str = "an int",
    note: str = "",
) -> int:
    """Return a Python or NumPy integer as an int.

    Parameters
    ----------
    least, most
        The limits, both included; `most` needs `least`.
    wanted
        The type of the argument in messages.
    note
        A text that messages add to the limits.

    Raises
    ------
    TypeError
        The value is not an integer. Booleans are not integers.
    ValueError
        The value is out of the limits.
    """
    number = as_int(value)
    if number is None:
        raise ArgumentTypeError(f"{name}: expected {wanted}, got {describe(value)}")
    if (least is not None and number < least) or (most is not None and number > most):
        limits = f"from {least} on" if most is None else f"from {least} to {most}"
        raise ArgumentValueError(f"{name}: expected an int {limits}{note}, got {number}")
    return number


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a Python or NumPy integer or float; booleans are not."""
    return isinstance(value, (float, np.floating)) or is_int(value)


def parse_number(value: Any, name: str) -> float:
    """Return a finite number as a float. Raises TypeError or ValueError for other values."""
    if not is_number(value):
        raise ArgumentTypeError(f"{name}: expected a number, got {describe(value)}")
    number = float(value)
    if not math.isfinite(number):
        raise ArgumentValueError(f"{name}: expected a finite number, got {number}")
    return number


def floor_power_of_two(number: int) -> int:
    """Return the largest power of two that is not above a number, but at least 1."""
    return 1 << (max(number, 1).bit_length() - 1)
