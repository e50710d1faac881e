"""Weighted means, covariances, and reductions that pass over NaN."""

import math
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics import manipulation, reductions
from vkdispatch.numpy.basics.creation import full, zeros
from vkdispatch.numpy.basics.elementwise import add, choose, clip, conjugate, imag, isnan, real, sqrt
from vkdispatch.numpy.basics.elementwise import multiply as product
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.basics.reductions import mean
from vkdispatch.numpy.basics.reductions import sum as total
from vkdispatch.numpy.core.array import Array, store_result
from vkdispatch.numpy.core.conversion import to_array
from vkdispatch.numpy.core.memory import default_real, part_kind
from vkdispatch.numpy.core.repeating import repeat_calls, repeat_reductions
from vkdispatch.numpy.linalg.products import matmul
from vkdispatch.numpy.quantiles import weights_like

# ---- Weighted means, covariances -------------------------------------------------------------------------


@repeat_reductions
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """Return weighted means along axes, and the sums of weights if `returned`. See `numpy.average`.

    Where weights sum to zero, the mean is NaN or infinite: the sums are not read to raise an error.

    Raises
    ------
    TypeError, ValueError
        The shape of `weights` fits neither the array nor the axes.

    Examples
    --------
    >>> vnp.average(vnp.asarray([1.0, 2.0, 3.0]), weights=vnp.asarray([3, 1, 0]))
    Array(1.25, dtype=float64)
    """
    array = to_array(a, "a")
    if weights is None:
        found = mean(array, axis, keepdims=keepdims)
        count = math.prod(array.shape[place] for place in manipulation.parse_axes(axis, array.ndim))
        sums = full(found.shape, count, found.dtype)
        return (found, sums) if returned else found
    weights = weights_like(array, weights, axis)
    kind = manipulation.result_type(array, weights)
    if array.dtype.kind in "biu":
        kind = manipulation.result_type(array, weights, default_real())
    whole = total(weights, axis=axis, dtype=kind, keepdims=keepdims)
    found = total(product(array, weights, dtype=kind), axis=axis, keepdims=keepdims) / whole
    return (found, manipulation.broadcast_to(whole, found.shape).copy()) if returned else found


def _variables(m: Any, name: str, rowvar: bool) -> Array:
    array = to_array(m, name)
    if array.ndim > 2:
        raise ArgumentValueError(f"{name}: expected at most two axes, got the shape {array.shape}")
    if array.ndim < 2:
        return manipulation.reshape(array, (1, array.size))
    single = name == "y" and array.shape[0] == 1
    return array if rowvar or single else array.T


def _frequencies(given: Any, name: str, count: int) -> Array:
    own = to_array(given, name)
    if own.shape != (count,):
        raise ArgumentValueError(f"{name}: expected {count} weights, got the shape {own.shape}")
    if own is not given and (np.asarray(given) < 0).any():
        raise ArgumentValueError(f"{name}: expected no negative weights, got {given!r}")
    return own


@repeat_calls
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Array:
    """Return the covariance matrix of variables. See `numpy.cov`.

    Parameters
    ----------
    m, y
        Variables as rows, and observations as columns; the other way round if not `rowvar`.
    bias, ddof
        Sums are divided by the number of observations less `ddof`: 1 by default, 0 with `bias`.
    fweights, aweights
        How often each observation occurs, and the weight of each. Values on the device are not checked.

    Raises
    ------
    TypeError
        `fweights` are not integers.
    ValueError
        Arrays have more than two axes, or weights another number of elements; a weight is negative.

    Examples
    --------
    >>> vnp.cov(vnp.asarray([[1.0, 2, 3], [3, 2, 1]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float64)
    """
    if ddof is not None and ddof != int(ddof):
        raise ArgumentValueError(f"ddof: expected an int, got {ddof!r}")
    variables = _variables(m, "m", rowvar)
    parts = [variables] if y is None else [variables, _variables(y, "y", rowvar)]
    kind = manipulation.result_type(*parts, default_real()) if dtype is None else np.dtype(dtype)
    joined = concatenate([part.astype(kind, copy=False) for part in parts], axis=0)
    if not joined.shape[0]:
        return zeros((0, 0))
    count = joined.shape[1]
    less = (0 if bias else 1) if ddof is None else int(ddof)
    weights = None
    factor: Any
    if fweights is not None:
        weights = _frequencies(fweights, "fweights", count)
        if weights.dtype.kind not in "iu":
            raise ArgumentTypeError(f"fweights: expected integers, got {weights.dtype}")
        weights = weights.astype(default_real())
    if aweights is not None:
        own = _frequencies(aweights, "aweights", count).astype(default_real())
        weights = own if weights is None else weights * own
    if weights is None:
        centred = joined - mean(joined, axis=1, keepdims=True)
        other, factor = centred, count - less
    else:
        whole = total(weights)
        centred = joined - total(joined * weights, axis=1, keepdims=True) / whole
        other = centred * weights
        if less == 0:
            factor = whole
        elif aweights is None:
            factor = whole - less
        else:
            factor = whole - less * total(weights * own) / whole
    if kind.kind == "c":
        other = conjugate(other)
    products = matmul(centred.astype(kind, copy=False), other.astype(kind, copy=False).T)
    if isinstance(factor, Array):
        return manipulation.squeeze(products / clip(factor, 0, None).astype(part_kind(kind), copy=False))
    return manipulation.squeeze(products / float(factor) if factor > 0 else products * math.inf)


@repeat_calls
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    """Return the correlation coefficients of variables. See `cov` and `numpy.corrcoef`.

    Examples
    --------
    >>> vnp.corrcoef(vnp.asarray([[1.0, 2, 3], [3, 2, 1]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float64)
    """
    found = cov(x, y, rowvar, dtype=dtype)
    if found.ndim == 0:
        return found / found
    scale = sqrt(real(manipulation.diagonal(found)))
    ratio = found / scale[:, None] / scale[None, :]
    if ratio.dtype.kind == "c":
        first, second = clip(real(ratio), -1, 1), clip(imag(ratio), -1, 1)
        return add(first, second * 1j)
    return clip(ratio, -1, 1)


# ---- Reductions that pass over NaN. Quantiles without NaN are in `quantiles` -----------------------------


def _replace_nan(a: Any, number: float) -> Array:
    array = to_array(a, "a")
    return choose(isnan(array), number, array) if array.dtype.kind in "fc" else array


@repeat_reductions
def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Return sums along axes with NaN as zero. See `numpy.nansum`.

    Examples
    --------
    >>> vnp.nansum(vnp.asarray([2, vnp.nan, 3]))
    Array(5., dtype=float64)
    """
    return reductions.sum(_replace_nan(a, 0), axis, dtype, out, keepdims, initial=initial, where=where)


@repeat_reductions
def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Return products along axes with NaN as one. See `numpy.nanprod`.

    Examples
    --------
    >>> vnp.nanprod(vnp.asarray([2, vnp.nan, 3]))
    Array(6., dtype=float64)
    """
    return reductions.prod(_replace_nan(a, 1), axis, dtype, out, keepdims, initial=initial, where=where)


@repeat_reductions
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    """Return running sums with NaN as zero. See `numpy.nancumsum`.

    Examples
    --------
    >>> vnp.nancumsum(vnp.asarray([2, vnp.nan, 3]))
    Array([2., 2., 5.], dtype=float64)
    """
    return reductions.cumsum(_replace_nan(a, 0), axis, dtype, out)


@repeat_reductions
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    """Return running products with NaN as one. See `numpy.nancumprod`.

    Examples
    --------
    >>> vnp.nancumprod(vnp.asarray([2, vnp.nan, 3]))
    Array([2., 2., 6.], dtype=float64)
    """
    return reductions.cumprod(_replace_nan(a, 1), axis, dtype, out)


def _find_numbers(array: Array, where: Any) -> Any:
    """Return where elements are numbers that count; None: everywhere."""
    if array.dtype.kind not in "fc":
        return where
    return ~isnan(array) if where is None else ~isnan(array) & to_array(where, "where")


@repeat_reductions
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None
) -> Array:
    """Return means of the elements that are not NaN; NaN where there are none. See `numpy.nanmean`.

    Examples
    --------
    >>> vnp.nanmean(vnp.asarray([2, vnp.nan, 3]))
    Array(2.5, dtype=float64)
    """
    array = to_array(a, "a")
    return reductions.mean(array, axis, dtype, out, keepdims, where=_find_numbers(array, where))


def _variance(
    a: Any, axis: Any, dtype: Any, ddof: float, keepdims: bool, where: Any, correction: float | None
) -> Array:
    """Return variances of the elements that are not NaN; NaN where there are no more than `ddof`."""
    array = to_array(a, "a")
    chosen = _find_numbers(array, where)
    less = ddof if correction is None else correction
    found = reductions.var(array, axis, dtype, None, less, keepdims, where=chosen)
    if array.dtype.kind not in "fc":
        return found
    count = reductions.count_nonzero(chosen, axis, keepdims=keepdims)
    return choose(count <= less, math.nan, found)


@repeat_reductions
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: float | None = None,
) -> Array:
    """Return variances of the elements that are not NaN; NaN of no more than `ddof`. See `numpy.nanvar`.

    Examples
    --------
    >>> vnp.nanvar(vnp.asarray([2, vnp.nan, 4]))
    Array(1., dtype=float64)
    """
    return store_result(out, _variance(a, axis, dtype, ddof, keepdims, where, correction))


@repeat_reductions
def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: float | None = None,
) -> Array:
    """Return standard deviations of the elements that are not NaN. See `nanvar` and `numpy.nanstd`.

    Examples
    --------
    >>> vnp.nanstd(vnp.asarray([2, vnp.nan, 4]))
    Array(1., dtype=float64)
    """
    return store_result(out, sqrt(_variance(a, axis, dtype, ddof, keepdims, where, correction)))


def _filling(array: Array, number: float) -> complex:
    """Return a number that is never an extreme: for complex arrays with both parts of that kind."""
    return complex(number, number) if array.dtype.kind == "c" else number


def _extreme(
    reduce: Any, a: Any, axis: Any, out: Any, keepdims: bool, initial: Any, where: Any, filling: float
) -> Array:
    array = to_array(a, "a")
    if array.dtype.kind not in "fc":
        return reduce(array, axis, out, keepdims, initial=initial, where=where)  # type: ignore[no-any-return]
    missing = isnan(array)
    filled = choose(missing, _filling(array, filling), array)
    extreme: Array = reduce(filled, axis, keepdims=keepdims, initial=initial, where=where)
    if initial is None:
        extreme = choose(reductions.all(missing, axis, keepdims=keepdims), math.nan, extreme)
    return store_result(out, extreme)


@repeat_reductions
def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """Return the least numbers along axes; NaN where all elements are. See `numpy.nanmin`.

    Examples
    --------
    >>> vnp.nanmin(vnp.asarray([2, vnp.nan, 3]))
    Array(2., dtype=float64)
    """
    return _extreme(reductions.min, a, axis, out, keepdims, initial, where, math.inf)


@repeat_reductions
def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """Return the largest numbers along axes; NaN where all elements are. See `numpy.nanmax`.

    Examples
    --------
    >>> vnp.nanmax(vnp.asarray([2, vnp.nan, 3]))
    Array(3., dtype=float64)
    """
    return _extreme(reductions.max, a, axis, out, keepdims, initial, where, -math.inf)


def _extreme_place(name: str, a: Any, axis: Any, out: Any, keepdims: bool) -> Array:
    array = to_array(a, "a")
    is_least = name == "nanargmin"
    find = reductions.argmin if is_least else reductions.argmax
    if array.dtype.kind not in "fc":
        return find(array, axis, out, keepdims=keepdims)
    missing = isnan(array)
    if array.size and bool(reductions.any(reductions.all(missing, axis))):
        raise ArgumentValueError(f"{name}: all elements of a slice are NaN")
    filled = choose(missing, _filling(array, math.inf if is_least else -math.inf), array)
    return find(filled, axis, out, keepdims=keepdims)


@repeat_reductions
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Array:
    """Return the indices of the least numbers along an axis. See `numpy.nanargmin`.

    Waits, to raise ValueError where all elements are NaN.

    Examples
    --------
    >>> vnp.nanargmin(vnp.asarray([vnp.nan, 2, 3]))
    Array(1, dtype=int64)
    """
    return _extreme_place("nanargmin", a, axis, out, keepdims)


@repeat_reductions
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Array:
    """Return the indices of the largest numbers along an axis. See `numpy.nanargmax`.

    Waits, to raise ValueError where all elements are NaN.

    Examples
    --------
    >>> vnp.nanargmax(vnp.asarray([1, vnp.nan, 3]))
    Array(2, dtype=int64)
    """
    return _extreme_place("nanargmax", a, axis, out, keepdims)
