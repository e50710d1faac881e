"""The index of a Python loop that is recorded as one GPU loop.

It behaves like a Python number: combined with a GPU value it takes the type of that value, and combined with
another number it stays a number whose least and greatest values are known. The loop is unrolled where this is
impossible: where Python needs the value itself, or a type cannot represent it exactly.
"""

import math
import operator
from collections.abc import Callable
from typing import Any, NoReturn

from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_type,
    float32,
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
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.variables import BoundVariable, ShaderVariable
from vkdispatch.compiler.ir import Expr, ShaderFlags
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import located, without_warnings
from vkdispatch.rewrite.loops.spans import COMBINATIONS, COMPARISONS, Span, compare_spans, make_fraction
from vkdispatch.rewrite.state.tracer import Retry, find_tracer
from vkdispatch.rewrite.state.values import LocalValue, PythonNumber

_OPERATE: dict[str, Callable[[Any, Any], Any]] = {
    **COMPARISONS,
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
_set = object.__setattr__


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
        active = find_tracer()
        if active is None or not any(attempt is self.owner for attempt in active.attempts):
            raise located(
                UsageError,
                "the index of a loop that runs on the GPU was stored where only Python sees it; put it in a "
                "local variable",
            )
        raise Retry(self.owner)

    @property
    def expr(self) -> Expr:  # type: ignore[override]
        """Not available: the type depends on the other operand, so the loop is unrolled."""
        self.unroll()

    def _value(self) -> Expr:
        self.unroll()

    # -- for codegen and the rewriter

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
        if symbol in COMPARISONS:
            known = compare_spans(symbol, left, right)
            return self.unroll() if known is None else known
        found = COMBINATIONS[symbol](left, right)
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
        if integers and not whole and symbol in COMPARISONS:
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
