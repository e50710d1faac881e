"""Bit functions, reinterpretation, packing and arithmetic with carry, against Python's ints and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    c64,
    c128,
    dv2,
    dv4,
    f16,
    f32,
    f64,
    hv2,
    hv4,
    i16,
    i32,
    i64,
    ihv2,
    iv2,
    iv3,
    iv4,
    m2,
    u16,
    u32,
    u64,
    uhv2,
    uhv3,
    uhv4,
    uv2,
    uv3,
    uv4,
    v2,
    v4,
)

from .running import Array, bits, close, evaluate, host, integers, need, on_swiftshader, same, wrapped

KINDS: list[DType] = [i16, u16, i32, u32, i64, u64]
VECTORS: list[DType] = [ihv2, uhv3, iv3, uv2]


def unsigned(value: int, kind: DType) -> int:
    return int(value) % (1 << bits(kind))


def reversed_bits(value: int, kind: DType) -> int:
    width = bits(kind)
    return int(f"{unsigned(value, kind):0{width}b}"[::-1], 2)


def lowest(value: int) -> int:
    return (int(value) & -int(value)).bit_length() - 1


def highest(value: int) -> int:
    return (~int(value) if value < 0 else int(value)).bit_length() - 1


def rows(kind: DType, count: int, seed: int = 0) -> Array:
    """Integers of every magnitude, the edges first, as rows of `kind`."""
    width = max(1, dt.component_count(kind))
    scalar = dt.component_type(kind)
    values = integers(scalar, count * width, seed)
    values[20:] >>= np.random.default_rng(seed).integers(0, bits(kind), len(values) - 20).astype(values.dtype)
    return values.reshape(-1, width) if dt.is_vector(kind) else values


def each(rule: Callable[[int], int], values: Array, kind: DType) -> Array:
    """Apply a rule of Python ints to every number; the result as integers of `kind`."""
    return wrapped([rule(value) for value in values.ravel().tolist()], kind).reshape(values.shape)


@pytest.mark.parametrize("kind", [*KINDS, *VECTORS], ids=lambda kind: kind.name)
def test_bit_counts_and_positions(kind: DType) -> None:
    need(kind)
    values = rows(kind, 300)
    count, turned, low, high = evaluate(
        lambda x: [vc.bit_count(x), vc.bitfield_reverse(x), vc.find_lsb(x), vc.find_msb(x)], (kind, values)
    )
    same(count, each(lambda value: unsigned(value, kind).bit_count(), values, i32))
    same(turned, each(lambda value: reversed_bits(value, kind), values, dt.component_type(kind)))
    same(low, each(lowest, values, i32))
    same(high, each(highest, values, i32))


def extracted(value: int, start: int, length: int, kind: DType) -> int:
    field = unsigned(value, kind) >> start & (1 << length) - 1
    negative = dt.is_signed_dtype(dt.component_type(kind)) and length and field >> (length - 1)
    return field - (1 << length) if negative else field


def inserted(base: int, field: int, start: int, length: int, kind: DType) -> int:
    mask = ((1 << length) - 1) << start
    return unsigned(base, kind) & ~mask | unsigned(field, kind) << start & mask


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_bit_fields(kind: DType) -> None:
    need(kind)
    width = bits(kind)
    fields = [(start, length) for start in range(width + 1) for length in range(width + 1 - start)]
    chosen = np.random.default_rng(1).choice(len(fields), 400)
    starts, lengths = np.array(fields)[chosen].T
    starts[:4], lengths[:4] = (0, 0, width, width - 1), (width, 0, 0, 1)
    values, others = integers(kind, 400, 2), integers(kind, 400, 3)[::-1]
    taken, put = evaluate(
        lambda x, y, a, b: [vc.bitfield_extract(x, a, b), vc.bitfield_insert(x, y, a, b)],
        (kind, values),
        (kind, others),
        (i32, starts),
        (u32, lengths),
    )
    arguments = list(zip(values.tolist(), others.tolist(), starts.tolist(), lengths.tolist(), strict=True))
    same(taken, wrapped([extracted(value, a, b, kind) for value, _, a, b in arguments], kind))
    same(put, wrapped([inserted(value, other, a, b, kind) for value, other, a, b in arguments], kind))


@pytest.mark.parametrize("kind", VECTORS, ids=lambda kind: kind.name)
def test_bit_fields_of_vectors(kind: DType) -> None:
    need(kind)
    scalar = dt.component_type(kind)
    values, others = rows(kind, 100, 4), rows(kind, 100, 5)
    taken, put, number = evaluate(
        lambda x, y: [
            vc.bitfield_extract(x, 3, 7),
            vc.bitfield_insert(x, y, 2, 9),
            vc.bitfield_insert(x, 5, 4, 3),
        ],
        (kind, values),
        (kind, others),
    )
    same(taken, each(lambda value: extracted(value, 3, 7, scalar), values, scalar))
    pairs = zip(values.ravel().tolist(), others.ravel().tolist(), strict=True)
    same(put.ravel(), wrapped([inserted(a, b, 2, 9, scalar) for a, b in pairs], scalar))
    same(number, each(lambda value: inserted(value, 5, 4, 3, scalar), values, scalar))


def test_python_ints_fold() -> None:
    assert [vc.bit_count(value) for value in (0, 5, -1, 2**40, -(2**40))] == [0, 2, 32, 1, 24]
    assert vc.bitfield_reverse(1) == 2**31
    assert vc.bitfield_reverse(1 << 63) == 1
    assert [vc.find_lsb(value) for value in (0, 12, -4)] == [-1, 2, 2]
    assert [vc.find_msb(value) for value in (0, 12, -1, -5)] == [-1, 3, -1, 2]
    assert vc.bitfield_extract(0xABCD, 4, 8) == 0xBC
    assert vc.bitfield_extract(-1, 4, 8) == -1
    assert vc.bitfield_insert(0xFFFF, 0, 4, 8) == 0xF00F
    assert vc.bitfield_insert(0, -1, 4, 0) == 0


# ---- the same bits as another type ---------------------------------------------------------------

SIZES: dict[int, list[DType]] = {
    2: [i16, u16, f16],
    4: [i32, u32, f32, ihv2, uhv2, hv2],
    8: [i64, u64, f64, iv2, uv2, v2, c64, uhv4, hv4],
    16: [iv4, uv4, v4, c128, dv2, m2],
}


def memory(kind: DType) -> np.dtype[Any]:
    return host(dt.component_type(kind))


@pytest.mark.parametrize("size", list(SIZES))
def test_reinterpret_between_all_types_of_a_size(size: int) -> None:
    kinds = SIZES[size]
    need(*kinds)
    # bits of numbers of every magnitude, none of them a NaN or too small to be kept
    numbers = np.random.default_rng(7).uniform(0.5, 4, 64 * size // 2).astype(np.float16)
    numbers[::3] *= -1
    raw = numbers.tobytes()
    for source in kinds:
        data = np.frombuffer(raw, memory(source)).reshape(-1, *source.true_numpy_shape)
        if dt.is_complex(source):
            data = np.frombuffer(raw, host(source))
        results = evaluate(lambda x: [vc.reinterpret(kind, x) for kind in kinds], (source, data))
        for kind, found in zip(kinds, results, strict=True):
            same(np.frombuffer(found.tobytes(), np.uint16), np.frombuffer(raw, np.uint16), kind.name)


def test_reinterpret_folds_and_refuses() -> None:
    assert vc.reinterpret(f32, 0x3F800000) == 1.0
    assert vc.reinterpret(u32, 1.0) == 0x3F800000
    assert vc.reinterpret(u16, -1) == 65535
    assert vc.reinterpret(i64, -0.0) == -(2**63)
    assert vc.reinterpret(f64, 1.5) == 1.5
    with vc.shader_context() as context:
        x, v = context.declare_input_arguments([Const[f32], Const[uv3]])
        assert vc.reinterpret(f32, x) is x
        for error, message, misuse in (
            (ValueError, "float32 has 4 bytes, uint16 has 2", lambda: vc.reinterpret(u16, x)),
            (ValueError, "uvec3 has 12 bytes, int64 has 8", lambda: vc.reinterpret(i64, v)),
            (ValueError, "bool has no size", lambda: vc.reinterpret(i32, x > 1)),
            (ValueError, "booleans have no bits", lambda: vc.reinterpret(dt.bool_, x)),
            (TypeError, "expected a dtype", lambda: vc.reinterpret(3, x)),
            (TypeError, "expected a GPU value or a number", lambda: vc.reinterpret(f32, "a")),
            (ValueError, "a Python number does not become vec2", lambda: vc.reinterpret(v2, 3)),
            (ValueError, "does not fit in 4 bytes", lambda: vc.reinterpret(f32, 1 << 40)),
        ):
            with pytest.raises(error, match=message) as raised:
                misuse()
            assert "test_bits.py:" in str(raised.value)


# ---- packing -------------------------------------------------------------------------------------


def test_packed_halves() -> None:
    values = np.random.default_rng(1).normal(size=(100, 2)).astype(np.float32)
    values[:4] = [[0, 1], [65504, -65504], [6e-5, -0.25], [-0.0, 1.5]]
    packed, back = evaluate(
        lambda v: [vc.pack_half2x16(v), vc.unpack_half2x16(vc.pack_half2x16(v))], (v2, values)
    )
    halves = values.astype(np.float16)
    assert np.abs(packed.view(np.uint16).reshape(-1, 2).astype(int) - halves.view(np.uint16)).max() <= 1
    close(back, halves.astype(np.float32), rtol=1e-3)


def test_packed_infinities() -> None:
    if on_swiftshader():
        pytest.skip("SwiftShader packs an infinity as a NaN, and changes the other half")
    values = np.array([[np.inf, 0], [-1, -np.inf]], np.float32)
    (packed,) = evaluate(vc.pack_half2x16, (v2, values))
    same(packed.view(np.float16).reshape(-1, 2), values)


@pytest.mark.parametrize(
    ("name", "kind", "step", "low"),
    [
        ("unorm2x16", v2, 65535, 0),
        ("snorm2x16", v2, 32767, -1),
        ("unorm4x8", v4, 255, 0),
        ("snorm4x8", v4, 127, -1),
    ],
)
def test_normalized_packing_steps(name: str, kind: DType, step: int, low: int) -> None:
    values = np.random.default_rng(2).uniform(-1.5, 1.5, (100, kind.child_count)).astype(np.float32)
    values[0] = 1
    pack, unpack = getattr(vc, f"pack_{name}"), getattr(vc, f"unpack_{name}")
    packed, back = evaluate(lambda v: [pack(v), unpack(pack(v))], (kind, values))
    steps = np.rint(np.clip(values, low, 1) * step).astype(int)
    width = 32 // kind.child_count
    parts = packed[:, None] >> (width * np.arange(kind.child_count, dtype=np.uint32)) & ((1 << width) - 1)
    signed = (parts.astype(int) ^ 1 << (width - 1)) - (1 << (width - 1)) if low else parts.astype(int)
    assert np.abs(signed - steps).max() <= 1
    close(back, signed / step, rtol=1e-6, atol=1e-7)


def test_packed_bytes_and_words() -> None:
    need(u64, f64)
    words = np.random.default_rng(3).integers(0, 2**64, 64, np.uint64)
    parts = words.view(np.uint32).reshape(-1, 2)
    small = words.view(np.uint8).reshape(-1, 8)

    def body(word: Any, pair: Any) -> list[Any]:
        low, high = vc.unpack_uint8x8(word)
        signed = vc.unpack_int4x8(pair.x)
        return [
            vc.pack_uint2x32(pair),
            vc.unpack_uint2x32(word),
            low,
            high,
            vc.pack_uint8x8(low + 256, high),
            vc.unpack_uint4x8(pair.y),
            vc.pack_uint4x8(vc.unpack_uint4x8(pair.y)),
            signed,
            vc.pack_int4x8(signed),
        ]

    joined, cut, low, high, again, bytes_, back, signed, repacked = evaluate(body, (u64, words), (uv2, parts))
    same(joined, words)
    same(cut, parts)
    same(low, small[:, :4])
    same(high, small[:, 4:])
    same(again, words)
    same(bytes_, small[:, 4:])
    same(back, parts[:, 1])
    same(signed, small[:, :4].view(np.int8))
    same(repacked, parts[:, 0])
    doubles = np.random.default_rng(4).normal(size=50)
    cut, joined = evaluate(
        lambda x: [vc.unpack_double2x32(x), vc.pack_double2x32(vc.unpack_double2x32(x))], (f64, doubles)
    )
    same(cut, doubles.view(np.uint32).reshape(-1, 2))
    same(joined, doubles)


def test_packing_refuses_other_shapes() -> None:
    with vc.shader_context() as context:
        x, v, w = context.declare_input_arguments([Const[f32], Const[v2], Const[dv4]])
        for misuse in (
            lambda: vc.pack_half2x16(x),
            lambda: vc.pack_half2x16(w),
            lambda: vc.unpack_unorm4x8(x),
            lambda: vc.unpack_unorm4x8(1.5),
            lambda: vc.pack_uint2x32(v),
            lambda: vc.pack_snorm2x16((1, 2)),
        ):
            with pytest.raises(TypeError, match=r"pack_\w+: expected"):
                misuse()
        assert vc.unpack_half2x16(5).var_type is v2
        assert vc.pack_unorm4x8(w).var_type is u32


# ---- with carry ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [u32, uv3], ids=lambda kind: kind.name)
def test_carries(kind: DType) -> None:
    a, b = rows(kind, 200, 5), rows(kind, 200, 6)[::-1]
    a[30:40] = b[30:40]
    total, carry, rest, borrow, high, low = evaluate(
        lambda x, y: [*vc.uadd_carry(x, y), *vc.usub_borrow(x, y), *vc.umul_extended(x, y)],
        (kind, a),
        (kind, b),
    )
    wide, other = a.astype(np.uint64), b.astype(np.uint64)
    same(total, (wide + other).astype(np.uint32))
    same(carry, (wide + other) >> np.uint64(32))
    same(rest, a - b)
    same(borrow, (a < b).astype(np.uint32))
    same(low, (wide * other).astype(np.uint32))
    same(high, (wide * other) >> np.uint64(32))


@pytest.mark.parametrize("kind", [i32, iv3], ids=lambda kind: kind.name)
def test_signed_products(kind: DType) -> None:
    a, b = rows(kind, 200, 7), rows(kind, 200, 8)[::-1]
    high, low = evaluate(lambda x, y: list(vc.imul_extended(x, y)), (kind, a), (kind, b))
    product = a.astype(np.int64) * b.astype(np.int64)
    same(high, product >> 32)
    same(low, product.astype(np.int32))


def test_wrong_arguments_are_refused() -> None:
    with vc.shader_context() as context:
        x, f, wide = context.declare_input_arguments([Buff[i32], Const[f32], Const[i64]])
        value = x[0]
        for error, message, misuse in (
            (TypeError, "bit_count: expected integers, got float32", lambda: vc.bit_count(f)),
            (TypeError, "find_msb: expected integers, got 1.5", lambda: vc.find_msb(1.5)),
            (TypeError, "got True", lambda: vc.bit_count(True)),
            (ValueError, "bits must be of 0 to 32, got 33", lambda: vc.bitfield_extract(value, 0, 33)),
            (ValueError, "offset must be of 0 to 32, got -1", lambda: vc.bitfield_extract(value, -1, 3)),
            (ValueError, "more than the 32 there are", lambda: vc.bitfield_insert(value, 1, 30, 3)),
            (TypeError, "base is int32, insert is int64", lambda: vc.bitfield_insert(value, wide, 0, 3)),
            (TypeError, "uadd_carry: expected uint32 values, got int32", lambda: vc.uadd_carry(value, 1)),
            (TypeError, "imul_extended: expected int32 values", lambda: vc.imul_extended(f, value)),
        ):
            with pytest.raises(error, match=message) as raised:
                misuse()
            assert "test_bits.py:" in str(raised.value)
