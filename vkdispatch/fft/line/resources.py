"""The resources of a kernel of one pass while it is traced: plan, place, workgroup memory, registers."""

import copy
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, complex64
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.fft.arguments import parse_axis, parse_shape, require_complex
from vkdispatch.fft.plan.passes import Pass, PassChoices, plan_pass
from vkdispatch.fft.plan.stages import Stage, add, find_prime_factors, hold, multiply
from vkdispatch.fft.trace.line_kernel import Place
from vkdispatch.fft.trace.ops import Line
from vkdispatch.fft.trace.transform import FFTRegisters, SharedLines, guard, move_in_parts


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

    def view_as(self, config: FFTConfig, grid: FFTGridManager) -> "FFTSDataManager":
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

    def view_as(self, config: FFTConfig) -> "FFTResources":
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

    def view_as(self, resources: FFTResources) -> "ContextRegisters":
        """Return the same registers for the stages of another plan."""
        other = copy.copy(self)
        other.resources, other.split = resources, resources.config.plan.split
        return other

    def try_shuffle(self, output_stage: int = -1, input_stage: int = 0) -> bool:
        """Return whether no shuffle is needed between the output of a stage and the input of another."""
        stages = self.resources.config.stages
        return len(stages) == 1 or is_same_order(stages[output_stage], stages[input_stage])
