"""Conditions of rewritten code, and Python functions such as `range` and `min`, for GPU values."""

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import bool_, component_type, int32, is_float_dtype, is_integer_dtype, is_scalar
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.base.host_numpy import np
from vkdispatch.codegen.execution import control_flow
from vkdispatch.codegen.execution.control_flow import GpuRange
from vkdispatch.codegen.functions import arithmetic, trigonometry
from vkdispatch.codegen.trace.current import chosen_arithmetic
from vkdispatch.codegen.trace.operands import take_placeholders
from vkdispatch.codegen.trace.range_checks import check_conversion
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Assert, Expr, Op
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located
from vkdispatch.compiler.passes.reads import acts
from vkdispatch.control_flow import paths, values
from vkdispatch.control_flow.comparison import COMPARISONS
from vkdispatch.control_flow.tracer import Tracer, find_tracer, require_tracer
from vkdispatch.control_flow.values import State

# ---- Conditions of rewritten code, for Python values and GPU values --------------------------------------
#
# `and`, `if else`, `a < b < c`, `in`.


Thunk = Callable[[], Any]


def require_known(value: Any, what: str) -> Any:
    """Return a value that Python branches on. Raises TypeError for a GPU value."""
    if values.is_gpu(value):
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
        path = paths.record_path(active, state, test)
        if not values.is_gpu(path.result):
            paths.take_path(active, state, path)
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
    return ShaderVariable(ex.invert(ex.condition(value._value()))) if values.is_gpu(value) else not value


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
        if values.is_gpu(value):
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
        path = paths.record_path(active, state, thunk)
        if as_value and not (_is_truth(left) and _is_truth(path.result)):
            other = paths.Path(result=left)
            ordered = (path, other) if symbol == "&&" else (other, path)
            return _select_value(active, state, condition, *ordered)
        return _record_logical(active, state, symbol, condition, path)


def _is_truth(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_)) or (values.is_gpu(value) and value.var_type is bool_)


def _record_logical(
    active: Tracer, state: State, symbol: str, condition: Expr, path: paths.Path
) -> ShaderVariable:
    right = (
        make_condition(path.result) if values.is_gpu(path.result) else ex.literal(bool(path.result), bool_)
    )
    if path.is_pure:
        if right.op is Op.LITERAL:
            return ShaderVariable(condition if right.value is (symbol == "&&") else right)
        operands = (
            condition.args if condition.op is Op.LOGICAL and condition.value == symbol else (condition,)
        )
        return ShaderVariable(active.recorder.read(ex.logical(symbol, (*operands, right))))
    path.result = ShaderVariable(right)
    other = paths.Path(result=symbol == "||")
    ordered = (path, other) if symbol == "&&" else (other, path)
    chosen = _record_paths(active, state, condition, *ordered)
    assert isinstance(chosen, ShaderVariable)
    return chosen


def choose(test: Any, then: Thunk, orelse: Thunk) -> Any:
    """`then if test else orelse`."""
    if not values.is_gpu(test):
        return then() if test else orelse()
    active = require_tracer()
    return active.before_gpu(partial(_record_choice, active, test, then, orelse))


def _record_choice(active: Tracer, test: ShaderVariable, then: Thunk, orelse: Thunk) -> Any:
    active.need_gpu()
    condition = make_condition(test)
    with active.watch_variables() as state:
        one, other = paths.record_path(active, state, then), paths.record_path(active, state, orelse)
        return _select_value(active, state, condition, one, other)


def _select_value(active: Tracer, state: State, condition: Expr, one: paths.Path, other: paths.Path) -> Any:
    """Return the value of one of two paths, chosen by the GPU."""
    if not (one.is_pure and other.is_pure):
        return _record_paths(active, state, condition, one, other)
    if values.are_same(one.result, other.result):
        return one.result
    kind = _find_common_kind(one.result, other.result)
    parts = []
    columns = [[value for value, _ in values.iterate_leaves(path.result, kind)] for path in (one, other)]
    for first, second, leaf in zip(*columns, values.flatten_kind(kind), strict=True):
        dtype = values.dtype_of(leaf)
        chosen = ex.select(condition, values.as_expr(first, dtype), values.as_expr(second, dtype))
        parts.append(ShaderVariable(active.recorder.read(chosen)))
    return values.rebuild(kind, iter(parts))


def _find_common_kind(first: object, second: object) -> values.Kind:
    try:
        return paths.join_kinds(first, second)
    except values.Mismatch as error:
        raise located(
            ArgumentTypeError,
            f"the GPU decides between {values.describe(first)} and {values.describe(second)}, and {error}",
        ) from None


def _record_paths(active: Tracer, state: State, condition: Expr, one: paths.Path, other: paths.Path) -> Any:
    """Record an if with two paths, and return their joined value."""
    where = f"the condition ({here()})"
    state.check_containers(where)
    active.enter_gpu()
    # `a and (x := b)` followed by a use of x where both hold is fine
    paths.join_variables(active, state, one, other, lambda variable: True, where, lenient=True)
    kind = _find_common_kind(one.result, other.result)
    value = paths.join_values(active, None, kind, values.UNBOUND, (one, one.result), (other, other.result))
    paths.inline_last_values(one.statements)
    paths.inline_last_values(other.statements)
    paths.emit_if(active, condition, one.statements, other.statements)
    return value


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    **COMPARISONS,
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
        if not values.is_gpu(result):
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
    rights: list[Any] = []

    def compare() -> Any:
        rights.append(thunk())
        return _COMPARE[symbol](left, rights[-1])

    active = require_tracer()
    before = active.recorder.recorded
    joined = _join_condition("&&", result, compare)
    if not last and acts(active.recorder.innermost[before:]):
        raise located(
            UsageError,
            "this comparison computes a value in the middle by statements of the GPU; put it in a variable "
            "first",
        )
    return rights[-1], joined


def contains(left: Any, right: Any, negated: bool) -> Any:
    """`left in right`, where either may have GPU values."""
    if isinstance(right, (range, GpuRange)) and (values.is_gpu(left) or isinstance(right, GpuRange)):
        return _in_range(left, right, negated)
    has_gpu_items = isinstance(right, (list, tuple)) and builtins.any(map(values.is_gpu, right))
    is_searched = values.is_gpu(left) and isinstance(right, (list, tuple, set, frozenset, dict))
    if not (has_gpu_items or is_searched):
        return left not in right if negated else left in right
    result: Any = False
    for item in list(right):
        result = or_(result, make_thunk(left == item))
    return not_(result) if negated else result


def _at_least(value: ShaderVariable, number: Any) -> ShaderVariable:
    bound = number._value() if values.is_gpu(number) else number
    return ShaderVariable(ex.compare(">=", value._value(), bound))


def _in_range(left: Any, right: Any, negated: bool) -> Any:
    step = right.step
    if not ex.is_integer_number(step) or step != 1:
        raise located(
            ArgumentValueError, "in range(...): only a step of 1 is possible for a value of the GPU"
        )
    # `i in range(n)` compares with 0 whatever the type of i
    above = _at_least(left, right.start) if values.is_gpu(left) else left >= right.start
    inside = and_(above, lambda: left < right.stop)
    return not_(inside) if negated else inside


def make_thunk(value: Any) -> Thunk:
    """Make a function that returns a value."""
    return lambda: value


# ---- Python functions such as `range`, `min` and `math.sin` for GPU values -------------------------------


def _range(*bounds: Any) -> Any:
    return GpuRange(*bounds) if builtins.any(map(values.is_gpu, bounds)) else builtins.range(*bounds)


def _unify_types(name: str, items: Sequence[Any], plain: Callable[..., Any]) -> list[Any]:
    """Return values that have a common type regardless of their order.

    Leading Python numbers are combined into one, which takes the common type if it needs to.
    """
    arithmetic = chosen_arithmetic()
    if arithmetic is not None:
        return arithmetic.unify(*items)
    first = next(position for position, value in enumerate(items) if values.is_gpu(value))
    numbers, rest = items[:first], list(items[first:])
    if len(numbers) > 1:
        number = plain(numbers)
        rest.insert(0, number if all(map(ex.is_integer_number, numbers)) else builtins.float(number))
    else:
        rest[:0] = numbers
    operands = trigonometry.operands(name, items)
    kind, _ = ex.meet(operands, name)
    if len({value.dtype for value in operands if isinstance(value, Expr)}) > 1:
        scalar = component_type(kind)
        return [
            value if values.is_gpu(value) else ShaderVariable(ex.literal(value, scalar)) for value in rest
        ]
    return rest


def _replace_extremum(name: str, plain: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    def choose_one(*args: Any, **kwargs: Any) -> Any:
        items = args
        if len(args) == 1 and not isinstance(args[0], ShaderVariable):
            items = tuple(args[0])
            args = (items,)
        if kwargs or not builtins.any(map(values.is_gpu, items)):
            return plain(*args, **kwargs)
        result, *rest = _unify_types(name, items, plain)
        for value in rest:
            result = ours(result, value)
        return result

    choose_one.__name__ = name
    return choose_one


def _int(*args: Any, **kwargs: Any) -> Any:
    if len(args) != 1 or kwargs or not values.is_gpu(args[0]):
        return builtins.int(*args, **kwargs)
    kind = dt.int64 if args[0].var_type in (dt.int64, dt.uint64) else int32
    arithmetic = chosen_arithmetic()
    return _convert_scalar(args[0], kind if arithmetic is None else arithmetic.integer, "int")


def _replace_rounding(ours: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a function that rounds to an integer, which leaves integers as `int` does."""

    def round_value(value: Any) -> Any:
        return _int(value if is_integer_dtype(value.var_type) else ours(value))

    return round_value


def _float(*args: Any) -> Any:
    if len(args) != 1 or not values.is_gpu(args[0]):
        return builtins.float(*args)
    kind = args[0].var_type
    if is_scalar(kind) and is_float_dtype(kind):
        return args[0]
    arithmetic = chosen_arithmetic()
    return _convert_scalar(args[0], dt.float32 if arithmetic is None else arithmetic.real, "float")


def _bool(*args: Any) -> Any:
    return (
        ShaderVariable(make_condition(args[0]))
        if len(args) == 1 and values.is_gpu(args[0])
        else builtins.bool(*args)
    )


def _convert_scalar(value: ShaderVariable, kind: dt.DType, what: str) -> ShaderVariable:
    if not is_scalar(value.var_type):
        raise located(ArgumentTypeError, f"{what}: expected a scalar, got {value.var_type.name}")
    expr = value._value()
    check_conversion(what, expr, kind)
    return ShaderVariable(ex.cast(expr, kind))


def _round(value: Any, *digits: Any) -> Any:
    if not values.is_gpu(value):
        return builtins.round(value, *digits)
    if digits:
        raise located(ArgumentTypeError, "round: a value of the GPU is rounded to whole numbers only")
    return _replace_rounding(arithmetic.round_even)(value)


def _divmod(a: Any, b: Any) -> Any:
    return (a // b, a % b) if values.is_gpu(a) or values.is_gpu(b) else builtins.divmod(a, b)


def _join_truths(items: Any, *, decisive: bool) -> Any:
    """Return what `any` (True is decisive) or `all` (False is) of values gives."""
    join = or_ if decisive else and_
    result: Any = not decisive
    for value in items:
        result = join(result, make_thunk(value))
        if not values.is_gpu(result) and bool(result) is decisive:
            return decisive
    return result if values.is_gpu(result) else bool(result)


def _replace_math(plain: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    def either(*args: Any) -> Any:
        if not builtins.any(map(values.is_gpu, args)):
            return plain(*args)
        if chosen_arithmetic() is not None:
            args = tuple(_float(arg) if values.is_gpu(arg) else arg for arg in args)
        return ours(*args)

    return either


def _log(x: Any, base: Any = math.e) -> Any:
    return trigonometry.log(x) if base is math.e else trigonometry.log(x) / trigonometry.log(base)


def _modf(x: ShaderVariable) -> tuple[ShaderVariable, ShaderVariable]:
    rest = arithmetic.copysign(control_flow.select(arithmetic.isinf(x), 0.0, arithmetic.fmod(x, 1.0)), x)
    return rest, arithmetic.trunc(x)


def _replacements() -> dict[Any, Callable[..., Any]]:
    replacements: dict[Any, Callable[..., Any]] = {
        builtins.range: _range,
        builtins.min: _replace_extremum("min", builtins.min, arithmetic.min),
        builtins.max: _replace_extremum("max", builtins.max, arithmetic.max),
        builtins.int: _int,
        builtins.float: _float,
        builtins.bool: _bool,
        builtins.round: _round,
        builtins.divmod: _divmod,
        builtins.any: partial(_join_truths, decisive=True),
        builtins.all: partial(_join_truths, decisive=False),
        math.fabs: _replace_math(math.fabs, arithmetic.abs),
        math.floor: _replace_math(math.floor, _replace_rounding(arithmetic.floor)),
        math.ceil: _replace_math(math.ceil, _replace_rounding(arithmetic.ceil)),
        math.trunc: _replace_math(math.trunc, _replace_rounding(arithmetic.trunc)),
        math.log: _replace_math(math.log, _log),
        math.modf: _replace_math(math.modf, _modf),
    }
    for module in (trigonometry, arithmetic):
        for name in module.__all__:
            plain = getattr(math, name, None)
            if plain is not None and plain not in replacements:
                replacements[plain] = _replace_math(plain, getattr(module, name))
    return replacements


REPLACED = _replacements()
