"""Sorts of rows of keys in device memory, as kernels move them: which launches, over which buffers."""

from typing import Any

from vkdispatch.arrays.aliasing import is_same_memory
from vkdispatch.arrays.facts import DeviceFacts, device_facts
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.shader.copying import copyto
from vkdispatch.sorting.block import MOST_ROWS, BlockForm, block_kernel, short_kernel
from vkdispatch.sorting.keys import Order, raw_type, shifted
from vkdispatch.sorting.onesweep import (
    HistogramForm,
    SweepForm,
    clear_kernel,
    histogram_kernel,
    starts_kernel,
    sweep_kernel,
)
from vkdispatch.sorting.passes import (
    PassForm,
    count_kernel,
    move_kernel,
    offsets_kernel,
    short_offsets_kernel,
)
from vkdispatch.sorting.planning import block_form, counter_for, sweeps, tile_form, tuning
from vkdispatch.sorting.ranking import TileForm

_SHORT_GROUP = 128
AnyBuffer = Buffer[Any]


@record
class Rows:
    """Keys in memory: `count` rows of `length` each, one after the other."""

    count: int
    length: int

    @property
    def size(self) -> int:
        """How many keys there are."""
        return self.count * self.length


def position_type(length: int) -> DType:
    """Return the raw type of positions in rows of a length: one or two words."""
    return dtype.uint32 if counter_for(length) is dtype.uint32 else dtype.uvec2


def sort_rows(
    keys: AnyBuffer,
    order: Order,
    rows: Rows,
    *,
    keys_to: AnyBuffer | None = None,
    positions_to: AnyBuffer | None = None,
    payload: AnyBuffer | None = None,
    graph: CommandGraph | None = None,
) -> None:
    """Sort each row; stable.

    Parameters
    ----------
    keys
        The keys, which stay as they are unless they are `keys_to`.
    keys_to
        Where the sorted keys go; may be `keys`. None: nowhere.
    positions_to
        Where the positions in their rows go that the sorted keys had, of `position_type` or of 8 bytes, or
        what the payload had there. None: nowhere.
    payload
        What goes along with the keys in place of their positions: elements of 1 to 8 bytes, of the type of
        `positions_to`, which may be the same buffer; no other two may be.
    """
    device = device_facts()
    if payload is not None or is_long(order, rows, device):
        _sort_long(device, keys, order, rows, keys_to, positions_to, payload, graph)
    elif rows.length <= tuning.short and rows.size < 1 << 31:
        _sort_short(keys, order, rows, keys_to, positions_to, graph)
    else:
        _sort_blocks(device, keys, order, rows, keys_to, positions_to, graph)


def is_long(order: Order, rows: Rows, device: DeviceFacts | None = None) -> bool:
    """Whether rows take several launches, between which keys and what goes with them lie in memory."""
    return block_form(device or device_facts(), order.raw, rows.length) is None


def _payload_type(rows: Rows, positions_to: AnyBuffer | None, payload: AnyBuffer | None) -> DType | None:
    """Return the raw type of what goes along with keys; None where nothing does."""
    if positions_to is None:
        return None
    return position_type(rows.length) if payload is None else raw_type(payload.var_type)


def _is_wide(rows: Rows, positions_to: AnyBuffer | None, payload: AnyBuffer | None) -> bool:
    """Whether positions of 32 bits are stored as numbers of 64."""
    if positions_to is None or payload is not None:
        return False
    return positions_to.var_type.item_size > position_type(rows.length).item_size


def _written(*buffers: AnyBuffer | None) -> list[AnyBuffer]:
    return [buffer for buffer in buffers if buffer is not None]


def _sort_short(
    keys: AnyBuffer,
    order: Order,
    rows: Rows,
    keys_to: AnyBuffer | None,
    positions_to: AnyBuffer | None,
    graph: CommandGraph | None,
) -> None:
    if is_same_memory(keys, keys_to):
        keys = copied(keys, graph)
    wide = _is_wide(rows, positions_to, None)
    kernel = short_kernel(order, keys_to is not None, positions_to is not None, wide, _SHORT_GROUP)
    kernel(keys, *_written(keys_to, positions_to), rows.count, rows.length, graph=graph)


def _sort_blocks(
    device: DeviceFacts,
    keys: AnyBuffer,
    order: Order,
    rows: Rows,
    keys_to: AnyBuffer | None,
    positions_to: AnyBuffer | None,
    graph: CommandGraph | None,
) -> None:
    tile = block_form(device, order.raw, rows.length)
    assert tile is not None
    together = min(tile.tile // rows.length, rows.count, MOST_ROWS)
    wide = _is_wide(rows, positions_to, None)
    form = BlockForm(tile, order, together > 1, keys_to is not None, positions_to is not None, wide)
    written = _written(keys_to, positions_to)
    block_kernel(form)(keys, *written, rows.count, rows.length, together, graph=graph)


def _sort_long(
    device: DeviceFacts,
    keys: AnyBuffer,
    order: Order,
    rows: Rows,
    keys_to: AnyBuffer | None,
    positions_to: AnyBuffer | None,
    payload: AnyBuffer | None,
    graph: CommandGraph | None,
) -> None:
    kind = _payload_type(rows, positions_to, payload)
    tile = tile_form(device, order.raw, kind)
    if sweeps(device, tile, rows.length):
        _sweep(tile, keys, order, rows, keys_to, positions_to, payload, graph)
        return
    digits = order.digits(tile.width)
    if is_same_memory(keys, keys_to) and len(digits) % 2:
        keys = copied(keys, graph)
    if payload is not None and is_same_memory(payload, positions_to) and len(digits) % 2:
        payload = copied(payload, graph)
    key_ways = _ways(rows.size, order.raw, keys_to, len(digits))
    wide = _is_wide(rows, positions_to, payload)
    payload_ways = _payload_ways(rows.size, kind, positions_to, len(digits), wide)
    tiles = -(-rows.length // tile.tile)
    shape = (rows.count, tiles, rows.length - (tiles - 1) * tile.tile)
    counter = counter_for(rows.length)
    lines = rows.count * tile.bins
    counts: AnyBuffer = function_buffer(lines * tiles, counter)
    totals: AnyBuffer = function_buffer(lines, counter)
    for number, digit in enumerate(digits):
        last = number == len(digits) - 1
        form = PassForm(
            tile,
            order,
            shifted(digit),
            counter,
            kind,
            kind is not None and payload is None and number == 0,
            not last or keys_to is not None,
            wide and last,
        )
        count_kernel(form, bool(tuning.votes))(keys, counts, *shape, digit.shift, graph=graph)
        if tiles <= tuning.few_tiles:
            short_offsets_kernel(tile.group, counter)(
                counts, totals, rows.count, tile.bins, tiles, graph=graph
            )
        else:
            offsets_kernel(tile, counter)(counts, totals, rows.count, tile.bins, tiles, graph=graph)
        written: list[AnyBuffer] = [key_ways[number]] if form.keys else []
        if payload_ways is not None:
            if not form.made:
                assert payload is not None
                written.append(payload)
            payload = payload_ways[number]
            written.append(payload)
        move_kernel(form)(keys, counts, totals, *written, *shape, digit.shift, graph=graph)
        keys = key_ways[number]


def _sweep(
    tile: TileForm,
    keys: AnyBuffer,
    order: Order,
    rows: Rows,
    keys_to: AnyBuffer | None,
    positions_to: AnyBuffer | None,
    payload: AnyBuffer | None,
    graph: CommandGraph | None,
) -> None:
    kind = _payload_type(rows, positions_to, payload)
    digits = order.digits(tile.width)
    if is_same_memory(keys, keys_to) and len(digits) % 2:
        keys = copied(keys, graph)
    if payload is not None and is_same_memory(payload, positions_to) and len(digits) % 2:
        payload = copied(payload, graph)
    key_ways = _ways(rows.size, order.raw, keys_to, len(digits))
    wide = _is_wide(rows, positions_to, payload)
    payload_ways = _payload_ways(rows.size, kind, positions_to, len(digits), wide)
    tiles = -(-rows.length // tile.tile)
    shape = (rows.count, tiles, rows.length - (tiles - 1) * tile.tile)
    boards: list[AnyBuffer] = [
        function_buffer(rows.count * tiles * tile.bins, dtype.uint32) for _ in range(2)
    ]
    histograms: AnyBuffer = function_buffer(rows.count * len(digits) * tile.bins, dtype.uint32)
    tickets: AnyBuffer = function_buffer(len(digits), dtype.uint32)
    cleared = (boards[0], histograms, tickets)
    clear_kernel()(*cleared, *(each.size for each in cleared), graph=graph)
    counted = HistogramForm(
        order, tile.width, tuning.histogram_group, tuning.histogram_items, tuning.histogram_rounds
    )
    chunks = -(-rows.length // counted.chunk)
    histogram_kernel(counted)(keys, histograms, rows.count, rows.length, chunks, graph=graph)
    starts_kernel(tile)(histograms, rows.count * len(digits), graph=graph)
    for number, digit in enumerate(digits):
        last = number == len(digits) - 1
        moving = PassForm(
            tile,
            order,
            shifted(digit),
            dtype.uint32,
            kind,
            kind is not None and payload is None and number == 0,
            not last or keys_to is not None,
            wide and last,
        )
        written: list[AnyBuffer] = [key_ways[number]] if moving.keys else []
        if payload_ways is not None:
            if not moving.made:
                assert payload is not None
                written.append(payload)
            payload = payload_ways[number]
            written.append(payload)
        sweep_kernel(SweepForm(moving, len(digits), tuning.window))(
            keys,
            histograms,
            boards[number % 2],
            boards[1 - number % 2],
            tickets,
            *written,
            *shape,
            number,
            digit.shift,
            graph=graph,
        )
        keys = key_ways[number]


def _ways(size: int, kind: DType, end: AnyBuffer | None, passes: int) -> list[AnyBuffer]:
    """Return where each pass writes: the last to `end`, and others by turns there and to another buffer."""
    if passes == 1 and end is not None:
        return [end]
    other: AnyBuffer = function_buffer(size, kind)
    # the last pass leaves nothing where nothing is asked for
    last = end
    if last is None:
        last = function_buffer(size, kind) if passes > 2 else other
    return [last if (passes - 1 - number) % 2 == 0 else other for number in range(passes)]


def _payload_ways(
    size: int, kind: DType | None, end: AnyBuffer | None, passes: int, wide: bool
) -> list[AnyBuffer] | None:
    """Return the same for what goes along with keys; None where nothing does.

    `wide`: the end is of another type, and only the last pass writes there.
    """
    if kind is None:
        return None
    if not wide:
        return _ways(size, kind, end, passes)
    assert end is not None
    return [*(_ways(size, kind, None, passes)[:-1] if passes > 1 else []), end]


def copied(keys: AnyBuffer, graph: CommandGraph | None) -> AnyBuffer:
    """Return a copy, made by the device."""
    copy: AnyBuffer = function_buffer(keys.shape, keys.var_type)
    copyto(copy, keys, graph=graph)
    return copy
