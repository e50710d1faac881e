"""A generator of random numbers in bulk, and its permutations."""

import copy
from typing import Any, Self

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import float32, int32, uint32, uint64
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.random import own
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families import operands
from vkdispatch.families.calls import array_function
from vkdispatch.families.kernels import buffers, numbers, trace_kernel
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import device_facts
from vkdispatch.families.values import INTEGERS, integer_limits
from vkdispatch.random import launching
from vkdispatch.random.stream import PHILOX4X32, PHILOX4X64, Origin, StreamPosition, parse_seed, read_state
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import describe

# ---- Permutations whose elements are found independently: no sort, and no memory but for the keys --------
#
# Of up to `RANKED` elements, element i takes the rank of its random key of 64 bits among all keys: all orders
# are equally probable. For more elements there is a Feistel network, which is a bijection for any function F:
#
#       i, in as many bits as the last place has
#       |
#     upper half       lower half
#       |                  |
#      xor <---- F(., key 0) ----
#       |                  |
#       ---- F(., key 1) -> xor          ROUNDS of these, in turn
#       |                  |
#       j: a place; while it is beyond the last, it goes through the network again (cycle walking)
#       |
#       j + a random distance, modulo the count
#
# At least half of all numbers of these bits are places, so that an element takes at most two networks on
# average. The last step makes the place of each element exactly uniform, and permutations odd or even:
# networks of more than three bits are even. There are 2**(32 * ROUNDS) permutations to choose from.
#
# Luby, Rackoff: "How to construct pseudorandom permutations from pseudorandom functions" (1988); Black,
# Rogaway: "Ciphers with arbitrary finite domains" (2002, cycle walking); Mitchell, Stokes, Frank, Holmes:
# "Bandwidth-optimal random shuffling for GPUs" (2022, with other networks). F is Wellons' hash lowbias32.


RANKED = 1024
ROUNDS = 16
_GROUP = 256


def key_words(count: int) -> int:
    """Return how many words of 32 bits a permutation of `count` elements takes, besides the distance."""
    return 2 * count if count <= RANKED else ROUNDS


def place_type(count: int) -> dt.DType:
    """Return the type that places are computed in."""
    return dt.uint32 if count <= 1 << 32 else dt.uint64


def permute(
    result: Buffer[Any],
    count: int,
    keys: Buffer[Any],
    distance: Buffer[Any] | None,
    output: operands.Output,
    graph: CommandGraph | None,
) -> None:
    """Write a permutation of 0 to count - 1.

    Parameters
    ----------
    result
        A buffer of `count` elements.
    keys
        `key_words(count)` of uint32.
    distance
        One number below `count`, of `place_type(count)`; None for up to `RANKED` elements.
    output
        How places of its `value_type` are stored.
    """
    if distance is None:
        _make_ranking_kernel(output.sink)(result, keys, *output.arguments, exec_size=count, graph=graph)
        return
    bits = (count - 1).bit_length()
    low_bits = bits - bits // 2
    kind = place_type(count)
    last = [count - 1] if kind is dt.uint32 else [count - 1 & 0xFFFFFFFF, count - 1 >> 32]
    _make_network_kernel(output.sink, kind)(
        *(result, keys, distance, *output.arguments),
        *(low_bits, (1 << bits - low_bits) - 1, (1 << low_bits) - 1, *last),
        exec_size=count,
        graph=graph,
    )


def gather(
    result: Buffer[Any],
    source: operands.Operand,
    places: Buffer[Any] | None,
    inner: int,
    output: operands.Output,
    graph: CommandGraph | None,
) -> None:
    """Write the rows at places of an axis with `inner` elements behind it; None copies all rows.

    Raises
    ------
    ValueError
        There are too many elements behind the axis.
    """
    taken, sink, parts = source.source, output.sink, 1
    word = _choose_word(source, output)
    if word is not None:
        taken, sink = operands.plain_source(word), operands.plain_output(word).sink
        parts = source.var_type.item_size // word.item_size
    if inner * parts > 0xFFFFFFFF:
        raise ArgumentValueError(f"axis: rows of {inner} elements are too long; expected less than 2**32")
    given = () if places is None else (places,)
    kernel = _make_gathering_kernel(sink, taken, None if places is None else places.var_type)
    arguments = (*given, *source.arguments, *output.arguments, inner * parts)
    kernel(result, *arguments, exec_size=result.size * parts, graph=graph)


def _choose_word(source: operands.Operand, output: operands.Output) -> dt.DType | None:
    """Return the type of the words as which elements are moved; None if they are moved as elements."""
    if not source.source.is_plain or output.sink.mapping is not None:
        return None
    component = dt.component_type(source.var_type)
    if component in (dt.float16, dt.bfloat16):
        # conversions to float32 and back change the bits of a NaN
        return dt.uint16
    lacking = component is dt.float64 and "shaderFloat64" not in device_facts(source.context).features
    return dt.uint32 if lacking else None


@store_results
def _make_ranking_kernel(sink: operands.Sink) -> ShaderFunction:
    def body(result: Any, keys: Any, mapping: Any) -> None:
        index = vc.global_invocation_id().x
        low, high = keys[2 * index].to_register(), keys[2 * index + 1].to_register()
        rank = vc.new_register(dt.uint32, 0)
        with vc.for_block(keys.shape.w // 2) as other:
            other_low, other_high = keys[2 * other].to_register(), keys[2 * other + 1].to_register()
            same = vc.all(other_high == high, other_low == low, other < index)
            before = vc.any(other_high < high, vc.all(other_high == high, other_low < low), same)
            rank += vc.select(before, vc.to_dtype(dt.uint32, 1), 0)
        sink.store(result, mapping, index, rank.to_dtype(dt.compute_type(sink.value_type)))

    arguments = [*buffers(result=sink.out_type, keys=dt.uint32), sink.parameters]
    return trace_kernel("random_ranks", body, arguments, _GROUP, exec_size=1)


@store_results
def _make_network_kernel(sink: operands.Sink, kind: dt.DType) -> ShaderFunction:
    wide = kind is dt.uint64

    def body(result: Any, keys: Any, distance: Any, mapping: Any, sizes: Any) -> None:
        low_bits, high_mask, low_mask, last, *upper = sizes
        if wide:
            last = ((upper[0].to_dtype(dt.uint64) << 32) | last.to_dtype(dt.uint64)).to_register()
        index = vc.global_invocation_id().x
        place = vc.new_register(kind, _cast_place(kind, index))
        again = vc.new_register(dt.uint32, 1)
        shift = low_bits.to_dtype(kind) if wide else low_bits
        with vc.while_block(again != 0):
            high = vc.new_register(dt.uint32, _cast_place(dt.uint32, place >> shift))
            low = vc.new_register(dt.uint32, _cast_place(dt.uint32, place) & low_mask)
            for turn in range(0, ROUNDS, 2):
                high[:] = (high ^ _hash(low, keys[turn])) & high_mask
                low[:] = (low ^ _hash(high, keys[turn + 1])) & low_mask
            place[:] = (high.to_dtype(kind) << shift) | low.to_dtype(kind)
            again[:] = vc.select(place > last, vc.to_dtype(dt.uint32, 1), 0)
        # modulo the count, without an overflow
        far = distance[0].to_register()
        left = (last - place).to_register()
        moved = vc.select(far > left, far - left - 1, place + far)
        sink.store(result, mapping, index, moved.to_dtype(dt.compute_type(sink.value_type)))

    tables = buffers(result=sink.out_type, keys=dt.uint32, distance=kind)
    sizes = ("low_bits", "high_mask", "low_mask", "last", *(("last_upper",) if wide else ()))
    arguments = [*tables, sink.parameters, numbers(*sizes)]
    return trace_kernel("random_permutation", body, arguments, _GROUP, exec_size=1)


@store_results
def _make_gathering_kernel(sink: operands.Sink, source: Source, places: dt.DType | None) -> ShaderFunction:
    def body(result: Any, order: Any, variables: Any, mapping: Any, inner: Any) -> None:
        index = vc.global_invocation_id().x
        taken = index
        if order is not None:
            row, column = (index // inner).to_register(), (index % inner).to_register()
            length = order.shape.w
            before = row // length * length
            taken = (before + order[row % length].to_register()) * inner + column
        sink.store(result, mapping, index, source.value(variables, taken))

    tables = buffers(result=sink.out_type, order=places)
    arguments = [*tables, source.parameters, sink.parameters, *numbers("inner")]
    return trace_kernel("random_gather", body, arguments, _GROUP, exec_size=1)


def _cast_place(kind: dt.DType, value: Any) -> Any:
    """Return a number in a type, also in kernels whose positions have 64 bits."""
    return own(dt.uint32, value.to_dtype(dt.uint32)) if kind is dt.uint32 else value.to_dtype(dt.uint64)


def _hash(value: Any, key: Any) -> Any:
    mixed = own(dt.uint32, value + key)
    mixed = own(dt.uint32, (mixed ^ (mixed >> 16)) * 0x7FEB352D)
    mixed = own(dt.uint32, (mixed ^ (mixed >> 15)) * 0x846CA68B)
    return own(dt.uint32, mixed ^ (mixed >> 16))


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
        children = self._at.spawn(operands.parse_int(count, "count", least=0))
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
        return Generator._from_origin(self._at.jump(operands.parse_int(jumps, "jumps", least=0)))

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
        dtype: operands.DTypeLike = float32,
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
        dtype: operands.DTypeLike = float32,
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
        dtype: operands.DTypeLike = float32,
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
        dtype: operands.DTypeLike = float32,
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
        dtype: operands.DTypeLike = int32,
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
        dtype: operands.DTypeLike = int32,
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
        if operands.is_int(x):
            count = operands.parse_int(x, "x", least=0)
            kind = launching.parse_known_dtype(dtype, INTEGERS)
            if count > integer_limits(kind)[1] + 1:
                raise ArgumentValueError(f"dtype: {kind.name} does not hold all numbers below {count}")
            stored, buffer = operands.prepare_output(out, output_map, (count,), kind)
            self._permute(buffer, count, stored, chosen)
            return buffer
        source = operands.parse_operand(x, "x")
        along = operands.parse_axis(axis, len(source.shape))
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
        along = operands.parse_axis(axis, len(source.shape))
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
        _, count, inner = operands.split_shape(source.shape, axis)
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
