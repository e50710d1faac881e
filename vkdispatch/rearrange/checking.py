"""What several functions ask of their arguments."""

from vkdispatch.base.errors import ArgumentValueError

_MOST_AXES = 3


def checked_rank(count: int, name: str) -> int:
    """Return how many axes a result has. Raises ValueError where buffers have fewer."""
    if count > _MOST_AXES:
        raise ArgumentValueError(
            f"{name}: the result would have {count} axes; buffers have at most {_MOST_AXES}"
        )
    return count
