"""Tables of Bluestein's and Rader's algorithms, which transform lengths with large prime factors.

As n k = (n^2 + k^2 - (k - n)^2) / 2, the transform of N values is the convolution of x[n] c[n] with the
conjugate of the chirp c[n] = exp(-i pi n^2 / N), multiplied by c[k] (L. I. Bluestein, 1970). The convolution
takes two transforms of any length of at least 2 N - 1.
"""

from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.families.tuning import memoize
from vkdispatch.fft.plan.lengths import find_primitive_root
from vkdispatch.fft.trace.roots import host_type


@memoize
def _chirp(length: int) -> Any:
    """Return exp(-i pi n^2 / length) for all n, exactly reduced."""
    n = np.arange(length, dtype=np.uint64)
    turns = (n * n % np.uint64(2 * length)).astype(np.float64) / (2 * length)
    return np.exp(-2j * np.pi * turns)


@memoize
def chirp_table(length: int, compute_type: DType) -> vc.ConstantArray:
    """Return the chirp of a forward transform."""
    return vc.ConstantArray(_chirp(length).astype(host_type(compute_type)))


@memoize
def chirp_spectrum(length: int, padded: int, compute_type: DType) -> vc.ConstantArray:
    """Return the transform of the conjugate chirp with period `padded`, divided by `padded`."""
    chirp = _chirp(length).conj()
    around = np.zeros(padded, np.complex128)
    around[:length] = chirp
    around[padded - length + 1 :] = chirp[1:][::-1]
    return vc.ConstantArray((np.fft.fft(around) / padded).astype(host_type(compute_type)))


def conjugate_if(value: Any, wanted: bool) -> Any:
    """Return the complex conjugate if `wanted`, else the value."""
    return vc.to_complex(value.real, -value.imag) if wanted else value


@memoize
def _powers(prime: int) -> Any:
    root, power, found = find_primitive_root(prime), 1, []
    for _ in range(prime - 1):
        found.append(power)
        power = power * root % prime
    return np.array(found, np.uint32)


@memoize
def rader_order(prime: int) -> vc.ConstantArray:
    """Return the positions g^q, in the order of Rader's convolution."""
    return vc.ConstantArray(_powers(prime))


@memoize
def rader_spectrum(prime: int, compute_type: DType) -> vc.ConstantArray:
    """Return the transform of exp(-2 pi i g^-q / prime), divided by prime - 1."""
    back = np.roll(_powers(prime)[::-1], 1).astype(np.float64)
    kernel = np.exp(-2j * np.pi * back / prime)
    return vc.ConstantArray((np.fft.fft(kernel) / (prime - 1)).astype(host_type(compute_type)))
