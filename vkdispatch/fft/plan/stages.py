"""Lengths of transforms, and how the transform of a line is split into stages."""

import functools
import math
import operator
from collections.abc import Iterator
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record, replace
from vkdispatch.fft.plan.tuning import tuning

# ---- Arithmetic of indices that are ints or GPU values ---------------------------------------------------
#
# What is known when a kernel is traced costs nothing.


def add(a: Any, b: Any) -> Any:
    """Return a sum, without zeros."""
    if isinstance(b, int) and b == 0:
        return a
    return b if isinstance(a, int) and a == 0 else a + b


def multiply(a: Any, b: Any) -> Any:
    """Return a product, without ones."""
    if isinstance(a, int):
        return a * b if isinstance(b, int) else multiply(b, a)
    return a if isinstance(b, int) and b == 1 else a * b


def hold(value: Any) -> Any:
    """Return a value as it is now, in a register of its own unless it is an int."""
    return value if isinstance(value, int) else value.to_register()


# ---- Lengths of transforms: prime factors, and longer lengths that are faster ----------------------------


# The largest prime length that is transformed by the definition, whose cost is quadratic.
LARGEST_PRIME = 31


@functools.cache
def find_first_factor(n: int) -> int:
    """Return the first factor that a transform of n values is split by; n itself if it is prime or 4."""
    if n == 4:
        return 4
    divisors = [d for d in range(2, n) if n % d == 0]
    if not divisors:
        return n
    coprime = [d for d in divisors if math.gcd(d, n // d) == 1]
    return min(coprime or divisors, key=lambda d: (abs(d - n // d), d))


@functools.cache
def count_operations(n: int) -> int:
    """Estimate the instructions of a transform of n values; a multiply-add is one."""
    if n <= 2:
        return 4 * (n - 1)
    if n == 4:
        return 16
    left = find_first_factor(n)
    if left == n:
        half = (n - 1) // 2
        return 4 * half * half + 10 * half
    right = n // left
    twiddles = 0 if math.gcd(left, right) == 1 else 4 * (left - 1) * (right - 1)
    return right * count_operations(left) + left * count_operations(right) + twiddles


@functools.cache
def find_prime_factors(n: int) -> tuple[int, ...]:
    """Return the prime factors of a positive int, ascending and repeated."""
    factors, p = [], 2
    while p * p <= n:
        while n % p == 0:
            factors.append(p)
            n //= p
        p += 1
    return (*factors, n) if n > 1 else tuple(factors)


# The default of `max_register_count` in 0.1.0, which transforms lengths without larger prime factors.
_USUAL_REGISTERS = 16


def pad_dim(dim: int, max_register_count: int | None = None) -> int:
    """Return the smallest length of at least `dim` whose prime factors are all small.

    Parameters
    ----------
    dim
        At least 1.
    max_register_count
        The largest allowed prime factor; the default 16 allows primes up to 13.

    Raises
    ------
    TypeError
        An argument is not an int.
    ValueError
        `dim` is less than 1, or `max_register_count` less than 2.

    Examples
    --------
    >>> vd.fft.pad_dim(16)
    16
    """
    limit = _USUAL_REGISTERS if max_register_count is None else max_register_count
    try:
        length, limit = operator.index(dim), operator.index(limit)
    except TypeError:
        raise ArgumentTypeError(
            f"dim, max_register_count: expected ints, got {dim!r}, {max_register_count!r}"
        ) from None
    if length < 1:
        raise ArgumentValueError(f"dim: expected at least 1, got {dim}")
    if limit < 2:
        raise ArgumentValueError(f"max_register_count: expected at least 2, got {max_register_count}")
    while max(find_prime_factors(length), default=1) > limit:
        length += 1
    return length


@functools.cache
def choose_padded_length(length: int) -> int:
    """Return the length of the convolution in Bluestein's algorithm: the cheapest that is long enough.

    Its prime factors are 2, 3, 5 and 7.
    """
    least, most = 2 * length - 1, 1 << (2 * length - 2).bit_length()
    lengths = []
    seven = 1
    while seven <= most:
        five = seven
        while five <= most:
            three = five
            while three <= most:
                two = three
                while two < least:
                    two *= 2
                if two <= most:
                    lengths.append(two)
                three *= 3
            five *= 5
        seven *= 7
    return min(lengths, key=lambda m: m * (1 + 0.02 * sum(p > 2 for p in find_prime_factors(m))))


# ---- prime lengths ----------------------------------------------------------------------------------


@functools.cache
def find_primitive_root(prime: int) -> int:
    """Return the least primitive root of a prime."""
    factors = set(find_prime_factors(prime - 1))
    return next(g for g in range(2, prime) if all(pow(g, (prime - 1) // f, prime) != 1 for f in factors))


def is_rader_length(length: int) -> bool:
    """Whether a length is a prime p such that p - 1 has small prime factors only."""
    return len(find_prime_factors(length)) == 1 and max(find_prime_factors(length - 1)) <= LARGEST_PRIME


# ---- How the transform of a line is split into stages, and where its values are between them -------------
#
# This is the Stockham FFT. In each stage, butterfly `b` of `length / radix` reads the values at `b + i *
# length / radix` and writes its results to
#
#     (b // previous) * previous * radix + b % previous + i * previous        i = 0 ... radix - 1
#
# where `previous` is the product of the radices of the earlier stages. Input and output are in natural
# order, and neighbouring butterflies access neighbouring values.


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
        stages, previous = [], 1
        for radix in self.radices:
            stages.append(Stage(self.length, radix, previous, self.threads))
            previous *= radix
        return tuple(stages)

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
def _count_fewest_stages(length: int, registers: int) -> int:
    """Return the least number of stages of a line, with radices up to a bound or prime."""
    largest = max(registers, *find_prime_factors(length), 1)
    return min(len(radices) for radices in _list_factorizations(length, largest))


def choose_fewest(length: int, candidates: tuple[int, ...]) -> int:
    """Return the least number of registers with the fewest exchanges."""
    return min(candidates, key=lambda registers: (_count_fewest_stages(length, registers), registers))


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
