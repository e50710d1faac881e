"""vd.unique against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vkdispatch as vd

RNG = np.random.default_rng(11)


def check(data: np.ndarray[Any, Any]) -> None:
    found = vd.unique(vd.asbuffer(data), True, True, True)
    expected = np.unique(data, True, True, True)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours.read(0), theirs)
        assert ours.shape == theirs.shape


@pytest.mark.parametrize("size", [1, 2, 33, 500, 8191, 8193, 30_001])
def test_sizes(size: int) -> None:
    for most in (1, 10, size, 10 * size):
        check(RNG.integers(0, most, size).astype(np.int32))


@pytest.mark.parametrize(
    "kind", ["float32", "uint8", "bool", "int64", "float64", "float16", "complex64", "int16"]
)
def test_every_dtype(kind: str) -> None:
    data = RNG.integers(0, 2 if kind == "bool" else 30, 1001).astype(kind)
    if data.dtype.kind in "fc":
        data[RNG.integers(0, data.size, 20)] = np.nan
        data[RNG.integers(0, data.size, 20)] = -np.inf
    check(data)
    np.testing.assert_array_equal(vd.unique(vd.asbuffer(data)).read(0), np.unique(data))


def test_nan_and_tiny_numbers() -> None:
    data = np.array([np.nan, 3, -0.0, np.nan, 0.0, np.inf, -np.nan], np.float32)
    np.testing.assert_array_equal(vd.unique(vd.asbuffer(data)).read(0), [0, 3, np.inf, np.nan])
    found, counts = vd.unique(vd.asbuffer(data), return_counts=True, equal_nan=False)
    np.testing.assert_array_equal(found.read(0), [0, 3, np.inf, np.nan, np.nan, np.nan])
    assert list(counts.read(0)) == [2, 1, 1, 1, 1, 1]
    tiny = np.array([1e-45, 0, -1e-45, 1e-45, 2e-45], np.float32)
    np.testing.assert_array_equal(vd.unique(vd.asbuffer(tiny)).read(0), np.unique(tiny))
    complexes = np.array([complex(np.nan, 1), 2j, complex(1, np.nan), 2j, complex(np.nan, np.nan)])
    np.testing.assert_array_equal(vd.unique(vd.asbuffer(complexes), return_counts=True)[1].read(0), [2, 3])


def test_each_result_alone() -> None:
    data = RNG.integers(0, 50, (40, 30)).astype(np.int32)
    x = vd.asbuffer(data)
    for name in ("return_index", "return_inverse", "return_counts"):
        values, other = vd.unique(x, **{name: True})
        expected = np.unique(data, **{name: True})
        np.testing.assert_array_equal(values.read(0), expected[0])
        np.testing.assert_array_equal(other.read(0), expected[1])
        assert other.shape == expected[1].shape


def test_size_fills_or_truncates() -> None:
    data = np.array([5, 3, 5, 9, 3, 5], np.int32)
    x = vd.asbuffer(data)
    for size, values, index, counts in (
        (5, [3, 5, 9, 3, 3], [1, 0, 3, 1, 1], [2, 3, 1, 0, 0]),
        (3, [3, 5, 9], [1, 0, 3], [2, 3, 1]),
        (2, [3, 5], [1, 0], [2, 3]),
        (0, [], [], []),
    ):
        found = [each.read(0) for each in vd.unique(x, True, True, True, size=size)]
        assert [list(found[i]) for i in (0, 1, 3)] == [values, index, counts]
        assert list(found[2]) == [1, 0, 1, 2, 0, 1]
    assert list(vd.unique(x, size=5, fill_value=-1).read(0)) == [3, 5, 9, -1, -1]


def test_empty_arrays() -> None:
    none = vd.asbuffer(np.zeros((0, 3), np.float32))
    found = vd.unique(none, True, True, True)
    assert [each.shape for each in found] == [(0,), (0,), (0, 3), (0,)]
    values, counts = vd.unique(none, return_counts=True, size=2, fill_value=7)
    assert list(values.read(0)) == [7, 7]
    assert list(counts.read(0)) == [0, 0]
    with pytest.raises(ValueError, match="fill_value"):
        vd.unique(none, size=2)


def test_maps() -> None:
    data = RNG.integers(0, 1000, 2001).astype(np.int32)

    @vd.map
    def tens(value: vd.int32) -> vd.int32:
        return value // 10

    @vd.map
    def halved(value: vd.int32) -> vd.float32:
        return value.to_dtype(vd.float32) / 2

    found, counts = vd.unique(tens(vd.asbuffer(data)), return_counts=True, output_map=halved)
    expected, expected_counts = np.unique(data // 10, return_counts=True)
    np.testing.assert_array_equal(found.read(0), expected / 2)
    np.testing.assert_array_equal(counts.read(0), expected_counts)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=200))
def test_any_integers(data: list[int]) -> None:
    check(np.array(data, np.int32))


def test_invalid_arguments() -> None:
    x = vd.asbuffer(np.arange(4, dtype=np.float32))
    with pytest.raises(TypeError, match="booleans"):
        vd.unique(vd.Buffer(4, vd.vec2))
    with pytest.raises(ValueError, match="from 0 on"):
        vd.unique(x, size=-1)
    with pytest.raises(RuntimeError, match="size"):
        vd.unique(x, graph=vd.CommandGraph())
