"""Scans along the last axis: one row, or many.

All rows are scanned as one array in which a segment begins with each row (see `lookback`). Each workgroup
scans a range of it, tile by tile. In a tile

subgroup 0                          subgroup 1
lane 0   1   2  ...                 lane 0 ...
[4 elements][4][4] ...   vector 0   [4][4] ...
[4][4][4] ...            vector 1   ...
...

each invocation has several vectors of neighbouring elements, each loaded and stored at once. It combines the
elements of each vector in order. Then subgroups scan their lanes, vector by vector, and exchange their totals
through workgroup memory. The prefix of the tile is

scan       the total of the earlier tiles of the range, and with partial results that of the ranges before
reduce     not needed: the total of the range is stored as a partial result
lookback   read from the tiles before while they run; see `lookback`

`planning` chooses between these. Sizes alone decide the order in which elements are combined: the same input
gives the same bits.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, bool_, uint32, uint64
from vkdispatch.base.record import record
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.operands import Sink
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.scans.arguments import ScanOp, Variables, declare_arguments, name_variables
from vkdispatch.scans.lookback import Algebra, Board, Item, Lanes, apply_prefix, fold
from vkdispatch.scans.planning import LaneFacts
from vkdispatch.shader.shader_function import ShaderFunction

NUMBERS = ("groups", "range", "last", "rounds", "length", "each")


@record
class RowsForm:
    """What a kernel is specialised for.

    Attributes
    ----------
    mode
        "scan", "reduce" or "lookback"; see above.
    group
        Invocations of a workgroup.
    vectors, together
        Vectors of an invocation, and elements of a vector.
    is_reverse, is_exclusive
        The direction, and whether each result leaves its own element out.
    rows
        "": there is one row; "inside": ranges are whole rows; "across": rows begin anywhere; "apart": each
        row has ranges of its own, of which the last may be shorter.
    is_aligned
        Whether rows are whole vectors.
    flag_type
        dtype of the flags that mark where segments begin; None without segments.
    is_carried
        Whether there are partial results of the ranges before.
    is_looped
        Whether ranges may have several tiles.
    lanes
        How invocations exchange values.
    has_tickets
        Whether tiles are numbered as their workgroups start. Otherwise workgroups start in order.
    """

    mode: str
    group: int
    vectors: int
    together: int
    is_reverse: bool
    is_exclusive: bool
    rows: str
    is_aligned: bool
    flag_type: DType | None
    is_carried: bool
    is_looped: bool
    lanes: LaneFacts
    has_tickets: bool = True

    @property
    def is_segmented(self) -> bool:
        """Whether segments begin elsewhere than at the first element."""
        return self.rows in ("inside", "across") or self.flag_type is not None

    @property
    def board(self) -> tuple[tuple[str, DType], ...]:
        """Names and dtypes of the buffers of a look-back."""
        if self.mode != "lookback":
            return ()
        if self.lanes.has_long_atomics:
            return (("scan_status", uint64),)
        return (("scan_status", uint32), ("scan_words", uint32))

    @property
    def tile(self) -> int:
        """Elements of a tile."""
        return self.group * self.vectors * self.together


@store_results
def make_rows_kernel(form: RowsForm, operation: ScanOp, source: Source, sink: Sink) -> ShaderFunction:
    """Trace a kernel. `arguments` says which arguments it has."""
    arguments = declare_arguments(form, operation.kind, source, sink, NUMBERS)

    def body(*variables: Any) -> None:
        named = name_variables(form, sink, variables, NUMBERS)
        _RowsTrace(form, operation, source, named).run()

    name = f"{operation.name}_{form.mode}"
    return trace_kernel(name, body, arguments, form.group, "scan_groups")


class _RowsTrace:
    """A kernel that is being traced."""

    def __init__(self, form: RowsForm, operation: ScanOp, source: Source, variables: Variables) -> None:
        self._form = form
        self._source = source
        self._algebra = Algebra(operation, is_segmented=form.is_segmented)
        self._own = variables
        self._number = variables.number

    def run(self) -> None:
        """Record the statements."""
        form, algebra = self._form, self._algebra
        size = form.lanes.size
        index = vc.local_invocation_index()
        self._lanes = Lanes(form.lanes)
        self._subgroups = form.group // size
        self._subgroup: Any = (index // size).to_register("scan_subgroup") if self._subgroups > 1 else 0
        # `Lanes.total` does not keep the order of the elements
        can_reorder = algebra.operation.is_commutative and not form.is_segmented
        self._needs_total_only = (
            form.mode == "reduce" and can_reorder and form.lanes.has_shuffle and self._subgroups == 1
        )
        self._memory: Any = None
        if form.mode == "lookback":
            groups = self._number["groups"]
            each = self._number["each"] if form.rows == "apart" else None
            self._board = Board(self._algebra, self._lanes, self._own.board, groups, each)
            self._group = self._board.begin(has_tickets=form.has_tickets)
        else:
            self._group = vc.workgroup_id().x
        number, together = self._number, form.together
        first = self._group * number["range"]
        whole = number["range"] * together
        self._of_row = self._group
        last = self._group + 1 >= number["groups"]
        if form.rows == "apart":
            row = (self._group // number["each"]).to_register()
            self._of_row = (self._group - row * number["each"]).to_register()
            first = row * (number["length"] // together) + self._of_row * number["range"]
            last = self._of_row + 1 >= number["each"]
        self._first = first.to_register("scan_first")
        self._count = vc.select(last, number["last"], whole).to_register("scan_count")
        if not form.is_looped:
            after = self._scan_tile(0, self._load_carry())
            if form.mode == "reduce":
                self._store_partial(after)
            return
        carry = self._algebra.variable()
        start = self._load_carry()
        if start.present is not False:
            self._algebra.assign(carry, start)
        with vc.for_block(0, number["rounds"]) as turn:
            present: Any = turn > 0
            if form.is_segmented and form.mode != "reduce":
                # a segment begins at the first element, or the carry is that of the ranges before
                present = True
            elif form.is_carried:
                present = vc.any(present, self._group > 0)
            after = self._scan_tile(turn, Item(carry.value, carry.flag, present))
            self._algebra.assign(carry, after)
        if form.mode == "reduce":
            self._store_partial(carry)

    def _load_carry(self) -> Item:
        """Return the total of the ranges before."""
        is_segmented = self._form.is_segmented
        if not self._form.is_carried:
            # a range that is reduced may begin within a row
            if not is_segmented or self._form.mode == "reduce":
                return self._algebra.empty()
            return self._algebra.variable()
        before = vc.select(self._group > 0, self._group - 1, 0)
        value = self._own.partials[before].to_register()
        flag = self._own.partial_flags[before].to_register() if is_segmented else None
        return Item(value, flag, True if is_segmented else self._group > 0)

    def _store_partial(self, item: Item) -> None:
        with vc.if_block(vc.local_invocation_index() == 0):
            self._own.partials[self._group] = item.value
            if self._form.is_segmented:
                self._own.partial_flags[self._group] = item.flag

    def _scan_tile(self, turn: Any, carry: Item) -> Item:
        """Scan a tile, and return the total up to its end."""
        form, algebra, lanes = self._form, self._algebra, self._lanes
        size = lanes.size
        start = turn * (form.group * form.vectors) if form.is_looped else 0
        self._places = [
            (start + self._subgroup * (size * form.vectors) + (k * size + lanes.lane)).to_register()
            for k in range(form.vectors)
        ]
        self._is_full = (start + form.group * form.vectors) * form.together <= self._count
        values = self._load()
        masks = [self._flag_mask(place) if form.is_segmented else None for place in self._places]
        begins = [self._unpack_mask(mask) for mask in masks]
        own = [fold(algebra, *both) for both in zip(values, begins, strict=True)]
        # other tiles wait for the total: if it can be computed apart, it comes before the scan
        is_early = form.mode == "lookback" and algebra.operation.is_commutative and not form.is_segmented
        if is_early:
            before, whole = self._exchange(lanes.total(algebra, _join_all(algebra, own)))
            self._board.post(self._group, whole)
        if self._needs_total_only:
            return algebra.join(carry, lanes.total(algebra, _join_all(algebra, own)))
        scanned = [lanes.inclusive(algebra, item) for item in own]
        totals = [lanes.item_at(item, size - 1) for item in scanned]
        if not is_early:
            before, whole = self._exchange(_join_all(algebra, totals))
        if form.mode == "lookback":
            if not is_early:
                self._board.post(self._group, whole)
            carry = self._look_back(whole)
        base = algebra.join(carry, before)
        if form.mode != "reduce":
            for k in range(form.vectors):
                shifted = lanes.item_up(scanned[k], 1)
                prefix = algebra.select(lanes.lane > 0, algebra.join(base, shifted), base)
                base = algebra.join(base, totals[k])
                apply_prefix(algebra, prefix, values[k], begins[k], is_exclusive=form.is_exclusive)
            self._store(values)
        return algebra.join(carry, whole)

    # -- memory

    def _clamp(self, place: Any, i: int) -> tuple[Any, Any]:
        """Return whether element i of a vector is in the range, and its place, or 0 if it is not."""
        local = place * self._form.together + i
        inside = local < self._count
        return inside, vc.select(inside, local, 0)

    def _vector_count(self) -> Any:
        number, together = self._number, self._form.together
        if self._form.rows == "apart":
            return number["groups"] // number["each"] * (number["length"] // together)
        return (number["groups"] - 1) * number["range"] + (number["last"] + (together - 1)) // together

    def _vector(self, place: Any) -> Any:
        """Return the position of a vector, which counts vectors."""
        position = self._first + place
        return self._vector_count() - 1 - position if self._form.is_reverse else position

    def _element(self, local: Any) -> Any:
        """Return the index of an element, from its place in the range."""
        together = self._form.together
        position = self._first * together + local
        return self._vector_count() * together - 1 - position if self._form.is_reverse else position

    def _load(self) -> list[list[Any]]:
        form, kind = self._form, self._algebra.kind
        values = [[vc.new_register(kind) for _ in range(form.together)] for _ in self._places]
        with vc.if_block(self._is_full):
            positions = [self._vector(place).to_register() for place in self._places]
            if self._source.together == form.together:
                words = [self._source.load(self._own.views, position) for position in positions]
                for row, position, word in zip(values, positions, words, strict=True):
                    self._put(row, self._source.values(self._own.arguments, position, word))
            else:
                for row, position in zip(values, positions, strict=True):
                    loaded = [
                        self._source.value(self._own.arguments, position * form.together + i)
                        for i in range(form.together)
                    ]
                    self._put(row, loaded)
        with vc.else_block():
            single = self._source.elementwise()
            for row, place in zip(values, self._places, strict=True):
                for i in range(form.together):
                    inside, local = self._clamp(place, i)
                    # a map that writes must run once for each element
                    with vc.if_block(inside) if self._source.is_writing else nullcontext():
                        value = single.value(self._own.arguments, self._element(local))
                        row[i][:] = value.to_dtype(self._algebra.kind)
        return values

    def _put(self, row: list[Any], loaded: list[Any]) -> None:
        for register, value in zip(row, loaded[::-1] if self._form.is_reverse else loaded, strict=True):
            register[:] = value.to_dtype(self._algebra.kind)

    def _store(self, values: list[list[Any]]) -> None:
        if self._own.store.view is None:
            self._store_elements(values)
            return
        with vc.if_block(self._is_full):
            for row, place in zip(values, self._places, strict=True):
                in_order = row[::-1] if self._form.is_reverse else row
                self._own.store.store_vector(self._vector(place).to_register(), in_order)
        with vc.else_block():
            self._store_elements(values)

    def _store_elements(self, values: list[list[Any]]) -> None:
        for row, place in zip(values, self._places, strict=True):
            for i, value in enumerate(row):
                inside, local = self._clamp(place, i)
                with vc.if_block(inside):
                    self._own.store.store_element(self._element(local), value)

    # -- segments

    def _flag_mask(self, place: Any) -> Any:
        """Return a mask of which bit i tells whether a segment begins at element i of a vector."""
        form, number = self._form, self._number
        mask: Any = None
        if form.rows in ("inside", "across"):
            position = place if form.rows == "inside" else self._first + place
            if form.is_aligned:
                begins = position % (number["length"] // form.together) == 0
                mask = vc.select(begins, 1, 0)
            else:
                for i in range(form.together):
                    begins = (position * form.together + i) % number["length"] == 0
                    bit = vc.select(begins, 1 << i, 0)
                    mask = bit if mask is None else mask | bit
        if form.flag_type is not None:
            for i in range(form.together):
                bit = vc.select(self._is_first(place, i), 1 << i, 0)
                mask = bit if mask is None else mask | bit
        return vc.to_dtype(uint32, mask).to_register()

    def _is_first(self, place: Any, i: int) -> Any:
        """Return whether an element is the first of a segment, in the direction of the scan."""
        _, local = self._clamp(place, i)
        first = vc.all(self._of_row == 0, local == 0)
        if not self._form.is_reverse:
            return vc.any(first, self._is_flagged(self._element(local)))
        # backwards, a segment starts at an element whose successor is flagged
        after = vc.select(first, self._element(local), self._element(local) + 1)
        return vc.any(first, self._is_flagged(after))

    def _is_flagged(self, place: Any) -> Any:
        flag = self._own.flags[place]
        return flag if self._form.flag_type is bool_ else flag != 0

    # -- values

    def _unpack_mask(self, mask: Any) -> list[Any]:
        """Return for each element of a vector whether a segment begins there; None: it never does."""
        form = self._form
        if mask is None:
            return [None] * form.together
        anywhere = form.flag_type is not None or not form.is_aligned
        return [(mask & (1 << i)) != 0 if anywhere or i == 0 else None for i in range(form.together)]

    def _exchange(self, own: Item) -> tuple[Item, Item]:
        """Return the total of the subgroups before this one, and that of the tile."""
        algebra, lanes, count = self._algebra, self._lanes, self._subgroups
        if self._form.mode == "lookback":
            self._board.share_launch()
        if count == 1:
            if self._form.mode == "lookback":
                vc.barrier()
            return algebra.empty(), own
        memory, flags = self._shared_items()
        with vc.if_block(lanes.lane == 0):
            memory[self._subgroup] = own.value
            if flags is not None:
                flags[self._subgroup] = own.flag
        vc.barrier()
        place = vc.min(lanes.lane, count - 1)
        total = Item(memory[place].to_register(), None if flags is None else flags[place].to_register())
        totals = lanes.inclusive(algebra, total, count)
        whole = lanes.item_at(totals, count - 1)
        before = lanes.item_at(totals, vc.max(self._subgroup, 1) - 1)
        if self._form.is_looped:
            # all invocations read this memory before the next tile overwrites it
            vc.barrier()
        return Item(before.value, before.flag, (self._subgroup > 0).to_register()), whole

    def _shared_items(self) -> tuple[Any, Any]:
        if self._memory is None:
            flags = vc.shared_buffer(uint32, self._subgroups) if self._form.is_segmented else None
            self._memory = vc.shared_buffer(self._algebra.kind, self._subgroups), flags
        return self._memory  # type: ignore[no-any-return]

    def _look_back(self, whole: Item) -> Item:
        """Return the total of the tiles before; `whole` is the total of this one."""
        item = self._board.before(self._group, whole, self._subgroup, self._subgroups)
        if self._form.is_segmented:
            return Item(item.value, item.flag)
        return Item(item.value, None, (self._of_row > 0).to_register())


def _join_all(algebra: Algebra, items: Sequence[Item]) -> Item:
    first, *others = items
    for item in others:
        first = algebra.join(first, item)
    return first
