"""Arithmetic of indices that are ints or GPU values; what is known when a kernel is traced costs nothing."""

from typing import Any


def add(a: Any, b: Any) -> Any:
    """Return a sum, without zeros."""
    if isinstance(b, int) and b == 0:
        return a
    return b if isinstance(a, int) and a == 0 else a + b


def multiply(a: Any, b: Any) -> Any:
    """Return a product, without ones."""
    if isinstance(a, int):
        return a * b if isinstance(b, int) else multiply(b, a)
    return a if isinstance(b, int) and b == 1 else a * b


def hold(value: Any) -> Any:
    """Return a value as it is now, in a register of its own unless it is an int."""
    return value if isinstance(value, int) else value.to_register()
