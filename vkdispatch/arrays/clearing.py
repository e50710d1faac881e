"""Zeros written to buffers on the device."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import buffer, trace_kernel
from vkdispatch.arrays.memoize import memoize
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, uint32
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.shader.shader_function import ShaderFunction

_GROUP = 256


def clear_buffer(buffer: Buffer[Any], graph: CommandGraph | None) -> None:
    """Fill a buffer of numbers with zeros: as words of 32 bits unless elements are smaller."""
    size = buffer.var_type.item_size
    if size % 4 == 0:
        _make_clear_kernel(uint32)(buffer, graph=graph, exec_size=buffer.size * size // 4)
    else:
        _make_clear_kernel(buffer.var_type)(buffer, graph=graph, exec_size=buffer.size)


@memoize
def _make_clear_kernel(kind: DType) -> ShaderFunction:
    def clear(words: vc.BufferVariable) -> None:
        words[vc.global_invocation_id().x] = vc.to_dtype(kind, 0)

    return trace_kernel(
        f"clear_{kind.name}", clear, [("words", buffer[kind])], _GROUP, exec_size="words.size"
    )
