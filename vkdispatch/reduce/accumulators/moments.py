"""The accumulators of means and variances.

The moments (count n, mean m, sum of squares about it M) of each chunk are computed in registers, and combined
after Chan, Golub and LeVeque (1979):

    n = n1 + n2    d = m2 - m1    m = m1 + d n2 / n    M = M1 + M2 + d**2 n1 n2 / n

The first element of a result is subtracted from all its values, which changes no variance: a mean that is
much larger than the deviations costs no digits.

Infinities and NaN have no variance: they make M NaN. A chunk whose sum is not finite is searched for them.
Any other overflow makes M infinite. Means stay finite, so that they cause no NaN.
"""

import math
import operator
import sys
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.dtype import (
    DType,
    component_count,
    component_type,
    compute_type,
    is_complex,
)
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import split_scalars
from vkdispatch.reduce.accumulators.accumulator import Accumulator, Place, State, combine_pairwise
from vkdispatch.reduce.accumulators.values import (
    cast_value,
    compose,
    divide,
    divide_parts,
    narrow,
    split_floats,
    split_parts,
)

# Integer types for which 32 bits hold the sum of squares of a chunk.
_TINY = (dtype.bool_, dtype.int8, dtype.uint8)
_LARGEST: dict[DType, float] = {dtype.float32: 0xFFFFFF * 2.0**104, dtype.float64: sys.float_info.max}


@memoize
def make_masked_mean(kind: DType, out_type: DType) -> Accumulator:
    """Return the mean of the vectors of `kind` whose last component is not 0."""
    part = component_type(kind)
    count = component_count(kind)

    def gather(values: Sequence[Any], place: Place) -> State:
        columns = zip(*(split_scalars(value) for value in values), strict=True)
        return tuple(combine_pairwise(operator.add, column) for column in columns)

    def finish(state: State, numbers: Sequence[Any]) -> Any:
        return narrow(compose(_find_unmasked_type(kind), divide_parts(state[:-1], state[-1])), out_type)

    return Accumulator(
        "mean",
        (part,) * count,
        (0,) * count,
        out_type,
        gather,
        lambda x, y: tuple(a + b for a, b in zip(x, y, strict=True)),
        finish,
        (),
        lambda state: tuple(vc.subgroup_add(each) for each in state),
    )


def _find_unmasked_type(kind: DType) -> DType:
    """Return the type of a number without the mask that its vector ends with."""
    part = component_type(kind)
    return part if kind.child_count == 2 else dtype.complex64 if part is dtype.float32 else dtype.complex128


@memoize
def make_moments(
    kind: DType,
    total: DType,
    out_type: DType,
    *,
    masked: bool = False,
    root: bool = False,
    shifted: bool = True,
) -> Accumulator:
    """Return the variance of values of `kind`, or its square root, about the mean in the type `total`.

    `masked` values are vectors whose last component says whether they count. The parameter is the divisor of
    the sum of squares; for masked values, the number subtracted from their count.
    """
    part = component_type(total)
    count = component_count(total)
    sums = 1 if is_complex(total) else count
    tiny = kind in _TINY and not masked
    largest = _LARGEST[part]

    def gather(values: Sequence[Any], place: Place) -> State:
        if tiny:
            return _find_integer_moments(values, part)
        rows = [split_floats(value, part) for value in values]
        keep = [row.pop() for row in rows] if masked else None
        if place.origin is None:
            return _find_moments(rows, rows, None, keep, part, sums)
        rows = [[each.to_register() for each in row] for row in rows]
        origin = [each.to_register() for each in split_floats(place.origin, part)]
        steps = [[(a - b).to_register() for a, b in zip(row, origin, strict=True)] for row in rows]
        return _find_moments(rows, steps, origin, keep, part, sums)

    def combine(x: State, y: State) -> State:
        n = (x[0] + y[0]).to_register()
        share = vc.select(y[0] == 0, y[0], y[0] / n).to_register()
        weight = (x[0] * share).to_register()
        means, squares = [], []
        for a, b in zip(x[1 : 1 + count], y[1 : 1 + count], strict=True):
            # the mean of a side without values has no meaning
            step = vc.select(weight == 0, 0 * weight, b - a).to_register()
            means.append(vc.select(x[0] == 0, b, vc.clamp(a + step * share, -largest, largest)))
            squares.append((step * step * weight).to_register())
        if sums < count:
            squares = [combine_pairwise(operator.add, squares)]
        sides = zip(x[1 + count :], y[1 + count :], squares, strict=True)
        return (n, *means, *(a + b + c for a, b, c in sides))

    def finish(state: State, numbers: Sequence[Any]) -> Any:
        divisor = numbers[0]
        if masked:
            divisor = vc.max(state[0] - numbers[0], 0).to_register()
        parts = []
        for square in state[1 + count :]:
            without = vc.select(square > 0, _make_constant(math.inf, part), _make_constant(math.nan, part))
            value = vc.select(divisor > 0, divide(square, divisor), without).to_register()
            parts.append(vc.sqrt(value) if root else value)
        return compose(compute_type(out_type), parts)

    return Accumulator(
        "std" if root else "var",
        (part,) * (1 + count + sums),
        (0,) * (1 + count + sums),
        out_type,
        gather,
        combine,
        finish,
        (("divisor", part),),
        origin=shifted and not masked and not tiny,
    )


def _make_constant(value: float, kind: DType) -> Any:
    return vc.to_dtype(kind, value)


def _is_not_finite(value: Any) -> Any:
    return vc.any(vc.isnan(value), vc.isinf(value))


def _find_moments(
    values: Sequence[Sequence[Any]],
    rows: Sequence[Sequence[Any]],
    origin: Sequence[Any] | None,
    keep: Sequence[Any] | None,
    kind: DType,
    sums: int,
) -> State:
    """Return the moments of numbers of some components.

    Parameters
    ----------
    values, rows
        The numbers, and the numbers less `origin`.
    keep
        For each number 1 if it counts, else 0; None if all do.
    sums
        Number of sums of squares: one for each component, or one for all.
    """
    zero = _make_constant(0, kind)
    kept = [] if keep is None else [each.to_register() for each in keep]
    if keep is None:
        n = _make_constant(len(rows), kind)
        share = _make_constant(1 / len(rows), kind)
    else:
        n = combine_pairwise(operator.add, kept)
        share = vc.select(n > 0, 1 / vc.max(n, 1), zero).to_register()
    means, squares = [], []
    for number, column in enumerate(map(list, zip(*rows, strict=True))):
        if keep is not None:
            column = [
                vc.select(k > 0, each, zero).to_register() for k, each in zip(kept, column, strict=True)
            ]
        total = combine_pairwise(operator.add, column)
        mean = vc.new_register(kind, total * share)
        steps = [(each - mean).to_register() for each in column]
        if keep is not None:
            steps = [vc.select(k > 0, each, zero).to_register() for k, each in zip(kept, steps, strict=True)]
        square = vc.new_register(kind, combine_pairwise(operator.add, [step * step for step in steps]))
        odd = [total] if origin is None else [total, origin[number]]
        with vc.if_block(vc.any(*(_is_not_finite(each) for each in odd))):
            # compilers may replace the difference of two infinities by 0
            mean[:] = zero
            square[:] = _make_constant(math.inf, kind)
            bad = column if keep is not None else [row[number] for row in values]
            bad = bad if origin is None else [*bad, origin[number]]
            with vc.if_block(vc.any(*(_is_not_finite(each) for each in bad))):
                square[:] = _make_constant(math.nan, kind)
        means.append(mean)
        squares.append(square)
    if sums < len(squares):
        squares = [combine_pairwise(operator.add, squares)]
    return (n.to_register(), *means, *squares)


def _find_integer_moments(values: Sequence[Any], kind: DType) -> State:
    """Return the moments of integers of 8 bits; 32 bits hold their sum of squares."""
    values = [split_parts(value)[0] for value in values]
    total = cast_value(combine_pairwise(operator.add, values), kind).to_register()
    square = cast_value(combine_pairwise(operator.add, [each * each for each in values]), kind)
    mean = (total * _make_constant(1 / len(values), kind)).to_register()
    return (_make_constant(len(values), kind).to_register(), mean, (square - total * mean).to_register())
