"""The accumulators of extremes and of where they lie."""

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
    is_float_dtype,
)
from vkdispatch.families.sources import name_position
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import wide_type
from vkdispatch.reduce.accumulators.accumulator import Accumulator, Place, State, combine_pairwise
from vkdispatch.reduce.accumulators.values import compose, narrow, split_parts
from vkdispatch.reduce.operations import find_extreme_identity


def _is_before(x: Sequence[Any], y: Sequence[Any], largest: bool) -> Any:
    """Return whether x is smaller (or larger) than y, part by part; false where any is NaN."""
    first = x[0] > y[0] if largest else x[0] < y[0]
    if len(x) == 1:
        return first
    second = x[1] > y[1] if largest else x[1] < y[1]
    return vc.any(first, vc.all(x[0] == y[0], second))


def _is_nan(x: Sequence[Any]) -> Any:
    """Return whether a number is NaN; None for integers."""
    if not is_float_dtype(x[0].var_type):
        return None
    return vc.isnan(x[0]) if len(x) == 1 else vc.any(vc.isnan(x[0]), vc.isnan(x[1]))


def _precedes(x: Sequence[Any], y: Sequence[Any], largest: bool) -> Any:
    """Return whether x comes before y: smaller (or larger), or NaN and y is not."""
    before, nan = _is_before(x, y, largest), _is_nan(x)
    if nan is None:
        return before
    other = _is_nan(y)
    return vc.any(vc.all(before, ~other), vc.all(nan, ~other))


def _find_part_type(kind: DType) -> DType:
    wide = component_type(wide_type(kind))
    return dtype.uint32 if wide is dtype.bool_ else wide


def _restore(kind: DType, parts: Sequence[Any]) -> Any:
    """Return parts as one value, as kernels store it in a buffer of a type."""
    if kind is dtype.bool_:
        return parts[0] != 0
    return compose(compute_type(kind), parts)


@memoize
def make_extreme(kind: DType, largest: bool, out_type: DType | None = None) -> Accumulator:
    """Return the smallest (or the largest) value as `out_type` (None: its own type); NaN if there is one.

    Complex numbers are ordered by their real parts, then by their imaginary parts. Vectors are compared
    component by component.
    """
    part, count = _find_part_type(kind), component_count(kind)
    whole = not is_float_dtype(part)
    better = vc.max if largest else vc.min

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

    def combine(x: State, y: State) -> State:
        if is_complex(kind):
            return tuple(of_parts(x, y))
        return tuple(each for a, b in zip(x, y, strict=True) for each in of_parts([a], [b]))

    def gather(values: Sequence[Any], place: Place) -> State:
        return accumulator.merge_all([tuple(split_parts(value)) for value in values])

    subgroup = vc.subgroup_max if largest else vc.subgroup_min
    accumulator = Accumulator(
        "max" if largest else "min",
        (part,) * count,
        (find_extreme_identity(kind, largest),) * count,
        out_type or kind,
        gather,
        combine,
        lambda state, _: narrow(_restore(kind, state), out_type or kind),
        (),
        (lambda state: tuple(subgroup(each) for each in state)) if whole else None,
    )
    return accumulator


def _find_first_float(columns: Sequence[Sequence[Any]], largest: bool) -> State:
    """Return the smallest (or largest) of some floats and the number of the first such, or of the first NaN.

    The extreme is found first, then its place. NaN are rare: without them they cost a branch.
    """
    values = [value for (value,) in columns]

    def better(x: Any, y: Any) -> Any:
        return vc.select(x > y if largest else x < y, x, y)

    best = vc.new_register(values[0].var_type)
    best[:] = combine_pairwise(better, values)
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
def make_extreme_index(kind: DType, largest: bool, index: DType, out_type: DType) -> Accumulator:
    """Return where the smallest (or the largest) value lies: the first of equal ones, or the first NaN.

    `index` is the type of the register that holds the place: uint32, or uint64 for longer results.
    """
    part, count = _find_part_type(kind), component_count(kind)

    def combine(x: State, y: State) -> State:
        y_wins = _precedes(y[:-1], x[:-1], largest)
        x_wins = _precedes(x[:-1], y[:-1], largest)
        second = vc.any(y_wins, vc.all(~x_wins, y[-1] < x[-1])).to_register()
        return tuple(vc.select(second, b, a) for a, b in zip(x, y, strict=True))

    def gather(values: Sequence[Any], place: Place) -> State:
        columns = [split_parts(value) for value in values]
        floats = count == 1 and len(values) > 1 and is_float_dtype(part)
        *parts, number = _find_first_float(columns, largest) if floats else find_first(columns)
        position = place.position(number)
        if index is dtype.uint64:
            position = name_position(position).to_dtype(index)
        return (*parts, position.to_register())

    def find_first(values: Sequence[Sequence[Any]]) -> State:
        # numbers within the chunk order places: lower ones are on the left
        states = [(*parts, vc.to_uint(number)) for number, parts in enumerate(values)]
        while len(states) > 1:
            odd = states[len(states) & ~1 :]
            pairs = zip(states[::2], states[1::2], strict=False)
            states = [*(_choose_left(x, y) for x, y in pairs), *odd]
        return states[0]

    def _choose_left(x: State, y: State) -> State:
        second = _precedes(y[:-1], x[:-1], largest).to_register()
        return tuple(vc.select(second, b, a).to_register() for a, b in zip(x, y, strict=True))

    return Accumulator(
        "argmax" if largest else "argmin",
        (*(part,) * count, index),
        (*(find_extreme_identity(kind, largest),) * count, 2 ** (8 * index.item_size) - 1),
        out_type,
        gather,
        combine,
        lambda state, _: narrow(state[-1], out_type),
        most_columns=1,
    )
