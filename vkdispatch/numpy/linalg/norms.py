"""Norms of vectors and matrices."""

import math
from typing import Any

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.basics.elementwise import absolute, imag_of, real_of, sqrt
from vkdispatch.numpy.basics.inputs import require_array
from vkdispatch.numpy.basics.manipulation import expand_dims, moveaxis, parse_axes, reshape
from vkdispatch.numpy.basics.reductions import count_nonzero
from vkdispatch.numpy.basics.reductions import max as greatest
from vkdispatch.numpy.basics.reductions import min as least
from vkdispatch.numpy.basics.reductions import sum as total
from vkdispatch.numpy.core.application import apply_ufunc
from vkdispatch.numpy.core.array import Array, array_of, value_of
from vkdispatch.numpy.core.memory import default_real
from vkdispatch.numpy.linalg.host import svdvals


def _with_fractions(x: Array) -> Array:
    return x if x.dtype.kind in "fc" else x.astype(default_real())


def _greatest(size: Array, axis: Any, keepdims: bool = False) -> Array:
    """Return the largest of numbers that are not negative; 0 of none."""
    return greatest(size, axis, keepdims=keepdims, initial=None if size.size else 0)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """Return norms of vectors. See `numpy.linalg.vector_norm`. Raises ValueError for an `ord` of matrices.

    Examples
    --------
    >>> vnp.linalg.vector_norm(vnp.asarray([3.0, 4.0]))
    Array(5., dtype=float64)
    """
    if isinstance(ord, str):
        raise ArgumentValueError(f"ord: expected a number for vectors, got {ord!r}")
    array = _with_fractions(require_array(x))
    size: Array = absolute(array)
    if ord == math.inf:
        return _greatest(size, axis, keepdims)
    if ord == -math.inf:
        return least(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return count_nonzero(array, axis=axis, keepdims=keepdims).astype(size.dtype)
    if ord == 1:
        return total(size, axis=axis, keepdims=keepdims)
    if ord == 2:
        squares = size * size
        if array.dtype.kind == "c":
            squares = real_of(array) ** 2 + imag_of(array) ** 2
        return sqrt(total(squares, axis=axis, keepdims=keepdims))
    sums: Array = total(size**ord, axis=axis, keepdims=keepdims)
    return array_of(apply_ufunc("power", (value_of(sums), 1 / ord)))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Return norms of matrices, the last two axes. See `numpy.linalg.matrix_norm`.

    Examples
    --------
    >>> vnp.linalg.matrix_norm(vnp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    Array(5., dtype=float64)
    """
    array = _with_fractions(require_array(x))
    if array.ndim < 2:
        raise ArgumentValueError(f"x: expected at least two axes, got the shape {array.shape}")
    if ord is None or ord in ("fro", "f"):
        return vector_norm(array, axis=(-2, -1), keepdims=keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        along = -2 if abs(ord) == 1 else -1
        sums = total(absolute(array), axis=along, keepdims=True)
        found = (_greatest if ord > 0 else least)(sums, -1 if along == -2 else -2, keepdims=True)
    elif ord in ("nuc", 2, -2):
        values = svdvals(array)
        folded = (total if ord == "nuc" else _greatest if ord == 2 else least)(values, -1)
        found = reshape(folded, (*folded.shape, 1, 1))
    else:
        raise ArgumentValueError(f"ord: expected 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}")
    return found if keepdims else reshape(found, found.shape[:-2])


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the norm of a vector or matrix. See `numpy.linalg.norm`.

    Examples
    --------
    >>> vnp.linalg.norm(vnp.asarray([3.0, 4.0]))
    Array(5., dtype=float64)
    """
    array = require_array(x)
    if axis is None and ord is None:
        flat = vector_norm(array)
        return reshape(flat, (1,) * array.ndim) if keepdims else flat
    axes = parse_axes(axis, array.ndim)
    if len(axes) == 1:
        return vector_norm(array, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ArgumentValueError(f"axis: expected one or two axes, got {len(axes)}")
    found = matrix_norm(moveaxis(array, axes, (-2, -1)), ord=ord)
    return expand_dims(found, tuple(sorted(axes))) if keepdims else found
