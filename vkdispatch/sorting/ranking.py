"""A tile of keys, ranked by one digit in a workgroup: the step that every radix sort here is made of.

    keys of a tile        | subgroup 0: item 0, item 1, ... | subgroup 1: item 0, ... | ...
    counted               tables: digit x subgroup -> keys
    summed up             over subgroups, and then over digits: where the first key of each goes
    ranked by ballots     each key finds the keys of its subgroup and item that share its digit: those before
                          it, and the first of them, which adds them all to its subgroup's table
    place in the tile     what that had found there + keys before

An item is one key of each invocation of a subgroup, neighbours side by side. Unless `early`, tables are
filled by the ranking, and summed up after it: one atomic less for each key, and counts that are known later.
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
    shuffle
        Whether invocations of a subgroup read each other's values.
    early
        Whether keys are counted first, and ranked when their places are known: counts are there sooner.
    match
        Whether keys find those of the same digit by atomics on a mask for each digit, and not by ballots.
    """

    group: int
    items: int
    width: int
    subgroup: int
    arithmetic: bool
    shuffle: bool = False
    early: bool = False
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

    def __init__(self, form: TileForm) -> None:
        self.form = form
        self.index = vc.local_invocation_index().to_register("tile_index")
        self.team = vc.subgroup_id().to_register("tile_team")
        self.lane = vc.subgroup_invocation_id().to_register("tile_lane")
        tables = form.teams * form.bins * (2 if form.match else 1)
        self.memory: Any = vc.shared_buffer(dtype.uint32, max(tables, form.tile), "tile_memory")
        # where each digit begins in the tile
        self.starts: Any = vc.shared_buffer(dtype.uint32, form.bins, "tile_starts")
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

    def rank(self, digits: Sequence[Any], bits: int, counted: Callable[[], None] | None = None) -> list[Any]:
        """Return the places of this invocation's keys in the ranked tile, by digits of so many bits.

        `starts` then holds where each digit begins, and `counts` are known. All take part, whether their keys
        count or not. `counted` records what is done with counts as soon as they are there.
        """
        self.clear()
        vc.barrier()
        if self.form.early:
            for digit in digits:
                vc.atomic_add(self.memory[self._entry(digit)], 1)
            vc.barrier()
        ranks = [] if self.form.early else [self._ranked(digit, bits) for digit in digits]
        if not self.form.early:
            vc.barrier()
        self._sum_up()
        if counted is not None:
            counted()
        vc.barrier()
        if self.form.early:
            # the tables hold places now, and grow on
            return [self._ranked(digit, bits) for digit in digits]
        base = (self.team * self.form.bins).to_register()
        return [
            (self.memory[base + digit] + rank).to_register("tile_place")
            for digit, rank in zip(digits, ranks, strict=True)
        ]

    def clear(self) -> None:
        """Set all tables to zero."""
        size, group = self.form.teams * self.form.bins * (2 if self.form.match else 1), self.form.group
        for start in range(0, size, group):
            with only(None if start + group <= size else self.index < size - start):
                self.memory[self.index + start] = 0

    def _ranked(self, digit: Any, bits: int) -> Any:
        """Count a key in its subgroup's table; returns how many of its digit came before."""
        entry = self._entry(digit)
        mask = entry + self.form.teams * self.form.bins
        peers = self._matched(mask) if self.form.match else self._peers(digit, bits)
        lower = _bit_count([word & below for word, below in zip(peers, self._below, strict=True)])
        lower = lower.to_register("tile_lower")
        if self.form.shuffle:
            before = vc.new_uint_register(0)
            with vc.if_block(lower == 0):
                before[:] = vc.atomic_add(self.memory[entry], _bit_count(peers))
            before = vc.subgroup_shuffle(before, _first(peers))
        else:
            before = self.memory[entry].to_register("tile_rank")
            vc.subgroup_barrier()
            with vc.if_block(lower == 0):
                self.memory[entry] = before + _bit_count(peers)
        rank = (before + lower).to_register("tile_rank")
        vc.subgroup_barrier()
        if self.form.match:
            with vc.if_block(lower == 0):
                self.memory[mask] = 0
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
        for bit in range(bits):
            one = ((digit >> bit) & 1).to_register()
            vote = vc.subgroup_ballot(one != 0)
            for word in range(words):
                peers[word][:] = peers[word] & (vote[word] ^ (one - 1))
        return peers

    def _lanes_below(self) -> list[Any]:
        mask = vc.subgroup_lt_mask()
        return [mask[word].to_register("tile_below") for word in range(-(-self.form.subgroup // 32))]

    # -- sums

    def _sum_up(self) -> None:
        """Turn counts in the tables into places, and note where each digit begins."""
        form = self.form
        owned = self.own_bins()
        self.counts = [self.total(digit, kept) for digit, kept in owned]
        starts = self.running(self.counts)
        for (digit, kept), start in zip(owned, starts, strict=True):
            with only(kept):
                self.starts[digit] = start
                place = start.to_register()
                for team in range(form.teams):
                    entry = digit + team * form.bins
                    count = self.memory[entry].to_register()
                    self.memory[entry] = place
                    place += count

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


def _first(words: Sequence[Any]) -> Any:
    """Return the number of the lowest bit that is set."""
    found = vc.find_lsb(words[-1]) + 32 * (len(words) - 1)
    for i, word in reversed(list(enumerate(words[:-1]))):
        found = vc.select(word != 0, vc.find_lsb(word) + 32 * i, found)
    return found.to_dtype(dtype.uint32).to_register("tile_leader")


def _bit_count(words: Sequence[Any]) -> Any:
    count = vc.bit_count(words[0])
    for word in words[1:]:
        count = count + vc.bit_count(word)
    return count.to_dtype(dtype.uint32)


def only(kept: Any) -> AbstractContextManager[Any]:
    """Return a block of statements that is run where a condition holds; None: everywhere."""
    return nullcontext() if kept is None else vc.if_block(kept)
