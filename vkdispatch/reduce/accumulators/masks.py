"""The argument `where`: maps that leave out the elements that do not count."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, compute_type, is_complex, to_vector
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.families.operands import ArrayLike
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import split_scalars
from vkdispatch.reduce.accumulators.values import cast_value
from vkdispatch.shader.map import MappedArray, MappingFunction
from vkdispatch.shader.signature import describe

Mask = bool | ArrayLike


def parse_mask(where: Mask, x: ArrayLike) -> ArrayLike | None:
    """Return the mask; None if all elements count.

    Raises
    ------
    TypeError, ValueError
        `where` is not an array of booleans, or does not broadcast to the shape of `x`.
    """
    if where is True:
        return None
    if not isinstance(where, (Buffer, MappedArray)):
        raise ArgumentTypeError(
            f"where: expected a vd.Buffer of vd.bool_, or a map called with its arguments, got "
            f"{describe(where)}"
        )
    if where.var_type is not dtype.bool_:
        raise ArgumentTypeError(f"where: expected booleans, vd.bool_, got {where.var_type.name}")
    wanted = x.shape[len(x.shape) - len(where.shape) :]
    fits = len(where.shape) <= len(x.shape) and all(
        own in (1, size) for own, size in zip(where.shape, wanted, strict=True)
    )
    if not fits:
        raise ArgumentValueError(
            f"where: a mask of the shape {where.shape} does not broadcast to the shape {x.shape}"
        )
    return where


def fill_masked(x: ArrayLike, where: ArrayLike, otherwise: Any) -> MappedArray:
    """Return an array in which a number, or its two parts, replaces the elements that do not count."""
    parts = otherwise if isinstance(otherwise, tuple) else (otherwise,)
    array: MappedArray = _make_mask_map(x.var_type, parts, None)(x, where)
    return array


def pair_with_mask(x: ArrayLike, where: ArrayLike, kind: DType) -> MappedArray:
    """Return an array of vectors: the components of each element as `kind`, then 1.

    Elements that do not count become vectors of zeros.
    """
    array: MappedArray = _make_mask_map(x.var_type, (), kind)(x, where)
    return array


def mask_vector_type(kind: DType, part: DType) -> DType:
    """Return the dtype of the vectors that `pair_with_mask` makes of numbers."""
    return to_vector(part, 3 if is_complex(kind) else 2)


@memoize
def _make_mask_map(stored: DType, otherwise: tuple[Any, ...], part: DType | None) -> MappingFunction:
    kind = compute_type(stored)
    target = stored if part is None else mask_vector_type(stored, part)

    # error messages name the parameters as the caller does
    def where(x: Any, where: Any) -> Any:
        if part is None:
            return vc.select(where, x, vc.to_dtype(kind, *otherwise))
        zero = vc.to_dtype(part, 0)
        parts = [vc.select(where, cast_value(each, part), zero) for each in split_scalars(x)]
        return vc.to_dtype(target, *parts, vc.select(where, vc.to_dtype(part, 1), zero))

    return MappingFunction([stored, dtype.bool_], target, where)
