"""Python functions such as `range`, `min` and `math.sin` for GPU values."""

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import component_type, int32, is_float_dtype, is_integer_dtype, is_scalar
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.codegen.execution import control_flow
from vkdispatch.codegen.execution.ranges import GpuRange
from vkdispatch.codegen.functions import arithmetic, common, elementwise, special, trigonometry
from vkdispatch.codegen.trace.current import chosen_arithmetic
from vkdispatch.codegen.trace.range_checks import check_conversion
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import located
from vkdispatch.rewrite.branches.conditions import and_, make_condition, make_thunk, or_
from vkdispatch.rewrite.state.values import is_gpu


def _range(*bounds: Any) -> Any:
    return GpuRange(*bounds) if builtins.any(map(is_gpu, bounds)) else builtins.range(*bounds)


def _unify_types(name: str, values: Sequence[Any], plain: Callable[..., Any]) -> list[Any]:
    """Return values that have a common type regardless of their order.

    Leading Python numbers are combined into one, which takes the common type if it needs to.
    """
    arithmetic = chosen_arithmetic()
    if arithmetic is not None:
        return arithmetic.unify(*values)
    first = next(position for position, value in enumerate(values) if is_gpu(value))
    numbers, rest = values[:first], list(values[first:])
    if len(numbers) > 1:
        number = plain(numbers)
        rest.insert(0, number if all(map(ex.is_integer_number, numbers)) else builtins.float(number))
    else:
        rest[:0] = numbers
    operands = elementwise.operands(name, values)
    kind, _ = ex.meet(operands, name)
    if len({value.dtype for value in operands if isinstance(value, Expr)}) > 1:
        scalar = component_type(kind)
        return [value if is_gpu(value) else ShaderVariable(ex.literal(value, scalar)) for value in rest]
    return rest


def _replace_extremum(name: str, plain: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    def choose_one(*args: Any, **kwargs: Any) -> Any:
        values = args
        if len(args) == 1 and not isinstance(args[0], ShaderVariable):
            values = tuple(args[0])
            args = (values,)
        if kwargs or not builtins.any(map(is_gpu, values)):
            return plain(*args, **kwargs)
        result, *rest = _unify_types(name, values, plain)
        for value in rest:
            result = ours(result, value)
        return result

    choose_one.__name__ = name
    return choose_one


def _int(*args: Any, **kwargs: Any) -> Any:
    if len(args) != 1 or kwargs or not is_gpu(args[0]):
        return builtins.int(*args, **kwargs)
    kind = dt.int64 if args[0].var_type in (dt.int64, dt.uint64) else int32
    arithmetic = chosen_arithmetic()
    return _convert_scalar(args[0], kind if arithmetic is None else arithmetic.integer, "int")


def _replace_rounding(ours: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a function that rounds to an integer, which leaves integers as `int` does."""

    def rounded(value: Any) -> Any:
        return _int(value if is_integer_dtype(value.var_type) else ours(value))

    return rounded


def _float(*args: Any) -> Any:
    if len(args) != 1 or not is_gpu(args[0]):
        return builtins.float(*args)
    kind = args[0].var_type
    if is_scalar(kind) and is_float_dtype(kind):
        return args[0]
    arithmetic = chosen_arithmetic()
    return _convert_scalar(args[0], dt.float32 if arithmetic is None else arithmetic.real, "float")


def _bool(*args: Any) -> Any:
    return (
        ShaderVariable(make_condition(args[0]))
        if len(args) == 1 and is_gpu(args[0])
        else builtins.bool(*args)
    )


def _convert_scalar(value: ShaderVariable, kind: dt.DType, what: str) -> ShaderVariable:
    if not is_scalar(value.var_type):
        raise located(ArgumentTypeError, f"{what}: expected a scalar, got {value.var_type.name}")
    expr = value._value()
    check_conversion(what, expr, kind)
    return ShaderVariable(ex.cast(expr, kind))


def _round(value: Any, *digits: Any) -> Any:
    if not is_gpu(value):
        return builtins.round(value, *digits)
    if digits:
        raise located(ArgumentTypeError, "round: a value of the GPU is rounded to whole numbers only")
    return _replace_rounding(common.round_even)(value)


def _divmod(a: Any, b: Any) -> Any:
    return (a // b, a % b) if is_gpu(a) or is_gpu(b) else builtins.divmod(a, b)


def _any(values: Any) -> Any:
    result: Any = False
    for value in values:
        result = or_(result, make_thunk(value))
        if not is_gpu(result) and result:
            return True
    return result if is_gpu(result) else bool(result)


def _all(values: Any) -> Any:
    result: Any = True
    for value in values:
        result = and_(result, make_thunk(value))
        if not is_gpu(result) and not result:
            return False
    return result if is_gpu(result) else bool(result)


def _replace_math(plain: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    def either(*args: Any) -> Any:
        if not builtins.any(map(is_gpu, args)):
            return plain(*args)
        if chosen_arithmetic() is not None:
            args = tuple(_float(each) if is_gpu(each) else each for each in args)
        return ours(*args)

    return either


def _log(x: Any, base: Any = math.e) -> Any:
    return trigonometry.log(x) if base is math.e else trigonometry.log(x) / trigonometry.log(base)


def _modf(x: ShaderVariable) -> tuple[ShaderVariable, ShaderVariable]:
    rest = arithmetic.copysign(control_flow.select(common.isinf(x), 0.0, arithmetic.fmod(x, 1.0)), x)
    return rest, common.trunc(x)


def _replacements() -> dict[Any, Callable[..., Any]]:
    found: dict[Any, Callable[..., Any]] = {
        builtins.range: _range,
        builtins.min: _replace_extremum("min", builtins.min, common.min),
        builtins.max: _replace_extremum("max", builtins.max, common.max),
        builtins.int: _int,
        builtins.float: _float,
        builtins.bool: _bool,
        builtins.round: _round,
        builtins.divmod: _divmod,
        builtins.any: _any,
        builtins.all: _all,
        math.isnan: _replace_math(math.isnan, common.isnan),
        math.isinf: _replace_math(math.isinf, common.isinf),
        math.fabs: _replace_math(math.fabs, common.abs),
        math.floor: _replace_math(math.floor, _replace_rounding(common.floor)),
        math.ceil: _replace_math(math.ceil, _replace_rounding(common.ceil)),
        math.trunc: _replace_math(math.trunc, _replace_rounding(common.trunc)),
        math.log: _replace_math(math.log, _log),
        math.modf: _replace_math(math.modf, _modf),
    }
    for module in (trigonometry, special, arithmetic, common):
        for name in module.__all__:
            plain = getattr(math, name, None)
            if plain is not None and plain not in found:
                found[plain] = _replace_math(plain, getattr(module, name))
    return found


REPLACED = _replacements()
