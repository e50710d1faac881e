"""Arrays as text and pictures."""

from typing import Any

import numpy as np

from vkdispatch.numpy.core.array import Array

_SHOWN = 1000


def _edges(x: Array) -> "np.ndarray[Any, Any]":
    """Return the values, of a large array those at the edges: NumPy shows no others."""
    if x.size <= _SHOWN:
        return x.numpy()
    for axis, length in enumerate(x.shape):
        if length > 8:
            from vkdispatch.numpy.manipulation import concatenate

            before = (slice(None),) * axis
            x = concatenate([x[(*before, slice(0, 4))], x[(*before, slice(-4, None))]], axis=axis)
    return x.numpy()


def array_str(x: Array) -> str:
    """Return the elements as text. See `numpy.array_str`."""
    if x.size <= _SHOWN:
        return str(x.numpy())
    return np.array2string(_edges(x), threshold=8, edgeitems=3)


def array_repr(x: Array) -> str:
    """Return the array as text. See `numpy.array_repr`."""
    if x.size <= _SHOWN:
        body = np.array2string(x.numpy(), separator=", ", prefix="Array(")
    else:
        body = np.array2string(_edges(x), separator=", ", prefix="Array(", threshold=8, edgeitems=3)
    shape = "" if 0 < x.size <= _SHOWN else f", shape={x.shape}"
    return f"Array({body}{shape}, dtype={x.dtype})"


def array_html(x: Array) -> str | None:
    """Return nothing: notebooks show the text."""
    return None
