"""Numbers that plan selection, measured on an NVIDIA H200; those of CPUs on llvmpipe with two cores."""

from vkdispatch.arrays.facts import device_facts
from vkdispatch.base.record import record


@record(frozen=False)
class Tuning:
    """Numbers found by measurement. They may be changed, and count for what is planned afterwards.

    Attributes
    ----------
    stream_group, stream_groups, stream_loads
        Passes over all elements that count or sum: invocations of a workgroup, the most workgroups, and loads
        that an invocation has in flight.
    stream_groups_cpu, stream_few_cpu
        The most workgroups on CPUs; elements of a load up to which an invocation has two loads in flight.
    flag_group, flag_loads
        Compaction: invocations of a workgroup, each of which has 32 elements of a tile, and loads in flight.
    flag_sparse
        Tiles that keep fewer than one of so many elements are written bit by bit.
    flag_unroll
        Elements that an invocation has in flight where tiles are written element by element.
    flag_few
        Tiles up to which each workgroup sums up the counts of the tiles before by itself.
    fill_each
        Places of an invocation if there is nothing but places to be filled.
    search_group, search_each, search_groups
        `searchsorted`: invocations of a workgroup, values that each searches for at once, and workgroups.
    search_tops
        Bytes of workgroup memory that hold every n-th element of the sorted array; 0 for none.
    search_whole, search_whole_group, search_whole_each
        Bytes of sorted arrays that workgroup memory holds whole; `search_group` and `search_each` for these.
    row_shortest, row_longest
        Top-k of rows by one workgroup each: the least and the most elements of a row.
    row_least_group, row_most_group, row_each
        Invocations: the least, or 2 k if that is more; the most; elements of each below the most.
    row_room, row_loads
        The most candidates in workgroup memory, and loads that an invocation has in flight.
    row_candidates
        Candidates of a row up to which one workgroup finishes the row.
    sample_length
        Top-k of long rows: the least elements of a row.
    sample_group, sample_loads
        Invocations of a workgroup, and loads that each has in flight.
    sample_exact_group
        Invocations of the workgroups that finish rows whose sample was not good.
    samples, many_samples, many
        Elements of a sample; and of the sample of a row of at least `many` elements.
    digit_groups, digit_groups_cpu
        Workgroups that count digits, on GPUs and on CPUs.
    """

    stream_group: int = 512
    stream_groups: int = 1056
    stream_loads: int = 4
    stream_groups_cpu: int = 16
    stream_few_cpu: int = 4
    flag_group: int = 256
    flag_loads: int = 8
    flag_sparse: int = 16
    flag_unroll: int = 8
    flag_few: int = 2048
    fill_each: int = 64
    search_group: int = 256
    search_each: int = 4
    search_groups: int = 2112
    search_tops: int = 16384
    search_whole: int = 32768
    search_whole_group: int = 512
    search_whole_each: int = 8
    row_shortest: int = 1024
    row_longest: int = 1 << 15
    row_least_group: int = 64
    row_most_group: int = 512
    row_each: int = 32
    row_room: int = 1024
    row_loads: int = 4
    row_candidates: int = 1 << 18
    sample_length: int = 1 << 14
    sample_group: int = 256
    sample_loads: int = 8
    sample_exact_group: int = 1024
    samples: int = 4096
    many_samples: int = 1 << 15
    many: int = 1 << 23
    digit_groups: int = 1056
    digit_groups_cpu: int = 16


tuning = Tuning()


def choose_group(wanted: int) -> int:
    """Return the largest workgroup, a power of two, that the device has and that is not above `wanted`."""
    return device_facts().power_group(wanted)


def choose_loads(on_gpu: int, on_cpu: int) -> int:
    """Return how many loads an invocation has in flight.

    CPUs prefetch by themselves, and their drivers compile long kernels slowly.
    """
    return on_cpu if device_facts().is_cpu else on_gpu
