"""Scratch buffers for sums of parts, kept from call to call: making one takes as long as a small product."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context, get_context
from vkdispatch.base.dtype import DType
from vkdispatch.execution_pipeline.command_graph import CommandGraph, current

# Larger ones are made for each call; of each size, so many are kept, of so many sizes.
_MOST_BYTES = 1 << 25
_MOST_KEPT = 2
_MOST_SIZES = 8

_kept: WeakKeyDictionary[Context, dict[tuple[int, DType], deque[Buffer[Any]]]] = WeakKeyDictionary()


@contextmanager
def scratch_for(size: int, kind: DType, graph: CommandGraph | None) -> Iterator[Buffer[Any]]:
    """Lend a buffer of `size` elements or more while launches that use it are queued.

    What a graph records has a buffer of its own, which the graph keeps.
    """
    size = 1 << max(size - 1, 255).bit_length()
    if graph is not None or current.chosen is not None or size * kind.item_size > _MOST_BYTES:
        yield Buffer(size, kind)
        return
    sizes = _kept.setdefault(get_context(), {})
    kept = sizes.get((size, kind))
    if kept is None:
        while len(sizes) >= _MOST_SIZES:
            sizes.pop(next(iter(sizes)), None)
        kept = sizes.setdefault((size, kind), deque(maxlen=_MOST_KEPT))
    try:
        # taken out meanwhile: what another thread queues in between does not use it
        buffer = kept.popleft()
    except IndexError:
        buffer = Buffer(size, kind)
    yield buffer
    kept.append(buffer)
