"""Linear algebra: `vkdispatch.numpy.linalg`.

Products, triangular factors and what they solve run on the device. What `HOST_FUNCTIONS` names runs by
LAPACK on the host, and warns once.
"""

import math
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.matrices.product import matmul as multiply_matrices
from vkdispatch.numpy.basics.creation import arange, eye, from_numpy, tril, zeros
from vkdispatch.numpy.basics.elementwise import absolute, conjugate, imag, log, multiply, real, sign, sqrt
from vkdispatch.numpy.basics.elementwise import exp as exponential
from vkdispatch.numpy.basics.inputs import require_array
from vkdispatch.numpy.basics.manipulation import (
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
from vkdispatch.numpy.basics.manipulation import diagonal as diagonal_of
from vkdispatch.numpy.basics.reductions import any as any_of
from vkdispatch.numpy.basics.reductions import count_nonzero
from vkdispatch.numpy.basics.reductions import max as greatest
from vkdispatch.numpy.basics.reductions import min as least
from vkdispatch.numpy.basics.reductions import prod as product_of
from vkdispatch.numpy.basics.reductions import sum as total
from vkdispatch.numpy.core.application import apply_ufunc, broadcast_shapes, cast, make_operation
from vkdispatch.numpy.core.array import Array, array_of, store_result, value_of
from vkdispatch.numpy.core.dtypes import Kind, default_real, float64, kernel_type, parse_dtype
from vkdispatch.numpy.core.expressions import evaluate
from vkdispatch.numpy.core.kernels import as_buffer, gather
from vkdispatch.numpy.core.memory import Shape, Storage, View
from vkdispatch.numpy.core.operations import COPY
from vkdispatch.numpy.factors import any_flag, factor_cholesky, factor_lu, solve_lu
from vkdispatch.numpy.reflectors import factor_qr

__all__ = [
    "LinAlgError",
    "PerformanceWarning",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "dot",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inner",
    "inv",
    "kron",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vdot",
    "vecdot",
    "vecmat",
    "vector_norm",
]

LinAlgError = np.linalg.LinAlgError

# What runs by LAPACK on the host; the norms of matrices "nuc", 2 and -2, and matrix_rank, by way of svdvals.
HOST_FUNCTIONS = ("cond", "eig", "eigh", "eigvals", "eigvalsh", "lstsq", "pinv", "svd", "svdvals")


# Tall matrices of so many elements are reduced to a triangle on the device before the host takes them.
_TALL_SIZE = 1 << 15


class PerformanceWarning(UserWarning):
    """Something works, but on the host."""


_warned: set[str] = set()


def _warn_host(name: str) -> None:
    if name not in _warned:
        _warned.add(name)
        warnings.warn(
            f"{name} runs by LAPACK on the host: its arguments and results are copied", PerformanceWarning, 4
        )


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
    TypeError
        The product does not go into `dtype`, or into that of `out`, by a "same_kind" cast.
    """
    a, b = require_array(x1, "x1"), require_array(x2, "x2")
    if not (a.ndim and b.ndim):
        raise ArgumentValueError(f"matmul: operands need at least one axis, got {a.shape} and {b.shape}")
    kind = a.dtype if a.dtype == b.dtype else result_type(a, b)
    if dtype is not None:
        wanted = parse_dtype(dtype)
        if not np.can_cast(kind, wanted, "same_kind"):
            raise ArgumentTypeError(f"dtype: products of {a.dtype} and {b.dtype} do not fit into {wanted}")
        kind = wanted
    first = expand_dims(a, 0) if a.ndim == 1 else a
    second = expand_dims(b, 1) if b.ndim == 1 else b
    if first.shape[-1] != second.shape[-2]:
        raise ArgumentValueError(
            f"matmul: the last axis of x1 of the shape {a.shape} has {first.shape[-1]} elements, and the "
            f"{'only' if b.ndim == 1 else 'second last'} one of x2 of the shape {b.shape} {second.shape[-2]}"
        )
    result = _multiply(first, second, kind)
    shape = result.shape
    if b.ndim == 1:
        shape = shape[:-1]
    if a.ndim == 1:
        shape = (*shape[:-2], shape[-1]) if b.ndim > 1 else shape[:-1]
    return store_result(out, result if shape == result.shape else reshape(result, shape))


def _multiply(first: Array, second: Array, kind: Kind) -> Array:
    """Multiply arrays of matrices whose shapes fit."""
    rows, length, columns = first.shape[-2], first.shape[-1], second.shape[-1]
    is_batched = first.ndim > 2 or second.ndim > 2
    batch = broadcast_shapes([first.shape[:-2], second.shape[:-2]], "matmul") if is_batched else ()
    final = (*batch, rows, columns)
    if 0 in final or length == 0:
        return zeros(final, dtype=kind, device=first.device)
    if first.dtype != kind:
        first = first.astype(kind)
    if second.dtype != kind:
        second = second.astype(kind)
    if is_batched:
        first, second = _fit_batches(first, second, batch)
    left, left_turned = _matrices(first, first.shape)
    right, right_turned = _matrices(second, second.shape)
    made = multiply_matrices(
        left, right, transpose_a=left_turned, transpose_b=right_turned, dtype=kernel_type(kind)
    )
    return array_of(View(Storage(made), final, kind))


def _fit_batches(first: Array, second: Array, batch: Shape) -> tuple[Array, Array]:
    """Return arrays of matrices of which each has one or as many as the product."""
    count = math.prod(batch)
    sides = []
    for each in (first, second):
        own = math.prod(each.shape[:-2])
        if own == 1:
            sides.append(reshape(each, each.shape[-2:]))
        elif own == count:
            sides.append(each)
        else:
            sides.append(broadcast_to(each, (*batch, *each.shape[-2:])))
    first, second = sides
    if second.ndim == 2 and first.ndim > 2 and evaluate(value_of(first)).is_contiguous:
        first = reshape(first, (-1, first.shape[-1]))  # one tall matrix
    return first, second


def matvec(x1: Any, x2: Any, /) -> Array:
    """Return products of matrices and vectors. See `numpy.matvec`."""
    a, b = require_array(x1, "x1"), require_array(x2, "x2")
    if a.ndim < 2 or b.ndim < 1:
        raise ArgumentValueError(f"matvec: expected matrices and vectors, got {a.shape} and {b.shape}")
    return matmul(a, expand_dims(b, -1))[..., 0]


def vecmat(x1: Any, x2: Any, /) -> Array:
    """Return products of vectors, which are conjugated, and matrices. See `numpy.vecmat`."""
    a, b = require_array(x1, "x1"), require_array(x2, "x2")
    if a.ndim < 1 or b.ndim < 2:
        raise ArgumentValueError(f"vecmat: expected vectors and matrices, got {a.shape} and {b.shape}")
    left: Array = conjugate(a) if a.dtype.kind == "c" else a
    return matmul(expand_dims(left, -2), b)[..., 0, :]


def dot(x1: Any, x2: Any, /, out: Any = None) -> Array:
    """Return the dot product. See `numpy.dot`."""
    a, b = require_array(x1, "x1"), require_array(x2, "x2")
    if a.ndim == 0 or b.ndim == 0:
        return store_result(out, multiply(a, b))
    if b.ndim <= 2:
        return matmul(a, b, out)
    return store_result(out, tensordot(a, b, axes=((-1,), (-2,))))


def inner(x1: Any, x2: Any, /) -> Array:
    """Return the inner product over the last axes. See `numpy.inner`."""
    a, b = require_array(x1, "x1"), require_array(x2, "x2")
    if a.ndim == 0 or b.ndim == 0:
        scaled: Array = multiply(a, b)
        return scaled
    return tensordot(a, b, axes=((-1,), (-1,)))


def vdot(x1: Any, x2: Any, /) -> Array:
    """Return the dot product of flattened arrays, the first one conjugated. See `numpy.vdot`."""
    return vecdot(reshape(require_array(x1, "x1"), -1), reshape(require_array(x2, "x2"), -1))


def outer(x1: Any, x2: Any, /, out: Any = None) -> Array:
    """Return products of all pairs of elements. See `numpy.outer`."""
    return store_result(
        out, multiply(reshape(require_array(x1, "x1"), (-1, 1)), reshape(require_array(x2, "x2"), (1, -1)))
    )


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Return dot products along an axis, the first operand conjugated. See `numpy.vecdot`."""
    a, b = require_array(x1, "x1"), require_array(x2, "x2")
    if not (a.ndim and b.ndim):
        raise ArgumentValueError("vecdot: operands need at least one axis")
    if axis != -1:
        a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    if a.shape[-1] != b.shape[-1]:
        raise ArgumentValueError(f"vecdot: the axis has {a.shape[-1]} elements in x1, {b.shape[-1]} in x2")
    kind = result_type(a, b)
    left: Array = conjugate(a) if a.dtype.kind == "c" else a
    product = left.astype(kind, copy=False) * b.astype(kind, copy=False)
    return any_of(product, axis=-1) if kind.kind == "b" else total(product, axis=-1, dtype=kind)


def tensordot(x1: Any, x2: Any, /, axes: Any = 2) -> Array:
    """Return sums of products over axes. See `numpy.tensordot`."""
    a, b = require_array(x1, "x1"), require_array(x2, "x2")
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


def cross(
    x1: Any, x2: Any, /, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """Return cross products of vectors of three elements. See `numpy.cross`. Raises ValueError for others."""
    a, b = require_array(x1, "x1"), require_array(x2, "x2")
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ArgumentValueError(
            f"axis: expected vectors of three elements, got {a.shape[-1]} and {b.shape[-1]}"
        )
    u, v, w = (a[..., i] for i in range(3))
    x, y, z = (b[..., i] for i in range(3))
    return moveaxis(stack([v * z - w * y, w * x - u * z, u * y - v * x], axis=-1), -1, axisc)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Return sums of diagonals of matrices, the last two axes. See `numpy.linalg.trace`."""
    return total(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """Return diagonals of matrices, the last two axes: a view. See `numpy.linalg.diagonal`."""
    return diagonal_of(x, offset, -2, -1)


def kron(x1: Any, x2: Any) -> Array:
    """Return the Kronecker product. See `numpy.kron`."""
    a, b = require_array(x1), require_array(x2)
    ndim = max(a.ndim, b.ndim)
    left = (1,) * (ndim - a.ndim) + a.shape
    right = (1,) * (ndim - b.ndim) + b.shape
    wide = multiply(
        reshape(a, tuple(n for length in left for n in (length, 1))),
        reshape(b, tuple(n for length in right for n in (1, length))),
    )
    return reshape(wide, tuple(m * n for m, n in zip(left, right, strict=True)))


def matrix_power(x: Any, /, n: int) -> Array:
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
        unit = eye(array.shape[-1], dtype=array.dtype, device=array.device)
        return broadcast_to(unit, array.shape).copy()
    return result


# ---- norms ---------------------------------------------------------------------------------------


def _with_fractions(x: Array) -> Array:
    """Return an array whose numbers are real or complex."""
    return x if x.dtype.kind in "fc" else x.astype(default_real())


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """Return norms of vectors. See `numpy.linalg.vector_norm`. Raises ValueError for an `ord` of matrices."""
    if isinstance(ord, str):
        raise ArgumentValueError(f"ord: expected a number for vectors, got {ord!r}")
    array = _with_fractions(require_array(x))
    size: Array = absolute(array)
    if ord == math.inf:
        return greatest(size, axis=axis, keepdims=keepdims)
    if ord == -math.inf:
        return least(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return count_nonzero(array, axis=axis, keepdims=keepdims).astype(size.dtype)
    if ord == 1:
        return total(size, axis=axis, keepdims=keepdims)
    if ord == 2:
        squares = size * size
        if array.dtype.kind == "c":
            squares = real(array) ** 2 + imag(array) ** 2
        length: Array = sqrt(total(squares, axis=axis, keepdims=keepdims))
        return length
    sums: Array = total(size**ord, axis=axis, keepdims=keepdims)
    return array_of(apply_ufunc("power", (value_of(sums), 1 / ord)))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Return norms of matrices, the last two axes. See `numpy.linalg.matrix_norm`."""
    array = _with_fractions(require_array(x))
    if array.ndim < 2:
        raise ArgumentValueError(f"x: expected at least two axes, got the shape {array.shape}")
    if ord is None or ord in ("fro", "f"):
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


class EigResult(NamedTuple):
    """What `eig` returns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Array
    eigenvectors: Array


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Array
    logabsdet: Array


def _square(x: Any, name: str) -> Array:
    array = require_array(x)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise LinAlgError(
            f"{name}: expected square matrices in the last two axes, got the shape {array.shape}"
        )
    return array


def _take_host(name: str, arrays: Sequence[Array]) -> "list[np.ndarray[Any, Any]]":
    _warn_host(name)
    return [each.numpy() for each in arrays]


def _give_back(value: Any, arrays: Sequence[Array]) -> Array:
    """Return a result of the host, in single precision where integers become that here."""
    found = np.asarray(value)
    if default_real() != float64 and all(
        each.dtype.itemsize < 8 or each.dtype.kind in "biu" for each in arrays
    ):
        narrow = {"f": np.float32, "c": np.complex64}.get(found.dtype.kind)
        found = found if narrow is None else found.astype(narrow)
    return from_numpy(found, arrays[0].device)


def _call_host(name: str, function: Callable[..., Any], *arrays: Array) -> Any:
    found = function(*_take_host(name, arrays))
    if isinstance(found, tuple):
        return tuple(_give_back(each, arrays) for each in found)
    return _give_back(found, arrays)


def _factor_kind(name: str, *arrays: Array) -> Kind:
    """Return the dtype with which matrices are factored. Raises TypeError for float16, as NumPy."""
    if any(each.dtype == np.float16 for each in arrays):
        raise ArgumentTypeError(f"{name}: float16 is not supported; use astype")
    return result_type(*(each.dtype if each.dtype.kind in "fc" else default_real() for each in arrays))


def _copy_matrices(x: Array, kind: Kind, shape: Shape) -> View:
    """Return a copy of matrices, one behind the other; they are repeated to a shape."""
    value = cast(value_of(x), kind)
    if x.shape != shape:
        value = value_of(broadcast_to(array_of(value), shape))
    copied = evaluate(make_operation(COPY, (value,), (kind,), shape, kind))
    return View(copied.storage, (math.prod(shape[:-2]), *shape[-2:]), kind)


def _with_shape(view: View, shape: Shape) -> Array:
    return array_of(View(view.storage, shape, view.dtype))


def cholesky(x: Any, /, *, upper: bool = False) -> Array:
    """Return Cholesky factors. See `numpy.linalg.cholesky`. Raises LinAlgError for indefinite matrices."""
    array = _square(x, "cholesky")
    kind = _factor_kind("cholesky", array)
    if upper:
        array = conjugate(matrix_transpose(array))
    factors = _copy_matrices(array, kind, array.shape)
    if any_flag(factor_cholesky(factors)):
        raise LinAlgError("cholesky: the matrix is not positive definite")
    found = tril(_with_shape(factors, array.shape))
    if upper:
        found = conjugate(matrix_transpose(found))
    return found


def _factor(x: Any, name: str) -> tuple[Array, Array, Array]:
    """Return the factors L and U of matrices in one array, their pivots, and where they are singular."""
    array = _square(x, name)
    factors = _copy_matrices(array, _factor_kind(name, array), array.shape)
    pivots, singular = factor_lu(factors)
    shape = array.shape
    return _with_shape(factors, shape), _with_shape(pivots, shape[:-1]), _with_shape(singular, shape[:-2])


def slogdet(x: Any, /) -> SlogdetResult:
    """Return signs and logarithms of determinants. See `numpy.linalg.slogdet`."""
    factors, pivots, _ = _factor(x, "slogdet")
    entries = diagonal(factors)
    swaps = total(
        pivots != arange(pivots.shape[-1], dtype=np.uint32, device=pivots.device), axis=-1, dtype=np.int32
    )
    turned = (1 - 2 * (swaps % 2)).astype(factors.dtype)
    return SlogdetResult(product_of(sign(entries), axis=-1) * turned, total(log(absolute(entries)), axis=-1))


def det(x: Any, /) -> Array:
    """Return determinants. See `numpy.linalg.det`."""
    signs, logarithms = slogdet(x)
    found: Array = multiply(signs, exponential(logarithms))
    return found


def _solve(name: str, x: Array, right: View, shape: Shape, kind: Kind) -> None:
    """Replace right sides, matrices of the shape `(count, n, columns)`, by solutions for matrices `shape`."""
    factors = _copy_matrices(x, kind, shape)
    pivots, singular = factor_lu(factors)
    if any_flag(singular):
        raise LinAlgError(f"{name}: the matrix is singular")
    solve_lu(factors, pivots, right)


def inv(x: Any, /) -> Array:
    """Return inverse matrices. See `numpy.linalg.inv`. Raises LinAlgError for singular ones."""
    array = _square(x, "inv")
    kind = _factor_kind("inv", array)
    unit = _copy_matrices(eye(array.shape[-1], dtype=kind, device=array.device), kind, array.shape)
    _solve("inv", array, unit, array.shape, kind)
    return _with_shape(unit, array.shape)


def solve(x1: Any, x2: Any, /) -> Array:
    """Return solutions of linear equations. See `numpy.linalg.solve`.

    Raises
    ------
    LinAlgError
        A matrix of `x1` is singular, or not square.
    ValueError
        The shapes do not fit.
    """
    a, b = _square(x1, "solve"), require_array(x2, "x2")
    if not b.ndim:
        raise ArgumentValueError("x2: expected at least one axis")
    is_vector = b.ndim == 1
    right = expand_dims(b, -1) if is_vector else b
    n, columns = right.shape[-2:]
    if a.shape[-1] != n:
        raise ArgumentValueError(f"x2: expected {a.shape[-1]} rows for x1 of the shape {a.shape}, got {n}")
    kind = _factor_kind("solve", a, b)
    batch = broadcast_shapes([a.shape[:-2], right.shape[:-2]], "solve")
    shape = (*batch, n, columns)
    if math.prod(a.shape[:-2]) == 1 and math.prod(batch) > 1:
        # one matrix, whose right sides are side by side
        wide = reshape(moveaxis(broadcast_to(right, shape), -2, 0), (n, math.prod(batch) * columns))
        solutions = _copy_matrices(wide, kind, (1, *wide.shape))
        _solve("solve", reshape(a, (1, n, n)), solutions, (1, n, n), kind)
        found = moveaxis(_with_shape(solutions, (n, *batch, columns)), 0, -2)
    else:
        solutions = _copy_matrices(right, kind, shape)
        _solve("solve", a, solutions, (*batch, n, n), kind)
        found = _with_shape(solutions, shape)
    return found[..., 0] if is_vector else found


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Array:
    """Return the x for which `tensordot(a, x, x.ndim)` is b. See `numpy.linalg.tensorsolve`."""
    left, right = require_array(a, "a"), require_array(b, "b")
    if axes is not None:
        moved = parse_axes(tuple(axes), left.ndim, "axes")
        left = permute_dims(left, (*(i for i in range(left.ndim) if i not in moved), *moved))
    shape = left.shape[right.ndim :]
    length = math.prod(shape)
    if left.size != length * length or right.size != length:
        raise LinAlgError(
            f"tensorsolve: the axes of b of the shape {right.shape} and the others of a of the shape "
            f"{left.shape} must have as many elements"
        )
    return reshape(solve(reshape(left, (length, length)), reshape(right, -1)), shape)


def tensorinv(a: Any, ind: int = 2) -> Array:
    """Return the inverse for `tensordot`. See `numpy.linalg.tensorinv`."""
    array = require_array(a, "a")
    if operator.index(ind) < 1:
        raise ArgumentValueError(f"ind: expected a positive int, got {ind}")
    first, rest = array.shape[:ind], array.shape[ind:]
    if math.prod(first) != math.prod(rest):
        raise LinAlgError(f"tensorinv: the axes {first} and {rest} must have as many elements")
    return reshape(inv(reshape(array, (math.prod(first), -1))), (*rest, *first))


def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Array:
    """Return the product of several matrices, in the cheapest order. See `numpy.linalg.multi_dot`.

    Raises
    ------
    ValueError
        There are fewer than two, or the shapes do not fit.
    LinAlgError
        Others than the first and the last one have no two axes.
    """
    given = [require_array(each, f"arrays[{i}]") for i, each in enumerate(arrays)]
    if len(given) < 2:
        raise ArgumentValueError(f"arrays: expected at least two arrays, got {len(given)}")
    matrices = list(given)
    if given[0].ndim == 1:
        matrices[0] = expand_dims(given[0], 0)
    if given[-1].ndim == 1:
        matrices[-1] = expand_dims(given[-1], 1)
    if any(each.ndim != 2 for each in matrices):
        raise LinAlgError("multi_dot: expected matrices, and vectors as the first and the last array only")
    sides = [matrices[0].shape[0], *(each.shape[1] for each in matrices)]
    result = _multiply_chain(matrices, _split_chain(sides), 0, len(matrices) - 1)
    shape = result.shape[given[0].ndim == 1 : 2 - (given[-1].ndim == 1)]
    return store_result(out, reshape(result, shape))


def _split_chain(sides: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return where to split each part of a chain of matrices, so that the products cost least."""
    count = len(sides) - 1
    costs = {(i, i): 0 for i in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            costs[first, last], splits[first, last] = min(
                (
                    costs[first, k] + costs[k + 1, last] + sides[first] * sides[k + 1] * sides[last + 1],
                    k,
                )
                for k in range(first, last)
            )
    return splits


def _multiply_chain(
    matrices: Sequence[Array], splits: dict[tuple[int, int], int], first: int, last: int
) -> Array:
    if first == last:
        return matrices[first]
    at = splits[first, last]
    return matmul(
        _multiply_chain(matrices, splits, first, at), _multiply_chain(matrices, splits, at + 1, last)
    )


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
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentValueError(f"mode: expected 'reduced', 'complete' or 'r', got {mode!r}")
    array = require_array(x)
    if array.ndim < 2:
        raise LinAlgError(f"qr: expected at least two axes, got the shape {array.shape}")
    kind = _factor_kind("qr", array)
    *batch, m, n = array.shape
    columns = {"reduced": min(m, n), "complete": m, "r": None}[mode]
    q, r = factor_qr(_copy_matrices(array, kind, array.shape), columns)
    factor = _with_shape(r, (*batch, *r.shape[1:]))
    return factor if q is None else QRResult(_with_shape(q, (*batch, *q.shape[1:])), factor)


# ---- by the host ---------------------------------------------------------------------------------


_numpy_linalg: Any = np.linalg


def _split_tall(x: Array) -> tuple[Array, Array] | None:
    """Return Q and R of tall matrices, of which the host then needs R alone; None for others."""
    if x.ndim < 2 or x.size < _TALL_SIZE or x.shape[-2] < 4 * x.shape[-1] or x.dtype == np.float16:
        return None
    q, r = qr(x)
    return q, r


def svd(x: Any, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Return singular value decompositions. See `numpy.linalg.svd`."""
    array = require_array(x)
    if not compute_uv and not hermitian:
        return svdvals(array)
    tall = None if full_matrices or hermitian else _split_tall(array)
    found = _call_host(
        "svd",
        lambda a: _numpy_linalg.svd(a, full_matrices, compute_uv, hermitian),
        array if tall is None else tall[1],
    )
    if tall is not None:
        found = (matmul(tall[0], found[0]), *found[1:])
    return SVDResult(*found) if compute_uv else found


def svdvals(x: Any, /) -> Array:
    """Return singular values. See `numpy.linalg.svdvals`."""
    array = require_array(x)
    tall = _split_tall(array)
    found: Array = _call_host(
        "svdvals",
        lambda a: _numpy_linalg.svd(a, compute_uv=False),
        array if tall is None else tall[1],
    )
    return found


def _check_triangle(name: str) -> str:
    if name not in ("L", "U", "l", "u"):
        raise ArgumentValueError(f"UPLO: expected 'L' or 'U', got {name!r}")
    return name


def eigh(x: Any, /, UPLO: str = "L") -> EighResult:  # noqa: N803  NumPy's name
    """Return eigenvalues and eigenvectors of Hermitian matrices. See `numpy.linalg.eigh`."""
    part = _check_triangle(UPLO)
    return EighResult(*_call_host("eigh", lambda a: tuple(_numpy_linalg.eigh(a, part)), _square(x, "eigh")))


def eigvalsh(x: Any, /, UPLO: str = "L") -> Array:  # noqa: N803  NumPy's name
    """Return eigenvalues of Hermitian matrices. See `numpy.linalg.eigvalsh`."""
    part = _check_triangle(UPLO)
    found: Array = _call_host("eigvalsh", lambda a: _numpy_linalg.eigvalsh(a, part), _square(x, "eigvalsh"))
    return found


def eig(x: Any, /) -> EigResult:
    """Return eigenvalues and eigenvectors of square matrices. See `numpy.linalg.eig`.

    Both are always complex, whatever the values are.
    """
    found = _call_host(
        "eig", lambda a: tuple(_complex(each) for each in _numpy_linalg.eig(a)), _square(x, "eig")
    )
    return EigResult(*found)


def eigvals(x: Any, /) -> Array:
    """Return eigenvalues of square matrices, always complex. See `numpy.linalg.eigvals`."""
    found: Array = _call_host("eigvals", lambda a: _complex(_numpy_linalg.eigvals(a)), _square(x, "eigvals"))
    return found


def _complex(values: Any) -> Any:
    return values.astype(np.result_type(values.dtype, np.complex64), copy=False)


def _number(value: Any) -> Any:
    return value.numpy() if isinstance(value, Array) else value


def pinv(x: Any, /, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """Return pseudo-inverses. See `numpy.linalg.pinv`. `rcond` and `rtol` are names of one number."""
    array, limit = require_array(x), _number(rcond if rtol is None else rtol)
    tall = None if hermitian else _split_tall(array)
    found: Array = _call_host(
        "pinv", lambda a: _numpy_linalg.pinv(a, limit, hermitian), array if tall is None else tall[1]
    )
    return found if tall is None else matmul(found, conjugate(matrix_transpose(tall[0])))


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Array, Array, int, Array]:
    """Return least-squares solutions, residuals, the rank and singular values. See `numpy.linalg.lstsq`."""
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
    """Return condition numbers. See `numpy.linalg.cond`."""
    found: Array = _call_host("cond", lambda a: _numpy_linalg.cond(a, p), require_array(x))
    return found


def matrix_rank(x: Any, /, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """Return ranks of matrices. See `numpy.linalg.matrix_rank`."""
    array = require_array(x)
    if array.ndim < 2:
        return any_of(array != 0).astype(np.int64)
    values = absolute(eigvalsh(array)) if hermitian else svdvals(array)
    if not values.shape[-1]:
        return zeros(values.shape[:-1], dtype=np.int64, device=array.device)
    if tol is None:
        relative = max(array.shape[-2:]) * np.finfo(values.dtype).eps if rtol is None else rtol
        if isinstance(relative, Array):
            relative = expand_dims(relative, -1)
        tol = greatest(values, axis=-1, keepdims=True) * relative
    elif isinstance(tol, Array):
        tol = expand_dims(tol, -1)
    return count_nonzero(values > tol, axis=-1)
