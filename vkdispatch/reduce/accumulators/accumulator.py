"""Accumulators: how values become states (tuples of registers), which are combined and finished.

    values of a chunk ──gather──▶ state ──combine──▶ state ──combine──▶ ... ──finish──▶ element of the result
                     in registers       of an invocation      of all

A sum has one register, a mean of some of the elements two (their sum and count), a variance three (count,
mean and the sum of squares about it), the position of the smallest element two (that element and where it
lies). Kernels move states and do not look into them; see `kernels`.

Invariants: `combine` is associative and commutative up to rounding, and combining with `identity` changes
nothing. So a state does not depend on the number of invocations, and positions decide ties.
"""

from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, compute_type
from vkdispatch.base.record import record
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.control_flow.replacement import prepare_function
from vkdispatch.families.values import is_expression, wide_type
from vkdispatch.reduce.operations import (
    ReduceOp,
    can_combine_in_subgroups,
    can_exchange,
    find_identity,
    is_predefined,
    make_number,
)
from vkdispatch.shader.signature import find_origin

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
        result = prepare_function(operation.reduction)(x, y)
        if isinstance(result, ShaderVariable) and result.var_type is narrow is not wide:
            return result.to_dtype(wide)
        if not isinstance(result, ShaderVariable):
            register = vc.new_register(wide)
            register[:] = result
            return register
        return result

    brief = is_predefined(operation) or is_expression(
        operation.reduction, wide, f"reduction {operation.name!r}"
    )
    subgroup = operation.subgroup_reduction if can_combine_in_subgroups(operation, wide, features) else None
    return make_single(
        operation.name,
        wide,
        kind,
        find_identity(operation, kind),
        combine,
        Steps(
            finish=lambda value, _: value if narrow is wide else value.to_dtype(narrow),
            subgroup=subgroup,
        ),
        brief=brief,
        place=None if is_predefined(operation) else find_origin(operation.reduction),
    )
