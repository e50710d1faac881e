"""Tables of roots of unity, computed once in double precision and shared by all kernels."""

import math
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, complex64, complex128, to_numpy_dtype
from vkdispatch.families.tuning import device_facts, memoize
from vkdispatch.fft.plan.indices import add, hold
from vkdispatch.fft.plan.lengths import find_first_factor
from vkdispatch.fft.plan.stages import Split
from vkdispatch.fft.plan.tuning import tuning


def host_type(compute_type: DType) -> Any:
    """Return the NumPy dtype of the tables of a kernel that computes in `compute_type`."""
    return np.dtype(to_numpy_dtype(complex128 if compute_type is complex128 else complex64))


def roots_of_unity(count: int, denominator: int, step: int = 1) -> Any:
    """Return exp(-2 pi i k step / denominator) for k = 0 ... count - 1, to about the last bit."""
    k = np.arange(count, dtype=np.int64) * step % denominator
    # reduced to an eighth of the circle, where sine and cosine are exact to the last bit
    octant, rest = np.divmod(8 * k, denominator)
    odd = (octant & 1).astype(bool)
    rest = np.where(odd, denominator - rest, rest)
    angle = rest * (np.pi / 4 / denominator)
    cosine, sine = np.cos(angle), np.sin(angle)
    cosine, sine = np.where(odd, sine, cosine), np.where(odd, cosine, sine)
    value = cosine - 1j * sine
    return value * np.array([1, -1j, -1, 1j])[octant >> 1]


def second_power(radix: int) -> int:
    """Return the power of a twiddle factor that the table of `twiddles` holds besides the first power."""
    step = radix // find_first_factor(radix)
    return step if step > 1 else min(2, radix - 1)


def twiddle_offsets(split: Split) -> tuple[int, ...]:
    """Return where the factors of each stage begin in the table of `twiddles`; the first stage has none."""
    offsets, offset = [], 0
    for stage in split.stages:
        offsets.append(offset)
        offset += 2 * stage.previous if stage.previous > 1 else 0
    return tuple(offsets)


@memoize
def twiddles(split: Split, compute_type: DType) -> vc.ConstantArray:
    """Return the tables of exp(-2 pi i k / (previous radix)) of all stages but the first, concatenated.

    Each factor is followed by a power of it. The other powers are products of few of these, so that rounding
    errors stay small.
    """
    parts = []
    for stage in split.stages:
        if stage.previous > 1:
            circle = stage.previous * stage.radix
            powers = (1, second_power(stage.radix))
            parts += [np.stack([roots_of_unity(stage.previous, circle, p) for p in powers], axis=1).ravel()]
    # for the idle invocations of the last stage
    last = split.stages[-1]
    parts.append(np.ones(2 * (last.rounds * last.threads - last.butterflies)))
    return vc.ConstantArray(np.concatenate(parts).astype(host_type(compute_type)))


@memoize
def _table(denominator: int, compute_type: DType, longest: int) -> tuple[vc.ConstantArray, int]:
    """Return the table, and where its second part begins; 0 if it has one part."""
    kind = host_type(compute_type)
    if denominator <= longest:
        return vc.ConstantArray(roots_of_unity(denominator, denominator).astype(kind)), 0
    step = 1 << math.ceil(math.log2(denominator) / 2)
    fine = roots_of_unity(step, denominator)
    coarse = roots_of_unity(-(-denominator // step), denominator, step)
    return vc.ConstantArray(np.concatenate([fine, coarse]).astype(kind)), step


def root_power(exponent: Any, denominator: int, compute_type: DType, inverse: bool) -> Any:
    """Return exp(-+2 pi i exponent / denominator) for an exponent (u32) less than the denominator."""
    longest = tuning.cpu_largest_table if device_facts().is_cpu else tuning.largest_table
    array, step = _table(denominator, compute_type, longest)
    table = vc.constant_array(array)
    if step == 0:
        value = hold(table[exponent])
    else:
        exponent = hold(exponent)
        fine, coarse = table[exponent % step], table[add(exponent // step, step)]
        value = hold(hold(fine) * hold(coarse))
    return hold(vc.to_complex(value.real, -value.imag)) if inverse else value
