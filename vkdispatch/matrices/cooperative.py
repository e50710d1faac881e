"""Products of half-precision matrices by cooperative matrices, which subgroups hold together.

    strips of a and b, in workgroup memory        a subgroup's part of the tile: height x width fragments
      +-----------------+                            b0   b1   b2   b3
      | rows of a's     |  8 halves a word     a0  [ c00  c01  c02  c03 ]     each fragment is a cooperative
      | memory, padded  |  + 1 word           a1  [ c10  ...            ]     matrix: c_ij += a_i b_j is one
      +-----------------+                      a2  [ ...                 ]     operation of the matrix units

As in `tiles`, a workgroup copies a strip of each operand for a step along the length, and loads the words of
the next step to registers while it computes this one. The strips lie as the operands do in memory: fragments
of a transposed operand are loaded column by column. Rows are padded by one word, so that they do not share
banks. Operands are halves in whole words of 16 bytes; others are evaluated and padded first, see `product`.

Invariants: rows and columns beyond the last are copies of the last, elements beyond the last step are zeros.
Sums are float32, and one subgroup adds up each in the order of the length: the same input gives the same
bits. Results that a map or a conversion changes, or at edges, go through workgroup memory, a row of fragments
at a time, where each invocation takes 4 neighbours.
"""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.families.kernels import numbers, trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.matrices.factors import Factors, Variables, find_tile, tile_count
from vkdispatch.shader.shader_function import ShaderFunction

WORD = 8  # halves of a load
_SUMS = 4  # sums of a word


@record
class CooperativeForm:
    """What a kernel is specialised for.

    Attributes
    ----------
    factors
        Operands are of words (uvec4).
    kind
        What the words hold: float16 or bfloat16.
    rows, columns, step
        Sizes of a tile, and how far along the length each step goes.
    height, width
        Rows and columns of a subgroup.
    m, n, k
        Sizes of the product that the device has.
    subgroup
        Invocations of a subgroup.
    is_ragged
        Whether the last step may end beyond the length.
    exact_rows, exact_columns
        Whether no tile has rows, or columns, beyond those of the matrices.
    plain
        Whether sums are stored as they are, or as float16.
    band, apart
        The order in which workgroups make tiles; see `find_tile`.
    """

    factors: Factors
    kind: DType
    rows: int
    columns: int
    step: int
    height: int
    width: int
    m: int
    n: int
    k: int
    subgroup: int
    is_ragged: bool
    exact_rows: bool
    exact_columns: bool
    plain: bool
    band: int
    apart: int

    @property
    def stores_matrices(self) -> bool:
        """Whether whole matrices are stored, not their elements one by one."""
        return self.plain and self.exact_rows and self.exact_columns

    @property
    def group(self) -> int:
        """Invocations of a workgroup."""
        return self.rows // self.height * (self.columns // self.width) * self.subgroup


@store_results
def make_cooperative_kernel(form: CooperativeForm) -> ShaderFunction:
    """Trace a kernel.

    Its arguments are those of `form.factors`, with the words of a row of each operand after the numbers.
    """

    def body(result: Any, sizes: Any, pitches: Any, *rest: Any) -> None:
        _Tracing(form, Variables(form.factors, (result, sizes, *rest)), pitches).run()

    name = f"matmul_{form.kind.name}_{form.rows}x{form.columns}x{form.step}"
    count = tile_count(form.rows, form.columns)
    result, sizes, *rest = form.factors.arguments
    arguments = [result, sizes, numbers("matmul_a_words", "matmul_b_words"), *rest]
    return trace_kernel(name, body, arguments, form.group, workgroups=count)


@record(eq=False)
class _Operand:
    """An operand of which a workgroup copies a strip.

    Attributes
    ----------
    name
        "a" or "b".
    words
        The buffer of its words.
    side
        Rows (or columns) of the tile.
    along
        Whether neighbours in memory are neighbours along the length.
    exact
        Whether no tile reaches beyond the matrix.
    first, end
        First row (or column) of the tile, and the number of those of the matrix.
    pitch
        Words of a row in memory.
    """

    name: str
    words: Any
    side: int
    along: bool
    exact: bool
    first: Any
    end: Any
    pitch: Any


class _Strip:
    """The copies of the strip of one operand, word by word."""

    def __init__(self, form: CooperativeForm, operand: _Operand, base: Any) -> None:
        """Prepare the places of all loads; `base` is the first word of row (or column) 0 of the sums."""
        side, along, exact, pitch = operand.side, operand.along, operand.exact, operand.pitch
        first, end = operand.first, operand.end
        self._form, self._words, self._along, self._row = form, operand.words, along, pitch
        height, width = (side, form.step) if along else (form.step, side)
        runs = width // WORD
        self.pitch = runs + 1
        self.size = height * self.pitch
        self._count, self._rows = height * runs, form.group // runs
        lane = vc.local_invocation_index()
        # if a workgroup takes whole rows, the words of an invocation lie below each other
        regular = form.group % runs == 0 and self._count % form.group == 0
        slots = [lane + i for i in range(0, self._count, form.group)]
        if self._count % form.group:
            slots[-1] = slots[-1] % self._count
        # of each word: place along the length, where that of the first step lies, where it goes
        self._slots: list[tuple[Any, Any, Any]] = []
        row = column = start = place = lane
        for i, slot in enumerate(slots):
            if i == 0 or not regular:
                row, column = (slot // runs).to_register("row"), (slot % runs).to_register("column")
                place = (row * self.pitch + column).to_register("place")
            below = i * self._rows if regular else 0
            if along and not (exact and regular and i):
                own = first + (row + below)
                start = base + (own if exact else vc.min(own, end - 1)) * pitch + column
                start = start.to_register("start")
            elif not along and (i == 0 or not regular):
                start = first // WORD + column
                # rows of words may be longer than those of the matrix
                start = base + (start if exact else vc.min(start, pitch - 1)) + row * pitch
                start = start.to_register("start")
            moved = below and not (along and not exact)
            self._slots.append(
                (
                    column * WORD if along else row + below,
                    start + pitch * below if moved else start,
                    place + below * self.pitch if below else place,
                )
            )
        self._loaded: list[Any] = []

    def load(self, offset: Any, left: Any) -> None:
        """Load the words of the step that begins at `offset`, from where on `left` are left."""
        step = (offset // WORD if self._along else offset * self._row).to_register("step")
        if not self._form.is_ragged:
            self._loaded = [self._words[start + step].to_register() for _, start, _ in self._slots]
            return
        if not self._loaded:
            self._loaded = [vc.new_register(dtype.uvec4) for _ in self._slots]
        # all steps but the last are whole
        with vc.if_block(left >= self._form.step):
            for word, (_, start, _) in zip(self._loaded, self._slots, strict=True):
                word[:] = self._words[start + step]
        with vc.else_block():
            for word, (k, start, _) in zip(self._loaded, self._slots, strict=True):
                word[:] = vc.to_uvec4(0, 0, 0, 0)
                with vc.if_block(k < left):
                    word[:] = self._words[start + step]

    def keep(self, memory: Any, begin: int) -> None:
        """Copy the loaded words to workgroup memory, from word `begin` on."""
        for i, ((_, _, place), word) in enumerate(zip(self._slots, self._loaded, strict=True)):
            if (i + 1) * self._form.group > self._count:
                with vc.if_block(vc.local_invocation_index() + i * self._form.group < self._count):
                    memory[place + begin] = word
            else:
                memory[place + begin] = word

    def fragment(self, memory: Any, begin: int, use: str, at: Any, k: Any) -> Any:
        """Load the fragment at row (or column) `at` of the tile, `k` into the step."""
        form = self._form
        rows, columns = (form.m, form.k) if use == "a" else (form.k, form.n)
        matrix = vc.cooperative_matrix(form.kind, rows, columns, use)
        place = at * self.pitch + k // WORD if self._along else k * self.pitch + at // WORD
        layout = "row" if self._along == (use == "a") else "column"
        matrix.load(memory, place + begin, self.pitch, layout)
        return matrix


class _Tracing:
    """A kernel being traced."""

    def __init__(self, form: CooperativeForm, variables: Variables, pitches: Sequence[Any]) -> None:
        self._form, self._variables = form, variables
        number, factors = variables.number, form.factors
        split, batch, row, column = find_tile(number, form.rows, form.columns, form.band, form.apart)
        self._place = split, batch, row, column
        begin, end = variables.part(split)
        self._left = (end - begin).to_register("left")
        a = _Operand(
            name="a",
            words=variables.a[0],
            side=form.rows,
            along=not factors.transpose_a,
            exact=form.exact_rows,
            first=row,
            end=number["rows"],
            pitch=pitches[0],
        )
        b = _Operand(
            name="b",
            words=variables.b[0],
            side=form.columns,
            along=factors.transpose_b,
            exact=form.exact_columns,
            first=column,
            end=number["columns"],
            pitch=pitches[1],
        )
        self._strips = [self._make_strip(operand, batch, begin) for operand in (a, b)]
        staged = form.m * form.width // _SUMS * (form.group // form.subgroup)
        size = sum(strip.size for strip in self._strips)
        self._memory = vc.shared_buffer(dtype.uvec4, size if form.stores_matrices else max(size, staged))
        across = form.columns // form.width
        subgroup = vc.subgroup_id()
        self._row = ((subgroup // across) * form.height).to_register("subgroup_row")
        self._column = ((subgroup % across) * form.width).to_register("subgroup_column")

    def _make_strip(self, operand: _Operand, batch: Any, begin: Any) -> _Strip:
        height = operand.end if operand.along else self._variables.length
        batches = self._variables.number[f"{operand.name}_batches"]
        base = (batch % batches) * height * operand.pitch
        base = base + (begin // WORD if operand.along else begin * operand.pitch)
        return _Strip(self._form, operand, base.to_register("base"))

    def run(self) -> None:
        """Record the kernel's statements."""
        form, left = self._form, self._left
        sums = [
            [vc.cooperative_matrix(dtype.float32, form.m, form.n) for _ in range(form.width // form.n)]
            for _ in range(form.height // form.m)
        ]
        offset = vc.to_dtype(left.var_type, 0).to_register("offset")
        begins = (0, self._strips[0].size)
        for strip in self._strips:
            strip.load(offset, left)
        for strip, begin in zip(self._strips, begins, strict=True):
            strip.keep(self._memory, begin)
        vc.barrier()
        with vc.while_block(offset + form.step < left):
            offset += form.step
            for strip in self._strips:
                strip.load(offset, left - offset)
            self._add(begins, sums)
            vc.barrier()
            for strip, begin in zip(self._strips, begins, strict=True):
                strip.keep(self._memory, begin)
            vc.barrier()
        self._add(begins, sums)
        if form.stores_matrices:
            self._store_matrices(sums)
        else:
            vc.barrier()
            self._store_values(sums)

    def _add(self, begins: tuple[int, int], sums: list[list[Any]]) -> None:
        form = self._form
        a, b = self._strips
        for k in range(0, form.step, form.k):
            fragments = [
                a.fragment(self._memory, begins[0], "a", self._row + i * form.m, k) for i in range(len(sums))
            ]
            for j in range(len(sums[0])):
                fragment = b.fragment(self._memory, begins[1], "b", self._column + j * form.n, k)
                for row, left in zip(sums, fragments, strict=True):
                    row[j][:] = vc.matrix_multiply_add(left, fragment, row[j])

    def _store_matrices(self, sums: list[list[Any]]) -> None:
        """Store all sums as they are, or as halves."""
        split, batch, first_row, first_column = self._place
        number, factors = self._variables.number, self._form.factors
        kind = dtype.float32 if factors.partial else factors.sink.out_type
        matrix = split * number["batches"] + batch
        begin = (matrix * number["rows"] + first_row + self._row) * number["columns"]
        begin = (begin + first_column + self._column).to_register("begin")
        for i, row in enumerate(sums):
            for j, total in enumerate(row):
                value = total if kind is dtype.float32 else total.to_dtype(kind)
                index = begin + (number["columns"] * (i * self._form.m) + j * self._form.n)
                value.store(self._variables.result, index, number["columns"])

    def _store_values(self, sums: list[list[Any]]) -> None:
        """Store sums one by one, through workgroup memory."""
        form, memory, number = self._form, self._memory, self._variables.number
        split, batch, first_row, first_column = self._place
        runs = form.width // _SUMS
        words = form.m * runs
        begin = (vc.subgroup_id() * words).to_register("words")
        lane = vc.subgroup_invocation_id()
        for i, fragments in enumerate(sums):
            for j, total in enumerate(fragments):
                total.store(memory, begin + j * (form.n // _SUMS), runs)
            vc.barrier()
            with vc.for_block(lane, words, form.subgroup) as word:
                row = (first_row + self._row + i * form.m + word // runs).to_register("row")
                column = first_column + self._column + (word % runs) * _SUMS
                column = column.to_register("column")
                values = memory[begin + word].to_register()
                with vc.if_block(row < number["rows"]):
                    for c in range(_SUMS):
                        with vc.if_block(column + c < number["columns"]):
                            total = vc.uint_bits_to_float(values[c])
                            self._variables.store(split, batch, row, column + c, total)
            vc.barrier()
