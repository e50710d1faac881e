"""Polynomials given by their coefficients, that of the highest power first."""

from typing import Any

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.basics.creation import arange, zeros, zeros_like
from vkdispatch.numpy.basics.inputs import to_array
from vkdispatch.numpy.basics.manipulation import atleast_1d, concatenate, result_type
from vkdispatch.numpy.core.array import Array, parse_index
from vkdispatch.numpy.core.dtypes import default_real
from vkdispatch.numpy.statistics.calculus import convolve

__all__ = ["polyadd", "polyder", "polyint", "polymul", "polysub", "polyval"]


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
