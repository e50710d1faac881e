"""Kernels of transforms that the user's code traces step by step: read, transform, write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, complex64
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.fft.arguments import SignalRange, parse_map, parse_range
from vkdispatch.fft.line.resources import ContextRegisters, FFTConfig, FFTResources
from vkdispatch.fft.plan.passes import Pass
from vkdispatch.fft.plan.stages import add, hold, multiply
from vkdispatch.fft.plan.tuning import tuning
from vkdispatch.fft.trace import ops
from vkdispatch.fft.trace.io import IOProxy, LongMap
from vkdispatch.fft.trace.transform import FFTRegisters, guard, transform
from vkdispatch.shader.map import MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction

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
