"""The accumulators of the functions on arrays: sums, extremes and where they lie, truth, counts.

Sources give `wide_type` of their dtype. Sums of integers of 8 and 16 bits are added up in 32 bits within a
chunk, which holds them, and in 64 bits beyond: one wide addition for a chunk.
"""

import math
import operator
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.maps.source import name_position
from vkdispatch.arrays.memoize import memoize
from vkdispatch.arrays.values.elements import wide_type
from vkdispatch.arrays.values.words import split_scalars
from vkdispatch.base import dtype
from vkdispatch.base.dtype import (
    DType,
    component_count,
    component_type,
    compute_type,
    is_complex,
    is_float_dtype,
    is_matrix,
)
from vkdispatch.reduce.accumulators import Accumulator, Place, State, in_registers, paired, single
from vkdispatch.reduce.operations import identity_of_extreme

# Integers so small that a chunk's sum of them fits 32 bits.
_SMALL = (dtype.bool_, dtype.int8, dtype.uint8, dtype.int16, dtype.uint16)
# Its sum of squares, too.
TINY = (dtype.bool_, dtype.int8, dtype.uint8)


# ---- values --------------------------------------------------------------------------------------


def converted(value: Any, kind: DType) -> Any:
    """Return a value in a type; of truth values 0 and 1."""
    if value.var_type is dtype.bool_ and kind is not dtype.bool_:
        value = vc.select(value, vc.to_uint(1), vc.to_uint(0))
    if value.var_type is kind:
        return value
    if is_complex(kind) and is_complex(value.var_type):
        child = component_type(kind)
        return vc.to_dtype(kind, value.real.to_dtype(child), value.imag.to_dtype(child))
    return value.to_dtype(kind)


def numbers_of(value: Any, kind: DType) -> list[Any]:
    """Return the components of a value in a float type."""
    if value.var_type is dtype.bool_:
        value = converted(value, dtype.uint32)
    return [converted(part, kind) for part in split_scalars(value)]


def composed(kind: DType, parts: Sequence[Any]) -> Any:
    """Return components as a value of a type that kernels compute with."""
    child = component_type(kind)
    parts = [converted(part, child) for part in parts]
    return parts[0] if len(parts) == 1 else vc.to_dtype(kind, *parts)


def non_zero(value: Any) -> Any:
    """Return whether a number is not 0, as NumPy sees it: NaN is not."""
    if value.var_type is dtype.bool_:
        return value
    if is_complex(value.var_type):
        return vc.any(value.real != 0, value.imag != 0)
    return value != 0


def divided(value: Any, divisor: Any) -> Any:
    """Return a number divided by another, which may be 0 beside 0: rounded right where division is not."""
    quotient = (value / divisor).to_register()
    if value.var_type is dtype.float32:
        # what the quotient lacks; without a meaning where that is infinite or NaN
        more = (vc.fma(-quotient, divisor, value) / divisor).to_register()
        quotient = vc.select(vc.any(vc.isnan(more), vc.isinf(more)), quotient, quotient + more)
    # compilers take 0 / x for 0
    return vc.select(divisor == 0, vc.to_dtype(value.var_type, math.nan), quotient)


def _divided_each(parts: Sequence[Any], divisor: Any) -> list[Any]:
    return [divided(part, divisor) for part in parts]


def divided_parts(parts: Sequence[Any], divisor: Any) -> list[Any]:
    """Return the parts of a number divided by a real one.

    As NumPy divides complex numbers: where one part is infinite or NaN, the other one becomes NaN.
    """
    quotients = _divided_each(parts, divisor)
    if len(parts) == 1:
        return quotients
    nan = vc.to_dtype(divisor.var_type, math.nan)
    return _with_nan_beside(quotients, parts, nan)


def _with_nan_beside(values: Sequence[Any], parts: Sequence[Any], nan: Any) -> list[Any]:
    """Return two values, NaN where the other one of two parts is infinite or NaN."""
    bad = [vc.any(vc.isnan(part), vc.isinf(part)).to_register() for part in parts]
    return [vc.select(other, nan, each) for each, other in zip(values, reversed(bad), strict=True)]


# ---- sums and products ---------------------------------------------------------------------------


@memoize
def adding(kind: DType, total: DType, out_type: DType, divided_by: bool = False) -> Accumulator:
    """Return the sum of values of `kind` in the type `total`, perhaps divided by a parameter."""
    component = component_type(total)

    def finish(value: Any, numbers: Sequence[Any]) -> Any:
        if divided_by and is_matrix(total):
            value = value / numbers[0]
        elif divided_by:
            parts = [part.to_register() for part in split_scalars(value)]
            divide = divided_parts if is_complex(total) else _divided_each
            value = composed(total, divide(parts, numbers[0]))
        return narrowed(value, out_type)

    small = kind in _SMALL
    return single(
        "mean" if divided_by else "sum",
        total,
        out_type,
        0,
        operator.add,
        prepared=lambda value: converted(value, total),
        early=_narrow_sum if small else None,
        finish=finish,
        parameters=(("divisor", component),) if divided_by else (),
        subgroup=None if is_complex(total) or is_matrix(total) else vc.subgroup_add,
    )


def _narrow_sum(values: Sequence[Any]) -> Any:
    if values[0].var_type is dtype.bool_:
        values = [converted(value, dtype.uint32) for value in values]
    return paired(operator.add, values)


@memoize
def multiplying(kind: DType, total: DType, out_type: DType) -> Accumulator:
    """Return the product of values in the type `total`."""
    if is_complex(total):
        return _complex_product(total, out_type)
    return single(
        "prod",
        total,
        out_type,
        1,
        operator.mul,
        prepared=lambda value: converted(value, total),
        finish=lambda value, _: narrowed(value, out_type),
        subgroup=vc.subgroup_mul,
    )


def _complex_product(total: DType, out_type: DType) -> Accumulator:
    """Return the product of complex numbers. Its state says whether there is a factor.

    Products with 1 + 0i are left out but for the one that NumPy begins with: they make NaN of infinities.
    """

    def gather(values: Sequence[Any], place: Place) -> State:
        factors = [converted(value, total).to_register() for value in values]
        first = vc.new_register(total, factors[0])
        with vc.if_block(place.position(vc.to_uint(0)) == 0):
            parts = [part.to_register() for part in split_scalars(factors[0])]
            nan = vc.to_dtype(component_type(total), math.nan)
            first[:] = vc.to_dtype(total, *_with_nan_beside(parts, parts, nan))
        return paired(operator.mul, [first, *factors[1:]], named=True), vc.to_uint(1).to_register()

    def combine(x: State, y: State) -> State:
        (a, has_a), (b, has_b) = x, y
        product = (a * b).to_register()
        return vc.select(has_a == 0, b, vc.select(has_b == 0, a, product)), has_a | has_b

    return Accumulator(
        "prod",
        (total, dtype.uint32),
        (1, 0),
        out_type,
        gather,
        combine,
        lambda state, _: narrowed(state[0], out_type),
    )


def narrowed(value: Any, out_type: DType) -> Any:
    """Return a value as kernels store it in a buffer of a type."""
    return converted(value, compute_type(out_type))


def initially(accumulator: Accumulator, kind: DType) -> Accumulator:
    """Return an accumulator that starts with a number, its last parameter, of the type `kind`."""
    return _initially(accumulator, kind)


@memoize
def _initially(accumulator: Accumulator, kind: DType) -> Accumulator:
    def finish(state: State, numbers: Sequence[Any]) -> Any:
        first = in_registers(accumulator.gather([numbers[-1]], Place(lambda _: vc.to_uint(0))))
        return accumulator.finish(accumulator.combined(state, first), numbers[:-1])

    return Accumulator(
        accumulator.name,
        accumulator.kinds,
        accumulator.identity,
        accumulator.out_type,
        accumulator.gather,
        accumulator.combine,
        finish,
        (*accumulator.parameters, ("initial", kind)),
        accumulator.subgroup,
        accumulator.brief,
        accumulator.origin,
    )


# ---- truth and counts ----------------------------------------------------------------------------


@memoize
def truth(of_all: bool) -> Accumulator:
    """Return whether any of the values is not 0, or all are not."""

    def prepared(value: Any) -> Any:
        return vc.select(non_zero(value), vc.to_uint(1), vc.to_uint(0))

    return single(
        "all" if of_all else "any",
        dtype.uint32,
        dtype.bool_,
        1 if of_all else 0,
        operator.and_ if of_all else operator.or_,
        prepared=prepared,
        finish=lambda value, _: value != 0,
        subgroup=vc.subgroup_and if of_all else vc.subgroup_or,
    )


@memoize
def counting(total: DType, out_type: DType) -> Accumulator:
    """Return how many values are not 0, counted in the type `total`."""

    def early(values: Sequence[Any]) -> Any:
        ones = [vc.select(non_zero(value), vc.to_uint(1), vc.to_uint(0)) for value in values]
        return paired(operator.add, ones)

    return single(
        "count_nonzero",
        total,
        out_type,
        0,
        operator.add,
        prepared=lambda value: converted(value, total),
        early=early,
        finish=lambda value, _: narrowed(value, out_type),
        subgroup=vc.subgroup_add,
    )


# ---- the smallest and the largest ----------------------------------------------------------------


def _before(x: Sequence[Any], y: Sequence[Any], largest: bool) -> Any:
    """Return whether x is the smaller one (or the larger), part by part; not where any is NaN."""
    first = x[0] > y[0] if largest else x[0] < y[0]
    if len(x) == 1:
        return first
    second = x[1] > y[1] if largest else x[1] < y[1]
    return vc.any(first, vc.all(x[0] == y[0], second))


def _is_nan(x: Sequence[Any]) -> Any:
    """Return whether a number is NaN; None for those that never are."""
    if not is_float_dtype(x[0].var_type):
        return None
    return vc.isnan(x[0]) if len(x) == 1 else vc.any(vc.isnan(x[0]), vc.isnan(x[1]))


def _wins(x: Sequence[Any], y: Sequence[Any], largest: bool) -> Any:
    """Return whether x comes before y: smaller (or larger), or NaN and y is not."""
    before, nan = _before(x, y, largest), _is_nan(x)
    if nan is None:
        return before
    other = _is_nan(y)
    return vc.any(vc.all(before, ~other), vc.all(nan, ~other))


def parts_of(value: Any) -> list[Any]:
    """Return the parts of a number, in registers."""
    if value.var_type is dtype.bool_:
        value = converted(value, dtype.uint32)
    return [part.to_register() for part in split_scalars(value)]


def _part_kind(kind: DType) -> DType:
    wide = component_type(wide_type(kind))
    return dtype.uint32 if wide is dtype.bool_ else wide


def _restored(kind: DType, parts: Sequence[Any]) -> Any:
    """Return parts as kernels store them in a buffer of a type."""
    if kind is dtype.bool_:
        return parts[0] != 0
    return composed(compute_type(kind), parts)


@memoize
def extreme(kind: DType, largest: bool, out_type: DType | None = None) -> Accumulator:
    """Return the smallest (or the largest) value: NaN where there is one; as `out_type`, its own if None.

    Complex numbers are ordered by their real parts, then by their imaginary parts; the components of vectors
    are looked at one by one.
    """
    part, count = _part_kind(kind), component_count(kind)
    whole = not is_float_dtype(part)
    better = vc.max if largest else vc.min

    def of_parts(x: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        if whole:
            return [better(a, b) for a, b in zip(x, y, strict=True)]
        nan = _is_nan(x)
        before = _before(x, y, largest)
        if len(y) > 1:
            # a NaN as the imaginary part of y does not keep x from being before it
            before = vc.all(before, ~_is_nan(y))
        first = vc.any(before, nan).to_register()
        return [vc.select(first, a, b) for a, b in zip(x, y, strict=True)]

    def combine(x: State, y: State) -> State:
        if is_complex(kind):
            return tuple(of_parts(x, y))
        return tuple(each for a, b in zip(x, y, strict=True) for each in of_parts([a], [b]))

    def gather(values: Sequence[Any], place: Place) -> State:
        return made.tree([tuple(parts_of(value)) for value in values])

    subgroup = vc.subgroup_max if largest else vc.subgroup_min
    made = Accumulator(
        "max" if largest else "min",
        (part,) * count,
        (identity_of_extreme(kind, largest),) * count,
        out_type or kind,
        gather,
        combine,
        lambda state, _: narrowed(_restored(kind, state), out_type or kind),
        (),
        (lambda state: tuple(subgroup(each) for each in state)) if whole else None,
    )
    return made


def _first_float(columns: Sequence[Sequence[Any]], largest: bool) -> State:
    """Return the smallest (or largest) of some floats, and the number of the first such, or of the first NaN.

    The extreme is found first, and looked for then. NaN are seldom: they cost a branch where there are none.
    """
    values = [value for (value,) in columns]

    def better(x: Any, y: Any) -> Any:
        return vc.select(x > y if largest else x < y, x, y)

    best = vc.new_register(values[0].var_type)
    best[:] = paired(better, values)
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
def extreme_place(kind: DType, largest: bool, index: DType, out_type: DType) -> Accumulator:
    """Return where the smallest (or the largest) value is: the first of equal ones, or the first NaN.

    `index` is the type of the register that holds the place: uint32, or uint64 for results of more elements.
    """
    part, count = _part_kind(kind), component_count(kind)

    def combine(x: State, y: State) -> State:
        y_wins = _wins(y[:-1], x[:-1], largest)
        x_wins = _wins(x[:-1], y[:-1], largest)
        second = vc.any(y_wins, vc.all(~x_wins, y[-1] < x[-1])).to_register()
        return tuple(vc.select(second, b, a) for a, b in zip(x, y, strict=True))

    def gather(values: Sequence[Any], place: Place) -> State:
        columns = [parts_of(value) for value in values]
        floats = count == 1 and len(values) > 1 and is_float_dtype(part)
        *parts, number = _first_float(columns, largest) if floats else first_of(columns)
        position = place.position(number)
        if index is dtype.uint64:
            position = name_position(position).to_dtype(index)
        return (*parts, position.to_register())

    def first_of(values: Sequence[Sequence[Any]]) -> State:
        # numbers within the chunk are enough to compare places by: lower ones are on the left
        states = [(*parts, vc.to_uint(number)) for number, parts in enumerate(values)]
        while len(states) > 1:
            odd = states[len(states) & ~1 :]
            pairs = zip(states[::2], states[1::2], strict=False)
            states = [*(_left_first(x, y) for x, y in pairs), *odd]
        return states[0]

    def _left_first(x: State, y: State) -> State:
        second = _wins(y[:-1], x[:-1], largest).to_register()
        return tuple(vc.select(second, b, a).to_register() for a, b in zip(x, y, strict=True))

    return Accumulator(
        "argmax" if largest else "argmin",
        (*(part,) * count, index),
        (*(identity_of_extreme(kind, largest),) * count, 2 ** (8 * index.item_size) - 1),
        out_type,
        gather,
        combine,
        lambda state, _: narrowed(state[-1], out_type),
        most_columns=1,
    )
