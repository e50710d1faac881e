"""Scans of arrays: which kernels, with which arguments and scratch memory."""

from threading import Lock
from typing import Any

import numpy as np

from vkdispatch.arrays.facts import device_facts
from vkdispatch.arrays.maps.operand import Operand, parse_operand
from vkdispatch.arrays.maps.output import Output, parse_output
from vkdispatch.arrays.values.words import word_count
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType, uint32, uint64
from vkdispatch.base.record import record, replace
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.scans import planning
from vkdispatch.scans.arguments import launched
from vkdispatch.scans.columns import ColumnsForm, columns_kernel
from vkdispatch.scans.lookback import COUNTERS, slots_of
from vkdispatch.scans.operations import Facts, ScanOp
from vkdispatch.scans.planning import (
    Ranges,
    columns_of,
    facts_of,
    group_of,
    looks_back,
    one_range,
    shared_ranges,
    takes_tickets,
    tile_ranges,
    vectors_each,
    whole_ranges,
)
from vkdispatch.scans.rows import RowsForm, rows_kernel


@record
class Wish:
    """How a scan goes: which way, and whether elements count for themselves."""

    reverse: bool
    exclusive: bool


def scan_rows(
    x: Operand,
    out: Output,
    result: Buffer[Any],
    operation: ScanOp,
    outer: int,
    length: int,
    wish: Wish,
    flags: Buffer[Any] | None,
    graph: CommandGraph | None,
) -> None:
    """Scan `outer` rows of `length` elements."""
    context = x.context
    kind = operation.kind
    device = device_facts(context)
    facts = facts_of(device, kind)
    if wish.reverse and outer * length % x.source.together:
        x = replace(x, source=x.source.elementwise())
    source, together = x.source, x.source.together
    group = group_of(device, kind, facts.subgroup if facts.shuffles else 0, alone=source.is_writing)
    form = RowsForm(
        "scan",
        group,
        vectors_each(device, kind, together, alone=source.is_writing, brief=operation.brief),
        together,
        wish.reverse,
        wish.exclusive,
        "",
        True,
        None if flags is None else flags.var_type,
        False,
        False,
        facts,
    )

    def launch(mode: str, ranges: Ranges, own: tuple[Any, ...], *, carried: bool = False) -> None:
        chosen = replace(
            form,
            mode=mode,
            rows=ranges.rows,
            aligned=length % together == 0 or ranges.rows not in ("inside", "across"),
            carried=carried,
            looped=ranges.rounds > 1,
            tickets=mode == "lookback" and takes_tickets(device),
        )
        kernel = rows_kernel(chosen, operation, source, out.sink)
        numbers = ranges.numbers(together, length)
        kernel(*launched(chosen, x, out, result, own, flags, numbers), graph=graph)

    ranges = whole_ranges(device, outer, length, form.tile, together)
    if ranges is not None:
        launch("scan", ranges, ())
        return
    if looks_back(device, facts):
        form = replace(
            form,
            group=group_of(device, kind, facts.subgroup, looking=True),
            vectors=vectors_each(device, kind, together, looking=True),
        )
        ranges = tile_ranges(outer, length, form.tile, together)
        launch("lookback", ranges, _board(context, kind, ranges, facts))
        return
    if source.is_writing:
        # what a map writes it writes once
        launch("scan", one_range(outer, length, form.tile, together), ())
        return
    ranges = shared_ranges(device, outer, length, form.tile)
    partials: tuple[Any, ...] = (function_buffer(ranges.groups, kind, context=context),)
    segmented = bool(ranges.rows) or flags is not None
    if segmented:
        partials = (*partials, function_buffer(ranges.groups, uint32, context=context))
    launch("reduce", ranges, partials)
    scanned: Buffer[Any] = function_buffer(ranges.groups, kind, context=context)
    scan_rows(
        parse_operand(partials[0]),
        parse_output(None, kind),
        scanned,
        operation,
        1,
        ranges.groups,
        Wish(reverse=False, exclusive=False),
        partials[1] if segmented else None,
        graph,
    )
    launch("scan", ranges, (scanned, *partials[1:]), carried=True)


def scan_columns(
    x: Operand,
    out: Output,
    result: Buffer[Any],
    operation: ScanOp,
    shape: tuple[int, int, int],
    wish: Wish,
    flags: Buffer[Any] | None,
    graph: CommandGraph | None,
    *,
    whole: bool = False,
) -> None:
    """Scan along an axis with more than one element after each; `whole`: in one launch."""
    outer, length, inner = shape
    context, kind = x.context, operation.kind
    device = device_facts(context)
    # lines of the cache lie far apart: a few of them at once
    if inner % x.source.together or device.is_cpu:
        x = replace(x, source=x.source.elementwise())
    source, together = x.source, x.source.together
    plan = columns_of(device, kind, outer, length, inner, together, whole=whole, alone=source.is_writing)
    form = ColumnsForm(
        "scan",
        plan.group,
        plan.side,
        planning.tuning.rounds,
        together,
        wish.reverse,
        wish.exclusive,
        None if flags is None else flags.var_type,
        False,
    )

    def launch(mode: str, own: tuple[Any, ...], *, carried: bool = False) -> None:
        chosen = replace(form, mode=mode, carried=carried)
        kernel = columns_kernel(chosen, operation, source, out.sink)
        kernel(*launched(chosen, x, out, result, own, flags, plan.numbers), graph=graph)

    if plan.segments == 1:
        launch("scan", ())
        return
    count = outer * plan.segments * inner
    partials: tuple[Any, ...] = (function_buffer(count, kind, context=context),)
    if flags is not None:
        partials = (*partials, function_buffer(count, uint32, context=context))
    launch("reduce", partials)
    scanned: Buffer[Any] = function_buffer(count, kind, context=context)
    scan_columns(
        parse_operand(partials[0]),
        parse_output(None, kind),
        scanned,
        operation,
        (outer, plan.segments, inner),
        Wish(reverse=False, exclusive=False),
        partials[1] if flags is not None else None,
        graph,
        whole=True,
    )
    launch("scan", (scanned, *partials[1:]), carried=True)


_BOARD = "scans.board"
_SLOTS = 1 << 14  # of a context's first board
_board_lock = Lock()


def _board(context: Context, kind: DType, ranges: Ranges, facts: Facts) -> tuple[Buffer[Any], ...]:
    """Return the board of a look-back: its context's, which is made anew where it is too small."""
    each = ranges.each if ranges.rows == "apart" else ranges.groups
    slots, longs = slots_of(ranges.groups // each, each, facts.subgroup), facts.longs
    wanted = (
        (COUNTERS + slots * word_count(kind), 0) if longs else (COUNTERS + slots, slots * word_count(kind))
    )
    name = f"{_BOARD}.{longs}"
    with _board_lock:
        known: tuple[Buffer[Any], ...] = context.kept.get(name, ())
        sizes = tuple(buffer.size for buffer in known)
        fits = known and all(size >= need for size, need in zip(sizes, wanted, strict=False))
        if fits and not known[0]._native.poisoned:
            return known
        # graphs hold theirs
        sizes = tuple(1 << (max(need, _SLOTS) - 1).bit_length() for need in wanted if need)
        board_kind = uint64 if longs else uint32
        board = tuple(function_buffer(size, board_kind, context, steady=True) for size in sizes)
        board[0].write(np.zeros(sizes[0], np.uint64 if longs else np.uint32))
        context.kept[name] = board
        return board
