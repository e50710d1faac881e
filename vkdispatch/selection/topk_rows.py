"""The first k elements of rows of a few thousand elements, and kernels of CPU drivers."""

from collections.abc import Callable
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import unpack_elements, view_type
from vkdispatch.selection import topk_candidates
from vkdispatch.selection.topk_candidates import is_before
from vkdispatch.selection.tuning import choose_group, find_planner, sum_before, tuning
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order
from vkdispatch.sorting.launching import Rows

# ---- The first k elements of rows of a few thousand elements, one workgroup for each row -----------------
#
# A kernel of `topk`.
#
#     row           | element 0 of each invocation | element 1 of each | ...
#     best          the first element of each invocation, in the order
#     bound         the k-th of these: at least k elements are up to it, and usually few more
#     candidates    elements up to the bound, in workgroup memory
#     rank          the number of candidates before each candidate; the first k are written to their ranks
#
#     If the candidates do not fit (usually because of equal elements), the bound is the k-th element itself,
#     found bit by bit. Candidates are all elements before it, and the first ones of those that equal it.
#
# Elements are read from device memory once, and again from caches. Invariant: the rank of an element
# depends on its code and its position only, not on the order in which invocations store candidates.


_LAST = 0xFFFFFFFF
# Candidates that another one is compared with at once. It divides the room of all forms.
_AT_ONCE = 8


@record
class RowForm:
    """What the kernel is specialised for.

    Attributes
    ----------
    order
        The order whose first k elements are wanted.
    group
        Invocations of a workgroup.
    room
        The most candidates in workgroup memory.
    together
        Elements of a load.
    loads
        Loads that an invocation has in flight.
    """

    order: Order
    group: int
    room: int
    together: int
    loads: int


def suits_rows(order: Order, length: int, k: int) -> bool:
    """Whether the kernel is fast for rows of a length."""
    return can_take_rows(order, k) and tuning.row_shortest <= length <= tuning.row_longest


def can_take_rows(order: Order, k: int) -> bool:
    """Whether the kernel can take the first k elements of rows."""
    return len(order.part_bits) == 1 and 0 < 2 * k <= choose_group(tuning.row_most_group)


def _choose_group(length: int, k: int) -> int:
    # a long row needs many invocations
    wanted = max(tuning.row_least_group, 2 * k, length // tuning.row_each)
    return choose_group(min(tuning.row_most_group, 1 << (wanted - 1).bit_length()))


def take_first_of_rows(
    keys: Buffer[Any], order: Order, rows: Rows, k: int, graph: CommandGraph | None
) -> Buffer[Any]:
    """Return the positions of the first k elements of each row."""
    group = _choose_group(rows.length, k)
    together = topk_candidates.choose_together(order, rows.count, rows.length)
    form = RowForm(order, group, max(tuning.row_room, 2 * k), together, find_planner().row_loads)
    positions: Buffer[Any] = function_buffer(rows.count * k, dtype.uint32, context=keys.context)
    make_row_kernel(form)(keys, keys, positions, rows.count, rows.length, k, graph=graph)
    return positions


@store_results
def make_row_kernel(form: RowForm) -> ShaderFunction:
    """Return the kernel.

    Its arguments are the keys, their view, the positions of the first elements, the number of rows, their
    length, and k.
    """

    def body(keys: Any, view: Any, positions: Any, _: Any, length: Any, k: Any) -> None:
        _Row(form, keys, view, length, k).run(positions)

    raw = form.order.raw
    view_kind = view_type(raw, form.together)
    arguments = topk_candidates.declare_arguments(raw, "keys view positions", "rows length k", view_kind)
    return trace_kernel(f"topk_rows_{form.order.kind.name}", body, arguments, form.group, "top_rows")


class _Row:
    """The kernel, in a trace."""

    def __init__(self, form: RowForm, keys: Any, view: Any, length: Any, k: Any) -> None:
        self._form, self._keys, self._view, self._length, self._k = form, keys, view, length, k
        self._lane = vc.local_invocation_id().x
        self._row = vc.workgroup_id().x
        self._base = (self._row * length).to_register("top_base")
        self._codes = vc.shared_buffer(dtype.uint32, form.room)
        self._places = vc.shared_buffer(dtype.uint32, form.room)
        # the number of candidates, and the bound
        self._state = vc.shared_buffer(dtype.uint32, 2)

    def _code(self, raw: Any) -> Any:
        bits = self._form.order.part_bits[0]
        code = self._form.order.part(raw, 0)
        return (code if bits == 32 else code & ((1 << bits) - 1)).to_register("top_code")

    def _visit(self, act: Callable[[Any, Any], None]) -> None:
        """Trace `act(code, place)` for each element of this invocation."""
        form, lane, group = self._form, self._lane, self._form.group
        together, in_flight = form.together, form.loads
        loads = (self._length // together).to_register("top_loads")
        whole = (loads // (group * in_flight)).to_register("top_whole") if in_flight > 1 else 0
        first = (self._base // together).to_register("top_first")

        def consume(load: Any, word: Any) -> None:
            raws = [word] if together == 1 else unpack_elements(form.order.raw, together, word)
            for i, raw in enumerate(raws):
                act(self._code(raw.to_register()), load * together + i)

        if in_flight > 1:
            with vc.for_block(0, whole) as number:
                places = [(lane + (number * in_flight + u) * group).to_register() for u in range(in_flight)]
                words = [self._view[first + place].to_register() for place in places]
                for place, word in zip(places, words, strict=True):
                    consume(place, word)
        with vc.for_block(lane + whole * (group * in_flight), loads, group) as load:
            consume(load, self._view[first + load].to_register())
        if together > 1:
            # elements of a single row that do not fill a load
            with vc.for_block(lane + loads * together, self._length, group) as place:
                act(self._code(self._keys[self._base + place].to_register()), place)

    def run(self, positions: Any) -> None:
        """Record the kernel's statements."""
        form, lane, state = self._form, self._lane, self._state
        with vc.if_block(lane == 0):
            state[0] = 0
        self._find_bound()
        bound = state[1].to_register("top_bound")
        self._visit(lambda code, place: self._put(code <= bound, code, place))
        vc.barrier()
        with vc.if_block(state[0] > form.room):
            self._find_exact_candidates()
        vc.barrier()
        count = state[0].to_register("top_count")
        with vc.for_block(lane, count, form.group) as candidate:
            code = self._codes[candidate].to_register()
            place = self._places[candidate].to_register()
            rank = vc.new_uint_register(0)
            with vc.for_block(0, (count + (_AT_ONCE - 1)) // _AT_ONCE) as number:
                others = [vc.min(number * _AT_ONCE + i, form.room - 1).to_register() for i in range(_AT_ONCE)]
                loaded = [
                    (self._codes[other].to_register(), self._places[other].to_register()) for other in others
                ]
                for other, (other_code, other_place) in zip(others, loaded, strict=True):
                    is_before = vc.any(other_code < code, vc.all(other_code == code, other_place < place))
                    rank += vc.select(vc.all(other < count, is_before), 1, 0)
            with vc.if_block(rank < self._k):
                positions[self._row * self._k + rank] = place

    def _put(self, condition: Any, code: Any, place: Any) -> None:
        with vc.if_block(condition):
            slot = vc.atomic_add(self._state[0], 1).to_register()
            with vc.if_block(slot < self._form.room):
                self._codes[slot] = code
                self._places[slot] = place

    def _find_bound(self) -> None:
        """Store the k-th of the best codes of all invocations in the state."""
        best = vc.new_uint_register(_LAST)

        def act(code: Any, _: Any) -> None:
            best[:] = vc.min(best, code)

        self._visit(act)
        # the memory for candidates is not used yet
        self._codes[self._lane] = best
        vc.barrier()
        rank = vc.new_uint_register(0)
        with vc.for_block(0, self._form.group // _AT_ONCE) as number:
            others = [(number * _AT_ONCE + i).to_dtype(dtype.uint32) for i in range(_AT_ONCE)]
            codes = [self._codes[other].to_register() for other in others]
            for other, code in zip(others, codes, strict=True):
                rank += vc.select(vc.any(code < best, vc.all(code == best, other < self._lane)), 1, 0)
        with vc.if_block(rank == self._k - 1):
            self._state[1] = best
        vc.barrier()

    def _find_exact_candidates(self) -> None:
        """Collect candidates again: exactly k."""
        form, lane, state = self._form, self._lane, self._state
        vc.barrier()
        bound = vc.new_uint_register(0)
        less = vc.new_uint_register(0)
        with vc.for_block(0, form.order.part_bits[0]) as number:
            bit = (form.order.part_bits[0] - 1 - number).to_dtype(dtype.uint32).to_register()
            tried = (bound | (vc.to_dtype(dtype.uint32, 1) << bit)).to_register("top_tried")
            count = self._count_less(tried)
            with vc.if_block(count < self._k):
                bound[:] = tried
                less[:] = count
        with vc.if_block(lane == 0):
            state[0] = 0
        vc.barrier()
        self._visit(lambda code, place: self._put(code < bound, code, place))
        # the first elements that equal the bound
        taken = less.to_register("top_taken")
        begin = vc.new_uint_register(0)
        with vc.while_block(vc.all(begin < self._length, taken < self._k)):
            place = (begin + lane).to_register()
            inside = vc.min(place, self._length - 1)
            code = self._code(self._keys[self._base + inside].to_register())
            equal = (
                vc.select(vc.all(place < self._length, code == bound), 1, 0)
                .to_dtype(dtype.uint32)
                .to_register()
            )
            before = sum_before(equal, lane, form.group)
            slot = (taken + before).to_register()
            with vc.if_block(vc.all(equal > 0, slot < self._k)):
                self._codes[slot] = code
                self._places[slot] = place
            vc.barrier()
            with vc.if_block(lane == form.group - 1):
                state[1] = taken + before + equal
            vc.barrier()
            taken[:] = state[1]
            begin += form.group
        vc.barrier()
        with vc.if_block(lane == 0):
            state[0] = self._k

    def _count_less(self, bound: Any) -> Any:
        """Return how many elements have a smaller code."""
        state = self._state
        vc.barrier()
        with vc.if_block(self._lane == 0):
            state[1] = 0
        vc.barrier()
        lower = vc.new_uint_register(0)

        def act(code: Any, _: Any) -> None:
            lower[:] = lower + vc.select(code < bound, 1, 0)

        self._visit(act)
        vc.atomic_add(state[1], lower)
        vc.barrier()
        return state[1].to_register("top_less")


# ---- Kernels of `topk_candidates` that visit all elements, for CPU drivers -------------------------------
#
#     row         | run 0: invocation 0 | run 1: invocation 1 | ...
#     counted     candidates of each run; sums of the counts, along all runs, are places
#     collected   the candidates of each run after those of the runs before
#
# There are no words of flags: the second pass compares elements again. CPU drivers are fast at loops, and
# slow at barriers and at workgroups that return at once. Runs without candidates are not read again.
#
# Invariant: candidates are those of `topk_candidates`, in the same order.


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


def _make_comparison(form: topk_candidates.NarrowForm, bound: Any) -> Callable[[Any], Any]:
    """Return a function that tells whether an element is up to a bound."""
    other = form.code(bound)

    def is_within(raw: Any) -> Any:
        code = form.code(raw)
        return vc.any(is_before(code, other), topk_candidates.is_equal(code, other))

    return is_within


@store_results
def make_count_runs_kernel(form: topk_candidates.NarrowForm) -> ShaderFunction:
    """Return the kernel that counts elements up to the bound of their row: a sum for each run.

    Its arguments are the keys, sums, bounds; and the shape: the number of rows, runs of each, and the length
    of rows.
    """

    def body(keys: Any, sums: Any, bounds: Any, rows: Any, runs: Any, length: Any) -> None:
        run = _own_run(rows, runs, length)
        is_within = _make_comparison(form, bounds[run.row].to_register())
        total = vc.new_uint_register(0)
        with vc.for_block(0, run.count) as place:
            raw = keys[run.base + (run.begin + place)].to_register()
            total += is_within(raw).to_dtype(dtype.uint32)
        with vc.if_block(run.count > 0):
            sums[run.line] = total

    arguments = topk_candidates.declare_arguments(form.order.raw, "keys sums bounds", "rows runs length")
    return trace_kernel("topk_count_runs", body, arguments, GROUP, _WORKGROUPS)


@store_results
def make_collect_runs_kernel(form: topk_candidates.NarrowForm) -> ShaderFunction:
    """Return the kernel that collects candidates.

    Its arguments are the keys, the starts; the candidates and their positions; the bounds; k, room, and the
    shape.
    """

    def body(keys: Any, starts: Any, candidates: Any, positions: Any, bounds: Any, *others: Any) -> None:
        k, room, rows, runs, length = others
        run = _own_run(rows, runs, length)
        is_within = _make_comparison(form, bounds[run.row].to_register())
        has_some = vc.all(
            starts[run.line] < starts[run.line + 1], topk_candidates.is_good(starts, run.row, runs, k, room)
        )
        rank = (starts[run.line] - starts[run.row * runs]).to_register("top_rank")
        first = (run.row * room).to_register("top_first")
        with vc.for_block(0, vc.select(has_some, run.count, 0)) as place:
            raw = keys[run.base + (run.begin + place)].to_register()
            with vc.if_block(is_within(raw)):
                candidates[first + rank] = raw
                positions[first + rank] = run.begin + place
                rank += 1

    tables = "keys starts candidates positions bounds"
    arguments = topk_candidates.declare_arguments(form.order.raw, tables, "k room rows runs length")
    return trace_kernel("topk_collect_runs", body, arguments, GROUP, _WORKGROUPS)


@store_results
def make_count_runs_exactly_kernel(form: topk_candidates.NarrowForm) -> ShaderFunction:
    """Return the kernel that counts elements before the k-th one, and those that equal it.

    Its arguments are the keys, the sums, the states; the starts of the sample's candidates; k, room, and the
    shape.
    """

    def body(keys: Any, sums: Any, states: Any, starts: Any, *others: Any) -> None:
        k, room, rows, runs, length = others
        run = _own_run(rows, runs, length)
        has_good = topk_candidates.is_good(starts, run.row, runs, k, room)
        bound = topk_candidates.load_bound(form, states, run.row)
        less, equal = vc.new_uint_register(0), vc.new_uint_register(0)
        with vc.for_block(0, vc.select(has_good, 0, run.count)) as place:
            code = form.code(keys[run.base + (run.begin + place)].to_register())
            less += is_before(code, bound).to_dtype(dtype.uint32)
            equal += topk_candidates.is_equal(code, bound).to_dtype(dtype.uint32)
        with vc.if_block(run.count > 0):
            sums[run.line] = less
            sums[rows * runs + run.line] = equal

    tables = "keys sums states starts"
    arguments = topk_candidates.declare_arguments(form.order.raw, tables, "k room rows runs length")
    return trace_kernel("topk_count_runs_exactly", body, arguments, GROUP, _WORKGROUPS)


@store_results
def make_collect_runs_exactly_kernel(form: topk_candidates.NarrowForm) -> ShaderFunction:
    """Return the kernel that collects exactly k candidates of rows whose sample was not good.

    Its arguments are the keys, the exact starts; the candidates and their positions; the states; the starts
    of the sample's candidates; k, room, and the shape.
    """

    def body(keys: Any, starts: Any, candidates: Any, positions: Any, states: Any, *others: Any) -> None:
        sample_starts, k, room, rows, runs, length = others
        run = _own_run(rows, runs, length)
        has_good = topk_candidates.is_good(sample_starts, run.row, runs, k, room)
        bound = topk_candidates.load_bound(form, states, run.row)
        ties = states[run.row * (form.parts + 1) + form.parts].to_register("top_ties")
        half = (rows * runs).to_register("top_half")
        # sums over all rows may wrap around, but their differences in 32 bits are right
        line, begin = run.line, (run.row * runs).to_register()
        less = ((starts[line] - starts[begin]) & 0xFFFFFFFF).to_register("top_less")
        equal = ((starts[half + line] - starts[half + begin]) & 0xFFFFFFFF).to_register("top_equal")
        first = (run.row * room).to_register("top_first")
        with vc.for_block(0, vc.select(has_good, 0, run.count)) as place:
            raw = keys[run.base + (run.begin + place)].to_register()
            code = form.code(raw)
            is_less = is_before(code, bound).to_register()
            is_tie = vc.all(topk_candidates.is_equal(code, bound), equal < ties).to_register()
            with vc.if_block(vc.any(is_less, is_tie)):
                target = (first + vc.select(is_less, less, (k - ties) + equal)).to_register("top_target")
                candidates[target] = raw
                positions[target] = run.begin + place
                less += is_less.to_dtype(dtype.uint32)
                equal += is_tie.to_dtype(dtype.uint32)

    tables = "keys starts candidates positions states sample_starts"
    arguments = topk_candidates.declare_arguments(form.order.raw, tables, "k room rows runs length")
    return trace_kernel("topk_collect_runs_exactly", body, arguments, GROUP, _WORKGROUPS)
