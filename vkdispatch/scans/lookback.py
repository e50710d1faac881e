"""What the tiles before come to, found out while they are at work: a scan in a single pass over the memory.

After the decoupled look-back of Merrill and Garland (2016), but with a fixed tree in place of the walk back,
so that floats have the same bits whoever is first:

tiles     0 1 2 3 ... 31 | 32 ...    | ...      each leaves what it comes to as soon as it knows
blocks    of 32 tiles    | ...       | ...      the last tile of each leaves what its block comes to
sections  of 32 blocks                 | ...    the last tile of each: what all up to its end come to

before tile t = (all sections before) * (blocks before, of its section) * (tiles before, of its block)

32 stands for the size of a subgroup, whose invocations look at as many of these at once, and join what they
find in an order given by their lanes. Subgroup 1 of a workgroup looks at the tiles of its own block, 2 at
those of the block before, and so on: who is at work at the same time is waited for at first hand. What a
block further back comes to is asked for by subgroup 0. Either way the same tiles are joined in the same
order. Only sections form a chain, with a link for each 1024 tiles.

Invariants: a word is a tag and 32 bits of a value, stored and loaded at once, so that nothing else needs to
be ordered; a value of several words is there when all its words are. Tags tell launches apart: the board is
zero when it is made, is kept for the next launch, and never cleared; what a launch finds of those before it
is not there for it. The number of the launch lies on the board, too. The last tile, which has waited for
all others, counts it on. A queue runs launches that share a board one after another, and each queue has its
own copy. Tiles are numbered as their workgroups start, by a counter, where these may start in any order:
whoever is waited for has been started, and waits for earlier ones only. Where devices lack atomics of 64
bits, tags are words of their own, released after the value and acquired before it.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.values.words import join_words, split_words, word_count
from vkdispatch.base.dtype import uint32
from vkdispatch.scans.items import Algebra, Item, Lanes

# Words before the slots: the number of the launch, how many tiles have been taken, how many rows are done.
COUNTERS = 3


def slots_of(rows: int, tiles: int, subgroup: int) -> int:
    """Return how many slots for items there are on the board of so many rows of so many tiles."""
    blocks = -(-tiles // subgroup)
    return rows * (tiles + blocks + -(-blocks // subgroup))


class Board:
    """The words that tiles leave for those after them."""

    def __init__(
        self, algebra: Algebra, lanes: Lanes, status: Any, words: Any, tiles: Any, each: Any
    ) -> None:
        """`each` is how many of the tiles a row has that knows of no other; None: all are one row."""
        self._algebra = algebra
        self._lanes = lanes
        self._status = status
        self._values = words
        self._tiles = tiles
        self._each = each
        self._size = word_count(algebra.kind)

    def begin(self, *, tickets: bool) -> Any:
        """Return the number of this workgroup's tile; begin to ask for the launch's."""
        self._tickets = tickets
        first = vc.local_invocation_index() == 0
        self._launch = vc.new_uint_register(0)
        self._launch_memory = vc.shared_buffer(uint32, 1)
        if not tickets:
            with vc.if_block(first):
                self._launch[:] = vc.atomic_load(self._status[0], relaxed=True).to_dtype(uint32)
            return vc.workgroup_id().x
        memory = vc.shared_buffer(uint32, 1)
        with vc.if_block(first):
            memory[0] = vc.atomic_add(self._status[1], 1).to_dtype(uint32)
            self._launch[:] = vc.atomic_load(self._status[0], relaxed=True).to_dtype(uint32)
        vc.barrier()
        return memory[0].to_register("scan_tile")

    def tell_launch(self) -> None:
        """Tell the launch's number to the workgroup; a barrier later all know it."""
        with vc.if_block(vc.local_invocation_index() == 0):
            self._launch_memory[0] = self._launch

    def _end(self, last: Any) -> None:
        """Prepare the board for the next launch, when all tiles have passed on what they come to."""
        with vc.if_block(vc.all(last, vc.local_invocation_index() == 0)):
            status, kind = self._status, self._status.var_type

            def prepare() -> None:
                next_launch = ((self._base + 1) >> 1).to_dtype(kind)
                vc.atomic_store(status[0], next_launch, relaxed=True)
                if self._tickets:
                    vc.atomic_store(status[1], vc.to_dtype(kind, 0), relaxed=True)

            if self._each is None:
                prepare()
                return
            # the last tile of a row has waited for its own row only
            rows = self._tiles // self._each
            with vc.if_block(vc.atomic_add(status[2], 1).to_dtype(uint32) + 1 == rows):
                vc.atomic_store(status[2], vc.to_dtype(kind, 0), relaxed=True)
                prepare()

    def post(self, tile: Any, whole: Item) -> None:
        """Leave what a tile comes to."""
        # tags of this launch: this one, and the next for items in which a segment begins
        self._base = (self._launch_memory[0] * 2 + 1).to_register("scan_tag")
        with vc.if_block(vc.local_invocation_index() == 0):
            self._put(tile, whole)

    def before(self, tile: Any, whole: Item, subgroup: Any, subgroups: int) -> Item:
        """Return what the tiles before come to. `whole` is what this one comes to."""
        algebra, lanes, fan = self._algebra, self._lanes, self._lanes.size
        lane = lanes.lane
        each = self._tiles if self._each is None else self._each
        blocks_each = (each + (fan - 1)) // fan
        tiles_at: Any = 0
        rows = 1 if self._each is None else self._tiles // each
        blocks_at, sections_at = self._tiles, self._tiles + rows * blocks_each
        mine = tile
        if self._each is not None:
            row = (tile // each).to_register()
            tiles_at = (row * each).to_register()
            mine = (tile - tiles_at).to_register()
            sections_at = sections_at + row * ((blocks_each + (fan - 1)) // fan)
            blocks_at = blocks_at + row * blocks_each
        blocks_at, sections_at = blocks_at.to_register(), sections_at.to_register()
        block = (mine // fan).to_register()
        section = (block // fan).to_register()
        place = (mine % fan).to_register()
        of_section = (block % fan).to_register()
        last = place == fan - 1
        near = min(subgroups - 1, fan) if subgroups > 1 else 1
        shared = _Shared(algebra, fan + 2)
        looks = subgroup == 0 if subgroups > 1 else None
        with vc.if_block(looks) if looks is not None else vc.scope_block():
            far = of_section + 1 - near
            wanted = vc.all(of_section + 1 > near, lane < far) if near < fan else None
            blocks = _Slots(self, blocks_at + (section * fan + lane), wanted) if near < fan else None
            # all tiles ask for the same one: a lane of each will do
            sections = _Slots(self, sections_at + vc.max(section, 1) - 1, vc.all(section > 0, lane == 0))
            if blocks is not None and wanted is not None:
                blocks.wait()
                with vc.if_block(wanted):
                    shared.leave(lane, blocks.item())
            sections.wait()
            with vc.if_block(lane == 0):
                shared.leave(fan + 1, sections.item())
        with vc.if_block(subgroup > 0) if subgroups > 1 else vc.scope_block():
            back = subgroup - 1 if subgroups > 1 else vc.to_dtype(uint32, 0)
            with vc.if_block(vc.all(back <= of_section, back < near)):
                own = of_section - back
                here = (
                    vc.select(back == 0, place, fan).to_dtype(uint32).to_register()
                    if subgroups > 1
                    else place
                )
                wanted = lane < here
                tiles = _Slots(self, tiles_at + ((section * fan + own) * fan + lane), wanted)
                tiles.wait()
                joined = lanes.inclusive(algebra, algebra.chosen(wanted, tiles.item(), whole))
                in_block = lanes.item_at(joined, vc.max(here, 1) - 1)
                own_block = lanes.item_at(joined, fan - 1)
                with vc.if_block(lane == 0):
                    shared.leave(own, own_block)
                with vc.if_block(vc.all(here < fan, lane == 0)):
                    shared.leave(fan, in_block)
                with vc.if_block(here == fan - 1):
                    self._put(blocks_at + block, own_block)
        vc.barrier()
        joined = lanes.inclusive(algebra, shared.found(vc.min(lane, of_section)))
        in_section = self._present(lanes.item_at(joined, vc.max(of_section, 1) - 1), of_section > 0)
        own_section = lanes.item_at(joined, fan - 1)
        earlier = self._present(shared.found(fan + 1), section > 0)
        in_block = self._present(shared.found(fan), place > 0)
        self._end(mine + 1 == each)
        ends = vc.all(last, of_section == fan - 1)
        with vc.if_block(vc.all(ends, subgroup == 0) if subgroups > 1 else ends):
            self._put(sections_at + section, algebra.joined(earlier, own_section))
        return algebra.joined(algebra.joined(earlier, in_section), in_block)

    def _present(self, item: Item, condition: Any) -> Item:
        return Item(item.value, item.flag, condition.to_register())

    def _put(self, slot: Any, item: Item) -> None:
        """Leave an item, by the first invocation of a subgroup."""
        tag: Any = self._base + item.flag if self._algebra.segmented else self._base
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
        """Load an item, as far as it is there."""
        if self._values is not None:
            tag[:] = self._known(vc.atomic_load(self._status[slot + COUNTERS]))
            with vc.if_block(tag != 0):
                for i, word in enumerate(words):
                    word[:] = vc.atomic_load(self._values[slot * self._size + i], relaxed=True)
            return
        tags = []
        for i, word in enumerate(words):
            loaded = vc.atomic_load(self._status[slot * self._size + (COUNTERS + i)], relaxed=True)
            pair = vc.unpack_uint2x32(loaded).to_register()
            word[:] = pair.x
            tags.append(self._known(pair.y))
        found = tags[0]
        for each in tags[1:]:
            found = vc.min(found, each)
        tag[:] = found

    def _known(self, tag: Any) -> Any:
        """Return 1, or 2 if a segment begins, of a tag of this launch; 0 of others."""
        ahead = tag - self._base
        if not self._algebra.segmented:
            return vc.select(ahead == 0, 1, 0).to_dtype(uint32).to_register()
        return vc.select(ahead < 2, ahead + 1, 0).to_dtype(uint32).to_register()

    def new_words(self) -> list[Any]:
        """Return registers for an item's words."""
        return [vc.new_uint_register(0) for _ in range(self._size)]

    def item_of(self, words: list[Any], tag: Any) -> Item:
        """Return the item that these words are."""
        value = join_words(self._algebra.kind, words).to_register()
        if not self._algebra.segmented:
            return Item(value)
        return Item(value, vc.select(tag > 1, 1, 0).to_dtype(uint32).to_register())


class _Slots:
    """A slot for each lane, of those that are wanted."""

    def __init__(self, board: Board, slot: Any, wanted: Any) -> None:
        self._board = board
        self._slot = slot.to_register()
        self._words = board.new_words()
        # nothing is waited for where nothing is wanted
        self._tag = vc.select(wanted, 0, 1).to_dtype(uint32).to_register()

    def look(self) -> None:
        """Load what is wanted and not there yet."""
        with vc.if_block(self._tag == 0):
            self._board.look(self._slot, self._words, self._tag)

    def wait(self) -> None:
        """Look until all is there."""
        self.look()
        with vc.while_block(vc.subgroup_any(self._tag == 0)):
            self.look()

    def item(self) -> Item:
        """Return what was found; anything where nothing was wanted."""
        return self._board.item_of(self._words, self._tag)


class _Shared:
    """Items in the workgroup's memory."""

    def __init__(self, algebra: Algebra, count: int) -> None:
        self._values = vc.shared_buffer(algebra.kind, count)
        self._flags = vc.shared_buffer(uint32, count) if algebra.segmented else None

    def leave(self, place: Any, item: Item) -> None:
        """Keep an item."""
        self._values[place] = item.value
        if self._flags is not None:
            self._flags[place] = item.flag

    def found(self, place: Any) -> Item:
        """Return an item, when a barrier has been passed since it was left."""
        flag = None if self._flags is None else self._flags[place].to_register()
        return Item(self._values[place].to_register(), flag)
