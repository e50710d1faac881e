"""A reduction of an array on the device: planned for its shape, launched as one kernel or two."""

import math
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.aliasing import check_overlap
from vkdispatch.arrays.kernels import buffer, constant, traced
from vkdispatch.arrays.mapping import Source
from vkdispatch.arrays.operand import Operand
from vkdispatch.arrays.output import Sink, output
from vkdispatch.arrays.remembering import remembered
from vkdispatch.arrays.results import result
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import Context
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.reduce import planning
from vkdispatch.reduce.accumulators import Accumulator
from vkdispatch.reduce.counters import Counters
from vkdispatch.reduce.kernels import stage_kernel
from vkdispatch.reduce.planning import KernelForm, Pass, Planner, shape_of
from vkdispatch.shader.observation import checks_of
from vkdispatch.shader.shader_function import ShaderFunction

_FILL_GROUP = 64
# Shapes, sources and the like whose launches are kept.
_MOST_KEPT = 1024


@record(eq=False)
class _Launch:
    """A kernel and the numbers of a `ReductionParams`."""

    kernel: ShaderFunction
    numbers: tuple[int, ...]


@record(eq=False)
class _Launches:
    """What a call does: see `planning.Plan`. `counters` are those that the first launch needs, or 0."""

    first: _Launch
    second: _Launch | None
    form: KernelForm
    partials: int
    counters: int


class _Held:
    """What there is for a context: counters, and what calls do, for one tuning."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.tuning = planning.tuning
        self.launches: dict[tuple[Any, ...], _Launches] = {}


_HELD = "reduce.held"


def _held_for(context: Context) -> _Held:
    return context._keep(_HELD, _Held)


@record(eq=False)
class Call:
    """What the caller of a function on arrays asks for, beside the array itself.

    Attributes
    ----------
    axes
        Those that are reduced, from 0 on.
    keepdims
        Whether they stay, as axes of one element.
    out, output_map, graph
        As given.
    """

    axes: tuple[int, ...]
    keepdims: bool
    out: Any
    output_map: Any
    graph: CommandGraph | None

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the result for that of the array."""
        if self.keepdims:
            return tuple(1 if axis in self.axes else size for axis, size in enumerate(shape))
        return tuple(size for axis, size in enumerate(shape) if axis not in self.axes)

    def length(self, shape: tuple[int, ...]) -> int:
        """Return how many elements of the array there are for each of the result."""
        return math.prod(shape[axis] for axis in self.axes)


def reduced(x: Operand, accumulator: Accumulator, call: Call, numbers: Sequence[Any] = ()) -> Buffer[Any]:
    """Queue, or record, a reduction of an array.

    Parameters
    ----------
    numbers
        The accumulator's parameters.
    """
    shape = call.shape(x.shape)
    sink = output(call.output_map, accumulator.out_type, shape)
    buffer = result(call.out, shape, sink.out_type, x.context)
    check_overlap([("out", call.out)], sink, elsewhere=[x])
    if buffer.size == 0:
        return buffer
    last = (*numbers, *sink.arguments)
    if x.size == 0:
        _filling(accumulator, sink.sink)(buffer, *last, graph=call.graph)
        return buffer
    held = _held_for(x.context)
    todo = _launches(held, x, accumulator, call.axes, sink.sink)
    first, second, form = todo.first, todo.second, todo.form
    partials: list[Buffer[Any]] = []
    if todo.partials:
        partials = [function_buffer(todo.partials, kind, context=x.context) for kind in accumulator.kinds]
    own = [buffer, *partials] if form.results_too else partials
    if todo.counters:
        own.append(held.counters.zeros(todo.counters))
    views = x.views if form.vector else ()
    ending = last if form.results_too else ()
    first.kernel(*own, *x.arguments, *views, *first.numbers, *ending, graph=call.graph)
    if second is not None:
        second.kernel(buffer, *partials, *second.numbers, *last, graph=call.graph)
    return buffer


def _launches(
    held: _Held, x: Operand, accumulator: Accumulator, axes: tuple[int, ...], sink: Sink
) -> _Launches:
    if held.tuning is not planning.tuning:
        held.launches.clear()
        held.tuning = planning.tuning
    key = (x.source, x.shape, accumulator, axes, sink, bool(checks_of(None)))
    found = held.launches.get(key)
    if found is None:
        plan = Planner(x.source, accumulator, x.context, None).plan(shape_of(x.shape, axes))

        def launch(part: Pass) -> _Launch:
            return _Launch(_kernel(part.form, x.source, accumulator, sink), part.params.checked())

        first, second = launch(plan.first), None if plan.second is None else launch(plan.second)
        counters = plan.first.params.blocks if plan.first.form.finishing else 0
        found = _Launches(first, second, plan.first.form, plan.partials, counters)
        while len(held.launches) >= _MOST_KEPT:
            held.launches.pop(next(iter(held.launches)), None)
        held.launches[key] = found
    return found


@remembered
def _kernel(form: KernelForm, source: Source, accumulator: Accumulator, sink: Sink) -> ShaderFunction:
    return stage_kernel(form, source, accumulator, sink)


@remembered
def _filling(accumulator: Accumulator, sink: Sink) -> ShaderFunction:
    """Return the kernel that stores results of no elements at all."""
    count = len(accumulator.parameters)

    def body(result: Any, *variables: Any) -> None:
        value = accumulator.finish(accumulator.start(), variables[:count])
        sink.store(result, variables[count:], vc.global_invocation_id().x, value)

    arguments = [
        ("reduce_result", buffer[sink.out_type]),
        *((f"reduce_{name}", constant[kind]) for name, kind in accumulator.parameters),
        *sink.parameters,
    ]
    name = f"{accumulator.name}_of_nothing"
    return traced(name, body, arguments, _FILL_GROUP, exec_size="reduce_result.size")
