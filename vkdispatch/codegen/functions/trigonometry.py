"""Trigonometric, hyperbolic, exponential and special functions.

Those of float64 are within 2 units in the last place of the true results. float32 has the device's own, which
Vulkan allows to be loose, unless the kernel has `precise_math`.
"""

import math
from collections.abc import Callable

from vkdispatch.base.dtype import component_type, float64, is_scalar, is_vector, make_floating_dtype
from vkdispatch.codegen.functions.elementwise import (
    Operand,
    UnaryFunction,
    all_numbers,
    compute,
    fold,
    operands,
    unary,
)
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
