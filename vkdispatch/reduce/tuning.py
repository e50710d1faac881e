"""Numbers found by measurement, which the plans of reductions depend on besides shapes and devices.

Most of them decide which elements an invocation adds up, and so the last bits of floating-point sums.
"""

from vkdispatch.families.tuning import LLVMPIPE, Number, Table


class Tuning(Table, family="reduce"):
    """Numbers for GPUs."""

    group = Number(
        256,
        "Invocations of a workgroup.",
        (64, 128, 256, 512, 1024),
        constraint="a power of two",
        changes_rounding=True,
    )
    bytes_in_flight = Number(
        128,
        "Bytes that an invocation loads before it uses any.",
        (32, 64, 128, 256),
        changes_rounding=True,
    )
    most_elements = Number(64, "Elements that an invocation combines in one round.")
    most_mapped = Number(32, "The same where elements are mapped.", (8, 16, 32, 64), changes_rounding=True)
    bytes_of_short = Number(
        64,
        "Bytes that an invocation loads of several short results.",
        (16, 32, 64, 128),
        changes_rounding=True,
    )
    most_results = Number(8, "The most short results that an invocation has.", (1, 2, 4, 8, 16))
    groups = Number(
        2112,
        "Workgroups that share the work if there are fewer results.",
        (128, 256, 528, 1056, 2112, 4224),
        changes_rounding=True,
    )
    enough = Number(
        512,
        "Number of results from which on no workgroups share a result.",
        (64, 128, 256, 512, 1024),
        changes_rounding=True,
    )
    single = Number(2, "Chunks that one workgroup takes alone.", (1, 2, 4, 8), changes_rounding=True)
    finishing = Number(
        1,
        "Whether the workgroup that finishes last combines the partial results of a result, in place of a "
        "second launch (0 or 1).",
        (0, 1),
        changes_rounding=True,
    )
    column_bytes = Number(16, 'Bytes of a load in "columns".', (4, 8, 16), changes_rounding=True)
    most_columns = Number(4, "The most columns of such a load.", (1, 2, 4), changes_rounding=True)
    most_columns_of_states = Number(
        2, "The same for states of several registers.", (1, 2, 4), changes_rounding=True
    )
    partials = Number(
        8, "Partial results that an invocation has in flight.", (4, 8, 16), changes_rounding=True
    )
    column_flight = Number(
        128,
        'Bytes that an invocation has in flight in "columns".',
        (32, 64, 128, 256),
        changes_rounding=True,
    )
    column_side = Number(
        512,
        "Bytes of a row that the invocations of a workgroup take side by side if columns are long.",
        (128, 256, 512, 1024),
        changes_rounding=True,
    )
    column_least = Number(
        4,
        "Least loads of an invocation if a workgroup takes short rows one below the other.",
        (1, 2, 4, 8),
        changes_rounding=True,
    )
    interleave = Number(
        1, "Whether neighbouring workgroups have neighbouring columns if several share each (0 or 1).", (0, 1)
    )


class CpuTuning(Table, family="reduce.cpu", found_on=LLVMPIPE):
    """Numbers for CPU drivers.

    If all lanes together load more than a cache line of columns, few lines of each row stay in the cache.
    """

    most_elements = Number(
        16, "Elements that an invocation combines in one round.", (8, 16, 32), changes_rounding=True
    )
    most_columns = Number(4, 'The most columns of a load in "columns".', (1, 2, 4), changes_rounding=True)
    column_bytes = Number(8, "Bytes of such a load.", (4, 8, 16), changes_rounding=True)
    lane_loads = Number(
        64,
        "Loads of the longest rows that an invocation reduces alone.",
        (16, 64, 256),
        changes_rounding=True,
    )
    group = Number(
        256,
        "The largest workgroup of rows or columns side by side.",
        (64, 128, 256),
        constraint="a power of two",
    )
    group_loads = Number(4096, "The least loads that such a workgroup makes.", (1024, 4096, 16384))
    groups = Number(
        16, "The least workgroups that share the work.", (4, 8, 16, 32, 64, 128), changes_rounding=True
    )
    single = Number(128, "Chunks that one workgroup takes alone.", (32, 128, 512), changes_rounding=True)


tuning = Tuning()
cpu_tuning = CpuTuning()
