"""Where segments begin, and exclusive sums of counts."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType, bool_, int32, int64, uint32, uint64
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import is_recorded
from vkdispatch.families.kernels import buffers, clear_buffer, note_bad_starts, trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import describe

# ---- Where segments begin: flags, or the positions of their first elements -------------------------------


_POSITION_TYPES = (int32, uint32, int64, uint64)


def make_flags(
    function: str,
    segments: object,
    shape: tuple[int, ...],
    around: tuple[int, int, int],
    context: Context,
    graph: CommandGraph | None,
) -> Buffer[Any] | None:
    """Return a buffer of booleans that are true where segments begin; None without segments.

    Parameters
    ----------
    function
        Name of the function that was called.
    segments
        Such a buffer, of `shape`; or, for one row, a buffer of integers: the positions of first elements.
    around
        Elements before, along and after the axis that is scanned.

    Raises
    ------
    TypeError
        `segments` is neither.
    ValueError
        Its shape does not fit, or it has positions and there are several rows.
    """
    if segments is None:
        return None
    if not isinstance(segments, Buffer) or segments.var_type not in (bool_, *_POSITION_TYPES):
        what = f"a buffer of {segments.var_type.name}" if isinstance(segments, Buffer) else describe(segments)
        raise ArgumentTypeError(
            "segments: expected a vd.Buffer of bool (true where a segment begins) or of int32, uint32, int64 "
            f"or uint64 (where they begin), got {what}"
        )
    segments.require_alive()
    if segments.var_type is bool_:
        if segments.shape != shape and not (segments.size == around[1] and around[0] == around[2] == 1):
            raise ArgumentValueError(
                f"segments: expected flags of the shape {shape}, as x has, got {segments.shape}"
            )
        return segments
    if around[0] != 1 or around[2] != 1:
        raise ArgumentValueError(
            "segments: indices are for one row only; for several rows, pass flags (a buffer of bool) of "
            f"the shape {shape}"
        )
    if not is_recorded(graph):
        note_bad_starts(function, segments)
    if not around[1]:
        return None
    flags: Buffer[Any] = function_buffer(around[1], bool_, context=context)
    clear_buffer(flags, graph)
    if segments.size:
        _make_mark_kernel(segments.var_type)(flags, segments, graph=graph)
    return flags


@store_results
def _make_mark_kernel(kind: DType) -> ShaderFunction:
    """Return the kernel that sets flags at positions; it ignores those beyond the end."""

    def mark(flags: Any, places: Any) -> None:
        place = places[vc.global_invocation_id().x].to_register()
        size = flags.shape.w.to_dtype(kind)
        with vc.if_block(vc.all(place >= 0, place < size)):
            flags[place] = place >= 0

    arguments = buffers(flags=bool_, places=kind)
    return trace_kernel(f"mark_{kind.name}", mark, arguments, 256, exec_size="places.size")


# ---- Exclusive sums of counts: compaction and top-k compute positions from them --------------------------
#
# counts     2 0 3 1 | 4 0 0 1 | ...      tiles, one for each workgroup
# sums       0 2 2 5 | 0 4 4 4 | ...      within the tile
# totals     6       | 5       | ...      of the tiles; summed in the same way, and added to the tiles


_GROUP = 256
_EACH = 8
_TILE = _GROUP * _EACH
_WORKGROUPS = f"(sums.size + {_TILE - 1}) // {_TILE}"


def exclusive_sum(
    counts: Buffer[Any], *, out: Buffer[Any] | None = None, graph: CommandGraph | None = None
) -> Buffer[Any]:
    """Return the sum of the counts before each count, and last the sum of all.

    Parameters
    ----------
    counts
        A buffer of uint32; several axes are flattened.
    out
        A buffer of uint32 to write to, one element longer than `counts`.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    A buffer of uint32 of `counts.size + 1` elements; sums wrap around at 2**32.
    """
    size = counts.size
    sums: Buffer[Any] = function_buffer(size + 1, uint32) if out is None else out
    tiles = -(-(size + 1) // _TILE)
    totals: Buffer[Any] = function_buffer(tiles, uint32)
    _make_tile_sums_kernel()(sums, totals, counts, graph=graph)
    if tiles > 1:
        _make_add_totals_kernel()(sums, exclusive_sum(totals, graph=graph), graph=graph)
    return sums


@store_results
def _make_tile_sums_kernel() -> ShaderFunction:
    def tile_sums(sums: Any, totals: Any, counts: Any) -> None:
        lane = vc.local_invocation_index()
        tile = vc.workgroup_id().x
        size = counts.shape.w
        first = tile * _TILE + lane * _EACH
        own_counts = [vc.new_uint_register(0) for _ in range(_EACH)]
        for i in range(_EACH):
            with vc.if_block(first + i < size):
                own_counts[i][:] = counts[first + i]
        lane_total = vc.new_uint_register(0)
        for value in own_counts:
            lane_total += value
        memory = vc.shared_buffer(uint32, _GROUP)
        memory[lane] = lane_total
        vc.barrier()
        step = 1
        total = lane_total.to_register()
        while step < _GROUP:
            with vc.if_block(lane >= step):
                total += memory[lane - step]
            vc.barrier()
            memory[lane] = total
            vc.barrier()
            step *= 2
        before = (total - lane_total).to_register()
        for i in range(_EACH):
            with vc.if_block(first + i <= size):
                sums[first + i] = before
            before += own_counts[i]
        with vc.if_block(lane == _GROUP - 1):
            totals[tile] = total

    arguments = buffers(sums=uint32, totals=uint32, counts=uint32)
    return trace_kernel("tile_sums", tile_sums, arguments, _GROUP, _WORKGROUPS)


@store_results
def _make_add_totals_kernel() -> ShaderFunction:
    def add_totals(sums: Any, before: Any) -> None:
        tile = vc.workgroup_id().x
        start = before[tile].to_register()
        for i in range(_EACH):
            place = tile * _TILE + (vc.local_invocation_index() + i * _GROUP)
            with vc.if_block(place < sums.shape.w):
                sums[place] = sums[place] + start

    return trace_kernel("add_totals", add_totals, buffers(sums=uint32, before=uint32), _GROUP, _WORKGROUPS)
