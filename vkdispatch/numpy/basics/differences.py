"""Differences of neighbours."""

from typing import Any

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.basics.elementwise import not_equal
from vkdispatch.numpy.basics.inputs import to_array
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.basics.manipulation import broadcast_to, parse_axis
from vkdispatch.numpy.core.array import Array

__all__ = [
    "diff",
]


def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    """Return differences of neighbours along an axis. See `numpy.diff`.

    Examples
    --------
    >>> vnp.diff(vnp.asarray([1, 4, 9, 16]))
    Array([3, 5, 7], dtype=int64)
    """
    array = to_array(x, "x")
    if n < 0:
        raise ArgumentValueError(f"n: expected at least 0, got {n}")
    if array.ndim == 0:
        raise ArgumentValueError("x: expected at least one axis")
    place = parse_axis(axis, array.ndim)
    if n == 0:
        return array.copy()
    parts: list[list[Array]] = []
    for name, each in (("prepend", prepend), ("append", append)):
        if each is None:
            parts.append([])
            continue
        edge = to_array(each, name)
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
