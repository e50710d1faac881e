"""Trigonometric, hyperbolic and exponential functions.

Those of float64 are within 2 units in the last place of the true results. float32 has the device's own, which
Vulkan allows to be loose, unless the kernel has `precise_math`.
"""

import math
from typing import Any

from vkdispatch.base.dtype import component_type, float64, is_scalar, is_vector, make_floating_dtype
from vkdispatch.codegen.functions.elementwise import (
    Operand,
    UnaryFunction,
    all_numbers,
    binary,
    fold,
    gives_value,
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
    "cos",
    "cosh",
    "degrees",
    "exp",
    "exp2",
    "inversesqrt",
    "log",
    "log2",
    "pow",
    "radians",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]

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
_radians = unary("radians", math.radians, "Degrees to radians.")
_degrees = unary("degrees", math.degrees, "Radians to degrees.")
_atan2 = binary("atan2", host.atan2, "", glsl="atan", own=True)


def _scale(function: UnaryFunction, factor: float, x: Operand) -> Any:
    """Call a function that is a product; of doubles GLSL has none."""
    if isinstance(x, ShaderVariable):
        kind = make_floating_dtype(x.var_type)
        if (is_scalar(kind) or is_vector(kind)) and component_type(kind) is float64:
            return ShaderVariable(ex.multiply(ex.cast(x._value(), kind), factor))
    return function(x)


@gives_value
def radians(var: Operand) -> Any:
    """Degrees to radians."""
    return _scale(_radians, math.pi / 180, var)


@gives_value
def degrees(var: Operand) -> Any:
    """Radians to degrees."""
    return _scale(_degrees, 180 / math.pi, var)


@gives_value
def atan2(y: Operand, x: Operand) -> Any:
    """Angle of the point (x, y) in radians. Numbers give a float."""
    return _atan2(y, x)


@gives_value
def pow(x: Operand, y: Operand) -> Any:
    """X to the power of y, in floating point; `x ** y` of two integers is an integer. Numbers: a float."""
    base, exponent = operands("pow", (x, y))
    if all_numbers((x, y)):
        return fold(host.pow, (x, y))
    return ShaderVariable(ex.float_power(base, exponent, precise=has_flag(ShaderFlags.PRECISE_MATH)))
