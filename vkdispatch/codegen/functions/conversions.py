"""Conversions between types, and raw GLSL as a value."""

from collections.abc import Callable
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.codegen.trace.operands import check_dtype, parse_components
from vkdispatch.codegen.trace.range_checks import check_conversion
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr, Op, RawText
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located

__all__ = [
    "str_to_dtype",
    "to_complex32",
    "to_complex64",
    "to_complex128",
    "to_dtype",
    "to_dvec2",
    "to_dvec3",
    "to_dvec4",
    "to_float",
    "to_float16",
    "to_float64",
    "to_hvec2",
    "to_hvec3",
    "to_hvec4",
    "to_ihvec2",
    "to_ihvec3",
    "to_ihvec4",
    "to_int",
    "to_int16",
    "to_int64",
    "to_ivec2",
    "to_ivec3",
    "to_ivec4",
    "to_mat2",
    "to_mat3",
    "to_mat4",
    "to_uhvec2",
    "to_uhvec3",
    "to_uhvec4",
    "to_uint",
    "to_uint16",
    "to_uint64",
    "to_uvec2",
    "to_uvec3",
    "to_uvec4",
    "to_vec2",
    "to_vec3",
    "to_vec4",
]

Conversion = Callable[..., ShaderVariable]


def to_dtype(var_type: DType, *args: Any) -> ShaderVariable:
    """Make a value of a type from GPU values and numbers: one to convert, or the components in order.

    Raises TypeError for arguments that are neither, ValueError for a wrong count of components.
    """
    check_dtype(var_type, "to_dtype")
    parts = parse_components(args, f"to_dtype({var_type.name})")
    for part in parts:
        if isinstance(part, Expr):
            check_conversion("to_dtype", part, var_type)
    return ShaderVariable(ex.construct(var_type, parts))


def str_to_dtype(
    var_type: DType,
    value: str,
    parents: Any = None,
    lexical_unit: bool = False,
    settable: bool = False,
    register: bool = False,
) -> ShaderVariable:
    """Take GLSL text as a value of a type. `parents` are the GPU values that the text mentions."""
    check_dtype(var_type, "str_to_dtype")
    if not isinstance(value, str):
        raise located(ArgumentTypeError, f"str_to_dtype: expected GLSL text, got {value!r}")
    mentioned = tuple(parent.expr for parent in parents or () if isinstance(parent, ShaderVariable))
    raw = RawText(value, settable, register, lexical_unit)
    return ShaderVariable(Expr(Op.RAW, var_type, mentioned, raw, here()))


def _make_conversion(kind: DType) -> Conversion:
    def convert(*args: Any) -> ShaderVariable:
        return to_dtype(kind, *args)

    convert.__doc__ = f"Convert to {kind.name}, or make one of its components."
    return convert


to_float16 = _make_conversion(dt.float16)
to_float = _make_conversion(dt.float32)
to_float64 = _make_conversion(dt.float64)
to_int16 = _make_conversion(dt.int16)
to_int = _make_conversion(dt.int32)
to_int64 = _make_conversion(dt.int64)
to_uint16 = _make_conversion(dt.uint16)
to_uint = _make_conversion(dt.uint32)
to_uint64 = _make_conversion(dt.uint64)
to_hvec2 = _make_conversion(dt.hvec2)
to_hvec3 = _make_conversion(dt.hvec3)
to_hvec4 = _make_conversion(dt.hvec4)
to_vec2 = _make_conversion(dt.vec2)
to_vec3 = _make_conversion(dt.vec3)
to_vec4 = _make_conversion(dt.vec4)
to_dvec2 = _make_conversion(dt.dvec2)
to_dvec3 = _make_conversion(dt.dvec3)
to_dvec4 = _make_conversion(dt.dvec4)
to_ihvec2 = _make_conversion(dt.ihvec2)
to_ihvec3 = _make_conversion(dt.ihvec3)
to_ihvec4 = _make_conversion(dt.ihvec4)
to_ivec2 = _make_conversion(dt.ivec2)
to_ivec3 = _make_conversion(dt.ivec3)
to_ivec4 = _make_conversion(dt.ivec4)
to_uhvec2 = _make_conversion(dt.uhvec2)
to_uhvec3 = _make_conversion(dt.uhvec3)
to_uhvec4 = _make_conversion(dt.uhvec4)
to_uvec2 = _make_conversion(dt.uvec2)
to_uvec3 = _make_conversion(dt.uvec3)
to_uvec4 = _make_conversion(dt.uvec4)
to_mat2 = _make_conversion(dt.mat2)
to_mat3 = _make_conversion(dt.mat3)
to_mat4 = _make_conversion(dt.mat4)
to_complex32 = _make_conversion(dt.complex32)
to_complex64 = _make_conversion(dt.complex64)
to_complex128 = _make_conversion(dt.complex128)
