"""Lines that do not begin where memory likes to be read: brought in and out of workgroup memory in one piece.

Neighbouring invocations then touch neighbouring values, wherever lines begin and end.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.fft.lines import LineKernel, linear_slots
from vkdispatch.fft.shared import Slot, guarded
from vkdispatch.fft.stages import plus, times


def read_staged(kernel: LineKernel, source: Any) -> None:
    """Fill the registers from a buffer of whole lines."""
    grid, place = kernel.plan.grid, kernel.place
    assert kernel.shared is not None
    base, last = _first(kernel), grid.outer * grid.length - 1
    pairs = linear_slots(kernel, grid.length, grid.length)
    partial = grid.outer % grid.lines or (grid.lines * grid.length) % (grid.lines * grid.threads)
    # Reads behind the end take the last value instead: no branch stands between them.
    values = []
    for at, _ in pairs:
        index = plus(base, at)
        value = source[vc.min(index, last) if partial else index]
        values.append(vc.to_dtype(kernel.plan.compute_type, value).to_register())
    row = times(place.line, grid.length)
    entries = kernel.entries(kernel.plan.split.stages[0])
    wanted = [Slot(plus(row, entry.index), _of_thread(kernel, conditions)) for entry, conditions in entries]
    taken = kernel.shared.rearrange(values, [slot for _, slot in pairs], wanted)
    for (entry, _), value in zip(entries, taken, strict=True):
        kernel.registers[entry.register] = value


def write_staged(kernel: LineKernel, target: Any, kind: Any) -> None:
    """Write the registers to a buffer of whole lines."""
    grid, place = kernel.plan.grid, kernel.place
    assert kernel.shared is not None
    row = times(place.line, grid.length)
    entries = kernel.entries(kernel.plan.split.stages[-1])
    places = [Slot(plus(row, entry.index), _of_thread(kernel, conditions)) for entry, conditions in entries]
    pairs = linear_slots(kernel, grid.length, grid.length)
    values = [kernel.registers[entry.register] for entry, _ in entries]
    taken = kernel.shared.rearrange(values, places, [Slot(slot.place) for _, slot in pairs])
    base = _first(kernel)
    for (at, slot), value in zip(pairs, taken, strict=True):
        guarded(
            slot.conditions,
            lambda at=at, value=value: target.__setitem__(plus(base, at), vc.to_dtype(kind, value)),  # type: ignore[misc]
        )


def _first(kernel: LineKernel) -> Any:
    """Flat index of a workgroup's first value."""
    grid = kernel.plan.grid
    return (vc.workgroup_id().x * (grid.lines * grid.length)).to_register()


def _of_thread(kernel: LineKernel, conditions: tuple[Any, ...]) -> tuple[Any, ...]:
    """Conditions without that of the line: lines that do not exist have their place in workgroup memory."""
    return tuple(condition for condition in conditions if condition is not kernel.place.active)
