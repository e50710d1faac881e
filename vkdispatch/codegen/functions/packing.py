"""Several small values in one word, and back."""

from collections.abc import Callable
from typing import Any

from vkdispatch.base.dtype import (
    DType,
    bool_,
    float32,
    float64,
    int32,
    is_float_dtype,
    is_integer_dtype,
    is_scalar,
    is_vector,
    to_vector,
    uint32,
    uint64,
)
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.codegen.functions.bits import join_halves, split_halves
from vkdispatch.codegen.functions.elementwise import Operand
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import located

__all__ = [
    "pack_double2x32",
    "pack_half2x16",
    "pack_int4x8",
    "pack_snorm2x16",
    "pack_snorm4x8",
    "pack_uint2x32",
    "pack_uint4x8",
    "pack_uint8x8",
    "pack_unorm2x16",
    "pack_unorm4x8",
    "unpack_double2x32",
    "unpack_half2x16",
    "unpack_int4x8",
    "unpack_snorm2x16",
    "unpack_snorm4x8",
    "unpack_uint2x32",
    "unpack_uint4x8",
    "unpack_uint8x8",
    "unpack_unorm2x16",
    "unpack_unorm4x8",
]


def _make(name: str, glsl: str, source: DType, target: DType, doc: str) -> Callable[[Any], ShaderVariable]:
    def function(x: Operand) -> ShaderVariable:
        return ShaderVariable(ex.call(glsl, target, _parse_as(name, x, source)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _parse_as(name: str, x: Operand, kind: DType) -> Expr:
    """Return x as a value of `kind`. Raises TypeError for another shape, or a float instead of an integer."""
    if isinstance(x, ShaderVariable):
        value = x._value()
        alike = (is_scalar(value.dtype) and is_scalar(kind)) or (
            is_vector(value.dtype) and value.dtype.child_count == kind.child_count
        )
        if alike and value.dtype is not bool_ and (is_float_dtype(kind) or is_integer_dtype(value.dtype)):
            return ex.cast(value, kind)
        raise located(ArgumentTypeError, f"{name}: expected {kind.name}, got {value.dtype.name}")
    if is_scalar(kind) and (ex.is_integer_number(x) or (is_float_dtype(kind) and ex.is_number(x))):
        return ex.storable(x, kind)
    raise located(ArgumentTypeError, f"{name}: expected a GPU {kind.name}, got {x!r} ({type(x).__name__})")


_VEC2, _VEC4 = to_vector(float32, 2), to_vector(float32, 4)
_UVEC2, _UVEC4, _IVEC4 = to_vector(uint32, 2), to_vector(uint32, 4), to_vector(int32, 4)

pack_half2x16 = _make(
    "pack_half2x16", "packHalf2x16", _VEC2, uint32, "Pack a vec2 as two halves in a uint32."
)
unpack_half2x16 = _make(
    "unpack_half2x16", "unpackHalf2x16", uint32, _VEC2, "Unpack two halves in a uint32 as a vec2."
)
pack_unorm2x16 = _make(
    "pack_unorm2x16", "packUnorm2x16", _VEC2, uint32, "Pack a vec2 of [0, 1] as two 16-bit steps."
)
unpack_unorm2x16 = _make(
    "unpack_unorm2x16", "unpackUnorm2x16", uint32, _VEC2, "Unpack two 16-bit steps as a vec2 of [0, 1]."
)
pack_snorm2x16 = _make(
    "pack_snorm2x16",
    "packSnorm2x16",
    _VEC2,
    uint32,
    "Pack a vec2 of [-1, 1] as two 16-bit steps.",
)
unpack_snorm2x16 = _make(
    "unpack_snorm2x16", "unpackSnorm2x16", uint32, _VEC2, "Unpack two 16-bit steps as a vec2 of [-1, 1]."
)
pack_unorm4x8 = _make(
    "pack_unorm4x8", "packUnorm4x8", _VEC4, uint32, "Pack a vec4 of [0, 1] as four 8-bit steps in a uint32."
)
unpack_unorm4x8 = _make(
    "unpack_unorm4x8", "unpackUnorm4x8", uint32, _VEC4, "Unpack four 8-bit steps as a vec4 of [0, 1]."
)
pack_snorm4x8 = _make(
    "pack_snorm4x8", "packSnorm4x8", _VEC4, uint32, "Pack a vec4 of [-1, 1] as four 8-bit steps in a uint32."
)
unpack_snorm4x8 = _make(
    "unpack_snorm4x8", "unpackSnorm4x8", uint32, _VEC4, "Unpack four 8-bit steps as a vec4 of [-1, 1]."
)
pack_double2x32 = _make(
    "pack_double2x32",
    "packDouble2x32",
    _UVEC2,
    float64,
    "Make a float64 of two words, low half first.",
)
unpack_double2x32 = _make(
    "unpack_double2x32", "unpackDouble2x32", float64, _UVEC2, "Bits of a float64 as a uvec2, low half first."
)


def pack_uint2x32(x: Operand) -> ShaderVariable:
    """Make a uint64 of a uvec2, low half first."""
    value = _parse_as("pack_uint2x32", x, _UVEC2)
    return ShaderVariable(join_halves(ex.component(value, 0), ex.component(value, 1)))


def unpack_uint2x32(x: Operand) -> ShaderVariable:
    """Halves of a uint64 as a uvec2, low half first."""
    return ShaderVariable(ex.construct(_UVEC2, split_halves(_parse_as("unpack_uint2x32", x, uint64))))


def _bytes_of(value: Expr) -> Expr:
    """Lowest bytes of four integers, joined in a uint32."""
    total: Expr | None = None
    for i in range(4):
        byte = ex.bitwise("&", ex.cast(ex.component(value, i), uint32), 0xFF)
        total = byte if total is None else ex.bitwise("|", total, ex.bitwise("<<", byte, 8 * i))
    assert total is not None
    return total


def _cut_bytes(word: Expr) -> Expr:
    parts = [ex.bitwise("&", ex.bitwise(">>", word, 8 * i), 0xFF) for i in range(4)]
    return ex.construct(_UVEC4, parts)


def pack_uint4x8(x: Operand) -> ShaderVariable:
    """Lowest bytes of a uvec4 in a uint32, the first component lowest."""
    return ShaderVariable(_bytes_of(_parse_as("pack_uint4x8", x, _UVEC4)))


def unpack_uint4x8(x: Operand) -> ShaderVariable:
    """Bytes of a uint32 as a uvec4, the lowest first."""
    return ShaderVariable(_cut_bytes(_parse_as("unpack_uint4x8", x, uint32)))


def pack_int4x8(x: Operand) -> ShaderVariable:
    """Lowest bytes of an ivec4 in a uint32, the first component lowest."""
    return ShaderVariable(_bytes_of(_parse_as("pack_int4x8", x, _IVEC4)))


def unpack_int4x8(x: Operand) -> ShaderVariable:
    """Bytes of a uint32, with their signs, as an ivec4, the lowest first."""
    word = ex.cast(_parse_as("unpack_int4x8", x, uint32), int32)
    parts = [ex.bitwise(">>", ex.bitwise("<<", word, 24 - 8 * i), 24) for i in range(4)]
    return ShaderVariable(ex.construct(_IVEC4, parts))


def pack_uint8x8(low: Operand, high: Operand) -> ShaderVariable:
    """Lowest bytes of two uvec4 in a uint64, the first component of `low` lowest."""
    words = [_bytes_of(_parse_as("pack_uint8x8", value, _UVEC4)) for value in (low, high)]
    return ShaderVariable(join_halves(*words))


def unpack_uint8x8(x: Operand) -> tuple[ShaderVariable, ShaderVariable]:
    """Bytes of a uint64 as two uvec4, the lowest first."""
    low, high = split_halves(_parse_as("unpack_uint8x8", x, uint64))
    return ShaderVariable(_cut_bytes(low)), ShaderVariable(_cut_bytes(high))
