"""Products by tiles in workgroup memory, for all types and all sizes.

                 columns of b                     a workgroup makes a tile of the result; for each step along
               +----+----+----+                   the length it copies a strip of a and one of b to workgroup
        step k |    | ## |    |                   memory, both with neighbours along the tile's side
               +----+----+----+
    +---+---+  +----+----+----+                   an invocation has height x width sums in registers: of rows
    |   |   |  |    |    |    |                   and columns in runs of 16 bytes, so that one load of memory
    +---+---+  +----+----+----+                   has several factors, each used height (or width) times
    | # |   |  |    | CC |    |
    +---+---+  +----+----+----+                   while a step is computed, the elements of the next one are
    |   |   |  |    |    |    |                   loaded to registers; with two copies of the strips, a step
    +---+---+  +----+----+----+                   needs one barrier

Tiles follow each other in bands of some rows of tiles, down each column of a band first, so that tiles
computed at the same time share strips in the cache. Invariants: rows and columns beyond the last are copies
of the last (and not stored), elements beyond the last step are zeros in both strips. One invocation adds up
each sum in the order of the length, so the same input gives the same bits.

The scheme is that of Volkov and Demmel (Benchmarking GPUs to tune dense linear algebra, 2008) with the double
buffering of Nath, Tomov and Dongarra (An improved MAGMA GEMM for Fermi GPUs, 2010).
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.tuning import memoize
from vkdispatch.matrices.arithmetic import add_product, make_zero
from vkdispatch.matrices.factors import Variables, find_tile, tile_count
from vkdispatch.matrices.strips import LOAD, Operand, Strip, TileForm
from vkdispatch.shader.shader_function import ShaderFunction


@memoize
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
