"""The argument `where`: maps that leave the elements out that do not count."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.memoize import memoize
from vkdispatch.arrays.values.words import split_scalars
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, compute_type, is_complex, to_vector
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.reduce.measures import converted
from vkdispatch.shader.map import MappedArray, MappingFunction
from vkdispatch.shader.parameters import given


def checked_mask(where: object, x: Any) -> "Buffer[Any] | MappedArray | None":
    """Return the mask; None where all elements count.

    Raises
    ------
    TypeError, ValueError
        It is no array of truth values, or its shape does not go with that of `x`.
    """
    if where is True:
        return None
    if not isinstance(where, (Buffer, MappedArray)):
        raise ArgumentTypeError(
            f"where: expected a vd.Buffer of vd.bool_, or a map called with its arguments, got {given(where)}"
        )
    if where.var_type is not dtype.bool_:
        raise ArgumentTypeError(f"where: expected truth values, vd.bool_, got {where.var_type.name}")
    wanted = x.shape[len(x.shape) - len(where.shape) :]
    fits = len(where.shape) <= len(x.shape) and all(
        own in (1, size) for own, size in zip(where.shape, wanted, strict=True)
    )
    if not fits:
        raise ArgumentValueError(
            f"where: a mask of the shape {where.shape} does not go with an array of the shape {x.shape}"
        )
    return where


def masked(x: Any, where: Any, otherwise: Any) -> MappedArray:
    """Return an array with a number, or two parts of one, in place of the elements that do not count."""
    parts = otherwise if isinstance(otherwise, tuple) else (otherwise,)
    array: MappedArray = _choosing(x.var_type, parts, None)(x, where)
    return array


def counted(x: Any, where: Any, kind: DType) -> MappedArray:
    """Return an array of vectors: the components of each element as `kind`, and 1 where it counts, or 0.

    Elements that do not count have components 0.
    """
    array: MappedArray = _choosing(x.var_type, (), kind)(x, where)
    return array


def mask_vector(kind: DType, part: DType) -> DType:
    """Return the dtype of the vectors that `counted` makes of numbers."""
    return to_vector(part, 3 if is_complex(kind) else 2)


@memoize
def _choosing(stored: DType, otherwise: tuple[Any, ...], part: DType | None) -> MappingFunction:
    kind = compute_type(stored)
    target = stored if part is None else mask_vector(stored, part)

    # messages name the parameters as the caller does
    def where(x: Any, where: Any) -> Any:
        if part is None:
            return vc.select(where, x, vc.to_dtype(kind, *otherwise))
        zero = vc.to_dtype(part, 0)
        parts = [vc.select(where, converted(each, part), zero) for each in split_scalars(x)]
        return vc.to_dtype(target, *parts, vc.select(where, vc.to_dtype(part, 1), zero))

    return MappingFunction([stored, dtype.bool_], target, where)
