"""`vd.transpose`, and its kernels."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import array_function
from vkdispatch.families.kernels import buffers, trace_kernel
from vkdispatch.families.operands import (
    ArrayLike,
    Operand,
    Output,
    OutputLike,
    parse_axes,
    parse_operand,
    prepare_output,
)
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import device_facts
from vkdispatch.families.values import word_type
from vkdispatch.rearrange.moves import Move, Numbers, find_largest_word, is_moved_as_words, pack_numbers
from vkdispatch.rearrange.moves import tile_tuning as tuning
from vkdispatch.shader.shader_function import ShaderFunction

# ---- The kernel that transposes planes of a few long rows or columns -------------------------------------
#
# Such as the colours of pixels.
#
#     interleaved    r g b r g b r g b r g b ...         one run of 3 words of 4 bytes is 4 pixels
#     planes         r r r r ...  g g g g ...  b b b b ...
#
# An invocation takes one word of each plane, which on the interleaved side are as many neighbouring words.
# These pass through workgroup memory, so that neighbouring invocations load and store neighbouring words.
# The elements of words are rearranged in registers. Invariant: the long side is a multiple of the elements
# of a word, so that every plane begins with a word of its own.


_GROUP = 256
_MAX_PLANES = 8


@record
class NarrowForm:
    """What a kernel is specialised for.

    Attributes
    ----------
    item, word
        Bytes of an element, and of the words that are moved.
    planes
        Number of planes.
    joins
        Whether the kernel interleaves planes.
    apart
        Whether each plane that is interleaved is a buffer of its own.
    group
        Invocations of a workgroup.
    numbers
        The numbers of a launch: `length`, the words of a plane; `total`, those of one plane of each batch.
    """

    item: int
    word: int
    planes: int
    joins: bool
    group: int
    numbers: Numbers
    apart: bool = False


def plan_interleave(planes: int, length: int, item: int) -> tuple[NarrowForm, tuple[int, ...]] | None:
    """Return the form and numbers of a launch that interleaves arrays of `length` elements, or None."""
    if not 2 <= planes <= _MAX_PLANES or item > 4 or not length:
        return None
    most = 16 if planes <= 4 else 8
    word = next((word for word in (16, 8, 4) if word <= most and not length * item % word), 0)
    if not word:
        return None
    words = length * item // word
    numbers, values = pack_numbers({"length": words, "total": words})
    return NarrowForm(item, word, planes, True, _GROUP, numbers, apart=True), values


@store_results
def make_narrow_kernel(form: NarrowForm) -> ShaderFunction:
    """Trace a kernel; its arguments are the result, the array (or arrays), and `form.numbers`."""
    move = Move(word_type(form.word))
    planes, group = form.planes, form.group
    names = [f"x{c}" for c in range(planes)] if form.apart else ["x"]

    def body(moved: Any, variables: Any) -> None:
        number = form.numbers.read(variables)
        memory = vc.shared_buffer(move.register_type, group * planes)
        lane = vc.local_invocation_index()
        first = (vc.workgroup_id().x * group).to_register("first")
        unit = vc.min(first + lane, number["total"] - 1).to_register("unit")
        batch = (unit // number["length"]).to_register("batch")
        place = (batch * (planes - 1) * number["length"] + unit).to_register("place")
        together = [lane + step * group for step in range(planes)]
        count = (number["total"] * planes).to_register("count")
        if form.joins:
            if form.apart:
                words = [move.load((moved[0], plane), unit) for plane in moved[1:]]
            else:
                words = [move.load(moved, place + number["length"] * c) for c in range(planes)]
            for c, value in enumerate(_join_planes(words, form)):
                memory[lane * planes + c] = value
            vc.barrier()
            for offset in together:
                with vc.if_block(first * planes + offset < count):
                    move.store(moved, first * planes + offset, memory[offset].to_register())
            return
        loaded = [move.load(moved, vc.min(first * planes + each, count - 1)) for each in together]
        for offset, value in zip(together, loaded, strict=True):
            memory[offset] = value
        vc.barrier()
        words = [memory[lane * planes + c].to_register() for c in range(planes)]
        with vc.if_block(first + lane < number["total"]):
            for c, value in enumerate(_split_planes(words, form)):
                move.store(moved, place + number["length"] * c, value)

    name = f"{'interleave' if form.joins else 'part'}_{planes}_{form.item}"
    arguments = [buffers(**dict.fromkeys(("result", *names), move.word)), form.numbers.arguments]
    return trace_kernel(
        name, body, arguments, group, workgroups=f"-(-{form.numbers.text('total')} // {group})"
    )


def _split_planes(words: Sequence[Any], form: NarrowForm) -> list[Any]:
    """Return a word of each plane, given the words of the interleaved side."""
    elements = _split_elements(words, form)
    return [_join_elements(elements[c :: form.planes], form) for c in range(form.planes)]


def _join_planes(words: Sequence[Any], form: NarrowForm) -> list[Any]:
    """Return the words of the interleaved side, given one of each plane."""
    planes = [_split_elements([word], form) for word in words]
    elements = [plane[i] for i in range(form.word // form.item) for plane in planes]
    run = form.word // form.item
    return [_join_elements(elements[first : first + run], form) for first in range(0, len(elements), run)]


def _split_elements(words: Sequence[Any], form: NarrowForm) -> list[tuple[Any, int]]:
    """Return elements in order, each as the 32 bits that hold it and its lowest bit in them."""
    parts = [word if form.word == 4 else word[i] for word in words for i in range(form.word // 4)]
    return [(part, shift) for part in parts for shift in range(0, 32, 8 * form.item)]


def _join_elements(elements: Sequence[tuple[Any, int]], form: NarrowForm) -> Any:
    """Return a word of these elements."""
    bits, count = 8 * form.item, 4 // form.item
    parts: list[Any] = []
    for first in range(0, len(elements), count):
        part: Any = None
        for k, (held, shift) in enumerate(elements[first : first + count]):
            moved = _move_bits(held, shift, bits * k, bits)
            part = moved if part is None else part | moved
        parts.append(part.to_register())
    return parts[0] if form.word == 4 else vc.to_dtype(word_type(form.word), *parts)


def _move_bits(held: Any, shift: int, wanted: int, bits: int) -> Any:
    """Return 32 bits of which `bits` from `wanted` on are those from `shift` on, and others 0."""
    if bits == 32:
        return held
    if shift == 32 - bits:
        alone = held >> shift
        return alone << wanted if wanted else alone
    if wanted == 32 - bits and not shift:
        return held << wanted
    if shift >= wanted:
        alone = held >> (shift - wanted) if shift > wanted else held
    else:
        alone = held << (wanted - shift)
    return alone & (((1 << bits) - 1) << wanted)


# ---- The kernels that transpose planes of words through workgroup memory ---------------------------------
#
#     rows of the input, read along ->        workgroup memory            rows of the result, written along ->
#     [ block | block | ... ]   each transposed      [ tile of blocks ]   [ block | block | ... ]
#     [ block | block | ... ]   in registers         [  read across   ]   [ block | block | ... ]
#
# A *block* is a square as wide as one load: 4 x 4 floats, 16 x 16 bytes. An invocation loads each row of a
# block as one word, transposes the block in registers, and stores its columns as words in workgroup memory.
# After a barrier, invocations take other blocks of the tile, neighbours along columns, and store their
# words. Invariants: neighbouring invocations load and store neighbouring words, all loads of an invocation
# come before its first store, and word p of column c lies at c * rows + (p ^ s(c)) in workgroup memory,
# where s makes neighbours use different banks in both directions.
#
# If lengths are not multiples of a block, or values pass through maps, a block is one *cell*: a run of
# words or a mapped value. Workgroup memory then has an odd pitch. Rows of the result may begin anywhere in
# a memory sector. A tile then has the rows of one more sector of the input, and stores the part of each row
# of the result that begins and ends with a sector:
#
#     rows in the tile      r - 8 ... r - 1 | r ... r + 63          (floats: 8 are a sector)
#     stored of column q    [ r - a(q) ... r - a(q) + 63 ]          r - a(q) is at the beginning of a sector


# Bytes that all banks of workgroup memory read at once.
_BANKS = 128


@record
class TileForm:
    """What a kernel is specialised for.

    Attributes
    ----------
    move
        What is moved. The words of blocks may hold several elements.
    item
        Bytes of an element, where the word is a row of a block; 0 for cells.
    run
        Words of a cell.
    group, columns, rows
        Invocations of a workgroup, and blocks (or cells) of a tile; powers of two.
    split
        The side that is two axes, swapped in the result ("columns") or in the input ("rows"); "" for none.
    strip
        Columns of tiles that are done row by row before the next ones; 0 for all.
    shift
        Words of a sector, if rows of the result do not begin with one; 0 stores them from their beginning.
    numbers
        The numbers of a launch: `rows` and `columns` in blocks, `batches`; the distances `x_row`, `x_batch`,
        `result_row` and `result_batch` in words; `outer` and `inner` of the split side in elements.
    """

    move: Move
    item: int
    run: int
    group: int
    columns: int
    rows: int
    split: str
    strip: int
    shift: int
    numbers: Numbers

    @property
    def more(self) -> int:
        """The rows of the input that a tile has more because of `shift`."""
        return -(-self.shift // self.run)


@store_results
def make_tile_kernel(form: TileForm) -> ShaderFunction:
    """Trace a kernel; its arguments are those of `form.move`, then `form.numbers`."""

    def body(moved: Any, variables: Any) -> None:
        tracing = _Tracing(form, moved, form.numbers.read(variables))
        if form.item:
            tracing.blocks()
        else:
            tracing.cells()

    name = f"transpose_{form.move.label}_{form.item or form.run}"
    arguments = [form.move.arguments, form.numbers.arguments]
    return trace_kernel(name, body, arguments, form.group, workgroups=_workgroups(form))


def _workgroups(form: TileForm) -> str:
    columns, rows, batches = (form.numbers.text(name) for name in ("columns", "rows", "batches"))
    return f"{batches} * -(-{columns} // {form.columns}) * -(-({rows} + {form.more}) // {form.rows})"


class _Tracing:
    """A kernel being traced."""

    def __init__(self, form: TileForm, variables: Sequence[Any], number: dict[str, Any]) -> None:
        self._form = form
        self._variables = variables
        self._number = number
        self._side = form.move.word.item_size // form.item if form.item and form.move.word else 1
        group = vc.workgroup_id().x
        across = (number["columns"] + (form.columns - 1)) // form.columns
        down = (number["rows"] + (form.more + form.rows - 1)) // form.rows
        self._batch = (group // (across * down)).to_register("batch")
        tile = (group - self._batch * (across * down)).to_register("tile")
        column, row = self._tile(tile, across, down)
        self._column = (column * form.columns).to_register("first_column")
        self._row = (row * form.rows).to_register("first_row")
        self._lane = vc.local_invocation_index()

    def _tile(self, tile: Any, across: Any, down: Any) -> tuple[Any, Any]:
        """Return the column and row of a tile: strips of some columns follow each other, each row by row.

        Workgroups that run together then have about as many rows of the input as of the result, which touches
        few pages of memory, and soon complete each other's sectors.
        """
        wide = self._form.strip
        if not wide:
            return tile % across, tile // across
        strip = (tile // (down * wide)).to_register("strip")
        rest = (tile - strip * (down * wide)).to_register("rest")
        width = vc.min(across - strip * wide, wide).to_register("width")
        row = (rest // width).to_register("row")
        return strip * wide + (rest - row * width), row

    # -- where rows begin, in words

    def _input_row(self, row: Any) -> Any:
        number = self._number
        if self._form.split == "rows":
            row = (row % number["inner"]) * number["outer"] + row // number["inner"]
        return self._batch * number["x_batch"] + row * number["x_row"]

    def _output_row(self, column: Any) -> Any:
        number = self._number
        if self._form.split == "columns":
            column = (column % number["inner"]) * number["outer"] + column // number["inner"]
        return self._batch * number["result_batch"] + column * number["result_row"]

    def _below(self, at: Any, side: int, row: Callable[[Any], Any], pitch: Any, *, split: bool) -> list[Any]:
        """Return where `side` rows begin, starting with row `at`."""
        if split:
            return [row(at + i) for i in range(side)]
        first = row(at).to_register()
        return [first, *((first + pitch * i) for i in range(1, side))]

    def _spread(self, width: int, height: int) -> list[tuple[Any, Any, int]]:
        """Return the places of an invocation in a tile as (k, p, step): place k of row p + step.

        All places have the same k, unless rows are wider than the workgroup.
        """
        group = self._form.group
        if group >= width:
            k, p = (self._lane % width).to_register(), (self._lane // width).to_register()
            return [(k, p, step) for step in range(0, height, group // width)]
        parts = [(self._lane + first).to_register() for first in range(0, width, group)]
        return [(k, 0, step) for step in range(height) for k in parts]

    # -- blocks

    def blocks(self) -> None:
        """Record the kernel for blocks."""
        form, side, number = self._form, self._side, self._number
        word = form.move.register_type
        memory = vc.shared_buffer(word, form.columns * side * form.rows)
        loaded: list[tuple[Any, Any, list[Any]]] = []
        for q, p_first, step in self._spread(form.columns, form.rows):
            p = p_first + step
            # invocations outside load the last block inside, which they do not store
            column = vc.min(self._column + q, number["columns"] - 1).to_register()
            row = vc.min(self._row + p, number["rows"] - 1).to_register()
            starts = self._below(
                row * side, side, self._input_row, number["x_row"], split=form.split == "rows"
            )
            words = [form.move.load(self._variables, start + column) for start in starts]
            loaded.append((q, p, words))
        for q, p, words in loaded:
            for j, column_word in enumerate(_transpose_block(words, form.item)):
                memory[(q * side + j) * form.rows + (p ^ self._swizzle(q))] = column_word
        vc.barrier()
        for p, q_first, step in self._spread(form.rows, form.columns):
            q = q_first + step
            column, row = (self._column + q).to_register(), (self._row + p).to_register()
            with vc.if_block(vc.all(column < number["columns"], row < number["rows"])):
                values = [
                    memory[(q * side + j) * form.rows + (p ^ self._swizzle(q))].to_register()
                    for j in range(side)
                ]
                starts = self._below(
                    column * side, side, self._output_row, number["result_row"], split=form.split == "columns"
                )
                for start, value in zip(starts, values, strict=True):
                    form.move.store(self._variables, start + row, value)

    def _swizzle(self, q: Any) -> Any:
        banks = max(1, _BANKS // self._form.move.register_type.item_size)
        shift = max(1, banks // (self._side * self._form.rows)).bit_length() - 1
        mask = min(self._form.rows, banks) - 1
        return (q >> shift) & mask

    # -- cells

    def cells(self) -> None:
        """Record the kernel for cells."""
        form, run, number, shift = self._form, self._form.run, self._number, self._form.shift
        width, height = form.columns * run, form.rows * run
        pitch = width | 1
        at_once = max(1, form.group // width)
        more = form.more
        high = -(-(form.rows + more) // at_once) * at_once
        memory = vc.shared_buffer(form.move.register_type, high * pitch)
        columns = (number["columns"] * run).to_register()
        rows = (number["rows"] * run).to_register()
        loaded: list[tuple[Any, Any]] = []
        for k, p, step in self._spread(width, high):
            column = vc.min(self._column * run + k, columns - 1)
            row = self._row + p + step
            row = vc.max(row, more) - more if more else row
            row = vc.min(row, number["rows"] - 1).to_register()
            index = (self._input_row(row) + column).to_register()
            loaded.append(((p + step) * pitch + k, form.move.load(self._variables, index)))
        for address, value in loaded:
            memory[address] = value
        vc.barrier()
        for k, q, step in self._spread(height, form.columns):
            column, row = (self._column + q + step).to_register(), (self._row * run + k).to_register()
            start = self._output_row(column)
            if shift:
                start = start.to_register()
                k = (k + (more * run - start % shift)).to_register()
                row = (self._row * run + k).to_register()
                inside = vc.all(column < number["columns"], row >= more * run, row < rows + more * run)
            else:
                inside = vc.all(column < number["columns"], row < rows)
            p, part = (k, 0) if run == 1 else (k // run, k % run)
            with vc.if_block(inside):
                value = memory[p * pitch + (q + step) * run + part].to_register()
                index = (start + row - more * run if shift else start + row).to_register()
                form.move.store(self._variables, index, value)


# ---- blocks transposed in registers


def _transpose_block(words: list[Any], item: int) -> list[Any]:
    """Return the columns of a block as words, given its rows; elements have `item` bytes."""
    size = words[0].var_type.item_size
    if item == size:
        return words
    rows = [[word] if size == 4 else [word[i] for i in range(size // 4)] for word in words]
    if item == 8:
        columns = [[row[2 * j + h] for row in rows for h in range(2)] for j in range(len(rows))]
    elif item == 4:
        columns = [[row[j] for row in rows] for j in range(len(rows))]
    elif item == 2:
        columns = _transpose_halves(rows)
    else:
        columns = _transpose_bytes(rows)
    kind = word_type(size)
    return [parts[0] if size == 4 else vc.to_dtype(kind, *parts) for parts in columns]


def _transpose_halves(rows: list[list[Any]]) -> list[list[Any]]:
    columns: list[list[Any]] = []
    for j in range(len(rows)):
        pairs = zip(rows[::2], rows[1::2], strict=True)
        if j % 2 == 0:
            columns.append([(a[j // 2] & 0xFFFF) | (b[j // 2] << 16) for a, b in pairs])
        else:
            columns.append([(a[j // 2] >> 16) | (b[j // 2] & 0xFFFF0000) for a, b in pairs])
    return columns


def _transpose_bytes(rows: list[list[Any]]) -> list[list[Any]]:
    """Transpose 4 x 4 bytes at a time: first bytes within pairs of rows, then pairs of bytes."""
    columns: list[list[Any]] = [[] for _ in rows]
    for first in range(0, len(rows), 4):
        for word in range(len(rows) // 4):
            a, b, c, d = (rows[first + i][word] for i in range(4))
            even, odd = _interleave_bytes(a, b)
            even_below, odd_below = _interleave_bytes(c, d)
            for j, (low, high) in enumerate(((even, even_below), (odd, odd_below))):
                columns[4 * word + j].append((low & 0xFFFF) | (high << 16))
                columns[4 * word + j + 2].append((low >> 16) | (high & 0xFFFF0000))
    return columns


def _interleave_bytes(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the even bytes of two words and the odd ones, each with those of `a` below those of `b`."""
    even = (a & 0x00FF00FF) | ((b & 0x00FF00FF) << 8)
    odd = ((a >> 8) & 0x00FF00FF) | (b & 0xFF00FF00)
    return even.to_register(), odd.to_register()


# Bytes from which on runs use whole memory sectors wherever they lie.
_LONG_RUN = 32
# Bytes up to which a plane stays in the cache until it is done.
_SMALL_PLANE = 2048
_BLOCK_WORDS = (16, 8, 4)
# Bytes of words that are stored by whole sectors; smaller ones would be loaded too often.
_SECTORED = (4, 8)
# Least length of the first and the last of three axes for planes of their own.
_WIDE_PLANE = 64
GATHER_GROUP = 256


@array_function
def transpose(
    x: ArrayLike,
    axes: Sequence[int] | None = None,
    *,
    out: Buffer[Any] | None = None,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return an array with its axes permuted, like `numpy.transpose`; the elements are moved.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments.
    axes
        Axis k of the result is axis `axes[k]` of `x`; negative ones count from the end. None reverses them.
    out
        A buffer for the result; None creates one. It must not be `x`.
    output_map
        A map for the results; its index is that in the result.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Raises
    ------
    TypeError
        An argument is invalid.
    ValueError
        `axes` does not name every axis once, or `out` does not match.

    Examples
    --------
    >>> vd.transpose(vd.asbuffer(np.array([[1, 2], [3, 4]], np.float32))).read(0)
    array([[1., 3.],
           [2., 4.]], dtype=float32)
    """
    array = parse_operand(x, "x")
    order = _parse_order(axes, len(array.shape))
    shape = tuple(array.shape[axis] for axis in order)
    target, buffer = prepare_output(out, output_map, shape, array.var_type, array.context, elsewhere=[array])
    if array.size:
        launch_transpose(array, order, target, buffer, graph)
    return buffer


def _parse_order(axes: object, dimensions: int) -> tuple[int, ...]:
    if axes is None:
        return tuple(reversed(range(dimensions)))
    order = parse_axes(axes, dimensions, "axes")
    if len(order) != dimensions:
        raise ArgumentValueError(
            f"axes: expected each of the {dimensions} axes once, got {axes!r}; None reverses them"
        )
    return order


def launch_transpose(
    array: Operand, order: Sequence[int], target: Output, buffer: Buffer[Any], graph: CommandGraph | None
) -> None:
    """Queue the launch that transposes an array."""
    words = is_moved_as_words(array, target)
    shape, axes = merge_axes(array.shape, order)
    item = array.var_type.item_size
    if axes == (1, 0, 2) and words and shape[2] * item < _LONG_RUN:
        item, shape, axes = item * shape[2], shape[:2], (1, 0)
    if axes in ((1, 0), (0, 2, 1), (2, 1, 0)) and not (words and item >= _LONG_RUN):
        if axes != (2, 1, 0) and words:
            narrow = _plan_narrow(shape, item)
            if narrow is not None:
                form, numbers = narrow
                make_narrow_kernel(form)(buffer, *array.arguments, *numbers, graph=graph)
                return
        plane = find_plane(shape, axes)
        if plane.batches == 1 or plane.rows * plane.columns * item > _SMALL_PLANE:
            tiles, numbers = _plan_tiles(Move(None, array.source, target.sink), words, item, plane)
            make_tile_kernel(tiles)(buffer, *array.arguments, *target.arguments, *numbers, graph=graph)
            return
    form_, numbers = _plan_gather(array, target, words, shape, axes, item)
    make_gather_kernel(*form_)(buffer, *array.arguments, *target.arguments, *numbers, graph=graph)


def merge_axes(shape: Sequence[int], order: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Leave out axes of one element and join neighbours that stay neighbours.

    Returns
    -------
    The shape of the input, and for each axis of the result the axis of the input.
    """
    runs: list[list[int]] = []
    kept = [axis for axis in range(len(shape)) if shape[axis] != 1]
    for axis in (axis for axis in order if shape[axis] != 1):
        if runs and kept.index(runs[-1][-1]) + 1 == kept.index(axis):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    inputs = sorted(runs)
    sizes = tuple(math.prod(shape[axis] for axis in run) for run in inputs)
    return sizes, tuple(inputs.index(run) for run in runs)


@record
class Plane:
    """What tiles transpose: `batches` planes of `rows` x `columns`, in elements.

    `x_row`, `x_batch`, `result_row` and `result_batch` are the distances of rows and of batches in the input
    and in the result. `split` names the side ("rows" or "columns") that is two axes, `outer` x `inner`, which
    swap; "" if there is none.
    """

    batches: int
    rows: int
    columns: int
    x_row: int
    x_batch: int
    result_row: int
    result_batch: int
    split: str = ""
    outer: int = 1
    inner: int = 1


def find_plane(shape: tuple[int, ...], axes: tuple[int, ...]) -> Plane:
    """Return the plane of one of the orders (1, 0), (0, 2, 1) and (2, 1, 0)."""
    if axes != (2, 1, 0):
        batches, rows, columns = shape if len(shape) == 3 else (1, *shape)
        return Plane(batches, rows, columns, columns, rows * columns, rows, rows * columns)
    first, middle, last = shape
    if min(first, last) >= _WIDE_PLANE:
        return Plane(middle, first, last, middle * last, last, middle * first, first)
    if first >= last:
        rows, columns = middle * first, last
        return Plane(1, rows, columns, columns, 0, rows, 0, "rows", middle, first)
    rows, columns = first, middle * last
    return Plane(1, rows, columns, columns, 0, rows, 0, "columns", middle, last)


def _plan_narrow(shape: tuple[int, ...], item: int) -> tuple[NarrowForm, tuple[int, ...]] | None:
    """Return the form and the numbers of a launch for narrow planes; None for other planes."""
    rows, columns = shape[-2:]
    planes, long = min(rows, columns), max(rows, columns)
    if item > 4 or planes > tuning.narrow or long < 4 * planes or not planes % max(2, 4 // item):
        return None
    most = _most_word() if planes <= 4 else 8
    word = next((word for word in _BLOCK_WORDS if word <= most and not long % (word // item)), 0)
    if not word:
        return None
    length = long * item // word
    total = length * (shape[0] if len(shape) == 3 else 1)
    numbers, values = pack_numbers({"length": length, "total": total})
    return NarrowForm(item, word, planes, rows < columns, tuning.narrow_group, numbers), values


def _plan_tiles(move: Move, words: bool, item: int, plane: Plane) -> tuple[TileForm, tuple[int, ...]]:
    run, block, shift = 1, 0, 0
    if words:
        size = find_largest_word(item)
        run = item // size
        fitting = (
            word
            for word in _BLOCK_WORDS
            if item <= word <= max(_most_word(), item)
            and not plane.rows % (word // item)
            and not plane.columns % (word // item)
        )
        block = next(fitting, 0) if run == 1 else 0
        if size in _SECTORED and tuning.sector:
            odd = plane.result_row * item % tuning.sector != 0
            shift = tuning.sector // size if odd else 0
            block = 0 if odd or block == item else block
        move = Move(word_type(block or size))
    held = move.register_type.item_size
    side = block // item if block else 1
    lengths = {
        "columns": plane.columns // side,
        "rows": plane.rows // side,
        "batches": plane.batches,
        "x_row": plane.x_row * run // side,
        "x_batch": plane.x_batch * run // side,
        "result_row": plane.result_row * run // side,
        "result_batch": plane.result_batch * run // side,
    }
    if plane.split:
        lengths |= {"outer": plane.outer, "inner": plane.inner}
    numbers, values = pack_numbers(lengths)
    if block:
        width = max(1, getattr(tuning, f"segment_{item}") // block)
        count = width * max(1, width // tuning.flat_1 if item == 1 else width)
    else:
        size = move.word.item_size if move.word is not None else held
        width = max(8, (tuning.cells if size < 4 else tuning.segment_4) // max(size, 4))
        width = min(width, 64 if words else 32)
        while width > 8 and width * (width * run + 1) * held > 1 << 15:
            width //= 2
        count = width * width * (tuning.tall if run == 1 else 1)
    across = min(width, _ceil_power_of_four(plane.columns // side))
    down = min(count // across, _ceil_power_of_four(plane.rows // side))
    across = min(count // down, _ceil_power_of_four(plane.columns // side))
    group = _choose_group(across, down, run)
    more = -(-shift // run)
    if more * 2 > down or (down + more) * (across * run + 1) * held > 1 << 15:
        shift = 0
    form = TileForm(
        move=move,
        item=item if block else 0,
        run=run,
        group=group,
        columns=across,
        rows=down,
        split=plane.split,
        strip=0 if run > 1 else tuning.strip,
        shift=shift,
        numbers=numbers,
    )
    return form, values


def _choose_group(across: int, down: int, run: int) -> int:
    """Return the invocations of a workgroup: a multiple or a part of a row of words of both sides."""
    group = run * across * down
    while group > max(run, min(tuning.group * 5 // 4, device_facts().max_group)):
        group //= 2
    return group


def _most_word() -> int:
    return min(tuning.most, 8) if device_facts().is_cpu else tuning.most


def _ceil_power_of_four(number: int) -> int:
    """Return the least power of four that is not below a number. Few sizes mean few kernels."""
    return 1 << (max(number - 1, 0).bit_length() + 1) // 2 * 2


# ---- gathering


def _plan_gather(
    array: Operand, target: Output, words: bool, shape: tuple[int, ...], axes: tuple[int, ...], item: int
) -> tuple[tuple[Move, int, Numbers], tuple[int, ...]]:
    """Return the form of a gathering kernel and the numbers of its launch."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    sizes = [shape[axis] for axis in axes]
    steps = [strides[axis] for axis in axes]
    move = Move(None, array.source, target.sink)
    if words:
        together = item * sizes[-1] if sizes and steps[-1] == 1 else item
        size = find_largest_word(together)
        move = Move(word_type(size))
        if sizes and steps[-1] == 1:
            sizes[-1] = together // size
            steps[:-1] = [step * item // size for step in steps[:-1]]
        elif item != size:
            sizes, steps = [*sizes, item // size], [*(step * item // size for step in steps), 1]
    count = len(sizes)
    named = {"total": math.prod(sizes)} | {f"size{k}": size for k, size in enumerate(sizes) if k}
    if count > 1 or (steps and steps[-1] != 1):
        named |= {f"step{k}": step for k, step in enumerate(steps)}
    numbers, values = pack_numbers(named)
    return (move, count, numbers), values


@store_results
def make_gather_kernel(move: Move, count: int, numbers: Numbers) -> ShaderFunction:
    """Trace the kernel whose invocations move one word each; `count` axes of the result have strides."""

    def body(moved: Any, variables: Any) -> None:
        number = numbers.read(variables)
        index = vc.global_invocation_id().x
        place: Any = index
        if len(number) > 1:
            rest, parts = index, []
            for k in range(count - 1, 0, -1):
                parts.append((rest % number[f"size{k}"]) * number[f"step{k}"])
                rest = (rest // number[f"size{k}"]).to_register()
            place = rest * number["step0"]
            for part in parts:
                place = place + part
            place = place.to_register()
        move.store(moved, index, move.load(moved, place))

    name, arguments = f"gather_{move.label}", [move.arguments, numbers.arguments]
    return trace_kernel(name, body, arguments, GATHER_GROUP, exec_size=numbers.text("total"))
