"""Reductions: sums, extremes, statistics, truth; running sums; differences of neighbours."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.basics import manipulation
from vkdispatch.numpy.basics.creation import full
from vkdispatch.numpy.basics.elementwise import not_equal
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.core import memory
from vkdispatch.numpy.core.application import broadcast_to as broadcast_view
from vkdispatch.numpy.core.application import cast, number_as
from vkdispatch.numpy.core.array import Array, array_from, array_of, check_cast, parse_count, store_result
from vkdispatch.numpy.core.conversion import parse_value, real_kind, require_array, to_array
from vkdispatch.numpy.core.kernels import as_operand
from vkdispatch.numpy.core.repeating import repeat_reductions
from vkdispatch.reduce import functions as reduce

# A function on buffers.
_Function = Callable[..., Any]


# ---- Calls of functions on buffers -----------------------------------------------------------------------


def apply_along(function: _Function, value: Any, axis: int | None, **options: Any) -> Any:
    """Return the buffer that a function on buffers makes of a value along an axis; None: of all elements."""
    place = None if axis is None else manipulation.parse_axis(axis, len(value.shape))
    return function(as_operand(value, value.shape), axis=place, **options)


def final_shape(shape: memory.Shape, axes: Sequence[int], keepdims: bool) -> memory.Shape:
    """Return the shape of an array that is reduced along axes."""
    if keepdims:
        return tuple(1 if axis in axes else length for axis, length in enumerate(shape))
    return tuple(length for axis, length in enumerate(shape) if axis not in axes)


# ---- Differences of neighbours ---------------------------------------------------------------------------


def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    """Return differences of neighbours along an axis. See `numpy.diff`.

    Examples
    --------
    >>> vnp.diff(vnp.asarray([1, 4, 9, 16]))
    Array([3, 5, 7], dtype=int64)
    """
    array = to_array(x, "x")
    n = parse_count(n, "n")
    if array.ndim == 0:
        raise ArgumentValueError("x: expected at least one axis")
    place = manipulation.parse_axis(axis, array.ndim)
    if n == 0:
        return array
    parts = [array]
    for name, value in (("prepend", prepend), ("append", append)):
        if value is None:
            continue
        edge = to_array(value, name)
        if edge.ndim == 0:
            edge = manipulation.broadcast_to(edge, manipulation.replace_axis(array.shape, place, 1))
        parts.insert(0 if name == "prepend" else len(parts), edge)
    if len(parts) > 1:
        array = concatenate(parts, axis=place)
    for _ in range(n):
        high = manipulation.slice_axis(array, place, 1)
        low = manipulation.slice_axis(array, place, None, -1)
        array = not_equal(high, low) if array.dtype.kind == "b" else high - low
    return array


# ---- Reductions: sums, extremes, statistics, truth; running sums -----------------------------------------


def _start(initial: Any, kind: memory.Kind) -> Any:
    """Return what a reduction starts from. Raises OverflowError for an integer that the dtype cannot hold."""
    if type(initial) is int and kind.kind in "iub":
        return number_as(initial, kind, "initial")
    return initial


def _reduce(
    function: _Function, x: Any, axis: Any, keepdims: bool, out: Any = None, where: Any = None, **options: Any
) -> Array:
    """Reduce an array with a function on buffers."""
    value = parse_value(x)
    ndim = len(value.shape)
    axes = manipulation.parse_axes(axis if function in _AVERAGES else manipulation.all_axes(axis, ndim), ndim)
    if where is not None and where is not True:
        mask = parse_value(where)
        if mask.shape != value.shape:
            mask = broadcast_view(mask, value.shape)
        options["where"] = as_operand(mask, mask.shape)
    buffer = function(as_operand(value, value.shape), axis=axes, keepdims=bool(keepdims), **options)
    return store_result(out, array_from(buffer))


def _extreme(
    function: _Function, x: Any, axis: Any, keepdims: bool, out: Any, where: Any, initial: Any
) -> Array:
    """Reduce to extremes. Raises OverflowError for an `initial` that the dtype does not hold.

    With an `initial`, `out` has a part in the dtype, as in NumPy.
    """
    array = require_array(x)
    options = {}
    if initial is not None:
        if isinstance(out, Array) and out.dtype != array.dtype:
            array = array.astype(np.promote_types(array.dtype, out.dtype))
        options["initial"] = _start(initial, array.dtype)
    return _reduce(function, array, axis, keepdims, out, where, **options)


def _wider(dtype: Any, out: Any, own: memory.Kind) -> Any:
    """Return the dtype to compute with: the given one, or that of `out` where it holds more."""
    if dtype is not None or not isinstance(out, Array) or out.dtype == own:
        return dtype
    is_inexact = own.kind in "biu" and out.dtype.kind in "fc"
    return out.dtype if is_inexact or np.can_cast(own, out.dtype) else None


def _total(
    function: _Function, x: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any, where: Any
) -> Array:
    options: dict[str, Any] = {}
    value = parse_value(x)
    dtype = _wider(dtype, out, value.dtype)
    kind = value.dtype
    if dtype is not None:
        kind = memory.parse_dtype(dtype)
        value = cast(value, kind)
        options["dtype"] = memory.kernel_type(kind)
    elif kind.kind in "biu":
        kind = np.dtype(np.uint64 if kind.kind == "u" else np.int64)
    if initial is not None:
        options["initial"] = _start(initial, kind)
    return _reduce(function, array_of(value), axis, keepdims, out, where, **options)


@repeat_reductions
def sum(
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Return sums of elements along axes. See `numpy.sum`.

    Examples
    --------
    >>> vnp.sum(vnp.asarray([[1, 2], [3, 4]]), axis=0)
    Array([4, 6], dtype=int64)
    >>> float(vnp.sum(vnp.ones(10)))
    10.0
    """
    return _total(reduce.sum, x, axis, dtype, out, keepdims, initial, where)


@repeat_reductions
def prod(
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Return products of elements along axes. See `numpy.prod`.

    Examples
    --------
    >>> vnp.prod(vnp.asarray([1, 2, 3, 4]))
    Array(24, dtype=int64)
    """
    return _total(reduce.prod, x, axis, dtype, out, keepdims, initial, where)


@repeat_reductions
def mean(
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    """Return means along axes. See `numpy.mean`.

    Examples
    --------
    >>> vnp.mean(vnp.asarray([1, 2, 3, 4]))
    Array(2.5, dtype=float64)
    """
    own = parse_value(x).dtype
    dtype = _wider(dtype, out, real_kind(own))
    kind = real_kind(own) if dtype is None else memory.parse_dtype(dtype)
    return _reduce(reduce.mean, x, axis, keepdims, out, where, dtype=memory.kernel_type(kind))


def _spread_options(x: Any, dtype: Any, ddof: float) -> dict[str, Any]:
    """Return the options of variances on buffers: integers become the default real dtype."""
    options: dict[str, Any] = {"ddof": ddof}
    if dtype is not None or parse_value(x).dtype.kind in "biu":
        options["dtype"] = memory.kernel_type(memory.parse_real(dtype))
    return options


@repeat_reductions
def var(
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    where: Any = None,
) -> Array:
    """Return variances along axes. See `numpy.var`.

    Examples
    --------
    >>> vnp.var(vnp.asarray([1, 3, 5, 7]))
    Array(5., dtype=float64)
    """
    options = _spread_options(x, dtype, ddof if correction is None else correction)
    return _reduce(reduce.var, x, axis, keepdims, out, where, **options)


@repeat_reductions
def std(
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    where: Any = None,
) -> Array:
    """Return standard deviations along axes. See `numpy.std`.

    Examples
    --------
    >>> vnp.std(vnp.asarray([1, 3, 5, 7]))
    Array(2.23606798, dtype=float64)
    """
    options = _spread_options(x, dtype, ddof if correction is None else correction)
    return _reduce(reduce.std, x, axis, keepdims, out, where, **options)


_AVERAGES = (reduce.mean, reduce.var, reduce.std)


@repeat_reductions
def min(
    x: Any,
    /,
    axis: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Return the least elements along axes. See `numpy.min`. Raises ValueError for no elements.

    Examples
    --------
    >>> vnp.min(vnp.asarray([[1, 5], [7, 0]]), axis=0)
    Array([1, 0], dtype=int64)
    """
    return _extreme(reduce.min, x, axis, keepdims, out, where, initial)


@repeat_reductions
def max(
    x: Any,
    /,
    axis: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Return the largest elements along axes. See `numpy.max`. Raises ValueError for no elements.

    Examples
    --------
    >>> vnp.max(vnp.asarray([[1, 5], [7, 0]]), axis=0)
    Array([7, 5], dtype=int64)
    """
    return _extreme(reduce.max, x, axis, keepdims, out, where, initial)


amin, amax = min, max


@repeat_reductions
def ptp(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Array:
    """Return the ranges of elements along axes. See `numpy.ptp`.

    Examples
    --------
    >>> vnp.ptp(vnp.asarray([3, 1, 7]))
    Array(6, dtype=int64)
    """
    # as NumPy: the dtype of `out` is that of the difference, also for booleans
    return store_result(out, max(x, axis, out, keepdims) - min(x, axis, keepdims=keepdims))


@repeat_reductions
def all(x: Any, /, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None) -> Array:
    """Return whether all elements along axes are true. See `numpy.all`.

    Examples
    --------
    >>> vnp.all(vnp.asarray([[True, False], [True, True]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    return _reduce(reduce.all, x, axis, keepdims, out, where)


@repeat_reductions
def any(x: Any, /, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None) -> Array:
    """Return whether any element along axes is true. See `numpy.any`.

    Examples
    --------
    >>> vnp.any(vnp.asarray([[False, False], [False, True]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    return _reduce(reduce.any, x, axis, keepdims, out, where)


@repeat_reductions
def count_nonzero(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Return how many elements along axes are not zero. See `numpy.count_nonzero`.

    Examples
    --------
    >>> vnp.count_nonzero(vnp.asarray([0, 1, 2, 0]))
    Array(2, dtype=int64)
    """
    return _reduce(reduce.count_nonzero, x, axis, keepdims)


def _extreme_place(function: _Function, x: Any, axis: Any, out: Any, keepdims: bool) -> Array:
    value = parse_value(x)
    axis = manipulation.all_axes(axis, len(value.shape))
    if isinstance(out, Array):
        check_cast(out.dtype, memory.int64, "out", "safe")
    return store_result(out, array_from(apply_along(function, value, axis, keepdims=bool(keepdims))))


@repeat_reductions
def argmin(x: Any, /, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Array:
    """Return the indices of the least elements along an axis. See `numpy.argmin`.

    Examples
    --------
    >>> vnp.argmin(vnp.asarray([[1, 5, 2], [7, 0, 3]]), axis=1)
    Array([0, 1], dtype=int64)
    """
    return _extreme_place(reduce.argmin, x, axis, out, keepdims)


@repeat_reductions
def argmax(x: Any, /, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Array:
    """Return the indices of the largest elements along an axis. See `numpy.argmax`.

    Examples
    --------
    >>> vnp.argmax(vnp.asarray([[1, 5, 2], [7, 0, 3]]), axis=1)
    Array([1, 0], dtype=int64)
    """
    return _extreme_place(reduce.argmax, x, axis, out, keepdims)


@repeat_reductions
def trace(
    x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Array:
    """Return sums along diagonals. See `numpy.trace`; `linalg.trace` takes the last two axes.

    Examples
    --------
    >>> vnp.trace(vnp.asarray([[1, 2], [3, 4]]))
    Array(5, dtype=int64)
    """
    return sum(manipulation.diagonal(x, offset, axis1, axis2), -1, dtype, out)


# ---- running sums --------------------------------------------------------------------------------


def _find_scan(name: str) -> Callable[..., Any]:
    from vkdispatch.scans import functions  # imported by the first scan of a program

    scan: Callable[..., Any] = getattr(functions, name)
    return scan


def _accumulate(function: _Function, x: Any, axis: Any, dtype: Any, out: Any) -> Array:
    value, options = parse_value(x), {}
    if dtype is not None:
        kind = memory.parse_dtype(dtype)
        value = cast(value, kind)
        options["dtype"] = memory.kernel_type(kind)
    axis = manipulation.all_axes(axis, len(value.shape))
    return store_result(out, array_from(apply_along(function, value, axis, **options)))


@repeat_reductions
def cumsum(x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    """Return running sums along an axis; None: of all elements. See `numpy.cumsum`.

    Examples
    --------
    >>> vnp.cumsum(vnp.asarray([1, 2, 3, 4]))
    Array([ 1,  3,  6, 10], dtype=int64)
    """
    return _accumulate(_find_scan("cumsum"), x, axis, dtype, out)


@repeat_reductions
def cumprod(x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    """Return running products along an axis; None: of all elements. See `numpy.cumprod`.

    Examples
    --------
    >>> vnp.cumprod(vnp.asarray([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int64)
    """
    return _accumulate(_find_scan("cumprod"), x, axis, dtype, out)


_RUNNING = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}


def accumulate(name: str, x: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Array:
    """Return what the method `accumulate` of a ufunc gives: of add, multiply, maximum and minimum."""
    if name in ("maximum", "minimum") and dtype is not None:
        x, dtype = array_of(cast(parse_value(x), memory.parse_dtype(dtype))), None
    return _accumulate(_find_scan(_RUNNING[name]), x, axis, dtype, out)


def _cumulative(
    function: _Function, start: int, x: Any, axis: Any, dtype: Any, include_initial: bool
) -> Array:
    value = parse_value(x)
    if not value.shape:
        value = manipulation.reshape(array_of(value), 1)._value
    if axis is None:
        if len(value.shape) != 1:
            raise ArgumentValueError(f"axis: needed for an array of shape {value.shape}")
        axis = 0
    place = manipulation.parse_axis(axis, len(value.shape))
    found = _accumulate(function, array_of(value), place, dtype, None)
    if include_initial:
        first = full(manipulation.replace_axis(found.shape, place, 1), start, found.dtype)
        found = concatenate([first, found], axis=place)
    return found


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Array:
    """Return running sums along an axis, behind a zero if asked for. See `numpy.cumulative_sum`.

    Examples
    --------
    >>> vnp.cumulative_sum(vnp.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int64)
    """
    return store_result(out, _cumulative(_find_scan("cumsum"), 0, x, axis, dtype, include_initial))


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Array:
    """Return running products along an axis, behind a one if asked for. See `numpy.cumulative_prod`.

    Examples
    --------
    >>> vnp.cumulative_prod(vnp.asarray([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int64)
    """
    return store_result(out, _cumulative(_find_scan("cumprod"), 1, x, axis, dtype, include_initial))


def apply_over_axes(func: Callable[[Array, int], Array], a: Any, axes: Any) -> Array:
    """Return what a function makes of an array along one axis after the other. See `numpy.apply_over_axes`.

    Raises ValueError if a result has neither as many axes as the array nor one less.

    Examples
    --------
    >>> vnp.apply_over_axes(vnp.sum, vnp.ones((2, 3)), [0, 1])
    Array([[6.]], dtype=float64)
    """
    found: Array = manipulation.reshape(a, a.shape)
    for axis in (axes,) if isinstance(axes, int) else tuple(axes):
        place = manipulation.parse_axis(axis, found.ndim)
        made = func(found, place)
        if made.ndim == found.ndim - 1:
            made = manipulation.expand_dims(made, place)
        if made.ndim != found.ndim:
            raise ArgumentValueError(f"func: expected a result of {found.ndim} axes, got {made.ndim}")
        found = made
    return found
