"""Draws from a stream into buffers: at once, or recorded in graphs."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import uint32
from vkdispatch.base.record import replace
from vkdispatch.execution_pipeline.command_graph import CommandGraph, current
from vkdispatch.families.calls import call_with_parameters
from vkdispatch.families.operands import OutputLike, check_overlap, parse_output, prepare_result
from vkdispatch.random.checking import parse_graph, parse_size
from vkdispatch.random.launching import (
    Distribution,
    Draw,
    advance,
    count_blocks,
    draw_new,
    fill,
    fits_one_launch,
    is_far,
    read_tuning,
)
from vkdispatch.random.position import StreamPosition

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
        position: Buffer[Any] = function_buffer(2, uint32)
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
