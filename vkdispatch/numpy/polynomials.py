"""Polynomials given by their coefficients, that of the highest power first."""

import warnings
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics.creation import zeros, zeros_like
from vkdispatch.numpy.basics.elementwise import multiply, power
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.basics.manipulation import atleast_1d, expand_dims, result_type
from vkdispatch.numpy.basics.sequences import arange
from vkdispatch.numpy.calculus import convolve
from vkdispatch.numpy.core.array import Array, parse_count, parse_index
from vkdispatch.numpy.core.conversion import asarray, to_array
from vkdispatch.numpy.core.memory import default_real, int64
from vkdispatch.numpy.core.repeating import repeat_calls
from vkdispatch.numpy.linalg.solving import inv
from vkdispatch.numpy.linalg.spectra import lstsq, vector_norm


def _coefficients(p: Any, name: str) -> Array:
    array: Array = atleast_1d(to_array(p, name))
    if array.ndim != 1:
        raise ArgumentValueError(f"{name}: expected a vector of coefficients, got the shape {array.shape}")
    return array


@repeat_calls
def polyval(p: Any, x: Any) -> Array:
    """Return the values of a polynomial, by Horner's scheme. See `numpy.polyval`.

    Examples
    --------
    >>> vnp.polyval(vnp.asarray([1, 2, 3]), vnp.asarray([0, 1, 2]))
    Array([ 3,  6, 11], dtype=int64)
    """
    own, places = _coefficients(p, "p"), to_array(x)
    found = zeros_like(places)
    for i in range(own.size):
        found = found * places + own[i]
    return found


def _align(a1: Any, a2: Any) -> tuple[Array, Array]:
    """Return coefficients of the same number of powers."""
    first, second = _coefficients(a1, "a1"), _coefficients(a2, "a2")
    short = first.size - second.size
    if short > 0:
        second = concatenate([zeros((short,), second.dtype), second])
    elif short < 0:
        first = concatenate([zeros((-short,), first.dtype), first])
    return first, second


@repeat_calls
def polyadd(a1: Any, a2: Any) -> Array:
    """Return the sum of two polynomials. See `numpy.polyadd`.

    Examples
    --------
    >>> vnp.polyadd(vnp.asarray([1, 2]), vnp.asarray([1, 0, 1]))
    Array([1, 1, 3], dtype=int64)
    """
    first, second = _align(a1, a2)
    return first + second


@repeat_calls
def polysub(a1: Any, a2: Any) -> Array:
    """Return the difference of two polynomials. See `numpy.polysub`.

    Examples
    --------
    >>> vnp.polysub(vnp.asarray([1, 2]), vnp.asarray([1, 3]))
    Array([ 0, -1], dtype=int64)
    """
    first, second = _align(a1, a2)
    return first - second


@repeat_calls
def polymul(a1: Any, a2: Any) -> Array:
    """Return the product of two polynomials. See `numpy.polymul`.

    Examples
    --------
    >>> vnp.polymul(vnp.asarray([1, 2]), vnp.asarray([1, 3]))
    Array([1, 5, 6], dtype=int64)
    """
    return convolve(_without_zeros(_coefficients(a1, "a1")), _without_zeros(_coefficients(a2, "a2")))


def _without_zeros(p: Array) -> Array:
    """Return coefficients without the zeros before the first one that is none; at least one."""
    return p[min(int((p != 0).argmax()) if bool((p != 0).any()) else p.size, max(p.size - 1, 0)) :]


@repeat_calls
def polyder(p: Any, m: int = 1) -> Array:
    """Return the derivative of an order of a polynomial. See `numpy.polyder`.

    Examples
    --------
    >>> vnp.polyder(vnp.asarray([1, 2, 3]))
    Array([2, 2], dtype=int64)
    """
    found = _coefficients(p, "p")
    order = parse_count(m, "m")
    for _ in range(order):
        degree = max(found.size - 1, 0)
        found = found[:degree] * arange(degree, 0, -1).astype(result_type(found, int), copy=False)
    return found


@repeat_calls
def polyint(p: Any, m: int = 1, k: Any = None) -> Array:
    """Return the integral of an order of a polynomial, with constants `k`. See `numpy.polyint`.

    Examples
    --------
    >>> vnp.polyint(vnp.asarray([2.0, 2.0]))
    Array([1., 2., 0.], dtype=float64)
    """
    found = _coefficients(p, "p")
    order = parse_count(m, "m")
    constants = zeros((order,)) if k is None else _coefficients(k, "k")
    if constants.size == 1 and order > 1:
        constants = concatenate([constants] * order)
    if constants.size < order:
        raise ArgumentValueError(f"k: expected one constant or {order}, got {constants.size}")
    kind = result_type(found, constants, default_real())
    for i in range(order):
        powers = arange(found.size, 0, -1).astype(default_real())
        found = concatenate([found / powers, constants[i : i + 1]]).astype(kind, copy=False)
    return found


def _on_host(function: Any, *arguments: Array) -> Any:
    """Return what a function of NumPy makes of few numbers, in the default dtypes where they are integers."""
    kinds = [argument.dtype if argument.dtype.kind in "fc" else default_real() for argument in arguments]
    real = np.result_type(*kinds, np.float32).char.lower()
    found = function(*(each.numpy() for each in arguments))

    def upload(values: Any) -> Array:
        kind = np.result_type(real, np.complex64) if np.iscomplexobj(values) else np.dtype(real)
        return asarray(np.asarray(values).astype(kind))

    return tuple(map(upload, found)) if isinstance(found, tuple) else upload(found)


def poly(seq_of_zeros: Any) -> Array:
    """Return the polynomial with given roots, or the characteristic one of a matrix, by the host.

    See `numpy.poly`.

    Examples
    --------
    >>> vnp.poly(vnp.asarray([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float64)
    """
    array = atleast_1d(to_array(seq_of_zeros, "seq_of_zeros"))
    if array.ndim > 2 or (array.ndim == 2 and array.shape[0] != array.shape[1]):
        raise ArgumentValueError(f"seq_of_zeros: expected a vector or a square matrix, got {array.shape}")
    return _on_host(np.poly, array)  # type: ignore[no-any-return]


def roots(p: Any) -> Array:
    """Return the roots of a polynomial, by LAPACK on the host. See `numpy.roots`.

    Examples
    --------
    >>> vnp.sort(vnp.roots(vnp.asarray([1.0, -3.0, 2.0])).real)
    Array([1., 2.], dtype=float64)
    """
    return _on_host(np.roots, _coefficients(p, "p"))  # type: ignore[no-any-return]


def polydiv(u: Any, v: Any) -> tuple[Array, Array]:
    """Return quotient and remainder of two polynomials, by the host. See `numpy.polydiv`.

    Examples
    --------
    >>> quotient, remainder = vnp.polydiv(vnp.asarray([1.0, -3.0, 2.0]), vnp.asarray([1.0, -1.0]))
    >>> quotient
    Array([ 1., -2.], dtype=float64)
    """
    divisor = _coefficients(v, "v")
    if not divisor.size:
        raise ArgumentValueError("v: expected at least one coefficient")
    return _on_host(np.polydiv, _coefficients(u, "u"), divisor)  # type: ignore[no-any-return]


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:  # noqa: N803
    """Return the matrix of powers of a vector. See `numpy.vander`. Raises ValueError for no vector.

    Examples
    --------
    >>> vnp.vander(vnp.asarray([1, 2, 3]), 3)
    Array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]], dtype=int64)
    """
    array = to_array(x)
    if array.ndim != 1:
        raise ArgumentValueError(f"x: expected a vector, got the shape {array.shape}")
    count = array.size if N is None else parse_index(N, "N")
    kind = result_type(array, int64)
    powers = arange(count)
    if not increasing:
        powers = count - 1 - powers
    return power(array.astype(kind)[:, None], powers[None, :].astype(kind))


def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """Return the coefficients of least-squares polynomials. See `numpy.polyfit`.

    `vnp.linalg.lstsq` solves for them.

    Raises
    ------
    ValueError
        The degree is negative, or there are too few points for a covariance.
    TypeError
        The points, values and weights do not fit.

    Examples
    --------
    >>> vnp.polyfit(vnp.asarray([0.0, 1, 2]), vnp.asarray([1.0, 3, 5]), 1).round(6)
    Array([2., 1.], dtype=float64)
    """
    places, values = to_array(x), to_array(y, "y")
    order = parse_count(deg, "deg") + 1
    if places.ndim != 1 or not places.size:
        raise ArgumentTypeError(f"x: expected a vector that is not empty, got the shape {places.shape}")
    if values.ndim not in (1, 2) or values.shape[0] != places.size:
        raise ArgumentTypeError(f"y: expected {places.size} values or rows, got the shape {values.shape}")
    kind = result_type(places, values, default_real() if places.dtype.kind in "biu" else places)
    limit = places.size * np.finfo(kind).eps if rcond is None else rcond
    powers, right = vander(places.astype(kind), order), values.astype(kind)
    if w is not None:
        weights = to_array(w, "w").astype(kind)
        if weights.shape != places.shape:
            raise ArgumentTypeError(f"w: expected {places.size} weights, got the shape {weights.shape}")
        powers = powers * expand_dims(weights, 1)
        right = right * (weights if right.ndim == 1 else expand_dims(weights, 1))
    scale = vector_norm(powers, axis=0)
    found, residuals, rank, singular = lstsq(powers / scale, right, limit)
    found = (found.T / scale).T
    if rank != order and not full:
        warnings.warn("polyfit may be poorly conditioned", np.exceptions.RankWarning, 2)
    if full:
        return found, residuals, rank, singular, limit
    if not cov:
        return found
    base = inv((powers / scale).T @ (powers / scale)) / multiply(expand_dims(scale, 1), scale)
    factor: Any = 1
    if cov != "unscaled":
        if places.size <= order:
            raise ArgumentValueError(f"cov: expected more than {order} points, got {places.size}")
        factor = residuals / (places.size - order)
    return found, (base if right.ndim == 1 else expand_dims(base, 2)) * factor
