"""erf, erfc, gamma and lgamma of Python floats, with C's results where Python has errors."""

import math


def erf(x: float) -> float:
    """Error function."""
    return math.erf(x)


def erfc(x: float) -> float:
    """One minus the error function."""
    return math.erfc(x)


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


__all__ = ["erf", "erfc", "gamma", "lgamma"]
