"""Tiles of keys, ranked and sorted in a workgroup; and rows that fit one."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.record import record
from vkdispatch.families.kernels import buffers, numbers, trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import join_words, split_words
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Digit, Order, SortOutputs

#   keys of a tile        | subgroup 0: item 0, item 1, ... | subgroup 1: item 0, ... | ...
#   counted               tables: digit x subgroup -> keys
#   summed up             over subgroups, and then over digits: where the first key of each goes
#   ranked by ballots     each key finds the keys of its subgroup and item that share its digit: those before
#                         it, and the first of them, which adds them all to the table of its subgroup
#   place in the tile     entry of the table before that + keys before
#
# An item is one key of each invocation of a subgroup, neighbours side by side. `rank` fills the tables as
# it ranks keys, and sums them up after. `place` counts keys first, and puts each in its place as it is
# ranked: it needs one more atomic for each key, but counts are known earlier and no places are kept in
# registers. The last part is for devices without ballots.
#
# Invariants: places are a permutation of those of the tile, in the order of digits; keys of equal digits
# keep their order, so the sort is stable. Nothing depends on which subgroup is first.


_ALL = 0xFFFFFFFF
# Keys that subgroups vote on before they read the tables.
_TOGETHER = 2
# Traces what is done with a key, by its number, once its place is known.
Put = Callable[[int, Any], None]


@record
class TileForm:
    """How a workgroup sorts a tile.

    Attributes
    ----------
    group
        Invocations.
    items
        Keys of each.
    width
        Bits of a digit.
    subgroup
        Invocations that vote together; 1: none do, and a `SerialTile` ranks the tile.
    has_arithmetic
        Whether subgroups compute running sums by the device's own operations.
    """

    group: int
    items: int
    width: int
    subgroup: int
    has_arithmetic: bool

    @property
    def tile(self) -> int:
        """Keys of a tile."""
        return self.group * self.items

    @property
    def teams(self) -> int:
        """Subgroups of a workgroup, each with a table."""
        return self.group // self.subgroup

    @property
    def bins(self) -> int:
        """Entries of a table."""
        return 1 << self.width


class Tile:
    """A tile, in a trace."""

    def __init__(self, form: TileForm, words: int = 0) -> None:
        """Declare its memory.

        `words` is the number of words of each place, in memory apart from the tables; 0: places and tables
        share memory, in turns.
        """
        self.form = form
        self.index = vc.local_invocation_index().to_register("tile_index")
        self.team = vc.subgroup_id().to_register("tile_team")
        self.lane = vc.subgroup_invocation_id().to_register("tile_lane")
        tables = form.teams * form.bins
        shared = 0 if words else form.tile
        self.memory: Any = vc.shared_buffer(dtype.uint32, max(tables, shared), "tile_memory")
        # contents of places: the first words of all, the second words, and so on
        self.placed_words: Any = None
        if words:
            self.placed_words = vc.shared_buffer(dtype.uint32, words * form.tile, "tile_placed")
        # where each digit begins in the tile, after `rank`
        self.starts: Any = None if words else vc.shared_buffer(dtype.uint32, form.bins, "tile_starts")
        self._sums: Any = vc.shared_buffer(dtype.uint32, max(form.group, 1), "tile_sums")
        self._long_sums: Any = None
        # keys of the tile for each of `own_bins`, after `sum_up`
        self.counts: list[Any] = []
        self._below = self._lanes_below()

    def places(self) -> list[Any]:
        """Return the places of this invocation's keys before the tile is ranked."""
        form = self.form
        first = (self.team * (form.subgroup * form.items) + self.lane).to_register("tile_first")
        return [first + i * form.subgroup for i in range(form.items)]

    def sorted_places(self) -> list[Any]:
        """Return the places of the ranked tile that this invocation writes out: neighbours side by side."""
        return [self.index + i * self.form.group for i in range(self.form.items)]

    def own_bins(self) -> list[tuple[Any, Any]]:
        """Return the digits that this invocation owns, each with a condition: whether it owns it.

        The condition is None if all invocations own one. The owner of a digit sums up its tables.
        """
        form = self.form
        count = max(1, form.bins // form.group)
        is_own = None if form.bins >= form.group else self.index < form.bins
        return [(self.index * count + i if count > 1 else self.index, is_own) for i in range(count)]

    # -- ranks

    def rank(self, digits: Sequence[Any], bits: int) -> list[Any]:
        """Return the places of this invocation's keys in the ranked tile, by digits of so many bits.

        `starts` then holds where each digit begins, and `counts` are known. All invocations must take part.
        """
        self.clear()
        vc.barrier()
        # a key is counted in the table of its subgroup, and learns how many keys of its digit came before
        ranks = [self._add_to_table(self._entry(digit), *self._vote(digit, bits)) for digit in digits]
        vc.barrier()
        owned = self.own_bins()
        for (digit, is_own), start in zip(owned, self.sum_up(owned), strict=True):
            with only_if(is_own):
                self.starts[digit] = start
        vc.barrier()
        base = (self.team * self.form.bins).to_register()
        return [
            (self.memory[base + digit] + rank).to_register("tile_place")
            for digit, rank in zip(digits, ranks, strict=True)
        ]

    def place(
        self, digits: Sequence[Callable[[], Any]], bits: int, use_counts: Callable[[], None], put: Put
    ) -> list[Any]:
        """Rank keys, and put each in its place as soon as that is known.

        Parameters
        ----------
        digits
            Functions that return the digit of each of this invocation's keys, of so many bits.
        use_counts
            Traces what is done with `counts` once they are known, before keys are ranked.
        put
            Traces how a key is put in its place, in memory apart from the tables.

        Returns
        -------
        Where each of `own_bins` begins in the tile.
        """
        for digit in digits:
            vc.atomic_add(self.memory[self._entry(digit())], 1)
        vc.barrier()
        starts = self.sum_up(self.own_bins(), use_counts)
        vc.barrier()
        for first in range(0, len(digits), _TOGETHER):
            together = [digit().to_register() for digit in digits[first : first + _TOGETHER]]
            votes = [self._vote(digit, bits) for digit in together]
            # from here on the tables hold places, which are incremented
            for number, (digit, (peers, lower)) in enumerate(zip(together, votes, strict=True), first):
                put(number, self._add_to_table(self._entry(digit), peers, lower))
        return starts

    def clear(self) -> None:
        """Set all tables to zero."""
        size, group = self.form.teams * self.form.bins, self.form.group
        for start in range(0, size, group):
            with only_if(None if start + group <= size else self.index < size - start):
                self.memory[self.index + start] = 0

    def _vote(self, digit: Any, bits: int) -> tuple[list[Any], Any]:
        """Return the invocations with the same digit, as `_find_peers`, and how many of them come before."""
        peers = self._find_peers(digit, bits)
        below = [word & below for word, below in zip(peers, self._below, strict=True)]
        return peers, _bit_count(below).to_register("tile_lower")

    def _add_to_table(self, entry: Any, peers: list[Any], lower: Any) -> Any:
        """Let the first of the peers add them all to an entry; return the entry before, plus `lower`."""
        before = self.memory[entry].to_register("tile_rank")
        vc.subgroup_barrier()
        with vc.if_block(lower == 0):
            self.memory[entry] = before + _bit_count(peers)
        rank = (before + lower).to_register("tile_rank")
        vc.subgroup_barrier()
        return rank

    def _entry(self, digit: Any) -> Any:
        """Return the index of a digit in the table of the subgroup."""
        return (self.team * self.form.bins + digit).to_register("tile_entry")

    def count_key(self, digit: Any, exists: Any) -> None:
        """Count a key in the table of its subgroup where it exists."""
        entry = (self.team * self.form.bins + digit).to_register()
        with vc.if_block(exists):
            vc.atomic_add(self.memory[entry], 1)

    def _find_peers(self, digit: Any, bits: int) -> list[Any]:
        """Return, as bits of words, the invocations of the subgroup whose key has the same digit."""
        form = self.form
        words = -(-form.subgroup // 32)
        full = (1 << min(form.subgroup, 32)) - 1
        peers = [vc.new_uint_register(full) for _ in range(words)]
        none, every = (vc.to_dtype(dtype.uint32, word) for word in (0, _ALL))
        for bit in range(bits):
            one = ((digit & (1 << bit)) != 0).to_register()
            vote = vc.subgroup_ballot(one)
            unlike = vc.select(one, none, every).to_register()
            for word in range(words):
                peers[word][:] = peers[word] & (vote[word] ^ unlike)
        return peers

    def _lanes_below(self) -> list[Any]:
        mask = vc.subgroup_lt_mask()
        return [mask[word].to_register("tile_below") for word in range(-(-self.form.subgroup // 32))]

    # -- sums

    def sum_up(
        self, owned: Sequence[tuple[Any, Any]], use_counts: Callable[[], None] | None = None
    ) -> list[Any]:
        """Turn the counts of the tables into places, and return where each of `own_bins` begins in the tile.

        `use_counts` traces what is done with `counts` once they are known.
        """
        form = self.form
        self.counts = [self.sum_digit(digit, is_own) for digit, is_own in owned]
        if use_counts is not None:
            use_counts()
        starts = self.sum_before(self.counts)
        for (digit, is_own), start in zip(owned, starts, strict=True):
            with only_if(is_own):
                place = start.to_register()
                for team in range(form.teams):
                    entry = digit + team * form.bins
                    count = self.memory[entry].to_register()
                    self.memory[entry] = place
                    place += count
        return starts

    def sum_digit(self, digit: Any, is_own: Any) -> Any:
        """Return the sum of a digit over all tables; 0 where this invocation does not own it."""
        total = vc.new_uint_register(0)
        with only_if(is_own):
            for team in range(self.form.teams):
                total += self.memory[digit + team * self.form.bins]
        return total

    def sum_before(self, totals: Sequence[Any]) -> list[Any]:
        """Return the sum of the totals of all smaller digits, for each digit that this invocation owns.

        `totals` are those of its own digits, or zeros.
        """
        whole = totals[0]
        for total in totals[1:]:
            whole = whole + total
        before = self.sum_across(whole.to_register(), self.form.bins)
        starts = []
        for total in totals:
            starts.append(before.to_register())
            before = before + total
        return starts

    def sum_across(self, value: Any, owners: int = 0) -> Any:
        """Return the sum of a value over all invocations before this one.

        With `owners`, only so many invocations have a value other than zero, and only they use the sum.
        """
        form, kind = self.form, value.var_type
        owners = min(owners or form.group, form.group)
        if form.has_arithmetic and kind is dtype.uint32:
            inclusive = vc.subgroup_inclusive_add(value)
            with vc.if_block(self.lane == form.subgroup - 1):
                self._sums[self.team] = inclusive
            vc.barrier()
            before = (inclusive - value).to_register()
            for team in range(-(-owners // form.subgroup) - 1):
                before += vc.select(self.team > team, self._sums[team], 0)
            vc.barrier()
            return before
        sums: Any = self._sums
        if kind is not dtype.uint32:
            sums = self._long_sums = self._long_sums or vc.shared_buffer(kind, form.group, "tile_long_sums")
        total = value.to_register()
        sums[self.index] = total
        vc.barrier()
        step = 1
        while step < owners:
            with vc.if_block(self.index >= step):
                total += sums[self.index - step]
            vc.barrier()
            sums[self.index] = total
            vc.barrier()
            step *= 2
        return (total - value).to_register()

    # -- exchange

    def exchange(self, values: Sequence[Any], places: Sequence[Any]) -> list[Any]:
        """Move values to places, and return those at this invocation's `sorted_places`.

        `values` are of a raw type. The tables are overwritten.
        """
        return self._exchange(values, places, self.sorted_places())

    def regroup(self, values: Sequence[Any], places: Sequence[Any]) -> list[Any]:
        """Move values to places, and return those at this invocation's `places`, for the next step."""
        return self._exchange(values, places, self.places())

    def _exchange(self, values: Sequence[Any], to: Sequence[Any], places: Sequence[Any]) -> list[Any]:
        kind = values[0].var_type
        columns = zip(*(split_words(value) for value in values), strict=True)
        fetched = []
        for words in columns:
            vc.barrier()
            for word, place in zip(words, to, strict=True):
                self.memory[place] = word
            vc.barrier()
            fetched.append([self.memory[place].to_register() for place in places])
        return [join_words(kind, words).to_register() for words in zip(*fetched, strict=True)]


def _bit_count(words: Sequence[Any]) -> Any:
    count = vc.bit_count(words[0])
    for word in words[1:]:
        count = count + vc.bit_count(word)
    return count.to_dtype(dtype.uint32)


def only_if(condition: Any) -> AbstractContextManager[Any]:
    """Return a block of statements that runs where a condition holds; None: everywhere."""
    return nullcontext() if condition is None else vc.if_block(condition)


# ---- A tile ranked without votes: for devices whose subgroups have no ballots ----------------------------
#
#     keys of a tile       | invocation 0: items in a row | invocation 1 | ...
#     tables               digit x invocation -> keys so far, each counted by its invocation alone
#     summed up            digit by digit, and within a digit invocation by invocation
#     place in the tile    the entry of a key's digit and invocation, which each key increments
#
# Everything is a loop over workgroup memory, so kernels are short.
#
# Invariants: those above.


# Returns the digit of the key at a place.
DigitOf = Callable[[Any], Any]


class SerialTile:
    """A tile, in a trace: columns of words in workgroup memory, which are moved together."""

    def __init__(self, form: TileForm, kinds: Sequence[Any], many: Any) -> None:
        """Declare memory for elements of some raw types at each place.

        `many` is any argument of the kernel that is at least 1.
        """
        # compilers unroll loops of a constant number of rounds, which takes long to compile
        self._one = vc.min(many, 1).to_register("tile_one")
        self.form = form
        self.index = vc.local_invocation_index().to_register("tile_index")
        self._kinds = list(kinds)
        counts = [max(1, kind.item_size // 4) for kind in kinds]
        self._words = [range(sum(counts[:i]), sum(counts[: i + 1])) for i in range(len(counts))]
        self._total = sum(counts)
        self.starts: Any = vc.shared_buffer(dtype.uint32, form.bins, "tile_starts")
        self._table: Any = vc.shared_buffer(dtype.uint32, form.bins * form.group, "tile_table")
        self._sums: dict[Any, Any] = {}
        if kinds:
            self._from: Any = vc.shared_buffer(dtype.uint32, self._total * form.tile, "tile_from")
            self._to: Any = vc.shared_buffer(dtype.uint32, self._total * form.tile, "tile_to")

    def each_place(self) -> AbstractContextManager[Any]:
        """Return a loop over this invocation's items, with neighbours side by side."""
        return self.loop(self.form.items)

    def loop(self, rounds: int) -> AbstractContextManager[Any]:
        """Return a loop of so many rounds."""
        return vc.for_block(0, self._one * rounds)

    def place(self, item: Any) -> Any:
        """Return the place of an item of `each_place`."""
        return (item.to_dtype(dtype.uint32) * self.form.group + self.index).to_register("tile_place")

    def put(self, column: int, place: Any, value: Any) -> None:
        """Set an element before a move."""
        for word, part in zip(self._words[column], split_words(value), strict=True):
            self._from[place + word * self.form.tile] = part

    def get(self, column: int, place: Any) -> Any:
        """Return an element: in `digit_of` before the move, afterwards after it."""
        parts = [self._from[place + word * self.form.tile].to_register() for word in self._words[column]]
        return join_words(self._kinds[column], parts)

    def count(self, digit: Any) -> None:
        """Count a digit in this invocation's table."""
        entry = (digit * self.form.group + self.index).to_register()
        self._table[entry] = self._table[entry] + 1

    def clear(self) -> None:
        """Set this invocation's table to zero."""
        with self.loop(self.form.bins) as digit:
            self._table[digit * self.form.group + self.index] = 0

    def sum_digit(self, digit: Any) -> Any:
        """Return how many keys have a digit. Needs a barrier after the last key is counted."""
        total = vc.new_uint_register(0)
        with self.loop(self.form.group) as other:
            total += self._table[digit * self.form.group + other]
        return total

    def move_by_digit(self, digit_of: DigitOf) -> None:
        """Move every key, and its payload, to its place by a digit.

        `starts` then holds where each digit begins. Needs a barrier before, and ends with one.
        """
        form = self.form
        self.clear()
        with self.loop(form.items) as item:
            place = (self.index * form.items + item.to_dtype(dtype.uint32)).to_register()
            self.count(digit_of(place))
        vc.barrier()
        first = (self.index * form.bins).to_register()
        total = vc.new_uint_register(0)
        with self.loop(form.bins) as number:
            total += self._table[first + number]
        before = self.sum_across(total)
        with self.loop(form.bins) as number:
            entry = (first + number).to_register()
            count = self._table[entry].to_register()
            self._table[entry] = before
            before += count
        vc.barrier()
        with vc.for_block(self.index, form.bins, form.group) as digit:
            self.starts[digit] = self._table[digit * form.group]
        vc.barrier()
        with self.loop(form.items) as item:
            place = (self.index * form.items + item.to_dtype(dtype.uint32)).to_register()
            entry = (digit_of(place) * form.group + self.index).to_register()
            target = self._table[entry].to_register()
            self._table[entry] = target + 1
            for word in range(self._total):
                self._to[target + word * form.tile] = self._from[place + word * form.tile]
        vc.barrier()
        with self.each_place() as item:
            place = self.place(item)
            for word in range(self._total):
                self._from[place + word * form.tile] = self._to[place + word * form.tile]
        vc.barrier()

    def sum_across(self, value: Any) -> Any:
        """Return the sum of a value over all invocations before this one, in a register."""
        kind = value.var_type
        if kind not in self._sums:
            self._sums[kind] = vc.shared_buffer(kind, self.form.group, "tile_sums")
        sums = self._sums[kind]
        sums[self.index] = value
        vc.barrier()
        before = vc.new_register(kind)
        with vc.for_block(0, self.index) as other:
            before += sums[other]
        vc.barrier()
        return before


# ---- Rows that fit a workgroup are sorted in one launch, in registers and workgroup memory ---------------
#
#     rows of a tile   | row 0 ........ | row 1 ........ | ... |
#     digits of keys   ranked and moved within the tile, the least significant first, rows mixed
#     number of row    one more digit if there are several rows: it separates the rows again
#
# In rows of a few keys, each key counts those that come before it.
#
# Invariants: each step is stable, so the sort is. A tile is read before it is written, so a block of rows may
# be sorted in place. Places beyond the last row have the largest digit, and stay behind it.


_ROW_BITS = 8
_ROWS = Order(dtype.uint32, bits=_ROW_BITS)
# Rows of a tile: one digit holds their numbers, and one beyond them.
MAX_ROWS = 1 << (_ROW_BITS - 1)


@record
class BlockForm:
    """What the kernel of short rows is specialised for.

    Attributes
    ----------
    tile
        How a workgroup sorts a tile.
    order
        The order of the keys.
    has_rows
        Whether a tile may have several rows.
    outputs
        What is written.
    """

    tile: TileForm
    order: Order
    has_rows: bool
    outputs: SortOutputs

    @property
    def has_origins(self) -> bool:
        """Whether keys carry the place where they were in the tile."""
        return self.has_rows or self.outputs.has_positions


@store_results
def make_block_kernel(form: BlockForm) -> ShaderFunction:
    """Return the kernel of short rows.

    Its arguments are the keys, the outputs, the number of rows, their length, and the rows of a tile.
    """

    def body(keys: Any, results: Any, rows: Any, length: Any, together: Any) -> None:
        if form.tile.subgroup == 1:
            _run_serially(form, keys, results, rows, length, together)
            return
        _Block(form, keys, results, rows, length, together).run()

    arguments = [
        *buffers(sort_keys=form.order.raw),
        form.outputs.arguments(form.order.raw),
        *numbers("sort_rows", "sort_length", "sort_together"),
    ]
    return trace_kernel(
        f"sort_block_{form.order.kind.name}",
        body,
        arguments,
        form.tile.group,
        "(sort_rows + sort_together - 1) // sort_together",
    )


class _Block:
    """The kernel of short rows, in a trace."""

    def __init__(
        self, form: BlockForm, keys: Any, results: Any, rows: Any, length: Any, together: Any
    ) -> None:
        self._form, self._from, self._length = form, keys, length
        self._sorted, self._positions = results
        self._tile = Tile(form.tile)
        first = (vc.workgroup_id().x * together).to_register("sort_first_row")
        self._base = (first * length).to_register("sort_base")
        self._count = (vc.min(together, rows - first) * length).to_register("sort_count")

    def run(self) -> None:
        """Record the kernel's statements."""
        form, tile = self._form, self._tile
        places = tile.places()
        self._keys = [
            self._from[self._base + vc.select(place < self._count, place, 0)].to_register()
            for place in places
        ]
        self._origins = [place.to_register() for place in places] if form.has_origins else []
        steps = [(form.order, digit) for digit in form.order.digits(form.tile.width)]
        if form.has_rows:
            steps += [(_ROWS, digit) for digit in _ROWS.digits(tile.form.width)]
        for number, (order, digit) in enumerate(steps):
            self._move(places, order, digit, is_last=number == len(steps) - 1)
        self._write()

    def _move(self, places: list[Any], order: Order, digit: Digit, *, is_last: bool) -> None:
        """Move keys to their places by one digit."""
        tile, largest = self._tile, (1 << digit.bits) - 1
        by_row = order is _ROWS
        digits = [
            vc.select(
                place < self._count,
                order.digit(self._origins[i] // self._length if by_row else self._keys[i], digit),
                largest,
            ).to_register("sort_digit")
            for i, place in enumerate(places)
        ]
        targets = tile.rank(digits, digit.bits)
        move = tile.exchange if is_last else tile.regroup
        if not is_last or self._form.outputs.has_keys:
            self._keys = move(self._keys, targets)
        if self._origins:
            self._origins = move(self._origins, targets)
        if not is_last:
            vc.barrier()

    def _write(self) -> None:
        form, places = self._form, self._tile.sorted_places()
        if self._sorted is not None:
            self._store(self._sorted, places, self._keys)
        if self._positions is not None:
            origins = [origin % self._length if form.has_rows else origin for origin in self._origins]
            self._store(self._positions, places, [form.outputs.position(origin) for origin in origins])

    def _store(self, buffer: Any, places: list[Any], values: list[Any]) -> None:
        for place, value in zip(places, values, strict=True):
            with vc.if_block(place < self._count):
                buffer[self._base + place] = value


def _run_serially(form: BlockForm, keys: Any, results: Any, rows: Any, length: Any, together: Any) -> None:
    tile = SerialTile(form.tile, [form.order.raw, *([dtype.uint32] if form.has_origins else [])], rows)
    first = (vc.workgroup_id().x * together).to_register("sort_first_row")
    base = (first * length).to_register("sort_base")
    count = (vc.min(together, rows - first) * length).to_register("sort_count")
    with tile.each_place() as item:
        place = tile.place(item)
        tile.put(0, place, keys[base + vc.select(place < count, place, 0)].to_register())
        if form.has_origins:
            tile.put(1, place, place)
    vc.barrier()
    largest = tile.form.bins - 1
    for part, bits in enumerate(form.order.part_bits):
        with tile.loop(-(-bits // form.tile.width)) as number:
            shift = (number * form.tile.width).to_register()

            def digit_of(place: Any, part: int = part, shift: Any = shift) -> Any:
                code = (form.order.part(tile.get(0, place), part) >> shift) & largest
                return vc.select(place < count, code, largest).to_register()

            tile.move_by_digit(digit_of)
    if form.has_rows:
        with tile.loop(_ROW_BITS // form.tile.width) as number:
            shift = (number * form.tile.width).to_register()

            def row_of(place: Any, shift: Any = shift) -> Any:
                row = ((tile.get(1, place) // length) >> shift) & largest
                return vc.select(place < count, row, largest).to_register()

            tile.move_by_digit(row_of)
    with tile.each_place() as item:
        place = tile.place(item)
        with vc.if_block(place < count):
            if form.outputs.has_keys:
                results[0][base + place] = tile.get(0, place)
            if form.outputs.has_positions:
                origin = tile.get(1, place)
                origin = origin % length if form.has_rows else origin
                results[1][base + place] = form.outputs.position(origin)


@store_results
def make_short_kernel(order: Order, outputs: SortOutputs, group: int) -> ShaderFunction:
    """Return the kernel of rows of a few keys, an invocation for each key.

    Its arguments are the keys, the outputs, the number of rows, and their length. It does not sort in place.
    """
    parts = len(order.part_bits)

    def body(source: Any, results: Any, rows: Any, length: Any) -> None:
        element = (vc.workgroup_id().x * group + vc.local_invocation_index()).to_register("sort_element")
        with vc.if_block(element < rows * length):
            place = (element % length).to_register("sort_own")
            base = (element - place).to_register("sort_base")
            key = source[element].to_register()
            code = [order.part(key, part).to_register() for part in range(parts)]
            rank = vc.new_uint_register(0)
            with vc.for_block(0, length) as number:
                other = source[base + number].to_register()
                smaller: Any = None
                for part in range(parts):  # the last part is the most significant
                    value = order.part(other, part).to_register()
                    if smaller is None:
                        before = vc.any(value < code[part], vc.all(value == code[part], number < place))
                    else:
                        before = vc.any(value < code[part], vc.all(value == code[part], smaller))
                    smaller = before
                rank += smaller.to_dtype(dtype.uint32)
            if outputs.has_keys:
                results[0][base + rank] = key
            if outputs.has_positions:
                results[1][base + rank] = outputs.position(place)

    arguments = [
        *buffers(sort_keys=order.raw),
        outputs.arguments(order.raw),
        *numbers("sort_rows", "sort_length"),
    ]
    return trace_kernel(
        f"sort_short_{order.kind.name}",
        body,
        arguments,
        group,
        f"(sort_rows * sort_length + {group - 1}) // {group}",
    )
