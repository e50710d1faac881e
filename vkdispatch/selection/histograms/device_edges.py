"""Edges of bins of equal width, computed on the device for graphs, with the same bits as NumPy's.

    extremes  ->  first, last  ->  number * step   ->  + first   ->  the last edge is exactly the last extreme
                                   one kernel          another

The product is stored in memory, so that no compiler fuses it with the sum. float32 and float16 are computed
in float64 and rounded after each operation. This gives the same bits as their own arithmetic, also on devices
whose division is less accurate. Edges of float16 are stored as float32, in which elements are compared.
"""

import math
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType, is_float_dtype, is_vector
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.codegen.execution.registers import precise
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import wide_type
from vkdispatch.shader.shader_function import ShaderFunction

_GROUP = 256


def make_edges(
    extremes: Buffer[Any], source: DType, bins: int, kind: DType, graph: CommandGraph | None
) -> Buffer[Any]:
    """Return the edges of bins of equal width between the extremes of elements of dtype `source`.

    They are numbers of `kind` (float16, float32 or float64) in a buffer of `wide_type(kind)`. If the extremes
    are not finite, the edges are not finite either.
    """
    context = extremes.context
    outer: Buffer[Any] = function_buffer(2, wide_type(kind), context=context)
    edges: Buffer[Any] = function_buffer(bins + 1, wide_type(kind), context=context)
    _make_outer_kernel(extremes.var_type, wide_type(source), kind)(extremes, outer, graph=graph)
    _make_steps_kernel(kind)(outer, edges, bins, graph=graph)
    _make_edges_kernel(kind)(outer, edges, bins, graph=graph)
    return edges


@memoize
def _make_outer_kernel(stored: DType, source: DType, kind: DType) -> ShaderFunction:
    wide = wide_type(kind)

    def trace(extremes: Any, outer: Any) -> None:
        if is_vector(stored):
            pair = extremes[0].to_register()
            low, high = pair.x, pair.y
        else:
            low, high = extremes[0], extremes[1]
        high = -high if is_float_dtype(source) else ~high
        first = low.to_dtype(wide).to_register()
        last = high.to_dtype(wide).to_register()
        with vc.if_block(first == last):
            first[:] = _round(first.to_dtype(dtype.float64) - 0.5, kind).to_dtype(wide)
            last[:] = _round(last.to_dtype(dtype.float64) + 0.5, kind).to_dtype(wide)
        outer[0] = first
        outer[1] = last

    arguments = [("extremes", buffer[stored]), ("outer", buffer[wide])]
    return trace_kernel("outer_edges", trace, arguments, 1, 1)


def _round(value: Any, kind: DType) -> Any:
    """Return a float64 rounded to a dtype, as a float64."""
    if kind is dtype.float64:
        return value
    # rounding twice is exact here: float32 has more than twice the bits of float16
    narrow = value.to_dtype(dtype.float32).to_register()
    return (_round_to_half(narrow) if kind is dtype.float16 else narrow).to_dtype(dtype.float64)


def _round_to_half(value: Any) -> Any:
    """Return a float32 rounded to the nearest float16, as a float32. Conversions of devices may truncate."""
    bits = vc.reinterpret(dtype.uint32, value) & 0x7F800000
    power = vc.max(vc.reinterpret(dtype.float32, bits), 2.0**-14).to_register()
    # a sum with it has as many fraction bits as float16 has for this exponent
    large = (power * (1.5 * 2.0**13)).to_register()
    rounded = precise(precise(value + large) - large)
    beyond = vc.select(value > 0, vc.to_dtype(dtype.float32, math.inf), vc.to_dtype(dtype.float32, -math.inf))
    return vc.select(vc.abs(rounded) > 65504.0, beyond, rounded).to_register()


@memoize
def _make_steps_kernel(kind: DType) -> ShaderFunction:
    wide = wide_type(kind)

    def trace(outer: Any, edges: Any, bins: Any) -> None:
        index = vc.global_invocation_id().x
        first, last = (outer[i].to_dtype(dtype.float64) for i in range(2))
        delta = _round(last - first, kind).to_register()
        step = _round(delta / bins.to_dtype(dtype.float64), kind).to_register()
        number = index.to_dtype(dtype.float64)
        product = (number * step).to_register()
        with vc.if_block(step == 0.0):
            product[:] = _round(number / bins.to_dtype(dtype.float64), kind) * delta
        edges[index] = _round(product, kind).to_dtype(wide)

    arguments = [("outer", buffer[wide]), ("edges", buffer[wide]), ("bins", constant[dtype.uint32])]
    return trace_kernel("edge_steps", trace, arguments, _GROUP, exec_size="edges.size")


@memoize
def _make_edges_kernel(kind: DType) -> ShaderFunction:
    wide = wide_type(kind)

    def trace(outer: Any, edges: Any, bins: Any) -> None:
        index = vc.global_invocation_id().x
        edge = edges[index].to_dtype(dtype.float64) + outer[0].to_dtype(dtype.float64)
        edges[index] = vc.select(index == bins, outer[1], _round(edge, kind).to_dtype(wide))

    arguments = [("outer", buffer[wide]), ("edges", buffer[wide]), ("bins", constant[dtype.uint32])]
    return trace_kernel("edges", trace, arguments, _GROUP, exec_size="edges.size")
