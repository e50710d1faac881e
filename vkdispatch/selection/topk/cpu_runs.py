"""The kernels of `candidates` that go over all elements, for CPU drivers: each invocation has a run.

    row         | run 0: invocation 0 | run 1: invocation 1 | ...
    counted     elements of each run that are wanted; the sums of these, along all runs, are places
    collected   each run's elements behind those of the runs before

In place of words of flags each element is looked at again: loops are what CPU drivers do well, and workgroups
that wait for each other and leave at once where nothing is to be done are not. Runs without candidates are
not looked at again.

Invariant: candidates are those of `candidates`, in the same order.
"""

from collections.abc import Callable
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import buffer, constant, traced
from vkdispatch.arrays.remembering import remembered
from vkdispatch.base import dtype
from vkdispatch.base.record import record
from vkdispatch.selection.topk.sampling import Form, is_before, is_equal, is_good
from vkdispatch.shader.shader_function import ShaderFunction

# Elements of a run; invocations of a workgroup.
RUN = 512
GROUP = 8
_U32 = constant[dtype.uint32]
_SHAPE = [(name, _U32) for name in ("top_rows", "top_runs", "top_length")]
_WORKGROUPS = f"(top_rows * top_runs + {GROUP - 1}) // {GROUP}"


@record(eq=False)
class _Run:
    """The run of an invocation, while its kernel is traced: where its row begins, and it in its row."""

    line: Any
    row: Any
    base: Any
    begin: Any
    count: Any


def _own_run(rows: Any, runs: Any, length: Any) -> _Run:
    line = (vc.workgroup_id().x * GROUP + vc.local_invocation_index()).to_register("top_line")
    # those beyond the last run have the last one, and no elements of it
    inside = (line < rows * runs).to_register("top_inside")
    line = vc.min(line, rows * runs - 1).to_register()
    row = (line // runs).to_register("top_row")
    begin = ((line - row * runs) * RUN).to_register("top_begin")
    count = vc.select(inside, vc.min(length - begin, RUN), 0).to_register("top_count")
    return _Run(line, row, (row * length).to_register("top_base"), begin, count)


def _is_within(form: Form, bound: Any) -> Callable[[Any], Any]:
    """Return what tells whether an element is as good as another."""
    other = form.code(bound)

    def within(raw: Any) -> Any:
        code = form.code(raw)
        return vc.any(is_before(code, other), is_equal(code, other))

    return within


@remembered
def count_runs_kernel(form: Form) -> ShaderFunction:
    """Return the kernel that counts elements that are as good as a sample: a sum for each run.

    Its arguments are the keys, the sums; an element of each row that others are compared with; and the shape:
    rows, runs of each, and the length of rows.
    """

    def body(keys: Any, sums: Any, bounds: Any, rows: Any, runs: Any, length: Any) -> None:
        own = _own_run(rows, runs, length)
        within = _is_within(form, bounds[own.row].to_register())
        total = vc.new_uint_register(0)
        with vc.for_block(0, own.count) as place:
            raw = keys[own.base + (own.begin + place)].to_register()
            total += within(raw).to_dtype(dtype.uint32)
        with vc.if_block(own.count > 0):
            sums[own.line] = total

    arguments = [
        ("top_keys", buffer[form.order.raw]),
        ("top_sums", buffer[dtype.uint32]),
        ("top_bounds", buffer[form.order.raw]),
        *_SHAPE,
    ]
    return traced("topk_count_runs", body, arguments, GROUP, _WORKGROUPS)


@remembered
def collect_runs_kernel(form: Form) -> ShaderFunction:
    """Return the kernel that puts candidates together.

    Its arguments are the keys, the starts; the candidates and their positions; the bounds; k, room, and the
    shape.
    """

    def body(keys: Any, starts: Any, candidates: Any, positions: Any, bounds: Any, *others: Any) -> None:
        k, room, rows, runs, length = others
        own = _own_run(rows, runs, length)
        within = _is_within(form, bounds[own.row].to_register())
        some = vc.all(starts[own.line] < starts[own.line + 1], is_good(starts, own.row, runs, k, room))
        rank = (starts[own.line] - starts[own.row * runs]).to_register("top_rank")
        first = (own.row * room).to_register("top_first")
        with vc.for_block(0, vc.select(some, own.count, 0)) as place:
            raw = keys[own.base + (own.begin + place)].to_register()
            with vc.if_block(within(raw)):
                candidates[first + rank] = raw
                positions[first + rank] = own.begin + place
                rank += 1

    arguments = [
        ("top_keys", buffer[form.order.raw]),
        ("top_starts", buffer[dtype.uint32]),
        ("top_candidates", buffer[form.order.raw]),
        ("top_positions", buffer[dtype.uint32]),
        ("top_bounds", buffer[form.order.raw]),
        ("top_k", _U32),
        ("top_room", _U32),
        *_SHAPE,
    ]
    return traced("topk_collect_runs", body, arguments, GROUP, _WORKGROUPS)


@remembered
def count_runs_exactly_kernel(form: Form) -> ShaderFunction:
    """Return the kernel that counts elements before the k-th one, and then those that equal it.

    Its arguments are the keys, the sums, the states; the starts of the sample's candidates; k, room, and the
    shape.
    """

    def body(keys: Any, sums: Any, states: Any, starts: Any, *others: Any) -> None:
        k, room, rows, runs, length = others
        own = _own_run(rows, runs, length)
        good = is_good(starts, own.row, runs, k, room)
        bound = _bound(form, states, own)
        less, equal = vc.new_uint_register(0), vc.new_uint_register(0)
        with vc.for_block(0, vc.select(good, 0, own.count)) as place:
            code = form.code(keys[own.base + (own.begin + place)].to_register())
            less += is_before(code, bound).to_dtype(dtype.uint32)
            equal += is_equal(code, bound).to_dtype(dtype.uint32)
        with vc.if_block(own.count > 0):
            sums[own.line] = less
            sums[rows * runs + own.line] = equal

    arguments = [
        ("top_keys", buffer[form.order.raw]),
        ("top_sums", buffer[dtype.uint32]),
        ("top_states", buffer[dtype.uint32]),
        ("top_starts", buffer[dtype.uint32]),
        ("top_k", _U32),
        ("top_room", _U32),
        *_SHAPE,
    ]
    return traced("topk_count_runs_exactly", body, arguments, GROUP, _WORKGROUPS)


@remembered
def collect_runs_exactly_kernel(form: Form) -> ShaderFunction:
    """Return the kernel that puts exactly k candidates together where a sample was not good.

    Its arguments are the keys, the exact starts; the candidates and their positions; the states; the starts
    of the sample's candidates; k, room, and the shape.
    """

    def body(keys: Any, starts: Any, candidates: Any, positions: Any, states: Any, *others: Any) -> None:
        sample_starts, k, room, rows, runs, length = others
        own = _own_run(rows, runs, length)
        good = is_good(sample_starts, own.row, runs, k, room)
        bound = _bound(form, states, own)
        ties = states[own.row * (form.parts + 1) + form.parts].to_register("top_ties")
        half = (rows * runs).to_register("top_half")
        # sums over all rows may have wrapped around, which differences do not show in 32 bits
        line, begin = own.line, (own.row * runs).to_register()
        less = ((starts[line] - starts[begin]) & 0xFFFFFFFF).to_register("top_less")
        equal = ((starts[half + line] - starts[half + begin]) & 0xFFFFFFFF).to_register("top_equal")
        first = (own.row * room).to_register("top_first")
        with vc.for_block(0, vc.select(good, 0, own.count)) as place:
            raw = keys[own.base + (own.begin + place)].to_register()
            code = form.code(raw)
            before = is_before(code, bound).to_register()
            tie = vc.all(is_equal(code, bound), equal < ties).to_register()
            with vc.if_block(vc.any(before, tie)):
                target = (first + vc.select(before, less, (k - ties) + equal)).to_register("top_target")
                candidates[target] = raw
                positions[target] = own.begin + place
                less += before.to_dtype(dtype.uint32)
                equal += tie.to_dtype(dtype.uint32)

    arguments = [
        ("top_keys", buffer[form.order.raw]),
        ("top_starts", buffer[dtype.uint32]),
        ("top_candidates", buffer[form.order.raw]),
        ("top_positions", buffer[dtype.uint32]),
        ("top_states", buffer[dtype.uint32]),
        ("top_sample_starts", buffer[dtype.uint32]),
        ("top_k", _U32),
        ("top_room", _U32),
        *_SHAPE,
    ]
    return traced("topk_collect_runs_exactly", body, arguments, GROUP, _WORKGROUPS)


def _bound(form: Form, states: Any, own: _Run) -> list[Any]:
    state = (own.row * (form.parts + 1)).to_register("top_state")
    return [states[state + part].to_register() for part in range(form.parts)]
