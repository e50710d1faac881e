"""Sorting, searching, sets."""

from typing import Any, NamedTuple

import numpy as np

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.core.array import Array, array_of, value_of
from vkdispatch.numpy.core.conversion import asarray
from vkdispatch.numpy.core.dtypes import int64, numpy_type
from vkdispatch.numpy.core.kernels import as_buffer, as_operand
from vkdispatch.numpy.core.memory import Shape, Storage, View
from vkdispatch.numpy.creation import zeros
from vkdispatch.numpy.elementwise import choose
from vkdispatch.numpy.gathering import array_from, nonzero, whole_view
from vkdispatch.numpy.lines import lines as lines_of
from vkdispatch.numpy.lines import parse_value
from vkdispatch.numpy.manipulation import parse_axis, reshape, result_type
from vkdispatch.selection.searchsorted import searchsorted as search
from vkdispatch.sorting import functions as sorting


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Return `x` where a condition holds, and `y` elsewhere. See `numpy.where`.

    Without `x` and `y`: the indices of elements that are true, as from `nonzero`.
    """
    return nonzero(condition) if x is None and y is None else choose(condition, x, y)


def flatnonzero(x: Any) -> Array:
    """Return the flat indices of elements that are not zero. See `numpy.flatnonzero`."""
    return nonzero(reshape(x, -1))[0]


def argchoose(x: Any) -> Array:
    """Return the indices of elements that are not zero, a row for each element. See `numpy.argwhere`."""
    from vkdispatch.numpy.manipulation import stack

    return stack(nonzero(x), axis=1)


def _sorted_lines(x: Any, axis: Any) -> tuple[Any, Shape, int, Shape]:
    value = parse_value(x)
    if axis is None:
        value = value_of(reshape(array_of(value), -1))
        axis = 0
    place = parse_axis(axis, len(value.shape))
    lines, shape, along = lines_of(value, (place,))
    return lines, shape, along, value.shape


def sort(
    x: Any, /, *, axis: Any = -1, descending: bool = False, stable: bool = True, kind: Any = None
) -> Array:
    """Return a sorted copy. See `numpy.sort`."""
    lines, shape, along, own = _sorted_lines(x, axis)
    if lines.size == 0:
        return array_of(lines).copy()
    buffer = sorting.sort(as_operand(lines, shape), axis=along, descending=descending)
    return array_of(View(Storage(buffer), own, numpy_type(buffer.var_type)))


def argsort(
    x: Any, /, *, axis: Any = -1, descending: bool = False, stable: bool = True, kind: Any = None
) -> Array:
    """Return the indices that would sort the array. See `numpy.argsort`."""
    lines, shape, along, own = _sorted_lines(x, axis)
    if lines.size == 0:
        return zeros(own, int64)
    buffer = sorting.argsort(as_operand(lines, shape), axis=along, descending=descending)
    return array_of(View(Storage(buffer), own, numpy_type(buffer.var_type))).astype(int64, copy=False)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Array:
    """Return where elements of `x2` go in the sorted array `x1`. See `numpy.searchsorted`."""
    first = x1 if isinstance(x1, Array) else asarray(x1)
    second = x2 if isinstance(x2, Array) else asarray(x2)
    if first.ndim != 1:
        raise ArgumentValueError(f"x1: expected one axis, got the shape {first.shape}")
    if sorter is not None:
        first = take(first, sorter)
    kind = result_type(first, second)
    first, second = first.astype(kind, copy=False), second.astype(kind, copy=False)
    if second.size == 0 or first.size == 0:
        return zeros(second.shape, int64)
    sorted_ = as_buffer(whole_view(value_of(first)), (first.size,))
    found = search(sorted_, as_buffer(whole_view(value_of(second)), (second.size,)), side=side)
    return array_from(found, second.shape).astype(int64, copy=False)


def take(x: Any, indices: Any, /, *, axis: Any = None, out: Any = None, mode: str = "raise") -> Array:
    """Return elements, or parts along an axis, at indices. See `numpy.take`.

    Parameters
    ----------
    mode
        What is done about indices out of bounds: "raise" (an IndexError, at the latest with the next wait),
        "wrap" or "clip".
    """
    array = x if isinstance(x, Array) else asarray(x)
    index = indices if isinstance(indices, Array) else asarray(np.asarray(indices))
    if axis is None:
        array, axis = reshape(array, -1), 0
    place = parse_axis(axis, array.ndim)
    length = array.shape[place]
    if mode == "wrap":
        index = index % length
    elif mode == "clip":
        index = choose(index < 0, 0, choose(index >= length, length - 1, index))
    elif mode != "raise":
        raise ArgumentValueError(f"mode: expected 'raise', 'wrap' or 'clip', got {mode!r}")
    found = array[(*(slice(None),) * place, index)]
    if out is not None:
        out[...] = found
        return out  # type: ignore[no-any-return]
    return found


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Array:
    """Return one element of each line along an axis for each of its indices. See `numpy.take_along_axis`."""
    from vkdispatch.numpy.creation import arange

    array = x if isinstance(x, Array) else asarray(x)
    index = indices if isinstance(indices, Array) else asarray(np.asarray(indices))
    place = parse_axis(axis, array.ndim)
    if index.ndim != array.ndim:
        raise ArgumentValueError(f"indices: expected {array.ndim} axes, got {index.ndim}")
    entries: list[Any] = []
    for other, length in enumerate(array.shape):
        own = [1] * array.ndim
        own[other] = length
        entries.append(index if other == place else reshape(arange(length), tuple(own)))
    return array[tuple(entries)]


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
    """
    from vkdispatch.numpy.manipulation import concatenate
    from vkdispatch.numpy.reductions import cumsum

    array = x if isinstance(x, Array) else asarray(x)
    flat = reshape(array, -1)
    if flat.size == 0:
        nothing = zeros((0,), int64)
        return UniqueAll(flat.copy(), nothing, zeros(array.shape, int64), nothing)
    order = argsort(flat)
    ordered = flat[order]
    differs = concatenate([asarray(np.ones(1, bool)), ordered[1:] != ordered[:-1]])
    starts = nonzero(differs)[0]
    values = ordered[starts]
    ends = concatenate([starts[1:], asarray(np.asarray([flat.size]))])
    inverse = zeros(flat.shape, int64)
    inverse[order] = cumsum(differs.astype(int64)) - 1
    return UniqueAll(values, order[starts], reshape(inverse, array.shape), ends - starts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """Return the different elements in order, and how often each occurs. See `numpy.unique_counts`."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """Return the different elements in order, and the place of each element among them."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Array:
    """Return the different elements in order. See `numpy.unique_values`."""
    return unique_all(x).values


def unique(
    x: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """Return the different elements in order; all NaNs count as one. See `numpy.unique`."""
    array = x if isinstance(x, Array) else asarray(x)
    found = unique_all(array)
    values, indices, inverse, counts = found
    if array.dtype.kind in "fc" and values.size > 1:
        from vkdispatch.numpy.elementwise import isnan
        from vkdispatch.numpy.reductions import count_nonzero

        nans = int(count_nonzero(isnan(values)))
        if nans > 1:
            first = values.size - nans
            counts = counts[: first + 1].copy()
            counts[first] = found.counts[first:].sum()
            values, indices = values[: first + 1], indices[: first + 1]
            inverse = choose(inverse > first, first, inverse)
    result = [values]
    if return_index:
        result.append(indices)
    if return_inverse:
        result.append(inverse)
    if return_counts:
        result.append(counts)
    return result[0] if len(result) == 1 else tuple(result)


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Array:
    """Return where elements of `x1` occur in `x2`. See `numpy.isin`."""
    first = x1 if isinstance(x1, Array) else asarray(x1)
    second = reshape(x2 if isinstance(x2, Array) else asarray(x2), -1)
    if second.size == 0 or first.size == 0:
        found = zeros(first.shape, bool)
    else:
        ordered = sort(second)
        place = searchsorted(ordered, first)
        found = ordered[choose(place >= second.size, second.size - 1, place)] == first
    return ~found if invert else found
