"""Updates at indices, and reductions between them: the methods `at` and `reduceat` of ufuncs."""

from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics.elementwise import UFUNCS, choose
from vkdispatch.numpy.basics.inputs import asnumpy
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.basics.manipulation import broadcast_to, moveaxis, parse_axis, reshape
from vkdispatch.numpy.basics.sequences import arange
from vkdispatch.numpy.core.array import Array, check_cast, view_of
from vkdispatch.numpy.core.conversion import asarray
from vkdispatch.numpy.sorting.searching import argsort, searchsorted, sort

__all__: list[str] = []

# With what several values for one place are combined before.
_COMBINING = {
    "add": "add",
    "subtract": "add",
    "multiply": "multiply",
    "divide": "multiply",
    **{
        name: name
        for name in ("maximum", "minimum", "fmax", "fmin", "bitwise_and", "bitwise_or", "bitwise_xor")
    },
    **{
        name: name
        for name in ("logical_and", "logical_or", "logical_xor", "gcd", "lcm", "logaddexp", "hypot")
    },
}


# Ufuncs that combine truth values.
_TRUTHS = ("logical_and", "logical_or", "logical_xor")


def update_at(name: str, x: Array, index: Any, values: Any) -> None:
    """Set `x[index]` to a ufunc of it and of values; indices that occur several times count several times.

    See `numpy.ufunc.at`. Several values for one place are combined in pairs, so that floats may differ from
    NumPy's in their last bits.

    Raises
    ------
    TypeError
        The ufunc is none whose values can be combined, or its result does not fit the dtype of `x`.
    """
    if name not in _COMBINING:
        raise ArgumentTypeError(
            f"np.{name}.at: arrays have it for {', '.join(_COMBINING)}; compute on the host with x.numpy()"
        )
    if not x.size:
        return
    function, combine = UFUNCS[name], UFUNCS[_COMBINING[name]]
    places = reshape(arange(x.size), x.shape)[index]
    given = values if isinstance(values, Array) else asarray(values, x.dtype if _is_weak(values) else None)
    data = reshape(broadcast_to(given, places.shape), (-1,))
    places = reshape(places, (-1,))
    if not places.size:
        return
    order = argsort(places)
    places, data = places[order], data[order]
    rank = _ranks(places)
    while int(rank.max()):
        # ranks 2k and 2k + 1 of a place become one
        is_first = rank % 2 == 0
        beside = concatenate([places[1:] == places[:-1], arange(1) > 0])
        following = concatenate([data[1:], data[:1]])
        data = choose(is_first & beside, combine(data, following), data)[is_first]
        places, rank = places[is_first], rank[is_first] // 2
    target = x if view_of(x).is_contiguous else x.copy()
    flat = reshape(target, (-1,))
    _set(name, flat, places, function(flat[places], data))
    if target is not x:
        x[...] = target


def _ranks(places: Array) -> Array:
    """Return how many equal numbers come before each of sorted ones."""
    found: Array = arange(places.size) - searchsorted(places, places)
    return found


def apply_at(name: str, x: Array, index: Any) -> None:
    """Set `x[index]` to a ufunc of it, as often as each index occurs. See `numpy.ufunc.at`.

    Raises TypeError if the result does not fit the dtype of `x`.
    """
    function = UFUNCS.get(name)
    if function is None:
        raise ArgumentTypeError(f"np.{name}.at: arrays do not have this function; use x[i] = f(x[i])")
    if not x.size:
        return
    places = reshape(reshape(arange(x.size), x.shape)[index], (-1,))
    if not places.size:
        return
    places = sort(places)
    rank = _ranks(places)
    target = x if view_of(x).is_contiguous else x.copy()
    flat = reshape(target, (-1,))
    for turn in range(int(rank.max()) + 1):
        own = places[rank == turn]
        _set(name, flat, own, function(flat[own]))
    if target is not x:
        x[...] = target


def reduce_parts(name: str, x: Array, indices: Any, axis: Any = 0, dtype: Any = None) -> Array:
    """Return reductions of the parts of an axis from each index up to the next. See `numpy.ufunc.reduceat`.

    Where an index is not less than the next, the part is one element. Elements are combined in pairs.

    Raises
    ------
    TypeError
        Indices are no integers.
    IndexError
        An index is out of bounds.
    ValueError
        Indices have not one axis.
    """
    starts = asnumpy(indices)
    starts = starts.astype(np.int64) if not starts.size else starts
    place = parse_axis(axis, x.ndim)
    length = x.shape[place]
    if starts.dtype.kind not in "iu":
        raise ArgumentTypeError(f"indices: expected integers, got {starts.dtype}")
    if starts.ndim != 1:
        raise ArgumentValueError(f"indices: expected one axis, got the shape {starts.shape}")
    wrong = starts[(starts < 0) | (starts >= length)]
    if wrong.size:
        raise ArgumentIndexError(f"indices: {wrong[0]} is out of bounds for an axis of {length} elements")
    function = UFUNCS[name]
    kind = getattr(np, name).reduce(np.ones(1, x.dtype), dtype=dtype).dtype
    data = moveaxis(x.astype(kind if name not in _TRUTHS else x.dtype, copy=False), place, 0)
    ends = np.append(starts[1:], length)
    counts = np.where(ends > starts, ends - starts, 1) if starts.size else starts
    rows = np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    data = data[asarray(rows.astype(np.int64))]
    if name in _TRUTHS:
        data = data != 0
    while counts.size and counts.max() > 1:
        first = np.cumsum(counts) - counts
        halves = (counts + 1) // 2
        ranks = np.arange(halves.sum()) - np.repeat(np.cumsum(halves) - halves, halves)
        left = np.repeat(first, halves) + 2 * ranks
        single = 2 * ranks + 1 == np.repeat(counts, halves)
        low, high = data[asarray(left)], data[asarray(np.where(single, left, left + 1))]
        alone = asarray(single.reshape(-1, *(1,) * (x.ndim - 1)))
        data, counts = choose(alone, low, function(low, high)), halves
    return moveaxis(data.astype(kind, copy=False), 0, place)


def _is_weak(value: Any) -> bool:
    return isinstance(value, (int, float, complex)) and not isinstance(value, bool)


def _set(name: str, flat: Array, places: Array, result: Array) -> None:
    check_cast(result.dtype, flat.dtype, f"np.{name}.at")
    flat[places] = result
