"""Scans along an axis that is not the last: neighbouring invocations take neighbouring columns.

columns            0 1 2 3 ... 31
lane 0   rows 0..7     | | | |         each invocation scans a few rows of its column, of all loads at once
lane 1   rows 8..15    | | | |         then lanes pass on, through workgroup memory, what theirs come to
...                                    and so on, turn by turn, down the axis
segment 1          ...                 where there are few columns: further workgroups, in three launches:
                                       reduce each segment; scan what they come to; scan each segment

A column is of vectors of neighbouring elements, where rows are whole vectors. Which invocation combines what
is decided by sizes alone.
"""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import trace_kernel
from vkdispatch.arrays.maps.output import Sink
from vkdispatch.arrays.maps.source import Source
from vkdispatch.arrays.memoize import memoize
from vkdispatch.base.dtype import DType, bool_, uint32
from vkdispatch.base.record import record
from vkdispatch.scans.arguments import declared, given
from vkdispatch.scans.items import Algebra, Item, finish, folded
from vkdispatch.scans.operations import ScanOp
from vkdispatch.shader.shader_function import ShaderFunction

NUMBERS = ("blocks", "last", "segments", "span", "length", "inner", "turns")


@record
class ColumnsForm:
    """What a kernel is specialised for.

    Attributes
    ----------
    mode
        "scan", or "reduce": what a segment comes to is left as a partial result.
    group, side
        Invocations of a workgroup, and columns that they take.
    rows, together
        Rows that an invocation takes at once, and elements of a vector.
    reverse, exclusive
        The direction, and whether an element counts for itself.
    flagged
        What a buffer holds that tells where segments (the user's) begin; None: there is none.
    carried
        Whether there are partial results of the segments before.
    """

    mode: str
    group: int
    side: int
    rows: int
    together: int
    reverse: bool
    exclusive: bool
    flagged: DType | None
    carried: bool
    # columns do not look back
    board = ()

    @property
    def segmented(self) -> bool:
        """Whether segments begin other than with the first row."""
        return self.flagged is not None


@memoize
def columns_kernel(form: ColumnsForm, operation: ScanOp, source: Source, sink: Sink) -> ShaderFunction:
    """Trace a kernel. Its arguments are as those of `rows_kernel`, but for its own numbers."""
    arguments = declared(form, operation.kind, source, sink, NUMBERS)

    def body(*variables: Any) -> None:
        _Columns(form, operation, source, sink, variables).run()

    name = f"{operation.name}_columns_{form.mode}"
    return trace_kernel(name, body, arguments, form.group, "scan_blocks * scan_segments")


class _Columns:
    """A kernel being traced."""

    def __init__(
        self, form: ColumnsForm, operation: ScanOp, source: Source, sink: Sink, variables: Sequence[Any]
    ) -> None:
        self._form = form
        self._source = source
        self._algebra = Algebra(operation, segmented=form.segmented)
        found = given(form, source, sink, variables, NUMBERS)
        self._stores = found.stores
        self._partials, self._partial_flags = found.partials, found.partial_flags
        self._flags = found.flags
        self._arguments, self._views = found.arguments, found.views
        self._number = found.number

    def run(self) -> None:
        """Record the statements."""
        form, number, algebra = self._form, self._number, self._algebra
        index = vc.local_invocation_index()
        lanes = form.group // form.side
        self._index = index
        self._lane: Any = (index // form.side).to_register("scan_lane") if lanes > 1 else 0
        group = vc.workgroup_id().x
        block = (group % number["blocks"]).to_register()
        self._segment = (group // number["blocks"]).to_register("scan_segment")
        local = index % form.side if lanes > 1 else index
        self._kept = vc.any(block + 1 < number["blocks"], local < number["last"]).to_register()
        # those beyond the last column do the block's first once more, and leave nothing
        column = (block * form.side + vc.select(self._kept, local, 0)).to_register("scan_column")
        inner = number["inner"]
        self._outside, self._inside = (column // inner).to_register(), (column % inner).to_register()
        self._base = (self._outside * (inner * number["length"]) + self._inside).to_register()
        self._start = (self._segment * number["span"]).to_register()
        last = self._segment + 1 >= number["segments"]
        self._count = vc.select(last, number["length"] - self._start, number["span"]).to_register()
        self._memory: list[Any] = []
        carries = [algebra.variable() for _ in range(form.together)]
        if form.carried:
            for i, carry in enumerate(carries):
                algebra.assign(carry, self._before(i))
        with vc.for_block(0, number["turns"]) as turn:
            present: Any = turn > 0
            if form.flagged is not None and form.mode != "reduce":
                # what is there at first does not count, or is that of the segments before
                present = True
            elif form.carried:
                present = vc.any(present, self._segment > 0)
            if present is not True:
                present = present.to_register()
            self._turn(turn, [Item(carry.value, carry.flag, present) for carry in carries])
        if form.mode == "reduce":
            with vc.if_block(vc.all(self._lane == 0, self._kept) if lanes > 1 else self._kept):
                for i, carry in enumerate(carries):
                    place = self._partial(self._segment) * form.together + i
                    self._partials[place] = carry.value
                    if self._partial_flags is not None:
                        self._partial_flags[place] = carry.flag

    def _partial(self, segment: Any) -> Any:
        inner = self._number["inner"]
        return self._outside * (inner * self._number["segments"]) + (segment * inner + self._inside)

    def _before(self, i: int) -> Item:
        """Return what the segments before come to; anything in the first."""
        segment = vc.select(self._segment > 0, self._segment - 1, 0)
        place = self._partial(segment) * self._form.together + i
        flag = None if self._partial_flags is None else self._partial_flags[place].to_register()
        return Item(self._partials[place].to_register(), flag)

    def _turn(self, turn: Any, carries: list[Item]) -> None:
        """Scan so many rows of all lanes; the carries become what all of them come to."""
        form, algebra = self._form, self._algebra
        lanes = form.group // form.side
        first = turn * (lanes * form.rows) + (self._lane * form.rows if lanes > 1 else 0)
        self._rows: list[tuple[Any, Any]] = []
        for r in range(form.rows):
            row = (first + r).to_register()
            inside = row < self._count
            self._rows.append((inside, vc.select(inside, row, 0)))
        positions = [self._position(row).to_register() for _, row in self._rows]
        values = self._loaded(positions)
        rows = [row for _, row in self._rows]
        begins = [self._begins(row, position) for row, position in zip(rows, positions, strict=True)]
        columns = [([row[i] for row in values], [row[i] for row in begins]) for i in range(form.together)]
        own = [folded(algebra, *column) for column in columns]
        passed = self._among_lanes(own)
        for column, carry, (before, whole) in zip(columns, carries, passed, strict=True):
            prefix = algebra.joined(carry, before)
            after = algebra.joined(carry, whole)
            if form.mode != "reduce":
                finish(algebra, prefix, *column, exclusive=form.exclusive)
            algebra.assign(carry, after)
        if form.mode != "reduce":
            for (inside, _), position, row in zip(self._rows, positions, values, strict=True):
                with vc.if_block(vc.all(inside, self._kept)):
                    self._stores.store(position, row)

    def _position(self, row: Any) -> Any:
        """Where a vector lies, counted in vectors."""
        place = self._start + row
        if self._form.reverse:
            place = self._number["length"] - 1 - place
        return self._base + place * self._number["inner"]

    def _loaded(self, positions: Sequence[Any]) -> list[list[Any]]:
        source, kind, together = self._source, self._algebra.kind, self._form.together
        values = [[vc.new_register(kind) for _ in range(together)] for _ in positions]
        words = [source.load(self._views, position) for position in positions]
        for (inside, _), row, position, word in zip(self._rows, values, positions, words, strict=True):
            # what a map writes it writes once
            with vc.if_block(vc.all(inside, self._kept)) if source.is_writing else vc.scope_block():
                if source.together == together:
                    found = source.values(self._arguments, position, word)
                else:
                    found = [source.value(self._arguments, position * together + i) for i in range(together)]
                for register, value in zip(row, found, strict=True):
                    register[:] = value if value.var_type is kind else value.to_dtype(kind)
        return values

    def _begins(self, row: Any, position: Any) -> list[Any]:
        """Return of each element of a vector whether it is the first of a segment; None: it cannot be."""
        form = self._form
        if form.flagged is None:
            return [None] * form.together
        first = self._start + row == 0
        place = position
        if form.reverse:
            # the one after it begins a segment, and it ends one
            place = vc.select(first, position, position + self._number["inner"])
        flags = [self._flags[place * form.together + i] for i in range(form.together)]
        return [vc.any(first, flag if form.flagged is bool_ else flag != 0).to_register() for flag in flags]

    def _among_lanes(self, own: list[Item]) -> list[tuple[Item, Item]]:
        """Return of each column of a vector what the lanes before come to, and all of them."""
        form, algebra = self._form, self._algebra
        lanes, side = form.group // form.side, form.side
        if lanes == 1:
            return [(algebra.none(), item) for item in own]
        if not self._memory:
            for _ in own:
                flags = vc.shared_buffer(uint32, form.group) if algebra.segmented else None
                self._memory.append((vc.shared_buffer(algebra.kind, form.group), flags))

        def left(items: list[Item]) -> None:
            vc.barrier()
            for item, (memory, flags) in zip(items, self._memory, strict=True):
                memory[self._index] = item.value
                if flags is not None:
                    flags[self._index] = item.flag
            vc.barrier()

        def found(place: Any) -> list[Item]:
            return [
                Item(memory[place].to_register(), None if flags is None else flags[place].to_register())
                for memory, flags in self._memory
            ]

        distance = 1
        while distance < lanes:
            left(own)
            reaches = (self._lane >= distance).to_register()
            others = found(vc.select(reaches, self._index - distance * side, 0).to_register())
            own = [
                algebra.chosen(reaches, algebra.joined(other, item), item)
                for other, item in zip(others, own, strict=True)
            ]
            distance *= 2
        left(own)
        earlier = (self._lane > 0).to_register()
        before = found(vc.select(earlier, self._index - side, 0).to_register())
        whole = found(((lanes - 1) * side + self._index % side).to_register())
        return [
            (Item(one.value, one.flag, earlier), all_of_them)
            for one, all_of_them in zip(before, whole, strict=True)
        ]
