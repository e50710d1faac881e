"""How rows are sorted: measured numbers, the choice of kernels, and their launches."""

from collections.abc import Iterator
from enum import Enum
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.operands import share_memory
from vkdispatch.families.tuning import LLVMPIPE, DeviceFacts, Number, Table, device_facts
from vkdispatch.families.values import word_count
from vkdispatch.shader.copying import copyto
from vkdispatch.shader.program import is_checking
from vkdispatch.sorting import cpu
from vkdispatch.sorting import passes as onesweep
from vkdispatch.sorting.keys import Digit, Order, SortOutputs, raw_type
from vkdispatch.sorting.passes import PassForm, make_count_kernel, make_move_kernel, make_offsets_kernel
from vkdispatch.sorting.tile import MAX_ROWS, BlockForm, TileForm, make_block_kernel, make_short_kernel

# ---- Numbers found by measurement, which the plans of sorts depend on. None changes a result -------------


class Tuning(Table, family="sorting"):
    """Numbers for GPUs, and those for CPUs at the end."""

    # Bits of a digit.
    width = Number(8, (4, 6, 8))
    # Invocations of a workgroup for keys of 4 bytes without a payload. A power of two.
    group = Number(256, (128, 256, 512))
    # Keys of each such invocation.
    items = Number(24, (8, 16, 24))
    # Invocations of a workgroup that sorts whole rows. A power of two.
    block_group = Number(256, (128, 256, 512))
    # Keys of each such invocation.
    block_items = Number(16, (8, 16, 24))
    # The same invocations for rows that fit a tile of that size. A power of two.
    small_group = Number(128, (64, 128, 256))
    # Keys of each such invocation.
    small_items = Number(8, (4, 8, 16))
    # For launches that do a whole digit: keys of an invocation.
    sweep_items = Number(36, (16, 24, 36))
    # The most 32-bit words of the keys of such an invocation and their payload.
    sweep_registers = Number(40, (24, 32, 40))
    # The most 32-bit words of the keys of an invocation and their payload.
    registers = Number(48, (32, 48, 64))
    # Keys of the longest row in which each key counts the keys before it.
    short = Number(40, (16, 24, 32, 40, 48, 64))
    # Whether one launch does a digit (0 or 1). Whether the device lets workgroups wait is no matter of speed.
    onesweep = Number(1)
    # Tiles that a look-back reads at once.
    window = Number(4, (1, 4, 8))
    # Invocations of a workgroup that counts digits. A power of two.
    histogram_group = Number(256, (128, 256, 512))
    # Keys that each such invocation has in flight.
    histogram_items = Number(8, (4, 8, 16))
    # Rounds of such a workgroup.
    histogram_rounds = Number(16, (8, 16, 32))
    # Invocations of a workgroup, for devices without ballots. A power of two.
    serial_group = Number(64, (32, 64, 128))
    # Keys of each such invocation.
    serial_items = Number(16, (8, 16))
    # Bits of a digit, for devices without ballots.
    serial_width = Number(4)
    # On CPUs: invocations of a workgroup. A power of two.
    run_group = Number(8, (4, 8, 16), found_on=LLVMPIPE)
    # On CPUs: the least keys of a run.
    run_least = Number(512, (256, 512, 1024, 2048), found_on=LLVMPIPE)
    # On CPUs: the most keys of a run. Fewer than 65,536: llvmpipe leaves longer loops.
    run_most = Number(32768, (8192, 16384, 32768), found_on=LLVMPIPE)
    # On CPUs: the number of runs of a row from which on runs have the least keys.
    run_count = Number(128, (32, 64, 128, 256), found_on=LLVMPIPE)
    # On CPUs: bits of a digit.
    run_width = Number(8, (7, 8), found_on=LLVMPIPE)
    # On CPUs: keys of a long run.
    long_run = Number(8192, (4096, 8192, 16384), found_on=LLVMPIPE)
    # On CPUs: bits of a digit of long runs.
    long_run_width = Number(11, (8, 11), found_on=LLVMPIPE)
    # On CPUs: keys of all rows, times those of one row, up to which each key counts the keys before it.
    short_work = Number(1 << 18, (1 << 14, 1 << 16, 1 << 18, 1 << 20), found_on=LLVMPIPE)
    # The same for rows that could be merged.
    short_work_merged = Number(1 << 13, (1 << 11, 1 << 13, 1 << 15), found_on=LLVMPIPE)
    # On CPUs: the least keys of rows that are merged.
    merge_short = Number(16, (8, 16, 32), found_on=LLVMPIPE)
    # On CPUs: the most keys of such rows. Fewer than 4,096: llvmpipe leaves the loops of longer rows too
    # early.
    merge_long = Number(4000, (1000, 2000, 4000), found_on=LLVMPIPE)
    # On CPUs: the least such rows.
    merge_rows = Number(4, (2, 4, 16), found_on=LLVMPIPE)


tuning = Tuning()


# ---- How rows are sorted: by which kernels, and with how large tiles -------------------------------------
#
# rows of up to `short` keys        an invocation for each key, which counts the keys before it
# rows that fit a tile              a workgroup for as many rows as fit
# longer rows                       one or three launches for each digit, over all tiles of all rows
#
# On CPU drivers, without barriers:
#
# rows of few keys                  an invocation for each key, which counts the keys before it
# many rows                         an invocation for each row, which merges
# few rows, longer rows             three launches for each digit, with an invocation for each run of keys


# Bytes of workgroup memory that a kernel needs besides tables and tile; and those of a sweep.
_OTHER_MEMORY, _OTHER_SWEEP_MEMORY = 6 << 10, 3 << 10
# Keys of an invocation in a sweep are at most as many as this, or a multiple of it.
_ITEM_STEP = 4
# Keys of longer rows are counted in 64 bits.
MAX_NARROW = 0xFFFFFFFF - (1 << 16)


class SortForm(Enum):
    """How rows are sorted."""

    SHORT = "an invocation for each key"
    BLOCKS = "a workgroup for as many rows as fit"
    MERGED = "an invocation for each row"
    TILES = "launches for each digit, with a workgroup for each tile"
    RUNS = "launches for each digit, with an invocation for each run"


# Those that have the keys, and what is moved with them, in memory between launches.
LONG_FORMS = (SortForm.TILES, SortForm.RUNS)


def choose_form(
    device: DeviceFacts, key: DType, count: int, length: int, *, has_payload: bool = False
) -> SortForm:
    """Return how `count` rows of `length` keys of a raw type are sorted; with a payload, `LONG_FORMS`."""
    size = count * length
    is_countable = size < 1 << 31
    if device.is_cpu:
        is_merged = count >= tuning.merge_rows and length <= tuning.merge_long
        work = tuning.short_work_merged if is_merged else tuning.short_work
        is_short = is_countable and (length < tuning.merge_short or size * length <= work)
        form = SortForm.SHORT if is_short else SortForm.MERGED if is_merged else SortForm.RUNS
        return SortForm.RUNS if has_payload else form
    if has_payload:
        return SortForm.TILES
    if length <= tuning.short and is_countable:
        return SortForm.SHORT
    return SortForm.TILES if choose_block(device, key, length) is None else SortForm.BLOCKS


def choose_block(device: DeviceFacts, key: DType, length: int) -> TileForm | None:
    """Return how a workgroup sorts rows of `length` keys with their positions; None if they do not fit."""
    for wanted in (tuning.small_group, tuning.small_items), (tuning.block_group, tuning.block_items):
        form = choose_tile(device, key, dtype.uint32, *wanted)
        if length <= form.tile:
            return form
    return None


def choose_tile(
    device: DeviceFacts, key: DType, payload: DType | None, group: int = 0, items: int = 0
) -> TileForm:
    """Return how a workgroup sorts a tile of keys with a payload, of these raw types.

    It has at most `group` invocations of `items` keys each. 0 means the number of `tuning`.
    """
    words = word_count(key) + (0 if payload is None else word_count(payload))
    group, subgroup = _choose_group(device, group or tuning.group)
    tables = 4 * (group // subgroup << tuning.width)
    if subgroup == 1 or tables + _OTHER_MEMORY > device.shared_memory:
        return _choose_serial_tile(device, words)
    items = items or tuning.items
    # each key has a register for its place, too
    items = min(items, tuning.registers // (words + 1), (device.shared_memory - _OTHER_MEMORY) // (4 * group))
    return TileForm(group, max(1, items), tuning.width, subgroup, device.has_arithmetic)


def choose_sweep_tile(device: DeviceFacts, key: DType, payload: DType | None, length: int) -> TileForm | None:
    """Return how a workgroup sorts a tile if one launch does a digit; None if three launches do it."""
    # an invocation that a check ends early would leave others waiting for ever
    if length > MAX_NARROW or not tuning.onesweep or is_checking():
        return None
    words = word_count(key) + (0 if payload is None else word_count(payload))
    group, subgroup = _choose_group(device, tuning.group)
    free = device.shared_memory - _OTHER_SWEEP_MEMORY - 4 * (group // subgroup << tuning.width)
    items = min(tuning.sweep_items, tuning.sweep_registers // words, free // (4 * group * words))
    if subgroup == 1 or items < 1:
        return None
    # Tiles of a row get equal shares. Each number of items is a kernel of its own, so there are few.
    tiles = -(-length // (group * items))
    even = -(-length // (group * tiles))
    items = min(items, -(-even // _ITEM_STEP) * _ITEM_STEP)
    return TileForm(group, items, tuning.width, subgroup, device.has_arithmetic)


def _choose_group(device: DeviceFacts, group: int) -> tuple[int, int]:
    """Return the invocations of a workgroup, and of a subgroup that votes: 1 if subgroups do not vote."""
    subgroup = (
        device.subgroup_size
        if device.has_ballot and device.has_one_subgroup_size and device.has_full_subgroups
        else 1
    )
    return max(min(group, device.max_group) // subgroup, 1) * subgroup, subgroup


def _choose_serial_tile(device: DeviceFacts, words: int) -> TileForm:
    """Return the form of a tile that is ranked without votes."""
    group, width = min(tuning.serial_group, device.max_group), tuning.serial_width
    free = device.shared_memory - _OTHER_MEMORY - 4 * (group << width)
    items = min(tuning.serial_items, free // (8 * words * group))
    return TileForm(group, max(1, items), width, 1, has_arithmetic=False)


@record
class RunPlan:
    """How rows are split into runs, one for each invocation.

    Attributes
    ----------
    group
        Invocations of a workgroup.
    width
        The most bits of a digit.
    runs
        Runs of each row.
    run, last
        Keys of a run, and of the last run of a row.
    """

    group: int
    width: int
    runs: int
    run: int
    last: int


def plan_runs(device: DeviceFacts, parts: tuple[int, ...], length: int) -> RunPlan:
    """Return the runs of rows of `length` keys; `parts` are the bits of the parts of their codes."""
    group = min(tuning.run_group, device.max_group)
    run = min(max(-(-length // tuning.run_count), tuning.run_least), tuning.run_most)
    # runs become shorter until all invocations of a workgroup have one
    groups = -(-length // (run * group))
    run = -(-length // (groups * group))
    width = tuning.long_run_width if run >= tuning.long_run else tuning.run_width
    bits = max(parts)
    runs = -(-length // run)
    return RunPlan(group, -(-bits // -(-bits // width)), runs, run, length - (runs - 1) * run)


def counter_type(length: int) -> DType:
    """Return the dtype that counts the keys of a row."""
    return dtype.uint32 if length <= MAX_NARROW else dtype.uint64


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
    return dtype.uint32 if counter_type(length) is dtype.uint32 else dtype.uvec2


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
    form = choose_form(device, order.raw, rows.count, rows.length, has_payload=has_payload)
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
    return choose_form(device_facts(), order.raw, rows.count, rows.length) in LONG_FORMS


def _sort_short(task: _Task) -> None:
    keys, rows = task.keys, task.rows
    if share_memory(keys, task.keys_to):
        keys = _copy(keys, task.graph)
    kernel = make_short_kernel(task.order, task.outputs, _SHORT_GROUP)
    kernel(keys, *task.written, rows.count, rows.length, graph=task.graph)


def _sort_blocks(device: DeviceFacts, task: _Task) -> None:
    rows = task.rows
    tile = choose_block(device, task.order.raw, rows.length)
    assert tile is not None
    together = min(tile.tile // rows.length, rows.count, MAX_ROWS)
    form = BlockForm(tile, task.order, together > 1, task.outputs)
    make_block_kernel(form)(task.keys, *task.written, rows.count, rows.length, together, graph=task.graph)


def _merge_rows(task: _Task) -> None:
    rows, order = task.rows, task.order
    scratch: list[AnyBuffer] = [function_buffer(2 * rows.size, order.raw)]
    if task.positions_to is not None:
        scratch.append(function_buffer(2 * rows.size, dtype.uint32))
    kernel = cpu.make_merge_kernel(cpu.MergeForm(order, task.outputs))
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
        self._counter = counter_type(task.rows.length)

    def run_by_tiles(self) -> None:
        """Queue all launches, over tiles of keys."""
        key, payload = self._order.raw, self._payload_type
        tile = choose_sweep_tile(self._device, key, payload, self._rows.length)
        if tile is None:
            self._count_tiles(choose_tile(self._device, key, payload))
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
        plan = plan_runs(self._device, order.part_bits, rows.length)
        shape = (rows.count, plan.runs, plan.run, plan.last)
        tile = TileForm(plan.group, 1, plan.width, 1, has_arithmetic=False)
        groups = -(-plan.runs // plan.group)
        counters: AnyBuffer = function_buffer(rows.count * groups * plan.group << plan.width, counter)
        totals: AnyBuffer = function_buffer(rows.count << plan.width, counter)
        for step in self._list_passes(tile):
            shift = step.digit.shift
            cpu.make_count_runs_kernel(step.form)(step.keys, counters, *shape, shift, graph=graph)
            cpu.make_sum_runs_kernel(plan.group, 1 << step.digit.bits, counter)(
                counters, totals, rows.count, plan.runs, graph=graph
            )
            move = cpu.make_move_runs_kernel(step.form)
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
            self._order, tile.width, tuning.histogram_group, tuning.histogram_items, tuning.histogram_rounds
        )
        chunks = -(-rows.length // form.chunk)
        onesweep.make_histogram_kernel(form)(
            self._task.keys, histograms, rows.count, rows.length, chunks, graph=graph
        )
        onesweep.make_starts_kernel(tile)(histograms, rows.count * len(digits), graph=graph)
        for step in self._list_passes(tile):
            board, next_board = boards[step.number % 2], boards[1 - step.number % 2]
            sweep = onesweep.make_sweep_kernel(onesweep.SweepForm(step.form, len(digits), tuning.window))
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
