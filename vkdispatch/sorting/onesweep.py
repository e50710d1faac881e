"""A radix sort that reads and writes its keys once for each digit: for devices whose workgroups all go on.

After "Onesweep" (Adinets and Merrill, 2022), whose tiles learn of those before them by the decoupled
look-back of Merrill and Garland (2016).

    clear            histograms, tickets and the first board
    histograms       one pass over the keys counts all of their digits: histogram[row][digit number][digit]
    starts           each histogram summed up: where in its row each digit begins
    sweep            for each digit number one launch:

    tile 0    tile 1    tile 2    ...  tile t        of a row, in the order in which workgroups start
    counts    counts    counts         counts        left on the board as soon as the tile is ranked
    start +   sums      sums       <-  adds up what it finds on the way back, until a tile has its sum there;
                                       then leaves its own sum

A word of the board is two bits of what it is (nothing, a count, a sum) and 30 bits of a number, for each tile
and digit. The sum of tile 0 begins with the histogram's start, so what a tile finds is a place in its row.
Each sweep clears the board of the next.

Invariants: words go from nothing to a count to a sum once in a launch, each stored and loaded at once, so
that nothing else needs to be ordered. Tiles are numbered by a counter as their workgroups start: whoever is
waited for has been started, and waits for earlier ones only. All numbers are sums of integers, so
the order of execution does not show. Stable, as `ranking` is.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import buffer, constant, traced
from vkdispatch.arrays.remembering import remembered
from vkdispatch.base import dtype
from vkdispatch.base.record import record
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order
from vkdispatch.sorting.passes import SHAPE, WORKGROUPS, MovedTile, PassForm, TileOfRow, moved_arguments
from vkdispatch.sorting.ranking import Tile, TileForm, only

_U32 = constant[dtype.uint32]
_WORDS: Any = vc.Buff[dtype.uint32]
_COUNT_BITS = 30
_COUNT = (1 << _COUNT_BITS) - 1
_HAS_COUNT, _HAS_SUM = 1, 2


@record
class HistogramForm:
    """What the kernel of histograms is specialised for.

    Attributes
    ----------
    order
        Of what the keys are.
    width
        Bits of a digit.
    group, items, rounds
        Invocations of a workgroup, keys that each has under way, and how often.
    """

    order: Order
    width: int
    group: int
    items: int
    rounds: int

    @property
    def chunk(self) -> int:
        """Keys of a workgroup."""
        return self.group * self.items * self.rounds


@remembered
def clear_kernel() -> ShaderFunction:
    """Return the kernel that clears a board, histograms and tickets, given how many words each has."""
    names = ("sort_board", "sort_histograms", "sort_tickets")

    def body(*given: Any) -> None:
        index = vc.global_invocation_id().x.to_register("sort_index")
        for words, count in zip(given[:3], given[3:], strict=True):
            with vc.if_block(index < count):
                words[index] = 0

    arguments = [*((name, _WORDS) for name in names), *((f"{name}_words", _U32) for name in names)]
    most = f"max({', '.join(f'{name}_words' for name in names)})"
    return traced("sort_clear", body, arguments, 256, exec_size=most)


@remembered
def histogram_kernel(form: HistogramForm) -> ShaderFunction:
    """Return the kernel that counts the digits of rows of keys.

    Its arguments are the keys, the histograms, how many rows there are, their length, and chunks of a row.
    """
    digits = form.order.digits(form.width)
    bins = 1 << form.width
    total = bins * len(digits)

    def body(keys: Any, histograms: Any, rows: Any, length: Any, chunks: Any) -> None:
        del rows
        index = vc.local_invocation_index().to_register("sort_index")
        tables: Any = vc.shared_buffer(dtype.uint32, total, "sort_tables")
        for start in range(0, total, form.group):
            with only(None if start + form.group <= total else index < total - start):
                tables[index + start] = 0
        row = (vc.workgroup_id().x // chunks).to_register("sort_row")
        first = ((vc.workgroup_id().x % chunks) * form.chunk).to_register("sort_first")
        base = (row * length).to_register("sort_row_base")
        vc.barrier()
        step = form.group * form.items
        left = vc.min(length - first, form.chunk).to_register("sort_left")
        with vc.for_block(0, (left + (step - 1)) // step) as number:
            begin = (number.to_dtype(dtype.uint32) * step + index).to_register("sort_place")
            places = [begin + i * form.group for i in range(form.items)]
            found = [
                keys[base + (first + vc.select(place < left, place, 0))].to_register() for place in places
            ]
            for key, place in zip(found, places, strict=True):
                with vc.if_block(place < left):
                    for which, digit in enumerate(digits):
                        vc.atomic_add(tables[form.order.digit(key, digit) + which * bins], 1)
        vc.barrier()
        for start in range(0, total, form.group):
            with only(None if start + form.group <= total else index < total - start):
                count = tables[index + start].to_register()
                with vc.if_block(count != 0):
                    vc.atomic_add(histograms[row * total + (index + start)], count)

    arguments = [
        ("sort_keys", buffer[form.order.raw]),
        ("sort_histograms", _WORDS),
        ("sort_rows", _U32),
        ("sort_length", _U32),
        ("sort_chunks", _U32),
    ]
    return traced(
        f"sort_histograms_{form.order.kind.name}", body, arguments, form.group, "sort_rows * sort_chunks"
    )


@remembered
def starts_kernel(form: TileForm) -> ShaderFunction:
    """Return the kernel that sums up histograms in place, a workgroup for each of `sort_lines`."""

    def body(histograms: Any, lines: Any) -> None:
        del lines
        tile = Tile(form)
        line = (vc.workgroup_id().x * form.bins).to_register("sort_line")
        owned = tile.own_bins()
        counts = []
        for digit, kept in owned:
            count = vc.new_uint_register(0)
            with only(kept):
                count[:] = histograms[line + digit]
            counts.append(count)
        for (digit, kept), start in zip(owned, tile.running(counts), strict=True):
            with only(kept):
                histograms[line + digit] = start

    arguments = [("sort_histograms", _WORDS), ("sort_lines", _U32)]
    return traced("sort_starts", body, arguments, form.group, "sort_lines")


@record
class SweepForm:
    """What the kernel of a sweep is specialised for: that of a pass, and how look-backs look."""

    moving: PassForm
    digits: int
    window: int


@remembered
def sweep_kernel(form: SweepForm) -> ShaderFunction:
    """Return the kernel that moves keys, and what goes with them, to their places by one digit.

    Its arguments are the keys, the starts, the board, the board to be cleared, the tickets; the moved keys
    where they are written, the payload where it is read, the moved payload; the numbers of `SHAPE`, which
    digit it is, and from which bit of its part on.
    """
    moving = form.moving
    tile_form, bins = moving.tile, moving.tile.bins

    def body(keys: Any, starts: Any, board: Any, next_board: Any, tickets: Any, *others: Any) -> None:
        *buffers, _, tiles, last, which, shift = others
        ticket: Any = vc.shared_buffer(dtype.uint32, 1, "sort_ticket")
        with vc.if_block(vc.local_invocation_index() == 0):
            ticket[0] = vc.atomic_add(tickets[which], 1)
        vc.barrier()
        group = ticket[0].to_register("sort_group")
        here = TileOfRow(tile_form, tiles, last, group)
        tile = Tile(tile_form)
        bases: Any = vc.shared_buffer(dtype.uint32, bins, "sort_bases")
        line = (group * bins).to_register("sort_line")
        owned = tile.own_bins()
        earlier = [vc.new_uint_register(0) for _ in owned]

        def leave_counts() -> None:
            for (digit, kept), count, before in zip(owned, tile.counts, earlier, strict=True):
                with only(kept):
                    word = vc.new_uint_register(_HAS_COUNT << _COUNT_BITS)
                    with vc.if_block(here.number == 0):
                        before[:] = starts[(here.row * form.digits + which) * bins + digit]
                        word[:] = _HAS_SUM << _COUNT_BITS
                    vc.atomic_store(board[line + digit], word | (before + count), relaxed=True)
                    next_board[line + digit] = 0

        moved = MovedTile(moving, tile, here, keys, buffers, shift, leave_counts)
        moved.exchange()
        for (digit, kept), count, before in zip(owned, tile.counts, earlier, strict=True):
            with only(kept):
                with vc.if_block(here.number != 0):
                    _look_back(board, line, digit, here.number, before, bins, form.window)
                    word = (before + count) | (_HAS_SUM << _COUNT_BITS)
                    vc.atomic_store(board[line + digit], word, relaxed=True)
                bases[digit] = before - tile.starts[digit]
        vc.barrier()
        moved.store(bases)

    arguments = [
        ("sort_keys", buffer[moving.order.raw]),
        ("sort_starts", _WORDS),
        ("sort_board", _WORDS),
        ("sort_next_board", _WORDS),
        ("sort_tickets", _WORDS),
        *moved_arguments(moving),
        *SHAPE,
        ("sort_which", _U32),
        ("sort_shift", _U32),
    ]
    name = f"sort_sweep_{moving.order.kind.name}"
    return traced(name, body, arguments, tile_form.group, WORKGROUPS)


def _look_back(board: Any, line: Any, digit: Any, number: Any, before: Any, bins: int, window: int) -> None:
    """Add up what the tiles before have of a digit, the nearest first."""
    # how many tiles of the row are still to be looked at
    left = number.to_register("sort_left")
    place = (line + digit).to_register("sort_place")
    with vc.while_block(left != 0):
        words = []
        for i in range(1, window + 1):
            back = vc.min(left, i) * bins if i > 1 else bins
            words.append(vc.atomic_load(board[place - back], relaxed=True))
        missing: Any = None
        for word in words:
            wanted = left != 0 if missing is None else vc.all(left != 0, missing == 0)
            kind = (word >> _COUNT_BITS).to_register()
            if missing is None and window > 1:
                missing = vc.new_uint_register(0)
            with vc.if_block(wanted):
                with vc.if_block(kind != 0):
                    before += word & _COUNT
                    place -= bins
                    left[:] = vc.select(kind == _HAS_SUM, 0, left - 1)
                if missing is not None:
                    with vc.else_block():
                        missing[:] = 1
