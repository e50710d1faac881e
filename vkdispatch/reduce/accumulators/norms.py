"""Magnitudes of numbers, their powers, and the accumulator of norms, which are roots of sums of powers."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.trace.current import precise_math
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import is_nonzero
from vkdispatch.reduce.accumulators.accumulator import Accumulator, Steps, combine_pairwise, make_single
from vkdispatch.reduce.accumulators.values import cast_value, narrow, split_floats

# The largest power that is a product of few factors.
_MOST_WHOLE = 16


def magnitude(value: Any, kind: DType) -> Any:
    """Return the absolute value in a float type. That of a complex number does not overflow on the way."""
    parts = [vc.abs(part).to_register() for part in split_floats(value, kind)]
    if len(parts) == 1:
        return parts[0]
    large = vc.max(*parts).to_register()
    small = vc.min(*parts).to_register()
    ratio = vc.select(large > 0, small / large, 0 * large).to_register()
    simple = vc.any(vc.isinf(parts[0]), vc.isinf(parts[1]))
    nan = (parts[0] + parts[1]).to_register()
    scaled = vc.select(vc.isnan(nan), nan, large * vc.sqrt(1 + ratio * ratio))
    return vc.select(simple, vc.to_dtype(kind, math.inf), scaled)


def square(value: Any, kind: DType) -> Any:
    """Return the square of the absolute value in a float type."""
    parts = [part.to_register() for part in split_floats(value, kind)]
    return combine_pairwise(operator.add, [part * part for part in parts])


@memoize
def make_norm(kind: DType, total: DType, out_type: DType, power: str) -> Accumulator:
    """Return the accumulator of a norm: the root of a sum in the float type `total`.

    `power` is "2" (squares), "1" (magnitudes), "0" (nonzero elements), or "p": then the values are powers
    already, and the parameter is the inverse of the power.
    """

    def prepare(value: Any) -> Any:
        if power == "0":
            return vc.select(is_nonzero(value), vc.to_dtype(total, 1), vc.to_dtype(total, 0))
        if power == "p":
            return cast_value(value, total)
        return square(value, total) if power == "2" else magnitude(value, total)

    def finish(value: Any, numbers: Sequence[Any]) -> Any:
        if power == "2":
            value = vc.sqrt(value)
        if power == "p":
            value = raise_to(value.to_register(), numbers[0])
        return narrow(value, out_type)

    return make_single(
        "norm",
        total,
        out_type,
        0,
        operator.add,
        Steps(
            prepare=prepare,
            finish=finish,
            parameters=(("inverse", total),) if power == "p" else (),
            subgroup=vc.subgroup_add,
        ),
    )


def find_short_power(power: float) -> float | None:
    """Return a power if few multiplications and a square root compute it, else None."""
    return power if 2 * power == int(2 * power) and 0.5 <= abs(power) <= _MOST_WHOLE else None


def raise_to(value: Any, power: Any) -> Any:
    """Return a nonnegative number in a register raised to a power, a GPU value or a short one."""
    if not isinstance(power, float):
        with precise_math():
            return value**power
    kind = value.var_type
    infinity, zero = vc.to_dtype(kind, math.inf), vc.to_dtype(kind, 0)
    at_zero, at_infinity = (zero, infinity) if power > 0 else (infinity, zero)
    usual = vc.select(vc.isinf(value), at_infinity, _multiply(value, power))
    return vc.select(value == 0, at_zero, vc.select(vc.isnan(value), value, usual))


def _multiply(value: Any, power: float) -> Any:
    """Return a positive number raised to a power of `find_short_power`."""
    if power == int(power):
        return value ** int(power)
    whole = int(abs(power))
    result = value**whole * vc.sqrt(value) if whole else vc.sqrt(value)
    return result if power > 0 else 1 / result
