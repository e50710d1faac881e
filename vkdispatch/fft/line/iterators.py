"""Iterators over the values of an invocation: the body of the loop is traced for each value.

They trace conditions around the steps, so each loop must run to its end.
"""

from collections.abc import Iterator
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.fft.arguments.shapes import SignalRange, parse_range
from vkdispatch.fft.line.resources import ContextRegisters, FFTResources
from vkdispatch.fft.plan.indices import add, hold, multiply
from vkdispatch.fft.trace.ops import (
    GlobalReadOp,
    GlobalTransposedWriteOp,
    GlobalWriteOp,
    Layout,
    MemoryOp,
    Spot,
    guard,
)
from vkdispatch.fft.trace.registers import FFTRegisters


def global_reads_iterator(
    registers: FFTRegisters,
    r2c: bool = False,
    inverse: bool | None = None,
    format_transposed: bool = False,
    inner_only: bool = False,
    signal_range: SignalRange | None = None,
) -> Iterator[GlobalReadOp]:
    """Iterate over the input of the first stage, to read it from buffers.

    Parameters
    ----------
    registers
        The registers of a kernel that `fft_context` traces.
    r2c, inverse
        Whether the buffer is that of a real transform, and the direction of the transform.
    format_transposed
        Whether the buffer has the layout that `transpose` writes.
    inner_only
        Whether it has no axes before the transformed one.
    signal_range
        Start and end of the values that are read; the others are zero.

    Raises
    ------
    ValueError
        `r2c` without `inverse`, or an impossible range.

    Examples
    --------
    >>> with vd.fft.fft_context((4,)) as context:
    ...     source, target = context.declare_shader_args([Buff[c64], Buff[c64]])
    ...     for op in vd.fft.global_reads_iterator(context.registers):
    ...         op.read_from_buffer(source)
    ...     context.execute(inverse=False)
    ...     context.write_to_buffer(target)
    >>> transform = context.get_callable()
    >>> x = vd.asbuffer(np.ones(4, np.complex64))
    >>> y = vd.Buffer((4,), c64)
    >>> transform(x, y)
    >>> y.read(0)
    array([4.+0.j, 0.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    resources = _find_resources(registers)
    between = parse_range(signal_range, resources.config.N)
    if format_transposed:
        spots = _list_transposed_spots(resources, inner_only)
    else:
        spots = _list_spots(resources, 0, _layout(r2c, inverse, inner_only, ("real", "half")))
    for spot in spots:
        register = registers[spot.register_id]
        yield GlobalReadOp(spot, register, r2c, bool(inverse), between, format_transposed)


def global_writes_iterator(
    registers: FFTRegisters, r2c: bool = False, inverse: bool | None = None
) -> Iterator[GlobalWriteOp]:
    """Iterate over the output of the last stage, to write it to buffers.

    Parameters
    ----------
    registers
        The registers of a kernel that `fft_context` traces.
    r2c, inverse
        Whether the buffer is a real transform's: its half spectrum (inverse False) or its reals (True).

    Raises
    ------
    ValueError
        `r2c` without `inverse`.

    Examples
    --------
    >>> with vd.fft.fft_context((4,)) as context:
    ...     source, target = context.declare_shader_args([Buff[c64], Buff[c64]])
    ...     context.read_from_buffer(source)
    ...     context.execute(inverse=False)
    ...     for op in vd.fft.global_writes_iterator(context.registers):
    ...         op.write_to_buffer(target)
    >>> transform = context.get_callable()
    >>> x = vd.asbuffer(np.ones(4, np.complex64))
    >>> y = vd.Buffer((4,), c64)
    >>> transform(x, y)
    >>> y.read(0)
    array([4.+0.j, 0.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    resources = _find_resources(registers)
    layout = _layout(r2c, inverse, False, ("half", "real"))
    limit = resources.config.N // 2 + 1 if layout == "half" else None
    for spot in _list_spots(resources, -1, layout, limit):
        yield GlobalWriteOp(spot, registers[spot.register_id], r2c, bool(inverse))


def global_trasposed_write_iterator(
    registers: FFTRegisters, inner_only: bool = False
) -> Iterator[GlobalTransposedWriteOp]:
    """Iterate over the input of the first stage, to write it in the transposed layout of convolutions.

    `inner_only` leaves out the axes before the transformed one.
    """
    for spot in _list_transposed_spots(_find_resources(registers), inner_only):
        yield GlobalTransposedWriteOp(spot, registers[spot.register_id])


def memory_reads_iterator(resources: FFTResources, stage_index: int = 0) -> Iterator[MemoryOp]:
    """Iterate over the input of a stage; `fft_index` is the position of each value before the stage."""
    for spot in _list_spots(resources, stage_index, "natural"):
        yield MemoryOp(spot)


def memory_writes_iterator(resources: FFTResources, stage_index: int = -1) -> Iterator[MemoryOp]:
    """Iterate over the output of a stage; `fft_index` is the position of each value after the stage."""
    stage = resources.config.stages[stage_index]
    place, line = resources.place, resources.line
    for turn in range(stage.rounds):
        first = stage.first_output(place.thread, turn)
        with guard(_list_conditions(resources, stage_index, turn)):
            for i in range(stage.radix):
                index = add(first, i * stage.previous)
                flat = add(line.first, multiply(index, line.stride))
                yield MemoryOp(_make_spot(resources, stage_index, turn, i, index, (0, line.size - 1), flat))


def _find_resources(registers: FFTRegisters) -> FFTResources:
    if not isinstance(registers, ContextRegisters):
        raise ArgumentTypeError(
            f"registers: expected those of vd.fft.fft_context, got {type(registers).__name__}"
        )
    return registers.resources


def _layout(r2c: bool, inverse: bool | None, inner_only: bool, real: tuple[Layout, Layout]) -> Layout:
    if not r2c:
        return "inner" if inner_only else "natural"
    if inverse is None:
        raise ArgumentValueError("inverse: a real transform (r2c) needs its direction, True or False")
    return real[1] if inverse else real[0]


def _list_conditions(resources: FFTResources, stage_index: int, turn: int) -> list[Any]:
    stage, place = resources.config.stages[stage_index], resources.place
    return [place.active, *stage.conditions(place.thread, turn)]


def _make_spot(
    resources: FFTResources,
    stage_index: int,
    turn: int,
    i: int,
    index: Any,
    bounds: tuple[int, int],
    flat: Any,
) -> Spot:
    stage = resources.config.stages[stage_index]
    return Spot(
        resources.line,
        index,
        bounds,
        flat,
        turn * stage.radix + i,
        stage.registers,
        i,
        stage.radix,
        turn,
        stage.rounds,
    )


def _list_spots(
    resources: FFTResources, stage_index: int, layout: Layout, limit: int | None = None
) -> Iterator[Spot]:
    """Yield the input of a stage at positions below `limit`, in natural order."""
    stage = resources.config.stages[stage_index]
    place, line = resources.place, resources.line
    step = line.step(layout)
    for turn in range(stage.rounds):
        butterfly = stage.butterfly(place.thread, turn)
        base = add(line.origin(layout), multiply(butterfly, step))
        base = hold(base)
        with guard(_list_conditions(resources, stage_index, turn)):
            for i in range(stage.radix):
                bounds = stage.input_bounds(turn, i)
                if limit is not None and bounds[0] >= limit:
                    continue
                index = add(butterfly, i * stage.butterflies)
                flat = add(base, i * stage.butterflies * step)
                below = True if limit is None or bounds[1] < limit else index < limit
                with guard([below]):
                    yield _make_spot(resources, stage_index, turn, i, index, bounds, flat)


def _list_transposed_spots(resources: FFTResources, inner_only: bool) -> Iterator[Spot]:
    """Yield the input of the first stage in the transposed layout of convolutions."""
    stage, grid = resources.config.stages[0], resources.grid
    base, step = grid.transposed_base(stage.registers, inner_only), grid.transposed_step(inner_only)
    base = hold(base)
    for turn in range(stage.rounds):
        butterfly = stage.butterfly(resources.place.thread, turn)
        with guard(_list_conditions(resources, 0, turn)):
            for i in range(stage.radix):
                index, bounds = add(butterfly, i * stage.butterflies), stage.input_bounds(turn, i)
                flat = add(base, (turn * stage.radix + i) * step)
                yield _make_spot(resources, 0, turn, i, index, bounds, flat)
