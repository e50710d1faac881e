"""A tile ranked without votes: for devices whose subgroups have no ballots.

    keys of a tile       | invocation 0: items in a row | invocation 1 | ...
    tables               digit x invocation -> keys so far, each counted by its invocation alone
    summed up            digit by digit, and within a digit invocation by invocation
    place in the tile    the entry of a key's digit and invocation, which each key increments

Everything is a loop over workgroup memory, so kernels are short.

Invariants: those of `tile`.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.families.values import join_words, split_words
from vkdispatch.sorting.tile import TileForm

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
