"""How the transform of a line is split into stages, and where its values are between them.

This is the Stockham FFT. In each stage, butterfly `b` of `length / radix` reads the values at
`b + i * length / radix` and writes its results to

    (b // previous) * previous * radix + b % previous + i * previous        i = 0 ... radix - 1

where `previous` is the product of the radices of the earlier stages. Input and output are in natural order,
and neighbouring butterflies access neighbouring values.
"""

import functools
from collections.abc import Iterator
from typing import Any

from vkdispatch.base.record import record, replace
from vkdispatch.fft.plan.indices import add, multiply
from vkdispatch.fft.plan.lengths import LARGEST_PRIME, count_operations, find_prime_factors
from vkdispatch.fft.plan.tuning import tuning


@record
class Stage:
    """A stage of the transform of a line.

    Attributes
    ----------
    length
        Values of the line.
    radix
        Values of a butterfly.
    previous
        Product of the radices of the earlier stages.
    threads
        Invocations that work on the line.
    """

    length: int
    radix: int
    previous: int
    threads: int

    @property
    def butterflies(self) -> int:
        """Butterflies of the line."""
        return self.length // self.radix

    @property
    def rounds(self) -> int:
        """Butterflies of one invocation."""
        return -(-self.butterflies // self.threads)

    @property
    def registers(self) -> int:
        """Values that one invocation holds."""
        return self.rounds * self.radix

    @property
    def is_even(self) -> bool:
        """Whether every invocation has the same number of butterflies."""
        return self.butterflies % self.threads == 0

    def butterfly(self, thread: Any, turn: int) -> Any:
        """Index of an invocation's butterfly."""
        return add(thread, turn * self.threads)

    def conditions(self, thread: Any, turn: int) -> list[Any]:
        """Return the conditions under which an invocation has a butterfly in a turn."""
        if self.is_even or turn < self.rounds - 1:
            return []
        return [self.butterfly(thread, turn) < self.butterflies]

    def input_bounds(self, turn: int, i: int) -> tuple[int, int]:
        """Return the least and greatest position of input number i of the butterflies of a turn."""
        least = turn * self.threads
        most = min(least + self.threads, self.butterflies) - 1
        return least + i * self.butterflies, most + i * self.butterflies

    def output_bounds(self, turn: int, i: int) -> tuple[int, int]:
        """Return the least and greatest position of output number i of the butterflies of a turn."""
        if self.previous == self.butterflies:
            return self.input_bounds(turn, i)
        return 0, self.length - 1

    def twiddle_index(self, thread: Any, turn: int) -> Any:
        """`b % previous`."""
        return self._split(thread, turn)[1]

    def first_output(self, thread: Any, turn: int) -> Any:
        """Position of the first output of a butterfly; the others follow at distance `previous`."""
        block, rest = self._split(thread, turn)
        return add(multiply(block, self.previous * self.radix), rest)

    def _split(self, thread: Any, turn: int) -> tuple[Any, Any]:
        """`divmod(b, previous)`, as far as possible at trace time."""
        previous, start = self.previous, turn * self.threads
        if previous == 1:
            return self.butterfly(thread, turn), 0
        if previous % self.threads == 0 or isinstance(thread, int):
            # the number of the invocation is less than `previous`: it never carries over
            return start // previous, add(thread, start % previous)
        if previous >= self.butterflies:
            return 0, self.butterfly(thread, turn)
        if self.threads % previous == 0:
            return add(thread // previous, start // previous), thread % previous
        b = self.butterfly(thread, turn)
        return b // previous, b % previous


@record
class Split:
    """The radices of a transform, in order, and how many invocations work on a line."""

    length: int
    radices: tuple[int, ...]
    threads: int

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages, in order."""
        found, previous = [], 1
        for radix in self.radices:
            found.append(Stage(self.length, radix, previous, self.threads))
            previous *= radix
        return tuple(found)

    def reverse(self) -> "Split":
        """Return the split with the radices in reverse order."""
        return Split(self.length, self.radices[::-1], self.threads)

    @property
    def registers(self) -> int:
        """Values that an invocation holds at most."""
        return max(stage.registers for stage in self.stages)


@functools.cache
def choose_split(length: int, registers: int, most_threads: int, room: int | None = None) -> Split | None:
    """Choose the radices and invocations of a line, or None if no split is within the limits.

    Parameters
    ----------
    length
        At least 1.
    registers
        Complex values that an invocation may hold, if no prime factor needs more.
    most_threads
        Invocations of a workgroup.
    room
        On a CPU: how many values workgroup memory holds.
    """
    best: tuple[float, Split] | None = None
    for cost, split in list_splits(length, registers, most_threads):
        cost = cost if room is None else _estimate_cpu_cost(split, room)
        if best is None or cost < best[0]:
            best = cost, split
    if best is None:
        return None
    split = best[1]
    if length & (length - 1) and len(split.radices) > 2 and split.radices[0] == split.radices[1]:
        # the reads of the smaller radix are more coalesced
        split = replace(split, radices=split.radices[::-1])
    return split


def list_splits(length: int, registers: int, most_threads: int) -> Iterator[tuple[float, Split]]:
    """Yield the candidates of `choose_split` with their costs."""
    if find_prime_factors(length)[-1:] > (LARGEST_PRIME,):
        return
    for radices in _list_factorizations(length, max(registers, *find_prime_factors(length), 1)):
        for threads in _list_thread_counts(length, radices, registers, most_threads):
            split = Split(length, radices, threads)
            yield _estimate_cost(split), split


def _list_factorizations(n: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write n as a product of radices, descending."""
    if n == 1:
        yield (1,)
        return
    yield from _sort_descending(n, largest)


def _sort_descending(n: int, largest: int) -> Iterator[tuple[int, ...]]:
    if n == 1:
        yield ()
        return
    for radix in range(min(n, largest), 1, -1):
        if n % radix == 0:
            for rest in _sort_descending(n // radix, radix):
                yield (radix, *rest)


@functools.cache
def fewest_stages(length: int, registers: int) -> int:
    """Return the least number of stages of a line, with radices up to a bound or prime."""
    largest = max(registers, *find_prime_factors(length), 1)
    return min(len(radices) for radices in _list_factorizations(length, largest))


def _list_thread_counts(length: int, radices: tuple[int, ...], registers: int, most: int) -> set[int]:
    """Return the numbers of invocations with which the registers of each stage suffice."""
    bound = max(registers, *radices)
    counts = set()
    for radix in radices:
        for turns in range(1, bound // radix + 1):
            counts.add(-(-(length // radix) // turns))
    return {
        count
        for count in counts
        if count <= most and all(-(-(length // radix) // count) * radix <= bound for radix in radices)
    }


def _estimate_cost(split: Split) -> float:
    """Return the instructions for each value of a line on a GPU."""
    total = 0.0
    for number, stage in enumerate(split.stages):
        slots = stage.butterflies + tuning.cost_idle * (stage.rounds * split.threads - stage.butterflies)
        total += slots * count_operations(stage.radix)
        if number:
            total += slots * (
                (stage.radix - 1) * tuning.cost_twiddle + stage.radix * tuning.cost_shared_access
            )
    # short lines need many invocations to hide the latency of memory, long ones few with more work each
    cost = -tuning.cost_held if split.length > tuning.long else tuning.cost_held
    return total / split.length + cost * (split.length / split.threads)


def _estimate_cpu_cost(split: Split, room: int) -> float:
    """Return the instructions for each value of a line on a CPU, where exchanges cost most."""
    stages = split.stages
    total = float(tuning.cpu_cost_exchange * (len(stages) - 1))
    idle = max(stage.rounds * stage.threads - stage.butterflies for stage in stages)
    if len(stages) > 1 and split.length + idle > room:
        # the real and the imaginary parts are exchanged in turn
        total += 2 * tuning.cpu_cost_exchange
    for stage in stages:
        total += stage.rounds * split.threads * count_operations(stage.radix) / split.length
        if len(stages) > 1:
            total += tuning.cpu_cost_round * (stage.rounds - 1) + (
                0 if stage.is_even else tuning.cpu_cost_uneven
            )
    return total
