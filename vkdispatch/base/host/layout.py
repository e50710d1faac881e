"""The shape and dtype of a buffer: parsed, and laid out in memory."""

import math
import operator
from collections.abc import Sequence
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, OutOfDeviceMemoryError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.structures import (
    is_dataclass,
    is_structure,
    memory_type,
    structure_from_numpy,
    structure_of,
)

Shape = int | Sequence[int]
# Of a buffer: var_type, shape, size, mem_size and shader_shape.
Layout = tuple[DType, tuple[int, ...], int, int, tuple[int, ...]]

MAX_AXES = 3
_PADDING = ((1, 1, 1), (1, 1), (1,), ())  # by the number of axes
_MAX_BYTES = 1 << 62


class OversizedBufferError(OutOfDeviceMemoryError, ValueError):
    """The device has no memory for a buffer of more than 2**30 elements."""


def layout_of(shape: Shape, var_type: "DType | np.dtype[Any]") -> Layout:
    """Return the layout of a buffer of this shape and dtype. Raises as `Buffer`."""
    kind = parse_dtype(var_type)
    axes = parse_shape(shape)
    size = math.prod(axes)
    octets = size * kind.item_size
    if octets > _MAX_BYTES:
        raise OversizedBufferError(f"shape: {octets} bytes are more than any device has")
    return kind, axes, size, octets, axes + _PADDING[len(axes)] + (size,)


def parse_dtype(value: object, name: str = "var_type") -> DType:
    """Return the dtype of elements in memory, from a dtype, a dataclass or a NumPy dtype.

    Raises
    ------
    TypeError
        `value` is none of these. The message calls it `name`.
    ValueError
        There is no matching dtype.
    """
    if isinstance(value, type) and issubclass(value, dtype.dtype):
        if not hasattr(value, "name"):
            raise ArgumentTypeError(
                f"{name}: {value.__name__} cannot be stored in memory; use vd.float32 or the like"
            )
        if dtype.is_array(value):
            raise ArgumentTypeError(
                f"{name}: {value.name} is a type of fields of structures; make a buffer of "
                f"{dtype.item_of(value).name} with more axes"
            )
        return memory_type(value) if is_structure(value) else value
    if is_dataclass(value):
        return memory_type(structure_of(value))
    if isinstance(value, np.dtype) and value.names is not None:
        return structure_from_numpy(value)
    if isinstance(value, (np.dtype, str)) or (isinstance(value, type) and issubclass(value, np.generic)):
        return dtype.from_numpy_dtype(value, name)
    twin = dtype.find_twin(value)
    hint = "" if twin is None else f"; write vd.{twin}"
    raise ArgumentTypeError(f"{name}: expected a vkdispatch dtype such as vd.float32, got {value!r}{hint}")


def parse_shape(shape: object) -> tuple[int, ...]:
    """Return a shape as a tuple of ints.

    Raises
    ------
    TypeError
        It is neither an int nor a sequence of ints.
    ValueError
        It has more than 3 axes or a negative length.
    """
    if type(shape) is int and shape >= 0:
        return (shape,)
    if type(shape) is tuple and len(shape) <= MAX_AXES:
        for axis in shape:
            if type(axis) is not int or axis < 0:
                break
        else:
            return shape
    if isinstance(shape, (str, bytes)):
        raise ArgumentTypeError(f"shape: expected an int or up to 3 ints, got {shape!r}")
    try:
        axes = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
        if any(isinstance(axis, (bool, np.bool_)) for axis in axes):
            raise TypeError
        result = tuple(operator.index(axis) for axis in axes)
    except TypeError:
        raise ArgumentTypeError(f"shape: expected an int or up to 3 ints, got {shape!r}") from None
    if len(result) > MAX_AXES:
        raise ArgumentValueError(
            f"shape: a buffer has at most {MAX_AXES} axes, got {len(result)} in {result}"
        )
    if any(axis < 0 for axis in result):
        raise ArgumentValueError(f"shape: sizes cannot be negative, got {result}")
    return result
