"""Elements of buffers loaded 4 to 16 bytes at a time, through views of a buffer as words."""

from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.values.words import word_type
from vkdispatch.base import dtype
from vkdispatch.base.dtype import (
    DType,
    component_count,
    component_type,
    is_complex,
    is_matrix,
    is_scalar,
    is_vector,
    to_vector,
)

_LOAD = 16  # bytes of the widest load
_VIEWS = (4, 8, 16)

_WIDE: dict[DType, DType] = {
    dtype.float16: dtype.float32,
    dtype.bfloat16: dtype.float32,
    dtype.int8: dtype.int32,
    dtype.int16: dtype.int32,
    dtype.uint8: dtype.uint32,
    dtype.uint16: dtype.uint32,
    dtype.complex32: dtype.complex64,
}


def wide_type(kind: DType) -> DType:
    """Return the type in which values of `kind` are combined: one of at least 32 bits."""
    if is_vector(kind):
        component = component_type(kind)
        return to_vector(_WIDE.get(component, component), kind.child_count)
    return _WIDE.get(kind, kind)


_SIGNED: dict[DType, int] = {dtype.int8: 24, dtype.int16: 16}
_UNSIGNED: dict[DType, int] = {dtype.uint8: 0xFF, dtype.uint16: 0xFFFF}


def integer_limits(kind: DType) -> tuple[int, int]:
    """Return the least and the largest number of an integer type."""
    bits = 8 * kind.item_size
    if kind in (dtype.int8, dtype.int16, dtype.int32, dtype.int64):
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1


def wrap_integer(value: Any, kind: DType) -> Any:
    """Return an integer wrapped around as a buffer of `kind` would hold it; other values unchanged."""
    if kind in _SIGNED and value.var_type is dtype.int32:
        return (value << _SIGNED[kind]) >> _SIGNED[kind]
    if kind in _UNSIGNED and value.var_type is dtype.uint32:
        return value & _UNSIGNED[kind]
    return value


def count_per_load(kinds: Sequence[DType]) -> int:
    """Return how many elements of each of some buffers one load takes."""
    if not kinds:
        return 1
    return _LOAD // max(kind.item_size for kind in kinds) or 1


def view_type(kind: DType, count: int) -> DType | None:
    """Return the type as which `count` elements are loaded at once; None if they cannot be."""
    if is_matrix(kind) or component_count(kind) == 3 or count == 1:
        return None
    size = kind.item_size * count
    return word_type(size) if size in _VIEWS else None


def unpack_elements(kind: DType, count: int, word: Any) -> list[Any]:
    """Return the `count` elements of a load, each of the type `wide_type(kind)`."""
    words = [word] if word.var_type is dtype.uint32 else [word[i] for i in range(len(word))]
    component = component_type(kind)
    parts = _PARTS[component.item_size](component, words)
    if is_scalar(kind):
        return parts[:count]
    size, wide = component_count(kind), wide_type(kind)
    if is_complex(kind):
        return [vc.to_dtype(wide, parts[2 * i], parts[2 * i + 1]) for i in range(count)]
    return [vc.to_dtype(wide, *parts[size * i : size * (i + 1)]) for i in range(count)]


def _unpack_bytes(kind: DType, words: list[Any]) -> list[Any]:
    if kind is dtype.int8:
        signed = [vc.to_int(word) for word in words]
        return [(word << (24 - 8 * i)) >> 24 for word in signed for i in range(4)]
    if kind is dtype.bool_:
        return [(word & (0xFF << (8 * i))) != 0 for word in words for i in range(4)]
    return [(word >> (8 * i)) & 0xFF for word in words for i in range(4)]


def _unpack_halves(kind: DType, words: list[Any]) -> list[Any]:
    if kind is dtype.float16:
        pairs = [vc.unpack_half2x16(word) for word in words]
        return [pair[i] for pair in pairs for i in range(2)]
    if kind is dtype.bfloat16:
        bits = [part for word in words for part in (word << 16, word & 0xFFFF0000)]
        return [vc.uint_bits_to_float(part) for part in bits]
    if kind is dtype.int16:
        signed = [vc.to_int(word) for word in words]
        return [part for word in signed for part in ((word << 16) >> 16, word >> 16)]
    return [part for word in words for part in (word & 0xFFFF, word >> 16)]


def _unpack_whole(kind: DType, words: list[Any]) -> list[Any]:
    return [word if kind is dtype.uint32 else vc.reinterpret(kind, word) for word in words]


def _unpack_pairs(kind: DType, words: list[Any]) -> list[Any]:
    pairs = [vc.to_uvec2(words[i], words[i + 1]) for i in range(0, len(words), 2)]
    if kind is dtype.float64:
        return [vc.pack_double2x32(pair) for pair in pairs]
    longs = [vc.pack_uint2x32(pair) for pair in pairs]
    return longs if kind is dtype.uint64 else [long.to_dtype(dtype.int64) for long in longs]


_PARTS: dict[int, Callable[[DType, list[Any]], list[Any]]] = {
    1: _unpack_bytes,
    2: _unpack_halves,
    4: _unpack_whole,
    8: _unpack_pairs,
}
