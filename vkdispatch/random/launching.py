"""Draws from a stream into buffers: their arguments, distributions, and launches."""

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import get_context
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.memory.data import parse_shape
from vkdispatch.base.record import record, replace
from vkdispatch.execution_pipeline.command_graph import CommandGraph, current, global_graph
from vkdispatch.families.calls import call_with_parameters
from vkdispatch.families.kernels import buffers, numbers, trace_kernel
from vkdispatch.families.operands import (
    Output,
    OutputLike,
    check_overlap,
    is_int,
    parse_dtype,
    parse_int,
    parse_number,
    parse_output,
    prepare_result,
)
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import (
    H200_AND_LLVMPIPE,
    DeviceFacts,
    Number,
    Table,
    device_facts,
    memoize_numbers,
)
from vkdispatch.families.values import INTEGERS, integer_limits
from vkdispatch.random.kernels import MAX_BLOCKS, Form, make_fill_kernel
from vkdispatch.random.stream import Stream, StreamPosition
from vkdispatch.shader.shader_function import ShaderFunction

# ---- Numbers found by measurement, which random draws depend on. None changes a stream -------------------


class Tuning(Table, family="random"):
    """Numbers that the forms of kernels depend on."""

    # Number of blocks up to which one kernel serves all places in the stream, which compiles faster.
    few = Number(1 << 15)
    # Invocations of a workgroup. A power of two.
    group = Number(512, (64, 128, 256, 512, 1024), found_on=H200_AND_LLVMPIPE)
    # Blocks of Philox4x32 that an invocation computes; of Philox4x64 it computes half as many. On CPUs it
    # computes one, which compiles faster.
    unroll = Number(4, (1, 2, 4, 8))
    # Whether products of 32-bit words are computed in 64 bits if the device has such integers: 0 or 1.
    long_products = Number(1, (0, 1), found_on=H200_AND_LLVMPIPE)
    # Whether neighbours exchange words if elements come from two blocks: 0 or 1.
    exchange = Number(1, (0, 1))
    # Whether CPUs use the forms of GPUs: 0 or 1.
    everywhere = Number(0)


tuning = Tuning()


# ---- Arguments of generators -----------------------------------------------------------------------------


def parse_size(size: object, out: object) -> tuple[int, ...]:
    """Return the shape of a draw.

    Raises
    ------
    TypeError, ValueError
        `size` is neither a nonnegative int nor several of them.
    """
    if size is None:
        return out.shape if isinstance(out, Buffer) else ()
    whole = (size,) if is_int(size) else size
    if not isinstance(whole, Sequence) or isinstance(whole, str) or not all(map(is_int, whole)):
        raise ArgumentTypeError(f"size: expected an int or several ints, got {size!r}")
    if min(whole, default=0) < 0:
        raise ArgumentValueError(f"size: expected ints of 0 or more, got {size!r}")
    return parse_shape(tuple(whole))


def parse_graph(graph: object) -> CommandGraph:
    """Return the graph to record into. Raises TypeError if the argument is neither a graph nor None."""
    if graph is None:
        return global_graph()
    if not isinstance(graph, CommandGraph):
        raise ArgumentTypeError(f"graph: expected a CommandGraph or None, got {type(graph).__name__}")
    return graph


def parse_known_dtype(value: object, known: tuple[dt.DType, ...]) -> dt.DType:
    """Return one of the known dtypes, value as vkdispatch's or NumPy's. Raises TypeError for another."""
    try:
        kind = parse_dtype(value)
    except (ArgumentTypeError, ArgumentValueError):
        kind = None
    if kind not in known:
        names = ", ".join(known_kind.name for known_kind in known)
        raise ArgumentTypeError(f"dtype: expected one of {names}, got {kind.name if kind else repr(value)}")
    return kind


# ---- Launches of the kernels that fill buffers, for a stream and a place in it ---------------------------


# The most words that a workgroup exchanges: every device has 16 KiB of workgroup memory.
_MAX_EXCHANGED = 4032


@record
class Distribution:
    """What numbers are drawn.

    Attributes
    ----------
    name
        "raw", "uniform", "normal" or "integers".
    kind
        Their dtype.
    bits
        Bits of the stream for each.
    numbers
        The numbers that shift and scale them.
    is_rejecting
        Whether integers may need several tries.
    has_pairs
        Whether two words make two numbers.
    """

    name: str
    kind: dt.DType
    bits: int
    numbers: tuple[Any, ...] = ()
    is_rejecting: bool = False
    has_pairs: bool = False


@record(eq=False)
class Draw:
    """What a call draws, and from which words.

    Attributes
    ----------
    distribution
        What numbers are drawn.
    stream
        The stream.
    place
        Where in the stream the words begin, counted in words of 32 bits.
    half
        Whether half of the first word is skipped.
    word
        The word of the first element, which alone is stored; None takes the words of the stream for all.
    position
        Where the device finds how many blocks come before `place`; None if `place` says it.
    """

    distribution: Distribution
    stream: Stream
    place: int
    half: bool = False
    word: int | None = None
    position: Buffer[Any] | None = None


@record
class _Part:
    """A part of a draw, of up to `MAX_BLOCKS` blocks.

    Attributes
    ----------
    first
        The number of its first block.
    shift
        Words of 32 bits of the first block that are skipped.
    is_far
        Whether the counter may carry beyond 64 bits.
    words
        The words of the counter of the first block, and those of the key.
    """

    first: int
    shift: int
    is_far: bool
    words: tuple[int, ...]


def fill(draw: Draw, target: Buffer[Any], stored: Output, graph: CommandGraph | None = None) -> None:
    """Fill a buffer with random numbers."""
    stream = draw.stream
    block, shift = divmod(draw.place % stream.period, stream.block)
    count = 1 if draw.word is not None else count_blocks(stream, draw.distribution.bits, target.size)
    for first in range(0, count, MAX_BLOCKS):
        words = (*stream.counter(block + first), *stream.key)
        part = _Part(first, shift, is_far(stream, block, first, count), words)
        _fill_part(draw, part, target, stored, graph)


def count_blocks(stream: Stream, bits: int, size: int) -> int:
    """Return how many blocks of a stream make `size` numbers of some bits."""
    return -(-size // (stream.block * 32 // bits))


def fits_one_launch(blocks: int) -> bool:
    """Return whether one launch can compute so many blocks."""
    return blocks <= MAX_BLOCKS


def is_far(stream: Stream, block: int, first: int, count: int) -> bool:
    """Return whether the number of a block of a launch takes more than two words of the counter."""
    return (block + first) % (1 << 64) + min(count - first, MAX_BLOCKS) >= 1 << 64


def _fill_part(
    draw: Draw, part: _Part, target: Buffer[Any], stored: Output, graph: CommandGraph | None
) -> None:
    """Fill the part of a buffer that some blocks make."""
    distribution, stream, position = draw.distribution, draw.stream, draw.position
    is_single = draw.word is not None
    count = count_blocks(stream, distribution.bits, target.size)
    tuned = read_tuning()
    # a tuple, as making a record for each draw takes longer
    fields = (
        distribution.name,
        stream.is_wide,
        distribution.bits,
        -1 if is_single or count <= tuned[0] else part.shift,
        stored.sink,
        draw.half,
        len(distribution.numbers) > 1,
        distribution.is_rejecting,
        is_single,
        position is None and part.is_far,
        position is not None,
        # a buffer that is shorter than one vector has no room for it
        not is_single and target.size >= stream.block * 32 // distribution.bits,
    )
    form, kernel = _choose_form(fields, device_facts(target.context), tuned)
    views = () if form.view is None else (target,)
    positions = () if position is None else (position,)
    words = () if draw.word is None else (draw.word,)
    blocks = min(count - part.first, MAX_BLOCKS)
    kernel(
        *(target, *views, *positions, *stored.arguments),
        *(*part.words, part.first // MAX_BLOCKS, part.shift),
        *(*distribution.numbers, *words),
        workgroups=1 if is_single else -(-blocks // (form.group * form.unroll)),
        graph=graph,
    )


def read_tuning() -> tuple[int, ...]:
    """Return the numbers of the tuning, `few` first."""
    return tuning.values()


def draw_new(
    name: str,
    kind: dt.DType,
    bits: int,
    shape: tuple[int, ...],
    numbers: tuple[Any, ...],
    is_rejecting: bool,
    place: tuple[bool, int, bool],
    tuning_key: tuple[int, ...],
    *words: int,
) -> Buffer[Any]:
    """Return a new buffer of random numbers, made by one launch.

    Calls that differ in `words` only are repeated natively, so all arguments are plain values.

    Parameters
    ----------
    name, kind, bits, numbers, is_rejecting
        See `Distribution`.
    shape
        The shape of the buffer.
    place
        Whether the stream is that of Philox4x64; the words of the first block that are skipped; and whether
        half of a word is.
    tuning_key
        The result of `read_tuning`.
    words
        The words of the counter of the first block, and those of the key.
    """
    is_wide, shift, half = place
    target: Buffer[Any] = prepare_result(None, shape, kind)
    distribution = Distribution(name, kind, bits, numbers, is_rejecting)
    draw = Draw(distribution, Stream(is_wide, (0, 0)), 0, half)
    _fill_part(draw, _Part(0, shift, False, words), target, parse_output(None, kind, shape), None)
    return target


@store_results
def _choose_form(
    fields: tuple[Any, ...], facts: DeviceFacts, tuning_key: tuple[int, ...]
) -> tuple[Form, ShaderFunction]:
    """Return a form, given its first fields, as the device and the tuning allow, and its kernel."""
    form = Form(*fields)
    _, group, unroll, long_products, exchange, everywhere = tuning_key
    group = min(group, facts.max_group)
    is_plain = form.shift < 0 or (facts.is_cpu and not everywhere)
    exchanged = form.shift + form.half
    has_exchange = exchanged > 0 and bool(exchange) and not is_plain
    unroll = 1 if is_plain else max(1, unroll // (2 if form.is_wide else 1))
    while has_exchange and exchanged * unroll * group > _MAX_EXCHANGED:
        group //= 2
    form = replace(
        form,
        group=group,
        unroll=unroll,
        long_products=bool(long_products) and "shaderInt64" in facts.features,
        has_exchange=has_exchange,
    )
    return form, make_fill_kernel(form)


def advance(position: Buffer[Any], blocks: int, graph: CommandGraph) -> None:
    """Add blocks to a count on the device, after the draw that took them."""
    _make_advance_kernel()(position, blocks & 0xFFFFFFFF, blocks >> 32, graph=graph)


@store_results
def _make_advance_kernel() -> ShaderFunction:
    def body(position: Any, low: Any, high: Any) -> None:
        total, carry = vc.uadd_carry(position[0].to_register(), low)
        position[1] = position[1] + high + carry
        position[0] = total

    arguments = [*buffers(position=dt.uint32), *numbers("low", "high")]
    return trace_kernel("random_advance", body, arguments, 1, workgroups=1)


# ---- Draws from a stream into buffers: at once, or recorded in graphs ------------------------------------


SizeLike = int | Sequence[int] | None


def draw(
    at: StreamPosition,
    distribution: Distribution,
    size: SizeLike,
    out: Buffer[Any] | None,
    output_map: OutputLike,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    """Draw random numbers; the arguments are those of `Generator.raw`."""
    shape = (size,) if type(size) is int and size >= 0 else parse_size(size, out)
    if out is None and output_map is None and graph is None and current.chosen is None:
        drawn = _draw_at_once(at, distribution, shape)
        if drawn is not None:
            return drawn
    stored = parse_output(output_map, distribution.kind, shape)
    buffer = prepare_result(out, shape, stored.out_type)
    # the first element may be stored twice
    check_overlap([("out", out)], stored, map_once=False)
    chosen = parse_graph(graph)
    if buffer.size == 0:
        return buffer
    bits, has_pairs = distribution.bits, distribution.has_pairs
    count = buffer.size + (has_pairs and buffer.size % 2)
    if not chosen.submit_on_record:
        # from a stream of its own, whose position the device counts
        stream, place = at.record()
        position: Buffer[Any] = function_buffer(2, dt.uint32)
        position.write(np.zeros(2, np.uint32))
        with chosen.recording_together():
            fill(Draw(distribution, stream, place, position=position), buffer, stored, chosen)
            advance(position, -(-count * bits // (32 * stream.block)), chosen)
        return buffer
    if bits == 16:
        stream, place, half = at.take_halves(count)
        fill(Draw(distribution, stream, place, half), buffer, stored, chosen)
        return buffer
    stream, place, word = at.take(bits, count, halves=not has_pairs)
    whole = Draw(distribution, stream, place)
    fill(whole, buffer, stored, chosen)
    if word is not None:
        # the first element uses another word than the kernel took
        fill(replace(whole, word=word), buffer, stored, chosen)
    return buffer


def _draw_at_once(
    at: StreamPosition, distribution: Distribution, shape: tuple[int, ...]
) -> Buffer[Any] | None:
    """Return a new buffer of numbers that one launch makes; None, and take nothing, if it takes more."""
    size, stream, bits = math.prod(shape), at.stream, distribution.bits
    # a word of 64 bits of which half is used may come first
    blocks = count_blocks(stream, bits, size)
    if size == 0 or (stream.is_wide and bits == 32) or not fits_one_launch(blocks):
        return None
    count = size + (distribution.has_pairs and size % 2)
    half = False
    if bits == 16:
        stream, place, half = at.take_halves(count)
    else:
        stream, place, _ = at.take(bits, count, halves=False)
    block, shift = divmod(place % stream.period, stream.block)
    if is_far(stream, block, 0, blocks):
        buffer = prepare_result(None, shape, distribution.kind)
        fill(Draw(distribution, stream, place, half), buffer, parse_output(None, distribution.kind, shape))
        return buffer
    options = (
        distribution.name,
        distribution.kind,
        bits,
        shape,
        distribution.numbers,
        distribution.is_rejecting,
        (stream.is_wide, shift, half),
        read_tuning(),
    )
    words = (*stream.counter(block), *stream.key)
    drawn: Buffer[Any] = call_with_parameters(draw_new, options, words, get_context())
    return drawn


# ---- The distributions that generators draw from, given by their arguments -------------------------------


_FLOATS = (dt.float32, dt.float64, dt.float16)
# bits of the stream for a number of [0, 1), and the largest of a type
_BITS: dict[dt.DType, int] = {dt.float16: 16, dt.float32: 32, dt.float64: 64}
_LARGEST: dict[dt.DType, float] = {
    dt.float16: 65504.0,
    dt.float32: 0xFFFFFF * 2.0**104,
    dt.float64: sys.float_info.max,
}


@memoize_numbers
def find_uniform(low: object, high: object, dtype: object) -> Distribution:
    """Return the distribution of `Generator.uniform`."""
    first, last = parse_number(low, "low"), parse_number(high, "high")
    kind = parse_known_dtype(dtype, _FLOATS)
    if not max(abs(first), abs(last), abs(last - first)) <= _LARGEST[kind]:
        raise ArgumentValueError(
            f"low, high: {first} and {last}, or their distance, are too large for {kind.name}"
        )
    numbers = () if (first, last) == (0.0, 1.0) else (first, last - first)
    return Distribution("uniform", kind, _BITS[kind], numbers)


@memoize_numbers
def find_normal(loc: object, scale: object, dtype: object) -> Distribution:
    """Return the distribution of `Generator.normal`."""
    kind = parse_known_dtype(dtype, _FLOATS)
    loc, scale = parse_number(loc, "loc"), parse_number(scale, "scale")
    if scale < 0 or math.copysign(1.0, scale) < 0:
        raise ArgumentValueError(f"scale: expected 0 or more, got {scale}")
    if max(abs(loc), scale) > _LARGEST[kind]:
        raise ArgumentValueError(f"loc, scale: {loc} and {scale} are too large for {kind.name}")
    numbers = () if (loc, scale) == (0.0, 1.0) else (loc, scale)
    return Distribution("normal", kind, 64 if kind is dt.float64 else 32, numbers, has_pairs=True)


@memoize_numbers
def find_integers(low: object, high: object, dtype: object, endpoint: int) -> Distribution:
    """Return the distribution of `Generator.integers`."""
    kind = parse_known_dtype(dtype, INTEGERS)
    first, last = (0, low) if high is None else (low, high)
    first, last = parse_int(first, "low"), parse_int(last, "low" if high is None else "high")
    last -= not endpoint
    least, most = integer_limits(kind)
    if last < first:
        raise ArgumentValueError(f"low, high: there are no integers from {first} to {last}")
    if first < least or last > most:
        raise ArgumentValueError(
            f"low, high: {kind.name} cannot represent all integers from {first} to {last}; pass another dtype"
        )
    count = last - first + 1
    bits = 64 if count > 1 << 32 else 32
    surplus = (1 << bits) % count
    start = first & (1 << (64 if kind.item_size == 8 else 32)) - 1
    numbers = (start,) if count > (1 << bits) - 1 else (start, count, surplus)
    return Distribution("integers", kind, bits, numbers, is_rejecting=surplus > 0)
