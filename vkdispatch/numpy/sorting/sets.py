"""Sets of different elements, as sorted vectors. Sizes depend on the data, so that these functions wait."""

from typing import Any

from vkdispatch.numpy.basics.creation import ones
from vkdispatch.numpy.basics.inputs import to_array
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.basics.manipulation import reshape
from vkdispatch.numpy.core.array import Array
from vkdispatch.numpy.sorting.searching import argsort, isin, sort, unique

__all__ = [
    "intersect1d",
    "setdiff1d",
    "setxor1d",
    "union1d",
]


def _flat(x: Any, name: str) -> Array:
    return reshape(to_array(x, name), -1)


def union1d(ar1: Any, ar2: Any) -> Array:
    """Return the elements that are in either array. See `numpy.union1d`.

    Examples
    --------
    >>> vnp.union1d(vnp.asarray([1, 2, 3]), vnp.asarray([2, 3, 4]))
    Array([1, 2, 3, 4], dtype=int64)
    """
    return unique(concatenate([_flat(ar1, "ar1"), _flat(ar2, "ar2")]))  # type: ignore[no-any-return]


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Return the elements that are in both arrays, and their first places if asked. See `numpy.intersect1d`.

    Parameters
    ----------
    assume_unique
        Whether each array has each of its elements once.

    Examples
    --------
    >>> vnp.intersect1d(vnp.asarray([1, 2, 3]), vnp.asarray([2, 3, 4]))
    Array([2, 3], dtype=int64)
    """
    first, second = _flat(ar1, "ar1"), _flat(ar2, "ar2")
    places = []
    parts = []
    for each in (first, second):
        if assume_unique:
            parts.append(each)
        else:
            values, indices = unique(each, return_index=True)
            parts.append(values)
            places.append(indices)
    first, second = parts
    joined = concatenate(parts)
    if not return_indices:
        ordered = sort(joined)
        return ordered[1:][ordered[1:] == ordered[:-1]]
    order = argsort(joined)
    ordered = joined[order]
    same = ordered[1:] == ordered[:-1]
    left, right = order[:-1][same], order[1:][same] - first.size
    if not assume_unique:
        left, right = places[0][left], places[1][right]
    return ordered[:-1][same], left, right


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """Return the elements of the first array that are not in the second. See `numpy.setdiff1d`.

    Examples
    --------
    >>> vnp.setdiff1d(vnp.asarray([1, 2, 3]), vnp.asarray([2, 3, 4]))
    Array([1], dtype=int64)
    """
    first, second = _flat(ar1, "ar1"), _flat(ar2, "ar2")
    if not assume_unique:
        first = unique(first)
    return first[isin(first, second, invert=True)]


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """Return the elements that are in exactly one of two arrays. See `numpy.setxor1d`.

    Examples
    --------
    >>> vnp.setxor1d(vnp.asarray([1, 2, 3]), vnp.asarray([2, 3, 4]))
    Array([1, 4], dtype=int64)
    """
    parts = [_flat(ar1, "ar1"), _flat(ar2, "ar2")]
    if not assume_unique:
        parts = [unique(each) for each in parts]
    ordered = sort(concatenate(parts))
    if not ordered.size:
        return ordered
    edge = ones((1,), bool)
    differs = concatenate([edge, ordered[1:] != ordered[:-1], edge])
    return ordered[differs[1:] & differs[:-1]]
