"""Results whose size depends on the data: waited for, or given."""

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.shader.parameters import given


def checked_size(size: object, name: str = "size") -> int:
    """Return how many elements a result is to have.

    Raises
    ------
    TypeError
        It is no int.
    ValueError
        It is negative.
    """
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        raise ArgumentTypeError(f"{name}: expected an int, got {given(size)}")
    number: int = size.__index__()
    if number < 0:
        raise ArgumentValueError(f"{name}: expected an int from 0 on, got {number}")
    return number
