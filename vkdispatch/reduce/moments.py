"""The accumulators of extremes and their places, of means and variances, and of norms."""

import math
import operator
import sys
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.codegen.trace.current import precise_math
from vkdispatch.families.sources import name_position
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import find_function, is_nonzero, split_scalars, wide_type
from vkdispatch.reduce import accumulators
from vkdispatch.reduce.accumulators import find_extreme_identity

# ---- The accumulators of extremes and of where they lie --------------------------------------------------


def _is_before(x: Sequence[Any], y: Sequence[Any], largest: bool) -> Any:
    """Return whether x is smaller (or larger) than y, part by part; false where any is NaN."""
    first = x[0] > y[0] if largest else x[0] < y[0]
    if len(x) == 1:
        return first
    second = x[1] > y[1] if largest else x[1] < y[1]
    return vc.any(first, vc.all(x[0] == y[0], second))


def _is_nan(x: Sequence[Any]) -> Any:
    """Return whether a number is NaN; None for integers."""
    if not dtype.is_float_dtype(x[0].var_type):
        return None
    return vc.isnan(x[0]) if len(x) == 1 else vc.any(vc.isnan(x[0]), vc.isnan(x[1]))


def _precedes(x: Sequence[Any], y: Sequence[Any], largest: bool) -> Any:
    """Return whether x comes before y: smaller (or larger), or NaN and y is not."""
    before, nan = _is_before(x, y, largest), _is_nan(x)
    if nan is None:
        return before
    other = _is_nan(y)
    return vc.any(vc.all(before, ~other), vc.all(nan, ~other))


def _find_part_type(kind: dtype.DType) -> dtype.DType:
    wide = dtype.component_type(wide_type(kind))
    return dtype.uint32 if wide is dtype.bool_ else wide


def _restore(kind: dtype.DType, parts: Sequence[Any]) -> Any:
    """Return parts as one value, as kernels store it in a buffer of a type."""
    if kind is dtype.bool_:
        return parts[0] != 0
    return accumulators.compose(dtype.compute_type(kind), parts)


@memoize
def make_extreme(
    kind: dtype.DType, largest: bool, out_type: dtype.DType | None = None
) -> accumulators.Accumulator:
    """Return the smallest (or the largest) value as `out_type` (None: its own type); NaN if there is one.

    Complex numbers are ordered by their real parts, then by their imaginary parts. Vectors are compared
    component by component.
    """
    part, count = _find_part_type(kind), dtype.component_count(kind)
    whole = not dtype.is_float_dtype(part)
    better = find_function("max" if largest else "min")

    def of_parts(x: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        if whole:
            return [better(a, b) for a, b in zip(x, y, strict=True)]
        nan = _is_nan(x)
        before = _is_before(x, y, largest)
        if len(y) > 1:
            # y with a NaN as its imaginary part does not come after x
            before = vc.all(before, ~_is_nan(y))
        first = vc.any(before, nan).to_register()
        return [vc.select(first, a, b) for a, b in zip(x, y, strict=True)]

    def combine(x: accumulators.State, y: accumulators.State) -> accumulators.State:
        if dtype.is_complex(kind):
            return tuple(of_parts(x, y))
        return tuple(part for a, b in zip(x, y, strict=True) for part in of_parts([a], [b]))

    def gather(values: Sequence[Any], place: accumulators.Place) -> accumulators.State:
        return accumulator.merge_all([tuple(accumulators.split_parts(value)) for value in values])

    subgroup = find_function("subgroup_max" if largest else "subgroup_min")
    accumulator = accumulators.Accumulator(
        "max" if largest else "min",
        (part,) * count,
        (find_extreme_identity(kind, largest),) * count,
        out_type or kind,
        gather,
        combine,
        lambda state, _: accumulators.narrow(_restore(kind, state), out_type or kind),
        (),
        (lambda state: tuple(subgroup(part) for part in state)) if whole else None,
    )
    return accumulator


def _find_first_float(columns: Sequence[Sequence[Any]], largest: bool) -> accumulators.State:
    """Return the smallest (or largest) of some floats and the number of the first such, or of the first NaN.

    The extreme is found first, then its place. NaN are rare: without them they cost a branch.
    """
    values = [value for (value,) in columns]

    def better(x: Any, y: Any) -> Any:
        return vc.select(x > y if largest else x < y, x, y)

    best = vc.new_register(values[0].var_type)
    best[:] = accumulators.combine_pairwise(better, values)
    number = vc.new_register(dtype.uint32)
    number[:] = 0
    for i in range(len(values) - 1, -1, -1):
        number[:] = vc.select(values[i] == best, vc.to_uint(i), number)
    with vc.if_block(vc.any(*(vc.isnan(value) for value in values))):
        for i in range(len(values) - 1, -1, -1):
            number[:] = vc.select(vc.isnan(values[i]), vc.to_uint(i), number)
            best[:] = vc.select(vc.isnan(values[i]), values[i], best)
    return best, number


@memoize
def make_extreme_index(
    kind: dtype.DType, largest: bool, index: dtype.DType, out_type: dtype.DType
) -> accumulators.Accumulator:
    """Return where the smallest (or the largest) value lies: the first of equal ones, or the first NaN.

    `index` is the type of the register that holds the place: uint32, or uint64 for longer results.
    """
    part, count = _find_part_type(kind), dtype.component_count(kind)

    def combine(x: accumulators.State, y: accumulators.State) -> accumulators.State:
        y_wins = _precedes(y[:-1], x[:-1], largest)
        x_wins = _precedes(x[:-1], y[:-1], largest)
        second = vc.any(y_wins, vc.all(~x_wins, y[-1] < x[-1])).to_register()
        return tuple(vc.select(second, b, a) for a, b in zip(x, y, strict=True))

    def gather(values: Sequence[Any], place: accumulators.Place) -> accumulators.State:
        columns = [accumulators.split_parts(value) for value in values]
        floats = count == 1 and len(values) > 1 and dtype.is_float_dtype(part)
        *parts, number = _find_first_float(columns, largest) if floats else find_first(columns)
        position = place.position(number)
        if index is dtype.uint64:
            position = name_position(position).to_dtype(index)
        return (*parts, position.to_register())

    def find_first(values: Sequence[Sequence[Any]]) -> accumulators.State:
        # numbers within the chunk order places: lower ones are on the left
        states = [(*parts, vc.to_uint(number)) for number, parts in enumerate(values)]
        while len(states) > 1:
            odd = states[len(states) & ~1 :]
            pairs = zip(states[::2], states[1::2], strict=False)
            states = [*(_choose_left(x, y) for x, y in pairs), *odd]
        return states[0]

    def _choose_left(x: accumulators.State, y: accumulators.State) -> accumulators.State:
        second = _precedes(y[:-1], x[:-1], largest).to_register()
        return tuple(vc.select(second, b, a).to_register() for a, b in zip(x, y, strict=True))

    return accumulators.Accumulator(
        "argmax" if largest else "argmin",
        (*(part,) * count, index),
        (*(find_extreme_identity(kind, largest),) * count, 2 ** (8 * index.item_size) - 1),
        out_type,
        gather,
        combine,
        lambda state, _: accumulators.narrow(state[-1], out_type),
        most_columns=1,
    )


# ---- The accumulators of means and variances -------------------------------------------------------------
#
# The moments (count n, mean m, sum of squares about it M) of each chunk are computed in registers, and
# combined after Chan, Golub and LeVeque (1979):
#
#     n = n1 + n2    d = m2 - m1    m = m1 + d n2 / n    M = M1 + M2 + d**2 n1 n2 / n
#
# The first element of a result is subtracted from all its values, which changes no variance: a mean that is
# much larger than the deviations costs no digits.
#
# Infinities and NaN have no variance: they make M NaN. A chunk whose sum is not finite is searched for
# them. Any other overflow makes M infinite. Means stay finite, so that they cause no NaN.


# Integer types for which 32 bits hold the sum of squares of a chunk.
_TINY = (dtype.bool_, dtype.int8, dtype.uint8)
_LARGEST: dict[dtype.DType, float] = {dtype.float32: 0xFFFFFF * 2.0**104, dtype.float64: sys.float_info.max}


@memoize
def make_masked_mean(kind: dtype.DType, out_type: dtype.DType) -> accumulators.Accumulator:
    """Return the mean of the vectors of `kind` whose last component is not 0."""
    part = dtype.component_type(kind)
    count = dtype.component_count(kind)

    def gather(values: Sequence[Any], place: accumulators.Place) -> accumulators.State:
        columns = zip(*(split_scalars(value) for value in values), strict=True)
        return tuple(accumulators.combine_pairwise(operator.add, column) for column in columns)

    def finish(state: accumulators.State, numbers: Sequence[Any]) -> Any:
        return accumulators.narrow(
            accumulators.compose(_find_unmasked_type(kind), accumulators.divide_parts(state[:-1], state[-1])),
            out_type,
        )

    return accumulators.Accumulator(
        "mean",
        (part,) * count,
        (0,) * count,
        out_type,
        gather,
        lambda x, y: tuple(a + b for a, b in zip(x, y, strict=True)),
        finish,
        (),
        lambda state: tuple(vc.subgroup_add(part) for part in state),
    )


def _find_unmasked_type(kind: dtype.DType) -> dtype.DType:
    """Return the type of a number without the mask that its vector ends with."""
    part = dtype.component_type(kind)
    return part if kind.child_count == 2 else dtype.complex64 if part is dtype.float32 else dtype.complex128


@memoize
def make_moments(
    kind: dtype.DType,
    total: dtype.DType,
    out_type: dtype.DType,
    *,
    masked: bool = False,
    root: bool = False,
    shifted: bool = True,
) -> accumulators.Accumulator:
    """Return the variance of values of `kind`, or its square root, about the mean in the type `total`.

    `masked` values are vectors whose last component says whether they count. The parameter is the divisor of
    the sum of squares; for masked values, the number subtracted from their count.
    """
    part = dtype.component_type(total)
    count = dtype.component_count(total)
    sums = 1 if dtype.is_complex(total) else count
    tiny = kind in _TINY and not masked
    largest = _LARGEST[part]

    def gather(values: Sequence[Any], place: accumulators.Place) -> accumulators.State:
        if tiny:
            return _find_integer_moments(values, part)
        rows = [accumulators.split_floats(value, part) for value in values]
        keep = [row.pop() for row in rows] if masked else None
        if place.origin is None:
            return _find_moments(rows, rows, None, keep, part, sums)
        rows = [[value.to_register() for value in row] for row in rows]
        origin = [value.to_register() for value in accumulators.split_floats(place.origin, part)]
        steps = [[(a - b).to_register() for a, b in zip(row, origin, strict=True)] for row in rows]
        return _find_moments(rows, steps, origin, keep, part, sums)

    def combine(x: accumulators.State, y: accumulators.State) -> accumulators.State:
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
            squares = [accumulators.combine_pairwise(operator.add, squares)]
        sides = zip(x[1 + count :], y[1 + count :], squares, strict=True)
        return (n, *means, *(a + b + c for a, b, c in sides))

    def finish(state: accumulators.State, numbers: Sequence[Any]) -> Any:
        divisor = numbers[0]
        if masked:
            divisor = vc.max(state[0] - numbers[0], 0).to_register()
        parts = []
        for square in state[1 + count :]:
            without = vc.select(square > 0, _make_constant(math.inf, part), _make_constant(math.nan, part))
            value = vc.select(divisor > 0, accumulators.divide(square, divisor), without).to_register()
            parts.append(vc.sqrt(value) if root else value)
        return accumulators.compose(dtype.compute_type(out_type), parts)

    return accumulators.Accumulator(
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


def _make_constant(value: float, kind: dtype.DType) -> Any:
    return vc.to_dtype(kind, value)


def _is_not_finite(value: Any) -> Any:
    return vc.any(vc.isnan(value), vc.isinf(value))


def _find_moments(
    values: Sequence[Sequence[Any]],
    rows: Sequence[Sequence[Any]],
    origin: Sequence[Any] | None,
    keep: Sequence[Any] | None,
    kind: dtype.DType,
    sums: int,
) -> accumulators.State:
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
    kept = [] if keep is None else [flag.to_register() for flag in keep]
    if keep is None:
        n = _make_constant(len(rows), kind)
        share = _make_constant(1 / len(rows), kind)
    else:
        n = accumulators.combine_pairwise(operator.add, kept)
        share = vc.select(n > 0, 1 / vc.max(n, 1), zero).to_register()
    means, squares = [], []
    for number, column in enumerate(map(list, zip(*rows, strict=True))):
        if keep is not None:
            column = [
                vc.select(k > 0, value, zero).to_register() for k, value in zip(kept, column, strict=True)
            ]
        total = accumulators.combine_pairwise(operator.add, column)
        mean = vc.new_register(kind, total * share)
        steps = [(value - mean).to_register() for value in column]
        if keep is not None:
            steps = [vc.select(k > 0, step, zero).to_register() for k, step in zip(kept, steps, strict=True)]
        square = vc.new_register(
            kind, accumulators.combine_pairwise(operator.add, [step * step for step in steps])
        )
        odd = [total] if origin is None else [total, origin[number]]
        with vc.if_block(vc.any(*(_is_not_finite(value) for value in odd))):
            # compilers may replace the difference of two infinities by 0
            mean[:] = zero
            square[:] = _make_constant(math.inf, kind)
            bad = column if keep is not None else [row[number] for row in values]
            bad = bad if origin is None else [*bad, origin[number]]
            with vc.if_block(vc.any(*(_is_not_finite(value) for value in bad))):
                square[:] = _make_constant(math.nan, kind)
        means.append(mean)
        squares.append(square)
    if sums < len(squares):
        squares = [accumulators.combine_pairwise(operator.add, squares)]
    return (n.to_register(), *means, *squares)


def _find_integer_moments(values: Sequence[Any], kind: dtype.DType) -> accumulators.State:
    """Return the moments of integers of 8 bits; 32 bits hold their sum of squares."""
    values = [accumulators.split_parts(value)[0] for value in values]
    total = accumulators.cast_value(accumulators.combine_pairwise(operator.add, values), kind).to_register()
    square = accumulators.cast_value(
        accumulators.combine_pairwise(operator.add, [value * value for value in values]), kind
    )
    mean = (total * _make_constant(1 / len(values), kind)).to_register()
    return (_make_constant(len(values), kind).to_register(), mean, (square - total * mean).to_register())


# ---- Magnitudes of numbers, their powers, and the accumulator of norms -----------------------------------
#
# Norms are roots of sums of powers.


# The largest power that is a product of few factors.
_MAX_WHOLE = 16


def magnitude(value: Any, kind: dtype.DType) -> Any:
    """Return the absolute value in a float type. That of a complex number does not overflow on the way."""
    parts = [vc.abs(part).to_register() for part in accumulators.split_floats(value, kind)]
    if len(parts) == 1:
        return parts[0]
    large = vc.max(*parts).to_register()
    small = vc.min(*parts).to_register()
    ratio = vc.select(large > 0, small / large, 0 * large).to_register()
    simple = vc.any(vc.isinf(parts[0]), vc.isinf(parts[1]))
    nan = (parts[0] + parts[1]).to_register()
    scaled = vc.select(vc.isnan(nan), nan, large * vc.sqrt(1 + ratio * ratio))
    return vc.select(simple, vc.to_dtype(kind, math.inf), scaled)


def square(value: Any, kind: dtype.DType) -> Any:
    """Return the square of the absolute value in a float type."""
    parts = [part.to_register() for part in accumulators.split_floats(value, kind)]
    return accumulators.combine_pairwise(operator.add, [part * part for part in parts])


@memoize
def make_norm(
    kind: dtype.DType, total: dtype.DType, out_type: dtype.DType, power: str
) -> accumulators.Accumulator:
    """Return the accumulator of a norm: the root of a sum in the float type `total`.

    `power` is "2" (squares), "1" (magnitudes), "0" (nonzero elements), or "p": then the values are powers
    already, and the parameter is the inverse of the power.
    """

    def prepare(value: Any) -> Any:
        if power == "0":
            return vc.select(is_nonzero(value), vc.to_dtype(total, 1), vc.to_dtype(total, 0))
        if power == "p":
            return accumulators.cast_value(value, total)
        return square(value, total) if power == "2" else magnitude(value, total)

    def finish(value: Any, numbers: Sequence[Any]) -> Any:
        if power == "2":
            value = vc.sqrt(value)
        if power == "p":
            value = raise_to(value.to_register(), numbers[0])
        return accumulators.narrow(value, out_type)

    return accumulators.make_single(
        "norm",
        total,
        out_type,
        0,
        operator.add,
        accumulators.Steps(
            prepare=prepare,
            finish=finish,
            parameters=(("inverse", total),) if power == "p" else (),
            subgroup=find_function("subgroup_add"),
        ),
    )


def find_short_power(power: float) -> float | None:
    """Return a power if few multiplications and a square root compute it, else None."""
    return power if 2 * power == int(2 * power) and 0.5 <= abs(power) <= _MAX_WHOLE else None


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
