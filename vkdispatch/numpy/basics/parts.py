"""Functions that take numbers apart: quotient and remainder, integer and fraction, mantissa and exponent."""

from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.numpy.basics import elementwise
from vkdispatch.numpy.core.application import broadcast_shapes, make_operation
from vkdispatch.numpy.core.array import Array, array_of, check_cast, describe, value_of
from vkdispatch.numpy.core.conversion import to_array
from vkdispatch.numpy.core.expressions import Operation
from vkdispatch.numpy.core.memory import default_real, float64, resolve

_int32 = np.dtype(np.int32)


def _real(name: str, x: Any) -> Array:
    """Return an array of floats. Raises TypeError for complex numbers."""
    array = to_array(x, f"{name}: x")
    if array.dtype.kind == "c":
        raise ArgumentTypeError(f"{name}: expected real numbers, got {array.dtype}")
    kind = resolve(np.spacing, (array.dtype,), default_real() == float64)[0]
    return array.astype(kind, copy=False)


def _store_both(out: Any, results: tuple[Array, Array], name: str) -> tuple[Array, Array]:
    """Return two results, or store them in a pair `out`, in which None stands for a new array."""
    if out is None:
        return results
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise ArgumentTypeError(f"{name}: out: expected a pair of Arrays, got {describe(out)}")
    for result, each in zip(results, out, strict=True):
        if isinstance(each, Array):  # before either is written
            check_cast(result.dtype, each.dtype, name)
    first, second = (
        result if each is None else elementwise.finish(value_of(result), each, None, name)
        for result, each in zip(results, out, strict=True)
    )
    return first, second


def divmod(x1: Any, x2: Any, /, out: Any = None) -> tuple[Array, Array]:
    """Return quotients rounded down, and remainders. See `numpy.divmod`.

    Parameters
    ----------
    out
        A pair of arrays for the results; None in place of one: a new array.

    Raises
    ------
    TypeError
        `out` is no such pair, or its dtypes do not hold the results.
    ValueError
        The shapes do not broadcast, or are not those of `out`.

    Examples
    --------
    >>> vnp.divmod(vnp.asarray([7, -7]), 3)
    (Array([ 2, -3], dtype=int64), Array([1, 2], dtype=int64))
    """
    return _store_both(out, (elementwise.floor_divide(x1, x2), elementwise.remainder(x1, x2)), "divmod")


def modf(x: Any, /, out: Any = None) -> tuple[Array, Array]:
    """Return the fractions of numbers and their integers, both with their signs. See `numpy.modf`.

    `out` is a pair of arrays for the results, as that of `divmod`.

    Examples
    --------
    >>> vnp.modf(vnp.asarray([1.5, -2.25]))
    (Array([ 0.5 , -0.25], dtype=float64), Array([ 1., -2.], dtype=float64))
    """
    array = _real("modf", x)
    whole = elementwise.trunc(array)
    fractions = elementwise.copysign(elementwise.choose(elementwise.isinf(array), 0.0, array - whole), array)
    return _store_both(out, (fractions, whole), "modf")


def _scale(x: Any, power: Any, kind: Any) -> Any:
    """Give x * 2 ** power in three steps, of which one rounds: GLSL's ldexp takes small powers only."""
    wide, most, digits = (dt.float64, 1023, 53) if kind == float64 else (dt.float32, 127, 24)
    value, one = vc.to_dtype(wide, x), vc.to_dtype(wide, 1)
    for _ in range(2):
        low = vc.select(power < 1 - most, 1 - most + digits, 0)
        step = vc.select(power > most, most, low).to_register()
        value = vc.precise(value * vc.ldexp(one, step))
        power = power - step
    value = vc.precise(value * vc.ldexp(one, vc.clamp(power, 1 - most, most)))
    return vc.to_dtype(x.var_type, value)


_MANTISSA = Operation("frexp mantissa", lambda x, kind: vc.frexp(x)[0])
_EXPONENT = Operation("frexp exponent", lambda x, kind: vc.frexp(x)[1])
_SCALE = Operation("ldexp", _scale)


def frexp(x: Any, /, out: Any = None) -> tuple[Array, Array]:
    """Return mantissas from 0.5 to 1 and exponents of two, int32. See `numpy.frexp`.

    `out` is a pair of arrays for the results, as that of `divmod`.

    Examples
    --------
    >>> vnp.frexp(vnp.asarray([8.0, 0.75]))
    (Array([0.5 , 0.75], dtype=float64), Array([4, 0], dtype=int32))
    """
    value = value_of(_real("frexp", x))
    mantissa = make_operation(_MANTISSA, (value,), (value.dtype,), value.shape, value.dtype)
    exponent = make_operation(_EXPONENT, (value,), (value.dtype,), value.shape, _int32)
    return _store_both(out, (array_of(mantissa), array_of(exponent)), "frexp")


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
        power = elementwise.UFUNCS["minimum"](power, 9999)
        power = elementwise.UFUNCS["maximum"](power, -9999) if power.dtype.kind == "i" else power
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
    size = elementwise.absolute(array)
    step = elementwise.nextafter(size, np.inf) - size
    step = elementwise.choose(array < 0, -step, step)
    # devices may compute with subnormal numbers as with zero: those have one bit, and the sign
    digits, width = np.finfo(array.dtype).nmant, 8 * array.dtype.itemsize
    bits = array.view(f"i{width // 8}")
    exponent = (bits >> digits) & (1 << (width - 1 - digits)) - 1
    sign = -(1 << (width - 1))
    small = 1 << elementwise.maximum(elementwise.minimum(exponent, digits) - 1, 0)
    small = small | elementwise.choose(bits == sign, 0, bits & sign)
    step = elementwise.choose(exponent <= digits, small.view(array.dtype), step)
    return elementwise.choose(elementwise.isinf(array), np.nan, step)
