"""Common functions: rounding, limits, interpolation, bits of floats."""

import builtins
import math
import struct
from typing import Any

from vkdispatch.base.dtype import (
    DType,
    bool_,
    float32,
    int32,
    is_float_dtype,
    is_scalar,
    make_floating_dtype,
    uint32,
)
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.functions.elementwise import (
    Operand,
    all_integers,
    all_numbers,
    apply,
    binary,
    fold,
    gives_value,
    operands,
    unary,
)
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.trace.range_checks import check_difference, check_limit
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler import host_functions as host
from vkdispatch.compiler.ir import Comment, Expr
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located

__all__ = [
    "abs",
    "ceil",
    "clamp",
    "clip",
    "comment",
    "float_bits_to_int",
    "float_bits_to_uint",
    "floor",
    "fma",
    "fract",
    "int_bits_to_float",
    "isfinite",
    "isinf",
    "isnan",
    "max",
    "min",
    "mix",
    "mod",
    "modf",
    "round",
    "round_even",
    "sign",
    "smoothstep",
    "step",
    "trunc",
    "uint_bits_to_float",
]


def _check_max(x: ex.Operand, y: ex.Operand) -> None:
    check_limit("max", x, y)
    check_limit("max", y, x)


sign = unary(
    "sign", host.sign, "-1, 0 or 1 in floating point.", check=lambda value: check_difference("sign", value)
)
floor = unary("floor", host.floor, "Largest whole number not above `var`, in floating point.")
ceil = unary("ceil", host.ceil, "Smallest whole number not below `var`, in floating point.")
trunc = unary("trunc", host.trunc, "Whole part of `var`, in floating point.", glsl="trunc", own=True)
round = unary(
    "round", host.rint, "Nearest whole number, halves to even, in floating point.", glsl="roundEven", own=True
)
round_even = unary(
    "round_even", host.rint, "Nearest whole number, halves to even.", glsl="roundEven", own=True
)
fract = unary("fract", lambda x: x - host.floor(x), "var - floor(var).")
mod = binary("mod", lambda x, y: x - y * host.floor(host.divide(x, y)), "Remainder with the sign of y.")
min = binary(
    "min",
    host.minimum,
    "Smaller of two values, in their promoted type. Two ints give an int.",
    whole=builtins.min,
    logical="&&",
)
max = binary(
    "max",
    host.maximum,
    "Larger of two values, in their promoted type. Two ints give an int.",
    whole=builtins.max,
    logical="||",
    check=_check_max,
)
_step = binary("step", lambda edge, x: x >= edge, "")


@gives_value
def abs(var: Operand) -> Any:
    """Absolute value, of the type of `var`; magnitude of a complex number. An int gives an int."""
    (value,) = operands("abs", (var,))
    if isinstance(value, Expr):
        check_difference("abs", value)
        return ShaderVariable(ex.absolute(value))
    return builtins.abs(int(value)) if ex.is_integer_number(value) else fold(builtins.abs, (var,))


def modf(x: Operand, y: Operand) -> Any:
    """Remainder as `mod`; of two numbers the tuple (fraction, whole part) of x."""
    operands("modf", (x, y))
    if all_numbers((x, y)):
        return math.modf(x)
    return apply("modf", "mod", (x, y))


@gives_value
def clip(x: Operand, min_val: Operand, max_val: Operand) -> Any:
    """Limit x to [min_val, max_val], in the promoted type of the three.

    Ints give an int, other numbers a float.
    """
    value, low, _ = operands("clip", (x, min_val, max_val))
    check_limit("clip", value, low)
    if all_integers((x, min_val, max_val)):
        return builtins.min(builtins.max(int(x), int(min_val)), int(max_val))
    if all_numbers((x, min_val, max_val)):
        return fold(host.clip, (x, min_val, max_val))
    return apply("clip", "clamp", (x, min_val, max_val), floating=False)


clamp = clip


@gives_value
def step(edge: Operand, x: Operand) -> Any:
    """0 below the edge and 1 from there on, in floating point. Numbers give a float."""
    return _step(edge, x)


@gives_value
def mix(x: Operand, y: Operand, a: Operand) -> Any:
    """Interpolate linearly from x (a = 0) to y (a = 1). Numbers give a float, with a limited to [0, 1]."""
    operands("mix", (x, y, a))
    if all_numbers((x, y, a)):
        return fold(lambda start, end, at: start + (end - start) * host.clip(at, 0.0, 1.0), (x, y, a))
    return apply("mix", "mix", (x, y, a))


@gives_value
def smoothstep(edge0: Operand, edge1: Operand, x: Operand) -> Any:
    """Rise smoothly from 0 at edge0 to 1 at edge1. Numbers give a float."""
    operands("smoothstep", (edge0, edge1, x))
    if all_numbers((edge0, edge1, x)):
        return fold(_smoothstep, (edge0, edge1, x))
    return apply("smoothstep", "smoothstep", (edge0, edge1, x))


def _smoothstep(edge0: float, edge1: float, x: float) -> Any:
    t = host.clip(host.divide(x - edge0, edge1 - edge0), 0.0, 1.0)
    return t * t * (3 - 2 * t)


@gives_value
def fma(a: Operand, b: Operand, c: Operand) -> Any:
    """Multiply and add: a * b + c. Numbers give a float."""
    operands("fma", (a, b, c))
    if all_numbers((a, b, c)):
        return fold(lambda first, second, third: first * second + third, (a, b, c))
    return apply("fma", "fma", (a, b, c))


@gives_value
def isnan(var: Operand) -> Any:
    """Whether a scalar is not a number; a Python number gives a bool."""
    return _classify("isnan", var)


@gives_value
def isinf(var: Operand) -> Any:
    """Whether a scalar is infinite; a Python number gives a bool."""
    return _classify("isinf", var)


@gives_value
def isfinite(var: Operand) -> Any:
    """Whether a scalar is neither infinite nor NaN; a Python number gives a bool."""
    (value,) = operands("isfinite", (var,))
    if not isinstance(value, Expr):
        return math.isfinite(float(value))
    checks = [_classify(name, var)._value() for name in ("isnan", "isinf")]
    return ShaderVariable(ex.invert(ex.logical("||", checks)))


def _classify(name: str, x: Operand) -> Any:
    (value,) = operands(name, (x,))
    if not isinstance(value, Expr):
        return getattr(math, name)(float(value))
    if not is_scalar(value.dtype):
        raise located(
            ArgumentValueError, f"{name}: expected a scalar, got {value.dtype.name}; ask for each component"
        )
    return ShaderVariable(ex.call(name, bool_, ex.cast(value, make_floating_dtype(value.dtype))))


def _reinterpret(name: str, glsl: str, x: Operand, source: DType, target: DType, formats: str) -> Any:
    (value,) = operands(name, (x,))
    if isinstance(value, Expr):
        if not is_scalar(value.dtype):
            raise located(ArgumentValueError, f"{name}: expected a scalar, got {value.dtype.name}")
        return ShaderVariable(ex.call(glsl, target, ex.cast(value, source)))
    number = float(value) if is_float_dtype(source) else int(value)
    try:
        return struct.unpack(f"<{formats[1]}", struct.pack(f"<{formats[0]}", number))[0]
    except (struct.error, OverflowError):
        raise located(ArgumentValueError, f"{name}: {x} does not fit in {source.name}") from None


@gives_value
def float_bits_to_int(var: Operand) -> Any:
    """Bits of a float32 as int32; a number gives an int."""
    return _reinterpret("float_bits_to_int", "floatBitsToInt", var, float32, int32, "fi")


@gives_value
def float_bits_to_uint(var: Operand) -> Any:
    """Bits of a float32 as uint32; a number gives an int."""
    return _reinterpret("float_bits_to_uint", "floatBitsToUint", var, float32, uint32, "fI")


@gives_value
def int_bits_to_float(var: Operand) -> Any:
    """Bits of an int32 as float32; a number gives a float."""
    return _reinterpret("int_bits_to_float", "intBitsToFloat", var, int32, float32, "if")


@gives_value
def uint_bits_to_float(var: Operand) -> Any:
    """Bits of a uint32 as float32; a number gives a float."""
    return _reinterpret("uint_bits_to_float", "uintBitsToFloat", var, uint32, float32, "If")


def comment(comment: str, preceding_new_line: bool = True) -> None:
    """Put a comment into the generated code. Raises TypeError if `comment` is no str."""
    if not isinstance(comment, str):
        raise located(ArgumentTypeError, f"comment: expected a str, got {comment!r}")
    current().emit(Comment(comment, preceding_new_line, here()))
