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

A word of the board, for each tile and digit, is nothing, a count or a sum; see `_Board`. The sum of tile 0
begins with the histogram's start, so what a tile finds is a place in its row. Each sweep clears the board of
the next.

Invariants: words go from nothing to a count to a sum once in a launch, each stored and loaded at once, so
that nothing else needs to be ordered. Tiles are numbered by a counter as their workgroups start: whoever is
waited for has been started, and waits for earlier ones only. All numbers are sums of integers, so
the order of execution does not show. Stable, as `ranking` is.
"""

import functools
import operator
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import buffer, constant, traced
from vkdispatch.arrays.remembering import remembered
from vkdispatch.arrays.words import value_of, word_count, words_of
from vkdispatch.base import dtype
from vkdispatch.base.record import record
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order
from vkdispatch.sorting.passes import (
    SHAPE,
    WORKGROUPS,
    PassForm,
    TileOfRow,
    moved_arguments,
    place_in_row,
    position_in_row,
    widened,
)
from vkdispatch.sorting.tile import Tile, TileForm, only

_U32 = constant[dtype.uint32]
_WORDS: Any = vc.Buff[dtype.uint32]
# Digits that share a word, and the bits that each has there.
_PACKED, _DIGIT_BITS = 4, 8


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

    def body(*variables: Any) -> None:
        _Sweep(form, *variables).run()

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
    return traced(name, body, arguments, moving.tile.group, WORKGROUPS)


class _Sweep:
    """The kernel of a sweep while it is traced."""

    def __init__(
        self, form: SweepForm, keys: Any, starts: Any, board: Any, next_board: Any, tickets: Any, *others: Any
    ) -> None:
        *buffers, _, tiles, last, self._which, self._shift = others
        self._form, self._moving = form, form.moving
        moving = self._moving
        self._keys, self._starts, self._board, self._next_board = keys, starts, board, next_board
        rest = list(buffers)
        self._keys_to = rest.pop(0) if moving.keys else None
        self._payload_to: Any = rest.pop() if moving.payload is not None else None
        self._payload = rest.pop() if rest else None
        ticket: Any = vc.shared_buffer(dtype.uint32, 1, "sort_ticket")
        with vc.if_block(vc.local_invocation_index() == 0):
            ticket[0] = vc.atomic_add(tickets[self._which], 1)
        self._key_words = word_count(moving.order.raw)
        self._payload_words = 0 if moving.payload is None else word_count(moving.payload)
        self._tile = Tile(moving.tile, self._key_words + self._payload_words)
        self._tile.clear()
        vc.barrier()
        self._group = ticket[0].to_register("sort_group")
        self._here = TileOfRow(moving.tile, tiles, last, self._group)

    def run(self) -> None:
        """Record the kernel's statements."""
        moving, tile, here, bins = self._moving, self._tile, self._here, self._moving.tile.bins
        bases: Any = vc.shared_buffer(dtype.uint32, bins, "sort_bases")
        line = (self._group * bins).to_register("sort_line")
        owned = tile.own_bins()
        earlier = [vc.new_uint_register(0) for _ in owned]
        self._load()
        board = _Board(self._board, moving.tile.tile)

        def leave_counts() -> None:
            for (digit, kept), count, before in zip(owned, tile.counts, earlier, strict=True):
                with only(kept):
                    with vc.if_block(here.number == 0):
                        before[:] = self._starts[(here.row * self._form.digits + self._which) * bins + digit]
                        board.leave_sum(line + digit, before + count)
                    with vc.else_block():
                        board.leave_count(line + digit, count)
                    self._next_board[line + digit] = 0

        digits = [functools.partial(self._digit, item) for item in range(moving.tile.items)]
        starts = tile.place(digits, moving.digit.bits, leave_counts, self._put)
        for (digit, kept), count, before, start in zip(owned, tile.counts, earlier, starts, strict=True):
            with only(kept):
                with vc.if_block(here.number != 0):
                    board.look_back(line, digit, here.number, before, bins, self._form.window)
                    board.leave_sum(line + digit, before + count)
                bases[digit] = before - start
        vc.barrier()
        with vc.if_block(here.count == moving.tile.tile):
            self._store(bases, whole=True)
        with vc.else_block():
            self._store(bases, whole=False)

    def _load(self) -> None:
        """Load the tile, and note digits: beyond its end the largest, behind which nothing ranks."""
        moving, here, places = self._moving, self._here, self._tile.places()
        items = range(moving.tile.items)
        loaded = self._payload is not None
        self._words = [_registers(self._key_words) for _ in items]
        self._carried = [_registers(self._payload_words if loaded else 0) for _ in items]
        self._digits = [vc.new_uint_register(0) for _ in range(-(-moving.tile.items // _PACKED))]
        largest = (1 << moving.digit.bits) - 1

        def load(whole: bool) -> None:
            at = [place if whole else vc.select(place < here.count, place, 0) for place in places]
            keys = here.at(self._keys, at)
            for words, key in zip(self._words, keys, strict=True):
                _assign(words, key)
            if loaded:
                for words, value in zip(self._carried, here.at(self._payload, at), strict=True):
                    _assign(words, value)
            for number, packed in enumerate(self._digits):
                parts = []
                for item in items[number * _PACKED : (number + 1) * _PACKED]:
                    digit = moving.order.digit(keys[item], moving.digit, self._shift)
                    if not whole:
                        digit = vc.select(places[item] < here.count, digit, largest)
                    parts.append(digit << (item % _PACKED * _DIGIT_BITS) if item % _PACKED else digit)
                packed[:] = functools.reduce(operator.or_, parts)

        with vc.if_block(here.count == moving.tile.tile):
            load(True)
        with vc.else_block():
            load(False)

    def _digit(self, item: int) -> Any:
        packed, part = self._digits[item // _PACKED], item % _PACKED
        shifted = packed >> (part * _DIGIT_BITS) if part else packed
        return shifted & ((1 << _DIGIT_BITS) - 1) if part < _PACKED - 1 else shifted

    def _put(self, item: int, place: Any) -> None:
        moving, tile = self._moving, self._tile
        words = [*self._words[item], *self._carried[item]]
        if moving.made:
            made = position_in_row(moving, self._here.number, tile.places()[item])
            words += words_of(made)
        for number, word in enumerate(words):
            tile.placed[place + number * moving.tile.tile] = word

    def _store(self, bases: Any, *, whole: bool) -> None:
        """Write the tile: `bases[digit]` plus a place in the ranked tile is a key's place in its row."""
        moving, tile, here = self._moving, self._tile, self._here
        for place in tile.sorted_places():
            words = [
                tile.placed[place + number * moving.tile.tile].to_register()
                for number in range(self._key_words + self._payload_words)
            ]
            key = value_of(moving.order.raw, words[: self._key_words]).to_register()
            base = bases[moving.order.digit(key, moving.digit, self._shift)]
            target = (here.row_base + place_in_row(moving, base, place)).to_register("sort_target")
            with only(None if whole else place < here.count):
                if self._keys_to is not None:
                    self._keys_to[target] = key
                if moving.payload is not None:
                    value = value_of(moving.payload, words[self._key_words :])
                    self._payload_to[target] = widened(value) if moving.wide else value


def _registers(count: int) -> list[Any]:
    return [vc.new_uint_register(0) for _ in range(count)]


def _assign(words: list[Any], value: Any) -> None:
    """Have the words of a value in registers."""
    for word, part in zip(words, words_of(value), strict=True):
        word[:] = part


class _Board:
    """What tiles tell those after them of their digits, a word each, which is stored and loaded at once.

    0 is nothing, as in the beginning. What follows, as far as counts go, is a count; what is above, a sum.
    """

    def __init__(self, words: Any, most: int) -> None:
        """Know its words, and the largest count."""
        self._words, self._most = words, most

    def leave_count(self, place: Any, count: Any) -> None:
        """Tell how many keys of a digit a tile has."""
        vc.atomic_store(self._words[place], count + 1, relaxed=True)

    def leave_sum(self, place: Any, total: Any) -> None:
        """Tell where in its row the digit's keys of later tiles begin."""
        vc.atomic_store(self._words[place], total + (self._most + 2), relaxed=True)

    def look_back(self, line: Any, digit: Any, number: Any, before: Any, bins: int, window: int) -> None:
        """Add up what the tiles before have of a digit, the nearest first."""
        # how many tiles of the row are still to be looked at
        left = number.to_register("sort_left")
        place = (line + digit).to_register("sort_place")
        with vc.while_block(left != 0):
            words = []
            for i in range(1, window + 1):
                back = vc.min(left, i) * bins if i > 1 else bins
                words.append(vc.atomic_load(self._words[place - back], relaxed=True))
            missing: Any = None
            for word in words:
                wanted = left != 0 if missing is None else vc.all(left != 0, missing == 0)
                word = word.to_register()
                if missing is None and window > 1:
                    missing = vc.new_uint_register(0)
                with vc.if_block(wanted):
                    with vc.if_block(word != 0):
                        is_sum = (word > self._most + 1).to_register()
                        before += word - vc.select(is_sum, vc.to_dtype(dtype.uint32, self._most + 2), 1)
                        place -= bins
                        left[:] = vc.select(is_sum, 0, left - 1)
                    if missing is not None:
                        with vc.else_block():
                            missing[:] = 1
