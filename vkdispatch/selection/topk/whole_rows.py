"""The first k elements of many rows, each by one workgroup: `topk`'s kernel for rows of a few thousand.

    row           | element 0 of each invocation | element 1 of each | ...
    best          of each invocation the best of its elements
    bound         the k-th of these in their order: k elements are as good, and not many others
    candidates    elements that are as good as the bound, in workgroup memory
    rank          of a candidate: how many others come before it; the first k are written to their ranks

    where the candidates do not fit (equal elements, mostly): the bound is the k-th element itself, found bit
    by bit; all elements before it are candidates, and the first ones of those that equal it

Elements are read from device memory once, and again from the caches. Invariant: an element's rank depends on
its code and its position alone, so it does not show in which order invocations put candidates into memory.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.elements import unpacked, view_type
from vkdispatch.arrays.facts import device_facts
from vkdispatch.arrays.kernels import buffer, constant, traced
from vkdispatch.arrays.remembering import remembered
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.selection.compaction.flags import summed_before
from vkdispatch.selection.histograms.streaming import group_size
from vkdispatch.selection.topk.sampling import together_of
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order
from vkdispatch.sorting.launching import Rows

_LAST = 0xFFFFFFFF
# Candidates that another one is compared with at once; divides all rooms.
_AT_ONCE = 8
_U32 = constant[dtype.uint32]


@record(frozen=False)
class Tuning:
    """Numbers that were found by measurement, on GPUs.

    Attributes
    ----------
    least, most
        Invocations of a workgroup: the least, or twice k if that is more, but no more than the most.
    each
        Elements of an invocation, if there may be so many invocations.
    shortest, longest
        Elements of the rows that are done so.
    room
        How many candidates there may be.
    flight
        Loads that an invocation has under way.
    """

    least: int = 64
    most: int = 512
    each: int = 32
    shortest: int = 1024
    longest: int = 1 << 15
    room: int = 1024
    flight: int = 4


tuning = Tuning()


@record
class Form:
    """What the kernel is specialised for: see `Tuning`, and `candidates.Form`."""

    order: Order
    group: int
    room: int
    together: int
    flight: int


def fits(order: Order, length: int, k: int) -> bool:
    """Whether rows of a length are done so."""
    return is_possible(order, k) and tuning.shortest <= length <= tuning.longest


def is_possible(order: Order, k: int) -> bool:
    """Whether rows of any length can be done so."""
    return len(order.part_bits) == 1 and 0 < 2 * k <= group_size(tuning.most)


def _group(length: int, k: int) -> int:
    # few invocations would be busy for long with a long row
    wanted = max(tuning.least, 2 * k, length // tuning.each)
    return group_size(min(tuning.most, 1 << (wanted - 1).bit_length()))


def first_of_rows(
    keys: Buffer[Any], order: Order, rows: Rows, k: int, graph: CommandGraph | None
) -> Buffer[Any]:
    """Return the positions of the first k elements of each row."""
    group = _group(rows.length, k)
    together = together_of(order, rows.count, rows.length)
    # a processor loads ahead by itself, and its compilers take long for long kernels
    flight = 1 if device_facts().cpu else tuning.flight
    form = Form(order, group, max(tuning.room, 2 * k), together, flight)
    positions: Buffer[Any] = function_buffer(rows.count * k, dtype.uint32, context=keys.context)
    row_kernel(form)(keys, keys, positions, rows.count, rows.length, k, graph=graph)
    return positions


@remembered
def row_kernel(form: Form) -> ShaderFunction:
    """Return the kernel.

    Its arguments are the keys, their view, the positions that are found, how many rows there are, their
    length, and k.
    """

    def body(keys: Any, view: Any, positions: Any, _: Any, length: Any, k: Any) -> None:
        _Row(form, keys, view, length, k).run(positions)

    raw = form.order.raw
    arguments = [
        ("top_keys", buffer[raw]),
        ("top_view", buffer[view_type(raw, form.together) or raw]),
        ("top_positions", buffer[dtype.uint32]),
        *((name, _U32) for name in ("top_rows", "top_length", "top_k")),
    ]
    return traced(f"topk_rows_{form.order.kind.name}", body, arguments, form.group, "top_rows")


class _Row:
    """The kernel while it is traced."""

    def __init__(self, form: Form, keys: Any, view: Any, length: Any, k: Any) -> None:
        self._form, self._keys, self._view, self._length, self._k = form, keys, view, length, k
        self._lane = vc.local_invocation_id().x
        self._row = vc.workgroup_id().x
        self._base = (self._row * length).to_register("top_base")
        self._codes = vc.shared_buffer(dtype.uint32, form.room)
        self._places = vc.shared_buffer(dtype.uint32, form.room)
        # how many candidates there are, and the bound
        self._state = vc.shared_buffer(dtype.uint32, 2)

    def _code(self, raw: Any) -> Any:
        bits = self._form.order.part_bits[0]
        code = self._form.order.part(raw, 0)
        return (code if bits == 32 else code & ((1 << bits) - 1)).to_register("top_code")

    def _each(self, act: Any) -> None:
        """Trace `act(code, place)` for each element of this invocation."""
        form, lane, group = self._form, self._lane, self._form.group
        together, flight = form.together, form.flight
        loads = (self._length // together).to_register("top_loads")
        whole = (loads // (group * flight)).to_register("top_whole") if flight > 1 else 0
        first = (self._base // together).to_register("top_first")

        def consume(load: Any, word: Any) -> None:
            raws = [word] if together == 1 else unpacked(form.order.raw, together, word)
            for i, raw in enumerate(raws):
                act(self._code(raw.to_register()), load * together + i)

        if flight > 1:
            with vc.for_block(0, whole) as number:
                places = [(lane + (number * flight + u) * group).to_register() for u in range(flight)]
                words = [self._view[first + place].to_register() for place in places]
                for place, word in zip(places, words, strict=True):
                    consume(place, word)
        with vc.for_block(lane + whole * (group * flight), loads, group) as load:
            consume(load, self._view[first + load].to_register())
        if together > 1:
            # of one row that is not a number of loads
            with vc.for_block(lane + loads * together, self._length, group) as place:
                act(self._code(self._keys[self._base + place].to_register()), place)

    def run(self, positions: Any) -> None:
        """Record the kernel's statements."""
        form, lane, state = self._form, self._lane, self._state
        with vc.if_block(lane == 0):
            state[0] = 0
        self._find_bound()
        bound = state[1].to_register("top_bound")
        self._each(lambda code, place: self._put(code <= bound, code, place))
        vc.barrier()
        with vc.if_block(state[0] > form.room):
            self._find_exactly()
        vc.barrier()
        count = state[0].to_register("top_count")
        with vc.for_block(lane, count, form.group) as candidate:
            code = self._codes[candidate].to_register()
            place = self._places[candidate].to_register()
            rank = vc.new_uint_register(0)
            with vc.for_block(0, (count + (_AT_ONCE - 1)) // _AT_ONCE) as number:
                others = [vc.min(number * _AT_ONCE + i, form.room - 1).to_register() for i in range(_AT_ONCE)]
                found = [
                    (self._codes[each].to_register(), self._places[each].to_register()) for each in others
                ]
                for other, (theirs, there) in zip(others, found, strict=True):
                    before = vc.any(theirs < code, vc.all(theirs == code, there < place))
                    rank += vc.select(vc.all(other < count, before), 1, 0)
            with vc.if_block(rank < self._k):
                positions[self._row * self._k + rank] = place

    def _put(self, condition: Any, code: Any, place: Any) -> None:
        with vc.if_block(condition):
            slot = vc.atomic_add(self._state[0], 1).to_register()
            with vc.if_block(slot < self._form.room):
                self._codes[slot] = code
                self._places[slot] = place

    def _find_bound(self) -> None:
        """Leave the k-th of all invocations' best codes in the state."""
        best = vc.new_uint_register(_LAST)

        def act(code: Any, _: Any) -> None:
            best[:] = vc.min(best, code)

        self._each(act)
        # the room for candidates is free as yet
        self._codes[self._lane] = best
        vc.barrier()
        rank = vc.new_uint_register(0)
        with vc.for_block(0, self._form.group // _AT_ONCE) as number:
            others = [(number * _AT_ONCE + i).to_dtype(dtype.uint32) for i in range(_AT_ONCE)]
            codes = [self._codes[other].to_register() for other in others]
            for other, theirs in zip(others, codes, strict=True):
                rank += vc.select(vc.any(theirs < best, vc.all(theirs == best, other < self._lane)), 1, 0)
        with vc.if_block(rank == self._k - 1):
            self._state[1] = best
        vc.barrier()

    def _find_exactly(self) -> None:
        """Put candidates together anew: exactly k."""
        form, lane, state = self._form, self._lane, self._state
        vc.barrier()
        bound = vc.new_uint_register(0)
        less = vc.new_uint_register(0)
        with vc.for_block(0, form.order.part_bits[0]) as number:
            bit = (form.order.part_bits[0] - 1 - number).to_dtype(dtype.uint32).to_register()
            tried = (bound | (vc.to_dtype(dtype.uint32, 1) << bit)).to_register("top_tried")
            found = self._count(tried)
            with vc.if_block(found < self._k):
                bound[:] = tried
                less[:] = found
        with vc.if_block(lane == 0):
            state[0] = 0
        vc.barrier()
        self._each(lambda code, place: self._put(code < bound, code, place))
        # of those that equal it the first ones
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
            before = summed_before(equal, lane, form.group)
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

    def _count(self, bound: Any) -> Any:
        """Return how many codes are less than a bound."""
        state = self._state
        vc.barrier()
        with vc.if_block(self._lane == 0):
            state[1] = 0
        vc.barrier()
        own = vc.new_uint_register(0)

        def act(code: Any, _: Any) -> None:
            own[:] = own + vc.select(code < bound, 1, 0)

        self._each(act)
        vc.atomic_add(state[1], own)
        vc.barrier()
        return state[1].to_register("top_less")
