"""Checks of arguments that several calls share."""

import operator
from collections.abc import Iterable
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError


def require_iterable(argument: str, value: object, expected: str) -> Iterable[Any]:
    """Return an iterable other than a string. Raises TypeError, with `expected` in the message."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ArgumentTypeError(f"{argument}: expected {expected}, got {value!r}")
    return value


def parse_index(argument: str, value: object) -> int:
    """Return an int of 0 or more. Raises TypeError for anything else."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if number < 0:
        raise ArgumentTypeError(f"{argument}: expected an int, 0 or more, got {value!r}")
    return number


def parse_indices(argument: str, value: object) -> list[int]:
    """Return a list of ints of 0 or more. Raises TypeError for anything else."""
    return [parse_index(argument, item) for item in require_iterable(argument, value, "a list of ints")]


def parse_names(argument: str, value: object) -> list[str]:
    """Return a list of strings. Raises TypeError for anything else."""
    names = list(require_iterable(argument, value, "a list of names"))
    if not all(isinstance(name, str) for name in names):
        raise ArgumentTypeError(f"{argument}: expected a list of names, got {names!r}")
    return names
