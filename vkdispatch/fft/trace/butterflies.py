"""Discrete Fourier transforms of a few values that one invocation holds in registers.

Composite lengths are split into coprime factors by the Good-Thomas mapping, which needs no twiddle factors,
or else by the Cooley-Tukey algorithm. Odd primes use the symmetry of the sine and cosine sums.
"""

import cmath
import math
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.fft.plan.indices import hold
from vkdispatch.fft.plan.lengths import find_first_factor


def dft(values: Sequence[Any], sign: int) -> list[Any]:
    """Return the transform of some complex values, in natural order.

    Parameters
    ----------
    values
        Complex GPU values, already in registers.
    sign
        Sign of the exponent: -1 forward, 1 inverse (unnormalized).
    """
    n = len(values)
    if n == 1:
        return list(values)
    if n == 2:
        values = list(values)
        return [hold(values[0] + values[1]), hold(values[0] - values[1])]
    if n == 4:
        return _dft4(values, sign)
    left = find_first_factor(n)
    if left == n:
        return _dft_prime(values, sign)
    if math.gcd(left, n // left) == 1:
        return _dft_coprime(values, sign, left)
    return _dft_product(values, sign, left)


def multiply_by_i(value: Any, sign: int) -> Any:
    """Return the value multiplied by i (sign 1) or -i (sign -1)."""
    if sign > 0:
        return vc.to_complex(-value.imag, value.real)
    return vc.to_complex(value.imag, -value.real)


def rotate(value: Any, numerator: int, denominator: int, sign: int) -> Any:
    """Return the value times exp(sign 2 pi i numerator / denominator), a constant."""
    eighths, rest = divmod(8 * (numerator % denominator), denominator)
    if rest == 0 and eighths % 2 == 0:
        quarter = eighths // 2
        if quarter == 0:
            return value
        if quarter == 2:
            return hold(-value)
        return hold(multiply_by_i(value, sign if quarter == 1 else -sign))
    factor = cmath.exp(2j * cmath.pi * (numerator % denominator) / denominator)
    if rest == 0:
        factor = complex(
            math.copysign(math.sqrt(0.5), factor.real), math.copysign(math.sqrt(0.5), factor.imag)
        )
    return hold(value * complex(factor.real, sign * factor.imag))


def _dft4(values: Sequence[Any], sign: int) -> list[Any]:
    a, b, c, d = values
    even, odd = hold(a + c), hold(b + d)
    left, right = hold(a - c), hold(multiply_by_i(b - d, sign))
    return [hold(even + odd), hold(left + right), hold(even - odd), hold(left - right)]


def _dft_prime(values: Sequence[Any], sign: int) -> list[Any]:
    values, n = list(values), len(values)
    half = (n - 1) // 2
    sums = [hold(values[j] + values[n - j]) for j in range(1, half + 1)]
    differences = [hold(multiply_by_i(values[j] - values[n - j], sign)) for j in range(1, half + 1)]
    total = values[0]
    for each in sums:
        total = total + each
    outcome = [hold(total)] + [None] * (n - 1)
    for k in range(1, half + 1):
        even, odd = values[0], None
        for j in range(1, half + 1):
            angle = 2 * math.pi * (j * k % n) / n
            even = even + sums[j - 1] * math.cos(angle)
            term = differences[j - 1] * math.sin(angle)
            odd = term if odd is None else odd + term
        even, odd = hold(even), hold(odd)
        outcome[k] = hold(even + odd)
        outcome[n - k] = hold(even - odd)
    return outcome


def _dft_coprime(values: Sequence[Any], sign: int, left: int) -> list[Any]:
    n = len(values)
    right = n // left
    rows = [dft([values[(right * i + left * j) % n] for j in range(right)], sign) for i in range(left)]
    outcome: list[Any] = [None] * n
    # 1 modulo one factor and 0 modulo the other
    to_left, to_right = right * pow(right, -1, left), left * pow(left, -1, right)
    for k in range(right):
        column = dft([row[k] for row in rows], sign)
        for j in range(left):
            outcome[(to_left * j + to_right * k) % n] = column[j]
    return outcome


def _dft_product(values: Sequence[Any], sign: int, left: int) -> list[Any]:
    n = len(values)
    right = n // left
    columns = []
    for j in range(right):
        inner = dft([values[right * i + j] for i in range(left)], sign)
        columns.append([rotate(inner[k], j * k, n, sign) for k in range(left)])
    outcome: list[Any] = [None] * n
    for k in range(left):
        outer = dft([column[k] for column in columns], sign)
        for j in range(right):
            outcome[k + left * j] = outer[j]
    return outcome
