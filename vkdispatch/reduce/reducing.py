"""A reduction of an array on the device: planned for its shape, launched as one kernel or two."""

import math
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import traced
from vkdispatch.arrays.mapping import Source
from vkdispatch.arrays.operand import Operand
from vkdispatch.arrays.output import Sink, output
from vkdispatch.arrays.remembering import remembered
from vkdispatch.arrays.results import result
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.reduce import planning
from vkdispatch.reduce.accumulators import Accumulator
from vkdispatch.reduce.counters import Counters
from vkdispatch.reduce.kernels import stage_kernel
from vkdispatch.reduce.planning import KernelForm, Plan, Planner, Shape, shape_of
from vkdispatch.shader.observation import checks_of
from vkdispatch.shader.shader_function import ShaderFunction

_FILL_GROUP = 64
_MOST_PLANS = 1024


class _Held:
    """What there is for a context: counters, and plans."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.plans: dict[tuple[Any, ...], Plan] = {}


_held: WeakKeyDictionary[Context, _Held] = WeakKeyDictionary()


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
    sink = output(call.output_map, accumulator.out_type)
    shape = call.shape(x.shape)
    buffer = result(call.out, shape, sink.out_type, x.context)
    if buffer.size == 0:
        return buffer
    last = (*numbers, *sink.arguments)
    if x.size == 0:
        _filling(accumulator, sink.sink)(buffer, *last, graph=call.graph)
        return buffer
    held = _held.setdefault(x.context, _Held())
    plan = _planned(held, x, accumulator, shape_of(x.shape, call.axes))
    first = plan.first
    partials: list[Buffer[Any]] = []
    if plan.partials:
        partials = [Buffer(plan.partials, kind, context=x.context) for kind in accumulator.kinds]
    own = [buffer, *partials] if first.form.results_too else partials
    if first.form.finishing:
        own.append(held.counters.zeros(first.params.blocks))
    views = x.views if first.form.vector else ()
    kernel = _kernel(first.form, x.source, accumulator, sink.sink)
    sizes = first.params.checked()
    kernel(*own, *x.arguments, *views, *sizes, *(last if first.form.results_too else ()), graph=call.graph)
    if plan.second is not None:
        second = _kernel(plan.second.form, x.source, accumulator, sink.sink)
        second(buffer, *partials, *plan.second.params.checked(), *last, graph=call.graph)
    return buffer


def _planned(held: _Held, x: Operand, accumulator: Accumulator, shape: Shape) -> Plan:
    key = (x.source, accumulator, shape, planning.tuning, bool(checks_of(None)))
    plan = held.plans.get(key)
    if plan is None:
        plan = Planner(x.source, accumulator, x.context, None).plan(shape)
        while len(held.plans) >= _MOST_PLANS:
            held.plans.pop(next(iter(held.plans)), None)
        held.plans[key] = plan
    return plan


@remembered
def _kernel(form: KernelForm, source: Source, accumulator: Accumulator, sink: Sink) -> ShaderFunction:
    return stage_kernel(form, source, accumulator, sink)


@remembered
def _filling(accumulator: Accumulator, sink: Sink) -> ShaderFunction:
    """Return the kernel that stores results of no elements at all."""
    buffer: Any = vc.Buff
    constant: Any = vc.Const
    count = len(accumulator.parameters)

    def body(result: Any, *variables: Any) -> None:
        value = accumulator.finish(accumulator.start(), variables[:count])
        sink.store(result, variables[count:], vc.global_invocation_id().x, value)

    arguments = [
        ("reduce_result", buffer[sink.out_type]),
        *((f"reduce_{name}", constant[kind]) for name, kind in accumulator.parameters),
        *zip(sink.names, sink.annotations, strict=True),
    ]
    name = f"{accumulator.name}_of_nothing"
    return traced(name, body, arguments, _FILL_GROUP, exec_size="reduce_result.size")
