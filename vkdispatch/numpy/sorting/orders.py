"""Orders of several keys, and parts of orders."""

from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics.creation import zeros
from vkdispatch.numpy.basics.inputs import to_array
from vkdispatch.numpy.basics.lines import lines_of
from vkdispatch.numpy.basics.manipulation import parse_axis, reshape
from vkdispatch.numpy.core.array import Array, parse_index, value_of
from vkdispatch.numpy.core.dtypes import int64
from vkdispatch.numpy.core.kernels import as_operand
from vkdispatch.numpy.indexing.gathering import array_from
from vkdispatch.numpy.sorting.searching import argsort, sort, take_along_axis
from vkdispatch.selection.topk.functions import topk as find_largest

__all__ = [
    "argpartition",
    "lexsort",
    "partition",
    "topk",
]


def lexsort(keys: Any, axis: int = -1) -> Array:
    """Return the indices that sort by several keys, of which the last counts most. See `numpy.lexsort`.

    Parameters
    ----------
    keys
        A sequence of arrays of one shape, or an array whose first axis counts them.

    Raises
    ------
    ValueError
        There are no keys, or their shapes differ.

    Examples
    --------
    >>> vnp.lexsort((vnp.asarray([2, 1, 1]), vnp.asarray([0, 1, 0])))
    Array([2, 0, 1], dtype=int64)
    """
    each = [to_array(key, "keys") for key in keys]
    if not each or any(key.shape != each[0].shape for key in each):
        raise ArgumentValueError(f"keys: expected arrays of one shape, got {[key.shape for key in each]}")
    if not each[0].ndim:
        return zeros((), int64)
    place = parse_axis(axis, each[0].ndim)
    order = argsort(each[0], axis=place)
    for key in each[1:]:
        inner = argsort(take_along_axis(key, order, axis=place), axis=place)
        order = take_along_axis(order, inner, axis=place)
    return order


def _check_kth(x: Any, kth: Any, axis: int | None) -> None:
    array = to_array(x, "a")
    length = array.size if axis is None else array.shape[parse_axis(axis, array.ndim)]
    places = np.asarray(kth)
    if places.dtype.kind not in "iu":
        raise ArgumentTypeError(f"kth: expected ints, got {kth!r}")
    if array.size and ((places < -length) | (places >= length)).any():
        raise ArgumentValueError(f"kth: out of bounds for {length} elements: {kth!r}")


def partition(a: Any, kth: Any, axis: int | None = -1, kind: Any = None) -> Array:
    """Return a copy with no larger elements before the place `kth`, and no smaller ones behind it.

    All elements are sorted. Raises ValueError if `kth` is out of bounds. See `numpy.partition`.

    Examples
    --------
    >>> vnp.partition(vnp.asarray([5, 1, 4, 2]), 1)[:2]
    Array([1, 2], dtype=int64)
    """
    _check_kth(a, kth, axis)
    return sort(a, axis=axis)


def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: Any = None) -> Array:
    """Return indices that partition an array. See `partition` and `numpy.argpartition`.

    Examples
    --------
    >>> x = vnp.asarray([5, 1, 4, 2])
    >>> x[vnp.argpartition(x, 1)][:2]
    Array([1, 2], dtype=int64)
    """
    _check_kth(a, kth, axis)
    return argsort(a, axis=axis)


def topk(x: Any, k: int, /, *, axis: int | None = -1, largest: bool = True) -> tuple[Array, Array]:
    """Return the `k` largest elements along an axis, or the smallest, and their indices: `torch.topk`.

    The largest (or smallest) one is the first. NaN is larger than any number; of equal elements, those with
    smaller indices are taken first.

    Raises
    ------
    ValueError
        `k` is negative, or larger than the axis.

    Examples
    --------
    >>> values, places = vnp.topk(vnp.asarray([5, 1, 4, 2]), 2)
    >>> values
    Array([5, 4], dtype=int64)
    >>> places
    Array([0, 2], dtype=int64)
    """
    array, k = to_array(x), parse_index(k, "k")
    if axis is None:
        array, axis = reshape(array, -1), 0
    if not array.ndim:
        raise ArgumentValueError("x: expected at least one axis")
    place = parse_axis(axis, array.ndim)
    lines, shape, along = lines_of(value_of(array), (place,))
    values, indices = find_largest(as_operand(lines, shape), k, along, largest)
    final = (*array.shape[:place], k, *array.shape[place + 1 :])
    return array_from(values, final), array_from(indices, final)
