"""Sorting, searching, sets."""

from typing import Any, NamedTuple

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
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
from vkdispatch.selection.topk.functions import topk as find_largest
from vkdispatch.sorting import functions as sorting


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Return `x` where a condition holds, and `y` elsewhere. See `numpy.where`.

    Without `x` and `y`: the indices of elements that are true, as from `nonzero`.
    """
    return nonzero(condition) if x is None and y is None else choose(condition, x, y)


def flatnonzero(x: Any) -> Array:
    """Return the flat indices of elements that are not zero. See `numpy.flatnonzero`."""
    return nonzero(reshape(x, -1))[0]


def argwhere(x: Any) -> Array:
    """Return the indices of elements that are not zero, a row for each element. See `numpy.argwhere`."""
    from vkdispatch.numpy.manipulation import stack

    array = x if isinstance(x, Array) else asarray(x)
    if not array.ndim:
        return zeros((int(bool(array)), 0), int64)
    return stack(nonzero(array), axis=1)


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
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Return the different elements in order. See `numpy.unique`.

    Parameters
    ----------
    x
        An array.
    return_index, return_inverse, return_counts
        Whether to return the places of the first ones, the place of each element among the results, and how
        often each occurs.
    axis
        Compare the parts along an axis instead of elements.
    equal_nan
        Whether all NaNs count as one.
    sorted
        Results are always in order.
    """
    array = x if isinstance(x, Array) else asarray(x)
    if axis is None:
        values, indices, inverse, counts = unique_all(array)
        if equal_nan and array.dtype.kind in "fc" and values.size > 1:
            values, indices, inverse, counts = _join_nans(values, indices, inverse, counts)
    else:
        values, indices, inverse, counts = _unique_parts(array, axis)
    result = [values]
    if return_index:
        result.append(indices)
    if return_inverse:
        result.append(inverse)
    if return_counts:
        result.append(counts)
    return result[0] if len(result) == 1 else tuple(result)


def _join_nans(values: Array, indices: Array, inverse: Array, counts: Array) -> tuple[Array, ...]:
    """Take the NaNs at the end of different values as one."""
    from vkdispatch.numpy.elementwise import isnan
    from vkdispatch.numpy.reductions import count_nonzero

    nans = int(count_nonzero(isnan(values)))
    if nans <= 1:
        return values, indices, inverse, counts
    first = values.size - nans
    joined = counts[: first + 1].copy()
    joined[first] = counts[first:].sum()
    return values[: first + 1], indices[: first + 1], choose(inverse > first, first, inverse), joined


def _unique_parts(x: Array, axis: int) -> tuple[Array, ...]:
    """Return the different parts along an axis in order, first places, inverse and counts."""
    from vkdispatch.numpy.manipulation import concatenate, moveaxis
    from vkdispatch.numpy.reductions import any as any_of
    from vkdispatch.numpy.reductions import cumsum

    place = parse_axis(axis, x.ndim)
    moved = moveaxis(x, place, 0)
    count = moved.shape[0]
    if moved.size == 0:
        if count:
            raise ArgumentValueError(f"axis: parts along axis {axis} of the shape {x.shape} have no elements")
        nothing = zeros((0,), int64)
        return x.copy(), nothing, nothing, nothing
    rows = reshape(moved, (count, moved.size // count))
    order = lexsort(rows.T[::-1])
    ordered = rows[order]
    differs = concatenate([asarray(np.ones(1, bool)), any_of(ordered[1:] != ordered[:-1], axis=1)])
    starts = nonzero(differs)[0]
    ends = concatenate([starts[1:], asarray(np.asarray([count]))])
    inverse = zeros((count,), int64)
    inverse[order] = cumsum(differs.astype(int64)) - 1
    first = order[starts]
    return moveaxis(moved[first], 0, place), first, inverse, ends - starts


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


# ---- orders of several keys, parts of orders -----------------------------------------------------


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
    """
    each = [key if isinstance(key, Array) else asarray(key) for key in keys]
    if not each or any(key.shape != each[0].shape for key in each):
        raise ArgumentValueError(f"keys: expected arrays of one shape, got {[key.shape for key in each]}")
    if not each[0].ndim:
        return zeros((), int64)
    place = parse_axis(axis, each[0].ndim)
    order = argsort(each[0], axis=place)
    for key in each[1:]:
        inner = argsort(take_along_axis(key, order, axis=place), axis=place)
        order = take_along_axis(order, inner, axis=place)
    return order


def _check_kth(x: Any, kth: Any, axis: int | None) -> None:
    array = x if isinstance(x, Array) else asarray(x)
    length = array.size if axis is None else array.shape[parse_axis(axis, array.ndim)]
    places = np.asarray(kth)
    if places.dtype.kind not in "iu":
        raise ArgumentTypeError(f"kth: expected ints, got {kth!r}")
    if ((places < -length) | (places >= length)).any():
        raise ArgumentValueError(f"kth: out of bounds for {length} elements: {kth!r}")


def partition(a: Any, kth: Any, axis: int | None = -1, kind: Any = None) -> Array:
    """Return a copy with no larger elements before the place `kth`, and no smaller ones behind it.

    All elements are sorted. Raises ValueError if `kth` is out of bounds. See `numpy.partition`.
    """
    _check_kth(a, kth, axis)
    return sort(a, axis=axis)


def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: Any = None) -> Array:
    """Return indices that partition an array. See `partition` and `numpy.argpartition`."""
    _check_kth(a, kth, axis)
    return argsort(a, axis=axis)


def topk(x: Any, k: int, /, *, axis: int | None = -1, largest: bool = True) -> tuple[Array, Array]:
    """Return the `k` largest elements along an axis, or the smallest, and their indices: `torch.topk`.

    The largest (or smallest) one is the first. NaN is larger than any number; of equal elements, those with
    smaller indices are taken first.

    Raises
    ------
    ValueError
        `k` is negative, or larger than the axis.
    """
    lines, shape, along, own = _sorted_lines(x, axis)
    place = parse_axis(axis, len(own)) if axis is not None else 0
    if not own:
        raise ArgumentValueError("x: expected at least one axis")
    values, indices = find_largest(as_operand(lines, shape), k, along, largest)
    final = (*own[:place], k, *own[place + 1 :])
    return array_from(values, final), array_from(indices, final)
