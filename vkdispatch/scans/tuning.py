"""Numbers found by measurement, which the plans of scans depend on."""

from vkdispatch.families.tuning import H200_AND_LLVMPIPE, LLVMPIPE, Number, Table


class Tuning(Table, family="scans"):
    """Numbers for GPUs, and those that end in "_cpu"."""

    group = Number(
        512,
        "Invocations of a workgroup.",
        (128, 256, 512, 1024),
        constraint="a power of two",
        changes_rounding=True,
    )
    bytes_each = Number(
        64, "Bytes of a tile that an invocation holds.", (16, 32, 64, 128), changes_rounding=True
    )
    bytes_each_cpu = Number(
        32,
        "Bytes of a tile that an invocation holds, on CPUs.",
        (8, 16, 32, 64),
        found_on=LLVMPIPE,
        changes_rounding=True,
    )
    looking_group = Number(
        256,
        "Invocations of a workgroup that looks back: it keeps its tile in registers meanwhile.",
        (128, 256, 512, 1024),
        constraint="a power of two",
        changes_rounding=True,
    )
    looking_bytes_each = Number(
        128,
        "Bytes of a tile that an invocation of such a workgroup holds.",
        (32, 64, 128),
        changes_rounding=True,
    )
    most_elements = Number(32, "The most elements of a tile that an invocation holds.")
    enough = Number(528, "Ranges that keep a GPU busy.", (64, 132, 264, 528, 1056), changes_rounding=True)
    enough_cpu = Number(
        8, "Ranges that keep a CPU busy.", (4, 8, 16, 32, 64), found_on=LLVMPIPE, changes_rounding=True
    )
    few = Number(
        4,
        "The most tiles that one workgroup scans alone.",
        (1, 2, 4, 8, 16),
        found_on=H200_AND_LLVMPIPE,
        changes_rounding=True,
    )
    few_cpu = Number(
        128,
        "The most tiles that one workgroup scans alone, on CPUs.",
        (16, 64, 128, 512),
        found_on=LLVMPIPE,
        changes_rounding=True,
    )
    turns_cpu = Number(
        8, "Tiles of a range of short rows, on CPUs.", (2, 8, 32), found_on=LLVMPIPE, changes_rounding=True
    )
    rounds_cpu = Number(
        128, "The most tiles of any range, on CPUs.", (32, 128, 512), found_on=LLVMPIPE, changes_rounding=True
    )
    columns = Number(
        32,
        "Columns side by side in a workgroup.",
        (16, 32, 64, 128),
        constraint="a power of two",
        changes_rounding=True,
    )
    line = Number(
        128, "The least bytes side by side that columns are read by.", (32, 64, 128), changes_rounding=True
    )
    rounds = Number(
        8,
        "Elements of a column that an invocation scans at once.",
        (4, 8, 16),
        found_on=H200_AND_LLVMPIPE,
        changes_rounding=True,
    )
    memory_group_cpu = Number(
        64,
        "Invocations of a workgroup on CPUs if they exchange values by memory, or scan everything alone.",
        (32, 64, 128),
        found_on=LLVMPIPE,
        constraint="a power of two",
        changes_rounding=True,
    )
    columns_group = Number(
        256,
        "The most invocations of a workgroup that scans columns, on GPUs.",
        (64, 128, 256, 512),
        constraint="a power of two",
        changes_rounding=True,
    )
    columns_cpu = Number(
        8,
        "Columns of a workgroup on CPUs.",
        (4, 8, 16, 32),
        found_on=LLVMPIPE,
        constraint="a power of two",
        changes_rounding=True,
    )
    rows_apart = Number(
        8, "Tiles of a row from which on a row has tiles of its own.", (2, 4, 8, 16), changes_rounding=True
    )
    # These three are decided by what the device guarantees: a wrong choice waits for ever.
    lookback = Number(-1, "Whether tiles look back: 1, or 0 for partial results; -1 chooses by the device.")
    packed = Number(
        -1, "Whether words of a look-back hold a tag too: 1 or 0; -1: where the device has 64-bit atomics."
    )
    tickets = Number(
        -1,
        "Whether tiles are numbered as their workgroups start: 1 or 0; -1: where these start in any order.",
    )
    native = Number(
        -1, "Whether subgroups add and multiply by operations of the device: 1 or 0; -1: on GPUs."
    )


tuning = Tuning()
