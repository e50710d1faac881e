"""Values on their way through a scan, and how the invocations of a workgroup pass them on.

An item is what some neighbouring elements come to. In segmented scans it also knows whether a segment begins
among them: what lies before does not count then.

(a, f) then (b, g)  =  (b if g else a * b, f | g)

This is associative as `*` is, so a segmented scan is a scan of items.
"""

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import (
    DType,
    component_type,
    float32,
    float64,
    int32,
    int64,
    is_matrix,
    uint32,
    uint64,
    uvec2,
)
from vkdispatch.base.record import record
from vkdispatch.scans.operations import ScanOp


@record(eq=False)
class Item:
    """A value, in a register, and whether a segment begins in it (0 or 1; None where there are none).

    `present` tells whether it stands for any elements: True, False, or a GPU value.
    """

    value: Any
    flag: Any = None
    present: Any = True


class Algebra:
    """Combines items by an operation."""

    def __init__(self, operation: ScanOp, *, segmented: bool) -> None:
        self.operation = operation
        self.kind = operation.kind
        self.segmented = segmented

    def none(self) -> Item:
        """Return an item of no elements."""
        return Item(None, None, False)

    def variable(self, present: Any = True) -> Item:
        """Return registers for an item to be assigned later."""
        flag = vc.new_uint_register(0) if self.segmented else None
        return Item(vc.new_register(self.kind), flag, present)

    def assign(self, target: Item, item: Item) -> None:
        """Change the registers of `target`."""
        target.value[:] = item.value
        if self.segmented:
            target.flag[:] = item.flag

    def joined(self, a: Item, b: Item) -> Item:
        """Return two items, the earlier one first, as one."""
        if a.present is False:
            return b
        if b.present is False:
            return a
        value = self.operation.combined(a.value, b.value)
        flag = None
        if self.segmented:
            value = vc.select(b.flag != 0, b.value, value).to_register()
            before = a.flag if a.present is True else vc.select(a.present, a.flag, 0)
            flag = (before | b.flag).to_register()
        if a.present is True and b.present is True:
            return Item(value, flag)
        if a.present is not True:
            value = vc.select(a.present, value, b.value).to_register()
        if b.present is not True:
            value = vc.select(b.present, value, a.value).to_register()
            if self.segmented:
                flag = vc.select(b.present, flag, a.flag).to_register()
        sure = a.present is True or b.present is True
        return Item(value, flag, True if sure else vc.any(a.present, b.present).to_register())

    def chosen(self, condition: Any, a: Item, b: Item) -> Item:
        """Return one of two items; that it is there, if any of them is."""
        if a.present is False and b.present is False:
            return a
        if b.present is False:
            return Item(a.value, a.flag, vc.all(condition, _truth(a.present)).to_register())
        value = vc.select(condition, a.value, b.value).to_register()
        flag = vc.select(condition, a.flag, b.flag).to_register() if self.segmented else None
        present: Any = True
        if a.present is not True or b.present is not True:
            present = vc.select(condition, _truth(a.present), _truth(b.present)).to_register()
        return Item(value, flag, present)


def _truth(present: Any) -> Any:
    return (vc.to_dtype(uint32, 1) == 1) if present is True else present


_INCLUSIVE = {operator.add: vc.subgroup_inclusive_add, operator.mul: vc.subgroup_inclusive_mul}
_TOTAL = {operator.add: vc.subgroup_add, operator.mul: vc.subgroup_mul}
_NATIVE = (float32, float64, int32, uint32)


def _across(distance: int, part: Any) -> Any:
    return vc.subgroup_shuffle_xor(part, distance)


class Lanes:
    """The invocations of a subgroup, or of a workgroup without such: who they are, and what they exchange."""

    def __init__(self, size: int, *, shuffles: bool, extended: bool, native: bool = False) -> None:
        index = vc.local_invocation_index()
        self.size = size
        self.shuffles = shuffles
        self._extended = extended
        self._native = native
        self.lane = (index % size).to_register("scan_lane") if shuffles else index
        self._memory: dict[DType, Any] = {}

    def up(self, value: Any, distance: int) -> Any:
        """Return the value of the invocation so many before this one; anything where there is none."""
        if self.shuffles:
            return self._exchanged(value, lambda part: vc.subgroup_shuffle_up(part, distance))
        return self._by_memory(value, vc.select(self.lane >= distance, self.lane - distance, 0))

    def at(self, value: Any, lane: Any) -> Any:
        """Return the value of an invocation that all ask for."""
        if self.shuffles:
            return self._exchanged(value, lambda part: vc.subgroup_shuffle(part, lane))
        return self._by_memory(value, lane)

    def item_up(self, item: Item, distance: int) -> Item:
        """Return an item of the invocation so many before this one."""
        flag = None if item.flag is None else self.up(item.flag, distance)
        return Item(self.up(item.value, distance), flag)

    def item_at(self, item: Item, lane: Any) -> Item:
        """Return an item of an invocation that all ask for."""
        flag = None if item.flag is None else self.at(item.flag, lane)
        return Item(self.at(item.value, lane), flag)

    def inclusive(self, algebra: Algebra, item: Item, count: int | None = None) -> Item:
        """Return the items of all invocations up to this one, joined; of `count` at most."""
        scanned = self._by_device(algebra, _INCLUSIVE, item) if count is None else None
        if scanned is not None:
            return scanned
        distance = 1
        while distance < (count or self.size):
            both = algebra.joined(self.item_up(item, distance), item)
            item = algebra.chosen(self.lane >= distance, both, item)
            distance *= 2
        return item

    def total(self, algebra: Algebra, item: Item) -> Item:
        """Return the items of all invocations, joined in an order of its own."""
        total = self._by_device(algebra, _TOTAL, item)
        if total is not None:
            return total
        distance = 1
        while distance < self.size:
            value = self._exchanged(item.value, partial(_across, distance))
            item = algebra.joined(item, Item(value))
            distance *= 2
        return item

    def _by_device(self, algebra: Algebra, functions: dict[Any, Any], item: Item) -> Item | None:
        """Return what the device's own operation gives; None where it has none."""
        function = functions.get(algebra.operation.function)
        known = algebra.kind in _NATIVE or (self._extended and algebra.kind in (int64, uint64))
        if not (self._native and function and known) or algebra.segmented or item.present is not True:
            return None
        return Item(function(item.value))

    def _by_memory(self, value: Any, lane: Any) -> Any:
        kind = value.var_type
        if kind not in self._memory:
            self._memory[kind] = vc.shared_buffer(kind, self.size)
        memory = self._memory[kind]
        vc.barrier()
        memory[self.lane] = value
        vc.barrier()
        return memory[lane].to_register()

    def _exchanged(self, value: Any, exchange: Callable[[Any], Any]) -> Any:
        kind = value.var_type
        if is_matrix(kind):
            columns = [exchange(value[column].to_register()) for column in range(kind.child_count)]
            return vc.to_dtype(kind, *columns).to_register()
        component = component_type(kind)
        if component.item_size == 8 and component.name != "float64" and not self._extended:
            return vc.reinterpret(kind, exchange(vc.reinterpret(uvec2, value).to_register())).to_register()
        return exchange(value)


def folded(algebra: Algebra, row: Sequence[Any], begins: Sequence[Any]) -> Item:
    """Return what neighbouring elements come to.

    `begins` tells of each whether a segment begins there: a GPU value, or None where none can.
    """
    value = row[0]
    for each, begin in zip(row[1:], begins[1:], strict=True):
        both = algebra.operation.combined(value, each)
        value = both if begin is None else vc.select(begin, each, both).to_register()
    if not algebra.segmented:
        return Item(value)
    known = [begin for begin in begins if begin is not None]
    any_begins: Any = vc.any(*known) if len(known) > 1 else known[0]
    return Item(value, vc.select(any_begins, 1, 0).to_dtype(uint32).to_register())


def finish(
    algebra: Algebra, prefix: Item, row: Sequence[Any], begins: Sequence[Any], *, exclusive: bool
) -> None:
    """Replace neighbouring elements, which are registers, by their results; `prefix` is what is before."""
    operation = algebra.operation
    running, present = prefix.value, prefix.present
    for value, begin in zip(row, begins, strict=True):
        own = value.to_register() if exclusive else value
        both = own
        if present is not False:
            both = operation.combined(running, own)
            if present is not True:
                both = vc.select(present, both, own).to_register()
            if begin is not None:
                both = vc.select(begin, own, both).to_register()
        if not exclusive:
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
