"""What several functions ask of their arguments."""

from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError

_MOST_AXES = 3


def checked_int(value: Any, name: str, *, least: int | None = None) -> int:
    """Return an int. Raises TypeError if it is none, ValueError if it is less than `least`."""
    if not hasattr(value, "__index__") or isinstance(value, bool):
        raise ArgumentTypeError(f"{name}: expected an int, got {value!r}")
    number: int = value.__index__()
    if least is not None and number < least:
        raise ArgumentValueError(f"{name}: expected {least} or more, got {number}")
    return number


def checked_rank(count: int, name: str) -> int:
    """Return how many axes a result has. Raises ValueError where buffers have fewer."""
    if count > _MOST_AXES:
        raise ArgumentValueError(
            f"{name}: the result would have {count} axes; buffers have at most {_MOST_AXES}"
        )
    return count
