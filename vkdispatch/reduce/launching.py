"""Arguments and launches of reductions."""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families import values
from vkdispatch.families.kernels import buffers, take_zeros, trace_kernel
from vkdispatch.families.operands import (
    ArrayLike,
    Operand,
    OutputLike,
    Sink,
    parse_axes,
    parse_dtype,
    parse_operand,
    prepare_output,
)
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import PlanCache, device_facts
from vkdispatch.reduce import planning
from vkdispatch.reduce.accumulators import Accumulator, Mask, add_initial, fill_masked, parse_mask
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


# ---- The dtypes of results, which are those of NumPy, and what they require of the device ----------------


def is_whole(kind: dtype.DType) -> bool:
    """Whether the components of a dtype are integers."""
    return dtype.component_type(kind) in values.INTEGERS


def sum_type(function: str, kind: dtype.DType, requested: Any, context: Context) -> dtype.DType:
    """Return the dtype of a sum or product: integers of fewer bits become int64 or uint64."""
    chosen = values.sum_type(kind) if requested is None else parse_dtype(requested)
    check_conversion(function, kind, chosen)
    return require_support(function, kind, chosen, context, "vd.int32")


def mean_type(function: str, kind: dtype.DType, requested: Any, context: Context) -> dtype.DType:
    """Return the dtype of a mean: float64 of integers."""
    chosen = kind if requested is None else parse_dtype(requested)
    if requested is None and dtype.is_vector(kind) and is_whole(kind):
        chosen = dtype.to_vector(dtype.float64, kind.child_count)
    elif requested is None and (kind is dtype.bool_ or kind in values.INTEGERS):
        chosen = dtype.float64
    if dtype.component_type(chosen) not in values.FLOATS:
        raise ArgumentValueError(f"dtype: {function} has fractions; expected floats, got {chosen.name}")
    check_conversion(function, kind, chosen)
    return require_support(function, kind, chosen, context, "vd.float32")


def check_real(function: str, kind: dtype.DType, requested: Any) -> None:
    """Raise ValueError if a complex result of real numbers is requested."""
    chosen = kind if requested is None else parse_dtype(requested)
    if dtype.is_complex(chosen) and not dtype.is_complex(kind):
        raise ArgumentValueError(
            f"dtype: the {function} of {kind.name} is real; expected a float, got {chosen.name}"
        )


def index_type(function: str, kind: dtype.DType, requested: Any, context: Context) -> dtype.DType:
    """Return the dtype of positions and counts: int64, or the requested integer."""
    chosen = dtype.int64 if requested is None else parse_dtype(requested)
    if chosen not in values.INTEGERS:
        raise ArgumentValueError(f"dtype: {function} gives integers, got {chosen.name}")
    return require_support(function, kind, chosen, context, "vd.int32")


def require_support(
    function: str, kind: dtype.DType, chosen: dtype.DType, context: Context, instead: str
) -> dtype.DType:
    """Return a dtype. Raises NotImplementedError if a device cannot compute with it."""
    if (
        dtype.component_type(chosen) is dtype.float64
        and "shaderFloat64" not in device_facts(context).features
    ):
        if dtype.is_complex(chosen):
            instead = "vd.complex64"
        elif dtype.is_vector(chosen):
            instead = f"vd.{dtype.to_vector(dtype.float32, chosen.child_count).name}"
        wide = dtype.component_type(kind) is dtype.float64
        if wide and instead == "vd.int32":
            instead = "vd.float32"
        what = f"x: {kind.name} was passed; {function}" if wide else f"dtype: {function} of {kind.name}"
        device = context.device_infos[0].device_name
        hint = f"pass {instead.removeprefix('vd.')}" if wide else f"pass dtype={instead}"
        raise UnsupportedError(
            f"{what} gives {chosen.name}, and the device {device!r} has no float64; {hint}"
        )
    return chosen


def check_conversion(function: str, kind: dtype.DType, chosen: dtype.DType) -> None:
    """Raise ValueError if values of a dtype cannot be added up in another."""
    if kind is chosen:
        return
    shapes = [
        (dtype.is_vector(item), dtype.is_matrix(item), item.child_count if not dtype.is_complex(item) else 0)
        for item in (kind, chosen)
    ]
    loses = dtype.is_complex(kind) and not dtype.is_complex(chosen) and chosen is not dtype.bool_
    if shapes[0] != shapes[1] or loses:
        raise ArgumentValueError(f"dtype: {function} of {kind.name} cannot be {chosen.name}")


def real_type(kind: dtype.DType) -> dtype.DType:
    """Return the dtype of magnitudes."""
    return dtype.component_type(kind) if dtype.is_complex(kind) else kind


def require_order(function: str, kind: dtype.DType, *, numbers: bool = False) -> None:
    """Raise ValueError for dtypes without an order; with `numbers`, for vectors, too."""
    if dtype.is_matrix(kind) or (numbers and dtype.is_vector(kind)):
        raise ArgumentValueError(f"x: {kind.name} has no order, which {function} needs; map it to a number")


def require_numbers(function: str, kind: dtype.DType) -> None:
    """Raise ValueError for vectors and matrices."""
    if not (dtype.is_scalar(kind) or dtype.is_complex(kind)):
        raise ArgumentValueError(f"x: {function} takes numbers, got {kind.name}; map its elements to numbers")


def norm_type(kind: dtype.DType, requested: Any, context: Context) -> dtype.DType:
    """Return the dtype of a norm: that of magnitudes, float64 for integers, or the requested one."""
    real = real_type(kind)
    chosen = (
        (real if real in values.FLOATS else dtype.float64) if requested is None else parse_dtype(requested)
    )
    if chosen not in values.FLOATS:
        raise ArgumentValueError(f"dtype: norm has fractions; expected a float, got {chosen.name}")
    return require_support("norm", kind, chosen, context, "vd.float32")


def common_type(a: dtype.DType, b: dtype.DType) -> dtype.DType:
    """Return the dtype of products of two dtypes, by NumPy's rules."""
    if a is b:
        return a
    if dtype.complex32 in (a, b) or dtype.bfloat16 in (a, b):
        raise ArgumentValueError(f"a, b: {a.name} and {b.name} have no common dtype; map one to the other")
    return dtype.from_numpy_dtype(np.result_type(dtype.to_numpy_dtype(a), dtype.to_numpy_dtype(b)))


# ---- Arguments that the reductions share -----------------------------------------------------------------


# Elements of a result from which on places and counts need more than 32 bits.
_MANY = 1 << 32


def parse_call(
    x: ArrayLike,
    axis: int | Sequence[int] | None,
    out: Buffer[Any] | None,
    keepdims: bool,
    output_map: OutputLike,
    graph: CommandGraph | None,
) -> tuple[Operand, Call]:
    """Return the array and the other arguments of a call."""
    array = parse_operand(x)
    axes = parse_axes(axis, len(array.shape))
    return array, Call(axes, bool(keepdims), out, output_map, graph)


def apply_mask(array: Operand, x: ArrayLike, where: Mask, otherwise: Any) -> Operand:
    """Return an array in which the number `otherwise` replaces the elements that do not count."""
    mask = parse_mask(where, x)
    return array if mask is None else parse_operand(fill_masked(x, mask, otherwise))


def reduce_from(
    array: Operand, accumulator: Accumulator, call: Call, initial: Any, kind: dtype.DType
) -> Buffer[Any]:
    """Reduce an array, starting with the number `initial`, of the type `kind`, if it is not None."""
    if initial is None:
        return reduce_array(array, accumulator, call)
    first = _parse_initial(initial, kind)
    return reduce_array(
        array, add_initial(accumulator, dtype.uint32 if kind is dtype.bool_ else kind), call, (first,)
    )


def _parse_initial(value: Any, kind: dtype.DType) -> Any:
    if hasattr(value, "item") and not isinstance(value, Buffer):
        value = value.item()
    has_components = dtype.is_vector(kind) or dtype.is_matrix(kind)
    if has_components or not isinstance(value, (bool, int, float, complex)):
        raise ArgumentTypeError(f"initial: expected a number for {kind.name}, got {value!r}")
    if dtype.is_complex(kind):
        return complex(value)
    if isinstance(value, complex):
        raise ArgumentTypeError(f"initial: expected a real number for {kind.name}, got {value!r}")
    if dtype.component_type(kind) in (dtype.float32, dtype.float64):
        return float(value)
    if int(value) != value:
        raise ArgumentValueError(f"initial: expected a whole number for {kind.name}, got {value!r}")
    return int(value)


def check_not_empty(array: Operand, call: Call, message: str) -> None:
    """Raise ValueError if there are results but no elements for them."""
    if call.length(array.shape) == 0 and _count_results(array, call):
        raise ArgumentValueError(f"x: {message}")


def _count_results(array: Operand, call: Call) -> int:
    return math.prod(call.shape(array.shape))


def count_or_warn(array: Operand, call: Call, warning: str, most: float) -> int:
    """Return how many elements make a result, and warn if they are `most` or fewer.

    To be called by the decorated function itself: the warning names the line that called that.
    """
    count = call.length(array.shape)
    if count <= most and _count_results(array, call):
        native.forbid_repeating()  # each call warns
        # the caller of `vd.mean` and the like
        warnings.warn(warning, RuntimeWarning, stacklevel=7)
    return count


def choose_index_type(array: Operand, call: Call) -> dtype.DType:
    """Return the type that holds the place of an element among those of a result."""
    return dtype.uint32 if call.length(array.shape) < _MANY else dtype.uint64
