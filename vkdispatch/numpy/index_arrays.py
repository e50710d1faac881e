"""Arrays of indices, grids, diagonals, and facts about shapes."""

import math
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.numpy.basics.creation import ones, zeros
from vkdispatch.numpy.basics.elementwise import clip
from vkdispatch.numpy.basics.joining import column_stack, concatenate, stack
from vkdispatch.numpy.basics.manipulation import atleast_1d, broadcast_to, diagonal, reshape, view_diagonal
from vkdispatch.numpy.basics.reductions import any as any_of
from vkdispatch.numpy.basics.sequences import arange, linspace, range_along, tri
from vkdispatch.numpy.core.application import assign
from vkdispatch.numpy.core.array import Array, parse_index, value_of, view_of
from vkdispatch.numpy.core.conversion import asarray, parse_shape, require_choice, to_array
from vkdispatch.numpy.core.memory import Shape, default_real, int64, is_f_order, parse_dtype
from vkdispatch.numpy.core.repeating import repeat_calls
from vkdispatch.numpy.indexing import nonzero

# ---- Arrays of indices -----------------------------------------------------------------------------------


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """Return the indices of the elements of a grid. See `numpy.indices`.

    Returns
    -------
    An array whose first axis counts the axes of the grid; if `sparse`, a tuple of arrays that broadcast.

    Examples
    --------
    >>> rows, columns = vnp.indices((2, 3))
    >>> columns
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int64)
    """
    shape = parse_shape(dimensions, "dimensions")
    kind = parse_dtype(dtype)
    each = [range_along(length, axis, len(shape), kind) for axis, length in enumerate(shape)]
    if sparse:
        return tuple(each)
    if not each:
        return arange(0, dtype=kind)
    return stack([broadcast_to(one, shape) for one in each])


def ix_(*args: Any) -> tuple[Array, ...]:
    """Return arrays that index the grid of all combinations of vectors. See `numpy.ix_`.

    Raises ValueError if one is no vector.

    Examples
    --------
    >>> vnp.arange(9).reshape(3, 3)[vnp.ix_([0, 2], [1, 2])]
    Array([[1, 2],
           [7, 8]], dtype=int64)
    """
    found = []
    for i, each in enumerate(args):
        own = to_array(each, f"args[{i}]")
        if own.ndim != 1:
            raise ArgumentValueError(f"args[{i}]: expected a vector, got the shape {own.shape}")
        if own.size == 0:
            own = own.astype(int64)
        if own.dtype.kind == "b":
            (own,) = nonzero(own)
        found.append(reshape(own, tuple(own.size if j == i else 1 for j in range(len(args)))))
    return tuple(found)


def _check_bounds(index: Array, length: int, name: str) -> None:
    if index.dtype.kind not in "iu":
        raise ArgumentTypeError(f"{name}: expected integers, got {index.dtype}")
    if index.size and bool(any_of((index < 0) | (index >= length))):
        raise ArgumentValueError(f"{name}: an index is out of bounds for {length} elements")


@repeat_calls
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Array:
    """Return the flat indices of indices along axes. See `numpy.ravel_multi_index`.

    Parameters
    ----------
    multi_index
        Indices along each axis.
    dims
        The shape that is indexed.
    mode
        "raise" (for which indices are waited for), "wrap" or "clip", or one of these for each axis.
    order
        "C" or "F".

    Raises
    ------
    ValueError
        An index is out of bounds, there are not as many as axes, or int64 does not hold the number of
        elements.

    Examples
    --------
    >>> vnp.ravel_multi_index((vnp.asarray([0, 1]), vnp.asarray([2, 0])), (2, 3))
    Array([2, 3], dtype=int64)
    """
    shape = parse_shape(dims, "dims", math.inf)
    each = [to_array(one, "multi_index") for one in multi_index]
    modes = (mode,) * len(shape) if isinstance(mode, str) else tuple(mode)
    if len(each) != len(shape) or len(modes) != len(shape):
        raise ArgumentValueError(f"multi_index: expected indices along {len(shape)} axes, got {len(each)}")
    _check_count(shape, "dims")
    if 0 in shape and any(index.size for index in each):
        raise ArgumentValueError(f"dims: the shape {shape} has no elements to index")
    total: Any = None if shape else asarray(0)
    rows = list(zip(each, shape, modes, strict=True))
    for index, length, own in rows if _parse_order(order) == "C" else reversed(rows):
        require_choice(own, "mode", "raise", "wrap", "clip")
        if own == "raise":
            _check_bounds(index, length, "multi_index")
        wide = index.astype(int64, copy=False)
        wide = wide % length if own == "wrap" else clip(wide, 0, length - 1) if own == "clip" else wide
        total = wide if total is None else total * length + wide
    return total  # type: ignore[no-any-return]


def _check_count(shape: tuple[int, ...], name: str) -> None:
    """Raise ValueError if int64 does not hold the number of elements of a shape."""
    if math.prod(length or 1 for length in shape) > np.iinfo(np.int64).max:
        raise ArgumentValueError(f"{name}: int64 does not hold the number of elements of the shape {shape}")


def _parse_order(order: Any) -> str:
    require_choice(order, "order", "C", "F")
    return str(order)


@repeat_calls
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Any, ...]:
    """Return the indices along axes of flat indices, which are waited for. See `numpy.unravel_index`.

    Of an int, they are ints.

    Raises
    ------
    ValueError
        An index is out of bounds.

    Examples
    --------
    >>> vnp.unravel_index(vnp.asarray([2, 3]), (2, 3))
    (Array([0, 1], dtype=int64), Array([2, 0], dtype=int64))
    """
    lengths = parse_shape(shape, "shape", math.inf)
    if isinstance(indices, (int, np.integer)):
        try:
            return tuple(np.unravel_index(indices, lengths, _parse_order(order)))  # type: ignore[call-overload]
        except ValueError as error:
            raise ArgumentValueError(f"indices: {error}") from None
    _check_count(lengths, "shape")
    flat = to_array(indices, "indices")
    if not lengths and flat.ndim:
        raise ArgumentValueError("shape: arrays without axes have one index, got several")
    _check_bounds(flat, math.prod(lengths), "indices")
    flat = flat.astype(int64, copy=False)
    found: list[Array] = []
    step = 1
    places = reversed(lengths) if _parse_order(order) == "C" else iter(lengths)
    for length in places:
        found.append(flat // step % max(length, 1))
        step *= max(length, 1)
    return tuple(reversed(found)) if order == "C" else tuple(found)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, ...]:
    """Return the indices of the lower triangle of a matrix. See `numpy.tril_indices`.

    Examples
    --------
    >>> vnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int64), Array([0, 0, 1], dtype=int64))
    """
    return nonzero(tri(n, m, k, bool))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, ...]:
    """Return the indices of the upper triangle of a matrix. See `numpy.triu_indices`.

    Examples
    --------
    >>> vnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int64), Array([0, 1, 1], dtype=int64))
    """
    return nonzero(~tri(n, m, k - 1, bool))


def _parse_plane(arr: Any) -> tuple[int, int]:
    array = to_array(arr, "arr")
    if array.ndim != 2:
        raise ArgumentValueError(f"arr: expected two axes, got the shape {array.shape}")
    return array.shape[0], array.shape[1]


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, ...]:
    """Return the indices of the lower triangle of an array. See `numpy.tril_indices_from`.

    Examples
    --------
    >>> vnp.tril_indices_from(vnp.zeros((2, 2)))
    (Array([0, 1, 1], dtype=int64), Array([0, 0, 1], dtype=int64))
    """
    rows, columns = _parse_plane(arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, ...]:
    """Return the indices of the upper triangle of an array. See `numpy.triu_indices_from`.

    Examples
    --------
    >>> vnp.triu_indices_from(vnp.zeros((2, 2)))
    (Array([0, 0, 1], dtype=int64), Array([0, 1, 1], dtype=int64))
    """
    rows, columns = _parse_plane(arr)
    return triu_indices(rows, k, columns)


def mask_indices(n: int, mask_func: Any, k: Any = 0) -> tuple[Array, ...]:
    """Return the indices that a function such as `triu` leaves of a matrix. See `numpy.mask_indices`.

    Examples
    --------
    >>> vnp.mask_indices(2, vnp.triu)
    (Array([0, 0, 1], dtype=int64), Array([0, 1, 1], dtype=int64))
    """
    return nonzero(mask_func(ones((n, n), int64), k=k) != 0)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array. See `numpy.diag_indices`.

    Examples
    --------
    >>> x = vnp.zeros((2, 2), dtype=vnp.int32)
    >>> x[vnp.diag_indices(2)] = 1
    >>> x
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    return (arange(n),) * ndim


def diag_indices_from(arr: Any) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array. See `numpy.diag_indices_from`.

    Raises ValueError unless all of its two or more axes have the same length.

    Examples
    --------
    >>> vnp.diag_indices_from(vnp.zeros((2, 2)))
    (Array([0, 1], dtype=int64), Array([0, 1], dtype=int64))
    """
    array = to_array(arr, "arr")
    if array.ndim < 2 or len(set(array.shape)) != 1:
        raise ArgumentValueError(f"arr: expected two or more axes of one length, got {array.shape}")
    return diag_indices(array.shape[0], array.ndim)


# ---- Grids and sequences by slices in brackets: `mgrid`, `ogrid`, `r_`, `c_`, `s_` -----------------------


s_, index_exp = np.s_, np.index_exp


class _Grid:
    """See `numpy.mgrid` and `numpy.ogrid`."""

    def __init__(self, *, sparse: bool) -> None:
        self._sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        try:
            axes: Any = np.ogrid[key]
        except (TypeError, AttributeError):
            raise ArgumentTypeError(f"expected slices such as 0:5 or 0:1:11j, got {key!r}") from None
        if isinstance(axes, np.ndarray):
            return asarray(_narrow(axes))
        found = [asarray(_narrow(axis)) for axis in axes]
        if self._sparse:
            return tuple(found)
        shape = tuple(each.shape[i] for i, each in enumerate(found))
        return stack([broadcast_to(array, shape) for array in found])


def _narrow(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    return values.astype(default_real()) if values.dtype.kind == "f" else values


class _Joiner:
    """See `numpy.r_` and `numpy.c_`. Texts, which give the axes, are not implemented."""

    def __init__(self, *, columns: bool) -> None:
        self._columns = columns

    def __getitem__(self, key: Any) -> Array:
        parts = []
        for part in key if isinstance(key, tuple) else (key,):
            if isinstance(part, str):
                raise UnsupportedError(f"{part!r}: texts are not implemented; use concatenate with axis=")
            if isinstance(part, slice):
                start, step = part.start or 0, 1 if part.step is None else part.step
                if isinstance(step, complex):
                    parts.append(linspace(start, part.stop, int(abs(step))))
                else:
                    parts.append(arange(start, part.stop, step))
            else:
                parts.append(atleast_1d(to_array(part)))
        return column_stack(parts) if self._columns else concatenate(parts)


mgrid, ogrid = _Grid(sparse=False), _Grid(sparse=True)
r_, c_ = _Joiner(columns=False), _Joiner(columns=True)


# ---- Diagonals of matrices, and matrices made of them ----------------------------------------------------


@repeat_calls
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


@repeat_calls
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


# ---- Facts about shapes and the order of elements --------------------------------------------------------


def broadcast_shapes(*args: Any) -> Shape:
    """Return the shape to which shapes broadcast. See `numpy.broadcast_shapes`. Else raises ValueError.

    Examples
    --------
    >>> vnp.broadcast_shapes((3, 1), (1, 4))
    (3, 4)
    """
    try:
        return np.broadcast_shapes(*args)
    except ValueError as error:
        raise ArgumentValueError(f"broadcast_shapes: {error}") from None


def isfortran(a: Any) -> bool:
    """Whether an array is contiguous in Fortran's order, and not in C's. See `numpy.isfortran`.

    Examples
    --------
    >>> vnp.isfortran(vnp.ones((2, 3)).T)
    True
    """
    view = view_of(to_array(a, "a"))
    return not view.is_contiguous and is_f_order(view)
