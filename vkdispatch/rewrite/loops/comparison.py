"""Comparison of two recordings of the same part of a kernel."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from vkdispatch.base.dtype import (
    DType,
    bool_,
    complex32,
    component_type,
    is_complex,
    is_float_dtype,
    is_scalar,
)
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import (
    Argument,
    Assert,
    Comment,
    Declare,
    Effect,
    Expr,
    For,
    If,
    ImageStore,
    MatrixLoad,
    MatrixStore,
    Op,
    Print,
    RawStatement,
    Register,
    Scope,
    Statement,
    Store,
    Switch,
    blocks_of,
    expressions_of,
)
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.literals import bounds, rounded
from vkdispatch.rewrite.state.values import PythonNumber, as_expr, is_gpu

Start = tuple[object, DType]
# Operations of numbers, by symbol and count of operands; None is a conversion.
_FOLDED: dict[tuple[Any, int], Callable[..., Any]] = {
    ("+", 2): operator.add,
    ("-", 2): operator.sub,
    ("*", 2): operator.mul,
    ("-", 1): operator.neg,
    (None, 1): operator.pos,
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

    def __init__(self, starts: Mapping[int, Start], counters: Iterable[tuple[Register, Register]]) -> None:
        self._starts = starts
        self._pairs: dict[int, Register] = {id(second): first for first, second in counters}
        self._known: set[tuple[int, int]] = set()

    def are_blocks_equal(self, first: Sequence[Statement], second: Sequence[Statement]) -> bool:
        """Whether two blocks are the same."""
        return len(first) == len(second) and all(map(self._are_statements_equal, first, second))

    def _are_statements_equal(self, first: Statement, second: Statement) -> bool:
        if type(first) is not type(second) or _list_facts(first) != _list_facts(second):
            return False
        # the condition of an assert may use what its body declares
        both = isinstance(first, Assert) and isinstance(second, Assert)
        if both and not self.are_blocks_equal(*blocks_of(first), *blocks_of(second)):
            return False
        mine, theirs = expressions_of(first), expressions_of(second)
        if len(mine) != len(theirs) or not all(map(self.are_expressions_equal, mine, theirs)):
            return False
        if isinstance(first, Declare) and isinstance(second, Declare):
            self._pairs[id(second.register)] = first.register
        if isinstance(first, For) and isinstance(second, For):
            self._pairs[id(second.counter)] = first.counter
        mine_inside, theirs_inside = blocks_of(first), blocks_of(second)
        return len(mine_inside) == len(theirs_inside) and all(
            map(self.are_blocks_equal, mine_inside, theirs_inside)
        )

    def are_expressions_equal(self, first: Expr, second: Expr) -> bool:
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

    def _are_payloads_equal(self, mine: Expr, theirs: Expr) -> bool:
        one, other = mine.value, theirs.value
        if isinstance(other, Register):
            return one is self._pairs.get(id(other), other)
        if mine.op is Op.LITERAL:
            # tells 0.0 from -0.0, and makes nan equal to itself
            return repr(one) == repr(other)
        if isinstance(one, Argument) and isinstance(other, Argument):
            # the shape of a buffer, read a second time
            return (one.name, one.dtype, one.shape) == (other.name, other.dtype, other.shape)
        return one is other or (type(one) is type(other) and bool(one == other))

    def _is_start(self, mine: Expr, theirs: Expr) -> bool:
        """Whether `mine` is the initial value of the register in `theirs`."""
        register = theirs.args[0] if theirs.op is Op.CONSTRUCT and len(theirs.args) == 1 else theirs
        known = self._starts.get(id(register.value))
        if known is None or register.op is not Op.REGISTER:
            return False
        start, kept = known
        if is_gpu(start) or isinstance(start, PythonNumber):
            expected = ex.cast(as_expr(start, kept), kept)
            if register is not theirs:
                expected = ex.cast(expected, theirs.dtype)
            return Comparison({}, ()).are_expressions_equal(mine, expected)
        if mine.op is not Op.LITERAL or mine.dtype is not theirs.dtype:
            return False
        if register is theirs:
            return repr(mine.value) == repr(as_expr(start, kept).value)
        return mine.value == start and _is_exact(kept, start) and _is_exact(theirs.dtype, start)

    def _is_known(self, mine: Expr, theirs: Expr) -> bool:
        """Whether `mine` is a number that Python computed from the initial values of registers."""
        if mine.op is not Op.LITERAL or mine.dtype is not theirs.dtype or theirs.op is Op.LITERAL:
            return False
        number = self._evaluate(theirs)
        return number is not None and _is_exact(mine.dtype, mine.value) and repr(number) == repr(mine.value)

    def _evaluate(self, expr: Expr) -> Any:
        """Return the value of an expression of known numbers, or None if it is unknown or not exact."""
        number: Any = None
        known = self._starts.get(id(expr.value)) if expr.op is Op.REGISTER else None
        if expr.op is Op.LITERAL:
            number = expr.value
        elif known is not None and not isinstance(known[0], (ShaderVariable, bool)):
            number = known[0]
        elif expr.op in (Op.BINARY, Op.UNARY, Op.CONSTRUCT) and is_scalar(expr.dtype):
            rule = _FOLDED.get((expr.value, len(expr.args)))
            parts = [] if rule is None else [self._evaluate(arg) for arg in expr.args]
            if rule is not None and None not in parts:
                number = rule(*parts)
        if number is None or expr.dtype is bool_ or isinstance(number, bool):
            return None
        number = float(number) if is_float_dtype(expr.dtype) else number
        return number if _is_exact(expr.dtype, number) else None

    def _strip_factor_one(self, expr: Expr) -> Expr | None:
        """Return the other factor of a product with a register whose initial value is 1, or None."""
        if expr.op is not Op.BINARY or expr.value != "*":
            return None
        for factor, other in (expr.args, expr.args[::-1]):
            known = self._starts.get(id(factor.value)) if factor.op is Op.REGISTER else None
            if known is None or isinstance(known[0], ShaderVariable):
                continue
            if known[0] == 1 and other.dtype is expr.dtype:
                return other
        return None


def _is_exact(kind: DType, number: Any) -> bool:
    """Whether a scalar type holds a number exactly."""
    if kind is bool_:
        return isinstance(number, bool)
    if not is_scalar(kind):
        if not is_complex(kind) or kind is complex32:
            return False
        return all(_is_exact(component_type(kind), part) for part in (number.real, number.imag))
    if is_float_dtype(kind):
        return bool(rounded(float(number), kind) == number)
    low, high = bounds(kind)
    return bool(int(number) == number and low <= number <= high)


def _list_facts(statement: Statement) -> tuple[object, ...]:
    """Return the properties of a statement other than expressions, blocks and names."""
    if isinstance(statement, Declare):
        register = statement.register
        return (register.dtype, register.fixed, register.position, register.precise)
    if isinstance(statement, Store):
        return (statement.operator,)
    if isinstance(statement, ImageStore):
        return (id(statement.image),)
    if isinstance(statement, (MatrixLoad, MatrixStore)):
        return (statement.transposed,)
    if isinstance(statement, If):
        return (len(statement.branches), statement.orelse is None)
    if isinstance(statement, For):
        return (statement.counter.dtype,)
    if isinstance(statement, Switch):
        return (tuple(values for values, _ in statement.cases), statement.default is None)
    if isinstance(statement, Effect):
        return (statement.function,)
    if isinstance(statement, Assert):
        return (statement.message,)
    if isinstance(statement, Print):
        return (statement.format, statement.style)
    if isinstance(statement, (Comment, RawStatement)):
        return (statement.text,)
    return (statement.comment,) if isinstance(statement, Scope) else ()
