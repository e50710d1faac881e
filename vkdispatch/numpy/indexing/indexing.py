"""Reading and writing elements by slices, integers, booleans and arrays of them."""

from typing import Any

import numpy as np

from vkdispatch.base.errors import (
    ArgumentIndexError,
    ArgumentOverflowError,
    ArgumentTypeError,
    ArgumentValueError,
)
from vkdispatch.base.memory.protocols import refuse_kernel_index
from vkdispatch.base.native_module import native
from vkdispatch.numpy.core.application import assign, broadcast_to, cast, make_operation, refuse_read_only
from vkdispatch.numpy.core.array import Array, array_of, describe, parse_operand, value_of, view_of
from vkdispatch.numpy.core.conversion import asarray, read_nested
from vkdispatch.numpy.core.expressions import TAKE, Node, find_loop, make_node, shows_parts
from vkdispatch.numpy.core.memory import View
from vkdispatch.numpy.core.operations import COPY
from vkdispatch.numpy.core.recording import refuse_recording
from vkdispatch.numpy.indexing.gathering import Picked, gather_items, scatter_items

__all__: list[str] = []

_WHOLE = slice(None)


def _is_integer(each: Any) -> bool:
    return isinstance(each, (int, np.integer)) and not isinstance(each, bool)


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
    found = native.basic_view(view, index) or _index_view(view, index)
    if not isinstance(found, View):
        return gather_items(view, found)
    if found.shape or index is Ellipsis or (type(index) is tuple and any(each is Ellipsis for each in index)):
        return array_of(found)
    return array_of(make_node(find_loop(TAKE, (found.dtype,), found.dtype), (found,), (), 1))


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
        if type(own) is Node and not shows_parts(own):
            shape = getattr(source, "shape", ())
            if shape == x.shape or not shape:
                # nothing else shows its memory yet
                if type(source) is Node or type(source) is View:
                    source = broadcast_to(source, x.shape) if shape != x.shape else source
                    source = cast(source, x.dtype)
                x._value = make_operation(COPY, (source,), (x.dtype,), x.shape, x.dtype)
                return
    view = view_of(x)
    refuse_read_only(view)
    found = native.basic_view(view, index) or _index_view(view, index)
    if isinstance(found, View):
        assign(found, source)
    else:
        scatter_items(view, found, source)


def _parse_value(value: Any, x: Array) -> Any:
    """Return an expression or view, or a number that the dtype holds."""
    if isinstance(value, (list, tuple)):
        try:
            return value_of(asarray(np.asarray(read_nested(value), x.dtype), device=x.device))
        except OverflowError as error:
            raise ArgumentOverflowError(f"value: {error}") from None
        except (TypeError, ValueError) as error:
            kind = ArgumentTypeError if isinstance(error, TypeError) else ArgumentValueError
            raise kind(f"value: {error}") from None
    if isinstance(value, np.ndarray):
        return value_of(asarray(value, device=x.device))
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, complex) and x.dtype.kind not in "cb":
        raise ArgumentTypeError(f"value: a complex number does not go into an array of {x.dtype}")
    return parse_operand(value, "value")


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
    shape: list[int] = []
    strides: list[int] = []
    offset = view.offset
    axis = 0
    picked: list[tuple[Any, int]] = []
    # where the axes of indices go: before all others, unless the indices stand side by side
    place, is_open, is_apart, is_found = 0, False, False, False
    for each in entries:
        if each is None:
            shape.append(1)
            strides.append(0)
            is_open = False
        elif each is Ellipsis:
            for _ in range(ndim - used):
                shape.append(view.shape[axis])
                strides.append(view.strides[axis])
                axis += 1
            is_open = False
        elif isinstance(each, slice):
            length, stride = view.shape[axis], view.strides[axis]
            if each == _WHOLE:
                shape.append(length)
                strides.append(stride)
            else:
                start, stop, step = _bounds(each, length)
                count = len(range(start, stop, step))
                if count:
                    offset += start * stride
                shape.append(count)
                strides.append(stride * step if count > 1 else stride)
            axis += 1
            is_open = False
        else:
            if fancy:
                if not is_found:
                    place = len(shape)
                elif not is_open:
                    is_apart = True
                is_open = is_found = True
            if isinstance(each, (Array, np.ndarray)):
                picked.append((each, axis))
                axis += each.ndim if each.dtype.kind == "b" else 1
            else:
                length, stride = view.shape[axis], view.strides[axis]
                if not -length <= each < length:
                    raise ArgumentIndexError(
                        f"index {each} is out of bounds for axis {axis} with size {length}"
                    )
                offset += (each + length if each < 0 else each) * stride
                axis += 1
    if not fancy:
        return View(view.storage, tuple(shape), view.dtype, offset, tuple(strides))
    return Picked(offset, list(zip(shape, strides, strict=True)), picked, 0 if is_apart else place)


def _bounds(each: slice, length: int) -> tuple[int, int, int]:
    try:
        return each.indices(length)
    except (TypeError, ValueError) as error:
        kind = ArgumentTypeError if isinstance(error, TypeError) else ArgumentValueError
        raise kind(f"index {each}: {error}") from None


def _normalize(each: Any) -> Any:
    """Return an entry of an index: None, Ellipsis, a slice, an int, or an array of integers or booleans."""
    if each is None or each is Ellipsis or isinstance(each, slice):
        return each
    if _is_integer(each):
        return int(each)
    if isinstance(each, (bool, np.bool_)):
        return np.asarray(each)
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
        f"{describe(each)}"
    )
