"""Reading and writing elements at arrays of indices."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.core.application import assign, broadcast_shapes, cast
from vkdispatch.numpy.core.application import broadcast_to as broadcast_view
from vkdispatch.numpy.core.array import Array, array_of, value_of, view_of
from vkdispatch.numpy.core.conversion import asarray
from vkdispatch.numpy.core.dtypes import int64, numpy_type
from vkdispatch.numpy.core.expressions import evaluate, lock, settle_readers
from vkdispatch.numpy.core.kernels import as_buffer, as_operand, gather
from vkdispatch.numpy.core.memory import Shape, Storage, View
from vkdispatch.numpy.creation import arange, empty
from vkdispatch.numpy.elementwise import choose
from vkdispatch.numpy.manipulation import permute_dims, reshape
from vkdispatch.rearrange import put as put_elements
from vkdispatch.rearrange import take as take_elements
from vkdispatch.selection.compaction.compact import nonzero as find_nonzero

__all__ = [
    "nonzero",
]


def whole_view(value: Any) -> View:
    """Return a view of memory that holds these elements and no others."""
    view = evaluate(value)
    return view if view.is_whole else gather(view)


def array_from(buffer: Any, shape: Shape | None = None) -> Array:
    """Return the array of a buffer that nobody else has."""
    return array_of(
        View(Storage(buffer), buffer.shape if shape is None else shape, numpy_type(buffer.var_type))
    )


def nonzero(x: Any, /) -> tuple[Array, ...]:
    """Return the indices of elements that are not zero, one array for each axis. See `numpy.nonzero`.

    Raises
    ------
    ValueError
        The array has no axes.
    """
    value = value_of(x if isinstance(x, Array) else asarray(x))
    if not value.shape:
        raise ArgumentValueError("x: nonzero of an array without axes; use reshape(x, 1)")
    if value.size == 0:
        return tuple(empty((0,), int64) for _ in value.shape)
    (places,) = find_nonzero(as_operand(value, (value.size,)))
    flat = array_from(places)
    found = []
    step = value.size
    for length in value.shape:
        step //= length
        found.append(((flat // step) % length).astype(int64))
    return tuple(found)


def _without_masks(entries: Sequence[Any]) -> list[Any]:
    """Return an entry for each axis: an array of integers, or a slice. Masks give their true places."""
    found: list[Any] = []
    for each in entries:
        if isinstance(each, Array) and each.dtype.kind == "b":
            found += nonzero(each) if each.ndim else [None]
        else:
            found.append(each)
    return found


def _plan(x: Array, entries: Sequence[Any]) -> tuple[Shape, list[int], int]:
    """Return the shape of the indices, the axes they index, and where their axes go in the result."""
    axes = [axis for axis, each in enumerate(entries) if isinstance(each, Array)]
    shape = broadcast_shapes([entries[axis].shape for axis in axes], "index")
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    return shape, axes, axes[0] if adjacent else 0


def _valid_index(index: Array, length: int) -> Array:
    """Return indices counted from the front; those out of bounds become the least integer."""
    wide = array_of(cast(value_of(index), int64))
    moved = choose(wide < 0, wide + length, wide)
    return choose((moved < 0) | (moved >= length), np.iinfo(np.int64).min, moved)


def _flat_index(x: Array, entries: Sequence[Any], axes: Sequence[int], shape: Shape) -> Array:
    """Return indices along the indexed axes as if they were one; the least integer where one is invalid."""
    low = np.iinfo(np.int64).min
    total: Any = None
    for axis in axes:
        index = _valid_index(entries[axis], x.shape[axis])
        if total is None:
            total = index
        else:
            total = choose((total == low) | (index == low), low, total * x.shape[axis] + index)
    return array_of(broadcast_view(value_of(total), shape))


def gather_items(x: Array, advanced: Sequence[Any]) -> Array:
    """Return the elements of `x` at arrays of indices. Indices out of bounds raise IndexError at a wait."""
    if any(isinstance(each, Array) and each.dtype.kind == "b" and each.ndim == 0 for each in advanced):
        return _by_truth(x, advanced)
    entries = _without_masks(advanced)
    shape, axes, place = _plan(x, entries)
    others = [axis for axis in range(x.ndim) if axis not in axes]
    rest = tuple(x.shape[axis] for axis in others)
    index = _flat_index(x, entries, axes, shape)
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    width = int(np.prod(rest, dtype=np.int64))
    if index.size == 0 or width == 0:
        from vkdispatch.numpy.creation import empty

        result = empty((*shape, *rest), x.dtype)
    else:
        lines = reshape(permute_dims(x, (*axes, *others)), (count, width))
        source = as_buffer(whole_view(value_of(lines)), (count, width))
        wanted = as_buffer(whole_view(value_of(index)), (index.size,))
        result = array_from(take_elements(source, wanted, 0), (*shape, *rest))
    if place:
        order = list(range(len(shape), len(shape) + place)) + list(range(len(shape)))
        order += range(len(shape) + place, result.ndim)
        return permute_dims(result, order)
    return result


def _by_truth(x: Array, advanced: Sequence[Any]) -> Array:
    """Index by a single truth value: a new axis of length one or zero."""
    truth = all(bool(each) for each in advanced if isinstance(each, Array) and each.ndim == 0)
    rest = [
        each
        for each in advanced
        if not (isinstance(each, Array) and each.dtype.kind == "b" and not each.ndim)
    ]
    found = gather_items(x, rest) if any(isinstance(each, Array) for each in rest) else x
    grown = reshape(found, (1, *found.shape))
    return grown.copy() if truth else grown[:0]


def scatter_items(x: Array, advanced: Sequence[Any], value: Any) -> None:
    """Write a value to the elements of `x` at arrays of indices; of several for one place the last counts."""
    masks = [each for each in advanced if isinstance(each, Array) and each.dtype.kind == "b"]
    scalar = not hasattr(value, "shape") or value.shape == ()
    if len(masks) == 1 and scalar:
        position = next(i for i, each in enumerate(advanced) if each is masks[0])
        if all(not isinstance(each, Array) for i, each in enumerate(advanced) if i != position):
            _fill_where(x, masks[0], position, value)
            return
    entries = _without_masks(advanced)
    shape, axes, place = _plan(x, entries)
    others = [axis for axis in range(x.ndim) if axis not in axes]
    rest = tuple(x.shape[axis] for axis in others)
    target = (*rest[:place], *shape, *rest[place:]) if place else (*shape, *rest)
    view = view_of(x)
    size = int(np.prod(target, dtype=np.int64))
    if size == 0:
        return
    low = np.iinfo(np.int64).min
    total: Any = None
    for axis in axes:
        index = _valid_index(entries[axis], x.shape[axis])
        step = choose(index == low, low, index * view.strides[axis])
        total = step if total is None else choose((total == low) | (step == low), low, total + step)
    total = choose(total == low, low, total + view.offset)
    places = reshape(array_of(broadcast_view(value_of(total), shape)), (*shape, *(1,) * len(rest)))
    for i, axis in enumerate(others):
        own = [1] * len(rest)
        own[i] = rest[i]
        along = reshape(arange(rest[i]) * view.strides[axis], (*(1,) * len(shape), *own))
        places = choose(places == low, low, places + along)
    if place:
        order = list(range(len(shape), len(shape) + place)) + list(range(len(shape)))
        order += range(len(shape) + place, len(shape) + len(rest))
        places = permute_dims(places, order)
    if scalar or value.shape != target:
        from vkdispatch.numpy.core.kernels import new_view

        filled = new_view(target, x.dtype, view.storage.buffer.context)
        assign(filled, value)
        data = filled
    else:
        data = evaluate(cast(value, x.dtype))
    with lock:
        settle_readers(view)
        memory = as_buffer(
            View(view.storage, (view.storage.buffer.size,), view.dtype), (view.storage.buffer.size,)
        )
        put_elements(
            memory, as_buffer(whole_view(value_of(places)), (size,)), as_buffer(whole_view(data), (size,))
        )


def _fill_where(x: Array, mask: Array, position: int, value: Any) -> None:
    shape = (*(1,) * position, *mask.shape, *(1,) * (x.ndim - position - mask.ndim))
    test = reshape(mask, shape)
    if hasattr(value, "shape"):
        value = array_of(cast(value, x.dtype))
    else:
        from vkdispatch.numpy.core.application import number_as

        value = x.dtype.type(number_as(value, x.dtype))
    kept = choose(test, value, array_of(view_of(x)))
    assign(view_of(x), value_of(kept))
