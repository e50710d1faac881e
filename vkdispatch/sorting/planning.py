"""How rows are sorted: by which kernels, with how large tiles, and the measured numbers for it."""

from enum import Enum

from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.families.tuning import LLVMPIPE, DeviceFacts, Number, Table
from vkdispatch.families.values import word_count
from vkdispatch.shader.program import is_checking
from vkdispatch.sorting.tile import TileForm

# ---- Numbers found by measurement, which the plans of sorts depend on. None changes a result -------------


class Tuning(Table, family="sorting"):
    """Numbers for GPUs, and those for CPUs at the end."""

    # Bits of a digit.
    width = Number(8, (4, 6, 8))
    # Invocations of a workgroup for keys of 4 bytes without a payload. A power of two.
    group = Number(256, (128, 256, 512))
    # Keys of each such invocation.
    items = Number(24, (8, 16, 24))
    # Invocations of a workgroup that sorts whole rows. A power of two.
    block_group = Number(256, (128, 256, 512))
    # Keys of each such invocation.
    block_items = Number(16, (8, 16, 24))
    # The same invocations for rows that fit a tile of that size. A power of two.
    small_group = Number(128, (64, 128, 256))
    # Keys of each such invocation.
    small_items = Number(8, (4, 8, 16))
    # For launches that do a whole digit: keys of an invocation.
    sweep_items = Number(36, (16, 24, 36))
    # The most 32-bit words of the keys of such an invocation and their payload.
    sweep_registers = Number(40, (24, 32, 40))
    # The most 32-bit words of the keys of an invocation and their payload.
    registers = Number(48, (32, 48, 64))
    # Keys of the longest row in which each key counts the keys before it.
    short = Number(40, (16, 24, 32, 40, 48, 64))
    # Whether one launch does a digit (0 or 1). Whether the device lets workgroups wait is no matter of speed.
    onesweep = Number(1)
    # Tiles that a look-back reads at once.
    window = Number(4, (1, 4, 8))
    # Invocations of a workgroup that counts digits. A power of two.
    histogram_group = Number(256, (128, 256, 512))
    # Keys that each such invocation has in flight.
    histogram_items = Number(8, (4, 8, 16))
    # Rounds of such a workgroup.
    histogram_rounds = Number(16, (8, 16, 32))
    # Invocations of a workgroup, for devices without ballots. A power of two.
    serial_group = Number(64, (32, 64, 128))
    # Keys of each such invocation.
    serial_items = Number(16, (8, 16))
    # Bits of a digit, for devices without ballots.
    serial_width = Number(4)
    # On CPUs: invocations of a workgroup. A power of two.
    run_group = Number(8, (4, 8, 16), found_on=LLVMPIPE)
    # On CPUs: the least keys of a run.
    run_least = Number(512, (256, 512, 1024, 2048), found_on=LLVMPIPE)
    # On CPUs: the most keys of a run. Fewer than 65,536: llvmpipe leaves longer loops.
    run_most = Number(32768, (8192, 16384, 32768), found_on=LLVMPIPE)
    # On CPUs: the number of runs of a row from which on runs have the least keys.
    run_count = Number(128, (32, 64, 128, 256), found_on=LLVMPIPE)
    # On CPUs: bits of a digit.
    run_width = Number(8, (7, 8), found_on=LLVMPIPE)
    # On CPUs: keys of a long run.
    long_run = Number(8192, (4096, 8192, 16384), found_on=LLVMPIPE)
    # On CPUs: bits of a digit of long runs.
    long_run_width = Number(11, (8, 11), found_on=LLVMPIPE)
    # On CPUs: keys of all rows, times those of one row, up to which each key counts the keys before it.
    short_work = Number(1 << 18, (1 << 14, 1 << 16, 1 << 18, 1 << 20), found_on=LLVMPIPE)
    # On CPUs: the least keys of rows that are merged.
    merge_short = Number(16, (8, 16, 32), found_on=LLVMPIPE)
    # On CPUs: the most keys of such rows. Fewer than 4,096: llvmpipe leaves the loops of longer rows too
    # early.
    merge_long = Number(4000, (1000, 2000, 4000), found_on=LLVMPIPE)
    # On CPUs: the least such rows.
    merge_rows = Number(4, (2, 4, 16), found_on=LLVMPIPE)


tuning = Tuning()


# ---- How rows are sorted: by which kernels, and with how large tiles -------------------------------------
#
# rows of up to `short` keys        an invocation for each key, which counts the keys before it
# rows that fit a tile              a workgroup for as many rows as fit
# longer rows                       one or three launches for each digit, over all tiles of all rows
#
# On CPU drivers, without barriers:
#
# rows of few keys                  an invocation for each key, which counts the keys before it
# many rows                         an invocation for each row, which merges
# few rows, longer rows             three launches for each digit, with an invocation for each run of keys


# Bytes of workgroup memory that a kernel needs besides tables and tile; and those of a sweep.
_OTHER_MEMORY, _OTHER_SWEEP_MEMORY = 6 << 10, 3 << 10
# Keys of an invocation in a sweep are at most as many as this, or a multiple of it.
_ITEM_STEP = 4
# Keys of longer rows are counted in 64 bits.
MAX_NARROW = 0xFFFFFFFF - (1 << 16)


class SortForm(Enum):
    """How rows are sorted."""

    SHORT = "an invocation for each key"
    BLOCKS = "a workgroup for as many rows as fit"
    MERGED = "an invocation for each row"
    TILES = "launches for each digit, with a workgroup for each tile"
    RUNS = "launches for each digit, with an invocation for each run"


# Those that have the keys, and what is moved with them, in memory between launches.
LONG_FORMS = (SortForm.TILES, SortForm.RUNS)


def choose_form(
    device: DeviceFacts, key: DType, count: int, length: int, *, has_payload: bool = False
) -> SortForm:
    """Return how `count` rows of `length` keys of a raw type are sorted; with a payload, `LONG_FORMS`."""
    size = count * length
    is_countable = size < 1 << 31
    if device.is_cpu:
        is_short = is_countable and (length < tuning.merge_short or size * length <= tuning.short_work)
        is_merged = count >= tuning.merge_rows and length <= tuning.merge_long
        form = SortForm.SHORT if is_short else SortForm.MERGED if is_merged else SortForm.RUNS
        return SortForm.RUNS if has_payload else form
    if has_payload:
        return SortForm.TILES
    if length <= tuning.short and is_countable:
        return SortForm.SHORT
    return SortForm.TILES if choose_block(device, key, length) is None else SortForm.BLOCKS


def choose_block(device: DeviceFacts, key: DType, length: int) -> TileForm | None:
    """Return how a workgroup sorts rows of `length` keys with their positions; None if they do not fit."""
    for wanted in (tuning.small_group, tuning.small_items), (tuning.block_group, tuning.block_items):
        form = choose_tile(device, key, dtype.uint32, *wanted)
        if length <= form.tile:
            return form
    return None


def choose_tile(
    device: DeviceFacts, key: DType, payload: DType | None, group: int = 0, items: int = 0
) -> TileForm:
    """Return how a workgroup sorts a tile of keys with a payload, of these raw types.

    It has at most `group` invocations of `items` keys each. 0 means the number of `tuning`.
    """
    words = word_count(key) + (0 if payload is None else word_count(payload))
    group, subgroup = _choose_group(device, group or tuning.group)
    tables = 4 * (group // subgroup << tuning.width)
    if subgroup == 1 or tables + _OTHER_MEMORY > device.shared_memory:
        return _choose_serial_tile(device, words)
    items = items or tuning.items
    # each key has a register for its place, too
    items = min(items, tuning.registers // (words + 1), (device.shared_memory - _OTHER_MEMORY) // (4 * group))
    return TileForm(group, max(1, items), tuning.width, subgroup, device.has_arithmetic)


def choose_sweep_tile(device: DeviceFacts, key: DType, payload: DType | None, length: int) -> TileForm | None:
    """Return how a workgroup sorts a tile if one launch does a digit; None if three launches do it."""
    # an invocation that a check ends early would leave others waiting for ever
    if length > MAX_NARROW or not tuning.onesweep or is_checking():
        return None
    words = word_count(key) + (0 if payload is None else word_count(payload))
    group, subgroup = _choose_group(device, tuning.group)
    free = device.shared_memory - _OTHER_SWEEP_MEMORY - 4 * (group // subgroup << tuning.width)
    items = min(tuning.sweep_items, tuning.sweep_registers // words, free // (4 * group * words))
    if subgroup == 1 or items < 1:
        return None
    # Tiles of a row get equal shares. Each number of items is a kernel of its own, so there are few.
    tiles = -(-length // (group * items))
    even = -(-length // (group * tiles))
    items = min(items, -(-even // _ITEM_STEP) * _ITEM_STEP)
    return TileForm(group, items, tuning.width, subgroup, device.has_arithmetic)


def _choose_group(device: DeviceFacts, group: int) -> tuple[int, int]:
    """Return the invocations of a workgroup, and of a subgroup that votes: 1 if subgroups do not vote."""
    subgroup = (
        device.subgroup_size
        if device.has_ballot and device.has_one_subgroup_size and device.has_full_subgroups
        else 1
    )
    return max(min(group, device.max_group) // subgroup, 1) * subgroup, subgroup


def _choose_serial_tile(device: DeviceFacts, words: int) -> TileForm:
    """Return the form of a tile that is ranked without votes."""
    group, width = min(tuning.serial_group, device.max_group), tuning.serial_width
    free = device.shared_memory - _OTHER_MEMORY - 4 * (group << width)
    items = min(tuning.serial_items, free // (8 * words * group))
    return TileForm(group, max(1, items), width, 1, has_arithmetic=False)


@record
class RunPlan:
    """How rows are split into runs, one for each invocation.

    Attributes
    ----------
    group
        Invocations of a workgroup.
    width
        The most bits of a digit.
    runs
        Runs of each row.
    run, last
        Keys of a run, and of the last run of a row.
    """

    group: int
    width: int
    runs: int
    run: int
    last: int


def plan_runs(device: DeviceFacts, parts: tuple[int, ...], length: int) -> RunPlan:
    """Return the runs of rows of `length` keys; `parts` are the bits of the parts of their codes."""
    group = min(tuning.run_group, device.max_group)
    run = min(max(-(-length // tuning.run_count), tuning.run_least), tuning.run_most)
    # runs become shorter until all invocations of a workgroup have one
    groups = -(-length // (run * group))
    run = -(-length // (groups * group))
    width = tuning.long_run_width if run >= tuning.long_run else tuning.run_width
    bits = max(parts)
    runs = -(-length // run)
    return RunPlan(group, -(-bits // -(-bits // width)), runs, run, length - (runs - 1) * run)


def counter_type(length: int) -> DType:
    """Return the dtype that counts the keys of a row."""
    return dtype.uint32 if length <= MAX_NARROW else dtype.uint64
