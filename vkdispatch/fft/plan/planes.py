"""Plans of transforms of whole planes, of passes of columns, and of lines longer than workgroups."""

import functools
import math
from collections.abc import Sequence

from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType, complex64, dvec2, dvec4
from vkdispatch.base.record import record
from vkdispatch.fft.plan.passes import SharedLayout, count_allocated, plan_layout
from vkdispatch.fft.plan.planner import Planner, find_planner
from vkdispatch.fft.plan.stages import LARGEST_PRIME, Split, find_prime_factors, list_splits
from vkdispatch.fft.plan.tuning import tuning

# ---- Splits of lines that no workgroup holds into passes -------------------------------------------------


def choose_factors(length: int, compute_type: DType) -> tuple[int, ...] | None:
    """Return the lengths of the passes, as few as possible, or None if a prime factor is too large."""
    if find_prime_factors(length)[-1:] > (LARGEST_PRIME,):
        return None
    longest = tuning.longest_of_pass * 8 // max(compute_type.item_size, 8)
    limits = [(count, most) for count in (2, 3, 4) for most in find_planner().lengths_of_pass]
    limits += [(count, longest) for count in (2, 3, 4)]
    return next((found for count, most in limits if (found := _balance_factors(length, count, most))), None)


def _balance_factors(length: int, count: int, longest: int) -> tuple[int, ...] | None:
    """Split into `count` factors of about the same size, none above `longest`."""
    if count == 1:
        return (length,) if length <= longest else None
    root = length ** (1 / count)
    divisors = sorted(
        (d for d in _list_divisors(length) if 1 < d <= longest), key=lambda d: abs(math.log(d / root))
    )
    for divisor in divisors:
        rest = _balance_factors(length // divisor, count - 1, longest)
        if rest:
            return (divisor, *rest)
    return None


def _list_divisors(n: int) -> set[int]:
    divisors = {1}
    for prime in find_prime_factors(n):
        divisors |= {d * prime for d in divisors}
    return divisors


# ---- Plans of passes of columns, for CPU drivers ---------------------------------------------------------


VECTORS: dict[int, DType] = {4: dvec4, 2: dvec2}


@record
class Columns:
    """A pass over lines that are matrices of radix x rest x stride values.

    Attributes
    ----------
    outer
        Lines that are transformed at once.
    radix
        Values of a column.
    rest, stride
        Values that later passes transform; distance of the values that earlier passes transformed.
    first, last
        Whether the pass reads from the caller's buffer, and whether it writes to it.
    lanes
        Invocations that share columns.
    width
        Columns of an invocation.
    words
        Values of a store.
    """

    outer: int
    radix: int
    rest: int
    stride: int
    first: bool
    last: bool
    lanes: int
    width: int
    words: int

    @property
    def rows(self) -> int:
        """Values of a column that an invocation holds."""
        return self.radix // self.lanes

    @property
    def cost(self) -> float:
        """Instructions for each value."""
        moved = tuning.column_access / self.width + tuning.column_access / self.words + 2 * tuning.column_move
        steps = (self.lanes.bit_length() - 1) * tuning.column_step
        held = tuning.column_held * max(0, self.rows - tuning.column_rows)
        return tuning.column_launch + moved + tuning.column_transform + steps + held

    @property
    def groups(self) -> int:
        """Groups of columns of a line."""
        return self.rest * self.stride // self.width


def plan_columns(
    outer: int, radix: int, rest: int, stride: int, ends: tuple[bool, bool], compute_type: DType
) -> Columns | None:
    """Plan a pass, or None if columns do not form vectors, or kernels do not run on a CPU."""
    planner = find_planner()
    if not suits_columns(planner, compute_type):
        return None
    first, last = ends
    columns = rest * stride
    lanes = choose_lanes(planner, radix)
    rows = radix // lanes
    for width in VECTORS:
        if columns % width:
            continue
        if last or stride % width == 0:
            return Columns(outer, radix, rest, stride, first, last, lanes, width, width)
        if stride == 1:
            # columns are written as rows, one after another
            run = rows if lanes > 1 else rows * width
            words = next((words for words in VECTORS if run % words == 0), 0)
            if words:
                return Columns(outer, radix, rest, stride, first, last, lanes, width, words)
    return None


def choose_radices(length: int, inner: int, compute_type: DType) -> tuple[int, ...] | None:
    """Return the radices of the passes over lines, `inner` of them interleaved, or None if there are none."""
    if not suits_columns(find_planner(), compute_type) or find_prime_factors(length)[-1:] > (LARGEST_PRIME,):
        return None
    # of equal costs, the largest radix comes first: the rows of later passes are farther apart
    largest = tuning.column_lanes[0] * tuning.column_most_rows
    divisors = [radix for radix in range(largest, 1, -1) if length % radix == 0]

    @functools.cache
    def best(done: int, passes: int) -> tuple[float, tuple[int, ...]] | None:
        """Return the cheapest passes for the rest, and their cost."""
        if done == length:
            return 0.0, ()
        cheapest: tuple[float, tuple[int, ...]] | None = None
        for radix in divisors if passes else ():
            rest, odd = divmod(length // done, radix)
            if odd or radix == length:
                continue
            plan = plan_columns(1, radix, rest, done * inner, (done == 1, rest == 1), compute_type)
            if plan is None or plan.rows > tuning.column_most_rows:
                continue
            tail = best(done * radix, passes - 1)
            if tail is None:
                continue
            cost = round(plan.cost + tail[0], 3)
            if cheapest is None or cost < cheapest[0]:
                cheapest = cost, (radix, *tail[1])
        return cheapest

    found = best(1, tuning.column_most_passes)
    return None if found is None else found[1]


def suits_columns(planner: Planner, compute_type: DType) -> bool:
    """Whether a device transforms by passes of columns."""
    return planner.has_columns and compute_type is complex64 and "shaderFloat64" in planner.device.features


def choose_lanes(planner: Planner, radix: int) -> int:
    """Return how many invocations share columns of so many values."""
    facts = planner.device
    if radix <= tuning.column_rows or not (facts.has_shuffle and facts.has_full_subgroups):
        return 1
    size = facts.subgroup_size
    if tuning.column_group % size:
        return 1
    # no more than necessary: each doubling costs a step across the subgroup
    usable = [lanes for lanes in tuning.column_lanes if radix % lanes == 0 and size % lanes == 0]
    few_rows = [lanes for lanes in usable if radix // lanes <= tuning.column_rows]
    return few_rows[-1] if few_rows else max(usable, default=1)


# ---- Plans of transforms of the last two axes in one kernel ----------------------------------------------


_BANKS = 32  # of workgroup memory, of 4 bytes each
_MAX_REGISTERS = 32


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
    planner = find_planner()
    most = planner.device.max_group
    if min(height, width) < 2 or height * width > _MAX_REGISTERS * most:
        return None
    most_planes = get_context().max_workgroup_size[1]
    for row_split, column_split in _list_splits(height, width, compute_type, choices):
        group = _count_invocations(height, width, row_split, column_split)
        together = choices.planes or min(max(tuning.group // group, 1), most_planes, count)
        while together >= 1:
            size = height * width * compute_type.item_size
            either = (2, 1) if size > planner.largest_whole_exchange else (1, 2)
            for parts in either if choices.parts is None else (choices.parts,):
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
    height: int, width: int, compute_type: DType, choices: PlaneChoices
) -> list[tuple[Split, Split]]:
    """Return pairs of splits of rows and columns, the cheapest first."""
    if choices.rows is not None and choices.columns is not None:
        return [(choices.rows, choices.columns)]
    planner = find_planner()
    wanted = planner.choose_plane_registers(height, width)
    limit = max(min(wanted, _MAX_REGISTERS) * 8 // compute_type.item_size, 4)
    while limit <= _MAX_REGISTERS:
        pairs = _pair_splits(height, width, limit, planner.device.max_group)
        if pairs:
            return pairs
        limit *= 2
    return []


def _pair_splits(height: int, width: int, limit: int, most: int) -> list[tuple[Split, Split]]:
    """Return pairs of splits whose invocations hold up to `limit` values or a prime."""
    of_rows, of_columns = _find_cheapest(width, limit, most), _find_cheapest(height, limit, most)
    candidates: list[tuple[float, int, Split, Split]] = []
    for row_threads, (row_cost, row_split) in of_rows.items():
        for column_threads, (column_cost, column_split) in of_columns.items():
            a, b = row_threads * height, column_threads * width
            if max(a, b) > most or max(a, b) > 2 * min(a, b):
                continue
            work = row_cost * max(a, b) / a + column_cost * max(a, b) / b
            work *= tuning.cost_large_group if max(a, b) > tuning.large_group else 1
            candidates.append((work, len(candidates), row_split, column_split))
    return [(candidate[2], candidate[3]) for candidate in sorted(candidates)[:8]]


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
    planner, item = find_planner(), compute_type.item_size
    group = _count_invocations(height, width, rows, columns)
    layouts: list[SharedLayout | None] = []
    for split, interleaved in ((rows, False), (columns, True)):
        layout = None
        if len(split.radices) > 1:
            lines = planes * -(-group // split.threads)
            layout = plan_layout(split, lines, interleaved, item, parts)
            if layout is None:
                return None
        layouts.append(layout)
    of_rows, of_columns = layouts
    staged = planner.stages_plane(rows.threads, width) if choices.staged is None else choices.staged
    staged = staged and parts == 1
    pitch = _choose_pitch(width, height, rows.threads, group, item // parts)
    for chunks in (1, 2, 4, 8) if parts == 2 else (1,):
        first = columns.stages[0]
        if chunks > 1 and (not first.is_even or first.radix % chunks):
            continue
        plan = PlanePlan(
            *shape, rows, columns, planes, of_rows, of_columns, pitch, parts, chunks, staged, compute_type
        )
        if plan.size <= planner.device.shared_memory:
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
