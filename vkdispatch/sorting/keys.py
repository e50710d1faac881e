"""Keys as digits, and what kernels of sorts write: sorted keys, and their positions."""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType, component_type, is_complex, is_scalar
from vkdispatch.base.record import record
from vkdispatch.families.kernels import Argument, buffers
from vkdispatch.families.values import FLOATS, SIGNED_INTEGERS, split_words, word_type

# ---- Keys as digits: codes of keys, of all scalar types, that are ordered as unsigned integers -----------
#
#     bytes of a key, as words      parts of its code, the least significant first     digits, 8 bits each
#     float32   [w0]            ->  [code(w0)]                                      ->  d0 d1 d2 d3
#     int64     [w0, w1]        ->  [w0, w1 ^ sign]                                 ->  d0 ... d7
#     complex64 [re, im]        ->  [code(im), code(re), is there a NaN]            ->  d0 ... d8
#
# Sorts move the keys themselves, and compute the code again wherever they need a digit. -0.0 and 0.0 have
# the same code, and so have all NaNs: they keep their order, and their bits.
#
# Invariants: codes are compared as unsigned numbers, part by part from the last. Two keys have the same
# code if and only if neither sorts before the other. The code of a NaN is larger than that of any number.


_MANTISSA: dict[DType, int] = {dtype.float16: 10, dtype.bfloat16: 7, dtype.float32: 23, dtype.float64: 52}
_ALL = 0xFFFFFFFF


@record
class Digit:
    """A digit of a key's code: its part, its first bit within the part, and the number of its bits."""

    part: int
    shift: int
    bits: int

    def without_shift(self) -> "Digit":
        """Return the digit for kernels that take its shift as an argument."""
        return Digit(self.part, 0, self.bits)


@record
class Order:
    """An order of keys.

    Attributes
    ----------
    kind
        dtype of the keys: a scalar or a complex number.
    descending
        Whether the largest comes first.
    bits
        Bits of the code that are compared; 0 for all. For unsigned integers only.
    """

    kind: DType
    descending: bool = False
    bits: int = 0

    @property
    def raw(self) -> DType:
        """The type that keys are moved as."""
        return raw_type(self.kind)

    @property
    def part_bits(self) -> tuple[int, ...]:
        """Bits of each part of a code."""
        if self.bits:
            words = -(-self.bits // 32)
            return (*(32,) * (words - 1), self.bits - 32 * (words - 1))
        component = component_type(self.kind)
        size = component.item_size
        parts = (32,) * (size // 4) if size >= 4 else (1 if component is dtype.bool_ else 8 * size,)
        return (*parts, *parts, 1) if is_complex(self.kind) else parts

    def digits(self, width: int) -> tuple[Digit, ...]:
        """Return the digits of a code, of at most `width` bits, the least significant first."""
        return tuple(
            Digit(part, shift, min(width, bits - shift))
            for part, bits in enumerate(self.part_bits)
            for shift in range(0, bits, width)
        )

    def part(self, raw: Any, number: int) -> Any:
        """Return a part of the code of a key: a GPU value (uint32), of which `part_bits` bits count."""
        component = component_type(self.kind)
        words = split_words(raw)
        if is_complex(self.kind):
            real, imaginary = _halves(component, words)
            count = len(self.part_bits) // 2
            if number < 2 * count:
                value = _code(component, imaginary if number < count else real, number % count)
            else:
                value = vc.any(_is_nan(component, real), _is_nan(component, imaginary)).to_dtype(dtype.uint32)
        else:
            value = _code(component, words, number)
        return value ^ _ALL if self.descending else value

    def digit(self, raw: Any, digit: Digit, shift: Any = None) -> Any:
        """Return a digit of a key's code: a GPU value (uint32) below 2**bits.

        `shift` is a GPU value that replaces the shift of the digit.
        """
        value = self.part(raw, digit.part)
        if shift is not None:
            return (value >> shift) & ((1 << digit.bits) - 1)
        if digit.shift:
            value = value >> digit.shift
        return value & ((1 << digit.bits) - 1) if digit.shift + digit.bits < 32 else value


def raw_type(kind: DType) -> DType:
    """Return the unsigned type that keys of a dtype are moved as."""
    return word_type(kind.item_size)


def is_sortable(kind: DType) -> bool:
    """Whether values of a dtype have an order: scalars and complex numbers have one."""
    return is_scalar(kind) or is_complex(kind)


def _halves(component: DType, words: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the words of the real part, and those of the imaginary part."""
    if component is dtype.float16:
        return [words[0] & 0xFFFF], [words[0] >> 16]
    middle = len(words) // 2
    return list(words[:middle]), list(words[middle:])


def _is_nan(kind: DType, words: Sequence[Any]) -> Any:
    """Whether a float, given as words, is a NaN of either sign."""
    bits = min(8 * kind.item_size, 32)
    mantissa = _MANTISSA[kind] - (32 if kind is dtype.float64 else 0)
    largest = (1 << (bits - 1)) - (1 << mantissa)  # the last word of infinity
    magnitude = words[-1] & ((1 << (bits - 1)) - 1)
    if kind is not dtype.float64:
        return magnitude > largest
    return vc.any(magnitude > largest, vc.all(magnitude == largest, words[0] != 0))


def _code(kind: DType, words: Sequence[Any], number: int) -> Any:
    """Return a word of the code of a scalar."""
    bits = min(8 * kind.item_size, 32)
    top = 1 << (bits - 1)
    if kind in FLOATS:
        return _float_code(kind, words, number, bits)
    if kind in SIGNED_INTEGERS and number == len(words) - 1:
        return words[number] ^ top
    return words[number]


def _single_code(word: Any) -> Any:
    """Return the code of a float32, counted from that of minus infinity.

    NaNs of both signs are then above infinity, negative ones because they wrap around. All get the same code.
    """
    sign = vc.reinterpret(dtype.uint32, vc.reinterpret(dtype.int32, word) >> 31).to_register("sort_sign")
    least, largest = 0x00800000, 0xFF000000
    # it wraps around at 32 bits, also in kernels with indices of 64 bits
    return vc.min(((word ^ (sign | (1 << 31))) - sign - least) & _ALL, largest + 1)


def _float_code(kind: DType, words: Sequence[Any], number: int, bits: int) -> Any:
    """Return a word of the code of a float.

    The code of a positive number is its bits with the sign flipped; that of a negative number is 0 minus its
    bits, so -0.0 and 0.0 have the same code. The code of NaN has all bits set, unlike that of infinity. For
    float32 see `_single_code`.
    """
    if kind is dtype.float32:
        return _single_code(words[0])
    top, every = 1 << (bits - 1), (1 << bits) - 1
    word, last = words[number], words[-1]
    if number == len(words) - 1:
        positive = word | top
        negative = (word ^ every) + (1 if number == 0 else (words[0] == 0).to_dtype(dtype.uint32))
        if bits < 32:
            negative = negative & every
    else:
        positive, negative = word, 0 - word
    return vc.select(_is_nan(kind, words), every, vc.select(last >= top, negative, positive))


# ---- What kernels of sorts write: sorted keys, and their positions ---------------------------------------


@record
class SortOutputs:
    """What a kernel writes that sorts whole rows.

    Attributes
    ----------
    has_keys, has_positions
        Whether it writes the sorted keys, and the positions in their rows that they had.
    is_wide
        Whether positions, of 32 bits, are written as numbers of 64 bits.
    """

    has_keys: bool
    has_positions: bool
    is_wide: bool = False

    def arguments(self, raw: DType) -> list[Argument]:
        """Return the buffers of keys, of the type `raw`, and of positions, as `trace_kernel` takes them."""
        position = dtype.uvec2 if self.is_wide else dtype.uint32
        return buffers(
            sort_sorted=raw if self.has_keys else None,
            sort_positions=position if self.has_positions else None,
        )

    def position(self, value: Any) -> Any:
        """Return a position, a GPU value, as it is written."""
        return widen(value) if self.is_wide else value


def unpack_position(element: Any, name: str | None = None) -> Any:
    """Return a position that has one or two words as an integer, in a register."""
    position = element.to_register(name)
    return position if position.var_type is dtype.uint32 else vc.pack_uint2x32(position).to_register()


def widen(word: Any) -> Any:
    """Return a number of 32 bits as the two words of one of 64 bits."""
    return vc.to_uvec2(word, 0)
