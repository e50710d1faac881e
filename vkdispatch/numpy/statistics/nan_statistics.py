"""Reductions that pass over NaN. Quantiles without NaN are in `quantiles`."""

import math
from typing import Any

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.basics import reductions
from vkdispatch.numpy.basics.elementwise import choose, isnan, sqrt
from vkdispatch.numpy.basics.inputs import to_array
from vkdispatch.numpy.core.array import Array, store_result

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]


def _replace_nan(a: Any, number: float) -> Array:
    """Return an array with a number in place of NaN."""
    array = to_array(a, "a")
    return choose(isnan(array), number, array) if array.dtype.kind in "fc" else array


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


def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    """Return running sums with NaN as zero. See `numpy.nancumsum`.

    Examples
    --------
    >>> vnp.nancumsum(vnp.asarray([2, vnp.nan, 3]))
    Array([2., 2., 5.], dtype=float64)
    """
    return reductions.cumsum(_replace_nan(a, 0), axis, dtype, out)


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
    found = _variance(a, axis, dtype, ddof, keepdims, where, correction)
    return store_result(out, found)


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
    found = sqrt(_variance(a, axis, dtype, ddof, keepdims, where, correction))
    return store_result(out, found)


def _filling(array: Array, number: float) -> complex:
    """Return a number that is no extreme of an array, nor is any with it as a part."""
    return complex(number, number) if array.dtype.kind == "c" else number


def _extreme(
    name: str, a: Any, axis: Any, out: Any, keepdims: bool, initial: Any, where: Any, filling: float
) -> Array:
    array = to_array(a, "a")
    reduce = reductions.min if name == "nanmin" else reductions.max
    if array.dtype.kind not in "fc":
        return reduce(array, axis, out, keepdims, initial=initial, where=where)
    missing = isnan(array)
    found = reduce(
        choose(missing, _filling(array, filling), array),
        axis,
        keepdims=keepdims,
        initial=initial,
        where=where,
    )
    if initial is None:
        found = choose(reductions.all(missing, axis, keepdims=keepdims), math.nan, found)
    return store_result(out, found)


def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """Return the least numbers along axes; NaN where all elements are. See `numpy.nanmin`.

    Examples
    --------
    >>> vnp.nanmin(vnp.asarray([2, vnp.nan, 3]))
    Array(2., dtype=float64)
    """
    return _extreme("nanmin", a, axis, out, keepdims, initial, where, math.inf)


def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """Return the largest numbers along axes; NaN where all elements are. See `numpy.nanmax`.

    Examples
    --------
    >>> vnp.nanmax(vnp.asarray([2, vnp.nan, 3]))
    Array(3., dtype=float64)
    """
    return _extreme("nanmax", a, axis, out, keepdims, initial, where, -math.inf)


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


def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Array:
    """Return the indices of the least numbers along an axis. See `numpy.nanargmin`.

    Waits, to raise ValueError where all elements are NaN.

    Examples
    --------
    >>> vnp.nanargmin(vnp.asarray([vnp.nan, 2, 3]))
    Array(1, dtype=int64)
    """
    return _extreme_place("nanargmin", a, axis, out, keepdims)


def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Array:
    """Return the indices of the largest numbers along an axis. See `numpy.nanargmax`.

    Waits, to raise ValueError where all elements are NaN.

    Examples
    --------
    >>> vnp.nanargmax(vnp.asarray([1, vnp.nan, 3]))
    Array(2, dtype=int64)
    """
    return _extreme_place("nanargmax", a, axis, out, keepdims)
