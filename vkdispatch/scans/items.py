"""Items, which a scan combines, and how the invocations of a workgroup exchange them.

An item is the total of some neighbouring elements. In a segmented scan it has a flag, which tells whether a
segment begins among them; elements before that segment do not count.

(a, f) then (b, g)  =  (b if g else a * b, f | g)

This is associative if `*` is, so a segmented scan is a scan of items.
"""

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import (
    DType,
    float32,
    float64,
    int32,
    int64,
    is_matrix,
    uint32,
    uint64,
)
from vkdispatch.base.record import record
from vkdispatch.scans.operations import ScanOp
from vkdispatch.scans.planning import LaneFacts


@record(eq=False)
class Item:
    """The total of some elements.

    Attributes
    ----------
    value
        The total, in a register.
    flag
        Whether a segment begins among the elements: 0 or 1, in a register; None in a scan without segments.
    present
        Whether there are any elements: True, False or a GPU value.
    """

    value: Any
    flag: Any = None
    present: Any = True


class Algebra:
    """Combines items by an operation."""

    def __init__(self, operation: ScanOp, *, is_segmented: bool) -> None:
        self.operation = operation
        self.kind = operation.kind
        self.is_segmented = is_segmented

    def empty(self) -> Item:
        """Return an item of no elements."""
        return Item(None, None, False)

    def variable(self, present: Any = True) -> Item:
        """Return registers for an item that is assigned later."""
        flag = vc.new_uint_register(0) if self.is_segmented else None
        return Item(vc.new_register(self.kind), flag, present)

    def assign(self, target: Item, item: Item) -> None:
        """Assign an item to the registers of `target`."""
        target.value[:] = item.value
        if self.is_segmented:
            target.flag[:] = item.flag

    def join(self, a: Item, b: Item) -> Item:
        """Return the total of two items, the earlier one first."""
        if a.present is False:
            return b
        if b.present is False:
            return a
        value = self.operation.combine(a.value, b.value)
        flag = None
        if self.is_segmented:
            value = vc.select(b.flag != 0, b.value, value).to_register()
            before = a.flag if a.present is True else vc.select(a.present, a.flag, 0)
            flag = (before | b.flag).to_register()
        if a.present is True and b.present is True:
            return Item(value, flag)
        if a.present is not True:
            value = vc.select(a.present, value, b.value).to_register()
        if b.present is not True:
            value = vc.select(b.present, value, a.value).to_register()
            if self.is_segmented:
                flag = vc.select(b.present, flag, a.flag).to_register()
        is_present = a.present is True or b.present is True
        return Item(value, flag, True if is_present else vc.any(a.present, b.present).to_register())

    def select(self, condition: Any, a: Item, b: Item) -> Item:
        """Return `a` where a condition holds, else `b`."""
        if a.present is False and b.present is False:
            return a
        if b.present is False:
            return Item(a.value, a.flag, vc.all(condition, _as_condition(a.present)).to_register())
        value = vc.select(condition, a.value, b.value).to_register()
        flag = vc.select(condition, a.flag, b.flag).to_register() if self.is_segmented else None
        present: Any = True
        if a.present is not True or b.present is not True:
            present = vc.select(condition, _as_condition(a.present), _as_condition(b.present)).to_register()
        return Item(value, flag, present)


def _as_condition(present: Any) -> Any:
    return (vc.to_dtype(uint32, 1) == 1) if present is True else present


_INCLUSIVE = {operator.add: vc.subgroup_inclusive_add, operator.mul: vc.subgroup_inclusive_mul}
_TOTAL = {operator.add: vc.subgroup_add, operator.mul: vc.subgroup_mul}
_NATIVE = (float32, float64, int32, uint32)


def _shuffle_xor(distance: int, part: Any) -> Any:
    return vc.subgroup_shuffle_xor(part, distance)


class Lanes:
    """The invocations that exchange values: those of a subgroup, or of a workgroup without shuffles."""

    def __init__(self, facts: LaneFacts) -> None:
        index = vc.local_invocation_index()
        self._facts = facts
        self.size = facts.size
        self.lane = (index % facts.size).to_register("scan_lane") if facts.has_shuffle else index
        self._memory: dict[DType, Any] = {}

    def up(self, value: Any, distance: int) -> Any:
        """Return the value of the invocation `distance` lanes before; undefined if there is none."""
        if self._facts.has_shuffle:
            return self._exchange(value, lambda part: vc.subgroup_shuffle_up(part, distance))
        return self._exchange_by_memory(value, vc.select(self.lane >= distance, self.lane - distance, 0))

    def at(self, value: Any, lane: Any) -> Any:
        """Return the value of a lane, which is the same for all invocations."""
        if self._facts.has_shuffle:
            return self._exchange(value, lambda part: vc.subgroup_shuffle(part, lane))
        return self._exchange_by_memory(value, lane)

    def item_up(self, item: Item, distance: int) -> Item:
        """Return the item of the invocation `distance` lanes before; undefined if there is none."""
        flag = None if item.flag is None else self.up(item.flag, distance)
        return Item(self.up(item.value, distance), flag)

    def item_at(self, item: Item, lane: Any) -> Item:
        """Return the item of a lane, which is the same for all invocations."""
        flag = None if item.flag is None else self.at(item.flag, lane)
        return Item(self.at(item.value, lane), flag)

    def inclusive(self, algebra: Algebra, item: Item, count: int | None = None) -> Item:
        """Return the total of the lanes up to this one; `count`: only so many lanes count."""
        scanned = self._call_native(algebra, _INCLUSIVE, item) if count is None else None
        if scanned is not None:
            return scanned
        distance = 1
        while distance < (count or self.size):
            both = algebra.join(self.item_up(item, distance), item)
            item = algebra.select(self.lane >= distance, both, item)
            distance *= 2
        return item

    def total(self, algebra: Algebra, item: Item) -> Item:
        """Return the total of all lanes, combined in any order."""
        total = self._call_native(algebra, _TOTAL, item)
        if total is not None:
            return total
        distance = 1
        while distance < self.size:
            value = self._exchange(item.value, partial(_shuffle_xor, distance))
            item = algebra.join(item, Item(value))
            distance *= 2
        return item

    def _call_native(self, algebra: Algebra, functions: dict[Any, Any], item: Item) -> Item | None:
        """Return the result of the device's own operation; None if it has none."""
        function = functions.get(algebra.operation.function)
        kinds = (*_NATIVE, int64, uint64) if self._facts.has_long_arithmetic else _NATIVE
        if not (self._facts.has_arithmetic and function and algebra.kind in kinds):
            return None
        if algebra.is_segmented or item.present is not True:
            return None
        return Item(function(item.value))

    def _exchange_by_memory(self, value: Any, lane: Any) -> Any:
        kind = value.var_type
        if kind not in self._memory:
            self._memory[kind] = vc.shared_buffer(kind, self.size)
        memory = self._memory[kind]
        vc.barrier()
        memory[self.lane] = value
        vc.barrier()
        return memory[lane].to_register()

    def _exchange(self, value: Any, exchange: Callable[[Any], Any]) -> Any:
        kind = value.var_type
        if is_matrix(kind):
            columns = [exchange(value[column].to_register()) for column in range(kind.child_count)]
            return vc.to_dtype(kind, *columns).to_register()
        return exchange(value)


def fold(algebra: Algebra, row: Sequence[Any], begins: Sequence[Any]) -> Item:
    """Return the total of neighbouring elements.

    `begins` tells for each whether a segment begins there: a GPU value, or None if none ever does.
    """
    value = row[0]
    for each, begin in zip(row[1:], begins[1:], strict=True):
        both = algebra.operation.combine(value, each)
        value = both if begin is None else vc.select(begin, each, both).to_register()
    if not algebra.is_segmented:
        return Item(value)
    known = [begin for begin in begins if begin is not None]
    any_begins: Any = vc.any(*known) if len(known) > 1 else known[0]
    return Item(value, vc.select(any_begins, 1, 0).to_dtype(uint32).to_register())


def apply_prefix(
    algebra: Algebra, prefix: Item, row: Sequence[Any], begins: Sequence[Any], *, is_exclusive: bool
) -> None:
    """Replace neighbouring elements, in registers, by their results; `prefix` is the total before them."""
    operation = algebra.operation
    running, present = prefix.value, prefix.present
    for value, begin in zip(row, begins, strict=True):
        own = value.to_register() if is_exclusive else value
        both = own
        if present is not False:
            both = operation.combine(running, own)
            if present is not True:
                both = vc.select(present, both, own).to_register()
            if begin is not None:
                both = vc.select(begin, own, both).to_register()
        if not is_exclusive:
            value[:] = both
            running, present = value, True
            continue
        neutral = operation.neutral()
        if present is False:
            value[:] = neutral
        else:
            before = running if present is True else vc.select(present, running, neutral)
            value[:] = before if begin is None else vc.select(begin, neutral, before)
        running, present = both, True
