"""Transforms of the last two axes in one kernel, where a workgroup's registers hold whole planes.

A plane's rows are transformed, then brought through workgroup memory to the invocations that transform its
columns: between the one read and the one write of the data nothing leaves the workgroup.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType, component_type
from vkdispatch.base.record import record
from vkdispatch.fft.config import registers_of
from vkdispatch.fft.radix import held
from vkdispatch.fft.registers import FFTRegisters
from vkdispatch.fft.shared import SharedLayout, SharedLines, allocation, guarded, plan_layout
from vkdispatch.fft.stages import Split, plus, split_choices, times
from vkdispatch.fft.transform import transform
from vkdispatch.shader.shader_function import ShaderFunction

_WORKGROUP = 128  # invocations that a workgroup has if its planes are small
_SHORT_READ = 4  # neighbouring values that an invocation's neighbours should read together: 32 bytes
_BANKS = 32  # of workgroup memory, of 4 bytes each


@record
class PlanePlan:
    """What a kernel of plane transforms looks like.

    Attributes
    ----------
    count, height, width
        Number of planes, their rows and columns.
    rows, columns
        How a row and a column are split.
    planes
        Planes of a workgroup.
    row_layout, column_layout
        Workgroup memory of either transform; None where it needs none.
    pitch
        Distance of two rows in workgroup memory, between the transforms.
    parts, chunks
        As in `SharedLayout`, between the transforms; pieces are of whole rows.
    staged
        Whether planes are brought into workgroup memory in the order of memory, and rows taken from there.
    compute_type
        What it is computed in.
    """

    count: int
    height: int
    width: int
    rows: Split
    columns: Split
    planes: int
    row_layout: SharedLayout | None
    column_layout: SharedLayout | None
    pitch: int
    parts: int
    chunks: int
    staged: bool
    compute_type: DType

    @property
    def group(self) -> int:
        """Invocations of a plane."""
        return max(self.rows.threads * self.height, self.columns.threads * self.width)

    @property
    def local_size(self) -> tuple[int, int, int]:
        """Workgroup size."""
        return (self.group, self.planes, 1)

    @property
    def workgroups(self) -> int:
        """Workgroups in all."""
        return -(-self.count // self.planes)

    @property
    def elements(self) -> int:
        """Elements of workgroup memory."""
        sizes = [self.planes * self.height // self.chunks * self.pitch]
        for split, layout in ((self.rows, self.row_layout), (self.columns, self.column_layout)):
            if layout is not None:
                sizes.append(allocation(split, layout))
        return max(sizes)

    @property
    def size(self) -> int:
        """Bytes of workgroup memory."""
        return self.elements * self.compute_type.item_size // self.parts


def plan_planes(
    count: int,
    height: int,
    width: int,
    compute_type: DType,
    *,
    rows: Split | None = None,
    columns: Split | None = None,
    planes: int | None = None,
    parts: int | None = None,
    staged: bool | None = None,
) -> PlanePlan | None:
    """Plan transforms of `count` planes; None where a workgroup cannot hold one.

    Parameters
    ----------
    count, height, width
        Number of planes, their rows and columns.
    compute_type
        What it is computed in.
    rows, columns, planes, parts, staged
        What is not to be chosen.
    """
    context = get_context()
    most = min(context.max_workgroup_invocations, context.max_workgroup_size[0])
    if min(height, width) < 2 or height * width > 32 * most:
        return None
    for row_split, column_split in _splits(height, width, most, rows, columns, compute_type):
        group = max(row_split.threads * height, column_split.threads * width)
        together = planes or min(max(_WORKGROUP // group, 1), context.max_workgroup_size[1], count)
        while together >= 1:
            for part in (1, 2) if parts is None else (parts,):
                if group * together > most:
                    continue
                plan = _laid_out(
                    (count, height, width), row_split, column_split, together, part, staged, compute_type
                )
                if plan is not None:
                    return plan
            together = together // 2 if planes is None else 0
    return None


def _splits(
    height: int, width: int, most: int, rows: Split | None, columns: Split | None, compute_type: DType
) -> list[tuple[Split, Split]]:
    """Return splits of rows and columns that go together, the cheapest ones first."""
    if rows is not None and columns is not None:
        return [(rows, columns)]
    on_cpu = any(info.is_cpu() for info in get_context().device_infos)
    values = height * width
    wanted = max(registers_of(max(height, width), False, on_cpu), -(-values // (most if on_cpu else 512)))
    limit = max(min(wanted, 32) * 8 // compute_type.item_size, 4)
    while limit <= 32:
        found = _pairs(height, width, limit, most)
        if found:
            return found
        limit *= 2
    return []


def _pairs(height: int, width: int, limit: int, most: int) -> list[tuple[Split, Split]]:
    """Return splits that go together, of invocations that hold up to `limit` values or a prime."""
    of_rows, of_columns = _by_threads(width, limit, most), _by_threads(height, limit, most)
    found: list[tuple[float, int, Split, Split]] = []
    for row_threads, (row_cost, row_split) in of_rows.items():
        for column_threads, (column_cost, column_split) in of_columns.items():
            a, b = row_threads * height, column_threads * width
            if max(a, b) > most or max(a, b) > 2 * min(a, b):
                continue
            work = row_cost * max(a, b) / a + column_cost * max(a, b) / b
            # more than 512 invocations leave a processor room for few workgroups
            found.append((work * (1.3 if max(a, b) > 512 else 1), len(found), row_split, column_split))
    return [(each[2], each[3]) for each in sorted(found)[:8]]


@functools.cache
def _by_threads(length: int, registers: int, most: int) -> dict[int, tuple[float, Split]]:
    """Return the cheapest split for each number of invocations of a line, with its cost."""
    best: dict[int, tuple[float, Split]] = {}
    for cost, split in split_choices(length, registers, most):
        if split.threads not in best or cost < best[split.threads][0]:
            best[split.threads] = cost, split
    return best


def _laid_out(
    shape: tuple[int, int, int],
    rows: Split,
    columns: Split,
    planes: int,
    parts: int,
    staged: bool | None,
    compute_type: DType,
) -> PlanePlan | None:
    """Choose workgroup memory; None where there is not enough."""
    _, height, width = shape
    most, item = get_context().max_shared_memory, compute_type.item_size
    group = max(rows.threads * height, columns.threads * width)
    layouts: list[SharedLayout | None] = []
    for split, interleaved in ((rows, False), (columns, True)):
        layout = None
        if len(split.radices) > 1:
            lines = planes * -(-group // split.threads)
            layout = plan_layout(split, lines, interleaved, item, most, parts)
            if layout is None:
                return None
        layouts.append(layout)
    if staged is None:
        staged = rows.threads < min(_SHORT_READ, width)
    pitch = _pitch(width, height, rows.threads, group, item // parts)
    for chunks in (1, 2, 4, 8) if parts == 2 else (1,):
        first = columns.stages[0]
        if chunks > 1 and (not first.even or first.radix % chunks):
            continue
        plan = PlanePlan(
            *shape,
            rows,
            columns,
            planes,
            layouts[0],
            layouts[1],
            pitch,
            parts,
            chunks,
            bool(parts == 1 and staged),
            compute_type,
        )
        if plan.size <= most:
            return plan
    return None


@functools.cache
def _pitch(width: int, height: int, threads: int, group: int, item: int) -> int:
    """Return the distance of rows for which accesses along rows and along columns share banks least."""
    banks = max(_BANKS * 4 // item, 1)
    lanes = min(banks, 32)

    def conflicts(places: Sequence[int]) -> int:
        taken = [place % banks for place in places]
        return max(taken.count(bank) for bank in set(taken))

    def cost(pitch: int) -> tuple[int, int]:
        writes, reads = [], []
        for lane in range(lanes):
            plane, rest = divmod(lane, group)
            start = plane * height * pitch
            writes.append(start + rest // threads * pitch + rest % threads)
            reads.append(start + rest // width * pitch + rest % width)
        return conflicts(writes) + conflicts(reads), pitch

    return min(range(width, width + 17), key=cost)


# ---- the kernel ------------------------------------------------------------------------------------


def make_plane_kernel(
    plan: PlanePlan, kind: DType, inverse: bool, normalize: bool, name: str = "fft2"
) -> ShaderFunction:
    """Make the kernel of plane transforms in place.

    Parameters
    ----------
    plan
        As `plan_planes` makes it.
    kind
        Complex type of the buffer.
    inverse, normalize
        Direction, and whether an inverse transform is divided by the number of a plane's values.
    """
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as shader:
        (buffer,) = shader.declare_input_arguments([vc.Buffer[kind]], ["buffer"])  # type: ignore[valid-type]
        steps = _Steps(plan, kind, buffer)
        values = steps.transformed_rows(inverse)
        values = steps.transformed_columns(steps.turned(values), inverse)
        scale = 1.0 / (plan.height * plan.width) if inverse and normalize else None
        steps.write(values if scale is None else [held(value * scale) for value in values])
        description = shader.get_description(name)
    return ShaderFunction(description, plan.local_size, (plan.workgroups, 1, 1))


class _Steps:
    """The steps of a kernel that is being traced."""

    def __init__(self, plan: PlanePlan, kind: DType, buffer: Any) -> None:
        self.plan, self.kind, self.buffer = plan, kind, buffer
        local = vc.local_invocation_id()
        self.lane = local.x
        self.plane: Any = 0 if plan.planes == 1 else local.y
        number = plus(times(vc.workgroup_id().x, plan.planes), self.plane)
        # whether there is such a plane
        self.present: Any = held(number) < plan.count if plan.count % plan.planes else True
        self.origin = held(times(number, plan.height * plan.width))
        compute = plan.compute_type
        part = compute if plan.parts == 1 else component_type(compute)
        self.array = vc.shared_buffer(part, plan.elements, var_name="planes")
        self.used = False
        # invocations of neighbouring rows come after one another, and those of neighbouring columns
        self.row_thread, self.row = _divided(self.lane, plan.rows.threads)
        self.row_count = -(-plan.group // plan.rows.threads)
        self.column_count = -(-plan.group // plan.columns.threads)
        self.column, self.column_thread = _divided(self.lane, self.column_count)
        self.row_there: Any = True if self.row_count == plan.height else self.row < plan.height
        self.column_there: Any = True if self.column_count == plan.width else self.column < plan.width

    def settle(self) -> None:
        """Wait until nobody reads workgroup memory any more."""
        if self.used:
            vc.barrier()
        self.used = True

    def lines(self, split: Split, layout: SharedLayout | None, line: Any) -> SharedLines | None:
        """Return workgroup memory for a transform."""
        if layout is None:
            return None
        lines = SharedLines(layout, split, self.plan.compute_type, line, array=self.array, used=self.used)
        self.used = True
        return lines

    def load(self, index: Any) -> Any:
        """Return a value of the buffer."""
        value, compute = self.buffer[index], self.plan.compute_type
        return value if self.kind is compute else value.to_dtype(compute)

    def transformed_rows(self, inverse: bool) -> list[Any]:
        """Read and transform rows; return what the last stage leaves."""
        plan, split = self.plan, self.plan.rows
        registers = FFTRegisters(split, plan.compute_type, "row")
        first = plus(self.origin, times(self.row, plan.width))
        conditions = [self.present, self.row_there]
        if plan.staged:
            self.stage_in()
            source: Callable[[Any], Any] = self.array.__getitem__
            first = plus(times(self.plane, plan.height * plan.pitch), times(self.row, plan.pitch))
            conditions = [self.row_there]
        else:
            source = self.load
        stage = split.stages[0]
        for turn, butterfly, more in _butterflies(split, 0, self.row_thread):
            base = held(plus(first, butterfly))

            def read(turn: int = turn, base: Any = base) -> None:
                for i in range(stage.radix):
                    registers[turn * stage.radix + i] = source(plus(base, i * stage.butterflies))

            guarded([*conditions, *more], read)
        line = plus(times(self.plane, self.row_count), self.row)
        transform(registers, self.lines(split, plan.row_layout, line), self.row_thread, inverse)
        return list(registers)

    def transformed_columns(self, values: Sequence[Any], inverse: bool) -> list[Any]:
        """Transform columns; return what the last stage leaves."""
        plan, split = self.plan, self.plan.columns
        registers = FFTRegisters(split, plan.compute_type, "column")
        for index, value in enumerate(values):
            registers[index] = value
        line = plus(times(self.plane, self.column_count), self.column)
        transform(registers, self.lines(split, plan.column_layout, line), self.column_thread, inverse)
        return list(registers)

    def stage_in(self) -> None:
        """Bring the workgroup's planes into its memory in the order of memory."""
        plan = self.plan
        size = plan.height * plan.width
        count, workers = plan.planes * size, plan.planes * plan.group
        start, total = held(vc.workgroup_id().x * count), plan.count * size
        self.settle()
        for turn in range(-(-count // workers)):
            element = held(vc.local_invocation_index() + turn * workers)
            conditions: list[Any] = []
            if (turn + 1) * workers > count:
                conditions.append(element < count)
            if plan.count % plan.planes:
                conditions.append(start + element < total)

            def move(element: Any = element) -> None:
                row, column = _parted(element, plan.width)
                place = element if plan.pitch == plan.width else row * plan.pitch + column
                self.array[place] = self.load(start + element)

            guarded(conditions, move)
        vc.barrier()

    def turned(self, values: Sequence[Any]) -> list[Any]:
        """Bring what the rows' last stage leaves to where the columns' first one takes it."""
        if self.plan.parts == 1:
            return self._turned_part(values)
        real = self._turned_part([value.real for value in values])
        imaginary = self._turned_part([value.imag for value in values])
        return [held(vc.to_complex(re, im)) for re, im in zip(real, imaginary, strict=True)]

    def _turned_part(self, values: Sequence[Any]) -> list[Any]:
        plan, source, target = self.plan, self.plan.rows.stages[-1], self.plan.columns.stages[0]
        piece, per_chunk = plan.height // plan.chunks, target.radix // plan.chunks
        plane = times(self.plane, piece * plan.pitch)
        taken: list[Any] = [vc.new_register(values[0].var_type) for _ in range(target.registers)]
        for chunk in range(plan.chunks):
            self.settle()
            low = chunk * piece
            conditions = [self.row_there]
            if plan.chunks > 1:
                conditions.append(held(self.row // piece) == chunk)
            for turn, butterfly, more in _butterflies(plan.rows, -1, self.row_thread):

                def write(turn: int = turn, butterfly: Any = butterfly, low: int = low) -> None:
                    row = self.row - low if low else self.row
                    base = held(plus(plus(plane, times(row, plan.pitch)), butterfly))
                    for i in range(source.radix):
                        self.array[plus(base, i * source.butterflies)] = values[turn * source.radix + i]

                guarded([*conditions, *more], write)
            vc.barrier()
            for turn, butterfly, more in _butterflies(plan.columns, 0, self.column_thread):

                def read(turn: int = turn, butterfly: Any = butterfly, chunk: int = chunk) -> None:
                    base = held(plus(plus(plane, self.column), times(butterfly, plan.pitch)))
                    for i in range(per_chunk):
                        register = turn * target.radix + chunk * per_chunk + i
                        taken[register][:] = self.array[plus(base, i * target.butterflies * plan.pitch)]

                guarded([self.column_there, *more], read)
        return taken

    def write(self, values: Sequence[Any]) -> None:
        """Write what the columns' last stage leaves."""
        plan, stage = self.plan, self.plan.columns.stages[-1]
        for turn, butterfly, more in _butterflies(plan.columns, -1, self.column_thread):

            def store(turn: int = turn, butterfly: Any = butterfly) -> None:
                base = held(plus(plus(self.origin, self.column), times(butterfly, plan.width)))
                for i in range(stage.radix):
                    value = values[turn * stage.radix + i]
                    index = plus(base, i * stage.butterflies * plan.width)
                    self.buffer[index] = (
                        value if self.kind is plan.compute_type else value.to_dtype(self.kind)
                    )

            guarded([self.present, self.column_there, *more], store)


def _butterflies(split: Split, number: int, thread: Any) -> Iterator[tuple[int, Any, list[Any]]]:
    """Yield an invocation's turns in a stage, its butterfly in each, and when it has one."""
    stage = split.stages[number]
    for turn in range(stage.rounds):
        butterfly = stage.butterfly(thread, turn)
        last = not stage.even and turn == stage.rounds - 1
        yield turn, butterfly, [butterfly < stage.butterflies] if last else []


def _divided(lane: Any, size: int) -> tuple[Any, Any]:
    """Return lane % size and lane // size, in registers."""
    if size == 1:
        return 0, held(lane)
    return held(lane % size), held(lane // size)


def _parted(element: Any, width: int) -> tuple[Any, Any]:
    return held(element // width), held(element % width)
