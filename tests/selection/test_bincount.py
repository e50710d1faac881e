"""vd.bincount against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vkdispatch as vd

RNG = np.random.default_rng(8)


@pytest.mark.parametrize(
    "kind", ["int32", "uint32", "uint8", "int8", "int16", "uint16", "int64", "uint64", "bool"]
)
def test_every_dtype(kind: str) -> None:
    data = RNG.integers(0, 2 if kind == "bool" else 100, 3001).astype(kind)
    found = vd.bincount(vd.asbuffer(data)).read(0)
    expected = np.bincount(data.astype(np.int64))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("size", [1, 31, 33, 4096, 4099, 70_001])
@pytest.mark.parametrize("most", [1, 10, 5000, 50_000])
def test_sizes_and_counts(size: int, most: int) -> None:
    data = RNG.integers(0, most, size).astype(np.int32)
    np.testing.assert_array_equal(vd.bincount(vd.asbuffer(data)).read(0), np.bincount(data))


def test_minlength_and_size() -> None:
    data = np.array([3, 1, 1, 7, -5, 2**31 - 1], np.int32)
    x = vd.asbuffer(data)
    assert list(vd.bincount(x, size=4).read(0)) == [0, 2, 0, 1]
    assert list(vd.bincount(x, size=2, minlength=3).read(0)) == [0, 2, 0]
    few = vd.asbuffer(data[:3])
    for least in (0, 2, 9):
        np.testing.assert_array_equal(
            vd.bincount(few, minlength=least).read(0), np.bincount(data[:3], None, least)
        )
    wide = vd.asbuffer(np.array([2**40, 2, -(2**40)], np.int64))
    assert list(vd.bincount(wide, size=3).read(0)) == [0, 0, 1]


def test_empty_arrays() -> None:
    none = vd.asbuffer(np.zeros(0, np.int32))
    assert vd.bincount(none).shape == (0,)
    assert list(vd.bincount(none, minlength=3).read(0)) == [0, 0, 0]
    assert list(vd.bincount(none, size=2).read(0)) == [0, 0]


@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "float16"])
def test_weights(kind: str) -> None:
    data = RNG.integers(0, 50, 4001).astype(np.int32)
    weights = RNG.integers(-99, 99, data.size).astype(kind)
    found = vd.bincount(vd.asbuffer(data), vd.asbuffer(weights)).read(0)
    expected = np.bincount(data, weights)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_weights_cancel_exactly() -> None:
    weights = np.array([1e30, 1, -1e30, 2.0**-10, 3e-45, 1e38, 1e38], np.float32)
    data = np.array([0, 0, 0, 0, 1, 2, 2], np.int32)
    found = vd.bincount(vd.asbuffer(data), vd.asbuffer(weights)).read(0)
    # 2**-10 is 109 bits below 1e30; the two sums of a bin have 118 bits
    np.testing.assert_allclose(found[0], math.fsum(weights[:4].astype(float)), rtol=1e-15)
    assert list(found[1:]) == [float(weights[4]), 2 * float(weights[5])]


def test_sums_of_weights_in_many_bins_are_reproducible() -> None:
    data = RNG.integers(0, 9000, 30_001).astype(np.int32)
    weights = RNG.standard_normal(data.size).astype(np.float32)
    runs = {
        vd.bincount(vd.asbuffer(data), vd.asbuffer(weights), size=9000).read(0).tobytes() for _ in range(3)
    }
    assert len(runs) == 1
    np.testing.assert_allclose(
        np.frombuffer(runs.pop()), np.bincount(data, weights.astype(float), 9000), rtol=1e-12, atol=1e-14
    )


def test_maps() -> None:
    data = RNG.integers(0, 1000, 3001).astype(np.int32)

    @vd.map
    def tens(value: vd.int32) -> vd.int32:
        return value // 10

    np.testing.assert_array_equal(vd.bincount(tens(vd.asbuffer(data))).read(0), np.bincount(data // 10))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 300), max_size=500), st.integers(0, 400))
def test_any_numbers(data: list[int], least: int) -> None:
    array = np.array(data, np.int32)
    np.testing.assert_array_equal(
        vd.bincount(vd.asbuffer(array), None, least).read(0), np.bincount(array, None, least)
    )


def test_invalid_arguments() -> None:
    x = vd.asbuffer(np.arange(4, dtype=np.int32))
    with pytest.raises(TypeError, match="integers"):
        vd.bincount(vd.asbuffer(np.zeros(3, np.float32)))
    with pytest.raises(ValueError, match="from 0 on"):
        vd.bincount(vd.asbuffer(np.array([1, -2], np.int32)))
    with pytest.raises(ValueError, match="minlength"):
        vd.bincount(x, minlength=-1)
    with pytest.raises(ValueError, match="size"):
        vd.bincount(x, size=-1)
    with pytest.raises(ValueError, match="weights"):
        vd.bincount(x, vd.asbuffer(np.zeros(3, np.float32)))
    with pytest.raises(RuntimeError, match="size"):
        vd.bincount(x, graph=vd.CommandGraph())
    with pytest.raises(ValueError, match="2\\*\\*32"):
        vd.bincount(vd.asbuffer(np.array([2**33], np.int64)))
