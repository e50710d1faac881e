"""Registers that hold the values of places, and what is known of them at the current point of the program."""

from collections.abc import Iterable, Sequence
from enum import Enum, auto

from vkdispatch.ir import (
    Declare,
    Expr,
    Op,
    Register,
    Statement,
    Store,
)
from vkdispatch.ir.names import FreshNames, legal_name
from vkdispatch.passes.builders import zero
from vkdispatch.passes.fusion.places import Place


class State(Enum):
    """What is known of a place's register; a place without a state has to be loaded."""

    CLEAN = auto()  # it holds what memory holds
    CHANGED = auto()  # memory is out of date


class PlaceRegisters:
    """Loads places where they are first needed, and stores them where they were last changed.

    Attributes
    ----------
    places
        The places, by number.
    states
        What is known of the registers of places; a place without a state has to be loaded.
    in_memory
        Places that are left to memory: those that the loops around the current point store to, or that the
        part reads back.
    depth
        How many blocks are open around the current point.
    prelude
        Declarations that go to the start of the kernel.
    """

    def __init__(self, places: Sequence[Place], names: FreshNames) -> None:
        self.places = places
        self.states: dict[int, State] = {}
        self.in_memory: frozenset[int] = frozenset()
        self.depth = 0
        self.prelude: list[Statement] = []
        self._names = names

    def read(self, place: int) -> Expr:
        """Name the register of a place."""
        register = self.places[place].register
        assert register is not None
        return Expr(Op.REGISTER, register.dtype, (), register)

    def load(self, place: int, out: list[Statement]) -> None:
        """Load a place unless its register holds it, or memory has it."""
        if place in self.states or place in self.in_memory:
            return
        element = self.places[place].element
        assert element is not None
        self.assign(place, element, out)
        self.states[place] = State.CLEAN

    def assign(self, place: int, value: Expr, out: list[Statement]) -> None:
        """Give a place's register a value, and declare it if it has none."""
        known = self.places[place]
        if known.register is not None:
            out.append(Store(self.read(place), value, None, value.loc))
            return
        known.register = Register(self._names.claim_copy(legal_name(known.label), first=2), known.kind)
        if self.depth == 0:
            out.append(Declare(known.register, value, value.loc))
            return
        self.prelude.append(Declare(known.register, zero(known.kind)))
        out.append(Store(self.read(place), value, None, value.loc))

    def _store(self, place: int, out: list[Statement]) -> None:
        """Bring memory up to date."""
        element = self.places[place].element
        assert element is not None
        out.append(Store(element, self.read(place), None, element.loc))

    def store_all(self, out: list[Statement], places: Iterable[int] | None = None) -> None:
        """Bring memory up to date with all registers, or those of some places."""
        for place in sorted(self.states if places is None else places):
            if self.states.get(place) is State.CHANGED:
                self._store(place, out)
                self.states[place] = State.CLEAN

    def join(
        self, before: dict[int, State], ways: Sequence[tuple[list[Statement], dict[int, State]]]
    ) -> dict[int, State]:
        """Return what is known where branches meet, and bring memory up to date at their ends if need be.

        `ways` has the statements of each branch that reaches its end, and what is known there.
        """
        if not ways:
            return before
        joined: dict[int, State] = {}
        for place in range(len(self.places)):
            states = {known.get(place) for _, known in ways}
            if len(states) == 1:
                (state,) = states
            elif None not in states and before.get(place) is State.CHANGED:
                state = State.CHANGED
            else:
                for out, known in ways:
                    if known.get(place) is State.CHANGED:
                        self._store(place, out)
                state = None if None in states else State.CLEAN
            if state is not None:
                joined[place] = state
        return joined
