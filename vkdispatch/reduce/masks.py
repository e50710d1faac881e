"""The argument `where`: maps that leave the elements out that do not count."""

import math
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.remembering import remembered
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, compute_type, is_complex, to_vector
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.reduce.measures import components, converted
from vkdispatch.shader.map import MappedArray, MappingFunction, mapped_index
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
    if isinstance(where, MappedArray) and where.size not in (1, x.size):
        raise ArgumentValueError(
            f"where: a map has the array's own shape, {x.shape}, or one element, got {where.shape}; only "
            "buffers are repeated along axes"
        )
    return where


def masked(x: Any, where: Any, otherwise: Any) -> MappedArray:
    """Return an array with a number, or two parts of one, in place of the elements that do not count."""
    parts = otherwise if isinstance(otherwise, tuple) else (otherwise,)
    return _called(x, where, x.var_type, parts, None)


def counted(x: Any, where: Any, kind: DType) -> MappedArray:
    """Return an array of vectors: the components of each element as `kind`, and 1 where it counts, or 0.

    Elements that do not count have components 0.
    """
    return _called(x, where, x.var_type, (), kind)


def mask_vector(kind: DType, part: DType) -> DType:
    """Return the dtype of the vectors that `counted` makes of numbers."""
    return to_vector(part, 3 if is_complex(kind) else 2)


def _called(x: Any, where: Any, stored: DType, otherwise: tuple[Any, ...], part: DType | None) -> MappedArray:
    shape = tuple(x.shape)
    if where.size == 1 or tuple(where.shape) == shape or isinstance(where, MappedArray):
        array: MappedArray = _choosing(stored, otherwise, part, spread=False)(x, where)
        return array
    sizes = (1, 1, 1, *shape)[-3:]
    own = (1, 1, 1, *where.shape)[-3:]
    strides = [0 if size == 1 else math.prod(own[axis + 1 :]) for axis, size in enumerate(own)]
    if max(*sizes[1:], *strides) >> 32:
        raise ArgumentValueError(
            f"where: the axes of an array of the shape {shape} are too long to repeat a mask along; "
            "give a mask of that shape"
        )
    made: MappedArray = _choosing(stored, otherwise, part, spread=True)(x, where, *sizes[1:], *strides)
    return made


@remembered
def _choosing(
    stored: DType, otherwise: tuple[Any, ...], part: DType | None, *, spread: bool
) -> MappingFunction:
    kind = compute_type(stored)
    target = stored if part is None else mask_vector(stored, part)

    def chosen(value: Any, keep: Any) -> Any:
        if part is None:
            return vc.select(keep, value, vc.to_dtype(kind, *otherwise))
        zero = vc.to_dtype(part, 0)
        parts = [vc.select(keep, converted(each, part), zero) for each in components(value)]
        return vc.to_dtype(target, *parts, vc.select(keep, vc.to_dtype(part, 1), zero))

    # messages name these as the caller does
    def where(x: Any, where: Any) -> Any:
        return chosen(x, where)

    def where_spread(x: Any, where: Any, rows: Any, columns: Any, *strides: Any) -> Any:
        index = mapped_index()
        column, row = index % columns, index // columns
        place = (row // rows) * strides[0] + (row % rows) * strides[1] + column * strides[2]
        return chosen(x, where[place])

    if not spread:
        return MappingFunction([stored, dtype.bool_], target, where)
    buffer: Any = vc.Buff
    constant: Any = vc.Const
    annotations = [stored, buffer[dtype.bool_], *(constant[dtype.uint32],) * 5]
    return MappingFunction(annotations, target, where_spread)
