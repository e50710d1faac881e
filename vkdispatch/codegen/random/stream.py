"""A stream of random numbers for each invocation of a kernel."""

from typing import Any

from vkdispatch.base.dtype import (
    DType,
    float16,
    float32,
    float64,
    int32,
    int64,
    uint32,
    uint64,
    uvec4,
    vec4,
)
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.execution.control_flow import if_block, select, while_block
from vkdispatch.codegen.execution.registers import new_register
from vkdispatch.codegen.functions.arithmetic import umul_extended
from vkdispatch.codegen.functions.conversions import to_dtype
from vkdispatch.codegen.random.distributions import normal_pair, scaled, uniform32, uniform64
from vkdispatch.codegen.random.philox import own, philox4x32, product64, word
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Op, nodes
from vkdispatch.compiler.ir.location import here, located

_UNIFORM = frozenset((Op.LITERAL, Op.ARGUMENT, Op.CONSTRUCT, Op.UNARY, Op.BINARY))
_FLOATS = (float16, float32, float64)
_INTEGERS = (int32, uint32, int64, uint64)


class Philox:
    """A stream of Philox4x32-10: words of 32 bits, and numbers made of them.

    Block n of four words is that of the counter (n, sequence), with the seed as the key; cuRAND's Philox
    counts likewise. Streams of different seeds or sequences are independent. Give each invocation its own
    sequence, as in `vc.random.Philox(seed, sequence=i)` with the invocation id `i`. With `Philox(seed)`
    alone, all invocations draw the same numbers, and the kernel warns. All methods may be called anywhere in
    the kernel, in loops and branches too: each takes the next words of the invocation's stream. The same
    words, integers, uniform and normal numbers come out on every device, bit for bit.

    Attributes
    ----------
    key
        The two words of the seed.
    """

    def __init__(self, seed: Any, sequence: Any = None, offset: Any = 0) -> None:
        """Begin a stream.

        Parameters
        ----------
        seed
            Chooses the set of streams, usually the same for the whole kernel: an integer of up to 64 bits, a
            number or a GPU value.
        sequence
            Chooses a stream of the seed, usually the invocation id: an integer of up to 64 bits, a number
            or a GPU value. Invocations with the same seed, sequence and offset draw the same numbers. None
            is 0, and warns if nothing else tells the streams of a kernel's invocations apart.
        offset
            How many words of the stream are passed over: an integer of up to 64 bits, a number or a GPU
            value.

        Raises
        ------
        TypeError
            An argument is no integer.
        ValueError
            A number is negative, or has more than 64 bits.
        RuntimeError
            No kernel is being traced.
        """
        self.key = _halves("seed", seed)
        if sequence is None and _is_uniform(seed) and _is_uniform(offset):
            current().uniform_streams.append(here())
        self._sequence = _halves("sequence", 0 if sequence is None else sequence)
        low, high = _halves("offset", offset)
        self._low = new_register(uint32, _quarter(low, high))
        self._high = new_register(uint32, high >> 2)
        self._words = new_register(uvec4)
        # words that are left of the block
        self._left = new_register(uint32, 0)
        self._spare = new_register(float32)
        self._has_spare = new_register(uint32, 0)
        passed = low & 3
        if isinstance(passed, int):
            if passed:
                self._refill()
                self._turn(passed)
                self._left[:] = 4 - passed
        else:
            with if_block(passed != 0):
                self._refill()
                w = self._words
                second, third, fourth = w.yzwx, w.zwxy, w.wxyz
                w[:] = select(passed == 1, second, select(passed == 2, third, fourth)).to_register()
                self._left[:] = 4 - passed

    # -- words

    def _refill(self) -> None:
        """Take the next block of four words."""
        self._words[:] = philox4x32((self._low, self._high, *self._sequence), self.key)
        self._low[:] = own(uint32, self._low + 1)
        self._high[:] = own(uint32, self._high + select(self._low == 0, to_dtype(uint32, 1), 0))

    def _turn(self, count: int) -> None:
        words = self._words
        words[:] = (words, words.yzwx, words.zwxy, words.wxyz)[count]

    def uint32(self) -> ShaderVariable:
        """Return the next word: 32 random bits, as a uint32."""
        with if_block(self._left == 0):
            self._refill()
            self._left[:] = 4
        result = self._words.x.to_register()
        self._turn(1)
        self._left -= 1
        return result

    def uvec4(self) -> ShaderVariable:
        """Return the next whole block, as a uvec4; words that were left of the block before are passed over.

        Where four words are wanted this is the fastest way to them.
        """
        self._refill()
        self._left[:] = 0
        return self._words.to_register()

    def _pair(self) -> tuple[ShaderVariable, ShaderVariable]:
        """Return two words, of which the first has an even place in the stream."""
        with if_block(self._left < 2):
            self._refill()
            self._left[:] = 4
        with if_block(self._left == 3):
            self._turn(1)
            self._left[:] = 2
        first, second = self._words.x.to_register(), self._words.y.to_register()
        self._turn(2)
        self._left -= 2
        return first, second

    def uint64(self) -> ShaderVariable:
        """Return the next two words as a uint64, the lower one first; they begin at an even place."""
        low, high = self._pair()
        return ((high.to_dtype(uint64) << 32) | low.to_dtype(uint64)).to_register()

    # -- numbers

    def uniform(self, low: Any = 0.0, high: Any = 1.0, dtype: DType = float32) -> ShaderVariable:
        """Return a number of [low, high), all alike.

        `dtype` is float32 (the upper 24 bits of one word), float16 (11 bits of it) or float64 (53 bits of
        two words). Raises TypeError for another.
        """
        if dtype not in _FLOATS:
            raise located(ArgumentTypeError, f"dtype: expected a float16, float32 or float64, got {dtype!r}")
        value: Any
        if dtype is float64:
            value = uniform64(self.uint64())
        elif dtype is float32:
            value = uniform32(self.uint32())
        else:
            value = (self.uint32() >> 21).to_dtype(float32) * 2.0**-11
        if not (_is_number(low, 0) and _is_number(high, 1)):
            wide = float64 if dtype is float64 else float32
            value = scaled(value, _of(wide, low), _of(wide, high - low))
        result: ShaderVariable = value.to_dtype(dtype).to_register()
        return result

    def uniform4(self) -> ShaderVariable:
        """Return four numbers of [0, 1) as a vec4, of the next whole block; see `uvec4`."""
        words = self.uvec4()
        return to_dtype(vec4, *(uniform32(words[i]) for i in range(4))).to_register()

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, dtype: DType = float32) -> ShaderVariable:
        """Return a normally distributed number of a mean and a standard deviation.

        Two words make two numbers (Box and Muller), the second of which waits for the next call: four words
        make four numbers. A float64 takes four words each time. Raises TypeError for another `dtype`.
        """
        if dtype not in (float32, float64):
            raise located(ArgumentTypeError, f"dtype: expected a float32 or float64, got {dtype!r}")
        if dtype is float64:
            double, _ = normal_pair(self.uint64(), self.uint64())
            far: ShaderVariable = scaled(double, _of(float64, loc), _of(float64, scale))
            return far
        result = new_register(float32, self._spare)
        with if_block(self._has_spare == 0):
            first, second = normal_pair(*self._pair())
            result[:] = first
            self._spare[:] = second
        self._has_spare[:] = 1 - self._has_spare
        if _is_number(loc, 0) and _is_number(scale, 1):
            return result
        moved: ShaderVariable = scaled(result, _of(float32, loc), _of(float32, scale))
        return moved

    def normal4(self) -> ShaderVariable:
        """Return four standard normal numbers as a vec4, of the next whole block; see `uvec4`."""
        words = self.uvec4()
        first, second = normal_pair(words.x, words.y), normal_pair(words.z, words.w)
        return to_dtype(vec4, *first, *second).to_register()

    def integers(self, low: Any, high: Any = None, dtype: DType = int32) -> ShaderVariable:
        """Return an integer of [low, high), all with exactly the same probability; of [0, low) without high.

        A word is multiplied by the count of integers, and the few words that would give some of them more
        often are passed over (Lemire 2019): how many words it takes depends on their values.

        Parameters
        ----------
        low, high
            Integers: numbers, or GPU values of which low is less than high.
        dtype
            int32 or uint32; int64 and uint64 take two words each time.

        Raises
        ------
        TypeError
            They are no integers, or `dtype` is none of these.
        ValueError
            There are none in the range, or `dtype` does not hold them.
        """
        if dtype not in _INTEGERS:
            raise located(
                ArgumentTypeError, f"dtype: expected an int32, uint32, int64 or uint64, got {dtype!r}"
            )
        low, high = (0, low) if high is None else (low, high)
        wide = dtype.item_size == 8
        kind = uint64 if wide else uint32
        low, high = word("low", low, dtype), word("high", high, dtype)
        if isinstance(low, int) and isinstance(high, int):
            _check_range(low, high, dtype)
            count: Any = high - low
            if count == 1:
                return new_register(dtype, low)
            if count == 1 << 8 * dtype.item_size:
                value = self.uint64() if wide else self.uint32()
                return (value + _unsigned(low, kind)).to_dtype(dtype).to_register()
            surplus: Any = (1 << 8 * dtype.item_size) % count
        else:
            count = own(kind, _of(dtype, high) - _of(dtype, low))
            surplus = (own(kind, 0 - count) % count).to_register()
        upper, lower = new_register(kind), new_register(kind)
        again = new_register(uint32, 1)
        with while_block(again != 0):
            drawn = self.uint64() if wide else self.uint32()
            product = product64(drawn, count) if wide else umul_extended(drawn, count)
            upper[:], lower[:] = product
            again[:] = select(lower < surplus, to_dtype(uint32, 1), 0)
        start = _of(dtype, low).to_dtype(kind) if isinstance(low, ShaderVariable) else _unsigned(low, kind)
        return (upper + start).to_dtype(dtype).to_register()


def _is_number(value: Any, number: float) -> bool:
    return not isinstance(value, ShaderVariable) and bool(value == number)


def _of(kind: DType, value: Any) -> ShaderVariable:
    """Return a number or a GPU value in a type."""
    return value.to_dtype(kind) if isinstance(value, ShaderVariable) else to_dtype(kind, value)


def _unsigned(value: int, kind: DType) -> int:
    """Return an integer as the unsigned one of the same bits."""
    return value & (1 << 8 * kind.item_size) - 1


def _check_range(low: int, high: int, kind: DType) -> None:
    bits = 8 * kind.item_size
    least = 0 if kind in (uint32, uint64) else -(1 << bits - 1)
    if low >= high:
        raise located(ArgumentValueError, f"integers: there is none from {low} up to, without it, {high}")
    if low < least or high > least + (1 << bits):
        raise located(
            ArgumentValueError, f"integers: {kind.name} does not hold all from {low} to {high - 1}; see dtype"
        )


def _halves(name: str, value: Any) -> tuple[Any, Any]:
    """Return the lower and the upper word of an integer of up to 64 bits."""
    value = word(name, value, uint64)
    if isinstance(value, int):
        if not 0 <= value < 1 << 64:
            raise located(ArgumentValueError, f"{name}: expected an integer of 0 to 2**64 - 1, got {value}")
        return value & 0xFFFFFFFF, value >> 32
    if value.var_type.item_size == 8:
        bits = value.to_dtype(uint64)
        return own(uint32, bits), own(uint32, bits >> 32)
    bits = value.to_dtype(uint32)
    # 0, but for an id in the form of a kernel for large launches, where it has 64 bits
    return own(uint32, bits), own(uint32, (bits >> 16) >> 16)


def _is_uniform(value: Any) -> bool:
    """Whether a number is the same for all invocations, being made of constants and arguments alone."""
    if not isinstance(value, ShaderVariable):
        return True
    return all(node.op in _UNIFORM for node in nodes([value.expr]))


def _quarter(low: Any, high: Any) -> Any:
    """Return the lower word of a quarter of an integer."""
    if isinstance(low, int):
        return (low >> 2 | high << 30) & 0xFFFFFFFF
    return (low >> 2) | (high << 30)
