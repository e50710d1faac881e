"""Passes of a radix sort: three launches for each digit, or one where workgroups may wait."""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.families.kernels import Argument, buffers, numbers, trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import join_words, split_words, word_count
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Digit, Order, widen
from vkdispatch.sorting.tile import SerialTile, Tile, TileForm, only_if

# ---- Passes of three launches: count the digits of each tile, sum up, move the keys ----------------------
#
#     rows of keys     | row 0: tile 0, tile 1, ... tile n-1 | row 1: tile 0, ... |
#     count            counts[row][digit][tile] = keys of the tile that have the digit
#     offsets          summed up along the tiles, in place; totals[row][digit] = keys of the row that have it
#     move             place of a key in its row = totals of smaller digits + offset of its tile + keys of its
#                      digit before it in the tile
#
# Any device can do this: no workgroup waits for another. One launch, see below, is faster on GPUs.
#
# Invariants: a pass is stable (see `tile`). Rows do not mix, because each has counts of its own. Offsets are
# sums of integers, so they do not depend on the order of execution.


SHAPE = ("sort_rows", "sort_tiles", "sort_last")
SHIFT = "sort_shift"
WORKGROUPS = "sort_rows * sort_tiles"
# Counts that an invocation adds up in one round.
_TOGETHER = 4


@record
class PassForm:
    """What the kernels of a pass are specialised for.

    Attributes
    ----------
    tile
        How a workgroup sorts a tile.
    order, digit
        The order of the keys, and the digit of the pass. Its shift is an argument of the kernels.
    counter
        The dtype that counts the keys of a row: uint32 or uint64.
    payload
        The raw type of what is moved with each key; None for nothing.
    makes_positions
        Whether the payload is the key's position in its row, which is computed and not read.
    writes_keys
        Whether keys are written.
    is_wide
        Whether a payload of one word is written as the two words of a 64-bit number.
    """

    tile: TileForm
    order: Order
    digit: Digit
    counter: DType = dtype.uint32
    payload: DType | None = None
    makes_positions: bool = False
    writes_keys: bool = True
    is_wide: bool = False


class TileOfRow:
    """The tile of a workgroup, in a trace: its row, its place there, and its keys."""

    def __init__(self, form: TileForm, tiles: Any, last: Any, group: Any = None) -> None:
        number = vc.workgroup_id().x if group is None else group
        self.row = (number // tiles).to_register("sort_row")
        self.number = (number % tiles).to_register("sort_tile")
        # only the last tile of a row may be shorter
        self.count = vc.select(self.number + 1 < tiles, form.tile, last).to_register("sort_count")
        self.row_base = (self.row * ((tiles - 1) * form.tile + last)).to_register("sort_row_base")
        self.base = (self.row_base + self.number * form.tile).to_register("sort_base")

    def load(self, buffer: Any, places: list[Any]) -> list[Any]:
        """Return the elements at some places of the tile; beyond its end, the first element."""
        return self.load_inside(buffer, [vc.select(place < self.count, place, 0) for place in places])

    def load_inside(self, buffer: Any, places: list[Any]) -> list[Any]:
        """Return the elements at some places of the tile, which all lie within it."""
        return [buffer[self.base + place].to_register() for place in places]

    def digits(self, order: Order, digit: Digit, keys: list[Any], places: list[Any], shift: Any) -> list[Any]:
        """Return the digits of keys; beyond the tile's end the largest, which is ranked last."""
        largest = (1 << digit.bits) - 1
        return [
            vc.select(place < self.count, order.digit(key, digit, shift), largest).to_register("sort_digit")
            for key, place in zip(keys, places, strict=True)
        ]


@store_results
def make_count_kernel(form: PassForm) -> ShaderFunction:
    """Return the kernel that counts each tile's digits: keys, counts, the numbers of `SHAPE`, the shift."""

    def body(keys: Any, counts: Any, shape: Any, shift: Any) -> None:
        _, tiles, last = shape
        here = TileOfRow(form.tile, tiles, last)
        if form.tile.subgroup == 1:
            _count_serially(form, here, keys, counts, tiles, shift)
            return
        tile = Tile(form.tile)
        tile.clear()
        vc.barrier()
        places = tile.places()
        loaded = here.load(keys, places)
        digits = [form.order.digit(key, form.digit, shift).to_register() for key in loaded]
        for digit, place in zip(digits, places, strict=True):
            tile.count_key(digit, place < here.count)
        vc.barrier()
        for digit, is_own in tile.own_bins():
            total = tile.sum_digit(digit, is_own)
            with only_if(is_own):
                entry = (here.row * form.tile.bins + digit) * tiles + here.number
                counts[entry] = total.to_dtype(form.counter)

    arguments = buffers(sort_keys=form.order.raw, sort_counts=form.counter)
    return _trace_pass("count", form, body, arguments)


def _trace_pass(
    name: str, form: PassForm, body: Callable[..., None], arguments: Sequence[Argument | list[Argument]]
) -> ShaderFunction:
    """Return a kernel over tiles, whose arguments end with the numbers of `SHAPE` and the shift."""
    return trace_kernel(
        f"sort_{name}_{form.order.kind.name}",
        body,
        [*arguments, numbers(*SHAPE), *numbers(SHIFT)],
        form.tile.group,
        WORKGROUPS,
        unsigned=form.counter is dtype.uint32,
    )


def _count_serially(form: PassForm, here: TileOfRow, keys: Any, counts: Any, tiles: Any, shift: Any) -> None:
    tile = SerialTile(form.tile, [], tiles)
    tile.clear()
    with tile.each_place() as item:
        place = tile.place(item)
        with vc.if_block(place < here.count):
            key = keys[here.base + place].to_register()
            tile.count(form.order.digit(key, form.digit, shift).to_register())
    vc.barrier()
    with vc.for_block(tile.index, form.tile.bins, form.tile.group) as digit:
        entry = (here.row * form.tile.bins + digit) * tiles + here.number
        counts[entry] = tile.sum_digit(digit).to_dtype(form.counter)


@store_results
def make_offsets_kernel(form: TileForm, counter: DType) -> ShaderFunction:
    """Return the kernel that sums up counts along the tiles, a workgroup for each row and digit.

    Its arguments are the counts, the totals, and the numbers of rows, digits and tiles.
    """

    def body(counts: Any, totals: Any, rows: Any, bins: Any, tiles: Any) -> None:
        del rows, bins
        tile = SerialTile(form, [], tiles) if form.subgroup == 1 else Tile(form)
        line = vc.workgroup_id().x.to_register()
        before = vc.new_register(counter)
        whole: Any = vc.shared_buffer(counter, 1)
        chunk = form.group * _TOGETHER
        with vc.for_block(0, (tiles + (chunk - 1)) // chunk) as number:
            first = (number * chunk + tile.index * _TOGETHER).to_register()
            exists = [first + i < tiles for i in range(_TOGETHER)]
            entries = [line * tiles + vc.select(inside, first + i, 0) for i, inside in enumerate(exists)]
            values = [
                vc.select(inside, counts[entry], vc.to_dtype(counter, 0)).to_register()
                for entry, inside in zip(entries, exists, strict=True)
            ]
            chunk_sum = values[0]
            for value in values[1:]:
                chunk_sum = chunk_sum + value
            chunk_sum = chunk_sum.to_register()
            start = (tile.sum_across(chunk_sum) + before).to_register()
            with vc.if_block(tile.index == form.group - 1):
                whole[0] = start + chunk_sum
            for entry, inside, value in zip(entries, exists, values, strict=True):
                with vc.if_block(inside):
                    counts[entry] = start
                start += value
            vc.barrier()
            before[:] = whole[0]
            vc.barrier()
        with vc.if_block(tile.index == 0):
            totals[line] = before

    tables = buffers(sort_counts=counter, sort_totals=counter)
    arguments = [*tables, *numbers("sort_rows", "sort_bins", "sort_tiles")]
    return trace_kernel("sort_offsets", body, arguments, form.group, "sort_rows * sort_bins")


@store_results
def make_move_kernel(form: PassForm) -> ShaderFunction:
    """Return the kernel that moves keys and their payload to their places by one digit.

    Its arguments are the keys, the offsets, the totals, those of `declare_move_arguments`, the numbers
    of `SHAPE`, and the shift.
    """

    def body(keys: Any, offsets: Any, totals: Any, moved_to: Any, shape: Any, shift: Any) -> None:
        _, tiles, last = shape
        here = TileOfRow(form.tile, tiles, last)
        if form.tile.subgroup == 1:
            _move_serially(form, here, (keys, offsets, totals, *moved_to), tiles, shift)
            return
        tile = Tile(form.tile)
        bases: Any = vc.shared_buffer(form.counter, form.tile.bins, "sort_bases")
        owned = tile.own_bins()
        sums = []
        for digit, is_own in owned:
            total = vc.new_register(form.counter)
            with only_if(is_own):
                total[:] = totals[here.row * form.tile.bins + digit]
            sums.append(total)
        moved = _MovedTile(form, tile, here, keys, moved_to, shift)
        for (digit, is_own), before in zip(owned, tile.sum_before(sums), strict=True):
            with only_if(is_own):
                entry = (here.row * form.tile.bins + digit) * tiles + here.number
                bases[digit] = before + offsets[entry] - tile.starts[digit].to_dtype(form.counter)
        moved.exchange()
        moved.store(bases)

    tables = buffers(sort_keys=form.order.raw, sort_counts=form.counter, sort_totals=form.counter)
    return _trace_pass("move", form, body, [*tables, declare_move_arguments(form)])


def _move_serially(form: PassForm, here: TileOfRow, arrays: Sequence[Any], tiles: Any, shift: Any) -> None:
    keys, offsets, totals, keys_to, payload_from, payload_to = arrays
    bins = form.tile.bins
    tile = SerialTile(form.tile, [kind for kind in (form.order.raw, form.payload) if kind is not None], tiles)
    with tile.each_place() as item:
        place = tile.place(item)
        inside = vc.select(place < here.count, place, 0).to_register()
        tile.put(0, place, keys[here.base + inside].to_register())
        if form.payload is not None:
            if form.makes_positions:
                payload = position_in_row(form, here.number, place)
            else:
                payload = payload_from[here.base + inside]
            tile.put(1, place, payload.to_register())
    vc.barrier()
    largest = (1 << form.digit.bits) - 1

    def digit_of(place: Any) -> Any:
        digit = form.order.digit(tile.get(0, place), form.digit, shift)
        return vc.select(place < here.count, digit, largest).to_register()

    tile.move_by_digit(digit_of)
    bases: Any = vc.shared_buffer(form.counter, bins, "sort_bases")
    share = -(-bins // form.tile.group)
    first = (tile.index * share).to_register()
    total = vc.new_register(form.counter)
    with vc.for_block(first, vc.min(first + share, bins)) as digit:
        total += totals[here.row * bins + digit]
    before = tile.sum_across(total)
    with vc.for_block(first, vc.min(first + share, bins)) as digit:
        line = (here.row * bins + digit).to_register()
        start = tile.starts[digit].to_dtype(form.counter)
        bases[digit] = before + offsets[line * tiles + here.number] - start
        before += totals[line]
    vc.barrier()
    with tile.each_place() as item:
        place = tile.place(item)
        with vc.if_block(place < here.count):
            key = tile.get(0, place)
            target = place_in_row(form, bases[form.order.digit(key, form.digit, shift)], place)
            target = (here.row_base + target).to_register("sort_target")
            if keys_to is not None:
                keys_to[target] = key
            if form.payload is not None:
                payload_to[target] = widen(tile.get(1, place)) if form.is_wide else tile.get(1, place)


def position_in_row(form: PassForm, number: Any, place: Any) -> Any:
    """Return the position in its row of a place of a tile, as a payload."""
    size = form.tile.tile
    if form.payload is dtype.uint32:
        return (number * size + place).to_register()
    position = number.to_dtype(dtype.uint64) * size + place.to_dtype(dtype.uint64)
    return vc.unpack_uint2x32(position).to_register()


def place_in_row(form: PassForm, base: Any, place: Any) -> Any:
    """Return the place of a key in its row; `base` is that of its digit for place 0 of the tile."""
    if form.counter is dtype.uint32:
        # the base may be before the row: it wraps around
        return (base + place) & 0xFFFFFFFF
    return base + place.to_dtype(form.counter)


def declare_move_arguments(form: PassForm) -> list[Argument]:
    """Return the moved keys if they are written, the payload if it is read, and the moved payload."""
    return buffers(
        sort_moved_keys=form.order.raw if form.writes_keys else None,
        sort_payload=None if form.makes_positions else form.payload,
        sort_moved_payload=dtype.uvec2 if form.is_wide else form.payload,
    )


class _MovedTile:
    """A tile that is ranked by a digit, and then written to the places of its digits."""

    def __init__(
        self, form: PassForm, tile: Tile, here: TileOfRow, keys: Any, moved_to: Sequence[Any], shift: Any
    ) -> None:
        """Load the keys and rank them by the digit with this shift.

        `tile.starts` then holds where each digit begins in the tile.
        """
        self._form, self._tile, self._here, self._shift = form, tile, here, shift
        self._keys_to, payload, self._payload_to = moved_to
        places = tile.places()
        self._keys = here.load(keys, places)
        self._payload: list[Any] = []
        if form.payload is not None:
            if form.makes_positions:
                self._payload = [position_in_row(form, here.number, place) for place in places]
            else:
                self._payload = here.load(payload, places)
        digits = here.digits(form.order, form.digit, self._keys, places, shift)
        self._places = tile.rank(digits, form.digit.bits)

    def exchange(self) -> None:
        """Exchange the keys, so that each invocation has those of its `sorted_places`."""
        self._keys = self._tile.exchange(self._keys, self._places)

    def store(self, bases: Any) -> None:
        """Write the tile. `bases[digit]` plus the place in the ranked tile is a key's place in its row."""
        form, tile, here, keys = self._form, self._tile, self._here, self._keys
        places = tile.sorted_places()
        targets = []
        for key, place in zip(keys, places, strict=True):
            target = place_in_row(form, bases[form.order.digit(key, form.digit, self._shift)], place)
            targets.append((here.row_base + target).to_register("sort_target"))
        exists = [place < here.count for place in places]
        if self._keys_to is not None:
            self._store(self._keys_to, keys, targets, exists)
        if self._payload:
            payload = tile.exchange(self._payload, self._places)
            payload = [widen(word) for word in payload] if form.is_wide else payload
            self._store(self._payload_to, payload, targets, exists)

    @staticmethod
    def _store(buffer: Any, values: list[Any], targets: list[Any], exists: list[Any]) -> None:
        for value, target, inside in zip(values, targets, exists, strict=True):
            with vc.if_block(inside):
                buffer[target] = value


# ---- Passes of one launch for each digit, for devices with forward progress ------------------------------
#
# It follows "Onesweep" (Adinets and Merrill, 2022), with the decoupled look-back of Merrill and Garland
# (2016).
#
#     clear            histograms, tickets and the first board
#     histograms       one pass over the keys counts all of their digits: histogram[row][digit number][digit]
#     starts           each histogram summed up: where in its row each digit begins
#     sweep            one launch for each digit number:
#
#     tile 0    tile 1    tile 2    ...  tile t        of a row, in the order in which workgroups start
#     counts    counts    counts         counts        published on the board as soon as the tile is ranked
#     start +   sums      sums       <-  adds up the counts of earlier tiles, back to one that has published
#                                        its sum; then publishes its own sum
#
# The board has a word for each tile and digit: nothing, a count or a sum; see `_Board`. The sum of tile 0
# includes the start from the histogram, so the sum that a tile computes is a place in its row. Each sweep
# clears the board of the next.
#
# Invariants: a word goes from nothing to a count to a sum once in a launch, stored and loaded at once, so
# no other ordering is needed. A counter numbers tiles as their workgroups start, so a tile that is waited
# for has started, and itself waits for earlier tiles only. All numbers are sums of integers, so they do not
# depend on the order of execution. The sort is stable, as the ranking of `tile` is.


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

    moving: PassForm
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
        declare_move_arguments(moving),
        numbers(*SHAPE),
        *numbers("sort_which", "sort_shift"),
    ]
    name = f"sort_sweep_{moving.order.kind.name}"
    return trace_kernel(name, body, arguments, moving.tile.group, WORKGROUPS)


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
            words += split_words(position_in_row(moving, self._here.number, tile.places()[item]))
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
            target = (here.row_base + place_in_row(moving, base, place)).to_register("sort_target")
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
