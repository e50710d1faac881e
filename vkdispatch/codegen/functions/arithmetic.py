"""Division with Python's meaning, floats taken apart, rounding, limits and interpolation."""

import builtins
import math
import struct
from collections.abc import Callable
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.derived_dtypes import vector_like
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.functions.trigonometry import (
    Operand,
    all_integers,
    all_numbers,
    as_value,
    binary,
    compute,
    fold,
    operands,
    unary,
)
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.trace.operators import float_remainder, floor_quotient, floor_remainder
from vkdispatch.codegen.trace.range_checks import check_difference, check_limit
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Comment, Expr
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir import literals as host
from vkdispatch.compiler.ir.location import here, located
from vkdispatch.compiler.ir.program import UMUL_HIGH

__all__ = [
    "abs",
    "ceil",
    "clamp",
    "clip",
    "comment",
    "copysign",
    "float_bits_to_int",
    "float_bits_to_uint",
    "floor",
    "floor_divide",
    "floor_mod",
    "fma",
    "fmod",
    "fract",
    "frexp",
    "imul_extended",
    "int_bits_to_float",
    "isfinite",
    "isinf",
    "isnan",
    "ldexp",
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
    "uadd_carry",
    "uint_bits_to_float",
    "umul_extended",
    "usub_borrow",
]


# ---- Common functions: rounding, limits, interpolation, bits of floats -----------------------------------


def _check_max(x: ex.Operand, y: ex.Operand) -> None:
    check_limit("max", x, y)
    check_limit("max", y, x)


sign = unary(
    "sign", host.sign, "-1, 0 or 1 in floating point.", check=lambda value: check_difference("sign", value)
)
floor = unary("floor", host.floor, "Largest whole number not above `var`, in floating point.")
ceil = unary("ceil", host.ceil, "Smallest whole number not below `var`, in floating point.")
trunc = unary("trunc", host.trunc, "Whole part of `var`, in floating point.", own=True)
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


def abs(var: Operand) -> ShaderVariable:
    """Absolute value, of the type of `var`; magnitude of a complex number. An int gives an int."""
    (value,) = operands("abs", (var,))
    if isinstance(value, Expr):
        check_difference("abs", value)
        return ShaderVariable(ex.absolute(value))
    return as_value(builtins.abs(int(value))) if ex.is_integer_number(value) else fold(builtins.abs, (var,))


def modf(x: Operand, y: Operand) -> Any:
    """Remainder as `mod`; of two numbers the tuple (fraction, whole part) of x."""
    return math.modf(x) if all_numbers((x, y)) else compute("modf", host.fmod, (x, y), glsl="mod")


def clip(x: Operand, min_val: Operand, max_val: Operand) -> ShaderVariable:
    """Limit x to [min_val, max_val], in the promoted type of the three.

    Ints give an int, other numbers a float.
    """
    value, low, _ = operands("clip", (x, min_val, max_val))
    check_limit("clip", value, low)
    if all_integers((x, min_val, max_val)):
        return as_value(builtins.min(builtins.max(int(x), int(min_val)), int(max_val)))
    return compute("clip", host.clip, (x, min_val, max_val), glsl="clamp", floating=False)


clamp = clip


def step(edge: Operand, x: Operand) -> ShaderVariable:
    """0 below the edge and 1 from there on, in floating point. Numbers give a float."""
    return compute("step", lambda edge, x: x >= edge, (edge, x))


def mix(x: Operand, y: Operand, a: Operand) -> ShaderVariable:
    """Interpolate linearly from x (a = 0) to y (a = 1). Numbers give a float, with a limited to [0, 1]."""
    return compute("mix", lambda start, end, at: start + (end - start) * host.clip(at, 0.0, 1.0), (x, y, a))


def smoothstep(edge0: Operand, edge1: Operand, x: Operand) -> ShaderVariable:
    """Rise smoothly from 0 at edge0 to 1 at edge1. Numbers give a float."""
    return compute("smoothstep", _smoothstep, (edge0, edge1, x))


def _smoothstep(edge0: float, edge1: float, x: float) -> Any:
    t = host.clip(host.divide(x - edge0, edge1 - edge0), 0.0, 1.0)
    return t * t * (3 - 2 * t)


def fma(a: Operand, b: Operand, c: Operand) -> ShaderVariable:
    """Multiply and add: a * b + c. Numbers give a float."""
    return compute("fma", lambda first, second, third: first * second + third, (a, b, c))


def isnan(var: Operand) -> ShaderVariable:
    """Whether a scalar is not a number; a Python number gives a bool."""
    return _classify("isnan", var)


def isinf(var: Operand) -> ShaderVariable:
    """Whether a scalar is infinite; a Python number gives a bool."""
    return _classify("isinf", var)


def isfinite(var: Operand) -> ShaderVariable:
    """Whether a scalar is neither infinite nor NaN; a Python number gives a bool."""
    (value,) = operands("isfinite", (var,))
    if not isinstance(value, Expr):
        return as_value(math.isfinite(float(value)))
    checks = [_classify(name, var)._value() for name in ("isnan", "isinf")]
    return ShaderVariable(ex.invert(ex.logical("||", checks)))


def _classify(name: str, x: Operand) -> ShaderVariable:
    (value,) = operands(name, (x,))
    if not isinstance(value, Expr):
        return as_value(getattr(math, name)(float(value)))
    if not dt.is_scalar(value.dtype):
        raise located(
            ArgumentValueError, f"{name}: expected a scalar, got {value.dtype.name}; ask for each component"
        )
    return ShaderVariable(ex.call(name, dt.bool_, ex.cast(value, dt.make_floating_dtype(value.dtype))))


_PACKED: dict[dt.DType, str] = {dt.float32: "<f", dt.int32: "<i", dt.uint32: "<I"}


def _reinterpret(name: str, glsl: str, x: Operand, source: dt.DType, target: dt.DType) -> ShaderVariable:
    (value,) = operands(name, (x,))
    if isinstance(value, Expr):
        if not dt.is_scalar(value.dtype):
            raise located(ArgumentValueError, f"{name}: expected a scalar, got {value.dtype.name}")
        return ShaderVariable(ex.call(glsl, target, ex.cast(value, source)))
    number = float(value) if dt.is_float_dtype(source) else int(value)
    try:
        return as_value(struct.unpack(_PACKED[target], struct.pack(_PACKED[source], number))[0])
    except (struct.error, OverflowError):
        raise located(ArgumentValueError, f"{name}: {x} does not fit in {source.name}") from None


def float_bits_to_int(var: Operand) -> ShaderVariable:
    """Bits of a float32 as int32; a number gives an int."""
    return _reinterpret("float_bits_to_int", "floatBitsToInt", var, dt.float32, dt.int32)


def float_bits_to_uint(var: Operand) -> ShaderVariable:
    """Bits of a float32 as uint32; a number gives an int."""
    return _reinterpret("float_bits_to_uint", "floatBitsToUint", var, dt.float32, dt.uint32)


def int_bits_to_float(var: Operand) -> ShaderVariable:
    """Bits of an int32 as float32; a number gives a float."""
    return _reinterpret("int_bits_to_float", "intBitsToFloat", var, dt.int32, dt.float32)


def uint_bits_to_float(var: Operand) -> ShaderVariable:
    """Bits of a uint32 as float32; a number gives a float."""
    return _reinterpret("uint_bits_to_float", "uintBitsToFloat", var, dt.uint32, dt.float32)


def comment(comment: str, preceding_new_line: bool = True) -> None:
    """Put a comment into the generated code. Raises TypeError if `comment` is no str."""
    if not isinstance(comment, str):
        raise located(ArgumentTypeError, f"comment: expected a str, got {comment!r}")
    current().emit(Comment(comment, preceding_new_line, here()))


# ---- Division with Python's meaning, arithmetic with carry, and floats taken apart -----------------------


def floor_divide(a: Operand, b: Operand) -> ShaderVariable:
    """Quotient rounded down, as Python's `a // b`, of integers or floats; vectors by component.

    The operator `//` truncates instead, as GLSL does, unless the kernel has `ShaderFlags.PYTHON_DIVISION`.
    Numbers give a number. Raises TypeError for complex values and matrices.
    """
    return _divide("floor_divide", floor_quotient, lambda x, y: x // y, a, b)


def floor_mod(a: Operand, b: Operand) -> ShaderVariable:
    """Remainder with the sign of the divisor, as Python's `a % b`, of integers or floats; by component.

    The operator `%` leaves it undefined for negative integers, as GLSL does, unless the kernel has
    `ShaderFlags.PYTHON_DIVISION`. Numbers give a number. Raises TypeError for complex values and matrices.
    """
    return _divide("floor_mod", floor_remainder, lambda x, y: x % y, a, b)


def _divide(
    name: str,
    rule: Callable[[ex.Operand, ex.Operand], Expr],
    fold: Callable[[Any, Any], Any],
    a: Operand,
    b: Operand,
) -> ShaderVariable:
    left, right = operands(name, (a, b))
    if not (isinstance(left, Expr) or isinstance(right, Expr)):
        if right == 0:
            raise located(ArgumentValueError, f"{name}: division of {a} by zero")
        return as_value(fold(left, right))
    return ShaderVariable(rule(left, right))


def fmod(x: Operand, y: Operand) -> ShaderVariable:
    """Exact remainder with the sign of x, as `math.fmod`, in floating point; vectors by component.

    NaN where x is infinite or y is 0. Numbers give a float. Raises TypeError for complex values and matrices.
    """
    first, second = operands("fmod", (x, y))
    if not (isinstance(first, Expr) or isinstance(second, Expr)):
        return fold(host.fmod, (first, second))
    return ShaderVariable(float_remainder(first, second))


def copysign(x: Operand, y: Operand) -> ShaderVariable:
    """|x| with the sign of y, also of zeros, as `math.copysign`; in floating point, vectors by component.

    Numbers give a float. Raises ValueError for complex values and matrices.
    """
    first, second = _real("copysign", x), _real("copysign", y)
    if not (isinstance(first, Expr) or isinstance(second, Expr)):
        return fold(math.copysign, (first, second))
    kind, (size, sign) = ex.meet((first, second), "copysign", floating=True)
    scalar = dt.component_type(kind)
    wide: dt.DType = scalar if scalar.item_size > 2 else dt.float32

    def rule(a: Expr, b: Expr) -> Expr:
        return ex.cast(ex.copy_sign(ex.cast(a, wide), ex.cast(b, wide)), scalar)

    return ShaderVariable(ex.by_component(rule, kind, size, sign))


# ---- integers of 32 bits with carry --------------------------------------------------------------


def _pair(name: str, a: Operand, b: Operand, scalar: dt.DType) -> tuple[dt.DType, Expr, Expr]:
    values = operands(name, (a, b))
    for value in values:
        if not (
            dt.component_type(value.dtype) is scalar
            if isinstance(value, Expr)
            else ex.is_integer_number(value)
        ):
            given = value.dtype.name if isinstance(value, Expr) else repr(value)
            raise located(ArgumentTypeError, f"{name}: expected {scalar.name} values, got {given}")
    if all_numbers((a, b)):
        values = [ex.literal(value, scalar) for value in values if ex.is_number(value)]
    kind, (left, right) = ex.meet(values, name)
    return kind, ex.cast(left, kind), ex.cast(right, kind)


def _top_bit(value: Expr) -> ShaderVariable:
    return ShaderVariable(ex.bitwise(">>", value, 31))


def uadd_carry(a: Operand, b: Operand) -> tuple[ShaderVariable, ShaderVariable]:
    """Add uint32 or uvecN: (a + b, carry). The carry is 1 where the sum wrapped around."""
    _, left, right = _pair("uadd_carry", a, b, dt.uint32)
    total = ex.add("+", left, right)
    either = ex.bitwise("&", ex.bitwise("|", left, right), ex.invert(total))
    return ShaderVariable(total), _top_bit(ex.bitwise("|", ex.bitwise("&", left, right), either))


def usub_borrow(a: Operand, b: Operand) -> tuple[ShaderVariable, ShaderVariable]:
    """Subtract uint32 or uvecN: (a - b, borrow). The borrow is 1 where b is the larger."""
    _, left, right = _pair("usub_borrow", a, b, dt.uint32)
    rest = ex.add("-", left, right)
    inverse = ex.invert(left)
    either = ex.bitwise("&", ex.bitwise("|", inverse, right), rest)
    return ShaderVariable(rest), _top_bit(ex.bitwise("|", ex.bitwise("&", inverse, right), either))


def umul_extended(a: Operand, b: Operand) -> tuple[ShaderVariable, ShaderVariable]:
    """Multiply uint32 or uvecN: (upper, lower) 32 bits of the product."""
    _, left, right = _pair("umul_extended", a, b, dt.uint32)
    return ShaderVariable(_upper_product(left, right)), ShaderVariable(ex.multiply(left, right))


def imul_extended(a: Operand, b: Operand) -> tuple[ShaderVariable, ShaderVariable]:
    """Multiply int32 or ivecN: (upper, lower) 32 bits of the product."""
    kind, left, right = _pair("imul_extended", a, b, dt.int32)
    unsigned = dt.to_vector(dt.uint32, kind.child_count) if dt.is_vector(kind) else dt.uint32
    upper = ex.cast(_upper_product(ex.cast(left, unsigned), ex.cast(right, unsigned)), kind)
    for sign, other in ((left, right), (right, left)):
        upper = ex.add("-", upper, ex.bitwise("&", ex.bitwise(">>", sign, 31), other))
    return ShaderVariable(upper), ShaderVariable(ex.multiply(left, right))


def _upper_product(a: Expr, b: Expr) -> Expr:
    return ex.call(UMUL_HIGH, a.dtype, a, b)


# ---- floats taken apart --------------------------------------------------------------------------


# Bits of the fraction, bias of exponents of [0.5, 1), and a power of two that makes the smallest numbers
# ordinary ones.
_FORMATS: dict[dt.DType, tuple[int, int, int]] = {dt.float32: (23, 126, 32), dt.float64: (52, 1022, 64)}


def _real(name: str, x: Operand) -> ex.Operand:
    (value,) = operands(name, (x,))
    if isinstance(value, Expr) and (dt.is_complex(value.dtype) or dt.is_matrix(value.dtype)):
        raise located(ArgumentValueError, f"{name}: not defined for {value.dtype.name}")
    return value


def ldexp(x: Operand, exponent: Operand) -> ShaderVariable:
    """Make x * 2 ** exponent, in floating point; the exponent is an integer of at most 32 bits.

    Numbers give a float. Raises TypeError for an exponent that is no integer.
    """
    value, power = _real("ldexp", x), _real("ldexp", exponent)
    whole = dt.is_integer_dtype(power.dtype) if isinstance(power, Expr) else ex.is_integer_number(power)
    if not whole:
        raise located(ArgumentTypeError, f"ldexp: the exponent must be an integer, got {exponent!r}")
    if not isinstance(value, Expr):
        if not isinstance(power, Expr):
            return as_value(math.ldexp(float(value), int(power)))
        value = ex.literal(float(value), dt.float32)
    if not isinstance(power, Expr):
        power = ex.literal(power, dt.int32)
    kind = dt.make_floating_dtype(value.dtype)
    if dt.is_vector(power.dtype) and dt.is_scalar(kind):
        kind = dt.to_vector(kind, power.dtype.child_count)
    # GLSL has no half version
    wide = kind if dt.component_type(kind).item_size > 2 else vector_like(dt.float32, kind)
    scaled = ex.call("ldexp", wide, ex.cast(value, wide), ex.cast(power, vector_like(dt.int32, kind)))
    return ShaderVariable(ex.cast(scaled, kind))


def frexp(x: Operand) -> tuple[Any, Any]:
    """Take a float apart: (significand, exponent) with x = significand * 2 ** exponent.

    0.5 <= |significand| < 1, and the exponent is int32 or ivecN. For zero, infinities and NaN the significand
    is x itself and the exponent 0. A number gives (float, int).
    """
    value = _real("frexp", x)
    if not isinstance(value, Expr):
        return math.frexp(float(value))
    kind = dt.make_floating_dtype(value.dtype)
    value = ex.cast(value, kind)
    wide = value if dt.component_type(kind).item_size > 2 else ex.cast(value, vector_like(dt.float32, kind))
    significand = ex.by_component(lambda part: _parts(part)[0], wide.dtype, wide)
    exponent = ex.by_component(lambda part: _parts(part)[1], vector_like(dt.int32, kind), wide)
    return ShaderVariable(ex.cast(significand, kind)), ShaderVariable(exponent)


def _parts(x: Expr) -> tuple[Expr, Expr]:
    """Significand and exponent of a float32 or float64, from its bits."""
    to_bits, from_bits, word = ex.BITS_OF[x.dtype]
    fraction, bias, lift = _FORMATS[x.dtype]
    kind = x.dtype
    largest = 2 * bias + 3
    zero = ex.compare("==", x, 0.0)
    special = ex.compare("==", _exponent(ex.call(to_bits, word, x), fraction, largest), largest)
    small = ex.compare("==", _exponent(ex.call(to_bits, word, x), fraction, largest), 0)
    # numbers too small for a leading one are lifted first
    bits = ex.call(to_bits, word, ex.select(small, ex.multiply(x, float(2**lift)), x))
    exponent = ex.cast(_exponent(bits, fraction, largest), dt.int32)
    exponent = ex.add("-", exponent, ex.select(small, ex.literal(bias + lift, dt.int32), bias))
    kept = ex.bitwise("&", bits, (1 << fraction) - 1 | 1 << (8 * kind.item_size - 1))
    significand = ex.call(from_bits, kind, ex.bitwise("|", kept, bias << fraction))
    plain = ex.logical("||", (zero, special))
    return ex.select(plain, x, significand), ex.select(plain, ex.literal(0, dt.int32), exponent)


def _exponent(bits: Expr, fraction: int, largest: int) -> Expr:
    return ex.bitwise("&", ex.bitwise(">>", bits, fraction), largest)
