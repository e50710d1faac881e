"""The position of a generator in its stream, as the host counts it."""

import threading
from typing import Any

import numpy as np

from vkdispatch.random.seeding import Origin, make_state, word_at
from vkdispatch.random.stream import Stream

_Waiting = tuple[int, int | None]


class StreamPosition:
    """A stream and a position in it. Any number of threads may take words."""

    def __init__(self, start: Origin) -> None:
        self._stream = start.stream
        self._place = start.place
        # a word of 32 bits left for the next draw of 32 bits: its place, and the word if the place is unknown
        self._waiting = _find_waiting(start.stream, start.place, start.pending)
        self._seeds = start.seeds
        self._lock = threading.Lock()
        # draws that are recorded in graphs
        self._recorded = start.recorded
        # the numbers of 16 bits that the last draw left in the words before the place
        self._halves = start.halves

    @property
    def stream(self) -> Stream:
        """Return the stream."""
        return self._stream

    @property
    def seeds(self) -> np.random.SeedSequence | None:
        """The seed; None if a key made the stream."""
        return self._seeds

    def spawn(self, count: int) -> list[np.random.SeedSequence] | None:
        """Return seeds for other streams; None if a key made this one."""
        if self._seeds is None:
            return None
        with self._lock:
            return self._seeds.spawn(count)

    def origin(self) -> Origin:
        """Return the origin of a generator that continues as this one."""
        with self._lock:
            stream, place, waiting, recorded = self._stream, self._place, self._waiting, self._recorded
            halves = self._halves
        pending = None
        if waiting is not None:
            at, word = waiting
            pending = word_at(stream, at) if word is None else word
        return Origin(stream, place, self._seeds, pending, recorded, halves)

    def state(self) -> dict[str, Any]:
        """Return the state in the form of NumPy's."""
        origin = self.origin()
        return make_state(origin.stream, origin.place, origin.pending, origin.halves)

    def set_state(self, stream: Stream, place: int, pending: int | None, halves: int) -> None:
        """Continue at a place of a stream."""
        with self._lock:
            self._stream, self._place = stream, place
            self._waiting = _find_waiting(stream, place, pending)
            self._halves = halves

    def jump(self, jumps: int) -> Origin:
        """Return the origin that lies `jumps` times 2**(twice the bits of a word) blocks further on."""
        with self._lock:
            stream, place = self._stream, self._place
        if stream.is_wide:
            # NumPy begins a new block
            place = -(-place // stream.block) * stream.block
        far = jumps * stream.block << 2 * stream.word_bits
        return Origin(stream, (place + far) % stream.period, self._seeds)

    def take_halves(self, count: int) -> tuple[Stream, int, bool]:
        """Take a piece of the stream for `count` numbers of 16 bits, after the last such number.

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
        """Take a piece of the stream for `count` numbers of 32 or 64 bits.

        `halves` says whether each number of 32 bits takes half of a word of Philox4x64, as in NumPy.

        Returns
        -------
        Stream
            The stream.
        int
            Where the piece begins, counted in words of 32 bits.
        int or None
            The word for the first number, if it is not the word at that place.
        """
        with self._lock:
            stream, place = self._stream, self._place
            self._halves = 0
            if not (stream.is_wide and bits == 32 and halves):
                taken = -(-count * bits // stream.word_bits) * (stream.word_bits // 32)
                self._place = (place + taken) % stream.period
                return stream, place, None
            # as in NumPy, half of a word is kept for the next number of 32 bits, whatever is drawn in between
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
        """Return a stream for a draw that is recorded in a graph, and where it begins.

        Two words of the counter count its blocks. The fourth word is the number of the draw, the third that
        of the generator.
        """
        with self._lock:
            self._recorded += 1
            stream, place, number = self._stream, self._place, self._recorded
        bits = 2 * stream.word_bits
        upper = (place // stream.block >> bits) + (number << stream.word_bits)
        return stream, (upper << bits) * stream.block % stream.period


def _find_waiting(stream: Stream, place: int, pending: int | None) -> _Waiting | None:
    if pending is None:
        return None
    before = (place - 1) % stream.period
    return (before, None) if word_at(stream, before) == pending else (-1, pending)
