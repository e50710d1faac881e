"""How a function of numbers becomes one of GPU values: shared by the modules of GLSL functions."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast, overload

from vkdispatch.base.dtype import bool_, dtype, is_complex, is_matrix
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.codegen.trace.current import has_flag
from vkdispatch.codegen.trace.operands import mismatch
from vkdispatch.codegen.trace.range_checks import check_conversion
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr, ShaderFlags
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import located

if TYPE_CHECKING:
    Number = float | np.number[Any] | np.bool_
else:
    Number = float
# `dtype` is what type checkers take the parameter `x: f32` of a map for
Value = ShaderVariable | dtype
Operand = Value | Number


class UnaryFunction(Protocol):
    """A function of one number or GPU value."""

    @overload
    def __call__(self, var: Value) -> ShaderVariable: ...
    @overload
    def __call__(self, var: Number) -> float: ...


class BinaryFunction(Protocol):
    """A function of two numbers or GPU values."""

    @overload
    def __call__(self, x: Value, y: Operand) -> ShaderVariable: ...
    @overload
    def __call__(self, x: Number, y: Value) -> ShaderVariable: ...
    @overload
    def __call__(self, x: Number, y: Number) -> float: ...


def as_value(number: float) -> ShaderVariable:
    """Return a number, which type checkers take for a GPU value: functions of numbers alone give numbers."""
    return cast(ShaderVariable, number)


def operands(function: str, values: Sequence[object]) -> list[ex.Operand]:
    """Return expressions and numbers. Raises ValueError for anything else."""
    parsed: list[ex.Operand] = []
    for value in values:
        if isinstance(value, ShaderVariable):
            parsed.append(value._value())
        elif ex.is_number(value):
            parsed.append(value)
        else:
            raise mismatch(f"{function}: expected GPU values or numbers", value, ArgumentValueError)
    return parsed


def all_numbers(values: Sequence[object]) -> bool:
    """Whether there is nothing for the GPU to compute."""
    return all(ex.is_number(value) for value in values)


def all_integers(values: Sequence[object]) -> bool:
    """Whether all values are integers of Python or NumPy."""
    return all(ex.is_integer_number(value) for value in values)


def compute(
    name: str,
    rule: Callable[..., Any],
    values: Sequence[Any],
    *,
    glsl: str | None = "",
    floating: bool = True,
    own: bool = False,
    has_check: bool = False,
) -> ShaderVariable:
    """Compute numbers by a rule, as a float, and GPU values by a function of GLSL, component by component.

    GPU values are brought to one type; `floating` turns integers into floats. The GLSL function has the same
    name by default. If `own`, or if there is none (None), `glsl.mathematics` has the function, for what that
    of GLSL cannot do; see `expressions.elementary`. `has_check`: the caller has checked for unsigned
    differences. Raises ValueError for matrices and complex numbers.
    """
    if all_numbers(values):
        return fold(rule, values)
    given = operands(name, values)
    kind, parts = ex.meet(given, name, floating=floating)
    if not has_check:
        for value in given:
            check_conversion(name, value, kind)
    if is_complex(kind) or is_matrix(kind):
        raise located(ArgumentValueError, f"{name}: not defined for {kind.name}; apply it to components")
    parts = [ex.cast(part, kind) for part in parts]
    glsl = name if glsl == "" else glsl
    if own or glsl is None:
        exact = has_flag(ShaderFlags.PRECISE_MATH)
        return ShaderVariable(ex.elementary(name, kind, parts, glsl=glsl, precise=exact))
    return ShaderVariable(ex.call(glsl, kind, *parts))


def fold(rule: Callable[..., Any], values: Sequence[Any]) -> ShaderVariable:
    """Compute with numbers by a rule that has C's results, without errors for overflow or a bad domain."""
    return as_value(float(rule(*(float(value) for value in values))))


def unary(
    name: str,
    rule: Callable[[float], Any],
    doc: str,
    *,
    glsl: str | None = "",
    own: bool = False,
    check: Callable[[ex.Operand], None] | None = None,
) -> UnaryFunction:
    """Make a function of one value; see `compute` for what it is made of. `check` looks at the operand."""

    def function(var: Operand) -> Any:
        if check is not None:
            check(*operands(name, (var,)))
        return compute(name, rule, (var,), glsl=glsl, own=own, has_check=check is not None)

    return cast(UnaryFunction, describe(function, name, doc))


def binary(
    name: str,
    rule: Callable[[float, float], Any],
    doc: str,
    *,
    whole: Callable[[int, int], int] | None = None,
    logical: str | None = None,
    check: Callable[[ex.Operand, ex.Operand], None] | None = None,
) -> BinaryFunction:
    """Make a function of two values; see `compute` for what it is made of.

    With `whole`, the rule for two ints, integers stay integers. `logical` joins two booleans. `check` looks
    at the operands.
    """

    def function(x: Operand, y: Operand) -> Any:
        given = operands(name, (x, y))
        if check is not None:
            check(*given)
        if whole is not None and all_integers(given):
            return whole(int(x), int(y))
        conditions = [value for value in given if isinstance(value, Expr) and value.dtype is bool_]
        if logical is not None and len(conditions) == 2:
            return ShaderVariable(ex.logical(logical, conditions))
        return compute(name, rule, (x, y), floating=whole is None)

    return cast(BinaryFunction, describe(function, name, doc))


def describe(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    """Give a function its name and docstring; returns it."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
