"""The accumulators of sums, products, booleans and counts.

Sources give `wide_type` of their dtype. A chunk adds up integers of 8 and 16 bits in 32 bits, which hold its
sum, and totals have 64 bits: one wide addition for a chunk.
"""

import math
import operator
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType, component_type, is_complex, is_matrix
from vkdispatch.base.record import replace
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import is_nonzero, split_scalars
from vkdispatch.reduce.accumulators.accumulator import (
    Accumulator,
    Place,
    State,
    Steps,
    combine_pairwise,
    make_single,
    to_registers,
)
from vkdispatch.reduce.accumulators.values import (
    cast_value,
    compose,
    divide_each,
    divide_parts,
    narrow,
    set_nan_beside,
)

# Integer types for which 32 bits hold the sum of a chunk.
_SMALL = (dtype.bool_, dtype.int8, dtype.uint8, dtype.int16, dtype.uint16)


@memoize
def make_sum(kind: DType, total: DType, out_type: DType, has_divisor: bool = False) -> Accumulator:
    """Return the sum of values of `kind` in the type `total`, divided by a parameter if `has_divisor`."""
    component = component_type(total)

    def finish(value: Any, numbers: Sequence[Any]) -> Any:
        if has_divisor and is_matrix(total):
            value = value / numbers[0]
        elif has_divisor:
            parts = [part.to_register() for part in split_scalars(value)]
            divide = divide_parts if is_complex(total) else divide_each
            value = compose(total, divide(parts, numbers[0]))
        return narrow(value, out_type)

    return make_single(
        "mean" if has_divisor else "sum",
        total,
        out_type,
        0,
        operator.add,
        Steps(
            prepare=lambda value: cast_value(value, total),
            combine_early=_sum_narrow if kind in _SMALL else None,
            finish=finish,
            parameters=(("divisor", component),) if has_divisor else (),
            subgroup=None if is_complex(total) or is_matrix(total) else vc.subgroup_add,
        ),
    )


def _sum_narrow(values: Sequence[Any]) -> Any:
    if values[0].var_type is dtype.bool_:
        values = [cast_value(value, dtype.uint32) for value in values]
    return combine_pairwise(operator.add, values)


@memoize
def make_product(kind: DType, total: DType, out_type: DType) -> Accumulator:
    """Return the product of values in the type `total`."""
    if is_complex(total):
        return _make_complex_product(total, out_type)
    return make_single(
        "prod",
        total,
        out_type,
        1,
        operator.mul,
        Steps(
            prepare=lambda value: cast_value(value, total),
            finish=lambda value, _: narrow(value, out_type),
            subgroup=vc.subgroup_mul,
        ),
    )


def _make_complex_product(total: DType, out_type: DType) -> Accumulator:
    """Return the product of complex numbers, whose state says whether there is a factor.

    A product with 1 + 0i makes NaN of infinities. So there is none, but for the one that NumPy begins with.
    """

    def gather(values: Sequence[Any], place: Place) -> State:
        factors = [cast_value(value, total).to_register() for value in values]
        first = vc.new_register(total, factors[0])
        with vc.if_block(place.position(vc.to_uint(0)) == 0):
            parts = [part.to_register() for part in split_scalars(factors[0])]
            nan = vc.to_dtype(component_type(total), math.nan)
            first[:] = vc.to_dtype(total, *set_nan_beside(parts, parts, nan))
        return combine_pairwise(operator.mul, [first, *factors[1:]], named=True), vc.to_uint(1).to_register()

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
        lambda state, _: narrow(state[0], out_type),
    )


@memoize
def make_truth(of_all: bool) -> Accumulator:
    """Return whether all values are not 0, or any."""

    def prepare(value: Any) -> Any:
        return vc.select(is_nonzero(value), vc.to_uint(1), vc.to_uint(0))

    return make_single(
        "all" if of_all else "any",
        dtype.uint32,
        dtype.bool_,
        1 if of_all else 0,
        operator.and_ if of_all else operator.or_,
        Steps(
            prepare=prepare,
            finish=lambda value, _: value != 0,
            subgroup=vc.subgroup_and if of_all else vc.subgroup_or,
        ),
    )


@memoize
def make_count(total: DType, out_type: DType) -> Accumulator:
    """Return how many values are not 0, counted in the type `total`."""

    def count(values: Sequence[Any]) -> Any:
        ones = [vc.select(is_nonzero(value), vc.to_uint(1), vc.to_uint(0)) for value in values]
        return combine_pairwise(operator.add, ones)

    return make_single(
        "count_nonzero",
        total,
        out_type,
        0,
        operator.add,
        Steps(
            prepare=lambda value: cast_value(value, total),
            combine_early=count,
            finish=lambda value, _: narrow(value, out_type),
            subgroup=vc.subgroup_add,
        ),
    )


@memoize
def add_initial(accumulator: Accumulator, kind: DType) -> Accumulator:
    """Return an accumulator that starts with a number, which is its last parameter, of the type `kind`."""

    def finish(state: State, numbers: Sequence[Any]) -> Any:
        first = to_registers(accumulator.gather([numbers[-1]], Place(lambda _: vc.to_uint(0))))
        return accumulator.finish(accumulator.merge(state, first), numbers[:-1])

    parameters = (*accumulator.parameters, ("initial", kind))
    return replace(accumulator, finish=finish, parameters=parameters)
