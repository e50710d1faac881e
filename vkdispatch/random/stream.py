"""Streams of random words: where one begins, and the position of a generator in it."""

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.families.operands import is_int

# ---- Streams of random words -----------------------------------------------------------------------------


@record(slots=False)
class Stream:
    """A stream of random words.

    Attributes
    ----------
    is_wide
        Whether the generator is Philox4x64, else Philox4x32.
    key
        The two words of the key.
    """

    is_wide: bool
    key: tuple[int, int]

    @cached_property
    def word_bits(self) -> int:
        """Bits of a word of counter and key."""
        return 64 if self.is_wide else 32

    @cached_property
    def block(self) -> int:
        """Words of 32 bits in a block."""
        return 8 if self.is_wide else 4

    @cached_property
    def period(self) -> int:
        """Words of 32 bits before the stream repeats."""
        return self.block << 4 * self.word_bits

    def counter(self, block: int) -> tuple[int, ...]:
        """Return the words of the counter of a block."""
        mask = (1 << self.word_bits) - 1
        bits = self.word_bits
        return block & mask, block >> bits & mask, block >> 2 * bits & mask, block >> 3 * bits & mask


# ---- Where the stream of a generator begins, and the state of a generator in the form of NumPy's ---------


PHILOX4X32, PHILOX4X64 = "philox4x32", "philox4x64"
KINDS = (PHILOX4X32, PHILOX4X64)
# Their names in states; NumPy's Philox is the second.
_STATE_NAMES = {PHILOX4X32: "Philox4x32", PHILOX4X64: "Philox"}


@record
class Origin:
    """Where a generator begins.

    Attributes
    ----------
    stream
        The stream.
    place
        Words of 32 bits of the stream before the first.
    seeds
        The seeds of spawned generators; None if a key was given.
    pending
        A word of 32 bits that the next draw of such words uses, as in NumPy's generator.
    recorded
        Number of draws that were recorded in graphs.
    halves
        Numbers of 16 bits before `place` that the next draw uses if it draws such.
    """

    stream: Stream
    place: int
    seeds: np.random.SeedSequence | None
    pending: int | None = None
    recorded: int = 0
    halves: int = 0


def parse_seed(seed: Any, kind: str, key: Any, counter: Any) -> Origin:
    """Return where a generator begins; see `Generator`.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid.
    """
    if kind not in KINDS:
        raise ArgumentValueError(f"bit_generator: expected one of {', '.join(KINDS)}, got {kind!r}")
    wide = kind == PHILOX4X64
    if isinstance(seed, np.random.Generator):
        seed = seed.bit_generator
    if isinstance(seed, np.random.BitGenerator):
        return _parse_bit_generator(seed, key, counter)
    bits = 64 if wide else 32
    if key is not None:
        if seed is not None:
            raise ArgumentValueError("seed, key: pass one of the two, not both")
        seeds, words = None, _parse_words("key", key, 2, bits)
    else:
        seeds = _parse_seed_sequence(seed)
        words = tuple(int(word) for word in seeds.generate_state(2, np.uint64 if wide else np.uint32))
    first = 0 if counter is None else _join_words(_parse_words("counter", counter, 4, bits), bits)
    # NumPy increments the counter before it computes a block
    stream = Stream(wide, (words[0], words[1]))
    return Origin(stream, (first + wide) * stream.block, seeds)


def _parse_bit_generator(generator: np.random.BitGenerator, key: Any, counter: Any) -> Origin:
    if not isinstance(generator, np.random.Philox):
        raise ArgumentTypeError(
            "seed: the only bit generator of NumPy that is supported is Philox, got "
            f"{type(generator).__name__}"
        )
    if key is not None or counter is not None:
        raise ArgumentValueError("seed, key: a bit generator already has a key and a counter")
    seeds = generator.seed_seq if isinstance(generator.seed_seq, np.random.SeedSequence) else None
    stream, place, pending, halves = read_state(generator.state)
    return Origin(stream, place, seeds, pending, halves=halves)


def _parse_seed_sequence(seed: Any) -> np.random.SeedSequence:
    if isinstance(seed, np.random.SeedSequence):
        return seed
    try:
        return np.random.SeedSequence(seed)
    except (TypeError, ValueError) as error:
        kind = ArgumentTypeError if isinstance(error, TypeError) else ArgumentValueError
        raise kind(
            f"seed: expected None, an int of 0 or more, a sequence of such, a numpy.random.SeedSequence or "
            f"Philox, got {seed!r}"
        ) from None


def _parse_words(name: str, value: Any, count: int, bits: int) -> tuple[int, ...]:
    """Return the words of a key or a counter, given as a number or as words."""
    wanted = f"an int of {count * bits} bits or {count} of {bits}"
    whole = is_int(value)
    if not whole and not isinstance(value, (Sequence, np.ndarray)):
        raise ArgumentTypeError(f"{name}: expected {wanted}, got {value!r}")
    if whole:
        numbers = [int(value) >> bits * i & (1 << bits) - 1 for i in range(count)]
        if not 0 <= int(value) < 1 << bits * count:
            raise ArgumentValueError(f"{name}: expected {wanted}, got {value!r}")
        return tuple(numbers)
    if not all(map(is_int, value)):
        raise ArgumentTypeError(f"{name}: expected {wanted}, got {value!r}")
    numbers = [int(item) for item in value]
    if len(numbers) != count or not all(0 <= number < 1 << bits for number in numbers):
        raise ArgumentValueError(f"{name}: expected {wanted}, got {value!r}")
    return tuple(numbers)


def _join_words(words: Sequence[int], bits: int) -> int:
    return sum(word << bits * i for i, word in enumerate(words))


def word_at(stream: Stream, place: int) -> int:
    """Return the word of 32 bits at a place of a Philox4x64 stream."""
    block, inside = divmod(place % stream.period, stream.block)
    mask = (1 << 4 * stream.word_bits) - 1
    whole = np.random.Philox(key=np.array(stream.key, np.uint64), counter=block - 1 & mask).random_raw(4)
    return int(whole[inside // 2]) >> 32 * (inside % 2) & 0xFFFFFFFF


def make_state(stream: Stream, place: int, pending: int | None, halves: int) -> dict[str, Any]:
    """Return the state of a generator: for Philox4x64 in the form of NumPy's Philox."""
    name = _STATE_NAMES[PHILOX4X64 if stream.is_wide else PHILOX4X32]
    host = np.uint64 if stream.is_wide else np.uint32
    units = place // 2 if stream.is_wide else place
    block, inside = divmod(units, 4)
    if stream.is_wide and inside == 0:
        block, inside = block - 1, 4
    counter = stream.counter(block % (1 << 4 * stream.word_bits))
    state: dict[str, Any] = {
        "bit_generator": name,
        "state": {"counter": np.array(counter, host), "key": np.array(stream.key, host)},
        "buffer_pos": inside,
    }
    if stream.is_wide:
        before = (block - 1) % (1 << 256)
        state["buffer"] = np.random.Philox(key=np.array(stream.key, np.uint64), counter=before).random_raw(4)
        state["has_uint32"] = int(pending is not None)
        state["uinteger"] = pending or 0
    if halves:
        state["halves_left"] = halves
    return state


def read_state(state: Any) -> tuple[Stream, int, int | None, int]:
    """Return the stream, the place, the pending word and the remaining halves of a state.

    Raises
    ------
    TypeError, ValueError
        `state` is not a state.
    """
    if not isinstance(state, Mapping):
        raise ArgumentTypeError(f"state: expected a dict as .state returns it, got {type(state).__name__}")
    kinds = {name: kind for kind, name in _STATE_NAMES.items()}
    kind = kinds.get(str(state.get("bit_generator")))
    try:
        if kind is None:
            raise KeyError("bit_generator")
        wide = kind == PHILOX4X64
        bits = 64 if wide else 32
        key = _parse_words("state: key", list(state["state"]["key"]), 2, bits)
        counter = _parse_words("state: counter", list(state["state"]["counter"]), 4, bits)
        inside = int(state["buffer_pos"])
        if not 0 <= inside <= 4:
            raise ArgumentValueError(f"state: buffer_pos: expected 0 to 4, got {inside}")
        pending = int(state["uinteger"]) if wide and state["has_uint32"] else None
        halves = int(state.get("halves_left", 0))
        if not 0 <= halves < bits // 16:
            raise ArgumentValueError(f"state: halves_left: expected 0 to {bits // 16 - 1}, got {halves}")
    except (KeyError, TypeError, AttributeError) as error:
        raise ArgumentValueError(
            f"state: expected that of a vd.random.Generator or a numpy.random.Philox, got {state!r}"
        ) from error
    stream = Stream(wide, (key[0], key[1]))
    return stream, (_join_words(counter, bits) * 4 + inside) * (2 if wide else 1), pending, halves


# ---- The position of a generator in its stream, as the host counts it ------------------------------------


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
