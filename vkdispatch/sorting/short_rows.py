"""Rows that fit a workgroup are sorted in one launch, in registers and workgroup memory.

    rows of a tile   | row 0 ........ | row 1 ........ | ... |
    digits of keys   ranked and moved within the tile, the least significant first, rows mixed
    number of row    one more digit if there are several rows: it separates the rows again

In rows of a few keys, each key counts those that come before it.

Invariants: each step is stable, so the sort is. A tile is read before it is written, so a block of rows may
be sorted in place. Places beyond the last row have the largest digit, and stay behind it.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.record import record
from vkdispatch.families.kernels import buffers, numbers, trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Digit, Order, SortOutputs
from vkdispatch.sorting.tile import SerialTile, Tile, TileForm

_ROW_BITS = 8
_ROWS = Order(dtype.uint32, bits=_ROW_BITS)
# Rows of a tile: one digit holds their numbers, and one beyond them.
MAX_ROWS = 1 << (_ROW_BITS - 1)


@record
class BlockForm:
    """What the kernel of short rows is specialised for.

    Attributes
    ----------
    tile
        How a workgroup sorts a tile.
    order
        The order of the keys.
    has_rows
        Whether a tile may have several rows.
    outputs
        What is written.
    """

    tile: TileForm
    order: Order
    has_rows: bool
    outputs: SortOutputs

    @property
    def has_origins(self) -> bool:
        """Whether keys carry the place where they were in the tile."""
        return self.has_rows or self.outputs.has_positions


@store_results
def make_block_kernel(form: BlockForm) -> ShaderFunction:
    """Return the kernel of short rows.

    Its arguments are the keys, the outputs, the number of rows, their length, and the rows of a tile.
    """

    def body(keys: Any, results: Any, rows: Any, length: Any, together: Any) -> None:
        if form.tile.subgroup == 1:
            _run_serially(form, keys, results, rows, length, together)
            return
        _Block(form, keys, results, rows, length, together).run()

    arguments = [
        *buffers(sort_keys=form.order.raw),
        form.outputs.arguments(form.order.raw),
        *numbers("sort_rows", "sort_length", "sort_together"),
    ]
    return trace_kernel(
        f"sort_block_{form.order.kind.name}",
        body,
        arguments,
        form.tile.group,
        "(sort_rows + sort_together - 1) // sort_together",
    )


class _Block:
    """The kernel of short rows, in a trace."""

    def __init__(
        self, form: BlockForm, keys: Any, results: Any, rows: Any, length: Any, together: Any
    ) -> None:
        self._form, self._from, self._length = form, keys, length
        self._sorted, self._positions = results
        self._tile = Tile(form.tile)
        first = (vc.workgroup_id().x * together).to_register("sort_first_row")
        self._base = (first * length).to_register("sort_base")
        self._count = (vc.min(together, rows - first) * length).to_register("sort_count")

    def run(self) -> None:
        """Record the kernel's statements."""
        form, tile = self._form, self._tile
        places = tile.places()
        self._keys = [
            self._from[self._base + vc.select(place < self._count, place, 0)].to_register()
            for place in places
        ]
        self._origins = [place.to_register() for place in places] if form.has_origins else []
        steps = [(form.order, digit) for digit in form.order.digits(form.tile.width)]
        if form.has_rows:
            steps += [(_ROWS, digit) for digit in _ROWS.digits(tile.form.width)]
        for number, (order, digit) in enumerate(steps):
            self._move(places, order, digit, is_last=number == len(steps) - 1)
        self._write()

    def _move(self, places: list[Any], order: Order, digit: Digit, *, is_last: bool) -> None:
        """Move keys to their places by one digit."""
        tile, largest = self._tile, (1 << digit.bits) - 1
        by_row = order is _ROWS
        digits = [
            vc.select(
                place < self._count,
                order.digit(self._origins[i] // self._length if by_row else self._keys[i], digit),
                largest,
            ).to_register("sort_digit")
            for i, place in enumerate(places)
        ]
        targets = tile.rank(digits, digit.bits)
        move = tile.exchange if is_last else tile.regroup
        if not is_last or self._form.outputs.has_keys:
            self._keys = move(self._keys, targets)
        if self._origins:
            self._origins = move(self._origins, targets)
        if not is_last:
            vc.barrier()

    def _write(self) -> None:
        form, places = self._form, self._tile.sorted_places()
        if self._sorted is not None:
            self._store(self._sorted, places, self._keys)
        if self._positions is not None:
            origins = [origin % self._length if form.has_rows else origin for origin in self._origins]
            self._store(self._positions, places, [form.outputs.position(origin) for origin in origins])

    def _store(self, buffer: Any, places: list[Any], values: list[Any]) -> None:
        for place, value in zip(places, values, strict=True):
            with vc.if_block(place < self._count):
                buffer[self._base + place] = value


def _run_serially(form: BlockForm, keys: Any, results: Any, rows: Any, length: Any, together: Any) -> None:
    tile = SerialTile(form.tile, [form.order.raw, *([dtype.uint32] if form.has_origins else [])], rows)
    first = (vc.workgroup_id().x * together).to_register("sort_first_row")
    base = (first * length).to_register("sort_base")
    count = (vc.min(together, rows - first) * length).to_register("sort_count")
    with tile.each_place() as item:
        place = tile.place(item)
        tile.put(0, place, keys[base + vc.select(place < count, place, 0)].to_register())
        if form.has_origins:
            tile.put(1, place, place)
    vc.barrier()
    largest = tile.form.bins - 1
    for part, bits in enumerate(form.order.part_bits):
        with tile.loop(-(-bits // form.tile.width)) as number:
            shift = (number * form.tile.width).to_register()

            def digit_of(place: Any, part: int = part, shift: Any = shift) -> Any:
                code = (form.order.part(tile.get(0, place), part) >> shift) & largest
                return vc.select(place < count, code, largest).to_register()

            tile.move_by_digit(digit_of)
    if form.has_rows:
        with tile.loop(_ROW_BITS // form.tile.width) as number:
            shift = (number * form.tile.width).to_register()

            def row_of(place: Any, shift: Any = shift) -> Any:
                row = ((tile.get(1, place) // length) >> shift) & largest
                return vc.select(place < count, row, largest).to_register()

            tile.move_by_digit(row_of)
    with tile.each_place() as item:
        place = tile.place(item)
        with vc.if_block(place < count):
            if form.outputs.has_keys:
                results[0][base + place] = tile.get(0, place)
            if form.outputs.has_positions:
                origin = tile.get(1, place)
                origin = origin % length if form.has_rows else origin
                results[1][base + place] = form.outputs.position(origin)


@store_results
def make_short_kernel(order: Order, outputs: SortOutputs, group: int) -> ShaderFunction:
    """Return the kernel of rows of a few keys, an invocation for each key.

    Its arguments are the keys, the outputs, the number of rows, and their length. It does not sort in place.
    """
    parts = len(order.part_bits)

    def body(source: Any, results: Any, rows: Any, length: Any) -> None:
        element = (vc.workgroup_id().x * group + vc.local_invocation_index()).to_register("sort_element")
        with vc.if_block(element < rows * length):
            place = (element % length).to_register("sort_own")
            base = (element - place).to_register("sort_base")
            key = source[element].to_register()
            code = [order.part(key, part).to_register() for part in range(parts)]
            rank = vc.new_uint_register(0)
            with vc.for_block(0, length) as number:
                other = source[base + number].to_register()
                smaller: Any = None
                for part in range(parts):  # the last part is the most significant
                    value = order.part(other, part).to_register()
                    if smaller is None:
                        before = vc.any(value < code[part], vc.all(value == code[part], number < place))
                    else:
                        before = vc.any(value < code[part], vc.all(value == code[part], smaller))
                    smaller = before
                rank += smaller.to_dtype(dtype.uint32)
            if outputs.has_keys:
                results[0][base + rank] = key
            if outputs.has_positions:
                results[1][base + rank] = outputs.position(place)

    arguments = [
        *buffers(sort_keys=order.raw),
        outputs.arguments(order.raw),
        *numbers("sort_rows", "sort_length"),
    ]
    return trace_kernel(
        f"sort_short_{order.kind.name}",
        body,
        arguments,
        group,
        f"(sort_rows * sort_length + {group - 1}) // {group}",
    )
