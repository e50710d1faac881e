"""Triangular systems and LU factors by the conventions of SciPy, for blocks of larger matrices."""

from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.basics.creation import from_numpy
from vkdispatch.numpy.basics.inputs import require_array
from vkdispatch.numpy.basics.manipulation import flip, reshape
from vkdispatch.numpy.basics.reductions import any as any_of
from vkdispatch.numpy.basics.sequences import arange, eye, tril, triu
from vkdispatch.numpy.core.array import Array, view_of
from vkdispatch.numpy.core.dtypes import part_kind
from vkdispatch.numpy.linalg.factors import solve_lu
from vkdispatch.numpy.linalg.products import LinAlgError, diagonal
from vkdispatch.numpy.linalg.solving import _copy_matrices, _factor, _factor_kind, _with_shape, require_square


def solve_triangular(a: Any, b: Any, lower: bool = False) -> Array:
    """Return the solutions x of `a @ x == b`, where one triangle of a matrix counts.

    Parameters
    ----------
    a
        A matrix of the shape (n, n). The upper triangle counts, or the lower one with `lower`.
    b
        An array of the shape (n,) or (n, columns).

    Raises
    ------
    LinAlgError
        The matrix is not square, or has a zero on its diagonal.
    ValueError
        The shapes do not fit.
    """
    matrix, right = require_square(a, "a"), require_array(b, "b")
    n = matrix.shape[-1]
    if matrix.ndim != 2 or right.ndim not in (1, 2) or right.shape[0] != n:
        raise ArgumentValueError(
            f"b: expected the shape ({n},) or ({n}, columns) for a of the shape {matrix.shape}, got "
            f"{right.shape}"
        )
    if bool(any_of(diagonal(matrix) == 0)):
        raise LinAlgError("solve_triangular: the matrix is singular")
    kind = _factor_kind("solve_triangular", matrix, right)
    columns = reshape(right, (n, 1)) if right.ndim == 1 else right
    # in the other order of unknowns, a lower triangle is an upper one
    upper = triu(flip(matrix)) if lower else triu(matrix)
    solutions = _copy_matrices(flip(columns, axis=0) if lower else columns, kind, (1, *columns.shape))
    unmoved = arange(n, dtype=np.uint32, device=matrix.device).reshape(1, n)
    # an upper triangle is its own U; its L is the unit matrix
    solve_lu(_copy_matrices(upper, kind, (1, n, n)), view_of(unmoved), solutions)
    found = _with_shape(solutions, columns.shape)
    return reshape(flip(found, axis=0) if lower else found, right.shape)


def factor_plu(a: Any) -> tuple[Array, Array, Array]:
    """Return a permutation P, a unit lower triangle L and an upper triangle U with `a == P @ L @ U`.

    The matrix has the shape (n, n). Raises LinAlgError for others. Waits for the device.
    """
    factors, pivots, _ = _factor(a, "lu")
    n = factors.shape[-1]
    unit = eye(n, dtype=factors.dtype, device=factors.device)
    order = np.arange(n)
    for row, other in enumerate(pivots.numpy()):
        order[[row, other]] = order[[other, row]]
    moved = np.zeros((n, n), part_kind(factors.dtype))
    moved[order, np.arange(n)] = 1
    return from_numpy(moved, factors.device), tril(factors, -1) + unit, triu(factors)
