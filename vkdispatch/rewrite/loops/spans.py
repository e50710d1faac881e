"""Ranges of the numbers that a loop index takes, and arithmetic on them."""

import operator
from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

from vkdispatch.base.dtype import DType, float16, float32, float64, int32, is_integer_dtype, is_signed_dtype
from vkdispatch.codegen.trace.division import floor_quotient, floor_remainder
from vkdispatch.compiler.ir import Expr, Op
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here

if TYPE_CHECKING:
    from fractions import Fraction

# Bits of exact integers, and the exponent of the smallest exact fraction.
_EXACT: dict[DType, tuple[int, int]] = {float16: (11, 14), float32: (24, 126), float64: (53, 1022)}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def make_fraction(value: int | float) -> "Fraction":
    """Return a number as a fraction. The module is imported by the first loop that needs it."""
    from fractions import Fraction

    return Fraction(value)


class Span:
    """Numbers from `low` to `high`, all multiples of 2 ** -shift.

    They are Python ints if `whole`, else floats; `expr` is their exact int32 or float32 expression.
    """

    __slots__ = ("expr", "high", "low", "shift", "whole")

    def __init__(self, low: "Fraction", high: "Fraction", shift: int, whole: bool, expr: Expr) -> None:
        self.low = low
        self.high = high
        self.shift = shift
        self.whole = whole
        self.expr = expr

    @property
    def known(self) -> "Fraction | None":
        """The number, if there is only one."""
        return self.low if self.low == self.high else None

    def fits(self, kind: DType) -> bool:
        """Whether a scalar type represents all of the numbers exactly."""
        if is_integer_dtype(kind):
            bits = 8 * kind.item_size
            least = -(1 << (bits - 1)) if is_signed_dtype(kind) else 0
            return self.whole and least <= self.low and self.high < least + (1 << bits)
        digits, finest = _EXACT.get(kind, (0, 0))
        most = max(-self.low, self.high) * (1 << self.shift)
        return bool(digits) and self.shift <= finest and most <= 1 << digits


def compare_spans(symbol: str, left: Span, right: Span) -> bool | None:
    """Return the result of a comparison if it is the same in every round, else None."""
    if left.high < right.low:
        return symbol in ("<", "<=", "!=")
    if left.low > right.high:
        return symbol in (">", ">=", "!=")
    if left.high == right.low and symbol in ("<=", ">"):
        return symbol == "<="
    if left.low == right.high and symbol in (">=", "<"):
        return symbol == ">="
    return None


def _combine_spans(
    symbol: str, left: Span, right: Span, low: "Fraction", high: "Fraction", shift: int
) -> Span | None:
    whole = left.whole and right.whole
    kind = int32 if whole else float32
    if not whole and not (left.fits(kind) and right.fits(kind)):
        return None
    args = (ex.cast(left.expr, kind), ex.cast(right.expr, kind))
    return Span(low, high, shift, whole, Expr(Op.BINARY, kind, args, symbol, here()))


def _add(left: Span, right: Span) -> Span | None:
    return _combine_spans(
        "+", left, right, left.low + right.low, left.high + right.high, max(left.shift, right.shift)
    )


def _subtract(left: Span, right: Span) -> Span | None:
    shift = max(left.shift, right.shift)
    if left.known == 0 and left.whole and right.whole:
        return Span(-right.high, -right.low, shift, True, ex.negate(right.expr))
    return _combine_spans("-", left, right, left.low - right.high, left.high - right.low, shift)


def _multiply(left: Span, right: Span) -> Span | None:
    for one, other in ((left, right), (right, left)):
        if one.known == 1 and one.whole:
            return other
    corners = [a * b for a, b in product((left.low, left.high), (right.low, right.high))]
    return _combine_spans("*", left, right, min(corners), max(corners), left.shift + right.shift)


def _divide(left: Span, right: Span) -> Span | None:
    """Divide by a power of two exactly."""
    divisor = right.known
    if not divisor:
        return None
    inverse = 1 / divisor
    if inverse.denominator & (inverse.denominator - 1) or abs(inverse.numerator) & (
        abs(inverse.numerator) - 1
    ):
        return None
    shift = inverse.denominator.bit_length() - 1
    return _multiply(
        left,
        Span(inverse, inverse, shift, False, ex.literal(float(inverse), float32)),
    )


def _find_positive_divisor(left: Span, right: Span) -> int | None:
    """Return the divisor of whole numbers if it is a single positive number, else None."""
    divisor = right.known
    return int(divisor) if left.whole and right.whole and divisor is not None and divisor > 0 else None


def _quotient(left: Span, right: Span) -> Span | None:
    divisor = _find_positive_divisor(left, right)
    if divisor is None:
        return None
    rule = ex.floor_divide if left.low >= 0 else floor_quotient
    low, high = left.low // divisor, left.high // divisor
    return (
        Span(make_fraction(low), make_fraction(high), 0, True, rule(left.expr, divisor))
        if divisor > 1
        else left
    )


def _remainder(left: Span, right: Span) -> Span | None:
    divisor = _find_positive_divisor(left, right)
    if divisor is None:
        return None
    if left.low // divisor == left.high // divisor:
        low, high = left.low % divisor, left.high % divisor
    else:
        low, high = make_fraction(0), make_fraction(divisor - 1)
    rule = ex.modulo if left.low >= 0 else floor_remainder
    return Span(low, high, 0, True, rule(left.expr, divisor))


def _shift_left(left: Span, right: Span) -> Span | None:
    amount = right.known
    if not (left.whole and right.whole) or amount is None or not 0 <= amount < 31:
        return None
    factor = 1 << int(amount)
    return _multiply(
        left, Span(make_fraction(factor), make_fraction(factor), 0, True, ex.literal(factor, int32))
    )


def _shift_right(left: Span, right: Span) -> Span | None:
    amount = right.known
    if not (left.whole and right.whole) or amount is None or amount < 0:
        return None
    bits = min(int(amount), 31)
    low, high = int(left.low) >> bits, int(left.high) >> bits
    expr = Expr(Op.BINARY, int32, (left.expr, ex.literal(bits, int32)), ">>", here())
    return Span(make_fraction(low), make_fraction(high), 0, True, expr)


def _make_bitwise_rule(symbol: str) -> Callable[[Span, Span], Span | None]:
    """Make the rule of a bitwise operator for nonnegative numbers."""

    def combine(left: Span, right: Span) -> Span | None:
        if not (left.whole and right.whole) or left.low < 0 or right.low < 0:
            return None
        ones = (1 << max(int(left.high), int(right.high)).bit_length()) - 1
        high = min(left.high, right.high) if symbol == "&" else make_fraction(ones)
        low = max(left.low, right.low) if symbol == "|" else make_fraction(0)
        return Span(low, high, 0, True, Expr(Op.BINARY, int32, (left.expr, right.expr), symbol, here()))

    return combine


COMBINATIONS: dict[str, Callable[[Span, Span], Span | None]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "//": _quotient,
    "%": _remainder,
    "<<": _shift_left,
    ">>": _shift_right,
    "&": _make_bitwise_rule("&"),
    "|": _make_bitwise_rule("|"),
    "^": _make_bitwise_rule("^"),
}
