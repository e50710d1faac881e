"""Tiles of long rows, in a trace: flags of elements are stored, and elements of set flags are collected."""

from collections.abc import Callable
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.record import record
from vkdispatch.families.values import unpack_elements
from vkdispatch.selection.topk.form import WORD, NarrowForm
from vkdispatch.selection.workgroup_sums import sum_before, sum_group

# Returns some flags of an element.
FlagsOf = Callable[[Any], list[Any]]


def flag_tile(
    form: NarrowForm, arrays: tuple[Any, Any], place: tuple[Any, Any, Any], flags_of: FlagsOf, count: int
) -> list[Any]:
    """Return this invocation's words of flags.

    Parameters
    ----------
    arrays
        The keys, and a view of them.
    place
        The row, the tile in the row, and the length of rows.
    flags_of
        Returns `count` flags of an element.
    """
    (keys, view), (row, own, length) = arrays, place
    group = form.group
    lane = vc.local_invocation_id().x
    memories = [vc.shared_buffer(dtype.uint32, group) for _ in range(count)]
    for memory in memories:
        memory[lane] = 0
    vc.barrier()
    base = (row * length).to_register("top_base")
    begin = (own * form.tile).to_register("top_begin")
    left = vc.min(length - begin, form.tile).to_register("top_left")
    with vc.if_block(left == form.tile):
        _flag_whole_tile(form, view, (base + begin).to_register(), memories, flags_of)
    with vc.else_block(), vc.for_block(lane, left, group) as offset:
        flags = flags_of(keys[base + begin + offset].to_register())
        for memory, flag in zip(memories, flags, strict=True):
            with vc.if_block(flag):
                vc.atomic_or(memory[offset // WORD], vc.to_dtype(dtype.uint32, 1) << (offset % WORD))
    vc.barrier()
    return [memory[lane].to_register() for memory in memories]


def store_flags(form: NarrowForm, words: list[Any], bits: Any, sums: Any, tile: Any, half: Any) -> None:
    """Store this invocation's words of flags, and the sum of the tile; `half`: tiles of each kind of flag."""
    lane = vc.local_invocation_id().x
    for number, word in enumerate(words):
        place = tile + number * half if number else tile
        bits[place * form.group + lane] = word
        total = sum_group(vc.bit_count(word).to_dtype(dtype.uint32), lane, form.group)
        with vc.if_block(lane == 0):
            sums[place] = total


def _flag_whole_tile(form: NarrowForm, view: Any, first: Any, memories: list[Any], flags_of: FlagsOf) -> None:
    lane = vc.local_invocation_id().x
    together, group = form.together, form.group
    loads = WORD // together
    in_flight = min(loads, form.loads)
    start = (first // together).to_register("top_load")
    with vc.for_block(0, loads // in_flight) as number:
        offsets = [(lane + (number * in_flight + u) * group).to_register() for u in range(in_flight)]
        words = [view[start + offset].to_register() for offset in offsets]
        for offset, word in zip(offsets, words, strict=True):
            raws = [word] if together == 1 else unpack_elements(form.order.raw, together, word)
            masks: list[Any] = [vc.new_uint_register(0) for _ in memories]
            for i, raw in enumerate(raws):
                for which, flag in enumerate(flags_of(raw.to_register())):
                    masks[which] |= vc.select(flag, 1 << i, 0)
            place = offset * together
            for memory, mask in zip(memories, masks, strict=True):
                with vc.if_block(mask != 0):
                    vc.atomic_or(memory[place // WORD], mask << (place % WORD))


@record(eq=False)
class Target:
    """Where candidates come from and go, in a trace.

    Attributes
    ----------
    keys, length
        The keys, and the length of rows.
    candidates, positions, first
        The candidates and their positions; the place of the first candidate of the row.
    tile, row, tiles
        The tile and its row, and the tiles of a row.
    """

    keys: Any
    length: Any
    candidates: Any
    positions: Any
    first: Any
    tile: Any
    row: Any
    tiles: Any


def collect_tile(
    form: NarrowForm, to: Target, bits: Any, starts: Any, half: Any, most: Any, shift: Any
) -> None:
    """Store the flagged elements of a tile after those of the tiles before.

    Parameters
    ----------
    half
        The number of the first tile with this kind of flags.
    most
        The most candidates of the row.
    shift
        The number of the first candidate.
    """
    tile, row, tiles = to.tile, to.row, to.tiles
    lane = vc.local_invocation_id().x
    begin = ((tile - row * tiles) * form.tile).to_register("top_begin")
    with vc.if_block(most > 0):
        # sums over all rows may wrap around, but their differences in 32 bits are right
        first = ((starts[half + tile] - starts[half + row * tiles]) & 0xFFFFFFFF).to_register("top_first")
        word = bits[(half + tile) * form.group + lane].to_register()
        before = sum_before(vc.bit_count(word).to_dtype(dtype.uint32), lane, form.group)
        rank = (first + before).to_register("top_rank")
        with vc.while_block(vc.all(word != 0, rank < most)):
            bit = vc.find_lsb(word).to_dtype(dtype.uint32).to_register()
            place = begin + (lane * WORD + bit)
            target = (to.first + (shift + rank)).to_register("top_target")
            to.candidates[target] = to.keys[row * to.length + place].to_register()
            to.positions[target] = place
            word &= word - 1
            rank += 1
