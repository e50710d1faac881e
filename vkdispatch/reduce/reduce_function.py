"""Reductions that can be called, and the decorators that make them."""

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.buffers.foreign import replace_arrays, replace_foreign
from vkdispatch.base.context import Context, context_of, get_context, is_current, use_context, wrong_context
from vkdispatch.base.dtype import DType, is_complex, is_float_dtype, is_scalar, is_signed_dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError, VkDispatchError
from vkdispatch.base.init import is_dummy
from vkdispatch.base.process import as_int
from vkdispatch.base.sharing.cuda_link import end_visits
from vkdispatch.base.sharing.dlpack import suggest_conversion
from vkdispatch.codegen.annotations import is_buffer
from vkdispatch.codegen.description import ShaderSource
from vkdispatch.codegen.trace.current import is_tracing
from vkdispatch.compiler.ir.location import warn, without_warnings
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import is_recorded
from vkdispatch.families.kernels import buffers, trace_kernel
from vkdispatch.families.operands import Operand, check_overlap, lacks_elements, plain_output
from vkdispatch.families.sources import Source, identity_map, make_source
from vkdispatch.families.tuning import device_facts
from vkdispatch.families.values import wide_type
from vkdispatch.reduce.accumulators import (
    Accumulator,
    ReduceOp,
    check_identity,
    check_operation,
    find_identity,
    is_predefined,
    make_accumulator,
    make_number,
)
from vkdispatch.reduce.kernels import make_stage_kernel
from vkdispatch.reduce.launching import Launches, find_launches, launch, plan_launches
from vkdispatch.reduce.planning import Planner, find_shape, gather_axes, make_planner, read_axes
from vkdispatch.shader.arguments import WrongBufferError, parse_elements
from vkdispatch.shader.dependencies import Edition
from vkdispatch.shader.map import MappedArray, MappingFunction, map
from vkdispatch.shader.pickling import Home, Referenced, find_home
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import describe, read_return_type

# ---- Warnings about operations of users that do not combine values as a reduction needs it ---------------


# Three values to combine: results are small, and exact or nearly so.
_TRIPLES = ((1, 2, 3), (5, 3, 2), (2, 7, 4))
_TOLERANCE = 1e-3


def check_combination(name: str, operation: ReduceOp, kind: DType) -> None:
    """Warn if a user's function is not associative, or swallows values that it combines with the identity.

    It is tried on a few numbers, by NumPy.
    """
    wide = wide_type(kind)
    if is_predefined(operation) or not is_scalar(kind) or is_complex(kind):
        return
    if str(getattr(operation.reduction, "__module__", "")).partition(".")[0] == "vkdispatch":
        return
    try:
        with without_warnings():
            left, right, alone, identity = _try_numbers(operation, kind, wide)
    except (VkDispatchError, ArithmeticError, TypeError, ValueError):
        return  # a call will say what is wrong
    for (a, b, c), first, second in zip(_TRIPLES, left, right, strict=True):
        if not math.isclose(first, second, rel_tol=_TOLERANCE):
            warn(
                f"reduction {name!r}: the function is not associative: of {a}, {b}, {c} it makes {first:g} "
                f"if it combines {a} and {b} first, but {second:g} if it combines {b} and {c} first; the "
                "device combines values in an order of its own"
            )
            return
    for sign in (1, -1):
        values = [sign * triple[0] for triple in _TRIPLES]
        results = alone[sign]
        if results and all(result == identity for result in results) and identity not in values:
            warn(
                f"reduction {name!r}: {identity:g} is no identity of the function: it makes "
                f"{results[0]:g} of {identity:g} and {values[0]:g}; give the number that changes nothing, "
                "such as 1 for a product, '-inf' for a maximum, 'inf' for a minimum"
            )
            return


def _try_numbers(
    operation: ReduceOp, kind: DType, wide: DType
) -> tuple[list[float], list[float], dict[int, list[float]], float]:
    """Combine the triples from the left and from the right, and numbers of both signs with the identity."""
    combine, identity = operation.reduction, find_identity(operation, kind)
    signed = is_float_dtype(wide) or is_signed_dtype(wide)

    def body(out: Any, given: Any) -> None:
        i = vc.global_invocation_id().x
        a, b, c = (given[i, column].to_register() for column in range(3))
        start = make_number(identity, wide).to_register()
        for place, value in enumerate(
            (
                combine(combine(a, b), c),
                combine(a, combine(b, c)),
                combine(start, a),
                combine(start, -a if signed else a),
            )
        ):
            out[i, place] = value

    count, host = len(_TRIPLES), np.float64 if is_float_dtype(wide) else np.int64
    kernel = trace_kernel("try", body, buffers(out=wide, given=wide), count, exec_size=count)
    given = np.array(_TRIPLES).astype(_numpy_type(wide))
    out = np.zeros((count, 4), given.dtype)
    with np.errstate(all="ignore"):
        kernel.interpret(out, given)
    left, right, positive, negative = (column.tolist() for column in out.astype(host).T)
    return left, right, {1: positive, -1: negative if signed else []}, float(identity)


def _numpy_type(kind: DType) -> Any:
    return np.dtype(kind.name)


# ---- Reductions that can be called, planned for the shape of the buffer ----------------------------------


class ReduceFunction(Referenced):
    """A reduction. A call queues the work, or records it into a graph, and returns the buffer of the result.

    It is pickled by module and name, like Python functions, or by value if it has no importable name.

    Attributes
    ----------
    reduction
        How two values are combined.
    out_type
        The dtype of the result.
    group_size
        Invocations of a workgroup; None until the stages are made, unless it was passed.
    map_func
        The mapping function that returns a value for each element; None for the elements themselves.
    input_types
        Annotations of the arguments.
    axes
        The reduced axes as given; None for all.
    stage1, stage2
        The kernels that reduce a large buffer to one value; None until made.
    """

    _defined: Home | None = None

    def _home(self) -> Home | None:
        return self._defined

    def _describe(self) -> str:
        return f"reduction {self.name!r}"

    def _get_state(self) -> tuple[Any, ...]:
        mapping = self.out_type if self._plain else self._mapping
        return self.reduction, self._given_group, self.axes, mapping, self.name, self._defined

    def _set_state(self, *state: Any) -> None:
        reduction, group, axes, mapping, name, self._defined = state
        plain = not isinstance(mapping, MappingFunction)
        made = identity_map(mapping) if plain else mapping
        ReduceFunction.__init__(self, reduction, group, axes, made, name=name, plain=plain)

    def __init__(
        self,
        reduction: ReduceOp,
        group_size: int | None = None,
        axes: int | Sequence[int] | None = None,
        mapping_function: MappingFunction | None = None,
        *,
        name: str | None = None,
        plain: bool = False,
    ) -> None:
        """Prepare a reduction without a device.

        Parameters
        ----------
        mapping_function
            Returns a value for each element; its return type is that of the result.
        name
            The name in messages.
        plain
            Whether the mapping function returns the elements of its buffer unchanged.

        Raises
        ------
        TypeError, ValueError
            An argument is invalid, or the operation makes no sense for the dtype.
        """
        if not isinstance(reduction, ReduceOp):
            raise ArgumentTypeError(
                f"reduction: expected a ReduceOp such as vd.reduce.SubgroupAdd, got {reduction!r}"
            )
        if not isinstance(mapping_function, MappingFunction):
            raise ArgumentTypeError(
                f"mapping_function: expected a vd.map(...), which has the result's dtype, got "
                f"{mapping_function!r}"
            )
        if mapping_function.return_type is None:
            raise ArgumentValueError(
                "mapping_function: it needs a return annotation, such as -> f32: the dtype of the result"
            )
        if group_size is not None and (as_int(group_size) or 0) < 1:
            raise ArgumentValueError(f"group_size: expected a positive int, got {group_size!r}")
        self.reduction = reduction
        self.out_type: DType = mapping_function.return_type
        check_operation(reduction, self.out_type)
        check_identity(reduction.identity, self.out_type)
        self.group_size = None if group_size is None else int(group_size)
        self._given_group = self.group_size
        self.map_func = None if plain else mapping_function
        self.input_types = mapping_function.buffer_types
        self.axes = axes
        self._axes = read_axes(axes)
        self.stage1: ShaderFunction | None = None
        self.stage2: ShaderFunction | None = None
        self.name = name or getattr(mapping_function.mapping_function, "__name__", "reduction")
        self._buffers = {
            position: f"{self.name}: argument {position + 1}"
            for position, annotation in enumerate(self.input_types)
            if is_buffer(annotation)
        }
        self._mapping = mapping_function
        self._plain = plain
        if 0 not in self._buffers:
            raise ArgumentValueError(
                f"{self.name}: its first argument must be a buffer, such as x: Buff[f32]: its elements are "
                "what is reduced"
            )
        self._edition = Edition(
            *(() if is_predefined(reduction) else (reduction.reduction,)),
            mapping_function.mapping_function,
            first=object(),
        )
        # A key for the caches of contexts, which would keep the function itself alive.
        self._key: Any = None
        self._source: Source | None = None
        self._accumulators: dict[frozenset[str], Accumulator] = {}

    # -- calling

    def __call__(self, *args: Any, graph: CommandGraph | None = None) -> Buffer[Any]:
        """Reduce the first buffer; returns at once.

        Parameters
        ----------
        *args
            The buffer, or an array, then the other arguments of the mapping function.
        graph
            The graph to record into; None means the thread's `vd.global_graph()`.

        Returns
        -------
        A new buffer of `out_type`. `result.read(0)[0]` is a number (a vector, a complex number), or an array
        with one for each position along the remaining axes, in C order.

        Raises
        ------
        TypeError, ValueError
            An argument is missing, unexpected or invalid, or the buffer lacks an axis.
        ShaderBuildError
            The kernel does not compile (first call).
        """
        if is_tracing():
            raise UsageError(f"{self.name}: a kernel cannot call a reduction; call it before, or after")
        args = self._take_arrays(args, graph)
        args = self._parse(args)
        self._follow()
        context = context_of(args)
        if context is not None and not is_current(context):
            if not context.usable:
                raise wrong_context(f"{self.name}: argument 1: the buffer", context)
            with use_context(context):
                return self(*args, graph=graph)
        return self._run(self._parse_operand(args), graph)

    def _run(self, x: Operand, graph: CommandGraph | None) -> Buffer[Any]:
        if x.source.is_writing:
            check_overlap((), elsewhere=[x])
        x, axes = gather_axes(x, self._axes)
        launches = self._find_launches(x, axes)
        self.group_size = launches.form.group
        shape = (1,) if launches.count == 1 else (1, launches.count)
        result: Buffer[Any] = function_buffer(shape, self.out_type)
        launch(launches, x, result, graph=graph)
        end_visits(result.context)
        self._edition.settle()
        return result

    def _follow(self) -> None:
        """Plan anew if what the functions read from outside has changed."""
        key = self._edition.find()
        if key is not self._key:
            self._source, self._accumulators, self._key = None, {}, key

    def _take_arrays(self, args: tuple[Any, ...], graph: CommandGraph | None) -> tuple[Any, ...]:
        """Return arguments with arrays as buffers, without a copy if they are of another library."""
        values = replace_arrays(args, is_recorded(graph)) or args
        names = {at: name for at, name in self._buffers.items() if at < len(values)}
        return replace_foreign(values, names) or values

    def _parse(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        if is_dummy():
            raise UsageError(f"{self.name}: kernels do not run on the dummy backend; see get_src()")
        if len(args) != len(self.input_types):
            names = ", ".join(Source(self._mapping, self._plain, self.out_type).names)
            few = len(args) < len(self.input_types)
            kind = ArgumentValueError if few else ArgumentTypeError
            raise kind(
                f"{self.name}: takes {len(self.input_types)} arguments ({names}) by position, got {len(args)}"
            )
        if not isinstance(args[0], Buffer):
            is_map = isinstance(args[0], MappedArray)
            instead = "give the reduction a mapping_function, or make one" if is_map else "make one"
            raise WrongBufferError(
                f"{self.name}: argument 1: expected a vd.Buffer, got {describe(args[0])}; {instead} with "
                f"{suggest_conversion(args[0])}"
            )
        pairs = enumerate(zip(self.input_types, args, strict=True), 1)
        return tuple(
            parse_elements(f"{self.name}: argument {position}", annotation, argument)
            for position, (annotation, argument) in pairs
        )

    # -- planning

    def _parse_operand(self, args: tuple[Any, ...]) -> Operand:
        x = args[0]
        source, size = self._source or self._make_source(), math.prod(x.shape)
        if lacks_elements(source, args, size):
            source = source.elementwise()
        return Operand(x.shape, size, x.var_type, x.context, source, args, str(self.name))

    def _make_source(self) -> Source:
        self._source = make_source(self._mapping, self.out_type, is_plain=self._plain)
        check_combination(str(self.name), self.reduction, self.out_type)
        return self._source

    def _find_launches(self, x: Operand, axes: tuple[int, ...] | None) -> Launches:
        key = (self._key, x.shape, axes is self._axes, len(x.source.views))
        return find_launches(x.context, key, lambda: self._plan(x, axes))

    def _plan(self, x: Operand, axes: tuple[int, ...] | None) -> Launches:
        accumulator, shape = self._find_accumulator(x.context), find_shape(x.shape, axes)
        planner = self._make_planner(x.source, x.context)
        return plan_launches(planner, shape, x.source, accumulator, plain_output(self.out_type).sink)

    def _make_planner(self, source: Source, context: Context) -> Planner:
        return make_planner(source, self._find_accumulator(context), context, self._given_group)

    def _find_accumulator(self, context: Context) -> Accumulator:
        features = device_facts(context).features
        accumulator = self._accumulators.get(features)
        if accumulator is None:
            made = make_accumulator(self.reduction, self.out_type, features)
            accumulator = self._accumulators.setdefault(features, made)
        return accumulator

    # -- the generated code

    def make_stages(self) -> None:
        """Make the kernels that reduce a large buffer to one value, if they do not exist yet.

        Raises
        ------
        TypeError, ValueError
            The mapping function or the operation is invalid, or the device has no workgroups of `group_size`.
        """
        self._follow()
        source, context = self._source or self._make_source(), get_context()
        planner = self._make_planner(source, context)
        accumulator, sink = self._find_accumulator(context), plain_output(self.out_type).sink
        self.stage1, self.stage2 = (
            make_stage_kernel(form, source, accumulator, sink) for form in planner.plan_large_forms()
        )
        self.group_size = planner.group

    def get_src(self, line_numbers: bool | None = None) -> list[ShaderSource]:
        """Return the GLSL of both stages of the reduction of a large buffer to one value.

        The second is launched only if the last workgroup of the first does not do its work.
        """
        self.make_stages()
        assert self.stage1 is not None and self.stage2 is not None
        return [self.stage1.get_src(line_numbers), self.stage2.get_src(line_numbers)]

    def print_src(self, line_numbers: bool | None = None) -> None:
        """Print the GLSL of both stages; see `get_src`."""
        for source in self.get_src(line_numbers):
            print(source)

    def __repr__(self) -> str:
        return "\n".join(builtins.map(repr, self.get_src()))


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
        Whether to return the second stage, which reduces the partial results of the first.
    map_func, input_types
        A mapping function, and annotations used instead of its own.
    """
    mapping = map_func or identity_map(out_type)
    if input_types is not None:
        mapping = MappingFunction(
            list(input_types),
            mapping.return_type,
            mapping.mapping_function,
            precise_math=mapping.precise_math,
        )
    source = make_source(mapping, out_type, is_plain=map_func is None)
    context = get_context()
    accumulator = make_accumulator(reduction, out_type, device_facts(context).features)
    first, second = make_planner(source, accumulator, context, group_size).plan_large_forms()
    form = second if output_is_input else first
    return make_stage_kernel(form, source, accumulator, plain_output(out_type).sink)


# ---- `@vd.reduce.reduce` and `@vd.reduce.map_reduce` -----------------------------------------------------


def reduce(
    identity: Any,
    axes: int | Sequence[int] | None = None,
    group_size: int | None = None,
    mapping_function: MappingFunction | None = None,
) -> Callable[[Callable[..., Any]], ReduceFunction]:
    """Turn the decorated function, which combines two values, into a reduction.

    Its return annotation is the dtype of the result. Values of fewer than 32 bits are combined in 32 bits
    (float16 in float32), and the result is stored as annotated. The order in which values are combined is
    fixed for a shape and a device, but unspecified: the function must be associative and commutative. The
    first call tries it on a few numbers, and warns if it is not associative, or if the identity is wrong.

    Parameters
    ----------
    identity
        The identity of the function, the number that does not change others. "inf" and "-inf" are infinities;
        for integers, the largest and the smallest number.
    axes
        The axes to reduce, negative ones from the end; None reduces all.
    group_size
        Invocations of a workgroup, a multiple of the subgroup size of the device; None chooses.
    mapping_function
        A `vd.map` that computes a value for each element; None means the elements themselves.

    Raises
    ------
    TypeError, ValueError
        The function has no return annotation, or a different one than the mapping function, or an argument
        is invalid.

    Examples
    --------
    >>> @vd.reduce.reduce(identity="-inf")
    ... def larger(a: f32, b: f32) -> f32:
    ...     return vc.max(a, b)
    >>> larger(vd.asbuffer(np.array([3, 9, 4], np.float32))).read(0)
    array([9.], dtype=float32)
    """

    def decorate(function: Callable[..., Any]) -> ReduceFunction:
        if not callable(function):
            raise ArgumentTypeError(f"@vd.reduce.reduce(...): expected a function, got {function!r}")
        name = getattr(function, "__name__", "reduction")
        kind = read_return_type(function, name)
        if mapping_function is None:
            mapping = identity_map(kind)
        elif not isinstance(mapping_function, MappingFunction):
            raise ArgumentTypeError(f"mapping_function: expected a vd.map(...), got {mapping_function!r}")
        elif mapping_function.return_type is not kind:
            mapped = mapping_function.return_type
            raise ArgumentValueError(
                f"mapping_function: it returns {mapped.name if mapped else 'nothing'}, but {name!r} combines "
                f"{kind.name}"
            )
        else:
            mapping = mapping_function
        operation = ReduceOp(name, function, identity)
        plain = mapping_function is None
        reduction_function = ReduceFunction(operation, group_size, axes, mapping, name=name, plain=plain)
        reduction_function._defined = find_home(function)
        return reduction_function

    if callable(identity) and not isinstance(identity, type):
        raise ArgumentTypeError(
            "@vd.reduce.reduce needs parentheses and an identity, such as @vd.reduce.reduce(0)"
        )
    return decorate


def map_reduce(
    reduction: ReduceOp, axes: int | Sequence[int] | None = None, group_size: int | None = None
) -> Callable[[Callable[..., Any] | MappingFunction], ReduceFunction]:
    """Turn the decorated function, which maps an element to a value, into a reduction of these values.

    Its parameters are annotated as for `vd.map`. The first one is a buffer, and the return annotation is the
    dtype of the result. `vd.reduce.mapped_io_index()` is the element's index in the first buffer.

    Parameters
    ----------
    reduction
        How values are combined, such as `vd.reduce.SubgroupAdd`.
    axes, group_size
        As for `reduce`.

    Raises
    ------
    TypeError, ValueError
        The function lacks an annotation, or an argument is invalid.

    Examples
    --------
    >>> @vd.reduce.map_reduce(vd.reduce.SubgroupAdd)
    ... def sum_of_squares(data: Buff[f32]) -> f32:
    ...     x = data[vd.reduce.mapped_io_index()]
    ...     return x * x
    >>> sum_of_squares(vd.asbuffer(np.array([1, 2, 3], np.float32))).read(0)
    array([14.], dtype=float32)
    """
    if not isinstance(reduction, ReduceOp):
        raise ArgumentTypeError(
            "@vd.reduce.map_reduce(...): expected a ReduceOp such as vd.reduce.SubgroupAdd, "
            f"got {reduction!r}"
        )

    def decorate(function: Callable[..., Any] | MappingFunction) -> ReduceFunction:
        mapping = function if isinstance(function, MappingFunction) else map(function)
        reduction_function = ReduceFunction(reduction, group_size, axes, mapping)
        reduction_function._defined = find_home(mapping.mapping_function)
        return reduction_function

    return decorate
