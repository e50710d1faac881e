"""Histograms: counts of elements in bins."""

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.numpy.basics.creation import zeros
from vkdispatch.numpy.basics.elementwise import choose
from vkdispatch.numpy.basics.manipulation import reshape, result_type
from vkdispatch.numpy.basics.reductions import max as greatest
from vkdispatch.numpy.basics.reductions import mean
from vkdispatch.numpy.basics.reductions import min as least
from vkdispatch.numpy.basics.reductions import std as deviation
from vkdispatch.numpy.basics.reductions import sum as total
from vkdispatch.numpy.core.array import Array, array_from, parse_count, value_of
from vkdispatch.numpy.core.conversion import asarray, asnumpy, to_array
from vkdispatch.numpy.core.kernels import as_operand
from vkdispatch.numpy.core.memory import Kind, Shape, default_real, float64, int64
from vkdispatch.numpy.core.repeating import repeat_calls
from vkdispatch.numpy.quantiles import percentile
from vkdispatch.numpy.searching import searchsorted
from vkdispatch.selection.histogram import bincount as count_integers
from vkdispatch.selection.histogram import histogram as count_in_bins

_RULES = ("auto", "fd", "doane", "scott", "rice", "sturges", "sqrt")


def _flat(x: Any, name: str) -> tuple[Array, Any]:
    """Return an array, and its elements along one axis as functions on buffers take them."""
    array = to_array(x, name)
    value = value_of(array)
    return array, as_operand(value, (array.size,))


def _flat_weights(weights: Any, shape: Shape) -> Any:
    """Return the weights of elements as functions on buffers take them. Raises ValueError for others."""
    if weights is None:
        return None
    array, operand = _flat(weights, "weights")
    if array.shape != shape:
        raise ArgumentValueError(f"weights: expected the shape {shape}, got {array.shape}")
    return operand


def _bins_of(bins: Any) -> Any:
    """Return a number of bins, or edges as a NumPy array."""
    if isinstance(bins, (int, np.integer)) and not isinstance(bins, bool):
        return int(bins)
    edges = asnumpy(bins)
    if not edges.ndim:
        raise ArgumentTypeError(f"bins: expected an int, edges or a rule, got {bins!r}")
    return edges


def _limits(limits: Any) -> tuple[Any, Any] | None:
    """Return the outer edges as numbers of the host, whose dtypes count in that of the edges."""
    if limits is None:
        return None
    try:
        low, high = (limit.numpy()[()] if isinstance(limit, Array) else limit for limit in limits)
        float(low), float(high)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"range: expected two real numbers, got {limits!r}") from None
    return low, high


@repeat_calls
def histogram(
    a: Any,
    bins: Any = 10,
    range: Sequence[float] | None = None,
    density: bool | None = None,
    weights: Any = None,
) -> tuple[Array, Array]:
    """Return the counts of elements in bins, and the edges of the bins. See `numpy.histogram`.

    Parameters
    ----------
    bins
        The number of bins of equal width, their edges, or a rule for their number; see `histogram_bin_edges`.
    range
        The outer edges; None: the least and the largest element, which are waited for.
    density
        Whether to return a density, whose integral is 1.
    weights
        An array of real numbers of the shape of `a`.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid, or there is no range of finite numbers.
    NotImplementedError
        The device has no float64, and a density, or sums of weights, need it.

    Examples
    --------
    >>> counts, edges = vnp.histogram(vnp.asarray([1, 2, 1, 4]), bins=3)
    >>> counts
    Array([2, 1, 1], dtype=int64)
    >>> edges
    Array([1., 2., 3., 4.], dtype=float64)
    """
    chosen = _edges_by_rule(a, bins, range, weights) if isinstance(bins, str) else _bins_of(bins)
    array, operand = _flat(a, "a")
    factors = _flat_weights(weights, array.shape)
    counts, edges = count_in_bins(operand, chosen, _limits(range), bool(density), factors)
    return array_from(counts), array_from(edges)


def histogram_bin_edges(
    a: Any, bins: Any = 10, range: Sequence[float] | None = None, weights: Any = None
) -> Array:
    """Return the edges of the bins of `histogram`. See `numpy.histogram_bin_edges`.

    Parameters
    ----------
    bins
        A number, edges, or one of the rules "auto", "fd", "doane", "scott", "rice", "sturges" and "sqrt".

    Examples
    --------
    >>> vnp.histogram_bin_edges(vnp.asarray([0, 1, 4]), bins=4)
    Array([0., 1., 2., 3., 4.], dtype=float64)
    """
    array = to_array(a, "a")
    chosen = _edges_by_rule(array, bins, range, weights) if isinstance(bins, str) else _bins_of(bins)
    if not isinstance(chosen, int):
        if chosen.ndim != 1 or (chosen[1:] < chosen[:-1]).any():
            raise ArgumentValueError("bins: expected ascending edges along one axis")
        return asarray(chosen)
    try:
        edges = np.histogram_bin_edges(np.empty(0, _host_kind(array)), chosen, _outer_edges(array, range))
    except ValueError as error:
        raise ArgumentValueError(f"bins: {error}") from None
    return asarray(edges)


def _host_kind(array: Array) -> Kind:
    """Return the dtype in which the host computes edges for an array."""
    return np.dtype(np.uint8) if array.dtype.kind == "b" else array.dtype


def _outer_edges(array: Array, limits: Any) -> tuple[Any, Any]:
    """Return the outer edges of bins: as given, or of the dtype of the elements, for NumPy's rounding."""
    given = _limits(limits)
    if given is None:
        if array.size == 0:
            return 0, 1
        first, last = (each.numpy().astype(_host_kind(array))[()] for each in (least(array), greatest(array)))
        given = first, last
        name = "a: its range"
    else:
        name = "range"
    low, high = given
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ArgumentValueError(f"{name}: expected finite numbers, got {low} and {high}")
    if low > high:
        raise ArgumentValueError(f"{name}: expected ascending numbers, got {low} and {high}")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _edges_by_rule(a: Any, rule: str, limits: Any, weights: Any) -> int:
    """Return the number of bins that a rule gives, from a few statistics, which are waited for."""
    if rule not in _RULES:
        if rule == "stone":
            raise UnsupportedError("bins: 'stone' is not implemented; use another rule, such as 'auto'")
        raise ArgumentValueError(f"bins: expected a number, edges or one of {_RULES}, got {rule!r}")
    if weights is not None:
        raise ArgumentTypeError("weights: rules for the number of bins do not support weights; pass bins=")
    array = reshape(to_array(a, "a"), -1)
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    if limits is not None and array.size:
        low, high = _limits(limits) or (0, 0)
        array = array[(array >= low) & (array <= high)]
    if not array.size:
        return 1
    low, high = _outer_edges(array, limits)
    width = _width(array, rule)
    if array.dtype.kind in "iu" and 0 < width < 1:
        width = 1.0
    return math.ceil((float(high) - float(low)) / width) if width else 1


def _width(x: Array, rule: str) -> float:
    count = x.size
    span: float = float(greatest(x).item()) - float(least(x).item())
    if rule == "sqrt":
        return span / math.sqrt(count)
    if rule == "rice":
        return span / (2 * math.cbrt(count))
    if rule == "sturges":
        return span / (math.log2(count) + 1)
    if rule == "scott":
        return math.cbrt(24 * math.sqrt(math.pi) / count) * float(deviation(x).item())
    if rule == "doane":
        if count <= 2:
            return 0.0
        spread = float(deviation(x).item())
        if spread == 0:
            return 0.0
        skew = abs(float(mean(((x - mean(x)) / spread) ** 3).item()))
        error = math.sqrt(6 * (count - 2) / ((count + 1) * (count + 3)))
        return span / (1 + math.log2(count) + math.log2(1 + skew / error))
    quarters = percentile(x, [75, 25]).numpy()
    robust = 2 * float(quarters[0] - quarters[1]) / math.cbrt(count)
    if rule == "fd":
        return robust
    return min(max(robust, span / math.sqrt(count) / 2), _width(x, "sturges"))


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Array, list[Array]]:
    """Return the counts of points in bins of several dimensions, and edges. See `numpy.histogramdd`.

    Parameters
    ----------
    sample
        Points as rows of a matrix, or a sequence of arrays of coordinates.
    bins
        The number of bins along each dimension, or one for all, or edges along each.

    Raises
    ------
    ValueError
        The shapes do not fit.

    Examples
    --------
    >>> counts, edges = vnp.histogramdd(vnp.asarray([[0, 0], [0, 1], [1, 1]]), bins=2)
    >>> counts
    Array([[1., 1.],
           [0., 1.]], dtype=float64)
    """
    if isinstance(sample, (list, tuple)):
        columns = [reshape(to_array(coordinates, "sample"), -1) for coordinates in sample]
    else:
        points = to_array(sample, "sample")
        points = reshape(points, (points.size, 1)) if points.ndim == 1 else points
        if points.ndim != 2:
            raise ArgumentValueError(f"sample: expected points as rows, got the shape {points.shape}")
        columns = [points[:, i] for i in builtins.range(points.shape[1])]
    wanted = [bins] * len(columns) if isinstance(bins, (int, np.integer)) else list(bins)
    limits = [None] * len(columns) if range is None else list(range)
    if len(wanted) != len(columns) or len(limits) != len(columns):
        raise ArgumentValueError(f"bins, range: expected one for each of {len(columns)} dimensions")
    if columns:
        common = result_type(*columns)
        columns = [x.astype(common, copy=False) for x in columns]
    edges = [_edges_along(x, n, limit) for x, n, limit in zip(columns, wanted, limits, strict=True)]
    counts = [edge.size - 1 for edge in edges]
    place: Any = None
    for x, each, count in zip(columns, edges, counts, strict=True):
        kind = result_type(x, each)
        own = searchsorted(each.astype(kind, copy=False), x.astype(kind, copy=False), side="right") - 1
        own = choose(x == each[-1], count - 1, own)
        # points outside, of which one coordinate is enough, are not counted
        inside = (own >= 0) & (own < count)
        before = 0 if place is None else place * count
        bad = ~inside if place is None else ~inside | (place < 0)
        place = choose(bad, -1, before + own)
    if place.size == 0:
        found = zeros((math.prod(counts),), int64 if weights is None else default_real())
    else:
        found = count_numbers(place, weights, math.prod(counts))
    found = reshape(found, tuple(counts)).astype(default_real(), copy=False)
    if density:
        whole = total(found)
        for axis, each in enumerate(edges):
            widths = each[1:] - each[:-1]
            found = found / reshape(widths, (-1, *(1,) * (len(edges) - axis - 1)))
        found = found / whole
    return found, edges


def _edges_along(x: Array, bins: Any, limits: Any) -> Array:
    """Return the edges along one dimension, with NumPy's bits: of a given range, they are float64."""
    chosen = _bins_of(bins)
    if not isinstance(chosen, int):
        return histogram_bin_edges(x, chosen)
    if chosen < 1:
        raise ArgumentValueError(f"bins: expected at least 1, got {chosen}")
    edges = np.linspace(*_outer_edges(x, limits), chosen + 1)
    if not np.isfinite(edges).all():
        raise ArgumentValueError(f"sample: {edges.dtype} does not hold the width of its range")
    if x.dtype != float64 and edges.dtype == float64:
        edges = edges.astype(default_real())
    return asarray(edges)


@repeat_calls
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Array, Array, Array]:
    """Return the counts of points of the plane in bins, and edges. See `numpy.histogram2d`.

    Examples
    --------
    >>> counts, *edges = vnp.histogram2d(vnp.asarray([0, 0, 1]), vnp.asarray([0, 1, 1]), bins=2)
    >>> counts
    Array([[1., 1.],
           [0., 1.]], dtype=float64)
    """
    if not isinstance(bins, (int, np.integer)):
        one = not isinstance(bins, (list, tuple)) or len(bins) not in (1, 2)
        bins = [bins, bins] if one else [bins[0], bins[-1]]
    found, edges = histogramdd([x, y], bins, range, density, weights)
    return found, edges[0], edges[1]


def count_numbers(x: Array, weights: Any, size: int) -> Array:
    """Return how often each number below `size` occurs; others are not counted. It does not wait."""
    own = None if weights is None else _flat(weights, "weights")[1]
    return array_from(count_integers(_flat(x, "x")[1], own, 0, size))


@repeat_calls
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Array:
    """Return how often each number from 0 on occurs, or sums of weights. See `numpy.bincount`.

    The largest number is waited for.

    Raises
    ------
    TypeError
        `x` has no integers.
    ValueError
        A number is negative, or `x` has other than one axis.

    Examples
    --------
    >>> vnp.bincount(vnp.asarray([0, 1, 1, 3]))
    Array([1, 2, 0, 1], dtype=int64)
    """
    array, operand = _flat(x, "x")
    if array.ndim != 1:
        raise ArgumentValueError(f"x: expected one axis, got the shape {array.shape}")
    if array.dtype.kind not in "biu" and (array.size or isinstance(x, Array)):
        raise ArgumentTypeError(f"x: expected integers, got {array.dtype}; use astype")
    fewest = parse_count(minlength, "minlength")
    factors = _flat_weights(weights, array.shape)
    if not array.size:
        return zeros((fewest,), int64 if weights is None else default_real())
    return array_from(count_integers(operand, factors, fewest))


@repeat_calls
def digitize(x: Any, bins: Any, right: bool = False) -> Array:
    """Return the numbers of the bins that elements are in. See `numpy.digitize`.

    Parameters
    ----------
    bins
        Edges, ascending or descending. They are read.
    right
        Whether bins include their right edges instead of their left ones.

    Raises
    ------
    ValueError
        `bins` are not monotonic.

    Examples
    --------
    >>> vnp.digitize(vnp.asarray([0.5, 1.5, 9.0]), vnp.asarray([1, 2, 3]))
    Array([0, 1, 3], dtype=int64)
    """
    array = to_array(x)
    edges = asnumpy(bins)
    if edges.ndim != 1:
        raise ArgumentValueError(f"bins: expected one axis, got the shape {edges.shape}")
    if array.dtype.kind == "c" or edges.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"x, bins: expected real numbers, got {array.dtype} and {edges.dtype}")
    descending = bool((edges[1:] < edges[:-1]).any())
    ascending = edges[::-1] if descending else edges
    # NaN is the largest
    if not ((ascending[:-1] <= ascending[1:]) | np.isnan(ascending[1:])).all():
        raise ArgumentValueError("bins: expected ascending or descending edges")
    found = searchsorted(asarray(ascending), array, side="left" if right else "right")
    return edges.size - found if descending else found
