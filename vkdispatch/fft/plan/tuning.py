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
    # Complex numbers that an invocation holds, of lines of a power of two, by their length.
    registers_power_of_two = Number(
        _POWERS,
        (_POWERS, ((_ANY, 4),), ((_ANY, 8),), ((_ANY, 16),), ((128, 4), (1024, 8), (_ANY, 16))),
        changes_rounding=True,
    )
    # The same of lines of another length.
    registers_other_length = Number(
        _OTHERS, (_OTHERS, ((_ANY, 5),), ((_ANY, 10),), ((_ANY, 16),)), changes_rounding=True
    )
    # The same of convolved lines of a power of two.
    registers_convolution = Number(_CONVOLUTIONS, changes_rounding=True)
    # Least invocations of a workgroup of convolved lines, by their length.
    group_convolution = Number(((16, 64), (_ANY, 32)))
    # The same of lines that are strided.
    registers_strided = Number(
        _STRIDED, (_STRIDED, ((_ANY, 4),), ((_ANY, 8),), ((_ANY, 16),)), changes_rounding=True
    )
    # The same of short real lines.
    registers_real_short = Number(8, (4, 8, 16), changes_rounding=True)
    # Reals of the longest short real line.
    real_short = Number(64, (32, 64, 128), changes_rounding=True)
    # Complex numbers that an invocation holds of a plane, by the values of the plane.
    registers_plane = Number(
        _PLANES, (_PLANES, ((_ANY, 4),), ((_ANY, 8),), ((_ANY, 16),)), changes_rounding=True
    )
    # The same where a long map is written out for each: the first of them with the fewest exchanges.
    registers_long_map = Number((8, 16), changes_rounding=True)
    # Statements that an invocation's maps have at most, where that is not to be so.
    long_map = Number(256, changes_rounding=True)
    # Least invocations of a workgroup of short lines or small planes. A power of two.
    group = Number(64, (32, 64, 128, 256))
    # Neighbouring lines of a workgroup where lines are strided: 128 bytes.
    neighbours = Number(16, (4, 8, 16, 32))
    # Length of lines up to which there are twice as many.
    neighbours_short = Number(128, (0, 64, 128, 256))
    # Bytes of the largest line that the registers of a workgroup hold.
    largest_line = Number(128 << 10)
    # Bytes from which on exchanges move real and imaginary parts in turn. Half the memory leaves room for
    # more workgroups.
    largest_whole_exchange = Number(8 << 10, (4 << 10, 8 << 10, 16 << 10, 32 << 10))

    # Instructions that count as much as what is named.
    #
    # Moving a value through workgroup memory.
    cost_shared_access = Number(6)
    # Making and applying a twiddle factor.
    cost_twiddle = Number(8)
    # An idle invocation, of a busy one.
    cost_idle = Number(0.3)
    # A value more in each invocation, in lines that are not long; long ones save that.
    cost_held = Number(0.2)
    # Length of the longest line that is not long.
    long = Number(2048)
    # Invocations of a plane that leave a processor room for few workgroups.
    large_group = Number(512)
    # The cost of such planes, of that of others.
    cost_large_group = Number(1.3)

    # Invocations that each hold a short line that is staged in workgroup memory.
    staged_group = Number(32, (32, 64, 128))
    # Values of a workgroup of such lines.
    staged_values = Number(512, (256, 512, 1024))
    # A length of short lines that is faster without.
    staged_except = Number(16, (0, 16), changes_rounding=True)
    # Prime lines of a workgroup in which pairs of invocations transform a line.
    pair_lines = Number(32, (16, 32, 64), changes_rounding=True)
    # Length of the longest such line.
    pair_longest = Number(80, (0, 48, 80), changes_rounding=True)
    # Real lines of fewer invocations are written in the order of memory.
    real_few_threads = Number(8, (0, 4, 8, 16), changes_rounding=True)
    # Rows of planes of up to so many values are read with their neighbours.
    plane_staged_width = Number(32, (0, 16, 32))
    # Longest lines of a pass of several: a workgroup has room for 128 bytes of neighbouring lines.
    longest_of_pass = Number(1024, (256, 512, 1024), changes_rounding=True)
    # Smaller chunks, which stay in the cache, do not make up for their launches.
    # Bytes that several passes transform at once, to bound the memory between them.
    chunk = Number(1 << 30, (1 << 24, 1 << 26, 1 << 28, 1 << 30))
    # Entries beyond which a table of roots is split in two.
    largest_table = Number(1024, (256, 1024, 4096), changes_rounding=True)

    # Drivers' compilers take long for more. Lines of one length are held whole by one invocation, as those of
    # up to 32 are.
    # Complex numbers that an invocation may hold.
    cpu_registers = Number(
        (16, 20, 25, 27, 32),
        ((16, 20, 25, 27, 32), (8, 16, 20, 25, 27, 32), (16,)),
        found_on=LLVMPIPE,
        changes_rounding=True,
    )
    # A length of lines that one invocation holds whole; 0 for none.
    cpu_whole_line = Number(64, (0, 64), found_on=LLVMPIPE, changes_rounding=True)
    # Instructions that count as much as an exchange.
    cpu_cost_exchange = Number(200, found_on=LLVMPIPE)
    # Those of another butterfly of an invocation, which is kept over barriers.
    cpu_cost_round = Number(15, found_on=LLVMPIPE)
    # Those of butterflies that do not divide evenly.
    cpu_cost_uneven = Number(30, found_on=LLVMPIPE)
    # Rows of planes of fewer invocations are read with their neighbours.
    cpu_plane_staged_threads = Number(4, found_on=LLVMPIPE)
    # Values that an invocation holds in a pass of several, a whole line; more where that saves a pass.
    cpu_longest_of_pass = Number(
        (32, 64), ((32, 64), (32,), (16, 32)), found_on=LLVMPIPE, changes_rounding=True
    )
    # Bytes that go from pass to pass, and stay in a core's own cache.
    cpu_chunk = Number(1 << 20, (1 << 18, 1 << 20, 1 << 22, 1 << 24), found_on=LLVMPIPE)
    # Entries beyond which a table of roots is split in two: a second access costs more than the cache.
    cpu_largest_table = Number(1 << 16, (1 << 12, 1 << 14, 1 << 16), found_on=LLVMPIPE, changes_rounding=True)

    # Passes of columns: invocations of a workgroup, several for each core. A power of two.
    column_group = Number(64, (32, 64, 128), found_on=LLVMPIPE)
    # Invocations that share a column.
    column_lanes = Number((8, 4, 2), ((8, 4, 2), (4, 2)), found_on=LLVMPIPE, changes_rounding=True)
    # More take the driver's compiler long.
    # Values of a column that an invocation should hold.
    column_rows = Number(16, (8, 16, 25), found_on=LLVMPIPE, changes_rounding=True)
    # Values that it may hold.
    column_most_rows = Number(25, (16, 25, 32), found_on=LLVMPIPE, changes_rounding=True)
    # The most passes.
    column_most_passes = Number(4, found_on=LLVMPIPE)
    # Instructions that count as much as what is named.
    #
    # An access.
    column_access = Number(14, found_on=LLVMPIPE)
    # Each value that an access moves.
    column_move = Number(9, found_on=LLVMPIPE)
    # The transform of a value.
    column_transform = Number(6, found_on=LLVMPIPE)
    # A step across lanes.
    column_step = Number(2, found_on=LLVMPIPE)
    # A launch.
    column_launch = Number(4, found_on=LLVMPIPE)
    # Another value that an invocation holds.
    column_held = Number(0.25, found_on=LLVMPIPE)
    # Transforms of fewer values take no passes of columns, which take long to compile.
    column_least_values = Number(
        1 << 16, (1 << 14, 1 << 16, 1 << 18), found_on=LLVMPIPE, changes_rounding=True
    )


tuning = Tuning()
