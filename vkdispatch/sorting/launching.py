"""The launches that sort rows of keys in device memory."""

from collections.abc import Iterator
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.operands import share_memory
from vkdispatch.families.tuning import DeviceFacts, device_facts
from vkdispatch.shader.copying import copyto
from vkdispatch.sorting import onesweep, planning
from vkdispatch.sorting.cpu import (
    MergeForm,
    make_count_runs_kernel,
    make_merge_kernel,
    make_move_runs_kernel,
    make_sum_runs_kernel,
)
from vkdispatch.sorting.keys import Digit, Order, SortOutputs, raw_type
from vkdispatch.sorting.passes import PassForm, make_count_kernel, make_move_kernel, make_offsets_kernel
from vkdispatch.sorting.planning import SortForm
from vkdispatch.sorting.short_rows import MAX_ROWS, BlockForm, make_block_kernel, make_short_kernel
from vkdispatch.sorting.tile import TileForm

_SHORT_GROUP = 128
AnyBuffer = Buffer[Any]


@record
class Rows:
    """Keys in memory: `count` rows of `length` keys, one after another."""

    count: int
    length: int

    @property
    def size(self) -> int:
        """The number of keys."""
        return self.count * self.length


def position_type(length: int) -> DType:
    """Return the raw type of positions in rows of a length: one or two words."""
    return dtype.uint32 if planning.counter_type(length) is dtype.uint32 else dtype.uvec2


@record(eq=False)
class _Task:
    """A sort to be launched; see `sort_rows`."""

    keys: AnyBuffer
    order: Order
    rows: Rows
    keys_to: AnyBuffer | None
    positions_to: AnyBuffer | None
    payload: AnyBuffer | None
    graph: CommandGraph | None

    @property
    def outputs(self) -> SortOutputs:
        """What is written."""
        return SortOutputs(self.keys_to is not None, self.positions_to is not None, self.is_wide)

    @property
    def written(self) -> list[AnyBuffer]:
        """The buffers that are written."""
        return [buffer for buffer in (self.keys_to, self.positions_to) if buffer is not None]

    @property
    def payload_type(self) -> DType | None:
        """The raw type of what is moved with each key; None for nothing."""
        if self.positions_to is None:
            return None
        return position_type(self.rows.length) if self.payload is None else raw_type(self.payload.var_type)

    @property
    def is_wide(self) -> bool:
        """Whether positions of 32 bits are stored as numbers of 64 bits."""
        if self.positions_to is None or self.payload is not None:
            return False
        return self.positions_to.var_type.item_size > position_type(self.rows.length).item_size


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
    """Sort each row. The sort is stable.

    Parameters
    ----------
    keys
        The keys. They are not changed, unless `keys_to` is the same buffer.
    keys_to
        A buffer for the sorted keys; may be `keys`. None: they are not written.
    positions_to
        A buffer of `position_type`, or of elements of 8 bytes, for the positions in their rows that the
        sorted keys had; or, with a payload, for the sorted payload. None: neither is written.
    payload
        Elements of 1 to 8 bytes that are moved with the keys, of the dtype of `positions_to`. It may be that
        buffer. No other two may be the same.
    """
    device = device_facts()
    task = _Task(keys, order, rows, keys_to, positions_to, payload, graph)
    has_payload = payload is not None
    form = planning.choose_form(device, order.raw, rows.count, rows.length, has_payload=has_payload)
    if form is SortForm.TILES:
        _LongSort(device, task).run_by_tiles()
    elif form is SortForm.RUNS:
        _LongSort(device, task).run_by_runs()
    elif form is SortForm.SHORT:
        _sort_short(task)
    elif form is SortForm.MERGED:
        _merge_rows(task)
    else:
        _sort_blocks(device, task)


def is_long(order: Order, rows: Rows) -> bool:
    """Whether rows take several launches, with the keys and what is moved with them in memory between."""
    return planning.choose_form(device_facts(), order.raw, rows.count, rows.length) in planning.LONG_FORMS


def _sort_short(task: _Task) -> None:
    keys, rows = task.keys, task.rows
    if share_memory(keys, task.keys_to):
        keys = _copy(keys, task.graph)
    kernel = make_short_kernel(task.order, task.outputs, _SHORT_GROUP)
    kernel(keys, *task.written, rows.count, rows.length, graph=task.graph)


def _sort_blocks(device: DeviceFacts, task: _Task) -> None:
    rows = task.rows
    tile = planning.choose_block(device, task.order.raw, rows.length)
    assert tile is not None
    together = min(tile.tile // rows.length, rows.count, MAX_ROWS)
    form = BlockForm(tile, task.order, together > 1, task.outputs)
    make_block_kernel(form)(task.keys, *task.written, rows.count, rows.length, together, graph=task.graph)


def _merge_rows(task: _Task) -> None:
    rows, order = task.rows, task.order
    scratch: list[AnyBuffer] = [function_buffer(2 * rows.size, order.raw)]
    if task.positions_to is not None:
        scratch.append(function_buffer(2 * rows.size, dtype.uint32))
    kernel = make_merge_kernel(MergeForm(order, task.outputs))
    kernel(task.keys, *scratch, *task.written, rows.count, rows.length, graph=task.graph)


@record(eq=False)
class _Pass:
    """One pass of a sort digit by digit.

    Attributes
    ----------
    number, digit
        Which pass it is, and which digit it sorts by.
    form
        What its kernels are specialised for.
    keys
        The keys that it reads.
    buffers
        The moved keys if they are written, the payload if it is read, the moved payload.
    """

    number: int
    digit: Digit
    form: PassForm
    keys: AnyBuffer
    buffers: list[AnyBuffer]


class _LongSort:
    """A sort digit by digit, with the keys and what is moved with them in memory between launches."""

    def __init__(self, device: DeviceFacts, task: _Task) -> None:
        self._device, self._task = device, task
        self._order, self._rows, self._graph = task.order, task.rows, task.graph
        self._payload_type = task.payload_type
        self._counter = planning.counter_type(task.rows.length)

    def run_by_tiles(self) -> None:
        """Queue all launches, over tiles of keys."""
        key, payload = self._order.raw, self._payload_type
        tile = planning.choose_sweep_tile(self._device, key, payload, self._rows.length)
        if tile is None:
            self._count_tiles(planning.choose_tile(self._device, key, payload))
        else:
            self._sweep_tiles(tile)

    def _list_passes(self, tile: TileForm) -> Iterator[_Pass]:
        task, order, rows, kind = self._task, self._order, self._rows, self._payload_type
        digits = order.digits(tile.width)
        keys, payload = task.keys, task.payload
        if share_memory(keys, task.keys_to) and len(digits) % 2:
            keys = _copy(keys, self._graph)
        if payload is not None and share_memory(payload, task.positions_to) and len(digits) % 2:
            payload = _copy(payload, self._graph)
        key_targets = _list_targets(rows.size, order.raw, task.keys_to, len(digits))
        key_sources = [keys, *key_targets]
        payload_targets = self._list_payload_targets(len(digits))
        for number, digit in enumerate(digits):
            targets = key_targets[number : number + 1]
            form = PassForm(
                tile,
                order,
                digit.without_shift(),
                self._counter,
                payload=kind,
                makes_positions=kind is not None and payload is None,
                writes_keys=bool(targets),
                is_wide=task.is_wide and number == len(digits) - 1,
            )
            if payload_targets is not None:
                read = [] if payload is None else [payload]
                payload = payload_targets[number]
                targets += [*read, payload]
            yield _Pass(number, digit, form, key_sources[number], targets)

    def _list_payload_targets(self, passes: int) -> list[AnyBuffer] | None:
        """Return where each pass writes the payload; None without a payload."""
        kind, end = self._payload_type, self._task.positions_to
        if kind is None:
            return None
        if not self._task.is_wide:
            return _list_targets(self._rows.size, kind, end, passes)
        # the result has another type, so only the last pass writes to it
        assert end is not None
        return [*_list_targets(self._rows.size, kind, None, passes), end]

    def _count_tiles(self, tile: TileForm) -> None:
        rows, counter, graph = self._rows, self._counter, self._graph
        passes = self._list_passes(tile)
        tiles = -(-rows.length // tile.tile)
        shape = (rows.count, tiles, rows.length - (tiles - 1) * tile.tile)
        lines = rows.count * tile.bins
        counts: AnyBuffer = function_buffer(lines * tiles, counter)
        totals: AnyBuffer = function_buffer(lines, counter)
        for step in passes:
            shift = step.digit.shift
            make_count_kernel(step.form)(step.keys, counts, *shape, shift, graph=graph)
            summed = (rows.count, tile.bins, tiles)
            make_offsets_kernel(tile, counter)(counts, totals, *summed, graph=graph)
            move = make_move_kernel(step.form)
            move(step.keys, counts, totals, *step.buffers, *shape, shift, graph=graph)

    def run_by_runs(self) -> None:
        """Queue all launches, over runs of keys."""
        order, rows, counter, graph = self._order, self._rows, self._counter, self._graph
        plan = planning.plan_runs(self._device, order.part_bits, rows.length)
        shape = (rows.count, plan.runs, plan.run, plan.last)
        tile = TileForm(plan.group, 1, plan.width, 1, has_arithmetic=False)
        groups = -(-plan.runs // plan.group)
        counters: AnyBuffer = function_buffer(rows.count * groups * plan.group << plan.width, counter)
        totals: AnyBuffer = function_buffer(rows.count << plan.width, counter)
        for step in self._list_passes(tile):
            shift = step.digit.shift
            make_count_runs_kernel(step.form)(step.keys, counters, *shape, shift, graph=graph)
            make_sum_runs_kernel(plan.group, 1 << step.digit.bits, counter)(
                counters, totals, rows.count, plan.runs, graph=graph
            )
            move = make_move_runs_kernel(step.form)
            move(step.keys, counters, totals, *step.buffers, *shape, shift, graph=graph)

    def _sweep_tiles(self, tile: TileForm) -> None:
        rows, graph = self._rows, self._graph
        digits = self._order.digits(tile.width)
        tiles = -(-rows.length // tile.tile)
        shape = (rows.count, tiles, rows.length - (tiles - 1) * tile.tile)
        boards: list[AnyBuffer] = [
            function_buffer(rows.count * tiles * tile.bins, dtype.uint32) for _ in range(2)
        ]
        histograms: AnyBuffer = function_buffer(rows.count * len(digits) * tile.bins, dtype.uint32)
        tickets: AnyBuffer = function_buffer(len(digits), dtype.uint32)
        zeros = (boards[0], histograms, tickets)
        onesweep.make_clear_kernel()(*zeros, *(table.size for table in zeros), graph=graph)
        form = onesweep.HistogramForm(
            self._order,
            tile.width,
            planning.tuning.histogram_group,
            planning.tuning.histogram_items,
            planning.tuning.histogram_rounds,
        )
        chunks = -(-rows.length // form.chunk)
        onesweep.make_histogram_kernel(form)(
            self._task.keys, histograms, rows.count, rows.length, chunks, graph=graph
        )
        onesweep.make_starts_kernel(tile)(histograms, rows.count * len(digits), graph=graph)
        for step in self._list_passes(tile):
            board, next_board = boards[step.number % 2], boards[1 - step.number % 2]
            sweep = onesweep.make_sweep_kernel(
                onesweep.SweepForm(step.form, len(digits), planning.tuning.window)
            )
            buffers = (histograms, board, next_board, tickets, *step.buffers)
            sweep(step.keys, *buffers, *shape, step.number, step.digit.shift, graph=graph)


def _list_targets(size: int, kind: DType, end: AnyBuffer | None, passes: int) -> list[AnyBuffer]:
    """Return where each pass writes: to `end` and to another buffer in turn, the last pass to `end`.

    Without `end` the last pass writes nothing, and two other buffers take turns.
    """
    turns: list[AnyBuffer] = [] if end is None else [end]
    writing = passes if turns else passes - 1
    while len(turns) < min(writing, 2):
        turns.append(function_buffer(size, kind))
    return [turns[(writing - 1 - number) % 2] for number in range(writing)]


def _copy(keys: AnyBuffer, graph: CommandGraph | None) -> AnyBuffer:
    copy: AnyBuffer = function_buffer(keys.shape, keys.var_type)
    copyto(copy, keys, graph=graph)
    return copy
