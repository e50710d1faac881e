"""Trigonometric, hyperbolic, exponential and special functions.

Those of float64 are within 2 units in the last place of the true results. float32 has the device's own, which
Vulkan allows to be loose, unless the kernel has `precise_math`.
"""

import math
from typing import Any

from vkdispatch.base.dtype import component_type, float64, is_scalar, is_vector, make_floating_dtype
from vkdispatch.codegen.functions import elementwise
from vkdispatch.codegen.trace.current import has_flag
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler import host_functions as host
from vkdispatch.compiler.ir import ShaderFlags
from vkdispatch.compiler.ir import expressions as ex

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


sin = elementwise.unary("sin", host.sin, "Sine of radians.", own=True)
cos = elementwise.unary("cos", host.cos, "Cosine of radians.", own=True)
tan = elementwise.unary("tan", host.tan, "Tangent of radians.", own=True)
asin = elementwise.unary("asin", host.asin, "Arc sine in radians.", own=True)
acos = elementwise.unary("acos", host.acos, "Arc cosine in radians.", own=True)
atan = elementwise.unary("atan", host.atan, "Arc tangent in radians.", own=True)
sinh = elementwise.unary("sinh", host.sinh, "Hyperbolic sine.", own=True)
cosh = elementwise.unary("cosh", host.cosh, "Hyperbolic cosine.", own=True)
tanh = elementwise.unary("tanh", host.tanh, "Hyperbolic tangent.", own=True)
asinh = elementwise.unary("asinh", host.asinh, "Inverse hyperbolic sine.", own=True)
acosh = elementwise.unary("acosh", host.acosh, "Inverse hyperbolic cosine.", own=True)
atanh = elementwise.unary("atanh", host.atanh, "Inverse hyperbolic tangent.", own=True)
exp = elementwise.unary("exp", host.exp, "e to the power of `var`.", own=True)
exp2 = elementwise.unary("exp2", host.exp2, "2 to the power of `var`.", own=True)
log = elementwise.unary("log", host.log, "Natural logarithm.", own=True)
log2 = elementwise.unary("log2", host.log2, "Logarithm to base 2.", own=True)
sqrt = elementwise.unary("sqrt", host.sqrt, "Square root.")
inversesqrt = elementwise.unary("inversesqrt", lambda x: host.divide(1.0, host.sqrt(x)), "1 / sqrt(var).")
_radians = elementwise.unary("radians", math.radians, "Degrees to radians.")
_degrees = elementwise.unary("degrees", math.degrees, "Radians to degrees.")
_atan2 = elementwise.binary("atan2", host.atan2, "", glsl="atan", own=True)


def _scale(function: elementwise.UnaryFunction, factor: float, x: elementwise.Operand) -> Any:
    """Call a function that is a product; of doubles GLSL has none."""
    if isinstance(x, ShaderVariable):
        kind = make_floating_dtype(x.var_type)
        if (is_scalar(kind) or is_vector(kind)) and component_type(kind) is float64:
            return ShaderVariable(ex.multiply(ex.cast(x._value(), kind), factor))
    return function(x)


@elementwise.gives_value
def radians(var: elementwise.Operand) -> Any:
    """Degrees to radians."""
    return _scale(_radians, math.pi / 180, var)


@elementwise.gives_value
def degrees(var: elementwise.Operand) -> Any:
    """Radians to degrees."""
    return _scale(_degrees, 180 / math.pi, var)


@elementwise.gives_value
def atan2(y: elementwise.Operand, x: elementwise.Operand) -> Any:
    """Angle of the point (x, y) in radians. Numbers give a float."""
    return _atan2(y, x)


@elementwise.gives_value
def pow(x: elementwise.Operand, y: elementwise.Operand) -> Any:
    """X to the power of y, in floating point; `x ** y` of two integers is an integer. Numbers: a float."""
    base, exponent = elementwise.operands("pow", (x, y))
    if elementwise.all_numbers((x, y)):
        return elementwise.fold(host.pow, (x, y))
    return ShaderVariable(ex.float_power(base, exponent, precise=has_flag(ShaderFlags.PRECISE_MATH)))


# ---- Functions that no device has, in float32 (also for float16) and in float64 --------------------------
#
# Their texts are in `compiler.glsl`, by topic: those of sinpi and cospi beside sin, of log1p beside log.


log10 = elementwise.unary(
    "log10",
    host.log10,
    "Logarithm to base 10, to 2 units in the last place. A number gives a float.",
    glsl=None,
    own=True,
)
log1p = elementwise.unary(
    "log1p",
    host.log1p,
    "log(1 + var), also for small values, to 2 units in the last place. A number gives a float.",
    glsl=None,
    own=True,
)
expm1 = elementwise.unary(
    "expm1",
    host.expm1,
    "exp(var) - 1, also for small values, to 2 units in the last place. A number gives a float.",
    glsl=None,
    own=True,
)
sinpi = elementwise.unary(
    "sinpi",
    host.sinpi,
    """Sine of pi * var, to 2 units in the last place. A number gives a float.

    Of multiples of 1/2 it is exact; of whole numbers it is zero with the sign of `var`.
    """,
    glsl=None,
    own=True,
)
cospi = elementwise.unary(
    "cospi",
    host.cospi,
    """Cosine of pi * var, to 2 units in the last place. A number gives a float.

    Of multiples of 1/2 it is exact; its zeros are positive.
    """,
    glsl=None,
    own=True,
)
cbrt = elementwise.unary(
    "cbrt",
    host.cbrt,
    "Cube root, also of negative values, to 2 units in the last place. A number gives a float.",
    glsl=None,
    own=True,
)
erf = elementwise.unary(
    "erf",
    host.erf,
    "Error function, in floating point, to 4 units in the last place. A number gives a float.",
    glsl=None,
    own=True,
)
erfc = elementwise.unary(
    "erfc",
    host.erfc,
    "1 - erf(var), also far from 0, in floating point, to 8 units in the last place. A number gives a float.",
    glsl=None,
    own=True,
)
gamma = elementwise.unary(
    "gamma",
    host.gamma,
    """Gamma function, in floating point, to 8 units in the last place. A number gives a float.

    Of 0.0 and -0.0 it is infinite, of negative whole numbers and minus infinity NaN.
    """,
    glsl=None,
    own=True,
)
lgamma = elementwise.unary(
    "lgamma",
    host.lgamma,
    """Logarithm of the gamma function's absolute value, in floating point. A number gives a float.

    The error is at most 8 units in the last place of the result, or of 1 between the zeros below 0. Of
    0 and negative whole numbers it is infinite.
    """,
    glsl=None,
    own=True,
)


_hypot = elementwise.binary("hypot", host.hypot, "", glsl=None, own=True)


@elementwise.gives_value
def hypot(x: elementwise.Operand, y: elementwise.Operand) -> Any:
    """sqrt(x * x + y * y) without overflow in between, in floating point and in the promoted type.

    Within 2 units in the last place. Numbers give a float.
    """
    return _hypot(x, y)
