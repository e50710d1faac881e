"""The types of sums of products, and arithmetic on sums."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.dtype import (
    DType,
    component_type,
    is_complex,
    is_scalar,
)
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.families.values import wide_type


def check_numbers(kind: DType, name: str) -> None:
    """Raise TypeError for an array of vectors or matrices."""
    if not is_scalar(kind) and not is_complex(kind):
        raise ArgumentTypeError(f"{name}: matmul multiplies matrices of numbers, got elements of {kind.name}")


def sum_type(kind: DType) -> DType:
    """Return the type of sums for a result of `kind`: one of at least 32 bits."""
    return dtype.uint32 if kind is dtype.bool_ else wide_type(kind)


def add_product(total: Any, x: Any, y: Any, *, logical: bool) -> None:
    """Add the product of two values to a register; booleans have "and" and "or"."""
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


def add_sums(x: Any, y: Any, *, logical: bool) -> Any:
    """Return the sum of two sums."""
    return x | y if logical else x + y


def add_pairwise(sums: list[Any], *, logical: bool) -> Any:
    """Return the sum of sums, added up in pairs; their number is a power of two."""
    while len(sums) > 1:
        sums = [
            add_sums(x, y, logical=logical).to_register() for x, y in zip(sums[::2], sums[1::2], strict=True)
        ]
    return sums[0]


def make_zero(kind: DType) -> Any:
    """Return the zero of a type, as an expression."""
    if is_complex(kind):
        part = component_type(kind)
        return vc.to_dtype(kind, vc.to_dtype(part, 0), vc.to_dtype(part, 0))
    return vc.to_dtype(kind, 0)
