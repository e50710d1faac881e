"""How rows are sorted: by which kernels, and with how large tiles.

rows of up to `short` keys        an invocation for each key, which counts the keys before it
rows that fit a tile              a workgroup for as many rows as fit
longer rows                       one or three launches for each digit, over all tiles of all rows

On CPU drivers, without barriers:

rows of few keys                  an invocation for each key, which counts the keys before it
many rows                         an invocation for each row, which merges
few rows, longer rows             three launches for each digit, with an invocation for each run of keys
"""

from enum import Enum

from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.families.tuning import DeviceFacts
from vkdispatch.families.values import word_count
from vkdispatch.shader.program import parse_check
from vkdispatch.sorting.tile import TileForm
from vkdispatch.sorting.tuning import tuning

# Bytes of workgroup memory that a kernel needs besides tables and tile; and those of a sweep.
_OTHER_MEMORY, _OTHER_SWEEP_MEMORY = 6 << 10, 3 << 10
# Keys of an invocation in a sweep are at most as many as this, or a multiple of it.
_ITEM_STEP = 4
# Keys of longer rows are counted in 64 bits.
MOST_NARROW = 0xFFFFFFFF - (1 << 16)


class SortForm(Enum):
    """How rows are sorted."""

    SHORT = "an invocation for each key"
    BLOCKS = "a workgroup for as many rows as fit"
    MERGED = "an invocation for each row"
    LONG = "launches for each digit"


def choose_form(device: DeviceFacts, key: DType, count: int, length: int) -> SortForm:
    """Return how `count` rows of `length` keys of a raw type are sorted."""
    size = count * length
    is_countable = size < 1 << 31
    if not device.is_cpu:
        if length <= tuning.short and is_countable:
            return SortForm.SHORT
        return SortForm.LONG if choose_block(device, key, length) is None else SortForm.BLOCKS
    if is_countable and (length < tuning.merge_short or size * length <= tuning.short_work):
        return SortForm.SHORT
    if count >= tuning.merge_rows and length <= tuning.merge_long:
        return SortForm.MERGED
    return SortForm.LONG


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
    tables = (group // subgroup << tuning.width) * (8 if tuning.match else 4)
    if subgroup == 1 or tables + _OTHER_MEMORY > device.shared_memory:
        return _choose_serial_tile(device, words)
    items = items or tuning.items
    # each key has a register for its place, too
    items = min(items, tuning.registers // (words + 1), (device.shared_memory - _OTHER_MEMORY) // (4 * group))
    has_match = subgroup <= 32 and tuning.match == 1
    return TileForm(group, max(1, items), tuning.width, subgroup, device.has_arithmetic, has_match)


def choose_sweep_tile(device: DeviceFacts, key: DType, payload: DType | None, length: int) -> TileForm | None:
    """Return how a workgroup sorts a tile if one launch does a digit; None if three launches do it."""
    # an invocation that a check ends early would leave others waiting for ever
    if length > MOST_NARROW or not tuning.onesweep or parse_check(None):
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
    return dtype.uint32 if length <= MOST_NARROW else dtype.uint64
