"""Whether whole arrays are equal, or close to each other. These functions wait for their result."""

from typing import Any

import numpy as np

from vkdispatch.numpy.basics.elementwise import imag_of, isclose, isnan
from vkdispatch.numpy.basics.inputs import to_array
from vkdispatch.numpy.basics.reductions import all as all_of
from vkdispatch.numpy.core.array import Array

__all__ = [
    "allclose",
    "array_equal",
    "array_equiv",
    "iscomplex",
    "isreal",
]


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether two arrays are equal within tolerances. See `numpy.allclose`.

    Examples
    --------
    >>> vnp.allclose(vnp.asarray([1.0, 2.0]), vnp.asarray([1.0, 2.0 + 1e-9]))
    True
    """
    return bool(all_of(isclose(to_array(a, "a"), to_array(b, "b"), rtol, atol, equal_nan)))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether two arrays have the same shape and elements. See `numpy.array_equal`.

    Examples
    --------
    >>> vnp.array_equal(vnp.arange(3), vnp.asarray([0, 1, 2]))
    True
    """
    x, y = to_array(a1, "a1"), to_array(a2, "a2")
    if x.shape != y.shape:
        return False
    same = x == y
    if equal_nan and x.dtype.kind in "fc" and y.dtype.kind in "fc":
        same = same | (isnan(x) & isnan(y))
    return bool(all_of(same))


def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether two arrays are equal after broadcasting. See `numpy.array_equiv`.

    Examples
    --------
    >>> vnp.array_equiv(vnp.asarray([1, 2]), vnp.asarray([[1, 2], [1, 2]]))
    True
    """
    x, y = to_array(a1, "a1"), to_array(a2, "a2")
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return bool(all_of(x == y))


def iscomplex(x: Any) -> Array:
    """Return where the imaginary part is not zero. See `numpy.iscomplex`.

    Examples
    --------
    >>> vnp.iscomplex(vnp.asarray([1, 2j]))
    Array([False,  True], dtype=bool)
    """
    return imag_of(to_array(x)) != 0


def isreal(x: Any) -> Array:
    """Return where the imaginary part is zero. See `numpy.isreal`.

    Examples
    --------
    >>> vnp.isreal(vnp.asarray([1, 2j]))
    Array([ True, False], dtype=bool)
    """
    return imag_of(to_array(x)) == 0
