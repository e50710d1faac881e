"""The kernels of a reduction, written for one layout of the work; see `planning`."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import buffer, constant, trace_kernel
from vkdispatch.arrays.maps.output import Sink
from vkdispatch.arrays.maps.source import Source
from vkdispatch.arrays.values.elements import view_type
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import replace
from vkdispatch.reduce.accumulators import (
    Accumulator,
    Place,
    State,
    assign,
    in_registers,
)
from vkdispatch.reduce.planning import KernelForm, ReductionParams
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import origin_of

PARAMETERS = tuple(field.name for field in fields(ReductionParams))
# What the names of second stages end with.
SECOND = "_of_partials"
# Rounds whose values are added up before they go to the total: a sum of sums has the smaller error.
_ROUNDS = 16
# So many values of workgroup memory one invocation combines by itself.
_FEW = 32
# So many of those of one result, where it takes several results' turns: code of few barriers compiles fast.
_SERIAL = 16


def stage_kernel(form: KernelForm, source: Source, accumulator: Accumulator, sink: Sink) -> ShaderFunction:
    """Trace the kernel of a stage.

    Its arguments are the result, unless the form leaves partial results; these, a buffer for each of the
    accumulator's registers; the counters of a form that finishes; those of the mapping function, and the
    views of them, unless partial results are what it reduces; the numbers of a `ReductionParams`; the
    accumulator's parameters and those of the sink, which stores the result, if it stores a result.
    """
    arguments: list[tuple[str, Any]] = []
    if form.results_too:
        arguments.append(("reduce_result", buffer[sink.out_type]))
    if form.partial or form.segmented:
        arguments += [(f"reduce_partials{i or ''}", buffer[kind]) for i, kind in enumerate(accumulator.kinds)]
    if form.finishing:
        arguments.append(("reduce_counters", buffer[dtype.uint32]))
    own = len(arguments)
    views: tuple[tuple[int, DType], ...] = ()
    if not form.partial:
        source = _taking(source, form.together)
        views = source.views
        arguments += zip(source.names, source.mapping.buffer_types, strict=True)
        arguments += [
            (f"reduce_{source.names[position]}_{view.name}", buffer[view]) for position, view in views
        ]
    inputs = len(arguments) - own - len(views)
    arguments += [(f"reduce_{name}", constant[dtype.uint32]) for name in PARAMETERS]
    numbers = len(arguments)
    if form.results_too:
        arguments += [(f"reduce_{name}", constant[kind]) for name, kind in accumulator.parameters]
        arguments += sink.parameters

    def body(*variables: Any) -> None:
        _Tracing(form, source, accumulator, sink, variables, own, inputs, numbers).run()

    plain = source.is_plain or form.partial
    function = source.mapping.mapping_function
    name = accumulator.name if plain else f"{getattr(function, '__name__', 'map')}"
    return trace_kernel(
        f"{name}_{form.layout}{SECOND if form.partial else ''}",
        body,
        arguments,
        form.group,
        "reduce_segments * reduce_blocks",
        origin=accumulator.place if plain else origin_of(function),
    )


def _taking(source: Source, together: int) -> Source:
    """Return a source whose loads take so many elements, no more than its own."""
    if together == 1:
        return source.elementwise()
    kinds = [(position, source.mapping.buffer_types[position].__args__[0]) for position, _ in source.views]
    views = tuple((at, view) for at, kind in kinds if (view := view_type(kind, together)) is not None)
    return replace(source, together=together, views=views)


class _Tracing:
    """A stage being traced.

    An invocation has `form.results` rows, or in the layout "columns" as many times `form.columns` columns,
    which lie in one load: `self._totals` are the states of all of them, in this order.
    """

    def __init__(
        self,
        form: KernelForm,
        source: Source,
        accumulator: Accumulator,
        sink: Sink,
        variables: Sequence[Any],
        own: int,
        inputs: int,
        numbers: int,
    ) -> None:
        self._form = form
        self._source = source
        self._accumulator = accumulator
        self._sink = sink
        mine = list(variables[:own])
        self._result = mine.pop(0) if form.results_too else None
        self._counters = mine.pop() if form.finishing else None
        self._partials = mine
        self._arguments = variables[own : own + inputs]
        self._views = variables[own + inputs : numbers - len(PARAMETERS)]
        self._param = dict(zip(PARAMETERS, variables[numbers - len(PARAMETERS) : numbers], strict=True))
        extra = variables[numbers:]
        self._extra = extra[: len(accumulator.parameters)]
        self._kept_for_sink = extra[len(accumulator.parameters) :]
        self._memory: list[list[Any]] = []

    # -- the kernel

    def run(self) -> None:
        """Record the kernel's statements."""
        form, param = self._form, self._param
        group = vc.workgroup_id().x
        self._segment: Any = None
        self._block = group
        if form.segmented:
            count = param["blocks"] if form.across else param["segments"]
            inner, outer = (group % count).to_register(), (group // count).to_register()
            self._block, self._segment = (inner, outer) if form.across else (outer, inner)
        self._place()
        self._bases = [self._base(number) for number in self._numbers]
        self._origins = [self._origin(base, column) for base in self._bases for column in range(form.columns)]
        self._totals = [self._accumulator.start() for _ in self._origins]
        if self._source.is_writing and not form.partial and self._kept[0] is not None:
            # only what is left is reduced, so that nothing is mapped twice
            with vc.if_block(self._kept[0]):
                self._chunks()
                self._rest()
        else:
            self._chunks()
            self._rest()
        if form.vector and not form.many:
            self._tail(self._totals[0])
        self._leave(self._across(self._totals), finished=not form.segmented)
        if form.finishing:
            self._finish()

    def _place(self) -> None:
        """Find this invocation's part of the work: its lane, and the numbers of its results."""
        form = self._form
        index = vc.local_invocation_index()
        side = form.group // form.lanes
        own: Any = 0
        if form.layout == "columns":
            self._lane = (index // side).to_register("reduce_lane") if side > 1 else index
            own = (index % side).to_register("reduce_column") if side > 1 else 0
        elif form.lanes == form.group:
            self._lane = index
        else:
            self._lane = (index % form.lanes).to_register("reduce_lane")
            own = (index // form.lanes).to_register("reduce_row")
        self._numbers: list[Any] = []
        self._kept: list[Any] = []
        for i in range(form.results):
            if not form.many:
                self._numbers.append(None)
                self._kept.append(None)
            elif side * form.results == 1:
                self._numbers.append(self._block)
                self._kept.append(None)
            else:
                local = own + i * side
                kept = vc.any(self._block + 1 < self._param["blocks"], local < self._param["last"])
                # those beyond the last do the work of the block's first once more, and leave no result
                self._numbers.append(self._block * (side * form.results) + vc.select(kept, local, 0))
                self._kept.append(kept)

    def _length(self) -> Any:
        """Return how many loads there are of one result."""
        return self._param["full"] * (self._form.lanes * self._form.unroll) + self._param["rest"]

    def _base(self, number: Any) -> Any:
        """Where a result's elements begin, counted in loads."""
        form, param = self._form, self._param
        if number is None:
            return None
        if form.layout == "columns":
            inner = param["inner"]
            base = (number // inner) * (inner * self._length()) + number % inner
        elif form.layout == "split":
            base = number * param["inner"]
        else:
            base = number * self._length()
        return base.to_register()

    def _origin(self, base: Any, column: int) -> Any:
        """Return the first element of a result, if the accumulator asks for it."""
        form = self._form
        if form.partial or not self._accumulator.origin:
            return None
        begin: Any = vc.to_uint(0) if base is None else base * form.together + column
        return self._source.elementwise().value(self._arguments, begin).to_register()

    def _position(self, base: Any, place: Any) -> Any:
        """Where the load `place` of a result lies."""
        param = self._param
        if self._form.layout == "columns":
            place = place * param["inner"]
        elif self._form.layout == "split":
            inner = param["inner"]
            place = (place // inner) * (inner * param["outer"]) + place % inner
        return place if base is None else base + place

    def _chunks(self) -> None:
        """Combine all whole chunks of this segment."""
        form, rounds = self._form, self._param["full"]
        if form.segmented and form.runs:
            each = (rounds + (self._param["segments"] - 1)) // self._param["segments"]
            self._run = vc.min(self._segment * each, rounds).to_register()
            rounds = vc.min(each, rounds - self._run).to_register()
        elif form.segmented:
            segments = self._param["segments"]
            rounds = ((rounds + (segments - 1) - self._segment) // segments).to_register()
        nested = form.layout == "columns" or form.lanes > (1 if form.runs else max(form.subgroup, 1))
        if not nested:
            with vc.for_block(0, rounds) as number:
                self._chunk(number, self._totals)
            return
        with vc.for_block(0, rounds, _ROUNDS) as first:
            parts = [self._accumulator.start() for _ in self._totals]
            with vc.for_block(first, vc.min(first + _ROUNDS, rounds)) as number:
                self._chunk(number, parts)
            self._add(self._totals, parts)

    def _add(self, totals: Sequence[State], parts: Sequence[State]) -> None:
        for total, part in zip(totals, parts, strict=True):
            assign(total, self._accumulator.combined(total, part))

    def _chunk(self, number: Any, totals: Sequence[State]) -> None:
        form = self._form
        chunk = number
        if form.segmented:
            chunk = self._run + number if form.runs else self._segment + number * self._param["segments"]
        first = chunk * (form.lanes * form.unroll) + self._lane
        places = [first + u * form.lanes for u in range(form.unroll)]

        def place_of(number: Any) -> Any:
            return first + number * form.lanes

        self._add(totals, self._gathered(self._loaded(places), place_of))

    def _loaded(self, places: Sequence[Any]) -> list[list[list[Any]]]:
        """Return, of each row, the values at each place, or states of partial results: all loads first."""
        positions = [[self._position(base, place) for place in places] for base in self._bases]
        if self._form.partial:
            return [[[_at(self._partials, place)] for place in row] for row in positions]
        words = [[self._source.load(self._views, each) for each in row] for row in positions]
        return [
            [
                self._source.values(self._arguments, position, word)
                for position, word in zip(row, row_words, strict=True)
            ]
            for row, row_words in zip(positions, words, strict=True)
        ]

    def _gathered(self, loaded: list[list[list[Any]]], place_of: Callable[[Any], Any]) -> list[State]:
        """Return the states of what was loaded; `place_of` gives the place of a load by its number."""
        form, accumulator = self._form, self._accumulator
        if form.partial:
            return [accumulator.tree([state for (state,) in row]) for row in loaded]
        if form.columns > 1:
            found = [[values[column] for values in row] for row in loaded for column in range(form.columns)]
            position = place_of
        else:
            found = [[value for values in row for value in values] for row in loaded]

            def position(number: Any) -> Any:
                together = form.together
                return place_of(number // together) * together + number % together

        return [
            accumulator.gather(values, Place(position, origin))
            for values, origin in zip(found, self._origins, strict=True)
        ]

    def _rest(self) -> None:
        """Combine what is left beyond whole chunks: there is always a load at place 0 of it."""
        form, param, accumulator = self._form, self._param, self._accumulator
        lanes, rest = form.lanes, param["rest"]
        mine: Any = rest > 0
        if form.segmented:
            mine = vc.all(mine, self._segment == param["full"] % param["segments"])
        with vc.if_block(mine):
            begin = param["full"] * (lanes * form.unroll)
            offsets = [self._lane + u * lanes for u in range(form.unroll)]
            kept = [offset < rest for offset in offsets]
            places = [
                begin + vc.select(inside, offset, 0) for inside, offset in zip(kept, offsets, strict=True)
            ]
            if self._source.is_writing and not form.partial:
                for inside, place in zip(kept, places, strict=True):
                    with vc.if_block(inside):
                        self._add(self._totals, self._gathered(self._loaded([place]), _always(place)))
                return
            loaded = self._loaded(places)
            parts: list[list[State]] = [[] for _ in self._totals]
            for u, (inside, place) in enumerate(zip(kept, places, strict=True)):
                states = self._gathered([[row[u]] for row in loaded], _always(place))
                for part, state in zip(parts, states, strict=True):
                    part.append(accumulator.chosen(inside, state))
            self._add(self._totals, [accumulator.tree(part) for part in parts])

    def _tail(self, total: State) -> None:
        """Combine the elements that do not fill a load."""
        source, param, accumulator = self._source, self._param, self._accumulator
        single = source.elementwise()
        begin = self._length() * source.together
        for first in range(0, source.together - 1, self._form.lanes):
            place = self._lane + first if first else self._lane
            mine: Any = place < param["tail"]
            if self._form.segmented:
                mine = vc.all(mine, self._segment == 0)
            with vc.if_block(mine):
                value = single.value(self._arguments, begin + place)
                where = Place(_always(begin + place), self._origins[0])
                self._add([total], [accumulator.gather([value], where)])

    # -- between invocations

    def _across(self, states: Sequence[State]) -> list[State]:
        """Return states combined over the lanes of a result: right in lane 0, and perhaps in others."""
        form = self._form
        if form.runs and form.layout == "columns" and form.group <= form.subgroup:
            return [self._by_exchange(state, form.group, form.group // form.lanes) for state in states]
        if form.layout == "columns" or form.lanes > form.subgroup == 1:
            return self._by_memory(states)
        if form.lanes <= form.subgroup:
            return [self._by_exchange(state, form.lanes) for state in states]
        return [self._by_both(state) for state in states]

    def _by_both(self, state: State) -> State:
        """Combine over a workgroup: within subgroups first, then what these have found."""
        form = self._form
        state = self._in_subgroup(state)
        count = form.group // form.subgroup
        (memory,) = self._shared(1, count)
        with vc.if_block(self._lane % form.subgroup == 0):
            assign_places(memory, self._lane // form.subgroup, state)
        vc.barrier()
        if count <= _FEW:
            total = in_registers(state)
            with vc.if_block(self._lane == 0):
                assign(total, self._accumulator.tree([_at(memory, i) for i in range(count)]))
            return total
        return self._halved([memory], self._lane, self._lane, count, 1)[0]

    def _in_subgroup(self, state: State) -> State:
        subgroup = self._accumulator.subgroup
        if self._form.arithmetic and subgroup is not None:
            return subgroup(state)
        return self._by_exchange(state, self._form.subgroup)

    def _by_exchange(self, state: State, lanes: int, mask: int = 1) -> State:
        while mask < lanes:
            other = tuple(vc.subgroup_shuffle_xor(value, mask).to_register() for value in state)
            state = self._accumulator.combined(state, other)
            mask *= 2
        return state

    def _shared(self, states: int, count: int) -> list[list[Any]]:
        """Return workgroup memory for `count` times some states: the same one each time."""
        if self._memory:
            vc.barrier()
        else:
            kinds = self._accumulator.kinds
            self._memory = [[vc.shared_buffer(kind, count) for kind in kinds] for _ in range(states)]
        return self._memory

    def _by_memory(self, states: Sequence[State]) -> list[State]:
        """Combine over lanes by workgroup memory alone."""
        form = self._form
        if form.lanes == 1:
            return list(states)
        index = vc.local_invocation_index()
        memory = self._shared(len(states), form.group)
        for places, state in zip(memory, states, strict=True):
            assign_places(places, index, state)
        vc.barrier()
        stride = form.group // form.lanes if form.layout == "columns" else 1
        return self._halved(memory, index, self._lane, form.lanes, stride)

    def _halved(
        self, memory: Sequence[Sequence[Any]], index: Any, lane: Any, count: int, stride: int
    ) -> list[State]:
        """Combine `count` states, `stride` apart; lane 0 has the totals."""
        combined = self._accumulator.combined
        while count > _SERIAL:
            half = (count + 1) // 2
            with vc.if_block(lane < count - half):
                for places in memory:
                    mine = _at(places, index)
                    assign_places(places, index, combined(mine, _at(places, index + half * stride)))
            vc.barrier()
            count = half
        totals = [self._accumulator.start() for _ in memory]
        with vc.if_block(lane == 0), vc.for_block(0, count) as number:
            self._add(totals, [_at(places, index + number * stride) for places in memory])
        return totals

    # -- results

    def _leave(self, states: Sequence[State], *, finished: bool) -> None:
        """Store states that lane 0 has: results, or partial ones."""
        columns = self._form.columns
        for row, (number, kept) in enumerate(zip(self._numbers, self._kept, strict=True)):
            with vc.if_block(self._first_lane(kept)):
                for column, state in enumerate(states[row * columns : (row + 1) * columns]):
                    mine = self._number(number, column)
                    if finished:
                        self._store_result(mine, state)
                    else:
                        assign_places(self._partials, self._partial(mine, self._segment), state)

    def _number(self, number: Any, column: int) -> Any:
        return number if self._form.columns == 1 else number * self._form.columns + column

    def _first_lane(self, kept: Any) -> Any:
        first = self._lane == 0
        return first if kept is None else vc.all(first, kept)

    def _store_result(self, number: Any, state: State) -> None:
        value = self._accumulator.finish(in_registers(state), self._extra)
        index = vc.to_uint(0) if number is None else number
        self._sink.store(self._result, self._kept_for_sink, index, value)

    def _partial(self, number: Any, segment: Any) -> Any:
        """Where a partial result lies."""
        if number is None:
            return segment
        if self._form.layout == "columns":
            return segment * self._total_columns() + number
        return number * self._param["segments"] + segment

    def _finish(self) -> None:
        """Combine all partial results, in the workgroup that finds that all others have left theirs."""
        form, segments, accumulator = self._form, self._param["segments"], self._accumulator
        (number,) = self._numbers
        index = vc.local_invocation_index()
        ticket = vc.shared_buffer(dtype.uint32, 1)
        vc.memory_barrier_buffer()
        vc.barrier()
        with vc.if_block(index == 0):
            ticket[0] = vc.atomic_add(self._counters[self._block], 1)  # type: ignore[index]
        vc.barrier()
        with vc.if_block(ticket[0] == segments - 1):
            vc.memory_barrier_buffer()
            totals = [accumulator.start() for _ in self._totals]
            flight = max(1, form.partials // form.columns)
            with vc.for_block(0, segments, form.lanes * flight) as begin:
                found: list[list[State]] = [[] for _ in totals]
                insides = []
                for i in range(flight):
                    segment = begin + self._lane + i * form.lanes
                    inside = segment < segments
                    insides.append(inside)
                    for column, states in enumerate(found):
                        place = self._partial(self._number(number, column), vc.select(inside, segment, 0))
                        states.append(_at(self._partials, place))
                for total, states in zip(totals, found, strict=True):
                    kept = [accumulator.chosen(*each) for each in zip(insides, states, strict=True)]
                    self._add([total], [accumulator.tree(kept)])
            self._leave(self._across(totals), finished=True)
            with vc.if_block(index == 0):
                self._counters[self._block] = 0  # type: ignore[index]

    def _total_columns(self) -> Any:
        form = self._form
        side = form.group // form.lanes * form.results
        return ((self._param["blocks"] - 1) * side + self._param["last"]) * form.columns


def _always(place: Any) -> Callable[[Any], Any]:
    return lambda _: place


def _at(buffers: Sequence[Any], index: Any) -> State:
    """Return the state at an index of some buffers, one for each of its registers."""
    return tuple(buffer[index].to_register() for buffer in buffers)


def assign_places(buffers: Sequence[Any], index: Any, state: State) -> None:
    """Store a state at an index of some buffers, one for each of its registers."""
    for each, value in zip(buffers, state, strict=True):
        each[index] = value
