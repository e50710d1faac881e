"""Launches of reductions: planned for a shape, kept in the context, and run as one kernel or two."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.kernels import buffers, take_zeros, trace_kernel
from vkdispatch.families.operands import Operand, Sink, prepare_output
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import PlanCache
from vkdispatch.reduce import planning
from vkdispatch.reduce.accumulators import Accumulator
from vkdispatch.reduce.kernels import limit_loads, make_stage_kernel
from vkdispatch.reduce.planning import KernelForm, Pass, Planner, Shape, find_shape, gather_axes, make_planner
from vkdispatch.shader.map import MappingFunction, OutputMap
from vkdispatch.shader.program import is_checking
from vkdispatch.shader.shader_function import ShaderFunction

_EMPTY_GROUP = 64
# How many buffers of counters of a size take turns.
_TURNS = 4
_PLANS = "reduce.plans"


@record(eq=False)
class _Launch:
    """A kernel and the numbers of a `ReductionParams`."""

    kernel: ShaderFunction
    numbers: tuple[int, ...]


@record(eq=False)
class Launches:
    """What a call launches for one shape.

    Attributes
    ----------
    first, second
        The launches; see `planning.Plan`.
    form
        The form of the first kernel.
    views
        Positions of the arguments that the first kernel loads several elements at a time.
    count
        Number of results.
    partials, kinds
        Number of partial results between the launches, and the types of their registers.
    counters
        Number of counters that the first launch needs to find its last workgroup, or 0.
    """

    first: _Launch
    second: _Launch | None
    form: KernelForm
    views: tuple[int, ...]
    count: int
    partials: int
    kinds: tuple[DType, ...]
    counters: int


@record(eq=False)
class Call:
    """The arguments of a function on arrays, besides the array.

    Attributes
    ----------
    axes
        The reduced axes, counted from 0.
    keepdims
        Whether the reduced axes stay, with one element.
    out, output_map, graph
        The arguments of the call.
    """

    axes: tuple[int, ...]
    keepdims: bool = False
    out: Buffer[Any] | None = None
    output_map: MappingFunction | OutputMap | None = None
    graph: CommandGraph | None = None

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the result for an array of this shape."""
        if self.keepdims:
            return tuple(1 if axis in self.axes else size for axis, size in enumerate(shape))
        return tuple(size for axis, size in enumerate(shape) if axis not in self.axes)

    def length(self, shape: tuple[int, ...]) -> int:
        """Return how many elements of an array of this shape make one element of the result."""
        return math.prod(shape[axis] for axis in self.axes)


def reduce_array(
    x: Operand, accumulator: Accumulator, call: Call, numbers: Sequence[Any] = ()
) -> Buffer[Any]:
    """Queue or record the reduction of an array. `numbers` are the parameters of the accumulator."""
    shape = call.shape(x.shape)
    sink, buffer = prepare_output(
        call.out, call.output_map, shape, accumulator.out_type, x.context, elsewhere=[x]
    )
    if buffer.size == 0:
        return buffer
    arguments = (*numbers, *sink.arguments)
    if x.size == 0:
        _make_empty_kernel(accumulator, sink.sink)(buffer, *arguments, graph=call.graph)
        return buffer

    x, axes = gather_axes(x, call.axes)

    def plan() -> Launches:
        planner = make_planner(x.source, accumulator, x.context, None)
        return plan_launches(planner, find_shape(x.shape, axes), x.source, accumulator, sink.sink)

    key = (x.source, x.shape, accumulator, axes, sink.sink)
    launch(find_launches(x.context, key, plan), x, buffer, arguments, call.graph)
    return buffer


def find_launches(context: Context, key: tuple[Any, ...], plan: Callable[[], Launches]) -> Launches:
    """Return the launches that a context keeps under a key, planned if there are none.

    The key holds all that the launches depend on besides the context, the tuning, and whether checks are on.
    """
    plans: PlanCache[Launches] = context._keep(_PLANS, PlanCache)
    return plans.find(planning.tuning, (*key, is_checking()), plan)


def plan_launches(
    planner: Planner, shape: Shape, source: Source, accumulator: Accumulator, sink: Sink
) -> Launches:
    """Plan the reduction of a shape and trace its kernels."""
    plan = planner.plan(shape)

    def make_launch(planned: Pass) -> _Launch:
        return _Launch(
            make_stage_kernel(planned.form, source, accumulator, sink), planned.params.as_arguments()
        )

    first, second = make_launch(plan.first), None if plan.second is None else make_launch(plan.second)
    counters = plan.first.params.blocks if plan.first.form.is_finishing else 0
    form = plan.first.form
    # wide loads may be too short for some arguments, such as two booleans
    views = tuple(position for position, _ in limit_loads(source, form.together).views)
    return Launches(first, second, form, views, plan.count, plan.partials, accumulator.kinds, counters)


def launch(
    launches: Launches,
    x: Operand,
    buffer: Buffer[Any],
    arguments: Sequence[Any] = (),
    graph: CommandGraph | None = None,
) -> None:
    """Queue or record the launches that reduce an array into a buffer.

    Parameters
    ----------
    arguments
        The parameters of the accumulator, and the arguments of the sink.
    """
    first, second, form = launches.first, launches.second, launches.form
    partials: list[Buffer[Any]] = []
    if launches.partials:
        partials = [function_buffer(launches.partials, kind, context=x.context) for kind in launches.kinds]
    results = [buffer, *partials] if form.has_results else partials
    if launches.counters:
        results.append(take_zeros(x.context, "reduce", launches.counters, turns=_TURNS))
    views = [x.arguments[position] for position in launches.views]
    last = arguments if form.has_results else ()
    first.kernel(*results, *x.arguments, *views, *first.numbers, *last, graph=graph)
    if second is not None:
        second.kernel(buffer, *partials, *second.numbers, *arguments, graph=graph)


@store_results
def _make_empty_kernel(accumulator: Accumulator, sink: Sink) -> ShaderFunction:
    """Return the kernel that stores the results of no elements."""

    def body(result: Any, parameters: Any, mapping: Any) -> None:
        value = accumulator.finish(accumulator.start(), parameters)
        sink.store(result, mapping, vc.global_invocation_id().x, value)

    arguments = [*buffers(reduce_result=sink.out_type), accumulator.arguments, sink.parameters]
    name = f"{accumulator.name}_of_nothing"
    return trace_kernel(name, body, arguments, _EMPTY_GROUP, exec_size="reduce_result.size")
