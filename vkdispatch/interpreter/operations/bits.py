"""GLSL's functions of bits: counting, fields, reinterpreting and packing."""

from collections.abc import Callable

import numpy as np

from vkdispatch.interpreter.values import Array, align, as_unsigned, reinterpret

Rule = Callable[..., Array]

_LITTLE = "<"
# The number of ones in each byte. `np.bitwise_count` needs NumPy 2.0.
_ONES = np.array([n.bit_count() for n in range(256)], np.uint8)


def _width(value: Array) -> int:
    return 8 * int(value.dtype.itemsize)


def bit_count(value: Array) -> Array:
    """Return the number of one bits."""
    octets = np.ascontiguousarray(value).view(np.uint8).reshape(*value.shape, value.dtype.itemsize)
    ones: Array = _ONES[octets].sum(axis=-1, dtype=np.int32)
    return ones


def find_msb(value: Array) -> Array:
    """Return the position of the highest one bit, or for negative numbers zero bit; -1 if there is none."""
    bits = as_unsigned(np.where(value < 0, ~value, value))
    # set all bits below the highest one, then count
    shift = 1
    while shift < _width(value):
        bits = bits | (bits >> bits.dtype.type(shift))
        shift *= 2
    return bit_count(bits) - np.int32(1)


def find_lsb(value: Array) -> Array:
    """Return the position of the lowest one bit; -1 if there is none."""
    bits = as_unsigned(value)
    lowest = bits & (~bits + bits.dtype.type(1))
    return np.where(bits == 0, -1, bit_count(lowest - bits.dtype.type(1))).astype(np.int32)


def bitfield_reverse(value: Array) -> Array:
    """Return the bits in reverse order."""
    bits = as_unsigned(value)
    result = np.zeros_like(bits)
    one = bits.dtype.type(1)
    for _ in range(_width(value)):
        result = (result << one) | (bits & one)
        bits = bits >> one
    return result.view(value.dtype)


def _field_mask(count: Array) -> Array:
    wide = count.astype(np.uint64)
    # a shift by 64 gives 0 in NumPy, so that 64 bits work too
    return np.left_shift(np.uint64(1), wide) - np.uint64(1)


def bitfield_extract(value: Array, offset: Array, count: Array) -> Array:
    """Return `count` bits from bit `offset` on; signed numbers are sign-extended."""
    value, offset, count = align(value, offset, count)
    mask = _field_mask(count)
    field = np.right_shift(as_unsigned(value).astype(np.uint64), offset.astype(np.uint64)) & mask
    if value.dtype.kind == "i":
        top = (mask >> np.uint64(1)) + np.uint64(1)
        negative = (field & top != 0) & (count > 0)
        field = np.where(negative, field | ~mask, field)
    return field.astype(value.dtype)


def bitfield_insert(base: Array, insert: Array, offset: Array, count: Array) -> Array:
    """Return `base` with the lowest `count` bits of `insert` at bit `offset`."""
    base, insert, offset, count = align(base, insert, offset, count)
    mask = np.left_shift(_field_mask(count), offset.astype(np.uint64))
    moved = np.left_shift(as_unsigned(insert).astype(np.uint64), offset.astype(np.uint64))
    result = (as_unsigned(base).astype(np.uint64) & ~mask) | (moved & mask)
    return result.astype(base.dtype)


def _make_cast(name: str) -> Rule:
    target = np.dtype(name)
    return lambda value: reinterpret(value, target)


def _make_joiner(target: str) -> Rule:
    """Make the rule that joins the components of a vector to one number, the first lowest."""
    kind = np.dtype(_LITTLE + target)
    return lambda value: np.ascontiguousarray(value).view(kind)[:, 0]


def _make_splitter(target: str, count: int) -> Rule:
    """Make the rule that splits a number into the components of a vector, the lowest first."""
    kind = np.dtype(_LITTLE + target)
    return lambda value: np.ascontiguousarray(value).view(kind).reshape(-1, count)


def _make_norm_packer(target: str, low: float, scale: float) -> Rule:
    def pack(value: Array) -> Array:
        limited = np.where(value > low, value, np.float32(low))
        limited = np.where(limited < 1, limited, np.float32(1))
        whole = np.rint(limited * np.float32(scale)).astype(np.dtype(target))
        return np.ascontiguousarray(whole).view(np.uint32)[:, 0]

    return pack


def _make_norm_unpacker(target: str, count: int, scale: float) -> Rule:
    def unpack(value: Array) -> Array:
        whole = np.ascontiguousarray(value).view(np.dtype(target)).reshape(-1, count)
        result: Array = np.maximum(whole.astype(np.float32) / np.float32(scale), np.float32(-1))
        return result

    return unpack


def _pack_half(value: Array) -> Array:
    return np.ascontiguousarray(value.astype(np.float16)).view(np.uint32)[:, 0]


def _unpack_half(value: Array) -> Array:
    return np.ascontiguousarray(value).view(np.float16).reshape(-1, 2).astype(np.float32)


RULES: dict[str, Rule] = {
    "bitCount": bit_count,
    "findLSB": find_lsb,
    "findMSB": find_msb,
    "bitfieldReverse": bitfield_reverse,
    "bitfieldExtract": bitfield_extract,
    "bitfieldInsert": bitfield_insert,
    "floatBitsToInt": _make_cast("i4"),
    "floatBitsToUint": _make_cast("u4"),
    "intBitsToFloat": _make_cast("f4"),
    "uintBitsToFloat": _make_cast("f4"),
    "doubleBitsToInt64": _make_cast("i8"),
    "doubleBitsToUint64": _make_cast("u8"),
    "int64BitsToDouble": _make_cast("f8"),
    "uint64BitsToDouble": _make_cast("f8"),
    "float16BitsToInt16": _make_cast("i2"),
    "float16BitsToUint16": _make_cast("u2"),
    "halfBitsToInt16": _make_cast("i2"),
    "halfBitsToUint16": _make_cast("u2"),
    "int16BitsToFloat16": _make_cast("f2"),
    "uint16BitsToFloat16": _make_cast("f2"),
    "int16BitsToHalf": _make_cast("f2"),
    "uint16BitsToHalf": _make_cast("f2"),
    "packHalf2x16": _pack_half,
    "unpackHalf2x16": _unpack_half,
    "packUnorm2x16": _make_norm_packer("u2", 0, 65535),
    "packSnorm2x16": _make_norm_packer("i2", -1, 32767),
    "packUnorm4x8": _make_norm_packer("u1", 0, 255),
    "packSnorm4x8": _make_norm_packer("i1", -1, 127),
    "unpackUnorm2x16": _make_norm_unpacker("u2", 2, 65535),
    "unpackSnorm2x16": _make_norm_unpacker("i2", 2, 32767),
    "unpackUnorm4x8": _make_norm_unpacker("u1", 4, 255),
    "unpackSnorm4x8": _make_norm_unpacker("i1", 4, 127),
    "packDouble2x32": _make_joiner("f8"),
    "unpackDouble2x32": _make_splitter("u4", 2),
    "packUint2x32": _make_joiner("u8"),
    "unpackUint2x32": _make_splitter("u4", 2),
    "packInt2x32": _make_joiner("i8"),
    "unpackInt2x32": _make_splitter("i4", 2),
    "packFloat2x16": _make_joiner("u4"),
    "unpackFloat2x16": _make_splitter("f2", 2),
    "packUint2x16": _make_joiner("u4"),
    "unpackUint2x16": _make_splitter("u2", 2),
    "packInt2x16": _make_joiner("i4"),
    "unpackInt2x16": _make_splitter("i2", 2),
    "packUint4x16": _make_joiner("u8"),
    "unpackUint4x16": _make_splitter("u2", 4),
    "packInt4x16": _make_joiner("i8"),
    "unpackInt4x16": _make_splitter("i2", 4),
}
