"""The dtypes of results, which are those of NumPy, and what they require of the device."""

from typing import Any

import numpy as np

from vkdispatch.base import dtype
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import (
    DType,
    component_type,
    from_numpy_dtype,
    is_complex,
    is_matrix,
    is_scalar,
    is_vector,
    to_numpy_dtype,
    to_vector,
)
from vkdispatch.base.errors import ArgumentValueError, UnsupportedError
from vkdispatch.families import values as promotion
from vkdispatch.families.arguments import parse_dtype
from vkdispatch.families.tuning import device_facts

_UNSIGNED = (dtype.uint8, dtype.uint16, dtype.uint32, dtype.uint64)
_INTEGERS = (dtype.int8, dtype.int16, dtype.int32, dtype.int64, *_UNSIGNED)
_FLOATS = (dtype.bfloat16, dtype.float16, dtype.float32, dtype.float64)


def is_whole(kind: DType) -> bool:
    """Whether the components of a dtype are integers."""
    return component_type(kind) in _INTEGERS


def sum_type(function: str, kind: DType, requested: Any, context: Context) -> DType:
    """Return the dtype of a sum or product: integers of fewer bits become int64 or uint64."""
    chosen = promotion.sum_type(kind) if requested is None else parse_dtype(requested)
    check_conversion(function, kind, chosen)
    return require_support(function, kind, chosen, context, "vd.int32")


def mean_type(function: str, kind: DType, requested: Any, context: Context) -> DType:
    """Return the dtype of a mean: float64 of integers."""
    chosen = kind if requested is None else parse_dtype(requested)
    if requested is None and is_vector(kind) and is_whole(kind):
        chosen = to_vector(dtype.float64, kind.child_count)
    elif requested is None and (kind is dtype.bool_ or kind in _INTEGERS):
        chosen = dtype.float64
    if component_type(chosen) not in _FLOATS:
        raise ArgumentValueError(f"dtype: {function} has fractions; expected floats, got {chosen.name}")
    check_conversion(function, kind, chosen)
    return require_support(function, kind, chosen, context, "vd.float32")


def check_real(function: str, kind: DType, requested: Any) -> None:
    """Raise ValueError if a complex result of real numbers is requested."""
    chosen = kind if requested is None else parse_dtype(requested)
    if is_complex(chosen) and not is_complex(kind):
        raise ArgumentValueError(
            f"dtype: the {function} of {kind.name} is real; expected a float, got {chosen.name}"
        )


def index_type(function: str, kind: DType, requested: Any, context: Context) -> DType:
    """Return the dtype of positions and counts: int64, or the requested integer."""
    chosen = dtype.int64 if requested is None else parse_dtype(requested)
    if chosen not in _INTEGERS:
        raise ArgumentValueError(f"dtype: {function} gives integers, got {chosen.name}")
    return require_support(function, kind, chosen, context, "vd.int32")


def require_support(function: str, kind: DType, chosen: DType, context: Context, instead: str) -> DType:
    """Return a dtype. Raises NotImplementedError if a device cannot compute with it."""
    if component_type(chosen) is dtype.float64 and "shaderFloat64" not in device_facts(context).features:
        if is_complex(chosen):
            instead = "vd.complex64"
        elif is_vector(chosen):
            instead = f"vd.{to_vector(dtype.float32, chosen.child_count).name}"
        wide = component_type(kind) is dtype.float64
        if wide and instead == "vd.int32":
            instead = "vd.float32"
        what = f"x: {kind.name} was passed; {function}" if wide else f"dtype: {function} of {kind.name}"
        device = context.device_infos[0].device_name
        hint = f"pass {instead.removeprefix('vd.')}" if wide else f"pass dtype={instead}"
        raise UnsupportedError(
            f"{what} gives {chosen.name}, and the device {device!r} has no float64; {hint}"
        )
    return chosen


def check_conversion(function: str, kind: DType, chosen: DType) -> None:
    """Raise ValueError if values of a dtype cannot be added up in another."""
    if kind is chosen:
        return
    shapes = [
        (is_vector(each), is_matrix(each), each.child_count if not is_complex(each) else 0)
        for each in (kind, chosen)
    ]
    loses = is_complex(kind) and not is_complex(chosen) and chosen is not dtype.bool_
    if shapes[0] != shapes[1] or loses:
        raise ArgumentValueError(f"dtype: {function} of {kind.name} cannot be {chosen.name}")


def real_type(kind: DType) -> DType:
    """Return the dtype of magnitudes."""
    return component_type(kind) if is_complex(kind) else kind


def require_order(function: str, kind: DType, *, numbers: bool = False) -> None:
    """Raise ValueError for dtypes without an order; with `numbers`, for vectors, too."""
    if is_matrix(kind) or (numbers and is_vector(kind)):
        raise ArgumentValueError(f"x: {kind.name} has no order, which {function} needs; map it to a number")


def require_numbers(function: str, kind: DType) -> None:
    """Raise ValueError for vectors and matrices."""
    if not (is_scalar(kind) or is_complex(kind)):
        raise ArgumentValueError(f"x: {function} takes numbers, got {kind.name}; map its elements to numbers")


def norm_type(kind: DType, requested: Any, context: Context) -> DType:
    """Return the dtype of a norm: that of magnitudes, float64 for integers, or the requested one."""
    real = real_type(kind)
    chosen = (real if real in _FLOATS else dtype.float64) if requested is None else parse_dtype(requested)
    if chosen not in _FLOATS:
        raise ArgumentValueError(f"dtype: norm has fractions; expected a float, got {chosen.name}")
    return require_support("norm", kind, chosen, context, "vd.float32")


def common_type(a: DType, b: DType) -> DType:
    """Return the dtype of products of two dtypes, by NumPy's rules."""
    if a is b:
        return a
    if dtype.complex32 in (a, b) or dtype.bfloat16 in (a, b):
        raise ArgumentValueError(f"a, b: {a.name} and {b.name} have no common dtype; map one to the other")
    return from_numpy_dtype(np.result_type(to_numpy_dtype(a), to_numpy_dtype(b)))
