"""The kernels of `sampling` and `radix_select` that visit all elements, for CPU drivers.

    row         | run 0: invocation 0 | run 1: invocation 1 | ...
    counted     candidates of each run; sums of the counts, along all runs, are places
    collected   the candidates of each run after those of the runs before

There are no words of flags: the second pass compares elements again. CPU drivers are fast at loops, and slow
at barriers and at workgroups that return at once. Runs without candidates are not read again.

Invariant: candidates are those of `sampling` and `radix_select`, in the same order.
"""

from collections.abc import Callable
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.record import record
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.tuning import memoize
from vkdispatch.selection.topk.form import (
    NarrowForm,
    declare_arguments,
    is_before,
    is_equal,
    is_good,
    load_bound,
)
from vkdispatch.shader.shader_function import ShaderFunction

# Elements of a run; invocations of a workgroup.
RUN = 512
GROUP = 8
_WORKGROUPS = f"(top_rows * top_runs + {GROUP - 1}) // {GROUP}"


@record(eq=False)
class _Run:
    """The run of an invocation, in a trace: its number, its row, where both begin, and its elements."""

    line: Any
    row: Any
    base: Any
    begin: Any
    count: Any


def _own_run(rows: Any, runs: Any, length: Any) -> _Run:
    line = (vc.workgroup_id().x * GROUP + vc.local_invocation_index()).to_register("top_line")
    # invocations beyond the last run have no elements
    inside = (line < rows * runs).to_register("top_inside")
    line = vc.min(line, rows * runs - 1).to_register()
    row = (line // runs).to_register("top_row")
    begin = ((line - row * runs) * RUN).to_register("top_begin")
    count = vc.select(inside, vc.min(length - begin, RUN), 0).to_register("top_count")
    return _Run(line, row, (row * length).to_register("top_base"), begin, count)


def _make_comparison(form: NarrowForm, bound: Any) -> Callable[[Any], Any]:
    """Return a function that tells whether an element is up to a bound."""
    other = form.code(bound)

    def is_within(raw: Any) -> Any:
        code = form.code(raw)
        return vc.any(is_before(code, other), is_equal(code, other))

    return is_within


@memoize
def make_count_runs_kernel(form: NarrowForm) -> ShaderFunction:
    """Return the kernel that counts elements up to the bound of their row: a sum for each run.

    Its arguments are the keys, sums, bounds; and the shape: the number of rows, runs of each, and the length
    of rows.
    """

    def body(keys: Any, sums: Any, bounds: Any, rows: Any, runs: Any, length: Any) -> None:
        own = _own_run(rows, runs, length)
        is_within = _make_comparison(form, bounds[own.row].to_register())
        total = vc.new_uint_register(0)
        with vc.for_block(0, own.count) as place:
            raw = keys[own.base + (own.begin + place)].to_register()
            total += is_within(raw).to_dtype(dtype.uint32)
        with vc.if_block(own.count > 0):
            sums[own.line] = total

    arguments = declare_arguments(form.order.raw, "keys sums bounds", "rows runs length")
    return trace_kernel("topk_count_runs", body, arguments, GROUP, _WORKGROUPS)


@memoize
def make_collect_runs_kernel(form: NarrowForm) -> ShaderFunction:
    """Return the kernel that collects candidates.

    Its arguments are the keys, the starts; the candidates and their positions; the bounds; k, room, and the
    shape.
    """

    def body(keys: Any, starts: Any, candidates: Any, positions: Any, bounds: Any, *others: Any) -> None:
        k, room, rows, runs, length = others
        own = _own_run(rows, runs, length)
        is_within = _make_comparison(form, bounds[own.row].to_register())
        has_some = vc.all(starts[own.line] < starts[own.line + 1], is_good(starts, own.row, runs, k, room))
        rank = (starts[own.line] - starts[own.row * runs]).to_register("top_rank")
        first = (own.row * room).to_register("top_first")
        with vc.for_block(0, vc.select(has_some, own.count, 0)) as place:
            raw = keys[own.base + (own.begin + place)].to_register()
            with vc.if_block(is_within(raw)):
                candidates[first + rank] = raw
                positions[first + rank] = own.begin + place
                rank += 1

    buffers = "keys starts candidates positions bounds"
    arguments = declare_arguments(form.order.raw, buffers, "k room rows runs length")
    return trace_kernel("topk_collect_runs", body, arguments, GROUP, _WORKGROUPS)


@memoize
def make_count_runs_exactly_kernel(form: NarrowForm) -> ShaderFunction:
    """Return the kernel that counts elements before the k-th one, and those that equal it.

    Its arguments are the keys, the sums, the states; the starts of the sample's candidates; k, room, and the
    shape.
    """

    def body(keys: Any, sums: Any, states: Any, starts: Any, *others: Any) -> None:
        k, room, rows, runs, length = others
        own = _own_run(rows, runs, length)
        has_good = is_good(starts, own.row, runs, k, room)
        bound = load_bound(form, states, own.row)
        less, equal = vc.new_uint_register(0), vc.new_uint_register(0)
        with vc.for_block(0, vc.select(has_good, 0, own.count)) as place:
            code = form.code(keys[own.base + (own.begin + place)].to_register())
            less += is_before(code, bound).to_dtype(dtype.uint32)
            equal += is_equal(code, bound).to_dtype(dtype.uint32)
        with vc.if_block(own.count > 0):
            sums[own.line] = less
            sums[rows * runs + own.line] = equal

    buffers = "keys sums states starts"
    arguments = declare_arguments(form.order.raw, buffers, "k room rows runs length")
    return trace_kernel("topk_count_runs_exactly", body, arguments, GROUP, _WORKGROUPS)


@memoize
def make_collect_runs_exactly_kernel(form: NarrowForm) -> ShaderFunction:
    """Return the kernel that collects exactly k candidates of rows whose sample was not good.

    Its arguments are the keys, the exact starts; the candidates and their positions; the states; the starts
    of the sample's candidates; k, room, and the shape.
    """

    def body(keys: Any, starts: Any, candidates: Any, positions: Any, states: Any, *others: Any) -> None:
        sample_starts, k, room, rows, runs, length = others
        own = _own_run(rows, runs, length)
        has_good = is_good(sample_starts, own.row, runs, k, room)
        bound = load_bound(form, states, own.row)
        ties = states[own.row * (form.parts + 1) + form.parts].to_register("top_ties")
        half = (rows * runs).to_register("top_half")
        # sums over all rows may wrap around, but their differences in 32 bits are right
        line, begin = own.line, (own.row * runs).to_register()
        less = ((starts[line] - starts[begin]) & 0xFFFFFFFF).to_register("top_less")
        equal = ((starts[half + line] - starts[half + begin]) & 0xFFFFFFFF).to_register("top_equal")
        first = (own.row * room).to_register("top_first")
        with vc.for_block(0, vc.select(has_good, 0, own.count)) as place:
            raw = keys[own.base + (own.begin + place)].to_register()
            code = form.code(raw)
            is_less = is_before(code, bound).to_register()
            is_tie = vc.all(is_equal(code, bound), equal < ties).to_register()
            with vc.if_block(vc.any(is_less, is_tie)):
                target = (first + vc.select(is_less, less, (k - ties) + equal)).to_register("top_target")
                candidates[target] = raw
                positions[target] = own.begin + place
                less += is_less.to_dtype(dtype.uint32)
                equal += is_tie.to_dtype(dtype.uint32)

    buffers = "keys starts candidates positions states sample_starts"
    arguments = declare_arguments(form.order.raw, buffers, "k room rows runs length")
    return trace_kernel("topk_collect_runs_exactly", body, arguments, GROUP, _WORKGROUPS)
