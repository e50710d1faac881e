"""Sums of weights by bin, in fixed point, so that their bits do not depend on the order of execution.

    weight         = mantissa (an integer)        * 2 ** exponent
    top of a bin   = the largest exponent of its weights                            first pass: atomic maximum
    fixed point    = |.... upper: H bits ....|.... lower: H bits ....|              second pass: atomic sums
                      ^ the leading bit of the top                                  of two int64 each
    sum of a bin   = (upper + lower * 2 ** -H) * 2 ** (position of its top)         rounded once

H is 62 minus the binary logarithm of the number of elements, so no sum overflows. Weights are truncated 2 H
bits below the largest weight of their bin. With 2**26 elements 2 H is 72; a float64 has 53 bits. Sums of
integers do not depend on their order, unlike sums of floats. Integer weights are summed as int64. Devices
without 64-bit atomics add words, with a carry.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType, is_float_dtype
from vkdispatch.base.errors import UnsupportedError
from vkdispatch.base.record import record
from vkdispatch.families.kernels import buffers, clear_buffer, trace_kernel
from vkdispatch.families.operands import Operand, Output, Sink
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import device_facts
from vkdispatch.families.values import wide_type
from vkdispatch.selection import counting
from vkdispatch.shader.shader_function import ShaderFunction

# Bins in workgroup memory that kernels are specialised for, of five words each.
_BIN_SIZES = (256, 1024, 2048)
_SUM_WORDS = 5
_MAX_SHARED = 1 << 16
_FINISH_GROUP = 256
# Vulkan's names of the features that atomics on int64 need.
_HAS_LONGS = {"shaderInt64", "shaderBufferInt64Atomics"}
# Flags of a bin with weights that are not finite.
_PLUS, _MINUS, _NAN = 1, 2, 4


@record
class _Layout:
    """How a float is stored: bits of the fraction, largest exponent, bias for an integer mantissa."""

    word: DType
    fraction: int
    special: int
    bias: int


_FLOAT32 = _Layout(dtype.uint32, 23, 0xFF, 150)
_FLOAT64 = _Layout(dtype.uint64, 52, 0x7FF, 1075)


@record
class _SumForm:
    """What a kernel is specialised for.

    Attributes
    ----------
    stream, binning
        How elements are visited, and how bins are found.
    weight
        dtype of the weights, as they are combined.
    shared
        Bins in workgroup memory; 0 for none.
    upper
        Bits of the upper part of a sum.
    has_words
        Whether int64 are added word by word.
    """

    stream: counting.Stream
    binning: counting.Binning
    weight: DType
    shared: int
    upper: int
    has_words: bool = False


def _find_layout(kind: DType) -> _Layout:
    return _FLOAT64 if kind is dtype.float64 else _FLOAT32


def sum_weights(task: counting.BinnedTask, weights: Operand) -> Buffer[Any]:
    """Fill the result with the sum of the weights of each bin.

    Raises
    ------
    NotImplementedError
        The sums need float64, and the device has none.
    """
    x, bins, binning, output, graph = task.x, task.bins, task.binning, task.output, task.graph
    context = x.context
    _check_float64(weights, output)
    stream = counting.make_stream(x, weights)
    values = counting.stream_values(stream, (x, weights))
    binning_arguments = (bins,) if task.edges is None else (bins, task.edges)
    kind = wide_type(weights.var_type)
    upper = 62 - max(1, (x.size - 1).bit_length())
    sums: Buffer[Any] = function_buffer(2 * bins, dtype.int64, context=context)
    clear_buffer(sums, graph)
    tops: Buffer[Any] = function_buffer(2 * bins, dtype.uint32, context=context)
    clear_buffer(tops, graph)
    if is_float_dtype(kind):
        form = _SumForm(stream, binning, kind, counting.shared_words(bins), 0)
        _make_top_kernel(form)(tops, *binning_arguments, *values, graph=graph)
    has_words = not device_facts().features >= _HAS_LONGS
    form = _SumForm(stream, binning, kind, _shared_bins(bins), upper, has_words)
    _make_sum_kernel(form)(sums, tops, *binning_arguments, *values, graph=graph)
    _make_finish_kernel(kind, upper, output.sink)(sums, tops, task.result, *output.arguments, graph=graph)
    return task.result


def _check_float64(weights: Operand, output: Output) -> None:
    facts = device_facts(weights.context)
    floats = is_float_dtype(wide_type(weights.var_type)) or output.sink.value_type is dtype.float64
    if floats and "shaderFloat64" not in facts.features:
        device = weights.context.device_infos[0].device_name
        raise UnsupportedError(
            f"weights: their sums are computed in float64 ({weights.var_type.name} was passed), and the "
            f"device {device!r} has no float64; vd.histogram sums only integers there; otherwise use NumPy"
        )


def _shared_bins(bins: int) -> int:
    """Return how many bins fit in workgroup memory, with two sums and a top each; 0 if they do not fit."""
    most = min(device_facts().shared_memory, _MAX_SHARED) // (4 * _SUM_WORDS)
    return next((size for size in _BIN_SIZES if bins <= size <= most), 0)


def _split_float(kind: DType, weight: Any) -> tuple[Any, Any, Any]:
    """Return the sign bit, the biased exponent and the mantissa of a float, in registers."""
    layout = _find_layout(kind)
    bits = vc.reinterpret(layout.word, weight).to_register()
    exponent = ((bits >> layout.fraction) & layout.special).to_dtype(dtype.uint32).to_register()
    hidden = vc.select(exponent > 0, 1 << layout.fraction, 0)
    mantissa = ((bits & ((1 << layout.fraction) - 1)) | hidden.to_dtype(layout.word)).to_register()
    negative = (bits >> (8 * layout.word.item_size - 1)).to_dtype(dtype.uint32)
    # subnormal numbers have the exponent of the smallest normal number
    return negative, vc.max(exponent, 1).to_register(), mantissa


@store_results
def _make_top_kernel(form: _SumForm) -> ShaderFunction:
    """Return the kernel that finds the top of each bin, and flags weights that are not finite."""
    layout, group = _find_layout(form.weight), form.stream.group

    def trace(tops: Any, binning: Any, *variables: Any) -> None:
        lane = vc.local_invocation_id().x
        bins = counting.Bins(form.binning, binning, group)
        memory = vc.shared_buffer(dtype.uint32, form.shared) if form.shared else tops
        if form.shared:
            with vc.for_block(lane, bins.count, group) as place:
                memory[place] = 0
            vc.barrier()

        def act(_: Any, element: Any, weight: Any) -> None:
            is_inside, number = bins.find(element)
            with vc.if_block(is_inside):
                negative, exponent, mantissa = _split_float(form.weight, weight.to_register())
                with vc.if_block(exponent == layout.special):
                    number_flag = vc.select(negative > 0, _MINUS, _PLUS)
                    is_infinite = mantissa == (1 << layout.fraction)
                    vc.atomic_or(tops[bins.count + number], vc.select(is_infinite, number_flag, _NAN))
                # most weights do not change the maximum
                is_larger = vc.all(exponent < layout.special, mantissa > 0, exponent > memory[number])
                with vc.if_block(is_larger):
                    vc.atomic_max(memory[number], exponent)

        counting.visit(form.stream, variables, act)
        if form.shared:
            vc.barrier()
            with vc.for_block(lane, bins.count, group) as place:
                top = memory[place].to_register()
                with vc.if_block(top > 0):
                    vc.atomic_max(tops[place], top)

    arguments = [*buffers(tops=dtype.uint32), form.binning.arguments, *form.stream.arguments]
    return trace_kernel(f"weigh_tops_{form.binning.way}", trace, arguments, group, "stream_groups")


@store_results
def _make_sum_kernel(form: _SumForm) -> ShaderFunction:
    """Return the kernel that adds up the weights of each bin, in fixed point from its top."""
    group = form.stream.group

    def trace(sums: Any, tops: Any, binning: Any, *variables: Any) -> None:
        lane = vc.local_invocation_id().x
        bins = counting.Bins(form.binning, binning, group)
        add_to_buffer = _make_word_adder(sums) if form.has_words else _make_adder(sums)
        top_of, add = tops, add_to_buffer
        if form.shared:
            memory = vc.shared_buffer(dtype.uint32, 4 * form.shared)
            add = _make_word_adder(memory)
            top_of = vc.shared_buffer(dtype.uint32, form.shared)
            with vc.for_block(lane, bins.count, group) as place:
                for word in range(4):
                    memory[4 * place + word] = 0
                top_of[place] = tops[place]
            vc.barrier()

        def act(_: Any, element: Any, weight: Any) -> None:
            is_inside, number = bins.find(element)
            with vc.if_block(is_inside):
                if is_float_dtype(form.weight):
                    _add_float(form, add, top_of[number], number, weight.to_register())
                else:
                    if form.weight is dtype.bool_:
                        weight = vc.select(weight, 1, 0)
                    add(2 * number, weight.to_dtype(dtype.int64))

        counting.visit(form.stream, variables, act)
        if form.shared:
            vc.barrier()
            with vc.for_block(lane, 2 * bins.count, group) as place:
                pair = vc.to_uvec2(memory[2 * place], memory[2 * place + 1])
                total = vc.pack_uint2x32(pair).to_dtype(dtype.int64).to_register()
                with vc.if_block(total != 0):
                    add_to_buffer(place, total)

    tables = buffers(sums=dtype.uint32 if form.has_words else dtype.int64, tops=dtype.uint32)
    arguments = [*tables, form.binning.arguments, *form.stream.arguments]
    return trace_kernel(f"weigh_{form.binning.way}", trace, arguments, group, "stream_groups")


def _make_adder(sums: Any) -> Any:
    def add(place: Any, value: Any) -> None:
        vc.atomic_add(sums[place], value)

    return add


def _make_word_adder(memory: Any) -> Any:
    """Return a function that adds to an int64 in two words by atomics of 32 bits.

    The lower word tells whether there is a carry. A sum is right once all numbers have been added.
    """

    def add(place: Any, value: Any) -> None:
        pair = vc.unpack_uint2x32(value.to_dtype(dtype.uint64)).to_register()
        before = vc.atomic_add(memory[2 * place], pair.x).to_register()
        carry = vc.select(before + pair.x < before, 1, 0).to_dtype(dtype.uint32)
        upper = (pair.y + carry).to_register()
        with vc.if_block(upper != 0):
            vc.atomic_add(memory[2 * place + 1], upper)

    return add


def _add_float(form: _SumForm, add: Any, top: Any, number: Any, weight: Any) -> None:
    layout, upper = _find_layout(form.weight), form.upper
    negative, exponent, mantissa = _split_float(form.weight, weight)
    with vc.if_block(exponent < layout.special):
        wide = mantissa.to_dtype(dtype.uint64).to_register()
        # the place of the mantissa's last bit, counted from the last bit of the upper part
        at = (exponent - top).to_dtype(dtype.int32) + (upper - layout.fraction - 1)
        at = at.to_register()
        high = vc.new_uint64_register(0)
        low = vc.new_uint64_register(0)
        with vc.if_block(at >= 0):
            high[:] = wide << at.to_dtype(dtype.uint32)
        with vc.else_block():
            down = (-at).to_dtype(dtype.uint32).to_register()
            high[:] = _shift_right(wide, down)
            with vc.if_block(down < 64):
                rest = (wide - (high << down)).to_register()
                with vc.if_block(down <= upper):
                    low[:] = rest << (upper - down)
                with vc.else_block():
                    low[:] = rest >> (down - upper)
            with vc.else_block():
                low[:] = _shift_right(wide, down - upper)
        for place, part in ((2 * number, high), (2 * number + 1, low)):
            with vc.if_block(part != 0):
                signed = part.to_dtype(dtype.int64)
                add(place, vc.select(negative > 0, -signed, signed))


def _shift_right(value: Any, count: Any) -> Any:
    return vc.select(count < 64, value >> vc.min(count, 63), 0)


@store_results
def _make_finish_kernel(kind: DType, upper: int, sink: Sink) -> ShaderFunction:
    def trace(sums: Any, tops: Any, result: Any, mapping: Any) -> None:
        index = vc.global_invocation_id().x
        high = sums[2 * index].to_register()
        total = _round_sum(kind, upper, sums, tops, index) if is_float_dtype(kind) else high
        sink.store(result, mapping, index, counting.convert(total, wide_type(sink.value_type)))

    tables = buffers(sums=dtype.int64, tops=dtype.uint32, result=sink.out_type)
    return trace_kernel(
        "store_sums", trace, [*tables, sink.parameters], _FINISH_GROUP, exec_size="result.size"
    )


def _round_sum(kind: DType, upper: int, sums: Any, tops: Any, index: Any) -> Any:
    layout = _find_layout(kind)
    bins = tops.shape.w // 2
    # carry from the lower sum to the upper one, so that both are rounded together
    low = sums[2 * index + 1].to_register()
    carry = (low >> upper).to_register()
    high = (sums[2 * index] + carry).to_dtype(dtype.float64)
    rest = (low - (carry << upper)).to_dtype(dtype.float64)
    total = high + rest * 2.0**-upper
    exponent = tops[index].to_dtype(dtype.int32) + (layout.fraction + 1 - layout.bias - upper)
    half = (exponent >> 1).to_register()
    total = (total * _power(half) * _power(exponent - half)).to_register()
    flags = tops[bins + index].to_register()
    with vc.if_block(flags != 0):
        infinity = vc.reinterpret(dtype.float64, vc.to_dtype(dtype.uint64, 0x7FF0000000000000))
        nan = vc.reinterpret(dtype.float64, vc.to_dtype(dtype.uint64, 0x7FF8000000000000))
        total[:] = vc.select(flags == _PLUS, infinity, vc.select(flags == _MINUS, -infinity, nan))
    return total


def _power(exponent: Any) -> Any:
    """Return a power of two; the exponent is one of normal numbers."""
    bits = (exponent + 1023).to_dtype(dtype.uint64) << 52
    return vc.reinterpret(dtype.float64, bits)
