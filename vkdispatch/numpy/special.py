"""Special functions, element by element, with the names of `scipy.special`.

SciPy finds them: `scipy.special.erf(x)` of an Array is `vnp.special.erf(x)`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.families.values import find_function
from vkdispatch.numpy.basics.elementwise import UFUNCS, choose, exp, finish, isnan, log, log1p, write_example
from vkdispatch.numpy.basics.elementwise import absolute as magnitude
from vkdispatch.numpy.basics.manipulation import result_type
from vkdispatch.numpy.core.application import make_operation
from vkdispatch.numpy.core.array import Array, array_of, parse_operand, value_of
from vkdispatch.numpy.core.conversion import asarray, to_array
from vkdispatch.numpy.core.expressions import Operation
from vkdispatch.numpy.core.memory import default_real

__all__ = [
    "entr",
    "erf",
    "erfc",
    "exp10",
    "expit",
    "gamma",
    "gammaln",
    "huber",
    "i0",
    "i0e",
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
        operands = tuple(to_array(each, f"{name}: x") for each in operands)
    found = []
    for operand in operands:
        if not isinstance(operand, Array):
            found.append(parse_operand(operand, f"{name}: x"))
            continue
        if operand.dtype.kind == "c":
            raise ArgumentTypeError(f"{name}: expected real numbers, got {operand.dtype}")
        found.append(operand if operand.dtype.kind == "f" else operand.astype(default_real()))
    return found


def _make_function(name: str, compute: Callable[[Any], Any], what: str) -> Callable[..., Array]:
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
    function.__doc__ = (
        f"Return {what}. See `scipy.special.{name}`. Raises TypeError for complex numbers.\n\n"
        f"    {write_example(f'special.{name}')}"
    )
    return function


erf = _make_function("erf", find_function("erf"), "the error function of real numbers")
erfc = _make_function("erfc", find_function("erfc"), "1 - erf(x), also far from 0")
gamma = _make_function("gamma", find_function("gamma"), "the gamma function of real numbers")
gammaln = _make_function(
    "gammaln", find_function("lgamma"), "the logarithm of the gamma function's absolute value"
)


# Chebyshev coefficients of exp(-x) I0(x) on [0, 8], and of sqrt(x) exp(-x) I0(x) in 8/x.
_BELOW_8 = [
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764,
    0.04930528423967071, -0.02373741480589947, 0.010546460394594998, -0.004324309995050576,
    0.0016394756169413357, -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05,
    1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07,
    6.046995022541919e-08, -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10,
    9.675809035373237e-11, -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13,
    7.676185498604936e-14, -1.1685332877993451e-14, 1.715391285555133e-15, -2.431279846547955e-16,
    3.3307945188222384e-17, -4.4153416464793395e-18,
]  # fmt: skip
_BEYOND_8 = [
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06,
    2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10,
    1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
    7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14, -4.150569347287222e-14,
    -9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16,
    -2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17, -4.830504485944182e-18,
    -7.233180487874754e-18,
]  # fmt: skip


def _chebyshev(coefficients: Sequence[float], x: Any) -> Any:
    """Return the sum of Chebyshev polynomials, by Clenshaw's recurrence."""
    number = vc.to_dtype(x.var_type, 0)
    before = number
    for each in reversed(coefficients[1:]):
        number, before = (2 * x * number - before + vc.to_dtype(x.var_type, each)).to_register(), number
    return x * number - before + vc.to_dtype(x.var_type, coefficients[0])


def _i0e(x: Any) -> Any:
    size = vc.abs(x).to_register()
    result = vc.new_register(x.var_type, 0)
    with vc.if_block(size <= 8):
        result[:] = _chebyshev(_BELOW_8, (size / 4 - 1).to_register())
    with vc.if_block(size > 8):
        result[:] = _chebyshev(_BEYOND_8, (16 / size - 1).to_register()) / vc.sqrt(size)
    return vc.select(vc.isnan(x), x, result)


def _i0(x: Any) -> Any:
    # in two steps: exp(x) is too large before I0(x) is
    root = vc.exp(vc.abs(x) / 2).to_register()
    return vc.select(vc.isinf(root), root, _i0e(x) * root * root)


i0 = _make_function("i0", _i0, "the modified Bessel function of order 0")
i0e = _make_function("i0e", _i0e, "exp(-abs(x)) times the modified Bessel function of order 0")


def ndtr(x: Any, /) -> Array:
    """Return the cumulative distribution of the standard normal. See `scipy.special.ndtr`.

    Examples
    --------
    >>> vnp.special.ndtr(vnp.asarray([0.0, 1.96]))
    Array([0.5      , 0.9750021], dtype=float64)
    """
    (array,) = _reals("ndtr", x)
    return erfc(array * -math.sqrt(0.5)) * 0.5


def exp10(x: Any, /) -> Array:
    """Return powers of ten. See `scipy.special.exp10`.

    Examples
    --------
    >>> vnp.special.exp10(vnp.asarray([1.0, 2.0]))
    Array([ 10., 100.], dtype=float64)
    """
    (x,) = _reals("exp10", x)
    return UFUNCS["power"](x.dtype.type(10), x)


def expit(x: Any, /) -> Array:
    """Return 1 / (1 + exp(-x)). See `scipy.special.expit`.

    Examples
    --------
    >>> vnp.special.expit(vnp.asarray([0.0, 2.0]))
    Array([0.5       , 0.88079708], dtype=float64)
    """
    (array,) = _reals("expit", x)
    return UFUNCS["reciprocal"](1 + exp(-array))


def log_expit(x: Any, /) -> Array:
    """Return the logarithm of expit(x), also far below 0. See `scipy.special.log_expit`.

    Examples
    --------
    >>> vnp.special.log_expit(vnp.asarray([0.0]))
    Array([-0.69314718], dtype=float64)
    """
    (x,) = _reals("log_expit", x)
    return -softplus(-x)


def softplus(x: Any, /) -> Array:
    """Return log(1 + exp(x)) without overflow. See `scipy.special.softplus`.

    Examples
    --------
    >>> vnp.special.softplus(vnp.asarray([0.0]))
    Array([0.69314718], dtype=float64)
    """
    (x,) = _reals("softplus", x)
    return UFUNCS["maximum"](x, 0) + log1p(exp(-magnitude(x)))


def logit(x: Any, /) -> Array:
    """Return log(x / (1 - x)). See `scipy.special.logit`.

    Examples
    --------
    >>> vnp.special.logit(vnp.asarray([0.5, 0.75]))
    Array([0.        , 1.09861229], dtype=float64)
    """
    (x,) = _reals("logit", x)
    return log(x / (1 - x))


def xlogy(x: Any, y: Any, /) -> Array:
    """Return x log(y), and 0 for x = 0 unless y is NaN. See `scipy.special.xlogy`.

    Examples
    --------
    >>> vnp.special.xlogy(vnp.asarray([0.0, 2.0]), vnp.asarray([0.0, 3.0]))
    Array([0.        , 2.19722458], dtype=float64)
    """
    x, y = _promote(*_reals("xlogy", x, y))
    return choose((x == 0) & ~isnan(y), 0.0, x * log(y))


def xlog1py(x: Any, y: Any, /) -> Array:
    """Return x log(1 + y), and 0 for x = 0 unless y is NaN. See `scipy.special.xlog1py`.

    Examples
    --------
    >>> vnp.special.xlog1py(vnp.asarray([2.0]), vnp.asarray([1.0]))
    Array([1.38629436], dtype=float64)
    """
    x, y = _promote(*_reals("xlog1py", x, y))
    return choose((x == 0) & ~isnan(y), 0.0, x * log1p(y))


def _promote(x: Any, y: Any) -> tuple[Array, Array]:
    kind = result_type(x, y)
    return asarray(x, kind), asarray(y, kind)


def entr(x: Any, /) -> Array:
    """Return -x log(x); 0 of 0, minus infinity below. See `scipy.special.entr`.

    Examples
    --------
    >>> vnp.special.entr(vnp.asarray([0.5, 0.25]))
    Array([0.34657359, 0.34657359], dtype=float64)
    """
    (x,) = _reals("entr", x)
    positive = choose(x > 0, x, 1)
    return choose(x < 0, -math.inf, choose(x > 0, -x * log(positive), x))


def rel_entr(x: Any, y: Any, /) -> Array:
    """Return x log(x / y); 0 for x = 0, infinity where it has no value. See `scipy.special.rel_entr`.

    Examples
    --------
    >>> vnp.special.rel_entr(vnp.asarray([1.0]), vnp.asarray([2.0]))
    Array([-0.69314718], dtype=float64)
    """
    x, y = _promote(*_reals("rel_entr", x, y))
    inside, logarithm = _compare(x, y)
    entropy = choose(inside, x * logarithm, choose((x == 0) & (y >= 0), x, math.inf))
    return choose(isnan(x) | isnan(y), math.nan, entropy)


def _compare(x: Array, y: Array) -> tuple[Array, Array]:
    """Return where two arrays are positive, and log(x / y) there."""
    inside = (x > 0) & (y > 0)
    return inside, log(choose(inside, x, 1) / choose(inside, y, 1))


def kl_div(x: Any, y: Any, /) -> Array:
    """Return x log(x / y) - x + y; infinity where it has no value. See `scipy.special.kl_div`.

    Examples
    --------
    >>> vnp.special.kl_div(vnp.asarray([1.0]), vnp.asarray([2.0]))
    Array([0.30685282], dtype=float64)
    """
    x, y = _promote(*_reals("kl_div", x, y))
    inside, logarithm = _compare(x, y)
    divergence = choose(inside, x * logarithm - x + y, choose((x == 0) & (y >= 0), y, math.inf))
    return choose(isnan(x) | isnan(y), math.nan, divergence)


def huber(delta: Any, r: Any, /) -> Array:
    """Return the Huber loss of residuals `r`. See `scipy.special.huber`.

    Examples
    --------
    >>> vnp.special.huber(1.0, vnp.asarray([0.5, 3.0]))
    Array([0.125, 2.5  ], dtype=float64)
    """
    delta, r = _promote(*_reals("huber", delta, r))
    size = magnitude(r)
    found = choose(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return choose(delta < 0, np.inf, found)
