"""Eigenvalues and singular values, by LAPACK on the host with a warning, and norms."""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.basics import manipulation
from vkdispatch.numpy.basics.creation import zeros
from vkdispatch.numpy.basics.elementwise import absolute, conjugate, imag_of, real_of, sqrt
from vkdispatch.numpy.basics.manipulation import matrix_transpose, moveaxis, require_matrix, reshape
from vkdispatch.numpy.basics.reductions import any as any_of
from vkdispatch.numpy.basics.reductions import count_nonzero
from vkdispatch.numpy.basics.reductions import max as greatest
from vkdispatch.numpy.basics.reductions import min as least
from vkdispatch.numpy.basics.reductions import sum as total
from vkdispatch.numpy.core.application import apply_ufunc
from vkdispatch.numpy.core.array import Array, array_of, value_of
from vkdispatch.numpy.core.conversion import from_numpy, require_array
from vkdispatch.numpy.core.memory import default_real, float64, refuse_recording
from vkdispatch.numpy.core.repeating import repeat_reductions
from vkdispatch.numpy.linalg.products import matmul
from vkdispatch.numpy.linalg.solving import qr, require_square

# What runs by LAPACK on the host; the norms of matrices "nuc", 2 and -2, and matrix_rank, by way of svdvals.
HOST_FUNCTIONS = ("cond", "eig", "eigh", "eigvals", "eigvalsh", "lstsq", "pinv", "svd", "svdvals")


# Tall matrices of so many elements are reduced to a triangle on the device before the host takes them.
_TALL_SIZE = 1 << 15


class PerformanceWarning(UserWarning):
    """Something works, but on the host."""


_warned: set[str] = set()


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Array
    S: Array
    Vh: Array


class EigResult(NamedTuple):
    """What `eig` returns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Array
    eigenvectors: Array


def _take_host(name: str, arrays: Sequence[Array]) -> "list[np.ndarray[Any, Any]]":
    refuse_recording()
    if name not in _warned:
        _warned.add(name)
        text = f"{name} runs by LAPACK on the host: its arguments and results are copied"
        warnings.warn(text, PerformanceWarning, 3)
    return [array.numpy() for array in arrays]


def _give_back(value: Any, arrays: Sequence[Array]) -> Array:
    """Return a result of the host, in single precision where integers become that here."""
    found = np.asarray(value)
    if default_real() != float64 and all(
        array.dtype.itemsize < 8 or array.dtype.kind in "biu" for array in arrays
    ):
        narrow = {"f": np.float32, "c": np.complex64}.get(found.dtype.kind)
        found = found if narrow is None else found.astype(narrow)
    return from_numpy(found, arrays[0].device)


def _call_host(name: str, function: Callable[..., Any], *arrays: Array) -> Array:
    return _give_back(function(*_take_host(name, arrays)), arrays)


def _call_host_for_several(name: str, function: Callable[..., Any], *arrays: Array) -> tuple[Array, ...]:
    return tuple(_give_back(result, arrays) for result in function(*_take_host(name, arrays)))


_numpy_linalg: Any = np.linalg


def _split_tall(x: Array) -> tuple[Array, Array] | None:
    """Return Q and R of tall matrices, of which the host then needs R alone; None for others."""
    if x.ndim < 2 or x.size < _TALL_SIZE or x.shape[-2] < 4 * x.shape[-1] or x.dtype == np.float16:
        return None
    q, r = qr(x)
    return q, r


def svd(x: Any, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Return singular value decompositions. See `numpy.linalg.svd`.

    Examples
    --------
    >>> u, s, vh = vnp.linalg.svd(vnp.asarray([[3.0, 0.0], [0.0, 2.0]]))
    >>> s
    Array([3., 2.], dtype=float64)
    """
    array = require_array(x)
    if not compute_uv:
        if not hermitian:
            return svdvals(array)
        return _call_host("svd", lambda a: _numpy_linalg.svd(a, full_matrices, False, True), array)
    tall = None if full_matrices or hermitian else _split_tall(array)

    def decompose(a: Any) -> Any:
        return _numpy_linalg.svd(a, full_matrices, True, hermitian)

    u, s, vh = _call_host_for_several("svd", decompose, array if tall is None else tall[1])
    return SVDResult(u if tall is None else matmul(tall[0], u), s, vh)


def svdvals(x: Any, /) -> Array:
    """Return singular values. See `numpy.linalg.svdvals`.

    Examples
    --------
    >>> vnp.linalg.svdvals(vnp.asarray([[3.0, 0.0], [0.0, 2.0]]))
    Array([3., 2.], dtype=float64)
    """
    array = require_array(x)
    tall = _split_tall(array)
    source = array if tall is None else tall[1]
    return _call_host("svdvals", lambda a: _numpy_linalg.svd(a, compute_uv=False), source)


def _check_triangle(name: str) -> str:
    if name not in ("L", "U", "l", "u"):
        raise ArgumentValueError(f"UPLO: expected 'L' or 'U', got {name!r}")
    return name


def eigh(x: Any, /, UPLO: str = "L") -> EighResult:  # noqa: N803  NumPy's name
    """Return eigenvalues and eigenvectors of Hermitian matrices. See `numpy.linalg.eigh`.

    Examples
    --------
    >>> values, vectors = vnp.linalg.eigh(vnp.asarray([[2.0, 1.0], [1.0, 2.0]]))
    >>> values
    Array([1., 3.], dtype=float64)
    """
    part = _check_triangle(UPLO)
    array = require_square(x, "eigh")
    return EighResult(*_call_host_for_several("eigh", lambda a: _numpy_linalg.eigh(a, part), array))


def eigvalsh(x: Any, /, UPLO: str = "L") -> Array:  # noqa: N803  NumPy's name
    """Return eigenvalues of Hermitian matrices. See `numpy.linalg.eigvalsh`.

    Examples
    --------
    >>> vnp.linalg.eigvalsh(vnp.asarray([[2.0, 1.0], [1.0, 2.0]]))
    Array([1., 3.], dtype=float64)
    """
    part = _check_triangle(UPLO)
    array = require_square(x, "eigvalsh")
    return _call_host("eigvalsh", lambda a: _numpy_linalg.eigvalsh(a, part), array)


def eig(x: Any, /) -> EigResult:
    """Return eigenvalues and eigenvectors of square matrices. See `numpy.linalg.eig`.

    Both are always complex, whatever the values are.

    Examples
    --------
    >>> values, vectors = vnp.linalg.eig(vnp.asarray([[2.0, 0.0], [0.0, 3.0]]))
    >>> values
    Array([2.+0.j, 3.+0.j], dtype=complex128)
    """
    array = require_square(x, "eig")
    return EigResult(*_call_host_for_several("eig", lambda a: map(_complex, _numpy_linalg.eig(a)), array))


def eigvals(x: Any, /) -> Array:
    """Return eigenvalues of square matrices, always complex. See `numpy.linalg.eigvals`.

    Examples
    --------
    >>> vnp.linalg.eigvals(vnp.asarray([[2.0, 0.0], [0.0, 3.0]]))
    Array([2.+0.j, 3.+0.j], dtype=complex128)
    """
    array = require_square(x, "eigvals")
    return _call_host("eigvals", lambda a: _complex(_numpy_linalg.eigvals(a)), array)


def _complex(values: Any) -> Any:
    return values.astype(np.result_type(values.dtype, np.complex64), copy=False)


def pinv(x: Any, /, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """Return pseudo-inverses. See `numpy.linalg.pinv`. `rcond` and `rtol` are names of one number.

    Examples
    --------
    >>> vnp.linalg.pinv(vnp.asarray([[2.0, 0.0], [0.0, 0.0]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float64)
    """
    array, limit = require_array(x), rcond if rtol is None else rtol
    if isinstance(limit, Array):
        limit = limit.numpy()
    tall = None if hermitian else _split_tall(array)
    source = array if tall is None else tall[1]
    inverse = _call_host("pinv", lambda a: _numpy_linalg.pinv(a, limit, hermitian), source)
    return inverse if tall is None else matmul(inverse, conjugate(matrix_transpose(tall[0])))


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Array, Array, int, Array]:
    """Return least-squares solutions, residuals, the rank and singular values. See `numpy.linalg.lstsq`.

    Examples
    --------
    >>> x, *rest = vnp.linalg.lstsq(vnp.asarray([[1.0, 0], [0, 2], [0, 0]]), vnp.asarray([3.0, 4, 0]))
    >>> x
    Array([3., 2.], dtype=float64)
    """
    left, right = require_array(a, "a"), require_array(b, "b")
    tall = _split_tall(left) if left.ndim == 2 and right.shape[:1] == left.shape[:1] else None
    if tall is None:
        found, residuals, rank, values = _numpy_linalg.lstsq(*_take_host("lstsq", (left, right)), rcond=rcond)
        arrays = (left, right)
        return _give_back(found, arrays), _give_back(residuals, arrays), int(rank), _give_back(values, arrays)
    q, r = tall
    if rcond is None:
        rcond = np.finfo(q.dtype).eps * left.shape[0]
    arrays = (r, matmul(conjugate(matrix_transpose(q)), right))
    found, _, rank, values = _numpy_linalg.lstsq(*_take_host("lstsq", arrays), rcond=rcond)
    solution = _give_back(found, arrays)
    residual = reshape(absolute(right - matmul(left, solution)), (left.shape[0], -1))
    kept = residual if int(rank) == left.shape[1] else residual[:, :0]
    return solution, total(kept * kept, axis=0), int(rank), _give_back(values, arrays)


def cond(x: Any, p: Any = None) -> Array:
    """Return condition numbers. See `numpy.linalg.cond`.

    Examples
    --------
    >>> float(vnp.linalg.cond(vnp.asarray([[2.0, 0.0], [0.0, 1.0]])))
    2.0
    """
    return _call_host("cond", lambda a: _numpy_linalg.cond(a, p), require_array(x))


def matrix_rank(x: Any, /, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """Return ranks of matrices. See `numpy.linalg.matrix_rank`.

    Examples
    --------
    >>> vnp.linalg.matrix_rank(vnp.asarray([[1.0, 2.0], [2.0, 4.0]]))
    Array(1, dtype=int64)
    """
    array = require_array(x)
    if array.ndim < 2:
        return any_of(array != 0).astype(np.int64)
    values = absolute(eigvalsh(array)) if hermitian else svdvals(array)
    if not values.shape[-1]:
        return zeros(values.shape[:-1], dtype=np.int64, device=array.device)
    if tol is None:
        relative = max(array.shape[-2:]) * np.finfo(values.dtype).eps if rtol is None else rtol
        if isinstance(relative, Array):
            relative = manipulation.expand_dims(relative, -1)
        tol = greatest(values, axis=-1, keepdims=True) * relative
    elif isinstance(tol, Array):
        tol = manipulation.expand_dims(tol, -1)
    return count_nonzero(values > tol, axis=-1)


def _with_fractions(x: Array) -> Array:
    return x if x.dtype.kind in "fc" else x.astype(default_real())


def _greatest(size: Array, axis: Any, keepdims: bool = False) -> Array:
    """Return the largest of numbers that are not negative; 0 of none."""
    return greatest(size, axis, keepdims=keepdims, initial=None if size.size else 0)


@repeat_reductions
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


@repeat_reductions
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Return norms of matrices, the last two axes. See `numpy.linalg.matrix_norm`.

    Examples
    --------
    >>> vnp.linalg.matrix_norm(vnp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    Array(5., dtype=float64)
    """
    array = _with_fractions(require_matrix(x))
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


@repeat_reductions
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
    axes = manipulation.parse_axes(axis, array.ndim)
    if len(axes) == 1:
        return vector_norm(array, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ArgumentValueError(f"axis: expected one or two axes, got {len(axes)}")
    found = matrix_norm(moveaxis(array, axes, (-2, -1)), ord=ord)
    return manipulation.expand_dims(found, tuple(sorted(axes))) if keepdims else found
