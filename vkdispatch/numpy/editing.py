"""Arrays with elements inserted, deleted, repeated or padded."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.numpy.basics import manipulation
from vkdispatch.numpy.basics.creation import zeros
from vkdispatch.numpy.basics.elementwise import floor, rint
from vkdispatch.numpy.basics.inputs import asnumpy, require_choice, to_array, to_elements
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.basics.manipulation import broadcast_to, flip, moveaxis, parse_axes, reshape, slice_axis
from vkdispatch.numpy.basics.reductions import any as any_of
from vkdispatch.numpy.basics.reductions import max as greatest
from vkdispatch.numpy.basics.reductions import mean
from vkdispatch.numpy.basics.reductions import min as least
from vkdispatch.numpy.basics.sequences import arange
from vkdispatch.numpy.core.application import number_as
from vkdispatch.numpy.core.array import Array, array_from, value_of
from vkdispatch.numpy.core.conversion import asarray, parse_shape
from vkdispatch.numpy.core.kernels import as_operand
from vkdispatch.numpy.indexing.indexing import nonzero
from vkdispatch.numpy.statistics.quantiles import median
from vkdispatch.rearrange.joining import pad as pad_buffer

__all__ = ["append", "delete", "insert", "pad", "resize", "trim_zeros"]


# ---- Arrays with elements inserted, deleted or repeated --------------------------------------------------


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
    array, place = manipulation.lines_along(to_array(arr, "arr"), axis)
    length = array.shape[place]
    places, _ = _parse_places(obj, length, length, masks=True)
    keep = np.ones(length, bool)
    keep[places] = False
    kept = np.flatnonzero(keep)
    runs = _find_runs(kept)
    if not runs:
        return slice_axis(array, place, 0, 0).copy()
    if len(runs) <= 4:
        return concatenate([slice_axis(array, place, run[0], run[-1] + 1) for run in runs], axis=place)
    return array[(*(slice(None),) * place, asarray(kept))]


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
    array, place = manipulation.lines_along(to_array(arr, "arr"), axis)
    length = array.shape[place]
    places, single = _parse_places(obj, length, length + 1, masks=False)
    more = to_elements(values, array.dtype, "values").astype(array.dtype, copy=False)
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
    result = zeros(manipulation.replace_axis(array.shape, place, length + count), array.dtype)
    before = (slice(None),) * place
    old = np.flatnonzero(keep)
    runs = _find_runs(old)
    if len(runs) <= 4:
        done = 0
        for run in runs:
            part = slice_axis(array, place, done, done + len(run))
            result[(*before, slice(int(run[0]), int(run[-1]) + 1))] = part
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


# ---- Padding at the ends of axes -------------------------------------------------------------------------


_MOVES = ("constant", "edge", "reflect", "symmetric", "wrap", "empty")
_STATISTICS: dict[str, Callable[..., Array]] = {
    "maximum": greatest,
    "minimum": least,
    "mean": mean,
    "median": median,
}
_OPTIONS = {
    "constant": ("constant_values",),
    "linear_ramp": ("end_values",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    **dict.fromkeys(_STATISTICS, ("stat_length",)),
}

Pairs = list[tuple[Any, Any]]


def pad(array: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Array:
    """Return an array padded at the ends of its axes. See `numpy.pad`.

    Parameters
    ----------
    pad_width
        The number of elements before and after: an int, a pair, a pair for each axis, or a dict of axes.
    mode
        "constant", "edge", "reflect", "symmetric", "wrap", "empty", "linear_ramp", "maximum", "minimum",
        "mean" or "median".
    kwargs
        `constant_values`, `end_values`, `stat_length` and `reflect_type` of the modes that take them.

    Raises
    ------
    TypeError
        `pad_width` are no ints.
    ValueError
        A width is negative, there is no such mode, or it does not take an argument; an axis without elements
        would be padded with its elements.
    NotImplementedError
        `mode` is a function.

    Examples
    --------
    >>> vnp.pad(vnp.asarray([1, 2]), (1, 2))
    Array([0, 1, 2, 0, 0], dtype=int64)
    """
    source = to_array(array, "array")
    if callable(mode):
        raise UnsupportedError("mode: functions are not implemented; use mode='empty', and fill the ends")
    if mode not in _MOVES and mode not in _STATISTICS and mode != "linear_ramp":
        known = ", ".join(map(repr, (*_MOVES, *_STATISTICS, "linear_ramp")))
        raise ArgumentValueError(f"mode: expected one of {known}, got {mode!r}")
    wrong = set(kwargs) - set(_OPTIONS.get(mode, ()))
    if wrong:
        raise ArgumentValueError(f"{sorted(wrong)[0]}: mode {mode!r} does not take it")
    reflect_type = kwargs.get("reflect_type", "even")
    require_choice(reflect_type, "reflect_type", "even", "odd")
    widths = _parse_widths(pad_width, source.ndim)
    if not any(any(pair) for pair in widths):
        return source.copy()
    if reflect_type == "odd":
        return _reflect_oddly(source, widths, mode)
    if mode in _MOVES:
        return _move(source, widths, mode, kwargs.get("constant_values", 0))
    result = source
    option = kwargs.get("end_values", 0) if mode == "linear_ramp" else kwargs.get("stat_length")
    options = _parse_pairs(option, source.ndim, "end_values" if mode == "linear_ramp" else "stat_length")
    for axis, (width, own) in enumerate(zip(widths, options, strict=True)):
        if any(width):
            if not result.shape[axis]:
                raise ArgumentValueError(f"pad_width: axis {axis} has no elements for mode {mode!r}")
            make = _ramp if mode == "linear_ramp" else _repeat_statistic
            low, high = make(result, axis, width, own, mode)
            result = concatenate([low, result, high], axis=axis, dtype=source.dtype)
    return result


def _parse_pairs(value: Any, ndim: int, name: str) -> Pairs:
    if value is None:
        return [(None, None)] * ndim
    given = asnumpy(value)
    try:
        wide = np.broadcast_to(given, (ndim, 2))
    except ValueError:
        raise ArgumentValueError(
            f"{name}: expected a number, a pair, or a pair for each of {ndim} axes, got {value!r}"
        ) from None
    return [(low, high) for low, high in wide.tolist()]


def _parse_widths(value: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(value, Mapping):
        pairs: list[Any] = [(0, 0)] * ndim
        for axis, width in value.items():
            if not -ndim <= axis < ndim:
                raise ArgumentValueError(f"pad_width: axis {axis} is out of bounds for {ndim} axes")
            pairs[axis] = (width, width) if isinstance(width, (int, np.integer)) else tuple(width)
        value = pairs
    given = asnumpy(value)
    if given.dtype.kind not in "iu":
        raise ArgumentTypeError(f"pad_width: expected ints, got {value!r}")
    if (given < 0).any():
        raise ArgumentValueError(f"pad_width: expected at least 0, got {value!r}")
    return _parse_pairs(given, ndim, "pad_width")


def _move(x: Array, widths: list[tuple[int, int]], mode: str, constants: Any) -> Array:
    """Pad with constants or elements."""
    values = _parse_pairs(constants, x.ndim, "constant_values")
    if x.dtype.kind in "iu" and constants is not None:
        values = [tuple(number_as(number, x.dtype, "constant_values") for number in pair) for pair in values]
    options: dict[str, Any] = {"constant_values": values} if mode == "constant" else {}
    return array_from(pad_buffer(as_operand(value_of(x), x.shape), widths, mode, **options))


def _reflect_oddly(x: Array, widths: list[tuple[int, int]], mode: str) -> Array:
    """Pad with reflections through the points of the first and the last elements."""
    if x.dtype.kind == "b":
        raise ArgumentTypeError("array: booleans have no differences to reflect; convert them with astype")
    for axis, (low, high) in enumerate(widths):
        length = x.shape[axis]
        if not (low or high):
            continue
        if not length:
            raise ArgumentValueError(f"pad_width: axis {axis} has no elements for mode {mode!r}")
        skip = int(mode == "reflect")
        period = length - skip
        if not period:
            x = pad(x, [(low, high) if each == axis else (0, 0) for each in range(x.ndim)], "edge")
            continue
        while low or high:
            end = x.shape[axis] - skip
            # whole periods are turned about the first and the last element
            most = end // period * period
            left, right = min(most, low), min(most, high)
            front = 2 * slice_axis(x, axis, 0, 1) - flip(slice_axis(x, axis, skip, skip + left), axis)
            back = 2 * slice_axis(x, axis, -1) - flip(slice_axis(x, axis, end - right, end), axis)
            x = concatenate([front, x, back], axis=axis)
            low, high = low - left, high - right
    return x


def _ramp(
    x: Array, axis: int, width: tuple[int, int], ends: tuple[Any, Any], mode: str
) -> tuple[Array, Array]:
    """Return values that go evenly from numbers to the first and from the last elements."""
    after = (1,) * (x.ndim - axis - 1)
    found = []
    for at, (count, end) in enumerate(zip(width, ends, strict=True)):
        edge = slice_axis(x, axis, *((0, 1) if at == 0 else (-1, None)))
        share = np.arange(count) / count if count else np.zeros(0)
        wide = np.float32 if x.dtype.itemsize <= 4 and x.dtype.kind == "f" else np.float64
        parts = asarray((share if at == 0 else share[::-1]).astype(wide).reshape(-1, *after))
        made = parts * (edge.astype(parts.dtype) if x.dtype.kind != "c" else edge)
        if end:
            made = made + end * (1 - parts)
        if x.dtype.kind in "iu":
            made = floor(made)
        found.append(made.astype(x.dtype))
    return found[0], found[1]


def _repeat_statistic(
    x: Array, axis: int, width: tuple[int, int], lengths: tuple[Any, Any], mode: str
) -> tuple[Array, Array]:
    """Return statistics of the first and of the last elements along an axis, repeated."""
    found = []
    for at, (count, length) in enumerate(zip(width, lengths, strict=True)):
        own = x.shape[axis] if length is None else min(int(length), x.shape[axis])
        if own < 1:
            raise ArgumentValueError(f"stat_length: expected at least 1, got {length}")
        part = slice_axis(x, axis, *((0, own) if at == 0 else (x.shape[axis] - own, None)))
        value = _STATISTICS[mode](part, axis=axis, keepdims=True)
        if x.dtype.kind in "iu" and mode in ("mean", "median"):
            value = rint(value)
        found.append(broadcast_to(value.astype(x.dtype), manipulation.replace_axis(x.shape, axis, count)))
    return found[0], found[1]
