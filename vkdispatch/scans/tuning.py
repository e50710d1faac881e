"""Numbers that plan scans, measured on an NVIDIA H200; those of CPUs on llvmpipe with two cores."""

from vkdispatch.base.record import record


@record(frozen=False)
class Tuning:
    """Numbers found by measurement. They may be changed, and count for what is planned afterwards.

    Attributes
    ----------
    group
        Invocations of a workgroup.
    bytes_each, most_elements
        Bytes of a tile that an invocation holds, and the most elements.
    bytes_each_cpu
        The same number of bytes on CPUs.
    looking_group, looking_bytes_each
        `group` and `bytes_each` of workgroups that look back: they keep their tile in registers meanwhile.
    enough, enough_cpu
        Ranges that keep a device busy, on GPUs and on CPUs.
    few, few_cpu
        The most tiles that one workgroup scans alone.
    turns_cpu, rounds_cpu
        On CPUs: tiles of a range of short rows, and the most tiles of any range.
    columns, rounds
        Columns side by side in a workgroup, and elements of each that an invocation scans at once.
    line
        The least bytes side by side that columns are read by.
    memory_group_cpu
        Invocations of a workgroup on CPUs if they exchange values by memory, or scan everything alone.
    columns_group, columns_cpu
        The most invocations of a workgroup that scans columns, on GPUs; columns of a workgroup on CPUs.
    rows_apart
        Tiles of a row from which on a row has tiles of its own.
    lookback
        Whether tiles look back: 1, or 0 for partial results; -1 chooses by the device.
    packed
        Whether words of a look-back hold a tag too: 1 or 0; -1: where the device has 64-bit atomics.
    tickets
        Whether tiles are numbered as their workgroups start: 1 or 0; -1: where these start in any order.
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
    memory_group_cpu: int = 64
    columns_group: int = 256
    columns_cpu: int = 8
    rows_apart: int = 8
    lookback: int = -1
    packed: int = -1
    tickets: int = -1
    native: int = -1


tuning = Tuning()
