"""New arrays for what comes from the device."""

import math
from typing import Any

from vkdispatch.base.host_numpy import np
from vkdispatch.base.native_module import native

Array = np.ndarray[Any, Any]

# From here on the first touch of new memory takes longer than the copy to it.
_LARGE = 4 << 20


def fresh_array(shape: tuple[int, ...], dtype: "np.dtype[Any]") -> Array:
    """Return a new array, its contents undefined; a large one lies in huge pages, which arrays take in turns.

    Raises
    ------
    MemoryError
        The system has not as much memory.
    """
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE:
        return np.empty(shape, dtype)
    pages: Any = native.HostPages(size)
    return np.ndarray(shape, dtype, pages)
