"""Exchanges of values through workgroup memory."""

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, component_type
from vkdispatch.base.record import record
from vkdispatch.fft.plan.indices import add, hold, multiply
from vkdispatch.fft.plan.memory import SharedLayout, count_allocated
from vkdispatch.fft.plan.stages import Split, Stage
from vkdispatch.fft.trace.words import allocate_values


@record
class Slot:
    """A place in workgroup memory, and the conditions under which an invocation accesses it."""

    place: Any
    conditions: tuple[Any, ...] = ()


class SharedLines:
    """Lines in workgroup memory; `row` is the start of this invocation's line."""

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
        """Allocate the elements that a transform needs, and at least `least`.

        With `array`, use that memory instead; `used` says whether it was accessed before.
        """
        self.layout = layout
        self.compute_type = compute_type
        if array is None:
            kind = compute_type if layout.parts == 1 else component_type(compute_type)
            array = allocate_values(kind, max(least, count_allocated(split, layout)), "lines")
        self.array = array
        self.row = multiply(line, layout.row)
        self._used = used

    def view_as(self, layout: SharedLayout, line: Any) -> "SharedLines":
        """Return the same memory with another layout of as many parts."""
        other = copy.copy(self)
        other.layout, other.row, other._used = layout, multiply(line, layout.row), True
        return other

    def wait_for_readers(self) -> None:
        """Wait until all invocations have read the current contents."""
        if self._used:
            vc.barrier()
        self._used = True

    def exchange(self, values: Sequence[Any], source: Stage, target: Stage, thread: Any) -> list[Any]:
        """Exchange the output of a stage for the input of another."""
        return move_in_parts(values, self.layout.parts, lambda part: self._move(part, source, target, thread))

    def rearrange(
        self, values: Sequence[Any], places: Sequence["Slot"], wanted: Sequence["Slot"]
    ) -> list[Any]:
        """Store values at some places of workgroup memory, and return the values at other places.

        The layout must have one chunk.
        """
        return move_in_parts(values, self.layout.parts, lambda part: self._rearrange(part, places, wanted))

    def _rearrange(
        self, values: Sequence[Any], places: Sequence["Slot"], wanted: Sequence["Slot"]
    ) -> list[Any]:
        self.wait_for_readers()
        for value, slot in zip(values, places, strict=True):
            trace_if(slot.conditions, functools.partial(self.array.__setitem__, slot.place, value))
        vc.barrier()
        taken = []
        for slot in wanted:
            if not slot.conditions:
                taken.append(self.array[slot.place].to_register())
                continue
            taken.append(vc.new_register(value_type(self.array)))
            trace_if(slot.conditions, functools.partial(_load, taken[-1], self.array, slot.place))
        return taken

    def _move(self, values: list[Any], source: Stage, target: Stage, thread: Any) -> list[Any]:
        taken: list[Any] = [None] * target.registers
        for chunk in range(self.layout.chunks):
            self.wait_for_readers()
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
                base = multiply(stage.butterfly(thread, turn), layout.step(stage.radix))
            else:
                base = layout.place_of(first)
            base = add(self.row, base)
            if layout.chunks > 1:
                conditions.append(first // piece == chunk)
                base = base - layout.step(chunk * piece) if chunk else base
            base = hold(base)
            step = layout.step(stage.previous) if stage.previous > 1 else 1

            def store(base: Any = base, step: int = step, turn: int = turn) -> None:
                for i in range(stage.radix):
                    self.array[add(base, i * step)] = values[turn * stage.radix + i]

            trace_if(conditions, store)

    def _read(self, taken: list[Any], stage: Stage, thread: Any, chunk: int) -> None:
        layout = self.layout
        piece = stage.length // layout.chunks
        per_chunk = stage.radix // layout.chunks
        step = layout.step(stage.butterflies)
        for turn in range(stage.rounds):
            base = add(self.row, layout.place_of(stage.butterfly(thread, turn)))
            base = hold(base)
            for i in (
                range(chunk * per_chunk, (chunk + 1) * per_chunk) if layout.chunks > 1 else range(stage.radix)
            ):
                offset = i * step - (layout.step(chunk * piece) if chunk else 0)
                taken[turn * stage.radix + i] = self.array[add(base, offset)].to_register()


def trace_if(conditions: Sequence[Any], action: Callable[[], None]) -> None:
    """Trace `action` under some conditions; True needs no code, and False no action."""
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
    """Return the dtype of the elements of an array."""
    return array.var_type  # type: ignore[no-any-return]


def _load(register: Any, array: Any, place: Any) -> None:
    register[:] = array[place]


def move_in_parts(values: Sequence[Any], parts: int, move: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """Move complex values, or with 2 parts first the real and then the imaginary parts."""
    if parts == 1:
        return move(list(values))
    real, imaginary = move([value.real for value in values]), move([value.imag for value in values])
    return [hold(vc.to_complex(re, im)) for re, im in zip(real, imaginary, strict=True)]


def trace_in_order(count: int, threads: int, total: int, action: Callable[[Any, Any], None]) -> None:
    """Trace an action for all values of a workgroup: neighbouring invocations have neighbouring values.

    Parameters
    ----------
    count, threads
        Values and invocations of the workgroup.
    total
        Values of all workgroups; the last one may have fewer.
    action
        Called with the position among all values and among those of the workgroup.
    """
    start = hold(vc.workgroup_id().x * count)
    for turn in range(-(-count // threads)):
        element = hold(vc.local_invocation_index() + turn * threads)
        conditions: list[Any] = []
        if (turn + 1) * threads > count:
            conditions.append(element < count)
        if total % count:
            conditions.append(start + element < total)
        trace_if(conditions, lambda element=element: action(start + element, element))  # type: ignore[misc]
