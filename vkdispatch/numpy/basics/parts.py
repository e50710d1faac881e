"""Functions that take numbers apart: quotient and remainder, integer and fraction, mantissa and exponent."""

from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.numpy.basics.elementwise import (
    UFUNCS,
    absolute,
    choose,
    copysign,
    floor_divide,
    isinf,
    nextafter,
    remainder,
    trunc,
)
from vkdispatch.numpy.basics.inputs import to_array
from vkdispatch.numpy.core.application import broadcast_shapes, make_operation
from vkdispatch.numpy.core.array import Array, array_of, value_of
from vkdispatch.numpy.core.dtypes import default_real, float64, resolve
from vkdispatch.numpy.core.expressions import Operation

__all__ = ["divmod", "frexp", "ldexp", "modf", "spacing"]

_int32 = np.dtype(np.int32)


def _real(name: str, x: Any) -> Array:
    """Return an array of floats. Raises TypeError for complex numbers."""
    array = to_array(x, f"{name}: x")
    if array.dtype.kind == "c":
        raise ArgumentTypeError(f"{name}: expected real numbers, got {array.dtype}")
    kind = resolve(np.spacing, (array.dtype,), default_real() == float64)[0]
    return array.astype(kind, copy=False)


def divmod(x1: Any, x2: Any, /) -> tuple[Array, Array]:
    """Return quotients rounded down, and remainders. See `numpy.divmod`.

    Examples
    --------
    >>> vnp.divmod(vnp.asarray([7, -7]), 3)
    (Array([ 2, -3], dtype=int64), Array([1, 2], dtype=int64))
    """
    return floor_divide(x1, x2), remainder(x1, x2)


def modf(x: Any, /) -> tuple[Array, Array]:
    """Return the fractions of numbers and their integers, both with their signs. See `numpy.modf`.

    Examples
    --------
    >>> vnp.modf(vnp.asarray([1.5, -2.25]))
    (Array([ 0.5 , -0.25], dtype=float64), Array([ 1., -2.], dtype=float64))
    """
    array = _real("modf", x)
    whole = trunc(array)
    return copysign(choose(isinf(array), 0.0, array - whole), array), whole


def _mantissa(x: Any, kind: Any) -> Any:
    return vc.frexp(x)[0]


def _exponent(x: Any, kind: Any) -> Any:
    return vc.frexp(x)[1]


def _scale(x: Any, power: Any, kind: Any) -> Any:
    return vc.ldexp(x, power)


_MANTISSA = Operation("frexp mantissa", _mantissa)
_EXPONENT = Operation("frexp exponent", _exponent)
_SCALE = Operation("ldexp", _scale)


def frexp(x: Any, /) -> tuple[Array, Array]:
    """Return mantissas from 0.5 to 1 and exponents of two, int32. See `numpy.frexp`.

    Examples
    --------
    >>> vnp.frexp(vnp.asarray([8.0, 0.75]))
    (Array([0.5 , 0.75], dtype=float64), Array([4, 0], dtype=int32))
    """
    value = value_of(_real("frexp", x))
    parts = ((_MANTISSA, value.dtype), (_EXPONENT, _int32))
    mantissa, exponent = (
        array_of(make_operation(operation, (value,), (value.dtype,), value.shape, kind))
        for operation, kind in parts
    )
    return mantissa, exponent


def ldexp(x1: Any, x2: Any, /) -> Array:
    """Return `x1 * 2 ** x2` for integers `x2`. See `numpy.ldexp`. Raises TypeError for other exponents.

    Examples
    --------
    >>> vnp.ldexp(vnp.asarray([0.5, 1.0]), vnp.asarray([4, 2]))
    Array([8., 4.], dtype=float64)
    """
    value = value_of(_real("ldexp", x1))
    power = to_array(x2, "ldexp: x2")
    if power.dtype.kind not in "iu":
        raise ArgumentTypeError(f"ldexp: expected integers as exponents, got {power.dtype}")
    if power.dtype.itemsize > 4 or power.dtype == np.uint32:
        power = UFUNCS["minimum"](power, 9999)
        power = UFUNCS["maximum"](power, -9999) if power.dtype.kind == "i" else power
    shape = broadcast_shapes([value.shape, power.shape], "ldexp")
    operands = value, value_of(power.astype(_int32))
    return array_of(make_operation(_SCALE, operands, (value.dtype, _int32), shape, value.dtype))


def spacing(x: Any, /) -> Array:
    """Return how far the next number away from zero is, with the sign of `x`. See `numpy.spacing`.

    Examples
    --------
    >>> vnp.spacing(vnp.asarray([1.0], dtype=vnp.float32))
    Array([1.1920929e-07], dtype=float32)
    """
    array = _real("spacing", x)
    size = absolute(array)
    step = nextafter(size, np.inf) - size
    step = choose(array < 0, -step, step)
    # devices may compute with subnormal numbers as with zero, but nextafter works on bits
    least = nextafter(size * 0, 1)
    least = choose(array < 0, nextafter(size * 0, -1), least)
    step = choose(size < 2 * np.finfo(array.dtype).smallest_normal, least, step)
    return choose(isinf(array), np.nan, step)
