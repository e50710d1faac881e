"""How a sort's work is laid out: which kernels, how large their tiles are.

rows of up to `short` keys        an invocation for each key, which counts those before it
rows that fit a tile              a workgroup for as many rows as fit
longer rows                       a launch or three for each digit, over all tiles of all rows
"""

from vkdispatch.arrays.facts import DeviceFacts
from vkdispatch.arrays.words import word_count
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.shader.observation import checks_of
from vkdispatch.sorting.ranking import TileForm

# What a kernel needs of workgroup memory beside tables and tile.
_BESIDE = 6 << 10
# More keys than this in a row are counted in 64 bits.
MOST_NARROW = 0xFFFFFFFF - (1 << 16)
# Rows of more keys have counts that a word of a look-back does not hold.
MOST_SWEPT = (1 << 30) - 1


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
    registers
        How many words of 32 bits an invocation's keys take, and all that goes with them, at most.
    short
        Keys of rows in which each key counts the others.
    shuffle, early, match
        How tiles are ranked where devices can (0 or 1); see `TileForm`.
    votes
        Whether digits are counted by votes, in place of an atomic for each key (0 or 1).
    few_tiles
        Tiles along which one invocation sums up.
    onesweep
        Whether GPUs do a digit in one launch (0 or 1); 2: CPU drivers do as well, with `cpu_votes`.
    window
        Tiles before that are looked at together.
    histogram_group, histogram_items, histogram_rounds
        Invocations of a workgroup that makes histograms, keys that each has under way, and how often.
    cpu_group, cpu_items, cpu_width
        Invocations of a workgroup, keys of each, and bits of a digit, on CPU drivers.
    cpu_votes
        Whether CPU drivers rank by votes too, which they compile slowly (0 or 1).
    """

    width: int = 8
    group: int = 256
    items: int = 24
    block_group: int = 256
    block_items: int = 16
    small_group: int = 128
    small_items: int = 8
    registers: int = 48
    short: int = 40
    shuffle: int = 1
    early: int = 0
    match: int = 1
    votes: int = 0
    few_tiles: int = 64
    onesweep: int = 1
    window: int = 4
    histogram_group: int = 256
    histogram_items: int = 8
    histogram_rounds: int = 16
    cpu_group: int = 64
    cpu_items: int = 16
    cpu_width: int = 4
    cpu_votes: int = 0


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
    group = group or tuning.group
    subgroup = device.subgroup if device.ballots and device.same and device.whole else 1
    group = max(min(group, device.group) // subgroup, 1) * subgroup
    tables = (group // subgroup << tuning.width) * (8 if tuning.match else 4)
    if (device.cpu and not tuning.cpu_votes) or subgroup == 1 or tables + _BESIDE > device.memory:
        return _serial_form(device, words)
    items = items or tuning.items
    # a place for each key, beside the key
    items = min(items, tuning.registers // (words + 1), (device.memory - _BESIDE) // (4 * group))
    return TileForm(
        group,
        max(1, items),
        tuning.width,
        subgroup,
        device.arithmetic,
        device.shuffles and tuning.shuffle == 1,
        tuning.early == 1,
        subgroup <= 32 and tuning.match == 1,
    )


def _serial_form(device: DeviceFacts, words: int) -> TileForm:
    """Return the form of a tile that is ranked without votes."""
    group, width = min(tuning.cpu_group, device.group), tuning.cpu_width
    free = device.memory - _BESIDE - 4 * (group << width)
    items = min(tuning.cpu_items, free // (8 * words * group))
    return TileForm(group, max(1, items), width, 1, False)


def sweeps(device: DeviceFacts, tile: TileForm, length: int) -> bool:
    """Whether a digit of rows of a length is done in one launch."""
    if tile.subgroup == 1 or length > MOST_SWEPT or not tuning.onesweep:
        return False
    if device.cpu:
        return tuning.onesweep == 2
    # a check that ends invocations early would leave others waiting
    return not checks_of(None)


def counter_for(length: int) -> DType:
    """Return the type that counts the keys of a row."""
    return dtype.uint32 if length <= MOST_NARROW else dtype.uint64
