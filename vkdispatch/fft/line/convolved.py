"""Bluestein's and Rader's algorithms in one pass, for lengths with large prime factors; see `chirp`."""

from collections.abc import Callable
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import uint32
from vkdispatch.base.record import record
from vkdispatch.fft.line.chirp import chirp_spectrum, chirp_table, conjugate_if, rader_order, rader_spectrum
from vkdispatch.fft.line.staged import conditions_of_thread, read_lines, write_lines
from vkdispatch.fft.plan.indices import add, hold, multiply
from vkdispatch.fft.plan.stages import Stage
from vkdispatch.fft.plan.transforms import Transform
from vkdispatch.fft.trace.ends import Element, Load, Store
from vkdispatch.fft.trace.line_kernel import Entry, LineKernel
from vkdispatch.fft.trace.ops import guard
from vkdispatch.fft.trace.shared import Slot


def trace_bluestein(kernel: LineKernel, load: Load, store: Store, inverse: bool) -> None:
    """Trace Bluestein's algorithm for the lines of a kernel."""
    plan = kernel.plan
    length, padded = plan.grid.length, plan.split.length
    chirp = vc.constant_array(chirp_table(length, plan.compute_type))
    spectrum = vc.constant_array(chirp_spectrum(length, padded, plan.compute_type))

    def multiply_chirp(entry: Entry, value: Any) -> Any:
        return hold(value * hold(conjugate_if(chirp[entry.index], inverse)))

    kernel.read(lambda entry: multiply_chirp(entry, load(element_of(kernel, entry))), length)
    kernel.transform(inverse)
    _multiply(kernel, spectrum, inverse)
    kernel.reverse()
    kernel.transform(not inverse)
    kernel.write(lambda entry, value: store(element_of(kernel, entry), multiply_chirp(entry, value)), length)


@record
class LineBuffers:
    """Buffers of contiguous lines, which workgroups read and write in one piece."""

    source: Any
    target: Any
    transform: Transform


def trace_rader(kernel: LineKernel, ends: tuple[Load, Store] | LineBuffers, inverse: bool) -> None:
    """Trace Rader's algorithm (C. M. Rader, 1968) for the lines of a kernel.

    It permutes the values of a line. Those of contiguous lines are permuted in workgroup memory.
    """
    plan, place = kernel.plan, kernel.place
    prime = plan.grid.length
    first = plan.split.stages[0]
    order = vc.constant_array(rader_order(prime))
    spectrum = vc.constant_array(rader_spectrum(prime, plan.compute_type))
    leader = True if isinstance(place.thread, int) else place.thread == 0
    row = multiply(place.line, prime)

    def element(index: Any) -> Element:
        flat = add(place.first, multiply(index, plan.grid.stride))
        return Element(
            place.outer, place.inner, index, (0, 0) if isinstance(index, int) else (1, prime - 1), flat
        )

    def slots(stage: Stage, index: Callable[[Entry], Any]) -> list[Slot]:
        found = [
            Slot(add(row, index(entry)), conditions_of_thread(kernel, conditions))
            for entry, conditions in kernel.entries(stage)
        ]
        return [*found, Slot(row, () if leader is True else (leader,))]

    def source(entry: Entry) -> Any:
        # idle invocations would read beyond the table
        return order[_within(entry.index, first)].to_register()

    def target(entry: Entry) -> Any:
        # value number m of the convolution is value g^-m of the transform
        index = _within(entry.index, kernel.split.stages[-1])
        if isinstance(index, int):
            return order[(prime - 1 - index) % (prime - 1)]
        return order[vc.select(index == 0, vc.to_dtype(uint32, 0), prime - 1 - index)].to_register()

    if isinstance(ends, LineBuffers):
        *values, zero = read_lines(kernel, ends.source, slots(first, source))
        for number, value in enumerate(values):
            kernel.registers[number] = value
    else:
        load = ends[0]
        zero = vc.new_register(plan.compute_type, var_name="first")
        with guard([place.active, leader]):
            zero[:] = load(element(0))
        kernel.read(lambda entry: load(element(source(entry))))
    kernel.transform(inverse)
    total = hold(kernel.registers[0] + zero)
    _multiply(kernel, spectrum, inverse)
    with guard([leader]):
        kernel.registers[0] = kernel.registers[0] + zero
    kernel.reverse()
    kernel.transform(not inverse)
    if isinstance(ends, LineBuffers):
        last = kernel.split.stages[-1]
        values = [*list(kernel.registers)[: last.registers], total]
        factor, kind = ends.transform.factor, ends.transform.output_type
        assert kind is not None
        values = [value if factor == 1 else hold(value * factor) for value in values]
        write_lines(kernel, values, slots(last, target), ends.target, kind)
        return
    store = ends[1]
    with guard([place.active, leader]):
        store(element(0), total)
    kernel.write(lambda entry, value: store(element(target(entry)), value))


def _within(index: Any, stage: Stage) -> Any:
    return index if stage.is_even or isinstance(index, int) else vc.min(index, stage.length - 1)


def element_of(kernel: LineKernel, entry: Entry) -> Element:
    """Return the value that a register holds."""
    place, stride = kernel.place, kernel.plan.grid.stride
    base = add(place.first, multiply(entry.start, stride))
    base = hold(base)
    return Element(place.outer, place.inner, entry.index, entry.bounds, add(base, entry.offset * stride))


def _multiply(kernel: LineKernel, spectrum: Any, inverse: bool) -> None:
    """Multiply the registers by a spectrum, or for an inverse transform by its conjugate."""
    stage = kernel.plan.split.stages[-1]
    for entry, _ in kernel.entries(stage):
        index = _within(entry.index, stage)
        value = kernel.registers[entry.register]
        kernel.registers[entry.register] = value * hold(conjugate_if(spectrum[index], inverse))
