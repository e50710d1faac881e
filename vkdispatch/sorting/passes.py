"""One pass of a radix sort as three launches: count the digits of each tile, sum up, move the keys.

    rows of keys     | row 0: tile 0, tile 1, ... tile n-1 | row 1: tile 0, ... |
    count            counts[row][digit][tile] = keys of the tile that have the digit
    offsets          summed up along the tiles, in place; totals[row][digit] = keys of the row that have it
    move             place of a key in its row = totals of smaller digits + offset of its tile + keys of its
                     digit before it in the tile

Any device can do this: no workgroup waits for another. `onesweep` is faster on GPUs.

Invariants: a pass is stable (see `tile`). Rows do not mix, because each has counts of its own. Offsets are
sums of integers, so they do not depend on the order of execution.
"""

from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.families.kernels import Argument, buffers, numbers, trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Digit, Order, widen
from vkdispatch.sorting.tile import SerialTile, Tile, TileForm, only_if

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
