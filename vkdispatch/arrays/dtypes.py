"""The argument `dtype` of functions on arrays."""

from typing import Any

import numpy as np

from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType, from_numpy_dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError

# What functions on arrays take as `dtype`: vkdispatch's, NumPy's or Python's types, or their names.
DTypeLike = DType | type[Any] | np.dtype[Any] | str | None


def parse_dtype(value: Any, name: str = "dtype") -> DType:
    """Return the dtype for an argument: one of vkdispatch or NumPy, or bool, int, float, complex.

    Raises
    ------
    TypeError
        The value is not a dtype.
    ValueError
        Buffers cannot have elements of this dtype.
    """
    if isinstance(value, type) and issubclass(value, dtype.dtype) and hasattr(value, "name"):
        return value
    try:
        # NumPy does not know names such as "bfloat16"
        return from_numpy_dtype(value if isinstance(value, (str, np.dtype)) else np.dtype(value), name)
    except ArgumentValueError:
        raise
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{name}: expected a dtype such as vd.float32 or np.float32, got {value!r}"
        ) from None
