r"""Philox, a bijection of counters: what it makes of 0, 1, 2, ... are the words of a random stream.

Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). Ten rounds of this,
where the key grows by a constant from round to round::

    counter:    a          b          c          d
                |                     |
                x M0                  x M1              a x M0 = (high 0, low 0), of twice the bits
               /  \                  /  \
          high 0  low 0         high 1  low 1
                \    \         /       /
                 \    +------ / --+   /
                  +--------- / +  |  |
                            /  |  |  |
                  +--------+   |  |  |
                  |            |  |  +-------> new b = low 1
                  |            |  +----------> new d = low 0
                  |            +-------------> new c = high 0 ^ d ^ key 1
                  +--------------------------> new a = high 1 ^ b ^ key 0

For each key it is one to one, so that no block repeats before all counters were used; block n is found
without those before it. All of it is integers: every device gives the same words.
"""

from collections.abc import Callable, Sequence
from typing import Any

from vkdispatch.base.dtype import DType, is_integer_dtype, is_scalar, uint32, uint64, uvec2, uvec4
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.codegen.functions.arithmetic import umul_extended
from vkdispatch.codegen.functions.conversions import to_dtype
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import located
from vkdispatch.compiler.ir.statements import WRAPPED

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
    words = words32(_parts("counter", counter, uvec4, uint32), _parts("key", key, uvec2, uint32))
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
    kind: DType,
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


def _register(kind: DType, value: Any) -> ShaderVariable:
    """Return a value in a register that never changes; one that is there already is not copied."""
    if isinstance(value, ShaderVariable) and value.is_register():
        return value
    expr = value._value() if isinstance(value, ShaderVariable) else ex.literal(value, kind)
    return ShaderVariable(current().declare(kind, expr, fixed=True))


def own(kind: DType, word: Any) -> Any:
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


def _parts(name: str, value: Any, vector: DType | None, kind: DType) -> list[Any]:
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


def word(name: str, value: Any, kind: DType) -> Any:
    """Check one word: a GPU integer scalar, or a Python int."""
    if isinstance(value, ShaderVariable) and is_scalar(value.var_type) and is_integer_dtype(value.var_type):
        return value
    if ex.is_integer_number(value):
        return int(value)
    given = value.var_type.name if isinstance(value, ShaderVariable) else repr(value)
    bits = 8 * kind.item_size
    raise located(ArgumentTypeError, f"{name}: expected integers of up to {bits} bits, got {given}")
