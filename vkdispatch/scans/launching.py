"""The launches of a scan, where segments begin, and exclusive sums of counts."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType, bool_, int32, int64, uint32, uint64
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record, replace
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import is_recorded
from vkdispatch.families.kernels import buffers, clear_buffer, note_bad_starts, take_zeros, trace_kernel
from vkdispatch.families.operands import Operand, Output, parse_operand, parse_output
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import device_facts
from vkdispatch.families.values import word_count
from vkdispatch.scans import planning
from vkdispatch.scans.arguments import ScanOp, launch_values
from vkdispatch.scans.columns import ColumnsForm, make_columns_kernel
from vkdispatch.scans.lookback import COUNTERS, count_slots
from vkdispatch.scans.rows import RowsForm, make_rows_kernel
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import describe


@record
class Direction:
    """Which way a scan goes, and whether each result leaves its own element out."""

    is_reverse: bool
    is_exclusive: bool


_FORWARD = Direction(is_reverse=False, is_exclusive=False)


@record(eq=False)
class ScanTask:
    """A scan to be launched.

    Attributes
    ----------
    x
        The elements.
    output, result
        How results are stored, and in which buffer.
    operation
        What combines two values.
    direction
        Which way it goes.
    flags
        Where segments begin; None without segments.
    graph
        Where launches are recorded; None to queue them.
    """

    x: Operand
    output: Output
    result: Buffer[Any]
    operation: ScanOp
    direction: Direction
    flags: Buffer[Any] | None
    graph: CommandGraph | None

    @property
    def flag_type(self) -> DType | None:
        """The dtype of the flags."""
        return None if self.flags is None else self.flags.var_type


def scan_rows(task: ScanTask, outer: int, length: int) -> None:
    """Scan `outer` rows of `length` elements."""
    x, operation, direction = task.x, task.operation, task.direction
    context, kind = x.context, operation.kind
    planner = planning.make_planner(device_facts(context))
    lanes = planner.choose_lanes(kind)
    if direction.is_reverse and outer * length % x.source.together:
        x = replace(x, source=x.source.elementwise())
    source, together = x.source, x.source.together
    form = RowsForm(
        mode="scan",
        group=planner.choose_group(kind, lanes.size if lanes.has_shuffle else 0, is_alone=source.is_writing),
        vectors=planner.choose_vectors(
            kind, together, is_alone=source.is_writing, is_brief=operation.is_expression
        ),
        together=together,
        is_reverse=direction.is_reverse,
        is_exclusive=direction.is_exclusive,
        rows="",
        is_aligned=True,
        flag_type=task.flag_type,
        is_carried=False,
        is_looped=False,
        lanes=lanes,
    )

    def launch(mode: str, ranges: planning.Ranges, own: tuple[Any, ...], *, is_carried: bool = False) -> None:
        own_form = replace(
            form,
            mode=mode,
            rows=ranges.rows,
            is_aligned=length % together == 0 or ranges.rows not in ("inside", "across"),
            is_carried=is_carried,
            is_looped=ranges.rounds > 1,
            has_tickets=mode == "lookback" and planner.needs_tickets(),
        )
        kernel = make_rows_kernel(own_form, operation, source, task.output.sink)
        numbers = ranges.numbers(together, length)
        values = launch_values(own_form, x, task.output, task.result, own, task.flags, numbers)
        kernel(*values, graph=task.graph)

    ranges = planner.split_by_rows(outer, length, form.tile, together)
    if ranges is not None:
        launch("scan", ranges, ())
        return
    if planner.can_look_back(lanes):
        form = replace(
            form,
            group=planner.choose_group(kind, lanes.size, is_looking=True),
            vectors=planner.choose_vectors(kind, together, is_looking=True),
        )
        ranges = planning.split_by_tiles(outer, length, form.tile, together)
        launch("lookback", ranges, _take_board(context, kind, ranges, lanes))
        return
    if source.is_writing:
        # a map that writes must run once for each element
        launch("scan", planning.make_one_range(outer, length, form.tile, together), ())
        return
    ranges = planner.split_evenly(outer, length, form.tile)
    partials = _make_partials(task, ranges.groups, is_segmented=bool(ranges.rows) or task.flags is not None)
    launch("reduce", ranges, partials)
    own_task = _scan_of_partials(task, partials)
    scan_rows(own_task, 1, ranges.groups)
    launch("scan", ranges, (own_task.result, *partials[1:]), is_carried=True)


def scan_columns(task: ScanTask, shape: tuple[int, int, int], *, is_whole: bool = False) -> None:
    """Scan along an axis that has more than one element after each.

    Parameters
    ----------
    shape
        Elements before, along and after the axis.
    is_whole
        Whether to use one launch, in which no two workgroups share a column.
    """
    outer, _, inner = shape
    x, operation = task.x, task.operation
    kind = operation.kind
    planner = planning.make_planner(device_facts(x.context))
    if inner % x.source.together or not planner.has_vectors:
        x = replace(x, source=x.source.elementwise())
    source, together = x.source, x.source.together
    plan = planner.plan_columns(kind, shape, together, is_whole=is_whole, is_alone=source.is_writing)
    form = ColumnsForm(
        mode="scan",
        group=plan.group,
        side=plan.side,
        rows=planning.tuning.rounds,
        together=together,
        is_reverse=task.direction.is_reverse,
        is_exclusive=task.direction.is_exclusive,
        flag_type=task.flag_type,
        is_carried=False,
    )

    def launch(mode: str, own: tuple[Any, ...], *, is_carried: bool = False) -> None:
        own_form = replace(form, mode=mode, is_carried=is_carried)
        kernel = make_columns_kernel(own_form, operation, source, task.output.sink)
        values = launch_values(own_form, x, task.output, task.result, own, task.flags, plan.numbers)
        kernel(*values, graph=task.graph)

    if plan.segments == 1:
        launch("scan", ())
        return
    partials = _make_partials(task, outer * plan.segments * inner, is_segmented=task.flags is not None)
    launch("reduce", partials)
    own_task = _scan_of_partials(task, partials)
    scan_columns(own_task, (outer, plan.segments, inner), is_whole=True)
    launch("scan", (own_task.result, *partials[1:]), is_carried=True)


def _make_partials(task: ScanTask, count: int, *, is_segmented: bool) -> tuple[Buffer[Any], ...]:
    """Return a buffer for partial results, and in segmented scans one for their flags."""
    kinds = (task.operation.kind, uint32) if is_segmented else (task.operation.kind,)
    return tuple(function_buffer(count, kind, context=task.x.context) for kind in kinds)


def _scan_of_partials(task: ScanTask, partials: tuple[Buffer[Any], ...]) -> ScanTask:
    """Return the scan of partial results."""
    values, *flags = partials
    kind = task.operation.kind
    scanned: Buffer[Any] = function_buffer(values.size, kind, context=task.x.context)
    return ScanTask(
        parse_operand(values),
        parse_output(None, kind),
        scanned,
        task.operation,
        _FORWARD,
        flags[0] if flags else None,
        task.graph,
    )


# Boards are seldom smaller, so that there are few of them.
_MIN_SLOTS = 1 << 14


def _take_board(
    context: Context, kind: DType, ranges: planning.Ranges, lanes: planning.LaneFacts
) -> tuple[Buffer[Any], ...]:
    """Return the context's board for look-backs."""
    tiles = ranges.each if ranges.rows == "apart" else ranges.groups
    slots = count_slots(ranges.groups // tiles, tiles, lanes.size)
    words = max(slots * word_count(kind), _MIN_SLOTS)
    if lanes.has_long_atomics:
        return (take_zeros(context, "scans", COUNTERS + words, uint64),)
    tags = take_zeros(context, "scans", COUNTERS + max(slots, _MIN_SLOTS))
    return tags, take_zeros(context, "scans.words", words)


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
