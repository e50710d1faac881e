"""Plans of transforms of the last two axes in one kernel."""

import functools
from collections.abc import Sequence

from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.families.tuning import device_facts
from vkdispatch.fft.plan.memory import SharedLayout, count_allocated, plan_layout
from vkdispatch.fft.plan.passes import choose_registers
from vkdispatch.fft.plan.stages import Split, list_splits
from vkdispatch.fft.plan.tuning import look_up, tuning

_BANKS = 32  # of workgroup memory, of 4 bytes each
_MOST_REGISTERS = 32


@record
class PlanePlan:
    """The plan of a kernel that transforms planes.

    Attributes
    ----------
    count, height, width
        Number of planes, their rows and columns.
    rows, columns
        The splits of a row and of a column.
    planes
        Planes of a workgroup.
    row_layout, column_layout
        Workgroup memory of the two transforms, or None if it is not needed.
    pitch
        Distance of two rows in workgroup memory between the transforms.
    parts, chunks
        As in `SharedLayout`, for the exchange between the transforms; pieces are whole rows.
    staged
        Whether planes are copied to workgroup memory in the order of memory, and rows are read there.
    compute_type
        Complex type of the registers.
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
        return _count_invocations(self.height, self.width, self.rows, self.columns)

    @property
    def local_size(self) -> tuple[int, int, int]:
        """Workgroup size."""
        return (self.group, self.planes, 1)

    @property
    def workgroups(self) -> int:
        """Total number of workgroups."""
        return -(-self.count // self.planes)

    @property
    def elements(self) -> int:
        """Elements of workgroup memory."""
        sizes = [self.planes * self.height // self.chunks * self.pitch]
        for split, layout in ((self.rows, self.row_layout), (self.columns, self.column_layout)):
            if layout is not None:
                sizes.append(count_allocated(split, layout))
        return max(sizes)

    @property
    def size(self) -> int:
        """Bytes of workgroup memory."""
        return self.elements * self.compute_type.item_size // self.parts


@record
class PlaneChoices:
    """What is chosen before planes are planned; see `PlanePlan`. None if the plan chooses."""

    rows: Split | None = None
    columns: Split | None = None
    planes: int | None = None
    parts: int | None = None
    staged: bool | None = None


_FREE = PlaneChoices()


def plan_planes(
    count: int, height: int, width: int, compute_type: DType, choices: PlaneChoices = _FREE
) -> PlanePlan | None:
    """Plan transforms of `count` planes, or None if a workgroup cannot hold one.

    Parameters
    ----------
    count, height, width
        Number of planes, their rows and columns.
    compute_type
        Complex type of the registers.
    choices
        What is chosen already.
    """
    context = get_context()
    most = context.max_invocations_along_x
    if min(height, width) < 2 or height * width > _MOST_REGISTERS * most:
        return None
    for row_split, column_split in _list_splits(height, width, most, compute_type, choices):
        group = _count_invocations(height, width, row_split, column_split)
        together = choices.planes or min(max(tuning.group // group, 1), context.max_workgroup_size[1], count)
        while together >= 1:
            size = height * width * compute_type.item_size
            half_first = size > tuning.largest_whole_exchange and not device_facts().is_cpu
            for parts in ((2, 1) if half_first else (1, 2)) if choices.parts is None else (choices.parts,):
                if group * together > most:
                    continue
                chosen = PlaneChoices(row_split, column_split, together, parts, choices.staged)
                plan = _plan_memory((count, height, width), compute_type, chosen)
                if plan is not None:
                    return plan
            together = together // 2 if choices.planes is None else 0
    return None


def _count_invocations(height: int, width: int, rows: Split, columns: Split) -> int:
    """Return the invocations of a plane: a multiple of those of a column."""
    wanted = max(rows.threads * height, columns.threads * width)
    return -(-wanted // columns.threads) * columns.threads


def _list_splits(
    height: int, width: int, most: int, compute_type: DType, choices: PlaneChoices
) -> list[tuple[Split, Split]]:
    """Return pairs of splits of rows and columns, the cheapest first."""
    if choices.rows is not None and choices.columns is not None:
        return [(choices.rows, choices.columns)]
    values = height * width
    if device_facts().is_cpu:
        wanted = max(choose_registers(max(height, width), False, True), -(-values // most))
    else:
        wanted = look_up(tuning.registers_plane, values)
    limit = max(min(wanted, _MOST_REGISTERS) * 8 // compute_type.item_size, 4)
    while limit <= _MOST_REGISTERS:
        found = _pair_splits(height, width, limit, most)
        if found:
            return found
        limit *= 2
    return []


def _pair_splits(height: int, width: int, limit: int, most: int) -> list[tuple[Split, Split]]:
    """Return pairs of splits whose invocations hold up to `limit` values or a prime."""
    of_rows, of_columns = _find_cheapest(width, limit, most), _find_cheapest(height, limit, most)
    found: list[tuple[float, int, Split, Split]] = []
    for row_threads, (row_cost, row_split) in of_rows.items():
        for column_threads, (column_cost, column_split) in of_columns.items():
            a, b = row_threads * height, column_threads * width
            if max(a, b) > most or max(a, b) > 2 * min(a, b):
                continue
            work = row_cost * max(a, b) / a + column_cost * max(a, b) / b
            work *= tuning.cost_large_group if max(a, b) > tuning.large_group else 1
            found.append((work, len(found), row_split, column_split))
    return [(each[2], each[3]) for each in sorted(found)[:8]]


@functools.cache
def _find_cheapest(length: int, registers: int, most: int) -> dict[int, tuple[float, Split]]:
    """Return the cheapest split for each number of invocations of a line, with its cost."""
    best: dict[int, tuple[float, Split]] = {}
    for cost, split in list_splits(length, registers, most):
        if split.threads not in best or cost < best[split.threads][0]:
            best[split.threads] = cost, split
    return best


def _plan_memory(shape: tuple[int, int, int], compute_type: DType, choices: PlaneChoices) -> PlanePlan | None:
    """Choose workgroup memory for chosen splits, planes and parts, or None if there is not enough."""
    rows, columns, planes, parts = choices.rows, choices.columns, choices.planes, choices.parts
    assert rows is not None and columns is not None and planes is not None and parts is not None
    _, height, width = shape
    most, item = get_context().max_shared_memory, compute_type.item_size
    group = _count_invocations(height, width, rows, columns)
    layouts: list[SharedLayout | None] = []
    for split, interleaved in ((rows, False), (columns, True)):
        layout = None
        if len(split.radices) > 1:
            lines = planes * -(-group // split.threads)
            layout = plan_layout(split, lines, interleaved, item, most, parts)
            if layout is None:
                return None
        layouts.append(layout)
    staged = choices.staged
    if staged is None and device_facts().is_cpu:
        staged = rows.threads < min(tuning.cpu_plane_staged_threads, width)
    elif staged is None:
        staged = width <= tuning.plane_staged_width
    pitch = _choose_pitch(width, height, rows.threads, group, item // parts)
    for chunks in (1, 2, 4, 8) if parts == 2 else (1,):
        first = columns.stages[0]
        if chunks > 1 and (not first.is_even or first.radix % chunks):
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
def _choose_pitch(width: int, height: int, threads: int, group: int, item: int) -> int:
    """Return the distance of rows with the fewest bank conflicts along rows and along columns."""
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
