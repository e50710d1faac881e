"""The kernels of reductions, traced for one form, and states combined across invocations."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.record import replace
from vkdispatch.families.kernels import buffers, numbers, trace_kernel
from vkdispatch.families.operands import Sink
from vkdispatch.families.sources import Source, kind_of_argument
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import view_type
from vkdispatch.reduce import accumulators
from vkdispatch.reduce.planning import KernelForm, ReductionParams
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import find_origin

# ---- States of several invocations combined into one -----------------------------------------------------
#
# By exchanges in subgroups and through workgroup memory.


# Most values of workgroup memory that one invocation combines alone.
_MAX_SERIAL = 32
# The same where it combines several results in turn: code with few barriers compiles fast.
_SERIAL = 16


class Lanes:
    """The lanes of a result in a kernel being traced; `lane` is the number of this invocation."""

    def __init__(self, form: KernelForm, accumulator: accumulators.Accumulator, lane: Any) -> None:
        self._form, self._accumulator, self._lane = form, accumulator, lane
        self._memory: list[list[Any]] = []

    def combine(self, states: Sequence[accumulators.State]) -> list[accumulators.State]:
        """Return states combined over the lanes of a result. Lane 0 has the totals; others may not."""
        form = self._form
        if form.has_runs and form.layout == "columns" and form.group <= form.subgroup:
            return [
                self._combine_by_exchange(state, form.group, form.group // form.lanes) for state in states
            ]
        if form.layout == "columns" or form.lanes > form.subgroup == 1:
            return self._combine_by_memory(states)
        if form.lanes <= form.subgroup:
            return [self._combine_by_exchange(state, form.lanes) for state in states]
        return [self._combine_workgroup(state) for state in states]

    def _combine_workgroup(self, state: accumulators.State) -> accumulators.State:
        """Combine over a workgroup: within the subgroups first, then the states of these."""
        form = self._form
        state = self._combine_subgroup(state)
        count = form.group // form.subgroup
        (memory,) = self._share_memory(1, count)
        with vc.if_block(self._lane % form.subgroup == 0):
            accumulators.store_state(memory, self._lane // form.subgroup, state)
        vc.barrier()
        if count <= _MAX_SERIAL:
            total = accumulators.to_registers(state)
            with vc.if_block(self._lane == 0):
                accumulators.assign(
                    total,
                    self._accumulator.merge_all([accumulators.load_state(memory, i) for i in range(count)]),
                )
            return total
        return self._combine_halves([memory], self._lane, self._lane, count, 1)[0]

    def _combine_subgroup(self, state: accumulators.State) -> accumulators.State:
        subgroup = self._accumulator.subgroup
        if self._form.has_arithmetic and subgroup is not None:
            return subgroup(state)
        return self._combine_by_exchange(state, self._form.subgroup)

    def _combine_by_exchange(
        self, state: accumulators.State, lanes: int, mask: int = 1
    ) -> accumulators.State:
        while mask < lanes:
            other = tuple(vc.subgroup_shuffle_xor(value, mask).to_register() for value in state)
            state = self._accumulator.merge(state, other)
            mask *= 2
        return state

    def _share_memory(self, states: int, count: int) -> list[list[Any]]:
        """Return workgroup memory for `count` times some states. It is the same memory each time."""
        if self._memory:
            vc.barrier()
        else:
            kinds = self._accumulator.kinds
            self._memory = [[vc.shared_buffer(kind, count) for kind in kinds] for _ in range(states)]
        return self._memory

    def _combine_by_memory(self, states: Sequence[accumulators.State]) -> list[accumulators.State]:
        """Combine over lanes through workgroup memory only."""
        form = self._form
        if form.lanes == 1:
            return list(states)
        index = vc.local_invocation_index()
        memory = self._share_memory(len(states), form.group)
        for places, state in zip(memory, states, strict=True):
            accumulators.store_state(places, index, state)
        vc.barrier()
        stride = form.group // form.lanes if form.layout == "columns" else 1
        return self._combine_halves(memory, index, self._lane, form.lanes, stride)

    def _combine_halves(
        self, memory: Sequence[Sequence[Any]], index: Any, lane: Any, count: int, stride: int
    ) -> list[accumulators.State]:
        """Combine `count` states that lie `stride` apart; lane 0 has the totals."""
        merge = self._accumulator.merge
        while count > _SERIAL:
            half = (count + 1) // 2
            with vc.if_block(lane < count - half):
                for places in memory:
                    mine = accumulators.load_state(places, index)
                    accumulators.store_state(
                        places, index, merge(mine, accumulators.load_state(places, index + half * stride))
                    )
            vc.barrier()
            count = half
        totals = [self._accumulator.start() for _ in memory]
        with vc.if_block(lane == 0), vc.for_block(0, count) as number:
            self._accumulator.add_to(
                totals, [accumulators.load_state(places, index + number * stride) for places in memory]
            )
        return totals


# ---- The kernels of reductions, traced for one form; see `planning` --------------------------------------


PARAMETERS = tuple(field.name for field in fields(ReductionParams))
# Suffix of the names of second stages.
SECOND = "_of_partials"
# Rounds that have a total of their own before it is added: a sum of sums has a smaller error.
_ROUNDS = 16


@store_results
def make_stage_kernel(
    form: KernelForm, source: Source, accumulator: accumulators.Accumulator, sink: Sink
) -> ShaderFunction:
    """Trace the kernel of a stage.

    Its arguments are, in this order:

    * the result, if the kernel stores results;
    * the partial results, one buffer for each register of the accumulator, if it reduces or leaves such;
    * the counters, if the workgroup that finishes last combines the partial results;
    * the arguments of the mapping function and their views, unless it reduces partial results;
    * the numbers of a `ReductionParams`;
    * the parameters of the accumulator and the arguments of the sink, if it stores results.
    """
    if not form.is_partial:
        source = limit_loads(source, form.together)
    names, views = source.names, () if form.is_partial else source.views
    partials = accumulator.kinds if form.is_partial or form.is_segmented else ()
    arguments = [
        *buffers(reduce_result=sink.out_type if form.has_results else None),
        buffers(**{f"reduce_partials{i or ''}": kind for i, kind in enumerate(partials)}),
        *buffers(reduce_counters=dtype.uint32 if form.is_finishing else None),
        [] if form.is_partial else source.parameters,
        buffers(**{f"reduce_{names[position]}_{view.name}": view for position, view in views}),
        numbers(*(f"reduce_{name}" for name in PARAMETERS)),
        accumulator.arguments if form.has_results else [],
        sink.parameters if form.has_results else [],
    ]

    def body(*variables: Any) -> None:
        _Tracing(form, source, accumulator, sink, variables).run()

    plain = source.is_plain or form.is_partial
    function = source.mapping.mapping_function
    name = accumulator.name if plain else getattr(function, "__name__", "map")
    return trace_kernel(
        f"{name}_{form.layout}{SECOND if form.is_partial else ''}",
        body,
        arguments,
        form.group,
        "reduce_segments * reduce_blocks",
        origin=accumulator.place if plain else find_origin(function),
    )


def limit_loads(source: Source, together: int) -> Source:
    """Return the source with loads of `together` elements, which are no more than its own."""
    if together == 1:
        return source.elementwise()
    kinds = [(position, kind_of_argument(source.mapping, position)) for position, _ in source.views]
    views = tuple((at, view) for at, kind in kinds if (view := view_type(kind, together)) is not None)
    return replace(source, together=together, views=views)


class _Tracing:
    """A stage being traced.

    An invocation has `form.results` rows, or in the layout "columns" `form.results` groups of `form.columns`
    columns, each group in one load. `self._totals` are the states of all of them in this order.
    """

    def __init__(
        self,
        form: KernelForm,
        source: Source,
        accumulator: accumulators.Accumulator,
        sink: Sink,
        variables: Sequence[Any],
    ) -> None:
        self._form = form
        self._source = source
        self._accumulator = accumulator
        self._sink = sink
        self._result, self._partials, self._counters, self._arguments, self._views = variables[:5]
        params, self._extra, self._kept_for_sink = variables[5:]
        self._param = dict(zip(PARAMETERS, params, strict=True))

    # -- the kernel

    def run(self) -> None:
        """Record the kernel's statements."""
        form, param = self._form, self._param
        group = vc.workgroup_id().x
        self._segment: Any = None
        self._block = group
        if form.is_segmented:
            count = param["blocks"] if form.is_interleaved else param["segments"]
            inner, outer = (group % count).to_register(), (group // count).to_register()
            self._block, self._segment = (inner, outer) if form.is_interleaved else (outer, inner)
        self._find_place()
        self._lanes = Lanes(form, self._accumulator, self._lane)
        self._bases = [self._find_base(number) for number in self._numbers]
        self._origins = [
            self._load_origin(base, column) for base in self._bases for column in range(form.columns)
        ]
        self._totals = [self._accumulator.start() for _ in self._origins]
        if self._source.is_writing and not form.is_partial and self._kept[0] is not None:
            # an invocation without a result maps nothing, so that no element is mapped twice
            with vc.if_block(self._kept[0]):
                self._reduce_chunks()
                self._reduce_rest()
        else:
            self._reduce_chunks()
            self._reduce_rest()
        if form.is_vector and not form.is_many:
            self._reduce_tail(self._totals[0])
        self._store(self._lanes.combine(self._totals), is_final=not form.is_segmented)
        if form.is_finishing:
            self._combine_partials()

    def _find_place(self) -> None:
        """Find the lane of this invocation and the numbers of its results."""
        form = self._form
        index = vc.local_invocation_index()
        side = form.group // form.lanes
        offset: Any = 0
        if form.layout == "columns":
            self._lane = (index // side).to_register("reduce_lane") if side > 1 else index
            offset = (index % side).to_register("reduce_column") if side > 1 else 0
        elif form.lanes == form.group:
            self._lane = index
        else:
            self._lane = (index % form.lanes).to_register("reduce_lane")
            offset = (index // form.lanes).to_register("reduce_row")
        self._numbers: list[Any] = []
        self._kept: list[Any] = []
        for i in range(form.results):
            if not form.is_many:
                self._numbers.append(None)
                self._kept.append(None)
            elif side * form.results == 1:
                self._numbers.append(self._block)
                self._kept.append(None)
            else:
                local = offset + i * side
                kept = vc.any(self._block + 1 < self._param["blocks"], local < self._param["last"])
                # invocations beyond the last result repeat the first of the block, and store nothing
                self._numbers.append(self._block * (side * form.results) + vc.select(kept, local, 0))
                self._kept.append(kept)

    def _count_loads(self) -> Any:
        """Return how many loads there are of one result."""
        return self._param["full"] * (self._form.lanes * self._form.unroll) + self._param["rest"]

    def _find_base(self, number: Any) -> Any:
        """Return where the elements of a result begin, counted in loads."""
        form, param = self._form, self._param
        if number is None:
            return None
        if form.layout == "columns":
            inner = param["inner"]
            base = (number // inner) * (inner * self._count_loads()) + number % inner
        elif form.layout == "split":
            base = number * param["inner"]
        else:
            base = number * self._count_loads()
        return base.to_register()

    def _load_origin(self, base: Any, column: int) -> Any:
        """Return the first element of a result, if the accumulator needs it."""
        form = self._form
        if form.is_partial or not self._accumulator.origin:
            return None
        begin: Any = vc.to_uint(0) if base is None else base * form.together + column
        return self._source.elementwise().value(self._arguments, begin).to_register()

    def _find_position(self, base: Any, place: Any) -> Any:
        """Return where the load `place` of a result lies."""
        param = self._param
        if self._form.layout == "columns":
            place = place * param["inner"]
        elif self._form.layout == "split":
            inner = param["inner"]
            place = (place // inner) * (inner * param["outer"]) + place % inner
        return place if base is None else base + place

    def _reduce_chunks(self) -> None:
        """Accumulate all whole chunks of this segment."""
        form, rounds = self._form, self._param["full"]
        if form.is_segmented and form.has_runs:
            share = (rounds + (self._param["segments"] - 1)) // self._param["segments"]
            self._run = vc.min(self._segment * share, rounds).to_register()
            rounds = vc.min(share, rounds - self._run).to_register()
        elif form.is_segmented:
            segments = self._param["segments"]
            rounds = ((rounds + (segments - 1) - self._segment) // segments).to_register()
        nested = form.layout == "columns" or form.lanes > (1 if form.has_runs else max(form.subgroup, 1))
        if not nested:
            with vc.for_block(0, rounds) as number:
                self._reduce_chunk(number, self._totals)
            return
        with vc.for_block(0, rounds, _ROUNDS) as first:
            parts = [self._accumulator.start() for _ in self._totals]
            with vc.for_block(first, vc.min(first + _ROUNDS, rounds)) as number:
                self._reduce_chunk(number, parts)
            self._accumulator.add_to(self._totals, parts)

    def _reduce_chunk(self, number: Any, totals: Sequence[accumulators.State]) -> None:
        form = self._form
        chunk = number
        if form.is_segmented:
            chunk = self._run + number if form.has_runs else self._segment + number * self._param["segments"]
        first = chunk * (form.lanes * form.unroll) + self._lane
        places = [first + u * form.lanes for u in range(form.unroll)]

        def place_of(number: Any) -> Any:
            return first + number * form.lanes

        self._accumulator.add_to(totals, self._gather(self._load(places), place_of))

    def _load(self, places: Sequence[Any]) -> list[list[list[Any]]]:
        """Return the values, or the partial results, of each row at each place. All loads come first."""
        positions = [[self._find_position(base, place) for place in places] for base in self._bases]
        if self._form.is_partial:
            return [[[accumulators.load_state(self._partials, place)] for place in row] for row in positions]
        words = [[self._source.load(self._views, position) for position in row] for row in positions]
        return [
            [
                self._source.values(self._arguments, position, word)
                for position, word in zip(row, row_words, strict=True)
            ]
            for row, row_words in zip(positions, words, strict=True)
        ]

    def _gather(
        self, loaded: list[list[list[Any]]], place_of: Callable[[Any], Any]
    ) -> list[accumulators.State]:
        """Return the states of loaded values; `place_of` maps the number of a load to its place."""
        form, accumulator = self._form, self._accumulator
        if form.is_partial:
            return [accumulator.merge_all([state for (state,) in row]) for row in loaded]
        if form.columns > 1:
            columns = [[values[column] for values in row] for row in loaded for column in range(form.columns)]
            position = place_of
        else:
            columns = [[value for values in row for value in values] for row in loaded]

            def position(number: Any) -> Any:
                together = form.together
                return place_of(number // together) * together + number % together

        return [
            accumulator.gather(values, accumulators.Place(position, origin))
            for values, origin in zip(columns, self._origins, strict=True)
        ]

    def _reduce_rest(self) -> None:
        """Accumulate the loads after the last whole chunk. Place 0 of them always holds a load."""
        form, param, accumulator = self._form, self._param, self._accumulator
        lanes, rest = form.lanes, param["rest"]
        mine: Any = rest > 0
        if form.is_segmented:
            mine = vc.all(mine, self._segment == param["full"] % param["segments"])
        with vc.if_block(mine):
            begin = param["full"] * (lanes * form.unroll)
            offsets = [self._lane + u * lanes for u in range(form.unroll)]
            kept = [offset < rest for offset in offsets]
            places = [
                begin + vc.select(inside, offset, 0) for inside, offset in zip(kept, offsets, strict=True)
            ]
            if self._source.is_writing and not form.is_partial:
                for inside, place in zip(kept, places, strict=True):
                    with vc.if_block(inside):
                        self._accumulator.add_to(
                            self._totals, self._gather(self._load([place]), _always(place))
                        )
                return
            loaded = self._load(places)
            parts: list[list[accumulators.State]] = [[] for _ in self._totals]
            for u, (inside, place) in enumerate(zip(kept, places, strict=True)):
                states = self._gather([[row[u]] for row in loaded], _always(place))
                for part, state in zip(parts, states, strict=True):
                    part.append(accumulator.select(inside, state))
            self._accumulator.add_to(self._totals, [accumulator.merge_all(part) for part in parts])

    def _reduce_tail(self, total: accumulators.State) -> None:
        """Accumulate the elements that do not fill a load."""
        source, param, accumulator = self._source, self._param, self._accumulator
        single = source.elementwise()
        begin = self._count_loads() * source.together
        for first in range(0, source.together - 1, self._form.lanes):
            place = self._lane + first if first else self._lane
            mine: Any = place < param["tail"]
            if self._form.is_segmented:
                mine = vc.all(mine, self._segment == 0)
            with vc.if_block(mine):
                value = single.value(self._arguments, begin + place)
                where = accumulators.Place(_always(begin + place), self._origins[0])
                self._accumulator.add_to([total], [accumulator.gather([value], where)])

    # -- results

    def _store(self, states: Sequence[accumulators.State], *, is_final: bool) -> None:
        """Store the states of lane 0, as results or partial results."""
        columns = self._form.columns
        for row, (number, kept) in enumerate(zip(self._numbers, self._kept, strict=True)):
            with vc.if_block(self._is_first_lane(kept)):
                for column, state in enumerate(states[row * columns : (row + 1) * columns]):
                    mine = self._find_number(number, column)
                    if is_final:
                        self._store_result(mine, state)
                    else:
                        accumulators.store_state(
                            self._partials, self._find_partial(mine, self._segment), state
                        )

    def _find_number(self, number: Any, column: int) -> Any:
        return number if self._form.columns == 1 else number * self._form.columns + column

    def _is_first_lane(self, kept: Any) -> Any:
        first = self._lane == 0
        return first if kept is None else vc.all(first, kept)

    def _store_result(self, number: Any, state: accumulators.State) -> None:
        value = self._accumulator.finish(accumulators.to_registers(state), self._extra)
        index = vc.to_uint(0) if number is None else number
        self._sink.store(self._result, self._kept_for_sink, index, value)

    def _find_partial(self, number: Any, segment: Any) -> Any:
        """Return where a partial result lies."""
        if number is None:
            return segment
        if self._form.layout == "columns":
            return segment * self._count_columns() + number
        return number * self._param["segments"] + segment

    def _combine_partials(self) -> None:
        """Combine all partial results, in the workgroup that finishes last."""
        form, segments, accumulator = self._form, self._param["segments"], self._accumulator
        (number,) = self._numbers
        index = vc.local_invocation_index()
        ticket = vc.shared_buffer(dtype.uint32, 1)
        vc.memory_barrier_buffer()
        vc.barrier()
        with vc.if_block(index == 0):
            ticket[0] = vc.atomic_add(self._counters[self._block], 1)
        vc.barrier()
        with vc.if_block(ticket[0] == segments - 1):
            vc.memory_barrier_buffer()
            totals = [accumulator.start() for _ in self._totals]
            flight = max(1, form.partials // form.columns)
            with vc.for_block(0, segments, form.lanes * flight) as begin:
                parts: list[list[accumulators.State]] = [[] for _ in totals]
                insides = []
                for i in range(flight):
                    segment = begin + self._lane + i * form.lanes
                    inside = segment < segments
                    insides.append(inside)
                    for column, states in enumerate(parts):
                        place = self._find_partial(
                            self._find_number(number, column), vc.select(inside, segment, 0)
                        )
                        states.append(accumulators.load_state(self._partials, place))
                for total, states in zip(totals, parts, strict=True):
                    kept = [accumulator.select(*each) for each in zip(insides, states, strict=True)]
                    self._accumulator.add_to([total], [accumulator.merge_all(kept)])
            self._store(self._lanes.combine(totals), is_final=True)
            with vc.if_block(index == 0):
                self._counters[self._block] = 0

    def _count_columns(self) -> Any:
        form = self._form
        side = form.group // form.lanes * form.results
        return ((self._param["blocks"] - 1) * side + self._param["last"]) * form.columns


def _always(place: Any) -> Callable[[Any], Any]:
    return lambda _: place
