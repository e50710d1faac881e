"""Operands are evaluated into buffers: those whose maps may run only once for each element."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import traced
from vkdispatch.arrays.mapping import Source
from vkdispatch.arrays.operand import Operand, operand
from vkdispatch.arrays.remembering import remembered
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import compute_type
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.matrices.factors import PREFIX
from vkdispatch.shader.shader_function import ShaderFunction

_GROUP = 256


def packed(array: Operand, graph: CommandGraph | None) -> Operand:
    """Queue a launch that evaluates an operand, and return the buffer of its elements as one."""
    target: Buffer[Any] = Buffer(array.shape, array.var_type)
    packing_kernel(array.source.elementwise())(target, *array.arguments, graph=graph)
    return operand(target)


@remembered
def packing_kernel(source: Source) -> ShaderFunction:
    """Trace a kernel; its arguments are the buffer and those of the source."""
    buffer: Any = vc.Buff

    def body(target: Any, *arguments: Any) -> None:
        index = (vc.workgroup_id().x * _GROUP + vc.local_invocation_index()).to_register("index")
        with vc.if_block(index < target.shape.w):
            value = source.value(arguments, index)
            narrow = compute_type(source.out_type)
            target[index] = value if value.var_type is narrow else value.to_dtype(narrow)

    target = f"{PREFIX}packed"
    named = [(target, buffer[source.out_type]), *zip(source.names, source.annotations, strict=True)]
    groups = f"-(-{target}.size // {_GROUP})"
    return traced("matmul_pack", body, named, _GROUP, workgroups=groups)
