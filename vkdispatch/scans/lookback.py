"""Items, which a scan combines, and the look-back, by which one pass is enough."""

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, float32, float64, int32, int64, is_matrix, uint32, uint64
from vkdispatch.base.record import record
from vkdispatch.families.values import join_words, split_words, word_count
from vkdispatch.scans.arguments import ScanOp
from vkdispatch.scans.planning import LaneFacts

# ---- Items, which a scan combines, and how the invocations of a workgroup exchange them ------------------
#
# An item is the total of some neighbouring elements. In a segmented scan it has a flag, which tells whether
# a segment begins among them; elements before that segment do not count.
#
# (a, f) then (b, g)  =  (b if g else a * b, f | g)
#
# This is associative if `*` is, so a segmented scan is a scan of items.


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


_SUBGROUP_NAMES = {operator.add: "add", operator.mul: "mul"}
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
        scanned = self._call_native(algebra, "subgroup_inclusive_", item) if count is None else None
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
        total = self._call_native(algebra, "subgroup_", item)
        if total is not None:
            return total
        distance = 1
        while distance < self.size:
            value = self._exchange(item.value, partial(_shuffle_xor, distance))
            item = algebra.join(item, Item(value))
            distance *= 2
        return item

    def _call_native(self, algebra: Algebra, prefix: str, item: Item) -> Item | None:
        """Return the result of the device's own operation; None if it has none."""
        name = _SUBGROUP_NAMES.get(algebra.operation.function)
        kinds = (*_NATIVE, int64, uint64) if self._facts.has_long_arithmetic else _NATIVE
        if not (self._facts.has_arithmetic and name and algebra.kind in kinds):
            return None
        if algebra.is_segmented or item.present is not True:
            return None
        return Item(getattr(vc, prefix + name)(item.value))

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
    for element, begin in zip(row[1:], begins[1:], strict=True):
        both = algebra.operation.combine(value, element)
        value = both if begin is None else vc.select(begin, element, both).to_register()
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


# ---- The look-back ---------------------------------------------------------------------------------------
#
# A tile reads the totals of the tiles before while they run, so one pass is enough.
#
# It follows the decoupled look-back of Merrill and Garland (2016), with a fixed tree instead of the walk
# back, so that floats have the same bits whatever the order of execution:
#
# tiles     0 1 2 3 ... 31 | 32 ...    | ...      each publishes its total as soon as it knows it
# blocks    of 32 tiles    | ...       | ...      the last tile of each publishes the total of its block
# sections  of 32 blocks                 | ...    the last tile of each publishes the total up to its end
#
# before tile t = (all sections before) * (blocks before, in its section) * (tiles before, in its block)
#
# 32 stands for the size of a subgroup, whose lanes read as many totals at once and combine them in the
# order of lanes. Subgroup 1 of a workgroup reads the tiles of its own block, subgroup 2 those of the block
# before, and so on: tiles that run at the same time are waited for directly. Subgroup 0 reads the totals of
# blocks that are further back. Either way the same tiles are combined in the same order. Only sections form
# a chain, with one link for every 1024 tiles.
#
# Invariants:
#
# - A word is a tag and 32 bits of a value, which are stored and loaded at once: no other order is needed.
#   A value of several words is complete when all its words are there.
# - Tags distinguish launches. The board starts as zeros, is kept for the next launch and is never cleared; a
#   launch ignores words of earlier launches. The number of the launch is on the board, too. The last tile,
#   which has waited for all others, increments it.
# - A queue runs launches that share a board one after another, and each queue has its own copy.
# - If workgroups may start in any order, a counter numbers tiles as their workgroups start. A tile that is
#   waited for has therefore started, and itself waits for earlier tiles only.
# - Devices without 64-bit atomics have tags in words of their own, released after the value and acquired
#   before.


# Words before the slots: the number of the launch, tiles that have started, rows that are done.
COUNTERS = 3


def count_slots(rows: int, tiles: int, subgroup: int) -> int:
    """Return how many items are published for rows of so many tiles."""
    blocks = -(-tiles // subgroup)
    return rows * (tiles + blocks + -(-blocks // subgroup))


class Board:
    """The words in which tiles publish their totals."""

    def __init__(
        self, algebra: Algebra, lanes: Lanes, buffers: tuple[Any, ...], tiles: Any, each: Any
    ) -> None:
        """Take the buffers of a board.

        Parameters
        ----------
        buffers
            Words with tags; or tags, and words.
        tiles
            The number of tiles.
        each
            Tiles of a row, if rows are independent; None if all tiles are one row.
        """
        self._algebra = algebra
        self._lanes = lanes
        self._status, self._values = (*buffers, None)[:2]
        self._tiles = tiles
        self._each = each
        self._size = word_count(algebra.kind)

    def begin(self, *, has_tickets: bool) -> Any:
        """Return the number of this workgroup's tile, and start to load the number of the launch."""
        self._has_tickets = has_tickets
        first = vc.local_invocation_index() == 0
        self._launch = vc.new_uint_register(0)
        self._launch_memory = vc.shared_buffer(uint32, 1)
        if not has_tickets:
            with vc.if_block(first):
                self._launch[:] = vc.atomic_load(self._status[0], relaxed=True).to_dtype(uint32)
            return vc.workgroup_id().x
        memory = vc.shared_buffer(uint32, 1)
        with vc.if_block(first):
            memory[0] = vc.atomic_add(self._status[1], 1).to_dtype(uint32)
            self._launch[:] = vc.atomic_load(self._status[0], relaxed=True).to_dtype(uint32)
        vc.barrier()
        return memory[0].to_register("scan_tile")

    def share_launch(self) -> None:
        """Store the number of the launch for the workgroup, which reads it after the next barrier."""
        with vc.if_block(vc.local_invocation_index() == 0):
            self._launch_memory[0] = self._launch

    def _end(self, last: Any) -> None:
        """Prepare the board for the next launch, once all tiles have published their totals."""
        with vc.if_block(vc.all(last, vc.local_invocation_index() == 0)):
            status, kind = self._status, self._status.var_type

            def prepare() -> None:
                next_launch = ((self._base + 1) >> 1).to_dtype(kind)
                vc.atomic_store(status[0], next_launch, relaxed=True)
                if self._has_tickets:
                    vc.atomic_store(status[1], vc.to_dtype(kind, 0), relaxed=True)

            if self._each is None:
                prepare()
                return
            # the last tile of a row has waited for the tiles of its own row only
            rows = self._tiles // self._each
            with vc.if_block(vc.atomic_add(status[2], 1).to_dtype(uint32) + 1 == rows):
                vc.atomic_store(status[2], vc.to_dtype(kind, 0), relaxed=True)
                prepare()

    def post(self, tile: Any, whole: Item) -> None:
        """Publish the total of a tile."""
        # tags of this launch: this one, and the next one for items in which a segment begins
        self._base = (self._launch_memory[0] * 2 + 1).to_register("scan_tag")
        with vc.if_block(vc.local_invocation_index() == 0):
            self._put(tile, whole)

    def before(self, tile: Any, whole: Item, subgroup: Any, subgroups: int) -> Item:
        """Return the total of the tiles before; `whole` is the total of this one."""
        algebra, lanes, fan = self._algebra, self._lanes, self._lanes.size
        lane = lanes.lane
        length = self._tiles if self._each is None else self._each
        blocks_each = (length + (fan - 1)) // fan
        tiles_at: Any = 0
        rows = 1 if self._each is None else self._tiles // length
        blocks_at, sections_at = self._tiles, self._tiles + rows * blocks_each
        position = tile
        if self._each is not None:
            row = (tile // length).to_register()
            tiles_at = (row * length).to_register()
            position = (tile - tiles_at).to_register()
            sections_at = sections_at + row * ((blocks_each + (fan - 1)) // fan)
            blocks_at = blocks_at + row * blocks_each
        blocks_at, sections_at = blocks_at.to_register(), sections_at.to_register()
        block = (position // fan).to_register()
        section = (block // fan).to_register()
        place = (position % fan).to_register()
        of_section = (block % fan).to_register()
        is_last = place == fan - 1
        # blocks whose tiles are read directly: this one, and those just before it
        near = min(subgroups - 1, fan) if subgroups > 1 else 1
        shared = _SharedItems(algebra, fan + 2)
        with vc.if_block(subgroup == 0) if subgroups > 1 else vc.scope_block():
            far = of_section + 1 - near
            wanted = vc.all(of_section + 1 > near, lane < far) if near < fan else None
            blocks = _Slots(self, blocks_at + (section * fan + lane), wanted) if near < fan else None
            # one lane reads the section, which is the same for all
            sections = _Slots(self, sections_at + vc.max(section, 1) - 1, vc.all(section > 0, lane == 0))
            if blocks is not None and wanted is not None:
                blocks.wait()
                with vc.if_block(wanted):
                    shared.write(lane, blocks.item())
            sections.wait()
            with vc.if_block(lane == 0):
                shared.write(fan + 1, sections.item())
        with vc.if_block(subgroup > 0) if subgroups > 1 else vc.scope_block():
            back = subgroup - 1 if subgroups > 1 else vc.to_dtype(uint32, 0)
            with vc.if_block(vc.all(back <= of_section, back < near)):
                number = of_section - back
                count = (
                    vc.select(back == 0, place, fan).to_dtype(uint32).to_register()
                    if subgroups > 1
                    else place
                )
                wanted = lane < count
                tiles = _Slots(self, tiles_at + ((section * fan + number) * fan + lane), wanted)
                tiles.wait()
                totals = lanes.inclusive(algebra, algebra.select(wanted, tiles.item(), whole))
                in_block = lanes.item_at(totals, vc.max(count, 1) - 1)
                own_block = lanes.item_at(totals, fan - 1)
                with vc.if_block(lane == 0):
                    shared.write(number, own_block)
                with vc.if_block(vc.all(count < fan, lane == 0)):
                    shared.write(fan, in_block)
                with vc.if_block(count == fan - 1):
                    self._put(blocks_at + block, own_block)
        vc.barrier()
        totals = lanes.inclusive(algebra, shared.read(vc.min(lane, of_section)))
        in_section = _mark_present(of_section > 0, lanes.item_at(totals, vc.max(of_section, 1) - 1))
        own_section = lanes.item_at(totals, fan - 1)
        earlier = _mark_present(section > 0, shared.read(fan + 1))
        in_block = _mark_present(place > 0, shared.read(fan))
        self._end(position + 1 == length)
        ends = vc.all(is_last, of_section == fan - 1)
        with vc.if_block(vc.all(ends, subgroup == 0) if subgroups > 1 else ends):
            self._put(sections_at + section, algebra.join(earlier, own_section))
        return algebra.join(algebra.join(earlier, in_section), in_block)

    def _put(self, slot: Any, item: Item) -> None:
        """Publish an item. The first invocation of a subgroup stores it."""
        tag: Any = self._base + item.flag if self._algebra.is_segmented else self._base
        with vc.if_block(self._lanes.lane == 0):
            words = split_words(item.value)
            for i, word in enumerate(words):
                if self._values is None:
                    pair = vc.pack_uint2x32(vc.to_uvec2(word, tag))
                    vc.atomic_store(self._status[slot * self._size + (COUNTERS + i)], pair, relaxed=True)
                else:
                    vc.atomic_store(self._values[slot * self._size + i], word, relaxed=True)
            if self._values is not None:
                vc.atomic_store(self._status[slot + COUNTERS], tag)

    def look(self, slot: Any, words: list[Any], tag: Any) -> None:
        """Load the words of an item, and its tag: 0 if it is not complete."""
        if self._values is not None:
            tag[:] = self._decode_tag(vc.atomic_load(self._status[slot + COUNTERS]))
            with vc.if_block(tag != 0):
                for i, word in enumerate(words):
                    word[:] = vc.atomic_load(self._values[slot * self._size + i], relaxed=True)
            return
        tags = []
        for i, word in enumerate(words):
            loaded = vc.atomic_load(self._status[slot * self._size + (COUNTERS + i)], relaxed=True)
            pair = vc.unpack_uint2x32(loaded).to_register()
            word[:] = pair.x
            tags.append(self._decode_tag(pair.y))
        least = tags[0]
        for other in tags[1:]:
            least = vc.min(least, other)
        tag[:] = least

    def _decode_tag(self, tag: Any) -> Any:
        """Return 1 for a tag of this launch, or 2 if a segment begins in the item; 0 for other tags."""
        ahead = tag - self._base
        if not self._algebra.is_segmented:
            return vc.select(ahead == 0, 1, 0).to_dtype(uint32).to_register()
        return vc.select(ahead < 2, ahead + 1, 0).to_dtype(uint32).to_register()

    def new_words(self) -> list[Any]:
        """Return registers for an item's words."""
        return [vc.new_uint_register(0) for _ in range(self._size)]

    def item_of(self, words: list[Any], tag: Any) -> Item:
        """Return the item of some words."""
        value = join_words(self._algebra.kind, words).to_register()
        if not self._algebra.is_segmented:
            return Item(value)
        return Item(value, vc.select(tag > 1, 1, 0).to_dtype(uint32).to_register())


def _mark_present(condition: Any, item: Item) -> Item:
    return Item(item.value, item.flag, condition.to_register())


class _Slots:
    """Published items: one for each lane where it is wanted."""

    def __init__(self, board: Board, slot: Any, wanted: Any) -> None:
        self._board = board
        self._slot = slot.to_register()
        self._words = board.new_words()
        # a lane without an item does not wait
        self._tag = vc.select(wanted, 0, 1).to_dtype(uint32).to_register()

    def look(self) -> None:
        """Load items that are wanted and were not complete."""
        with vc.if_block(self._tag == 0):
            self._board.look(self._slot, self._words, self._tag)

    def wait(self) -> None:
        """Repeat until all wanted items are complete."""
        self.look()
        with vc.while_block(vc.subgroup_any(self._tag == 0)):
            self.look()

    def item(self) -> Item:
        """Return the item; undefined in lanes that wanted none."""
        return self._board.item_of(self._words, self._tag)


class _SharedItems:
    """Items in workgroup memory."""

    def __init__(self, algebra: Algebra, count: int) -> None:
        self._values = vc.shared_buffer(algebra.kind, count)
        self._flags = vc.shared_buffer(uint32, count) if algebra.is_segmented else None

    def write(self, place: Any, item: Item) -> None:
        """Store an item."""
        self._values[place] = item.value
        if self._flags is not None:
            self._flags[place] = item.flag

    def read(self, place: Any) -> Item:
        """Return an item that was stored before a barrier."""
        flag = None if self._flags is None else self._flags[place].to_register()
        return Item(self._values[place].to_register(), flag)
