"""Numbers that a call waits for before it goes on: from the device, and from every queue of a context.

A context of several queues has a copy of each buffer for each queue, and a call runs on all of them. What the
call decides by such a number is either decided for each queue by itself, or has to be the same on all.
"""

from collections.abc import Sequence
from typing import Any

from vkdispatch.base.buffer import Array, Buffer
from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentValueError


def read_queues(buffer: Buffer[Any], start: int = 0, stop: int | None = None) -> list[Array]:
    """Wait for a buffer, and return its elements from `start` to `stop`, flat, as each queue has them."""
    end = buffer.size if stop is None else stop
    return [buffer._read(start, (end - start,), queue) for queue in range(buffer.context.queue_count)]


def describe_queue(queue: int, context: Context) -> str:
    """Return what messages add about a queue: nothing where there is one only."""
    return f" on queue {queue}" if context.queue_count > 1 else ""


def agree_on_size(sizes: Sequence[int], name: str, remedy: str) -> int:
    """Return the size of a result, which has to be the same on each queue.

    Parameters
    ----------
    name
        The argument that decides it.
    remedy
        What the caller may give in place of waiting, such as "size=".

    Raises
    ------
    ValueError
        The queues differ.
    """
    for queue, size in enumerate(sizes):
        if size != sizes[0]:
            raise ArgumentValueError(
                f"{name}: the queues of the context hold different numbers: the result would have {sizes[0]} "
                f"elements on queue 0 and {size} on queue {queue}; give {remedy}, or have the copies of "
                "buffers agree with copy_between_queues(...)"
            )
    return sizes[0]
