"""Reading and writing elements by slices, integers, booleans and arrays of them."""

import math
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.core.application import assign, broadcast_shapes
from vkdispatch.numpy.core.array import Array, array_of, describe, parse_operand, value_of, view_of
from vkdispatch.numpy.core.conversion import asarray
from vkdispatch.numpy.core.dtypes import int64
from vkdispatch.numpy.core.expressions import Node
from vkdispatch.numpy.core.memory import Shape, View

__all__: list[str] = []

newaxis = None
_WHOLE = slice(None)


def _is_integer(each: Any) -> bool:
    return isinstance(each, (int, np.integer)) and not isinstance(each, (bool, np.bool_))


def get_items(x: Array, index: Any) -> Array:
    """Return `x[index]`: a view for slices and integers, a copy for arrays of indices or booleans.

    Raises
    ------
    IndexError
        There are too many indices, one is out of bounds, or one is of a kind that arrays do not take.
    """
    basic, advanced = _parse(x, index)
    view = _basic_view(view_of(x), basic)
    if not advanced:
        return array_of(view)
    from vkdispatch.numpy.gathering import gather_items

    return gather_items(array_of(view), advanced)


def set_items(x: Array, index: Any, value: Any) -> None:
    """Write `value`, which may broadcast, to `x[index]`. Raises as `get_items`, and as `Array.__iadd__`."""
    source = _parse_value(value, x)
    if index is Ellipsis and type(x._value) is Node and x._value.result is None:
        shape = source.shape if hasattr(source, "shape") else ()
        if shape == x.shape:
            from vkdispatch.numpy.core.application import cast

            x._value = cast(source, x.dtype)
            return
    basic, advanced = _parse(x, index)
    view = _basic_view(view_of(x), basic)
    if not advanced:
        assign(view, source)
        return
    from vkdispatch.numpy.gathering import scatter_items

    scatter_items(array_of(view), advanced, source)


def _parse_value(value: Any, x: Array) -> Any:
    if isinstance(value, (np.ndarray, list, tuple)):
        return value_of(asarray(np.asarray(value), x.dtype if not isinstance(value, np.ndarray) else None))
    return parse_operand(value, "value")


def _parse(x: Array, index: Any) -> tuple[list[Any], list[Any]]:
    """Return the basic part of an index, and the advanced one.

    The basic part has an entry for each axis of `x`, and None for new axes; arrays in the index appear as
    whole slices there. The advanced part, if there is one, has an entry for each axis of the basic result:
    an array, or a whole slice.
    """
    entries = list(index) if isinstance(index, tuple) else [index]
    entries = [_normalize(each) for each in entries]
    used = sum(each.ndim if _is_mask(each) else each is not None and each is not Ellipsis for each in entries)
    if sum(each is Ellipsis for each in entries) > 1:
        raise ArgumentIndexError("an index can only have a single ellipsis ('...')")
    if used > x.ndim:
        raise ArgumentIndexError(f"too many indices: the array has {x.ndim} axes, but {used} were indexed")
    rest = [_WHOLE] * (x.ndim - used)
    if Ellipsis in [each if each is Ellipsis else 0 for each in entries]:
        at = next(i for i, each in enumerate(entries) if each is Ellipsis)
        entries[at : at + 1] = rest
    else:
        entries += rest
    if not any(isinstance(each, Array) for each in entries):
        return entries, []
    # integers beside arrays are indices as well
    basic: list[Any] = []
    advanced: list[Any] = []
    axis = 0
    for each in entries:
        if each is None:
            basic.append(None)
            advanced.append(_WHOLE)
        elif isinstance(each, Array):
            count = each.ndim if _is_mask(each) else 1
            basic += [_WHOLE] * count
            if _is_mask(each) and each.shape != x.shape[axis : axis + count]:
                raise ArgumentIndexError(
                    f"boolean index of shape {each.shape} does not fit axes {x.shape[axis : axis + count]}"
                )
            advanced.append(each)
            axis += count
        elif _is_integer(each):
            basic.append(_WHOLE)
            length = x.shape[axis]
            if not -length <= each < length:
                raise ArgumentIndexError(f"index {each} is out of bounds for axis {axis} with size {length}")
            advanced.append(asarray(np.asarray(each % length, np.int64)))
            axis += 1
        else:
            basic.append(each)
            advanced.append(_WHOLE)
            axis += 1
    return basic, advanced


def _is_mask(each: Any) -> bool:
    return isinstance(each, Array) and each.dtype.kind == "b"


def _normalize(each: Any) -> Any:
    if each is None or each is Ellipsis or isinstance(each, slice) or _is_integer(each):
        return each
    if isinstance(each, (bool, np.bool_)):
        return asarray(np.asarray(each))
    if isinstance(each, (list, np.ndarray)):
        data = np.asarray(each)
        if data.size == 0 and not isinstance(each, np.ndarray):
            data = data.astype(np.int64)
        each = asarray(data)
    if isinstance(each, Array):
        if each.dtype.kind not in "biu":
            raise ArgumentIndexError(
                f"arrays used as indices must be of integer or boolean type, got {each.dtype}"
            )
        return each
    if hasattr(each, "__index__"):
        return each.__index__()
    raise ArgumentIndexError(
        "only integers, slices, ellipsis, newaxis and integer or boolean arrays are valid indices, got "
        f"{describe(each)}"
    )


def _basic_view(view: View, entries: list[Any]) -> View:
    shape: list[int] = []
    strides: list[int] = []
    offset = view.offset
    axis = 0
    for each in entries:
        if each is None:
            shape.append(1)
            strides.append(0)
            continue
        length, stride = view.shape[axis], view.strides[axis]
        if isinstance(each, slice):
            if each is _WHOLE:
                shape.append(length)
                strides.append(stride)
            else:
                try:
                    start, stop, step = each.indices(length)
                except (TypeError, ValueError) as error:
                    kind = ArgumentTypeError if isinstance(error, TypeError) else ArgumentValueError
                    raise kind(f"index {each}: {error}") from None
                count = len(range(start, stop, step))
                if count:
                    offset += start * stride
                shape.append(count)
                strides.append(stride * step)
        else:
            if not -length <= each < length:
                raise ArgumentIndexError(f"index {each} is out of bounds for axis {axis} with size {length}")
            offset += (each % length) * stride
        axis += 1
    return View(view.storage, tuple(shape), view.dtype, offset, tuple(strides))


Index = Any
_ = (math, broadcast_shapes, int64, Shape)
