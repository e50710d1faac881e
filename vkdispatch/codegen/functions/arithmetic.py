"""Division with Python's meaning, floats taken apart, rounding, limits and interpolation."""

import builtins
import math
import struct
from collections.abc import Callable
from typing import Any

from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_type,
    float32,
    float64,
    int32,
    is_complex,
    is_float_dtype,
    is_integer_dtype,
    is_matrix,
    is_scalar,
    is_vector,
    make_floating_dtype,
    to_vector,
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
from vkdispatch.codegen.trace.operators import float_remainder, floor_quotient, floor_remainder
from vkdispatch.codegen.trace.range_checks import check_difference, check_limit
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler import host_functions as host
from vkdispatch.compiler.ir import Comment, Expr
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located
from vkdispatch.compiler.ir.statements import UMUL_HIGH

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


# ---- Division with Python's meaning, arithmetic with carry, and floats taken apart -----------------------


@gives_value
def floor_divide(a: Operand, b: Operand) -> Any:
    """Quotient rounded down, as Python's `a // b`, of integers or floats; vectors by component.

    The operator `//` truncates instead, as GLSL does, unless the kernel has `ShaderFlags.PYTHON_DIVISION`.
    Numbers give a number. Raises TypeError for complex values and matrices.
    """
    return _divide("floor_divide", floor_quotient, lambda x, y: x // y, a, b)


@gives_value
def floor_mod(a: Operand, b: Operand) -> Any:
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
) -> Any:
    left, right = operands(name, (a, b))
    if not (isinstance(left, Expr) or isinstance(right, Expr)):
        if right == 0:
            raise located(ArgumentValueError, f"{name}: division of {a} by zero")
        return fold(left, right)
    return ShaderVariable(rule(left, right))


@gives_value
def fmod(x: Operand, y: Operand) -> Any:
    """Exact remainder with the sign of x, as `math.fmod`, in floating point; vectors by component.

    NaN where x is infinite or y is 0. Numbers give a float. Raises TypeError for complex values and matrices.
    """
    first, second = operands("fmod", (x, y))
    if not (isinstance(first, Expr) or isinstance(second, Expr)):
        return fold(host.fmod, (first, second))
    return ShaderVariable(float_remainder(first, second))


@gives_value
def copysign(x: Operand, y: Operand) -> Any:
    """|x| with the sign of y, also of zeros, as `math.copysign`; in floating point, vectors by component.

    Numbers give a float. Raises ValueError for complex values and matrices.
    """
    first, second = _real("copysign", x), _real("copysign", y)
    if not (isinstance(first, Expr) or isinstance(second, Expr)):
        return fold(math.copysign, (first, second))
    kind, (size, sign) = ex.meet((first, second), "copysign", floating=True)
    scalar = component_type(kind)
    wide: DType = scalar if scalar.item_size > 2 else float32

    def rule(a: Expr, b: Expr) -> Expr:
        return ex.cast(ex.copy_sign(ex.cast(a, wide), ex.cast(b, wide)), scalar)

    return ShaderVariable(ex.by_component(rule, kind, size, sign))


# ---- integers of 32 bits with carry --------------------------------------------------------------


def _pair(name: str, a: Operand, b: Operand, scalar: DType) -> tuple[DType, Expr, Expr]:
    values = operands(name, (a, b))
    for value in values:
        if not (
            component_type(value.dtype) is scalar if isinstance(value, Expr) else ex.is_integer_number(value)
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
    _, left, right = _pair("uadd_carry", a, b, uint32)
    total = ex.add("+", left, right)
    either = ex.bitwise("&", ex.bitwise("|", left, right), ex.invert(total))
    return ShaderVariable(total), _top_bit(ex.bitwise("|", ex.bitwise("&", left, right), either))


def usub_borrow(a: Operand, b: Operand) -> tuple[ShaderVariable, ShaderVariable]:
    """Subtract uint32 or uvecN: (a - b, borrow). The borrow is 1 where b is the larger."""
    _, left, right = _pair("usub_borrow", a, b, uint32)
    rest = ex.add("-", left, right)
    inverse = ex.invert(left)
    either = ex.bitwise("&", ex.bitwise("|", inverse, right), rest)
    return ShaderVariable(rest), _top_bit(ex.bitwise("|", ex.bitwise("&", inverse, right), either))


def umul_extended(a: Operand, b: Operand) -> tuple[ShaderVariable, ShaderVariable]:
    """Multiply uint32 or uvecN: (upper, lower) 32 bits of the product."""
    _, left, right = _pair("umul_extended", a, b, uint32)
    return ShaderVariable(_upper_product(left, right)), ShaderVariable(ex.multiply(left, right))


def imul_extended(a: Operand, b: Operand) -> tuple[ShaderVariable, ShaderVariable]:
    """Multiply int32 or ivecN: (upper, lower) 32 bits of the product."""
    kind, left, right = _pair("imul_extended", a, b, int32)
    unsigned = to_vector(uint32, kind.child_count) if is_vector(kind) else uint32
    upper = ex.cast(_upper_product(ex.cast(left, unsigned), ex.cast(right, unsigned)), kind)
    for sign, other in ((left, right), (right, left)):
        upper = ex.add("-", upper, ex.bitwise("&", ex.bitwise(">>", sign, 31), other))
    return ShaderVariable(upper), ShaderVariable(ex.multiply(left, right))


def _upper_product(a: Expr, b: Expr) -> Expr:
    return ex.call(UMUL_HIGH, a.dtype, a, b)


# ---- floats taken apart --------------------------------------------------------------------------


# Bits of the fraction, bias of exponents of [0.5, 1), and a power of two that makes the smallest numbers
# ordinary ones.
_FORMATS: dict[DType, tuple[int, int, int]] = {float32: (23, 126, 32), float64: (52, 1022, 64)}


def _real(name: str, x: Operand) -> ex.Operand:
    (value,) = operands(name, (x,))
    if isinstance(value, Expr) and (is_complex(value.dtype) or is_matrix(value.dtype)):
        raise located(ArgumentValueError, f"{name}: not defined for {value.dtype.name}")
    return value


@gives_value
def ldexp(x: Operand, exponent: Operand) -> Any:
    """Make x * 2 ** exponent, in floating point; the exponent is an integer of at most 32 bits.

    Numbers give a float. Raises TypeError for an exponent that is no integer.
    """
    value, power = _real("ldexp", x), _real("ldexp", exponent)
    whole = is_integer_dtype(power.dtype) if isinstance(power, Expr) else ex.is_integer_number(power)
    if not whole:
        raise located(ArgumentTypeError, f"ldexp: the exponent must be an integer, got {exponent!r}")
    if not isinstance(value, Expr):
        if not isinstance(power, Expr):
            return math.ldexp(float(value), int(power))
        value = ex.literal(float(value), float32)
    if not isinstance(power, Expr):
        power = ex.literal(power, int32)
    kind = make_floating_dtype(value.dtype)
    if is_vector(power.dtype) and is_scalar(kind):
        kind = to_vector(kind, power.dtype.child_count)
    # GLSL has no half version
    wide = kind if component_type(kind).item_size > 2 else _like(float32, kind)
    scaled = ex.call("ldexp", wide, ex.cast(value, wide), ex.cast(power, _like(int32, kind)))
    return ShaderVariable(ex.cast(scaled, kind))


def _like(scalar: DType, kind: DType) -> DType:
    return to_vector(scalar, kind.child_count) if is_vector(kind) else scalar


def frexp(x: Operand) -> tuple[Any, Any]:
    """Take a float apart: (significand, exponent) with x = significand * 2 ** exponent.

    0.5 <= |significand| < 1, and the exponent is int32 or ivecN. For zero, infinities and NaN the significand
    is x itself and the exponent 0. A number gives (float, int).
    """
    value = _real("frexp", x)
    if not isinstance(value, Expr):
        return math.frexp(float(value))
    kind = make_floating_dtype(value.dtype)
    value = ex.cast(value, kind)
    wide = value if component_type(kind).item_size > 2 else ex.cast(value, _like(float32, kind))
    significand = ex.by_component(lambda part: _parts(part)[0], wide.dtype, wide)
    exponent = ex.by_component(lambda part: _parts(part)[1], _like(int32, kind), wide)
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
    exponent = ex.cast(_exponent(bits, fraction, largest), int32)
    exponent = ex.add("-", exponent, ex.select(small, ex.literal(bias + lift, int32), bias))
    kept = ex.bitwise("&", bits, (1 << fraction) - 1 | 1 << (8 * kind.item_size - 1))
    significand = ex.call(from_bits, kind, ex.bitwise("|", kept, bias << fraction))
    plain = ex.logical("||", (zero, special))
    return ex.select(plain, x, significand), ex.select(plain, ex.literal(0, int32), exponent)


def _exponent(bits: Expr, fraction: int, largest: int) -> Expr:
    return ex.bitwise("&", ex.bitwise(">>", bits, fraction), largest)
