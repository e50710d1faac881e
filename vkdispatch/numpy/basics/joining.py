"""Arrays joined, split, repeated and rolled."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics import manipulation
from vkdispatch.numpy.core.application import assign
from vkdispatch.numpy.core.array import (
    Array,
    array_of,
    check_cast,
    describe,
    parse_count,
    parse_index,
    value_of,
    view_of,
)
from vkdispatch.numpy.core.conversion import asnumpy, parse_shape, require_array, to_array
from vkdispatch.numpy.core.kernels import new_view
from vkdispatch.numpy.core.memory import View, parse_dtype
from vkdispatch.numpy.core.repeating import repeat_calls


@repeat_calls
def roll(x: Any, /, shift: Any, axis: Any = None) -> Array:
    """Return the array with its elements moved round along axes. See `numpy.roll`.

    `shift` is an int, or several for as many axes: also as an array, which is read.

    Examples
    --------
    >>> vnp.roll(vnp.arange(4), 1)
    Array([3, 0, 1, 2], dtype=int64)
    """
    array = require_array(x)
    if axis is None:
        return manipulation.reshape(roll(manipulation.reshape(array, -1), shift, axis=0), array.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    if isinstance(shift, (Array, np.ndarray)):
        shift = asnumpy(shift).tolist()
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(axes) == 1 and len(shifts) > 1:
        axes = tuple(axes) * len(shifts)
    if len(shifts) == 1:
        shifts = tuple(shifts) * len(axes)
    if len(axes) != len(shifts):
        raise ArgumentValueError("shift, axis: expected as many shifts as axes")
    for each, amount in zip(axes, shifts, strict=True):
        place = manipulation.parse_axis(each, array.ndim)
        length = array.shape[place]
        cut = -parse_index(amount, "shift") % length if length else 0
        if cut:
            back, front = (manipulation.slice_axis(array, place, *ends) for ends in ((cut, None), (0, cut)))
            array = concatenate([back, front], axis=place)
    return array.copy() if array is x else array


@repeat_calls
def concatenate(
    arrays: Sequence[Any],
    /,
    axis: int | None = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Array:
    """Return arrays one after the other along an axis; None: flattened. See `numpy.concatenate`.

    Raises
    ------
    ValueError
        There are no arrays, their other axes differ, or `out` has another shape.
    TypeError
        `out` and `dtype` are both given, or the result's dtype does not hold the values by such a cast.

    Examples
    --------
    >>> vnp.concatenate([vnp.arange(2), vnp.asarray([5, 6])])
    Array([0, 1, 5, 6], dtype=int64)
    """
    parts = [require_array(each, f"arrays[{i}]") for i, each in enumerate(arrays)]
    if not parts:
        raise ArgumentValueError("arrays: need at least one array to concatenate")
    if axis is None:
        parts, axis = [manipulation.reshape(each, -1) for each in parts], 0
    ndim = parts[0].ndim
    if ndim == 0:
        raise ArgumentValueError("arrays: zero-dimensional arrays cannot be concatenated")
    place = manipulation.parse_axis(axis, ndim)
    for i, each in enumerate(parts):
        rest = each.shape[:place] + each.shape[place + 1 :]
        if each.ndim != ndim or rest != parts[0].shape[:place] + parts[0].shape[place + 1 :]:
            raise ArgumentValueError(
                f"arrays: all axes but the joined one must agree; arrays[0] has the shape {parts[0].shape}, "
                f"arrays[{i}] {each.shape}"
            )
    if out is not None and dtype is not None:
        raise ArgumentTypeError("out, dtype: expected one of both")
    common = manipulation.result_type(*parts)
    kind = common if dtype is None else parse_dtype(dtype)
    if isinstance(out, Array):
        kind = out.dtype
    check_cast(common, kind, "concatenate", casting)
    lengths = [each.shape[place] for each in parts]
    shape = manipulation.replace_axis(parts[0].shape, place, sum(lengths))
    if out is not None:
        if not isinstance(out, Array) or out.shape != shape:
            raise ArgumentValueError(f"out: expected an Array of shape {shape}, got {describe(out)}")
        target = view_of(out)
    else:
        target = new_view(shape, kind, view_of(parts[0]).storage.context)
    start = 0
    for each, length in zip(parts, lengths, strict=True):
        if each.size:
            offset = target.offset + start * target.strides[place]
            part = manipulation.replace_axis(shape, place, length)
            assign(View(target.storage, part, target.dtype, offset, target.strides), value_of(each))
        start += length
    return out if out is not None else array_of(target)


concat = concatenate


@repeat_calls
def stack(
    arrays: Sequence[Any], /, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Array:
    """Return arrays joined along a new axis. See `numpy.stack`. Raises ValueError for different shapes.

    Examples
    --------
    >>> vnp.stack([vnp.arange(2), vnp.asarray([5, 6])])
    Array([[0, 1],
           [5, 6]], dtype=int64)
    """
    parts = [require_array(each, f"arrays[{i}]") for i, each in enumerate(arrays)]
    if not parts:
        raise ArgumentValueError("arrays: need at least one array to stack")
    if any(each.shape != parts[0].shape for each in parts):
        raise ArgumentValueError(f"arrays: all must have one shape, got {[each.shape for each in parts]}")
    place = manipulation.parse_axis(axis, parts[0].ndim + 1)
    rows = [manipulation.expand_dims(part, place) for part in parts]
    return concatenate(rows, axis=place, out=out, dtype=dtype, casting=casting)


@repeat_calls
def vstack(arrays: Sequence[Any], *, dtype: Any = None, casting: Any = "same_kind") -> Array:
    """Return arrays joined as rows. See `numpy.vstack`.

    Examples
    --------
    >>> vnp.vstack([vnp.arange(2), vnp.asarray([5, 6])])
    Array([[0, 1],
           [5, 6]], dtype=int64)
    """
    return concatenate([manipulation.atleast_2d(x) for x in arrays], axis=0, dtype=dtype, casting=casting)


@repeat_calls
def hstack(arrays: Sequence[Any], *, dtype: Any = None, casting: Any = "same_kind") -> Array:
    """Return arrays joined as columns. See `numpy.hstack`.

    Examples
    --------
    >>> vnp.hstack([vnp.arange(2), vnp.asarray([5, 6])])
    Array([0, 1, 5, 6], dtype=int64)
    """
    parts = [manipulation.atleast_1d(array) for array in arrays]
    return concatenate(parts, axis=0 if parts and parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@repeat_calls
def dstack(arrays: Sequence[Any]) -> Array:
    """Return arrays joined along the third axis. See `numpy.dstack`.

    Examples
    --------
    >>> vnp.dstack([vnp.arange(2), vnp.asarray([5, 6])])
    Array([[[0, 5],
            [1, 6]]], dtype=int64)
    """
    return concatenate([manipulation.atleast_3d(array) for array in arrays], axis=2)


@repeat_calls
def column_stack(arrays: Sequence[Any]) -> Array:
    """Return vectors as the columns of a matrix. See `numpy.column_stack`.

    Examples
    --------
    >>> vnp.column_stack([vnp.arange(2), vnp.asarray([5, 6])])
    Array([[0, 5],
           [1, 6]], dtype=int64)
    """
    parts = map(require_array, arrays)
    return concatenate([x if x.ndim >= 2 else manipulation.reshape(x, (-1, 1)) for x in parts], axis=1)


@repeat_calls
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the parts of an array along an axis: views. See `numpy.unstack`.

    Examples
    --------
    >>> vnp.unstack(vnp.asarray([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int64), Array([3, 4], dtype=int64))
    """
    array = manipulation.moveaxis(x, axis, 0)
    return tuple(array[i] for i in range(array.shape[0]))


@repeat_calls
def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Return equal parts of an array along an axis: views. See `numpy.split`. Else raises ValueError.

    Examples
    --------
    >>> vnp.split(vnp.arange(6), [1, 4])
    [Array([0], dtype=int64), Array([1, 2, 3], dtype=int64), Array([4, 5], dtype=int64)]
    """
    array = require_array(x)
    length = array.shape[manipulation.parse_axis(axis, array.ndim)]
    is_count = isinstance(indices_or_sections, (int, np.integer)) and indices_or_sections > 0
    if is_count and length % indices_or_sections:
        raise ArgumentValueError(
            f"indices_or_sections: {length} elements do not part into {indices_or_sections}"
        )
    return array_split(array, indices_or_sections, axis)


@repeat_calls
def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Return parts of an array along an axis, of nearly equal length: views. See `numpy.array_split`.

    Examples
    --------
    >>> vnp.array_split(vnp.arange(5), 2)
    [Array([0, 1, 2], dtype=int64), Array([3, 4], dtype=int64)]
    """
    array = require_array(x)
    place = manipulation.parse_axis(axis, array.ndim)
    length = array.shape[place]
    if isinstance(indices_or_sections, (int, np.integer)):
        count = int(indices_or_sections)
        if count <= 0:
            raise ArgumentValueError(f"indices_or_sections: expected at least one part, got {count}")
        base, more = divmod(length, count)
        ends = list(np.cumsum([base + (i < more) for i in range(count)]))[:-1]
    else:
        ends = [int(index) for index in indices_or_sections]
    return [manipulation.slice_axis(array, place, *pair) for pair in pairwise([0, *ends, None])]


def _require_axes(x: Any, count: int, name: str) -> None:
    if require_array(x).ndim < count:
        raise ArgumentValueError(
            f"{name}: expected an array of {count} or more axes, got the shape {x.shape}"
        )


def dsplit(x: Any, indices_or_sections: Any) -> list[Array]:
    """Return parts of an array along its third axis: views. Raises ValueError if it has none.

    Examples
    --------
    >>> left, right = vnp.dsplit(vnp.arange(4).reshape(1, 2, 2), 2)
    >>> left.shape
    (1, 2, 1)
    """
    _require_axes(x, 3, "dsplit")
    return split(x, indices_or_sections, 2)


def hsplit(x: Any, indices_or_sections: Any) -> list[Array]:
    """Return parts of an array along its second axis, or its only one: views. Else raises ValueError.

    Examples
    --------
    >>> vnp.hsplit(vnp.arange(4), 2)
    [Array([0, 1], dtype=int64), Array([2, 3], dtype=int64)]
    """
    _require_axes(x, 1, "hsplit")
    return split(x, indices_or_sections, 1 if require_array(x).ndim > 1 else 0)


def vsplit(x: Any, indices_or_sections: Any) -> list[Array]:
    """Return parts of an array of two or more axes along its first one: views. Else raises ValueError.

    Examples
    --------
    >>> top, bottom = vnp.vsplit(vnp.arange(4).reshape(2, 2), 2)
    >>> bottom
    Array([[2, 3]], dtype=int64)
    """
    _require_axes(x, 2, "vsplit")
    return split(x, indices_or_sections, 0)


@repeat_calls
def tile(x: Any, /, reps: Any) -> Array:
    """Return the array repeated along its axes. See `numpy.tile`.

    Examples
    --------
    >>> vnp.tile(vnp.asarray([1, 2]), 2)
    Array([1, 2, 1, 2], dtype=int64)
    """
    array = require_array(x)
    counts = parse_shape(reps, "reps")
    ndim = max(array.ndim, len(counts))
    shape = (1,) * (ndim - array.ndim) + array.shape
    counts = (1,) * (ndim - len(counts)) + counts
    apart = tuple(n for length in shape for n in (1, length))
    wide = tuple(n for pair in zip(counts, shape, strict=True) for n in pair)
    final = tuple(a * b for a, b in zip(counts, shape, strict=True))
    repeated = manipulation.broadcast_to(manipulation.reshape(array, apart), wide)
    return manipulation.reshape(repeated, final, copy=True)


@repeat_calls
def repeat(x: Any, /, repeats: Any, axis: int | None = None) -> Array:
    """Return each element several times. See `numpy.repeat`.

    Examples
    --------
    >>> vnp.repeat(vnp.asarray([1, 2]), 3)
    Array([1, 1, 1, 2, 2, 2], dtype=int64)
    """
    array = to_array(x, "x")
    if axis is None or not array.ndim:
        array, axis = manipulation.reshape(array, -1), axis or 0
    place = manipulation.parse_axis(axis, array.ndim)
    length = array.shape[place]
    counts = asnumpy(repeats)
    if counts.size == 1:
        count = parse_count(counts.reshape(()).item(), "repeats")
        shapes = (manipulation.replace_axis(array.shape, place, length, n) for n in (1, count))
        apart = manipulation.broadcast_to(manipulation.reshape(array, next(shapes)), next(shapes))
        final = manipulation.replace_axis(array.shape, place, length * count)
        return manipulation.reshape(apart, final, copy=True)
    if counts.shape != (length,) or (counts < 0).any():
        raise ArgumentValueError(f"repeats: expected {length} counts of at least 0, got {counts}")
    index = np.repeat(np.arange(length), counts)
    return array[(*(slice(None),) * place, index)]
