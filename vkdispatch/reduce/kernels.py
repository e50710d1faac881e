"""The kernels of a reduction, written for one layout of the work; see `planning`."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.elements import wide_type
from vkdispatch.arrays.mapping import Source, identity_map, make_source
from vkdispatch.base import dtype
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType, compute_type
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.reduce.operations import ReduceOp, identity_of, is_ours, number_of_type
from vkdispatch.reduce.planning import KernelForm, Planner, ReductionParams
from vkdispatch.rewrite.functions import inlined, kernel
from vkdispatch.shader.map import MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import origin_of

PARAMETERS = tuple(field.name for field in fields(ReductionParams))
# What the names of second stages end with.
SECOND = "_of_partials"
# Rounds whose values are added up before they go to the total: a sum of sums has the smaller error.
_ROUNDS = 16
# Partial results that an invocation has in flight.
_PARTIALS = 8
# So many values of workgroup memory one invocation combines by itself.
_FEW = 32


def stage_kernel(form: KernelForm, source: Source, operation: ReduceOp, suffix: str = "") -> ShaderFunction:
    """Trace the kernel of a stage; `suffix` ends its name.

    Its arguments are the output, those of the mapping function, the views of them, and the numbers of a
    `ReductionParams`.
    """
    if not form.vector:
        source = source.elementwise()
    brief = is_ours(operation) or _is_expression(operation, wide_type(source.out_type))
    wide = wide_type(source.out_type)
    target = wide if form.segmented and not form.finishing else source.out_type
    buffer: Any = vc.Buff
    constant: Any = vc.Const
    names = [f"reduce_{name}" for name in PARAMETERS]
    kinds = [
        buffer[target],
        *((buffer[wide], buffer[dtype.uint32]) if form.finishing else ()),
        *source.mapping.buffer_types,
        *(buffer[view] for _, view in source.views),
        *(constant[dtype.uint32],) * len(names),
    ]
    views = [f"reduce_{source.names[position]}_{view.name}" for position, view in source.views]
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as context:
        own = ["reduce_result", *(("reduce_partials", "reduce_counters") if form.finishing else ())]
        variables = context.declare_input_arguments(kinds, [*own, *source.names, *views, *names])
        kernel(_traced, rewrite=True)(_Tracing(form, source, operation, brief, target, variables))
    function = source.mapping.mapping_function
    name = operation.name if source.plain else getattr(function, "__name__", "map")
    return ShaderFunction(
        context.get_description(_identifier(f"{name}_{form.layout}{suffix}")),
        (form.group, 1, 1),
        "reduce_segments * reduce_blocks",
        origin=None if source.plain else origin_of(function),
    )


def _identifier(text: str) -> str:
    return "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in text)


def _is_expression(operation: ReduceOp, kind: DType) -> bool:
    """Whether an operation of the user's is one expression of its operands, by tracing it once."""
    statements: list[bool] = []

    def probe() -> None:
        x, y = vc.new_register(kind), vc.new_register(kind)
        before = vc.get_builder().contents
        result = inlined(operation.reduction)(x, y)
        alone = isinstance(result, ShaderVariable) and result.var_type is kind
        statements.append(not alone or vc.get_builder().contents != before)

    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS):
        kernel(probe, rewrite=True)()
    return not statements[0]


def _traced(tracing: "_Tracing") -> None:
    tracing.run()


class _Tracing:
    """A stage being traced."""

    def __init__(
        self,
        form: KernelForm,
        source: Source,
        operation: ReduceOp,
        brief: bool,
        target: DType,
        variables: Sequence[Any],
    ) -> None:
        self._form = form
        self._source = source
        self._operation = operation
        self._brief = brief
        self._target = target
        self._wide = wide_type(source.out_type)
        inputs, views = len(source.mapping.buffer_types), len(source.views)
        self._result = self._partials = variables[0]
        first = 1
        if form.finishing:
            _, self._partials, self._counters = variables[:3]
            first = 3
        self._arguments = variables[first : first + inputs]
        self._views = variables[first + inputs : first + inputs + views]
        self._param = dict(zip(PARAMETERS, variables[first + inputs + views :], strict=True))
        self._memory: Any = None

    # -- small pieces

    def _identity(self) -> Any:
        return number_of_type(identity_of(self._operation, self._source.out_type), self._wide)

    def _combined(self, x: Any, y: Any) -> Any:
        """Return two values combined, in a register."""
        if self._brief:
            return self._applied(x, y).to_register()
        register = vc.new_register(self._wide)
        with vc.scope_block():
            register[:] = self._applied(x.to_register(), y.to_register())
        return register

    def _applied(self, x: Any, y: Any) -> Any:
        result = inlined(self._operation.reduction)(x, y)
        narrow = compute_type(self._source.out_type)
        if isinstance(result, ShaderVariable) and result.var_type is narrow is not self._wide:
            return result.to_dtype(self._wide)
        return result

    def _tree(self, values: Sequence[Any]) -> Any:
        """Return values combined in pairs, and pairs of pairs: in as few steps from each to the last."""
        values = list(values)
        while len(values) > 1:
            odd = values[len(values) & ~1 :]
            pairs = zip(values[::2], values[1::2], strict=False)
            values = [*(self._combined(x, y) for x, y in pairs), *odd]
        return values[0]

    # -- the kernel

    def run(self) -> None:
        """Record the kernel's statements."""
        form, param = self._form, self._param
        group = vc.workgroup_id().x
        self._segment: Any = None
        self._block = group
        if form.segmented:
            self._segment = (group % param["segments"]).to_register("reduce_segment")
            self._block = (group // param["segments"]).to_register("reduce_block")
        self._place()
        rows = range(form.results)
        bases = [self._base(number) for number in self._numbers]
        totals = [self._start() for _ in rows]
        if self._source.stores and self._kept[0] is not None:
            # only what is left is reduced, so that nothing is mapped twice
            with vc.if_block(self._kept[0]):
                self._chunks(bases, totals)
                self._rest(bases, totals)
        else:
            self._chunks(bases, totals)
            self._rest(bases, totals)
        if form.vector and not form.many:
            self._tail(totals[0])
        for number, kept, total in zip(self._numbers, self._kept, totals, strict=True):
            self._store(number, kept, self._across(total))
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

    def _position(self, base: Any, place: Any) -> Any:
        """Where the load `place` of a result lies."""
        param = self._param
        if self._form.layout == "columns":
            place = place * param["inner"]
        elif self._form.layout == "split":
            inner = param["inner"]
            place = (place // inner) * (inner * param["outer"]) + place % inner
        place = place if base is None else base + place
        if self._reads_partials:
            place = place + param["offset"]
        return place

    @property
    def _reads_partials(self) -> bool:
        return self._source.plain and not self._form.segmented and not self._form.vector

    def _start(self) -> Any:
        return self._identity().to_register()

    def _chunks(self, bases: Sequence[Any], totals: Sequence[Any]) -> None:
        """Combine all whole chunks of this segment."""
        form, rounds = self._form, self._param["full"]
        if form.segmented:
            segments = self._param["segments"]
            rounds = ((rounds + (segments - 1) - self._segment) // segments).to_register()
        if form.lanes <= max(form.subgroup, 1) and form.layout != "columns":
            with vc.for_block(0, rounds) as number:
                self._chunk(number, bases, totals)
            return
        with vc.for_block(0, rounds, _ROUNDS) as first:
            parts = [self._start() for _ in totals]
            with vc.for_block(first, vc.min(first + _ROUNDS, rounds)) as number:
                self._chunk(number, bases, parts)
            for total, part in zip(totals, parts, strict=True):
                total[:] = self._combined(total, part)

    def _chunk(self, number: Any, bases: Sequence[Any], totals: Sequence[Any]) -> None:
        form = self._form
        chunk = self._segment + number * self._param["segments"] if form.segmented else number
        places = [
            chunk * (form.lanes * form.unroll) + (self._lane + u * form.lanes) for u in range(form.unroll)
        ]
        for total, values in zip(totals, self._loaded(bases, places), strict=True):
            total[:] = self._combined(total, self._tree([each for value in values for each in value]))

    def _loaded(self, bases: Sequence[Any], places: Sequence[Any]) -> list[list[list[Any]]]:
        """Return, of each result, the values at each place: all loads before all else."""
        positions = [[self._position(base, place) for place in places] for base in bases]
        words = [[self._source.loaded(self._views, each) for each in row] for row in positions]
        return [
            [
                self._source.values(self._arguments, position, word)
                for position, word in zip(row, row_words, strict=True)
            ]
            for row, row_words in zip(positions, words, strict=True)
        ]

    def _rest(self, bases: Sequence[Any], totals: Sequence[Any]) -> None:
        """Combine what is left beyond whole chunks: there is always a load at place 0 of it."""
        form, param = self._form, self._param
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
            if self._source.stores:
                for inside, place in zip(kept, places, strict=True):
                    with vc.if_block(inside):
                        ((values,),) = self._loaded(bases, [place])
                        totals[0][:] = self._combined(totals[0], self._tree(values))
                return
            for total, values in zip(totals, self._loaded(bases, places), strict=True):
                parts = [
                    vc.select(inside, self._tree(value), self._identity()).to_register()
                    for inside, value in zip(kept, values, strict=True)
                ]
                total[:] = self._combined(total, self._tree(parts))

    def _tail(self, total: Any) -> None:
        """Combine the elements that do not fill a load."""
        source, param = self._source, self._param
        single = source.elementwise()
        begin = self._length() * source.together
        for first in range(0, source.together - 1, self._form.lanes):
            place = self._lane + first if first else self._lane
            mine: Any = place < param["tail"]
            if self._form.segmented:
                mine = vc.all(mine, self._segment == 0)
            with vc.if_block(mine):
                total[:] = self._combined(total, single.value(self._arguments, begin + place))

    # -- between invocations

    def _across(self, value: Any) -> Any:
        """Return a value combined over the lanes of a result: right in lane 0, and perhaps in others."""
        form = self._form
        if form.layout == "columns" or form.lanes > form.subgroup == 1:
            return self._by_memory(value)
        if form.lanes <= form.subgroup:
            return self._by_exchange(value, form.lanes)
        value = self._in_subgroup(value)
        count = form.group // form.subgroup
        memory = vc.shared_buffer(self._wide, count)
        with vc.if_block(self._lane % form.subgroup == 0):
            memory[self._lane // form.subgroup] = value
        vc.barrier()
        if count <= _FEW:
            total = value.to_register()
            with vc.if_block(self._lane == 0):
                total[:] = self._tree([memory[i].to_register() for i in range(count)])
            return total
        self._halve(memory, self._lane, self._lane, count, 1)
        return memory[0]

    def _in_subgroup(self, value: Any) -> Any:
        reduction = self._operation.subgroup_reduction
        if self._form.arithmetic and reduction is not None:
            return reduction(value)
        return self._by_exchange(value, self._form.subgroup)

    def _by_exchange(self, value: Any, lanes: int) -> Any:
        mask = 1
        while mask < lanes:
            value = self._combined(value, vc.subgroup_shuffle_xor(value, mask))
            mask *= 2
        return value

    def _by_memory(self, value: Any) -> Any:
        """Combine over lanes by workgroup memory alone."""
        form = self._form
        if form.lanes == 1:
            return value
        index = vc.local_invocation_index()
        if self._memory is None:
            self._memory = vc.shared_buffer(self._wide, form.group)
        else:
            vc.barrier()
        self._memory[index] = value
        vc.barrier()
        stride = form.group // form.lanes if form.layout == "columns" else 1
        self._halve(self._memory, index, self._lane, form.lanes, stride)
        return self._memory[index]

    def _halve(self, memory: Any, index: Any, lane: Any, count: int, stride: int) -> None:
        """Combine `count` values, `stride` apart, so that lane 0 finds the total at its index."""
        while count > 1:
            half = (count + 1) // 2
            with vc.if_block(lane < count - half):
                memory[index] = self._combined(memory[index], memory[index + half * stride])
            vc.barrier()
            count = half

    def _store(self, number: Any, kept: Any, value: Any) -> None:
        with vc.if_block(self._first_lane(kept)):
            if self._form.segmented:
                self._partials[self._partial(number, self._segment)] = value
            else:
                self._store_result(number, value)

    def _first_lane(self, kept: Any) -> Any:
        first = self._lane == 0
        return first if kept is None else vc.all(first, kept)

    def _store_result(self, number: Any, value: Any) -> None:
        stored = compute_type(self._target)
        value = value if stored is self._wide else value.to_dtype(stored)
        self._result[0 if number is None else number] = value

    def _partial(self, number: Any, segment: Any) -> Any:
        """Where a partial result lies."""
        param = self._param
        if self._form.layout == "columns":
            return param["offset"] + segment * self._total_columns() + number
        return param["offset"] + (segment if number is None else number * param["segments"] + segment)

    def _finish(self) -> None:
        """Combine all partial results, in the workgroup that finds that all others have left theirs."""
        form, segments = self._form, self._param["segments"]
        (number,), (kept,) = self._numbers, self._kept
        index = vc.local_invocation_index()
        ticket = vc.shared_buffer(dtype.uint32, 1)
        vc.memory_barrier_buffer()
        vc.barrier()
        with vc.if_block(index == 0):
            ticket[0] = vc.atomic_add(self._counters[self._block], 1)
        vc.barrier()
        with vc.if_block(ticket[0] == segments - 1):
            vc.memory_barrier_buffer()
            total = self._start()
            with vc.for_block(0, segments, form.lanes * _PARTIALS) as begin:
                found = []
                for i in range(_PARTIALS):
                    segment = begin + self._lane + i * form.lanes
                    inside = segment < segments
                    place = self._partial(number, vc.select(inside, segment, 0))
                    found.append((inside, self._partials[place].to_register()))
                values = [vc.select(inside, value, self._identity()).to_register() for inside, value in found]
                total[:] = self._combined(total, self._tree(values))
            total = self._across(total)
            with vc.if_block(self._first_lane(kept)):
                self._store_result(number, total)
            with vc.if_block(index == 0):
                self._counters[self._block] = 0

    def _total_columns(self) -> Any:
        side = self._form.group // self._form.lanes * self._form.results
        return (self._param["blocks"] - 1) * side + self._param["last"]


def partials_source(source: Source) -> Source:
    """Return the source of a second stage: partial results as they are."""
    return Source(identity_map(wide_type(source.out_type)), True, source.out_type)


def make_reduction_stage(
    reduction: ReduceOp,
    out_type: DType,
    group_size: int | None,
    output_is_input: bool,
    map_func: MappingFunction | None = None,
    input_types: Sequence[Any] | None = None,
) -> ShaderFunction:
    """Return a stage of the reduction of a large buffer to one value.

    Parameters
    ----------
    output_is_input
        Whether it is the second stage, which reduces what the first has left.
    map_func, input_types
        A mapping function, and annotations used instead of its own.
    """
    mapping = map_func or identity_map(out_type)
    if input_types is not None:
        mapping = MappingFunction(list(input_types), mapping.return_type, mapping.mapping_function)
    source = make_source(mapping, out_type, plain=map_func is None)
    first, second = Planner(source, reduction, get_context(), group_size).whole()
    if output_is_input:
        return stage_kernel(second, partials_source(source), reduction, SECOND)
    return stage_kernel(first, source, reduction)
