"""Shapes and orders of elements: views where that is possible."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, AxisError
from vkdispatch.numpy.basics.inputs import require_array
from vkdispatch.numpy.core.application import assign, broadcast_shapes, cast
from vkdispatch.numpy.core.application import broadcast_to as broadcast_view
from vkdispatch.numpy.core.array import (
    Array,
    array_of,
    describe,
    parse_index,
    value_of,
    view_of,
)
from vkdispatch.numpy.core.conversion import asarray, parse_shape
from vkdispatch.numpy.core.dtypes import Kind, default_real, float64, parse_dtype
from vkdispatch.numpy.core.kernels import gather, new_view
from vkdispatch.numpy.core.memory import Shape, View, is_f_order, reshape_strides, share_storage

__all__ = [
    "array_split",
    "astype",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_to",
    "column_stack",
    "concat",
    "concatenate",
    "diagonal",
    "dsplit",
    "dstack",
    "expand_dims",
    "flip",
    "fliplr",
    "flipud",
    "hsplit",
    "hstack",
    "matrix_transpose",
    "meshgrid",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "result_type",
    "roll",
    "rollaxis",
    "rot90",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "tile",
    "transpose",
    "unstack",
    "vsplit",
    "vstack",
]


def parse_axis(axis: Any, ndim: int, name: str = "axis") -> int:
    """Return an axis counted from the front. Raises AxisError if there is none, TypeError for no int."""
    if isinstance(axis, (bool, np.bool_)):
        raise ArgumentTypeError(f"{name}: expected an int, got {axis!r}")
    place = parse_index(axis, name)
    if not -ndim <= place < ndim:
        raise AxisError(f"{name}: axis {place} is out of bounds for an array of {ndim} axes")
    return place % ndim


def parse_axes(axis: Any, ndim: int, name: str = "axis") -> tuple[int, ...]:
    """Return axes counted from the front; None: all. Raises AxisError for axes out of range or repeated."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    found = tuple(parse_axis(each, ndim, name) for each in axes)
    if len(set(found)) < len(found):
        raise AxisError(f"{name}: expected different axes, got {axes}")
    return found


def view_with(view: View, shape: Shape, strides: Shape, offset: int | None = None) -> Array:
    """Return an array on the memory of a view, with another shape and strides."""
    return array_of(View(view.storage, shape, view.dtype, view.offset if offset is None else offset, strides))


def reshape(x: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Array:
    """Return the elements with another shape. See `numpy.reshape`.

    Parameters
    ----------
    shape
        Lengths of which one may be -1: it follows from the others.
    order
        In which order elements are taken and placed: "C", the last axis first; "F", the first axis first;
        "A", "F" if the elements lie so in memory.
    copy
        True always copies; False raises ValueError where a copy is needed; None returns a view if possible.

    Raises
    ------
    ValueError
        The number of elements differs, there is no such order, or see `copy`.
    """
    array = require_array(x)
    if order not in ("C", "F", "A", "K"):
        raise ArgumentValueError(f"order: expected 'C', 'F', 'A' or 'K', got {order!r}")
    view = view_of(array)
    if order == "F" or (order != "C" and not view.is_contiguous and is_f_order(view)):
        axes = tuple(reversed(range(array.ndim)))
        wanted = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)
        turned = reshape(permute_dims(array, axes), tuple(reversed(wanted)), copy=copy)
        return permute_dims(turned, tuple(reversed(range(turned.ndim))))
    lengths = _complete(array.shape, array.size, shape)
    if lengths == array.shape and not copy:
        return array_of(view)
    strides = None if copy else reshape_strides(view, lengths)
    if strides is None:
        if copy is False:
            raise ArgumentValueError(f"copy: False was given, but {array.shape} to {lengths} needs a copy")
        view = gather(view)
        return array_of(View(view.storage, lengths, view.dtype, view.offset))
    return view_with(view, lengths, strides)


def _complete(own: Shape, size: int, shape: Any) -> Shape:
    wanted = (
        (int(shape),)
        if isinstance(shape, (int, np.integer))
        else tuple(parse_index(n, "shape") for n in shape)
    )
    if -1 in wanted:
        known = math.prod(n for n in wanted if n != -1)
        if wanted.count(-1) > 1 or known == 0 or size % known:
            raise ArgumentValueError(f"shape: cannot reshape an array of shape {own} into {wanted}")
        wanted = tuple(size // known if n == -1 else n for n in wanted)
    if any(n < 0 for n in wanted) or math.prod(wanted) != size:
        raise ArgumentValueError(f"shape: cannot reshape an array of shape {own} into {wanted}")
    return tuple(int(n) for n in wanted)


def ravel(x: Any, order: str = "C") -> Array:
    """Return the elements along one axis: a view if they lie so in memory, else a copy. See `numpy.ravel`."""
    view = view_of(require_array(x))
    is_fortran = order != "C" and is_f_order(view)
    is_view = is_fortran or (order != "F" and view.is_contiguous)
    return reshape(x, -1, order, copy=None if is_view else True)


def permute_dims(x: Any, /, axes: Any = None) -> Array:
    """Return the array with its axes in another order, by default reversed: a view. See `numpy.transpose`."""
    array = require_array(x)
    if axes is None:
        axes = reversed(range(array.ndim))
    order = parse_axes(axes if isinstance(axes, (int, np.integer)) else tuple(axes), array.ndim, "axes")
    if len(order) != array.ndim:
        raise ArgumentValueError(f"axes: expected {array.ndim} axes, got {axes}")
    view = view_of(array)
    return view_with(view, tuple(view.shape[i] for i in order), tuple(view.strides[i] for i in order))


def transpose(x: Any, /, axes: Any = None) -> Array:
    """Return the array with its axes in another order, by default reversed: a view. See `numpy.transpose`."""
    return permute_dims(x, axes)


def matrix_transpose(x: Any, /) -> Array:
    """Return the array with its last two axes exchanged: a view. Raises ValueError for fewer axes."""
    array = require_array(x)
    if array.ndim < 2:
        raise ArgumentValueError(f"x: expected at least two axes, got the shape {array.shape}")
    return swapaxes(array, -1, -2)


def swapaxes(x: Any, axis1: int, axis2: int) -> Array:
    """Return the array with two axes exchanged: a view. See `numpy.swapaxes`."""
    array = require_array(x)
    order = list(range(array.ndim))
    first, second = parse_axis(axis1, array.ndim, "axis1"), parse_axis(axis2, array.ndim, "axis2")
    order[first], order[second] = second, first
    return permute_dims(array, order)


def moveaxis(x: Any, /, source: Any, destination: Any) -> Array:
    """Return the array with axes moved to other places: a view. See `numpy.moveaxis`."""
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
    """Return the array with an axis moved before another one: a view. See `numpy.rollaxis`."""
    array = require_array(x)
    place = parse_axis(axis, array.ndim)
    return moveaxis(array, place, start - 1 if start > place else start)


def expand_dims(x: Any, /, axis: Any = 0) -> Array:
    """Return the array with new axes of length one: a view. See `numpy.expand_dims`."""
    array = require_array(x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    places = parse_axes(axis, array.ndim + count)
    shape = iter(array.shape)
    return reshape(array, tuple(1 if i in places else next(shape) for i in range(array.ndim + count)))


def squeeze(x: Any, /, axis: Any = None) -> Array:
    """Return the array without axes of length one: a view. Raises ValueError for a longer axis."""
    array = require_array(x)
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
    """Return a read-only view of the array with a larger shape. See `numpy.broadcast_to`."""
    view = broadcast_view(value_of(require_array(x)), parse_shape(shape))
    return _protect(view)


def _protect(view: View) -> Array:
    """Return a read-only array of a view."""
    storage = share_storage(view.storage, is_read_only=True)
    return array_of(View(storage, view.shape, view.dtype, view.offset, view.strides))


def broadcast_arrays(*arrays: Any) -> tuple[Array, ...]:
    """Return views of arrays with the shape to which they broadcast. See `numpy.broadcast_arrays`."""
    found = [require_array(each) for each in arrays]
    if not found:
        return ()
    shape = broadcast_shapes([each.shape for each in found], "broadcast_arrays")
    return tuple(broadcast_to(each, shape) for each in found)


def meshgrid(
    *arrays: Any, indexing: str = "xy", copy: bool = True, sparse: bool = False
) -> tuple[Array, ...]:
    """Return coordinate matrices of coordinate vectors. See `numpy.meshgrid`.

    Raises
    ------
    ValueError
        `indexing` is neither "xy" nor "ij", or an array has more than one axis.
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentValueError(f"indexing: expected 'xy' or 'ij', got {indexing!r}")
    vectors = [asarray(each) for each in arrays]
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
    """Return the array with its elements reversed along axes: a view. See `numpy.flip`."""
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
    """Return the array reversed along its second axis: a view. Raises ValueError for fewer axes."""
    if require_array(x).ndim < 2:
        raise ArgumentValueError(f"x: expected at least two axes, got the shape {x.shape}")
    return flip(x, axis=1)


def flipud(x: Any) -> Array:
    """Return the array reversed along its first axis: a view."""
    return flip(x, axis=0)


def rot90(x: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Return the array turned by 90 degrees in a plane: a view. See `numpy.rot90`."""
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


def roll(x: Any, /, shift: Any, axis: Any = None) -> Array:
    """Return the array with its elements moved round along axes. See `numpy.roll`."""
    array = require_array(x)
    if axis is None:
        return reshape(roll(reshape(array, -1), shift, axis=0), array.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(axes) == 1 and len(shifts) > 1:
        axes = tuple(axes) * len(shifts)
    if len(axes) != len(shifts):
        raise ArgumentValueError("shift, axis: expected as many shifts as axes")
    for each, amount in zip(axes, shifts, strict=True):
        place = parse_axis(each, array.ndim)
        length = array.shape[place]
        cut = -parse_index(amount, "shift") % length if length else 0
        if cut:
            before = (slice(None),) * place
            array = concatenate(
                [array[(*before, slice(cut, None))], array[(*before, slice(None, cut))]], axis=place
            )
    return array.copy() if array is x else array


def result_type(*arrays_and_dtypes: Any) -> Kind:
    """Return the dtype to which arrays, dtypes and Python numbers promote. See `numpy.result_type`."""
    given: list[Any] = []
    for each in arrays_and_dtypes:
        if isinstance(each, Array):
            given.append(each.dtype)
        elif isinstance(each, (bool, int, float, complex)):
            given.append(each)
        elif isinstance(each, (np.ndarray, np.generic)):
            given.append(each.dtype)
        else:
            given.append(parse_dtype(each))
    try:
        found = np.result_type(*given)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"result_type: {error}") from None
    if found == float64 and float64 not in given and default_real() != float64:
        return np.dtype(np.float32)
    return found


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
    """
    parts = [require_array(each, f"arrays[{i}]") for i, each in enumerate(arrays)]
    if not parts:
        raise ArgumentValueError("arrays: need at least one array to concatenate")
    if axis is None:
        parts, axis = [reshape(each, -1) for each in parts], 0
    ndim = parts[0].ndim
    if ndim == 0:
        raise ArgumentValueError("arrays: zero-dimensional arrays cannot be concatenated")
    place = parse_axis(axis, ndim)
    for i, each in enumerate(parts):
        rest = each.shape[:place] + each.shape[place + 1 :]
        if each.ndim != ndim or rest != parts[0].shape[:place] + parts[0].shape[place + 1 :]:
            raise ArgumentValueError(
                f"arrays: all axes but the joined one must agree; arrays[0] has the shape {parts[0].shape}, "
                f"arrays[{i}] {each.shape}"
            )
    if out is not None and dtype is not None:
        raise ArgumentTypeError("out, dtype: expected one of both")
    common = result_type(*parts)
    kind = common if dtype is None else parse_dtype(dtype)
    if isinstance(out, Array):
        kind = out.dtype
    if not np.can_cast(common, kind, casting):  # type: ignore[arg-type]
        raise ArgumentTypeError(f"concatenate: cannot cast {common} to {kind} by the rule {casting!r}")
    lengths = [each.shape[place] for each in parts]
    shape = (*parts[0].shape[:place], sum(lengths), *parts[0].shape[place + 1 :])
    if out is not None:
        if not isinstance(out, Array) or out.shape != shape:
            raise ArgumentValueError(f"out: expected an Array of shape {shape}, got {describe(out)}")
        target = view_of(out)
    else:
        target = new_view(shape, kind, view_of(parts[0]).storage.context)
    start = 0
    for each, length in zip(parts, lengths, strict=True):
        if each.size:
            own = (*shape[:place], length, *shape[place + 1 :])
            offset = target.offset + start * target.strides[place]
            piece = View(target.storage, own, target.dtype, offset, target.strides)
            assign(piece, value_of(each))
        start += length
    return out if out is not None else array_of(target)


concat = concatenate


def stack(
    arrays: Sequence[Any], /, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Array:
    """Return arrays joined along a new axis. See `numpy.stack`. Raises ValueError for different shapes."""
    parts = [require_array(each, f"arrays[{i}]") for i, each in enumerate(arrays)]
    if not parts:
        raise ArgumentValueError("arrays: need at least one array to stack")
    if any(each.shape != parts[0].shape for each in parts):
        raise ArgumentValueError(f"arrays: all must have one shape, got {[each.shape for each in parts]}")
    place = parse_axis(axis, parts[0].ndim + 1)
    return concatenate(
        [expand_dims(each, place) for each in parts], axis=place, out=out, dtype=dtype, casting=casting
    )


def atleast_1d(*arrays: Any) -> Any:
    """Return arrays with at least one axis. See `numpy.atleast_1d`."""
    found = [reshape(each, 1) if require_array(each).ndim == 0 else require_array(each) for each in arrays]
    return found[0] if len(found) == 1 else tuple(found)


def atleast_2d(*arrays: Any) -> Any:
    """Return arrays with at least two axes. See `numpy.atleast_2d`."""
    found = [a if (a := require_array(each)).ndim >= 2 else reshape(a, (1, a.size)) for each in arrays]
    return found[0] if len(found) == 1 else tuple(found)


def atleast_3d(*arrays: Any) -> Any:
    """Return arrays with at least three axes. See `numpy.atleast_3d`."""
    found = []
    for each in arrays:
        array = require_array(each)
        shape = {0: (1, 1, 1), 1: (1, array.size, 1), 2: (*array.shape, 1)}.get(array.ndim, array.shape)
        found.append(reshape(array, shape))
    return found[0] if len(found) == 1 else tuple(found)


def vstack(arrays: Sequence[Any], *, dtype: Any = None, casting: Any = "same_kind") -> Array:
    """Return arrays joined as rows. See `numpy.vstack`."""
    return concatenate([atleast_2d(each) for each in arrays], axis=0, dtype=dtype, casting=casting)


def hstack(arrays: Sequence[Any], *, dtype: Any = None, casting: Any = "same_kind") -> Array:
    """Return arrays joined as columns. See `numpy.hstack`."""
    parts = [atleast_1d(each) for each in arrays]
    return concatenate(parts, axis=0 if parts and parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def dstack(arrays: Sequence[Any]) -> Array:
    """Return arrays joined along the third axis. See `numpy.dstack`."""
    return concatenate([atleast_3d(each) for each in arrays], axis=2)


def column_stack(arrays: Sequence[Any]) -> Array:
    """Return vectors as the columns of a matrix. See `numpy.column_stack`."""
    parts = [a if (a := require_array(each)).ndim >= 2 else reshape(a, (-1, 1)) for each in arrays]
    return concatenate(parts, axis=1)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the parts of an array along an axis: views. See `numpy.unstack`."""
    array = moveaxis(x, axis, 0)
    return tuple(array[i] for i in range(array.shape[0]))


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Return equal parts of an array along an axis: views. See `numpy.split`. Else raises ValueError."""
    array = require_array(x)
    length = array.shape[parse_axis(axis, array.ndim)]
    if isinstance(indices_or_sections, int) and length % indices_or_sections:
        raise ArgumentValueError(
            f"indices_or_sections: {length} elements do not part into {indices_or_sections}"
        )
    return array_split(array, indices_or_sections, axis)


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Return parts of an array along an axis, of nearly equal length: views. See `numpy.array_split`."""
    array = require_array(x)
    place = parse_axis(axis, array.ndim)
    length = array.shape[place]
    if isinstance(indices_or_sections, (int, np.integer)):
        count = int(indices_or_sections)
        if count <= 0:
            raise ArgumentValueError(f"indices_or_sections: expected at least one part, got {count}")
        base, more = divmod(length, count)
        ends = list(np.cumsum([base + (i < more) for i in range(count)]))[:-1]
    else:
        ends = [int(each) for each in indices_or_sections]
    starts = [0, *ends]
    before = (slice(None),) * place
    return [array[(*before, slice(a, b))] for a, b in zip(starts, [*ends, None], strict=True)]


def _require_axes(x: Any, count: int, name: str) -> None:
    if require_array(x).ndim < count:
        raise ArgumentValueError(
            f"{name}: expected an array of {count} or more axes, got the shape {x.shape}"
        )


def dsplit(x: Any, indices_or_sections: Any) -> list[Array]:
    """Return parts of an array along its third axis: views. Raises ValueError if it has none."""
    _require_axes(x, 3, "dsplit")
    return split(x, indices_or_sections, 2)


def hsplit(x: Any, indices_or_sections: Any) -> list[Array]:
    """Return parts of an array along its second axis, or its only one: views. Else raises ValueError."""
    _require_axes(x, 1, "hsplit")
    return split(x, indices_or_sections, 1 if require_array(x).ndim > 1 else 0)


def vsplit(x: Any, indices_or_sections: Any) -> list[Array]:
    """Return parts of an array of two or more axes along its first one: views. Else raises ValueError."""
    _require_axes(x, 2, "vsplit")
    return split(x, indices_or_sections, 0)


def tile(x: Any, /, reps: Any) -> Array:
    """Return the array repeated along its axes. See `numpy.tile`."""
    array = require_array(x)
    counts = parse_shape(reps, "reps")
    ndim = max(array.ndim, len(counts))
    shape = (1,) * (ndim - array.ndim) + array.shape
    counts = (1,) * (ndim - len(counts)) + counts
    apart = tuple(n for length in shape for n in (1, length))
    wide = tuple(n for pair in zip(counts, shape, strict=True) for n in pair)
    final = tuple(a * b for a, b in zip(counts, shape, strict=True))
    return reshape(broadcast_to(reshape(array, apart), wide), final, copy=True)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """Return the array with another dtype. See `numpy.astype`.

    Raises
    ------
    TypeError
        `x` is no Array, or the dtype is none of arrays'.
    """
    if not isinstance(x, Array):
        raise ArgumentTypeError(f"x: expected an Array, got {type(x).__name__}")
    kind = parse_dtype(dtype)
    if device is not None:
        x = x.to_device(device)
    if kind == x.dtype:
        copied: Array = x.copy() if copy else x
        return copied
    return array_of(cast(value_of(x), kind))


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return diagonals of an array as its last axis: a read-only view. See `numpy.diagonal`."""
    return _protect(view_diagonal(require_array(x), offset, axis1, axis2))


def view_diagonal(array: Array, offset: int, axis1: int = 0, axis2: int = 1) -> View:
    """Return the view that `diagonal` shows."""
    if array.ndim < 2:
        raise ArgumentValueError(f"x: expected at least two axes, got the shape {array.shape}")
    first, second = parse_axis(axis1, array.ndim, "axis1"), parse_axis(axis2, array.ndim, "axis2")
    if first == second:
        raise ArgumentValueError("axis1, axis2: expected different axes")
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
    return View(view.storage, shape, view.dtype, start if count else view.offset, strides)
