"""Numbers found by measurement, which the plans of reductions depend on besides shapes and devices."""

from vkdispatch.base.record import record


@record
class Tuning:
    """Numbers for GPUs, measured on an NVIDIA H200.

    Attributes
    ----------
    group
        Invocations of a workgroup.
    bytes_in_flight
        Bytes that an invocation loads before it uses any.
    most_elements, most_mapped
        Elements that an invocation combines in one round, plain or mapped.
    bytes_of_short, most_results
        Bytes that an invocation loads of several short results, and the most results that it has.
    groups
        Workgroups that share the work if there are fewer results.
    enough
        Number of results from which on no workgroups share a result.
    single
        Chunks that one workgroup takes alone.
    finishing
        Whether the workgroup that finishes last combines the partial results of a result, in place of a
        second launch (0 or 1).
    column_bytes, most_columns, most_columns_of_states
        Bytes of a load in "columns", and the most columns of it; the latter for states of several registers.
    partials
        Partial results that an invocation has in flight.
    column_flight
        Bytes that an invocation has in flight in "columns".
    column_side
        Bytes of a row that the invocations of a workgroup take side by side if columns are long.
    column_least
        Least loads of an invocation if a workgroup takes short rows one below the other.
    interleave
        Whether neighbouring workgroups have neighbouring columns if several share each (0 or 1).
    """

    group: int = 256
    bytes_in_flight: int = 128
    most_elements: int = 64
    most_mapped: int = 32
    bytes_of_short: int = 64
    most_results: int = 8
    groups: int = 2112
    enough: int = 512
    single: int = 2
    finishing: int = 1
    column_bytes: int = 16
    most_columns: int = 4
    most_columns_of_states: int = 2
    partials: int = 8
    column_flight: int = 128
    column_side: int = 512
    column_least: int = 4
    interleave: int = 1


@record
class CpuTuning:
    """Numbers for CPU drivers, measured with llvmpipe.

    Attributes
    ----------
    most_elements
        Elements that an invocation combines in one round.
    most_columns, column_bytes
        The most columns of a load in "columns", and its bytes. If all lanes together load more than a cache
        line, few lines of each row stay in the cache.
    lane_loads
        Loads of the longest rows that an invocation reduces alone.
    group, group_loads
        The largest workgroup of rows or columns side by side, and the least loads that it makes.
    groups
        The least workgroups that share the work.
    single
        Chunks that one workgroup takes alone.
    """

    most_elements: int = 16
    most_columns: int = 4
    column_bytes: int = 8
    lane_loads: int = 64
    group: int = 256
    group_loads: int = 4096
    groups: int = 16
    single: int = 128


tuning = Tuning()
cpu_tuning = CpuTuning()
