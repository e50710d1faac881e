"""Numbers found by measurement, which the plans of sorts depend on. None changes a result."""

from vkdispatch.families.tuning import H200_AND_LLVMPIPE, LLVMPIPE, Number, Table

_POWER = "a power of two"


class Tuning(Table, family="sorting"):
    """Numbers for GPUs, and those for CPUs at the end."""

    width = Number(8, "Bits of a digit.", (4, 6, 8))
    group = Number(
        256,
        "Invocations of a workgroup for keys of 4 bytes without a payload.",
        (128, 256, 512),
        constraint=_POWER,
    )
    items = Number(24, "Keys of each such invocation.", (8, 16, 24))
    block_group = Number(
        256, "Invocations of a workgroup that sorts whole rows.", (128, 256, 512), constraint=_POWER
    )
    block_items = Number(16, "Keys of each such invocation.", (8, 16, 24))
    small_group = Number(
        128, "The same invocations for rows that fit a tile of that size.", (64, 128, 256), constraint=_POWER
    )
    small_items = Number(8, "Keys of each such invocation.", (4, 8, 16))
    sweep_items = Number(36, "For launches that do a whole digit: keys of an invocation.", (16, 24, 36))
    sweep_registers = Number(
        40, "The most 32-bit words of the keys of such an invocation and their payload.", (24, 32, 40)
    )
    registers = Number(
        48, "The most 32-bit words of the keys of an invocation and their payload.", (32, 48, 64)
    )
    short = Number(
        40, "Keys of the longest row in which each key counts the keys before it.", (16, 24, 32, 40, 48, 64)
    )
    match = Number(
        1,
        "How tiles are ranked in one workgroup, or in three launches (0 or 1): see `TileForm`.",
        (0, 1),
    )
    votes = Number(
        0, "Whether digits are counted by votes, instead of by one atomic for each key (0 or 1).", (0, 1)
    )
    few_tiles = Number(
        64, "The most tiles whose counts one invocation sums up.", (16, 64, 256), found_on=H200_AND_LLVMPIPE
    )
    # Whether the device lets waiting workgroups wait is no matter of speed.
    onesweep = Number(1, "Whether one launch does a digit (0 or 1).")
    window = Number(4, "Tiles that a look-back reads at once.", (1, 4, 8))
    histogram_group = Number(
        256, "Invocations of a workgroup that counts digits.", (128, 256, 512), constraint=_POWER
    )
    histogram_items = Number(8, "Keys that each such invocation has in flight.", (4, 8, 16))
    histogram_rounds = Number(16, "Rounds of such a workgroup.", (8, 16, 32))
    serial_group = Number(
        64, "Invocations of a workgroup, for devices without ballots.", (32, 64, 128), constraint=_POWER
    )
    serial_items = Number(16, "Keys of each such invocation.", (8, 16))
    serial_width = Number(4, "Bits of a digit, for devices without ballots.")
    run_group = Number(
        8, "On CPUs: invocations of a workgroup.", (4, 8, 16), found_on=LLVMPIPE, constraint=_POWER
    )
    run_least = Number(512, "On CPUs: the least keys of a run.", (256, 512, 1024, 2048), found_on=LLVMPIPE)
    run_most = Number(
        32768,
        "On CPUs: the most keys of a run.",
        (8192, 16384, 32768),
        found_on=LLVMPIPE,
        constraint="fewer than 65,536: llvmpipe leaves longer loops",
    )
    run_count = Number(
        128,
        "On CPUs: the number of runs of a row from which on runs have the least keys.",
        (32, 64, 128, 256),
        found_on=LLVMPIPE,
    )
    run_width = Number(8, "On CPUs: bits of a digit.", (7, 8), found_on=LLVMPIPE)
    long_run = Number(8192, "On CPUs: keys of a long run.", (4096, 8192, 16384), found_on=LLVMPIPE)
    long_run_width = Number(11, "On CPUs: bits of a digit of long runs.", (8, 11), found_on=LLVMPIPE)
    short_work = Number(
        1 << 18,
        "On CPUs: keys of all rows, times those of one row, up to which each key counts the keys before it.",
        (1 << 14, 1 << 16, 1 << 18, 1 << 20),
        found_on=LLVMPIPE,
    )
    merge_short = Number(
        16, "On CPUs: the least keys of rows that are merged.", (8, 16, 32), found_on=LLVMPIPE
    )
    merge_long = Number(
        4000,
        "On CPUs: the most keys of such rows.",
        (1000, 2000, 4000),
        found_on=LLVMPIPE,
        constraint="fewer than 4,096: llvmpipe leaves the loops of longer rows too early",
    )
    merge_rows = Number(4, "On CPUs: the least such rows.", (2, 4, 16), found_on=LLVMPIPE)


tuning = Tuning()
