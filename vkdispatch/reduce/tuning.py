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
    most_cpu
        Those of states of several registers on CPUs, which take long to compile the code of more.
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
    column_bytes, most_columns, most_columns_of_states, most_columns_cpu
        What a load in "columns" takes, and of how many results at most; where each has a state of several
        registers; on CPUs, where the code of several takes longer to compile than it saves.
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
    most_cpu: int = 16
    bytes_of_short: int = 64
    most_results: int = 8
    groups: int = 2112
    enough: int = 512
    single: int = 2
    finishing: int = 1
    column_bytes: int = 16
    most_columns: int = 4
    most_columns_of_states: int = 2
    most_columns_cpu: int = 1
    partials: int = 8
    column_flight: int = 128
    column_side: int = 512
    column_least: int = 4
    across: int = 1
