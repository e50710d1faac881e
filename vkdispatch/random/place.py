"""Where a generator stands in its stream, as the host counts it."""

import threading
from typing import Any

import numpy as np

from vkdispatch.random.launching import Stream
from vkdispatch.random.seeding import Origin, state_of, word_at

_Waiting = tuple[int, int | None]


class Place:
    """A stream, and how much of it is taken; any number of threads may take from it."""

    def __init__(self, start: Origin) -> None:
        self._stream = start.stream
        self._place = start.place
        # a word of 32 bits that waits for the next draw of such: its place, and itself where that is unknown
        self._waiting = _waiting(start.stream, start.place, start.pending)
        self._seeds = start.seeds
        self._lock = threading.Lock()
        # draws that are recorded in graphs
        self._recorded = start.recorded
        # numbers of 16 bits that are left of the words before the place, if the last draw was of such
        self._halves = start.halves

    @property
    def stream(self) -> Stream:
        """Return the stream."""
        return self._stream

    def spawn(self, count: int) -> list[np.random.SeedSequence] | None:
        """Return seeds for other streams; None where this one was made from a key."""
        if self._seeds is None:
            return None
        with self._lock:
            return self._seeds.spawn(count)

    def origin(self) -> Origin:
        """Return where another generator begins that is to go on as this one."""
        with self._lock:
            stream, place, waiting, recorded = self._stream, self._place, self._waiting, self._recorded
            halves = self._halves
        pending = None
        if waiting is not None:
            at, word = waiting
            pending = word_at(stream, at) if word is None else word
        return Origin(stream, place, self._seeds, pending, recorded, halves)

    def state(self) -> dict[str, Any]:
        """Return what `set_state` takes, in NumPy's words."""
        origin = self.origin()
        return state_of(origin.stream, origin.place, origin.pending, origin.halves)

    def set_state(self, stream: Stream, place: int, pending: int | None, halves: int) -> None:
        """Go on there."""
        with self._lock:
            self._stream, self._place = stream, place
            self._waiting = _waiting(stream, place, pending)
            self._halves = halves

    def jumped(self, jumps: int) -> Origin:
        """Return a place so many times 2**(twice the bits of a word) blocks behind this one."""
        with self._lock:
            stream, place = self._stream, self._place
        if stream.wide:
            # as NumPy, which begins a new block
            place = -(-place // stream.block) * stream.block
        far = jumps * stream.block << 2 * stream.word_bits
        return Origin(stream, (place + far) % stream.period, self._seeds)

    def take_halves(self, count: int) -> tuple[Stream, int, bool]:
        """Take a piece of the stream for so many numbers of 16 bits each, on from the last of such.

        Returns
        -------
        Stream
            The stream.
        int
            Where the piece begins, counted in words of 32 bits.
        bool
            Whether it begins with the upper half of that word.
        """
        with self._lock:
            stream = self._stream
            start = 2 * self._place - self._halves
            unit = stream.word_bits // 16
            end = -(-(start + count) // unit) * unit
            self._place, self._halves = end // 2 % stream.period, end - start - count
            return stream, start // 2, bool(start % 2)

    def take(self, bits: int, count: int, *, halves: bool) -> tuple[Stream, int, int | None]:
        """Take a piece of the stream for so many numbers, of 32 or 64 bits each.

        `halves` says whether numbers of 32 bits take half of a word of Philox4x64 each, as in NumPy.

        Returns
        -------
        Stream
            The stream.
        int
            Where the piece begins, counted in words of 32 bits.
        int or None
            The word for the first number, where it is not the one at that place.
        """
        with self._lock:
            stream, place = self._stream, self._place
            self._halves = 0
            if not (stream.wide and bits == 32 and halves):
                taken = -(-count * bits // stream.word_bits) * (stream.word_bits // 32)
                self._place = (place + taken) % stream.period
                return stream, place, None
            # NumPy's way: half of a word waits for the next number of 32 bits, whatever is drawn between
            word, start = None, place
            if self._waiting is not None:
                count, start = count - 1, place - 1
                at, word = self._waiting
                if at == start % stream.period:
                    word = None
                elif word is None:
                    word = word_at(stream, at)
            self._place = (place + count + count % 2) % stream.period
            self._waiting = ((self._place - 1) % stream.period, None) if count % 2 else None
            return stream, start, word

    def record(self) -> tuple[Stream, int]:
        """Take a stream for a draw that is recorded in a graph; returns it, and where it begins.

        It has as many blocks as fit two words of the counter. The draw's number is the fourth word, the third
        is the generator's own.
        """
        with self._lock:
            self._recorded += 1
            stream, place, number = self._stream, self._place, self._recorded
        bits = 2 * stream.word_bits
        upper = (place // stream.block >> bits) + (number << stream.word_bits)
        return stream, (upper << bits) * stream.block % stream.period


def _waiting(stream: Stream, place: int, pending: int | None) -> _Waiting | None:
    if pending is None:
        return None
    before = (place - 1) % stream.period
    return (before, None) if word_at(stream, before) == pending else (-1, pending)
