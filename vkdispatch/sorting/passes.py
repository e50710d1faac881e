"""One pass of a radix sort as three launches: count the digits of each tile, sum up, move the keys.

    rows of keys     | row 0: tile 0, tile 1, ... tile n-1 | row 1: tile 0, ... |
    count            counts[row][digit][tile] = keys of the tile that have the digit
    offsets          summed up along the tiles, in place; totals[row][digit] = keys of the row that have it
    move             place of a key in its row = totals of smaller digits + offset of its tile + keys of its
                     digit before it in the tile

Any device can do this: no workgroup waits for another. `onesweep` is the faster form for GPUs.

Invariants: a pass is stable (see `ranking`); rows do not mix, for each counts for itself; offsets are sums of
integers, so no order of execution shows in them.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import buffer, constant, traced
from vkdispatch.arrays.remembering import remembered
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Digit, Order
from vkdispatch.sorting.serial_tile import SerialTile
from vkdispatch.sorting.tile import Tile, TileForm, only

_U32 = constant[dtype.uint32]
SHAPE = [("sort_rows", _U32), ("sort_tiles", _U32), ("sort_last", _U32)]
SHIFT = ("sort_shift", _U32)
WORKGROUPS = "sort_rows * sort_tiles"
# Counts that an invocation adds up by itself in one round.
_TOGETHER = 4


@record
class PassForm:
    """What the kernels of a pass are specialised for.

    Attributes
    ----------
    tile
        How a workgroup does a tile.
    order, digit
        Of what the keys are, and by which digit they are moved; its shift is an argument of the kernels.
    counter
        The type that counts keys of a row: uint32, or uint64.
    payload
        The raw type of what is moved along with each key; None for nothing.
    made
        Whether that is the key's position in its row, which is made here and not read.
    keys
        Whether keys are written at all.
    wide
        Whether the payload is of one word, and written as the two of a 64-bit number.
    """

    tile: TileForm
    order: Order
    digit: Digit
    counter: DType = dtype.uint32
    payload: DType | None = None
    made: bool = False
    keys: bool = True
    wide: bool = False


class TileOfRow:
    """Where a workgroup's tile lies, while its kernel is traced."""

    def __init__(self, form: TileForm, tiles: Any, last: Any, group: Any = None) -> None:
        number = vc.workgroup_id().x if group is None else group
        self.row = (number // tiles).to_register("sort_row")
        self.number = (number % tiles).to_register("sort_tile")
        # keys that there are in it: only the last of a row may have fewer
        self.count = vc.select(self.number + 1 < tiles, form.tile, last).to_register("sort_count")
        self.row_base = (self.row * ((tiles - 1) * form.tile + last)).to_register("sort_row_base")
        self.base = (self.row_base + self.number * form.tile).to_register("sort_base")

    def loaded(self, buffer: Any, places: list[Any]) -> list[Any]:
        """Load the elements at some places of the tile; beyond its end that of another place."""
        return self.at(buffer, [vc.select(place < self.count, place, 0) for place in places])

    def at(self, buffer: Any, places: list[Any]) -> list[Any]:
        """Load the elements at some places of the tile that there are."""
        return [buffer[self.base + place].to_register() for place in places]

    def digits(self, order: Order, digit: Digit, keys: list[Any], places: list[Any], shift: Any) -> list[Any]:
        """Return the keys' digits; beyond the tile's end the largest, so that nothing is ranked behind."""
        largest = (1 << digit.bits) - 1
        return [
            vc.select(place < self.count, order.digit(key, digit, shift), largest).to_register("sort_digit")
            for key, place in zip(keys, places, strict=True)
        ]


@remembered
def count_kernel(form: PassForm, by_votes: bool) -> ShaderFunction:
    """Return the kernel that counts each tile's digits: keys, counts, the numbers of `SHAPE`, the shift.

    `by_votes` counts equal digits of a subgroup at once, which costs more where digits differ, and far less
    where they are equal.
    """

    def body(keys: Any, counts: Any, rows: Any, tiles: Any, last: Any, shift: Any) -> None:
        del rows
        here = TileOfRow(form.tile, tiles, last)
        if form.tile.subgroup == 1:
            _count_serially(form, here, keys, counts, tiles, shift)
            return
        tile = Tile(form.tile)
        tile.clear()
        vc.barrier()
        places = tile.places()
        found = here.loaded(keys, places)
        digits = [form.order.digit(key, form.digit, shift).to_register() for key in found]
        for digit, place in zip(digits, places, strict=True):
            tile.counted(digit, form.digit.bits, place < here.count, by_votes=by_votes)
        vc.barrier()
        for digit, kept in tile.own_bins():
            total = tile.total(digit, kept)
            with only(kept):
                entry = (here.row * form.tile.bins + digit) * tiles + here.number
                counts[entry] = total.to_dtype(form.counter)

    arguments = [
        ("sort_keys", buffer[form.order.raw]),
        ("sort_counts", buffer[form.counter]),
        *SHAPE,
        SHIFT,
    ]
    return traced(
        f"sort_count_{form.order.kind.name}",
        body,
        arguments,
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
        counts[entry] = tile.total(digit).to_dtype(form.counter)


@remembered
def offsets_kernel(form: TileForm, counter: DType) -> ShaderFunction:
    """Return the kernel that sums up counts along the tiles, a workgroup for each row and digit.

    Its arguments are the counts, the totals, and how many rows, digits and tiles there are.
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
            insides = [first + i < tiles for i in range(_TOGETHER)]
            entries = [line * tiles + vc.select(inside, first + i, 0) for i, inside in enumerate(insides)]
            values = [
                vc.select(inside, counts[entry], vc.to_dtype(counter, 0)).to_register()
                for entry, inside in zip(entries, insides, strict=True)
            ]
            own = values[0]
            for value in values[1:]:
                own = own + value
            own = own.to_register()
            start = (tile.across(own) + before).to_register()
            with vc.if_block(tile.index == form.group - 1):
                whole[0] = start + own
            for entry, inside, value in zip(entries, insides, values, strict=True):
                with vc.if_block(inside):
                    counts[entry] = start
                start += value
            vc.barrier()
            before[:] = whole[0]
            vc.barrier()
        with vc.if_block(tile.index == 0):
            totals[line] = before

    return traced("sort_offsets", body, _offset_arguments(counter), form.group, "sort_rows * sort_bins")


@remembered
def short_offsets_kernel(group: int, counter: DType) -> ShaderFunction:
    """Return the kernel that sums up counts along few tiles, an invocation for each row and digit."""

    def body(counts: Any, totals: Any, rows: Any, bins: Any, tiles: Any) -> None:
        line = (vc.workgroup_id().x * group + vc.local_invocation_index()).to_register()
        with vc.if_block(line < rows * bins):
            before = vc.new_register(counter)
            with vc.for_block(0, tiles) as number:
                entry = line * tiles + number
                value = counts[entry].to_register()
                counts[entry] = before
                before += value
            totals[line] = before

    return traced(
        "sort_short_offsets",
        body,
        _offset_arguments(counter),
        group,
        f"(sort_rows * sort_bins + {group - 1}) // {group}",
    )


@remembered
def move_kernel(form: PassForm) -> ShaderFunction:
    """Return the kernel that moves keys, and what goes with them, to their places by one digit.

    Its arguments are the keys, the offsets, the totals, the moved keys where they are written, the payload
    where it is read, the moved payload, the numbers of `SHAPE`, the shift.
    """

    def body(keys: Any, offsets: Any, totals: Any, *others: Any) -> None:
        *buffers, _, tiles, last, shift = others
        here = TileOfRow(form.tile, tiles, last)
        if form.tile.subgroup == 1:
            _move_serially(form, here, keys, offsets, totals, buffers, tiles, shift)
            return
        tile = Tile(form.tile)
        bases: Any = vc.shared_buffer(form.counter, form.tile.bins, "sort_bases")
        owned = tile.own_bins()
        sums = []
        for digit, kept in owned:
            total = vc.new_register(form.counter)
            with only(kept):
                total[:] = totals[here.row * form.tile.bins + digit]
            sums.append(total)
        moved = MovedTile(form, tile, here, keys, buffers, shift)
        for (digit, kept), before in zip(owned, tile.running(sums), strict=True):
            with only(kept):
                entry = (here.row * form.tile.bins + digit) * tiles + here.number
                bases[digit] = before + offsets[entry] - tile.starts[digit].to_dtype(form.counter)
        moved.exchange()
        moved.store(bases)

    arguments = [
        ("sort_keys", buffer[form.order.raw]),
        ("sort_counts", buffer[form.counter]),
        ("sort_totals", buffer[form.counter]),
        *moved_arguments(form),
        *SHAPE,
        SHIFT,
    ]
    return traced(
        f"sort_move_{form.order.kind.name}",
        body,
        arguments,
        form.tile.group,
        WORKGROUPS,
        unsigned=form.counter is dtype.uint32,
    )


def _move_serially(
    form: PassForm,
    here: TileOfRow,
    keys: Any,
    offsets: Any,
    totals: Any,
    buffers: list[Any],
    tiles: Any,
    shift: Any,
) -> None:
    rest, bins = list(buffers), form.tile.bins
    keys_to = rest.pop(0) if form.keys else None
    tile = SerialTile(form.tile, [kind for kind in (form.order.raw, form.payload) if kind is not None], tiles)
    with tile.each_place() as item:
        place = tile.place(item)
        inside = vc.select(place < here.count, place, 0).to_register()
        tile.put(0, place, keys[here.base + inside].to_register())
        if form.payload is not None:
            made = position_in_row(form, here.number, place) if form.made else rest[0][here.base + inside]
            tile.put(1, place, made.to_register())
    vc.barrier()
    largest = (1 << form.digit.bits) - 1

    def digit_of(place: Any) -> Any:
        found = form.order.digit(tile.get(0, place), form.digit, shift)
        return vc.select(place < here.count, found, largest).to_register()

    tile.step(digit_of)
    bases: Any = vc.shared_buffer(form.counter, bins, "sort_bases")
    share = -(-bins // form.tile.group)
    first = (tile.index * share).to_register()
    total = vc.new_register(form.counter)
    with vc.for_block(first, vc.min(first + share, bins)) as digit:
        total += totals[here.row * bins + digit]
    before = tile.across(total)
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
                rest[-1][target] = widened(tile.get(1, place)) if form.wide else tile.get(1, place)


def position_in_row(form: PassForm, number: Any, place: Any) -> Any:
    """Return the position in its row of a place of a tile, as a payload."""
    size = form.tile.tile
    if form.payload is dtype.uint32:
        return (number * size + place).to_register()
    position = number.to_dtype(dtype.uint64) * size + place.to_dtype(dtype.uint64)
    return vc.unpack_uint2x32(position).to_register()


def place_in_row(form: PassForm, base: Any, place: Any) -> Any:
    """Return where in its row a key goes: `base` is where its digit would begin for place 0 of the tile."""
    if form.counter is dtype.uint32:
        # that may lie before the row: this wraps around
        return (base + place) & 0xFFFFFFFF
    return base + place.to_dtype(form.counter)


def moved_arguments(form: PassForm) -> list[tuple[str, Any]]:
    """Return the arguments of a `MovedTile`: what is written of keys, what is read and written with them."""
    arguments = []
    if form.keys:
        arguments.append(("sort_moved_keys", buffer[form.order.raw]))
    if form.payload is not None:
        if not form.made:
            arguments.append(("sort_payload", buffer[form.payload]))
        arguments.append(("sort_moved_payload", buffer[dtype.uvec2 if form.wide else form.payload]))
    return arguments


def widened(word: Any) -> Any:
    """Return a number of 32 bits as one of 64, in its raw type."""
    return vc.to_uvec2(word, 0)


class MovedTile:
    """A tile that is ranked by a digit, and then written to the places of its digits."""

    def __init__(
        self,
        form: PassForm,
        tile: Tile,
        here: TileOfRow,
        keys: Any,
        buffers: list[Any],
        shift: Any,
    ) -> None:
        """Load and rank the keys; `tile.starts` holds where each digit begins in the tile.

        `shift` is that of the digit.
        """
        self._form, self._tile, self._here, self._shift = form, tile, here, shift
        rest = list(buffers)
        self._keys_to = rest.pop(0) if form.keys else None
        places = tile.places()
        self._keys = here.loaded(keys, places)
        self._payload: list[Any] = []
        if form.payload is not None:
            if form.made:
                self._payload = [position_in_row(form, here.number, place) for place in places]
            else:
                self._payload = here.loaded(rest.pop(0), places)
            self._payload_to = rest.pop(0)
        digits = here.digits(form.order, form.digit, self._keys, places, shift)
        self._places = tile.rank(digits, form.digit.bits)

    def exchange(self) -> None:
        """Have the keys, in registers, in their order in the tile."""
        self._keys = self._tile.exchanged(self._keys, self._places)

    def store(self, bases: Any) -> None:
        """Write the tile: `bases[digit]` plus a place in the ranked tile is a key's place in its row."""
        form, tile, here, keys = self._form, self._tile, self._here, self._keys
        places = tile.sorted_places()
        targets = []
        for key, place in zip(keys, places, strict=True):
            target = place_in_row(form, bases[form.order.digit(key, form.digit, self._shift)], place)
            targets.append((here.row_base + target).to_register("sort_target"))
        kept = [place < here.count for place in places]
        if self._keys_to is not None:
            self._store(self._keys_to, keys, targets, kept)
        if self._payload:
            payload = tile.exchanged(self._payload, self._places)
            payload = [widened(word) for word in payload] if form.wide else payload
            self._store(self._payload_to, payload, targets, kept)

    @staticmethod
    def _store(buffer: Any, values: list[Any], targets: list[Any], kept: list[Any]) -> None:
        for value, target, inside in zip(values, targets, kept, strict=True):
            with vc.if_block(inside):
                buffer[target] = value


def _offset_arguments(counter: DType) -> list[tuple[str, Any]]:
    return [
        ("sort_counts", buffer[counter]),
        ("sort_totals", buffer[counter]),
        ("sort_rows", _U32),
        ("sort_bins", _U32),
        ("sort_tiles", _U32),
    ]
