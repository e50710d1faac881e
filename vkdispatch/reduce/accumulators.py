"""How values are combined: operations, accumulators, sums and masks."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch import control_flow
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, component_type, compute_type, is_complex, is_matrix, to_vector
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record, replace
from vkdispatch.codegen.annotations import constant
from vkdispatch.families.kernels import Argument
from vkdispatch.families.operands import ArrayLike
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import (
    find_function,
    integer_limits,
    is_expression,
    is_nonzero,
    parse_infinity,
    split_scalars,
    wide_type,
)
from vkdispatch.shader.map import MappedArray, MappingFunction
from vkdispatch.shader.signature import describe, find_origin


@dataclass
class ReduceOp:
    """A way to combine values.

    The library chooses the order of operands, so the operation has to be associative and commutative.

    Attributes
    ----------
    name
        The name of the operation in names of kernels and in messages.
    reduction
        Combines two GPU values.
    identity
        The number that does not change others: `reduction(x, identity)` is x. "inf" and "-inf" are
        infinities; for integers, the largest and the smallest number.
    subgroup_reduction
        Combines a value over the subgroup, such as `vc.subgroup_add`; None if there is no such function.
    """

    name: str
    reduction: Callable[[Any, Any], Any]
    identity: Any
    subgroup_reduction: Callable[[Any], Any] | None = None

    def __reduce__(self) -> str | tuple[Any, ...]:
        # copies and other processes get the predefined operation itself, so that `is_predefined` knows it
        global_name = next((name for name, value in globals().items() if value is self), None)
        return global_name or (ReduceOp, (self.name, self.reduction, self.identity, self.subgroup_reduction))


class _PredefinedOp(ReduceOp):
    """An operation whose functions are those of the kernel language, which is imported when they are used."""

    __match_args__ = ("name",)

    def __init__(self, name: str, reduction: Callable[..., Any] | str, identity: Any) -> None:
        self.name, self.identity, self._reduction = name, identity, reduction

    @property
    def reduction(self) -> Callable[..., Any]:  # type: ignore[override]
        """Combines two GPU values."""
        reduction = self._reduction
        return getattr(vc, reduction) if isinstance(reduction, str) else reduction

    @property
    def subgroup_reduction(self) -> Callable[..., Any]:  # type: ignore[override]
        """Combines a value over the subgroup."""
        return getattr(vc, f"subgroup_{self.name}")  # type: ignore[no-any-return]


_PredefinedOp.__qualname__ = "ReduceOp"  # in its `repr`

SubgroupAdd = _PredefinedOp("add", operator.add, 0)
SubgroupMul = _PredefinedOp("mul", operator.mul, 1)
SubgroupMin = _PredefinedOp("min", "min", "inf")
SubgroupMax = _PredefinedOp("max", "max", "-inf")
SubgroupAnd = _PredefinedOp("and", operator.and_, -1)
SubgroupOr = _PredefinedOp("or", operator.or_, 0)
SubgroupXor = _PredefinedOp("xor", operator.xor, 0)

_ORDERING = (SubgroupMin, SubgroupMax)
_BITWISE = (SubgroupAnd, SubgroupOr, SubgroupXor)
_OURS = (SubgroupAdd, SubgroupMul, *_ORDERING, *_BITWISE)


def is_predefined(operation: ReduceOp) -> bool:
    """Whether an operation is predefined: a single expression that has each operand once."""
    return any(operation is known for known in _OURS)


def check_operation(operation: ReduceOp, kind: dtype.DType) -> None:
    """Raise ValueError if an operation is not defined for values of a type."""
    if kind is dtype.bool_:
        raise ArgumentValueError(
            f"reduction {operation.name!r}: results of booleans are not stored; map them to vd.uint32"
        )
    if any(operation is known for known in _BITWISE) and not dtype.is_integer_dtype(wide_type(kind)):
        raise ArgumentValueError(
            f"reduction {operation.name!r}: expected integers, got {kind.name}; and, or, xor combine bits"
        )
    if any(operation is known for known in _ORDERING) and (dtype.is_complex(kind) or dtype.is_matrix(kind)):
        raise ArgumentValueError(
            f"reduction {operation.name!r}: {kind.name} has no order; reduce its magnitude, or its components"
        )
    if operation is SubgroupMul and dtype.is_matrix(kind):
        raise ArgumentValueError(
            f"reduction 'mul': products of {kind.name} depend on their order, which a reduction does not keep"
        )


def check_identity(identity: object, kind: dtype.DType) -> None:
    """Raise TypeError or ValueError if a value cannot be the identity for a type."""
    if isinstance(identity, str):
        parse_infinity(identity, kind)
        return
    try:
        number = complex(identity)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"identity: expected a number, 'inf' or '-inf', got {identity!r}") from None
    if number.imag and not dtype.is_complex(kind):
        raise ArgumentValueError(f"identity: {identity!r} is not a {kind.name}; pass a real number")
    whole = dtype.is_integer_dtype(wide_type(kind))
    if whole and not math.isinf(number.real) and number.real != int(number.real):
        raise ArgumentValueError(f"identity: {identity!r} is not a {kind.name}; pass an integer")


def find_identity(operation: ReduceOp, kind: dtype.DType) -> Any:
    """Return the identity as a number that `wide_type(kind)`, in which values are combined, holds."""
    number: Any = operation.identity
    if isinstance(number, str):
        number = float(number)
    if hasattr(number, "item"):
        number = number.item()
    wide = dtype.component_type(wide_type(kind))
    if dtype.is_float_dtype(wide):
        return number if isinstance(number, complex) else float(number)
    low, high = integer_limits(dtype.component_type(kind))
    if isinstance(number, float) and math.isinf(number):
        return high if number > 0 else low
    # -1 has all bits set, also in unsigned types
    return (int(number) - low) % (high - low + 1) + low


def find_extreme_identity(kind: dtype.DType, largest: bool) -> Any:
    """Return the number that changes no maximum (or minimum) of components of a type."""
    if kind is dtype.bool_:
        return 0 if largest else 1
    return find_identity(SubgroupMax if largest else SubgroupMin, kind)


def make_number(number: Any, kind: dtype.DType) -> Any:
    """Return a number as a GPU value: for all components, or as a real number of a complex type."""
    if dtype.is_matrix(kind) and number == 0:
        return vc.to_dtype(kind, *(0.0,) * (kind.child_count**2))
    return vc.to_dtype(kind, number)


def can_combine_in_subgroups(operation: ReduceOp, kind: dtype.DType, features: frozenset[str]) -> bool:
    """Whether the device has a subgroup operation that combines values of a type."""
    if not (dtype.is_scalar(kind) or dtype.is_vector(kind)):
        return False
    if not is_predefined(operation) and operation.subgroup_reduction is None:
        return False
    return can_exchange(kind, features)


def can_exchange(kind: dtype.DType, features: frozenset[str]) -> bool:
    """Whether invocations of a subgroup can exchange values of a type."""
    if dtype.is_matrix(kind):
        return False
    plain = dtype.component_type(kind) in (dtype.float32, dtype.float64, dtype.int32, dtype.uint32)
    return plain or "shaderSubgroupExtendedTypes" in features


# ---- Accumulators ----------------------------------------------------------------------------------------
#
# How values become states (tuples of registers), which are combined and finished.
#
#   values of a chunk ──gather──▶ state ──combine──▶ state ──combine──▶ ... ──finish──▶ element of the result
#                    in registers       of an invocation      of all
#
# A sum has one register, a mean of some of the elements two (their sum and count), a variance three (count,
# mean and the sum of squares about it), the position of the smallest element two (that element and where it
# lies). Kernels move states and do not look into them; see `kernels`.
#
# Invariants: `combine` is associative and commutative up to rounding, and combining with `identity` changes
# nothing. So a state does not depend on the number of invocations, and positions decide ties.


State = tuple[Any, ...]


@record
class Place:
    """Where gathered values lie.

    Attributes
    ----------
    position
        Returns the place of a value among the elements of its result, given its number among the values.
    origin
        The first element of the result, in a register, for accumulators that need it; else None.
    """

    position: Callable[[Any], Any]
    origin: Any = None


@record(eq=False)
class Accumulator:
    """How values become an element of the result. It is equal only to itself, as a key of kernels.

    Attributes
    ----------
    name
        What the names of kernels begin with.
    kinds
        Types of the registers.
    identity
        Their numbers if there are no values.
    out_type
        The type of the element that `finish` gives.
    gather
        Makes a state of at least one value and their `Place`.
    combine
        Makes one state of two.
    finish
        Makes the element of the result of the state and the parameters.
    parameters
        Names and types of the numbers that `finish` gets at each launch.
    subgroup
        Combines a state over the subgroup; None to exchange states instead.
    brief
        Whether `combine` returns single expressions.
    origin
        Whether `gather` needs the first element of the result.
    most_columns
        The maximum number of neighbouring results that an invocation reduces if one load has elements of
        each; None for the usual number.
    place
        Where the user's function that combines two values is defined; None if there is none.
    """

    name: str
    kinds: tuple[DType, ...]
    identity: tuple[Any, ...]
    out_type: DType
    gather: Callable[[Sequence[Any], Place], State]
    combine: Callable[[State, State], State]
    finish: Callable[[State, Sequence[Any]], Any]
    parameters: tuple[tuple[str, DType], ...] = ()
    subgroup: Callable[[State], State] | None = None
    brief: bool = True
    origin: bool = False
    most_columns: int | None = None
    place: str | None = None

    @property
    def arguments(self) -> list[Argument]:
        """Names and annotations of the parameters, as `trace_kernel` takes them."""
        return [(f"reduce_{name}", constant[kind]) for name, kind in self.parameters]

    @property
    def size(self) -> int:
        """Bytes of a state."""
        return sum(kind.item_size for kind in self.kinds)

    def start(self) -> State:
        """Return the identity in registers."""
        return tuple(value.to_register() for value in self.identity_state())

    def identity_state(self) -> State:
        """Return the identity."""
        return tuple(
            make_number(number, kind) for number, kind in zip(self.identity, self.kinds, strict=True)
        )

    def merge(self, x: State, y: State) -> State:
        """Return two states combined, in new registers."""
        if self.brief:
            return tuple(value.to_register() for value in self.combine(x, y))
        registers = tuple(vc.new_register(kind) for kind in self.kinds)
        with vc.scope_block():
            assign(registers, self.combine(to_registers(x), to_registers(y)))
        return registers

    def add_to(self, totals: Sequence[State], parts: Sequence[State]) -> None:
        """Combine each of some totals, in registers, with a part."""
        for total, part in zip(totals, parts, strict=True):
            assign(total, self.merge(total, part))

    def merge_all(self, states: Sequence[State]) -> State:
        """Return states combined in pairs, then pairs of pairs, and so on."""
        states = list(states)
        while len(states) > 1:
            odd = states[len(states) & ~1 :]
            pairs = zip(states[::2], states[1::2], strict=False)
            states = [*(self.merge(x, y) for x, y in pairs), *odd]
        return states[0]

    def select(self, condition: Any, state: State) -> State:
        """Return a state if a condition holds, else the identity, in registers."""
        return tuple(
            vc.select(condition, value, other).to_register()
            for value, other in zip(state, self.identity_state(), strict=True)
        )

    def can_exchange(self, features: frozenset[str]) -> bool:
        """Whether the invocations of a device can exchange states."""
        return all(can_exchange(kind, features) for kind in self.kinds)


def to_registers(state: State) -> State:
    """Return a state in registers, which may be its own."""
    return tuple(value.to_register() for value in state)


def assign(registers: State, state: State) -> None:
    """Set registers to a state that is computed already."""
    for register, value in zip(registers, state, strict=True):
        register[:] = value


def load_state(buffers: Sequence[Any], index: Any) -> State:
    """Load the state at an index of some buffers, one for each register."""
    return tuple(buffer[index].to_register() for buffer in buffers)


def store_state(buffers: Sequence[Any], index: Any, state: State) -> None:
    """Store a state at an index of some buffers, one for each register."""
    for buffer, value in zip(buffers, state, strict=True):
        buffer[index] = value


def combine_pairwise(
    combine: Callable[[Any, Any], Any], values: Sequence[Any], *, named: bool = False
) -> Any:
    """Return values combined in pairs, then pairs of pairs, and so on, in a register.

    `named` puts the values in registers first, for functions that use an operand more than once.
    """
    values = [value.to_register() for value in values] if named else list(values)
    while len(values) > 1:
        odd = values[len(values) & ~1 :]
        pairs = zip(values[::2], values[1::2], strict=False)
        values = [*(combine(x, y).to_register() for x, y in pairs), *odd]
    return values[0].to_register()


@record(eq=False)
class Steps:
    """What an accumulator of one register does besides combining two values.

    Attributes
    ----------
    prepare
        Makes a value of the register's type of an element; None if elements have that type.
    combine_early
        Combines all elements of a chunk before they are prepared, in a type that is cheaper than the
        register's; None if there is none.
    finish
        Makes the element of the result of the register and the parameters; None stores the register.
    parameters
        Names and types of the numbers that `finish` gets at each launch.
    subgroup
        Combines a value over the subgroup; None to exchange values instead.
    """

    prepare: Callable[[Any], Any] | None = None
    combine_early: Callable[[Sequence[Any]], Any] | None = None
    finish: Callable[[Any, Sequence[Any]], Any] | None = None
    parameters: tuple[tuple[str, DType], ...] = ()
    subgroup: Callable[[Any], Any] | None = None


def make_single(
    name: str,
    kind: DType,
    out_type: DType,
    identity: Any,
    combine: Callable[[Any, Any], Any],
    steps: Steps,
    *,
    brief: bool = True,
    place: str | None = None,
) -> Accumulator:
    """Return an accumulator of one register of the type `kind`; the rest as of `Accumulator`."""
    prepare, combine_early, subgroup = steps.prepare, steps.combine_early, steps.subgroup

    def combine_states(x: State, y: State) -> State:
        return (combine(x[0], y[0]),)

    def gather(values: Sequence[Any], place: Place) -> State:
        if combine_early is not None:
            values = [combine_early(values)]
        if prepare is not None:
            values = [prepare(value) for value in values]
        if brief:
            return (combine_pairwise(combine, values),)
        return accumulator.merge_all([(value.to_register(),) for value in values])

    def finish(state: State, numbers: Sequence[Any]) -> Any:
        return state[0] if steps.finish is None else steps.finish(state[0], numbers)

    accumulator = Accumulator(
        name,
        (kind,),
        (identity,),
        out_type,
        gather,
        combine_states,
        finish,
        steps.parameters,
        None if subgroup is None else lambda state: (subgroup(state[0]),),
        brief,
        place=place,
    )
    return accumulator


def make_accumulator(operation: ReduceOp, kind: DType, features: frozenset[str]) -> Accumulator:
    """Return the accumulator of values of `kind` for an operation of `vd.reduce`."""
    wide, narrow = wide_type(kind), compute_type(kind)

    def combine(x: Any, y: Any) -> Any:
        result = control_flow.prepare_function(operation.reduction)(x, y)
        if isinstance(result, vc.ShaderVariable) and result.var_type is narrow is not wide:
            return result.to_dtype(wide)
        if not isinstance(result, vc.ShaderVariable):
            register = vc.new_register(wide)
            register[:] = result
            return register
        return result

    brief = is_predefined(operation) or is_expression(
        operation.reduction, wide, f"reduction {operation.name!r}"
    )

    def combine_in_subgroup(value: Any) -> Any:
        assert operation.subgroup_reduction is not None
        return operation.subgroup_reduction(value)

    subgroup = combine_in_subgroup if can_combine_in_subgroups(operation, wide, features) else None
    return make_single(
        operation.name,
        wide,
        kind,
        find_identity(operation, kind),
        combine,
        Steps(finish=lambda value, _: value if narrow is wide else value.to_dtype(narrow), subgroup=subgroup),
        brief=brief,
        place=None if is_predefined(operation) else find_origin(operation.reduction),
    )


# ---- Values in kernels of reductions: converted, taken apart, composed, and divided ----------------------


def cast_value(value: Any, kind: DType) -> Any:
    """Return a value in a type; booleans become 0 and 1."""
    if value.var_type is dtype.bool_ and kind is not dtype.bool_:
        value = vc.select(value, vc.to_uint(1), vc.to_uint(0))
    if value.var_type is kind:
        return value
    if is_complex(kind) and is_complex(value.var_type):
        child = component_type(kind)
        return vc.to_dtype(kind, value.real.to_dtype(child), value.imag.to_dtype(child))
    return value.to_dtype(kind)


def split_floats(value: Any, kind: DType) -> list[Any]:
    """Return the components of a value in a float type."""
    if value.var_type is dtype.bool_:
        value = cast_value(value, dtype.uint32)
    return [cast_value(part, kind) for part in split_scalars(value)]


def compose(kind: DType, parts: Sequence[Any]) -> Any:
    """Return components as one value of a type that kernels compute with."""
    child = component_type(kind)
    parts = [cast_value(part, child) for part in parts]
    return parts[0] if len(parts) == 1 else vc.to_dtype(kind, *parts)


def divide(value: Any, divisor: Any) -> Any:
    """Return a correctly rounded quotient, also on devices whose division is not; 0 / 0 is NaN."""
    quotient = (value / divisor).to_register()
    if value.var_type is dtype.float32:
        # the correction has no meaning where the quotient is infinite or NaN
        more = (vc.fma(-quotient, divisor, value) / divisor).to_register()
        quotient = vc.select(vc.any(vc.isnan(more), vc.isinf(more)), quotient, quotient + more)
    # compilers replace 0 / x by 0
    return vc.select(divisor == 0, vc.to_dtype(value.var_type, math.nan), quotient)


def divide_each(parts: Sequence[Any], divisor: Any) -> list[Any]:
    """Return each part of a number divided by a real number."""
    return [divide(part, divisor) for part in parts]


def divide_parts(parts: Sequence[Any], divisor: Any) -> list[Any]:
    """Return the parts of a number divided by a real number, as in NumPy.

    Where one part of a complex number is infinite or NaN, the other one becomes NaN.
    """
    quotients = divide_each(parts, divisor)
    if len(parts) == 1:
        return quotients
    nan = vc.to_dtype(divisor.var_type, math.nan)
    return set_nan_beside(quotients, parts, nan)


def set_nan_beside(values: Sequence[Any], parts: Sequence[Any], nan: Any) -> list[Any]:
    """Return two values, each NaN where the other one of two parts is infinite or NaN."""
    bad = [vc.any(vc.isnan(part), vc.isinf(part)).to_register() for part in parts]
    return [vc.select(other, nan, value) for value, other in zip(values, reversed(bad), strict=True)]


def split_parts(value: Any) -> list[Any]:
    """Return the parts of a number, in registers."""
    if value.var_type is dtype.bool_:
        value = cast_value(value, dtype.uint32)
    return [part.to_register() for part in split_scalars(value)]


def narrow(value: Any, out_type: DType) -> Any:
    """Return a value as kernels store it in a buffer of a type."""
    return cast_value(value, compute_type(out_type))


# ---- The accumulators of sums, products, booleans and counts ---------------------------------------------
#
# Sources give `wide_type` of their dtype. A chunk adds up integers of 8 and 16 bits in 32 bits, which hold
# its sum, and totals have 64 bits: one wide addition for a chunk.


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
            subgroup=None if is_complex(total) or is_matrix(total) else find_function("subgroup_add"),
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
            subgroup=find_function("subgroup_mul"),
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
            subgroup=find_function("subgroup_and" if of_all else "subgroup_or"),
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
            subgroup=find_function("subgroup_add"),
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


# ---- The argument `where`: maps that leave out the elements that do not count ----------------------------


Mask = bool | ArrayLike


def parse_mask(where: Mask, x: ArrayLike) -> ArrayLike | None:
    """Return the mask; None if all elements count.

    Raises
    ------
    TypeError, ValueError
        `where` is not an array of booleans, or does not broadcast to the shape of `x`.
    """
    if where is True:
        return None
    if not isinstance(where, (Buffer, MappedArray)):
        raise ArgumentTypeError(
            f"where: expected a vd.Buffer of vd.bool_, or a map called with its arguments, got "
            f"{describe(where)}"
        )
    if where.var_type is not dtype.bool_:
        raise ArgumentTypeError(f"where: expected booleans, vd.bool_, got {where.var_type.name}")
    wanted = x.shape[len(x.shape) - len(where.shape) :]
    fits = len(where.shape) <= len(x.shape) and all(
        extent in (1, size) for extent, size in zip(where.shape, wanted, strict=True)
    )
    if not fits:
        raise ArgumentValueError(
            f"where: a mask of the shape {where.shape} does not broadcast to the shape {x.shape}"
        )
    return where


def fill_masked(x: ArrayLike, where: ArrayLike, otherwise: Any) -> MappedArray:
    """Return an array in which a number, or its two parts, replaces the elements that do not count."""
    parts = otherwise if isinstance(otherwise, tuple) else (otherwise,)
    array: MappedArray = _make_mask_map(x.var_type, parts, None)(x, where)
    return array


def pair_with_mask(x: ArrayLike, where: ArrayLike, kind: DType) -> MappedArray:
    """Return an array of vectors: the components of each element as `kind`, then 1.

    Elements that do not count become vectors of zeros.
    """
    array: MappedArray = _make_mask_map(x.var_type, (), kind)(x, where)
    return array


def mask_vector_type(kind: DType, part: DType) -> DType:
    """Return the dtype of the vectors that `pair_with_mask` makes of numbers."""
    return to_vector(part, 3 if is_complex(kind) else 2)


@memoize
def _make_mask_map(stored: DType, otherwise: tuple[Any, ...], part: DType | None) -> MappingFunction:
    kind = compute_type(stored)
    target = stored if part is None else mask_vector_type(stored, part)

    # error messages name the parameters as the caller does
    def where(x: Any, where: Any) -> Any:
        if part is None:
            return vc.select(where, x, vc.to_dtype(kind, *otherwise))
        zero = vc.to_dtype(part, 0)
        parts = [vc.select(where, cast_value(scalar, part), zero) for scalar in split_scalars(x)]
        return vc.to_dtype(target, *parts, vc.select(where, vc.to_dtype(part, 1), zero))

    return MappingFunction([stored, dtype.bool_], target, where)
