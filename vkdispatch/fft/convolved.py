"""Kernels of one pass for lengths with large prime factors; see `chirp`."""

from collections.abc import Callable
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, uint32
from vkdispatch.fft.chirp import (
    chirp_spectrum,
    chirp_table,
    conjugated,
    padded_length,
    rader_order,
    rader_spectrum,
    suits_rader,
)
from vkdispatch.fft.config import Pass, plan_pass
from vkdispatch.fft.lines import Entry, LineKernel, linear_slots
from vkdispatch.fft.ops import guard
from vkdispatch.fft.passes import Element, Load, Store
from vkdispatch.fft.radix import held
from vkdispatch.fft.shared import Slot, guarded
from vkdispatch.fft.stages import plus, times


def plan_convolved(shape: tuple[int, ...], axis: int, compute_type: DType) -> tuple[Pass, bool] | None:
    """Plan a kernel of one pass, and say whether it is Rader's; None where a workgroup cannot hold a line."""
    length = shape[axis]
    if suits_rader(length):
        plan = plan_pass(shape, axis, compute_type, length=length - 1, whole=True)
        if plan is not None:
            return plan, True
    plan = plan_pass(shape, axis, compute_type, length=padded_length(length), whole=True)
    return None if plan is None else (plan, False)


def trace_bluestein(kernel: LineKernel, load: Load, store: Store, inverse: bool) -> None:
    """Trace Bluestein's algorithm for the lines of a kernel."""
    plan = kernel.plan
    length, padded = plan.grid.length, plan.split.length
    chirp = vc.constant_array(chirp_table(length, plan.compute_type))
    spectrum = vc.constant_array(chirp_spectrum(length, padded, plan.compute_type))

    def chirped(entry: Entry, value: Any) -> Any:
        return held(value * held(conjugated(chirp[entry.index], inverse)))

    kernel.read(lambda entry: chirped(entry, load(element_of(kernel, entry))), length)
    kernel.transform(inverse)
    _multiply(kernel, spectrum, inverse)
    kernel.back()
    kernel.transform(not inverse)
    kernel.write(lambda entry, value: store(element_of(kernel, entry), chirped(entry, value)), length)


def trace_rader(
    kernel: LineKernel, load: Load, store: Store, inverse: bool, direct: Callable[[Any, Any], None] | None
) -> None:
    """Trace Rader's algorithm (C. M. Rader, 1968) for the lines of a kernel.

    `direct` stores a value at a place counted from the workgroup's first value: where it is given, values are
    brought into order in workgroup memory.
    """
    plan, place = kernel.plan, kernel.place
    prime = plan.grid.length
    order = vc.constant_array(rader_order(prime))
    spectrum = vc.constant_array(rader_spectrum(prime, plan.compute_type))
    stages = plan.split.stages
    zero = vc.new_register(plan.compute_type, var_name="first")
    leader = place.thread == 0 if not isinstance(place.thread, int) else True
    with guard([place.active, leader]):
        zero[:] = load(Element(place.outer, place.inner, 0, (0, 0), place.first))

    def at(entry: Entry) -> Element:
        index = order[entry.index].to_register()
        return Element(
            place.outer, place.inner, index, (1, prime - 1), plus(place.first, times(index, plan.grid.stride))
        )

    kernel.read(lambda entry: load(at(entry)))
    kernel.transform(inverse)
    total = held(kernel.registers[0] + zero)
    _multiply(kernel, spectrum, inverse)
    with guard([leader]):
        kernel.registers[0] = kernel.registers[0] + zero
    kernel.back()
    kernel.transform(not inverse)
    # the convolution's value number m is the transform's at g^-m
    last = stages[-1]

    def target(entry: Entry) -> Any:
        if isinstance(entry.index, int):
            return order[(prime - 1 - entry.index) % (prime - 1)]
        turned = prime - 1 - entry.index
        return order[vc.select(entry.index == 0, vc.to_dtype(uint32, 0), turned)]

    if direct is None:
        with guard([place.active, leader]):
            store(Element(place.outer, place.inner, 0, (0, 0), place.first), total)

        def put(entry: Entry, value: Any) -> None:
            index = target(entry).to_register()
            flat = plus(place.first, times(index, plan.grid.stride))
            store(Element(place.outer, place.inner, index, (1, prime - 1), flat), value)

        kernel.write(put)
        return
    assert kernel.shared is not None
    row = times(place.line, prime)
    entries = kernel.entries(last)
    own = [tuple(c for c in conditions if c is not place.active) for _, conditions in entries]
    places = [
        Slot(plus(row, target(entry)), conditions)
        for (entry, _), conditions in zip(entries, own, strict=True)
    ]
    places.append(Slot(row, () if leader is True else (leader,)))
    values = [*(kernel.registers[entry.register] for entry, _ in entries), total]
    pairs = linear_slots(kernel, prime, prime)
    taken = kernel.shared.rearrange(values, places, [slot for _, slot in pairs])
    for (at_, slot), value in zip(pairs, taken, strict=True):
        guarded(slot.conditions, lambda a=at_, v=value: direct(a, v))  # type: ignore[misc]


def element_of(kernel: LineKernel, entry: Entry) -> Element:
    """What a register of a kernel of one pass stands for."""
    place, stride = kernel.place, kernel.plan.grid.stride
    base = plus(place.first, times(entry.start, stride))
    base = base if isinstance(base, int) else base.to_register()
    return Element(place.outer, place.inner, entry.index, entry.bounds, plus(base, entry.offset * stride))


def _multiply(kernel: LineKernel, spectrum: Any, inverse: bool) -> None:
    """Multiply by a spectrum, its conjugate mirrored for the other direction."""
    stage = kernel.plan.split.stages[-1]
    for entry, _ in kernel.entries(stage):
        index = entry.index
        if not stage.even and not isinstance(index, int):
            index = vc.min(index, stage.length - 1)
        value = kernel.registers[entry.register]
        kernel.registers[entry.register] = value * held(conjugated(spectrum[index], inverse))
