"""A reduction of an array on the device: planned for its shape, launched as one kernel or two."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.aliasing import check_overlap
from vkdispatch.arrays.kernels import buffer, constant, trace_kernel
from vkdispatch.arrays.maps.operand import Operand
from vkdispatch.arrays.maps.output import Sink, parse_output
from vkdispatch.arrays.maps.source import Source
from vkdispatch.arrays.memoize import memoize
from vkdispatch.arrays.results import prepare_result
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.reduce import planning
from vkdispatch.reduce.accumulators import Accumulator
from vkdispatch.reduce.counters import Counters
from vkdispatch.reduce.cpu_planning import planner_for
from vkdispatch.reduce.kernels import stage_kernel
from vkdispatch.reduce.planning import KernelForm, Pass, Planner, Shape, shape_of
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
class Launches:
    """What a call does, for one shape.

    Attributes
    ----------
    first, second
        The kernels; see `planning.Plan`.
    form
        That of the first.
    count
        How many results there are.
    partials, kinds
        How many partial results there are between the launches, and the types of their registers.
    counters
        How many counters the first launch needs to know the last of its workgroups, or 0.
    """

    first: _Launch
    second: _Launch | None
    form: KernelForm
    count: int
    partials: int
    kinds: tuple[DType, ...]
    counters: int


class _Held:
    """What there is for a context: counters, and what calls do, for one tuning."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.tuning = planning.tuning
        self.launches: dict[tuple[Any, ...], Launches] = {}


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
    sink = parse_output(call.output_map, accumulator.out_type, shape)
    buffer = prepare_result(call.out, shape, sink.out_type, x.context)
    check_overlap([("out", call.out)], sink, elsewhere=[x])
    if buffer.size == 0:
        return buffer
    last = (*numbers, *sink.arguments)
    if x.size == 0:
        _filling(accumulator, sink.sink)(buffer, *last, graph=call.graph)
        return buffer
    key = (x.source, x.shape, accumulator, call.axes, sink.sink)
    launches = launches_for(
        x.context,
        key,
        lambda: plan_launches(
            planner_for(x.source, accumulator, x.context, None),
            shape_of(x.shape, call.axes),
            x.source,
            accumulator,
            sink.sink,
        ),
    )
    launch(launches, x, buffer, last, call.graph)
    return buffer


def launches_for(context: Context, key: tuple[Any, ...], make: Callable[[], Launches]) -> Launches:
    """Return what is kept in a context under a key; it is made where there is nothing.

    The key is of all that the launches depend on, beside the context, its tuning and whether checks are on.
    """
    held = _held_for(context)
    if held.tuning is not planning.tuning:
        held.launches.clear()
        held.tuning = planning.tuning
    key = (*key, bool(checks_of(None)))
    found = held.launches.get(key)
    if found is None:
        found = make()
        while len(held.launches) >= _MOST_KEPT:
            held.launches.pop(next(iter(held.launches)), None)
        held.launches[key] = found
    return found


def plan_launches(
    planner: Planner, shape: Shape, source: Source, accumulator: Accumulator, sink: Sink
) -> Launches:
    """Plan the reduction of a shape, and make its kernels."""
    plan = planner.plan(shape)

    def part(planned: Pass) -> _Launch:
        kernel = reducing_kernel(planned.form, source, accumulator, sink)
        return _Launch(kernel, planned.params.checked())

    first, second = part(plan.first), None if plan.second is None else part(plan.second)
    counters = plan.first.params.blocks if plan.first.form.finishing else 0
    return Launches(first, second, plan.first.form, plan.count, plan.partials, accumulator.kinds, counters)


def launch(
    launches: Launches,
    x: Operand,
    buffer: Buffer[Any],
    last: Sequence[Any] = (),
    graph: CommandGraph | None = None,
) -> None:
    """Queue, or record, the launches that reduce an array into a buffer.

    Parameters
    ----------
    last
        The accumulator's parameters, and the sink's arguments.
    """
    first, second, form = launches.first, launches.second, launches.form
    partials: list[Buffer[Any]] = []
    if launches.partials:
        partials = [function_buffer(launches.partials, kind, context=x.context) for kind in launches.kinds]
    own = [buffer, *partials] if form.results_too else partials
    if launches.counters:
        own.append(_held_for(x.context).counters.zeros(launches.counters))
    views = x.views if form.vector else ()
    ending = last if form.results_too else ()
    first.kernel(*own, *x.arguments, *views, *first.numbers, *ending, graph=graph)
    if second is not None:
        second.kernel(buffer, *partials, *second.numbers, *last, graph=graph)


@memoize
def reducing_kernel(form: KernelForm, source: Source, accumulator: Accumulator, sink: Sink) -> ShaderFunction:
    """Return the kernel of a stage; see `stage_kernel`."""
    return stage_kernel(form, source, accumulator, sink)


@memoize
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
    return trace_kernel(name, body, arguments, _FILL_GROUP, exec_size="reduce_result.size")
