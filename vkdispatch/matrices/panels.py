"""Products on CPUs: sums in registers, of panels that lie in the order in which they are read.

    a's panel: rows of an invocation's words      b's panel: a word of each lane, for each place
                                                  along the length
      k    0..3   4..7                              k  lane 0  lane 1  ...  lane 7
    row 0 [word] [word] ...                         0 [word]  [word]        [word]
    row 1 [word] [word] ...                         1 [word]  [word]        [word]

A workgroup is one subgroup of few lanes and makes a tile: each lane has all rows of the panel of a, and the
columns of its words of b. For each step along the length, which is a word of a, lane l loads the words of
rows l, l + lanes, ...; the other lanes get the numbers of a row by shuffles from a constant lane. So each
load, which CPUs do lane by lane, serves many multiplications, and there are neither barriers nor workgroup
memory.

A first launch evaluates each operand into panels: numbers of the type of the sums in words of 16 bytes, with
zeros beyond the matrix. So the kernel of the product depends on the type only, and checks bounds only where
it stores. It stores plain sums, of which `factors` makes the result. Each sum is added up in the order of
the length, so the same input gives the same bits.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType, bool_, uvec4
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.kernels import buffers, numbers, trace_kernel
from vkdispatch.families.operands import Operand, Sink, plain_source
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import convert_value, join_words, split_words, word_count
from vkdispatch.matrices.factors import PREFIX, Factors, Sizes, Variables, add_product, make_zero
from vkdispatch.shader.shader_function import ShaderFunction

_WORD = 16
_GROUP = 256


@record
class PanelForm:
    """What the kernel of a product is specialised for.

    Attributes
    ----------
    kind
        The type of sums.
    logical
        Whether products are of booleans.
    lanes
        Invocations of a workgroup.
    height, width
        Words of each lane: of a for a step, of b for a place along the length.
    """

    kind: DType
    logical: bool
    lanes: int
    height: int
    width: int

    @property
    def step(self) -> int:
        """The numbers of a word, which are those of a step along the length."""
        return _WORD // self.kind.item_size

    @property
    def rows(self) -> int:
        """Rows of a tile."""
        return self.lanes * self.height

    @property
    def columns(self) -> int:
        """Columns of a tile."""
        return self.lanes * self.width * self.step


def count_panel_words(form: PanelForm, sizes: Sizes, *, of_b: bool) -> int:
    """Return the number of words of the panels of an operand."""
    steps = -(-sizes.length // form.step)
    if of_b:
        return sizes.b_batches * -(-sizes.columns // form.columns) * steps * form.columns
    return sizes.a_batches * -(-sizes.rows // form.rows) * steps * form.rows


# ---- the product ---------------------------------------------------------------------------------


@store_results
def make_product_kernel(form: PanelForm) -> ShaderFunction:
    """Trace a kernel; its arguments are the sums, `NUMBERS` and the panels of both operands."""
    words = plain_source(uvec4)
    sink = Sink(bool_ if form.logical else form.kind, form.kind)
    factors = Factors(words, words, False, False, form.kind, sink, partial=True)

    def body(*variables: Any) -> None:
        _Tracing(form, Variables(factors, variables)).run()

    across, down = f"-(-{PREFIX}columns // {form.columns})", f"-(-{PREFIX}rows // {form.rows})"
    groups = f"{PREFIX}splits * {PREFIX}batches * {across} * {down}"
    name = f"matmul_{form.kind.name}_panels"
    return trace_kernel(name, body, factors.arguments, form.lanes, workgroups=groups)


class _Tracing:
    """A kernel being traced."""

    def __init__(self, form: PanelForm, variables: Variables) -> None:
        self._form, self._variables = form, variables
        number = variables.number
        self._lane = vc.local_invocation_index()
        group = vc.workgroup_id().x
        self._split = (group % number["splits"]).to_register("split")
        rest = (group // number["splits"]).to_register("rest")
        # the panel of b stays in the cache while those of a change
        down = ((number["rows"] + (form.rows - 1)) // form.rows).to_register("down")
        across = ((number["columns"] + (form.columns - 1)) // form.columns).to_register("across")
        self._row, rest = (rest % down).to_register("row"), (rest // down).to_register("rest")
        self._column, self._batch = (rest % across).to_register("column"), (rest // across).to_register()
        steps = ((variables.length + (form.step - 1)) // form.step).to_register("steps")
        begin, end = variables.part(self._split)
        first = (begin // form.step).to_register("first")
        self._steps = ((end - begin + (form.step - 1)) // form.step).to_register("steps")
        a = ((self._batch % number["a_batches"]) * down + self._row) * steps + first
        b = ((self._batch % number["b_batches"]) * across + self._column) * steps + first
        self._a = (a * form.rows + self._lane).to_register("a")
        self._b = (b * form.columns + self._lane).to_register("b")

    def run(self) -> None:
        """Record the kernel's statements."""
        form = self._form
        count = form.width * form.step
        sums = [[make_zero(form.kind).to_register() for _ in range(count)] for _ in range(form.rows)]
        with vc.for_block(0, self._steps):
            self._add(sums)
            self._a += form.rows
            self._b += form.columns
        self._store(sums)

    def _add(self, sums: list[list[Any]]) -> None:
        form, lanes = self._form, self._form.lanes
        a, b = self._variables.a[0], self._variables.b[0]
        rows = [a[self._a + i * lanes].to_register() for i in range(form.height)]
        columns = [
            [
                value.to_register()
                for j in range(form.width)
                for value in self._numbers(b[self._b + (k * form.width + j) * lanes].to_register())
            ]
            for k in range(form.step)
        ]
        for row, totals in enumerate(sums):
            word = rows[row // lanes]
            if lanes > 1:
                word = [vc.subgroup_shuffle(word[i], row % lanes) for i in range(4)]
            factors = [value.to_register() for value in self._numbers(word)]
            for i, total in enumerate(totals):
                for x, others in zip(factors, columns, strict=True):
                    add_product(total, x, others[i], logical=form.logical)

    def _numbers(self, word: Any) -> list[Any]:
        """Return the numbers of a word."""
        count = word_count(self._form.kind)
        words = [word[i] for i in range(4)]
        return [join_words(self._form.kind, words[i : i + count]) for i in range(0, 4, count)]

    def _store(self, sums: list[list[Any]]) -> None:
        form, number = self._form, self._variables.number
        first = (self._column * form.columns + self._lane * form.step).to_register("first")
        for i, totals in enumerate(sums):
            row = (self._row * form.rows + i).to_register("row")
            with vc.if_block(row < number["rows"]):
                for j, total in enumerate(totals):
                    word, place = divmod(j, form.step)
                    column = (first + (word * form.lanes * form.step + place)).to_register("column")
                    with vc.if_block(column < number["columns"]):
                        self._variables.store(self._split, self._batch, row, column, total)


# ---- the panels ----------------------------------------------------------------------------------


@record
class PackingForm:
    """What a kernel that evaluates an operand is specialised for.

    Attributes
    ----------
    panels
        The form of the product.
    of_b
        Whether the operand is b.
    along
        Whether neighbours in memory are neighbours along the length.
    """

    source: Source
    panels: PanelForm
    of_b: bool
    along: bool


def queue_panels(
    array: Operand, form: PanelForm, sizes: Sizes, *, of_b: bool, swapped: bool, graph: CommandGraph | None
) -> Buffer[Any]:
    """Queue a launch that evaluates an operand into panels, and return the panels.

    Parameters
    ----------
    of_b
        Whether the operand is b.
    swapped
        Whether rows and columns of the operand are swapped.
    """
    count = count_panel_words(form, sizes, of_b=of_b)
    target: Buffer[Any] = function_buffer(count, uvec4, context=array.context)
    side = sizes.columns if of_b else sizes.rows
    along = of_b is swapped
    neighbours = sizes.length if along else side
    whole = along is not of_b and array.source.together == form.step and neighbours % form.step == 0
    source = array.source if whole else array.source.elementwise()
    kernel = make_packing_kernel(PackingForm(source, form, of_b, along))
    kernel(target, count, side, sizes.length, *array.arguments, *(array.views if whole else ()), graph=graph)
    return target


@store_results
def make_packing_kernel(form: PackingForm) -> ShaderFunction:
    """Trace a kernel; its arguments are the panels, three sizes, those of the source, and its views."""
    source = form.source

    def body(target: Any, count: Any, side: Any, length: Any, arguments: Any, views: Any) -> None:
        word = (vc.workgroup_id().x * _GROUP + vc.local_invocation_index()).to_register("word")
        with vc.if_block(word < count):
            packing = _Packing(form, side, length, arguments, views)
            values = packing.values(*packing.place(word))
            target[word] = vc.to_uvec4(*[part for value in values for part in split_words(value)])

    named = [
        *buffers(matmul_panels=uvec4),
        *numbers("matmul_count", "matmul_side", "matmul_length"),
        source.parameters,
        buffers(**{f"{PREFIX}{position}": view for position, view in source.views}),
    ]
    groups = f"-(-{PREFIX}count // {_GROUP})"
    return trace_kernel(f"matmul_panels_of_{form.panels.kind.name}", body, named, _GROUP, workgroups=groups)


class _Packing:
    """An operand in a kernel that is being traced."""

    def __init__(self, form: PackingForm, side: Any, length: Any, arguments: Any, views: Any) -> None:
        self._form, self._side, self._length = form, side, length
        self._arguments, self._views = arguments, views

    def place(self, word: Any) -> tuple[Any, Any, Any]:
        """Return where the matrix of a word begins, and the row (or column) and place of its first number.

        The words of a panel form lines: one for each step along the length, or (of b) for each place.
        """
        panels, of_b = self._form.panels, self._form.of_b
        step, tile = panels.step, panels.columns if of_b else panels.rows
        line = tile // step if of_b else tile
        words = ((self._length + (step - 1)) // step * tile).to_register("words")
        across = ((self._side + (tile - 1)) // tile).to_register("across")
        panel, place = (word // words).to_register("panel"), (word % words).to_register("place")
        s = (panel % across) * tile + (place % line) * (step if of_b else 1)
        k = place // line * (1 if of_b else step)
        base = (panel // across) * self._side * self._length
        return base.to_register("base"), s.to_register("s"), k.to_register("k")

    def values(self, base: Any, s: Any, k: Any) -> list[Any]:
        """Return the numbers of a word: zeros beyond the matrix."""
        source, panels = self._form.source, self._form.panels
        if source.together > 1:
            # a word lies within the matrix as a whole, or not at all
            here, start = self._position(base, s, k)
            start = (start // source.together).to_register("start")
            loaded = source.values(self._arguments, start, source.load(self._views, start))
            return [self._number(here, value) for value in loaded]
        values = []
        for i in range(panels.step):
            here, at = self._position(base, s + i, k) if self._form.of_b else self._position(base, s, k + i)
            values.append(self._number(here, source.value(self._arguments, at)))
        return values

    def _position(self, base: Any, s: Any, k: Any) -> tuple[Any, Any]:
        """Return whether there is a number, and its position; if there is none, that of the first number."""
        here = vc.all(s < self._side, k < self._length).to_register("here")
        place = s * self._length + k if self._form.along else k * self._side + s
        return here, (base + vc.select(here, place, 0)).to_register("position")

    def _number(self, here: Any, value: Any) -> Any:
        kind = self._form.panels.kind
        return vc.select(here, convert_value(value, kind), make_zero(kind)).to_register()
