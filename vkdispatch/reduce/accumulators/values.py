"""Values in kernels of reductions: converted, taken apart, composed, and divided."""

import math
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType, component_type, compute_type, is_complex
from vkdispatch.families.values import split_scalars


def cast_value(value: Any, kind: DType) -> Any:
    """Return a value in a type; booleans become 0 and 1."""
    if value.var_type is dtype.bool_ and kind is not dtype.bool_:
        value = vc.select(value, vc.to_uint(1), vc.to_uint(0))
    if value.var_type is kind:
        return value
    if is_complex(kind) and is_complex(value.var_type):
        child = component_type(kind)
        return vc.to_dtype(kind, value.real.to_dtype(child), value.imag.to_dtype(child))
    return value.to_dtype(kind)


def split_floats(value: Any, kind: DType) -> list[Any]:
    """Return the components of a value in a float type."""
    if value.var_type is dtype.bool_:
        value = cast_value(value, dtype.uint32)
    return [cast_value(part, kind) for part in split_scalars(value)]


def compose(kind: DType, parts: Sequence[Any]) -> Any:
    """Return components as one value of a type that kernels compute with."""
    child = component_type(kind)
    parts = [cast_value(part, child) for part in parts]
    return parts[0] if len(parts) == 1 else vc.to_dtype(kind, *parts)


def divide(value: Any, divisor: Any) -> Any:
    """Return a correctly rounded quotient, also on devices whose division is not; 0 / 0 is NaN."""
    quotient = (value / divisor).to_register()
    if value.var_type is dtype.float32:
        # the correction has no meaning where the quotient is infinite or NaN
        more = (vc.fma(-quotient, divisor, value) / divisor).to_register()
        quotient = vc.select(vc.any(vc.isnan(more), vc.isinf(more)), quotient, quotient + more)
    # compilers replace 0 / x by 0
    return vc.select(divisor == 0, vc.to_dtype(value.var_type, math.nan), quotient)


def divide_each(parts: Sequence[Any], divisor: Any) -> list[Any]:
    """Return each part of a number divided by a real number."""
    return [divide(part, divisor) for part in parts]


def divide_parts(parts: Sequence[Any], divisor: Any) -> list[Any]:
    """Return the parts of a number divided by a real number, as in NumPy.

    Where one part of a complex number is infinite or NaN, the other one becomes NaN.
    """
    quotients = divide_each(parts, divisor)
    if len(parts) == 1:
        return quotients
    nan = vc.to_dtype(divisor.var_type, math.nan)
    return set_nan_beside(quotients, parts, nan)


def set_nan_beside(values: Sequence[Any], parts: Sequence[Any], nan: Any) -> list[Any]:
    """Return two values, each NaN where the other one of two parts is infinite or NaN."""
    bad = [vc.any(vc.isnan(part), vc.isinf(part)).to_register() for part in parts]
    return [vc.select(other, nan, each) for each, other in zip(values, reversed(bad), strict=True)]


def split_parts(value: Any) -> list[Any]:
    """Return the parts of a number, in registers."""
    if value.var_type is dtype.bool_:
        value = cast_value(value, dtype.uint32)
    return [part.to_register() for part in split_scalars(value)]


def narrow(value: Any, out_type: DType) -> Any:
    """Return a value as kernels store it in a buffer of a type."""
    return cast_value(value, compute_type(out_type))
