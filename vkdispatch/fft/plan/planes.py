"""Plans of transforms of the last two axes in one kernel."""

import functools
from collections.abc import Sequence

from vkdispatch.arrays.facts import device_facts
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.fft.plan.memory import SharedLayout, allocation, plan_layout
from vkdispatch.fft.plan.passes import choose_registers
from vkdispatch.fft.plan.stages import Split, list_splits

_WORKGROUP = 64  # invocations that a workgroup has if its planes are small
_SHORT_READ = 32  # values of the rows that are better read with their neighbours, on GPUs
_SHORT_READ_CPU = 4
# Values of a plane, and of those an invocation holds, as measured on an H200 (complex64).
_REGISTERS = ((64, 8), (256, 4), (1024, 8), (4096, 16))
_HALVED = 8 << 10  # larger planes exchange real and imaginary parts in turn
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
        return _count_invocations(self.height, self.width, self.rows, self.columns)

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
    for row_split, column_split in _list_splits(height, width, most, rows, columns, compute_type):
        group = _count_invocations(height, width, row_split, column_split)
        together = planes or min(max(_WORKGROUP // group, 1), context.max_workgroup_size[1], count)
        while together >= 1:
            half_first = height * width * compute_type.item_size > _HALVED and not device_facts().cpu
            for part in ((2, 1) if half_first else (1, 2)) if parts is None else (parts,):
                if group * together > most:
                    continue
                plan = _plan_memory(
                    (count, height, width), row_split, column_split, together, part, staged, compute_type
                )
                if plan is not None:
                    return plan
            together = together // 2 if planes is None else 0
    return None


def _count_invocations(height: int, width: int, rows: Split, columns: Split) -> int:
    """Return the invocations of a plane: a multiple of those that a column has."""
    wanted = max(rows.threads * height, columns.threads * width)
    return -(-wanted // columns.threads) * columns.threads


def _list_splits(
    height: int, width: int, most: int, rows: Split | None, columns: Split | None, compute_type: DType
) -> list[tuple[Split, Split]]:
    """Return splits of rows and columns that go together, the cheapest ones first."""
    if rows is not None and columns is not None:
        return [(rows, columns)]
    values = height * width
    if device_facts().cpu:
        wanted = max(choose_registers(max(height, width), False, True), -(-values // most))
    else:
        wanted = next((registers for size, registers in _REGISTERS if values <= size), 32)
    limit = max(min(wanted, 32) * 8 // compute_type.item_size, 4)
    while limit <= 32:
        found = _pair_splits(height, width, limit, most)
        if found:
            return found
        limit *= 2
    return []


def _pair_splits(height: int, width: int, limit: int, most: int) -> list[tuple[Split, Split]]:
    """Return splits that go together, of invocations that hold up to `limit` values or a prime."""
    of_rows, of_columns = _cheapest_by_threads(width, limit, most), _cheapest_by_threads(height, limit, most)
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
def _cheapest_by_threads(length: int, registers: int, most: int) -> dict[int, tuple[float, Split]]:
    """Return the cheapest split for each number of invocations of a line, with its cost."""
    best: dict[int, tuple[float, Split]] = {}
    for cost, split in list_splits(length, registers, most):
        if split.threads not in best or cost < best[split.threads][0]:
            best[split.threads] = cost, split
    return best


def _plan_memory(
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
    if staged is None:
        staged = rows.threads < min(_SHORT_READ_CPU, width) if device_facts().cpu else width <= _SHORT_READ
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
