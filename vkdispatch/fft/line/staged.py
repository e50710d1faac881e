"""Short contiguous lines, which a workgroup copies to its memory and back in one piece.

Neighbouring invocations then access neighbouring values, wherever lines begin and end.
"""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.fft.plan.indices import add, hold, multiply
from vkdispatch.fft.plan.passes import Pass
from vkdispatch.fft.plan.transforms import Transform
from vkdispatch.fft.trace.line_kernel import Entry, LineKernel, buffer_types, linear_slots, trace_line_kernel
from vkdispatch.fft.trace.shared import Slot, trace_if
from vkdispatch.shader.shader_function import ShaderFunction


def read_staged(kernel: LineKernel, source: Any) -> None:
    """Read the registers from a buffer of contiguous lines."""
    row = multiply(kernel.place.line, kernel.plan.grid.length)
    entries = kernel.entries(kernel.split.stages[0])
    wanted = [
        Slot(add(row, entry.index), conditions_of_thread(kernel, conditions)) for entry, conditions in entries
    ]
    for (entry, _), value in zip(entries, read_lines(kernel, source, wanted), strict=True):
        kernel.registers[entry.register] = value


def write_staged(kernel: LineKernel, target: Any, kind: DType) -> None:
    """Write the registers to a buffer of contiguous lines."""
    row = multiply(kernel.place.line, kernel.plan.grid.length)
    entries = kernel.entries(kernel.split.stages[-1])
    places = [
        Slot(add(row, entry.index), conditions_of_thread(kernel, conditions)) for entry, conditions in entries
    ]
    write_lines(kernel, [kernel.registers[entry.register] for entry, _ in entries], places, target, kind)


def read_lines(kernel: LineKernel, source: Any, wanted: Sequence[Slot]) -> list[Any]:
    """Copy the lines of a workgroup to its memory, and return the values at some places of it."""
    grid = kernel.plan.grid
    assert kernel.shared is not None
    base, last = _first(kernel), grid.outer * grid.length - 1
    pairs = linear_slots(kernel, grid.length, grid.length)
    # reads of missing lines read the last value instead, without a branch
    values = []
    for at, _ in pairs:
        index = add(base, at)
        value = source[vc.min(index, last) if grid.outer % grid.lines else index]
        values.append(vc.to_dtype(kernel.plan.compute_type, value).to_register())
    return kernel.shared.rearrange(values, [slot for _, slot in pairs], wanted)


def write_lines(
    kernel: LineKernel, values: Sequence[Any], places: Sequence[Slot], target: Any, kind: DType
) -> None:
    """Store values at places of workgroup memory, and copy the lines of the workgroup from there."""
    length = kernel.plan.grid.length
    assert kernel.shared is not None
    pairs = linear_slots(kernel, length, length)
    taken = kernel.shared.rearrange(values, places, [Slot(slot.place) for _, slot in pairs])
    base = _first(kernel)
    for (at, slot), value in zip(pairs, taken, strict=True):
        trace_if(
            slot.conditions,
            lambda at=at, value=value: target.__setitem__(add(base, at), vc.to_dtype(kind, value)),  # type: ignore[misc]
        )


def _first(kernel: LineKernel) -> Any:
    """Return the flat index of the first value of a workgroup."""
    grid = kernel.plan.grid
    return (vc.workgroup_id().x * (grid.lines * grid.length)).to_register()


def conditions_of_thread(kernel: LineKernel, conditions: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the conditions without that of the line: missing lines have a place in workgroup memory too."""
    return tuple(condition for condition in conditions if condition is not kernel.place.active)


def make_staged_kernel(plan: Pass, transform: Transform) -> ShaderFunction:
    """Make the kernel of a transform of contiguous lines, between buffers or in place.

    Several invocations of a line read it directly: what they read twice is cached.
    """
    target = transform.output_type
    assert target is not None

    def body(kernel: LineKernel, *arguments: Any) -> None:
        if plan.split.threads == 1:
            read_staged(kernel, arguments[-1])
        else:
            kernel.read(lambda entry: vc.to_dtype(plan.compute_type, arguments[-1][_flat(kernel, entry)]))
        kernel.transform(transform.inverse)
        if transform.factor != 1:
            kernel.registers.scale(transform.factor)
        write_staged(kernel, arguments[0], target)

    return trace_line_kernel(transform.name, buffer_types(transform), plan, body)


def _flat(kernel: LineKernel, entry: Entry) -> Any:
    return add(hold(add(kernel.place.first, entry.start)), entry.offset)
