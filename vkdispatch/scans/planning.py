"""How a scan's work is laid out: in which ranges, and how these learn of those before.

one range                  a workgroup does it all, tile after tile
ranges of whole rows       they need not know of each other
look-back                  ranges are single tiles, which pass on what they come to; one pass over the memory
partial results            reduce each range; scan what they come to; scan each range: two passes

Look-back wants workgroups that go on once they have started, though others wait. Vulkan does not promise it;
the GPUs of the makers below are like that. CPU drivers may lay a workgroup aside for long, and leave long
loops; they, and devices of which nothing is known, get partial results.

On CPU drivers a workgroup is one subgroup, which exchanges values without barriers; ranges are many rounds of
small tiles, and a column is one invocation's.
"""

from math import gcd

from vkdispatch.arrays.facts import AMD, INTEL, NVIDIA, DeviceFacts
from vkdispatch.arrays.numbers import floor_power_of_two
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.scans.operations import Facts
from vkdispatch.shader.observation import checks_of

_MOST_NARROW = 0xFFFFFFFF
# On CPU drivers: of workgroups that exchange values by memory, or do all by themselves as maps write.
_CPU_GROUP = 64
_COLUMNS_GROUP = 256
# Columns that an invocation each scans side by side there.
_CPU_COLUMNS = 8
# Makers by Vulkan's numbers: NVIDIA, AMD, Intel.
_GOING_ON = {NVIDIA, AMD, INTEL}
_APART = 8  # tiles of a row that has them for itself


@record
class Tuning:
    """Numbers that were found by measurement.

    Attributes
    ----------
    group
        Invocations of a workgroup.
    bytes_each, most_elements
        What an invocation has of a tile, and how many elements at most.
    bytes_each_cpu
        What it has on processors.
    looking_group, looking_bytes_each
        The same of workgroups that look back: these have their tile in registers while they wait.
    enough, enough_cpu
        Ranges that keep a device busy, on GPUs and on processors.
    few, few_cpu
        Tiles that one workgroup does rather than several.
    turns_cpu, rounds_cpu
        Tiles of a range of short rows, and of any range at most, on processors.
    columns, rounds
        Columns side by side in a workgroup, and elements of each that an invocation takes at once.
    line
        Bytes side by side that columns are read by, at least.
    lookback
        Whether tiles look back: 1, or 0, which is partial results; -1 chooses.
    packed
        Whether the words of a look-back hold a tag too: 1 or 0; -1: where the device can.
    tickets
        Whether tiles are numbered as their workgroups start: 1 or 0; -1: where these may start in any order.
    native
        Whether subgroups add and multiply by operations of the device: 1 or 0; -1: on GPUs.
    """

    group: int = 512
    bytes_each: int = 64
    bytes_each_cpu: int = 32
    looking_group: int = 256
    looking_bytes_each: int = 128
    most_elements: int = 32
    enough: int = 528
    enough_cpu: int = 8
    few: int = 4
    few_cpu: int = 128
    turns_cpu: int = 8
    rounds_cpu: int = 128
    columns: int = 32
    line: int = 128
    rounds: int = 8
    lookback: int = -1
    packed: int = -1
    tickets: int = -1
    native: int = -1


tuning = Tuning()


@record
class Ranges:
    """The ranges of a launch: `groups` of `size` elements each, but the last of `last`, in `rounds` tiles.

    `rows` is how rows lie in them: "", "inside", "across", or "apart": a row has `each` of them then, and the
    last of a row is of `last` elements.
    """

    groups: int
    size: int
    last: int
    rounds: int
    rows: str
    each: int = 1

    def numbers(self, together: int, length: int) -> tuple[int, ...]:
        """Return what a kernel is launched with. Raises ValueError where one needs more than 32 bits."""
        numbers = (
            self.groups,
            self.size // together,
            self.last,
            self.rounds,
            length if self.rows else 1,
            self.each,
        )
        if max(*numbers, self.size) > _MOST_NARROW:
            raise ArgumentValueError(
                f"axis: rows of {length} elements are too long where there are several; at most 2**32 - 1"
            )
        return numbers


def facts_of(device: DeviceFacts, kind: DType) -> Facts:
    """Return what kernels depend on of devices."""
    shuffles = (
        device.has_shuffle and device.has_shift and device.has_one_subgroup_size and device.subgroup_size >= 4
    )
    extended = "shaderSubgroupExtendedTypes" in device.features
    longs = {"shaderInt64", "shaderBufferInt64Atomics"} <= device.features
    if tuning.packed >= 0:
        longs = longs and bool(tuning.packed)
    native = not device.is_cpu if tuning.native < 0 else bool(tuning.native)
    native = native and shuffles and device.has_arithmetic
    subgroup = device.subgroup_size if shuffles else group_of(device, kind, 0)
    return Facts(subgroup, shuffles, extended, longs, native)


def group_of(
    device: DeviceFacts, kind: DType, subgroup: int, *, looking: bool = False, alone: bool = False
) -> int:
    """Return how many invocations a workgroup has.

    `subgroup` 0: they exchange values by its memory; `looking`: it looks back; `alone`: it does all.
    """
    most = device.max_group
    wanted = tuning.looking_group if looking else tuning.group
    if device.is_cpu or not subgroup:
        wanted = _CPU_GROUP if alone or not subgroup else subgroup
    if not subgroup:
        size = kind.item_size + 4
        most = min(most, device.shared_memory // (2 * size))
        return floor_power_of_two(min(wanted, most))
    return max(subgroup, min(wanted, most, subgroup * subgroup) // subgroup * subgroup)


def looks_back(device: DeviceFacts, facts: Facts) -> bool:
    """Whether tiles pass on what they come to while they are at work."""
    if not facts.shuffles:
        return False
    if tuning.lookback >= 0:
        return bool(tuning.lookback)
    if device.is_cpu or not device.vendors <= _GOING_ON:
        return False
    # a check that ends invocations early would leave others waiting
    return not checks_of(None)


def takes_tickets(device: DeviceFacts) -> bool:
    """Whether workgroups may start in any order; NVIDIA's devices start them in that of their numbers."""
    if tuning.tickets >= 0:
        return bool(tuning.tickets)
    return device.vendors != {NVIDIA}


def vectors_each(
    device: DeviceFacts,
    kind: DType,
    together: int,
    *,
    looking: bool = False,
    alone: bool = False,
    brief: bool = True,
) -> int:
    """Return how many vectors an invocation has of a tile; as of `group_of`.

    `brief`: values are combined by one expression; each that is not makes a kernel longer.
    """
    size = kind.item_size
    held = tuning.looking_bytes_each if looking else tuning.bytes_each
    if device.is_cpu and not alone:
        held = tuning.bytes_each_cpu if brief else 0
    return max(1, min(held // size, tuning.most_elements) // together)


def whole_ranges(device: DeviceFacts, outer: int, length: int, tile: int, together: int) -> Ranges | None:
    """Return ranges of whole rows, or one range; None where these are not enough to keep a device busy."""
    size = outer * length
    tiles = -(-size // tile)
    enough = tuning.enough_cpu if device.is_cpu else tuning.enough
    if tiles <= (tuning.few_cpu if device.is_cpu else tuning.few):
        return one_range(outer, length, tile, together)
    if outer == 1:
        return None
    # rows that fill whole vectors together
    step = together // gcd(length, together)
    most = tuning.turns_cpu if device.is_cpu else 2
    turns = 1 if tiles < most * enough else most
    rows = max(1, turns * tile // length // step) * step
    groups = -(-outer // rows)
    if rows * length > _MOST_NARROW or groups < min(enough, tiles // 2):
        return None
    each = rows * length
    if device.is_cpu and -(-each // tile) > tuning.rounds_cpu:
        return None
    return Ranges(groups, each, size - (groups - 1) * each, -(-each // tile), "inside")


def one_range(outer: int, length: int, tile: int, together: int) -> Ranges:
    """Return one range, of all there is."""
    size = outer * length
    return Ranges(1, -(-size // together) * together, size, -(-size // tile), "inside" if outer > 1 else "")


def tile_ranges(outer: int, length: int, tile: int, together: int) -> Ranges:
    """Return a range for each tile."""
    size = outer * length
    if outer > 1 and length % together == 0 and length >= _APART * tile:
        each = -(-length // tile)
        return Ranges(outer * each, tile, length - (each - 1) * tile, 1, "apart", each)
    groups = -(-size // tile)
    return Ranges(groups, tile, size - (groups - 1) * tile, 1, "across" if outer > 1 else "")


def shared_ranges(device: DeviceFacts, outer: int, length: int, tile: int) -> Ranges:
    """Return ranges of several tiles, as many as keep a device busy."""
    size = outer * length
    tiles = -(-size // tile)
    groups = tuning.enough
    if device.is_cpu:
        groups = max(4 * tuning.enough_cpu, -(-tiles // tuning.rounds_cpu))
    groups = min(tiles, groups)
    rounds = -(-tiles // groups)
    groups = -(-tiles // rounds)
    return Ranges(
        groups, rounds * tile, size - (groups - 1) * rounds * tile, rounds, "across" if outer > 1 else ""
    )


@record
class Columns:
    """A launch over columns: `group` invocations take `side` of them; the numbers are those of `columns`."""

    group: int
    side: int
    segments: int
    numbers: tuple[int, ...]


def columns_of(
    device: DeviceFacts,
    kind: DType,
    outer: int,
    length: int,
    inner: int,
    together: int,
    *,
    whole: bool,
    alone: bool = False,
) -> Columns:
    """Lay out a scan along an axis; `whole`: no column is shared; `alone`: each is one workgroup's.

    Raises
    ------
    ValueError
        A number needs more than 32 bits.
    """
    cpu = device.is_cpu
    enough = tuning.enough_cpu if cpu else tuning.enough
    most = device.max_group
    held = kind.item_size + 4
    most = min(most, device.shared_memory // (2 * held * together))
    wanted = _COLUMNS_GROUP
    if cpu:
        wanted = _CPU_GROUP if alone else _CPU_COLUMNS
    group = floor_power_of_two(min(wanted, most))
    columns = outer * inner // together
    side = min(group, 1 << max(columns - 1, 0).bit_length())
    if length > tuning.rounds and -(-columns // group) < enough and (alone or not cpu):
        side = min(side, tuning.columns)
        # fewer columns for each workgroup, if that makes enough of these
        least = max(1, tuning.line // (together * kind.item_size))
        fitting = [1 << i for i in range(side.bit_length()) if 1 << i >= min(least, side)]
        side = max((each for each in fitting if 2 * -(-columns // each) > enough), default=side)
    chunk = group // side * tuning.rounds
    blocks = -(-columns // side)
    turns = -(-length // chunk)
    segments = 1
    shared = 2 * blocks <= enough or (cpu and turns > tuning.rounds_cpu)
    if not (whole or alone) and turns > tuning.few and shared:
        segments = min(turns, -(-enough // blocks))
        if cpu:
            segments = max(segments, -(-turns // tuning.rounds_cpu))
    turns = -(-turns // segments)
    segments = -(-length // (turns * chunk))
    last = columns - (blocks - 1) * side
    numbers = (blocks, last, segments, turns * chunk, length, inner // together, turns)
    if max(numbers) > _MOST_NARROW:
        raise ArgumentValueError(
            f"axis: an axis of {length} elements, with {inner} after each, is too long; at most 2**32 - 1"
        )
    return Columns(group, side, segments, numbers)
