"""Checks of arguments that several calls of Kompute share."""

from collections.abc import Iterable
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError


def require_iterable(argument: str, value: object, expected: str) -> Iterable[Any]:
    """Return an iterable other than a text. Raises TypeError, which says what is `expected`."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ArgumentTypeError(f"{argument}: expected {expected}, got {value!r}")
    return value
