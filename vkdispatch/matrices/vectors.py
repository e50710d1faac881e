"""Products of a matrix and a vector, and of many small matrices."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import int32
from vkdispatch.base.record import record
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import convert_value, join_words, split_words
from vkdispatch.matrices.factors import (
    GROUP,
    PREFIX,
    Factors,
    Variables,
    add_lanes,
    add_pairwise,
    add_product,
    add_sums,
    make_zero,
    store_sum,
)
from vkdispatch.shader.shader_function import ShaderFunction

# ---- Products of many small matrices: one invocation computes each element of the result -----------------


_GROUP = 256


@store_results
def make_small_kernel(factors: Factors) -> ShaderFunction:
    """Trace a kernel; its arguments are those of `factors`, which have no parts and load single elements."""

    def body(*variables: Any) -> None:
        known = Variables(factors, variables)
        number, length = known.number, known.length
        rows, columns = number["rows"], number["columns"]
        index = (vc.workgroup_id().x * _GROUP + vc.local_invocation_index()).to_register("index")
        with vc.if_block(index.to_dtype(int32) < known.result.shape.w):
            column = (index % columns).to_register("column")
            rest = (index // columns).to_register("rest")
            row, batch = (rest % rows).to_register("row"), (rest // rows).to_register("batch")
            a_base = ((batch % number["a_batches"]) * rows * length).to_register("a_base")
            b_base = ((batch % number["b_batches"]) * columns * length).to_register("b_base")
            total = make_zero(factors.kind).to_register("total")
            with vc.for_block(0, length) as k:
                a = a_base + (k * rows + row if factors.transpose_a else row * length + k)
                b = b_base + (column * length + k if factors.transpose_b else k * columns + column)
                x = factors.a.value(known.a, a.to_register("at_a"))
                y = factors.b.value(known.b, b.to_register("at_b"))
                x, y = convert_value(x, factors.kind), convert_value(y, factors.kind)
                add_product(total, x.to_register(), y.to_register(), logical=factors.logical)
            store_sum(factors, known.result, known.rest, index, total)

    groups = f"-(-{PREFIX}result.size // {_GROUP})"
    return trace_kernel(
        f"matmul_{factors.kind.name}_small", body, factors.arguments, _GROUP, workgroups=groups
    )


# ---- Products of a matrix and a vector on CPUs -----------------------------------------------------------
#
# Lines of the matrix are loaded, and sums stay in registers.
#
#     along: the elements of a sum are neighbours          across: the sums are neighbours
#     row 0  [ lane 0 | lane 1 | ... | lane 0 | ... ]      0 [ lane 0 | lane 1 | ... | lane 0 | ... ]
#     row 1  [ lane 0 | lane 1 | ... | lane 0 | ... ]      1 [ lane 0 | lane 1 | ... | lane 0 | ... ]
#
# A workgroup is one subgroup of few lanes, which load words of 16 bytes. Along the length, a workgroup has
# several rows and uses each word of the vector for all of them; lanes add up their sums by shuffles.
# Across, each lane has the sums of some words of a line and uses each number of the vector for all of them.
# There are neither barriers nor workgroup memory. The order of additions depends on sizes only: the same
# input gives the same bits.


@record
class LineForm:
    """What a kernel is specialised for.

    Attributes
    ----------
    has_matrix_b
        Whether the matrix is `b` and the vector is `a`.
    along
        Whether neighbours in memory are elements of one sum.
    lanes
        Invocations of a workgroup.
    count
        Rows of a workgroup (along), or words of a line of each lane (across).
    """

    factors: Factors
    has_matrix_b: bool
    along: bool
    lanes: int
    count: int

    @property
    def sums(self) -> int:
        """Sums of a workgroup."""
        if self.along:
            return self.count
        source = self.factors.b if self.has_matrix_b else self.factors.a
        return self.count * self.lanes * source.together


@store_results
def make_line_kernel(form: LineForm) -> ShaderFunction:
    """Trace a kernel; its arguments are those of `form.factors`."""

    def body(*variables: Any) -> None:
        tracing = _LineTracing(form, Variables(form.factors, variables))
        if form.along:
            tracing.along()
        else:
            tracing.across()

    side = f"{PREFIX}{'columns' if form.has_matrix_b else 'rows'}"
    groups = f"{PREFIX}splits * {PREFIX}batches * -(-{side} // {form.sums})"
    name = f"matmul_{form.factors.kind.name}_lines_{'along' if form.along else 'across'}"
    return trace_kernel(name, body, form.factors.arguments, form.lanes, workgroups=groups)


class _Operand:
    """An operand in a kernel that is being traced."""

    def __init__(self, form: LineForm, source: Source, arguments: Any, views: Any, batches: Any) -> None:
        self.batches, self.together = batches, source.together
        self._kind = form.factors.kind
        self._source, self._arguments, self._views = source, arguments, views

    def values(self, position: Any) -> list[Any]:
        """Load the numbers of one load from a position on."""
        source = self._source
        position = position // source.together if source.together > 1 else position
        position = position.to_register("position")
        words = source.load(self._views, position) if source.together > 1 else ()
        values = source.values(self._arguments, position, words)
        return [convert_value(value, self._kind).to_register() for value in values]


class _LineTracing:
    """A kernel being traced."""

    def __init__(self, form: LineForm, variables: Variables) -> None:
        self._form, self._variables = form, variables
        number, factors = variables.number, form.factors
        group = vc.workgroup_id().x
        self._split = (group % number["splits"]).to_register("split")
        block = (group // number["splits"]).to_register("block")
        self._begin, self._end = variables.part(self._split)
        self._side = number["columns" if form.has_matrix_b else "rows"]
        blocks = ((self._side + (form.sums - 1)) // form.sums).to_register("blocks")
        self._batch = (block // blocks).to_register("batch")
        self._first = ((block % blocks) * form.sums).to_register("first")
        self._lane = vc.local_invocation_index()
        a = _Operand(form, factors.a, variables.a, variables.a_views, number["a_batches"])
        b = _Operand(form, factors.b, variables.b, variables.b_views, number["b_batches"])
        self._matrix, self._vector = (b, a) if form.has_matrix_b else (a, b)
        base = (self._batch % self._matrix.batches) * self._side * variables.length
        self._base = base.to_register("base")
        self._start = ((self._batch % self._vector.batches) * variables.length).to_register("start")

    def _add(self, total: Any, matrix: Any, vector: Any) -> None:
        x, y = (vector, matrix) if self._form.has_matrix_b else (matrix, vector)
        add_product(total, x, y, logical=self._form.factors.logical)

    def along(self) -> None:
        """Record a kernel whose lanes share rows."""
        form, together = self._form, self._matrix.together
        places = [(self._first + i).to_register("place") for i in range(form.count)]
        # rows beyond the last are copies of it
        rows = [
            (self._base + vc.min(place, self._side - 1) * self._variables.length).to_register("row")
            for place in places
        ]
        totals = [[make_zero(form.factors.kind).to_register() for _ in range(together)] for _ in rows]
        first = self._begin + self._lane * together
        with vc.for_block(first, self._end, form.lanes * together) as k:
            vector = self._vector.values(self._start + k)
            for row, sums in zip(rows, totals, strict=True):
                for total, x, y in zip(sums, self._matrix.values(row + k), vector, strict=True):
                    self._add(total, x, y)
        for place, sums in zip(places, totals, strict=True):
            total = self._add_lanes(add_pairwise(sums, logical=form.factors.logical))
            with vc.if_block(vc.all(self._lane == 0, place < self._side)):
                self._variables.store_at(self._split, self._batch * self._side + place, total)

    def _add_lanes(self, total: Any) -> Any:
        """Add up the sums of all lanes."""
        distance = self._form.lanes // 2
        while distance:
            words = [vc.subgroup_shuffle_xor(word, distance) for word in split_words(total)]
            other = join_words(self._form.factors.kind, words)
            total = add_sums(total, other, logical=self._form.factors.logical).to_register()
            distance //= 2
        return total

    def across(self) -> None:
        """Record a kernel in which each lane has its own sums."""
        form, together = self._form, self._matrix.together
        places = [
            (self._first + (self._lane + i * form.lanes) * together).to_register("place")
            for i in range(form.count)
        ]
        # words beyond the last are copies of it
        safe = [(self._base + vc.min(place, self._side - together)).to_register("safe") for place in places]
        totals = [[make_zero(form.factors.kind).to_register() for _ in range(together)] for _ in places]
        with vc.for_block(self._begin, self._end) as k:
            line = (k * self._side).to_register("line")
            (number,) = self._vector.values(self._start + k)
            for place, sums in zip(safe, totals, strict=True):
                for total, value in zip(sums, self._matrix.values(place + line), strict=True):
                    self._add(total, value, number)
        for place, sums in zip(places, totals, strict=True):
            with vc.if_block(place < self._side):
                for i, total in enumerate(sums):
                    self._variables.store_at(self._split, self._batch * self._side + place + i, total)


# ---- Products of a matrix and a vector, at the speed of memory -------------------------------------------
#
#   along: the elements of a sum are neighbours          across: the sums are neighbours
#   [ 0 1 2 3 0 1 2 3 | 0 1 2 3 ... ]  lanes share       0 [ sums of a load | next invocation | ... ]
#   [ 0 1 2 3 0 1 2 3 | 0 1 2 3 ... ]  a row             1 [ ...  lanes share the length, each has every    ]
#                                                        2 [ ...  so many-th row, and as many sums as a load ]
#
# Each invocation has a sum for each element of a load. Lanes add up theirs in workgroup memory, one half
# onto the other. If there are few sums, several workgroups share the length; see `factors`. The order of
# additions depends on sizes only: the same input gives the same bits.


@record
class VectorForm:
    """What a kernel is specialised for.

    Attributes
    ----------
    has_matrix_b
        Whether the matrix is `b` and the vector is `a`.
    along
        Whether neighbours in memory are elements of one sum.
    lanes
        Invocations that share a sum.
    unroll
        Loads in flight.
    """

    factors: Factors
    has_matrix_b: bool
    along: bool
    lanes: int
    unroll: int


@store_results
def make_vector_kernel(form: VectorForm) -> ShaderFunction:
    """Trace a kernel; its arguments are those of `form.factors`."""

    def body(*variables: Any) -> None:
        tracing = _Tracing(form, Variables(form.factors, variables))
        if form.along:
            tracing.along()
        else:
            tracing.across()

    side = f"{PREFIX}{'columns' if form.has_matrix_b else 'rows'}"
    if form.along:
        groups = f"-(-({PREFIX}batches * {side}) // {GROUP // form.lanes})"
    else:
        source = form.factors.b if form.has_matrix_b else form.factors.a
        groups = f"{PREFIX}batches * -(-{side} // {GROUP // form.lanes * source.together})"
    name = f"matmul_{form.factors.kind.name}_vector_{'along' if form.along else 'across'}"
    arguments = form.factors.arguments
    return trace_kernel(name, body, arguments, GROUP, workgroups=f"{PREFIX}splits * {groups}")


class _Tracing:
    """A kernel being traced."""

    def __init__(self, form: VectorForm, variables: Variables) -> None:
        self._form, self._variables = form, variables
        number, factors = variables.number, form.factors
        group = vc.workgroup_id().x
        self._split = (group % number["splits"]).to_register("split")
        self._block = (group // number["splits"]).to_register("block")
        self._begin, self._end = variables.part(self._split)
        self._lane = vc.local_invocation_index()
        a = (factors.a, variables.a, variables.a_views, number["a_batches"])
        b = (factors.b, variables.b, variables.b_views, number["b_batches"])
        self._matrix, self._vector = (b, a) if form.has_matrix_b else (a, b)
        self._side = number["columns" if form.has_matrix_b else "rows"]

    def _load(self, operand: Any, position: Any) -> Any:
        """Load the elements of one load. Return None for a map, whose values are computed later."""
        source: Source = operand[0]
        if source.together > 1:
            return source.load(operand[2], position)
        return operand[1][0][position].to_register() if source.is_plain else None

    def _values(self, operand: Any, position: Any, words: Any) -> list[Any]:
        source, kind = operand[0], self._form.factors.kind
        if source.together > 1:
            values = source.values(operand[1], position, words)
        else:
            values = [words if source.is_plain else source.value(operand[1], position)]
        return [convert_value(value, kind) for value in values]

    def _add(self, totals: list[Any], x: Any, y: Any, inside: Any) -> None:
        factors = self._form.factors
        for total, left, right in zip(totals, x, y, strict=True):
            nothing = make_zero(factors.kind)
            one = vc.select(inside, left, nothing).to_register()
            two = vc.select(inside, right, nothing).to_register()
            first, second = (two, one) if self._form.has_matrix_b else (one, two)
            add_product(total, first, second, logical=factors.logical)

    def along(self) -> None:
        """Record a kernel whose lanes share rows."""
        form, number, length = self._form, self._variables.number, self._variables.length
        together = self._matrix[0].together
        own = (self._lane % form.lanes).to_register("own")
        sums = number["batches"] * self._side
        place = (self._block * (GROUP // form.lanes) + self._lane // form.lanes).to_register("place")
        kept = (place < sums).to_register("kept")
        place = vc.select(kept, place, 0).to_register("place")
        batch, row = (place // self._side).to_register("batch"), (place % self._side).to_register("row")
        base = (((batch % self._matrix[3]) * self._side + row) * length).to_register("base")
        start = ((batch % self._vector[3]) * length).to_register("start")
        totals = [make_zero(form.factors.kind).to_register() for _ in range(together)]
        stride = form.lanes * together
        first = self._begin + own * together
        with vc.for_block(first, self._end, stride * form.unroll) as k:
            loads = []
            for u in range(form.unroll):
                at = (k + u * stride).to_register("at")
                inside = (at < self._end).to_register("inside")
                at = vc.select(inside, at, self._begin).to_register("at")
                matrix = ((base + at) // together).to_register("matrix")
                vector = ((start + at) // together).to_register("vector")
                words = self._load(self._matrix, matrix), self._load(self._vector, vector)
                loads.append((inside, matrix, vector, words))
            for inside, matrix, vector, words in loads:
                x = self._values(self._matrix, matrix, words[0])
                y = self._values(self._vector, vector, words[1])
                self._add(totals, x, y, inside)
        total = add_pairwise(totals, logical=form.factors.logical)
        total = add_lanes(total, self._lane, form.lanes, GROUP, form.factors)
        with vc.if_block(vc.all(kept, own == 0)):
            self._variables.store_at(self._split, place, total)

    def across(self) -> None:
        """Record a kernel whose lanes share the length, and whose neighbours have neighbouring sums."""
        form, length = self._form, self._variables.length
        together = self._matrix[0].together
        wide = GROUP // form.lanes
        own = (self._lane // wide).to_register("own")
        blocks = ((self._side + (wide * together - 1)) // (wide * together)).to_register("blocks")
        batch = (self._block // blocks).to_register("batch")
        column = ((self._block % blocks) * wide + self._lane % wide) * together
        column = column.to_register("column")
        safe = vc.min(column, self._side - together).to_register("safe")
        base = ((batch % self._matrix[3]) * self._side * length + safe).to_register("base")
        start = ((batch % self._vector[3]) * length).to_register("start")
        totals = [make_zero(form.factors.kind).to_register() for _ in range(together)]
        with vc.for_block(self._begin + own, self._end, form.lanes * form.unroll) as k:
            loads = []
            for u in range(form.unroll):
                at = (k + u * form.lanes).to_register("at")
                inside = (at < self._end).to_register("inside")
                at = vc.select(inside, at, self._begin).to_register("at")
                matrix = ((base + at * self._side) // together).to_register("matrix")
                vector = (start + at).to_register("vector")
                words = self._load(self._matrix, matrix), self._load(self._vector, vector)
                loads.append((inside, matrix, vector, words))
            for inside, matrix, vector, words in loads:
                x = self._values(self._matrix, matrix, words[0])
                (y,) = self._values(self._vector, vector, words[1])
                self._add(totals, x, [y] * together, inside)
        memory = vc.shared_buffer(form.factors.kind, GROUP * together) if form.lanes > 1 else None
        for number, total in enumerate(totals):
            if memory is not None:
                memory[self._lane + number * GROUP] = total
        if memory is not None:
            vc.barrier()
        half = form.lanes // 2
        while memory is not None and half:
            with vc.if_block(own < half):
                for number in range(together):
                    here, there = self._lane + number * GROUP, self._lane + (number * GROUP + half * wide)
                    memory[here] = add_sums(memory[here], memory[there], logical=form.factors.logical)
            vc.barrier()
            half //= 2
        with vc.if_block(vc.all(own == 0, column < self._side)):
            for number, total in enumerate(totals):
                value = total if memory is None else memory[self._lane + number * GROUP]
                self._variables.store_at(self._split, batch * self._side + column + number, value)
