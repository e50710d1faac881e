"""Shapes and orders of elements: views where that is possible."""

import math
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import AxisError
from vkdispatch.numpy.core import memory
from vkdispatch.numpy.core.application import broadcast_shapes, cast, promote
from vkdispatch.numpy.core.application import broadcast_to as broadcast_view
from vkdispatch.numpy.core.array import Array, array_of, describe, parse_index, value_of, view_of
from vkdispatch.numpy.core.conversion import parse_shape, require_array, require_choice, to_array
from vkdispatch.numpy.core.kernels import gather
from vkdispatch.numpy.core.repeating import repeat_calls


def parse_axis(axis: Any, ndim: int, name: str = "axis") -> int:
    """Return an axis counted from the front. Raises AxisError if there is none, TypeError for no int."""
    if isinstance(axis, (bool, np.bool_)):
        raise ArgumentTypeError(f"{name}: expected an int, got {axis!r}")
    place = parse_index(axis, name)
    if not -ndim <= place < ndim:
        raise AxisError(f"{name}: axis {place} is out of bounds for an array of {ndim} axes")
    return place % ndim


def all_axes(axis: Any, ndim: int) -> Any:
    """Return None for the axes 0 and -1 of an array without axes, as NumPy often does; else the axis."""
    return None if not ndim and type(axis) is int and axis in (0, -1) else axis


def parse_axes(axis: Any, ndim: int, name: str = "axis") -> tuple[int, ...]:
    """Return axes counted from the front; None: all. Raises AxisError for axes out of range or repeated."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    found = tuple(parse_axis(each, ndim, name) for each in axes)
    if len(set(found)) < len(found):
        raise AxisError(f"{name}: expected different axes, got {axes}")
    return found


def lines_along(array: Array, axis: Any) -> tuple[Array, int]:
    """Return an array and its axis, counted from the front; flattened for the axis None."""
    return (reshape(array, -1), 0) if axis is None else (array, parse_axis(axis, array.ndim))


def lines_last(array: Array, axis: Any) -> tuple[Array, tuple[int, ...]]:
    """Return the array with axes joined as its last one, and the axes."""
    axes = parse_axes(axis, array.ndim)
    kept = array.ndim - len(axes)
    moved = moveaxis(array, axes, tuple(range(kept, array.ndim)))
    return reshape(moved, (*moved.shape[:kept], math.prod(moved.shape[kept:]))), axes


def slice_axis(array: Array, axis: int, start: int | None, stop: int | None = None) -> Array:
    """Return a part of an array along an axis: a view."""
    return array[(*(slice(None),) * axis, slice(start, stop))]


def replace_axis(shape: memory.Shape, axis: int, *lengths: int) -> memory.Shape:
    """Return a shape with other lengths in place of the one of an axis."""
    return (*shape[:axis], *lengths, *shape[axis + 1 :])


def view_with(
    view: memory.View, shape: memory.Shape, strides: memory.Shape, offset: int | None = None
) -> Array:
    """Return an array on the memory of a view, with another shape and strides."""
    offset = view.offset if offset is None else offset
    return array_of(memory.View(view.storage, shape, view.dtype, offset, strides))


def reshape(x: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Array:
    """Return the elements with another shape. See `numpy.reshape`.

    Parameters
    ----------
    shape
        Lengths of which one may be -1: it follows from the others.
    order
        In which order elements are taken and placed: "C", the last axis first; "F", the first axis first;
        "A", "F" if the elements lie so in memory, else "C".
    copy
        True always copies; False raises ValueError where a copy is needed; None returns a view if possible.

    Raises
    ------
    ValueError
        The number of elements differs, there is no such order, or see `copy`.

    Examples
    --------
    >>> vnp.reshape(vnp.arange(6), (2, 3))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int64)
    """
    array = require_array(x)
    require_choice(order, "order", "C", "F", "A")
    view = view_of(array)
    if order == "F" or (order == "A" and not view.is_contiguous and memory.is_f_order(view)):
        axes = tuple(reversed(range(array.ndim)))
        wanted = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)
        turned = reshape(permute_dims(array, axes), tuple(reversed(wanted)), copy=copy)
        return permute_dims(turned, tuple(reversed(range(turned.ndim))))
    lengths = _complete(array.shape, array.size, shape)
    if lengths == array.shape and not copy:
        return array_of(view)
    strides = None if copy else memory.reshape_strides(view, lengths)
    if strides is None:
        if copy is False:
            raise ArgumentValueError(f"copy: False was passed, but {array.shape} to {lengths} needs a copy")
        view = gather(view)
        return array_of(memory.View(view.storage, lengths, view.dtype, view.offset))
    return view_with(view, lengths, strides)


def _complete(own: memory.Shape, size: int, shape: Any) -> memory.Shape:
    given = (shape,) if isinstance(shape, (int, np.integer)) else shape
    wanted = tuple(parse_index(length, "shape") for length in given)
    known = math.prod(n for n in wanted if n != -1)
    rest = size // known if known and wanted.count(-1) == 1 else -1
    lengths = tuple(rest if n == -1 else int(n) for n in wanted)
    if any(n < 0 for n in lengths) or math.prod(lengths) != size:
        raise ArgumentValueError(f"shape: cannot reshape an array of shape {own} into {wanted}")
    return lengths


def ravel(x: Any, order: str = "C") -> Array:
    """Return the elements along one axis: a view if they lie so in memory, else a copy. See `numpy.ravel`.

    Parameters
    ----------
    order
        "C", "F" or "A", as of `reshape`; or "K", the order of the elements in memory, but for axes with
        negative strides, which keep their direction.

    Examples
    --------
    >>> vnp.ravel(vnp.asarray([[1, 2], [3, 4]]))
    Array([1, 2, 3, 4], dtype=int64)
    """
    array = _in_order(require_array(x), order)
    return reshape(array, -1, copy=None if view_of(array).is_contiguous else True)


def _in_order(array: Array, order: str) -> Array:
    """Return the array with its axes in the order in which `ravel` takes the elements."""
    view = view_of(array)
    if order == "K":
        return permute_dims(array, _axes_in_memory(view))
    require_choice(order, "order", "C", "F", "A", "K")
    is_turned = order == "F" or (order == "A" and not view.is_contiguous and memory.is_f_order(view))
    return permute_dims(array) if is_turned else array


def _axes_in_memory(view: memory.View) -> list[int]:
    """Return the axes of a view by their strides, the largest first; repeated axes stay where they are."""
    axes: list[int] = []
    for axis in reversed(range(len(view.shape))):
        own = abs(view.strides[axis]) if view.shape[axis] > 1 else 0
        place = len(axes)
        for at in reversed(range(len(axes))):
            other = abs(view.strides[axes[at]]) if view.shape[axes[at]] > 1 else 0
            if own and other:
                if other <= own:
                    break
                place = at
        axes.insert(place, axis)
    return axes[::-1]


def permute_dims(x: Any, /, axes: Any = None) -> Array:
    """Return the array with its axes in another order, by default reversed: a view. See `numpy.transpose`.

    Examples
    --------
    >>> vnp.permute_dims(vnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    array = require_array(x)
    if axes is None:
        axes = reversed(range(array.ndim))
    order = parse_axes(axes if isinstance(axes, (int, np.integer)) else tuple(axes), array.ndim, "axes")
    if len(order) != array.ndim:
        raise ArgumentValueError(f"axes: expected {array.ndim} axes, got {axes}")
    view = view_of(array)
    return view_with(view, tuple(view.shape[i] for i in order), tuple(view.strides[i] for i in order))


def transpose(x: Any, /, axes: Any = None) -> Array:
    """Return the array with its axes in another order, by default reversed: a view. See `numpy.transpose`.

    Examples
    --------
    >>> vnp.transpose(vnp.asarray([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int64)
    """
    return permute_dims(x, axes)


def require_matrix(x: Any, name: str = "x") -> Array:
    """Return an argument as an array of at least two axes. Raises ValueError for fewer."""
    array = require_array(x, name)
    if array.ndim < 2:
        raise ArgumentValueError(f"{name}: expected at least two axes, got the shape {array.shape}")
    return array


def matrix_transpose(x: Any, /) -> Array:
    """Return the array with its last two axes exchanged: a view. Raises ValueError for fewer axes.

    Examples
    --------
    >>> vnp.matrix_transpose(vnp.arange(6).reshape(2, 3))
    Array([[0, 3],
           [1, 4],
           [2, 5]], dtype=int64)
    """
    return swapaxes(require_matrix(x), -1, -2)


def swapaxes(x: Any, axis1: int, axis2: int) -> Array:
    """Return the array with two axes exchanged: a view. See `numpy.swapaxes`.

    Examples
    --------
    >>> vnp.swapaxes(vnp.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    array = require_array(x)
    order = list(range(array.ndim))
    first, second = parse_axis(axis1, array.ndim, "axis1"), parse_axis(axis2, array.ndim, "axis2")
    order[first], order[second] = second, first
    return permute_dims(array, order)


def moveaxis(x: Any, /, source: Any, destination: Any) -> Array:
    """Return the array with axes moved to other places: a view. See `numpy.moveaxis`.

    Examples
    --------
    >>> vnp.moveaxis(vnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    array = require_array(x)
    start = parse_axes(source, array.ndim, "source")
    end = parse_axes(destination, array.ndim, "destination")
    if len(start) != len(end):
        raise ArgumentValueError("source, destination: expected as many axes in both")
    order = [axis for axis in range(array.ndim) if axis not in start]
    for place, axis in sorted(zip(end, start, strict=True)):
        order.insert(place, axis)
    return permute_dims(array, order)


def rollaxis(x: Any, axis: int, start: int = 0) -> Array:
    """Return the array with an axis moved before another one: a view. See `numpy.rollaxis`.

    Examples
    --------
    >>> vnp.rollaxis(vnp.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    array = require_array(x)
    place = parse_axis(axis, array.ndim)
    before = parse_index(start, "start")
    if before == array.ndim:
        return moveaxis(array, place, -1)
    before = parse_axis(before, array.ndim, "start")
    return moveaxis(array, place, before - 1 if before > place else before)


def expand_dims(x: Any, /, axis: Any = 0) -> Array:
    """Return the array with new axes of length one: a view. See `numpy.expand_dims`.

    Examples
    --------
    >>> vnp.expand_dims(vnp.arange(3), 0)
    Array([[0, 1, 2]], dtype=int64)
    """
    array = require_array(x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    places = parse_axes(axis, array.ndim + count)
    shape = iter(array.shape)
    return reshape(array, tuple(1 if i in places else next(shape) for i in range(array.ndim + count)))


def squeeze(x: Any, /, axis: Any = None) -> Array:
    """Return the array without axes of length one: a view. Raises ValueError for a longer axis.

    Examples
    --------
    >>> vnp.squeeze(vnp.zeros((1, 3, 1))).shape
    (3,)
    """
    array = require_array(x)
    axis = all_axes(axis, array.ndim)
    if axis is None:
        axes = tuple(i for i, n in enumerate(array.shape) if n == 1)
    else:
        axes = parse_axes(axis, array.ndim)
        if any(array.shape[i] != 1 for i in axes):
            raise ArgumentValueError(f"axis: expected axes of length one, got {axis} of shape {array.shape}")
    view = view_of(array)
    kept = [i for i in range(array.ndim) if i not in axes]
    return view_with(view, tuple(view.shape[i] for i in kept), tuple(view.strides[i] for i in kept))


def broadcast_to(x: Any, /, shape: Any) -> Array:
    """Return a read-only view of the array with a larger shape. See `numpy.broadcast_to`.

    Examples
    --------
    >>> vnp.broadcast_to(vnp.arange(3), (2, 3))
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int64)
    """
    view = broadcast_view(value_of(require_array(x)), parse_shape(shape))
    return _protect(view)


def _protect(view: memory.View) -> Array:
    storage = memory.share_storage(view.storage, is_read_only=True)
    return array_of(memory.View(storage, view.shape, view.dtype, view.offset, view.strides))


def broadcast_arrays(*arrays: Any) -> tuple[Array, ...]:
    """Return views of arrays with the shape to which they broadcast. See `numpy.broadcast_arrays`.

    Examples
    --------
    >>> x, y = vnp.broadcast_arrays(vnp.arange(3), vnp.asarray([[1], [2]]))
    >>> y
    Array([[1, 1, 1],
           [2, 2, 2]], dtype=int64)
    """
    found = [require_array(array) for array in arrays]
    if not found:
        return ()
    shape = broadcast_shapes([each.shape for each in found], "broadcast_arrays")
    return tuple(broadcast_to(each, shape) for each in found)


@repeat_calls
def meshgrid(
    *arrays: Any, indexing: str = "xy", copy: bool = True, sparse: bool = False
) -> tuple[Array, ...]:
    """Return coordinate matrices of coordinate vectors. See `numpy.meshgrid`.

    Raises
    ------
    ValueError
        `indexing` is neither "xy" nor "ij", or an array has more than one axis.

    Examples
    --------
    >>> x, y = vnp.meshgrid(vnp.arange(3), vnp.arange(2))
    >>> x
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int64)
    >>> y
    Array([[0, 0, 0],
           [1, 1, 1]], dtype=int64)
    """
    require_choice(indexing, "indexing", "xy", "ij")
    vectors = [to_array(each, f"arrays[{i}]") for i, each in enumerate(arrays)]
    if any(each.ndim > 1 for each in vectors):
        raise ArgumentValueError("arrays: expected vectors, got " + ", ".join(str(v.shape) for v in vectors))
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    shape = [0] * len(vectors)
    for axis, vector in zip(order, vectors, strict=True):
        shape[axis] = vector.size
    found = []
    for axis, vector in zip(order, vectors, strict=True):
        own = [1] * len(vectors)
        own[axis] = vector.size
        part = reshape(vector, tuple(own))
        if not sparse:
            part = broadcast_to(part, tuple(shape))
        found.append(part.copy() if copy else part)
    return tuple(found)


def flip(x: Any, /, axis: Any = None) -> Array:
    """Return the array with its elements reversed along axes: a view. See `numpy.flip`.

    Examples
    --------
    >>> vnp.flip(vnp.arange(3))
    Array([2, 1, 0], dtype=int64)
    """
    array = require_array(x)
    axes = parse_axes(axis, array.ndim)
    view = view_of(array)
    offset, strides = view.offset, list(view.strides)
    for i in axes:
        if view.shape[i]:
            offset += (view.shape[i] - 1) * strides[i]
        strides[i] = -strides[i]
    return view_with(view, view.shape, tuple(strides), offset)


def fliplr(x: Any) -> Array:
    """Return the array reversed along its second axis: a view. Raises ValueError for fewer axes.

    Examples
    --------
    >>> vnp.fliplr(vnp.arange(6).reshape(2, 3))
    Array([[2, 1, 0],
           [5, 4, 3]], dtype=int64)
    """
    return flip(require_matrix(x), axis=1)


def flipud(x: Any) -> Array:
    """Return the array reversed along its first axis: a view.

    Examples
    --------
    >>> vnp.flipud(vnp.arange(6).reshape(2, 3))
    Array([[3, 4, 5],
           [0, 1, 2]], dtype=int64)
    """
    return flip(x, axis=0)


def rot90(x: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Return the array turned by 90 degrees in a plane: a view. See `numpy.rot90`.

    Examples
    --------
    >>> vnp.rot90(vnp.asarray([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int64)
    """
    turns = k % 4
    ndim = require_array(x).ndim
    if ndim < 2 or parse_axis(axes[0], ndim, "axes") == parse_axis(axes[1], ndim, "axes"):
        raise ArgumentValueError(f"axes: expected two different axes, got {axes} for an array of {ndim}")
    if turns == 0:
        return array_of(view_of(require_array(x)))
    if turns == 2:
        return flip(x, axis=axes)
    if turns == 1:
        return swapaxes(flip(x, axis=axes[1]), *axes)
    return flip(swapaxes(x, *axes), axis=axes[1])


def result_type(*arrays_and_dtypes: Any) -> memory.Kind:
    """Return the dtype to which arrays, dtypes and Python numbers promote. See `numpy.result_type`.

    Examples
    --------
    >>> vnp.result_type(vnp.int32, vnp.float32)
    dtype('float64')
    """
    given: list[Any] = []
    for operand in arrays_and_dtypes:
        if isinstance(operand, (Array, np.ndarray, np.generic)):
            given.append(operand.dtype)
        else:
            is_number = isinstance(operand, (int, float, complex))
            given.append(operand if is_number else memory.parse_dtype(operand))
    try:
        return promote(*given)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"result_type: {error}") from None


def atleast_1d(*arrays: Any) -> Any:
    """Return arrays with at least one axis. See `numpy.atleast_1d`.

    Examples
    --------
    >>> vnp.atleast_1d(vnp.asarray(3))
    Array([3], dtype=int64)
    """
    found = [reshape(each, 1) if require_array(each).ndim == 0 else require_array(each) for each in arrays]
    return found[0] if len(found) == 1 else tuple(found)


def atleast_2d(*arrays: Any) -> Any:
    """Return arrays with at least two axes. See `numpy.atleast_2d`.

    Examples
    --------
    >>> vnp.atleast_2d(vnp.arange(3))
    Array([[0, 1, 2]], dtype=int64)
    """
    found = [a if (a := require_array(array)).ndim >= 2 else reshape(a, (1, a.size)) for array in arrays]
    return found[0] if len(found) == 1 else tuple(found)


def atleast_3d(*arrays: Any) -> Any:
    """Return arrays with at least three axes. See `numpy.atleast_3d`.

    Examples
    --------
    >>> vnp.atleast_3d(vnp.arange(3)).shape
    (1, 3, 1)
    """
    found = []
    for each in arrays:
        array = require_array(each)
        shape = {0: (1, 1, 1), 1: (1, array.size, 1), 2: (*array.shape, 1)}.get(array.ndim, array.shape)
        found.append(reshape(array, shape))
    return found[0] if len(found) == 1 else tuple(found)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """Return the array with another dtype. See `numpy.astype`.

    Raises
    ------
    TypeError
        `x` is no Array, or the dtype is none of arrays'.

    Examples
    --------
    >>> vnp.astype(vnp.asarray([1.7, -1.7]), vnp.int32)
    Array([ 1, -1], dtype=int32)
    """
    if not isinstance(x, Array):
        raise ArgumentTypeError(f"x: expected an Array, got {describe(x)}; convert it with vnp.asarray")
    kind = memory.parse_dtype(dtype)
    if device is not None:
        x = x.to_device(device)
    if kind == x.dtype:
        return x.copy() if copy else x  # type: ignore[no-any-return]
    return array_of(cast(value_of(x), kind))


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return diagonals of an array as its last axis: a read-only view. See `numpy.diagonal`.

    Examples
    --------
    >>> vnp.diagonal(vnp.arange(9).reshape(3, 3))
    Array([0, 4, 8], dtype=int64)
    """
    return _protect(view_diagonal(require_array(x), offset, axis1, axis2))


def view_diagonal(array: Array, offset: int, axis1: int = 0, axis2: int = 1) -> memory.View:
    """Return the view that `diagonal` shows."""
    require_matrix(array)
    first, second = parse_axis(axis1, array.ndim, "axis1"), parse_axis(axis2, array.ndim, "axis2")
    if first == second:
        raise ArgumentValueError("axis1, axis2: expected different axes")
    offset = parse_index(offset, "offset")
    view = view_of(array)
    rows, columns = view.shape[first], view.shape[second]
    start = view.offset
    if offset >= 0:
        columns -= offset
        start += offset * view.strides[second]
    else:
        rows += offset
        start -= offset * view.strides[first]
    count = max(0, min(rows, columns))
    kept = [i for i in range(array.ndim) if i not in (first, second)]
    shape = (*(view.shape[i] for i in kept), count)
    strides = (*(view.strides[i] for i in kept), view.strides[first] + view.strides[second])
    return memory.View(view.storage, shape, view.dtype, start if count else view.offset, strides)


def as_strided(
    x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True
) -> Array:
    """Return a view with another shape and other strides. See `numpy.lib.stride_tricks.as_strided`.

    All its elements lie in the memory of `x`, from the first element of `x` on.

    Parameters
    ----------
    shape
        None: that of `x`.
    strides
        How many bytes neighbours along each axis are apart; None: as those of `x`.
    writeable
        False makes the view read-only. Views that show an element several times always are.

    Raises
    ------
    ValueError
        There are not as many strides as axes, a stride is no multiple of the size of an element, or an
        element lies outside of the memory.

    Examples
    --------
    >>> x = vnp.arange(5)
    >>> vnp.lib.stride_tricks.as_strided(x, (3, 3), (8, 8))
    Array([[0, 1, 2],
           [1, 2, 3],
           [2, 3, 4]], dtype=int64)
    """
    view = view_of(require_array(x))
    size = view.dtype.itemsize
    lengths = view.shape if shape is None else parse_shape(shape, "shape")
    steps = tuple(step * size for step in view.strides)
    if strides is not None:
        given = strides if np.iterable(strides) else (strides,)
        steps = tuple(parse_index(stride, "strides") for stride in given)
    if len(steps) != len(lengths):
        raise ArgumentValueError(f"strides: expected one for each axis of the shape {lengths}, got {steps}")
    if any(step % size for step in steps):
        raise ArgumentValueError(
            f"strides: expected multiples of the {size} bytes of an element of {view.dtype}, got {steps}"
        )
    made = memory.View(view.storage, lengths, view.dtype, view.offset, tuple(step // size for step in steps))
    if made.size:
        low, high = memory.bounds(made)
        count = view.storage.buffer.size
        if low < 0 or high >= count:
            raise ArgumentValueError(
                f"strides: {steps} and the shape {lengths} show elements {low} to {high} of {count} in memory"
            )
    return array_of(made) if writeable else _protect(made)


def sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Array:
    """Return all windows of a shape along axes: a read-only view. See `numpy.lib.stride_tricks`.

    Parameters
    ----------
    window_shape
        The length of the window along each of the axes, an int or several.
    axis
        An int or several; None: all axes.

    Raises
    ------
    ValueError
        There are other numbers of lengths and axes, or a window is longer than its axis.
    AxisError
        There is no such axis.

    Examples
    --------
    >>> vnp.sliding_window_view(vnp.arange(5), 3)
    Array([[0, 1, 2],
           [1, 2, 3],
           [2, 3, 4]], dtype=int64)
    """
    array = require_array(x)
    window = parse_shape(window_shape, "window_shape")
    axes = range(array.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    places = [parse_axis(each, array.ndim) for each in axes]
    if len(window) != len(places):
        raise ArgumentValueError(
            f"window_shape: expected {len(places)} lengths, one for each axis, got {window}"
        )
    view = view_of(array)
    rest = list(view.shape)
    for place, length in zip(places, window, strict=True):
        rest[place] -= length - 1
        if rest[place] < 1:
            raise ArgumentValueError(
                f"window_shape: {window} does not fit into the axes {tuple(axes)} of the shape {view.shape}"
            )
    strides = (*view.strides, *(view.strides[place] for place in places))
    return _protect(memory.View(view.storage, (*rest, *window), view.dtype, view.offset, strides))
