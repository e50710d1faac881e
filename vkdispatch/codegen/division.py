"""Division with Python's meaning: the quotient is rounded down, the remainder has the sign of the divisor."""

from collections.abc import Callable

import numpy as np

from vkdispatch.base.dtype import (
    DType,
    bool_,
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
from vkdispatch.codegen import expressions as ex
from vkdispatch.codegen.helpers import HALF_REMAINDER
from vkdispatch.codegen.ir import Expr, Op
from vkdispatch.codegen.location import located


def floor_quotient(a: ex.Operand, b: ex.Operand) -> Expr:
    """Make `a // b` as Python means it, of integers or floats. Raises TypeError for other types."""
    dividend, divisor, kind = _operands("//", a, b)
    if component_type(kind) is float16:
        return _of_halves(kind, dividend, divisor, _half_quotient)
    if is_float_dtype(kind):
        return ex.call("floor", kind, ex.divide(dividend, divisor))
    if not is_signed_dtype(component_type(kind)) or _power_of_two(b):
        return ex.floor_divide(a, b)
    quotient, _, correction = _corrected(dividend, divisor)
    return ex.add("+", quotient, correction)


def floor_remainder(a: ex.Operand, b: ex.Operand) -> Expr:
    """Make `a % b` as Python means it, of integers or floats. Raises TypeError for other types."""
    dividend, divisor, kind = _operands("%", a, b)
    if component_type(kind) is float16:
        return _of_halves(kind, dividend, divisor, _half_modulo)
    if is_float_dtype(kind):
        return ex.call("mod", kind, ex.cast(dividend, kind), ex.cast(divisor, kind))
    if not is_signed_dtype(component_type(kind)):
        return ex.modulo(a, b)
    if ex.is_integer_number(b) and _power_of_two(b):
        return ex.bitwise("&", a, b - 1)
    _, remainder, correction = _corrected(dividend, divisor)
    return ex.add("+", remainder, ex.bitwise("&", divisor, correction))


def _operands(symbol: str, a: ex.Operand, b: ex.Operand) -> tuple[Expr, Expr, type]:
    for value in (a, b):
        if isinstance(value, Expr) and (
            is_complex(value.dtype) or is_matrix(value.dtype) or value.dtype is bool_
        ):
            raise located(
                ArgumentTypeError, f"{symbol}: expected integers or real numbers, got {value.dtype.name}"
            )
    kind, (dividend, divisor) = ex.meet((a, b), symbol)
    return dividend, divisor, kind


def _power_of_two(value: ex.Operand) -> bool:
    return ex.is_integer_number(value) and value > 0 and value & (value - 1) == 0


def _corrected(a: Expr, b: Expr) -> tuple[Expr, Expr, Expr]:
    """Quotient and remainder as GLSL truncates them, and -1 where the signs ask for one less, else 0."""
    quotient = ex.floor_divide(a, b)
    # GLSL leaves the remainder of negative numbers undefined
    remainder = ex.add("-", a, ex.multiply(quotient, b))
    top = 8 * component_type(remainder.dtype).item_size - 1
    differ = ex.bitwise("^", remainder, b)
    nonzero = ex.bitwise("|", remainder, ex.negate(remainder))
    return quotient, remainder, ex.bitwise(">>", ex.bitwise("&", differ, nonzero), top)


# ---- halves, whose quotients and remainders round too much ---------------------------------------


def _of_halves(kind: DType, a: Expr, b: Expr, rule: Callable[[Expr, Expr], Expr]) -> Expr:
    """Apply a rule for float32 scalars to halves, component by component."""
    if is_scalar(kind):
        return ex.cast(rule(_single(a), _single(b)), kind)
    parts = [
        [value if is_scalar(value.dtype) else ex.component(value, i) for value in (a, b)]
        for i in range(kind.child_count)
    ]
    return ex.construct(kind, [ex.cast(rule(_single(x), _single(y)), float16) for x, y in parts])


def _single(value: Expr) -> Expr:
    if value.op is Op.LITERAL and isinstance(value.value, float):
        # a number takes part as a half
        return ex.literal(float(np.float16(value.value)), float32)
    return ex.cast(value, float32)


def _half_remainder(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Remainder with the sign of the dividend, and whether that is not the sign of the divisor."""
    rest = ex.call(HALF_REMAINDER, float32, a, b)
    signs = ex.compare("!=", ex.compare("<", rest, 0), ex.compare("<", b, 0))
    return rest, ex.logical("&&", (ex.compare("!=", rest, 0), signs))


def _half_quotient(a: Expr, b: Expr) -> Expr:
    rest, differ = _half_remainder(a, b)
    quotient = ex.call("roundEven", float32, ex.divide(ex.add("-", a, rest), b))
    return ex.select(differ, ex.add("-", quotient, 1), quotient)


def _half_modulo(a: Expr, b: Expr) -> Expr:
    rest, differ = _half_remainder(a, b)
    return ex.select(differ, ex.add("+", rest, b), rest)
