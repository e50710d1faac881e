"""The smallest and the largest element of an array, in one pass, for the range of a histogram."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType, is_float_dtype, to_vector
from vkdispatch.codegen.arguments import buffer
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import read_queues
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.operands import Operand
from vkdispatch.families.sources import Source
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import wide_type
from vkdispatch.reduce.operations import ReduceOp
from vkdispatch.reduce.reduce_function import ReduceFunction
from vkdispatch.shader.map import MappingFunction, mapped_index
from vkdispatch.shader.shader_function import ShaderFunction

_LONG = (dtype.int64, dtype.uint64)


def _smaller(a: Any, b: Any) -> Any:
    """Return the smaller of two values; NaN if one is NaN."""
    if not is_float_dtype(a.var_type):
        return vc.min(a, b)
    return vc.select(vc.isnan(a), a, vc.select(vc.isnan(b), b, vc.min(a, b)))


def _reverse_order(value: Any) -> Any:
    """Return a value so that comparisons are reversed. Applied twice, it returns the value."""
    return -value if is_float_dtype(value.var_type) else ~value


def _smaller_of_both(a: Any, b: Any) -> Any:
    x, y = a.to_register(), b.to_register()
    return vc.to_dtype(x.var_type, _smaller(x.x, y.x), _smaller(x.y, y.y))


_SMALLEST = ReduceOp("smallest", _smaller_of_both, "inf")
_SMALLER = ReduceOp("smaller", vc.min, "inf")


def find_extremes(x: Operand, graph: CommandGraph | None) -> Buffer[Any]:
    """Return a buffer with the extremes, for `read_extremes` or a kernel.

    It has the smallest element, and the largest one with its order reversed (negated; integers with all bits
    flipped). They are the two components of one element; for 64-bit integers, two elements. Both are NaN if
    there is a NaN.
    """
    reductions = [reduction.reduce_operand(x, graph) for reduction in _reductions(x.source)]
    if len(reductions) == 1:
        return reductions[0]
    both: Buffer[Any] = function_buffer(2, reductions[0].var_type, context=x.context)
    _make_join_kernel(both.var_type)(both, *reductions, graph=graph)
    return both


@memoize
def _make_join_kernel(kind: DType) -> ShaderFunction:
    """Return the kernel that copies two numbers to one buffer, so that one read is enough."""

    def trace(both: Any, low: Any, high: Any) -> None:
        both[0] = low[0]
        both[1] = high[0]

    return trace_kernel(
        "both_extremes", trace, [(name, buffer[kind]) for name in ("both", "low", "high")], 1, 1
    )


def read_extremes(extremes: Buffer[Any], kind: DType) -> list[tuple[Any, Any]]:
    """Wait for the extremes on each queue, and return them as NumPy scalars of `wide_type(kind)`."""
    is_float = is_float_dtype(wide_type(kind))
    pairs = [pair.ravel() for pair in read_queues(extremes)]
    return [(low, -high if is_float else ~high) for low, high in pairs]


@memoize
def _reductions(source: Source) -> tuple[ReduceFunction, ...]:
    kind = wide_type(source.out_type)
    if kind is dtype.bool_:
        kind = dtype.uint32

    def element(variables: Any) -> Any:
        value = source.elementwise().value(variables, mapped_index())
        return vc.select(value, 1, 0) if value.var_type is dtype.bool_ else value

    def low(*variables: Any) -> Any:
        return element(variables)

    def high(*variables: Any) -> Any:
        return _reverse_order(element(variables))

    def both(*variables: Any) -> Any:
        value = element(variables).to_register()
        return vc.to_dtype(to_vector(kind, 2), value, _reverse_order(value))

    if kind in _LONG:
        return tuple(_reduction(_SMALLER, source, kind, each) for each in (low, high))
    return (_reduction(_SMALLEST, source, to_vector(kind, 2), both),)


def _reduction(operation: ReduceOp, source: Source, kind: DType, function: Any) -> ReduceFunction:
    return ReduceFunction(
        operation, None, None, MappingFunction(list(source.annotations), kind, function), name="extremes"
    )
