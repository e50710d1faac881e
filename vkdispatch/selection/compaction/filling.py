"""Filling: the places of a result of a fixed size after its last element get a value."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, compute_type, is_matrix, is_vector
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.tuning import memoize
from vkdispatch.selection.tuning import tuning
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.rearranging import copied_type

_GROUP = 256


def fill_rest(result: Buffer[Any], starts: Buffer[Any], value: Any, graph: CommandGraph | None) -> None:
    """Fill the places after the last element with a number: all components of vectors and matrices."""
    kind = result.var_type
    if is_vector(kind):
        value = [value] * kind.child_count
    elif is_matrix(kind):
        value = [[value] * kind.child_count] * kind.child_count
    _make_fill_kernel(kind)(result, starts, value, count_fill_groups(result.size), graph=graph)


@memoize
def _make_fill_kernel(kind: DType) -> ShaderFunction:
    def trace(result: Any, starts: Any, value: Any, groups: Any) -> None:
        with each_free_place(result, starts, groups) as index:
            result[index] = value

    arguments = [
        ("result", buffer[kind]),
        ("starts", buffer[dtype.uint32]),
        ("fill_value", constant[compute_type(kind)]),
        ("fill_groups", constant[dtype.uint32]),
    ]
    return trace_kernel("fill_rest", trace, arguments, _GROUP, "fill_groups")


def fill_with_first(values: Buffer[Any], starts: Buffer[Any], graph: CommandGraph | None) -> None:
    """Fill the places after the last element with the first element."""
    kernel = _make_fill_with_first_kernel(copied_type(values.var_type))
    kernel(values, starts, count_fill_groups(values.size), graph=graph)


@memoize
def _make_fill_with_first_kernel(kind: DType) -> ShaderFunction:
    def trace(values: Any, starts: Any, groups: Any) -> None:
        first = values[0].to_register()
        with each_free_place(values, starts, groups) as index:
            values[index] = first

    arguments = [
        ("values", buffer[kind]),
        ("starts", buffer[dtype.uint32]),
        ("fill_groups", constant[dtype.uint32]),
    ]
    return trace_kernel("unique_rest", trace, arguments, _GROUP, "fill_groups")


def count_fill_groups(size: int) -> int:
    """Return how many workgroups fill places. Few places are usually left, so each may have many."""
    return -(-size // (_GROUP * tuning.fill_each))


def each_free_place(result: Any, starts: Any, groups: Any) -> Any:
    """Return a loop over the places after the last element that belong to an invocation, in a trace."""
    first = starts[starts.shape.w - 1].to_register("fill_first")
    begin = first + (vc.workgroup_id().x * _GROUP + vc.local_invocation_id().x)
    return vc.for_block(begin, result.shape.w, groups * _GROUP)
