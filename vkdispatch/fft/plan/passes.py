"""Plans of kernels that transform lines in one pass: grids, workgroup memory, real transforms."""

import dataclasses
import math
from typing import Any

from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType, complex64, complex128
from vkdispatch.base.record import record, replace
from vkdispatch.families.tuning import device_facts
from vkdispatch.fft.plan.planner import find_planner
from vkdispatch.fft.plan.stages import (
    LARGEST_PRIME,
    Split,
    choose_fewest,
    choose_padded_length,
    choose_split,
    is_rader_length,
)
from vkdispatch.fft.plan.tuning import tuning
from vkdispatch.shader.map import MappingFunction

# ---- What a transform is: the key of its kernels ---------------------------------------------------------


@record
class Transform:
    """A transform along one axis: everything that its kernels depend on but the device.

    Attributes
    ----------
    shape, axis
        Shape of the data, of the reals if `r2c`; the axis counts from the front.
    compute_type
        Complex type of the computation.
    inverse, normalize, r2c
        Direction, whether an inverse transform is divided by the length, whether it is a real transform.
    input_map, output_map
        Maps that read and write, or None.
    input_type, output_type
        Complex types of the buffers, or None if there is a map.
    signal_range
        Start and end of the values that are read, or None.
    separate
        Whether there are two buffers even without maps.
    kernel_index
        What `mapped_kernel_index` returns in the maps.
    scale
        Factor of the result, besides the normalization.
    """

    shape: tuple[int, ...]
    axis: int
    compute_type: DType
    inverse: bool = False
    normalize: bool = True
    r2c: bool = False
    input_map: MappingFunction | None = None
    output_map: MappingFunction | None = None
    input_type: DType | None = None
    output_type: DType | None = None
    signal_range: tuple[int, int] | None = None
    separate: bool = False
    kernel_index: int | None = None
    scale: float = 1.0

    @property
    def length(self) -> int:
        """Values of a line."""
        return self.shape[self.axis]

    @property
    def is_mapped(self) -> bool:
        """Whether a map reads or writes."""
        return self.input_map is not None or self.output_map is not None

    @property
    def count(self) -> int:
        """Lines along the axes before the transformed one."""
        return math.prod(self.shape[: self.axis])

    @property
    def stride(self) -> int:
        """Distance of neighbouring values of a line: the lines along the axes behind it."""
        return math.prod(self.shape[self.axis + 1 :])

    @property
    def factor(self) -> float:
        """Factor of the result, with the normalization."""
        return self.scale / self.length if self.inverse and self.normalize else float(self.scale)

    @property
    def name(self) -> str:
        """Name of the kernels."""
        kind = ("i" if self.inverse else "") + ("rfft" if self.r2c else "fft")
        return f"{kind}_{_text_of(self.shape)}_axis{self.axis}"

    @property
    def plane_name(self) -> str:
        """Name of the kernel of this axis and the one before it."""
        return f"{'ifft2' if self.inverse else 'fft2'}_{_text_of(self.shape)}"


def _text_of(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def device_limits() -> tuple[Any, ...]:
    """Return what plans depend on besides a transform: what the context's devices can do."""
    context = get_context()
    return device_facts(context), context.max_workgroup_size, tuning.key()


# ---- How the lines of a buffer are distributed among workgroups and invocations --------------------------


@record
class LineGrid:
    """Lines of `length` values along one axis of a shape.

    Attributes
    ----------
    length, stride
        Values of a line and their distance in memory.
    outer, inner
        Number of lines along the axes before and after the transformed one.
    threads, lines
        Invocations of a line, lines of a workgroup.
    flat
        Whether the workgroup has one row of invocations. Some drivers build vectors of neighbours in x only,
        and leave most lanes idle where x is short.
    """

    length: int
    stride: int
    outer: int
    inner: int
    threads: int
    lines: int
    flat: bool = False

    @property
    def is_interleaved(self) -> bool:
        """Whether neighbouring invocations work on neighbouring lines rather than on one."""
        return self.stride > 1

    @property
    def local_size(self) -> tuple[int, int, int]:
        """Workgroup size."""
        if self.flat:
            return (self.threads * self.lines, 1, 1)
        return (self.width, self.threads * self.lines // self.width, 1)

    @property
    def width(self) -> int:
        """Size of the workgroup along x unless it is flat."""
        return self.lines if self.is_interleaved else self.threads

    @property
    def blocks(self) -> int:
        """Workgroups along the inner axes, or along the outer axes if there are no inner ones."""
        return -(-(self.inner if self.is_interleaved else self.outer) // self.lines)

    @property
    def workgroups(self) -> int:
        """Total number of workgroups."""
        return self.blocks * (self.outer if self.is_interleaved else 1)


def make_grid(
    shape: tuple[int, ...], axis: int, threads: int, lines: int, vector: int | None = None
) -> LineGrid:
    """Return the grid of the lines along an axis of a shape.

    `vector` is the number of neighbours in x that the device combines to a vector.
    """
    inner = math.prod(shape[axis + 1 :])
    grid = LineGrid(shape[axis], inner, math.prod(shape[:axis]), inner, threads, lines)
    if vector is None or grid.width % vector == 0:
        return grid
    return dataclasses.replace(grid, flat=True)


# ---- Layouts of lines in workgroup memory ----------------------------------------------------------------


@record
class SharedLayout:
    """The layout of the lines of a workgroup in its memory.

    Attributes
    ----------
    lines
        Lines of a workgroup.
    padding
        Number of values after which one element is skipped, so that strides of a power of two spread over
        the banks; 0 for none.
    row
        Distance of two lines.
    parts
        1: complex values; 2: first the real, then the imaginary parts, in half the memory.
    chunks
        Number of pieces of a line that are exchanged one after another in the same memory.
    """

    length: int
    lines: int
    padding: int
    row: int
    parts: int = 1
    chunks: int = 1

    def place_of(self, position: Any) -> Any:
        """Return the place of a position of a line."""
        return position + (position // self.padding if self.padding else 0)

    def step(self, distance: int) -> int:
        """Return the distance in memory of two positions, a multiple of the padding apart."""
        return distance + (distance // self.padding if self.padding else 0)

    @property
    def elements(self) -> int:
        """Elements of the array."""
        return self.lines * self.row

    def size(self, compute_type: DType) -> int:
        """Bytes of workgroup memory."""
        return self.elements * compute_type.item_size // self.parts


def plan_layout(
    split: Split, lines: int, interleaved: bool, item_size: int, parts: int | None = None, whole: bool = False
) -> SharedLayout | None:
    """Choose a layout that fits into workgroup memory, or None if there is none.

    With `interleaved` lines, neighbouring invocations work on neighbouring lines.
    A `whole` layout has one chunk, and room for rows of one more value.
    """
    length, first = split.length, split.radices[0]
    planner = find_planner()
    padding = first if len(split.radices) > 1 and first % 2 == 0 and planner.has_banks else 0
    chunk_counts = [1, 2, 4, 8] if split.radices[-1] > 1 else [1]
    if parts is None and lines * length * item_size > planner.largest_whole_exchange:
        parts = 2
    for count in [1, 2] if parts is None else [parts]:
        for chunks in chunk_counts if count == 2 and not whole else [1]:
            if chunks > 1 and not _can_cut(split, chunks):
                continue
            piece = -(-length // chunks)
            row = piece + max(-(-piece // padding) if padding else 0, 1 if whole else 0)
            if interleaved and lines > 1 and planner.has_banks:
                banks = 32 * 4 * count // item_size
                # an odd distance uses all banks in turn, if there are lines for all of them
                row = row | 1 if lines >= banks else row + (banks // lines - row) % banks
            layout = SharedLayout(length, lines, padding, row, count, chunks)
            if count_allocated(split, layout) * item_size // count <= planner.device.shared_memory:
                return layout
    return None


def _can_cut(split: Split, chunks: int) -> bool:
    """Whether the reads and writes of each stage fall into whole pieces of a line."""
    if split.length % chunks:
        return False
    piece = split.length // chunks
    stages = split.stages
    return all(
        stage.butterflies % split.threads == 0 and piece % (stage.previous * stage.radix) == 0
        for stage in stages[:-1]
    ) and all((stage.radix % chunks == 0 and stage.butterflies % split.threads == 0) for stage in stages[1:])


def _count_overrun(split: Split, layout: SharedLayout) -> int:
    """Return the elements behind the last line that idle invocations may read."""
    most = max(stage.rounds * stage.threads - stage.butterflies for stage in split.stages)
    return layout.step(most) + (1 if most else 0)


def count_allocated(split: Split, layout: SharedLayout) -> int:
    """Return the elements of workgroup memory that a transform needs."""
    return layout.elements + _count_overrun(split, layout)


# ---- Plans of kernels that transform lines in one pass ---------------------------------------------------


@record
class Pass:
    """The plan of a kernel that transforms lines in one pass.

    Attributes
    ----------
    split
        Radices and invocations of a line.
    grid
        The lines of a workgroup.
    layout
        Workgroup memory, or None if it is not needed.
    compute_type
        Complex type of the registers.
    """

    split: Split
    grid: LineGrid
    layout: SharedLayout | None
    compute_type: DType


@record
class PassChoices:
    """What is chosen before a pass is planned, or None if the plan chooses.

    Attributes
    ----------
    registers
        Complex values that an invocation may hold.
    split, lines, parts
        Radices and invocations, lines of a workgroup, and `SharedLayout.parts`.
    length
        Length of the transform, where it is not that of the lines.
    whole
        Whether workgroup memory must hold the workgroup's lines, or their real parts, all at once.
    group
        Least invocations of a workgroup, where it has several lines.
    """

    registers: int | None = None
    split: Split | None = None
    lines: int | None = None
    parts: int | None = None
    length: int | None = None
    whole: bool = False
    group: int | None = None


_FREE = PassChoices()


def plan_for_long_maps(plan: Pass, transform: Transform) -> Pass:
    """Return a pass whose invocations hold fewer values, so that a long map is written out less often.

    It is the same one if it holds no more.
    """
    shape, axis = transform.shape, transform.axis
    registers = choose_fewest(shape[axis], tuning.registers_long_map)
    if plan.split.registers <= registers:
        return plan
    fewer = plan_pass(shape, axis, plan.compute_type, PassChoices(registers=registers))
    return plan if fewer is None or fewer.split.registers >= plan.split.registers else fewer


def plan_pass(
    shape: tuple[int, ...], axis: int, compute_type: DType, choices: PassChoices = _FREE
) -> Pass | None:
    """Plan one pass along an axis, or None if one workgroup cannot hold a line.

    Parameters
    ----------
    shape, axis
        Shape of the data, and the axis from 0 on.
    compute_type
        Complex type of the registers.
    choices
        What is chosen already.
    """
    split, lines = choices.split, choices.lines
    planner = find_planner()
    most_threads, most = planner.device.max_group, planner.device.shared_memory
    length = choices.length or shape[axis]
    item, largest, vector = compute_type.item_size, planner.largest_line, planner.vector
    if length * item > largest:
        return None
    if split is None:
        wanted = choices.registers or planner.choose_registers(length, axis < len(shape) - 1)
        wanted = max(wanted * 8 // item, 4)
        room = most // item if planner.avoids_exchanges else None
        split = choose_split(length, wanted, most_threads, room)
    if split is None:
        return None
    grid = make_grid(shape, axis, split.threads, 1, vector)
    if lines is None:
        # where invocations do not fill subgroups, small workgroups leave fewer of them idle
        wanted = choices.group or tuning.group
        wanted = wanted if split.threads & (split.threads - 1) == 0 else wanted // 2
        lines = max(wanted // split.threads, 1)
        if grid.is_interleaved:
            lines = max(lines, tuning.neighbours * (2 if length <= tuning.neighbours_short else 1))
    lines = max(min(lines, grid.inner if grid.is_interleaved else grid.outer), 1)
    while lines >= 1:
        grid = make_grid(shape, axis, split.threads, lines, vector)
        if len(split.radices) == 1 and not choices.whole:
            return Pass(split, grid, None, compute_type)
        if lines * split.threads <= most_threads and lines * length * item <= largest:
            layout = plan_layout(split, lines, grid.is_interleaved, item, choices.parts, choices.whole)
            if layout is not None:
                return Pass(split, grid, layout, compute_type)
        lines //= 2
    return None


def reverse_radices(plan: Pass, whole: bool = False) -> Pass | None:
    """Return a pass with the radices in reverse order, or None if workgroup memory has no room for it.

    `whole` is that of `plan_layout`.
    """
    assert plan.layout is not None
    split, grid = plan.split.reverse(), plan.grid
    size = plan.compute_type.item_size
    layout = plan_layout(split, grid.lines, grid.is_interleaved, size, plan.layout.parts, whole)
    return None if layout is None else replace(plan, split=split, layout=layout)


# ---- Plans of real transforms by complex ones of half the length -----------------------------------------


@record
class RealPlan:
    """The plan of a kernel of real transforms.

    Attributes
    ----------
    half
        The complex transform of half the length.
    linear
        Whether lines are written in the order of memory rather than line by line.
    """

    half: Pass
    linear: bool

    @property
    def row(self) -> int:
        """Distance of two lines in workgroup memory: h + 1 values or more, or a piece of a line."""
        layout, values = self.half.layout, self.half.split.length + 1
        if layout is None:
            return values | 1  # an invocation for each line: an odd distance uses all banks in turn
        return layout.row if layout.chunks > 1 else max(layout.row, values)

    @property
    def layout(self) -> SharedLayout | None:
        """Layout of the lines in workgroup memory, or None if it is not used."""
        grid = self.half.grid
        if self.half.layout is None and self.linear:
            return SharedLayout(grid.length, grid.lines, 0, self.row)
        return self.half.layout


def plan_real(
    count: int, length: int, compute_type: DType, *, half: Pass | None = None, linear: bool | None = None
) -> RealPlan | None:
    """Plan real transforms of `count` lines; None for an odd length or another type.

    Parameters
    ----------
    count, length
        Number of lines, and reals of a line.
    compute_type
        complex64 or complex128.
    half, linear
        What is chosen already; see `RealPlan`.
    """
    if length % 2 or compute_type not in (complex64, complex128):
        return None
    planner = find_planner()
    if half is None:
        # separating the spectra gains more from long pieces of lines than from many invocations
        registers = tuning.registers_real_short if length <= tuning.real_short else None
        shape = (count, length // 2)
        half = plan_pass(shape, 1, compute_type, PassChoices(registers=registers))
        if half is None:
            return None
        is_halved = half.layout is not None and half.layout.parts == 2
        if is_halved and half.split.threads < tuning.real_few_threads:
            half = plan_pass(shape, 1, compute_type, PassChoices(split=half.split, parts=1)) or half
    whole = half.layout is None or half.layout.parts == 1
    # writing short pieces of each line would waste parts of memory transactions
    short = half.split.threads < planner.real_few_threads
    plan = RealPlan(half, whole and (short if linear is None else linear))
    size = 0
    if plan.layout is not None:
        size = half.grid.lines * plan.row * compute_type.item_size // plan.layout.parts
    return plan if size <= planner.device.shared_memory else None


# ---- Plans for lines of special lengths: short lines and primes ----------


def plan_convolved(shape: tuple[int, ...], axis: int, compute_type: DType) -> tuple[Pass, bool] | None:
    """Plan Rader's (True) or Bluestein's algorithm in one pass, or None if no workgroup holds a line."""
    length = shape[axis]
    if is_rader_length(length):
        plan = plan_pass(shape, axis, compute_type, PassChoices(length=length - 1, whole=True))
        if plan is not None:
            return plan, True
    plan = plan_pass(shape, axis, compute_type, PassChoices(length=choose_padded_length(length), whole=True))
    return None if plan is None else (plan, False)


def plan_staged(shape: tuple[int, ...], axis: int, compute_type: DType) -> Pass | None:
    """Plan a kernel of short contiguous lines, of an invocation each; None for other lines.

    There is none where such lines are best read directly.
    """
    length = shape[axis]
    if not find_planner().coalesces or math.prod(shape[axis + 1 :]) > 1:
        return None
    if not 2 <= length <= LARGEST_PRIME or length == tuning.staged_except:
        return None
    split = Split(length, (length,), 1)
    lines = tuning.staged_group * max(1, tuning.staged_values // tuning.staged_group // length)
    return plan_pass(shape, axis, compute_type, PassChoices(split=split, lines=lines, parts=1, whole=True))


def suits_pairs(shape: tuple[int, ...], axis: int, compute_type: DType) -> bool:
    """Whether pairs of invocations transform such lines; see `kernels.special_lengths`."""
    length, planner = shape[axis], find_planner()
    return (
        LARGEST_PRIME < length <= tuning.pair_longest
        and length % 4 == 3
        and is_rader_length(length)
        and compute_type is complex64
        and math.prod(shape[axis + 1 :]) == 1
        and planner.coalesces
        and tuning.pair_lines * length * compute_type.item_size <= planner.device.shared_memory
        and planner.device.max_group >= 2 * tuning.pair_lines
    )
