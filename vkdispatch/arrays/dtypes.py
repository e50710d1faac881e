"""The argument `dtype` of functions on arrays."""

from typing import Any

import numpy as np

from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType, from_numpy_dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError


def parse_dtype(given: Any, name: str = "dtype") -> DType:
    """Return the dtype that an argument names: vkdispatch's, NumPy's, or Python's bool, int, float, complex.

    Raises
    ------
    TypeError
        It is none.
    ValueError
        Buffers have no such elements.
    """
    if isinstance(given, type) and issubclass(given, dtype.dtype) and hasattr(given, "name"):
        return given
    try:
        # NumPy does not know names such as "bfloat16"
        return from_numpy_dtype(given if isinstance(given, (str, np.dtype)) else np.dtype(given), name)
    except ArgumentValueError:
        raise
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{name}: expected a dtype such as vd.float32 or np.float32, got {given!r}"
        ) from None
