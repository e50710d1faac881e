"""vd.sort, vd.argsort and vd.sort_by_key against NumPy's stable sorts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vkdispatch as vd

from .truth import KINDS, assert_same_bits, keys, order, ordered

# around the limits of short rows, subgroups, workgroups and tiles, and several tiles
SIZES = (1, 2, 3, 7, 8, 31, 32, 33, 47, 48, 49, 63, 64, 65, 127, 257, 509, 1023, 1024, 1025, 2048, 4097, 9001)


# each of the other dtypes runs the same code as one of these
LONG = (vd.int8, vd.uint16, vd.int32, vd.uint64, vd.float16, vd.float32, vd.float64)
FALLING = (vd.uint8, vd.int16, vd.int32, vd.int64, vd.float16, vd.float32, vd.float64, vd.complex64)


def check(kind: Any, size: int, *, descending: bool = False) -> None:
    for few in (False, True):
        host = keys(kind, size, size, few=few)
        x = vd.asbuffer(host)
        assert_same_bits(vd.sort(x, descending=descending).read(0), ordered(host, descending=descending))
        np.testing.assert_array_equal(
            vd.argsort(x, descending=descending).read(0), order(host, descending=descending)
        )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_dtype_as_numpy(kind: Any) -> None:
    check(kind, 40)
    if kind is not vd.complex128:  # takes long to compile
        check(kind, 900)
    if kind in LONG:
        check(kind, 3001)


@pytest.mark.parametrize("kind", FALLING, ids=lambda kind: kind.name)
def test_descending(kind: Any) -> None:
    check(kind, 40, descending=True)
    if kind in (vd.int32, vd.float64):
        check(kind, 900, descending=True)
        check(kind, 3001, descending=True)


def test_bfloat16() -> None:
    host = keys(vd.float32, 1000, few=True)
    x = vd.Buffer(1000, vd.bfloat16)
    x.write(host)
    assert_same_bits(vd.sort(x).read(0), ordered(x.read(0)))
    expected = order(x.read(0), descending=True)
    np.testing.assert_array_equal(vd.argsort(x, descending=True).read(0), expected)


@pytest.mark.parametrize("size", SIZES)
def test_every_size(size: int) -> None:
    host = keys(vd.float32, size, size)
    x = vd.asbuffer(host)
    assert_same_bits(vd.sort(x).read(0), ordered(host))
    positions = vd.argsort(x)
    assert positions.var_type is vd.int64
    np.testing.assert_array_equal(positions.read(0), order(host))
    assert_same_bits(x.read(0), host)


@pytest.mark.parametrize("length", [1, 2, 3, 17, 48, 49, 64, 100, 333, 1024, 1025, 2500])
def test_rows_of_every_length(length: int) -> None:
    for rows in (1, 2, 5, 130):
        if rows * length > 20_000:
            continue
        host = keys(vd.int32, (rows, length), rows, few=True)
        x = vd.asbuffer(host)
        np.testing.assert_array_equal(vd.sort(x).read(0), np.sort(host))
        np.testing.assert_array_equal(vd.argsort(x).read(0), order(host))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("shape", [(30, 7, 11), (3, 1, 200), (1, 1500, 2)])
def test_axes(shape: tuple[int, ...], axis: int) -> None:
    host = keys(vd.float32, shape, few=True)
    x = vd.asbuffer(host)
    assert_same_bits(vd.sort(x, axis).read(0), ordered(host, axis))
    np.testing.assert_array_equal(vd.argsort(x, axis).read(0), order(host, axis))
    found, values = vd.sort_by_key(x, vd.asbuffer(np.arange(host.size).reshape(shape)), axis)
    assert_same_bits(found.read(0), ordered(host, axis))
    expected = np.take_along_axis(np.arange(host.size).reshape(shape), order(host, axis), axis)
    np.testing.assert_array_equal(values.read(0), expected)


def test_axis_none_flattens() -> None:
    host = keys(vd.int16, (9, 5, 4))
    x = vd.asbuffer(host)
    np.testing.assert_array_equal(vd.sort(x, None).read(0), np.sort(host, None))
    np.testing.assert_array_equal(vd.argsort(x, None).read(0), order(host.ravel()))
    found, values = vd.sort_by_key(x, x, axis=None)
    np.testing.assert_array_equal(found.read(0), values.read(0))
    assert found.shape == (180,)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 5)])
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    x = vd.asbuffer(np.zeros(shape, np.float32))
    for axis in range(len(shape)):
        assert vd.sort(x, axis).shape == shape
        assert vd.argsort(x, axis).read(0).dtype == np.int64
        found, (first, second) = vd.sort_by_key(x, [x, x], axis, descending=True)
        assert found.shape == first.shape == second.shape == shape
    assert vd.sort(x, None).shape == (0,)
    assert vd.sort(x, segments=[]).shape == shape


def test_nans_come_last_and_zeros_are_equal() -> None:
    host = np.array([np.nan, 0.0, -np.inf, -0.0, np.inf, 0.0, -np.nan, -1.0], np.float32)
    x = vd.asbuffer(host)
    assert vd.argsort(x).read(0).tolist() == [2, 7, 1, 3, 5, 4, 0, 6]
    assert vd.argsort(x, descending=True).read(0).tolist() == [0, 6, 4, 1, 3, 5, 7, 2]
    assert np.signbit(vd.sort(x).read(0)[2:5]).tolist() == [False, True, False]


def test_bits_of_nans_are_kept() -> None:
    words = np.array([0x7FC00001, 0xFFFFFFFF, 0x3F800000, 0x7F800001, 0xFF800000], np.uint32)
    found = vd.sort(vd.asbuffer(words.view(np.float32))).read(0).view(np.uint32)
    assert found.tolist() == [0xFF800000, 0x3F800000, 0x7FC00001, 0xFFFFFFFF, 0x7F800001]


@pytest.mark.parametrize("size", [40, 700, 5000])
def test_sorted_reversed_and_equal_keys(size: int) -> None:
    up = np.arange(size, dtype=np.int32) - size // 2
    for host in (up, up[::-1].copy(), np.zeros_like(up), np.full_like(up, -1), up % 2):
        np.testing.assert_array_equal(vd.sort(vd.asbuffer(host)).read(0), np.sort(host))
        np.testing.assert_array_equal(vd.argsort(vd.asbuffer(host)).read(0), order(host))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(width=32, allow_nan=True, allow_subnormal=True), min_size=1, max_size=300),
    st.integers(1, 8),
    st.booleans(),
)
def test_any_floats(values: list[float], rows: int, descending: bool) -> None:
    host = np.array(values * rows, np.float32).reshape(rows, -1)
    x = vd.asbuffer(host)
    assert_same_bits(vd.sort(x, descending=descending).read(0), ordered(host, descending=descending))
    np.testing.assert_array_equal(
        vd.argsort(x, descending=descending).read(0), order(host, descending=descending)
    )


def test_out() -> None:
    host = keys(vd.int32, (6, 500), few=True)
    x, to = vd.asbuffer(host), vd.Buffer((6, 500), vd.int32)
    assert vd.sort(x, out=to) is to
    np.testing.assert_array_equal(to.read(0), np.sort(host))
    for axis in (0, 1):
        x = vd.asbuffer(host)
        assert vd.sort(x, axis, out=x) is x
        np.testing.assert_array_equal(x.read(0), np.sort(host, axis))
    x = vd.asbuffer(host)
    assert vd.argsort(x, out=x) is x
    np.testing.assert_array_equal(x.read(0), order(host))


@pytest.mark.parametrize("size", [30, 700, 3000])
def test_in_place(size: int) -> None:
    for kind in (vd.uint8, vd.int32, vd.complex64):
        host = keys(kind, size, few=True)
        x, values = vd.asbuffer(host), vd.asbuffer(np.arange(size, dtype=np.int32))
        vd.sort_by_key(x, values, out=(x, values))
        assert_same_bits(x.read(0), ordered(host))
        np.testing.assert_array_equal(values.read(0), order(host))
        vd.sort(values, out=values)
        np.testing.assert_array_equal(values.read(0), np.arange(size))


@pytest.mark.parametrize("kind", [vd.int32, vd.uint32, vd.int64, vd.uint64, np.int32, "uint64"], ids=str)
def test_dtypes_of_positions(kind: Any) -> None:
    host = keys(vd.float32, (4, 300))
    found = vd.argsort(vd.asbuffer(host), dtype=kind).read(0)
    assert found.dtype == np.dtype(kind if not hasattr(kind, "name") else kind.name)
    np.testing.assert_array_equal(found, order(host))
    found = vd.argsort(vd.asbuffer(host), 0, dtype=kind).read(0)
    np.testing.assert_array_equal(found, order(host, 0))


@pytest.mark.parametrize(
    "kind",
    [vd.uint8, vd.float16, vd.float32, vd.vec3, vd.float64, vd.vec4, vd.dvec2, vd.mat2, vd.mat4],
    ids=str,
)
def test_values_of_every_size(kind: Any) -> None:
    host = keys(vd.int32, 900, few=True)
    values = vd.Buffer(900, kind)
    data = np.random.default_rng(1).standard_normal(values.read(0).shape).astype(values.read(0).dtype)
    values.write(data)
    _, found = vd.sort_by_key(vd.asbuffer(host), values)
    assert_same_bits(found.read(0), data[order(host)])


def test_several_values_in_place() -> None:
    host = keys(vd.int32, 900, few=True)
    a, b = np.arange(900, dtype=np.float32), np.arange(900, dtype=np.float32) ** 2
    x, first, second = vd.asbuffer(host), vd.asbuffer(a), vd.asbuffer(b)
    found, moved = vd.sort_by_key(x, [first, second, x], out=(None, [second, first, None]))
    assert moved[:2] == (second, first)
    np.testing.assert_array_equal(found.read(0), np.sort(host))
    for each, data in zip(moved, (a, b, host), strict=True):
        np.testing.assert_array_equal(each.read(0), data[order(host)])
    assert vd.sort_by_key(x, [])[1] == ()


def test_bits_are_reproducible() -> None:
    host = keys(vd.float32, 9001, few=True)
    x = vd.asbuffer(host)
    first = vd.argsort(x).read(0)
    for _ in range(5):
        np.testing.assert_array_equal(vd.argsort(x).read(0), first)


@pytest.mark.parametrize("kind", [vd.uint8, vd.float16, vd.vec2], ids=str)
def test_values_moved_with_keys(kind: Any) -> None:
    values = vd.Buffer((3, 3000), kind)
    data = np.random.default_rng(1).integers(0, 200, values.read(0).shape).astype(values.read(0).dtype)
    for key, few in ((vd.int8, False), (vd.int32, True)):
        host = keys(key, (3, 3000), few=few)
        places = order(host).reshape(3, 3000, *(1,) * (data.ndim - 2))
        expected = np.take_along_axis(data, places, 1)
        x = vd.asbuffer(host)
        values.write(data)
        found, moved = vd.sort_by_key(x, values)
        assert_same_bits(found.read(0), ordered(host))
        assert_same_bits(moved.read(0), expected)
        assert_same_bits(values.read(0), data)
        vd.sort_by_key(x, values, out=(x, values))
        assert_same_bits(x.read(0), ordered(host))
        assert_same_bits(values.read(0), expected)
