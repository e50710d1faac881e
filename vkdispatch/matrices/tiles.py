"""Products by tiles in workgroup memory, for all types and all sizes."""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, float32, float64, int32, is_vector, to_vector, uint32
from vkdispatch.base.record import record
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import convert_value
from vkdispatch.matrices.factors import Factors, Variables, add_product, find_tile, make_zero, tile_count
from vkdispatch.shader.shader_function import ShaderFunction

# ---- The strips of tiles: what a workgroup copies of an operand to its memory at each step ---------------


# Bytes of a load of workgroup memory.
LOAD = 16
_BANKS = 4
# The most multiplications of a turn of the loop.
_LONGEST_TURN = 1024
_IN_VECTORS = (float32, int32, uint32, float64)


@record
class TileForm:
    """What a kernel is specialised for.

    Attributes
    ----------
    rows, columns, step
        Sizes of a tile, and how far along the length each step goes.
    height, width
        Rows and columns of an invocation.
    unroll
        How much of a step is unrolled.
    is_ragged
        Whether the last step may end beyond the length.
    band
        Rows of tiles that follow each other down a column.
    """

    factors: Factors
    rows: int
    columns: int
    step: int
    height: int
    width: int
    unroll: int
    is_ragged: bool
    band: int

    @property
    def group(self) -> int:
        """Invocations of a workgroup."""
        return self.rows // self.height * (self.columns // self.width)

    @property
    def in_turns(self) -> bool:
        """Whether a turn of the loop has two steps: if both are unrolled and fit the instruction cache."""
        return self.unroll >= self.step and 2 * self.step * self.height * self.width <= _LONGEST_TURN

    @property
    def run(self) -> int:
        """Factors of a load of workgroup memory: 16 bytes of them, if there are such vectors."""
        kind = self.factors.kind
        run = LOAD // kind.item_size
        whole = self.height % run == 0 == self.width % run
        return run if kind in _IN_VECTORS and whole else 1


@record(eq=False)
class Operand:
    """An operand of which a workgroup copies a strip.

    Attributes
    ----------
    source, arguments, views
        Where the elements come from.
    side
        Rows (or columns) of the tile.
    along
        Whether neighbours in memory are neighbours along the length.
    first, end
        First row (or column) of the tile, and the number of those of the matrix.
    length
        The length of the matrix.
    base, begin
        Index of the first element of the matrix, and where the sums begin.
    """

    source: Source
    arguments: Sequence[Any]
    views: Sequence[Any]
    side: int
    along: bool
    first: Any
    end: Any
    length: Any
    base: Any
    begin: Any


class Strip:
    """The copies of the strip of one operand: which elements each invocation loads, and where they go."""

    def __init__(self, form: TileForm, operand: Operand) -> None:
        """Prepare the places of all loads."""
        source, side, along, end = operand.source, operand.side, operand.along, operand.end
        first, length, base, begin = operand.first, operand.length, operand.base, operand.begin
        self._form, self._source, self._arguments, self._views = (
            form,
            source,
            operand.arguments,
            operand.views,
        )
        self._along, self._end = along, end
        self._run = form.run
        self._pitch = side + _BANKS if along else side
        self.size = form.step * self._pitch
        together = source.together
        self._count = side * form.step // together
        lane = vc.local_invocation_index()
        self._slots: list[tuple[Any, Any, Any]] = []
        for begin_slot in range(0, self._count, form.group):
            slot = lane + begin_slot
            if begin_slot + form.group > self._count:
                slot = slot % self._count
            slot = slot.to_register("slot")
            if along:
                runs = form.step // together
                k, side_place = (slot % runs) * together, slot // runs
                last = end - 1
            else:
                runs = side // together
                k, side_place = slot // runs, (slot % runs) * together
                last = end - together
            k = k.to_register("k")
            inside = vc.min(first + side_place, last)
            from_ = begin if form.is_ragged else begin + k
            start = base + inside * length + from_ if along else base + from_ * end + inside
            place = k * self._pitch + side_place
            self._slots.append((k, start.to_register("start"), place.to_register("place")))
        self._words: list[Any] = [None] * len(self._slots)
        self._positions: list[Any] = [0] * len(self._slots)
        self._inside: list[Any] = [None] * len(self._slots)
        kind = form.factors.kind
        element = to_vector(kind, self._run) if self._run > 1 else kind
        self.memory = vc.shared_buffer(element, 2 * self.size // self._run)

    def load(self, offset: Any, left: Any) -> None:
        """Load the elements of the step that begins at `offset`, from where on `left` are left."""
        if not self._form.is_ragged:
            for i, (_, start, _) in enumerate(self._slots):
                self._load(i, self._position(start, offset))
        elif not self._source.is_plain:
            for i, (k, start, _) in enumerate(self._slots):
                self._inside[i] = (k < left).to_register("inside")
                # beyond the length the first elements of the step are loaded, which exist
                step = offset + vc.select(self._inside[i], k, 0)
                self._load(i, self._position(start, step))
        else:
            # all steps but the last are whole
            buffer = (self._views or self._arguments)[0]
            if self._words[0] is None:
                self._words = [vc.new_register(buffer[0].var_type) for _ in self._slots]
            with vc.if_block(left >= self._form.step):
                for word, (k, start, _) in zip(self._words, self._slots, strict=True):
                    word[:] = buffer[self._position(start, offset + k)]
            with vc.else_block():
                for word, (k, start, _) in zip(self._words, self._slots, strict=True):
                    inside = (k < left).to_register("inside")
                    position = self._position(start, offset + vc.select(inside, k, 0))
                    word[:] = buffer[position]
                    with vc.if_block(k >= left):
                        word[:] = make_zeros(word.var_type)

    def _position(self, start: Any, step: Any) -> Any:
        position = start + (step if self._along else step * self._end)
        if self._source.together > 1:
            position = position // self._source.together
        return position.to_register("position")

    def _load(self, i: int, position: Any) -> None:
        """Load the words of a slot. Values of maps are computed later."""
        self._positions[i] = position
        if self._source.together > 1:
            self._words[i] = self._source.load(self._views, position)
        elif self._source.is_plain:
            self._words[i] = self._arguments[0][position].to_register()

    def keep(self, offset: Any) -> None:
        """Copy the loaded elements to workgroup memory, from element `offset` on."""
        kind = self._form.factors.kind
        for i, (_, _, place) in enumerate(self._slots):
            if (i + 1) * self._form.group > self._count:
                lane = vc.local_invocation_index()
                with vc.if_block(lane + i * self._form.group < self._count):
                    self._keep_slot(i, place + offset, kind)
            else:
                self._keep_slot(i, place + offset, kind)

    def _keep_slot(self, i: int, place: Any, kind: DType) -> None:
        source = self._source
        if source.together > 1:
            words = self._words[i] if isinstance(self._words[i], list) else [self._words[i]]
            values = source.values(self._arguments, self._positions[i], words)
        elif source.is_plain:
            values = [self._words[i]]
        else:
            values = [source.value(self._arguments, self._positions[i])]
        factors = []
        for value in values:
            factor = convert_value(value, kind)
            if self._inside[i] is not None:
                factor = vc.select(self._inside[i], factor, make_zero(kind))
            factors.append(factor)
        run = self._run
        if not self._along and run > 1 and len(factors) % run == 0:
            element = to_vector(kind, run)
            for j in range(0, len(factors), run):
                self.memory[(place + j) // run] = vc.to_dtype(element, *factors[j : j + run])
            return
        for number, factor in enumerate(factors):
            if run == 1:
                self.memory[place + number * (self._pitch if self._along else 1)] = factor
            elif self._along:
                # the pitch is a multiple of a run
                self.memory[place // run + number * (self._pitch // run)][place % run] = factor
            else:
                self.memory[(place + number) // run][(place + number) % run] = factor

    def factors(self, at: Any, k: Any, places: Sequence[Any]) -> list[Any]:
        """Return the factors at these places of the tile's side, in runs if memory is of runs."""
        run = self._run
        start = at * (self.size // run) + k * (self._pitch // run)
        if not isinstance(start, int):
            start = start.to_register("factors")
        values = [self.memory[place + start].to_register() for place in places]
        return values if run == 1 else [value[i] for value in values for i in range(run)]


def make_zeros(kind: DType) -> Any:
    """Return a word of zeros, or the zero of an element."""
    if is_vector(kind):
        return vc.to_dtype(kind, *[0] * kind.child_count)
    return make_zero(kind)


#                columns of b                     a workgroup makes a tile of the result; for each step along
#              +----+----+----+                   the length it copies a strip of a and one of b to workgroup
#       step k |    | ## |    |                   memory, both with neighbours along the tile's side
#              +----+----+----+
#   +---+---+  +----+----+----+                   an invocation has height x width sums in registers: of rows
#   |   |   |  |    |    |    |                   and columns in runs of 16 bytes, so that one load of memory
#   +---+---+  +----+----+----+                   has several factors, each used height (or width) times
#   | # |   |  |    | CC |    |
#   +---+---+  +----+----+----+                   while a step is computed, the elements of the next one are
#   |   |   |  |    |    |    |                   loaded to registers; with two copies of the strips, a step
#   +---+---+  +----+----+----+                   needs one barrier
#
# Tiles follow each other in bands of some rows of tiles, down each column of a band first, so that tiles
# computed at the same time share strips in the cache. Invariants: rows and columns beyond the last are
# copies of the last (and not stored), elements beyond the last step are zeros in both strips. One
# invocation adds up each sum in the order of the length, so the same input gives the same bits.
#
# The scheme is that of Volkov and Demmel (Benchmarking GPUs to tune dense linear algebra, 2008) with the
# double buffering of Nath, Tomov and Dongarra (An improved MAGMA GEMM for Fermi GPUs, 2010).


@store_results
def make_tile_kernel(form: TileForm) -> ShaderFunction:
    """Trace a kernel; its arguments are those of `form.factors`."""

    def body(*variables: Any) -> None:
        _Tracing(form, Variables(form.factors, variables)).run()

    name = f"matmul_{form.factors.kind.name}_{form.rows}x{form.columns}x{form.step}"
    return trace_kernel(
        name, body, form.factors.arguments, form.group, workgroups=tile_count(form.rows, form.columns)
    )


class _Tracing:
    """A kernel being traced."""

    def __init__(self, form: TileForm, variables: Variables) -> None:
        self._form, self._variables = form, variables
        number = variables.number
        factors = form.factors
        split, batch, row, column = find_tile(number, form.rows, form.columns, form.band)
        self._place = split, batch
        begin, end = variables.part(split)
        self._begin, self._end = begin, end
        length = variables.length
        a_base = (batch % number["a_batches"]) * number["rows"] * length
        b_base = (batch % number["b_batches"]) * number["columns"] * length
        a = Operand(
            source=factors.a,
            arguments=variables.a,
            views=variables.a_views,
            side=form.rows,
            along=not factors.transpose_a,
            first=row,
            end=number["rows"],
            length=length,
            base=a_base.to_register("a_base"),
            begin=begin,
        )
        self._a = Strip(form, a)
        b = Operand(
            source=factors.b,
            arguments=variables.b,
            views=variables.b_views,
            side=form.columns,
            along=factors.transpose_b,
            first=column,
            end=number["columns"],
            length=length,
            base=b_base.to_register("b_base"),
            begin=begin,
        )
        self._b = Strip(form, b)
        lane = vc.local_invocation_index()
        across = form.columns // form.width
        down, along = _find_position(lane, form.rows // form.height, across)
        self._rows = _places(down, form.height, form.rows, factors.kind.item_size)
        self._columns = _places(along, form.width, form.columns, factors.kind.item_size)
        self._loads = self._rows, self._columns
        if form.run > 1:
            self._loads = (
                [down + i * (form.rows // form.height) for i in range(form.height // form.run)],
                [along + i * (form.columns // form.width) for i in range(form.width // form.run)],
            )
        self._first = row, column

    def run(self) -> None:
        """Record the kernel's statements."""
        form, kind = self._form, self._form.factors.kind
        sums = [[make_zero(kind).to_register() for _ in self._columns] for _ in self._rows]
        left = (self._end - self._begin).to_register("left")
        strips = (self._a, self._b)
        offset = vc.to_dtype(left.var_type, 0).to_register("offset")
        at = vc.to_uint(0).to_register("at")
        for strip in strips:
            strip.load(offset, left)
        for strip in strips:
            strip.keep(0)
        vc.barrier()

        def turn(here: Any, there: Any) -> None:
            nonlocal offset
            offset += form.step
            for strip in strips:
                strip.load(offset, left - offset)
            self._add(here, sums)
            for strip in strips:
                strip.keep(there * strip.size)
            vc.barrier()

        if form.in_turns:
            # two steps in a turn have constant places in memory, which take fewer registers
            with vc.while_block(offset + 2 * form.step < left, rolled=True):
                turn(0, 1)
                turn(1, 0)
            with vc.if_block(offset + form.step < left):
                turn(0, 1)
                at[:] = 1
        else:
            with vc.while_block(offset + form.step < left):
                turn(at, 1 - at)
                at[:] = 1 - at
        self._add(at, sums)
        self._store(sums)

    def _add(self, at: Any, sums: list[list[Any]]) -> None:
        form = self._form
        if form.unroll >= form.step:
            for k in range(form.step):
                self._add_one(at, k, sums)
            return
        with vc.for_block(0, form.step, form.unroll) as first:
            for k in range(form.unroll):
                self._add_one(at, first + k, sums)

    def _add_one(self, at: Any, k: Any, sums: list[list[Any]]) -> None:
        a = self._a.factors(at, k, self._loads[0])
        b = self._b.factors(at, k, self._loads[1])
        for row, x in zip(sums, a, strict=True):
            for total, y in zip(row, b, strict=True):
                add_product(total, x, y, logical=self._form.factors.logical)

    def _store(self, sums: list[list[Any]]) -> None:
        number = self._variables.number
        first_row, first_column = self._first
        split, batch = self._place
        for place, totals in zip(self._rows, sums, strict=True):
            row = (first_row + place).to_register("row")
            with vc.if_block(row < number["rows"]):
                for side, total in zip(self._columns, totals, strict=True):
                    column = first_column + side
                    with vc.if_block(column < number["columns"]):
                        self._variables.store(split, batch, row, column, total)


def _find_position(lane: Any, down: int, across: int) -> tuple[Any, Any]:
    """Return the position of an invocation in a workgroup with `across` invocations side by side."""
    if down % 4 or across % 8:
        return (lane // across).to_register("down"), (lane % across).to_register("along")
    # 32 neighbours are 4 x 8, so that they load few factors; pairs of them share those of a row
    block = (lane // 32).to_register("block")
    row = (lane & 1) | (((lane >> 4) & 1) << 1)
    column = (lane >> 1) & 7
    blocks = across // 8
    return (block // blocks * 4 + row).to_register("down"), (block % blocks * 8 + column).to_register("along")


def _places(lane: Any, count: int, side: int, item: int) -> list[Any]:
    """Return the rows (or columns) of a tile that an invocation has: runs of one load, far apart."""
    run = min(max(LOAD // item, 1), count)
    stride = side // count * run
    first = (lane * run).to_register("first")
    return [first + (i // run * stride + i % run) for i in range(count)]
