"""Scans of elements that lie one behind the other: one row, or many.

All rows together are one array; where a row begins a segment begins (see `items`), so that rows need nothing
else. Workgroups take ranges of it, tile after tile. In a tile

subgroup 0                          subgroup 1
lane 0   1   2  ...                 lane 0 ...
[4 elements][4][4] ...   vector 0   [4][4] ...
[4][4][4] ...            vector 1   ...
...

each invocation has several vectors of neighbouring elements, loaded and stored at once. It combines each in
order, then subgroups scan their lanes, vector by vector, and workgroup memory passes the rest on. What comes
before the tile is

scan       what the range's earlier tiles come to, and, with partial results, the ranges before
reduce     not asked for: what the range comes to is left as a partial result
lookback   found out from the tiles before while they are at work; see `lookback`

Which of these, is for `planning` to say. Every element is combined with those before it in an order that
sizes alone decide: the same input gives the same bits.
"""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import trace_kernel
from vkdispatch.arrays.maps.output import Sink
from vkdispatch.arrays.maps.source import Source
from vkdispatch.arrays.memoize import memoize
from vkdispatch.base.dtype import DType, bool_, uint32, uint64
from vkdispatch.base.record import record
from vkdispatch.scans.arguments import declared, given
from vkdispatch.scans.items import Algebra, Item, Lanes, finish, folded
from vkdispatch.scans.lookback import Board
from vkdispatch.scans.operations import Facts, ScanOp
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
    reverse, exclusive
        The direction, and whether an element counts for itself.
    rows
        "": there is one row; "inside": ranges are of whole rows; "across": rows begin anywhere; "apart": each
        row has ranges of its own, of which the last is shorter.
    aligned
        Whether rows are of whole vectors.
    flagged
        What a buffer holds that tells where segments begin; None: there is none.
    carried
        Whether there are partial results of the ranges before.
    looped
        Whether ranges may have several tiles.
    tickets
        Whether tiles are numbered as their workgroups start; else they are known to start in order.
    """

    mode: str
    group: int
    vectors: int
    together: int
    reverse: bool
    exclusive: bool
    rows: str
    aligned: bool
    flagged: DType | None
    carried: bool
    looped: bool
    facts: Facts
    tickets: bool = True

    @property
    def segmented(self) -> bool:
        """Whether segments begin other than with the first element."""
        return self.rows in ("inside", "across") or self.flagged is not None

    @property
    def board(self) -> tuple[tuple[str, DType], ...]:
        """Names and elements of the buffers that a look-back has."""
        if self.mode != "lookback":
            return ()
        if self.facts.longs:
            return (("scan_status", uint64),)
        return (("scan_status", uint32), ("scan_words", uint32))

    @property
    def tile(self) -> int:
        """Elements of a tile."""
        return self.group * self.vectors * self.together


@memoize
def rows_kernel(form: RowsForm, operation: ScanOp, source: Source, sink: Sink) -> ShaderFunction:
    """Trace a kernel; `arguments` says what it takes."""
    arguments = declared(form, operation.kind, source, sink, NUMBERS)

    def body(*variables: Any) -> None:
        RowsWork(form, operation, source, sink, variables).run()

    name = f"{operation.name}_{form.mode}"
    return trace_kernel(name, body, arguments, form.group, "scan_groups")


class RowsWork:
    """A kernel being traced."""

    def __init__(
        self, form: RowsForm, operation: ScanOp, source: Source, sink: Sink, variables: Sequence[Any]
    ) -> None:
        self._form = form
        self._source = source
        self._algebra = Algebra(operation, segmented=form.segmented)
        found = given(form, source, sink, variables, NUMBERS)
        self._stores = found.stores
        self._partials, self._partial_flags = found.partials, found.partial_flags
        self._status, self._words = (*found.board, None, None)[:2]
        self._flags = found.flags
        self._arguments, self._views = found.arguments, found.views
        self._number = found.number

    def run(self) -> None:
        """Record the statements."""
        form, algebra = self._form, self._algebra
        facts = form.facts
        index = vc.local_invocation_index()
        self._lanes = Lanes(
            facts.subgroup, shuffles=facts.shuffles, extended=facts.extended, native=facts.native
        )
        self._subgroups = form.group // facts.subgroup
        self._subgroup: Any = (
            (index // facts.subgroup).to_register("scan_subgroup") if self._subgroups > 1 else 0
        )
        # the order of a total is not that of the elements
        free = algebra.operation.commutative and not form.segmented
        self._totals_only = form.mode == "reduce" and free and facts.shuffles and self._subgroups == 1
        self._memory: Any = None
        if form.mode == "lookback":
            groups = self._number["groups"]
            each = self._number["each"] if form.rows == "apart" else None
            self._board = Board(self._algebra, self._lanes, self._status, self._words, groups, each)
            self._group = self._board.begin(tickets=form.tickets)
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
        if not form.looped:
            after = self._tile(0, self._carry())
            if form.mode == "reduce":
                self._leave(after)
            return
        carry = self._algebra.variable()
        start = self._carry()
        if start.present is not False:
            self._algebra.assign(carry, start)
        with vc.for_block(0, number["rounds"]) as turn:
            present: Any = turn > 0
            if form.segmented and form.mode != "reduce":
                # what is there at first does not count, or is that of the ranges before
                present = True
            elif form.carried:
                present = vc.any(present, self._group > 0)
            after = self._tile(turn, Item(carry.value, carry.flag, present))
            self._algebra.assign(carry, after)
        if form.mode == "reduce":
            self._leave(carry)

    def _carry(self) -> Item:
        """Return what the ranges before come to."""
        if not self._form.carried:
            # a range that is left as a partial result may begin within a row
            if not self._form.segmented or self._form.mode == "reduce":
                return self._algebra.none()
            return self._algebra.variable()
        before = vc.select(self._group > 0, self._group - 1, 0)
        value = self._partials[before].to_register()
        flag = self._partial_flags[before].to_register() if self._form.segmented else None
        return Item(value, flag, True if self._form.segmented else self._group > 0)

    def _leave(self, item: Item) -> None:
        with vc.if_block(vc.local_invocation_index() == 0):
            self._partials[self._group] = item.value
            if self._form.segmented:
                self._partial_flags[self._group] = item.flag

    def _tile(self, turn: Any, carry: Item) -> Item:
        """Scan a tile; returns what it and all before it come to."""
        form, algebra, lanes = self._form, self._algebra, self._lanes
        size = lanes.size
        start = turn * (form.group * form.vectors) if form.looped else 0
        self._places = [
            (start + self._subgroup * (size * form.vectors) + (k * size + lanes.lane)).to_register()
            for k in range(form.vectors)
        ]
        self._full = (start + form.group * form.vectors) * form.together <= self._count
        values = self._loaded()
        masks = [self._mask(place) if form.segmented else None for place in self._places]
        begins = [self._begins_of(mask) for mask in masks]
        own = [folded(algebra, *both) for both in zip(values, begins, strict=True)]
        # what others wait for comes first, if it need not come with all else
        early = form.mode == "lookback" and algebra.operation.commutative and not form.segmented
        if early:
            before, whole = self._among_subgroups(lanes.total(algebra, _joined(algebra, own)))
            self._board.post(self._group, whole)
        if self._totals_only:
            return algebra.joined(carry, lanes.total(algebra, _joined(algebra, own)))
        scanned = [lanes.inclusive(algebra, item) for item in own]
        totals = [lanes.item_at(item, size - 1) for item in scanned]
        if not early:
            before, whole = self._among_subgroups(_joined(algebra, totals))
        if form.mode == "lookback":
            if not early:
                self._board.post(self._group, whole)
            carry = self._looked_back(whole)
        base = algebra.joined(carry, before)
        if form.mode != "reduce":
            for k in range(form.vectors):
                shifted = lanes.item_up(scanned[k], 1)
                prefix = algebra.chosen(lanes.lane > 0, algebra.joined(base, shifted), base)
                base = algebra.joined(base, totals[k])
                finish(algebra, prefix, values[k], begins[k], exclusive=form.exclusive)
            self._store(values)
        return algebra.joined(carry, whole)

    # -- memory

    def _inside(self, place: Any, i: int) -> tuple[Any, Any]:
        """Return whether an element is one of the range's, and an element's place that is."""
        local = place * self._form.together + i
        inside = local < self._count
        return inside, vc.select(inside, local, 0)

    def _top(self) -> Any:
        """Return how many vectors there are."""
        number, together = self._number, self._form.together
        if self._form.rows == "apart":
            return number["groups"] // number["each"] * (number["length"] // together)
        return (number["groups"] - 1) * number["range"] + (number["last"] + (together - 1)) // together

    def _vector(self, place: Any) -> Any:
        """Where a vector lies, counted in vectors."""
        position = self._first + place
        return self._top() - 1 - position if self._form.reverse else position

    def _element(self, local: Any) -> Any:
        """Where an element lies that is the range's so many-th."""
        together = self._form.together
        position = self._first * together + local
        return self._top() * together - 1 - position if self._form.reverse else position

    def _loaded(self) -> list[list[Any]]:
        form, kind = self._form, self._algebra.kind
        values = [[vc.new_register(kind) for _ in range(form.together)] for _ in self._places]
        with vc.if_block(self._full):
            positions = [self._vector(place).to_register() for place in self._places]
            if self._source.together == form.together:
                words = [self._source.load(self._views, position) for position in positions]
                for row, position, word in zip(values, positions, words, strict=True):
                    self._put(row, self._source.values(self._arguments, position, word))
            else:
                for row, position in zip(values, positions, strict=True):
                    found = [
                        self._source.value(self._arguments, position * form.together + i)
                        for i in range(form.together)
                    ]
                    self._put(row, found)
        with vc.else_block():
            single = self._source.elementwise()
            for row, place in zip(values, self._places, strict=True):
                for i in range(form.together):
                    inside, local = self._inside(place, i)
                    if not self._source.is_writing:
                        row[i][:] = self._converted(single.value(self._arguments, self._element(local)))
                        continue
                    with vc.if_block(inside):
                        row[i][:] = self._converted(single.value(self._arguments, self._element(local)))
        return values

    def _put(self, row: list[Any], found: list[Any]) -> None:
        for register, value in zip(row, found[::-1] if self._form.reverse else found, strict=True):
            register[:] = self._converted(value)

    def _converted(self, value: Any) -> Any:
        kind = self._algebra.kind
        return value if value.var_type is kind else value.to_dtype(kind)

    def _store(self, values: list[list[Any]]) -> None:
        if self._stores.view is None:
            self._store_singly(values)
            return
        with vc.if_block(self._full):
            for row, place in zip(values, self._places, strict=True):
                turned = row[::-1] if self._form.reverse else row
                self._stores.store(self._vector(place).to_register(), turned)
        with vc.else_block():
            self._store_singly(values)

    def _store_singly(self, values: list[list[Any]]) -> None:
        for row, place in zip(values, self._places, strict=True):
            for i, value in enumerate(row):
                inside, local = self._inside(place, i)
                with vc.if_block(inside):
                    self._stores.store_one(self._element(local), value)

    # -- segments

    def _mask(self, place: Any) -> Any:
        """Return with bit i set where the i-th element of a vector begins a segment."""
        form, number = self._form, self._number
        mask: Any = None
        if form.rows in ("inside", "across"):
            position = place if form.rows == "inside" else self._first + place
            if form.aligned:
                begins = position % (number["length"] // form.together) == 0
                mask = vc.select(begins, 1, 0)
            else:
                for i in range(form.together):
                    begins = (position * form.together + i) % number["length"] == 0
                    bit = vc.select(begins, 1 << i, 0)
                    mask = bit if mask is None else mask | bit
        if form.flagged is not None:
            for i in range(form.together):
                bit = vc.select(self._begins(place, i), 1 << i, 0)
                mask = bit if mask is None else mask | bit
        return vc.to_dtype(uint32, mask).to_register()

    def _begins(self, place: Any, i: int) -> Any:
        """Return whether an element is the first of a segment, going in the direction of the scan."""
        _, local = self._inside(place, i)
        first = vc.all(self._of_row == 0, local == 0)
        if not self._form.reverse:
            return vc.any(first, self._set(self._element(local)))
        # the one after it begins a segment, and it ends one
        after = vc.select(first, self._element(local), self._element(local) + 1)
        return vc.any(first, self._set(after))

    def _set(self, place: Any) -> Any:
        flag = self._flags[place]
        return flag if self._form.flagged is bool_ else flag != 0

    # -- values

    def _begins_of(self, mask: Any) -> list[Any]:
        form = self._form
        if mask is None:
            return [None] * form.together
        anywhere = form.flagged is not None or not form.aligned
        return [(mask & (1 << i)) != 0 if anywhere or i == 0 else None for i in range(form.together)]

    def _among_subgroups(self, own: Item) -> tuple[Item, Item]:
        """Return what the tile's subgroups before come to, and all of them."""
        algebra, lanes, count = self._algebra, self._lanes, self._subgroups
        if self._form.mode == "lookback":
            self._board.tell_launch()
        if count == 1:
            if self._form.mode == "lookback":
                vc.barrier()
            return algebra.none(), own
        memory, flags = self._shared()
        with vc.if_block(lanes.lane == 0):
            memory[self._subgroup] = own.value
            if flags is not None:
                flags[self._subgroup] = own.flag
        vc.barrier()
        place = vc.min(lanes.lane, count - 1)
        found = Item(memory[place].to_register(), None if flags is None else flags[place].to_register())
        found = lanes.inclusive(algebra, found, count)
        whole = lanes.item_at(found, count - 1)
        before = lanes.item_at(found, vc.max(self._subgroup, 1) - 1)
        if self._form.looped:
            # the next tile's may not come before all have read these
            vc.barrier()
        return Item(before.value, before.flag, (self._subgroup > 0).to_register()), whole

    def _shared(self) -> tuple[Any, Any]:
        if self._memory is None:
            flags = vc.shared_buffer(uint32, self._subgroups) if self._form.segmented else None
            self._memory = vc.shared_buffer(self._algebra.kind, self._subgroups), flags
        return self._memory  # type: ignore[no-any-return]

    def _looked_back(self, whole: Item) -> Item:
        """Return what the tiles before come to."""
        item = self._board.before(self._group, whole, self._subgroup, self._subgroups)
        if self._form.segmented:
            return Item(item.value, item.flag)
        return Item(item.value, None, (self._of_row > 0).to_register())


def _joined(algebra: Algebra, items: Sequence[Item]) -> Item:
    """Return items as one."""
    first, *others = items
    for item in others:
        first = algebra.joined(first, item)
    return first
