"""Sorts of rows of keys in device memory, as kernels move them: which launches, over which buffers."""

from collections.abc import Iterator
from typing import Any

from vkdispatch.arrays.aliasing import is_same_memory
from vkdispatch.arrays.facts import DeviceFacts, device_facts
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.shader.copying import copyto
from vkdispatch.sorting.cpu_merge import MergeForm, merge_kernel
from vkdispatch.sorting.cpu_runs import count_runs_kernel, move_runs_kernel, sum_runs_kernel
from vkdispatch.sorting.keys import Digit, Order, raw_type, shifted
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
from vkdispatch.sorting.planning import (
    Way,
    block_form,
    counter_for,
    run_shape,
    sweep_form,
    tile_form,
    tuning,
    way_for,
)
from vkdispatch.sorting.short_rows import MOST_ROWS, BlockForm, block_kernel, short_kernel
from vkdispatch.sorting.tile import TileForm

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
    way = way_for(device, order.raw, rows.count, rows.length) if payload is None else Way.LONG
    if way is Way.LONG:
        _Passes(device, keys, order, rows, keys_to, positions_to, payload, graph).run()
    elif way is Way.SHORT:
        _sort_short(keys, order, rows, keys_to, positions_to, graph)
    elif way is Way.MERGED:
        _merge_rows(keys, order, rows, keys_to, positions_to, graph)
    else:
        _sort_blocks(device, keys, order, rows, keys_to, positions_to, graph)


def is_long(order: Order, rows: Rows) -> bool:
    """Whether rows take several launches, between which keys and what goes with them lie in memory."""
    return way_for(device_facts(), order.raw, rows.count, rows.length) is Way.LONG


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


def _merge_rows(
    keys: AnyBuffer,
    order: Order,
    rows: Rows,
    keys_to: AnyBuffer | None,
    positions_to: AnyBuffer | None,
    graph: CommandGraph | None,
) -> None:
    wide = _is_wide(rows, positions_to, None)
    form = MergeForm(order, keys_to is not None, positions_to is not None, wide)
    scratch: list[AnyBuffer] = [function_buffer(2 * rows.size, order.raw)]
    if positions_to is not None:
        scratch.append(function_buffer(2 * rows.size, dtype.uint32))
    written = _written(keys_to, positions_to)
    merge_kernel(form)(keys, *scratch, *written, rows.count, rows.length, graph=graph)


class _Passes:
    """A sort digit by digit, whose keys and what goes with them lie in memory between launches."""

    def __init__(
        self,
        device: DeviceFacts,
        keys: AnyBuffer,
        order: Order,
        rows: Rows,
        keys_to: AnyBuffer | None,
        positions_to: AnyBuffer | None,
        payload: AnyBuffer | None,
        graph: CommandGraph | None,
    ) -> None:
        self._device, self._order, self._rows, self._graph = device, order, rows, graph
        self._keys, self._keys_to = keys, keys_to
        self._payload, self._positions_to = payload, positions_to
        self._kind = _payload_type(rows, positions_to, payload)
        self._counter = counter_for(rows.length)

    def run(self) -> None:
        """Queue all launches."""
        if self._device.cpu:
            self._run_by_runs()
            return
        tile = sweep_form(self._device, self._order.raw, self._kind, self._rows.length)
        if tile is None:
            self._run_by_tiles(tile_form(self._device, self._order.raw, self._kind))
        else:
            self._run_sweeps(tile)

    def _steps(self, tile: TileForm) -> Iterator[tuple[int, Digit, PassForm, AnyBuffer, list[AnyBuffer]]]:
        """Give each pass's number, digit, and form; what keys it reads, and the buffers it moves to and from.

        The latter are the moved keys where they are written, the payload where it is read, the moved payload.
        """
        order, rows, kind = self._order, self._rows, self._kind
        digits = order.digits(tile.width)
        keys, payload = self._keys, self._payload
        if is_same_memory(keys, self._keys_to) and len(digits) % 2:
            keys = copied(keys, self._graph)
        if payload is not None and is_same_memory(payload, self._positions_to) and len(digits) % 2:
            payload = copied(payload, self._graph)
        key_ways = _ways(rows.size, order.raw, self._keys_to, len(digits))
        wide = _is_wide(rows, self._positions_to, payload)
        payload_ways = _payload_ways(rows.size, kind, self._positions_to, len(digits), wide)
        for number, digit in enumerate(digits):
            last = number == len(digits) - 1
            form = PassForm(
                tile,
                order,
                shifted(digit),
                self._counter,
                kind,
                kind is not None and payload is None,
                not last or self._keys_to is not None,
                wide and last,
            )
            buffers: list[AnyBuffer] = [key_ways[number]] if form.keys else []
            if payload_ways is not None:
                if payload is not None:
                    buffers.append(payload)
                payload = payload_ways[number]
                buffers.append(payload)
            yield number, digit, form, keys, buffers
            keys = key_ways[number]

    def _run_by_tiles(self, tile: TileForm) -> None:
        rows, counter, graph = self._rows, self._counter, self._graph
        steps = self._steps(tile)
        tiles = -(-rows.length // tile.tile)
        shape = (rows.count, tiles, rows.length - (tiles - 1) * tile.tile)
        lines = rows.count * tile.bins
        counts: AnyBuffer = function_buffer(lines * tiles, counter)
        totals: AnyBuffer = function_buffer(lines, counter)
        for _, digit, form, keys, buffers in steps:
            count_kernel(form, bool(tuning.votes))(keys, counts, *shape, digit.shift, graph=graph)
            summed = (rows.count, tile.bins, tiles)
            if tiles <= tuning.few_tiles:
                short_offsets_kernel(tile.group, counter)(counts, totals, *summed, graph=graph)
            else:
                offsets_kernel(tile, counter)(counts, totals, *summed, graph=graph)
            move_kernel(form)(keys, counts, totals, *buffers, *shape, digit.shift, graph=graph)

    def _run_by_runs(self) -> None:
        order, rows, counter, graph = self._order, self._rows, self._counter, self._graph
        cut = run_shape(self._device, order.part_bits, rows.length)
        shape = (rows.count, cut.runs, cut.run, cut.last)
        tile = TileForm(cut.group, 1, cut.width, 1, False)
        groups = -(-cut.runs // cut.group)
        counters: AnyBuffer = function_buffer(rows.count * groups * cut.group << cut.width, counter)
        totals: AnyBuffer = function_buffer(rows.count << cut.width, counter)
        for _, digit, form, keys, buffers in self._steps(tile):
            count_runs_kernel(form)(keys, counters, *shape, digit.shift, graph=graph)
            sum_runs_kernel(cut.group, 1 << digit.bits, counter)(
                counters, totals, rows.count, cut.runs, graph=graph
            )
            move_runs_kernel(form)(keys, counters, totals, *buffers, *shape, digit.shift, graph=graph)

    def _run_sweeps(self, tile: TileForm) -> None:
        rows, graph = self._rows, self._graph
        digits = self._order.digits(tile.width)
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
            self._order, tile.width, tuning.histogram_group, tuning.histogram_items, tuning.histogram_rounds
        )
        chunks = -(-rows.length // counted.chunk)
        histogram_kernel(counted)(self._keys, histograms, rows.count, rows.length, chunks, graph=graph)
        starts_kernel(tile)(histograms, rows.count * len(digits), graph=graph)
        for number, digit, form, keys, buffers in self._steps(tile):
            sweep_kernel(SweepForm(form, len(digits), tuning.window))(
                keys,
                histograms,
                boards[number % 2],
                boards[1 - number % 2],
                tickets,
                *buffers,
                *shape,
                number,
                digit.shift,
                graph=graph,
            )


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
