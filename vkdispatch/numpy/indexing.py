"""Elements at slices, integers, masks and arrays of indices, read and written."""

import math
from itertools import pairwise
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError
from vkdispatch.base.memory.protocols import refuse_kernel_index
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record, replace
from vkdispatch.numpy.basics.creation import empty
from vkdispatch.numpy.basics.elementwise import choose
from vkdispatch.numpy.basics.manipulation import reshape
from vkdispatch.numpy.core import application, array, expressions
from vkdispatch.numpy.core.application import broadcast_to as broadcast_view
from vkdispatch.numpy.core.array import Array, array_from, array_of, value_of, view_of
from vkdispatch.numpy.core.conversion import asarray, from_numpy, read_nested, to_array, translate_error
from vkdispatch.numpy.core.kernels import as_buffer, as_operand, gather, new_view
from vkdispatch.numpy.core.memory import Shape, View, device_of, int64, refuse_recording
from vkdispatch.numpy.core.operations import COPY
from vkdispatch.numpy.core.repeating import repeat_calls
from vkdispatch.numpy.places import Axis, Index, Selection, check_lengths, read_places, write_places
from vkdispatch.rearrange.taking import take as take_elements

# ---- Reading and writing elements at arrays of indices ---------------------------------------------------


# Indices of the host up to which it looks whether they differ.
_MAX_CHECKED = 1 << 14


def nonzero(x: Any, /) -> tuple[Array, ...]:
    """Return the indices of elements that are not zero, one array for each axis. See `numpy.nonzero`.

    Raises
    ------
    ValueError
        The array has no axes.

    Examples
    --------
    >>> vnp.nonzero(vnp.asarray([0, 3, 0, 5]))
    (Array([1, 3], dtype=int64),)
    """
    value = value_of(to_array(x, "x"))
    if not value.shape:
        raise ArgumentValueError("x: nonzero of an array without axes; use reshape(x, 1)")
    if value.size == 0:
        return tuple(empty((0,), int64, device=device_of(value)) for _ in value.shape)
    return tuple(array_from(buffer) for buffer in _find_nonzero(as_operand(value, value.shape)))


def _find_nonzero(x: Any) -> tuple[Any, ...]:
    from vkdispatch.selection.compact import nonzero  # imported by the first mask of a program

    return nonzero(x)


def _flat_nonzero(value: Any) -> Array:
    if value.size == 0:
        return empty((0,), int64, device=device_of(value))
    (places,) = _find_nonzero(as_operand(value, (value.size,)))
    return array_from(places)


@record(eq=False)
class Picked:
    """What arrays of indices and booleans pick of a view.

    Attributes
    ----------
    offset
        The place of the first element.
    axes
        The axes that no array indexes.
    arrays
        Arrays on the device or of NumPy, and the first axis of the view that each indexes.
    place
        Before which of `axes` those of the indices come.
    """

    offset: int
    axes: list[Axis]
    arrays: list[tuple[Any, int]]
    place: int


class _Part:
    """Indices along one or several joined axes; None for a truth value, which has no axis."""

    __slots__ = ("axis", "is_different", "is_valid", "length", "shape", "stride", "values")

    def __init__(self, values: Any, length: int, stride: int, axis: int, valid: bool, different: bool):
        self.values = values
        self.shape: Shape = values.shape
        self.length = length
        self.stride = stride
        self.axis = axis
        self.is_valid = valid
        self.is_different = different


def _parts(view: View, picked: Picked) -> tuple[list[_Part], list[Shape]]:
    """Return the indices, and the shapes of all arrays once masks are indices."""
    parts: list[_Part] = []
    shapes: list[Shape] = []
    for each, axis in picked.arrays:
        if each.dtype.kind == "b":
            own = view.shape[axis : axis + each.ndim]
            _check_mask(each.shape, own)
            if not each.ndim:
                shapes.append((int(bool(each)),))
                continue
            found = _mask_parts(view, each if each.size else np.zeros(own, np.bool_), axis)
        else:
            length = view.shape[axis]
            wanted: Any = _check_host(each, length, axis) if isinstance(each, np.ndarray) else each
            found = [_Part(wanted, length, view.strides[axis], axis, wanted is not each, False)]
        parts += found
        shapes += [part.shape for part in found]
    return parts, shapes


def _check_mask(shape: Shape, own: Shape) -> None:
    """Raise IndexError unless a mask has the shape of the axes; axes of no elements fit any."""
    if shape != own and (0 not in shape or any(a not in (b, 0) for a, b in zip(shape, own, strict=True))):
        raise ArgumentIndexError(f"boolean index of shape {shape} does not fit axes {own}")


def _check_host(index: "np.ndarray[Any, Any]", length: int, axis: int) -> "np.ndarray[Any, Any]":
    wide = index.astype(np.int64)
    bad = (wide < -length) | (wide >= length)
    if bad.any():
        raise ArgumentIndexError(
            f"index {index[bad].reshape(-1)[0]} is out of bounds for axis {axis} with size {length}"
        )
    return np.where(wide < 0, wide + length, wide)


def _mask_parts(view: View, mask: Any, axis: int) -> list[_Part]:
    axes = range(axis, axis + mask.ndim)
    runs = [(mask.shape[i - axis], view.strides[i]) for i in axes if mask.shape[i - axis] != 1]
    joined = all(outer == stride * n for (_, outer), (n, stride) in pairwise(runs))
    if joined and mask.ndim > 1 and mask.size:
        flat = np.flatnonzero(mask) if isinstance(mask, np.ndarray) else _flat_nonzero(value_of(mask))
        return [_Part(flat, mask.size, runs[-1][1] if runs else 1, axis, True, True)]
    found: tuple[Any, ...] = np.nonzero(mask) if isinstance(mask, np.ndarray) else nonzero(mask)
    single = mask.ndim == 1
    return [
        _Part(values, view.shape[i], view.strides[i], i, True, single)
        for values, i in zip(found, axes, strict=True)
    ]


def _select(view: View, picked: Picked) -> tuple[Selection, bool]:
    """Return the selection, and whether its elements are known to be different from each other."""
    parts, shapes = _parts(view, picked)
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        text = " ".join(str(each) for each in shapes)
        raise ArgumentIndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {text}"
        ) from None
    size = math.prod(shape)
    masks = [each for each, _ in picked.arrays if each.dtype.kind == "b" and each.ndim]
    different = size <= 1 or any(part.is_different and math.prod(part.shape) == size for part in parts)
    if parts and len(masks) == len(picked.arrays) == 1 and math.prod(parts[0].shape) == size:
        different = True
    offset = picked.offset
    if parts and all(isinstance(part.values, np.ndarray) for part in parts) and size:
        parts, offset = _combine(parts, offset)
        flat = parts[0].values
        if not different and flat.size == size <= _MAX_CHECKED:
            different = np.unique(flat).size == size
    if not parts:
        parts = [_Part(np.zeros(shape, np.int64), 1, 0, 0, True, False)]
    context = view.storage.context
    indices = []
    for part in parts:
        values = part.values
        if isinstance(values, np.ndarray):
            narrow = values.astype(np.int32 if part.length < 1 << 31 else np.int64)
            values = from_numpy(narrow, context)
        value = value_of(values)
        if value.shape != shape:
            value = broadcast_view(value, shape)
        indices.append(Index(value, part.length, part.stride, part.axis, part.is_valid))
    before, after = tuple(picked.axes[: picked.place]), tuple(picked.axes[picked.place :])
    return Selection(view, offset, before, shape, after, tuple(indices)), different


def _combine(parts: list[_Part], offset: int) -> tuple[list[_Part], int]:
    """Return indices on the host along several axes as indices along one."""
    if len(parts) == 1:
        return parts, offset
    step = math.gcd(*(part.stride for part in parts)) or 1
    flat = sum(part.values * (part.stride // step) for part in parts)
    low = int(flat.min())
    flat = flat - low
    return [_Part(flat, int(flat.max()) + 1, step, 0, True, False)], offset + low * step


def gather_items(view: View, picked: Picked) -> Array:
    """Return the elements that arrays of indices pick. Raises UsageError while a graph records calls."""
    refuse_recording()
    if len(picked.arrays) == 1 and not picked.axes:
        mask, _ = picked.arrays[0]
        if isinstance(mask, Array) and mask.dtype.kind == "b" and mask.shape == view.shape and mask.size:
            size = (mask.size,)
            from vkdispatch.selection.compact import compact  # imported by the first mask of a program

            return array_from(compact(as_operand(view, size), as_operand(value_of(mask), size)))
    selection, _ = _select(view, picked)
    result = new_view(selection.result_shape, view.dtype, view.storage.context)
    if check_lengths(selection):
        index = selection.indices[0]
        is_line = len(view.shape) == 1 and view.is_whole and len(selection.indices) == 1
        if is_line and index.length == view.size:
            places = as_operand(index.value, (index.value.size,))
            mode = "wrap" if index.is_valid else "raise"
            taken = take_elements(as_buffer(view, (view.size,)), places, 0, mode=mode)
            return array_from(taken, selection.result_shape)
        read_places(selection, result.storage.buffer)
    return array_of(result)


def scatter_items(view: View, picked: Picked, value: Any) -> None:
    """Write a value to the elements that arrays of indices pick; of several for one the last counts."""
    application.refuse_read_only(view)
    is_number = not isinstance(value, (expressions.Node, View))
    if (is_number or value.size == 1) and _fill_where(view, picked, value):
        return
    with expressions.lock:
        expressions.settle_readers(view)
        selection, different = _select(view, picked)
        shape = selection.result_shape
        if is_number:
            value = application.number_as(value, view.dtype, "value")
            different = True
        else:
            value = application.fit_shape(application.cast(value, view.dtype), shape, "value")
        if not check_lengths(selection):
            return
        if not is_number:
            value = _copy_if_shared(value, view)
        indices = [replace(index, value=_copy_if_shared(index.value, view)) for index in selection.indices]
        write_places(replace(selection, indices=tuple(indices)), value, is_unique=different)


def _copy_if_shared(value: Any, view: View) -> Any:
    """Return a value that does not read the memory of a view, which no waiting expression reads."""
    if type(value) is View and value.storage.memory is view.storage.memory:
        return gather(value)
    return value


def _fill_where(view: View, picked: Picked, value: Any) -> bool:
    """Set elements to one value where a mask on the device holds, without waiting for it."""
    if len(picked.arrays) != 1:
        return False
    mask, axis = picked.arrays[0]
    if not isinstance(mask, Array) or mask.dtype.kind != "b":
        return False
    own = view.shape[axis : axis + mask.ndim]
    _check_mask(mask.shape, own)
    if mask.shape != own:
        return True
    axes = list(picked.axes)
    axes[picked.place : picked.place] = zip(own, view.strides[axis : axis + mask.ndim], strict=True)
    shape, strides = tuple(length for length, _ in axes), tuple(stride for _, stride in axes)
    target = View(view.storage, shape, view.dtype, picked.offset, strides)
    if isinstance(value, (expressions.Node, View)):
        if len(value.shape) > len(picked.axes) + 1 and value.shape != (1,) * len(value.shape):
            return False
        filling: Any = reshape(array_of(application.cast(value, view.dtype)), ())
    else:
        filling = view.dtype.type(application.number_as(value, view.dtype))
    after = len(picked.axes) - picked.place
    test = reshape(mask, (*mask.shape, *(1,) * after))
    kept = value_of(choose(test, filling, array_of(target)))
    if kept.dtype != view.dtype:
        kept = application.cast(kept, view.dtype)
    application.assign(target, kept)
    return True


# ---- Reading and writing elements by slices, integers, booleans and arrays of them -----------------------


_WHOLE = slice(None)


def get_items(x: Array, index: Any) -> Array:
    """Return `x[index]`: a view for slices and integers, a copy for arrays of indices or booleans.

    A single element, by an integer for each axis, is a copy, as NumPy's scalars are.

    Raises
    ------
    IndexError
        There are too many indices, one is out of bounds, or one is of a kind that arrays do not take.
        Indices in an Array that are out of bounds raise it with the next wait or read.

    Examples
    --------
    >>> vnp.get_items(vnp.arange(6).reshape(2, 3), (1, slice(None)))
    Array([3, 4, 5], dtype=int64)
    """
    refuse_kernel_index(index)
    view = view_of(x)
    found: View | Picked | None = native.basic_view(view, index)
    if found is None:
        if type(index) is Array or (type(index) is tuple and any(type(each) is Array for each in index)):
            return _pick_items(x, index)
        found = _index_view(view, index)
    if not isinstance(found, View):
        return gather_items(view, found)
    if found.shape or index is Ellipsis or (type(index) is tuple and any(each is Ellipsis for each in index)):
        return array_of(found)
    loop = expressions.find_loop(expressions.TAKE, (found.dtype,), found.dtype)
    return array_of(expressions.make_node(loop, (found,), (), 1))


@repeat_calls
def _pick_items(x: Array, index: Any) -> Array:
    """Return `x[index]` for an index with arrays."""
    view = view_of(x)
    found = _index_view(view, index)
    return array_of(found) if isinstance(found, View) else gather_items(view, found)


def set_items(x: Array, index: Any, value: Any) -> None:
    """Write `value`, which may broadcast, to `x[index]`; values are cast to the dtype of `x`.

    Raises
    ------
    IndexError
        As of `get_items`.
    ValueError
        The value does not broadcast to what is written, or `x` is a read-only view.
    TypeError, OverflowError
        The value is no Array or number, or a number that the dtype does not hold.
    UsageError
        A graph records the calls of this thread.

    Examples
    --------
    >>> x = vnp.zeros(4, dtype=vnp.int32)
    >>> vnp.set_items(x, slice(1, 3), 7)
    >>> x
    Array([0, 7, 7, 0], dtype=int32)
    """
    refuse_kernel_index(index)
    refuse_recording()
    source = _parse_value(value, x)
    if index is Ellipsis or (type(index) is slice and index == _WHOLE and x.ndim):
        own = value_of(x)
        if type(own) is expressions.Node and not expressions.shows_parts(own):
            shape = getattr(source, "shape", ())
            if shape == x.shape or not shape:
                # nothing else shows its memory yet
                if type(source) is expressions.Node or type(source) is View:
                    source = application.broadcast_to(source, x.shape) if shape != x.shape else source
                    source = application.cast(source, x.dtype)
                x._value = application.make_operation(COPY, (source,), (x.dtype,), x.shape, x.dtype)
                return
    view = view_of(x)
    application.refuse_read_only(view)
    found = native.basic_view(view, index) or _index_view(view, index)
    if isinstance(found, View):
        application.assign(found, source)
    else:
        scatter_items(view, found, source)


def _parse_value(value: Any, x: Array) -> Any:
    """Return an expression or view, or a number that the dtype holds."""
    if isinstance(value, (list, tuple)):
        try:
            return value_of(asarray(np.asarray(read_nested(value), x.dtype), device=x.device))
        except (TypeError, ValueError, OverflowError) as error:
            raise translate_error(error, "value") from None
    if isinstance(value, np.ndarray):
        return value_of(asarray(value, device=x.device))
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, complex) and x.dtype.kind not in "cb":
        raise ArgumentTypeError(f"value: a complex number does not go into an array of {x.dtype}")
    return array.parse_operand(value, "value")


def _index_view(view: View, index: Any) -> "View | Picked":
    """Return what an index shows of a view: another view, or what arrays of indices pick."""
    entries = [_normalize(each) for each in index] if type(index) is tuple else [_normalize(index)]
    ndim = len(view.shape)
    used = 0
    fancy = False
    ellipsis = -1
    for i, each in enumerate(entries):
        if each is None:
            continue
        if each is Ellipsis:
            if ellipsis >= 0:
                raise ArgumentIndexError("an index can only have a single ellipsis ('...')")
            ellipsis = i
        elif isinstance(each, (Array, np.ndarray)):
            used += each.ndim if each.dtype.kind == "b" else 1
            fancy = True
        else:
            used += 1
    if used > ndim:
        raise ArgumentIndexError(f"too many indices: the array has {ndim} axes, but {used} were indexed")
    if ellipsis < 0:
        ellipsis = len(entries)
        entries.append(Ellipsis)
    axes: list[Axis] = []
    offset = view.offset
    axis = 0
    picked: list[tuple[Any, int]] = []
    # where the axes of indices go: before all others, unless the indices stand side by side
    place, is_open, is_apart, is_found = 0, False, False, False
    for entry in entries:
        if entry is None:
            axes.append((1, 0))
            is_open = False
        elif entry is Ellipsis:
            end = axis + ndim - used
            axes += zip(view.shape[axis:end], view.strides[axis:end], strict=True)
            axis, is_open = end, False
        elif isinstance(entry, slice):
            stride = view.strides[axis]
            start, stop, step = _bounds(entry, view.shape[axis])
            count = len(range(start, stop, step))
            if count:
                offset += start * stride
            axes.append((count, stride * step if count > 1 else stride))
            axis, is_open = axis + 1, False
        else:
            if fancy:
                if not is_found:
                    place = len(axes)
                elif not is_open:
                    is_apart = True
                is_open = is_found = True
            if isinstance(entry, (Array, np.ndarray)):
                picked.append((entry, axis))
                axis += entry.ndim if entry.dtype.kind == "b" else 1
            else:
                length, stride = view.shape[axis], view.strides[axis]
                if not -length <= entry < length:
                    raise ArgumentIndexError(
                        f"index {entry} is out of bounds for axis {axis} with size {length}"
                    )
                offset += (entry + length if entry < 0 else entry) * stride
                axis += 1
    if fancy:
        return Picked(offset, axes, picked, 0 if is_apart else place)
    shape, strides = tuple(length for length, _ in axes), tuple(stride for _, stride in axes)
    return View(view.storage, shape, view.dtype, offset, strides)


def _bounds(each: slice, length: int) -> tuple[int, int, int]:
    try:
        return each.indices(length)
    except (TypeError, ValueError) as error:
        raise translate_error(error, f"index {each}") from None


def _normalize(each: Any) -> Any:
    """Return an entry of an index: None, Ellipsis, a slice, an int, or an array of integers or booleans."""
    if each is None or each is Ellipsis or isinstance(each, slice):
        return each
    if isinstance(each, (bool, np.bool_)):
        return np.asarray(each)
    if isinstance(each, (int, np.integer)):
        return int(each)
    if isinstance(each, (list, tuple)):
        try:
            data = np.asarray(read_nested(each))
        except ValueError as error:
            raise ArgumentIndexError(f"index: {error}") from None
        each = data.astype(np.int64) if data.size == 0 and data.dtype.kind == "f" else data
    if isinstance(each, (Array, np.ndarray)):
        if each.dtype.kind not in "biu":
            raise ArgumentIndexError(
                f"arrays used as indices must be of integer or boolean type, got {each.dtype}"
            )
        if isinstance(each, np.ndarray) and not each.ndim and each.dtype.kind != "b":
            return int(each)
        return each
    if hasattr(each, "__index__"):
        return each.__index__()
    raise ArgumentIndexError(
        "only integers, slices, ellipsis, newaxis and integer or boolean arrays are valid indices, got "
        f"{array.describe(each)}"
    )
