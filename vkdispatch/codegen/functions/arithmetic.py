"""Division with Python's meaning, floats taken apart, rounding, limits and interpolation."""

import builtins
import math
import struct
from collections.abc import Callable
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.derived_dtypes import vector_like
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.functions import elementwise
from vkdispatch.codegen.functions.elementwise import fold
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


sign = elementwise.unary(
    "sign", host.sign, "-1, 0 or 1 in floating point.", check=lambda value: check_difference("sign", value)
)
floor = elementwise.unary("floor", host.floor, "Largest whole number not above `var`, in floating point.")
ceil = elementwise.unary("ceil", host.ceil, "Smallest whole number not below `var`, in floating point.")
trunc = elementwise.unary(
    "trunc", host.trunc, "Whole part of `var`, in floating point.", glsl="trunc", own=True
)
round = elementwise.unary(
    "round", host.rint, "Nearest whole number, halves to even, in floating point.", glsl="roundEven", own=True
)
round_even = elementwise.unary(
    "round_even", host.rint, "Nearest whole number, halves to even.", glsl="roundEven", own=True
)
fract = elementwise.unary("fract", lambda x: x - host.floor(x), "var - floor(var).")
mod = elementwise.binary(
    "mod", lambda x, y: x - y * host.floor(host.divide(x, y)), "Remainder with the sign of y."
)
min = elementwise.binary(
    "min",
    host.minimum,
    "Smaller of two values, in their promoted type. Two ints give an int.",
    whole=builtins.min,
    logical="&&",
)
max = elementwise.binary(
    "max",
    host.maximum,
    "Larger of two values, in their promoted type. Two ints give an int.",
    whole=builtins.max,
    logical="||",
    check=_check_max,
)
_step = elementwise.binary("step", lambda edge, x: x >= edge, "")


@elementwise.gives_value
def abs(var: elementwise.Operand) -> Any:
    """Absolute value, of the type of `var`; magnitude of a complex number. An int gives an int."""
    (value,) = elementwise.operands("abs", (var,))
    if isinstance(value, Expr):
        check_difference("abs", value)
        return ShaderVariable(ex.absolute(value))
    return builtins.abs(int(value)) if ex.is_integer_number(value) else fold(builtins.abs, (var,))


def modf(x: elementwise.Operand, y: elementwise.Operand) -> Any:
    """Remainder as `mod`; of two numbers the tuple (fraction, whole part) of x."""
    elementwise.operands("modf", (x, y))
    if elementwise.all_numbers((x, y)):
        return math.modf(x)
    return elementwise.apply("modf", "mod", (x, y))


@elementwise.gives_value
def clip(x: elementwise.Operand, min_val: elementwise.Operand, max_val: elementwise.Operand) -> Any:
    """Limit x to [min_val, max_val], in the promoted type of the three.

    Ints give an int, other numbers a float.
    """
    value, low, _ = elementwise.operands("clip", (x, min_val, max_val))
    check_limit("clip", value, low)
    if elementwise.all_integers((x, min_val, max_val)):
        return builtins.min(builtins.max(int(x), int(min_val)), int(max_val))
    if elementwise.all_numbers((x, min_val, max_val)):
        return fold(host.clip, (x, min_val, max_val))
    return elementwise.apply("clip", "clamp", (x, min_val, max_val), floating=False)


clamp = clip


@elementwise.gives_value
def step(edge: elementwise.Operand, x: elementwise.Operand) -> Any:
    """0 below the edge and 1 from there on, in floating point. Numbers give a float."""
    return _step(edge, x)


@elementwise.gives_value
def mix(x: elementwise.Operand, y: elementwise.Operand, a: elementwise.Operand) -> Any:
    """Interpolate linearly from x (a = 0) to y (a = 1). Numbers give a float, with a limited to [0, 1]."""
    elementwise.operands("mix", (x, y, a))
    if elementwise.all_numbers((x, y, a)):
        return fold(lambda start, end, at: start + (end - start) * host.clip(at, 0.0, 1.0), (x, y, a))
    return elementwise.apply("mix", "mix", (x, y, a))


@elementwise.gives_value
def smoothstep(edge0: elementwise.Operand, edge1: elementwise.Operand, x: elementwise.Operand) -> Any:
    """Rise smoothly from 0 at edge0 to 1 at edge1. Numbers give a float."""
    elementwise.operands("smoothstep", (edge0, edge1, x))
    if elementwise.all_numbers((edge0, edge1, x)):
        return fold(_smoothstep, (edge0, edge1, x))
    return elementwise.apply("smoothstep", "smoothstep", (edge0, edge1, x))


def _smoothstep(edge0: float, edge1: float, x: float) -> Any:
    t = host.clip(host.divide(x - edge0, edge1 - edge0), 0.0, 1.0)
    return t * t * (3 - 2 * t)


@elementwise.gives_value
def fma(a: elementwise.Operand, b: elementwise.Operand, c: elementwise.Operand) -> Any:
    """Multiply and add: a * b + c. Numbers give a float."""
    elementwise.operands("fma", (a, b, c))
    if elementwise.all_numbers((a, b, c)):
        return fold(lambda first, second, third: first * second + third, (a, b, c))
    return elementwise.apply("fma", "fma", (a, b, c))


@elementwise.gives_value
def isnan(var: elementwise.Operand) -> Any:
    """Whether a scalar is not a number; a Python number gives a bool."""
    return _classify("isnan", var)


@elementwise.gives_value
def isinf(var: elementwise.Operand) -> Any:
    """Whether a scalar is infinite; a Python number gives a bool."""
    return _classify("isinf", var)


@elementwise.gives_value
def isfinite(var: elementwise.Operand) -> Any:
    """Whether a scalar is neither infinite nor NaN; a Python number gives a bool."""
    (value,) = elementwise.operands("isfinite", (var,))
    if not isinstance(value, Expr):
        return math.isfinite(float(value))
    checks = [_classify(name, var)._value() for name in ("isnan", "isinf")]
    return ShaderVariable(ex.invert(ex.logical("||", checks)))


def _classify(name: str, x: elementwise.Operand) -> Any:
    (value,) = elementwise.operands(name, (x,))
    if not isinstance(value, Expr):
        return getattr(math, name)(float(value))
    if not dt.is_scalar(value.dtype):
        raise located(
            ArgumentValueError, f"{name}: expected a scalar, got {value.dtype.name}; ask for each component"
        )
    return ShaderVariable(ex.call(name, dt.bool_, ex.cast(value, dt.make_floating_dtype(value.dtype))))


def _reinterpret(
    name: str, glsl: str, x: elementwise.Operand, source: dt.DType, target: dt.DType, formats: str
) -> Any:
    (value,) = elementwise.operands(name, (x,))
    if isinstance(value, Expr):
        if not dt.is_scalar(value.dtype):
            raise located(ArgumentValueError, f"{name}: expected a scalar, got {value.dtype.name}")
        return ShaderVariable(ex.call(glsl, target, ex.cast(value, source)))
    number = float(value) if dt.is_float_dtype(source) else int(value)
    try:
        return struct.unpack(f"<{formats[1]}", struct.pack(f"<{formats[0]}", number))[0]
    except (struct.error, OverflowError):
        raise located(ArgumentValueError, f"{name}: {x} does not fit in {source.name}") from None


@elementwise.gives_value
def float_bits_to_int(var: elementwise.Operand) -> Any:
    """Bits of a float32 as int32; a number gives an int."""
    return _reinterpret("float_bits_to_int", "floatBitsToInt", var, dt.float32, dt.int32, "fi")


@elementwise.gives_value
def float_bits_to_uint(var: elementwise.Operand) -> Any:
    """Bits of a float32 as uint32; a number gives an int."""
    return _reinterpret("float_bits_to_uint", "floatBitsToUint", var, dt.float32, dt.uint32, "fI")


@elementwise.gives_value
def int_bits_to_float(var: elementwise.Operand) -> Any:
    """Bits of an int32 as float32; a number gives a float."""
    return _reinterpret("int_bits_to_float", "intBitsToFloat", var, dt.int32, dt.float32, "if")


@elementwise.gives_value
def uint_bits_to_float(var: elementwise.Operand) -> Any:
    """Bits of a uint32 as float32; a number gives a float."""
    return _reinterpret("uint_bits_to_float", "uintBitsToFloat", var, dt.uint32, dt.float32, "If")


def comment(comment: str, preceding_new_line: bool = True) -> None:
    """Put a comment into the generated code. Raises TypeError if `comment` is no str."""
    if not isinstance(comment, str):
        raise located(ArgumentTypeError, f"comment: expected a str, got {comment!r}")
    current().emit(Comment(comment, preceding_new_line, here()))


# ---- Division with Python's meaning, arithmetic with carry, and floats taken apart -----------------------


@elementwise.gives_value
def floor_divide(a: elementwise.Operand, b: elementwise.Operand) -> Any:
    """Quotient rounded down, as Python's `a // b`, of integers or floats; vectors by component.

    The operator `//` truncates instead, as GLSL does, unless the kernel has `ShaderFlags.PYTHON_DIVISION`.
    Numbers give a number. Raises TypeError for complex values and matrices.
    """
    return _divide("floor_divide", floor_quotient, lambda x, y: x // y, a, b)


@elementwise.gives_value
def floor_mod(a: elementwise.Operand, b: elementwise.Operand) -> Any:
    """Remainder with the sign of the divisor, as Python's `a % b`, of integers or floats; by component.

    The operator `%` leaves it undefined for negative integers, as GLSL does, unless the kernel has
    `ShaderFlags.PYTHON_DIVISION`. Numbers give a number. Raises TypeError for complex values and matrices.
    """
    return _divide("floor_mod", floor_remainder, lambda x, y: x % y, a, b)


def _divide(
    name: str,
    rule: Callable[[ex.Operand, ex.Operand], Expr],
    fold: Callable[[Any, Any], Any],
    a: elementwise.Operand,
    b: elementwise.Operand,
) -> Any:
    left, right = elementwise.operands(name, (a, b))
    if not (isinstance(left, Expr) or isinstance(right, Expr)):
        if right == 0:
            raise located(ArgumentValueError, f"{name}: division of {a} by zero")
        return fold(left, right)
    return ShaderVariable(rule(left, right))


@elementwise.gives_value
def fmod(x: elementwise.Operand, y: elementwise.Operand) -> Any:
    """Exact remainder with the sign of x, as `math.fmod`, in floating point; vectors by component.

    NaN where x is infinite or y is 0. Numbers give a float. Raises TypeError for complex values and matrices.
    """
    first, second = elementwise.operands("fmod", (x, y))
    if not (isinstance(first, Expr) or isinstance(second, Expr)):
        return fold(host.fmod, (first, second))
    return ShaderVariable(float_remainder(first, second))


@elementwise.gives_value
def copysign(x: elementwise.Operand, y: elementwise.Operand) -> Any:
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


def _pair(
    name: str, a: elementwise.Operand, b: elementwise.Operand, scalar: dt.DType
) -> tuple[dt.DType, Expr, Expr]:
    values = elementwise.operands(name, (a, b))
    for value in values:
        if not (
            dt.component_type(value.dtype) is scalar
            if isinstance(value, Expr)
            else ex.is_integer_number(value)
        ):
            given = value.dtype.name if isinstance(value, Expr) else repr(value)
            raise located(ArgumentTypeError, f"{name}: expected {scalar.name} values, got {given}")
    if elementwise.all_numbers((a, b)):
        values = [ex.literal(value, scalar) for value in values if ex.is_number(value)]
    kind, (left, right) = ex.meet(values, name)
    return kind, ex.cast(left, kind), ex.cast(right, kind)


def _top_bit(value: Expr) -> ShaderVariable:
    return ShaderVariable(ex.bitwise(">>", value, 31))


def uadd_carry(a: elementwise.Operand, b: elementwise.Operand) -> tuple[ShaderVariable, ShaderVariable]:
    """Add uint32 or uvecN: (a + b, carry). The carry is 1 where the sum wrapped around."""
    _, left, right = _pair("uadd_carry", a, b, dt.uint32)
    total = ex.add("+", left, right)
    either = ex.bitwise("&", ex.bitwise("|", left, right), ex.invert(total))
    return ShaderVariable(total), _top_bit(ex.bitwise("|", ex.bitwise("&", left, right), either))


def usub_borrow(a: elementwise.Operand, b: elementwise.Operand) -> tuple[ShaderVariable, ShaderVariable]:
    """Subtract uint32 or uvecN: (a - b, borrow). The borrow is 1 where b is the larger."""
    _, left, right = _pair("usub_borrow", a, b, dt.uint32)
    rest = ex.add("-", left, right)
    inverse = ex.invert(left)
    either = ex.bitwise("&", ex.bitwise("|", inverse, right), rest)
    return ShaderVariable(rest), _top_bit(ex.bitwise("|", ex.bitwise("&", inverse, right), either))


def umul_extended(a: elementwise.Operand, b: elementwise.Operand) -> tuple[ShaderVariable, ShaderVariable]:
    """Multiply uint32 or uvecN: (upper, lower) 32 bits of the product."""
    _, left, right = _pair("umul_extended", a, b, dt.uint32)
    return ShaderVariable(_upper_product(left, right)), ShaderVariable(ex.multiply(left, right))


def imul_extended(a: elementwise.Operand, b: elementwise.Operand) -> tuple[ShaderVariable, ShaderVariable]:
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


def _real(name: str, x: elementwise.Operand) -> ex.Operand:
    (value,) = elementwise.operands(name, (x,))
    if isinstance(value, Expr) and (dt.is_complex(value.dtype) or dt.is_matrix(value.dtype)):
        raise located(ArgumentValueError, f"{name}: not defined for {value.dtype.name}")
    return value


@elementwise.gives_value
def ldexp(x: elementwise.Operand, exponent: elementwise.Operand) -> Any:
    """Make x * 2 ** exponent, in floating point; the exponent is an integer of at most 32 bits.

    Numbers give a float. Raises TypeError for an exponent that is no integer.
    """
    value, power = _real("ldexp", x), _real("ldexp", exponent)
    whole = dt.is_integer_dtype(power.dtype) if isinstance(power, Expr) else ex.is_integer_number(power)
    if not whole:
        raise located(ArgumentTypeError, f"ldexp: the exponent must be an integer, got {exponent!r}")
    if not isinstance(value, Expr):
        if not isinstance(power, Expr):
            return math.ldexp(float(value), int(power))
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


def frexp(x: elementwise.Operand) -> tuple[Any, Any]:
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
