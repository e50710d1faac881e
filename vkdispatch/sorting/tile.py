"""A tile of keys, ranked by one digit in a workgroup: the step that every radix sort here is made of.

    keys of a tile        | subgroup 0: item 0, item 1, ... | subgroup 1: item 0, ... | ...
    counted               tables: digit x subgroup -> keys
    summed up             over subgroups, and then over digits: where the first key of each goes
    ranked by ballots     each key finds the keys of its subgroup and item that share its digit: those before
                          it, and the first of them, which adds them all to its subgroup's table
    place in the tile     what that had found there + keys before

An item is one key of each invocation of a subgroup, neighbours side by side. Tables are filled by the
ranking, and summed up after it (`rank`); or keys are counted first, and put in their places as they are
ranked (`place`): one atomic more for each key, counts that are known sooner, and no places to remember.
See `serial` for devices without ballots.

Invariants: places are a permutation of the tile's, in the order of digits, and of equal digits in the order
in which the keys lay: the sort is stable. Nothing depends on which subgroup is first.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.words import value_of, words_of
from vkdispatch.base import dtype
from vkdispatch.base.record import record

_ALL = 0xFFFFFFFF
# Keys that subgroups vote about before the tables are looked at.
_TOGETHER = 2
# Records what is done with a key, by its number, whose place is known.
Put = Callable[[int, Any], None]


@record
class TileForm:
    """How a workgroup does a tile.

    Attributes
    ----------
    group
        Invocations.
    items
        Keys of each.
    width
        Bits of a digit.
    subgroup
        Invocations that vote together; 1: none do, and a `SerialTile` does the work.
    arithmetic
        Whether subgroups have running sums of their own.
    match
        Whether keys find those of the same digit by atomics on a mask for each digit, and not by ballots.
    """

    group: int
    items: int
    width: int
    subgroup: int
    arithmetic: bool
    match: bool = False

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
    """A tile while its kernel is traced."""

    def __init__(self, form: TileForm, words: int = 0) -> None:
        """Declare its memory.

        `words` there are of what is put in places that lie apart from the tables; 0: places and tables have
        the same memory, by turns.
        """
        self.form = form
        self.index = vc.local_invocation_index().to_register("tile_index")
        self.team = vc.subgroup_id().to_register("tile_team")
        self.lane = vc.subgroup_invocation_id().to_register("tile_lane")
        tables = form.teams * form.bins * (2 if form.match else 1)
        shared = 0 if words else form.tile
        self.memory: Any = vc.shared_buffer(dtype.uint32, max(tables, shared), "tile_memory")
        # what lies in places: the first words of all, the second words, and so on
        self.placed: Any = vc.shared_buffer(dtype.uint32, words * form.tile, "tile_placed") if words else None
        # where each digit begins in the tile, once `rank` is done
        self.starts: Any = None if words else vc.shared_buffer(dtype.uint32, form.bins, "tile_starts")
        self._sums: Any = vc.shared_buffer(dtype.uint32, max(form.group, 1), "tile_sums")
        self._long_sums: Any = None
        # keys of a tile that was ranked, for each of `own_bins`
        self.counts: list[Any] = []
        self._below = self._lanes_below()

    def places(self) -> list[Any]:
        """Return where this invocation's keys lie in the tile, before they are ranked."""
        form = self.form
        first = (self.team * (form.subgroup * form.items) + self.lane).to_register("tile_first")
        return [first + i * form.subgroup for i in range(form.items)]

    def sorted_places(self) -> list[Any]:
        """Return which places of the ranked tile this invocation writes out: neighbours side by side."""
        return [self.index + i * self.form.group for i in range(self.form.items)]

    def own_bins(self) -> list[tuple[Any, Any]]:
        """Return the digits of which this invocation sums up the tables, and whether it does.

        None where all invocations do.
        """
        form = self.form
        count = max(1, form.bins // form.group)
        kept = None if form.bins >= form.group else self.index < form.bins
        return [(self.index * count + i if count > 1 else self.index, kept) for i in range(count)]

    # -- ranks

    def rank(self, digits: Sequence[Any], bits: int) -> list[Any]:
        """Return the places of this invocation's keys in the ranked tile, by digits of so many bits.

        `starts` then holds where each digit begins, and `counts` are known. All take part, whether their keys
        count or not.
        """
        self.clear()
        vc.barrier()
        ranks = [self._ranked(digit, bits) for digit in digits]
        vc.barrier()
        owned = self.own_bins()
        for (digit, kept), start in zip(owned, self.sum_up(owned), strict=True):
            with only(kept):
                self.starts[digit] = start
        vc.barrier()
        base = (self.team * self.form.bins).to_register()
        return [
            (self.memory[base + digit] + rank).to_register("tile_place")
            for digit, rank in zip(digits, ranks, strict=True)
        ]

    def place(
        self, digits: Sequence[Callable[[], Any]], bits: int, counted: Callable[[], None], put: Put
    ) -> list[Any]:
        """Rank keys, and put each in its place as soon as that is known.

        Parameters
        ----------
        digits
            Give the digit of each of this invocation's keys, of so many bits.
        counted
            Records what is done with `counts` as soon as they are there, before a key is ranked.
        put
            Records that a key, by its number, is put in a place, in memory apart from the tables.

        Returns
        -------
        Where each of `own_bins` begins in the tile.
        """
        for digit in digits:
            vc.atomic_add(self.memory[self._entry(digit())], 1)
        vc.barrier()
        starts = self.sum_up(self.own_bins(), counted)
        vc.barrier()
        for first in range(0, len(digits), _TOGETHER):
            together = [digit().to_register() for digit in digits[first : first + _TOGETHER]]
            found = [self._voted(digit, bits) for digit in together]
            # the tables hold places now, and grow on
            for number, (digit, (peers, lower)) in enumerate(zip(together, found, strict=True), first):
                put(number, self._added(self._entry(digit), peers, lower))
        return starts

    def clear(self) -> None:
        """Set all tables to zero."""
        size, group = self.form.teams * self.form.bins * (2 if self.form.match else 1), self.form.group
        for start in range(0, size, group):
            with only(None if start + group <= size else self.index < size - start):
                self.memory[self.index + start] = 0

    def _ranked(self, digit: Any, bits: int) -> Any:
        """Count a key in its subgroup's table; returns how many of its digit came before."""
        if not self.form.match:
            return self._added(self._entry(digit), *self._voted(digit, bits))
        entry = self._entry(digit)
        mask = entry + self.form.teams * self.form.bins
        peers = self._matched(mask)
        lower = self._lower(peers)
        rank = self._added(entry, peers, lower)
        with vc.if_block(lower == 0):
            self.memory[mask] = 0
        vc.subgroup_barrier()
        return rank

    def _voted(self, digit: Any, bits: int) -> tuple[list[Any], Any]:
        """Return who has the same digit, as `_peers`, and how many of them come before."""
        peers = self._peers(digit, bits)
        return peers, self._lower(peers)

    def _lower(self, peers: list[Any]) -> Any:
        below = [word & below for word, below in zip(peers, self._below, strict=True)]
        return _bit_count(below).to_register("tile_lower")

    def _added(self, entry: Any, peers: list[Any], lower: Any) -> Any:
        """Have the first of those who share a digit add them all; returns what was there, plus `lower`."""
        before = self.memory[entry].to_register("tile_rank")
        vc.subgroup_barrier()
        with vc.if_block(lower == 0):
            self.memory[entry] = before + _bit_count(peers)
        rank = (before + lower).to_register("tile_rank")
        vc.subgroup_barrier()
        return rank

    def _entry(self, digit: Any) -> Any:
        """Return where a digit is in the subgroup's table."""
        return (self.team * self.form.bins + digit).to_register("tile_entry")

    def _matched(self, mask: Any) -> list[Any]:
        """Return what `_peers` returns, by a mask in memory that is clear before."""
        vc.atomic_or(self.memory[mask], vc.to_dtype(dtype.uint32, 1) << self.lane)
        vc.subgroup_barrier()
        return [self.memory[mask].to_register("tile_peers")]

    def counted(self, digit: Any, bits: int, kept: Any, *, by_votes: bool) -> None:
        """Count a key in its subgroup's table, where it is kept.

        `by_votes` counts equal digits at once; else each key changes the table by an atomic.
        """
        entry = (self.team * self.form.bins + digit).to_register()
        if not by_votes:
            with vc.if_block(kept):
                vc.atomic_add(self.memory[entry], 1)
            return
        peers = self._peers(digit, bits)
        votes = vc.subgroup_ballot(kept)
        peers = [word & votes[i] for i, word in enumerate(peers)]
        lower = _bit_count([word & below for word, below in zip(peers, self._below, strict=True)])
        with vc.if_block(vc.all(kept, lower == 0)):
            vc.atomic_add(self.memory[entry], _bit_count(peers))

    def _peers(self, digit: Any, bits: int) -> list[Any]:
        """Return, as bits, the invocations of the subgroup whose key has the same digit."""
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
        self, owned: Sequence[tuple[Any, Any]], counted: Callable[[], None] | None = None
    ) -> list[Any]:
        """Turn counts in the tables into places; returns where each of `own_bins` begins in the tile.

        `counted` records what is done with `counts` as soon as they are there.
        """
        form = self.form
        self.counts = [self.total(digit, kept) for digit, kept in owned]
        if counted is not None:
            counted()
        starts = self.running(self.counts)
        for (digit, kept), start in zip(owned, starts, strict=True):
            with only(kept):
                place = start.to_register()
                for team in range(form.teams):
                    entry = digit + team * form.bins
                    count = self.memory[entry].to_register()
                    self.memory[entry] = place
                    place += count
        return starts

    def total(self, digit: Any, kept: Any) -> Any:
        """Return the sum of a digit over all tables; 0 where this invocation does not own it."""
        total = vc.new_uint_register(0)
        with only(kept):
            for team in range(self.form.teams):
                total += self.memory[digit + team * self.form.bins]
        return total

    def running(self, totals: Sequence[Any]) -> list[Any]:
        """Return the sum of all digits' totals before each of those that this invocation owns.

        Invocations that own none give zeros.
        """
        own = totals[0]
        for total in totals[1:]:
            own = own + total
        before = self.across(own.to_register(), self.form.bins)
        starts = []
        for total in totals:
            starts.append(before.to_register())
            before = before + total
        return starts

    def across(self, value: Any, owners: int = 0) -> Any:
        """Return the sum of a value over all invocations before this one.

        Those from `owners` on, if it is given, give zero, and what they get is of no use.
        """
        form, kind = self.form, value.var_type
        owners = min(owners or form.group, form.group)
        if form.arithmetic and kind is dtype.uint32:
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

    def exchanged(self, values: Sequence[Any], places: Sequence[Any]) -> list[Any]:
        """Return what this invocation's `sorted_places` hold, once every key is at its place.

        `values` are of a raw type. All that the memory held before is lost.
        """
        kind = values[0].var_type
        return self._fetched(values, places, self.sorted_places(), kind)

    def _fetched(
        self, values: Sequence[Any], to: Sequence[Any], places: Sequence[Any], kind: Any
    ) -> list[Any]:
        columns = zip(*(words_of(value) for value in values), strict=True)
        fetched = []
        for words in columns:
            vc.barrier()
            for word, place in zip(words, to, strict=True):
                self.memory[place] = word
            vc.barrier()
            fetched.append([self.memory[place].to_register() for place in places])
        return [value_of(kind, words).to_register() for words in zip(*fetched, strict=True)]

    def regrouped(self, values: Sequence[Any], places: Sequence[Any]) -> list[Any]:
        """Return what lies at this invocation's `places` once every key is at its place: for a next step."""
        return self._fetched(values, places, self.places(), values[0].var_type)


def _bit_count(words: Sequence[Any]) -> Any:
    count = vc.bit_count(words[0])
    for word in words[1:]:
        count = count + vc.bit_count(word)
    return count.to_dtype(dtype.uint32)


def only(kept: Any) -> AbstractContextManager[Any]:
    """Return a block of statements that is run where a condition holds; None: everywhere."""
    return nullcontext() if kept is None else vc.if_block(kept)
