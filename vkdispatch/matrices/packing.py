"""Operands are evaluated into buffers.

Those whose maps may run only once for each element become buffers of the same shape; halves for cooperative
matrices become rows of whole words of 16 bytes, with zeros where there is no element.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import traced
from vkdispatch.arrays.mapping import Source
from vkdispatch.arrays.operand import Operand, operand
from vkdispatch.arrays.remembering import remembered
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, compute_type, float16, float32, uint32, uvec4
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.matrices.arithmetic import as_factor, zero
from vkdispatch.matrices.cooperative import WORD
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


def words_of(
    array: Operand, kind: DType, matrices: int, height: int, width: int, graph: CommandGraph | None
) -> Buffer[Any]:
    """Return the matrices of an operand with rows of whole words: as they lie in memory, or copied.

    Parameters
    ----------
    kind
        float16 or bfloat16.
    height, width
        Rows and columns in memory.
    """
    pitch = -(-width // WORD)
    if array.source.plain and width % WORD == 0:
        buffer: Buffer[Any] = array.arguments[0]
        return buffer
    target: Buffer[Any] = Buffer((matrices, height, pitch), uvec4)
    words_kernel(array.source.elementwise(), kind)(target, width, pitch, *array.arguments, graph=graph)
    return target


@remembered
def words_kernel(source: Source, kind: DType) -> ShaderFunction:
    """Trace a kernel; its arguments are the words, two sizes and those of the source."""
    buffer: Any = vc.Buff
    constant: Any = vc.Const

    def body(target: Any, width: Any, pitch: Any, *arguments: Any) -> None:
        word = (vc.workgroup_id().x * _GROUP + vc.local_invocation_index()).to_register("word")
        with vc.if_block(word < target.shape.w):
            column = ((word % pitch) * WORD).to_register("column")
            start = ((word // pitch) * width).to_register("start")
            halves = [zero(float32).to_register() for _ in range(WORD)]
            for i, half in enumerate(halves):
                with vc.if_block(column + i < width):
                    half[:] = as_factor(source.value(arguments, start + (column + i)), float32)
            pairs = [_pair(kind, halves[i], halves[i + 1]) for i in range(0, WORD, 2)]
            target[word] = vc.to_uvec4(*pairs)

    target = f"{PREFIX}words"
    named = [
        (target, buffer[uvec4]),
        *((PREFIX + name, constant[uint32]) for name in ("width", "pitch")),
        *zip(source.names, source.annotations, strict=True),
    ]
    groups = f"-(-{target}.size // {_GROUP})"
    return traced(f"matmul_words_{kind.name}", body, named, _GROUP, workgroups=groups)


def _pair(kind: DType, low: Any, high: Any) -> Any:
    """Return two halves in 32 bits; bfloat16 are exact already."""
    if kind is float16:
        return vc.pack_half2x16(vc.to_vec2(low, high))
    return (vc.float_bits_to_uint(low) >> 16) | (vc.float_bits_to_uint(high) & 0xFFFF0000)
