"""Signs of real numbers in kernels, those of zeros and NaNs too."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt


def has_sign(x: Any) -> Any:
    """Whether the sign bit is set."""
    if x.var_type is dt.float16:
        x = x.to_dtype(dt.float32)
    if x.var_type is dt.float64:
        return vc.unpack_double2x32(x)[1] >> 31 == 1
    return vc.float_bits_to_uint(x) >> 31 == 1


def copy_sign(x: Any, y: Any) -> Any:
    """Give the magnitude of x with the sign of y."""
    magnitude = vc.abs(x).to_register()
    return vc.select(has_sign(y), -magnitude, magnitude)
