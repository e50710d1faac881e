"""Lengths of transforms: prime factors, and longer lengths that are faster."""

import functools
import math
import operator

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError

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
    found, p = [], 2
    while p * p <= n:
        while n % p == 0:
            found.append(p)
            n //= p
        p += 1
    return (*found, n) if n > 1 else tuple(found)


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
    found = []
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
                    found.append(two)
                three *= 3
            five *= 5
        seven *= 7
    return min(found, key=lambda m: m * (1 + 0.02 * sum(p > 2 for p in find_prime_factors(m))))


# ---- prime lengths ----------------------------------------------------------------------------------


@functools.cache
def find_primitive_root(prime: int) -> int:
    """Return the least primitive root of a prime."""
    factors = set(find_prime_factors(prime - 1))
    return next(g for g in range(2, prime) if all(pow(g, (prime - 1) // f, prime) != 1 for f in factors))


def is_rader_length(length: int) -> bool:
    """Whether a length is a prime p such that p - 1 has small prime factors only."""
    return len(find_prime_factors(length)) == 1 and max(find_prime_factors(length - 1)) <= LARGEST_PRIME
