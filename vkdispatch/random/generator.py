"""A generator of random numbers in bulk."""

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from vkdispatch.arrays.calls import array_function
from vkdispatch.arrays.output import Output, output
from vkdispatch.arrays.results import result
from vkdispatch.base.buffer import Buffer, checked_shape
from vkdispatch.base.dtype import (
    DType,
    float16,
    float32,
    float64,
    from_numpy_dtype,
    int8,
    int16,
    int32,
    int64,
    is_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph, global_graph
from vkdispatch.random.launching import Stream, advance, fill
from vkdispatch.random.seeding import PHILOX4X32, PHILOX4X64, Origin, origin, read_state, state_of, word_at

_FLOATS = (float32, float64, float16)
_INTEGERS = (int8, uint8, int16, uint16, int32, uint32, int64, uint64)
_Waiting = tuple[int, int | None]


class Generator:
    """Random numbers on the device, from a counter-based stream: the same ones on every device, bit for bit.

    The stream is one of Philox4x32-10, the fastest on GPUs, or of Philox4x64-10, which is NumPy's
    `numpy.random.Philox`: with the same seed, `raw`, `random` and `uniform` then give the very numbers of NumPy.
    Each draw goes on where the one before ended, and only a count is kept on the host. Any number of threads
    may draw; each draw takes a piece of the stream that is its own.

    Attributes
    ----------
    bit_generator
        "philox4x32" or "philox4x64".
    """

    def __init__(
        self, seed: Any = None, bit_generator: str = PHILOX4X32, *, key: Any = None, counter: Any = None
    ) -> None:
        """Begin a stream.

        Parameters
        ----------
        seed
            An int of 0 or more, or a sequence of such, of which NumPy's SeedSequence makes the key; such a
            SeedSequence; or a `numpy.random.Philox` (also in a `numpy.random.Generator`), whose stream is
            gone on with. None: unpredictable.
        bit_generator
            "philox4x32" or "philox4x64"; with a `numpy.random.Philox` it is the latter.
        key
            The key itself instead of a seed: two words of the lowest first, or a number of all their bits.
        counter
            Where in the stream to begin: four words, or a number. Of philox4x32 the first block is that of
            this counter, as in `vc.random.philox4x32`; of philox4x64, as in NumPy, that of the next.

        Raises
        ------
        TypeError, ValueError
            An argument is none of these.
        """
        self._set(origin(seed, bit_generator, key, counter))

    def _set(self, start: Origin) -> None:
        self._stream = start.stream
        self._place = start.place
        # a word of 32 bits that waits for the next draw of such: its place, and, where that is not known, itself
        self._waiting = _waiting(start.stream, start.place, start.pending)
        self._seeds = start.seeds
        self._lock = threading.Lock()
        # draws that are recorded in graphs
        self._recorded = 0

    @classmethod
    def _of(cls, start: Origin) -> "Generator":
        made = cls.__new__(cls)
        made._set(start)
        return made

    def __repr__(self) -> str:
        low, high = self._stream.key
        return f"<vd.random.Generator: {self.bit_generator}, key ({low:#x}, {high:#x})>"

    @property
    def bit_generator(self) -> str:
        """Return "philox4x32" or "philox4x64"."""
        return PHILOX4X64 if self._stream.wide else PHILOX4X32

    @property
    def key(self) -> tuple[int, int]:
        """The two words of the key, the lowest first: what kernels give to `vc.random` to use it as well."""
        return self._stream.key

    @property
    def state(self) -> dict[str, Any]:
        """Where the stream stands, to be kept and set again.

        That of philox4x64 is what `numpy.random.Philox` has as its state, and may be given to one, and be
        taken from one. Draws that are recorded in graphs are no part of it.
        """
        with self._lock:
            stream, place, waiting = self._stream, self._place, self._waiting
        pending = None
        if waiting is not None:
            at, word = waiting
            pending = word_at(stream, at) if word is None else word
        return state_of(stream, place, pending)

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        stream, place, pending = read_state(state)
        if stream.wide != self._stream.wide:
            raise ArgumentValueError(f"state: it is not that of a {self.bit_generator}")
        with self._lock:
            self._stream, self._place = stream, place
            self._waiting = _waiting(stream, place, pending)

    def spawn(self, count: int) -> list["Generator"]:
        """Return generators of independent streams, of the same kind, as `numpy.random.Generator.spawn` does.

        Raises
        ------
        TypeError, ValueError
            `count` is no int of 0 or more, or the generator was made from a key.
        """
        if not hasattr(count, "__index__") or isinstance(count, bool):
            raise ArgumentTypeError(f"count: expected an int, got {count!r}")
        if count < 0:
            raise ArgumentValueError(f"count: expected 0 or more, got {count}")
        if self._seeds is None:
            raise ArgumentValueError("spawn: a generator that was made from a key has no seed; use jumped()")
        with self._lock:
            children = self._seeds.spawn(count)
        return [Generator(child, self.bit_generator) for child in children]

    def jumped(self, jumps: int = 1) -> "Generator":
        """Return a generator whose stream begins far behind this one's, which is left as it is.

        A jump is as many blocks of four words as can ever be drawn in between: 2**128 of philox4x64, the same
        as NumPy's, and 2**64 of philox4x32. Raises TypeError or ValueError for what is no int of 0 or more.
        """
        if not hasattr(jumps, "__index__") or isinstance(jumps, bool):
            raise ArgumentTypeError(f"jumps: expected an int, got {jumps!r}")
        if jumps < 0:
            raise ArgumentValueError(f"jumps: expected 0 or more, got {jumps}")
        with self._lock:
            stream, place = self._stream, self._place
        if stream.wide:
            # as NumPy, which begins a new block
            place = -(-place // stream.block) * stream.block
        far = jumps * stream.block << 2 * stream.word_bits
        return Generator._of(Origin(stream, (place + far) % stream.period, self._seeds))

    # -- draws

    @array_function
    def raw(
        self, size: Any = None, out: Any = None, *, output_map: Any = None, graph: Any = None
    ) -> Buffer[Any]:
        """Return random words: uint32 of philox4x32, uint64 of philox4x64.

        Parameters
        ----------
        size
            Shape of the result: an int, or up to 3; None takes that of `out`, or one number of the shape ().
        out
            A buffer to fill, of this shape and dtype.
        output_map
            A map that gets each number, and returns what is stored.
        graph
            Where to record; None takes the thread's `vd.global_graph()`. A draw that is recorded takes new
            numbers at each submit; see the documentation.

        Returns
        -------
        `out`, or a new buffer.

        Raises
        ------
        TypeError, ValueError
            An argument is not what it should be.
        """
        kind = uint64 if self._stream.wide else uint32
        return self._drawn("raw", kind, 8 * kind.item_size, size, out, output_map, graph)

    @array_function
    def random(
        self,
        size: Any = None,
        dtype: Any = float32,
        out: Any = None,
        *,
        output_map: Any = None,
        graph: Any = None,
    ) -> Buffer[Any]:
        """Return numbers of [0, 1), all alike.

        float32 are the upper 24 bits of a word of 32 bits, times 2**-24; float64 the upper 53 of 64, times
        2**-53; float16 the upper 11 of 32, times 2**-11. Of philox4x64 a word of 64 bits makes two of 32, the
        lower half first, as in NumPy; of philox4x32 two words make one of 64, the lower one first.

        Parameters are those of `raw`, and `dtype`: vd.float32 (the default; NumPy's is float64), vd.float64 or
        vd.float16.
        """
        return self._uniform(0.0, 1.0, size, dtype, out, output_map, graph)

    @array_function
    def uniform(
        self,
        low: float = 0.0,
        high: float = 1.0,
        size: Any = None,
        dtype: Any = float32,
        out: Any = None,
        *,
        output_map: Any = None,
        graph: Any = None,
    ) -> Buffer[Any]:
        """Return numbers of [low, high), all alike: low + (high - low) * `random`, rounded twice.

        As in NumPy, rounding may give `high` itself. float64 of philox4x64 are those of NumPy.

        Parameters
        ----------
        low, high
            Finite numbers.
        size, dtype, out, output_map, graph
            See `random`.
        """
        return self._uniform(_number("low", low), _number("high", high), size, dtype, out, output_map, graph)

    def _uniform(self, low: float, high: float, size: Any, dtype: Any, *rest: Any) -> Buffer[Any]:
        kind = _dtype(dtype, _FLOATS)
        if not math.isfinite(high - low):
            raise ArgumentValueError(f"low, high: their distance must be finite, got {low} and {high}")
        numbers = () if (low, high) == (0.0, 1.0) else (low, high - low)
        return self._drawn("uniform", kind, 64 if kind is float64 else 32, size, *rest, numbers=numbers)

    @array_function
    def normal(
        self,
        loc: float = 0.0,
        scale: float = 1.0,
        size: Any = None,
        dtype: Any = float32,
        out: Any = None,
        *,
        output_map: Any = None,
        graph: Any = None,
    ) -> Buffer[Any]:
        """Return normally distributed numbers, by the method of Box and Muller.

        Two words make two numbers: of 32 bits for float32 and float16, of 64 bits for float64. They are the
        same on every device, and others than NumPy's, whose method draws again and again.

        Parameters
        ----------
        loc, scale
            Mean and standard deviation; the latter is not negative.
        size, dtype, out, output_map, graph
            See `random`.
        """
        kind = _dtype(dtype, _FLOATS)
        loc, scale = _number("loc", loc), _number("scale", scale)
        if scale < 0 or math.copysign(1.0, scale) < 0:
            raise ArgumentValueError(f"scale: expected 0 or more, got {scale}")
        numbers = () if (loc, scale) == (0.0, 1.0) else (loc, scale)
        bits = 64 if kind is float64 else 32
        return self._drawn("normal", kind, bits, size, out, output_map, graph, numbers=numbers, pairs=True)

    @array_function
    def standard_normal(
        self,
        size: Any = None,
        dtype: Any = float32,
        out: Any = None,
        *,
        output_map: Any = None,
        graph: Any = None,
    ) -> Buffer[Any]:
        """Return numbers of mean 0 and standard deviation 1; see `normal`."""
        return self.normal(0.0, 1.0, size, dtype, out, output_map=output_map, graph=graph)

    @array_function
    def integers(
        self,
        low: int,
        high: int | None = None,
        size: Any = None,
        dtype: Any = int32,
        endpoint: bool = False,
        out: Any = None,
        *,
        output_map: Any = None,
        graph: Any = None,
    ) -> Buffer[Any]:
        """Return integers of [low, high), all with exactly the same probability; of [0, low) without `high`.

        A word of 32 bits, or of 64 where there are more than 2**32 integers, is multiplied by their count
        (Lemire 2019). Where it would favour some of them, the number is made of words of another stream, so
        that each number takes one word of this one. NumPy draws again from the same: with philox4x64, and a
        dtype of 32 or 64 bits, numbers are the same up to the first place where that happens, which for a
        count that is a power of two is never.

        Parameters
        ----------
        low, high
            Ints.
        dtype
            An integer type of 8 to 64 bits; vd.int32 by default.
        endpoint
            Whether `high` (`low`, if it is alone) is one of them.
        size, out, output_map, graph
            See `raw`.

        Raises
        ------
        TypeError, ValueError
            As `raw`; there is no such integer, or the dtype does not hold all.
        """
        kind = _dtype(dtype, _INTEGERS)
        first, last = (0, low) if high is None else (low, high)
        first, last = _integer("low", first), _integer("low" if high is None else "high", last)
        last -= not endpoint
        bits = 8 * kind.item_size
        least = -(1 << bits - 1) if kind in (int8, int16, int32, int64) else 0
        if last < first:
            raise ArgumentValueError(f"low, high: there is no integer from {first} to {last}")
        if first < least or last >= least + (1 << bits):
            raise ArgumentValueError(
                f"low, high: {kind.name} does not hold all from {first} to {last}; give another dtype"
            )
        count = last - first + 1
        drawn = 64 if count > 1 << 32 else 32
        mask = (1 << drawn) - 1
        surplus = (1 << drawn) % count
        start = first & (1 << (64 if bits == 64 else 32)) - 1
        numbers = (start,) if count > mask else (start, count, surplus)
        return self._drawn(
            "integers", kind, drawn, size, out, output_map, graph, numbers, rejecting=surplus > 0
        )

    # -- how

    def _drawn(
        self,
        made: str,
        kind: DType,
        bits: int,
        size: Any,
        out: Any,
        output_map: Any,
        graph: Any,
        numbers: tuple[Any, ...] = (),
        *,
        rejecting: bool = False,
        pairs: bool = False,
    ) -> Buffer[Any]:
        stored = output(output_map, kind)
        buffer = result(out, _shape(size, out), stored.out_type)
        chosen = _checked_graph(graph)
        if buffer.size == 0:
            return buffer
        count = buffer.size + (pairs and buffer.size % 2)
        if not chosen.submit_on_record:
            self._record(made, bits, count, buffer, stored, numbers, rejecting=rejecting, graph=chosen)
            return buffer
        stream, place, waiting = self._taken(bits, count, halves=not pairs)
        fill(made, stream, place, bits, buffer, stored, numbers, rejecting=rejecting, graph=chosen)
        if waiting is not None:
            # the first element is not made of the word before the others', as the kernel took it to be
            fill(
                made,
                stream,
                place,
                bits,
                buffer,
                stored,
                numbers,
                rejecting=rejecting,
                given=waiting,
                graph=chosen,
            )
        return buffer

    def _taken(self, bits: int, count: int, *, halves: bool) -> tuple[Stream, int, int | None]:
        """Take a piece of the stream for so many numbers, of 32 or 64 bits each.

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
            if not (stream.wide and bits == 32 and halves):
                self._place = (place + count * bits // 32) % stream.period
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

    def _record(
        self,
        made: str,
        bits: int,
        count: int,
        buffer: Buffer[Any],
        stored: Output,
        numbers: tuple[Any, ...],
        *,
        rejecting: bool,
        graph: CommandGraph,
    ) -> None:
        """Record a draw: from a stream of its own, whose place the device counts."""
        with self._lock:
            self._recorded += 1
            stream, place, number = self._stream, self._place, self._recorded
        bits_of_low = 2 * stream.word_bits
        # the fourth word of the counter is the draw's number, the third the generator's own; jumps change that
        upper = (place // stream.block >> bits_of_low) + (number << stream.word_bits)
        start = (upper << bits_of_low) * stream.block % stream.period
        position: Buffer[Any] = Buffer(2, uint32)
        position.write(np.zeros(2, np.uint32))
        with graph.recording_together():
            fill(
                made,
                stream,
                start,
                bits,
                buffer,
                stored,
                numbers,
                rejecting=rejecting,
                position=position,
                graph=graph,
            )
            advance(position, -(-count * bits // (32 * stream.block)), graph)


def _waiting(stream: Stream, place: int, pending: int | None) -> _Waiting | None:
    if pending is None:
        return None
    before = (place - 1) % stream.period
    return (before, None) if word_at(stream, before) == pending else (-1, pending)


def _shape(size: Any, out: Any) -> tuple[int, ...]:
    if size is None:
        return out.shape if isinstance(out, Buffer) else ()
    whole = (size,) if hasattr(size, "__index__") and not isinstance(size, bool) else size
    if not isinstance(whole, Sequence) or isinstance(whole, str) or not all(map(_is_int, whole)):
        raise ArgumentTypeError(f"size: expected an int or up to 3 ints, got {size!r}")
    if len(whole) > 3 or min(whole, default=0) < 0:
        raise ArgumentValueError(f"size: expected up to 3 ints of 0 or more, got {size!r}")
    return checked_shape(tuple(whole))


def _is_int(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, (bool, np.bool_))


def _checked_graph(graph: Any) -> CommandGraph:
    if graph is None:
        return global_graph()
    if not isinstance(graph, CommandGraph):
        raise ArgumentTypeError(f"graph: expected a CommandGraph or None, got {type(graph).__name__}")
    return graph


def _dtype(given: Any, known: tuple[DType, ...]) -> DType:
    """Return one of some dtypes, given as such or as NumPy's."""
    kind = given
    if not is_dtype(given):
        try:
            kind = from_numpy_dtype(np.dtype(given))
        except (TypeError, ValueError):
            kind = None
    if kind not in known:
        names = ", ".join(each.name for each in known)
        shown = given.name if is_dtype(given) else repr(given)
        raise ArgumentTypeError(f"dtype: expected one of {names}, got {shown}")
    return kind


def _number(name: str, value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentTypeError(f"{name}: expected a number, got {value!r}")
    number = float(value)
    if not math.isfinite(number):
        raise ArgumentValueError(f"{name}: expected a finite number, got {number}")
    return number


def _integer(name: str, value: Any) -> int:
    if not _is_int(value):
        raise ArgumentTypeError(f"{name}: expected an int, got {value!r}")
    return int(value.__index__())
