"""Sums of counts: where compaction and sorting put what they keep.

counts     2 0 3 1 | 4 0 0 1 | ...      tiles, one for each workgroup
sums       0 2 2 5 | 0 4 4 4 | ...      within the tile
totals     6       | 5       | ...      of the tiles; summed up the same way, and added to their tiles
"""

from functools import lru_cache
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import buffer
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import uint32
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.rewrite.functions import kernel
from vkdispatch.shader.shader_function import ShaderFunction

_GROUP = 256
_EACH = 8
_TILE = _GROUP * _EACH


def exclusive_sum(
    counts: Buffer[Any], *, out: Buffer[Any] | None = None, graph: CommandGraph | None = None
) -> Buffer[Any]:
    """Return for each count the sum of those before it, and after the last one the sum of all.

    Parameters
    ----------
    counts
        A buffer of uint32; more axes than one are taken as flat.
    out
        A buffer of uint32 with one element more than `counts`, where the sums go.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.

    Returns
    -------
    A buffer of uint32 of `counts.size + 1` elements; sums wrap around at 2**32.
    """
    size = counts.size
    sums: Buffer[Any] = function_buffer(size + 1, uint32) if out is None else out
    tiles = -(-(size + 1) // _TILE)
    totals: Buffer[Any] = function_buffer(tiles, uint32)
    _tile_sums()(sums, totals, counts, graph=graph)
    if tiles > 1:
        _add_totals()(sums, exclusive_sum(totals, graph=graph), graph=graph)
    return sums


def _traced(name: str, body: Any, arguments: list[tuple[str, Any]]) -> ShaderFunction:
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as context:
        kinds, names = [kind for _, kind in arguments], [each for each, _ in arguments]
        kernel(body, rewrite=True)(*context.declare_input_arguments(kinds, names))
    return ShaderFunction(
        context.get_description(name).reinterpreting(),
        (_GROUP, 1, 1),
        f"(sums.size + {_TILE - 1}) // {_TILE}",
    )


@lru_cache(1)
def _tile_sums() -> ShaderFunction:
    def tile_sums(sums: Any, totals: Any, counts: Any) -> None:
        lane = vc.local_invocation_index()
        tile = vc.workgroup_id().x
        size = counts.shape.w
        first = tile * _TILE + lane * _EACH
        found = [vc.new_uint_register(0) for _ in range(_EACH)]
        for i in range(_EACH):
            with vc.if_block(first + i < size):
                found[i][:] = counts[first + i]
        own = vc.new_uint_register(0)
        for value in found:
            own += value
        memory = vc.shared_buffer(uint32, _GROUP)
        memory[lane] = own
        vc.barrier()
        step = 1
        total = own.to_register()
        while step < _GROUP:
            with vc.if_block(lane >= step):
                total += memory[lane - step]
            vc.barrier()
            memory[lane] = total
            vc.barrier()
            step *= 2
        before = (total - own).to_register()
        for i in range(_EACH):
            with vc.if_block(first + i <= size):
                sums[first + i] = before
            before += found[i]
        with vc.if_block(lane == _GROUP - 1):
            totals[tile] = total

    arguments = [("sums", buffer[uint32]), ("totals", buffer[uint32]), ("counts", buffer[uint32])]
    return _traced("tile_sums", tile_sums, arguments)


@lru_cache(1)
def _add_totals() -> ShaderFunction:
    def add_totals(sums: Any, before: Any) -> None:
        tile = vc.workgroup_id().x
        start = before[tile].to_register()
        for i in range(_EACH):
            place = tile * _TILE + (vc.local_invocation_index() + i * _GROUP)
            with vc.if_block(place < sums.shape.w):
                sums[place] = sums[place] + start

    return _traced("add_totals", add_totals, [("sums", buffer[uint32]), ("before", buffer[uint32])])
