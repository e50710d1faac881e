"""Comparison of two recordings of the same part of a kernel, and ranges of a loop's index."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.record import record
from vkdispatch.codegen.trace.operators import floor_quotient, floor_remainder
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler import ir
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.literals import bounds, rounded
from vkdispatch.compiler.ir.location import here
from vkdispatch.control_flow.values import PythonNumber, as_expr, is_gpu

if TYPE_CHECKING:
    from fractions import Fraction


# ---- Ranges of the numbers that a loop index takes, and arithmetic on them -------------------------------


# Bits of exact integers, and the exponent of the smallest exact fraction.
_EXACT: dict[dt.DType, tuple[int, int]] = {
    dt.float16: (11, 14),
    dt.float32: (24, 126),
    dt.float64: (53, 1022),
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def make_fraction(value: "int | float | Fraction") -> "Fraction":
    """Return a number as a fraction. The module is imported by the first loop that needs it."""
    from fractions import Fraction

    return Fraction(value)


@record(eq=False)
class Span:
    """Numbers from `low` to `high`, all multiples of 2 ** -shift.

    They are Python ints if `whole`, else floats; `expr` is their exact int32 or float32 expression.
    """

    low: "Fraction"
    high: "Fraction"
    shift: int
    whole: bool
    expr: ir.Expr

    @property
    def known(self) -> "Fraction | None":
        """The number, if there is only one."""
        return self.low if self.low == self.high else None

    def fits(self, kind: dt.DType) -> bool:
        """Whether a scalar type represents all of the numbers exactly."""
        if dt.is_integer_dtype(kind):
            bits = 8 * kind.item_size
            least = -(1 << (bits - 1)) if dt.is_signed_dtype(kind) else 0
            return self.whole and least <= self.low and self.high < least + (1 << bits)
        digits, finest = _EXACT.get(kind, (0, 0))
        most = max(-self.low, self.high) * (1 << self.shift)
        return bool(digits) and self.shift <= finest and most <= 1 << digits


def make_whole_span(low: "int | Fraction", high: "int | Fraction", expr: ir.Expr) -> Span:
    """Return the integers from `low` to `high`."""
    return Span(make_fraction(low), make_fraction(high), 0, True, expr)


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
    kind = dt.int32 if whole else dt.float32
    if not whole and not (left.fits(kind) and right.fits(kind)):
        return None
    args = (ex.cast(left.expr, kind), ex.cast(right.expr, kind))
    return Span(low, high, shift, whole, ir.Expr(ir.Op.BINARY, kind, args, symbol, here()))


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
    terms = (inverse.denominator, abs(inverse.numerator))
    if any(term & (term - 1) for term in terms):
        return None
    shift = inverse.denominator.bit_length() - 1
    return _multiply(left, Span(inverse, inverse, shift, False, ex.literal(float(inverse), dt.float32)))


def _find_positive_divisor(left: Span, right: Span) -> int | None:
    """Return the divisor of whole numbers if it is a single positive number, else None."""
    divisor = right.known
    return int(divisor) if left.whole and right.whole and divisor is not None and divisor > 0 else None


def _quotient(left: Span, right: Span) -> Span | None:
    divisor = _find_positive_divisor(left, right)
    if divisor is None:
        return None
    if divisor == 1:
        return left
    rule = ex.floor_divide if left.low >= 0 else floor_quotient
    return make_whole_span(left.low // divisor, left.high // divisor, rule(left.expr, divisor))


def _remainder(left: Span, right: Span) -> Span | None:
    divisor = _find_positive_divisor(left, right)
    if divisor is None:
        return None
    low, high = left.low % divisor, left.high % divisor
    if left.low // divisor != left.high // divisor:
        low, high = make_fraction(0), make_fraction(divisor - 1)
    rule = ex.modulo if left.low >= 0 else floor_remainder
    return make_whole_span(low, high, rule(left.expr, divisor))


def _shift_left(left: Span, right: Span) -> Span | None:
    amount = right.known
    if not (left.whole and right.whole) or amount is None or not 0 <= amount < 31:
        return None
    factor = 1 << int(amount)
    return _multiply(left, make_whole_span(factor, factor, ex.literal(factor, dt.int32)))


def _shift_right(left: Span, right: Span) -> Span | None:
    amount = right.known
    if not (left.whole and right.whole) or amount is None or amount < 0:
        return None
    bits = min(int(amount), 31)
    low, high = int(left.low) >> bits, int(left.high) >> bits
    expr = ir.Expr(ir.Op.BINARY, dt.int32, (left.expr, ex.literal(bits, dt.int32)), ">>", here())
    return make_whole_span(low, high, expr)


def _make_bitwise_rule(symbol: str) -> Callable[[Span, Span], Span | None]:
    """Make the rule of a bitwise operator for nonnegative numbers."""

    def combine(left: Span, right: Span) -> Span | None:
        if not (left.whole and right.whole) or left.low < 0 or right.low < 0:
            return None
        ones = (1 << max(int(left.high), int(right.high)).bit_length()) - 1
        high = min(left.high, right.high) if symbol == "&" else ones
        low = max(left.low, right.low) if symbol == "|" else 0
        expr = ir.Expr(ir.Op.BINARY, dt.int32, (left.expr, right.expr), symbol, here())
        return make_whole_span(low, high, expr)

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


# ---- Comparison of two recordings of the same part of a kernel -------------------------------------------


Start = tuple[object, dt.DType]
# Operations of numbers, by symbol and count of operands; None is a conversion.
_FOLDED: dict[tuple[Any, int], Callable[..., Any]] = {
    ("+", 2): operator.add,
    ("-", 2): operator.sub,
    ("*", 2): operator.mul,
    ("-", 1): operator.neg,
    (None, 1): operator.pos,
}


# Properties of statements other than expressions, blocks and names.
_FACTS: dict[type, Callable[[Any], object]] = {
    ir.Declare: attrgetter("register.dtype", "register.fixed", "register.position", "register.precise"),
    ir.Store: attrgetter("operator"),
    ir.ImageStore: attrgetter("image.index"),
    ir.MatrixLoad: attrgetter("transposed"),
    ir.MatrixStore: attrgetter("transposed"),
    ir.If: lambda statement: (len(statement.branches), statement.orelse is None),
    ir.For: attrgetter("counter.dtype"),
    ir.Switch: lambda statement: ([values for values, _ in statement.cases], statement.default is None),
    ir.Effect: attrgetter("function"),
    ir.Assert: attrgetter("message"),
    ir.Print: attrgetter("format", "style"),
    ir.Comment: attrgetter("text"),
    ir.RawStatement: attrgetter("text"),
    ir.Scope: attrgetter("comment"),
}


class Comparison:
    """Compares a recording that has the initial values of variables with one that has registers for them.

    Parameters
    ----------
    starts
        The initial values, by the identity of their registers in the second recording.
    counters
        Pairs of corresponding registers of the two recordings.
    """

    def __init__(
        self, starts: Mapping[int, Start], counters: Iterable[tuple[ir.Register, ir.Register]]
    ) -> None:
        self._starts = starts
        self._pairs: dict[int, ir.Register] = {id(second): first for first, second in counters}
        self._known: set[tuple[int, int]] = set()

    def are_blocks_equal(self, first: Sequence[ir.Statement], second: Sequence[ir.Statement]) -> bool:
        """Whether two blocks are the same."""
        return len(first) == len(second) and all(map(self._are_statements_equal, first, second))

    def _are_statements_equal(self, first: ir.Statement, second: ir.Statement) -> bool:
        find_facts = _FACTS.get(type(first))
        if type(first) is not type(second) or (find_facts and find_facts(first) != find_facts(second)):
            return False
        # the condition of an assert may use what its body declares
        both = isinstance(first, ir.Assert) and isinstance(second, ir.Assert)
        if both and not self.are_blocks_equal(*ir.blocks_of(first), *ir.blocks_of(second)):
            return False
        mine, theirs = ir.expressions_of(first), ir.expressions_of(second)
        if len(mine) != len(theirs) or not all(map(self.are_expressions_equal, mine, theirs)):
            return False
        if isinstance(first, ir.Declare) and isinstance(second, ir.Declare):
            self._pairs[id(second.register)] = first.register
        if isinstance(first, ir.For) and isinstance(second, ir.For):
            self._pairs[id(second.counter)] = first.counter
        mine_inside, theirs_inside = ir.blocks_of(first), ir.blocks_of(second)
        return len(mine_inside) == len(theirs_inside) and all(
            map(self.are_blocks_equal, mine_inside, theirs_inside)
        )

    def are_expressions_equal(self, first: ir.Expr, second: ir.Expr) -> bool:
        """Whether two expressions are the same."""
        stack = [(first, second)]
        while stack:
            mine, theirs = stack.pop()
            key = (id(mine), id(theirs))
            if key in self._known:
                continue
            self._known.add(key)
            if self._is_start(mine, theirs) or self._is_known(mine, theirs):
                continue
            alike = mine.op is theirs.op and mine.dtype is theirs.dtype
            if not alike or len(mine.args) != len(theirs.args):
                shorter = self._strip_factor_one(theirs)
                if shorter is None:
                    return False
                stack.append((mine, shorter))
                continue
            if not self._are_payloads_equal(mine, theirs):
                return False
            stack += zip(mine.args, theirs.args, strict=True)
        return True

    def _are_payloads_equal(self, mine: ir.Expr, theirs: ir.Expr) -> bool:
        one, other = mine.value, theirs.value
        if isinstance(other, ir.Register):
            return one is self._pairs.get(id(other), other)
        if mine.op is ir.Op.LITERAL:
            # tells 0.0 from -0.0, and makes nan equal to itself
            return repr(one) == repr(other)
        if isinstance(one, ir.Argument) and isinstance(other, ir.Argument):
            # the shape of a buffer, read a second time
            return (one.name, one.dtype, one.shape) == (other.name, other.dtype, other.shape)
        return one is other or (type(one) is type(other) and bool(one == other))

    def _is_start(self, mine: ir.Expr, theirs: ir.Expr) -> bool:
        """Whether `mine` is the initial value of the register in `theirs`."""
        register = theirs.args[0] if theirs.op is ir.Op.CONSTRUCT and len(theirs.args) == 1 else theirs
        known = self._starts.get(id(register.value))
        if known is None or register.op is not ir.Op.REGISTER:
            return False
        start, kept = known
        if is_gpu(start) or isinstance(start, PythonNumber):
            expected = ex.cast(as_expr(start, kept), kept)
            if register is not theirs:
                expected = ex.cast(expected, theirs.dtype)
            return Comparison({}, ()).are_expressions_equal(mine, expected)
        if mine.op is not ir.Op.LITERAL or mine.dtype is not theirs.dtype:
            return False
        if register is theirs:
            return repr(mine.value) == repr(as_expr(start, kept).value)
        return mine.value == start and _is_exact(kept, start) and _is_exact(theirs.dtype, start)

    def _is_known(self, mine: ir.Expr, theirs: ir.Expr) -> bool:
        """Whether `mine` is a number that Python computed from the initial values of registers."""
        if mine.op is not ir.Op.LITERAL or mine.dtype is not theirs.dtype or theirs.op is ir.Op.LITERAL:
            return False
        number = self._evaluate(theirs)
        return number is not None and _is_exact(mine.dtype, mine.value) and repr(number) == repr(mine.value)

    def _evaluate(self, expr: ir.Expr) -> Any:
        """Return the value of an expression of known numbers, or None if it is unknown or not exact."""
        number: Any = None
        known = self._starts.get(id(expr.value)) if expr.op is ir.Op.REGISTER else None
        if expr.op is ir.Op.LITERAL:
            number = expr.value
        elif known is not None and not isinstance(known[0], (ShaderVariable, bool)):
            number = known[0]
        elif expr.op in (ir.Op.BINARY, ir.Op.UNARY, ir.Op.CONSTRUCT) and dt.is_scalar(expr.dtype):
            rule = _FOLDED.get((expr.value, len(expr.args)))
            parts = [] if rule is None else [self._evaluate(arg) for arg in expr.args]
            if rule is not None and None not in parts:
                number = rule(*parts)
        if number is None or expr.dtype is dt.bool_ or isinstance(number, bool):
            return None
        number = float(number) if dt.is_float_dtype(expr.dtype) else number
        return number if _is_exact(expr.dtype, number) else None

    def _strip_factor_one(self, expr: ir.Expr) -> ir.Expr | None:
        """Return the other factor of a product with a register whose initial value is 1, or None."""
        if expr.op is not ir.Op.BINARY or expr.value != "*":
            return None
        for factor, other in (expr.args, expr.args[::-1]):
            known = self._starts.get(id(factor.value)) if factor.op is ir.Op.REGISTER else None
            if known is None or isinstance(known[0], ShaderVariable):
                continue
            if known[0] == 1 and other.dtype is expr.dtype:
                return other
        return None


def _is_exact(kind: dt.DType, number: Any) -> bool:
    """Whether a scalar type holds a number exactly."""
    if kind is dt.bool_:
        return isinstance(number, bool)
    if not dt.is_scalar(kind):
        if not dt.is_complex(kind) or kind is dt.complex32:
            return False
        return all(_is_exact(dt.component_type(kind), part) for part in (number.real, number.imag))
    if dt.is_float_dtype(kind):
        return bool(rounded(float(number), kind) == number)
    low, high = bounds(kind)
    return bool(int(number) == number and low <= number <= high)
