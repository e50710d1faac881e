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
    """Give the magnitude of x with the sign of y.

    It is put together of bits: drivers take -0.0 and 0.0 for the same number in a choice between them.
    """
    kind = x.var_type
    if kind is dt.float16:
        return copy_sign(x.to_dtype(dt.float32), y.to_dtype(dt.float32)).to_dtype(dt.float16)
    if kind is dt.float64:
        own, other = vc.unpack_double2x32(x), vc.unpack_double2x32(y)
        upper = (own[1] & 0x7FFFFFFF) | (other[1] & 0x80000000)
        return vc.pack_double2x32(vc.to_dtype(dt.uvec2, own[0], upper))
    bits = (vc.float_bits_to_uint(x) & 0x7FFFFFFF) | (vc.float_bits_to_uint(y) & 0x80000000)
    return vc.uint_bits_to_float(bits)
