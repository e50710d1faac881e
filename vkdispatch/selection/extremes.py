"""The smallest and the largest element of an array, in one pass: where histograms begin and end."""

from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.arrays.elements import wide_type
from vkdispatch.arrays.mapping import Source
from vkdispatch.arrays.operand import Operand
from vkdispatch.arrays.remembering import remembered
from vkdispatch.arrays.waiting import read_queues
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, is_float_dtype, to_vector
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.reduce.operations import ReduceOp
from vkdispatch.reduce.reduce_function import ReduceFunction
from vkdispatch.shader.map import MappingFunction, mapped_index

_LONG = (dtype.int64, dtype.uint64)


def _smaller(a: Any, b: Any) -> Any:
    """Return the smaller of two values; NaN if one is NaN."""
    if not is_float_dtype(a.var_type):
        return vc.min(a, b)
    return vc.select(vc.isnan(a), a, vc.select(vc.isnan(b), b, vc.min(a, b)))


def _reversed(value: Any) -> Any:
    """Return a value whose order is the other way round; there and back."""
    return -value if is_float_dtype(value.var_type) else ~value


def _both(a: Any, b: Any) -> Any:
    x, y = a.to_register(), b.to_register()
    return vc.to_dtype(x.var_type, _smaller(x.x, y.x), _smaller(x.y, y.y))


_SMALLEST = ReduceOp("smallest", _both, "inf")
_SMALLER = ReduceOp("smaller", vc.min, "inf")


def extremes(x: Operand, graph: CommandGraph | None) -> tuple[Buffer[Any], ...]:
    """Return what `extremes_read`, or a kernel, finds the extremes in.

    That is the smallest element, and the largest one with its order reversed (negated; of integers, with all
    bits flipped), as the two components of one element; of 64-bit integers as two buffers. NaN where there is
    one.
    """
    return tuple(reduction(*x.arguments, graph=graph) for reduction in _reductions(x.source))


def extremes_read(found: tuple[Buffer[Any], ...], kind: DType) -> list[tuple[Any, Any]]:
    """Wait for the extremes of each queue, and return them as NumPy's scalars of `wide_type(kind)`."""
    queues = zip(*(read_queues(each) for each in found), strict=True)
    pairs = [np.concatenate([part.ravel() for part in parts]) for parts in queues]
    is_float = is_float_dtype(wide_type(kind))
    return [(low, -high if is_float else ~high) for low, high in pairs]


@remembered
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
        return _reversed(element(variables))

    def both(*variables: Any) -> Any:
        value = element(variables).to_register()
        return vc.to_dtype(to_vector(kind, 2), value, _reversed(value))

    if kind in _LONG:
        return tuple(_reduction(_SMALLER, source, kind, each) for each in (low, high))
    return (_reduction(_SMALLEST, source, to_vector(kind, 2), both),)


def _reduction(operation: ReduceOp, source: Source, kind: DType, function: Any) -> ReduceFunction:
    return ReduceFunction(
        operation, None, None, MappingFunction(list(source.annotations), kind, function), name="extremes"
    )
