"""A radix sort that reads and writes its keys once for each digit, for devices with forward progress.

It follows "Onesweep" (Adinets and Merrill, 2022), with the decoupled look-back of Merrill and Garland (2016).

    clear            histograms, tickets and the first board
    histograms       one pass over the keys counts all of their digits: histogram[row][digit number][digit]
    starts           each histogram summed up: where in its row each digit begins
    sweep            one launch for each digit number:

    tile 0    tile 1    tile 2    ...  tile t        of a row, in the order in which workgroups start
    counts    counts    counts         counts        published on the board as soon as the tile is ranked
    start +   sums      sums       <-  adds up the counts of earlier tiles, back to one that has published its
                                       sum; then publishes its own sum

The board has a word for each tile and digit: nothing, a count or a sum; see `_Board`. The sum of tile 0
includes the start from the histogram, so the sum that a tile computes is a place in its row. Each sweep
clears the board of the next.

Invariants: a word goes from nothing to a count to a sum once in a launch, stored and loaded at once, so no
other ordering is needed. A counter numbers tiles as their workgroups start, so a tile that is waited for has
started, and itself waits for earlier tiles only. All numbers are sums of integers, so they do not depend on
the order of execution. The sort is stable, as the ranking of `tile` is.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.record import record
from vkdispatch.families.kernels import buffers, numbers, trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import join_words, split_words, word_count
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting import passes
from vkdispatch.sorting.keys import Order, widen
from vkdispatch.sorting.tile import Tile, TileForm, only_if

# Digits that share a word, and the bits that each has there.
_PACKED, _DIGIT_BITS = 4, 8


@record
class HistogramForm:
    """What the kernel of histograms is specialised for.

    Attributes
    ----------
    order
        The order of the keys.
    width
        Bits of a digit.
    group, items, rounds
        Invocations of a workgroup, keys that each has in flight, and its rounds.
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


@store_results
def make_clear_kernel() -> ShaderFunction:
    """Return the kernel that clears a board, histograms and tickets; each is given with its size."""
    names = ("sort_board", "sort_histograms", "sort_tickets")

    def body(tables: Any, sizes: Any) -> None:
        index = vc.global_invocation_id().x.to_register("sort_index")
        for words, count in zip(tables, sizes, strict=True):
            with vc.if_block(index < count):
                words[index] = 0

    tables = buffers(**dict.fromkeys(names, dtype.uint32))
    arguments = [tables, numbers(*(f"{name}_words" for name in names))]
    most = f"max({', '.join(f'{name}_words' for name in names)})"
    return trace_kernel("sort_clear", body, arguments, 256, exec_size=most)


@store_results
def make_histogram_kernel(form: HistogramForm) -> ShaderFunction:
    """Return the kernel that counts the digits of rows of keys.

    Its arguments are the keys, the histograms, the number of rows, their length, and the chunks of a row.
    """
    digits = form.order.digits(form.width)
    bins = 1 << form.width
    total = bins * len(digits)

    def body(keys: Any, histograms: Any, rows: Any, length: Any, chunks: Any) -> None:
        del rows
        index = vc.local_invocation_index().to_register("sort_index")
        tables: Any = vc.shared_buffer(dtype.uint32, total, "sort_tables")
        for start in range(0, total, form.group):
            with only_if(None if start + form.group <= total else index < total - start):
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
            loaded = [
                keys[base + (first + vc.select(place < left, place, 0))].to_register() for place in places
            ]
            for key, place in zip(loaded, places, strict=True):
                with vc.if_block(place < left):
                    for which, digit in enumerate(digits):
                        vc.atomic_add(tables[form.order.digit(key, digit) + which * bins], 1)
        vc.barrier()
        for start in range(0, total, form.group):
            with only_if(None if start + form.group <= total else index < total - start):
                count = tables[index + start].to_register()
                with vc.if_block(count != 0):
                    vc.atomic_add(histograms[row * total + (index + start)], count)

    arguments = [
        *buffers(sort_keys=form.order.raw, sort_histograms=dtype.uint32),
        *numbers("sort_rows", "sort_length", "sort_chunks"),
    ]
    return trace_kernel(
        f"sort_histograms_{form.order.kind.name}", body, arguments, form.group, "sort_rows * sort_chunks"
    )


@store_results
def make_starts_kernel(form: TileForm) -> ShaderFunction:
    """Return the kernel that sums up histograms in place, a workgroup for each of `sort_lines`."""

    def body(histograms: Any, lines: Any) -> None:
        del lines
        tile = Tile(form)
        line = (vc.workgroup_id().x * form.bins).to_register("sort_line")
        owned = tile.own_bins()
        counts = []
        for digit, is_own in owned:
            count = vc.new_uint_register(0)
            with only_if(is_own):
                count[:] = histograms[line + digit]
            counts.append(count)
        for (digit, is_own), start in zip(owned, tile.sum_before(counts), strict=True):
            with only_if(is_own):
                histograms[line + digit] = start

    arguments = [*buffers(sort_histograms=dtype.uint32), *numbers("sort_lines")]
    return trace_kernel("sort_starts", body, arguments, form.group, "sort_lines")


@record
class SweepForm:
    """What the kernel of a sweep is specialised for.

    Attributes
    ----------
    moving
        The form of the pass.
    digits
        Digits of a key.
    window
        Tiles that a look-back reads at once.
    """

    moving: passes.PassForm
    digits: int
    window: int


@store_results
def make_sweep_kernel(form: SweepForm) -> ShaderFunction:
    """Return the kernel that moves keys and their payload to their places by one digit.

    Its arguments are the keys, the starts, the board, the board to be clear_buffer, the tickets; those of
    `declare_move_arguments`; the numbers of `SHAPE`; the number of the digit, and its first bit in its part.
    """
    moving = form.moving

    def body(*variables: Any) -> None:
        _Sweep(form, variables).run()

    words = ("sort_starts", "sort_board", "sort_next_board", "sort_tickets")
    arguments = [
        buffers(sort_keys=moving.order.raw, **dict.fromkeys(words, dtype.uint32)),
        passes.declare_move_arguments(moving),
        numbers(*passes.SHAPE),
        *numbers("sort_which", "sort_shift"),
    ]
    name = f"sort_sweep_{moving.order.kind.name}"
    return trace_kernel(name, body, arguments, moving.tile.group, passes.WORKGROUPS)


class _Sweep:
    """The kernel of a sweep, in a trace."""

    def __init__(self, form: SweepForm, variables: Sequence[Any]) -> None:
        tables, moved_to, (_, tiles, last), self._which, self._shift = variables
        self._form, self._moving = form, form.moving
        moving = self._moving
        self._keys, self._starts, self._board, self._next_board, tickets = tables
        self._keys_to, self._payload, self._payload_to = moved_to
        ticket: Any = vc.shared_buffer(dtype.uint32, 1, "sort_ticket")
        with vc.if_block(vc.local_invocation_index() == 0):
            ticket[0] = vc.atomic_add(tickets[self._which], 1)
        self._key_words = word_count(moving.order.raw)
        self._payload_words = 0 if moving.payload is None else word_count(moving.payload)
        self._tile = Tile(moving.tile, self._key_words + self._payload_words)
        self._tile.clear()
        vc.barrier()
        self._group = ticket[0].to_register("sort_group")
        self._here = passes.TileOfRow(moving.tile, tiles, last, self._group)

    def run(self) -> None:
        """Record the kernel's statements."""
        moving, tile, here, bins = self._moving, self._tile, self._here, self._moving.tile.bins
        bases: Any = vc.shared_buffer(dtype.uint32, bins, "sort_bases")
        line = (self._group * bins).to_register("sort_line")
        owned = tile.own_bins()
        earlier = [vc.new_uint_register(0) for _ in owned]
        self._load()
        board = _Board(self._board, moving.tile.tile)

        def publish_counts() -> None:
            for (digit, is_own), count, before in zip(owned, tile.counts, earlier, strict=True):
                with only_if(is_own):
                    with vc.if_block(here.number == 0):
                        before[:] = self._starts[(here.row * self._form.digits + self._which) * bins + digit]
                        board.publish_sum(line + digit, before + count)
                    with vc.else_block():
                        board.publish_count(line + digit, count)
                    self._next_board[line + digit] = 0

        digits = [functools.partial(self._digit, item) for item in range(moving.tile.items)]
        starts = tile.place(digits, moving.digit.bits, publish_counts, self._put)
        for (digit, is_own), count, before, start in zip(owned, tile.counts, earlier, starts, strict=True):
            with only_if(is_own):
                with vc.if_block(here.number != 0):
                    board.look_back(line, digit, here.number, before, bins, self._form.window)
                    board.publish_sum(line + digit, before + count)
                bases[digit] = before - start
        vc.barrier()
        with vc.if_block(here.count == moving.tile.tile):
            self._store(bases, whole=True)
        with vc.else_block():
            self._store(bases, whole=False)

    def _load(self) -> None:
        """Load the tile, and pack digits: beyond its end the largest, which is ranked last."""
        moving, here, places = self._moving, self._here, self._tile.places()
        items = range(moving.tile.items)
        has_payload = self._payload is not None
        self._words = [_registers(self._key_words) for _ in items]
        self._payload_registers = [_registers(self._payload_words if has_payload else 0) for _ in items]
        self._digits = [vc.new_uint_register(0) for _ in range(-(-moving.tile.items // _PACKED))]
        largest = (1 << moving.digit.bits) - 1

        def load(whole: bool) -> None:
            at = [place if whole else vc.select(place < here.count, place, 0) for place in places]
            keys = here.load_inside(self._keys, at)
            for words, key in zip(self._words, keys, strict=True):
                _assign(words, key)
            if has_payload:
                payload = here.load_inside(self._payload, at)
                for words, value in zip(self._payload_registers, payload, strict=True):
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
        words = [*self._words[item], *self._payload_registers[item]]
        if moving.makes_positions:
            words += split_words(passes.position_in_row(moving, self._here.number, tile.places()[item]))
        for number, word in enumerate(words):
            tile.placed_words[place + number * moving.tile.tile] = word

    def _store(self, bases: Any, *, whole: bool) -> None:
        """Write the tile. `bases[digit]` plus the place in the ranked tile is a key's place in its row."""
        moving, tile, here = self._moving, self._tile, self._here
        for place in tile.sorted_places():
            words = [
                tile.placed_words[place + number * moving.tile.tile].to_register()
                for number in range(self._key_words + self._payload_words)
            ]
            key = join_words(moving.order.raw, words[: self._key_words]).to_register()
            base = bases[moving.order.digit(key, moving.digit, self._shift)]
            target = (here.row_base + passes.place_in_row(moving, base, place)).to_register("sort_target")
            with only_if(None if whole else place < here.count):
                if self._keys_to is not None:
                    self._keys_to[target] = key
                if moving.payload is not None:
                    value = join_words(moving.payload, words[self._key_words :])
                    self._payload_to[target] = widen(value) if moving.is_wide else value


def _registers(count: int) -> list[Any]:
    return [vc.new_uint_register(0) for _ in range(count)]


def _assign(words: list[Any], value: Any) -> None:
    """Assign the words of a value to registers."""
    for word, part in zip(words, split_words(value), strict=True):
        word[:] = part


class _Board:
    """The words in which tiles publish counts and sums of digits, each stored and loaded at once.

    0 is nothing. A word up to the largest count plus 1 is a count plus 1; a larger word is a sum, plus the
    largest count, plus 2.
    """

    def __init__(self, words: Any, most: int) -> None:
        """Take its words, and the largest count."""
        self._words, self._most = words, most

    def publish_count(self, place: Any, count: Any) -> None:
        """Publish how many keys of a digit a tile has."""
        vc.atomic_store(self._words[place], count + 1, relaxed=True)

    def publish_sum(self, place: Any, total: Any) -> None:
        """Publish where in the row the keys of a digit begin for the next tile."""
        vc.atomic_store(self._words[place], total + (self._most + 2), relaxed=True)

    def look_back(self, line: Any, digit: Any, number: Any, before: Any, bins: int, window: int) -> None:
        """Add the counts of a digit in the tiles before to `before`, the nearest tile first."""
        # tiles of the row that are still to be read
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
