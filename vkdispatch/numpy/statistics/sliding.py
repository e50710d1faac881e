"""Direct convolution: one invocation for each result, over the products that it has."""

from functools import lru_cache
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.buffer import function_buffer
from vkdispatch.base.dtype import compute_type
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.values import wrap_integer
from vkdispatch.numpy.core import complex_operations as of_complex
from vkdispatch.numpy.core.array import Array, value_of
from vkdispatch.numpy.core.dtypes import Kind, kernel_type
from vkdispatch.numpy.core.kernels import as_buffer
from vkdispatch.numpy.indexing.gathering import array_from, whole_view
from vkdispatch.shader.shader_function import ShaderFunction

__all__: list[str] = []

_GROUP = 256


def slide(signal: Array, taps: Array, start: int, length: int) -> Array:
    """Return `length` elements, from that at `start` on, of the convolution of vectors of one dtype."""
    kind = signal.dtype
    first, second = (as_buffer(whole_view(value_of(each)), (each.size,)) for each in (signal, taps))
    result = function_buffer((length,), kernel_type(kind), first.context)
    _sliding_kernel(kind)(result, first, second, start, signal.size, taps.size)
    return array_from(result)


@lru_cache(64)
def _sliding_kernel(kind: Kind) -> ShaderFunction:
    stored = kernel_type(kind)
    summed: Any = compute_type(stored)
    if kind == np.dtype(np.float16):
        summed = dt.float32

    def body(result: Any, signal: Any, taps: Any, start: Any, longest: Any, count: Any) -> None:
        index = vc.global_invocation_id().x
        place = (index + start).to_register()
        first = vc.select(place >= longest, place + 1 - longest, vc.to_dtype(dt.uint32, 0)).to_register()
        end = (vc.min(place, count - 1) + 1).to_register()
        total = vc.new_register(summed, 0)
        with vc.for_block(first, end, 1) as k:
            x, y = signal[place - k], taps[k]
            if kind.kind == "b":
                total[:] = vc.logical_or(total, vc.logical_and(x, y))
            elif kind.kind == "c":
                total[:] = total + of_complex.multiply(x, y)
            else:
                total[:] = total + vc.to_dtype(summed, x) * vc.to_dtype(summed, y)
        value = total if kind.kind in "bc" else wrap_integer(vc.to_dtype(compute_type(stored), total), stored)
        result[index] = value

    arguments = [(name, buffer[stored]) for name in ("result", "signal", "taps")]
    numbers = [(name, constant[dt.uint32]) for name in ("start", "longest", "count")]
    return trace_kernel("convolve", body, [*arguments, *numbers], _GROUP, exec_size="result.size")
