"""Maps called with their arguments, as buffers of what they give."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.calls import array_function
from vkdispatch.arrays.kernels import buffer, traced
from vkdispatch.arrays.mapping import Source
from vkdispatch.arrays.operand import operand
from vkdispatch.arrays.output import output
from vkdispatch.arrays.remembering import remembered
from vkdispatch.arrays.results import result
from vkdispatch.base.buffer import Buffer
from vkdispatch.shader.map import MappedArray, MappingFunction, OutputMap, evaluate_with, map, mapped_index
from vkdispatch.shader.shader_function import ShaderFunction

__all__ = ["MappedArray", "MappingFunction", "OutputMap", "map", "mapped_index"]

_GROUP = 256


@array_function
def asbuffer(array: MappedArray) -> Buffer[Any]:
    """Return a buffer of what a map gives: one kernel, recorded where a global graph is set."""
    values = operand(array, "array")
    buffer = result(None, values.shape, values.var_type, values.context)
    if buffer.size:
        _storing(values.source.elementwise())(buffer, *values.arguments)
    return buffer


evaluate_with(asbuffer)


@remembered
def _storing(source: Source) -> ShaderFunction:
    sink = output(None, source.out_type).sink

    def body(result: Any, *variables: Any) -> None:
        index = vc.global_invocation_id().x
        sink.store(result, (), index, source.value(variables, index))

    arguments = [
        ("result", buffer[source.out_type]),
        *source.parameters,
    ]
    return traced(f"evaluate_{source.mapping.name}", body, arguments, _GROUP, exec_size="result.size")
