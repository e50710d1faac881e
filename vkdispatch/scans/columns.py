"""Scans along an axis that is not the last: neighbouring invocations scan neighbouring columns.

columns            0 1 2 3 ... 31
lane 0   rows 0..7     | | | |         each invocation loads a few rows of its column, then scans them
lane 1   rows 8..15    | | | |         then lanes exchange their totals through workgroup memory
...                                    and so on, turn by turn, down the axis
segment 1          ...                 if columns are few, several workgroups share one, in three launches:
                                       reduce each segment; scan the partial results; scan each segment

If rows are whole vectors, a column is one of vectors. Sizes alone decide which invocation combines what.
"""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, bool_, uint32
from vkdispatch.base.record import record
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.operands import Sink
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.scans.arguments import ScanOp, Variables, declare_arguments, name_variables
from vkdispatch.scans.lookback import Algebra, Item, apply_prefix, fold
from vkdispatch.shader.shader_function import ShaderFunction

NUMBERS = ("blocks", "last", "segments", "span", "length", "inner", "turns")


@record
class ColumnsForm:
    """What a kernel is specialised for.

    Attributes
    ----------
    mode
        "scan", or "reduce": the total of a segment is stored as a partial result.
    group, side
        Invocations of a workgroup, and the columns that they scan.
    rows, together
        Rows that an invocation scans at once, and elements of a vector.
    is_reverse, is_exclusive
        The direction, and whether each result leaves its own element out.
    flag_type
        dtype of the flags that mark where the user's segments begin; None without segments.
    is_carried
        Whether there are partial results of the segments before.
    """

    mode: str
    group: int
    side: int
    rows: int
    together: int
    is_reverse: bool
    is_exclusive: bool
    flag_type: DType | None
    is_carried: bool
    # columns do not look back
    board = ()

    @property
    def is_segmented(self) -> bool:
        """Whether segments begin elsewhere than at the first row."""
        return self.flag_type is not None


@store_results
def make_columns_kernel(form: ColumnsForm, operation: ScanOp, source: Source, sink: Sink) -> ShaderFunction:
    """Trace a kernel. `arguments` says which arguments it has."""
    arguments = declare_arguments(form, operation.kind, source, sink, NUMBERS)

    def body(*variables: Any) -> None:
        named = name_variables(form, sink, variables, NUMBERS)
        _ColumnsTrace(form, operation, source, named).run()

    name = f"{operation.name}_columns_{form.mode}"
    return trace_kernel(name, body, arguments, form.group, "scan_blocks * scan_segments")


class _ColumnsTrace:
    """A kernel that is being traced."""

    def __init__(self, form: ColumnsForm, operation: ScanOp, source: Source, variables: Variables) -> None:
        self._form = form
        self._source = source
        self._algebra = Algebra(operation, is_segmented=form.is_segmented)
        self._own = variables

    def run(self) -> None:
        """Record the statements."""
        form, number, algebra = self._form, self._own.number, self._algebra
        index = vc.local_invocation_index()
        lanes = form.group // form.side
        self._index = index
        self._lane: Any = (index // form.side).to_register("scan_lane") if lanes > 1 else 0
        group = vc.workgroup_id().x
        block = (group % number["blocks"]).to_register()
        self._segment = (group // number["blocks"]).to_register("scan_segment")
        local = index % form.side if lanes > 1 else index
        self._has_column = vc.any(block + 1 < number["blocks"], local < number["last"]).to_register()
        # invocations beyond the last column repeat the first one of the block, and store nothing
        column = (block * form.side + vc.select(self._has_column, local, 0)).to_register("scan_column")
        inner = number["inner"]
        self._outside, self._inside = (column // inner).to_register(), (column % inner).to_register()
        self._base = (self._outside * (inner * number["length"]) + self._inside).to_register()
        self._start = (self._segment * number["span"]).to_register()
        last = self._segment + 1 >= number["segments"]
        self._count = vc.select(last, number["length"] - self._start, number["span"]).to_register()
        self._memory: list[Any] = []
        carries = [algebra.variable() for _ in range(form.together)]
        if form.is_carried:
            for i, carry in enumerate(carries):
                algebra.assign(carry, self._load_partial(i))
        with vc.for_block(0, number["turns"]) as turn:
            present: Any = turn > 0
            if form.flag_type is not None and form.mode != "reduce":
                # a segment begins at the first element, or the carry is that of the segments before
                present = True
            elif form.is_carried:
                present = vc.any(present, self._segment > 0)
            if present is not True:
                present = present.to_register()
            self._scan_turn(turn, [Item(carry.value, carry.flag, present) for carry in carries])
        if form.mode == "reduce":
            with vc.if_block(vc.all(self._lane == 0, self._has_column) if lanes > 1 else self._has_column):
                for i, carry in enumerate(carries):
                    place = self._place_of_partial(self._segment) * form.together + i
                    self._own.partials[place] = carry.value
                    if self._own.partial_flags is not None:
                        self._own.partial_flags[place] = carry.flag

    def _place_of_partial(self, segment: Any) -> Any:
        inner = self._own.number["inner"]
        return self._outside * (inner * self._own.number["segments"]) + (segment * inner + self._inside)

    def _load_partial(self, i: int) -> Item:
        """Return the total of the segments before this one; undefined in the first segment."""
        segment = vc.select(self._segment > 0, self._segment - 1, 0)
        place = self._place_of_partial(segment) * self._form.together + i
        partial_flags = self._own.partial_flags
        flag = None if partial_flags is None else partial_flags[place].to_register()
        return Item(self._own.partials[place].to_register(), flag)

    def _scan_turn(self, turn: Any, carries: list[Item]) -> None:
        """Scan the rows of all lanes in one turn, and add their totals to the carries."""
        form, algebra = self._form, self._algebra
        lanes = form.group // form.side
        first = turn * (lanes * form.rows) + (self._lane * form.rows if lanes > 1 else 0)
        self._rows: list[tuple[Any, Any]] = []
        for r in range(form.rows):
            row = (first + r).to_register()
            inside = row < self._count
            self._rows.append((inside, vc.select(inside, row, 0)))
        positions = [self._position(row).to_register() for _, row in self._rows]
        values = self._load(positions)
        rows = [row for _, row in self._rows]
        begins = [self._is_first(row, position) for row, position in zip(rows, positions, strict=True)]
        columns = [([row[i] for row in values], [row[i] for row in begins]) for i in range(form.together)]
        totals = [fold(algebra, *column) for column in columns]
        exchanged = self._exchange(totals)
        for column, carry, (before, whole) in zip(columns, carries, exchanged, strict=True):
            prefix = algebra.join(carry, before)
            after = algebra.join(carry, whole)
            if form.mode != "reduce":
                apply_prefix(algebra, prefix, *column, is_exclusive=form.is_exclusive)
            algebra.assign(carry, after)
        if form.mode != "reduce":
            for (inside, _), position, row in zip(self._rows, positions, values, strict=True):
                with vc.if_block(vc.all(inside, self._has_column)):
                    self._own.store.store_vector(position, row)

    def _position(self, row: Any) -> Any:
        """Return the position of a vector, which counts vectors."""
        place = self._start + row
        if self._form.is_reverse:
            place = self._own.number["length"] - 1 - place
        return self._base + place * self._own.number["inner"]

    def _load(self, positions: Sequence[Any]) -> list[list[Any]]:
        source, kind, together = self._source, self._algebra.kind, self._form.together
        values = [[vc.new_register(kind) for _ in range(together)] for _ in positions]
        words = [source.load(self._own.views, position) for position in positions]
        for (inside, _), row, position, word in zip(self._rows, values, positions, words, strict=True):
            # a map that writes must run once for each element
            with vc.if_block(vc.all(inside, self._has_column)) if source.is_writing else vc.scope_block():
                if source.together == together:
                    loaded = source.values(self._own.arguments, position, word)
                else:
                    loaded = [
                        source.value(self._own.arguments, position * together + i) for i in range(together)
                    ]
                for register, value in zip(row, loaded, strict=True):
                    register[:] = value.to_dtype(kind)
        return values

    def _is_first(self, row: Any, position: Any) -> list[Any]:
        """Return for each element of a vector whether it is the first of a segment; None: it never is."""
        form = self._form
        if form.flag_type is None:
            return [None] * form.together
        first = self._start + row == 0
        place = position
        if form.is_reverse:
            # backwards, a segment starts at an element whose successor is flagged
            place = vc.select(first, position, position + self._own.number["inner"])
        flags = [self._own.flags[place * form.together + i] for i in range(form.together)]
        return [vc.any(first, flag if form.flag_type is bool_ else flag != 0).to_register() for flag in flags]

    def _exchange(self, own: list[Item]) -> list[tuple[Item, Item]]:
        """Return for each column of a vector the total of the lanes before, and that of all lanes."""
        form, algebra = self._form, self._algebra
        lanes, side = form.group // form.side, form.side
        if lanes == 1:
            return [(algebra.empty(), item) for item in own]
        if not self._memory:
            for _ in own:
                flags = vc.shared_buffer(uint32, form.group) if algebra.is_segmented else None
                self._memory.append((vc.shared_buffer(algebra.kind, form.group), flags))

        def write(items: list[Item]) -> None:
            vc.barrier()
            for item, (memory, flags) in zip(items, self._memory, strict=True):
                memory[self._index] = item.value
                if flags is not None:
                    flags[self._index] = item.flag
            vc.barrier()

        def read(place: Any) -> list[Item]:
            return [
                Item(memory[place].to_register(), None if flags is None else flags[place].to_register())
                for memory, flags in self._memory
            ]

        distance = 1
        while distance < lanes:
            write(own)
            has_other = (self._lane >= distance).to_register()
            others = read(vc.select(has_other, self._index - distance * side, 0).to_register())
            own = [
                algebra.select(has_other, algebra.join(other, item), item)
                for other, item in zip(others, own, strict=True)
            ]
            distance *= 2
        write(own)
        has_earlier = (self._lane > 0).to_register()
        before = read(vc.select(has_earlier, self._index - side, 0).to_register())
        whole = read(((lanes - 1) * side + self._index % side).to_register())
        return [
            (Item(earlier.value, earlier.flag, has_earlier), total)
            for earlier, total in zip(before, whole, strict=True)
        ]
