"""What the layouts of reductions depend on besides shapes and devices: numbers found by measurement."""

from vkdispatch.base.record import record


@record
class Tuning:
    """Numbers that were found by measurement, on GPUs.

    Attributes
    ----------
    group
        Invocations of a workgroup.
    bytes_in_flight
        What an invocation loads before it uses any.
    most_elements, most_mapped
        Elements that it combines in one round; with a mapping function, that it maps.
    bytes_of_short, most_results
        What an invocation loads of several results, where they are short, and how many it has at most.
    groups
        Workgroups that share the work, where there are fewer results.
    enough
        Results from which on each has one workgroup or less.
    single
        Chunks that one workgroup does rather than several.
    finishing
        Whether the last of the workgroups that share a result combines what they have found, in place of a
        second launch (0 or 1).
    column_bytes, most_columns, most_columns_of_states
        What a load in "columns" takes, and of how many results at most; where each has a state of several
        registers.
    partials
        Partial results that an invocation has in flight.
    column_flight
        What an invocation has in flight there.
    column_side
        Bytes of a row that the workgroup takes side by side, where columns are long.
    across
        Whether neighbouring workgroups have neighbouring columns, where several share each (0 or 1).
    column_least
        Loads that an invocation has at least, where a workgroup takes short rows one below the other.
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
    across: int = 1


@record
class CpuTuning:
    """Numbers that were found by measurement, on CPU drivers.

    Attributes
    ----------
    most_elements
        Elements that an invocation combines in one round.
    most_columns, column_bytes
        Of how many results a load in "columns" is at most, and what it takes: more than a line of the cache
        for all lanes is slower, as few lines of each row stay there.
    lane_loads
        Loads of the longest rows that an invocation reduces by itself.
    group, group_loads
        The largest workgroup of rows or columns side by side, and loads that it does, at least.
    groups
        Workgroups that share the work, at least.
    single
        Chunks that one workgroup does rather than several.
    """

    most_elements: int = 16
    most_columns: int = 4
    column_bytes: int = 8
    lane_loads: int = 64
    group: int = 256
    group_loads: int = 4096
    groups: int = 16
    single: int = 128
