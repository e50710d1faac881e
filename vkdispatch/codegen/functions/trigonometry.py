"""Functions of numbers as functions of GPU values; trigonometric, exponential and special functions."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast, overload

from vkdispatch.base.dtype import (
    bool_,
    component_type,
    dtype,
    float64,
    is_complex,
    is_matrix,
    is_scalar,
    is_vector,
    make_floating_dtype,
)
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.codegen.trace.current import has_flag
from vkdispatch.codegen.trace.operands import mismatch
from vkdispatch.codegen.trace.range_checks import check_conversion
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr, ShaderFlags
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir import literals as host
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


__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "cospi",
    "degrees",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "gamma",
    "hypot",
    "inversesqrt",
    "lgamma",
    "log",
    "log1p",
    "log2",
    "log10",
    "pow",
    "radians",
    "sin",
    "sinh",
    "sinpi",
    "sqrt",
    "tan",
    "tanh",
]


# ---- Trigonometric, hyperbolic and exponential functions -------------------------------------------------


sin = unary("sin", host.sin, "Sine of radians.", own=True)
cos = unary("cos", host.cos, "Cosine of radians.", own=True)
tan = unary("tan", host.tan, "Tangent of radians.", own=True)
asin = unary("asin", host.asin, "Arc sine in radians.", own=True)
acos = unary("acos", host.acos, "Arc cosine in radians.", own=True)
atan = unary("atan", host.atan, "Arc tangent in radians.", own=True)
sinh = unary("sinh", host.sinh, "Hyperbolic sine.", own=True)
cosh = unary("cosh", host.cosh, "Hyperbolic cosine.", own=True)
tanh = unary("tanh", host.tanh, "Hyperbolic tangent.", own=True)
asinh = unary("asinh", host.asinh, "Inverse hyperbolic sine.", own=True)
acosh = unary("acosh", host.acosh, "Inverse hyperbolic cosine.", own=True)
atanh = unary("atanh", host.atanh, "Inverse hyperbolic tangent.", own=True)
exp = unary("exp", host.exp, "e to the power of `var`.", own=True)
exp2 = unary("exp2", host.exp2, "2 to the power of `var`.", own=True)
log = unary("log", host.log, "Natural logarithm.", own=True)
log2 = unary("log2", host.log2, "Logarithm to base 2.", own=True)
sqrt = unary("sqrt", host.sqrt, "Square root.")
inversesqrt = unary("inversesqrt", lambda x: host.divide(1.0, host.sqrt(x)), "1 / sqrt(var).")


def _scale(name: str, rule: Callable[[float], float], factor: float, x: Operand) -> ShaderVariable:
    """Call a function that is a product; of doubles GLSL has none."""
    if isinstance(x, ShaderVariable):
        kind = make_floating_dtype(x.var_type)
        if (is_scalar(kind) or is_vector(kind)) and component_type(kind) is float64:
            return ShaderVariable(ex.multiply(ex.cast(x._value(), kind), factor))
    return compute(name, rule, (x,))


def radians(var: Operand) -> ShaderVariable:
    """Degrees to radians."""
    return _scale("radians", math.radians, math.pi / 180, var)


def degrees(var: Operand) -> ShaderVariable:
    """Radians to degrees."""
    return _scale("degrees", math.degrees, 180 / math.pi, var)


def atan2(y: Operand, x: Operand) -> ShaderVariable:
    """Angle of the point (x, y) in radians. Numbers give a float."""
    return compute("atan2", host.atan2, (y, x), glsl="atan", own=True)


def pow(x: Operand, y: Operand) -> ShaderVariable:
    """X to the power of y, in floating point; `x ** y` of two integers is an integer. Numbers: a float."""
    base, exponent = operands("pow", (x, y))
    if all_numbers((x, y)):
        return fold(host.pow, (x, y))
    return ShaderVariable(ex.float_power(base, exponent, precise=has_flag(ShaderFlags.PRECISE_MATH)))


# ---- Functions that no device has, in float32 (also for float16) and in float64 --------------------------
#
# Their texts are in `compiler.glsl`, by topic: those of sinpi and cospi beside sin, of log1p beside log.


def _unary_to_units(
    name: str, rule: Callable[[float], float], doc: str, units: int, details: str = ""
) -> UnaryFunction:
    """Make a function with an error of at most so many units in the last place."""
    text = f"{doc}, to {units} units in the last place. A number gives a float."
    return unary(name, rule, f"{text}\n\n    {details}\n    " if details else text, glsl=None)


log10 = _unary_to_units("log10", host.log10, "Logarithm to base 10", 2)
log1p = _unary_to_units("log1p", host.log1p, "log(1 + var), also for small values", 2)
expm1 = _unary_to_units("expm1", host.expm1, "exp(var) - 1, also for small values", 2)
cbrt = _unary_to_units("cbrt", host.cbrt, "Cube root, also of negative values", 2)
erf = _unary_to_units("erf", host.erf, "Error function, in floating point", 4)
erfc = _unary_to_units("erfc", host.erfc, "1 - erf(var), also far from 0, in floating point", 8)
sinpi = _unary_to_units(
    "sinpi",
    host.sinpi,
    "Sine of pi * var",
    2,
    "Of multiples of 1/2 it is exact; of whole numbers it is zero with the sign of `var`.",
)
cospi = _unary_to_units(
    "cospi", host.cospi, "Cosine of pi * var", 2, "Of multiples of 1/2 it is exact; its zeros are positive."
)
gamma = _unary_to_units(
    "gamma",
    host.gamma,
    "Gamma function, in floating point",
    8,
    "Of 0.0 and -0.0 it is infinite, of negative whole numbers and minus infinity NaN.",
)
lgamma = unary(
    "lgamma",
    host.lgamma,
    """Logarithm of the gamma function's absolute value, in floating point. A number gives a float.

    The error is at most 8 units in the last place of the result, or of 1 between the zeros below 0. Of
    0 and negative whole numbers it is infinite.
    """,
    glsl=None,
)


def hypot(x: Operand, y: Operand) -> ShaderVariable:
    """sqrt(x * x + y * y) without overflow in between, in floating point and in the promoted type.

    Within 2 units in the last place. Numbers give a float.
    """
    return compute("hypot", host.hypot, (x, y), glsl=None)
