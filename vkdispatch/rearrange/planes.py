"""Kernels that transpose planes: in tiles, or narrow ones by words."""

from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.record import record
from vkdispatch.families.kernels import buffers, trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import word_type
from vkdispatch.rearrange.moves import Move, Numbers, pack_numbers
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
