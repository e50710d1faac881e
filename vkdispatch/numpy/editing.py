"""Editing arrays: elements written, inserted, deleted and padded."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.numpy.basics import manipulation, reductions
from vkdispatch.numpy.basics.creation import zeros
from vkdispatch.numpy.basics.elementwise import choose, clip, floor, rint
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.basics.manipulation import broadcast_to, flip, reshape, slice_axis
from vkdispatch.numpy.basics.sequences import arange, range_along
from vkdispatch.numpy.core import conversion
from vkdispatch.numpy.core.application import number_as, refuse_read_only
from vkdispatch.numpy.core.array import Array, array_from, check_cast, require_out, value_of, view_of
from vkdispatch.numpy.core.conversion import asarray, to_array, to_elements
from vkdispatch.numpy.core.kernels import as_operand
from vkdispatch.numpy.core.memory import Kind, View
from vkdispatch.numpy.core.repeating import repeat_calls
from vkdispatch.numpy.indexing import nonzero
from vkdispatch.numpy.quantiles import median
from vkdispatch.rearrange.joining import pad as pad_buffer

# ---- Elements written by places, masks and diagonals ---------------------------------------------


def _write_flat(target: Array, places: Array, values: Any) -> None:
    """Write values, repeated as needed, to places of a flattened array."""
    data = reshape(to_elements(values, target.dtype, "values"), -1)
    if places.size == 0:
        return
    if data.size == 0:
        raise ArgumentValueError("values: expected at least one")
    if data.size > 1:
        data = data[: places.size] if data.size >= places.size else data[arange(places.size) % data.size]
    view = view_of(target)
    if view.is_contiguous or target.ndim == 1:
        reshape(target, -1)[places] = data
        return
    rest, index = places, []
    for length in reversed(target.shape[1:]):
        index.append(rest % length)
        rest = rest // length
    target[tuple(reversed([*index, rest]))] = data


class FlatIterator:
    """The elements of an array along one axis, in C order: `x.flat`. See `numpy.flatiter`.

    It iterates over NumPy scalars, from a copy on the host that the first one makes. An index reads a copy,
    as an Array. What is written to an index goes to the array; values are repeated as needed.

    Attributes
    ----------
    base
        The array.
    """

    def __init__(self, base: Array) -> None:
        self.base = base
        self._values: Iterator[Any] | None = None

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> "FlatIterator":
        return self

    def __next__(self) -> Any:
        if self._values is None:
            self._values = iter(self.base.numpy().flat)
        return next(self._values)

    def __getitem__(self, index: Any) -> Array:
        return reshape(self.base, -1)[self._parse(index)].copy()

    def __setitem__(self, index: Any, value: Any) -> None:
        places = arange(self.base.size, device=self.base.device)[self._parse(index)]
        if isinstance(value, np.ndarray):
            value = asarray(value, device=self.base.device)
        if not places.ndim and np.size(value) != 1:
            raise ArgumentValueError(f"value: expected one number for one element, got {np.size(value)}")
        _write_flat(self.base, reshape(places, -1), value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> "np.ndarray[Any, Any]":
        return reshape(self.base, -1).__array__(dtype, copy)

    def copy(self) -> Array:
        """Return a copy of the elements as an array of one axis."""
        return self[...]

    @staticmethod
    def _parse(index: Any) -> Any:
        """Return an index along one axis. Raises IndexError for one with other axes, as NumPy's."""
        (own,) = index if isinstance(index, tuple) and len(index) == 1 else (index,)
        if isinstance(own, tuple) and not own:
            return ...
        if own is None or isinstance(own, (tuple, bool, np.bool_)):
            raise ArgumentIndexError(f"index: expected one index along the elements, got {index!r}")
        return own


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values to places of the flattened array. See `numpy.put`.

    Parameters
    ----------
    v
        Values, which are repeated as needed. Of several for one place the last one counts.
    mode
        What is done about places out of bounds: "raise" (an IndexError, at the latest with the next wait),
        "wrap" or "clip".

    Examples
    --------
    >>> x = vnp.arange(4)
    >>> vnp.put(x, [0, 2], [10, 20])
    >>> x
    Array([10,  1, 20,  3], dtype=int64)
    """
    target = require_out(a, "a")
    if type(target._value) is View:
        refuse_read_only(target._value)
    places, data = reshape(conversion.to_index(ind), -1), to_elements(v, target.dtype, "v")
    if places.size == 0:
        return
    if target.size == 0:
        raise ArgumentIndexError("ind: there are no elements to write to")
    if mode == "wrap":
        places = places % target.size
    elif mode == "clip":
        places = clip(places, 0, target.size - 1)
    elif mode != "raise":
        raise ArgumentValueError(f"mode: expected 'raise', 'wrap' or 'clip', got {mode!r}")
    else:
        places = choose(places < 0, places + target.size, places)
        # what is out of bounds stays so along the first axis of an array that is not contiguous
        places = choose(places < 0, np.iinfo(np.int64).max // 2, places.astype(np.int64))
    _write_flat(target, places, data)


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Write one value to each line along an axis for each of its indices. See `numpy.put_along_axis`.

    Examples
    --------
    >>> x = vnp.asarray([[1, 2], [3, 4]])
    >>> vnp.put_along_axis(x, vnp.asarray([[0], [1]]), 9, axis=1)
    >>> x
    Array([[9, 2],
           [3, 9]], dtype=int64)
    """
    target = require_out(arr, "arr")
    index = conversion.to_index(indices)
    if index.dtype.kind not in "iu":
        raise ArgumentIndexError(f"indices: expected integers, got {index.dtype}")
    if axis is None:
        if index.ndim != 1:
            raise ArgumentValueError(f"indices: expected one axis, got {index.ndim}")
        target, axis = reshape(target, -1, copy=False), 0
    place = manipulation.parse_axis(axis, target.ndim)
    if index.ndim != target.ndim:
        raise ArgumentValueError(f"indices: expected {target.ndim} axes, got {index.ndim}")
    entries = [range_along(length, axis, target.ndim) for axis, length in enumerate(target.shape)]
    entries[place] = index
    target[tuple(entries)] = to_elements(values, target.dtype, "values")


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write values, one after the other, where a mask holds. See `numpy.place`. The mask is waited for.

    Examples
    --------
    >>> x = vnp.arange(4)
    >>> vnp.place(x, x > 1, [10, 20])
    >>> x
    Array([ 0,  1, 10, 20], dtype=int64)
    """
    target = require_out(arr, "arr")
    chosen = to_array(mask, "mask")
    if chosen.size != target.size:
        raise ArgumentValueError(f"mask: expected {target.size} elements, got {chosen.size}")
    values = to_elements(vals, target.dtype, "vals")
    check_cast(values.dtype, target.dtype, "vals", "safe")
    (places,) = nonzero(reshape(chosen, -1))
    _write_flat(target, places, values)


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Write the values at the places of elements where a mask holds. See `numpy.putmask`.

    Examples
    --------
    >>> x = vnp.arange(4)
    >>> vnp.putmask(x, x > 1, 0)
    >>> x
    Array([0, 1, 0, 0], dtype=int64)
    """
    target = require_out(a, "a")
    chosen = to_array(mask, "mask").astype(bool, copy=False)
    if chosen.shape != target.shape:
        raise ArgumentValueError(f"mask: expected the shape {target.shape}, got {chosen.shape}")
    data = reshape(to_elements(values, target.dtype, "values"), -1)
    check_cast(data.dtype, target.dtype, "values", "safe")
    data = data.astype(target.dtype, copy=False)
    if data.size == 0:
        return
    if data.size != target.size:
        data = data[arange(target.size) % data.size]
    target[...] = choose(chosen, reshape(data, target.shape), target)


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Write an array, or a number, to another one, where a mask holds. See `numpy.copyto`.

    Raises TypeError where `casting` does not allow it.

    Examples
    --------
    >>> x = vnp.zeros(3)
    >>> vnp.copyto(x, 2.0)
    >>> x
    Array([2., 2., 2.], dtype=float64)
    """
    target = require_out(dst, "dst")
    if isinstance(src, (bool, int, float, complex)) and not isinstance(src, np.generic):
        source: Any = src
        kind: Kind = np.result_type(target.dtype, src)
    else:
        source = to_array(src, "src")
        kind = source.dtype
    check_cast(kind, target.dtype, "src", casting)
    if where is True:
        target[...] = source
        return
    chosen = to_array(where, "where")
    if isinstance(source, Array):
        source = source.astype(target.dtype, copy=False)
    target[...] = choose(chosen, source, target)


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write a value, or values one after the other, to the main diagonal. See `numpy.fill_diagonal`.

    Parameters
    ----------
    wrap
        Whether the diagonal of a matrix with more rows than columns begins again after its end.

    Raises
    ------
    ValueError
        The array has fewer than two axes, or more than two of different lengths.

    Examples
    --------
    >>> x = vnp.zeros((2, 2))
    >>> vnp.fill_diagonal(x, 5)
    >>> x
    Array([[5., 0.],
           [0., 5.]], dtype=float64)
    """
    target = require_out(a, "a")
    manipulation.require_matrix(target, "a")
    if target.ndim > 2 and len(set(target.shape)) != 1:
        raise ArgumentValueError(f"a: expected axes of one length, got the shape {target.shape}")
    view = view_of(target)
    rows, columns = target.shape[0], target.shape[1]
    data = to_elements(val, target.dtype, "val")
    step = sum(view.strides)
    if not wrap or target.ndim > 2 or rows <= columns:
        lines = [(view.offset, min(target.shape))]
    else:
        # after the last column a row stays empty
        starts = range(0, rows, columns + 1)
        lines = [(view.offset + start * view.strides[0], min(columns, rows - start)) for start in starts]
    count = sum(length for _, length in lines)
    values: Any = data
    if data.ndim:
        flat = reshape(data, -1)
        values = flat[arange(count) % flat.size] if flat.size < count else flat[:count]
    done = 0
    for offset, length in lines:
        part = values[done : done + length] if data.ndim else values
        manipulation.view_with(view, (length,), (step,), offset)[...] = part
        done += length


# ---- Arrays with elements inserted, deleted or repeated --------------------------------------------------


@repeat_calls
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
    given = conversion.asnumpy(obj)
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


@repeat_calls
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


@repeat_calls
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
        more = manipulation.moveaxis(more, 0, place) if more.ndim == array.ndim else more
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


@repeat_calls
def resize(a: Any, new_shape: Any) -> Array:
    """Return an array of another shape, with the elements repeated as needed. See `numpy.resize`.

    Examples
    --------
    >>> vnp.resize(vnp.arange(3), (2, 2))
    Array([[0, 1],
           [2, 0]], dtype=int64)
    """
    array = reshape(to_array(a, "a"), -1)
    shape = conversion.parse_shape(new_shape, "new_shape")
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
    axes = manipulation.parse_axes(axis, array.ndim)
    entries: list[Any] = [slice(None)] * array.ndim
    for place in axes:
        others = tuple(i for i in range(array.ndim) if i != place)
        (found,) = nonzero(reductions.any(array != 0, axis=others) if others else array)
        ends = found[:: max(found.size - 1, 1)].numpy() if found.size else np.zeros(0, np.int64)
        length = array.shape[place]
        low, high = (int(ends[0]), int(ends[-1]) + 1) if ends.size else (length, 0)
        low, high = low if "f" in wanted else 0, high if "b" in wanted else length
        entries[place] = slice(low, max(low, high))
    return array[tuple(entries)]


# ---- Padding at the ends of axes -------------------------------------------------------------------------


_MOVES = ("constant", "edge", "reflect", "symmetric", "wrap", "empty")
_STATISTICS: dict[str, Callable[..., Array]] = {
    "maximum": reductions.max,
    "minimum": reductions.min,
    "mean": reductions.mean,
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


@repeat_calls
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
    conversion.require_choice(reflect_type, "reflect_type", "even", "odd")
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
    given = conversion.asnumpy(value)
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
    given = conversion.asnumpy(value)
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
