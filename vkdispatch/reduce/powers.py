"""Magnitudes of numbers and their powers, and the accumulator of norms, which are roots of sums of these.

GLSL's `pow` is one of float32, so float64 has one of its own: x**p = 2**(p log2 x), with the logarithm in
two numbers, whole powers of two and a rest, as the exponent multiplies its error:

    x = m 2**e,  m in [sqrt(1/2), sqrt(2))      log m = 2 (s + s**3 / 3 + ...),  s = (m - 1) / (m + 1)
"""

import math
import operator
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.remembering import remembered
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.reduce.accumulators import Accumulator, paired, single
from vkdispatch.reduce.measures import converted, narrowed, non_zero, numbers_of

# Terms of the series of a logarithm and an exponential that float64 sees.
_LOGARITHM, _EXPONENTIAL = 11, 14
# Powers that are products of few factors.
_MOST_WHOLE = 16


def magnitude(value: Any, kind: DType) -> Any:
    """Return the absolute value, in a float type; of a complex number without an overflow on the way."""
    parts = [vc.abs(part).to_register() for part in numbers_of(value, kind)]
    if len(parts) == 1:
        return parts[0]
    large = vc.max(*parts).to_register()
    small = vc.min(*parts).to_register()
    ratio = vc.select(large > 0, small / large, 0 * large).to_register()
    simple = vc.any(vc.isinf(parts[0]), vc.isinf(parts[1]))
    nan = (parts[0] + parts[1]).to_register()
    scaled = vc.select(vc.isnan(nan), nan, large * vc.sqrt(1 + ratio * ratio))
    return vc.select(simple, vc.to_dtype(kind, math.inf), scaled)


def squared(value: Any, kind: DType) -> Any:
    """Return the absolute value's square, in a float type."""
    parts = [part.to_register() for part in numbers_of(value, kind)]
    return paired(operator.add, [part * part for part in parts])


@remembered
def norm_of(kind: DType, total: DType, out_type: DType, power: str) -> Accumulator:
    """Return a norm: its accumulator is a sum in the float type `total`, then a root.

    `power` is "2" (squares), "1" (magnitudes), "0" (what is not 0), or "p", whose values are powers already
    and whose parameter is the inverse of the power.
    """

    def prepared(value: Any) -> Any:
        if power == "0":
            return vc.select(non_zero(value), vc.to_dtype(total, 1), vc.to_dtype(total, 0))
        if power == "p":
            return converted(value, total)
        return squared(value, total) if power == "2" else magnitude(value, total)

    def finish(value: Any, numbers: Sequence[Any]) -> Any:
        if power == "2":
            value = vc.sqrt(value)
        if power == "p":
            value = raised(value.to_register(), numbers[0])
        return narrowed(value, out_type)

    return single(
        "norm",
        total,
        out_type,
        0,
        operator.add,
        prepared=prepared,
        finish=finish,
        parameters=(("inverse", total),) if power == "p" else (),
        subgroup=vc.subgroup_add,
    )


def whole_power(power: float) -> int | None:
    """Return a power as an int if it is made by a few multiplications, else None."""
    return int(power) if power == int(power) and 1 <= abs(power) <= _MOST_WHOLE else None


def raised(value: Any, power: Any) -> Any:
    """Return a number in a register, from 0 on, to a power, a GPU value or an int of `whole_power`."""
    kind = value.var_type
    infinity, zero = vc.to_dtype(kind, math.inf), vc.to_dtype(kind, 0)
    if isinstance(power, int):
        usual = value**power
        at_zero, at_infinity = (zero, infinity) if power > 0 else (infinity, zero)
    else:
        usual = _powered(value, power) if kind is dtype.float64 else value**power
        at_zero = vc.select(power < 0, infinity, zero)
        at_infinity = vc.select(power < 0, zero, infinity)
    usual = vc.select(vc.isinf(value), at_infinity, usual)
    return vc.select(value == 0, at_zero, vc.select(vc.isnan(value), value, usual))


def _powered(value: Any, power: Any) -> Any:
    """Return a positive float64 to a power."""
    significand, exponent = (each.to_register() for each in vc.frexp(value))
    low = (significand < math.sqrt(0.5)).to_register()
    significand = vc.select(low, 2 * significand, significand).to_register()
    whole = (exponent - vc.select(low, 1, 0)).to_dtype(dtype.float64).to_register()
    s = ((significand - 1) / (significand + 1)).to_register()
    square = (s * s).to_register()
    series = vc.to_dtype(dtype.float64, 1 / (2 * _LOGARITHM + 1)).to_register()
    for term in range(_LOGARITHM - 1, -1, -1):
        series = vc.fma(series, square, vc.to_dtype(dtype.float64, 1 / (2 * term + 1))).to_register()
    # binary logarithms of the significand, beside those of the power of two
    rest = (series * s * (2 / math.log(2)) * power).to_register()
    scaled = (whole * power).to_register()
    steps = vc.floor(scaled + rest + 0.5).to_register()
    r = (((scaled - steps) + vc.fma(whole, power, -scaled) + rest) * math.log(2)).to_register()
    result = vc.to_dtype(dtype.float64, 1).to_register()
    for term in range(_EXPONENTIAL, 0, -1):
        result = vc.fma(result, r * (1 / term), vc.to_dtype(dtype.float64, 1)).to_register()
    # in two steps, each of which float64 has
    shift = vc.clamp(steps, -2200, 2200).to_dtype(dtype.int32).to_register()
    half = (shift >> 1).to_register()
    return vc.ldexp(vc.ldexp(result, half), shift - half)
