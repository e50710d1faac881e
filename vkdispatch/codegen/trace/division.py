"""Division with Python's meaning: the quotient is rounded down, the remainder has the sign of the divisor."""

from collections.abc import Callable

from vkdispatch.base.dtype import (
    DType,
    component_type,
    float16,
    float32,
    is_complex,
    is_float_dtype,
    is_matrix,
    is_signed_dtype,
    uint32,
)
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.compiler.ir import Expr, Op
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.literals import rounded
from vkdispatch.compiler.ir.location import located
from vkdispatch.compiler.ir.statements import DOUBLE_REMAINDER, FLOAT_REMAINDER


def floor_quotient(a: ex.Operand, b: ex.Operand) -> Expr:
    """Make `a // b` as Python means it, of integers or floats. Raises TypeError for other types."""
    dividend, divisor, kind = _operands("//", a, b)
    if is_float_dtype(kind):
        return _by_parts(_floor_quotient, dividend, divisor, kind)
    if not is_signed_dtype(component_type(kind)) or _power_of_two(b):
        return ex.floor_divide(a, b)
    ex.check_divisor("//", b)
    quotient, _, correction = _correct_quotient(dividend, divisor)
    return ex.add("+", quotient, correction)


def floor_remainder(a: ex.Operand, b: ex.Operand) -> Expr:
    """Make `a % b` as Python means it, of integers or floats. Raises TypeError for other types."""
    dividend, divisor, kind = _operands("%", a, b)
    if is_float_dtype(kind):
        return _by_parts(_floor_remainder, dividend, divisor, kind)
    if not is_signed_dtype(component_type(kind)):
        return ex.modulo(a, b)
    if ex.is_integer_number(b) and _power_of_two(b):
        return ex.bitwise("&", a, b - 1)
    ex.check_divisor("%", b)
    _, remainder, correction = _correct_quotient(dividend, divisor)
    return ex.add("+", remainder, ex.bitwise("&", divisor, correction))


def _operands(symbol: str, a: ex.Operand, b: ex.Operand) -> tuple[Expr, Expr, DType]:
    for value in (a, b):
        if isinstance(value, Expr) and (is_complex(value.dtype) or is_matrix(value.dtype)):
            raise located(
                ArgumentTypeError, f"{symbol}: expected integers or real numbers, got {value.dtype.name}"
            )
    kind, (dividend, divisor) = ex.meet((a, b), symbol)
    return dividend, divisor, kind


def _power_of_two(value: ex.Operand) -> bool:
    return ex.is_integer_number(value) and value > 0 and value & (value - 1) == 0


def _correct_quotient(a: Expr, b: Expr) -> tuple[Expr, Expr, Expr]:
    """Quotient and remainder as GLSL truncates them, and -1 where the signs ask for one less, else 0."""
    quotient = ex.floor_divide(a, b)
    # GLSL leaves the remainder of negative numbers undefined
    remainder = ex.add("-", a, ex.multiply(quotient, b))
    top = 8 * component_type(remainder.dtype).item_size - 1
    differ = ex.bitwise("^", remainder, b)
    nonzero = ex.bitwise("|", remainder, ex.negate(remainder))
    return quotient, remainder, ex.bitwise(">>", ex.bitwise("&", differ, nonzero), top)


# ---- floats: what Python and NumPy compute of C's fmod ---------------------------------------------


def float_remainder(a: ex.Operand, b: ex.Operand, name: str = "fmod") -> Expr:
    """Make the exact remainder of floats with the sign of `a`, as C's fmod. Integers become floats."""
    return _by_parts(_remainder_toward_zero, *_floats(name, a, b))


def _floats(symbol: str, a: ex.Operand, b: ex.Operand) -> tuple[Expr, Expr, DType]:
    _operands(symbol, a, b)
    kind, (dividend, divisor) = ex.meet((a, b), symbol, floating=True)
    return dividend, divisor, kind


def _by_parts(rule: Callable[[Expr, Expr], Expr], a: Expr, b: Expr, kind: DType) -> Expr:
    """Apply a rule for float32 or float64 to components; halves take part as float32, and round then."""
    scalar = component_type(kind)
    if scalar is not float16:
        return ex.by_component(rule, kind, a, b)
    return ex.by_component(lambda x, y: ex.cast(rule(_widen_half(x), _widen_half(y)), scalar), kind, a, b)


def _remainder_toward_zero(a: Expr, b: Expr) -> Expr:
    to_bits, from_bits, word = ex.BITS_OF[a.dtype]
    function = FLOAT_REMAINDER if word is uint32 else DOUBLE_REMAINDER
    bits = ex.call(function, word, ex.call(to_bits, word, a), ex.call(to_bits, word, b))
    return ex.call(from_bits, a.dtype, bits)


def _signs_differ(rest: Expr, b: Expr) -> Expr:
    other = ex.compare("!=", ex.compare("<", rest, 0), ex.compare("<", b, 0))
    return ex.logical("&&", (ex.compare("!=", rest, 0), other))


def _floor_remainder(a: Expr, b: Expr) -> Expr:
    rest = _remainder_toward_zero(a, b)
    moved = ex.select(_signs_differ(rest, b), ex.add("+", rest, b), rest)
    return ex.select(ex.compare("==", rest, 0), ex.copy_sign(rest, b), moved)


def _floor_quotient(a: Expr, b: Expr) -> Expr:
    rest, plain = _remainder_toward_zero(a, b), ex.divide(a, b)
    # devices may return 0 for quotients by the largest numbers
    scale = ex.select(ex.compare(">", ex.absolute(b), 1e36), ex.literal(0.0625, a.dtype), 1.0)
    whole = ex.divide(ex.multiply(ex.add("-", a, rest), scale), ex.multiply(b, scale))
    # a multiple of b over b, which the device's division may miss by a little
    whole = ex.call("roundEven", a.dtype, whole)
    quotient = ex.add("-", whole, ex.select(_signs_differ(rest, b), ex.literal(1.0, a.dtype), 0.0))
    quotient = ex.select(ex.compare("==", quotient, 0), ex.copy_sign(quotient, plain), quotient)
    return ex.select(ex.compare("==", b, 0), plain, quotient)


def _widen_half(value: Expr) -> Expr:
    if value.op is Op.LITERAL and isinstance(value.value, float):
        # a number takes part as a half
        return ex.literal(rounded(value.value, float16), float32)
    return ex.cast(value, float32)
