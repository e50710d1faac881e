"""Splits of lines that no workgroup holds into passes."""

import math

from vkdispatch.base.dtype import DType
from vkdispatch.families.tuning import device_facts
from vkdispatch.fft.plan.lengths import LARGEST_PRIME, find_prime_factors
from vkdispatch.fft.plan.tuning import tuning


def choose_factors(length: int, compute_type: DType) -> tuple[int, ...] | None:
    """Return the lengths of the passes, as few as possible, or None if a prime factor is too large."""
    if find_prime_factors(length)[-1:] > (LARGEST_PRIME,):
        return None
    longest = (
        tuning.longest_of_pass * 8 // compute_type.item_size
        if compute_type.item_size > 8
        else tuning.longest_of_pass
    )
    limits = [(count, longest) for count in (2, 3, 4)]
    if device_facts().is_cpu:
        # a pass costs no more than an exchange through workgroup memory
        limits = [(count, most) for count in (2, 3, 4) for most in tuning.cpu_longest_of_pass] + limits
    return next((found for count, most in limits if (found := _balance_factors(length, count, most))), None)


def _balance_factors(length: int, count: int, longest: int) -> tuple[int, ...] | None:
    """Split into `count` factors of about the same size, none above `longest`."""
    if count == 1:
        return (length,) if length <= longest else None
    root = length ** (1 / count)
    divisors = sorted(
        (d for d in _list_divisors(length) if 1 < d <= longest), key=lambda d: abs(math.log(d / root))
    )
    for divisor in divisors:
        rest = _balance_factors(length // divisor, count - 1, longest)
        if rest:
            return (divisor, *rest)
    return None


def _list_divisors(n: int) -> set[int]:
    found = {1}
    for prime in find_prime_factors(n):
        found |= {d * prime for d in found}
    return found
