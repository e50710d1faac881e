"""Measured numbers, sizes of results, and sums over workgroups, which all of selection shares."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.errors import UsageError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.arguments import parse_int
from vkdispatch.families.calls import is_recorded
from vkdispatch.families.tuning import H200_AND_LLVMPIPE, LLVMPIPE, Number, Table, device_facts

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


# The sums of more subgroups are added up in a loop. Small subgroups loop earlier, and CPU drivers always do:
# SwiftShader compiles many conditions in a loop for minutes.
_MAX_UNROLLED = 32
_MAX_UNROLLED_SMALL = 16


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
        if _adds_in_loop(count):
            with vc.for_block(0, count) as each:
                total += memory[each]
        else:
            for i in range(count):
                total += memory[i]
    return total


def sum_before(value: Any, lane: Any, group: int) -> Any:
    """Return the sum of a value over the invocations of the workgroup before this one."""
    subgroup = device_facts().subgroup_size
    own = vc.subgroup_exclusive_add(value).to_register()
    count = max(1, group // subgroup)
    memory = vc.shared_buffer(dtype.uint32, count)
    with vc.if_block(lane % subgroup == subgroup - 1):
        memory[lane // subgroup] = own + value
    vc.barrier()
    before = vc.new_uint_register(0)
    if _adds_in_loop(count):
        with vc.for_block(0, lane // subgroup) as each:
            before += memory[each]
        return (own + before).to_register()
    for i in range(count - 1):
        before += vc.select(lane // subgroup > i, memory[i], 0)
    return (own + before).to_register()


def _adds_in_loop(count: int) -> bool:
    facts = device_facts()
    return facts.is_cpu or count > (_MAX_UNROLLED if facts.subgroup_size >= 32 else _MAX_UNROLLED_SMALL)


# ---- Numbers found by measurement, which the plans of selection depend on --------------------------------


_POWER = "a power of two"


class Tuning(Table, family="selection"):
    """Numbers for GPUs, and those that end in "_cpu"."""

    stream_group = Number(
        512,
        "Passes over all elements that count or sum: invocations of a workgroup.",
        (128, 256, 512, 1024),
        found_on=H200_AND_LLVMPIPE,
        constraint=_POWER,
        changes_rounding=True,
    )
    stream_groups = Number(
        1056, "The most workgroups of such a pass.", (128, 264, 528, 1056, 2112), changes_rounding=True
    )
    stream_loads = Number(
        4, "Loads that an invocation of such a pass has in flight.", (1, 2, 4, 8), changes_rounding=True
    )
    stream_groups_cpu = Number(
        16,
        "The most workgroups of such a pass on CPUs.",
        (8, 16, 32, 64, 128),
        found_on=LLVMPIPE,
        changes_rounding=True,
    )
    stream_few_cpu = Number(
        4,
        "Elements of a load up to which an invocation of such a pass has two loads in flight, on CPUs.",
        (1, 4, 16),
        found_on=LLVMPIPE,
        changes_rounding=True,
    )
    flag_group = Number(
        256,
        "Compaction: invocations of a workgroup, each of which has 32 elements of a tile.",
        (64, 128, 256, 512),
        found_on=H200_AND_LLVMPIPE,
        constraint=_POWER,
    )
    flag_loads = Number(
        8, "Loads that each such invocation has in flight.", (2, 4, 8, 16), found_on=H200_AND_LLVMPIPE
    )
    flag_sparse = Number(
        16,
        "Tiles that keep fewer than one of so many elements are written bit by bit.",
        (4, 8, 16, 32),
        found_on=H200_AND_LLVMPIPE,
    )
    flag_unroll = Number(
        8,
        "Elements that an invocation has in flight where tiles are written element by element.",
        (2, 4, 8, 16),
        found_on=H200_AND_LLVMPIPE,
        constraint="a power of two up to 32",
    )
    flag_few = Number(
        2048,
        "Tiles up to which each workgroup sums up the counts of the tiles before by itself.",
        (256, 1024, 2048, 4096),
        found_on=H200_AND_LLVMPIPE,
    )
    fill_each = Number(
        64,
        "Places of an invocation if there is nothing but places to be filled.",
        (16, 64, 256),
        found_on=H200_AND_LLVMPIPE,
    )
    search_group = Number(
        256,
        "`searchsorted`: invocations of a workgroup.",
        (64, 128, 256, 512),
        found_on=H200_AND_LLVMPIPE,
        constraint=_POWER,
    )
    search_each = Number(
        4, "Values that each searches for at once.", (1, 2, 4, 8), found_on=H200_AND_LLVMPIPE
    )
    search_groups = Number(
        2112, "Workgroups that search.", (264, 528, 1056, 2112, 4224), found_on=H200_AND_LLVMPIPE
    )
    search_tops = Number(
        16384,
        "Bytes of workgroup memory that hold every n-th element of the sorted array; 0 for none.",
        (0, 4096, 8192, 16384),
        found_on=H200_AND_LLVMPIPE,
        constraint=_POWER,
    )
    search_whole = Number(
        32768,
        "Bytes of sorted arrays that workgroup memory holds whole.",
        (8192, 16384, 32768),
        found_on=H200_AND_LLVMPIPE,
    )
    search_whole_group = Number(
        512, "`search_group` for these.", (128, 256, 512, 1024), found_on=H200_AND_LLVMPIPE, constraint=_POWER
    )
    search_whole_each = Number(8, "`search_each` for these.", (2, 4, 8), found_on=H200_AND_LLVMPIPE)
    row_shortest = Number(
        1024, "Top-k of rows by one workgroup each: the least elements of a row.", (256, 1024, 4096)
    )
    row_longest = Number(1 << 15, "The most elements of such a row.", (1 << 14, 1 << 15, 1 << 16))
    row_least_group = Number(
        64,
        "The least invocations of such a workgroup, or 2 k if that is more.",
        (32, 64, 128),
        constraint=_POWER,
    )
    row_most_group = Number(
        512, "The most invocations of such a workgroup.", (256, 512, 1024), constraint=_POWER
    )
    row_each = Number(32, "Elements of each such invocation below the most.", (8, 16, 32, 64))
    row_room = Number(1024, "The most candidates in workgroup memory.", (512, 1024, 2048), constraint=_POWER)
    row_loads = Number(4, "Loads that such an invocation has in flight.", (1, 2, 4, 8))
    row_candidates = Number(
        1 << 18,
        "Candidates of a row up to which one workgroup finishes the row.",
        (1 << 16, 1 << 18, 1 << 20),
    )
    sample_length = Number(
        1 << 14, "Top-k of long rows: the least elements of a row.", (1 << 14, 1 << 15, 1 << 16)
    )
    sample_group = Number(
        256, "Invocations of a workgroup that narrows such rows.", (128, 256, 512), constraint=_POWER
    )
    sample_loads = Number(8, "Loads that each such invocation has in flight.", (2, 4, 8, 16))
    sample_exact_group = Number(
        1024,
        "Invocations of the workgroups that finish rows whose sample was not good.",
        (256, 512, 1024),
        constraint=_POWER,
    )
    samples = Number(4096, "Elements of the sample of a row.", (2048, 4096, 8192), constraint=_POWER)
    many_samples = Number(
        1 << 15, "Elements of the sample of a row of many elements.", (1 << 14, 1 << 15), constraint=_POWER
    )
    many = Number(1 << 23, "Elements of a row that has many.", (1 << 22, 1 << 23, 1 << 24))
    digit_groups = Number(1056, "Workgroups that count digits.", (128, 264, 528, 1056, 2112))
    digit_groups_cpu = Number(16, "Workgroups that count digits, on CPUs.", (8, 16, 32), found_on=LLVMPIPE)


tuning = Tuning()


def choose_group(wanted: int) -> int:
    """Return the largest workgroup, a power of two, that the device has and that is not above `wanted`."""
    return device_facts().power_group(wanted)


def choose_loads(on_gpu: int, on_cpu: int) -> int:
    """Return how many loads an invocation has in flight.

    CPUs prefetch by themselves, and their drivers compile long kernels slowly.
    """
    return on_cpu if device_facts().is_cpu else on_gpu
