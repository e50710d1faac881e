"""How a sort's work is laid out: which kernels, how large their tiles are.

rows of up to `short` keys        an invocation for each key, which counts those before it
rows that fit a tile              a workgroup for as many rows as fit
longer rows                       a launch or three for each digit, over all tiles of all rows

On CPU drivers, without barriers:

rows of few keys                  an invocation for each key, which counts those before it
many rows                         an invocation for each row, which merges
few rows, longer rows             three launches for each digit, an invocation for each run of keys
"""

from enum import Enum

from vkdispatch.arrays.facts import DeviceFacts
from vkdispatch.arrays.words import word_count
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.shader.observation import checks_of
from vkdispatch.sorting.tile import TileForm

# What a kernel needs of workgroup memory beside tables and tile; and that of a sweep.
_BESIDE, _BESIDE_SWEEP = 6 << 10, 3 << 10
# Keys of an invocation in a sweep are as many, or a multiple.
_STEP = 4
# More keys than this in a row are counted in 64 bits.
MOST_NARROW = 0xFFFFFFFF - (1 << 16)


@record(frozen=False)
class Tuning:
    """Numbers that were found by measurement. They may be changed, for what is planned afterwards.

    Attributes
    ----------
    width
        Bits of a digit.
    group, items
        Invocations of a workgroup, and keys of each for keys of 4 bytes and nothing else, on GPUs.
    block_group, block_items
        The same of the kernel that sorts in one workgroup.
    small_group, small_items
        The same of rows that fit a tile of that size.
    sweep_items, sweep_registers
        Keys of each in launches that do a whole digit, and how many words of 32 bits an invocation's keys
        take there, and all that goes with them, at most.
    registers
        How many words of 32 bits an invocation's keys take, and all that goes with them, at most.
    short
        Keys of rows in which each key counts the others.
    match
        How tiles are ranked (0 or 1) that are done in one workgroup or in three launches; see `TileForm`.
    votes
        Whether digits are counted by votes, in place of an atomic for each key (0 or 1).
    few_tiles
        Tiles along which one invocation sums up.
    onesweep
        Whether a digit is done in one launch (0 or 1).
    window
        Tiles before that are looked at together.
    histogram_group, histogram_items, histogram_rounds
        Invocations of a workgroup that makes histograms, keys that each has under way, and how often.
    serial_group, serial_items, serial_width
        Invocations of a workgroup, keys of each, and bits of a digit, where tiles are ranked without votes.
    run_group, run_least, run_most, run_count
        Invocations of a workgroup that does runs of keys, keys of a run at least and at most, and runs of a
        row that are few enough to keep runs longer than the least.
    run_width, long_run, long_run_width
        Bits of a digit; those of runs that are longer, and how many keys these have.
    short_work
        Keys of all rows, times those of one, up to which each key counts the others on CPU drivers.
    merge_short, merge_long, merge_rows
        Keys of rows that are merged, at least and at most, and rows at least. llvmpipe ends the loops of
        rows of 4,096.
    """

    width: int = 8
    group: int = 256
    items: int = 24
    block_group: int = 256
    block_items: int = 16
    small_group: int = 128
    small_items: int = 8
    sweep_items: int = 36
    sweep_registers: int = 40
    registers: int = 48
    short: int = 40
    match: int = 1
    votes: int = 0
    few_tiles: int = 64
    onesweep: int = 1
    window: int = 4
    histogram_group: int = 256
    histogram_items: int = 8
    histogram_rounds: int = 16
    serial_group: int = 64
    serial_items: int = 16
    serial_width: int = 4
    run_group: int = 8
    run_least: int = 512
    run_most: int = 32768
    run_count: int = 128
    run_width: int = 8
    long_run: int = 8192
    long_run_width: int = 11
    short_work: int = 1 << 18
    merge_short: int = 16
    merge_long: int = 4000
    merge_rows: int = 4


tuning = Tuning()


def block_form(device: DeviceFacts, key: DType, length: int) -> TileForm | None:
    """Return how a workgroup does rows of a length, and their positions; None where they do not fit."""
    for wanted in (tuning.small_group, tuning.small_items), (tuning.block_group, tuning.block_items):
        form = tile_form(device, key, dtype.uint32, *wanted)
        if length <= form.tile:
            return form
    return None


def tile_form(
    device: DeviceFacts, key: DType, payload: DType | None, group: int = 0, items: int = 0
) -> TileForm:
    """Return how a workgroup does a tile of keys, and of what goes with them, of these raw types.

    `group` invocations of `items` keys each, at most; 0: what `tuning` says.
    """
    words = word_count(key) + (0 if payload is None else word_count(payload))
    group, subgroup = _grouped(device, group or tuning.group)
    tables = (group // subgroup << tuning.width) * (8 if tuning.match else 4)
    if subgroup == 1 or tables + _BESIDE > device.memory:
        return _serial_form(device, words)
    items = items or tuning.items
    # a place for each key, beside the key
    items = min(items, tuning.registers // (words + 1), (device.memory - _BESIDE) // (4 * group))
    match = subgroup <= 32 and tuning.match == 1
    return TileForm(group, max(1, items), tuning.width, subgroup, device.arithmetic, match)


def sweep_form(device: DeviceFacts, key: DType, payload: DType | None, length: int) -> TileForm | None:
    """Return the same where a digit of rows of a length is done in one launch; None where it is in three."""
    # a check that ends invocations early would leave others waiting
    if length > MOST_NARROW or not tuning.onesweep or checks_of(None):
        return None
    words = word_count(key) + (0 if payload is None else word_count(payload))
    group, subgroup = _grouped(device, tuning.group)
    free = device.memory - _BESIDE_SWEEP - 4 * (group // subgroup << tuning.width)
    items = min(tuning.sweep_items, tuning.sweep_registers // words, free // (4 * group * words))
    if subgroup == 1 or items < 1:
        return None
    # tiles of a row have much the same to do; of their lengths there are few, for each has a kernel
    tiles = -(-length // (group * items))
    even = -(-length // (group * tiles))
    items = min(items, -(-even // _STEP) * _STEP)
    return TileForm(group, items, tuning.width, subgroup, device.arithmetic)


def _grouped(device: DeviceFacts, group: int) -> tuple[int, int]:
    """Return the invocations of a workgroup and of a subgroup that votes; of the latter 1 where none does."""
    subgroup = device.subgroup if device.ballots and device.same and device.whole else 1
    return max(min(group, device.group) // subgroup, 1) * subgroup, subgroup


def _serial_form(device: DeviceFacts, words: int) -> TileForm:
    """Return the form of a tile that is ranked without votes."""
    group, width = min(tuning.serial_group, device.group), tuning.serial_width
    free = device.memory - _BESIDE - 4 * (group << width)
    items = min(tuning.serial_items, free // (8 * words * group))
    return TileForm(group, max(1, items), width, 1, False)


class Way(Enum):
    """How rows are sorted."""

    SHORT = "an invocation for each key"
    BLOCKS = "a workgroup for as many rows as fit"
    MERGED = "an invocation for each row"
    LONG = "launches for each digit"


def way_for(device: DeviceFacts, key: DType, count: int, length: int) -> Way:
    """Return how so many rows of a length are sorted."""
    size = count * length
    countable = size < 1 << 31
    if not device.cpu:
        if length <= tuning.short and countable:
            return Way.SHORT
        return Way.LONG if block_form(device, key, length) is None else Way.BLOCKS
    if countable and (length < tuning.merge_short or size * length <= tuning.short_work):
        return Way.SHORT
    if count >= tuning.merge_rows and length <= tuning.merge_long:
        return Way.MERGED
    return Way.LONG


@record
class RunShape:
    """How rows are cut into runs, of which an invocation does one.

    Attributes
    ----------
    group
        Invocations of a workgroup.
    width
        Bits of a digit, at most.
    runs
        Runs of each row.
    run, last
        Keys of a run, and of the last of a row.
    """

    group: int
    width: int
    runs: int
    run: int
    last: int


def run_shape(device: DeviceFacts, parts: tuple[int, ...], length: int) -> RunShape:
    """Return the shape of runs of rows of a length, whose codes have parts of so many bits."""
    group = min(tuning.run_group, device.group)
    run = min(max(-(-length // tuning.run_count), tuning.run_least), tuning.run_most)
    # all invocations of workgroups have work
    groups = -(-length // (run * group))
    run = -(-length // (groups * group))
    width = tuning.long_run_width if run >= tuning.long_run else tuning.run_width
    bits = max(parts)
    runs = -(-length // run)
    return RunShape(group, -(-bits // -(-bits // width)), runs, run, length - (runs - 1) * run)


def counter_for(length: int) -> DType:
    """Return the type that counts the keys of a row."""
    return dtype.uint32 if length <= MOST_NARROW else dtype.uint64
