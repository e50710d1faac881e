"""How a function of numbers becomes one of GPU values: shared by the modules of GLSL functions."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, cast, overload

from vkdispatch.base.dtype import bool_, dtype, is_complex, is_matrix
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.codegen.trace.current import has_flag
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

_Parameters = ParamSpec("_Parameters")


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


def gives_value(function: Callable[_Parameters, Any]) -> Callable[_Parameters, ShaderVariable]:
    """Tell type checkers that a function gives a GPU value. Given numbers alone, it gives a number."""
    return function


def operands(function: str, values: Sequence[object]) -> list[ex.Operand]:
    """Return expressions and numbers. Raises ValueError for anything else."""
    found: list[ex.Operand] = []
    for value in values:
        if isinstance(value, ShaderVariable):
            found.append(value._value())
        elif ex.is_number(value):
            found.append(value)
        else:
            raise located(
                ArgumentValueError,
                f"{function}: expected GPU values or numbers, got {value!r} ({type(value).__name__})",
            )
    return found


def all_numbers(values: Sequence[object]) -> bool:
    """Whether there is nothing for the GPU to compute."""
    return all(ex.is_number(value) for value in values)


def all_integers(values: Sequence[object]) -> bool:
    """Whether all values are integers of Python or NumPy."""
    return all(ex.is_integer_number(value) for value in values)


def apply(
    name: str,
    glsl: str | None,
    values: Sequence[object],
    *,
    floating: bool = True,
    own: bool = False,
    has_check: bool = False,
) -> ShaderVariable:
    """Call a function component by component, on operands brought to one type.

    `floating` turns integers into floats. If `own`, `glsl.mathematics` has the function, for what GLSL's
    cannot do; see `expressions.elementary`. `has_check`: the caller has checked for unsigned
    differences. Raises ValueError for matrices and complex numbers.
    """
    given = operands(name, values)
    kind, parts = ex.meet(given, name, floating=floating)
    if not has_check:
        for value in given:
            check_conversion(name, value, kind)
    if is_complex(kind) or is_matrix(kind):
        raise located(ArgumentValueError, f"{name}: not defined for {kind.name}; apply it to components")
    parts = [ex.cast(part, kind) for part in parts]
    if own:
        exact = has_flag(ShaderFlags.PRECISE_MATH)
        return ShaderVariable(ex.elementary(name, kind, parts, glsl=glsl, precise=exact))
    return ShaderVariable(ex.call(glsl or name, kind, *parts))


def fold(rule: Callable[..., Any], values: Sequence[Any]) -> float:
    """Compute with numbers by a rule that has C's results, without errors for overflow or a bad domain."""
    return float(rule(*(float(value) for value in values)))


def unary(
    name: str,
    rule: Callable[[float], Any],
    doc: str,
    *,
    glsl: str | None = "",
    own: bool = False,
    check: Callable[[ex.Operand], None] | None = None,
) -> UnaryFunction:
    """Make a function of one value: `rule` computes numbers, the GLSL function GPU values.

    The GLSL function has the same name, or there is none (None); see `apply` for `own`. `check` looks at the
    operand.
    """

    def function(var: Operand) -> Any:
        (value,) = operands(name, (var,))
        if check is not None:
            check(value)
        if all_numbers((var,)):
            return fold(rule, (var,))
        return apply(name, name if glsl == "" else glsl, (var,), own=own, has_check=check is not None)

    return cast(UnaryFunction, describe(function, name, doc))


def binary(
    name: str,
    rule: Callable[[float, float], Any],
    doc: str,
    *,
    glsl: str | None = "",
    own: bool = False,
    whole: Callable[[int, int], int] | None = None,
    logical: str | None = None,
    check: Callable[[ex.Operand, ex.Operand], None] | None = None,
) -> BinaryFunction:
    """Make a function of two values: `rule` computes numbers, the GLSL function GPU values.

    With `whole`, the rule for two ints, integers stay integers. `logical` joins two booleans. `check` looks
    at the operands.
    """

    def function(x: Operand, y: Operand) -> Any:
        first, second = operands(name, (x, y))
        if check is not None:
            check(first, second)
        if whole is not None and all_integers((x, y)):
            return whole(int(x), int(y))
        if all_numbers((x, y)):
            return fold(rule, (x, y))
        conditions = [each for each in (first, second) if isinstance(each, Expr) and each.dtype is bool_]
        if logical is not None and len(conditions) == 2:
            return ShaderVariable(ex.logical(logical, conditions))
        return apply(name, name if glsl == "" else glsl, (x, y), own=own, floating=whole is None)

    return cast(BinaryFunction, describe(function, name, doc))


def describe(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    """Give a function its name and docstring; returns it."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
