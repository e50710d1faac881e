"""Division with Python's meaning: the quotient is rounded down, the remainder has the sign of the divisor."""

from vkdispatch.base.dtype import (
    DType,
    component_type,
    float16,
    float32,
    is_complex,
    is_float_dtype,
    is_matrix,
    is_scalar,
    is_signed_dtype,
)
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.ir import Expr, Op
from vkdispatch.ir import expressions as ex
from vkdispatch.ir.location import located
from vkdispatch.ir.numbers import rounded
from vkdispatch.ir.own_functions import HALF_MODULO, HALF_QUOTIENT


def floor_quotient(a: ex.Operand, b: ex.Operand) -> Expr:
    """Make `a // b` as Python means it, of integers or floats. Raises TypeError for other types."""
    dividend, divisor, kind = _operands("//", a, b)
    if component_type(kind) is float16:
        return _call_with_floats(kind, dividend, divisor, HALF_QUOTIENT)
    if is_float_dtype(kind):
        return ex.call("floor", kind, ex.divide(dividend, divisor))
    if not is_signed_dtype(component_type(kind)) or _power_of_two(b):
        return ex.floor_divide(a, b)
    ex.check_divisor("//", b)
    quotient, _, correction = _correct_quotient(dividend, divisor)
    return ex.add("+", quotient, correction)


def floor_remainder(a: ex.Operand, b: ex.Operand) -> Expr:
    """Make `a % b` as Python means it, of integers or floats. Raises TypeError for other types."""
    dividend, divisor, kind = _operands("%", a, b)
    if component_type(kind) is float16:
        return _call_with_floats(kind, dividend, divisor, HALF_MODULO)
    if is_float_dtype(kind):
        return ex.call("mod", kind, ex.cast(dividend, kind), ex.cast(divisor, kind))
    if not is_signed_dtype(component_type(kind)):
        return ex.modulo(a, b)
    if ex.is_integer_number(b) and _power_of_two(b):
        return ex.bitwise("&", a, b - 1)
    ex.check_divisor("%", b)
    _, remainder, correction = _correct_quotient(dividend, divisor)
    return ex.add("+", remainder, ex.bitwise("&", divisor, correction))


def _operands(symbol: str, a: ex.Operand, b: ex.Operand) -> tuple[Expr, Expr, type]:
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


# ---- halves, whose quotients and remainders round too much ---------------------------------------


def _call_with_floats(kind: DType, a: Expr, b: Expr, function: str) -> Expr:
    """Call a function of float32 scalars with halves, component by component."""
    if is_scalar(kind):
        return ex.cast(ex.call(function, float32, _widen_half(a), _widen_half(b)), kind)
    parts = [
        [value if is_scalar(value.dtype) else ex.component(value, i) for value in (a, b)]
        for i in range(kind.child_count)
    ]
    return ex.construct(kind, [_call_with_floats(float16, x, y, function) for x, y in parts])


def _widen_half(value: Expr) -> Expr:
    if value.op is Op.LITERAL and isinstance(value.value, float):
        # a number takes part as a half
        return ex.literal(rounded(value.value, float16), float32)
    return ex.cast(value, float32)
