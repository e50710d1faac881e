"""New arrays for data from the device."""

import math
from typing import Any

from vkdispatch.base.host_numpy import np
from vkdispatch.base.native_module import native

Array = np.ndarray[Any, Any]

# From this size on, page faults of new memory take longer than the copy.
_LARGE = 4 << 20


def fresh_array(shape: tuple[int, ...], dtype: "np.dtype[Any]") -> Array:
    """Return a new array with undefined contents. Large arrays use huge pages, which are reused.

    Raises
    ------
    MemoryError
        The system does not have enough memory.
    """
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE:
        return np.empty(shape, dtype)
    pages: Any = native.HostPages(size)
    return np.ndarray(shape, dtype, pages)
