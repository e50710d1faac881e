"""Arrays with elements inserted, deleted or repeated."""

import math
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics.creation import zeros
from vkdispatch.numpy.basics.inputs import asnumpy, to_array, to_elements
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.basics.manipulation import moveaxis, parse_axes, parse_axis, reshape
from vkdispatch.numpy.basics.reductions import any as any_of
from vkdispatch.numpy.basics.sequences import arange
from vkdispatch.numpy.core.array import Array
from vkdispatch.numpy.core.conversion import asarray, parse_shape
from vkdispatch.numpy.indexing.gathering import nonzero

__all__ = [
    "append",
    "delete",
    "insert",
    "resize",
    "trim_zeros",
]


def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """Return an array with values behind its elements; flattened without an axis. See `numpy.append`.

    Examples
    --------
    >>> vnp.append(vnp.arange(3), 7)
    Array([0, 1, 2, 7], dtype=int64)
    """
    array, more = to_array(arr, "arr"), to_array(values, "values")
    if axis is None:
        return concatenate([reshape(array, -1), reshape(more, -1)])
    return concatenate([array, more], axis=axis)


def _parse_line(arr: Any, axis: int | None) -> tuple[Array, int]:
    array = to_array(arr, "arr")
    if axis is None:
        return reshape(array, -1), 0
    return array, parse_axis(axis, array.ndim)


def _parse_places(obj: Any, length: int, most: int, *, masks: bool) -> tuple["np.ndarray[Any, Any]", bool]:
    """Return places along an axis counted from the front, and whether a single one was given."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(length)), False
    given = asnumpy(obj)
    if given.size == 0 and not isinstance(obj, Array):
        given = given.astype(np.int64)
    if given.dtype.kind == "b":
        if masks and given.shape != (length,):
            raise ArgumentValueError(f"obj: expected a mask of shape ({length},), got {given.shape}")
        given = np.flatnonzero(given)
    if given.dtype.kind not in "iu":
        raise ArgumentIndexError(f"obj: expected ints or booleans, got {obj!r}")
    if given.ndim > 1:
        raise ArgumentValueError(f"obj: expected at most one axis, got the shape {given.shape}")
    if ((given < -length) | (given >= most)).any():
        raise ArgumentIndexError(f"obj: an index is out of bounds for an axis of length {length}: {obj!r}")
    single = given.ndim == 0
    places = given.reshape(-1).astype(np.int64)
    return np.where(places < 0, places + length, places), single


def _find_runs(places: "np.ndarray[Any, Any]") -> "list[np.ndarray[Any, Any]]":
    """Return the runs of ascending places that stand side by side."""
    return np.split(places, np.flatnonzero(np.diff(places) != 1) + 1) if places.size else []


def delete(arr: Any, obj: Any, axis: int | None = None) -> Array:
    """Return an array without some of its parts. See `numpy.delete`.

    Parameters
    ----------
    obj
        Places along the axis: an int, ints, a slice, or a mask. An Array is read.

    Raises
    ------
    IndexError
        A place is out of bounds.
    ValueError
        A mask has another length.

    Examples
    --------
    >>> vnp.delete(vnp.asarray([10, 20, 30]), 1)
    Array([10, 30], dtype=int64)
    """
    array, place = _parse_line(arr, axis)
    length = array.shape[place]
    places, _ = _parse_places(obj, length, length, masks=True)
    keep = np.ones(length, bool)
    keep[places] = False
    before = (slice(None),) * place
    kept = np.flatnonzero(keep)
    runs = _find_runs(kept)
    if not runs:
        return array[(*before, slice(0, 0))].copy()
    if len(runs) <= 4:
        return concatenate([array[(*before, slice(run[0], run[-1] + 1))] for run in runs], axis=place)
    return array[(*before, asarray(kept))]


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """Return an array with values inserted before places along an axis. See `numpy.insert`.

    Parameters
    ----------
    obj
        The places: an int, ints, a slice, or a mask. An Array is read.
    values
        What to insert, of the array's dtype. It broadcasts.

    Raises
    ------
    IndexError
        A place is out of bounds.
    ValueError
        The values do not broadcast.

    Examples
    --------
    >>> vnp.insert(vnp.asarray([10, 20]), 1, 99)
    Array([10, 99, 20], dtype=int64)
    """
    array, place = _parse_line(arr, axis)
    length = array.shape[place]
    places, single = _parse_places(obj, length, length + 1, masks=False)
    more = to_elements(values, array.dtype).astype(array.dtype, copy=False)
    if single and more.ndim:
        # numpy.insert(x, 1, [a, b]) inserts both along the axis
        more = reshape(more, (*(1,) * (array.ndim - more.ndim), *more.shape))
        more = moveaxis(more, 0, place) if more.ndim == array.ndim else more
        places = np.repeat(places, more.shape[place])
    elif len(places) == 1 and more.ndim == array.ndim and more.shape[place] > 1:
        places = np.repeat(places, more.shape[place])
    count = len(places)
    order = np.argsort(places, kind="stable")
    own = places.copy()
    own[order] += np.arange(count)
    keep = np.ones(length + count, bool)
    keep[own] = False
    result = zeros((*array.shape[:place], length + count, *array.shape[place + 1 :]), array.dtype)
    before = (slice(None),) * place
    old = np.flatnonzero(keep)
    runs = _find_runs(old)
    if len(runs) <= 4:
        done = 0
        for run in runs:
            result[(*before, slice(int(run[0]), int(run[-1]) + 1))] = array[
                (*before, slice(done, done + len(run)))
            ]
            done += len(run)
    else:
        result[(*before, asarray(old))] = array
    if count:
        consecutive = count == own[-1] - own[0] + 1 and (np.diff(own) == 1).all()
        where: Any = slice(int(own[0]), int(own[-1]) + 1) if consecutive else asarray(own)
        result[(*before, where)] = more
    return result


def resize(a: Any, new_shape: Any) -> Array:
    """Return an array of another shape, with the elements repeated as needed. See `numpy.resize`.

    Examples
    --------
    >>> vnp.resize(vnp.arange(3), (2, 2))
    Array([[0, 1],
           [2, 0]], dtype=int64)
    """
    array = reshape(to_array(a, "a"), -1)
    shape = parse_shape(new_shape, "new_shape")
    size = math.prod(shape)
    if array.size == 0 or size == 0:
        return zeros(shape, array.dtype)
    if size <= array.size:
        return reshape(array[:size], shape, copy=True)
    return reshape(array[arange(size) % array.size], shape)


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Array:
    """Return an array without the zeros at the ends of its axes: a view. See `numpy.trim_zeros`.

    Parameters
    ----------
    trim
        "f" trims the front, "b" the back, "fb" both.
    axis
        Which axes to trim; None: all.

    Raises
    ------
    ValueError
        `trim` is anything else.

    Examples
    --------
    >>> vnp.trim_zeros(vnp.asarray([0, 0, 1, 2, 0]))
    Array([1, 2], dtype=int64)
    """
    array = to_array(filt, "filt")
    if not isinstance(trim, str):
        raise ArgumentTypeError(f"trim: expected 'f', 'b' or 'fb', got {trim!r}")
    wanted = trim.lower()
    if wanted not in ("f", "b", "fb", "bf"):
        raise ArgumentValueError(f"trim: expected 'f', 'b' or 'fb', got {trim!r}")
    axes = parse_axes(axis, array.ndim)
    entries: list[Any] = [slice(None)] * array.ndim
    for place in axes:
        others = tuple(i for i in range(array.ndim) if i != place)
        (found,) = nonzero(any_of(array != 0, axis=others) if others else array)
        ends = found[:: max(found.size - 1, 1)].numpy() if found.size else np.zeros(0, np.int64)
        length = array.shape[place]
        low, high = (int(ends[0]), int(ends[-1]) + 1) if ends.size else (length, 0)
        low, high = low if "f" in wanted else 0, high if "b" in wanted else length
        entries[place] = slice(low, max(low, high))
    return array[tuple(entries)]
