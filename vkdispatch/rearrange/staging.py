"""The kernel that takes elements along the last axis from rows in workgroup memory.

    x         [ row of `length` ]  read along ->  workgroup memory  ->  element at indices[j]
    result    [ row of `count`  ]  written along ->

Indices jump within a row, so loads of single elements would use only a part of each memory sector. A
workgroup has one row, or several neighbouring rows. Invariants: neighbouring invocations load and store
neighbouring elements, and each row is read once.
"""

import functools
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.record import record
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.sources import Source
from vkdispatch.families.tuning import device_facts, memoize
from vkdispatch.rearrange.indices import resolve_index
from vkdispatch.rearrange.moves import Move, Numbers, pack_numbers
from vkdispatch.rearrange.tuning import staging_tuning as tuning
from vkdispatch.shader.shader_function import ShaderFunction

_MEMORY = 1 << 15
_FEWEST = 32
_MOST_ROWS = 64
_MOST_TAKEN = 1 << 24


@record
class StagedForm:
    """What a kernel is specialised for.

    Attributes
    ----------
    move, indices
        What is moved, and the source of the indices.
    mode, long
        How `resolve_index` finds places.
    along
        Whether every element of the result has its own index.
    rows
        Rows of a workgroup, a power of two.
    group, ahead, memory
        Invocations of a workgroup, the loads that each has in flight, and the bytes of workgroup memory.
    numbers
        The numbers of a launch: `length`, `count`, and `rows` of the array.
    """

    move: Move
    indices: Source
    mode: str
    long: bool
    along: bool
    rows: int
    numbers: Numbers
    group: int
    ahead: int
    memory: int


def plan_staging(
    move: Move, indices: Source, mode: str, long: bool, along: bool, lengths: tuple[int, int, int]
) -> tuple[StagedForm, tuple[int, ...]] | None:
    """Return the form and the numbers of a launch; None if workgroup memory is of no use.

    `lengths` are the rows of the array, their length, and how many elements of each are taken.
    """
    outer, length, count = lengths
    held = move.register_type.item_size
    rows = choose_rows(outer, length, count, held)
    if not rows or (device_facts().is_cpu and not tuning.on_cpus):
        return None
    numbers, values = pack_numbers({"length": length, "count": count, "rows": outer})
    memory = max(1 << 10, 1 << (rows * length * held - 1).bit_length())
    form = StagedForm(
        move=move,
        indices=indices,
        mode=mode,
        long=long,
        along=along,
        rows=rows,
        numbers=numbers,
        group=tuning.group,
        ahead=tuning.ahead,
        memory=memory,
    )
    return form, values


def choose_rows(rows: int, length: int, count: int, held: int) -> int:
    """Return the rows of a workgroup, a power of two; 0 if workgroup memory is of no use."""
    most = _MEMORY // held
    several = tuning.memory // held
    if rows < 2 or not _FEWEST <= length <= most or not length <= 2 * count < _MOST_TAKEN:
        return 0
    together = 1
    while together < _MOST_ROWS and 2 * together * max(length, count) <= several:
        together *= 2
    return together


@memoize
def make_staged_kernel(form: StagedForm) -> ShaderFunction:
    """Trace a kernel; its arguments are those of `form.move`, the indices' and `form.numbers`."""
    move, own, group = form.move, len(form.move.arguments), form.group
    last = own + len(form.indices.names)

    def body(*variables: Any) -> None:
        number = form.numbers.read(variables[last:])
        memory = vc.shared_buffer(move.register_type, form.memory // move.register_type.item_size)
        lane = vc.local_invocation_index()
        first = (vc.workgroup_id().x * form.rows).to_register("first")
        here = vc.min(number["rows"] - first, form.rows).to_register("here")
        length, count = number["length"], number["count"]
        places = functools.partial(form.numbers.value, variables[last:], "length")
        start, size = (first * length).to_register("start"), (here * length).to_register("size")
        with vc.for_block(0, size, group * form.ahead) as begin:
            offsets = [(begin + (lane + step * group)).to_register() for step in range(form.ahead)]
            loaded = [
                move.load(variables[:own], start + vc.min(offset, size - 1)).to_register()
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
                    place = resolve_index(index, places, mode=form.mode, long=form.long, big=False)
                    place = place if row is None else row * length + place
                    move.store(variables[:own], target + offset, memory[place].to_register())

    return trace_kernel(
        "take_from_rows",
        body,
        [
            *move.arguments,
            *form.indices.prefix_parameters("indices"),
            *form.numbers.arguments,
        ],
        group,
        workgroups=f"-(-{form.numbers.text('rows')} // {form.rows})",
    )
