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
    cpu_items: int = 8
    cpu_width: int = 8


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
    if device.cpu:
        return _fitting(device, tuning.cpu_group, tuning.cpu_items, tuning.cpu_width)
    group, items = (tuning.block_group, tuning.block_items) if block else (tuning.group, tuning.items)
    words = word_count(key) + (0 if payload is None else word_count(payload))
    # a place for each key, beside the key
    items = max(1, min(items, tuning.registers // (words + 1)))
    return _fitting(device, group, items, 8)


def _fitting(device: Device, group: int, items: int, width: int) -> TileForm:
    """Return the largest form of at most this size that workgroup memory holds."""
    group = min(group, device.most)
    group -= group % device.subgroup
    while (group // device.subgroup << width) * 4 + _BESIDE > device.memory and width > 4:
        if device.subgroup > 1 and group >= 2 * max(64, device.subgroup):
            group //= 2
        else:
            width //= 2
    while group * items * 4 + _BESIDE > device.memory and items > 1:
        items -= 1
    return TileForm(group, items, width, device.subgroup, device.arithmetic)


def counter_for(length: int) -> DType:
    """Return the type that counts the keys of a row."""
    return dtype.uint32 if length <= MOST_NARROW else dtype.uint64
