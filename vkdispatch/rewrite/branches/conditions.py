"""Conditions of rewritten code, for Python values and GPU values: `and`, `if else`, `a < b < c`, `in`..."""

import builtins
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from vkdispatch.base.dtype import bool_
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.base.host_numpy import np
from vkdispatch.codegen.execution.ranges import GpuRange
from vkdispatch.codegen.trace.placeholders import take_placeholders
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Assert, Expr, Op
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located
from vkdispatch.compiler.passes.reads import acts
from vkdispatch.rewrite.branches.blocks import inline_last_values
from vkdispatch.rewrite.branches.joins import join_kinds, join_values, join_variables
from vkdispatch.rewrite.branches.paths import Path, emit_if, record_path, take_path
from vkdispatch.rewrite.state.tracer import Tracer, find_tracer, require_tracer
from vkdispatch.rewrite.state.values import (
    UNBOUND,
    Kind,
    are_same,
    as_expr,
    describe,
    dtype_of,
    flatten_kind,
    is_gpu,
    iterate_leaves,
    rebuild,
)
from vkdispatch.rewrite.state.variables import State

Thunk = Callable[[], Any]


def require_known(value: Any, what: str) -> Any:
    """Return a value that Python branches on. Raises TypeError for a GPU value."""
    if is_gpu(value):
        raise located(
            ArgumentTypeError,
            f"{what} is decided while the kernel is traced, and this value is known on the GPU only; use an "
            "if statement or a conditional expression",
        )
    return value


def check_assert(test: Thunk, message: Callable[[], Any] | None) -> bool:
    """Whether an assert holds. A condition of the GPU is recorded, for checked kernels."""
    active = find_tracer()
    if active is None:
        return bool(test())
    holds: bool = active.before_gpu(partial(_record_assert, active, test, message))
    return holds


def _record_assert(active: Tracer, test: Thunk, message: Callable[[], Any] | None) -> bool:
    recorder = active.recorder
    with active.watch_variables() as state:
        path = record_path(active, state, test)
        if not is_gpu(path.result):
            take_path(active, state, path)
            return bool(path.result)
        state.check_containers(f"the assert ({here()})")
        if path.changed:
            names = ", ".join(repr(state.variables[key].name) for key in path.changed)
            raise located(UsageError, f"assert: its condition assigns {names}; do so before it")
    pieces = [] if message is None else take_placeholders(recorder.placeholders, str(message()))
    text = "".join(piece if isinstance(piece, str) else "{...}" for piece in pieces)
    recorder.emit(Assert(tuple(path.statements), make_condition(path.result), text, here()))
    return True


def make_condition(value: ShaderVariable) -> Expr:
    """Return the condition of a GPU value, for a statement that is recorded at once."""
    return ex.condition(value.expr)


def not_(value: Any) -> Any:
    """`not value`."""
    return ShaderVariable(ex.invert(ex.condition(value._value()))) if is_gpu(value) else not value


def invert(value: Any) -> Any:
    """`~value`: of a bool of Python `not value`, as of one of the GPU or NumPy, since -2 and -1 both hold."""
    return not value if isinstance(value, bool) else ~value


def and_(first: Any, *rest: Thunk) -> Any:
    """`first and ...`: one of the operands; each is evaluated only if it matters."""
    return _join_operands("&&", first, rest, as_value=True)


def or_(first: Any, *rest: Thunk) -> Any:
    """`first or ...`: one of the operands; each is evaluated only if it matters."""
    return _join_operands("||", first, rest, as_value=True)


def test_and(first: Any, *rest: Thunk) -> Any:
    """`first and ...` where only the truth matters: a bool of the GPU."""
    return _join_operands("&&", first, rest, as_value=False)


def test_or(first: Any, *rest: Thunk) -> Any:
    """`first or ...` where only the truth matters: a bool of the GPU."""
    return _join_operands("||", first, rest, as_value=False)


def _join_operands(symbol: str, first: Any, rest: tuple[Thunk, ...], *, as_value: bool) -> Any:
    value = first
    for thunk in rest:
        if is_gpu(value):
            value = _join_condition(symbol, value, thunk, as_value=as_value)
        elif bool(value) == (symbol == "&&"):
            value = thunk()
        else:
            return value
    return value


def _join_condition(symbol: str, left: ShaderVariable, thunk: Thunk, *, as_value: bool = False) -> Any:
    active = require_tracer()
    return active.before_gpu(partial(_record_condition, active, symbol, left, thunk, as_value))


def _record_condition(active: Tracer, symbol: str, left: ShaderVariable, thunk: Thunk, as_value: bool) -> Any:
    active.need_gpu()
    condition = make_condition(left)
    with active.watch_variables() as state:
        path = record_path(active, state, thunk)
        if as_value and not (_is_truth(left) and _is_truth(path.result)):
            other = Path(result=left)
            paths = (path, other) if symbol == "&&" else (other, path)
            return _select_value(active, state, condition, *paths)
        return _record_logical(active, state, symbol, condition, path)


def _is_truth(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_)) or (is_gpu(value) and value.var_type is bool_)


def _record_logical(active: Tracer, state: State, symbol: str, condition: Expr, path: Path) -> ShaderVariable:
    right = make_condition(path.result) if is_gpu(path.result) else ex.literal(bool(path.result), bool_)
    if path.is_pure:
        if right.op is Op.LITERAL:
            return ShaderVariable(condition if right.value is (symbol == "&&") else right)
        operands = (
            condition.args if condition.op is Op.LOGICAL and condition.value == symbol else (condition,)
        )
        return ShaderVariable(active.recorder.read(ex.logical(symbol, (*operands, right))))
    path.result = ShaderVariable(right)
    other = Path(result=symbol == "||")
    paths = (path, other) if symbol == "&&" else (other, path)
    chosen = _record_paths(active, state, condition, *paths)
    assert isinstance(chosen, ShaderVariable)
    return chosen


def choose(test: Any, then: Thunk, orelse: Thunk) -> Any:
    """`then if test else orelse`."""
    if not is_gpu(test):
        return then() if test else orelse()
    active = require_tracer()
    return active.before_gpu(partial(_record_choice, active, test, then, orelse))


def _record_choice(active: Tracer, test: ShaderVariable, then: Thunk, orelse: Thunk) -> Any:
    active.need_gpu()
    condition = make_condition(test)
    with active.watch_variables() as state:
        one, other = record_path(active, state, then), record_path(active, state, orelse)
        return _select_value(active, state, condition, one, other)


def _select_value(active: Tracer, state: State, condition: Expr, one: Path, other: Path) -> Any:
    """Return the value of one of two paths, chosen by the GPU."""
    if not (one.is_pure and other.is_pure):
        return _record_paths(active, state, condition, one, other)
    if are_same((one.result, other.result)):
        return one.result
    kind = _find_common_kind(one.result, other.result)
    parts = []
    columns = [[value for value, _ in iterate_leaves(path.result, kind)] for path in (one, other)]
    for first, second, leaf in zip(*columns, flatten_kind(kind), strict=True):
        dtype = dtype_of(leaf)
        chosen = ex.select(condition, as_expr(first, dtype), as_expr(second, dtype))
        parts.append(ShaderVariable(active.recorder.read(chosen)))
    return rebuild(kind, iter(parts))


def _find_common_kind(first: object, second: object) -> Kind:
    kind, why = join_kinds(first, second)
    if kind is None:
        raise located(
            ArgumentTypeError,
            f"the GPU decides between {describe(first)} and {describe(second)}, and {why}",
        )
    return kind


def _record_paths(active: Tracer, state: State, condition: Expr, one: Path, other: Path) -> Any:
    """Record an if with two paths, and return their joined value."""
    where = f"the condition ({here()})"
    state.check_containers(where)
    active.enter_gpu()
    # `a and (x := b)` followed by a use of x where both hold is fine
    join_variables(active, state, one, other, lambda variable: True, where, lenient=True)
    kind = _find_common_kind(one.result, other.result)
    value = join_values(active, None, kind, UNBOUND, (one, one.result), (other, other.result))
    inline_last_values(one.statements)
    inline_last_values(other.statements)
    emit_if(active, condition, one.statements, other.statements)
    return value


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": lambda a, b: contains(a, b, False),
    "not in": lambda a, b: contains(a, b, True),
}


def compare_chain(symbols: tuple[str, ...], first: Any, second: Any, *rest: Thunk) -> Any:
    """`first < second < ...`: each value is evaluated once, and only if it matters."""
    result = _COMPARE[symbols[0]](first, second)
    left = second
    for symbol, thunk in zip(symbols[1:], rest, strict=True):
        if not is_gpu(result):
            if not result:
                return result
            right = thunk()
            result = _COMPARE[symbol](left, right)
        else:
            right, result = _compare_next(symbol, result, left, thunk, last=thunk is rest[-1])
        left = right
    return result


def _compare_next(symbol: str, result: Any, left: Any, thunk: Thunk, *, last: bool) -> tuple[Any, Any]:
    """Compare the next value if the preceding comparisons hold."""
    found: list[Any] = []

    def compare() -> Any:
        found.append(thunk())
        return _COMPARE[symbol](left, found[-1])

    active = require_tracer()
    before = active.recorder.recorded
    joined = _join_condition("&&", result, compare)
    if not last and acts(active.recorder.innermost[before:]):
        raise located(
            UsageError,
            "this comparison computes a value in the middle by statements of the GPU; put it in a variable "
            "first",
        )
    return found[-1], joined


def contains(left: Any, right: Any, negated: bool) -> Any:
    """`left in right`, where either may have GPU values."""
    items: list[Any] | None = None
    if (isinstance(right, (list, tuple)) and (is_gpu(left) or builtins.any(map(is_gpu, right)))) or (
        is_gpu(left) and isinstance(right, (set, frozenset, dict))
    ):
        items = list(right)
    elif isinstance(right, (range, GpuRange)) and (is_gpu(left) or isinstance(right, GpuRange)):
        return _in_range(left, right, negated)
    if items is None:
        return left not in right if negated else left in right
    hits: Any = False
    for item in items:
        hit = left == item
        hits = or_(hits, make_thunk(hit))
    return not_(hits) if negated else hits


def _at_least(value: ShaderVariable, number: Any) -> ShaderVariable:
    bound = number._value() if is_gpu(number) else number
    return ShaderVariable(ex.compare(">=", value._value(), bound))


def _in_range(left: Any, right: Any, negated: bool) -> Any:
    step = right.step
    if not ex.is_integer_number(step) or step != 1:
        raise located(
            ArgumentValueError, "in range(...): only a step of 1 is possible for a value of the GPU"
        )
    # `i in range(n)` compares with 0 whatever the type of i
    above = _at_least(left, right.start) if is_gpu(left) else left >= right.start
    inside = and_(above, lambda: left < right.stop)
    return not_(inside) if negated else inside


def make_thunk(value: Any) -> Thunk:
    """Make a function that returns a value."""
    return lambda: value
