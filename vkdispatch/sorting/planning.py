"""How a sort's work is laid out: which kernels, how large their tiles are.

rows of up to `short` keys        an invocation for each key, which counts those before it
rows that fit a tile              a workgroup for as many rows as fit
longer rows                       a launch or three for each digit, over all tiles of all rows
"""

from vkdispatch.base import dtype
from vkdispatch.base.context import Context, get_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.sorting.keys import word_count
from vkdispatch.sorting.ranking import TileForm

_BASIC, _ARITHMETIC, _BALLOT = 0x1, 0x4, 0x8
# What a kernel needs of workgroup memory beside tables and tile.
_BESIDE = 6 << 10
# More keys than this in a row are counted in 64 bits.
MOST_NARROW = 0xFFFFFFFF - (1 << 16)


@record(frozen=False)
class Tuning:
    """Numbers that were found by measurement. They may be changed, for what is planned afterwards.

    Attributes
    ----------
    group, items
        Invocations of a workgroup, and keys of each for keys of 4 bytes and nothing else, on GPUs.
    block_group, block_items
        The same of the kernel that sorts in one workgroup.
    registers
        How many words of 32 bits an invocation's keys take, and all that goes with them, at most.
    short
        Keys of rows in which each key counts the others.
    votes
        Whether digits are counted by votes, in place of an atomic for each key (0 or 1).
    few_tiles
        Tiles along which one invocation sums up.
    onesweep
        Whether GPUs do a digit in one launch (0 or 1); 2: CPU drivers do as well.
    cpu_group, cpu_items, cpu_width
        Invocations of a workgroup, keys of each, and bits of a digit, on CPU drivers.
    """

    group: int = 256
    items: int = 16
    block_group: int = 256
    block_items: int = 16
    registers: int = 48
    short: int = 48
    votes: int = 0
    few_tiles: int = 64
    onesweep: int = 1
    cpu_group: int = 64
    cpu_items: int = 16
    cpu_width: int = 4


tuning = Tuning()


@record
class Device:
    """What plans depend on.

    Attributes
    ----------
    subgroup
        Invocations that vote together; 1 where there are no ballots.
    arithmetic
        Whether subgroups have running sums.
    cpu
        Whether it is a CPU driver.
    memory
        Bytes of workgroup memory.
    most
        Invocations of a workgroup.
    """

    subgroup: int
    arithmetic: bool
    cpu: bool
    memory: int
    most: int


def device_of(context: Context | None = None) -> Device:
    """Return the facts of a context's devices; None: of the current one's."""
    context = context or get_context()
    infos = context.device_infos
    sizes = {info.sub_group_size for info in infos}
    votes = all(
        info.subgroup_enabled and info.supported_operations & _BASIC and info.supported_operations & _BALLOT
        for info in infos
    )
    return Device(
        min(sizes) if votes and len(sizes) == 1 else 1,
        all(info.subgroup_arithmetic for info in infos),
        any(info.is_cpu() for info in infos),
        context.max_shared_memory,
        min(context.max_workgroup_size[0], context.max_workgroup_invocations),
    )


def tile_form(device: Device, key: DType, payload: DType | None, *, block: bool = False) -> TileForm:
    """Return how a workgroup does a tile of keys, and of what goes with them, of these raw types."""
    words = word_count(key) + (0 if payload is None else word_count(payload))
    group = tuning.block_group if block else tuning.group
    group = min(group, device.most) // device.subgroup * device.subgroup
    tables = (group // device.subgroup << 8) * 4
    if device.cpu or device.subgroup == 1 or tables + _BESIDE > device.memory:
        return _serial_form(device, words)
    items = tuning.block_items if block else tuning.items
    # a place for each key, beside the key
    items = min(items, tuning.registers // (words + 1), (device.memory - _BESIDE) // (4 * group))
    return TileForm(group, max(1, items), 8, device.subgroup, device.arithmetic)


def _serial_form(device: Device, words: int) -> TileForm:
    """Return the form of a tile that is ranked without votes."""
    group, width = min(tuning.cpu_group, device.most), tuning.cpu_width
    free = device.memory - _BESIDE - 4 * (group << width)
    items = min(tuning.cpu_items, free // (8 * words * group))
    return TileForm(group, max(1, items), width, 1, False)


def counter_for(length: int) -> DType:
    """Return the type that counts the keys of a row."""
    return dtype.uint32 if length <= MOST_NARROW else dtype.uint64
