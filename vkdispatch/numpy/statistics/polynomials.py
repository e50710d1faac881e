"""Polynomials given by their coefficients, that of the highest power first."""

from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy import linalg
from vkdispatch.numpy.basics.creation import arange, eye, zeros, zeros_like
from vkdispatch.numpy.basics.elementwise import power, sqrt
from vkdispatch.numpy.basics.inputs import to_array
from vkdispatch.numpy.basics.manipulation import atleast_1d, concatenate, result_type
from vkdispatch.numpy.core.array import Array, parse_index
from vkdispatch.numpy.core.conversion import asarray
from vkdispatch.numpy.core.dtypes import default_real
from vkdispatch.numpy.statistics.calculus import convolve

__all__ = ["poly", "polyadd", "polyder", "polyfit", "polyint", "polymul", "polysub", "polyval", "roots"]


def _coefficients(p: Any, name: str) -> Array:
    array: Array = atleast_1d(to_array(p, name))
    if array.ndim != 1:
        raise ArgumentValueError(f"{name}: expected a vector of coefficients, got the shape {array.shape}")
    return array


def polyval(p: Any, x: Any) -> Array:
    """Return the values of a polynomial, by Horner's scheme. See `numpy.polyval`."""
    own, places = _coefficients(p, "p"), to_array(x)
    found = zeros_like(places)
    for i in range(own.size):
        found = found * places + own[i]
    return found


def _together(a1: Any, a2: Any) -> tuple[Array, Array]:
    """Return coefficients of the same number of powers."""
    first, second = _coefficients(a1, "a1"), _coefficients(a2, "a2")
    short = first.size - second.size
    if short > 0:
        second = concatenate([zeros((short,), second.dtype), second])
    elif short < 0:
        first = concatenate([zeros((-short,), first.dtype), first])
    return first, second


def polyadd(a1: Any, a2: Any) -> Array:
    """Return the sum of two polynomials. See `numpy.polyadd`."""
    first, second = _together(a1, a2)
    return first + second


def polysub(a1: Any, a2: Any) -> Array:
    """Return the difference of two polynomials. See `numpy.polysub`."""
    first, second = _together(a1, a2)
    return first - second


def polymul(a1: Any, a2: Any) -> Array:
    """Return the product of two polynomials. See `numpy.polymul`."""
    return convolve(_coefficients(a1, "a1"), _coefficients(a2, "a2"))


def polyder(p: Any, m: int = 1) -> Array:
    """Return the derivative of an order of a polynomial. See `numpy.polyder`."""
    found = _coefficients(p, "p")
    order = parse_index(m, "m")
    if order < 0:
        raise ArgumentValueError(f"m: expected at least 0, got {order}")
    for _ in range(order):
        degree = max(found.size - 1, 0)
        found = found[:degree] * arange(degree, 0, -1).astype(result_type(found, int), copy=False)
    return found


def polyint(p: Any, m: int = 1, k: Any = None) -> Array:
    """Return the integral of an order of a polynomial, with constants `k`. See `numpy.polyint`."""
    found = _coefficients(p, "p")
    order = parse_index(m, "m")
    if order < 0:
        raise ArgumentValueError(f"m: expected at least 0, got {order}")
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


def poly(seq_of_zeros: Any) -> Array:
    """Return the coefficients of a polynomial with these roots, or those of a matrix. See `numpy.poly`.

    NumPy computes them on the host. Raises ValueError if it is neither a vector nor a square matrix.
    """
    found = atleast_1d(to_array(seq_of_zeros))
    if found.ndim == 2 and found.shape[0] == found.shape[1] != 0:
        found = linalg.eigvals(found)
    if found.ndim != 1:
        raise ArgumentValueError(
            f"seq_of_zeros: expected a vector or a square matrix, got the shape {found.shape}"
        )
    if found.dtype.kind in "biu":
        found = found.astype(default_real())
    return asarray(np.asarray(np.poly(found.numpy())), device=found.device)


def roots(p: Any) -> Array:
    """Return the roots of a polynomial, the eigenvalues of its companion matrix. See `numpy.roots`.

    LAPACK computes them on the host.
    """
    own = _coefficients(p, "p")
    places = np.flatnonzero(own.numpy())
    if not places.size:
        return zeros((0,), result_type(own, default_real()))
    first, last = int(places[0]), int(places[-1])
    degree = last - first
    kind = own.dtype if own.dtype.kind in "fc" else default_real()
    found = zeros((0,), kind)
    if degree:
        companion = eye(degree, k=-1, dtype=kind)
        companion[0] = -own[first + 1 : last + 1] / own[first]
        found = linalg.eigvals(companion)
    return concatenate([found, zeros((own.size - 1 - last,), found.dtype)])


def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None) -> Any:
    """Return the coefficients of a polynomial that fits points best. See `numpy.polyfit`.

    LAPACK computes them on the host. With `full`, returns the residuals, the rank, the singular values and
    `rcond`, too.

    Raises
    ------
    TypeError
        `x` or `w` is no vector, `y` has more than two axes, or their lengths differ, as in NumPy.
    ValueError
        `deg` is negative.
    """
    places, values = to_array(x, "x"), to_array(y, "y")
    order = parse_index(deg, "deg") + 1
    if order < 1:
        raise ArgumentValueError(f"deg: expected at least 0, got {deg}")
    if places.ndim != 1 or not places.size:
        raise ArgumentTypeError(f"x: expected a vector with elements, got the shape {places.shape}")
    if values.ndim not in (1, 2) or values.shape[0] != places.size:
        raise ArgumentTypeError(
            f"y: expected {places.size} elements along the first axis, and at most two axes, got the shape "
            f"{values.shape}"
        )
    kinds = [each.dtype if each.dtype.kind in "fc" else default_real() for each in (places, values)]
    places, values = places.astype(kinds[0], copy=False), values.astype(kinds[1], copy=False)
    limit = places.size * float(np.finfo(kinds[0]).eps) if rcond is None else rcond
    powers = power(places[:, None], arange(order - 1, -1, -1).astype(kinds[0])[None, :])
    if w is not None:
        weights = to_array(w, "w").astype(default_real(), copy=False)
        if weights.shape != places.shape:
            raise ArgumentTypeError(f"w: expected the shape of x, {places.shape}, got {weights.shape}")
        powers = powers * weights[:, None]
        values = values * (weights if values.ndim == 1 else weights[:, None])
    scale = sqrt((powers * powers).sum(axis=0))
    found, residuals, rank, singular = linalg.lstsq(powers / scale, values, limit)
    found = (found.T / scale).T
    return (found, residuals, rank, singular, limit) if full else found
