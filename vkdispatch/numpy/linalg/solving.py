"""Factors of matrices, and what they solve, on the device; triangular systems for SciPy."""

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics import manipulation
from vkdispatch.numpy.basics.elementwise import absolute, conjugate, log, multiply, sign
from vkdispatch.numpy.basics.elementwise import exp as exponential
from vkdispatch.numpy.basics.manipulation import moveaxis, reshape
from vkdispatch.numpy.basics.reductions import any as any_of
from vkdispatch.numpy.basics.reductions import prod as product_of
from vkdispatch.numpy.basics.reductions import sum as total
from vkdispatch.numpy.basics.sequences import arange, eye, tril, triu
from vkdispatch.numpy.core.application import broadcast_shapes, cast, make_operation
from vkdispatch.numpy.core.array import Array, array_of, value_of, view_of
from vkdispatch.numpy.core.conversion import from_numpy, require_array, require_choice
from vkdispatch.numpy.core.expressions import evaluate
from vkdispatch.numpy.core.memory import Kind, Shape, View, default_real, part_kind
from vkdispatch.numpy.core.operations import COPY
from vkdispatch.numpy.core.repeating import repeat_calls
from vkdispatch.numpy.linalg.factors import any_flag, factor_cholesky, factor_lu, factor_qr, solve_lu
from vkdispatch.numpy.linalg.products import LinAlgError, diagonal, matmul

# ---- Factors of matrices, and what they solve, on the device ---------------------------------------------


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Array
    logabsdet: Array


def require_square(x: Any, name: str) -> Array:
    """Return square matrices as an array. Raises LinAlgError for others."""
    array = require_array(x)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise LinAlgError(
            f"{name}: expected square matrices in the last two axes, got the shape {array.shape}"
        )
    return array


def _factor_kind(name: str, *arrays: Array) -> Kind:
    """Return the dtype with which matrices are factored. Raises TypeError for float16, as NumPy."""
    if any(each.dtype == np.float16 for each in arrays):
        raise ArgumentTypeError(f"{name}: float16 is not supported; use astype")
    kinds = (array.dtype if array.dtype.kind in "fc" else default_real() for array in arrays)
    return manipulation.result_type(*kinds)


def _copy_matrices(x: Array, kind: Kind, shape: Shape) -> View:
    """Return a copy of matrices, one behind the other; they are repeated to a shape."""
    value = cast(value_of(x), kind)
    if x.shape != shape:
        value = value_of(manipulation.broadcast_to(array_of(value), shape))
    copied = evaluate(make_operation(COPY, (value,), (kind,), shape, kind))
    return View(copied.storage, (math.prod(shape[:-2]), *shape[-2:]), kind)


def _with_shape(view: View, shape: Shape) -> Array:
    return array_of(View(view.storage, shape, view.dtype))


@repeat_calls
def cholesky(x: Any, /, *, upper: bool = False) -> Array:
    """Return Cholesky factors. See `numpy.linalg.cholesky`. Raises LinAlgError for indefinite matrices.

    Examples
    --------
    >>> vnp.linalg.cholesky(vnp.asarray([[4.0, 2.0], [2.0, 2.0]]))
    Array([[2., 0.],
           [1., 1.]], dtype=float64)
    """
    array = require_square(x, "cholesky")
    kind = _factor_kind("cholesky", array)
    if upper:
        array = conjugate(manipulation.matrix_transpose(array))
    factors = _copy_matrices(array, kind, array.shape)
    if any_flag(factor_cholesky(factors)):
        raise LinAlgError("cholesky: the matrix is not positive definite")
    found = tril(_with_shape(factors, array.shape))
    if upper:
        found = conjugate(manipulation.matrix_transpose(found))
    return found


def _factor(x: Any, name: str) -> tuple[Array, Array, Array]:
    """Return the factors L and U of matrices in one array, their pivots, and where they are singular."""
    array = require_square(x, name)
    factors = _copy_matrices(array, _factor_kind(name, array), array.shape)
    pivots, singular = factor_lu(factors)
    shape = array.shape
    return _with_shape(factors, shape), _with_shape(pivots, shape[:-1]), _with_shape(singular, shape[:-2])


@repeat_calls
def slogdet(x: Any, /) -> SlogdetResult:
    """Return signs and logarithms of determinants. See `numpy.linalg.slogdet`.

    Examples
    --------
    >>> sign, logarithm = vnp.linalg.slogdet(vnp.asarray([[2.0, 0.0], [0.0, -1.0]]))
    >>> sign
    Array(-1., dtype=float64)
    """
    factors, pivots, _ = _factor(x, "slogdet")
    entries = diagonal(factors)
    unmoved = arange(pivots.shape[-1], dtype=np.uint32, device=pivots.device)
    swaps = total(pivots != unmoved, axis=-1, dtype=np.int32)
    turned = (1 - 2 * (swaps % 2)).astype(factors.dtype)
    return SlogdetResult(product_of(sign(entries), axis=-1) * turned, total(log(absolute(entries)), axis=-1))


@repeat_calls
def det(x: Any, /) -> Array:
    """Return determinants. See `numpy.linalg.det`.

    Examples
    --------
    >>> vnp.linalg.det(vnp.asarray([[2.0, 0.0], [0.0, 3.0]]))
    Array(6., dtype=float64)
    """
    signs, logarithms = slogdet(x)
    return multiply(signs, exponential(logarithms))


def _solve(name: str, x: Array, right: View, shape: Shape, kind: Kind) -> None:
    """Replace right sides, matrices of the shape `(count, n, columns)`, by solutions for matrices `shape`."""
    factors = _copy_matrices(x, kind, shape)
    pivots, singular = factor_lu(factors)
    if any_flag(singular):
        raise LinAlgError(f"{name}: the matrix is singular")
    solve_lu(factors, pivots, right)


@repeat_calls
def inv(x: Any, /) -> Array:
    """Return inverse matrices. See `numpy.linalg.inv`. Raises LinAlgError for singular ones.

    Examples
    --------
    >>> vnp.linalg.inv(vnp.asarray([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float64)
    """
    array = require_square(x, "inv")
    kind = _factor_kind("inv", array)
    unit = _copy_matrices(eye(array.shape[-1], dtype=kind, device=array.device), kind, array.shape)
    _solve("inv", array, unit, array.shape, kind)
    return _with_shape(unit, array.shape)


@repeat_calls
def solve(x1: Any, x2: Any, /) -> Array:
    """Return solutions of linear equations. See `numpy.linalg.solve`.

    Raises
    ------
    LinAlgError
        A matrix of `x1` is singular, or not square.
    ValueError
        The shapes do not fit.

    Examples
    --------
    >>> vnp.linalg.solve(vnp.asarray([[2.0, 0.0], [0.0, 4.0]]), vnp.asarray([1.0, 2.0]))
    Array([0.5, 0.5], dtype=float64)
    """
    a, b = require_square(x1, "solve"), require_array(x2, "x2")
    if not b.ndim:
        raise ArgumentValueError("x2: expected at least one axis")
    is_vector = b.ndim == 1
    right = manipulation.expand_dims(b, -1) if is_vector else b
    n, columns = right.shape[-2:]
    if a.shape[-1] != n:
        raise ArgumentValueError(f"x2: expected {a.shape[-1]} rows for x1 of the shape {a.shape}, got {n}")
    kind = _factor_kind("solve", a, b)
    batch = broadcast_shapes([a.shape[:-2], right.shape[:-2]], "solve")
    shape = (*batch, n, columns)
    if math.prod(a.shape[:-2]) == 1 and math.prod(batch) > 1:
        # one matrix, whose right sides are side by side
        wide = moveaxis(manipulation.broadcast_to(right, shape), -2, 0)
        wide = reshape(wide, (n, math.prod(batch) * columns))
        solutions = _copy_matrices(wide, kind, (1, *wide.shape))
        _solve("solve", reshape(a, (1, n, n)), solutions, (1, n, n), kind)
        found = moveaxis(_with_shape(solutions, (n, *batch, columns)), 0, -2)
    else:
        solutions = _copy_matrices(right, kind, shape)
        _solve("solve", a, solutions, (*batch, n, n), kind)
        found = _with_shape(solutions, shape)
    return found[..., 0] if is_vector else found


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Array:
    """Return the x for which `tensordot(a, x, x.ndim)` is b. See `numpy.linalg.tensorsolve`.

    Examples
    --------
    >>> vnp.linalg.tensorsolve(2 * vnp.eye(4).reshape(2, 2, 2, 2), vnp.ones((2, 2)))
    Array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float64)
    """
    left, right = require_array(a, "a"), require_array(b, "b")
    if axes is not None:
        moved = manipulation.parse_axes(tuple(axes), left.ndim, "axes")
        left = manipulation.permute_dims(left, (*(i for i in range(left.ndim) if i not in moved), *moved))
    shape = left.shape[right.ndim :]
    length = math.prod(shape)
    if left.size != length * length or right.size != length:
        raise LinAlgError(
            f"tensorsolve: the axes of b of the shape {right.shape} and the others of a of the shape "
            f"{left.shape} must have as many elements"
        )
    return reshape(solve(reshape(left, (length, length)), reshape(right, -1)), shape)


def tensorinv(a: Any, ind: int = 2) -> Array:
    """Return the inverse for `tensordot`. See `numpy.linalg.tensorinv`.

    Examples
    --------
    >>> vnp.linalg.tensorinv(2 * vnp.eye(4).reshape(2, 2, 2, 2)).shape
    (2, 2, 2, 2)
    """
    array = require_array(a, "a")
    if operator.index(ind) < 1:
        raise ArgumentValueError(f"ind: expected a positive int, got {ind}")
    first, rest = array.shape[:ind], array.shape[ind:]
    if math.prod(first) != math.prod(rest):
        raise LinAlgError(f"tensorinv: the axes {first} and {rest} must have as many elements")
    return reshape(inv(reshape(array, (math.prod(first), -1))), (*rest, *first))


def qr(x: Any, /, mode: str = "reduced") -> Any:
    """Return QR factors; of the mode "r" R alone. See `numpy.linalg.qr`.

    Signs of rows of R, and of columns of Q, may be others than NumPy's where matrices are tall.

    Raises
    ------
    LinAlgError
        There are fewer than two axes.
    TypeError
        The dtype is float16.
    ValueError
        The mode is unknown.

    Examples
    --------
    >>> q, r = vnp.linalg.qr(vnp.asarray([[3.0, 1.0], [4.0, 2.0]]))
    >>> vnp.allclose(q @ r, vnp.asarray([[3.0, 1.0], [4.0, 2.0]]))
    True
    """
    require_choice(mode, "mode", "reduced", "complete", "r")
    array = require_array(x)
    if array.ndim < 2:
        raise LinAlgError(f"qr: expected at least two axes, got the shape {array.shape}")
    kind = _factor_kind("qr", array)
    *batch, m, n = array.shape
    columns = {"reduced": min(m, n), "complete": m, "r": None}[mode]
    q, r = factor_qr(_copy_matrices(array, kind, array.shape), columns)
    factor = _with_shape(r, (*batch, *r.shape[1:]))
    return factor if q is None else QRResult(_with_shape(q, (*batch, *q.shape[1:])), factor)


@repeat_calls
def matrix_power(x: Any, /, n: int) -> Array:
    """Return powers of square matrices. See `numpy.linalg.matrix_power`.

    Examples
    --------
    >>> vnp.linalg.matrix_power(vnp.asarray([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]], dtype=int64)
    """
    array = require_square(x, "matrix_power")
    power = operator.index(n)
    if power < 0:
        array, power = inv(array), -power
    result: Array | None = None
    while power:
        if power & 1:
            result = array if result is None else matmul(result, array)
        power >>= 1
        if power:
            array = matmul(array, array)
    if result is None:
        unit = eye(array.shape[-1], dtype=array.dtype, device=array.device)
        return manipulation.broadcast_to(unit, array.shape).copy()
    return result


# ---- Triangular systems and LU factors by the conventions of SciPy, for blocks of larger matrices --------


@repeat_calls
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
    upper = triu(manipulation.flip(matrix)) if lower else triu(matrix)
    right_side = manipulation.flip(columns, axis=0) if lower else columns
    solutions = _copy_matrices(right_side, kind, (1, *columns.shape))
    unmoved = arange(n, dtype=np.uint32, device=matrix.device).reshape(1, n)
    # an upper triangle is its own U; its L is the unit matrix
    solve_lu(_copy_matrices(upper, kind, (1, n, n)), view_of(unmoved), solutions)
    found = _with_shape(solutions, columns.shape)
    return reshape(manipulation.flip(found, axis=0) if lower else found, right.shape)


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
