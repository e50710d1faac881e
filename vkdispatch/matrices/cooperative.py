"""Products of half-precision matrices by cooperative matrices, which subgroups hold together.

    strips of a and b, in workgroup memory        a subgroup's part of the tile: height x width fragments
      +-----------------+                            b0   b1   b2   b3
      | rows of a's     |  8 halves a word     a0  [ c00  c01  c02  c03 ]     each fragment is a cooperative
      | memory, padded  |  + 1 word           a1  [ c10  ...            ]     matrix: c_ij += a_i b_j is one
      +-----------------+                      a2  [ ...                 ]     operation of the matrix units

As in `tiles`, a workgroup copies a strip of each operand for a step along the length, and the next step's
words are on their way to registers while this one is computed. The strips lie as the operands do in memory:
a transposed operand's fragments are loaded column by column instead. One word more than a row holds keeps
rows from sharing banks. Operands are halves in whole words of 16 bytes; what is not is evaluated and padded
first, see `packing`.

Invariants: beyond the last row and column is a copy of the last, beyond the last step zeros. Sums are
float32, each added up by one subgroup in the order of the length: the same input gives the same bits.
Results that are not stored as they are, or at edges, go through workgroup memory, a row of fragments at a
time, where each invocation takes 4 neighbours.
"""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import traced
from vkdispatch.arrays.remembering import remembered
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.matrices.factors import NUMBERS, PREFIX, Factors, Variables
from vkdispatch.matrices.tiles import tile_count, tile_place
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
        Sizes of the device's product.
    subgroup
        Invocations of a subgroup.
    ragged
        Whether the last step may reach beyond the length.
    whole
        Whether tiles have no elements beyond the result's.
    band, apart
        In which order workgroups make tiles; see `tile_place`.
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
    ragged: bool
    whole: bool
    band: int
    apart: int

    @property
    def group(self) -> int:
        """Invocations of a workgroup."""
        return self.rows // self.height * (self.columns // self.width) * self.subgroup


@remembered
def cooperative_kernel(form: CooperativeForm) -> ShaderFunction:
    """Trace a kernel.

    Its arguments are those of `form.factors`, and the words of a row of each operand after the numbers.
    """
    constant: Any = vc.Const
    pitches = [(f"{PREFIX}a_words", constant[dtype.uint32]), (f"{PREFIX}b_words", constant[dtype.uint32])]
    numbers = 1 + len(NUMBERS)

    def body(*variables: Any) -> None:
        known = Variables(form.factors, (*variables[:numbers], *variables[numbers + 2 :]))
        _Tracing(form, known, variables[numbers : numbers + 2]).run()

    name = f"matmul_{form.kind.name}_{form.rows}x{form.columns}x{form.step}"
    count = tile_count(form.rows, form.columns)
    given = form.factors.arguments
    arguments = [*given[:numbers], *pitches, *given[numbers:]]
    return traced(name, body, arguments, form.group, workgroups=count)


class _Strip:
    """The copies of one operand's strip, word by word."""

    def __init__(
        self,
        form: CooperativeForm,
        words: Any,
        side: int,
        along: bool,
        first: Any,
        end: Any,
        base: Any,
        pitch: Any,
    ) -> None:
        """Prepare the places of all loads.

        Parameters
        ----------
        side
            Rows (or columns) of the tile.
        along
            Whether neighbours in memory are neighbours along the length.
        first, end
            First row (or column), and how many the matrix has.
        base
            Word where the sums' first factors lie: of row 0, or in column 0.
        pitch
            Words of a row in memory.
        """
        self._form, self._words, self._along, self._row = form, words, along, pitch
        height, width = (side, form.step) if along else (form.step, side)
        runs = width // WORD
        self.pitch = runs + 1
        self.size = height * self.pitch
        self._count = height * runs
        lane = vc.local_invocation_index()
        self._slots: list[tuple[Any, Any, Any]] = []
        for begin in range(0, self._count, form.group):
            slot = lane + begin
            if begin + form.group > self._count:
                slot = slot % self._count
            slot = slot.to_register("slot")
            row, column = (slot // runs).to_register("row"), (slot % runs).to_register("column")
            if along:
                k = column * WORD
                start = base + vc.min(first + row, end - 1) * pitch
            else:
                k = row
                # rows of words may be longer than the matrix is wide
                start = base + vc.min(first // WORD + column, pitch - 1)
            place = row * self.pitch + column
            k = k.to_register("k")
            self._slots.append((k, start.to_register("start"), place.to_register("place")))
        self._loaded: list[Any] = []

    def load(self, offset: Any, left: Any) -> None:
        """Load the words of the step that begins `offset` further on; `left` are left from there on."""
        self._loaded = []
        for k, start, _ in self._slots:
            inside = (k < left).to_register("inside") if self._form.ragged else None
            step = offset + (k if inside is None else vc.select(inside, k, 0))
            word = self._words[start + (step // WORD if self._along else step * self._row)].to_register()
            self._loaded.append((inside, word))

    def keep(self, memory: Any, begin: int) -> None:
        """Copy what was loaded to workgroup memory, from word `begin` on."""
        for i, ((_, _, place), (inside, word)) in enumerate(zip(self._slots, self._loaded, strict=True)):
            value = word if inside is None else vc.select(inside, word, vc.to_uvec4(0, 0, 0, 0))
            if (i + 1) * self._form.group > self._count:
                with vc.if_block(vc.local_invocation_index() + i * self._form.group < self._count):
                    memory[place + begin] = value
            else:
                memory[place + begin] = value

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
        split, batch, row, column = tile_place(number, form.rows, form.columns, form.band, form.apart)
        self._place = split, batch, row, column
        begin, end = variables.part(split)
        self._left = (end - begin).to_register("left")
        self._strips = [
            self._strip(*given, variables.length, batch, begin)
            for given in (
                (variables.a[0], form.rows, not factors.transpose_a, row, number["rows"], "a", pitches[0]),
                (
                    variables.b[0],
                    form.columns,
                    factors.transpose_b,
                    column,
                    number["columns"],
                    "b",
                    pitches[1],
                ),
            )
        ]
        staged = form.m * form.width // _SUMS * (form.group // form.subgroup)
        size = sum(strip.size for strip in self._strips)
        self._memory = vc.shared_buffer(dtype.uvec4, size if form.whole else max(size, staged))
        across = form.columns // form.width
        subgroup = vc.subgroup_id()
        self._row = ((subgroup // across) * form.height).to_register("subgroup_row")
        self._column = ((subgroup % across) * form.width).to_register("subgroup_column")

    def _strip(
        self, words: Any, side: int, along: bool, first: Any, end: Any, name: str, pitch: Any, *given: Any
    ) -> _Strip:
        length, batch, begin = given
        number = self._variables.number
        height = end if along else length
        base = (batch % number[f"{name}_batches"]) * height * pitch
        base = base + (begin // WORD if along else begin * pitch)
        return _Strip(self._form, words, side, along, first, end, base.to_register("base"), pitch)

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
        if form.whole:
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
        """Store sums one by one, by way of workgroup memory."""
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
