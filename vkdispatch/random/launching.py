"""Launches of the kernels that fill buffers, for a stream and a place in it."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, uint32
from vkdispatch.base.record import record, replace
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.operands import Output, parse_output, prepare_result
from vkdispatch.families.tuning import DeviceFacts, device_facts, memoize
from vkdispatch.random.forms import Form
from vkdispatch.random.kernels import MOST_BLOCKS, make_fill_kernel
from vkdispatch.random.stream import Stream
from vkdispatch.random.tuning import tuning
from vkdispatch.shader.shader_function import ShaderFunction

# The most words that a workgroup exchanges: every device has 16 KiB of workgroup memory.
_MOST_EXCHANGED = 4032


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
    kind: DType
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
    """A part of a draw, of up to `MOST_BLOCKS` blocks.

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
    for first in range(0, count, MOST_BLOCKS):
        words = (*stream.counter(block + first), *stream.key)
        part = _Part(first, shift, is_far(stream, block, first, count), words)
        _fill_part(draw, part, target, stored, graph)


def count_blocks(stream: Stream, bits: int, size: int) -> int:
    """Return how many blocks of a stream make `size` numbers of some bits."""
    return -(-size // (stream.block * 32 // bits))


def fits_one_launch(blocks: int) -> bool:
    """Return whether one launch can compute so many blocks."""
    return blocks <= MOST_BLOCKS


def is_far(stream: Stream, block: int, first: int, count: int) -> bool:
    """Return whether the number of a block of a launch takes more than two words of the counter."""
    return (block + first) % (1 << 64) + min(count - first, MOST_BLOCKS) >= 1 << 64


def _fill_part(
    draw: Draw, part: _Part, target: Buffer[Any], stored: Output, graph: CommandGraph | None
) -> None:
    """Fill the part of a buffer that some blocks make."""
    distribution, stream, position = draw.distribution, draw.stream, draw.position
    is_single = draw.word is not None
    count = count_blocks(stream, distribution.bits, target.size)
    numbers = read_tuning()
    # a tuple, as making a record for each draw takes longer
    fields = (
        distribution.name,
        stream.is_wide,
        distribution.bits,
        -1 if is_single or count <= numbers[0] else part.shift,
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
    form, kernel = _choose_form(fields, device_facts(target.context), numbers)
    views = () if form.view is None else (target,)
    positions = () if position is None else (position,)
    words = () if draw.word is None else (draw.word,)
    blocks = min(count - part.first, MOST_BLOCKS)
    kernel(
        *(target, *views, *positions, *stored.arguments),
        *(*part.words, part.first // MOST_BLOCKS, part.shift),
        *(*distribution.numbers, *words),
        workgroups=1 if is_single else -(-blocks // (form.group * form.unroll)),
        graph=graph,
    )


def read_tuning() -> tuple[int, ...]:
    """Return the numbers of the tuning, `few` first."""
    return tuning.values()


def draw_new(
    name: str,
    kind: DType,
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


@memoize
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
    while has_exchange and exchanged * unroll * group > _MOST_EXCHANGED:
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


@memoize
def _make_advance_kernel() -> ShaderFunction:
    def body(position: Any, low: Any, high: Any) -> None:
        total, carry = vc.uadd_carry(position[0].to_register(), low)
        position[1] = position[1] + high + carry
        position[0] = total

    arguments = [("position", buffer[uint32]), ("low", constant[uint32]), ("high", constant[uint32])]
    return trace_kernel("random_advance", body, arguments, 1, workgroups=1)
