"""Launches of the kernels that fill buffers, for a stream and a place in it."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.facts import DeviceFacts, device_facts
from vkdispatch.arrays.kernels import buffer, constant, trace_kernel
from vkdispatch.arrays.maps.output import Output, Sink, parse_output
from vkdispatch.arrays.memoize import memoize
from vkdispatch.arrays.results import prepare_result
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, uint32
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.random.forms import Form, tuning
from vkdispatch.random.kernels import MOST_BLOCKS, fill_kernel
from vkdispatch.shader.shader_function import ShaderFunction

# words that a workgroup exchanges: 16 KiB is what every device has
_MOST_EXCHANGED = 4032


@record(slots=False)
class Stream:
    """A stream of random words.

    Attributes
    ----------
    wide
        Whether it is Philox4x64's, else Philox4x32's.
    key
        Two words.
    """

    wide: bool
    key: tuple[int, int]

    @cached_property
    def word_bits(self) -> int:
        """Bits of a word of counter and key."""
        return 64 if self.wide else 32

    @cached_property
    def block(self) -> int:
        """Words of 32 bits in a block."""
        return 8 if self.wide else 4

    @cached_property
    def period(self) -> int:
        """Words of 32 bits before the stream begins anew."""
        return self.block << 4 * self.word_bits

    def counter(self, block: int) -> tuple[int, ...]:
        """Return the words of the counter of a block."""
        mask = (1 << self.word_bits) - 1
        bits = self.word_bits
        return block & mask, block >> bits & mask, block >> 2 * bits & mask, block >> 3 * bits & mask


@record(eq=False)
class Draw:
    """What is drawn, and of which words.

    Attributes
    ----------
    made, bits, rejecting
        See `Form`.
    stream
        The stream.
    place
        Where in it the words begin, counted in words of 32 bits.
    half
        Whether half of that word comes before.
    numbers
        What scales them.
    given
        The word of the first element, which alone is stored; None: those of the stream, for all.
    position
        Where the device finds how many blocks come before `place`.
    """

    made: str
    stream: Stream
    place: int
    bits: int
    half: bool = False
    numbers: tuple[Any, ...] = ()
    rejecting: bool = False
    given: int | None = None
    position: Buffer[Any] | None = None


def fill(draw: Draw, target: Buffer[Any], stored: Output, graph: CommandGraph | None = None) -> None:
    """Fill a buffer with random numbers."""
    stream = draw.stream
    block, shift = divmod(draw.place % stream.period, stream.block)
    count = 1 if draw.given is not None else block_count(stream, draw.bits, target.size)
    for first in range(0, count, MOST_BLOCKS):
        words = (*stream.counter(block + first), *stream.key)
        _fill_blocks(draw, target, stored, shift, first, is_far(stream, block, first, count), words, graph)


def block_count(stream: Stream, bits: int, size: int) -> int:
    """Return how many blocks of a stream so many numbers of some bits are made of."""
    return -(-size // (stream.block * 32 // bits))


def fits_one_launch(blocks: int) -> bool:
    """Return whether one launch makes so many blocks."""
    return blocks <= MOST_BLOCKS


def is_far(stream: Stream, block: int, first: int, count: int) -> bool:
    """Return whether the number of a block of a launch takes more than two words of the counter."""
    return (block + first) % (1 << 64) + min(count - first, MOST_BLOCKS) >= 1 << 64


def _fill_blocks(
    draw: Draw,
    target: Buffer[Any],
    stored: Output,
    shift: int,
    first: int,
    far: bool,
    words: Sequence[Any],
    graph: CommandGraph | None,
) -> None:
    """Fill the part of a buffer that is made of up to `MOST_BLOCKS` blocks, from number `first` on.

    `words` are those of the first one's counter and of the key.
    """
    stream, position = draw.stream, draw.position
    single = draw.given is not None
    count = block_count(stream, draw.bits, target.size)
    form, kernel = _chosen(
        draw.made,
        stream.wide,
        draw.bits,
        -1 if single or count <= tuning.few else shift,
        draw.half,
        stored.sink,
        len(draw.numbers) > 1,
        draw.rejecting,
        single,
        position is not None,
        position is None and far,
        # a buffer that is shorter than one vector has no room for it
        target.size >= stream.block * 32 // draw.bits,
        device_facts(target.context),
        tuned(),
    )
    views = () if form.view is None else (target,)
    positions = () if position is None else (position,)
    given = () if draw.given is None else (draw.given,)
    blocks = min(count - first, MOST_BLOCKS)
    kernel(
        *(target, *views, *positions, *stored.arguments),
        *(*words, first // MOST_BLOCKS, shift),
        *(*draw.numbers, *given),
        workgroups=1 if single else -(-blocks // (form.group * form.unroll)),
        graph=graph,
    )


def tuned() -> tuple[int, ...]:
    """Return the numbers of the tuning that forms are chosen by."""
    return tuning.group, tuning.unroll, tuning.long_products, tuning.exchange, tuning.everywhere


def draw_new(
    made: str,
    kind: DType,
    bits: int,
    shape: tuple[int, ...],
    numbers: tuple[Any, ...],
    rejecting: bool,
    wide: bool,
    shift: int,
    half: bool,
    tuning_key: tuple[int, ...],
    *words: Any,
) -> Buffer[Any]:
    """Return a new buffer of random numbers, of one launch; equal arguments make equal launches, but `words`.

    Parameters
    ----------
    made, kind, bits, shape, numbers, rejecting, wide, half
        See `Draw` and `Form`.
    shift
        How many words of the first block were taken before.
    tuning_key
        What `tuned` returns, and `tuning.few`.
    words
        Those of the first block's counter and of the key.
    """
    stream = Stream(wide, (0, 0))
    target: Buffer[Any] = prepare_result(None, shape, kind)
    draw = Draw(made, stream, 0, bits, half, numbers, rejecting=rejecting)
    _fill_blocks(draw, target, parse_output(None, kind, shape), shift, 0, False, words, None)
    return target


@memoize
def _chosen(
    made: str,
    wide: bool,
    bits: int,
    shift: int,
    half: bool,
    sink: Sink,
    scaled: bool,
    rejecting: bool,
    single: bool,
    on_device: bool,
    far: bool,
    long_enough: bool,
    facts: DeviceFacts,
    tuned: tuple[int, ...],
) -> tuple[Form, ShaderFunction]:
    """Return the form of a launch, and its kernel."""
    group, unroll, long_products, exchange, everywhere = tuned
    group = min(group, facts.max_group)
    plain = shift < 0 or (facts.is_cpu and not everywhere)
    exchanged = shift + half
    exchanging = exchanged > 0 and bool(exchange) and not plain
    unroll = 1 if plain else max(1, unroll // (2 if wide else 1))
    while exchanging and exchanged * unroll * group > _MOST_EXCHANGED:
        group //= 2
    form = Form(
        made,
        wide,
        bits,
        shift,
        sink,
        half=half,
        scaled=scaled,
        rejecting=rejecting,
        single=single,
        far=far,
        on_device=on_device,
        vector=long_enough and not single,
        group=group,
        unroll=unroll,
        long_products=bool(long_products) and "shaderInt64" in facts.features,
        exchange=exchanging,
    )
    return form, fill_kernel(form)


def advance(position: Buffer[Any], blocks: int, graph: CommandGraph) -> None:
    """Count blocks on the device, behind a draw that took them."""
    _advance_kernel()(position, blocks & 0xFFFFFFFF, blocks >> 32, graph=graph)


@memoize
def _advance_kernel() -> ShaderFunction:
    def body(position: Any, low: Any, high: Any) -> None:
        total, carry = vc.uadd_carry(position[0].to_register(), low)
        position[1] = position[1] + high + carry
        position[0] = total

    arguments = [("position", buffer[uint32]), ("low", constant[uint32]), ("high", constant[uint32])]
    return trace_kernel("random_advance", body, arguments, 1, workgroups=1)
