"""Random numbers in kernels: `vc.random.Philox` for a stream in each invocation, and the bare bijection."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import uint32, uint64, uvec4
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.execution.control_flow import if_block, select, while_block
from vkdispatch.codegen.execution.registers import new_register, precise
from vkdispatch.codegen.functions.arithmetic import umul_extended
from vkdispatch.codegen.functions.bits import find_msb, reinterpret
from vkdispatch.codegen.functions.vectors import to_dtype
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.trace.operands import is_integer_scalar
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Op, nodes
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located
from vkdispatch.compiler.ir.program import WRAPPED

__all__ = ["Philox", "philox4x32", "philox4x64"]


# ---- Philox, a bijection of counters ---------------------------------------------------------------------
#
# What it makes of 0, 1, 2, ... are the words of a random stream.
#
# Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). Ten rounds of this,
# where the key grows by a constant from round to round::
#
#     counter:    a          b          c          d
#                 |                     |
#                 x M0                  x M1              a x M0 = (high 0, low 0), of twice the bits
#                /  \                  /  \
#           high 0  low 0         high 1  low 1
#                 \    \         /       /
#                  \    +------ / --+   /
#                   +--------- / +  |  |
#                             /  |  |  |
#                   +--------+   |  |  |
#                   |            |  |  +-------> new b = low 1
#                   |            |  +----------> new d = low 0
#                   |            +-------------> new c = high 0 ^ d ^ key 1
#                   +--------------------------> new a = high 1 ^ b ^ key 0
#
# For each key it is one to one, so that no block repeats before all counters were used; block n is found
# without those before it. All of it is integers: every device gives the same words.


ROUNDS = 10
_FACTORS_32 = (0xD2511F53, 0xCD9E8D57)
_STEPS_32 = (0x9E3779B9, 0xBB67AE85)
_FACTORS_64 = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_STEPS_64 = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)

Words = tuple[Any, ...]
Product = Callable[[Any, int], tuple[Any, Any]]


def philox4x32(counter: Any, key: Any) -> ShaderVariable:
    """Philox4x32-10: the four random words that belong to a counter and a key, as a uvec4.

    Parameters
    ----------
    counter
        A uvec4, or four integers (GPU values or numbers), the lowest word first.
    key
        A uvec2, or two integers, the lowest word first.

    Raises
    ------
    TypeError
        They are neither. RuntimeError outside tracing.
    """
    words = words32(_parts("counter", counter, uvec4, uint32), _parts("key", key, dt.uvec2, uint32))
    return to_dtype(uvec4, *words)


def philox4x64(counter: Sequence[Any], key: Sequence[Any]) -> tuple[ShaderVariable, ...]:
    """Philox4x64-10, as in NumPy's Philox: the four uint64 that belong to a counter and a key.

    Parameters
    ----------
    counter
        Four integers (GPU values of up to 64 bits, or numbers), the lowest word first. The first block of
        `numpy.random.Philox(key=key, counter=c)` is that of c + 1.
    key
        Two integers, the lowest word first.

    Raises
    ------
    TypeError
        They are not. RuntimeError outside tracing.
    """
    return words64(_parts("counter", counter, None, uint64), _parts("key", key, None, uint64))


def words32(counter: Sequence[Any], key: Sequence[Any], product: Product | None = None) -> Words:
    """Philox4x32-10 of words; `product` returns (upper, lower) half of a uint32 times a number."""
    return _rounds(counter, key, _FACTORS_32, _STEPS_32, uint32, product or umul_extended)


def words64(counter: Sequence[Any], key: Sequence[Any]) -> Words:
    """Philox4x64-10 of words."""
    return _rounds(counter, key, _FACTORS_64, _STEPS_64, uint64, product64)


def _rounds(
    counter: Sequence[Any],
    key: Sequence[Any],
    factors: tuple[int, int],
    steps: tuple[int, int],
    kind: dt.DType,
    product: Product,
) -> Words:
    a, b, c, d = (own(kind, word) for word in counter)
    keys = [own(kind, word) for word in key]
    mask = (1 << 8 * kind.item_size) - 1
    for turn in range(ROUNDS):
        high0, low0 = product(_register(kind, a), factors[0])
        high1, low1 = product(_register(kind, c), factors[1])
        low0, low1 = _register(kind, low0), _register(kind, low1)
        a, b, c, d = high1 ^ b ^ keys[0], low1, high0 ^ d ^ keys[1], low0
        a, c = _register(kind, a), _register(kind, c)
        if turn + 1 < ROUNDS:
            keys = [
                own(kind, word + step) if isinstance(word, ShaderVariable) else word + step & mask
                for word, step in zip(keys, steps, strict=True)
            ]
    return a, b, c, d


def _register(kind: dt.DType, value: Any) -> ShaderVariable:
    """Return a value in a register that never changes; one that is there already is not copied."""
    if isinstance(value, ShaderVariable) and value.is_register():
        return value
    expr = value._value() if isinstance(value, ShaderVariable) else ex.literal(value, kind)
    return ShaderVariable(current().declare(kind, expr, fixed=True))


def own(kind: dt.DType, word: Any) -> Any:
    """Return a word in its type, apart from what it was computed from.

    In the form of a kernel for large buffers, positions have 64 bits: the words must not.
    """
    if not isinstance(word, ShaderVariable):
        return int(word) & (1 << 8 * kind.item_size) - 1
    value = ex.cast(word._value(), kind)
    if kind is uint32:
        value = ex.call(WRAPPED, kind, value)
    return ShaderVariable(current().declare(kind, value, fixed=True))


def product64(x: Any, factor: Any) -> tuple[Any, Any]:
    """Return the upper and the lower 64 bits of a uint64 times a number, from products of halves."""
    x = x if isinstance(x, ShaderVariable) else ShaderVariable(ex.literal(x, uint64))
    low_factor: Any
    high_factor: Any
    if isinstance(factor, int):
        low_factor, high_factor = factor & 0xFFFFFFFF, factor >> 32
    else:
        low_factor, high_factor = _register(uint64, factor & 0xFFFFFFFF), _register(uint64, factor >> 32)
    low, high = _register(uint64, x & 0xFFFFFFFF), _register(uint64, x >> 32)
    first = _register(uint64, low * low_factor)
    middle = _register(uint64, high * low_factor + (first >> 32))
    other = _register(uint64, low * high_factor + (middle & 0xFFFFFFFF))
    return high * high_factor + (middle >> 32) + (other >> 32), (other << 32) | (first & 0xFFFFFFFF)


def product_of_64_bits(x: Any, factor: int) -> tuple[Any, Any]:
    """Return the halves of a uint32 times a number by one product of 64 bits: faster on some devices."""
    whole = _register(uint64, x.to_dtype(uint64) * factor)
    return (whole >> 32).to_dtype(uint32), whole.to_dtype(uint32)


def _parts(name: str, value: Any, vector: dt.DType | None, kind: dt.DType) -> list[Any]:
    """Return the words of a counter or a key: GPU integers and numbers."""
    count = 2 if name == "key" else 4
    if vector is not None and isinstance(value, ShaderVariable) and value.var_type is vector:
        whole = value if value.is_register() else value.to_register()
        return [whole[position] for position in range(count)]
    if isinstance(value, (tuple, list)) and len(value) == count:
        return [word(name, part, kind) for part in value]
    known = f"a {vector.name} or " if vector is not None else ""
    given = value.var_type.name if isinstance(value, ShaderVariable) else repr(value)
    raise located(ArgumentTypeError, f"{name}: expected {known}{count} integers, got {given}")


def word(name: str, value: Any, kind: dt.DType) -> Any:
    """Check one word: a GPU integer scalar, or a Python int."""
    if isinstance(value, ShaderVariable) and is_integer_scalar(value.var_type):
        return value
    if ex.is_integer_number(value):
        return int(value)
    given = value.var_type.name if isinstance(value, ShaderVariable) else repr(value)
    bits = 8 * kind.item_size
    raise located(ArgumentTypeError, f"{name}: expected integers of up to {bits} bits, got {given}")


# ---- Numbers made of random words, by sums, differences, products and bits alone -------------------------
#
# The same on every device.
#
# `log`, `sqrt`, `sin` and `cos` differ in their last bits from device to device, so normal numbers have
# their own here: polynomials (minimax, found by Remez' exchange; Taylor's for float64) on short intervals,
# and Newton's method. That only works where a product and a sum are not taken together, which `precise`
# sees to.


# ln(1 + f) = f - f**2 / 2 + f**3 * Q(f) for sqrt(1/2) <= 1 + f <= sqrt(2); relative errors 3.3e-8 and 5e-17
_LOG_32 = (0.3333386, -0.25001746, 0.19965398, -0.16565642, 0.14876975, -0.14350156, 0.089177705)
_LOG_64 = (
    *(0.3333333333332809, -0.24999999999994926, 0.20000000001740234, -0.16666666669051042),
    *(0.14285714088918117, -0.12499999638226135, 0.11111121790723105, -0.10000025055721472),
    *(0.09090595182064967, -0.08332414983834577, 0.07697397117609829, -0.07161751863740817),
    *(0.06626034997162127, -0.060336940044223034, 0.05941554609446263, -0.06789038200133975),
    *(0.06418025879009896, -0.029115937916794257),
)
# sin(a) = a + a**3 * S(a**2) and cos(a) = 1 - a**2 / 2 + a**4 * C(a**2) for |a| <= pi / 4
_SIN_32 = (-0.16666655, 0.008332178, -0.000195173)
_COS_32 = (0.041666646, -0.0013887368, 2.4438452e-05)
_SIN_64 = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(1, 9))
_COS_64 = tuple((-1) ** k / math.factorial(2 * k) for k in range(2, 10))


def uniform32(word: Any) -> Any:
    """Return a float32 of [0, 1) for a uint32: its upper 24 bits, as NumPy does."""
    return (word >> 8).to_dtype(dt.float32) * 2.0**-24


def uniform64(word: Any) -> Any:
    """Return a float64 of [0, 1) for a uint64: its upper 53 bits, as NumPy does."""
    return (word >> 11).to_dtype(dt.float64) * 2.0**-53


def scaled(value: Any, low: Any, width: Any) -> Any:
    """Return low + width * value, rounded twice."""
    return precise(low + width * value)


def normal_pair(first: Any, second: Any) -> tuple[Any, Any]:
    """Return two independent standard normal numbers for two uint32 (float32) or two uint64 (float64).

    Box and Muller (1958): the first word gives the distance from the middle, sqrt(-2 ln u), the second the
    direction. The distance is at most 6.66 (float32) or 8.57 (float64).
    """
    double = first.var_type is uint64
    radius = _root(_twice_log_64(first) if double else _twice_log_32(first))
    cosine, sine = _direction(second)
    return precise(radius * cosine), precise(radius * sine)


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    total: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _twice_log_32(word: Any) -> Any:
    """Return -2 ln(u) of u = (word | 1) / 2**32."""
    bits = (word | 1).to_register()
    top = find_msb(bits).to_register()
    # the leading one to the top: 1 + f = mantissa / 2**32 or 2**31, whichever is nearer to 1
    mantissa = (bits << (31 - top).to_dtype(uint32)).to_register()
    above = (mantissa >= 0xB504F334).to_register()
    f = select(
        above,
        mantissa.to_dtype(dt.int32).to_dtype(dt.float32) * 2.0**-32,
        (mantissa - 0x80000000).to_dtype(dt.float32) * 2.0**-31,
    ).to_register()
    halvings = (select(above, 31, 32) - top).to_dtype(dt.float32)
    log = f - f * f * 0.5 + f * f * f * _polynomial(f, _LOG_32)
    return precise(halvings * (2 * math.log(2)) - 2.0 * log)


def _twice_log_64(word: Any) -> Any:
    """Return -2 ln(u) of u = ((word >> 11) | 1) / 2**53."""
    bits = reinterpret(uint64, ((word >> 11) | 1).to_dtype(dt.float64)).to_register()
    mantissa = reinterpret(dt.float64, (bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000).to_register()
    above = (mantissa > math.sqrt(2)).to_register()
    f = (select(above, mantissa * 0.5, mantissa) - 1.0).to_register()
    exponent = (bits >> 52).to_dtype(dt.int32)
    halvings = (select(above, 1023 + 52, 1023 + 53) - exponent).to_dtype(dt.float64)
    log = f - f * f * 0.5 + f * f * f * _polynomial(f, _LOG_64)
    return precise(halvings * (2 * math.log(2)) - 2.0 * log)


def _root(x: Any) -> Any:
    """Return the square root of a positive number: x times its inverse root, by Newton's method."""
    double = x.var_type is dt.float64
    word = reinterpret(uint64 if double else uint32, x)
    guess = reinterpret(x.var_type, (0x5FE6EB50C7B537A9 if double else 0x5F3759DF) - (word >> 1))
    half = (x * 0.5).to_register()
    for _ in range(4 if double else 3):
        guess = precise(guess)
        guess = guess * (1.5 - half * guess * guess)
    return precise(x * guess)


def _direction(word: Any) -> tuple[Any, Any]:
    """Return cosine and sine of 2 pi u, where u is the word divided by 2**32 or 2**64."""
    double = word.var_type is uint64
    bits = 64 if double else 32
    turned = (word + (1 << bits - 3)).to_register()
    quarter = (turned >> bits - 2).to_dtype(uint32).to_register()
    # what is left is -1/8 to 1/8 of a turn; 53 bits of it, so that float64 holds it
    inner = turned & (1 << bits - 2) - 1
    if double:
        angle = ((inner >> 9).to_dtype(dt.int64) - (1 << 52)).to_dtype(dt.float64) * (math.pi / 2 * 2.0**-53)
    else:
        angle = (inner.to_dtype(dt.int32) - (1 << 29)).to_dtype(dt.float32) * (math.pi / 2 * 2.0**-30)
    angle = precise(angle)
    square = precise(angle * angle)
    cosine = precise(
        1.0 - square * 0.5 + square * square * _polynomial(square, _COS_64 if double else _COS_32)
    )
    sine = precise(angle + angle * square * _polynomial(square, _SIN_64 if double else _SIN_32))
    odd = ((quarter & 1) == 1).to_register()
    across, up = select(odd, sine, cosine), select(odd, cosine, sine)
    # the cosine is negative in the second and the third quarter, the sine in the third and the fourth
    return (select(((quarter + 1) & 2) == 2, -across, across), select((quarter & 2) == 2, -up, up))


# ---- A stream of random numbers for each invocation of a kernel ------------------------------------------


_UNIFORM = frozenset((Op.LITERAL, Op.ARGUMENT, Op.CONSTRUCT, Op.UNARY, Op.BINARY))
_FLOATS = (dt.float16, dt.float32, dt.float64)
_INTEGERS = (dt.int32, uint32, dt.int64, uint64)


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
        self._spare = new_register(dt.float32)
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

    def uniform(self, low: Any = 0.0, high: Any = 1.0, dtype: dt.DType = dt.float32) -> ShaderVariable:
        """Return a number of [low, high), all alike.

        `dtype` is float32 (the upper 24 bits of one word), float16 (11 bits of it) or float64 (53 bits of
        two words). Raises TypeError for another.
        """
        if dtype not in _FLOATS:
            raise located(ArgumentTypeError, f"dtype: expected a float16, float32 or float64, got {dtype!r}")
        value: Any
        if dtype is dt.float64:
            value = uniform64(self.uint64())
        elif dtype is dt.float32:
            value = uniform32(self.uint32())
        else:
            value = (self.uint32() >> 21).to_dtype(dt.float32) * 2.0**-11
        if not (_is_number(low, 0) and _is_number(high, 1)):
            wide = dt.float64 if dtype is dt.float64 else dt.float32
            value = scaled(value, _of(wide, low), _of(wide, high - low))
        result: ShaderVariable = value.to_dtype(dtype).to_register()
        return result

    def uniform4(self) -> ShaderVariable:
        """Return four numbers of [0, 1) as a vec4, of the next whole block; see `uvec4`."""
        words = self.uvec4()
        return to_dtype(dt.vec4, *(uniform32(words[i]) for i in range(4))).to_register()

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, dtype: dt.DType = dt.float32) -> ShaderVariable:
        """Return a normally distributed number of a mean and a standard deviation.

        Two words make two numbers (Box and Muller), the second of which waits for the next call: four words
        make four numbers. A float64 takes four words each time. Raises TypeError for another `dtype`.
        """
        if dtype not in (dt.float32, dt.float64):
            raise located(ArgumentTypeError, f"dtype: expected a float32 or float64, got {dtype!r}")
        if dtype is dt.float64:
            double, _ = normal_pair(self.uint64(), self.uint64())
            far: ShaderVariable = scaled(double, _of(dt.float64, loc), _of(dt.float64, scale))
            return far
        result = new_register(dt.float32, self._spare)
        with if_block(self._has_spare == 0):
            first, second = normal_pair(*self._pair())
            result[:] = first
            self._spare[:] = second
        self._has_spare[:] = 1 - self._has_spare
        if _is_number(loc, 0) and _is_number(scale, 1):
            return result
        moved: ShaderVariable = scaled(result, _of(dt.float32, loc), _of(dt.float32, scale))
        return moved

    def normal4(self) -> ShaderVariable:
        """Return four standard normal numbers as a vec4, of the next whole block; see `uvec4`."""
        words = self.uvec4()
        first, second = normal_pair(words.x, words.y), normal_pair(words.z, words.w)
        return to_dtype(dt.vec4, *first, *second).to_register()

    def integers(self, low: Any, high: Any = None, dtype: dt.DType = dt.int32) -> ShaderVariable:
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


def _of(kind: dt.DType, value: Any) -> ShaderVariable:
    """Return a number or a GPU value in a type."""
    return value.to_dtype(kind) if isinstance(value, ShaderVariable) else to_dtype(kind, value)


def _unsigned(value: int, kind: dt.DType) -> int:
    """Return an integer as the unsigned one of the same bits."""
    return value & (1 << 8 * kind.item_size) - 1


def _check_range(low: int, high: int, kind: dt.DType) -> None:
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
