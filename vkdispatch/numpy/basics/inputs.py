"""Arguments of functions of the namespace: arrays, and small data of the host."""

from typing import Any

import numpy as np

from vkdispatch.numpy.core.array import Array, parse_operand
from vkdispatch.numpy.core.conversion import asarray
from vkdispatch.numpy.core.dtypes import Kind, default_real

__all__: list[str] = []


def require_array(x: Any, name: str = "x") -> Array:
    """Return an argument as an array; numbers are uploaded. Raises TypeError for anything else."""
    parse_operand(x, name)
    return x if isinstance(x, Array) else asarray(x)


def to_array(x: Any, name: str = "x") -> Array:
    """Return an argument as an array; numbers, lists and tuples are uploaded.

    Raises TypeError for anything else. NumPy's arrays are refused: they would be copied to the device in
    silence.
    """
    if isinstance(x, Array):
        return x
    return asarray(x) if isinstance(x, (list, tuple)) else require_array(x, name)


def to_index(x: Any) -> Array:
    """Return indices as an array; those of the host, NumPy's arrays as well, are uploaded."""
    if isinstance(x, Array):
        return x
    data = np.asarray(x)
    return asarray(data.astype(np.int64) if data.size == 0 else data)


def to_host(x: Any) -> "np.ndarray[Any, Any]":
    """Return an argument as a NumPy array; values of the device are read."""
    return x.numpy() if isinstance(x, Array) else np.asarray(x)


def real_kind(kind: Kind) -> Kind:
    """Return the dtype that real results of arrays of a dtype have: the default one for integers."""
    return default_real() if kind.kind in "biu" else kind
