"""Numbers that a call reads from the device before it continues, from every queue of a context.

A context with several queues has a copy of each buffer for each queue, and a call runs on all queues. What
such a number decides is either decided for each queue separately, or has to be the same on all queues.
"""

from collections.abc import Sequence
from typing import Any

from vkdispatch.base.buffer import Array, Buffer
from vkdispatch.base.errors import ArgumentValueError


def read_queues(buffer: Buffer[Any], start: int = 0, stop: int | None = None) -> list[Array]:
    """Wait for a buffer and return its flat elements from `start` to `stop`, for each queue."""
    end = buffer.size if stop is None else stop
    return [buffer._read(start, (end - start,), queue) for queue in range(buffer.context.queue_count)]


def agree_on_size(sizes: Sequence[int], name: str, remedy: str) -> int:
    """Return the size of a result, which has to be the same on all queues.

    Parameters
    ----------
    name
        The argument that decides the size.
    remedy
        The argument that avoids the wait, such as "size=".

    Raises
    ------
    ValueError
        The sizes differ.
    """
    for queue, size in enumerate(sizes):
        if size != sizes[0]:
            raise ArgumentValueError(
                f"{name}: the queues of the context hold different numbers: the result would have {sizes[0]} "
                f"elements on queue 0 and {size} on queue {queue}; pass {remedy}, or have the copies of "
                "buffers agree with copy_between_queues(...)"
            )
    return sizes[0]
