"""A generator of random numbers in bulk."""

import copy
from typing import Any, Self

from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import float32, int32, uint32, uint64
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families import operands
from vkdispatch.families.arguments import DTypeLike, is_int, parse_axis, parse_int, split_shape
from vkdispatch.families.calls import array_function
from vkdispatch.families.values import INTEGERS, integer_limits
from vkdispatch.random import launching
from vkdispatch.random.permuting import RANKED, gather, key_words, permute, place_type
from vkdispatch.random.stream import PHILOX4X32, PHILOX4X64, Origin, StreamPosition, parse_seed, read_state
from vkdispatch.shader.signature import describe


class Generator:
    """A counter-based random number generator, with the same numbers on every device, bit for bit.

    The stream is that of Philox4x32-10, the fastest on GPUs, or of Philox4x64-10, which is
    `numpy.random.Philox`: with the same seed, `raw`, `random` and `uniform` then return the numbers of NumPy.
    Each draw continues where the previous one ended; the host keeps only the position. Several threads can
    draw from one generator; each draw uses a separate part of the stream. A copied or unpickled generator
    continues from the same position, independently of the original.

    Examples
    --------
    >>> rng = vd.random.Generator(1)
    >>> rng.uniform(0, 1, 3).read(0)
    array([0.3401084 , 0.72999305, 0.8648801 ], dtype=float32)

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
            A nonnegative int or a sequence of ints, from which NumPy's SeedSequence makes the key; a
            SeedSequence; or a `numpy.random.Philox` (also in a `numpy.random.Generator`), whose stream is
            continued. None takes a seed from the operating system.
        bit_generator
            "philox4x32" or "philox4x64"; with a `numpy.random.Philox` it is the latter.
        key
            The key, instead of a seed: two words, the lowest first, or one number with all bits.
        counter
            The start of the stream: four words, or a number. The first block of philox4x32 is that of this
            counter, as in `vc.random.philox4x32`; that of philox4x64, as in NumPy, is the next one.

        Raises
        ------
        TypeError, ValueError
            An argument is invalid.
        """
        self._set(parse_seed(seed, bit_generator, key, counter))

    def _set(self, start: Origin) -> None:
        self._at = StreamPosition(start)

    @classmethod
    def _from_origin(cls, start: Origin) -> Self:
        generator = cls.__new__(cls)
        generator._set(start)
        return generator

    def __repr__(self) -> str:
        low, high = self.key
        return f"<vd.random.Generator: {self.bit_generator}, key ({low:#x}, {high:#x})>"

    def __reduce__(self) -> tuple[Any, ...]:
        state = {name: value for name, value in vars(self).items() if name != "_at"}
        return type(self)._from_origin, (self._at.origin(),), state or None

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    @property
    def bit_generator(self) -> str:
        """Return "philox4x32" or "philox4x64"."""
        return PHILOX4X64 if self._at.stream.is_wide else PHILOX4X32

    @property
    def key(self) -> tuple[int, int]:
        """The two words of the key, the lowest first, for use with `vc.random` in kernels."""
        return self._at.stream.key

    @property
    def state(self) -> dict[str, Any]:
        """The state of the stream, which can be saved and set again.

        The state of philox4x64 is that of `numpy.random.Philox`, and can be exchanged with it. It does not
        include draws that are recorded in graphs.
        """
        return self._at.state()

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        stream, place, pending, halves = read_state(state)
        if stream.is_wide != self._at.stream.is_wide:
            raise ArgumentValueError(f"state: expected the state of a {self.bit_generator}")
        self._at.set_state(stream, place, pending, halves)

    def spawn(self, count: int) -> list["Generator"]:
        """Return generators of independent streams, of the same kind, as `numpy.random.Generator.spawn` does.

        Raises
        ------
        TypeError, ValueError
            `count` is not a nonnegative int, or the generator was made from a key.

        Examples
        --------
        >>> first, second = vd.random.Generator(1).spawn(2)
        >>> first.random(2).read(0)
        array([0.99162126, 0.07083416], dtype=float32)
        """
        children = self._at.spawn(parse_int(count, "count", least=0))
        if children is None:
            raise ArgumentValueError("spawn: a generator that was made from a key has no seed; use jumped()")
        return [Generator(child, self.bit_generator) for child in children]

    def jumped(self, jumps: int = 1) -> "Generator":
        """Return a generator whose stream begins far ahead; this generator does not change.

        A jump is 2**128 blocks of four words for philox4x64, as in NumPy, and 2**64 blocks for philox4x32.
        Raises TypeError or ValueError if `jumps` is not a nonnegative int.

        Examples
        --------
        >>> vd.random.Generator(1).jumped().random(2).read(0)
        array([0.5258143 , 0.01735848], dtype=float32)
        """
        return Generator._from_origin(self._at.jump(parse_int(jumps, "jumps", least=0)))

    @property
    def _seed_seq(self) -> Any:
        # of bit generators; Dask spawns those of chunks from it
        return self._at.seeds

    # -- draws

    @array_function
    def raw(
        self,
        size: launching.SizeLike = None,
        out: Buffer[Any] | None = None,
        *,
        output_map: operands.OutputLike = None,
        graph: CommandGraph | None = None,
    ) -> Buffer[Any]:
        """Return random words: uint32 for philox4x32, uint64 for philox4x64.

        Parameters
        ----------
        size
            The shape of the result: an int, or up to 3 ints; None is that of `out`, or ().
        out
            A buffer to fill, of this shape and dtype.
        output_map
            A map for the numbers.
        graph
            The graph to record into; None means the thread's `vd.global_graph()`. A recorded draw takes new
            numbers at each submit; see the documentation.

        Returns
        -------
        `out`, or a new buffer.

        Raises
        ------
        TypeError, ValueError
            An argument is invalid.

        Examples
        --------
        >>> vd.random.Generator(1).raw(2).read(0)
        array([1460754557, 3135296493], dtype=uint32)
        """
        kind = uint64 if self._at.stream.is_wide else uint32
        return launching.draw(
            self._at, launching.Distribution("raw", kind, 8 * kind.item_size), size, out, output_map, graph
        )

    @array_function
    def random(
        self,
        size: launching.SizeLike = None,
        dtype: DTypeLike = float32,
        out: Buffer[Any] | None = None,
        *,
        output_map: operands.OutputLike = None,
        graph: CommandGraph | None = None,
    ) -> Buffer[Any]:
        """Return uniformly distributed numbers in [0, 1).

        float32 numbers are the upper 24 bits of a 32-bit word, times 2**-24; float64 the upper 53 of 64 bits,
        times 2**-53; float16 the upper 11 of 16 bits, times 2**-11. A word is split into smaller ones, the
        lowest bits first (for philox4x64, 32-bit words are those of NumPy). Two words of philox4x32 make one
        of 64 bits, the lower first. If a draw of float16 leaves half a word, a draw of float16 right after it
        uses that half.

        Parameters are those of `raw`, and `dtype`: vd.float32 (the default; NumPy's is float64), vd.float64
        or vd.float16.

        Examples
        --------
        >>> vd.random.Generator(1).random(2).read(0)
        array([0.3401084 , 0.72999305], dtype=float32)
        """
        distribution = launching.find_uniform(0.0, 1.0, dtype)
        return launching.draw(self._at, distribution, size, out, output_map, graph)

    @array_function
    def uniform(
        self,
        low: float = 0.0,
        high: float = 1.0,
        size: launching.SizeLike = None,
        dtype: DTypeLike = float32,
        out: Buffer[Any] | None = None,
        *,
        output_map: operands.OutputLike = None,
        graph: CommandGraph | None = None,
    ) -> Buffer[Any]:
        """Return uniformly distributed numbers in [low, high): low + (high - low) * `random`, rounded twice.

        As in NumPy, rounding can give `high` itself. For philox4x64, float64 numbers are those of NumPy.

        Parameters
        ----------
        low, high
            Finite numbers.
        size, dtype, out, output_map, graph
            See `random`.

        Examples
        --------
        >>> vd.random.Generator(1).uniform(-1, 1, 2).read(0)
        array([-0.3197832,  0.4599861], dtype=float32)
        """
        distribution = launching.find_uniform(low, high, dtype)
        return launching.draw(self._at, distribution, size, out, output_map, graph)

    @array_function
    def normal(
        self,
        loc: float = 0.0,
        scale: float = 1.0,
        size: launching.SizeLike = None,
        dtype: DTypeLike = float32,
        out: Buffer[Any] | None = None,
        *,
        output_map: operands.OutputLike = None,
        graph: CommandGraph | None = None,
    ) -> Buffer[Any]:
        """Return normally distributed numbers, with the method of Box and Muller.

        Two words give two numbers: 32-bit words for float32 and float16, 64-bit words for float64. The
        numbers are the same on every device, but differ from NumPy's, whose method rejects some words.

        Parameters
        ----------
        loc, scale
            Mean and nonnegative standard deviation.
        size, dtype, out, output_map, graph
            See `random`.

        Examples
        --------
        >>> vd.random.Generator(1).normal(5, 2, 2).read(0)
        array([4.631728 , 2.0858445], dtype=float32)
        """
        distribution = launching.find_normal(loc, scale, dtype)
        return launching.draw(self._at, distribution, size, out, output_map, graph)

    @array_function
    def standard_normal(
        self,
        size: launching.SizeLike = None,
        dtype: DTypeLike = float32,
        out: Buffer[Any] | None = None,
        *,
        output_map: operands.OutputLike = None,
        graph: CommandGraph | None = None,
    ) -> Buffer[Any]:
        """Return normally distributed numbers with mean 0 and standard deviation 1; see `normal`.

        Examples
        --------
        >>> vd.random.Generator(1).standard_normal(2).read(0)
        array([-0.1841359, -1.4570777], dtype=float32)
        """
        return self.normal(0.0, 1.0, size, dtype, out, output_map=output_map, graph=graph)

    @array_function
    def integers(
        self,
        low: int,
        high: int | None = None,
        size: launching.SizeLike = None,
        dtype: DTypeLike = int32,
        endpoint: bool = False,
        out: Buffer[Any] | None = None,
        *,
        output_map: operands.OutputLike = None,
        graph: CommandGraph | None = None,
    ) -> Buffer[Any]:
        """Return integers in [low, high), or in [0, low) without `high`, all with exactly equal probability.

        A word of 32 bits, or of 64 bits for more than 2**32 integers, is multiplied by their count (Lemire
        2019). A word that would cause bias is replaced by words of another stream, so that each number takes
        one word of this stream. NumPy draws again from the same stream: with philox4x64 and a dtype of 32 or
        64 bits, numbers are equal to NumPy's up to the first such word. If the count is a power of two, no
        word is replaced.

        Parameters
        ----------
        low, high
            Ints.
        dtype
            An integer type of 8 to 64 bits; vd.int32 by default.
        endpoint
            Whether `high` (or `low`, without `high`) is included.
        size, out, output_map, graph
            See `raw`.

        Raises
        ------
        TypeError, ValueError
            As for `raw`; or the range is empty, or the dtype does not hold all integers.

        Examples
        --------
        >>> vd.random.Generator(1).integers(0, 10, 5).read(0)
        array([3, 7, 8, 3, 5], dtype=int32)
        """
        distribution = launching.find_integers(low, high, dtype, int(bool(endpoint)))
        return launching.draw(self._at, distribution, size, out, output_map, graph)

    # -- orders

    @array_function
    def permutation(
        self,
        x: int | operands.ArrayLike,
        axis: int = 0,
        dtype: DTypeLike = int32,
        out: Buffer[Any] | None = None,
        *,
        output_map: operands.OutputLike = None,
        graph: CommandGraph | None = None,
    ) -> Buffer[Any]:
        """Return the numbers 0 to `x` - 1 in random order, or a copy of `x` with its rows in random order.

        Parameters
        ----------
        x
            A nonnegative int, or an array of any dtype.
        axis
            The axis of an array along which it is permuted.
        dtype
            The dtype of the numbers, an integer type of 8 to 64 bits; by default vd.int32 (int64 in NumPy).
        out, output_map, graph
            See `raw`. `out` must not be `x`: see `shuffle`.

        Raises
        ------
        TypeError, ValueError
            As for `raw`; or the dtype does not hold all numbers, or the array has no axes.

        Examples
        --------
        >>> vd.random.Generator(1).permutation(5).read(0)
        array([4, 1, 0, 2, 3], dtype=int32)
        """
        chosen = launching.parse_graph(graph)
        if is_int(x):
            count = parse_int(x, "x", least=0)
            kind = launching.parse_known_dtype(dtype, INTEGERS)
            if count > integer_limits(kind)[1] + 1:
                raise ArgumentValueError(f"dtype: {kind.name} does not hold all numbers below {count}")
            stored, buffer = operands.prepare_output(out, output_map, (count,), kind)
            self._permute(buffer, count, stored, chosen)
            return buffer
        source = operands.parse_operand(x, "x")
        along = parse_axis(axis, len(source.shape))
        stored, buffer = operands.prepare_output(
            out, output_map, source.shape, source.var_type, elsewhere=[source]
        )
        if buffer.size:
            self._move(source, along, buffer, stored, chosen)
        return buffer

    @array_function
    def shuffle(self, x: Buffer[Any], axis: int = 0, *, graph: CommandGraph | None = None) -> None:
        """Bring the rows of a buffer into random order, in place; see `permutation`.

        It needs memory for a copy of the buffer.

        Examples
        --------
        >>> x = vd.asbuffer(np.arange(5, dtype=np.int32))
        >>> vd.random.Generator(1).shuffle(x)
        >>> sorted(x.read(0).tolist())
        [0, 1, 2, 3, 4]
        """
        if not isinstance(x, Buffer):
            raise ArgumentTypeError(f"x: expected a vd.Buffer, got {describe(x)}")
        chosen = launching.parse_graph(graph)
        source = operands.parse_operand(x, "x")
        along = parse_axis(axis, len(source.shape))
        plain = operands.parse_output(None, x.var_type)
        if not x.is_writable:
            raise ArgumentValueError("x: the buffer is read-only memory of another library")
        if x.size:
            moved: Buffer[Any] = function_buffer(x.shape, x.var_type)
            self._move(source, along, moved, plain, chosen)
            gather(x, operands.parse_operand(moved, "x"), None, 1, plain, chosen)

    def _move(
        self,
        source: operands.Operand,
        axis: int,
        buffer: Buffer[Any],
        stored: operands.Output,
        graph: CommandGraph,
    ) -> None:
        _, count, inner = split_shape(source.shape, axis)
        kind = place_type(count)
        places: Buffer[Any] = function_buffer(count, kind)
        self._permute(places, count, operands.parse_output(None, kind), graph)
        gather(buffer, source, places, inner, stored, graph)

    def _permute(self, buffer: Buffer[Any], count: int, stored: operands.Output, graph: CommandGraph) -> None:
        if count == 0:
            return
        keys = self.integers(0, 1 << 32, key_words(count), uint32, graph=graph)
        distance = None
        if count > RANKED:
            distance = self.integers(0, count, 1, place_type(count), graph=graph)
        permute(buffer, count, keys, distance, stored, graph)
