"""Matrices made of vectors."""

from typing import Any

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.basics.creation import arange, zeros
from vkdispatch.numpy.basics.elementwise import power
from vkdispatch.numpy.basics.inputs import to_array
from vkdispatch.numpy.basics.manipulation import diagonal, reshape, result_type
from vkdispatch.numpy.core.array import Array, parse_index
from vkdispatch.numpy.core.dtypes import int64

__all__ = [
    "diag",
    "diagflat",
    "vander",
]


def diag(v: Any, k: int = 0) -> Array:
    """Return the matrix with a vector as its diagonal, or the diagonal of a matrix. See `numpy.diag`.

    Raises ValueError for other than one or two axes.
    """
    array = to_array(v, "v")
    offset = parse_index(k, "k")
    if array.ndim == 2:
        return diagonal(array, offset).copy()
    if array.ndim != 1:
        raise ArgumentValueError(f"v: expected one or two axes, got the shape {array.shape}")
    size = array.size + abs(offset)
    made = zeros((size, size), array.dtype)
    diagonal(made, offset)[...] = array
    return made


def diagflat(v: Any, k: int = 0) -> Array:
    """Return the matrix with the flattened array as its diagonal. See `numpy.diagflat`."""
    return diag(reshape(to_array(v, "v"), -1), k)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:  # noqa: N803
    """Return the matrix of powers of a vector. See `numpy.vander`. Raises ValueError for no vector."""
    array = to_array(x)
    if array.ndim != 1:
        raise ArgumentValueError(f"x: expected a vector, got the shape {array.shape}")
    count = array.size if N is None else parse_index(N, "N")
    kind = result_type(array, int64)
    powers = arange(count)
    if not increasing:
        powers = count - 1 - powers
    return power(array.astype(kind)[:, None], powers[None, :].astype(kind))
