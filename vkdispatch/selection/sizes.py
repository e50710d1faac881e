"""Results whose size depends on the data: waited for, or given."""

from vkdispatch.arrays.numbers import parse_int


def checked_size(size: object, name: str = "size") -> int:
    """Return how many elements a result is to have.

    Raises
    ------
    TypeError
        It is no int.
    ValueError
        It is negative.
    """
    return parse_int(size, name, least=0)
