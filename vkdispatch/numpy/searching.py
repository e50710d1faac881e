"""Sorting, searching, and orders of several keys."""

from typing import Any, NamedTuple, overload

import numpy as np

from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics import manipulation
from vkdispatch.numpy.basics.creation import zeros
from vkdispatch.numpy.basics.elementwise import choose, isnan
from vkdispatch.numpy.basics.joining import concatenate, stack
from vkdispatch.numpy.basics.reductions import any as any_of
from vkdispatch.numpy.basics.reductions import apply_along, count_nonzero, cumsum
from vkdispatch.numpy.basics.sequences import arange
from vkdispatch.numpy.core.application import broadcast_shapes
from vkdispatch.numpy.core.array import Array, array_from, parse_index, parse_operand, store_result, value_of
from vkdispatch.numpy.core.conversion import asarray, from_numpy, parse_value, require_choice, to_array
from vkdispatch.numpy.core.kernels import as_buffer, as_operand, whole_view
from vkdispatch.numpy.core.memory import Shape, device_of, int64
from vkdispatch.numpy.core.repeating import repeat_calls
from vkdispatch.numpy.indexing import nonzero
from vkdispatch.rearrange.taking import take_along_axis as take_lines
from vkdispatch.selection.searchsorted import searchsorted as search
from vkdispatch.selection.topk import topk as find_largest
from vkdispatch.sorting import functions as sorting

# ---- Sorting, searching, sets ----------------------------------------------------------------------------


@overload
def where(condition: Any, /) -> tuple[Array, ...]: ...


@overload
def where(condition: Any, x: Any, y: Any, /) -> Array: ...


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Return `x` where a condition holds, and `y` elsewhere. See `numpy.where`.

    Without `x` and `y`: the indices of elements that are true, as from `nonzero`. Raises ValueError if only
    one of them is given.

    Examples
    --------
    >>> vnp.where(vnp.asarray([True, False]), vnp.asarray([1, 2]), 0)
    Array([1, 0], dtype=int64)
    """
    if (x is None) != (y is None):
        raise ArgumentValueError("x, y: expected both or neither")
    return nonzero(condition) if x is None and y is None else choose(condition, x, y)


def flatnonzero(x: Any) -> Array:
    """Return the flat indices of elements that are not zero. See `numpy.flatnonzero`.

    Examples
    --------
    >>> vnp.flatnonzero(vnp.asarray([0, 3, 0, 5]))
    Array([1, 3], dtype=int64)
    """
    return nonzero(manipulation.reshape(x, -1))[0]


def argwhere(x: Any) -> Array:
    """Return the indices of elements that are not zero, a row for each element. See `numpy.argwhere`.

    Examples
    --------
    >>> vnp.argwhere(vnp.asarray([[0, 1], [1, 0]]))
    Array([[0, 1],
           [1, 0]], dtype=int64)
    """
    array = to_array(x, "x")
    if not array.ndim:
        return zeros((int(bool(array)), 0), int64, device=array.device)
    return stack(nonzero(array), axis=1)


@repeat_calls
def sort(
    x: Any, /, axis: Any = -1, kind: Any = None, *, descending: bool = False, stable: bool | None = True
) -> Array:
    """Return a sorted copy; the sort is stable, and NaN comes after all numbers. See `numpy.sort`.

    Examples
    --------
    >>> vnp.sort(vnp.asarray([3, 1, 2]))
    Array([1, 2, 3], dtype=int64)
    """
    value = parse_value(x)
    return array_from(apply_along(sorting.sort, value, axis, descending=descending))


@repeat_calls
def argsort(
    x: Any, /, axis: Any = -1, kind: Any = None, *, descending: bool = False, stable: bool | None = True
) -> Array:
    """Return the indices that would sort the array; equal elements keep their order. See `numpy.argsort`.

    Examples
    --------
    >>> vnp.argsort(vnp.asarray([3, 1, 2]))
    Array([1, 2, 0], dtype=int64)
    """
    value = parse_value(x)
    if not value.shape and axis in (-1, 0):
        return zeros((1,), int64, device=device_of(value))
    buffer = apply_along(sorting.argsort, value, axis, descending=descending)
    return array_from(buffer).astype(int64, copy=False)


@repeat_calls
def searchsorted(x1: Any, /, v: Any, side: str = "left", sorter: Any = None) -> Array:
    """Return where elements of `v` go in the sorted array `x1`. See `numpy.searchsorted`.

    Raises
    ------
    ValueError
        `x1` has not one axis, or `side` is neither "left" nor "right".

    Examples
    --------
    >>> vnp.searchsorted(vnp.asarray([1, 3, 5]), vnp.asarray([0, 3, 6]))
    Array([0, 1, 3], dtype=int64)
    """
    require_choice(side, "side", "left", "right")
    first = to_array(x1, "x1")
    second = v if isinstance(v, Array) else _values_beside(v, first, "v")
    if first.ndim != 1:
        raise ArgumentValueError(f"x1: expected one axis, got the shape {first.shape}")
    if sorter is not None:
        first = take(first, sorter)
    kind = manipulation.result_type(first, second)
    first, second = first.astype(kind, copy=False), second.astype(kind, copy=False)
    if second.size == 0 or first.size == 0:
        return zeros(second.shape, int64, device=second.device)
    if kind.kind == "c":
        return _search_by_sort(first, second, side)
    sorted_ = as_buffer(whole_view(value_of(first)), (first.size,))
    found = search(sorted_, as_buffer(whole_view(value_of(second)), (second.size,)), side=side)
    return array_from(found, second.shape).astype(int64, copy=False)


def _values_beside(value: Any, array: Array, name: str) -> Array:
    """Return a number or a sequence as an array: a Python int with another's dtype, if that holds it."""
    if not isinstance(value, (list, tuple)):
        parse_operand(value, name)
    limits = np.iinfo(array.dtype) if type(value) is int and array.dtype.kind in "iu" else None
    is_exact = limits is not None and limits.min <= value <= limits.max
    return asarray(value, dtype=array.dtype if is_exact else None, device=array.device)


def _search_by_sort(first: Array, second: Array, side: str) -> Array:
    """Return where values go, by sorting them together with the sorted array: for complex numbers."""
    values = manipulation.reshape(second, -1)
    order = argsort(concatenate([values, first] if side == "left" else [first, values]))
    if side == "left":
        is_value, places = order < values.size, order
    else:
        is_value, places = order >= first.size, order - first.size
    before = cumsum((~is_value).astype(int64))
    found = zeros(values.shape, int64, device=values.device)
    found[places[is_value]] = before[is_value]
    return manipulation.reshape(found, second.shape)


@repeat_calls
def take(x: Any, /, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Array:
    """Return elements, or parts along an axis, at indices. See `numpy.take`.

    Parameters
    ----------
    mode
        What is done about indices out of bounds: "raise" (an IndexError, at the latest with the next wait),
        "wrap" or "clip".

    Examples
    --------
    >>> vnp.take(vnp.asarray([10, 20, 30]), vnp.asarray([2, 0]))
    Array([30, 10], dtype=int64)
    """
    array = to_array(x, "x")
    index = indices if isinstance(indices, Array) else np.asarray(indices)
    if not index.size and index.dtype.kind == "f":
        index = index.astype(np.int64)
    if index.dtype.kind not in "iu":
        raise ArgumentTypeError(f"indices: expected integers, got {index.dtype}")
    require_choice(mode, "mode", "raise", "wrap", "clip")
    array, place = manipulation.lines_along(array, manipulation.all_axes(axis, array.ndim))
    length = array.shape[place]
    if index.size and not length:
        raise ArgumentIndexError(f"indices: axis {place} has no elements")
    if mode != "raise" and index.dtype.itemsize < 8:  # which may not hold the length
        index = index.astype(np.int64)
    if mode == "wrap":
        index = index % length
    elif mode == "clip":
        last = max(length - 1, 0)
        if isinstance(index, Array):
            index = choose(index < 0, 0, choose(index > last, last, index))
        else:
            index = np.clip(index, 0, last)
    found = array[(*(slice(None),) * place, index)]
    if not index.ndim and isinstance(index, np.ndarray):
        found = found.copy()  # it is a view
    return store_result(out, found)


@repeat_calls
def take_along_axis(x: Any, /, indices: Any, axis: int | None = -1) -> Array:
    """Return one element of each line along an axis for each of its indices. See `numpy.take_along_axis`.

    Raises
    ------
    ValueError
        The arrays have different numbers of axes, or their other axes do not broadcast.
    IndexError
        The indices are no integers, or out of bounds: of those in an Array, with the next wait or read.

    Examples
    --------
    >>> x = vnp.asarray([[3, 1], [2, 5]])
    >>> vnp.take_along_axis(x, vnp.argsort(x, axis=1), axis=1)
    Array([[1, 3],
           [2, 5]], dtype=int64)
    """
    array = to_array(x, "x")
    index = indices if isinstance(indices, Array) else from_numpy(np.asarray(indices), array.device)
    array, place = manipulation.lines_along(array, axis)
    if index.ndim != array.ndim:
        raise ArgumentValueError(f"indices: expected {array.ndim} axes, got {index.ndim}")
    if index.dtype.kind not in "iu":
        raise ArgumentIndexError(f"indices: expected integers, got {index.dtype}")
    length, count = array.shape[place], index.shape[place]
    sides = [manipulation.replace_axis(side.shape, place, 1) for side in (array, index)]
    others = broadcast_shapes(sides, "take_along_axis")
    lines = manipulation.replace_axis(others, place, length)
    shape = manipulation.replace_axis(others, place, count)
    values = array if array.shape == lines else manipulation.broadcast_to(array, lines)
    wanted = index if index.shape == shape else manipulation.broadcast_to(index, shape)
    if not wanted.size:
        return zeros(shape, array.dtype, device=array.device)
    taken = take_lines(as_operand(value_of(values), lines), as_operand(value_of(wanted), shape), place)
    return array_from(taken)


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def unique_all(x: Any, /) -> UniqueAll:
    """Return the different elements in order, first places, inverse and counts. See `numpy.unique_all`.

    Each NaN is different from all others.

    Examples
    --------
    >>> vnp.unique_all(vnp.asarray([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int64)
    """
    array = to_array(x, "x")
    flat = manipulation.reshape(array, -1)
    order = argsort(flat)
    return _first_of_runs(flat[order], order, array.shape)


def unique_counts(x: Any, /) -> UniqueCounts:
    """Return the different elements in order, and how often each occurs. See `numpy.unique_counts`.

    Examples
    --------
    >>> values, counts = vnp.unique_counts(vnp.asarray([3, 1, 3]))
    >>> counts
    Array([1, 2], dtype=int64)
    """
    ordered = sort(x, axis=None)
    if not ordered.size:
        return UniqueCounts(ordered, zeros((0,), int64, device=ordered.device))
    starts = nonzero(_are_first(ordered))[0]
    return UniqueCounts(ordered[starts], _lengths(starts, ordered.size))


def unique_inverse(x: Any, /) -> UniqueInverse:
    """Return the different elements in order, and the place of each element among them.

    Examples
    --------
    >>> values, positions = vnp.unique_inverse(vnp.asarray([3, 1, 3]))
    >>> positions
    Array([1, 0, 1], dtype=int64)
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Array:
    """Return the different elements in order. See `numpy.unique_values`.

    Examples
    --------
    >>> vnp.unique_values(vnp.asarray([3, 1, 3]))
    Array([1, 3], dtype=int64)
    """
    ordered = sort(x, axis=None)
    return ordered[_are_first(ordered)] if ordered.size else ordered


def unique(
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Return the different elements, or parts along an axis, in order. See `numpy.unique`.

    With `equal_nan` all NaNs are one element, but not within parts along an axis of several axes.

    Examples
    --------
    >>> vnp.unique(vnp.asarray([3, 1, 3, 2]))
    Array([1, 2, 3], dtype=int64)
    """
    array = to_array(x, "x")
    values: Array
    indices = inverse = counts = None
    if axis is not None:
        values, indices, inverse, counts = _unique_along(array, manipulation.parse_axis(axis, array.ndim))
    elif return_index or return_inverse:
        values, indices, inverse, counts = unique_all(array)
    elif return_counts:
        values, counts = unique_counts(array)
    else:
        values = unique_values(array)
    if equal_nan and (axis is None or array.ndim == 1) and array.dtype.kind in "fc" and values.size > 1:
        nans = int(count_nonzero(isnan(values)))
        if nans > 1:
            first = values.size - nans
            values = values[: first + 1]
            if counts is not None:
                of_nan = counts[first:].sum()
                counts = counts[: first + 1].copy()
                counts[first] = of_nan
            if indices is not None and inverse is not None:
                indices = indices[: first + 1]
                inverse = choose(inverse > first, first, inverse)
    asked = ((return_index, indices), (return_inverse, inverse), (return_counts, counts))
    result = [values, *(each for is_asked, each in asked if is_asked)]
    return result[0] if len(result) == 1 else tuple(result)


def _unique_along(array: Array, axis: int) -> UniqueAll:
    """Return the different parts along an axis, which are sorted by their elements, the first ones first."""
    parts = manipulation.moveaxis(array, axis, 0)
    count = parts.shape[0]
    rows = manipulation.reshape(parts, (count, array.size // count if count else 0))
    order = arange(count, device=array.device)
    for column in reversed(range(rows.shape[1])):
        order = order[argsort(rows[order, column])]
    found = _first_of_runs(rows[order], order, (count,))
    values = manipulation.moveaxis(parts[found.indices], 0, axis)
    return UniqueAll(values, found.indices, found.inverse_indices, found.counts)


def _first_of_runs(ordered: Array, order: Array, shape: Shape) -> UniqueAll:
    """Return the first of equal neighbours, given elements or rows in order, and from where they come."""
    size = ordered.shape[0]
    if size == 0:
        nothing = zeros((0,), int64, device=ordered.device)
        return UniqueAll(ordered, nothing, zeros(shape, int64, device=ordered.device), nothing)
    differs = _are_first(ordered)
    inverse = zeros((size,), int64, device=ordered.device)
    inverse[order] = cumsum(differs.astype(int64)) - 1
    starts = nonzero(differs)[0]
    inverse = manipulation.reshape(inverse, shape)
    return UniqueAll(ordered[starts], order[starts], inverse, _lengths(starts, size))


def _are_first(ordered: Array) -> Array:
    """Return which elements or rows, of one at least, differ from those before them."""
    steps = ordered[1:] != ordered[:-1]
    if ordered.ndim > 1:
        steps = any_of(steps, axis=1)
    return concatenate([from_numpy(np.ones(1, bool), ordered.device), steps])


def _lengths(starts: Array, size: int) -> Array:
    """Return how many elements there are from each start to the next, or to the end."""
    return concatenate([starts[1:], from_numpy(np.asarray([size]), starts.device)]) - starts


@repeat_calls
def isin(
    x1: Any, /, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Array:
    """Return which elements are among others. See `numpy.isin`; `assume_unique` changes nothing.

    Examples
    --------
    >>> vnp.isin(vnp.arange(4), vnp.asarray([1, 3]))
    Array([False,  True, False,  True], dtype=bool)
    """
    first = x1 if isinstance(x1, Array) else None
    if first is not None and isinstance(test_elements, np.ndarray):
        test_elements = from_numpy(test_elements, first.device)
    if first is None or isinstance(test_elements, Array):
        second = to_array(test_elements, "test_elements")
    else:
        second = _values_beside(test_elements, first, "test_elements")
    first = _values_beside(x1, second, "x1") if first is None else first
    second = manipulation.reshape(second, -1)
    if second.size == 0 or first.size == 0:
        found = zeros(first.shape, bool, device=first.device)
    else:
        ordered = sort(second)
        place = searchsorted(ordered, first)
        found = ordered[choose(place >= second.size, second.size - 1, place)] == first
    return ~found if invert else found


# ---- Orders of several keys, and parts of orders ---------------------------------------------------------


@repeat_calls
def lexsort(keys: Any, axis: int = -1) -> Array:
    """Return the indices that sort by several keys, of which the last counts most. See `numpy.lexsort`.

    Parameters
    ----------
    keys
        A sequence of arrays of one shape, or an array whose first axis counts them.

    Raises
    ------
    ValueError
        There are no keys, or their shapes differ.

    Examples
    --------
    >>> vnp.lexsort((vnp.asarray([2, 1, 1]), vnp.asarray([0, 1, 0])))
    Array([2, 0, 1], dtype=int64)
    """
    each = [to_array(key, "keys") for key in keys]
    if not each or any(key.shape != each[0].shape for key in each):
        raise ArgumentValueError(f"keys: expected arrays of one shape, got {[key.shape for key in each]}")
    if not each[0].ndim:
        return zeros((), int64, device=each[0].device)
    place = manipulation.parse_axis(axis, each[0].ndim)
    order = argsort(each[0], axis=place)
    for key in each[1:]:
        inner = argsort(take_along_axis(key, order, axis=place), axis=place)
        order = take_along_axis(order, inner, axis=place)
    return order


def _check_kth(x: Any, kth: Any, axis: int | None) -> None:
    array = to_array(x, "a")
    length = array.size if axis is None else array.shape[manipulation.parse_axis(axis, array.ndim)]
    places = np.asarray(kth)
    if places.dtype.kind not in "iu":
        raise ArgumentTypeError(f"kth: expected ints, got {kth!r}")
    if array.size and ((places < -length) | (places >= length)).any():
        raise ArgumentValueError(f"kth: out of bounds for {length} elements: {kth!r}")


@repeat_calls
def partition(a: Any, kth: Any, axis: int | None = -1, kind: Any = None) -> Array:
    """Return a copy with no larger elements before the place `kth`, and no smaller ones behind it.

    All elements are sorted. Raises ValueError if `kth` is out of bounds. See `numpy.partition`.

    Examples
    --------
    >>> vnp.partition(vnp.asarray([5, 1, 4, 2]), 1)[:2]
    Array([1, 2], dtype=int64)
    """
    _check_kth(a, kth, axis)
    return sort(a, axis=axis)


@repeat_calls
def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: Any = None) -> Array:
    """Return indices that partition an array. See `partition` and `numpy.argpartition`.

    Examples
    --------
    >>> x = vnp.asarray([5, 1, 4, 2])
    >>> x[vnp.argpartition(x, 1)][:2]
    Array([1, 2], dtype=int64)
    """
    _check_kth(a, kth, axis)
    return argsort(a, axis=axis)


@repeat_calls
def topk(x: Any, k: int, /, *, axis: int | None = -1, largest: bool = True) -> tuple[Array, Array]:
    """Return the `k` largest elements along an axis, or the smallest, and their indices: `torch.topk`.

    The largest (or smallest) one is the first. NaN is larger than any number; of equal elements, those with
    smaller indices are taken first.

    Raises
    ------
    ValueError
        `k` is negative, or larger than the axis.

    Examples
    --------
    >>> values, places = vnp.topk(vnp.asarray([5, 1, 4, 2]), 2)
    >>> values
    Array([5, 4], dtype=int64)
    >>> places
    Array([0, 2], dtype=int64)
    """
    array, k = to_array(x), parse_index(k, "k")
    if not array.ndim and axis is not None:
        raise ArgumentValueError("x: expected at least one axis")
    array, place = manipulation.lines_along(array, axis)
    values, indices = apply_along(find_largest, value_of(array), place, k=k, largest=largest)
    return array_from(values), array_from(indices)
