"""Integers that callers give: Python's and NumPy's, but no booleans."""

import operator

from vkdispatch.base.errors import ArgumentValueError


def as_int(value: object) -> int | None:
    """Return a Python or NumPy integer as an int; None for everything else, booleans included."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None  # an array of several integers, say


def parse_positive(argument: str, value: object) -> int:
    """Return a positive integer. Raises ValueError, which names `argument`, for anything else."""
    number = as_int(value)
    if number is None or number < 1:
        raise ArgumentValueError(f"{argument}: expected a positive int, got {value!r}")
    return number
