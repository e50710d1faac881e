"""Quantiles and medians."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics.creation import full
from vkdispatch.numpy.basics.elementwise import choose, clip, floor, isnan
from vkdispatch.numpy.basics.joining import stack
from vkdispatch.numpy.basics.manipulation import broadcast_to, lines_last, moveaxis, parse_axes, reshape
from vkdispatch.numpy.basics.reductions import any as any_of
from vkdispatch.numpy.basics.reductions import cumsum, final_shape
from vkdispatch.numpy.basics.reductions import sum as total
from vkdispatch.numpy.core.array import Array, store_result
from vkdispatch.numpy.core.conversion import asnumpy, real_kind, to_array
from vkdispatch.numpy.core.memory import Kind, default_real, float64
from vkdispatch.numpy.core.repeating import repeat_calls
from vkdispatch.numpy.searching import argsort, sort, take_along_axis

# What the continuous methods of Hyndman and Fan (1996) add to the places of the elements.
_PLOTTING = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_DISCRETE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
# Finds a quantile by a method, as numbers of a dtype.
_Pick = Callable[[float, str, Kind], Array]
METHODS = (*_PLOTTING, *_DISCRETE, "averaged_inverted_cdf", "midpoint")


def _round_down(x: Any) -> Any:
    return floor(x) if isinstance(x, Array) else math.floor(x)


def _choose(condition: Any, x: Any, y: Any) -> Any:
    return choose(condition, x, y) if isinstance(condition, Array) else x if condition else y


def _find_place(count: Any, q: float, method: str) -> tuple[Any, Any]:
    """Return the place of a quantile among `count` sorted elements: an integer, and a fraction.

    Both are arrays if `count` is one: of real numbers.
    """
    if method in _PLOTTING:
        alpha, beta = _PLOTTING[method]
        place = (count - 1) * q if method == "linear" else count * q + (alpha + q * (1 - alpha - beta)) - 1
    elif method in ("lower", "higher", "midpoint", "nearest"):
        place = (count - 1) * q
    else:
        place = count * q - (1.5 if method == "closest_observation" else 1)
    low = _round_down(place)
    rest = place - low
    if method == "lower":
        return low, 0.0
    if method == "higher":
        return -_round_down(-place), 0.0
    if method == "midpoint":
        return low, _choose(rest == 0, 0.0, 0.5)
    if method == "nearest":
        up = (rest > 0.5) | ((rest == 0.5) & (low % 2 == 1))
        return _choose(up, low + 1, low), 0.0
    if method == "inverted_cdf":
        return _choose(rest > 0, low + 1, low), 0.0
    if method == "averaged_inverted_cdf":
        return low, _choose(rest > 0, 1.0, 0.5)
    if method == "closest_observation":
        return _choose((rest == 0) & (low % 2 == 1), low, low + 1), 0.0
    return low, rest


def _limit(place: Any, last: Any) -> Any:
    return clip(place, 0, last) if isinstance(place, Array) else min(max(place, 0), last)


def _interpolate(low: Any, high: Any, rest: Any, kind: Kind) -> Any:
    """Return the value between two, which is exact at both ends."""
    low = low.astype(kind, copy=False)
    if not isinstance(rest, Array) and rest == 0:
        return low
    high = high.astype(kind, copy=False)
    apart = high - low
    if not isinstance(rest, Array):
        return low + apart * rest if rest < 0.5 else high - apart * (1 - rest)
    rest = rest.astype(kind, copy=False)
    between = choose(rest < 0.5, low + apart * rest, high - apart * (1 - rest))
    return choose(rest == 0, low, between)


def _parse_q(q: Any, scale: int) -> tuple["np.ndarray[Any, Any]", Kind | None]:
    """Return fractions as float64, and their own dtype; None of a Python number, which has none."""
    given = asnumpy(q)
    if given.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"q: expected real numbers, got {q!r}")
    fractions = given.astype(np.float64) / scale
    if not ((fractions >= 0) & (fractions <= 1)).all():
        raise ArgumentValueError(
            f"q: quantiles must be in the range [0, {1 if scale == 1 else 100}], got {q!r}"
        )
    if isinstance(q, (int, float)) and not isinstance(q, np.generic):
        return fractions, None
    return fractions, given.dtype if given.dtype.kind == "f" else float64


def _quantiles(  # noqa: PLR0913  the options of the public functions
    x: Any, q: Any, axis: Any, out: Any, method: str, keepdims: Any, weights: Any, scale: int, skips_nan: bool
) -> Array:
    array = to_array(x, "a")
    if array.dtype.kind == "c":
        raise ArgumentTypeError(f"a: expected an array of real numbers, got {array.dtype}")
    if method not in METHODS:
        raise ArgumentValueError(f"method: expected one of {', '.join(map(repr, METHODS))}, got {method!r}")
    if weights is not None and method != "inverted_cdf":
        raise ArgumentValueError(f"method: only 'inverted_cdf' supports weights, got {method!r}")
    fractions, q_kind = _parse_q(q, scale)
    kind = real_kind(array.dtype) if method not in _DISCRETE else array.dtype
    if q_kind is not None and method not in _DISCRETE:
        common = np.result_type(array.dtype, q_kind)
        if common != float64 or default_real() == float64:
            kind = common
    lines, axes = lines_last(array, axis)
    length = lines.shape[-1]
    if length == 0 and not skips_nan:
        raise ArgumentIndexError("a: quantiles of empty arrays are undefined")
    if length and array.dtype.kind == "b" and method not in _DISCRETE:
        raise ArgumentTypeError("a: booleans have no differences; convert them with astype")
    final = final_shape(array.shape, axes, keepdims)
    if length == 0:
        return store_result(out, full((*fractions.shape, *final), math.nan, kind))
    if weights is not None:
        pick = _pick_weighted(lines, _parse_weights(weights, array, axis), skips_nan)
    else:
        ordered = sort(lines)
        pick = _pick_without_nan(ordered) if skips_nan and array.dtype.kind == "f" else _pick(ordered)
    parts = [reshape(pick(float(fraction), method, kind), final) for fraction in fractions.reshape(-1)]
    if fractions.ndim == 0:
        result = parts[0]
    elif parts:
        result = reshape(stack(parts), (*fractions.shape, *final))
    else:
        result = full((*fractions.shape, *final), 0, kind)
    return store_result(out, result)


def _pick(ordered: Array) -> _Pick:
    """Return what finds a quantile of sorted lines; NaN of lines with a NaN, which is their last element."""
    length = ordered.shape[-1]

    def pick(q: float, method: str, kind: Kind) -> Array:
        place, rest = _find_place(length, q, method)
        low, high = _limit(place, length - 1), _limit(place + 1, length - 1)
        found = _interpolate(ordered[..., low], ordered[..., high], rest, kind)
        return choose(isnan(ordered[..., -1]), math.nan, found) if ordered.dtype.kind == "f" else found

    return pick


def _pick_without_nan(ordered: Array) -> _Pick:
    """Return what finds a quantile of the numbers in sorted lines; NaN of lines without any."""
    wide = default_real()
    count = total(~isnan(ordered), axis=-1, keepdims=True, dtype=np.int64).astype(wide)
    last = clip(count - 1, 0, None)

    def at(place: Array) -> Array:
        return take_along_axis(ordered, _limit(place, last).astype(np.int64), axis=-1)[..., 0]

    def pick(q: float, method: str, kind: Kind) -> Array:
        place, rest = _find_place(count, q, method)
        if isinstance(rest, Array):
            rest = rest[..., 0]
        return _interpolate(at(place), at(place + 1), rest, kind)  # type: ignore[no-any-return]

    return pick


def weights_like(array: Array, weights: Any, axis: Any) -> Array:
    """Return weights of the array's shape. Raises TypeError or ValueError for others."""
    values = to_array(weights, "weights")
    if values.shape == array.shape:
        return values
    if axis is None:
        raise ArgumentTypeError(
            f"axis: needed for weights of shape {values.shape} of an array of shape {array.shape}"
        )
    places = parse_axes(axis, array.ndim)
    lengths = tuple(array.shape[place] for place in places)
    if values.shape != lengths:
        raise ArgumentValueError(f"weights: expected the shape {lengths}, got {values.shape}")
    ordered = moveaxis(values, tuple(range(values.ndim)), tuple(np.argsort(np.argsort(places)).tolist()))
    shape = tuple(length if axis in places else 1 for axis, length in enumerate(array.shape))
    return broadcast_to(reshape(ordered, shape), array.shape)


def _parse_weights(weights: Any, array: Array, axis: Any) -> Array:
    """Return weights as lines of the last axis, in the order of the elements of an array."""
    weights = to_array(weights, "weights")
    if weights.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"weights: expected real numbers, got {weights.dtype}")
    weights = weights_like(array, weights, axis)
    if weights.dtype.kind in "if" and bool(any_of(weights < 0)):
        raise ArgumentValueError("weights: expected at least 0")
    return lines_last(weights, axis)[0].astype(default_real(), copy=False)


def _pick_weighted(lines: Array, weights: Array, skips_nan: bool) -> _Pick:
    """Return what finds the first element of each line up to which weights add up to a share of them."""
    if skips_nan and lines.dtype.kind == "f":
        weights = choose(isnan(lines), 0, weights)
    order = argsort(lines, axis=-1)
    ordered = take_along_axis(lines, order, axis=-1)
    shares = cumsum(take_along_axis(weights, order, axis=-1), axis=-1)
    shares = shares / shares[..., -1:]
    empty_line = isnan(shares[..., -1])
    if not skips_nan and bool(any_of(empty_line)):
        raise ArgumentValueError("weights: they include NaN or infinity, or are all zero")
    shares = choose(shares == 0, -1, shares)  # elements of no weight are no quantile
    last = lines.shape[-1] - 1

    def pick(q: float, method: str, kind: Kind) -> Array:
        place = clip(total(shares < q, axis=-1, keepdims=True, dtype=np.int64), 0, last)
        found = take_along_axis(ordered, place, axis=-1)[..., 0].astype(kind, copy=False)
        if lines.dtype.kind != "f":
            return found
        return choose(empty_line if skips_nan else isnan(ordered[..., -1]), math.nan, found)

    return pick


@repeat_calls
def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """Return quantiles along axes. See `numpy.quantile`.

    Parameters
    ----------
    q
        Fractions from 0 to 1. The result has their axes first.
    method
        One of NumPy's, such as "linear", "lower", "higher", "midpoint" and "nearest".
    weights
        None, or one for each element, or for each element along the axes: with the method "inverted_cdf".

    Raises
    ------
    TypeError
        The array is complex, or a boolean one whose elements would be interpolated.
    ValueError
        A fraction is out of range, there is no such method, or it does not take weights; weights are
        negative, or all zero.
    IndexError
        There are no elements.

    Examples
    --------
    >>> vnp.quantile(vnp.arange(5), 0.25)
    Array(1., dtype=float64)
    """
    return _quantiles(a, q, axis, out, method, keepdims, weights, 1, False)


@repeat_calls
def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """Return percentiles along axes: `quantile` of `q` / 100. See `numpy.percentile`.

    Examples
    --------
    >>> vnp.percentile(vnp.arange(5), [25, 50])
    Array([1., 2.], dtype=float64)
    """
    return _quantiles(a, q, axis, out, method, keepdims, weights, 100, False)


@repeat_calls
def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """Return quantiles of the elements that are not NaN; NaN where there are none. See `quantile`.

    Examples
    --------
    >>> vnp.nanquantile(vnp.asarray([5, vnp.nan, 3]), 0.5)
    Array(4., dtype=float64)
    """
    return _quantiles(a, q, axis, out, method, keepdims, weights, 1, True)


@repeat_calls
def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """Return percentiles of the elements that are not NaN; NaN where there are none. See `quantile`.

    Examples
    --------
    >>> vnp.nanpercentile(vnp.asarray([5, vnp.nan, 3]), 50)
    Array(4., dtype=float64)
    """
    return _quantiles(a, q, axis, out, method, keepdims, weights, 100, True)


def _middle(low: Array, high: Array, kind: Kind) -> Array:
    # sums of float16 overflow where their halves do not
    wide = np.float32 if kind == np.float16 else kind
    return ((low.astype(wide, copy=False) + high.astype(wide, copy=False)) / 2).astype(kind, copy=False)


@repeat_calls
def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """Return medians along axes; NaN of no elements, and where one is NaN. See `numpy.median`.

    Examples
    --------
    >>> vnp.median(vnp.asarray([5, 1, 3]))
    Array(3., dtype=float64)
    """
    array = to_array(a, "a")
    lines, axes = lines_last(array, axis)
    length = lines.shape[-1]
    kind = real_kind(array.dtype)
    final = final_shape(array.shape, axes, keepdims)
    if length == 0:
        result = full(final, math.nan, kind)
    else:
        ordered = sort(lines)
        low, high = ordered[..., (length - 1) // 2], ordered[..., length // 2]
        found = low.astype(kind, copy=False) if length % 2 else _middle(low, high, kind)
        if array.dtype.kind in "fc":
            found = choose(isnan(ordered[..., -1]), math.nan, found)
        result = reshape(found, final)
    return store_result(out, result)


@repeat_calls
def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """Return medians of the elements that are not NaN; NaN where there are none. See `numpy.nanmedian`.

    Examples
    --------
    >>> vnp.nanmedian(vnp.asarray([5, vnp.nan, 3]))
    Array(4., dtype=float64)
    """
    array = to_array(a, "a")
    if array.dtype.kind not in "fc" or array.size == 0:
        return median(array, axis, out, overwrite_input, keepdims)
    lines, axes = lines_last(array, axis)
    ordered = sort(lines)
    count = total(~isnan(ordered), axis=-1, keepdims=True, dtype=np.int64)
    low = take_along_axis(ordered, clip(count - 1, 0, None) // 2, axis=-1)
    high = take_along_axis(ordered, clip(count // 2, 0, ordered.shape[-1] - 1), axis=-1)
    found = choose(count % 2 == 1, low, _middle(low, high, array.dtype))
    found = choose(count == 0, math.nan, found)
    result = reshape(found, final_shape(array.shape, axes, keepdims))
    return store_result(out, result)
