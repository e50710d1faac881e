"""Scratch buffers, kept from call to call: making one takes as long as a small product."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vkdispatch.arrays.calls import is_recorded
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType
from vkdispatch.execution_pipeline.command_graph import CommandGraph

# Bytes that a context keeps, at most.
_MOST_BYTES = 1 << 28
_UNIT = 1 << 20

_KEPT = "matrices.scratch"


@contextmanager
def scratch_for(size: int, kind: DType, graph: CommandGraph | None) -> Iterator[Buffer[Any]]:
    """Lend a buffer of `size` elements or more while launches that use it are queued.

    What a graph records has a buffer of its own, which the graph keeps.
    """
    size = _rounded(max(size, 1) * kind.item_size) // kind.item_size
    if is_recorded(graph) or size * kind.item_size > _MOST_BYTES // 2:
        yield function_buffer(size, kind)
        return
    # those that nobody uses, the one that was used last at the end
    kept: list[Buffer[Any]] = get_context().kept.setdefault(_KEPT, [])
    # taken out meanwhile: what another thread queues in between does not use it
    buffer = _taken(kept, size, kind)
    if buffer is None:
        buffer = function_buffer(size, kind)
    buffer._native.announce()
    yield buffer
    kept.append(buffer)
    while sum(each.mem_size for each in tuple(kept)) > _MOST_BYTES:
        del kept[:1]


def _taken(kept: list[Buffer[Any]], size: int, kind: DType) -> Buffer[Any] | None:
    for buffer in reversed(tuple(kept)):
        if buffer.size == size and buffer.var_type is kind:
            try:
                # buffers compare by identity
                kept.remove(buffer)
            except ValueError:
                continue
            found: Buffer[Any] = buffer
            return found
    return None


def _rounded(count: int) -> int:
    """Return a power of two, or a multiple of a larger one, that is no less."""
    return 1 << max(count - 1, 1023).bit_length() if count <= _UNIT else -(-count // _UNIT) * _UNIT
