"""Numbers found by measurement, apart from the code that uses them.

Those for GPUs were found on an NVIDIA H200 with complex64, those for CPUs with Mesa's llvmpipe on x86. Tables
are of pairs (largest length, number for it); see `look_up`.
"""

import sys
from collections.abc import Sequence

Table = Sequence[tuple[int, int]]
_ANY = sys.maxsize


def look_up(table: Table, length: int) -> int:
    """Return the number of the first entry of a table that is for a length."""
    return next(number for largest, number in table if length <= largest)


# ---- GPUs: NVIDIA H200, complex64 ------------------------------------------------------------------

# Complex numbers that an invocation holds. Few make many invocations, which hide the latency of memory; many
# make few exchanges.
REGISTERS_POWER_OF_TWO: Table = ((64, 4), (512, 8), (2048, 16), (_ANY, 32))
REGISTERS_OTHER_LENGTH: Table = ((32, 5), (512, 16), (_ANY, 25))
REGISTERS_STRIDED: Table = ((256, 16), (_ANY, 32))
REGISTERS_REAL_SHORT, REAL_SHORT = 8, 64  # of real lines of up to so many reals
REGISTERS_PLANE: Table = ((64, 8), (256, 4), (1024, 8), (4096, 16), (_ANY, 32))  # by values of a plane

# Least invocations of a workgroup of short lines or small planes.
GROUP = 64
# Neighbouring lines of a workgroup where lines are strided, 128 bytes of complex64; twice as many if short.
NEIGHBOURS, NEIGHBOURS_SHORT = 16, 128
# Bytes of the largest line that the registers of a workgroup hold.
LARGEST_LINE = 128 << 10
# Larger exchanges move real and imaginary parts in turn: half the memory leaves room for more workgroups.
LARGEST_WHOLE_EXCHANGE = 8 << 10
# Radices and invocations of lines in place that fill the registers of two workgroups.
LINES_OF_ALL_REGISTERS = {8192: ((32, 32, 8), 256)}

# Instructions that count as much as: moving a value through workgroup memory; making and applying a twiddle
# factor; an idle invocation, of a busy one; a value more in each invocation, in lines of up to LONG, where
# longer ones save that much.
COST_SHARED_ACCESS, COST_TWIDDLE, COST_IDLE, COST_HELD, LONG = 6, 8, 0.3, 0.2, 2048
# Planes of more invocations leave a processor room for few workgroups.
LARGE_GROUP, COST_LARGE_GROUP = 512, 1.3

# Short lines that are staged in workgroup memory: invocations that each hold a line, values of a workgroup,
# and a length that is faster without.
STAGED_GROUP, STAGED_VALUES, STAGED_EXCEPT = 32, 512, 16
# Lines of up to a length that few invocations transform are staged as well, up to a radix, in groups of lines
# that end at a multiple of what memory writes at once.
FEW_THREADS, FEW_LONGEST, FEW_WIDEST, FEW_LINES = 8, 128, 16, 4
# Prime lines that pairs of invocations transform: lines of a workgroup, and the longest.
PAIR_LINES, PAIR_LONGEST = 32, 80
# Real lines of fewer invocations are written in the order of memory.
REAL_FEW_THREADS = 8
# Rows of planes of up to so many values are read with their neighbours.
PLANE_STAGED_WIDTH = 32

# Longest lines of a pass of several: they leave a workgroup room for 128 bytes of neighbouring lines.
LONGEST_OF_PASS = 1024
# Bytes that several passes transform at once, to bound the memory between them. Smaller chunks, which stay
# in the cache, do not make up for their launches.
CHUNK = 1 << 30
# Entries beyond which a table of roots is split in two.
LARGEST_TABLE = 1024

# ---- CPUs: llvmpipe --------------------------------------------------------------------------------

# Complex numbers that an invocation may hold; more take the driver's compiler long. Lines of one length are
# held whole by one invocation, as those of up to 32 are.
CPU_REGISTERS = (16, 20, 25, 27, 32)
CPU_WHOLE_LINE = 64
# Instructions that count as much as: an exchange; another butterfly of an invocation, which is kept over
# barriers; butterflies that do not divide evenly.
CPU_COST_EXCHANGE, CPU_COST_ROUND, CPU_COST_UNEVEN = 200, 15, 30
# Rows of planes of fewer invocations are read with their neighbours.
CPU_PLANE_STAGED_THREADS = 4
# Values that an invocation holds in a pass of several, a whole line; more where that saves a pass.
CPU_LONGEST_OF_PASS = (32, 64)
# Bytes that go from pass to pass, and stay in a core's own cache.
CPU_CHUNK = 1 << 20
# Entries beyond which a table of roots is split in two: a second access costs more than the cache.
CPU_LARGEST_TABLE = 1 << 16

# Passes of columns: invocations of a workgroup, several for each core; invocations that share a column.
COLUMN_GROUP = 64
COLUMN_LANES = (8, 4, 2)
# Values of a column that an invocation should hold, and may hold; more take the driver's compiler long.
COLUMN_ROWS, COLUMN_MOST_ROWS = 16, 25
COLUMN_MOST_PASSES = 4
# Instructions of an access, of each value that it moves, of its transform, and of a step across lanes.
COLUMN_ACCESS, COLUMN_MOVE, COLUMN_TRANSFORM, COLUMN_STEP = 14, 9, 6, 2
# Instructions that count as much as a launch, and as another value that an invocation holds.
COLUMN_LAUNCH, COLUMN_HELD = 4, 0.25
# Transforms of fewer values take no passes of columns, which take long to compile.
COLUMN_LEAST_VALUES = 1 << 16
