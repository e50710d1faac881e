"""What values are accumulated in: a tuple of registers, and how such tuples are made, combined and finished.

    values of a chunk ──gather──▶ state ──combine──▶ state ──combine──▶ ... ──finish──▶ element of the result
                     in registers       of an invocation      of all

A sum has one register, a mean of some of the elements two (their sum and count), a variance three (count,
mean and the sum of squares about it), a position of the smallest element two (that element and where it
lies). Kernels move states about and do not look into them; see `kernels`.

Invariants: `combine` is associative and commutative up to rounding; combined with `identity`, a state stays
as it is; so a state does not depend on how many invocations found it, and ties are decided by position.
"""

from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.values.elements import wide_type
from vkdispatch.arrays.values.operators import is_expression
from vkdispatch.base.dtype import DType, compute_type
from vkdispatch.base.record import record
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.reduce.operations import (
    ReduceOp,
    combines_in_subgroups,
    exchanges,
    identity_of,
    is_ours,
    number_of_type,
)
from vkdispatch.rewrite.functions import inlined
from vkdispatch.shader.signature import origin_of

State = tuple[Any, ...]


@record
class Place:
    """Where the values that are gathered lie.

    Attributes
    ----------
    position
        Returns a value's place among the elements of its result, from its number among the values.
    origin
        The first element of the result, in a register, for accumulators that ask for it; else None.
    """

    position: Callable[[Any], Any]
    origin: Any = None


@record(eq=False)
class Accumulator:
    """How values become an element of the result. Equal only to itself: kernels are kept by it.

    Attributes
    ----------
    name
        What names of kernels begin with.
    kinds
        Types of the registers.
    identity
        Their numbers before there are any values.
    out_type
        The type of the element that `finish` gives.
    gather
        Makes a state of some values (at least one) and their `Place`.
    combine
        Makes one state of two.
    finish
        Makes the element of the state and the parameters.
    parameters
        Names and types of numbers that `finish` is given at each launch.
    subgroup
        Combines a state over the subgroup; None where that takes exchanges.
    brief
        Whether what `combine` returns are single expressions.
    origin
        Whether `gather` wants to know the first element of the result.
    most_columns
        Of how many neighbouring results an invocation has states at most, where a load has elements of each;
        None: as many as usual.
    place
        Where the user's function that combines two values is defined; None: there is none.
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
        return tuple(value.to_register() for value in self.nothing())

    def nothing(self) -> State:
        """Return the identity."""
        return tuple(
            number_of_type(number, kind) for number, kind in zip(self.identity, self.kinds, strict=True)
        )

    def combined(self, x: State, y: State) -> State:
        """Return two states combined, in registers of their own."""
        if self.brief:
            return tuple(value.to_register() for value in self.combine(x, y))
        registers = tuple(vc.new_register(kind) for kind in self.kinds)
        with vc.scope_block():
            assign(registers, self.combine(in_registers(x), in_registers(y)))
        return registers

    def tree(self, states: Sequence[State]) -> State:
        """Return states combined in pairs, and pairs of pairs: in as few steps from each to the last."""
        states = list(states)
        while len(states) > 1:
            odd = states[len(states) & ~1 :]
            pairs = zip(states[::2], states[1::2], strict=False)
            states = [*(self.combined(x, y) for x, y in pairs), *odd]
        return states[0]

    def chosen(self, condition: Any, state: State) -> State:
        """Return a state in registers, or the identity where the condition does not hold."""
        return tuple(
            vc.select(condition, value, other).to_register()
            for value, other in zip(state, self.nothing(), strict=True)
        )

    def exchanges(self, features: frozenset[str]) -> bool:
        """Whether the invocations of a device can exchange states."""
        return all(exchanges(kind, features) for kind in self.kinds)


def in_registers(state: State) -> State:
    """Return a state in registers, which may be those that it is in."""
    return tuple(value.to_register() for value in state)


def assign(registers: State, state: State) -> None:
    """Set registers to a state. All of it is computed before."""
    for register, value in zip(registers, state, strict=True):
        register[:] = value


def paired(combine: Callable[[Any, Any], Any], values: Sequence[Any], *, named: bool = False) -> Any:
    """Return values combined in pairs, and pairs of pairs, in a register.

    `named` puts them in registers first, for what uses an operand more than once.
    """
    values = [value.to_register() for value in values] if named else list(values)
    while len(values) > 1:
        odd = values[len(values) & ~1 :]
        pairs = zip(values[::2], values[1::2], strict=False)
        values = [*(combine(x, y).to_register() for x, y in pairs), *odd]
    return values[0].to_register()


def single(
    name: str,
    kind: DType,
    out_type: DType,
    identity: Any,
    combine: Callable[[Any, Any], Any],
    *,
    prepared: Callable[[Any], Any] | None = None,
    early: Callable[[Sequence[Any]], Any] | None = None,
    finish: Callable[[Any, Sequence[Any]], Any] | None = None,
    parameters: tuple[tuple[str, DType], ...] = (),
    subgroup: Callable[[Any], Any] | None = None,
    brief: bool = True,
    place: str | None = None,
) -> Accumulator:
    """Return an accumulator of one register.

    Parameters
    ----------
    kind
        The register's type.
    prepared
        Makes a value of that type of an element; None where that is what elements are.
    early
        Combines all elements of a chunk before anything else is done to them, where a cheaper type than
        `kind` holds that.
    """

    def combined(x: State, y: State) -> State:
        return (combine(x[0], y[0]),)

    def gather(values: Sequence[Any], place: Place) -> State:
        if early is not None:
            values = [early(values)]
        if prepared is not None:
            values = [prepared(value) for value in values]
        if brief:
            return (paired(combine, values),)
        return made.tree([(value.to_register(),) for value in values])

    def finished(state: State, numbers: Sequence[Any]) -> Any:
        return state[0] if finish is None else finish(state[0], numbers)

    made = Accumulator(
        name,
        (kind,),
        (identity,),
        out_type,
        gather,
        combined,
        finished,
        parameters,
        None if subgroup is None else lambda state: (subgroup(state[0]),),
        brief,
        place=place,
    )
    return made


def accumulator_of(operation: ReduceOp, kind: DType, features: frozenset[str]) -> Accumulator:
    """Return what accumulates values of `kind` by an operation of `vd.reduce`."""
    wide, narrow = wide_type(kind), compute_type(kind)

    def combine(x: Any, y: Any) -> Any:
        result = inlined(operation.reduction)(x, y)
        if isinstance(result, ShaderVariable) and result.var_type is narrow is not wide:
            return result.to_dtype(wide)
        if not isinstance(result, ShaderVariable):
            register = vc.new_register(wide)
            register[:] = result
            return register
        return result

    brief = is_ours(operation) or is_expression(operation.reduction, wide, f"reduction {operation.name!r}")
    subgroup = operation.subgroup_reduction if combines_in_subgroups(operation, wide, features) else None
    return single(
        operation.name,
        wide,
        kind,
        identity_of(operation, kind),
        combine,
        finish=lambda value, _: value if narrow is wide else value.to_dtype(narrow),
        subgroup=subgroup,
        brief=brief,
        place=None if is_ours(operation) else origin_of(operation.reduction),
    )
