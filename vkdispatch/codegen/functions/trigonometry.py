"""Trigonometric, hyperbolic and exponential functions. float64 goes through float32, but for square roots."""

from typing import Any

import numpy as np

from vkdispatch.codegen import expressions as ex
from vkdispatch.codegen.functions.elementwise import all_numbers, binary, fold, operands, unary
from vkdispatch.codegen.variables import ShaderVariable

sin = unary("sin", np.sin, "Sine of radians.", has_double=False)
cos = unary("cos", np.cos, "Cosine of radians.", has_double=False)
tan = unary("tan", np.tan, "Tangent of radians.", has_double=False)
asin = unary("asin", np.arcsin, "Arc sine in radians.", has_double=False)
acos = unary("acos", np.arccos, "Arc cosine in radians.", has_double=False)
atan = unary("atan", np.arctan, "Arc tangent in radians.", has_double=False)
sinh = unary("sinh", np.sinh, "Hyperbolic sine.", has_double=False)
cosh = unary("cosh", np.cosh, "Hyperbolic cosine.", has_double=False)
tanh = unary("tanh", np.tanh, "Hyperbolic tangent.", has_double=False)
asinh = unary("asinh", np.arcsinh, "Inverse hyperbolic sine.", has_double=False)
acosh = unary("acosh", np.arccosh, "Inverse hyperbolic cosine.", has_double=False)
atanh = unary("atanh", np.arctanh, "Inverse hyperbolic tangent.", has_double=False)
radians = unary("radians", np.radians, "Degrees to radians.", has_double=False)
degrees = unary("degrees", np.degrees, "Radians to degrees.", has_double=False)
exp = unary("exp", np.exp, "e to the power of x.", has_double=False)
exp2 = unary("exp2", np.exp2, "2 to the power of x.", has_double=False)
log = unary("log", np.log, "Natural logarithm.", has_double=False)
log2 = unary("log2", np.log2, "Logarithm to base 2.", has_double=False)
sqrt = unary("sqrt", np.sqrt, "Square root.")
inversesqrt = unary("inversesqrt", lambda x: 1 / np.sqrt(np.float64(x)), "1 / sqrt(x).")
_atan2 = binary("atan2", np.arctan2, "", glsl="atan", has_double=False)


def atan2(y: Any, x: Any) -> Any:
    """Angle of the point (x, y) in radians. Numbers give a float."""
    return _atan2(y, x)


def pow(x: Any, y: Any) -> Any:
    """X to the power of y, in floating point; as `x ** y`. Numbers give a float."""
    base, exponent = operands("pow", (x, y))
    if all_numbers((x, y)):
        return fold(np.float_power, (x, y))
    if ex.is_number(exponent) and exponent == 0:
        exponent = 0.0
    return ShaderVariable(ex.power(base, exponent))
