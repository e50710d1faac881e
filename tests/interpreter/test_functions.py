"""GLSL's functions as the interpreter computes them, against Python's own mathematics, value by value."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import UnsupportedError
from vkdispatch.codegen.abbreviations import (
    f16,
    f32,
    f64,
    hv2,
    i32,
    i64,
    ihv4,
    m2,
    m3,
    m4,
    u16,
    u32,
    u64,
    uhv2,
    uv2,
    v2,
    v3,
    v4,
)
from vkdispatch.compiler.interpreter.memory import Array, construct, host_dtype, make_uniform
from vkdispatch.compiler.interpreter.operations import apply_binary, apply_comparison, call_function

# Domain, then Python's own function.
_OF_ONE: dict[str, tuple[float, float, Callable[[float], float]]] = {
    "sin": (-9, 9, math.sin),
    "cos": (-9, 9, math.cos),
    "tan": (-1.4, 1.4, math.tan),
    "asin": (-1, 1, math.asin),
    "acos": (-1, 1, math.acos),
    "atan": (-9, 9, math.atan),
    "sinh": (-4, 4, math.sinh),
    "cosh": (-4, 4, math.cosh),
    "tanh": (-4, 4, math.tanh),
    "asinh": (-9, 9, math.asinh),
    "acosh": (1, 9, math.acosh),
    "atanh": (-0.9, 0.9, math.atanh),
    "exp": (-5, 5, math.exp),
    "exp2": (-5, 5, lambda x: 2.0**x),
    "log": (0.1, 90, math.log),
    "log2": (0.1, 90, math.log2),
    "sqrt": (0, 90, math.sqrt),
    "inversesqrt": (0.1, 90, lambda x: 1 / math.sqrt(x)),
    "radians": (-400, 400, math.radians),
    "degrees": (-9, 9, math.degrees),
    "floor": (-9, 9, math.floor),
    "ceil": (-9, 9, math.ceil),
    "trunc": (-9, 9, math.trunc),
    "roundEven": (-9, 9, round),
    "fract": (-9, 9, lambda x: x - math.floor(x)),
    "sign": (-9, 9, lambda x: (x > 0) - (x < 0)),
    "abs": (-9, 9, abs),
}


@pytest.mark.parametrize("kind", [f16, f32, f64, v3], ids=lambda kind: kind.name)
@pytest.mark.parametrize("name", list(_OF_ONE))
def test_unary_functions(name: str, kind: DType) -> None:
    low, high, rule = _OF_ONE[name]
    host = host_dtype(kind)
    shape = (30, *kind.true_numpy_shape)
    values = np.random.default_rng(1).uniform(low, high, shape).astype(host)
    values.flat[0], values.flat[1] = max(low, 0.5), min(max(low, 1), high)
    result = call_function(name, kind, [values], None)
    assert result.dtype == host
    expected = [rule(float(x)) for x in values.flat]
    tolerance = 4 * float(np.finfo(host).eps)
    np.testing.assert_allclose(result.ravel(), expected, rtol=tolerance, atol=tolerance)


_OF_MORE: dict[str, tuple[int, Callable[..., float]]] = {
    "min": (2, min),
    "max": (2, max),
    "clamp": (3, lambda x, low, high: min(max(x, low), high)),
    "mix": (3, lambda x, y, a: x * (1 - a) + y * a),
    "fma": (3, lambda a, b, c: a * b + c),
    "mod": (2, lambda x, y: x - y * math.floor(x / y)),
    "step": (2, lambda edge, x: float(x >= edge)),
    "atan": (2, math.atan2),
    "pow": (2, math.pow),
}


@pytest.mark.parametrize("kind", [f32, f64, v4], ids=lambda kind: kind.name)
@pytest.mark.parametrize("name", list(_OF_MORE))
def test_functions_of_several_values(name: str, kind: DType) -> None:
    count, rule = _OF_MORE[name]
    host = host_dtype(kind)
    generator = np.random.default_rng(2)
    values = [generator.uniform(0.5, 4, (20, *kind.true_numpy_shape)).astype(host) for _ in range(count)]
    expected = [rule(*(float(x) for x in row)) for row in zip(*(v.flat for v in values), strict=True)]
    result = call_function(name, kind, values, None)
    assert result.dtype == host
    np.testing.assert_allclose(result.ravel(), expected, rtol=8 * float(np.finfo(host).eps), atol=1e-6)


def test_functions_at_the_edges_of_their_domain() -> None:
    def one(name: str, *numbers: float) -> float:
        with np.errstate(all="ignore"):
            return float(call_function(name, f32, [make_uniform(number, f32) for number in numbers], None)[0])

    assert [one("smoothstep", 1, 3, x) for x in (0, 1, 2, 3, 4)] == [0, 0, 0.5, 1, 1]
    assert [one("roundEven", x) for x in (0.5, 1.5, -2.5)] == [0, 2, -2]
    assert math.isnan(one("sqrt", -1))
    assert one("log", 0) == -math.inf
    assert bool(call_function("isnan", dt.bool_, [make_uniform(math.nan, f32)], None)[0])
    assert bool(call_function("isinf", dt.bool_, [make_uniform(-math.inf, f32)], None)[0])
    assert call_function("ldexp", f32, [make_uniform(0.75, f32), make_uniform(4, i32)], None).tolist() == [12]
    with pytest.raises(UnsupportedError, match="nonsense"):
        call_function("nonsense", f32, [], None)


def test_geometry() -> None:
    generator = np.random.default_rng(3)
    a, b, n = (generator.uniform(-2, 2, (9, 3)).astype(np.float32) for _ in range(3))
    n = n / np.linalg.norm(n, axis=1, keepdims=True)
    close = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(call_function("dot", f32, [a, b], None), np.einsum("ni,ni->n", a, b), **close)
    np.testing.assert_allclose(call_function("cross", v3, [a, b], None), np.cross(a, b), **close)
    np.testing.assert_allclose(call_function("length", f32, [a], None), np.linalg.norm(a, axis=1), **close)
    np.testing.assert_allclose(
        call_function("distance", f32, [a, b], None), np.linalg.norm(a - b, axis=1), **close
    )
    unit = call_function("normalize", v3, [a], None)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, **close)
    np.testing.assert_allclose(np.cross(unit, a), 0, **close)
    mirrored = call_function("reflect", v3, [a, n], None)
    np.testing.assert_allclose(np.einsum("ni,ni->n", mirrored, n), -np.einsum("ni,ni->n", a, n), **close)
    flipped = call_function("faceforward", v3, [a, b, n], None)
    signs = np.where(np.einsum("ni,ni->n", n, b) < 0, 1, -1)
    np.testing.assert_allclose(flipped, a * signs[:, None], **close)
    # Snell's law, and total reflection
    down = np.array([[math.sin(0.5), -math.cos(0.5), 0]], np.float32)
    up = np.array([[0, 1, 0]], np.float32)
    bent = call_function("refract", v3, [down, up, make_uniform(0.75, f32)], None)
    np.testing.assert_allclose(bent[0, 0], 0.75 * math.sin(0.5), rtol=1e-5)
    with np.errstate(invalid="ignore"):
        assert not call_function("refract", v3, [down, up, make_uniform(5, f32)], None).any()


@pytest.mark.parametrize("kind", [m2, m3, m4], ids=lambda kind: kind.name)
def test_matrices(kind: DType) -> None:
    size = kind.child_count
    columns = np.random.default_rng(4).uniform(-2, 2, (7, size, size)).astype(np.float32)
    rows = columns.swapaxes(1, 2)
    close = {"rtol": 1e-3, "atol": 1e-4}
    np.testing.assert_allclose(
        call_function("determinant", f32, [columns], None), np.linalg.det(rows), **close
    )
    inverse = call_function("inverse", kind, [columns], None).swapaxes(1, 2)
    np.testing.assert_allclose(inverse @ rows, np.broadcast_to(np.eye(size), (7, size, size)), **close)
    vector = dt.to_vector(f32, size)
    outer = call_function("outerProduct", kind, [columns[:, 0], columns[:, 1]], None)
    np.testing.assert_allclose(outer.swapaxes(1, 2), np.einsum("ni,nj->nij", columns[:, 0], columns[:, 1]))
    assert apply_binary("*", (kind, vector), columns, columns[:, 0]).shape == (7, size)
    assert np.array_equal(call_function("matrixCompMult", kind, [columns, columns], None), columns * columns)


def _bits(value: int, count: int = 32) -> str:
    return f"{value % 2**count:0{count}b}"


_INTEGERS = [0, 1, 2, 3, 0x80000000, 0xFFFFFFFF, 0x12345678, 0xF0F0F0F0, 1 << 16, 0x7FFFFFFF]


@pytest.mark.parametrize("kind", [i32, u32], ids=lambda kind: kind.name)
def test_bits(kind: DType) -> None:
    values = np.array(_INTEGERS, np.uint32).astype(host_dtype(kind))
    numbers = values.tolist()
    assert call_function("bitCount", i32, [values], None).tolist() == [_bits(n).count("1") for n in numbers]
    assert call_function("findLSB", i32, [values], None).tolist() == [
        31 - _bits(n).rfind("1") if n else -1 for n in numbers
    ]
    highest = [31 - _bits(n if n >= 0 else ~n).find("1") if n not in (0, -1) else -1 for n in numbers]
    assert call_function("findMSB", i32, [values], None).tolist() == highest
    turned = call_function("bitfieldReverse", kind, [values], None)
    assert [_bits(int(n)) for n in turned] == [_bits(n)[::-1] for n in numbers]
    for offset, count in ((0, 0), (0, 32), (5, 7), (31, 1), (24, 8)):
        place = [make_uniform(offset, i32), make_uniform(count, i32)]
        taken = call_function("bitfieldExtract", kind, [values, *place], None)
        for n, found in zip(numbers, taken.tolist(), strict=True):
            text = _bits(n)[32 - offset - count : 32 - offset]
            fill = text[0] if kind is i32 and text else "0"
            assert _bits(found) == text.rjust(32, fill)
        put = call_function("bitfieldInsert", kind, [values, values[::-1], *place], None)
        for n, other, found in zip(numbers, numbers[::-1], put.tolist(), strict=True):
            field = _bits(other)[32 - count :] if count else ""
            assert _bits(found) == _bits(n)[: 32 - offset - count] + field + _bits(n)[32 - offset :]


_CASTS: list[tuple[str, DType, DType, str, str]] = [
    ("floatBitsToInt", f32, i32, "f", "i"),
    ("floatBitsToUint", f32, u32, "f", "I"),
    ("intBitsToFloat", i32, f32, "i", "f"),
    ("uintBitsToFloat", u32, f32, "I", "f"),
    ("doubleBitsToInt64", f64, i64, "d", "q"),
    ("doubleBitsToUint64", f64, u64, "d", "Q"),
    ("uint64BitsToDouble", u64, f64, "Q", "d"),
    ("float16BitsToUint16", f16, u16, "e", "H"),
    ("uint16BitsToFloat16", u16, f16, "H", "e"),
    ("packHalf2x16", v2, u32, "ee", "I"),
    ("unpackHalf2x16", u32, v2, "I", "ee"),
    ("packDouble2x32", uv2, f64, "II", "d"),
    ("unpackDouble2x32", f64, uv2, "d", "II"),
    ("packUint2x32", uv2, u64, "II", "Q"),
    ("unpackUint2x32", u64, uv2, "Q", "II"),
    ("packUint2x16", uhv2, u32, "HH", "I"),
    ("unpackFloat2x16", u32, hv2, "I", "ee"),
    ("packInt4x16", ihv4, i64, "hhhh", "q"),
]


@pytest.mark.parametrize("cast", _CASTS, ids=lambda cast: cast[0])
def test_reinterpreting_keeps_the_bits(cast: tuple[str, DType, DType, str, str]) -> None:
    name, source, target, before, after = cast
    raw = [2, 5, 0x3C0040] if source is not f64 else [0.1, -2.5, 1e300]
    count = len(before)
    rows: list[Sequence[Any]] = [
        [n * (k + 1) % 30000 for k in range(count)] if count > 1 else [n] for n in raw
    ]
    if before in ("f", "d", "e", "ee"):
        rows = [[float(n) / 4 for n in row] for row in rows]
    if before == "e":
        rows = [[0.25], [-2.0], [0.1]]
    if before == "H":
        rows = [[0], [0x3C00], [0xFBFF]]
    values = np.array(rows, host_dtype(source)).reshape(3, *source.true_numpy_shape)
    result = call_function(name, target, [values], None).reshape(3, -1)
    for row, found in zip(values.reshape(3, -1).tolist(), result.tolist(), strict=True):
        packed = struct.pack(f"<{before}", *row)
        assert struct.pack(f"<{after}", *found) == packed


def test_normalized_packing() -> None:
    values = np.array([[0, 1, 0.5, -1], [-2, 2, 0.25, -0.5]], np.float32)
    for name, low, scale, code in (("Unorm4x8", 0, 255, "B"), ("Snorm4x8", -1, 127, "b")):
        packed = call_function(f"pack{name}", u32, [values], None)
        for row, word in zip(values.tolist(), packed.tolist(), strict=True):
            whole = [round(min(max(x, low), 1) * scale) for x in row]
            assert struct.unpack(f"<4{code}", struct.pack("<I", word)) == tuple(whole)
        back = call_function(f"unpack{name}", v4, [packed], None)
        np.testing.assert_allclose(back, np.clip(values, low, 1), atol=0.5 / scale + 1e-6)
    for name, scale in (("Unorm2x16", 65535), ("Snorm2x16", 32767)):
        packed = call_function(f"pack{name}", u32, [values[:, :2]], None)
        back = call_function(f"unpack{name}", v2, [packed], None)
        np.testing.assert_allclose(
            back, np.clip(values[:, :2], 0 if name[0] == "U" else -1, 1), atol=1 / scale
        )


def test_integer_division() -> None:
    numbers = [-8, -7, -1, 0, 1, 7, 8]
    a = np.repeat(np.array(numbers, np.int32), 2)
    b = np.tile(np.array([3, -3], np.int32), len(numbers))
    quotient = apply_binary("/", (i32, i32), a, b).tolist()
    assert quotient == [math.trunc(x / y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    with np.errstate(all="ignore"):
        # no right answer, and no crash
        apply_binary("/", (i32, i32), a, np.zeros(1, np.int32))
        apply_binary("%", (i32, i32), a, np.zeros(1, np.int32))
        apply_binary("/", (i32, i32), np.array([-(2**31)], np.int32), np.array([-1], np.int32))


def test_constructors() -> None:
    def made(kind: DType, *parts: tuple[DType, Any]) -> Array:
        return construct(
            kind, [each for each, _ in parts], [make_uniform(value, each) for each, value in parts]
        )

    assert made(v3, (f32, 2)).tolist() == [[2, 2, 2]]
    assert made(v2, (v3, [1, 2, 3])).tolist() == [[1, 2]]
    assert made(v4, (f32, 1), (v2, [2, 3]), (i32, 4)).tolist() == [[1, 2, 3, 4]]
    assert made(m2, (f32, 3)).tolist() == [[[3, 0], [0, 3]]]
    assert made(m2, (f32, 1), (f32, 2), (f32, 3), (f32, 4)).tolist() == [[[1, 2], [3, 4]]]
    assert made(m3, (m2, [[1, 2], [3, 4]])).tolist() == [[[1, 2, 0], [3, 4, 0], [0, 0, 1]]]
    assert made(m2, (m3, [[1, 2, 3], [4, 5, 6], [7, 8, 9]])).tolist() == [[[1, 2], [4, 5]]]
    assert made(i32, (f32, -2.7)).tolist() == [-2]
    assert made(u16, (i32, -1)).tolist() == [65535]
    assert made(dt.bool_, (f32, 0.5)).tolist() == [True]
    assert made(f32, (dt.bool_, True)).tolist() == [1]
    assert made(i32, (v2, [7, 8])).tolist() == [7]


def test_comparisons_of_vectors_and_matrices() -> None:
    a = np.array([[1, 2], [1, 3], [np.nan, 0]], np.float32)
    b = np.array([[1, 2], [1, 2], [np.nan, 0]], np.float32)
    assert apply_comparison("==", a, b).tolist() == [True, False, False]
    assert apply_comparison("!=", a, b).tolist() == [False, True, True]
