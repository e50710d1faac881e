"""Differences of neighbours, repeated elements."""

from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.basics.elementwise import not_equal
from vkdispatch.numpy.basics.inputs import asnumpy
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.basics.manipulation import broadcast_to, parse_axis, reshape
from vkdispatch.numpy.core.array import Array, parse_index
from vkdispatch.numpy.core.conversion import asarray

__all__ = [
    "diff",
    "repeat",
]


def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    """Return differences of neighbours along an axis. See `numpy.diff`."""
    array = asarray(x)
    if n < 0:
        raise ArgumentValueError(f"n: expected at least 0, got {n}")
    if array.ndim == 0:
        raise ArgumentValueError("x: expected at least one axis")
    place = parse_axis(axis, array.ndim)
    if n == 0:
        return array.copy()
    parts: list[list[Array]] = []
    for each in (prepend, append):
        if each is None:
            parts.append([])
            continue
        edge = asarray(each)
        if edge.ndim == 0:
            edge = broadcast_to(edge, (*array.shape[:place], 1, *array.shape[place + 1 :]))
        parts.append([edge])
    if parts[0] or parts[1]:
        array = concatenate([*parts[0], array, *parts[1]], axis=place)
    before = (slice(None),) * place
    for _ in range(n):
        high, low = array[(*before, slice(1, None))], array[(*before, slice(None, -1))]
        array = not_equal(high, low) if array.dtype.kind == "b" else high - low
    return array


def repeat(x: Any, /, repeats: Any, axis: int | None = None) -> Array:
    """Return each element several times. See `numpy.repeat`."""
    array = asarray(x)
    if axis is None:
        array, axis = reshape(array, -1), 0
    place = parse_axis(axis, array.ndim)
    length = array.shape[place]
    counts = asnumpy(repeats)
    if counts.size == 1:
        count = parse_index(counts.reshape(()).item(), "repeats")
        if count < 0:
            raise ArgumentValueError(f"repeats: expected at least 0, got {count}")
        wide = (*array.shape[: place + 1], count, *array.shape[place + 1 :])
        apart = reshape(array, (*array.shape[: place + 1], 1, *array.shape[place + 1 :]))
        final = (*array.shape[:place], length * count, *array.shape[place + 1 :])
        return reshape(broadcast_to(apart, wide), final, copy=True)
    if counts.shape != (length,) or (counts < 0).any():
        raise ArgumentValueError(f"repeats: expected {length} counts of at least 0, got {counts}")
    index = np.repeat(np.arange(length), counts)
    return array[(*(slice(None),) * place, index)]
