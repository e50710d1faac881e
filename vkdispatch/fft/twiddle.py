"""Powers of a root of unity whose exponents only the device knows."""

import math
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.fft.device import runs_on_cpu
from vkdispatch.fft.radix import held
from vkdispatch.fft.stages import kept, plus
from vkdispatch.fft.tables import cached, host_type, roots_of_unity

# Beyond so many entries a table is two: exp(-2 pi i (a step + b) / n) is a product.
_ONE_TABLE = 1024
_ONE_TABLE_ON_CPU = 1 << 16  # where a second access costs more than what a table takes of a cache


@cached
def _table(denominator: int, compute_type: DType, longest: int) -> tuple[vc.ConstantArray, int]:
    """Return the table, and after how many entries the second one begins; 0 where there is one only."""
    kind = host_type(compute_type)
    if denominator <= longest:
        return vc.ConstantArray(roots_of_unity(denominator, denominator).astype(kind)), 0
    step = 1 << math.ceil(math.log2(denominator) / 2)
    fine = roots_of_unity(step, denominator)
    coarse = roots_of_unity(-(-denominator // step), denominator, step)
    return vc.ConstantArray(np.concatenate([fine, coarse]).astype(kind)), step


def root_power(exponent: Any, denominator: int, compute_type: DType, inverse: bool) -> Any:
    """Return exp(-+2 pi i exponent / denominator) of an exponent (u32) less than the denominator."""
    longest = _ONE_TABLE_ON_CPU if runs_on_cpu() else _ONE_TABLE
    array, step = _table(denominator, compute_type, longest)
    table = vc.constant_array(array)
    if step == 0:
        value = held(table[exponent])
    else:
        exponent = kept(exponent)
        fine, coarse = table[exponent % step], table[plus(exponent // step, step)]
        value = held(held(fine) * held(coarse))
    return held(vc.to_complex(value.real, -value.imag)) if inverse else value
