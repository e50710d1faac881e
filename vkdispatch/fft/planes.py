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
from vkdispatch.fft.device import runs_on_cpu
from vkdispatch.fft.radix import held
from vkdispatch.fft.registers import FFTRegisters
from vkdispatch.fft.shared import SharedLayout, SharedLines, allocation, guarded, plan_layout
from vkdispatch.fft.stages import Split, Stage, plus, split_choices, times
from vkdispatch.fft.transform import transform
from vkdispatch.fft.words import shared_values
from vkdispatch.shader.shader_function import ShaderFunction

_WORKGROUP = 64  # invocations that a workgroup has if its planes are small
_SHORT_READ = 32  # values of the rows that are better read with their neighbours, on GPUs
_SHORT_READ_CPU = 4
# Values of a plane, and of those an invocation holds, as measured on an H200 (complex64).
_REGISTERS = ((64, 8), (256, 4), (1024, 8), (4096, 16))
_HALVED = 8 << 10  # larger planes exchange real and imaginary parts in turn
Slots = list[tuple[int, Any]]  # registers, and places in workgroup memory
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
        return _group(self.height, self.width, self.rows, self.columns)

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
    most = context.max_invocations_along_x
    if min(height, width) < 2 or height * width > 32 * most:
        return None
    for row_split, column_split in _splits(height, width, most, rows, columns, compute_type):
        group = _group(height, width, row_split, column_split)
        together = planes or min(max(_WORKGROUP // group, 1), context.max_workgroup_size[1], count)
        while together >= 1:
            half_first = height * width * compute_type.item_size > _HALVED and not runs_on_cpu()
            for part in ((2, 1) if half_first else (1, 2)) if parts is None else (parts,):
                if group * together > most:
                    continue
                plan = _laid_out(
                    (count, height, width), row_split, column_split, together, part, staged, compute_type
                )
                if plan is not None:
                    return plan
            together = together // 2 if planes is None else 0
    return None


def _group(height: int, width: int, rows: Split, columns: Split) -> int:
    """Return the invocations of a plane: a multiple of those that a column has."""
    wanted = max(rows.threads * height, columns.threads * width)
    return -(-wanted // columns.threads) * columns.threads


def _splits(
    height: int, width: int, most: int, rows: Split | None, columns: Split | None, compute_type: DType
) -> list[tuple[Split, Split]]:
    """Return splits of rows and columns that go together, the cheapest ones first."""
    if rows is not None and columns is not None:
        return [(rows, columns)]
    values = height * width
    if runs_on_cpu():
        wanted = max(registers_of(max(height, width), False, True), -(-values // most))
    else:
        wanted = next((registers for size, registers in _REGISTERS if values <= size), 32)
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
    group = _group(height, width, rows, columns)
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
        staged = rows.threads < min(_SHORT_READ_CPU, width) if runs_on_cpu() else width <= _SHORT_READ
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
    plan: PlanePlan, kind: DType, inverse: bool, normalize: bool, name: str = "fft2", scale: float = 1.0
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
    name, scale
        Of the kernel; and what the outcome is multiplied by, besides being normalized.
    """
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as shader:
        (buffer,) = shader.declare_input_arguments([vc.Buffer[kind]], ["buffer"])  # type: ignore[valid-type]
        steps = PlaneSteps(plan, kind, buffer)
        values = steps.rows(steps.read_rows(), inverse)
        values = steps.columns(steps.turned(values), inverse)
        values = steps.scaled(values) if inverse and normalize else values
        steps.write_columns([held(value * scale) for value in values] if scale != 1 else values)
        description = shader.get_description(name)
    return ShaderFunction(description, plan.local_size, (plan.workgroups, 1, 1))


class PlaneSteps:
    """The steps of a kernel that is being traced; `least` is of elements of workgroup memory."""

    def __init__(self, plan: PlanePlan, kind: DType, buffer: Any, least: int = 0) -> None:
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
        self.array = shared_values(part, max(plan.elements, least), "planes")
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

    def store(self, index: Any, value: Any) -> None:
        """Write a value into the buffer."""
        self.buffer[index] = value if self.kind is self.plan.compute_type else value.to_dtype(self.kind)

    def scaled(self, values: Sequence[Any]) -> list[Any]:
        """Return values divided by the number of a plane's values."""
        scale = 1.0 / (self.plan.height * self.plan.width)
        return [held(value * scale) for value in values]

    # -- transforms

    def rows(self, values: Sequence[Any], inverse: bool) -> list[Any]:
        """Transform rows; return what the last stage leaves."""
        plan = self.plan
        line = plus(times(self.plane, self.row_count), self.row)
        return self._transformed(plan.rows, plan.row_layout, values, line, self.row_thread, inverse)

    def columns(self, values: Sequence[Any], inverse: bool) -> list[Any]:
        """Transform columns; return what the last stage leaves."""
        return self.columns_by(self.plan.columns, self.plan.column_layout, values, inverse)

    def columns_by(
        self, split: Split, layout: SharedLayout | None, values: Sequence[Any], inverse: bool
    ) -> list[Any]:
        """Transform columns by another split of as many invocations."""
        line = plus(times(self.plane, self.column_count), self.column)
        return self._transformed(split, layout, values, line, self.column_thread, inverse)

    def _transformed(
        self,
        split: Split,
        layout: SharedLayout | None,
        values: Sequence[Any],
        line: Any,
        thread: Any,
        inverse: bool,
    ) -> list[Any]:
        registers = FFTRegisters(split, self.plan.compute_type, "value")
        for index, value in enumerate(values):
            registers[index] = value
        transform(registers, self.lines(split, layout, line), thread, inverse)
        return list(registers)[: split.stages[-1].registers]

    # -- between rows and columns

    def turned(self, values: Sequence[Any]) -> list[Any]:
        """Bring what the rows' last stage leaves to where the columns' first one takes it."""
        target = self.plan.columns.stages[0]
        return self._moved(values, self._row_slots, -1, self._column_slots, target, target.registers)

    def turned_back(self, values: Sequence[Any], source: Stage) -> list[Any]:
        """Bring what a last stage of the columns leaves to where the rows' first one takes it."""
        registers = self.plan.rows.stages[0].registers
        return self._moved(values, self._column_slots, source, self._row_slots, 0, registers)

    def _moved(
        self, values: Sequence[Any], source: Any, of_source: Any, target: Any, of_target: Any, count: int
    ) -> list[Any]:
        parts: list[list[Any]] = [list(values)]
        if self.plan.parts == 2:
            parts = [[value.real for value in values], [value.imag for value in values]]
        moved = []
        for part in parts:
            taken: list[Any] = [vc.new_register(part[0].var_type) for _ in range(count)]
            for chunk in range(self.plan.chunks):
                self.settle()
                for conditions, slots in source(of_source, chunk):
                    guarded(conditions, functools.partial(_put, self.array, part, slots))
                vc.barrier()
                for conditions, slots in target(of_target, chunk):
                    guarded(conditions, functools.partial(_take, self.array, taken, slots))
            moved.append(taken)
        if len(moved) == 1:
            return moved[0]
        return [held(vc.to_complex(re, im)) for re, im in zip(*moved, strict=True)]

    def _row_slots(self, number: int, chunk: int) -> Iterator[tuple[list[Any], Slots]]:
        """Yield, for butterflies of a stage of the rows, registers and places in workgroup memory."""
        plan, stage = self.plan, self.plan.rows.stages[number]
        piece = plan.height // plan.chunks
        conditions = [self.row_there]
        if plan.chunks > 1:
            conditions.append(held(self.row // piece) == chunk)
        row = self.row - chunk * piece if chunk else self.row
        first = plus(times(self.plane, piece * plan.pitch), times(row, plan.pitch))
        for turn, butterfly, more in _butterflies(stage, self.row_thread):
            base = held(plus(first, butterfly))
            start = turn * stage.radix
            yield (
                [*conditions, *more],
                [(start + i, plus(base, i * stage.butterflies)) for i in range(stage.radix)],
            )

    def _column_slots(self, stage: Stage, chunk: int) -> Iterator[tuple[list[Any], Slots]]:
        """Yield the same for a stage of the columns, the first or the last one."""
        plan = self.plan
        count = stage.radix // plan.chunks
        first = plus(times(self.plane, plan.height // plan.chunks * plan.pitch), self.column)
        for turn, butterfly, more in _butterflies(stage, self.column_thread):
            base = held(plus(first, times(butterfly, plan.pitch)))
            start, step = turn * stage.radix + chunk * count, stage.butterflies * plan.pitch
            yield [self.column_there, *more], [(start + i, plus(base, i * step)) for i in range(count)]

    # -- memory

    def read_rows(self) -> list[Any]:
        """Read what the rows' first stage takes."""
        plan, stage = self.plan, self.plan.rows.stages[0]
        values: list[Any] = [vc.new_register(plan.compute_type) for _ in range(stage.registers)]
        if plan.staged:
            self.settle()
            self._in_order(lambda index, place: _put(self.array, [self.load(index)], [(0, place)]))
            vc.barrier()
            for conditions, slots in self._row_slots(0, 0):
                guarded(conditions, functools.partial(_take, self.array, values, slots))
            return values
        for turn, butterfly, more in _butterflies(stage, self.row_thread):
            base = held(plus(plus(self.origin, times(self.row, plan.width)), butterfly))

            def read(turn: int = turn, base: Any = base) -> None:
                for i in range(stage.radix):
                    values[turn * stage.radix + i][:] = self.load(plus(base, i * stage.butterflies))

            guarded([self.present, self.row_there, *more], read)
        return values

    def write_rows(self, values: Sequence[Any]) -> None:
        """Write what the rows' last stage leaves."""
        plan, stage = self.plan, self.plan.rows.stages[-1]
        if plan.staged:
            self.settle()
            for conditions, slots in self._row_slots(-1, 0):
                guarded(conditions, functools.partial(_put, self.array, values, slots))
            vc.barrier()
            self._in_order(lambda index, place: self.store(index, self.array[place]))
            return
        for turn, butterfly, more in _butterflies(stage, self.row_thread):
            base = held(plus(plus(self.origin, times(self.row, plan.width)), butterfly))

            def write(turn: int = turn, base: Any = base) -> None:
                for i in range(stage.radix):
                    self.store(plus(base, i * stage.butterflies), values[turn * stage.radix + i])

            guarded([self.present, self.row_there, *more], write)

    def at_columns(self, stage: Stage, origin: Any, action: Callable[[int, Any], None]) -> None:
        """Trace `action(register, index)` for what a last stage of the columns leaves."""
        plan = self.plan
        for turn, butterfly, more in _butterflies(stage, self.column_thread):
            base = held(plus(plus(origin, self.column), times(butterfly, plan.width)))

            def act(turn: int = turn, base: Any = base) -> None:
                for i in range(stage.radix):
                    action(turn * stage.radix + i, plus(base, i * stage.butterflies * plan.width))

            guarded([self.present, self.column_there, *more], act)

    def write_columns(self, values: Sequence[Any]) -> None:
        """Write what the columns' last stage leaves."""
        stage = self.plan.columns.stages[-1]
        self.at_columns(stage, self.origin, lambda number, index: self.store(index, values[number]))

    def _in_order(self, action: Callable[[Any, Any], None]) -> None:
        """Trace `action(place in the buffer, place in workgroup memory)` for all planes of a workgroup."""
        plan = self.plan
        size = plan.height * plan.width
        count, workers = plan.planes * size, plan.planes * plan.group
        start, total = held(vc.workgroup_id().x * count), plan.count * size
        for turn in range(-(-count // workers)):
            element = held(vc.local_invocation_index() + turn * workers)
            conditions: list[Any] = []
            if (turn + 1) * workers > count:
                conditions.append(element < count)
            if plan.count % plan.planes:
                conditions.append(start + element < total)

            def act(element: Any = element) -> None:
                place = element
                if plan.pitch != plan.width:
                    place = held(element // plan.width) * plan.pitch + held(element % plan.width)
                action(start + element, place)

            guarded(conditions, act)


def _put(array: Any, values: Sequence[Any], slots: Slots) -> None:
    for number, place in slots:
        array[place] = values[number]


def _take(array: Any, values: Sequence[Any], slots: Slots) -> None:
    for number, place in slots:
        values[number][:] = array[place]


def _butterflies(stage: Stage, thread: Any) -> Iterator[tuple[int, Any, list[Any]]]:
    """Yield an invocation's turns in a stage, its butterfly in each, and when it has one."""
    for turn in range(stage.rounds):
        yield turn, stage.butterfly(thread, turn), stage.conditions(thread, turn)


def _divided(lane: Any, size: int) -> tuple[Any, Any]:
    """Return lane % size and lane // size, in registers."""
    if size == 1:
        return 0, held(lane)
    return held(lane % size), held(lane // size)
