"""Operands evaluated into buffers.

Maps that write run once for each element, so they are evaluated into buffers of the same shape. Halves for
cooperative matrices become rows of whole words of 16 bytes, padded with zeros.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType, compute_type, float16, float32, int32, uint32, uvec4
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.operands import Operand, parse_operand
from vkdispatch.families.sources import Source
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import convert_value
from vkdispatch.matrices.arithmetic import make_zero
from vkdispatch.matrices.cooperative import WORD
from vkdispatch.matrices.factors import PREFIX
from vkdispatch.shader.shader_function import ShaderFunction

_GROUP = 256
_MOST_WORDS = 0xFFFFFFFF


def evaluate(array: Operand, graph: CommandGraph | None) -> Operand:
    """Queue a launch that evaluates an operand into a buffer, and return this as an operand."""
    target: Buffer[Any] = function_buffer(array.shape, array.var_type)
    make_packing_kernel(array.source.elementwise())(target, *array.arguments, graph=graph)
    return parse_operand(target)


@memoize
def make_packing_kernel(source: Source) -> ShaderFunction:
    """Trace a kernel; its arguments are the buffer and those of the source."""

    def body(target: Any, *arguments: Any) -> None:
        index = (vc.workgroup_id().x * _GROUP + vc.local_invocation_index()).to_register("index")
        with vc.if_block(index.to_dtype(int32) < target.shape.w):
            value = source.value(arguments, index)
            narrow = compute_type(source.out_type)
            target[index] = value if value.var_type is narrow else value.to_dtype(narrow)

    target = f"{PREFIX}packed"
    named = [(target, buffer[source.out_type]), *source.parameters]
    groups = f"-(-{target}.size // {_GROUP})"
    return trace_kernel("matmul_pack", body, named, _GROUP, workgroups=groups)


def has_words(array: Operand, width: int) -> bool:
    """Whether rows of `width` halves are whole words in memory."""
    return array.source.is_plain and width % WORD == 0


def words_across(width: int) -> int:
    """Return the number of words of a row of `width` halves."""
    return -(-width // WORD)


def queue_words(
    array: Operand, kind: DType, count: int, width: int, target: Buffer[Any], graph: CommandGraph | None
) -> None:
    """Queue a launch that copies rows of halves into rows of whole words.

    Parameters
    ----------
    kind
        float16 or bfloat16.
    count, width
        Words in all, and elements of a row.
    target
        A buffer for at least `count` words.
    """
    if count > _MOST_WORDS:
        raise ArgumentValueError("matmul: an operand that must be copied has more than 2**35 elements")
    kernel = make_words_kernel(array.source.elementwise(), kind)
    kernel(target, count, width, words_across(width), *array.arguments, graph=graph)


@memoize
def make_words_kernel(source: Source, kind: DType) -> ShaderFunction:
    """Trace a kernel; its arguments are the words, three sizes and those of the source."""

    def body(target: Any, count: Any, width: Any, pitch: Any, *arguments: Any) -> None:
        word = (vc.workgroup_id().x * _GROUP + vc.local_invocation_index()).to_register("word")
        with vc.if_block(word < count):
            column = ((word % pitch) * WORD).to_register("column")
            start = ((word // pitch) * width).to_register("start")
            halves = [vc.new_register(float32) for _ in range(WORD)]
            for i, half in enumerate(halves):
                place = vc.min(column + i, width - 1)
                value = convert_value(source.value(arguments, start + place), float32)
                half[:] = vc.select(column + i < width, value, make_zero(float32))
            pairs = [_pack_pair(kind, halves[i], halves[i + 1]) for i in range(0, WORD, 2)]
            target[word] = vc.to_uvec4(*pairs)

    target = f"{PREFIX}words"
    named = [
        (target, buffer[uvec4]),
        *((PREFIX + name, constant[uint32]) for name in ("count", "width", "pitch")),
        *source.parameters,
    ]
    groups = f"-(-{PREFIX}count // {_GROUP})"
    return trace_kernel(f"matmul_words_{kind.name}", body, named, _GROUP, workgroups=groups)


def _pack_pair(kind: DType, low: Any, high: Any) -> Any:
    """Return two halves in 32 bits; a bfloat16 is an exact float32 already."""
    if kind is float16:
        return vc.pack_half2x16(vc.to_vec2(low, high))
    return (vc.float_bits_to_uint(low) >> 16) | (vc.float_bits_to_uint(high) & 0xFFFF0000)
