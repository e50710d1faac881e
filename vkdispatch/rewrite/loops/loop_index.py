"""The index of a Python loop that is recorded as one GPU loop.

It behaves like a Python number: combined with a GPU value it takes the type of that value, and combined with
another number it stays a number whose least and greatest values are known. The loop is unrolled where this is
impossible: where Python needs the value itself, or a type cannot represent it exactly.
"""

import math
import operator
from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any, NoReturn

from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_type,
    float16,
    float32,
    float64,
    int32,
    is_complex,
    is_float_dtype,
    is_integer_dtype,
    is_scalar,
    is_signed_dtype,
    is_vector,
)
from vkdispatch.base.errors import UsageError
from vkdispatch.base.host_numpy import np
from vkdispatch.codegen.trace.division import floor_quotient, floor_remainder
from vkdispatch.codegen.trace.kernel_warnings import without_warnings
from vkdispatch.codegen.trace.recording import current
from vkdispatch.codegen.variables import BoundVariable, ShaderVariable
from vkdispatch.ir import Expr, Op, ShaderFlags
from vkdispatch.ir import expressions as ex
from vkdispatch.ir.location import here, located
from vkdispatch.rewrite.state.tracer import Retry, tracer
from vkdispatch.rewrite.state.values import LocalValue, PythonNumber

if TYPE_CHECKING:
    from fractions import Fraction

# Bits of exact integers, and the exponent of the smallest exact fraction.
_EXACT: dict[DType, tuple[int, int]] = {float16: (11, 14), float32: (24, 126), float64: (53, 1022)}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_OPERATE: dict[str, Callable[[Any, Any], Any]] = {
    **_COMPARE,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_set = object.__setattr__


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


class LoopIndex(PythonNumber):
    """A number computed from the index of a recorded loop. `owner` is the attempt to record that loop."""

    __slots__ = ("owner", "span")

    owner: object
    span: Span

    def __init__(self, owner: object, span: Span) -> None:
        _set(self, "owner", owner)
        _set(self, "span", span)
        _set(self, "is_conjugate", False)

    def unroll(self) -> NoReturn:
        """Unroll the loop, because Python needs the number. Raises Retry."""
        active = tracer()
        if active is None or not any(attempt is self.owner for attempt in active.attempts):
            raise located(
                UsageError,
                "the index of a loop that became one of the GPU was kept where only Python sees it; put it "
                "in a local variable",
            )
        raise Retry(self.owner)

    @property
    def expr(self) -> Expr:  # type: ignore[override]
        """Not available: the type depends on the other operand, so the loop is unrolled."""
        self.unroll()

    def _value(self) -> Expr:
        self.unroll()

    # -- what codegen and the rewriter ask

    @property
    def extremes(self) -> tuple[int | float, int | float]:
        """The least and the greatest number."""
        number = int if self.span.whole else float
        return number(self.span.low), number(self.span.high)

    def as_expr(self, kind: DType) -> Expr:
        """Return the numbers as an expression of a scalar type that represents them exactly."""
        if not is_scalar(kind) or kind is bool_ or not self.span.fits(kind):
            self.unroll()
        return ex.cast(self.span.expr, kind)

    def is_same(self, other: PythonNumber) -> bool:
        """Whether both are the same number in every round."""
        return isinstance(other, LoopIndex) and other.span.expr is self.span.expr

    def _extremes(self) -> tuple[int, ...]:
        return (int(self.span.low), int(self.span.high)) if self.span.whole else ()

    def _as_index(self) -> Expr:
        if not self.span.whole or self.span.low < 0:
            self.unroll()
        return self.span.expr

    def _as_stored(self, kind: DType) -> Expr:
        if is_complex(kind):
            self.unroll()
        return ex.cast(self.as_expr(component_type(kind)), kind)

    # -- operators

    def _combine(self, symbol: str, other: object, reflected: bool = False) -> Any:
        if isinstance(other, ShaderVariable) and not isinstance(other, PythonNumber):
            return self._combine_with_gpu(symbol, other, reflected)
        theirs = _span_of(other)
        if theirs is None:
            if symbol in ("==", "!=") and not isinstance(other, (complex, np.generic, np.ndarray)):
                return NotImplemented
            self.unroll()
        mine = self.span
        left, right = (theirs, mine) if reflected else (mine, theirs)
        if symbol in _COMPARE:
            known = _compare_spans(symbol, left, right)
            return self.unroll() if known is None else known
        found = _COMBINED[symbol](left, right)
        if found is None or not found.fits(int32 if found.whole else float32):
            self.unroll()
        if found.known is not None and (found.whole or found.known):
            return int(found.known) if found.whole else float(found.known)
        owner = self.owner
        if isinstance(other, LoopIndex) and getattr(other.owner, "depth", 0) < getattr(owner, "depth", 0):
            # unrolling the outer loop first may be enough
            owner = other.owner
        return LoopIndex(owner, found)

    def _combine_with_gpu(self, symbol: str, value: ShaderVariable, reflected: bool) -> Any:
        """Combine with a GPU value, with the result that each of the numbers would give."""
        if isinstance(value, BoundVariable):
            self.unroll()
        kind = value.var_type
        scalar = component_type(kind)
        if not (is_scalar(kind) or is_vector(kind)) or scalar is bool_ or symbol not in _OPERATE:
            self.unroll()
        whole, integers = self.span.whole, is_integer_dtype(scalar)
        if integers and not whole and symbol in _COMPARE:
            self.unroll()
        if symbol in ("//", "%") and not reflected:
            # k // x
            pass
        elif symbol == "//" and integers and is_signed_dtype(scalar) and not _divides_as_python():
            # whether the quotient truncates depends on the number
            self.unroll()
        adopted = scalar if is_float_dtype(scalar) or (integers and whole) else float32
        rule = _OPERATE[symbol]
        typed = LocalValue(self.as_expr(adopted))
        result = rule(value, typed) if reflected else rule(typed, value)
        with without_warnings():
            for number in self.extremes:
                known = rule(value, number) if reflected else rule(number, value)
                if not isinstance(known, ShaderVariable) or known.var_type is not result.var_type:
                    self.unroll()
        return result

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Unroll for NumPy scalars, which do not combine like Python numbers."""
        self.unroll()

    def __add__(self, other: object) -> Any:
        return self._combine("+", other)

    def __radd__(self, other: object) -> Any:
        return self._combine("+", other, reflected=True)

    def __sub__(self, other: object) -> Any:
        return self._combine("-", other)

    def __rsub__(self, other: object) -> Any:
        return self._combine("-", other, reflected=True)

    def __mul__(self, other: object) -> Any:
        return self._combine("*", other)

    def __rmul__(self, other: object) -> Any:
        return self._combine("*", other, reflected=True)

    def __truediv__(self, other: object) -> Any:
        return self._combine("/", other)

    def __rtruediv__(self, other: object) -> Any:
        return self._combine("/", other, reflected=True)

    def __floordiv__(self, other: object) -> Any:
        return self._combine("//", other)

    def __rfloordiv__(self, other: object) -> Any:
        return self._combine("//", other, reflected=True)

    def __mod__(self, other: object) -> Any:
        return self._combine("%", other)

    def __rmod__(self, other: object) -> Any:
        return self._combine("%", other, reflected=True)

    def __lshift__(self, other: object) -> Any:
        return self._combine("<<", other)

    def __rlshift__(self, other: object) -> Any:
        return self._combine("<<", other, reflected=True)

    def __rshift__(self, other: object) -> Any:
        return self._combine(">>", other)

    def __rrshift__(self, other: object) -> Any:
        return self._combine(">>", other, reflected=True)

    def __and__(self, other: object) -> Any:
        return self._combine("&", other)

    def __rand__(self, other: object) -> Any:
        return self._combine("&", other, reflected=True)

    def __or__(self, other: object) -> Any:
        return self._combine("|", other)

    def __ror__(self, other: object) -> Any:
        return self._combine("|", other, reflected=True)

    def __xor__(self, other: object) -> Any:
        return self._combine("^", other)

    def __rxor__(self, other: object) -> Any:
        return self._combine("^", other, reflected=True)

    def __divmod__(self, other: object) -> Any:
        return self // other, self % other

    def __pow__(self, other: object) -> Any:  # type: ignore[override]
        if type(other) is not int or not 0 <= other <= 4:
            self.unroll()
        result: Any = 1
        for _ in range(other):
            result = self * result
        return result

    def __rpow__(self, other: object) -> Any:  # type: ignore[override]
        self.unroll()

    def __neg__(self) -> Any:
        if not self.span.whole:
            # 0.0 would lose its sign
            self.unroll()
        return self._combine("-", 0, reflected=True)

    def __pos__(self) -> Any:
        return self

    def __invert__(self) -> Any:
        return self._combine("-", -1, reflected=True)

    def __abs__(self) -> Any:
        if self.span.low >= 0:
            return self
        if self.span.high <= 0:
            return -self
        if not self.span.whole:
            self.unroll()
        most = max(-self.span.low, self.span.high)
        return LoopIndex(self.owner, Span(make_fraction(0), most, 0, True, ex.absolute(self.span.expr)))

    def __round__(self, digits: object = None) -> Any:
        return self if self.span.whole and digits is None else self.unroll()

    def __lt__(self, other: object) -> Any:
        return self._combine("<", other)

    def __le__(self, other: object) -> Any:
        return self._combine("<=", other)

    def __gt__(self, other: object) -> Any:
        return self._combine(">", other)

    def __ge__(self, other: object) -> Any:
        return self._combine(">=", other)

    def __eq__(self, other: object) -> Any:
        return self._combine("==", other)

    def __ne__(self, other: object) -> Any:
        return self._combine("!=", other)

    def __bool__(self) -> bool:
        return True if self.span.low > 0 or self.span.high < 0 else self.unroll()

    def __hash__(self) -> int:
        self.unroll()

    def __index__(self) -> int:
        self.unroll()

    def __int__(self) -> int:
        self.unroll()

    def __float__(self) -> float:
        self.unroll()

    def __complex__(self) -> complex:
        self.unroll()

    __iadd__, __isub__, __imul__, __itruediv__ = __add__, __sub__, __mul__, __truediv__
    __ifloordiv__, __imod__, __ipow__ = __floordiv__, __mod__, __pow__
    __ilshift__, __irshift__, __iand__, __ior__, __ixor__ = __lshift__, __rshift__, __and__, __or__, __xor__


def make_loop_index(owner: object, counter: Expr, numbers: range) -> LoopIndex:
    """Make the index of a GPU loop whose int32 counter takes these numbers."""
    ends = sorted((numbers[0], numbers[-1]))
    return LoopIndex(owner, Span(make_fraction(ends[0]), make_fraction(ends[1]), 0, True, counter))


def _divides_as_python() -> bool:
    return bool(current().flags & ShaderFlags.PYTHON_DIVISION)


def _span_of(value: object) -> Span | None:
    """Return the span of a Python number, or None for anything else."""
    if isinstance(value, LoopIndex):
        return value.span
    if type(value) in (int, bool):
        number = make_fraction(int(value))  # type: ignore[call-overload]
        return (
            Span(number, number, 0, True, ex.literal(int(number), int32)) if abs(number) < 1 << 31 else None
        )
    if type(value) is float and math.isfinite(value) and (value or math.copysign(1, value) > 0):
        number = make_fraction(value)
        return Span(number, number, number.denominator.bit_length() - 1, False, ex.literal(value, float32))
    return None


def _compare_spans(symbol: str, left: Span, right: Span) -> bool | None:
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


_COMBINED: dict[str, Callable[[Span, Span], Span | None]] = {
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
