"""Numbers that plan sorts, measured on an NVIDIA H200; those of CPUs on llvmpipe with two cores."""

from vkdispatch.base.record import record


@record(frozen=False)
class Tuning:
    """Numbers found by measurement. They may be changed, and count for what is planned afterwards.

    Attributes
    ----------
    width
        Bits of a digit.
    group, items
        Invocations of a workgroup, and keys of each invocation, for keys of 4 bytes without a payload.
    block_group, block_items
        The same for rows that one workgroup sorts.
    small_group, small_items
        The same for rows that fit a tile of that size.
    sweep_items, sweep_registers
        For launches that do a whole digit: keys of an invocation, and the most 32-bit words of its keys and
        their payload.
    registers
        The most 32-bit words of the keys of an invocation and their payload.
    short
        Keys of the longest row in which each key counts the keys before it.
    match
        How tiles are ranked in one workgroup, or in three launches (0 or 1): see `TileForm`.
    votes
        Whether digits are counted by votes, instead of by one atomic for each key (0 or 1).
    few_tiles
        The most tiles whose counts one invocation sums up.
    onesweep
        Whether one launch does a digit (0 or 1).
    window
        Tiles that a look-back reads at once.
    histogram_group, histogram_items, histogram_rounds
        Invocations of a workgroup that counts digits, keys that each has in flight, and its rounds.
    serial_group, serial_items, serial_width
        Invocations of a workgroup, keys of each, and bits of a digit, for devices without ballots.
    run_group, run_least, run_most, run_count
        On CPUs: invocations of a workgroup, the least and the most keys of a run, and the number of runs of a
        row from which on runs have the least keys.
    run_width, long_run, long_run_width
        On CPUs: bits of a digit; keys of a long run, and bits of a digit for long runs.
    short_work
        On CPUs: keys of all rows, times those of one row, up to which each key counts the keys before it.
    merge_short, merge_long, merge_rows
        On CPUs: the least and the most keys of rows that are merged, and the least rows. llvmpipe leaves the
        loops of rows of 4,096 keys too early.
    """

    width: int = 8
    group: int = 256
    items: int = 24
    block_group: int = 256
    block_items: int = 16
    small_group: int = 128
    small_items: int = 8
    sweep_items: int = 36
    sweep_registers: int = 40
    registers: int = 48
    short: int = 40
    match: int = 1
    votes: int = 0
    few_tiles: int = 64
    onesweep: int = 1
    window: int = 4
    histogram_group: int = 256
    histogram_items: int = 8
    histogram_rounds: int = 16
    serial_group: int = 64
    serial_items: int = 16
    serial_width: int = 4
    run_group: int = 8
    run_least: int = 512
    run_most: int = 32768
    run_count: int = 128
    run_width: int = 8
    long_run: int = 8192
    long_run_width: int = 11
    short_work: int = 1 << 18
    merge_short: int = 16
    merge_long: int = 4000
    merge_rows: int = 4


tuning = Tuning()
