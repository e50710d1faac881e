"""The types that products of matrices are computed in, and the step that adds a product to a sum."""

from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.arrays.elements import wide_type
from vkdispatch.base import dtype
from vkdispatch.base.dtype import (
    DType,
    component_type,
    from_numpy_dtype,
    is_complex,
    is_scalar,
    to_numpy_dtype,
)
from vkdispatch.base.errors import ArgumentTypeError

# What NumPy lacks, and what takes its place in questions of promotion.
_LIKE: dict[DType, Any] = {dtype.bfloat16: np.float16, dtype.complex32: np.complex64}
_OF_HALVES = frozenset((dtype.complex32, dtype.float16, dtype.bool_, dtype.int8, dtype.uint8))


def result_type(a: DType, b: DType) -> DType:
    """Return the dtype in which two arrays meet, as `numpy.result_type` does.

    bfloat16 counts as float16 does, and with that makes float32.
    """
    if a is b:
        return a
    both = {a, b}
    host = np.result_type(*(_LIKE.get(kind) or to_numpy_dtype(kind) for kind in (a, b)))
    if dtype.bfloat16 in both and host == np.float16:
        return dtype.float32 if dtype.float16 in both else dtype.bfloat16
    if dtype.complex32 in both and host == np.complex64:
        return dtype.complex32 if both <= _OF_HALVES else dtype.complex64
    return from_numpy_dtype(host)


def check_numbers(kind: DType, name: str) -> None:
    """Raise TypeError for an array of vectors or matrices."""
    if not is_scalar(kind) and not is_complex(kind):
        raise ArgumentTypeError(f"{name}: matmul multiplies matrices of numbers, got elements of {kind.name}")


def sum_type(kind: DType) -> DType:
    """Return the type that sums are kept in for a result of `kind`: 32 bits or more."""
    return dtype.uint32 if kind is dtype.bool_ else wide_type(kind)


def as_factor(value: Any, kind: DType) -> Any:
    """Return a GPU value as one of the type that sums are kept in."""
    if value.var_type is kind:
        return value
    if is_complex(kind) and not is_complex(value.var_type):
        part = component_type(kind)
        return vc.to_dtype(kind, value.to_dtype(part), vc.to_dtype(part, 0))
    return value.to_dtype(kind)


def add_product(total: Any, x: Any, y: Any, *, logical: bool) -> None:
    """Add the product of two values to a register; of truth values, "or" the "and" of them."""
    kind = total.var_type
    if logical:
        total[:] = total | (x & y)
    elif is_complex(kind):
        total.real = vc.fma(x.real, y.real, total.real)
        total.imag = vc.fma(x.real, y.imag, total.imag)
        total.real = vc.fma(-x.imag, y.imag, total.real)
        total.imag = vc.fma(x.imag, y.real, total.imag)
    elif kind in (dtype.float32, dtype.float64):
        total[:] = vc.fma(x, y, total)
    else:
        total[:] = total + x * y


def combined(x: Any, y: Any, *, logical: bool) -> Any:
    """Return the sum of two sums."""
    return x | y if logical else x + y


def zero(kind: DType) -> Any:
    """Return a zero of a type, not yet in a register."""
    if is_complex(kind):
        part = component_type(kind)
        return vc.to_dtype(kind, vc.to_dtype(part, 0), vc.to_dtype(part, 0))
    return vc.to_dtype(kind, 0)
