"""Functions that no device has, in float32 (also for float16) and in float64.

Their texts are in `glsl.mathematics`, by topic: those of sinpi and cospi beside sin, of log1p beside log.
"""

from typing import Any

from vkdispatch.codegen.functions.elementwise import Operand, binary, gives_value, unary
from vkdispatch.compiler import host_functions as host

__all__ = ["cbrt", "cospi", "erf", "erfc", "expm1", "gamma", "hypot", "lgamma", "log1p", "log10", "sinpi"]

log10 = unary(
    "log10",
    host.log10,
    "Logarithm to base 10, to 2 units in the last place. A number gives a float.",
    glsl=None,
    own=True,
)
log1p = unary(
    "log1p",
    host.log1p,
    "log(1 + var), also for small values, to 2 units in the last place. A number gives a float.",
    glsl=None,
    own=True,
)
expm1 = unary(
    "expm1",
    host.expm1,
    "exp(var) - 1, also for small values, to 2 units in the last place. A number gives a float.",
    glsl=None,
    own=True,
)
sinpi = unary(
    "sinpi",
    host.sinpi,
    """Sine of pi * var, to 2 units in the last place. A number gives a float.

    Of multiples of 1/2 it is exact; of whole numbers it is zero with the sign of `var`.
    """,
    glsl=None,
    own=True,
)
cospi = unary(
    "cospi",
    host.cospi,
    """Cosine of pi * var, to 2 units in the last place. A number gives a float.

    Of multiples of 1/2 it is exact; its zeros are positive.
    """,
    glsl=None,
    own=True,
)
cbrt = unary(
    "cbrt",
    host.cbrt,
    "Cube root, also of negative values, to 2 units in the last place. A number gives a float.",
    glsl=None,
    own=True,
)
erf = unary(
    "erf",
    host.erf,
    "Error function, in floating point, to 4 units in the last place. A number gives a float.",
    glsl=None,
    own=True,
)
erfc = unary(
    "erfc",
    host.erfc,
    "1 - erf(var), also far from 0, in floating point, to 8 units in the last place. A number gives a float.",
    glsl=None,
    own=True,
)
gamma = unary(
    "gamma",
    host.gamma,
    """Gamma function, in floating point, to 8 units in the last place. A number gives a float.

    Of 0.0 and -0.0 it is infinite, of negative whole numbers and minus infinity NaN.
    """,
    glsl=None,
    own=True,
)
lgamma = unary(
    "lgamma",
    host.lgamma,
    """Logarithm of the gamma function's absolute value, in floating point. A number gives a float.

    The error is at most 8 units in the last place of the result, or of 1 between the zeros below 0. Of
    0 and negative whole numbers it is infinite.
    """,
    glsl=None,
    own=True,
)


_hypot = binary("hypot", host.hypot, "", glsl=None, own=True)


@gives_value
def hypot(x: Operand, y: Operand) -> Any:
    """sqrt(x * x + y * y) without overflow in between, in floating point and in the promoted type.

    Within 2 units in the last place. Numbers give a float.
    """
    return _hypot(x, y)
