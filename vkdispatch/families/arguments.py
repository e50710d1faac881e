"""Axes, numbers and dtypes as arguments of functions on buffers: one rule for all."""

import math
from collections.abc import Iterable
from typing import Any, TypeGuard

import numpy as np

from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType, from_numpy_dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import AxisError
from vkdispatch.base.process import as_int
from vkdispatch.base.record import record
from vkdispatch.shader.signature import describe

# ---- Numbers as arguments: one rule for all functions; and powers of two ---------------------------------


Number = bool | int | float | complex | np.generic


def is_int(value: object) -> bool:
    """Whether a value is a Python or NumPy integer; booleans are not."""
    return as_int(value) is not None


def parse_int(
    value: object,
    name: str,
    *,
    least: int | None = None,
    most: int | None = None,
    wanted: str = "an int",
    note: str = "",
) -> int:
    """Return a Python or NumPy integer as an int.

    Parameters
    ----------
    least, most
        The limits, both included; `most` needs `least`.
    wanted
        The type of the argument in messages.
    note
        A text that messages add to the limits.

    Raises
    ------
    TypeError
        The value is not an integer. Booleans are not integers.
    ValueError
        The value is out of the limits.
    """
    number = as_int(value)
    if number is None:
        raise ArgumentTypeError(f"{name}: expected {wanted}, got {describe(value)}")
    if (least is not None and number < least) or (most is not None and number > most):
        limits = f"from {least} on" if most is None else f"from {least} to {most}"
        raise ArgumentValueError(f"{name}: expected an int {limits}{note}, got {number}")
    return number


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a Python or NumPy integer or float; booleans are not."""
    return isinstance(value, (float, np.floating)) or is_int(value)


def parse_number(value: Any, name: str) -> float:
    """Return a finite number as a float. Raises TypeError or ValueError for other values."""
    if not is_number(value):
        raise ArgumentTypeError(f"{name}: expected a number, got {describe(value)}")
    number = float(value)
    if not math.isfinite(number):
        raise ArgumentValueError(f"{name}: expected a finite number, got {number}")
    return number


# ---- Axes as arguments: one rule for all functions -------------------------------------------------------


def as_tuple(axes: object) -> tuple[Any, ...]:
    """Return one axis or several axes as a tuple."""
    alone = isinstance(axes, (str, bytes)) or (isinstance(axes, np.ndarray) and not axes.ndim)
    return tuple(axes) if isinstance(axes, Iterable) and not alone else (axes,)


def parse_axis(axis: object, dimensions: int, name: str = "axis") -> int:
    """Return an axis as a nonnegative int; negative axes count from the end.

    Raises
    ------
    TypeError
        The axis is not an int. NumPy integers are ints, booleans are not.
    AxisError
        The axis is out of range.
    """
    number = parse_int(axis, name)
    if not -dimensions <= number < dimensions:
        raise AxisError(
            f"{name}: {number} is out of bounds for an array of {dimensions} dimensions; expected "
            f"{-dimensions} to {dimensions - 1}"
            if dimensions
            else f"{name}: an array of no dimensions has no axes, got {number}"
        )
    return number % dimensions


def parse_axes(axes: object, dimensions: int, name: str = "axis") -> tuple[int, ...]:
    """Return one axis or several axes as nonnegative ints in the given order; None for all of them.

    Raises
    ------
    TypeError
        An axis is not an int.
    AxisError
        An axis is out of range or repeated.
    """
    if axes is None:
        return tuple(range(dimensions))
    result = tuple(parse_axis(axis, dimensions, name) for axis in as_tuple(axes))
    if len(set(result)) < len(result):
        raise AxisError(f"{name}: repeated axis in {axes!r}")
    return result


def split_shape(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """Return the numbers of elements before, along, and after an axis."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


# ---- The argument `dtype` of functions on arrays ---------------------------------------------------------


# What functions on arrays take as `dtype`: vkdispatch's, NumPy's or Python's types, or their names.
DTypeLike = DType | type[Any] | np.dtype[Any] | str | None


def parse_dtype(value: Any, name: str = "dtype") -> DType:
    """Return the dtype for an argument: one of vkdispatch or NumPy, or bool, int, float, complex.

    Raises
    ------
    TypeError
        The value is not a dtype.
    ValueError
        Buffers cannot have elements of this dtype.
    """
    if isinstance(value, type) and issubclass(value, dtype.dtype) and hasattr(value, "name"):
        return value
    try:
        # NumPy does not know names such as "bfloat16"
        return from_numpy_dtype(value if isinstance(value, (str, np.dtype)) else np.dtype(value), name)
    except ArgumentValueError:
        raise
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{name}: expected a dtype such as vd.float32 or np.float32, got {value!r}"
        ) from None


# ---- Accesses of maps to their arguments -----------------------------------------------------------------


@record
class Access:
    """How a map uses an argument.

    Attributes
    ----------
    here
        Whether it accesses only the element at the mapped index.
    written
        Whether it writes to the argument.
    """

    here: bool = True
    written: bool = False
