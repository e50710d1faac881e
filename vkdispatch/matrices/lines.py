"""Products of a matrix and a vector on CPUs: lines of the matrix are loaded, and sums stay in registers.

    along: the elements of a sum are neighbours          across: the sums are neighbours
    row 0  [ lane 0 | lane 1 | ... | lane 0 | ... ]      0 [ lane 0 | lane 1 | ... | lane 0 | ... ]
    row 1  [ lane 0 | lane 1 | ... | lane 0 | ... ]      1 [ lane 0 | lane 1 | ... | lane 0 | ... ]

A workgroup is one subgroup of few lanes, which load words of 16 bytes. Along the length, a workgroup has
several rows and uses each word of the vector for all of them; lanes add up their sums by shuffles. Across,
each lane has the sums of some words of a line and uses each number of the vector for all of them. There are
neither barriers nor workgroup memory. The order of additions depends on sizes only: the same input gives the
same bits.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.record import record
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.sources import Source
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import convert_value, join_words, split_words
from vkdispatch.matrices.arithmetic import add_pairwise, add_product, add_sums, make_zero
from vkdispatch.matrices.factors import PREFIX, Factors, Variables
from vkdispatch.shader.shader_function import ShaderFunction


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


@memoize
def make_line_kernel(form: LineForm) -> ShaderFunction:
    """Trace a kernel; its arguments are those of `form.factors`."""

    def body(*variables: Any) -> None:
        tracing = _Tracing(form, Variables(form.factors, variables))
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


class _Tracing:
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
