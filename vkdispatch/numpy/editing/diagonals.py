"""Diagonals of matrices, and matrices made of them."""

from typing import Any

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.basics.creation import zeros
from vkdispatch.numpy.basics.inputs import to_array
from vkdispatch.numpy.basics.manipulation import diagonal, reshape, view_diagonal
from vkdispatch.numpy.core.application import assign
from vkdispatch.numpy.core.array import Array, parse_index, value_of

__all__ = [
    "diag",
    "diagflat",
]


def diag(v: Any, k: int = 0) -> Array:
    """Return the matrix with a vector as its diagonal, or the diagonal of a matrix: a view. See `numpy.diag`.

    Raises ValueError for other than one or two axes.

    Examples
    --------
    >>> vnp.diag(vnp.asarray([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int64)
    """
    array = to_array(v, "v")
    offset = parse_index(k, "k")
    if array.ndim == 2:
        return diagonal(array, offset)
    if array.ndim != 1:
        raise ArgumentValueError(f"v: expected one or two axes, got the shape {array.shape}")
    size = array.size + abs(offset)
    made = zeros((size, size), array.dtype)
    assign(view_diagonal(made, offset), value_of(array))
    return made


def diagflat(v: Any, k: int = 0) -> Array:
    """Return the matrix with the flattened array as its diagonal. See `numpy.diagflat`.

    Examples
    --------
    >>> vnp.diagflat(vnp.asarray([[1, 2]]), 1)
    Array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]], dtype=int64)
    """
    return diag(reshape(to_array(v, "v"), -1), k)
