"""Linear algebra: `vkdispatch.numpy.linalg`.

Products run on the device. Factorisations that have no kernel run by LAPACK on the host, and warn once.
"""

import math
import operator
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.matrices.product import matmul as multiply_matrices
from vkdispatch.numpy.core.application import broadcast_shapes
from vkdispatch.numpy.core.array import Array, array_of, parse_operand, value_of
from vkdispatch.numpy.core.dtypes import kernel_type
from vkdispatch.numpy.core.expressions import evaluate
from vkdispatch.numpy.core.kernels import as_buffer, gather
from vkdispatch.numpy.core.memory import Shape, Storage, View
from vkdispatch.numpy.creation import asarray, eye, from_numpy, zeros
from vkdispatch.numpy.elementwise import absolute, conjugate, multiply, sqrt
from vkdispatch.numpy.manipulation import (
    broadcast_to,
    expand_dims,
    matrix_transpose,
    moveaxis,
    parse_axes,
    permute_dims,
    reshape,
    result_type,
    stack,
)
from vkdispatch.numpy.manipulation import diagonal as diagonal_of
from vkdispatch.numpy.reductions import count_nonzero
from vkdispatch.numpy.reductions import max as greatest
from vkdispatch.numpy.reductions import min as least
from vkdispatch.numpy.reductions import sum as total

__all__ = [
    "LinAlgError",
    "PerformanceWarning",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "dot",
    "eigh",
    "eigvalsh",
    "inner",
    "inv",
    "kron",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
    "vector_norm",
]

LinAlgError = np.linalg.LinAlgError


_numpy_qr: Any = np.linalg.qr


class PerformanceWarning(UserWarning):
    """Something works, but on the host."""


_warned: set[str] = set()


def _warn_host(name: str) -> None:
    if name not in _warned:
        _warned.add(name)
        warnings.warn(
            f"{name} runs by LAPACK on the host: its arguments and results are copied", PerformanceWarning, 4
        )


def _array(x: Any, name: str = "x") -> Array:
    parse_operand(x, name)
    return x if isinstance(x, Array) else asarray(x)


# ---- products ------------------------------------------------------------------------------------


def _matrices(x: Array, shape: Shape) -> tuple[Any, bool]:
    """Return matrices as a buffer of two or three axes, and whether rows and columns are swapped there."""
    view = evaluate(value_of(x))
    count = math.prod(shape[:-2])
    own = shape[-2:] if len(shape) == 2 else (count, *shape[-2:])
    if view.is_whole:
        return as_buffer(view, own), False
    turned = View(
        view.storage,
        (*view.shape[:-2], view.shape[-1], view.shape[-2]),
        view.dtype,
        view.offset,
        (*view.strides[:-2], view.strides[-1], view.strides[-2]),
    )
    if turned.is_whole:
        return as_buffer(turned, (*own[:-2], own[-1], own[-2])), True
    return as_buffer(gather(view), own), False


def matmul(x1: Any, x2: Any, /, out: Any = None, *, dtype: Any = None) -> Array:
    """Return products of matrices. See `numpy.matmul`.

    Raises
    ------
    ValueError
        An operand has no axes, or the shapes do not fit.
    """
    a, b = _array(x1, "x1"), _array(x2, "x2")
    if not (a.ndim and b.ndim):
        raise ArgumentValueError(f"matmul: operands need at least one axis, got {a.shape} and {b.shape}")
    first = expand_dims(a, 0) if a.ndim == 1 else a
    second = expand_dims(b, 1) if b.ndim == 1 else b
    if first.shape[-1] != second.shape[-2]:
        raise ArgumentValueError(
            f"matmul: the last axis of {a.shape} and the first of the matrices {b.shape} must agree"
        )
    kind = result_type(a, b) if dtype is None else np.dtype(dtype)
    batch = broadcast_shapes([first.shape[:-2], second.shape[:-2]], "matmul")
    rows, columns = first.shape[-2], second.shape[-1]
    final = (*batch, rows, columns)
    if 0 in final or first.shape[-1] == 0:
        result = zeros(final, kind)
    else:
        first, second = first.astype(kind, copy=False), second.astype(kind, copy=False)
        if batch and math.prod(batch) > 1:
            one = math.prod(second.shape[:-2]) == 1
            first = broadcast_to(first, (*batch, *first.shape[-2:]))
            second = (
                reshape(second, second.shape[-2:])
                if one
                else broadcast_to(second, (*batch, *second.shape[-2:]))
            )
        elif batch:
            first, second = reshape(first, first.shape[-2:]), reshape(second, second.shape[-2:])
        left, left_turned = _matrices(first, first.shape)
        right, right_turned = _matrices(second, second.shape)
        made = multiply_matrices(
            left, right, transpose_a=left_turned, transpose_b=right_turned, dtype=kernel_type(kind)
        )
        result = array_of(View(Storage(made), final, kind))
    if b.ndim == 1:
        result = reshape(result, result.shape[:-1])
    if a.ndim == 1:
        result = reshape(result, (*batch, *result.shape[len(batch) + 1 :]) if b.ndim > 1 else batch)
    if out is not None:
        out[...] = result
        return out  # type: ignore[no-any-return]
    return result


def dot(x1: Any, x2: Any, /) -> Array:
    """Return the dot product. See `numpy.dot`."""
    a, b = _array(x1, "x1"), _array(x2, "x2")
    if a.ndim == 0 or b.ndim == 0:
        return multiply(a, b)
    if b.ndim <= 2:
        return matmul(a, b)
    return tensordot(a, b, axes=((-1,), (-2,)))


def inner(x1: Any, x2: Any, /) -> Array:
    """Return the inner product over the last axes. See `numpy.inner`."""
    a, b = _array(x1, "x1"), _array(x2, "x2")
    if a.ndim == 0 or b.ndim == 0:
        return multiply(a, b)
    return tensordot(a, b, axes=((-1,), (-1,)))


def vdot(x1: Any, x2: Any, /) -> Array:
    """Return the dot product of flattened arrays, the first one conjugated. See `numpy.vdot`."""
    return vecdot(reshape(x1, -1), reshape(x2, -1))


def outer(x1: Any, x2: Any, /) -> Array:
    """Return products of all pairs of elements. See `numpy.outer`."""
    return multiply(reshape(x1, (-1, 1)), reshape(x2, (1, -1)))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Return dot products along an axis, the first operand conjugated. See `numpy.vecdot`."""
    a, b = _array(x1, "x1"), _array(x2, "x2")
    if not (a.ndim and b.ndim):
        raise ArgumentValueError("vecdot: operands need at least one axis")
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    if a.shape[-1] != b.shape[-1]:
        raise ArgumentValueError(f"vecdot: the axis has {a.shape[-1]} elements in x1, {b.shape[-1]} in x2")
    kind = result_type(a, b)
    left = (conjugate(a) if a.dtype.kind == "c" else a).astype(kind, copy=False)
    product = left * b.astype(kind, copy=False)
    if kind.kind == "b":
        from vkdispatch.numpy.reductions import any as any_of

        return any_of(product, axis=-1)
    return total(product, axis=-1, dtype=kind)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Array:
    """Return sums of products over axes. See `numpy.tensordot`."""
    a, b = _array(x1, "x1"), _array(x2, "x2")
    if isinstance(axes, (int, np.integer)):
        count = operator.index(axes)
        if count < 0 or count > min(a.ndim, b.ndim):
            raise ArgumentValueError(f"axes: expected 0 to {min(a.ndim, b.ndim)}, got {count}")
        first, second = tuple(range(a.ndim - count, a.ndim)), tuple(range(count))
    else:
        first = parse_axes(tuple(axes[0]) if hasattr(axes[0], "__iter__") else axes[0], a.ndim, "axes[0]")
        second = parse_axes(tuple(axes[1]) if hasattr(axes[1], "__iter__") else axes[1], b.ndim, "axes[1]")
    if [a.shape[i] for i in first] != [b.shape[i] for i in second]:
        raise ArgumentValueError(f"axes: shapes {a.shape} and {b.shape} do not agree along {axes}")
    kept_a = [i for i in range(a.ndim) if i not in first]
    kept_b = [i for i in range(b.ndim) if i not in second]
    length = math.prod(a.shape[i] for i in first)
    rows = tuple(a.shape[i] for i in kept_a)
    columns = tuple(b.shape[i] for i in kept_b)
    left = reshape(permute_dims(a, (*kept_a, *first)), (math.prod(rows), length))
    right = reshape(permute_dims(b, (*second, *kept_b)), (length, math.prod(columns)))
    return reshape(matmul(left, right), (*rows, *columns))


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Return cross products of vectors of three elements. See `numpy.cross`. Raises ValueError for others."""
    a, b = _array(x1, "x1"), _array(x2, "x2")
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ArgumentValueError(
            f"axis: expected vectors of three elements, got {a.shape[-1]} and {b.shape[-1]}"
        )
    u, v, w = (a[..., i] for i in range(3))
    x, y, z = (b[..., i] for i in range(3))
    return moveaxis(stack([v * z - w * y, w * x - u * z, u * y - v * x], axis=-1), -1, axis)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Return sums of diagonals of matrices, the last two axes. See `numpy.linalg.trace`."""
    return total(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """Return diagonals of matrices, the last two axes: a view. See `numpy.linalg.diagonal`."""
    return diagonal_of(x, offset, -2, -1)


def kron(x1: Any, x2: Any) -> Array:
    """Return the Kronecker product. See `numpy.kron`."""
    a, b = _array(x1), _array(x2)
    ndim = max(a.ndim, b.ndim)
    left = (1,) * (ndim - a.ndim) + a.shape
    right = (1,) * (ndim - b.ndim) + b.shape
    wide = multiply(
        reshape(a, tuple(n for length in left for n in (length, 1))),
        reshape(b, tuple(n for length in right for n in (1, length))),
    )
    return reshape(wide, tuple(m * n for m, n in zip(left, right, strict=True)))


def matrix_power(x: Any, n: int, /) -> Array:
    """Return powers of square matrices. See `numpy.linalg.matrix_power`."""
    array = _square(x, "matrix_power")
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
        unit = eye(array.shape[-1], dtype=array.dtype)
        return broadcast_to(unit, array.shape).copy()
    return result


# ---- norms ---------------------------------------------------------------------------------------


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Array:
    """Return norms of vectors. See `numpy.linalg.vector_norm`."""
    array = _array(x)
    size = absolute(array) if array.dtype.kind != "b" else array
    real = np.dtype(f"f{array.dtype.itemsize // 2}") if array.dtype.kind == "c" else array.dtype
    if ord == math.inf:
        return greatest(size, axis=axis, keepdims=keepdims)
    if ord == -math.inf:
        return least(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return count_nonzero(array, axis=axis, keepdims=keepdims).astype(real)
    if ord == 1:
        return total(size, axis=axis, keepdims=keepdims, dtype=real)
    if ord == 2:
        return sqrt(total(size * size, axis=axis, keepdims=keepdims, dtype=real))
    return total(size**ord, axis=axis, keepdims=keepdims, dtype=real) ** (1 / ord)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Return norms of matrices, the last two axes. See `numpy.linalg.matrix_norm`."""
    array = _array(x)
    if array.ndim < 2:
        raise ArgumentValueError(f"x: expected at least two axes, got the shape {array.shape}")
    if ord == "fro":
        return vector_norm(array, axis=(-2, -1), keepdims=keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        along = -2 if abs(ord) == 1 else -1
        sums = total(absolute(array), axis=along, keepdims=True)
        found = (greatest if ord > 0 else least)(sums, axis=-1 if along == -2 else -2, keepdims=True)
    elif ord in ("nuc", 2, -2):
        values = svdvals(array)
        folded = (total if ord == "nuc" else greatest if ord == 2 else least)(values, axis=-1)
        found = reshape(folded, (*folded.shape, 1, 1))
    else:
        raise ArgumentValueError(f"ord: expected 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}")
    return found if keepdims else reshape(found, found.shape[:-2])


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the norm of a vector or matrix. See `numpy.linalg.norm`."""
    array = _array(x)
    if axis is None and (ord is None or array.ndim == 1):
        flat = vector_norm(reshape(array, -1), ord=2 if ord is None else ord)
        return reshape(flat, (1,) * array.ndim) if keepdims else flat
    axes = parse_axes(axis, array.ndim)
    if len(axes) == 1:
        return vector_norm(array, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ArgumentValueError(f"axis: expected one or two axes, got {axis}")
    found = matrix_norm(moveaxis(array, axes, (-2, -1)), ord="fro" if ord is None else ord)
    return expand_dims(found, tuple(sorted(axes))) if keepdims else found


# ---- factorisations ------------------------------------------------------------------------------


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Array
    S: Array
    Vh: Array


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Array
    eigenvectors: Array


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Array
    logabsdet: Array


def _square(x: Any, name: str) -> Array:
    array = _array(x)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise LinAlgError(
            f"{name}: expected square matrices in the last two axes, got the shape {array.shape}"
        )
    return array


def _host(name: str, function: Callable[..., Any], *arrays: Array) -> Any:
    _warn_host(name)
    found = function(*(each.numpy() for each in arrays))
    if isinstance(found, tuple):
        return tuple(from_numpy(np.asarray(each)) for each in found)
    return from_numpy(np.asarray(found))


def cholesky(x: Any, /, *, upper: bool = False) -> Array:
    """Return Cholesky factors. See `numpy.linalg.cholesky`. Raises LinAlgError for indefinite matrices."""
    found = _host("cholesky", np.linalg.cholesky, _square(x, "cholesky"))
    return conjugate(matrix_transpose(found)) if upper else found


def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """Return QR factors. See `numpy.linalg.qr`."""
    if mode not in ("reduced", "complete"):
        raise ArgumentValueError(f"mode: expected 'reduced' or 'complete', got {mode!r}")
    return QRResult(*_host("qr", lambda a: tuple(_numpy_qr(a, mode)), _array(x)))


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """Return singular value decompositions. See `numpy.linalg.svd`."""
    return SVDResult(*_host("svd", lambda a: tuple(np.linalg.svd(a, full_matrices)), _array(x)))


def svdvals(x: Any, /) -> Array:
    """Return singular values. See `numpy.linalg.svdvals`."""
    return _host("svdvals", lambda a: np.linalg.svd(a, compute_uv=False), _array(x))  # type: ignore[no-any-return]


def eigh(x: Any, /) -> EighResult:
    """Return eigenvalues and eigenvectors of Hermitian matrices. See `numpy.linalg.eigh`."""
    return EighResult(*_host("eigh", lambda a: tuple(np.linalg.eigh(a)), _square(x, "eigh")))


def eigvalsh(x: Any, /) -> Array:
    """Return eigenvalues of Hermitian matrices. See `numpy.linalg.eigvalsh`."""
    return _host("eigvalsh", np.linalg.eigvalsh, _square(x, "eigvalsh"))  # type: ignore[no-any-return]


def det(x: Any, /) -> Array:
    """Return determinants. See `numpy.linalg.det`."""
    return _host("det", np.linalg.det, _square(x, "det"))  # type: ignore[no-any-return]


def slogdet(x: Any, /) -> SlogdetResult:
    """Return signs and logarithms of determinants. See `numpy.linalg.slogdet`."""
    return SlogdetResult(*_host("slogdet", lambda a: tuple(np.linalg.slogdet(a)), _square(x, "slogdet")))


def inv(x: Any, /) -> Array:
    """Return inverse matrices. See `numpy.linalg.inv`."""
    return _host("inv", np.linalg.inv, _square(x, "inv"))  # type: ignore[no-any-return]


def pinv(x: Any, /, *, rtol: Any = None) -> Array:
    """Return pseudo-inverses. See `numpy.linalg.pinv`."""
    limit = rtol.numpy() if isinstance(rtol, Array) else rtol
    return _host("pinv", lambda a: np.linalg.pinv(a, rtol=limit), _array(x))  # type: ignore[no-any-return]


def solve(x1: Any, x2: Any, /) -> Array:
    """Return solutions of linear equations. See `numpy.linalg.solve`."""
    return _host("solve", np.linalg.solve, _square(x1, "solve"), _array(x2))  # type: ignore[no-any-return]


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Array:
    """Return ranks of matrices. See `numpy.linalg.matrix_rank`."""
    array = _array(x)
    values = svdvals(array)
    limit = max(array.shape[-2:]) * np.finfo(values.dtype).eps if rtol is None else rtol
    if isinstance(limit, Array):
        limit = expand_dims(limit, -1)
    return count_nonzero(values > greatest(values, axis=-1, keepdims=True) * limit, axis=-1)
