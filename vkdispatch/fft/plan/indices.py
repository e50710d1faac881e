"""Arithmetic of indices that are ints or GPU values."""

from typing import Any


def held(value: Any) -> Any:
    """Return the value as it is now, in a register of its own."""
    return value.to_register()


def plus(a: Any, b: Any) -> Any:
    """Add, leaving out zeros."""
    if isinstance(b, int) and b == 0:
        return a
    return b if isinstance(a, int) and a == 0 else a + b


def times(a: Any, b: int) -> Any:
    """Multiply, leaving out zeros and ones."""
    if isinstance(a, int):
        return a * b
    return a if b == 1 else a * b


def kept(value: Any) -> Any:
    """Return an index as it is now, in a register of its own unless it is an int."""
    return value if isinstance(value, int) else value.to_register()
