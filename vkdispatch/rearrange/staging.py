"""The kernel that takes elements along the last axis from rows held in workgroup memory.

    x         [ row of `length` ]  read along ->  workgroup memory  ->  element at indices[j]
    result    [ row of `count`  ]  written along ->

Indices jump within a row, so loads of single elements would use a part of each sector of memory only. A
workgroup has one row, or several that lie together. Invariants: every load of the array and every store is of
neighbouring elements by neighbouring invocations, and a row is read once.
"""

import functools
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.facts import device_facts
from vkdispatch.arrays.kernels import trace_kernel
from vkdispatch.arrays.maps.source import Source
from vkdispatch.arrays.memoize import memoize
from vkdispatch.base.record import record
from vkdispatch.rearrange.indices import resolved
from vkdispatch.rearrange.words import Moving, Numbers, numbers_of
from vkdispatch.shader.shader_function import ShaderFunction

_MEMORY = 1 << 15
_FEWEST = 32
_MOST_ROWS = 64
_MOST_TAKEN = 1 << 24


@record
class Tuning:
    """Numbers that were found by measurement.

    Attributes
    ----------
    group
        Invocations of a workgroup.
    ahead
        Loads that an invocation has on their way at a time.
    memory
        Bytes of a workgroup's memory, if several rows go into it.
    processors
        Whether rows are held on processors too, whose caches do that by themselves.
    """

    group: int = 256
    ahead: int = 4
    memory: int = 1 << 14
    processors: bool = False


tuning = Tuning()


@record
class StagedForm:
    """What a kernel is specialised for.

    Attributes
    ----------
    moving, indices
        What is moved, and where indices come from.
    mode, long, along
        How places are found; whether every element of the result has an index of its own.
    rows
        How many rows a workgroup has; a power of two.
    group, ahead, memory
        Its invocations, the loads that each has on their way, and the bytes of its memory.
    numbers
        How lengths are given: `length`, `count`, and `rows` of all.
    """

    moving: Moving
    indices: Source
    mode: str
    long: bool
    along: bool
    rows: int
    numbers: Numbers
    group: int
    ahead: int
    memory: int


def staged_form(
    moving: Moving, indices: Source, mode: str, long: bool, along: bool, lengths: tuple[int, int, int]
) -> tuple[StagedForm, tuple[int, ...]] | None:
    """Return the form for so many rows of a length of which so many are taken, and its numbers.

    None where memory is read as well without.
    """
    outer, length, count = lengths
    held = moving.held.item_size
    rows = staged_rows(outer, length, count, held)
    processor = device_facts().is_cpu
    if not rows or (processor and not tuning.processors):
        return None
    numbers, values = numbers_of({"length": length, "count": count, "rows": outer})
    memory = max(1 << 10, 1 << (rows * length * held - 1).bit_length())
    form = StagedForm(moving, indices, mode, long, along, rows, numbers, tuning.group, tuning.ahead, memory)
    return form, values


def staged_rows(rows: int, length: int, count: int, held: int) -> int:
    """Return how many rows a workgroup has, a power of two; 0 where memory is read as well without."""
    most = _MEMORY // held
    several = tuning.memory // held
    if rows < 2 or not _FEWEST <= length <= most or not length <= 2 * count < _MOST_TAKEN:
        return 0
    together = 1
    while together < _MOST_ROWS and 2 * together * max(length, count) <= several:
        together *= 2
    return together


@memoize
def staged_kernel(form: StagedForm) -> ShaderFunction:
    """Trace a kernel; its arguments are those of `form.moving`, the indices' and `form.numbers`."""
    moving, own, group = form.moving, len(form.moving.arguments), form.group
    last = own + len(form.indices.names)

    def body(*variables: Any) -> None:
        number = form.numbers.read(variables[last:])
        memory = vc.shared_buffer(moving.held, form.memory // moving.held.item_size)
        lane = vc.local_invocation_index()
        first = (vc.workgroup_id().x * form.rows).to_register("first")
        here = vc.min(number["rows"] - first, form.rows).to_register("here")
        length, count = number["length"], number["count"]
        places = functools.partial(form.numbers.value, variables[last:], "length")
        start, size = (first * length).to_register("start"), (here * length).to_register("size")
        with vc.for_block(0, size, group * form.ahead) as begin:
            offsets = [(begin + (lane + step * group)).to_register() for step in range(form.ahead)]
            loaded = [
                moving.load(variables[:own], start + vc.min(offset, size - 1)).to_register()
                for offset in offsets
            ]
            for offset, value in zip(offsets, loaded, strict=True):
                with vc.if_block(offset < size):
                    memory[offset] = value
        vc.barrier()
        target, wanted = (first * count).to_register("target"), (here * count).to_register("wanted")
        with vc.for_block(0, wanted, group * form.ahead) as begin:
            offsets = [(begin + (lane + step * group)).to_register() for step in range(form.ahead)]
            rows = [(offset // count).to_register() if form.rows > 1 else None for offset in offsets]
            found = []
            for offset, row in zip(offsets, rows, strict=True):
                safe = vc.min(offset, wanted - 1)
                if form.along:
                    at = target + safe
                else:
                    at = safe if row is None else vc.min(offset - row * count, count - 1)
                index = form.indices.value(variables[own:last], at.to_register())
                found.append(index.to_register())
            for offset, row, index in zip(offsets, rows, found, strict=True):
                with vc.if_block(offset < wanted):
                    place = resolved(index, places, mode=form.mode, long=form.long, big=False)
                    place = place if row is None else row * length + place
                    moving.store(variables[:own], target + offset, memory[place].to_register())

    return trace_kernel(
        "take_from_rows",
        body,
        [
            *moving.arguments,
            *zip((f"indices_{name}" for name in form.indices.names), form.indices.annotations, strict=True),
            *form.numbers.arguments,
        ],
        group,
        workgroups=f"-(-{form.numbers.text('rows')} // {form.rows})",
    )
