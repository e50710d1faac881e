"""What plans and kernels of transforms choose by the kind of the devices: GPUs, or CPU drivers."""

import functools
import sys

from vkdispatch.families.tuning import DeviceFacts, device_facts
from vkdispatch.fft.plan.stages import choose_fewest
from vkdispatch.fft.plan.tuning import look_up, tuning


class Planner:
    """What plans and kernels choose on GPUs.

    Attributes
    ----------
    device
        What the devices can do.
    largest_line
        Bytes of the largest line that the registers of a workgroup hold.
    largest_whole_exchange
        Bytes from which on exchanges move real and imaginary parts in turn.
    real_few_threads
        Real lines of fewer invocations are written in the order of memory.
    lengths_of_pass
        Lengths up to which one invocation holds a whole line of a pass, for lines of several passes: tried in
        order, the largest only where that saves a pass; empty on GPUs.
    chunk
        Bytes that several passes transform at once.
    largest_table
        Entries beyond which a table of roots is split in two.
    vector
        How many neighbours in x the device combines to a vector, or None where workgroups need not care.
    """

    # Whether neighbouring invocations read neighbouring values fastest.
    coalesces = True
    # Whether workgroup memory has banks, over which strides are spread.
    has_banks = True
    # Whether one kernel transforms or convolves planes.
    has_planes = True
    # Whether convolutions of lines of a power of two use `tuning.registers_convolution` and its group.
    has_convolution_numbers = True
    # Whether lines are split so that they have few exchanges.
    avoids_exchanges = False
    # Whether lines are transformed by passes of columns.
    has_columns = False
    # Whether long real lines are transformed as complex ones of half the length.
    has_long_reals = False

    def __init__(self, device: DeviceFacts) -> None:
        self.device = device
        self.largest_line = tuning.largest_line
        self.largest_whole_exchange = tuning.largest_whole_exchange
        self.real_few_threads = tuning.real_few_threads
        self.lengths_of_pass: tuple[int, ...] = ()
        self.chunk = tuning.chunk
        self.largest_table = tuning.largest_table
        self.vector: int | None = None

    def choose_registers(self, length: int, strided: bool) -> int:
        """Return how many complex64 values of a line an invocation should hold."""
        power_of_two = length & (length - 1) == 0
        table = tuning.registers_power_of_two if power_of_two else tuning.registers_other_length
        return look_up(tuning.registers_strided if strided else table, length)

    def choose_plane_registers(self, height: int, width: int) -> int:
        """Return how many complex64 values of a plane an invocation should hold."""
        return look_up(tuning.registers_plane, height * width)

    def stages_plane(self, threads: int, width: int) -> bool:
        """Whether planes are read in the order of memory, whose rows have so many invocations and values."""
        return width <= tuning.plane_staged_width


class CpuPlanner(Planner):
    """What plans and kernels choose on CPU drivers.

    Workgroup memory is as slow as any other there, and an exchange takes longer than another launch.
    """

    coalesces = has_banks = has_planes = has_convolution_numbers = False
    avoids_exchanges = has_columns = has_long_reals = True

    def __init__(self, device: DeviceFacts) -> None:
        super().__init__(device)
        # exchanges in pieces take far longer than another pass over memory
        self.largest_line, self.largest_whole_exchange = device.shared_memory, sys.maxsize
        self.real_few_threads = 0
        # a pass costs no more than an exchange through workgroup memory
        self.lengths_of_pass = tuning.cpu_longest_of_pass
        self.chunk, self.largest_table = tuning.cpu_chunk, tuning.cpu_largest_table
        self.vector = device.subgroup_size

    def choose_registers(self, length: int, strided: bool) -> int:
        """Return how many complex64 values of a line an invocation should hold."""
        if length == tuning.cpu_whole_line:
            return length
        return choose_fewest(length, tuning.cpu_registers)

    def choose_plane_registers(self, height: int, width: int) -> int:
        """Return how many complex64 values of a plane an invocation should hold."""
        registers = self.choose_registers(max(height, width), False)
        return max(registers, -(-height * width // self.device.max_group))

    def stages_plane(self, threads: int, width: int) -> bool:
        """Whether planes are read in the order of memory, whose rows have so many invocations and values."""
        return threads < min(tuning.cpu_plane_staged_threads, width)


# Planners copy numbers of `tuning`, so its key is part of that of the cache.
@functools.lru_cache(64)
def _make_planner(device: DeviceFacts, _numbers: object) -> Planner:
    return (CpuPlanner if device.is_cpu else Planner)(device)


def find_planner() -> Planner:
    """Return what chooses on the devices of the current context."""
    return _make_planner(device_facts(), tuning.key())
