"""Magnitudes of numbers and their powers, and the accumulator of norms, which are roots of sums of these."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.memoize import memoize
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.recording import precise_math
from vkdispatch.reduce.accumulators import Accumulator, paired, single
from vkdispatch.reduce.measures import converted, narrowed, non_zero, numbers_of

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


@memoize
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


def short_power(power: float) -> float | None:
    """Return a power if it is made by a few multiplications, perhaps with a square root, else None."""
    return power if 2 * power == int(2 * power) and 0.5 <= abs(power) <= _MOST_WHOLE else None


def raised(value: Any, power: Any) -> Any:
    """Return a number in a register, from 0 on, to a power, a GPU value or one of `short_power`."""
    if not isinstance(power, float):
        with precise_math():
            return value**power
    kind = value.var_type
    infinity, zero = vc.to_dtype(kind, math.inf), vc.to_dtype(kind, 0)
    at_zero, at_infinity = (zero, infinity) if power > 0 else (infinity, zero)
    usual = vc.select(vc.isinf(value), at_infinity, _product(value, power))
    return vc.select(value == 0, at_zero, vc.select(vc.isnan(value), value, usual))


def _product(value: Any, power: float) -> Any:
    """Return a positive number to a power of `short_power`."""
    if power == int(power):
        return value ** int(power)
    whole = int(abs(power))
    result = value**whole * vc.sqrt(value) if whole else vc.sqrt(value)
    return result if power > 0 else 1 / result
