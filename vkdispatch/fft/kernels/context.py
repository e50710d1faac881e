"""Kernels of transforms that the user's code traces step by step: read, transform, write."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, complex64
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.fft.arguments import (
    SignalRange,
    parse_axis,
    parse_map,
    parse_range,
    parse_shape,
    require_complex,
)
from vkdispatch.fft.plan.passes import Pass, PassChoices, plan_pass
from vkdispatch.fft.plan.stages import Stage, add, find_prime_factors, hold, multiply
from vkdispatch.fft.plan.tuning import tuning
from vkdispatch.fft.trace import ops
from vkdispatch.fft.trace.line_kernel import Place
from vkdispatch.fft.trace.ops import IOProxy, Line, LongMap
from vkdispatch.fft.trace.transform import FFTRegisters, SharedLines, guard, move_in_parts, transform
from vkdispatch.shader.map import MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction


class FFTConfig:
    """The plan of transforms along an axis in one pass.

    Attributes
    ----------
    buffer_shape, axis, compute_type
        As given; the axis counted from the front.
    N
        Values of a line.
    register_count
        Complex values that an invocation holds.
    stages
        The stages, in order; see `Stage`.
    thread_counts
        For each stage, the invocations of a line that have work.
    fft_stride
        Distance of neighbouring values of a line.
    batch_outer_stride, batch_outer_count, batch_inner_count
        Values along the transformed axis and those behind it; lines along the axes before and behind it.
    batch_threads
        Invocations of a line.
    """

    def __init__(
        self,
        buffer_shape: int | Sequence[int],
        axis: int | None = None,
        max_register_count: int | None = None,
        compute_type: DType = complex64,
        *,
        plan: Pass | None = None,
    ) -> None:
        """Plan a pass.

        Raises
        ------
        ValueError
            `compute_type` is not complex, or one workgroup cannot hold a line of that length.
        AxisError
            There is no such axis.
        """
        require_complex(compute_type, "compute_type")
        self.buffer_shape = parse_shape(buffer_shape)
        self.axis = parse_axis(axis, len(self.buffer_shape))
        self.compute_type = compute_type
        self.N = self.buffer_shape[self.axis]
        if max_register_count is not None and max_register_count < 1:
            raise ArgumentValueError(f"max_register_count: expected at least 1, got {max_register_count}")
        plan = plan or plan_pass(self.buffer_shape, self.axis, compute_type, PassChoices(max_register_count))
        if plan is None:
            raise ArgumentValueError(
                f"buffer_shape: no workgroup of this device transforms lines of {self.N} {compute_type.name} "
                f"at once; see vd.fft.pad_dim"
            )
        self.plan = plan
        self.stages = plan.split.stages
        self.register_count = plan.split.registers
        self.thread_counts = tuple(min(stage.butterflies, stage.threads) for stage in self.stages)
        self.fft_stride = plan.grid.stride
        self.batch_outer_stride = plan.grid.length * plan.grid.stride
        self.batch_outer_count = plan.grid.outer
        self.batch_inner_count = plan.grid.inner
        self.batch_threads = plan.split.threads

    @property
    def max_prime_radix(self) -> int:
        """Largest prime factor of N."""
        return max(find_prime_factors(self.N), default=1)

    @property
    def sdata_allocation(self) -> int:
        """Elements of shared memory; 0 if none is needed."""
        return self.plan.layout.elements if self.plan.layout else 0

    @property
    def sdata_row_size(self) -> int:
        """Values of a line that are in shared memory at once."""
        return self.N // (self.plan.layout.chunks if self.plan.layout else 1)

    @property
    def sdata_row_size_padded(self) -> int:
        """Distance of two lines in shared memory."""
        return self.plan.layout.row if self.plan.layout else self.sdata_row_size


class FFTGridManager:
    """The distribution of lines among invocations.

    Attributes
    ----------
    local_size, workgroups
        Sizes of the launch.
    place
        The place of the invocation; see `Place`.
    line
        The line of the invocation.
    """

    def __init__(self, config: FFTConfig) -> None:
        grid = config.plan.grid
        self._grid = grid
        self.local_size = grid.local_size
        self.workgroups = (grid.workgroups, 1, 1)
        self.place = Place(grid)
        place = self.place
        self.line = Line(grid.length, grid.stride, place.first, place.inner, place.line_number)

    def transposed_base(self, registers: int, inner_only: bool) -> Any:
        """Return where the values of an invocation begin in the transposed layout of convolutions."""
        grid, place = self._grid, self.place
        if inner_only and not grid.is_interleaved:
            return place.thread
        group: Any = vc.workgroup_id().x
        if inner_only:
            group = group % grid.blocks if grid.blocks > 1 else 0
        x, y = (place.line, place.thread) if grid.is_interleaved else (place.thread, place.line)
        number = add(x, multiply(y, grid.width))
        return add(multiply(group, registers * grid.lines * grid.threads), number)

    def transposed_step(self, inner_only: bool) -> int:
        """Return the distance of the values of an invocation in that layout."""
        grid = self._grid
        return grid.threads if inner_only and not grid.is_interleaved else grid.lines * grid.threads


def transposed_size(plan: Pass) -> int:
    """Return the elements of the transposed layout of convolutions."""
    grid = plan.grid
    return grid.workgroups * grid.lines * grid.threads * plan.split.stages[0].registers


class FFTSDataManager:
    """Shared memory of a transform.

    Attributes
    ----------
    lines
        Lines in shared memory, or None if the transform needs none.
    """

    def __init__(self, config: FFTConfig, grid: FFTGridManager, least: int = 0) -> None:
        plan = config.plan
        self.stages = plan.split.stages
        self.thread = grid.place.thread
        self.lines: SharedLines | None = None
        if plan.layout is not None:
            line = grid.place.line
            self.lines = SharedLines(plan.layout, plan.split, config.compute_type, line, least)

    def view_as(self, config: FFTConfig, grid: FFTGridManager) -> FFTSDataManager:
        """Return the same memory for the stages of another plan."""
        other = copy.copy(self)
        other.stages = config.stages
        if self.lines is not None and config.plan.layout is not None:
            other.lines = self.lines.view_as(config.plan.layout, grid.place.line)
        return other

    def shuffle(self, registers: FFTRegisters, output_stage: int = -1, input_stage: int = 0) -> None:
        """Move the output of a stage to where another stage reads its input."""
        source, target = self.stages[output_stage], self.stages[input_stage]
        if self.lines is None or is_same_order(source, target):
            return
        values = move_in_parts(
            list(registers)[: source.registers],
            self.lines.layout.parts,
            lambda part: self._move_part(part, source, target),
        )
        for index, value in enumerate(values):
            registers[index] = value

    def _move_part(self, values: list[Any], source: Stage, target: Stage) -> list[Any]:
        """Exchange values, or their real or imaginary parts, piece by piece of the line.

        Unlike in `SharedLines.exchange`, the target may be any stage, also the first.
        """
        lines = self.lines
        assert lines is not None
        layout, thread = lines.layout, self.thread
        piece = layout.length // layout.chunks
        taken = [vc.new_register(values[0].var_type) for _ in range(target.registers)]
        for chunk in range(layout.chunks):
            first, last = chunk * piece, (chunk + 1) * piece - 1
            lines.wait_for_readers()
            for turn in range(source.rounds):
                start = hold(source.first_output(thread, turn))
                with guard(source.conditions(thread, turn)):
                    for i in range(source.radix):
                        position = add(start, i * source.previous)
                        bounds = source.output_bounds(turn, i)
                        if bounds[1] < first or bounds[0] > last:
                            continue
                        with guard(_conditions_inside(position, bounds, first, last)):
                            place = add(lines.row, layout.place_of(add(position, -first)))
                            lines.array[place] = values[turn * source.radix + i]
            vc.barrier()
            for turn in range(target.rounds):
                with guard(target.conditions(thread, turn)):
                    for i in range(target.radix):
                        bounds = target.input_bounds(turn, i)
                        if bounds[1] < first or bounds[0] > last:
                            continue
                        position = add(target.butterfly(thread, turn), i * target.butterflies)
                        with guard(_conditions_inside(position, bounds, first, last)):
                            place = add(lines.row, layout.place_of(add(position, -first)))
                            taken[turn * target.radix + i][:] = lines.array[place]
        return taken


def _conditions_inside(position: Any, bounds: tuple[int, int], first: int, last: int) -> list[Any]:
    """Return the conditions under which a position within bounds is in a piece of the line."""
    conditions = []
    if bounds[0] < first:
        conditions.append(position >= first)
    if bounds[1] > last:
        conditions.append(position <= last)
    return conditions


def is_same_order(source: Stage, target: Stage) -> bool:
    """Whether the output of a stage is in the registers from which another stage reads its input."""
    return source.radix == target.radix and source.previous == target.butterflies


class FFTResources:
    """The resources: `config`, `grid`, `sdata`, and the `place` and `line` of the invocation."""

    def __init__(self, config: FFTConfig, least: int = 0) -> None:
        self.config = config
        self.grid = FFTGridManager(config)
        self.sdata = FFTSDataManager(config, self.grid, least)
        self.place = self.grid.place
        self.line = self.grid.line

    def view_as(self, config: FFTConfig) -> FFTResources:
        """Return the same resources for another plan of the same lines and invocations."""
        other = copy.copy(self)
        other.config, other.sdata = config, self.sdata.view_as(config, self.grid)
        return other


class ContextRegisters(FFTRegisters):
    """Registers that know which kernel they belong to."""

    def __init__(self, resources: FFTResources, name: str = "register", count: int | None = None) -> None:
        config = resources.config
        super().__init__(config.plan.split, config.compute_type, name, count)
        self.resources = resources

    def view_as(self, resources: FFTResources) -> ContextRegisters:
        """Return the same registers for the stages of another plan."""
        other = copy.copy(self)
        other.resources, other.split = resources, resources.config.plan.split
        return other

    def try_shuffle(self, output_stage: int = -1, input_stage: int = 0) -> bool:
        """Return whether no shuffle is needed between the output of a stage and the input of another."""
        stages = self.resources.config.stages
        return len(stages) == 1 or is_same_order(stages[output_stage], stages[input_stage])


# ---- Iterators over the values of an invocation: the body of the loop is traced for each value -----------
#
# They trace conditions around the steps, so each loop must run to its end.


def global_reads_iterator(
    registers: FFTRegisters,
    r2c: bool = False,
    inverse: bool | None = None,
    format_transposed: bool = False,
    inner_only: bool = False,
    signal_range: SignalRange | None = None,
) -> Iterator[ops.GlobalReadOp]:
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
        yield ops.GlobalReadOp(spot, register, r2c, bool(inverse), between, format_transposed)


def global_writes_iterator(
    registers: FFTRegisters, r2c: bool = False, inverse: bool | None = None
) -> Iterator[ops.GlobalWriteOp]:
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
        yield ops.GlobalWriteOp(spot, registers[spot.register_id], r2c, bool(inverse))


def global_trasposed_write_iterator(
    registers: FFTRegisters, inner_only: bool = False
) -> Iterator[ops.GlobalTransposedWriteOp]:
    """Iterate over the input of the first stage, to write it in the transposed layout of convolutions.

    `inner_only` leaves out the axes before the transformed one.
    """
    for spot in _list_transposed_spots(_find_resources(registers), inner_only):
        yield ops.GlobalTransposedWriteOp(spot, registers[spot.register_id])


def memory_reads_iterator(resources: FFTResources, stage_index: int = 0) -> Iterator[ops.MemoryOp]:
    """Iterate over the input of a stage; `fft_index` is the position of each value before the stage."""
    for spot in _list_spots(resources, stage_index, "natural"):
        yield ops.MemoryOp(spot)


def memory_writes_iterator(resources: FFTResources, stage_index: int = -1) -> Iterator[ops.MemoryOp]:
    """Iterate over the output of a stage; `fft_index` is the position of each value after the stage."""
    stage = resources.config.stages[stage_index]
    place, line = resources.place, resources.line
    for turn in range(stage.rounds):
        first = stage.first_output(place.thread, turn)
        with guard(_list_conditions(resources, stage_index, turn)):
            for i in range(stage.radix):
                index = add(first, i * stage.previous)
                flat = add(line.first, multiply(index, line.stride))
                yield ops.MemoryOp(
                    _make_spot(resources, stage_index, turn, i, index, (0, line.size - 1), flat)
                )


def _find_resources(registers: FFTRegisters) -> FFTResources:
    if not isinstance(registers, ContextRegisters):
        raise ArgumentTypeError(
            f"registers: expected those of vd.fft.fft_context, got {type(registers).__name__}"
        )
    return registers.resources


def _layout(
    r2c: bool, inverse: bool | None, inner_only: bool, real: tuple[ops.Layout, ops.Layout]
) -> ops.Layout:
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
) -> ops.Spot:
    line, stage = resources.line, resources.config.stages[stage_index]
    number = turn * stage.radix + i
    return ops.Spot(line, index, bounds, flat, number, stage.registers, i, stage.radix, turn, stage.rounds)


def _list_spots(
    resources: FFTResources, stage_index: int, layout: ops.Layout, limit: int | None = None
) -> Iterator[ops.Spot]:
    """Yield the input of a stage at positions below `limit`, in natural order."""
    stage = resources.config.stages[stage_index]
    place, line = resources.place, resources.line
    step = line.step(layout)
    for turn in range(stage.rounds):
        butterfly = stage.butterfly(place.thread, turn)
        base = hold(add(line.origin(layout), multiply(butterfly, step)))
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


def _list_transposed_spots(resources: FFTResources, inner_only: bool) -> Iterator[ops.Spot]:
    """Yield the input of the first stage in the transposed layout of convolutions."""
    stage, grid = resources.config.stages[0], resources.grid
    base = hold(grid.transposed_base(stage.registers, inner_only))
    step = grid.transposed_step(inner_only)
    for turn in range(stage.rounds):
        butterfly = stage.butterfly(resources.place.thread, turn)
        with guard(_list_conditions(resources, 0, turn)):
            for i in range(stage.radix):
                index, bounds = add(butterfly, i * stage.butterflies), stage.input_bounds(turn, i)
                flat = add(base, (turn * stage.radix + i) * step)
                yield _make_spot(resources, 0, turn, i, index, bounds, flat)


class FFTContext:
    """A kernel that is being traced; see `fft_context`.

    Attributes
    ----------
    config
        The plan; see `FFTConfig`.
    grid, sdata, resources
        The place of the invocation, shared memory, and both with the plan.
    registers
        The part of the line that the invocation holds.
    name
        Name of the kernel.
    shader_context
        The trace, as returned by `vc.shader_context`.
    """

    def __init__(
        self,
        config: FFTConfig,
        shader_context: vc.ShaderContext,
        name: str | None,
        least: int = 0,
        most: int | None = None,
    ) -> None:
        self.config = config
        self._least = least
        self._most = most
        self.shader_context = shader_context
        self.name = name or f"fft_{'x'.join(map(str, config.buffer_shape))}_axis{config.axis}"
        self._resources: FFTResources | None = None
        self._registers: ContextRegisters | None = None
        self._declared = False
        self._callable: ShaderFunction | None = None

    # -- created on first use, so that arguments come first in the generated code

    @property
    def resources(self) -> FFTResources:
        """Place, line and shared memory."""
        if self._resources is None:
            self._resources = FFTResources(self.config, self._least)
        return self._resources

    @property
    def grid(self) -> Any:
        """The place of the invocation; see `FFTGridManager`."""
        return self.resources.grid

    @property
    def sdata(self) -> Any:
        """Shared memory; see `FFTSDataManager`."""
        return self.resources.sdata

    @property
    def registers(self) -> ContextRegisters:
        """The part of the line that the invocation holds."""
        if self._registers is None:
            self._registers = ContextRegisters(self.resources)
        return self._registers

    # -- arguments

    def declare_shader_args(self, types: Sequence[Any]) -> list[Any]:
        """Declare the kernel's arguments by their annotations, and return the variables.

        Raises ValueError if arguments are declared already, by this method or by `make_io_manager`.
        """
        self._declare_once()
        return self.shader_context.declare_input_arguments(list(types))

    def make_io_manager(
        self,
        output_map: MappingFunction | None,
        output_type: DType | None = complex64,
        input_type: DType | None = None,
        input_map: MappingFunction | None = None,
        kernel_map: MappingFunction | DType | None = None,
        *,
        separate: bool = False,
    ) -> IOManager:
        """Declare the arguments of a transform: output, input, kernel.

        Parameters
        ----------
        output_map, output_type
            The map that writes, or the complex type of the output buffer.
        input_type, input_map
            The map that reads, or the complex type of the input buffer (None: `output_type`). Without
            maps, one buffer is read and written.
        kernel_map
            The map that changes the spectrum, or the complex type of a kernel's buffer.
        separate
            Whether there are two buffers even without maps.

        Raises
        ------
        ValueError
            A type is not complex, or arguments are declared already.
        TypeError
            A map is not a mapping function.
        """
        output = IOProxy(parse_map(output_map, "output_map") or output_type, "output")
        has_two_sides = separate or output_map is not None or input_map is not None
        read_type = input_type or output_type or complex64
        read = IOProxy(parse_map(input_map, "input_map") or read_type, "input") if has_two_sides else output
        kernel = IOProxy(kernel_map, "kernel")
        self._declare_once()
        sides = [output, read, kernel] if has_two_sides else [output, kernel]
        annotations, names = [], []
        for side in sides:
            annotations += side.buffer_types
            count = len(side.buffer_types)
            names += [side.name] if count == 1 else [f"{side.name}{i}" for i in range(count)]
        variables = self.shader_context.declare_input_arguments(annotations, names)
        for side in sides:
            count = len(side.buffer_types)
            side.bind(variables[:count])
            side.most = self._most
            variables = variables[count:]
        return IOManager(self, output, read, kernel)

    def _declare_once(self) -> None:
        if self._declared:
            raise ArgumentValueError("the arguments of this transform are already declared")
        self._declared = True

    # -- steps

    def execute(self, inverse: bool, registers: ContextRegisters | None = None) -> None:
        """Transform the registers, unnormalized.

        Before the call they hold the input of the first stage, and after it the output of the last.
        """
        registers = registers or self.registers
        resources = registers.resources
        transform(registers, resources.sdata.lines, resources.place.thread, bool(inverse))

    def register_shuffle(
        self, registers: FFTRegisters | None = None, output_stage: int = -1, input_stage: int = 0
    ) -> None:
        """Move the output of a stage to where another stage reads its input.

        It is needed between a forward and an inverse transform. It does nothing if the positions are equal.
        """
        self.resources.sdata.shuffle(registers or self.registers, output_stage, input_stage)

    def allocate_registers(self, name: str, count: int | None = None) -> ContextRegisters:
        """Return another set of registers, by default as many as a line needs."""
        return ContextRegisters(self.resources, name, count)

    def reads_iter(
        self,
        r2c: bool = False,
        inverse: bool | None = None,
        format_transposed: bool = False,
        inner_only: bool = False,
        signal_range: SignalRange | None = None,
    ) -> Iterator[ops.GlobalReadOp]:
        """Iterate over the reads into `registers`; see `global_reads_iterator`."""
        return global_reads_iterator(
            self.registers, r2c, inverse, format_transposed, inner_only, signal_range
        )

    def writes_iter(self, r2c: bool = False, inverse: bool | None = None) -> Iterator[ops.GlobalWriteOp]:
        """Iterate over the writes out of `registers`; see `global_writes_iterator`."""
        return global_writes_iterator(self.registers, r2c, inverse)

    def read_from_buffer(
        self,
        buffer: Any,
        r2c: bool = False,
        inverse: bool | None = None,
        format_transposed: bool = False,
        inner_only: bool = False,
        signal_range: SignalRange | None = None,
    ) -> None:
        """Read the line from a buffer into `registers`; see `global_reads_iterator` for the arguments."""
        for op in self.reads_iter(r2c, inverse, format_transposed, inner_only, signal_range):
            op.read_from_buffer(buffer)

    def write_to_buffer(self, buffer: Any, r2c: bool = False, inverse: bool | None = None) -> None:
        """Write `registers` to a buffer; see `global_writes_iterator` for the arguments."""
        for op in self.writes_iter(r2c, inverse):
            op.write_to_buffer(buffer)

    # -- the result

    def _finish(self) -> None:
        description = self.shader_context.get_description(self.name)
        grid = self.resources.grid
        self._callable = ShaderFunction(description, grid.local_size, grid.workgroups)

    def get_callable(self) -> ShaderFunction:
        """Return the kernel. Raises ValueError before the block has ended."""
        if self._callable is None:
            raise ArgumentValueError("get_callable: the fft_context block has not ended yet")
        return self._callable


class IOManager:
    """The buffers or maps of a transform; see `FFTContext.make_io_manager`.

    Attributes
    ----------
    output_proxy, input_proxy, kernel_proxy
        The sides; see `IOProxy`.
    """

    def __init__(self, context: FFTContext, output: IOProxy, read: IOProxy, kernel: IOProxy) -> None:
        self._context = context
        self.output_proxy = output
        self.input_proxy = read
        self.kernel_proxy = kernel

    def read_input(
        self,
        registers: FFTRegisters | None = None,
        r2c: bool = False,
        inverse: bool | None = None,
        signal_range: SignalRange | None = None,
    ) -> None:
        """Read the line into registers (None: the context's own); see `global_reads_iterator`."""
        registers = registers or self._context.registers
        for op in global_reads_iterator(registers, r2c, inverse, signal_range=signal_range):
            self.input_proxy.read(op)

    def write_output(
        self, registers: FFTRegisters | None = None, r2c: bool = False, inverse: bool | None = None
    ) -> None:
        """Write registers (None: the context's own); see `global_writes_iterator`."""
        for op in global_writes_iterator(registers or self._context.registers, r2c, inverse):
            self.output_proxy.write(op)

    def read_kernel(
        self, registers: FFTRegisters | None = None, format_transposed: bool = False, inner_only: bool = False
    ) -> None:
        """Read the kernel into registers, or call the kernel map for them."""
        registers = registers or self._context.registers
        for op in global_reads_iterator(
            registers, format_transposed=format_transposed, inner_only=inner_only
        ):
            self.kernel_proxy.read(op)


def trace_for_maps(
    trace: Callable[[Pass, int | None], ShaderFunction], plan: Pass, fewer: Pass
) -> ShaderFunction:
    """Trace a kernel by a plan, or by one of fewer registers if its maps are long.

    `trace` gets a plan, and the statements that a map may have.
    """
    if fewer is not plan:
        with suppress(LongMap):
            return trace(plan, tuning.long_map // plan.split.registers)
    return trace(fewer, None)


@contextmanager
def fft_context(
    buffer_shape: int | Sequence[int],
    axis: int | None = None,
    max_register_count: int | None = None,
    compute_type: DType = complex64,
    name: str | None = None,
    *,
    plan: Pass | None = None,
    least: int = 0,
    most: int | None = None,
) -> Iterator[FFTContext]:
    """Trace a kernel of lines along an axis; after the block, `get_callable` returns it.

    Parameters
    ----------
    buffer_shape, axis
        The shape, and the axis of the lines (default: the last).
    max_register_count
        Complex values that an invocation may hold, approximately.
    compute_type
        The registers' complex type.
    name
        Name of the kernel.
    plan
        The plan of the pass, if it exists.
    least
        Minimum number of elements in shared memory.
    most
        The statements that a map may have; `LongMap` is raised for one that has more. None: any number.

    Raises
    ------
    ValueError
        `compute_type` is not complex, or one workgroup cannot hold such a line.
    AxisError
        There is no such axis.
    RuntimeError
        A kernel is being traced already.

    Examples
    --------
    >>> with vd.fft.fft_context((4,)) as context:
    ...     source, target = context.declare_shader_args([Buff[c64], Buff[c64]])
    ...     context.read_from_buffer(source)
    ...     context.execute(inverse=False)
    ...     context.write_to_buffer(target)
    >>> transform = context.get_callable()
    >>> x = vd.asbuffer(np.ones(4, np.complex64))
    >>> y = vd.Buffer((4,), c64)
    >>> transform(x, y)
    >>> y.read(0)
    array([4.+0.j, 0.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    config = FFTConfig(buffer_shape, axis, max_register_count, compute_type, plan=plan)
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as shader:
        context = FFTContext(config, shader, name, least, most)
        yield context
        context._finish()
