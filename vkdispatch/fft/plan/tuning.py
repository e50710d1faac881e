"""Numbers found by measurement, which the plans of transforms depend on, apart from the code that uses them.

Those for GPUs were found with complex64. Tables are of pairs (largest length, number for it); see `look_up`.

Numbers that count instructions are relative to each other, and radices follow from them; they have no
candidates, so plans are cached in the process for all devices.
"""

import sys

from vkdispatch.families.tuning import LLVMPIPE, Number, Table

ByLength = tuple[tuple[int, int], ...]
_ANY = sys.maxsize


def look_up(table: ByLength, length: int) -> int:
    """Return the number of the first entry of a table that is for a length."""
    return next(number for largest, number in table if length <= largest)


_POWERS: ByLength = ((64, 4), (512, 8), (2048, 16), (_ANY, 32))
_OTHERS: ByLength = ((32, 5), (512, 16), (_ANY, 25))
_STRIDED: ByLength = ((256, 16), (_ANY, 32))
# Both transforms of a convolution exchange, so that fewer exchanges are worth more than many invocations.
_CONVOLUTIONS: ByLength = ((16, 4), (64, 8), (256, 16), (512, 8), (_ANY, 16))
_PLANES: ByLength = ((64, 8), (256, 4), (1024, 8), (4096, 16), (_ANY, 32))


class Tuning(Table, family="fft"):
    """Numbers for GPUs. Those that begin with "cpu" or "column" are for CPUs."""

    # Few complex numbers make many invocations, which hide the latency of memory; many make few exchanges.
    registers_power_of_two = Number(
        _POWERS,
        "Complex numbers that an invocation holds, of lines of a power of two, by their length.",
        (_POWERS, ((_ANY, 4),), ((_ANY, 8),), ((_ANY, 16),), ((128, 4), (1024, 8), (_ANY, 16))),
        changes_rounding=True,
    )
    registers_other_length = Number(
        _OTHERS,
        "The same of lines of another length.",
        (_OTHERS, ((_ANY, 5),), ((_ANY, 10),), ((_ANY, 16),)),
        changes_rounding=True,
    )
    registers_convolution = Number(
        _CONVOLUTIONS, "The same of convolved lines of a power of two.", changes_rounding=True
    )
    group_convolution = Number(
        ((16, 64), (_ANY, 32)), "Least invocations of a workgroup of convolved lines, by their length."
    )
    registers_strided = Number(
        _STRIDED,
        "The same of lines that are strided.",
        (_STRIDED, ((_ANY, 4),), ((_ANY, 8),), ((_ANY, 16),)),
        changes_rounding=True,
    )
    registers_real_short = Number(8, "The same of short real lines.", (4, 8, 16), changes_rounding=True)
    real_short = Number(64, "Reals of the longest short real line.", (32, 64, 128), changes_rounding=True)
    registers_plane = Number(
        _PLANES,
        "Complex numbers that an invocation holds of a plane, by the values of the plane.",
        (_PLANES, ((_ANY, 4),), ((_ANY, 8),), ((_ANY, 16),)),
        changes_rounding=True,
    )
    registers_long_map = Number(
        (8, 16),
        "The same where a long map is written out for each: the first of them with the fewest exchanges.",
        changes_rounding=True,
    )
    long_map = Number(
        256,
        "Statements that an invocation's maps have at most, where that is not to be so.",
        changes_rounding=True,
    )
    group = Number(
        64,
        "Least invocations of a workgroup of short lines or small planes.",
        (32, 64, 128, 256),
        constraint="a power of two",
    )
    neighbours = Number(
        16, "Neighbouring lines of a workgroup where lines are strided: 128 bytes.", (4, 8, 16, 32)
    )
    neighbours_short = Number(128, "Length of lines up to which there are twice as many.", (0, 64, 128, 256))
    largest_line = Number(128 << 10, "Bytes of the largest line that the registers of a workgroup hold.")
    # Half the memory leaves room for more workgroups.
    largest_whole_exchange = Number(
        8 << 10,
        "Bytes from which on exchanges move real and imaginary parts in turn.",
        (4 << 10, 8 << 10, 16 << 10, 32 << 10),
    )
    lines_of_all_registers = Number(
        ((8192, (32, 32, 8), 256),),
        "Lengths, radices and invocations of lines in place that fill the registers of two workgroups.",
        (((8192, (32, 32, 8), 256),), ()),
        changes_rounding=True,
    )

    # Instructions that count as much as what is named.
    cost_shared_access = Number(6, "Moving a value through workgroup memory.")
    cost_twiddle = Number(8, "Making and applying a twiddle factor.")
    cost_idle = Number(0.3, "An idle invocation, of a busy one.")
    cost_held = Number(
        0.2, "A value more in each invocation, in lines that are not long; long ones save that."
    )
    long = Number(2048, "Length of the longest line that is not long.")
    large_group = Number(512, "Invocations of a plane that leave a processor room for few workgroups.")
    cost_large_group = Number(1.3, "The cost of such planes, of that of others.")

    staged_group = Number(
        32, "Invocations that each hold a short line that is staged in workgroup memory.", (32, 64, 128)
    )
    staged_values = Number(512, "Values of a workgroup of such lines.", (256, 512, 1024))
    staged_except = Number(
        16, "A length of short lines that is faster without.", (0, 16), changes_rounding=True
    )
    # Lines of a few invocations are staged as well, in groups that end at a multiple of what memory writes at
    # once.
    few_threads = Number(8, "Invocations of a line up to which it is staged as well.", (0, 4, 8))
    few_longest = Number(128, "Length of the longest such line.", (64, 128))
    few_widest = Number(16, "The largest radix of such a line.")
    few_lines = Number(4, "The number that their lines of a workgroup are a multiple of.", (1, 4, 8))
    pair_lines = Number(
        32,
        "Prime lines of a workgroup in which pairs of invocations transform a line.",
        (16, 32, 64),
        changes_rounding=True,
    )
    pair_longest = Number(80, "Length of the longest such line.", (0, 48, 80), changes_rounding=True)
    real_few_threads = Number(
        8,
        "Real lines of fewer invocations are written in the order of memory.",
        (0, 4, 8, 16),
        changes_rounding=True,
    )
    plane_staged_width = Number(
        32, "Rows of planes of up to so many values are read with their neighbours.", (0, 16, 32)
    )
    longest_of_pass = Number(
        1024,
        "Longest lines of a pass of several: a workgroup has room for 128 bytes of neighbouring lines.",
        (256, 512, 1024),
        changes_rounding=True,
    )
    # Smaller chunks, which stay in the cache, do not make up for their launches.
    chunk = Number(
        1 << 30,
        "Bytes that several passes transform at once, to bound the memory between them.",
        (1 << 24, 1 << 26, 1 << 28, 1 << 30),
    )
    largest_table = Number(
        1024,
        "Entries beyond which a table of roots is split in two.",
        (256, 1024, 4096),
        changes_rounding=True,
    )

    # Drivers' compilers take long for more. Lines of one length are held whole by one invocation, as those of
    # up to 32 are.
    cpu_registers = Number(
        (16, 20, 25, 27, 32),
        "Complex numbers that an invocation may hold.",
        ((16, 20, 25, 27, 32), (8, 16, 20, 25, 27, 32), (16,)),
        found_on=LLVMPIPE,
        changes_rounding=True,
    )
    cpu_whole_line = Number(
        64,
        "A length of lines that one invocation holds whole; 0 for none.",
        (0, 64),
        found_on=LLVMPIPE,
        changes_rounding=True,
    )
    cpu_cost_exchange = Number(200, "Instructions that count as much as an exchange.", found_on=LLVMPIPE)
    cpu_cost_round = Number(
        15, "Those of another butterfly of an invocation, which is kept over barriers.", found_on=LLVMPIPE
    )
    cpu_cost_uneven = Number(30, "Those of butterflies that do not divide evenly.", found_on=LLVMPIPE)
    cpu_plane_staged_threads = Number(
        4, "Rows of planes of fewer invocations are read with their neighbours.", found_on=LLVMPIPE
    )
    cpu_longest_of_pass = Number(
        (32, 64),
        "Values that an invocation holds in a pass of several, a whole line; more where that saves a pass.",
        ((32, 64), (32,), (16, 32)),
        found_on=LLVMPIPE,
        changes_rounding=True,
    )
    cpu_chunk = Number(
        1 << 20,
        "Bytes that go from pass to pass, and stay in a core's own cache.",
        (1 << 18, 1 << 20, 1 << 22, 1 << 24),
        found_on=LLVMPIPE,
    )
    cpu_largest_table = Number(
        1 << 16,
        "Entries beyond which a table of roots is split in two: a second access costs more than the cache.",
        (1 << 12, 1 << 14, 1 << 16),
        found_on=LLVMPIPE,
        changes_rounding=True,
    )

    column_group = Number(
        64,
        "Passes of columns: invocations of a workgroup, several for each core.",
        (32, 64, 128),
        found_on=LLVMPIPE,
        constraint="a power of two",
    )
    column_lanes = Number(
        (8, 4, 2),
        "Invocations that share a column.",
        ((8, 4, 2), (4, 2)),
        found_on=LLVMPIPE,
        changes_rounding=True,
    )
    # More take the driver's compiler long.
    column_rows = Number(
        16,
        "Values of a column that an invocation should hold.",
        (8, 16, 25),
        found_on=LLVMPIPE,
        changes_rounding=True,
    )
    column_most_rows = Number(
        25, "Values that it may hold.", (16, 25, 32), found_on=LLVMPIPE, changes_rounding=True
    )
    column_most_passes = Number(4, "The most passes.", found_on=LLVMPIPE)
    # Instructions that count as much as what is named.
    column_access = Number(14, "An access.", found_on=LLVMPIPE)
    column_move = Number(9, "Each value that an access moves.", found_on=LLVMPIPE)
    column_transform = Number(6, "The transform of a value.", found_on=LLVMPIPE)
    column_step = Number(2, "A step across lanes.", found_on=LLVMPIPE)
    column_launch = Number(4, "A launch.", found_on=LLVMPIPE)
    column_held = Number(0.25, "Another value that an invocation holds.", found_on=LLVMPIPE)
    column_least_values = Number(
        1 << 16,
        "Transforms of fewer values take no passes of columns, which take long to compile.",
        (1 << 14, 1 << 16, 1 << 18),
        found_on=LLVMPIPE,
        changes_rounding=True,
    )


tuning = Tuning()
