"""Evaluation of mapped arrays into buffers."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.calls import array_function
from vkdispatch.arrays.kernels import buffer, trace_kernel
from vkdispatch.arrays.maps.operand import parse_operand
from vkdispatch.arrays.maps.output import parse_output
from vkdispatch.arrays.maps.source import Source
from vkdispatch.arrays.memoize import memoize
from vkdispatch.arrays.results import prepare_result
from vkdispatch.base.buffer import Buffer
from vkdispatch.shader.map import MappedArray, MappingFunction, OutputMap, evaluate_with, map, mapped_index
from vkdispatch.shader.shader_function import ShaderFunction

__all__ = ["MappedArray", "MappingFunction", "OutputMap", "map", "mapped_index"]

_GROUP = 256


@array_function
def asbuffer(array: MappedArray) -> Buffer[Any]:
    """Return a buffer of the values of a mapped array, which one kernel computes at once or in a graph."""
    values = parse_operand(array, "array")
    buffer = prepare_result(None, values.shape, values.var_type, values.context)
    if buffer.size:
        _make_store_kernel(values.source.elementwise())(buffer, *values.arguments)
    return buffer


evaluate_with(asbuffer)


@memoize
def _make_store_kernel(source: Source) -> ShaderFunction:
    sink = parse_output(None, source.out_type).sink

    def body(result: vc.BufferVariable, *variables: Any) -> None:
        index = vc.global_invocation_id().x
        sink.store(result, (), index, source.value(variables, index))

    arguments = [
        ("result", buffer[source.out_type]),
        *source.parameters,
    ]
    return trace_kernel(f"evaluate_{source.mapping.name}", body, arguments, _GROUP, exec_size="result.size")
