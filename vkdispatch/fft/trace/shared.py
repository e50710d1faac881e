"""Workgroup memory in which the invocations of a line exchange values."""

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, component_type
from vkdispatch.base.record import record
from vkdispatch.fft.plan.indices import kept, plus, times
from vkdispatch.fft.plan.memory import SharedLayout, allocation
from vkdispatch.fft.plan.stages import Split, Stage
from vkdispatch.fft.trace.words import shared_values


@record
class Slot:
    """A flat place in workgroup memory, and when an invocation has to do with it."""

    place: Any
    conditions: tuple[Any, ...] = ()


class SharedLines:
    """The memory itself: `row` is where this invocation's line begins."""

    def __init__(
        self,
        layout: SharedLayout,
        split: Split,
        compute_type: DType,
        line: Any,
        least: int = 0,
        array: Any = None,
        used: bool = False,
    ) -> None:
        """Allocate what a transform needs, and at least so many elements.

        Or take an array that has so many, which may have been `used` before.
        """
        self.layout = layout
        self.compute_type = compute_type
        if array is None:
            kind = compute_type if layout.parts == 1 else component_type(compute_type)
            array = shared_values(kind, max(least, allocation(split, layout)), "lines")
        self.array = array
        self.row = times(line, layout.row)
        self._used = used

    def view_as(self, layout: SharedLayout, line: Any) -> "SharedLines":
        """Return the same memory in another layout of as many parts."""
        other = copy.copy(self)
        other.layout, other.row, other._used = layout, times(line, layout.row), True
        return other

    def settle(self) -> None:
        """Wait until nobody reads what is there any more."""
        if self._used:
            vc.barrier()
        self._used = True

    def exchange(self, values: Sequence[Any], source: Stage, target: Stage, thread: Any) -> list[Any]:
        """Give out one stage's outcome, and return what the next stage's butterflies take."""
        if self.layout.parts == 1:
            return self._move(list(values), source, target, thread)
        parts = [
            self._move([part(value) for value in values], source, target, thread)
            for part in (_real, _imaginary)
        ]
        return [vc.to_complex(re, im).to_register() for re, im in zip(*parts, strict=True)]

    def rearrange(
        self, values: Sequence[Any], places: Sequence["Slot"], wanted: Sequence["Slot"]
    ) -> list[Any]:
        """Put values at flat places of the workgroup's memory, and return what is at others then.

        The layout must not be cut into chunks.
        """
        if self.layout.parts == 1:
            return self._rearrange(values, places, wanted)
        parts = [self._rearrange([part(v) for v in values], places, wanted) for part in (_real, _imaginary)]
        return [vc.to_complex(re, im).to_register() for re, im in zip(*parts, strict=True)]

    def _rearrange(
        self, values: Sequence[Any], places: Sequence["Slot"], wanted: Sequence["Slot"]
    ) -> list[Any]:
        self.settle()
        for value, slot in zip(values, places, strict=True):
            guarded(slot.conditions, functools.partial(self.array.__setitem__, slot.place, value))
        vc.barrier()
        taken = []
        for slot in wanted:
            if not slot.conditions:
                taken.append(self.array[slot.place].to_register())
                continue
            taken.append(vc.new_register(value_type(self.array)))
            guarded(slot.conditions, functools.partial(_load, taken[-1], self.array, slot.place))
        return taken

    def _move(self, values: list[Any], source: Stage, target: Stage, thread: Any) -> list[Any]:
        taken: list[Any] = [None] * target.registers
        for chunk in range(self.layout.chunks):
            self.settle()
            self._write(values, source, thread, chunk)
            vc.barrier()
            self._read(taken, target, thread, chunk)
        return taken

    def _write(self, values: list[Any], stage: Stage, thread: Any, chunk: int) -> None:
        layout = self.layout
        piece = stage.length // layout.chunks
        for turn in range(stage.rounds):
            first = stage.first_output(thread, turn)
            conditions = stage.conditions(thread, turn)
            if stage.previous == 1 and layout.padding:
                base = times(stage.butterfly(thread, turn), layout.step(stage.radix))
            else:
                base = layout.padded(first)
            base = plus(self.row, base)
            if layout.chunks > 1:
                conditions.append(first // piece == chunk)
                base = base - layout.step(chunk * piece) if chunk else base
            base = kept(base)
            step = layout.step(stage.previous) if stage.previous > 1 else 1

            def store(base: Any = base, step: int = step, turn: int = turn) -> None:
                for i in range(stage.radix):
                    self.array[plus(base, i * step)] = values[turn * stage.radix + i]

            guarded(conditions, store)

    def _read(self, taken: list[Any], stage: Stage, thread: Any, chunk: int) -> None:
        layout = self.layout
        piece = stage.length // layout.chunks
        per_chunk = stage.radix // layout.chunks
        step = layout.step(stage.butterflies)
        for turn in range(stage.rounds):
            base = plus(self.row, layout.padded(stage.butterfly(thread, turn)))
            base = kept(base)
            for i in (
                range(chunk * per_chunk, (chunk + 1) * per_chunk) if layout.chunks > 1 else range(stage.radix)
            ):
                offset = i * step - (layout.step(chunk * piece) if chunk else 0)
                taken[turn * stage.radix + i] = self.array[plus(base, offset)].to_register()


def guarded(conditions: Sequence[Any], action: Callable[[], None]) -> None:
    """Trace `action` for the invocations of which all conditions hold."""
    dynamic = [condition for condition in conditions if condition is not True]
    if any(condition is False for condition in dynamic):
        return
    if not dynamic:
        action()
        return
    condition = dynamic[0]
    for each in dynamic[1:]:
        condition = vc.logical_and(condition, each)
    with vc.if_block(condition):
        action()


def value_type(array: Any) -> DType:
    """Dtype of an array's elements."""
    return array.var_type  # type: ignore[no-any-return]


def _load(register: Any, array: Any, place: Any) -> None:
    register[:] = array[place]


def _real(value: Any) -> Any:
    return value.real


def _imaginary(value: Any) -> Any:
    return value.imag
