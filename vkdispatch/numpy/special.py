"""Special functions, element by element, with the names of `scipy.special`.

SciPy finds them: `scipy.special.erf(x)` of an Array is `vnp.special.erf(x)`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.numpy.basics.elementwise import UFUNCS, choose, exp, finish, isnan, log, log1p
from vkdispatch.numpy.basics.elementwise import absolute as magnitude
from vkdispatch.numpy.basics.manipulation import result_type
from vkdispatch.numpy.core.application import make_operation
from vkdispatch.numpy.core.array import Array, array_of, value_of
from vkdispatch.numpy.core.conversion import asarray
from vkdispatch.numpy.core.dtypes import default_real
from vkdispatch.numpy.core.expressions import Operation

__all__ = [
    "entr",
    "erf",
    "erfc",
    "exp10",
    "expit",
    "gamma",
    "gammaln",
    "huber",
    "kl_div",
    "log_expit",
    "logit",
    "ndtr",
    "rel_entr",
    "softplus",
    "xlog1py",
    "xlogy",
]


def _reals(name: str, *operands: Any) -> list[Any]:
    """Return arrays with real dtypes; Python numbers beside arrays as they are."""
    if not any(isinstance(each, Array) for each in operands):
        operands = tuple(asarray(each) for each in operands)
    found = []
    for each in operands:
        if not isinstance(each, Array):
            found.append(each)
            continue
        if each.dtype.kind == "c":
            raise ArgumentTypeError(f"{name}: expected real numbers, got {each.dtype}")
        found.append(each if each.dtype.kind == "f" else each.astype(default_real()))
    return found


def _function(name: str, compute: Callable[[Any], Any], what: str) -> Callable[..., Array]:
    """Return a function of arrays for one of kernels, which computes float16 in float32."""

    def record(x: Any, kind: Any) -> Any:
        if x.var_type is dt.float16:
            return compute(x.to_dtype(dt.float32)).to_dtype(dt.float16)
        return compute(x)

    operation = Operation(name, record)

    def function(x: Any, /, out: Any = None) -> Array:
        (array,) = _reals(name, x)
        value = value_of(array)
        node = make_operation(operation, (value,), (value.dtype,), value.shape, value.dtype)
        return array_of(node) if out is None else finish(node, out, None, name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {what}. See `scipy.special.{name}`. Raises TypeError for complex numbers."
    return function


erf = _function("erf", vc.erf, "the error function of real numbers")
erfc = _function("erfc", vc.erfc, "1 - erf(x), also far from 0")
gamma = _function("gamma", vc.gamma, "the gamma function of real numbers")
gammaln = _function("gammaln", vc.lgamma, "the logarithm of the gamma function's absolute value")


def ndtr(x: Any, /) -> Array:
    """Return the cumulative distribution of the standard normal. See `scipy.special.ndtr`."""
    (array,) = _reals("ndtr", x)
    return erfc(array * -math.sqrt(0.5)) * 0.5


def exp10(x: Any, /) -> Array:
    """Return powers of ten. See `scipy.special.exp10`."""
    (x,) = _reals("exp10", x)
    return UFUNCS["power"](x.dtype.type(10), x)


def expit(x: Any, /) -> Array:
    """Return 1 / (1 + exp(-x)). See `scipy.special.expit`."""
    (array,) = _reals("expit", x)
    return UFUNCS["reciprocal"](1 + exp(-array))


def log_expit(x: Any, /) -> Array:
    """Return the logarithm of expit(x), also far below 0. See `scipy.special.log_expit`."""
    (x,) = _reals("log_expit", x)
    return -softplus(-x)


def softplus(x: Any, /) -> Array:
    """Return log(1 + exp(x)) without overflow. See `scipy.special.softplus`."""
    (x,) = _reals("softplus", x)
    return UFUNCS["maximum"](x, 0) + log1p(exp(-magnitude(x)))


def logit(x: Any, /) -> Array:
    """Return log(x / (1 - x)). See `scipy.special.logit`."""
    (x,) = _reals("logit", x)
    return log(x / (1 - x))


def xlogy(x: Any, y: Any, /) -> Array:
    """Return x log(y), and 0 for x = 0 unless y is NaN. See `scipy.special.xlogy`."""
    x, y = _reals("xlogy", x, y)
    x, y = _together(x, y)
    return choose((x == 0) & ~isnan(y), 0.0, x * log(y))


def xlog1py(x: Any, y: Any, /) -> Array:
    """Return x log(1 + y), and 0 for x = 0 unless y is NaN. See `scipy.special.xlog1py`."""
    x, y = _reals("xlog1py", x, y)
    x, y = _together(x, y)
    return choose((x == 0) & ~isnan(y), 0.0, x * log1p(y))


def _together(x: Any, y: Any) -> tuple[Array, Array]:
    """Return two operands as arrays of one dtype."""
    kind = result_type(x, y)
    return asarray(x, kind), asarray(y, kind)


def entr(x: Any, /) -> Array:
    """Return -x log(x); 0 of 0, minus infinity below. See `scipy.special.entr`."""
    (x,) = _reals("entr", x)
    positive = choose(x > 0, x, 1)
    return choose(x < 0, -math.inf, choose(x > 0, -x * log(positive), x))


def rel_entr(x: Any, y: Any, /) -> Array:
    """Return x log(x / y); 0 for x = 0, infinity where it has no value. See `scipy.special.rel_entr`."""
    x, y = _together(*_reals("rel_entr", x, y))
    inside = (x > 0) & (y > 0)
    ratio = choose(inside, x, 1) / choose(inside, y, 1)
    found = choose(inside, x * log(ratio), choose((x == 0) & (y >= 0), x, math.inf))
    return choose(isnan(x) | isnan(y), math.nan, found)


def kl_div(x: Any, y: Any, /) -> Array:
    """Return x log(x / y) - x + y; infinity where it has no value. See `scipy.special.kl_div`."""
    x, y = _together(*_reals("kl_div", x, y))
    inside = (x > 0) & (y > 0)
    ratio = choose(inside, x, 1) / choose(inside, y, 1)
    found = choose(inside, x * log(ratio) - x + y, choose((x == 0) & (y >= 0), y, math.inf))
    return choose(isnan(x) | isnan(y), math.nan, found)


def huber(delta: Any, r: Any, /) -> Array:
    """Return the Huber loss of residuals `r`. See `scipy.special.huber`."""
    delta, r = _together(*_reals("huber", delta, r))
    size = magnitude(r)
    found = choose(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return choose(delta < 0, np.inf, found)
