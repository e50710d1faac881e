"""How the work of a scan is divided, and the measured numbers that this depends on."""

import math

from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.families.tuning import (
    AMD,
    H200_AND_LLVMPIPE,
    INTEL,
    LLVMPIPE,
    NVIDIA,
    DeviceFacts,
    Number,
    Table,
    floor_power_of_two,
)
from vkdispatch.shader.program import is_checking

# ---- Numbers found by measurement, which the plans of scans depend on ------------------------------------


class Tuning(Table, family="scans"):
    """Numbers for GPUs, and those that end in "_cpu"."""

    # Invocations of a workgroup. A power of two.
    group = Number(512, (128, 256, 512, 1024), changes_rounding=True)
    # Bytes of a tile that an invocation holds.
    bytes_each = Number(64, (16, 32, 64, 128), changes_rounding=True)
    # Bytes of a tile that an invocation holds, on CPUs.
    bytes_each_cpu = Number(32, (8, 16, 32, 64), found_on=LLVMPIPE, changes_rounding=True)
    # Invocations of a workgroup that looks back: it keeps its tile in registers meanwhile. A power of two.
    looking_group = Number(256, (128, 256, 512, 1024), changes_rounding=True)
    # Bytes of a tile that an invocation of such a workgroup holds.
    looking_bytes_each = Number(128, (32, 64, 128), changes_rounding=True)
    # The most elements of a tile that an invocation holds.
    most_elements = Number(32)
    # Ranges that keep a GPU busy.
    enough = Number(528, (64, 132, 264, 528, 1056), changes_rounding=True)
    # Ranges that keep a CPU busy.
    enough_cpu = Number(8, (4, 8, 16, 32, 64), found_on=LLVMPIPE, changes_rounding=True)
    # The most tiles that one workgroup scans alone.
    few = Number(4, (1, 2, 4, 8, 16), found_on=H200_AND_LLVMPIPE, changes_rounding=True)
    # The most tiles that one workgroup scans alone, on CPUs.
    few_cpu = Number(128, (16, 64, 128, 512), found_on=LLVMPIPE, changes_rounding=True)
    # Tiles of a range of short rows, on CPUs.
    turns_cpu = Number(8, (2, 8, 32), found_on=LLVMPIPE, changes_rounding=True)
    # The most tiles of any range, on CPUs.
    rounds_cpu = Number(128, (32, 128, 512), found_on=LLVMPIPE, changes_rounding=True)
    # Columns side by side in a workgroup. A power of two.
    columns = Number(32, (16, 32, 64, 128), changes_rounding=True)
    # The least bytes side by side that columns are read by.
    line = Number(128, (32, 64, 128), changes_rounding=True)
    # Elements of a column that an invocation scans at once.
    rounds = Number(8, (4, 8, 16), found_on=H200_AND_LLVMPIPE, changes_rounding=True)
    # Invocations of a workgroup on CPUs if they exchange values by memory, or scan everything alone. A power
    # of two.
    memory_group_cpu = Number(64, (32, 64, 128), found_on=LLVMPIPE, changes_rounding=True)
    # The most invocations of a workgroup that scans columns, on GPUs. A power of two.
    columns_group = Number(256, (64, 128, 256, 512), changes_rounding=True)
    # Columns of a workgroup on CPUs. A power of two.
    columns_cpu = Number(8, (4, 8, 16, 32), found_on=LLVMPIPE, changes_rounding=True)
    # Tiles of a row from which on a row has tiles of its own.
    rows_apart = Number(8, (2, 4, 8, 16), changes_rounding=True)
    # These three are decided by what the device guarantees: a wrong choice waits for ever.
    #
    # Whether tiles look back: 1, or 0 for partial results; -1 chooses by the device.
    lookback = Number(-1)
    # Whether words of a look-back hold a tag too: 1 or 0; -1: where the device has 64-bit atomics.
    packed = Number(-1)
    # Whether tiles are numbered as their workgroups start: 1 or 0; -1: where these start in any order.
    tickets = Number(-1)
    # Whether subgroups add and multiply by operations of the device: 1 or 0; -1: on GPUs.
    native = Number(-1)


tuning = Tuning()


# ---- How the work of a scan is divided, and how its parts learn what comes before them -------------------
#
# one range             one workgroup scans everything, tile by tile
# ranges of whole rows  the ranges are independent
# look-back             each range is one tile, which publishes its total: one pass over the memory
# partial results       reduce each range, scan the partial results, scan each range: two passes
#
# Look-back needs forward progress: a workgroup that has started keeps running while others wait for it.
# Vulkan does not promise that, but GPUs of the vendors below have it. CPU drivers may suspend a workgroup
# for long, and may leave long loops. They, and unknown devices, use partial results.
#
# On CPU drivers a workgroup is one subgroup, which exchanges values without barriers. Ranges are many
# rounds of small tiles, and each invocation scans a column.


_MAX_NARROW = 0xFFFFFFFF
_VENDORS_WITH_PROGRESS = {NVIDIA, AMD, INTEL}


@record
class LaneFacts:
    """How the invocations of a device exchange values: of several devices, what all of them can.

    Attributes
    ----------
    size
        Invocations that exchange values: a subgroup, or without `has_shuffle` the whole workgroup.
    has_shuffle
        Whether they do so by subgroup operations; otherwise they use workgroup memory.
    has_long_arithmetic
        Whether those operations take integers of 64 bits.
    has_long_atomics
        Whether words of 64 bits are loaded and stored atomically.
    has_arithmetic
        Whether sums and products of subgroups are computed by the device's own operations.
    """

    size: int
    has_shuffle: bool
    has_long_arithmetic: bool
    has_long_atomics: bool
    has_arithmetic: bool


@record
class Ranges:
    """The ranges of a launch.

    Attributes
    ----------
    groups
        How many ranges there are: a workgroup for each.
    size, last
        Elements of a range, a multiple of those of a vector, and of the last one.
    rounds
        Tiles of a range.
    rows
        How rows lie in ranges: "" (one row), "inside", "across" or "apart". If they are apart, a row has
        `each` ranges, and the last of a row has `last` elements.
    """

    groups: int
    size: int
    last: int
    rounds: int
    rows: str
    each: int = 1

    def numbers(self, together: int, length: int) -> tuple[int, ...]:
        """Return the numbers that a kernel is launched with; raise ValueError if one exceeds 32 bits."""
        numbers = (
            self.groups,
            self.size // together,
            self.last,
            self.rounds,
            length if self.rows else 1,
            self.each,
        )
        if max(*numbers, self.size) > _MAX_NARROW:
            raise ArgumentValueError(
                f"axis: rows of {length} elements are too long where there are several; at most 2**32 - 1"
            )
        return numbers


def make_one_range(outer: int, length: int, tile: int, together: int) -> Ranges:
    """Return one range of all elements."""
    size = outer * length
    return Ranges(1, -(-size // together) * together, size, -(-size // tile), "inside" if outer > 1 else "")


def split_by_tiles(outer: int, length: int, tile: int, together: int) -> Ranges:
    """Return a range for each tile."""
    size = outer * length
    if outer > 1 and length % together == 0 and length >= tuning.rows_apart * tile:
        each = -(-length // tile)
        return Ranges(outer * each, tile, length - (each - 1) * tile, 1, "apart", each)
    groups = -(-size // tile)
    return Ranges(groups, tile, size - (groups - 1) * tile, 1, "across" if outer > 1 else "")


@record
class ColumnsPlan:
    """A launch over columns.

    Attributes
    ----------
    group, side
        Invocations of a workgroup, and the columns that it scans.
    segments
        Workgroups that share a column.
    numbers
        What the kernel is launched with: see `columns.NUMBERS`.
    """

    group: int
    side: int
    segments: int
    numbers: tuple[int, ...]


class Planner:
    """Plans scans on GPUs.

    Attributes
    ----------
    enough
        Ranges that keep the device busy.
    few
        The most tiles that one workgroup scans alone.
    turns, rounds
        The most tiles of a range of short rows, and of any range.
    """

    has_arithmetic = True
    # Whether a load of columns takes several of them, and few columns make workgroups narrow.
    has_vectors = has_narrow_sides = True
    # Times `enough`: the ranges into which one row is split.
    shares = 1

    def __init__(self, device: DeviceFacts) -> None:
        self.device = device
        self.enough, self.few, self.turns, self.rounds = tuning.enough, tuning.few, 2, _MAX_NARROW

    def choose_lanes(self, kind: DType) -> LaneFacts:
        """Return how invocations exchange values of a type."""
        device = self.device
        has_shuffle = (
            device.has_shuffle
            and device.has_shift
            and device.has_one_subgroup_size
            and device.subgroup_size >= 4
        )
        has_long_arithmetic = "shaderSubgroupExtendedTypes" in device.features
        has_long_atomics = {"shaderInt64", "shaderBufferInt64Atomics"} <= device.features
        if tuning.packed >= 0:
            has_long_atomics = has_long_atomics and bool(tuning.packed)
        has_arithmetic = self.has_arithmetic if tuning.native < 0 else bool(tuning.native)
        has_arithmetic = has_arithmetic and has_shuffle and device.has_arithmetic
        size = device.subgroup_size if has_shuffle else self.choose_group(kind, 0)
        return LaneFacts(size, has_shuffle, has_long_arithmetic, has_long_atomics, has_arithmetic)

    def choose_group(
        self, kind: DType, subgroup: int, *, is_looking: bool = False, is_alone: bool = False
    ) -> int:
        """Return the number of invocations of a workgroup.

        Parameters
        ----------
        subgroup
            Invocations of a subgroup; 0 if invocations exchange values by workgroup memory.
        is_looking
            Whether workgroups look back.
        is_alone
            Whether one workgroup scans everything.
        """
        most = self.device.max_group
        if not subgroup:
            size = kind.item_size + 4
            most = min(most, self.device.shared_memory // (2 * size))
            return floor_power_of_two(min(tuning.memory_group_cpu, most))
        wanted = self._want_group(subgroup, is_looking, is_alone)
        return max(subgroup, min(wanted, most, subgroup * subgroup) // subgroup * subgroup)

    def _want_group(self, subgroup: int, is_looking: bool, is_alone: bool) -> int:
        return tuning.looking_group if is_looking else tuning.group

    def can_look_back(self, lanes: LaneFacts) -> bool:
        """Whether tiles publish their totals while other tiles wait for them."""
        if not lanes.has_shuffle:
            return False
        if tuning.lookback >= 0:
            return bool(tuning.lookback)
        # an invocation that a check ends early would leave others waiting for ever
        return self._makes_progress() and not is_checking()

    def _makes_progress(self) -> bool:
        return self.device.vendors <= _VENDORS_WITH_PROGRESS

    def needs_tickets(self) -> bool:
        """Whether workgroups may start in any order. NVIDIA's devices start them by their numbers."""
        return bool(tuning.tickets) if tuning.tickets >= 0 else self.device.vendors != {NVIDIA}

    def choose_vectors(
        self,
        kind: DType,
        together: int,
        *,
        is_looking: bool = False,
        is_alone: bool = False,
        is_brief: bool = True,
    ) -> int:
        """Return the number of vectors of a tile that an invocation scans. See `choose_group`.

        `is_brief`: one expression combines two values. Otherwise each vector makes the kernel longer, which
        CPU drivers compile slowly.
        """
        held = tuning.bytes_each if is_alone else self._limit_bytes(is_looking, is_brief)
        return max(1, min(held // kind.item_size, tuning.most_elements) // together)

    def _limit_bytes(self, is_looking: bool, is_brief: bool) -> int:
        """Return the bytes of a tile that an invocation holds."""
        return tuning.looking_bytes_each if is_looking else tuning.bytes_each

    def split_by_rows(self, outer: int, length: int, tile: int, together: int) -> Ranges | None:
        """Return ranges of whole rows, or one range; None if these are too few to keep the device busy.

        All ranges but the last hold whole vectors of `together` elements.
        """
        size = outer * length
        tiles = -(-size // tile)
        if tiles <= self.few:
            return make_one_range(outer, length, tile, together)
        if outer == 1:
            return None
        # a range begins with a whole vector, also where rows do not
        step = together // math.gcd(length, together)
        turns = 1 if tiles < self.turns * self.enough else self.turns
        rows = max(1, turns * tile // length // step) * step
        groups = -(-outer // rows)
        extent = rows * length
        if extent > _MAX_NARROW or groups < min(self.enough, tiles // 2) or -(-extent // tile) > self.rounds:
            return None
        return Ranges(groups, extent, size - (groups - 1) * extent, -(-extent // tile), "inside")

    def split_evenly(self, outer: int, length: int, tile: int) -> Ranges:
        """Return ranges of several tiles each, enough of them to keep the device busy."""
        size = outer * length
        tiles = -(-size // tile)
        groups = min(tiles, max(self.shares * self.enough, -(-tiles // self.rounds)))
        rounds = -(-tiles // groups)
        groups = -(-tiles // rounds)
        return Ranges(
            groups, rounds * tile, size - (groups - 1) * rounds * tile, rounds, "across" if outer > 1 else ""
        )

    def plan_columns(
        self,
        kind: DType,
        shape: tuple[int, int, int],
        together: int,
        *,
        is_whole: bool,
        is_alone: bool = False,
    ) -> ColumnsPlan:
        """Plan a scan along an axis that is not the last.

        Parameters
        ----------
        shape
            Elements before, along and after the axis.
        together
            Elements of a vector.
        is_whole
            Whether no two workgroups share a column.
        is_alone
            Whether a workgroup scans its columns in one launch, whatever their length.

        Raises
        ------
        ValueError
            A number exceeds 32 bits.
        """
        outer, length, inner = shape
        device, enough = self.device, self.enough
        held = kind.item_size + 4
        most = min(device.max_group, device.shared_memory // (2 * held * together))
        group = floor_power_of_two(min(self._want_columns_group(is_alone), most))
        columns = outer * inner // together
        side = min(group, 1 << max(columns - 1, 0).bit_length())
        if length > tuning.rounds and -(-columns // group) < enough and (is_alone or self.has_narrow_sides):
            side = min(side, tuning.columns)
            # fewer columns for each workgroup, if that makes enough workgroups
            least = max(1, tuning.line // (together * kind.item_size))
            fit_source = [1 << i for i in range(side.bit_length()) if 1 << i >= min(least, side)]
            side = max((count for count in fit_source if 2 * -(-columns // count) > enough), default=side)
        chunk = group // side * tuning.rounds
        blocks = -(-columns // side)
        turns = -(-length // chunk)
        segments = 1
        is_shared = 2 * blocks <= enough or turns > self.rounds
        if not (is_whole or is_alone) and turns > tuning.few and is_shared:
            segments = max(min(turns, -(-enough // blocks)), -(-turns // self.rounds))
        turns = -(-turns // segments)
        segments = -(-length // (turns * chunk))
        last = columns - (blocks - 1) * side
        numbers = (blocks, last, segments, turns * chunk, length, inner // together, turns)
        if max(numbers) > _MAX_NARROW:
            raise ArgumentValueError(
                f"axis: an axis of {length} elements, with {inner} after each, is too long; at most 2**32 - 1"
            )
        return ColumnsPlan(group, side, segments, numbers)

    def _want_columns_group(self, is_alone: bool) -> int:
        return tuning.columns_group


class CpuPlanner(Planner):
    """Plans scans on CPU drivers."""

    has_arithmetic = False
    # cache lines of a column are far apart, so a load takes few of them at once
    has_vectors = has_narrow_sides = False
    shares = 4

    def __init__(self, device: DeviceFacts) -> None:
        self.device = device
        self.enough, self.few = tuning.enough_cpu, tuning.few_cpu
        self.turns, self.rounds = tuning.turns_cpu, tuning.rounds_cpu

    def _want_group(self, subgroup: int, is_looking: bool, is_alone: bool) -> int:
        return tuning.memory_group_cpu if is_alone else subgroup

    def _makes_progress(self) -> bool:
        return False

    def _limit_bytes(self, is_looking: bool, is_brief: bool) -> int:
        return tuning.bytes_each_cpu if is_brief else 0

    def _want_columns_group(self, is_alone: bool) -> int:
        return tuning.memory_group_cpu if is_alone else tuning.columns_cpu


def make_planner(device: DeviceFacts) -> Planner:
    """Return what plans scans on a kind of device."""
    return (CpuPlanner if device.is_cpu else Planner)(device)
