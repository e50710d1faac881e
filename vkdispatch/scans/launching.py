"""The launches of a scan: which kernels, with which arguments and scratch memory."""

from typing import Any

from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType, uint32, uint64
from vkdispatch.base.record import record, replace
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.kernels import take_zeros
from vkdispatch.families.operands import Operand, Output, parse_operand, parse_output
from vkdispatch.families.tuning import device_facts
from vkdispatch.families.values import word_count
from vkdispatch.scans import planning
from vkdispatch.scans.arguments import ScanOp, launch_values
from vkdispatch.scans.columns import ColumnsForm, make_columns_kernel
from vkdispatch.scans.lookback import COUNTERS, count_slots
from vkdispatch.scans.rows import RowsForm, make_rows_kernel


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
