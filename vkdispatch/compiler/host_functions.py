"""Functions of Python floats, with C's results where Python has errors: infinities and NaN."""

import math
from collections.abc import Callable, Mapping


def _with_c_results(
    function: Callable[[float], float], poles: Mapping[float, float] | None = None
) -> Callable[[float], float]:
    """Make a function give `poles` of some numbers, NaN outside of its domain, and infinity for overflow."""
    limits = poles or {}

    def rule(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return limits.get(x, math.nan)
        except OverflowError:
            return math.copysign(math.inf, x)

    return rule


sin = _with_c_results(math.sin)
cos = _with_c_results(math.cos)
tan = _with_c_results(math.tan)
asin = _with_c_results(math.asin)
acos = _with_c_results(math.acos)
atan = math.atan
atan2 = math.atan2
sinh = _with_c_results(math.sinh)
_cosh = _with_c_results(math.cosh)
tanh = math.tanh
asinh = math.asinh
acosh = _with_c_results(math.acosh)
atanh = _with_c_results(math.atanh, {1.0: math.inf, -1.0: -math.inf})
exp = _with_c_results(math.exp)
exp2 = _with_c_results(math.exp2)
expm1 = _with_c_results(math.expm1)
log = _with_c_results(math.log, {0.0: -math.inf})
log2 = _with_c_results(math.log2, {0.0: -math.inf})
log10 = _with_c_results(math.log10, {0.0: -math.inf})
log1p = _with_c_results(math.log1p, {-1.0: -math.inf})
sqrt = _with_c_results(math.sqrt)
cbrt = math.cbrt
hypot = math.hypot
erf = math.erf
erfc = math.erfc


def cosh(x: float) -> float:
    """Hyperbolic cosine."""
    return _cosh(abs(x))


def pow(x: float, y: float) -> float:
    """X to the power of y."""
    try:
        return math.pow(x, y)
    except (ValueError, OverflowError):
        if x < 0 and not y.is_integer():
            return math.nan
        # a power of 0, or too large for a float
        return math.copysign(math.inf, x) if abs(math.fmod(y, 2)) == 1 else math.inf


def divide(x: float, y: float) -> float:
    """Quotient of two numbers."""
    if y:
        return x / y
    return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1.0, y)


def fmod(x: float, y: float) -> float:
    """Remainder with the sign of x."""
    return math.fmod(x, y) if y and not math.isinf(x) else math.nan


def sign(x: float) -> float:
    """-1, 0 or 1; NaN of NaN."""
    return x if x != x else float((x > 0) - (x < 0))


def _to_whole(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: math.copysign(float(function(x)), x) if math.isfinite(x) else x


floor = _to_whole(math.floor)
ceil = _to_whole(math.ceil)
trunc = _to_whole(math.trunc)
rint = _to_whole(round)


def minimum(x: float, y: float) -> float:
    """Smaller number; NaN where one is."""
    return x if x != x or x < y else y


def maximum(x: float, y: float) -> float:
    """Larger number; NaN where one is."""
    return x if x != x or x > y else y


def clip(x: float, low: float, high: float) -> float:
    """Limit x to [low, high]; NaN where one is."""
    return minimum(maximum(x, low), high)


def _reduce_pi(x: float) -> tuple[float, int]:
    """Return pi times what is left of |x| modulo 2 beside the nearest half, and that half's number."""
    rest = math.fmod(abs(x), 2.0)
    halves = round(2.0 * rest)
    return math.pi * (rest - 0.5 * halves), halves % 4


def sinpi(x: float) -> float:
    """Sine of pi x; exact at multiples of 1/2, zero with the sign of x at whole numbers."""
    if not math.isfinite(x):
        return math.nan
    angle, halves = _reduce_pi(x)
    y = math.cos(angle) if halves % 2 else math.sin(angle)
    return math.copysign(1.0, x) * (-y if halves >= 2 and y else y)


def cospi(x: float) -> float:
    """Cosine of pi x; exact at multiples of 1/2, where its zeros are positive."""
    if not math.isfinite(x):
        return math.nan
    angle, halves = _reduce_pi(x)
    y = math.sin(angle) if halves % 2 else math.cos(angle)
    return -y if halves in (1, 2) and y else y


def gamma(x: float) -> float:
    """Gamma function; infinite at zeros, NaN at negative whole numbers."""
    if x == 0:
        return math.copysign(math.inf, x)
    if x == -math.inf:
        return math.nan
    try:
        return math.gamma(x)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def lgamma(x: float) -> float:
    """Logarithm of the gamma function's absolute value; infinite at its poles."""
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf
