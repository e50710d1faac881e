"""Measured numbers, sizes of results, and sums over workgroups, which all of selection shares."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.errors import UsageError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import is_recorded
from vkdispatch.families.operands import parse_int
from vkdispatch.families.tuning import H200_AND_LLVMPIPE, LLVMPIPE, DeviceFacts, Number, Table, device_facts

# ---- The argument `size` of functions whose result has a size that depends on the data -------------------


def parse_size(size: object, graph: CommandGraph | None, unknown: str) -> int | None:
    """Return the size of a result; None if the call waits for the device to find it out.

    Parameters
    ----------
    unknown
        What is not known in a graph, for the message.

    Raises
    ------
    TypeError
        It is no int.
    ValueError
        It is negative.
    RuntimeError
        It is None, and the call is recorded.
    """
    if size is not None:
        return parse_int(size, "size", least=0)
    if is_recorded(graph):
        raise UsageError(f"size: {unknown} is not known in a graph; pass size=")
    return None


# ---- Sums over the invocations of a workgroup, in a trace ------------------------------------------------


def sum_group(value: Any, lane: Any, group: int) -> Any:
    """Return the sum of a value over the workgroup. Only the first invocation has it."""
    subgroup = device_facts().subgroup_size
    part = vc.subgroup_add(value).to_register()
    count = max(1, group // subgroup)
    memory = vc.shared_buffer(dtype.uint32, count)
    with vc.if_block(lane % subgroup == 0):
        memory[lane // subgroup] = part
    vc.barrier()
    total = vc.new_uint_register(0)
    with vc.if_block(lane == 0):
        if find_planner().adds_in_loop(count):
            with vc.for_block(0, count) as number:
                total += memory[number]
        else:
            for i in range(count):
                total += memory[i]
    return total


def sum_before(value: Any, lane: Any, group: int) -> Any:
    """Return the sum of a value over the invocations of the workgroup before this one."""
    subgroup = device_facts().subgroup_size
    earlier = vc.subgroup_exclusive_add(value).to_register()
    count = max(1, group // subgroup)
    memory = vc.shared_buffer(dtype.uint32, count)
    with vc.if_block(lane % subgroup == subgroup - 1):
        memory[lane // subgroup] = earlier + value
    vc.barrier()
    before = vc.new_uint_register(0)
    if find_planner().adds_in_loop(count):
        with vc.for_block(0, lane // subgroup) as number:
            before += memory[number]
    else:
        for i in range(count - 1):
            before += vc.select(lane // subgroup > i, memory[i], 0)
    return (earlier + before).to_register()


# ---- Numbers found by measurement, which the plans of selection depend on --------------------------------


class Tuning(Table, family="selection"):
    """Numbers for GPUs, and those that end in "_cpu"."""

    # Passes over all elements that count or sum: invocations of a workgroup. A power of two.
    stream_group = Number(512, (128, 256, 512, 1024), found_on=H200_AND_LLVMPIPE, changes_rounding=True)
    # The most workgroups of such a pass.
    stream_groups = Number(1056, (128, 264, 528, 1056, 2112), changes_rounding=True)
    # Loads that an invocation of such a pass has in flight.
    stream_loads = Number(4, (1, 2, 4, 8), changes_rounding=True)
    # The most workgroups of such a pass on CPUs.
    stream_groups_cpu = Number(16, (8, 16, 32, 64, 128), found_on=LLVMPIPE, changes_rounding=True)
    # Elements of a load up to which an invocation of such a pass has two loads in flight, on CPUs.
    stream_few_cpu = Number(4, (1, 4, 16), found_on=LLVMPIPE, changes_rounding=True)
    # Compaction: invocations of a workgroup, each of which has 32 elements of a tile. A power of two.
    flag_group = Number(256, (64, 128, 256, 512), found_on=H200_AND_LLVMPIPE)
    # Loads that each such invocation has in flight.
    flag_loads = Number(8, (2, 4, 8, 16), found_on=H200_AND_LLVMPIPE)
    # Tiles that keep fewer than one of so many elements are written bit by bit.
    flag_sparse = Number(16, (4, 8, 16, 32), found_on=H200_AND_LLVMPIPE)
    # Elements that an invocation has in flight where tiles are written element by element. A power of two up
    # to 32.
    flag_unroll = Number(8, (2, 4, 8, 16), found_on=H200_AND_LLVMPIPE)
    # Places of an invocation if there is nothing but places to be filled.
    fill_each = Number(64, (16, 64, 256), found_on=H200_AND_LLVMPIPE)
    # `searchsorted`: invocations of a workgroup. A power of two.
    search_group = Number(256, (64, 128, 256, 512), found_on=H200_AND_LLVMPIPE)
    # Values that each searches for at once.
    search_each = Number(4, (1, 2, 4, 8), found_on=H200_AND_LLVMPIPE)
    # Workgroups that search.
    search_groups = Number(2112, (264, 528, 1056, 2112, 4224), found_on=H200_AND_LLVMPIPE)
    # Bytes of sorted arrays that workgroup memory holds whole.
    search_whole = Number(32768, (8192, 16384, 32768), found_on=H200_AND_LLVMPIPE)
    # `search_group` for these. A power of two.
    search_whole_group = Number(512, (128, 256, 512, 1024), found_on=H200_AND_LLVMPIPE)
    # `search_each` for these.
    search_whole_each = Number(8, (2, 4, 8), found_on=H200_AND_LLVMPIPE)
    # Top-k of rows by one workgroup each: the least elements of a row.
    row_shortest = Number(1024, (256, 1024, 4096))
    # The most elements of such a row.
    row_longest = Number(1 << 15, (1 << 14, 1 << 15, 1 << 16))
    # The least invocations of such a workgroup, or 2 k if that is more. A power of two.
    row_least_group = Number(64, (32, 64, 128))
    # The most invocations of such a workgroup. A power of two.
    row_most_group = Number(512, (256, 512, 1024))
    # Elements of each such invocation below the most.
    row_each = Number(32, (8, 16, 32, 64))
    # The most candidates in workgroup memory. A power of two.
    row_room = Number(1024, (512, 1024, 2048))
    # Loads that such an invocation has in flight.
    row_loads = Number(4, (1, 2, 4, 8))
    # Candidates of a row up to which one workgroup finishes the row.
    row_candidates = Number(1 << 18, (1 << 16, 1 << 18, 1 << 20))
    # Top-k of long rows: the least elements of a row.
    sample_length = Number(1 << 14, (1 << 14, 1 << 15, 1 << 16))
    # Invocations of a workgroup that narrows such rows. A power of two.
    sample_group = Number(256, (128, 256, 512))
    # Loads that each such invocation has in flight.
    sample_loads = Number(8, (2, 4, 8, 16))
    # Invocations of the workgroups that finish rows whose sample was not good. A power of two.
    sample_exact_group = Number(1024, (256, 512, 1024))
    # Elements of the sample of a row. A power of two.
    samples = Number(4096, (2048, 4096, 8192))
    # Elements of the sample of a row of many elements. A power of two.
    many_samples = Number(1 << 15, (1 << 14, 1 << 15))
    # Elements of a row that has many.
    many = Number(1 << 23, (1 << 22, 1 << 23, 1 << 24))
    # Workgroups that count digits.
    digit_groups = Number(1056, (128, 264, 528, 1056, 2112))
    # Workgroups that count digits, on CPUs.
    digit_groups_cpu = Number(16, (8, 16, 32), found_on=LLVMPIPE)


tuning = Tuning()


def choose_group(wanted: int) -> int:
    """Return the largest workgroup, a power of two, that the device has and that is not above `wanted`."""
    return device_facts().power_group(wanted)


# The sums of more subgroups are added up in a loop. Small subgroups loop earlier.
_MAX_UNROLLED = 32
_MAX_UNROLLED_SMALL = 16


class Planner:
    """What passes over arrays choose on GPUs.

    Attributes
    ----------
    stream_groups
        The most workgroups of a pass that counts or sums.
    row_loads
        Loads that an invocation has in flight which looks for the first elements of a row.
    copies_tables
        Whether short tables that many values are searched in, and sums by bins, are kept in workgroup memory.
    """

    copies_tables = True

    def __init__(self, device: DeviceFacts) -> None:
        self._device = device
        self.stream_groups, self.row_loads = tuning.stream_groups, tuning.row_loads

    def choose_stream_loads(self, together: int) -> int:
        """Return how many loads, each of some elements, an invocation of such a pass has in flight."""
        return tuning.stream_loads * (1 if together > 1 else 2)

    def adds_in_loop(self, count: int) -> bool:
        """Whether the sums of subgroups are added up in a loop."""
        return count > (_MAX_UNROLLED if self._device.subgroup_size >= 32 else _MAX_UNROLLED_SMALL)


class CpuPlanner(Planner):
    """The same on CPUs, which prefetch and cache, and whose drivers compile long kernels slowly."""

    copies_tables = False

    def __init__(self, device: DeviceFacts) -> None:
        super().__init__(device)
        self.stream_groups, self.row_loads = tuning.stream_groups_cpu, 1

    def choose_stream_loads(self, together: int) -> int:
        """Return how many loads are in flight: two, if they are short."""
        return 2 if together <= tuning.stream_few_cpu else 1

    def adds_in_loop(self, count: int) -> bool:
        """Return true: SwiftShader compiles many conditions in a loop for minutes."""
        return True


def find_planner() -> Planner:
    """Return what plans passes on the devices of the current context."""
    device = device_facts()
    return (CpuPlanner if device.is_cpu else Planner)(device)
