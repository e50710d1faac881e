"""vd.searchsorted against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vkdispatch as vd

RNG = np.random.default_rng(10)
SIDES: list[Any] = ["left", "right"]


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 1000, 1023, 1024, 4095, 4096, 4097, 5003, 12_289])
def test_lengths(length: int) -> None:
    array = np.sort(RNG.integers(0, length, length)).astype(np.float32)
    wanted = np.concatenate(
        [RNG.integers(-3, length + 3, 700).astype(np.float32), array[:300] + 0.5, array[-3:]]
    )
    for side in SIDES:
        found = vd.searchsorted(vd.asbuffer(array), vd.asbuffer(wanted), side).read(0)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, np.searchsorted(array, wanted, side))


@pytest.mark.parametrize(
    "kind", ["int32", "uint32", "uint8", "int16", "int64", "uint64", "float16", "float64", "bool"]
)
def test_every_dtype(kind: str) -> None:
    array = np.sort(RNG.integers(0, 2 if kind == "bool" else 100, 500).astype(kind))
    wanted = RNG.integers(0, 2 if kind == "bool" else 120, 300).astype(kind)
    for side in SIDES:
        found = vd.searchsorted(vd.asbuffer(array), vd.asbuffer(wanted), side).read(0)
        np.testing.assert_array_equal(found, np.searchsorted(array, wanted, side))


@pytest.mark.parametrize("plan", ["cpu", "gpu"])
@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 1000, 1025])
def test_short_tables_and_many_values(monkeypatch: pytest.MonkeyPatch, plan: str, length: int) -> None:
    """GPUs search in a copy in workgroup memory, CPUs in the array."""
    monkeypatch.setenv("VKDISPATCH_PLAN", plan)
    array = np.sort(RNG.integers(0, 2 * length + 1, length)).astype(np.float32)
    wanted = RNG.integers(-1, 2 * length + 3, 5 * length + 7).astype(np.float32)
    for side in SIDES:
        found = vd.searchsorted(vd.asbuffer(array), vd.asbuffer(wanted), side).read(0)
        np.testing.assert_array_equal(found, np.searchsorted(array, wanted, side))


def test_promotion_of_dtypes() -> None:
    array = np.array([-5, 0, 2, 2**31 - 1], np.int32)
    wanted = np.array([-0.5, 2.5, 2**31], np.float64)
    found = vd.searchsorted(vd.asbuffer(array), vd.asbuffer(wanted)).read(0)
    np.testing.assert_array_equal(found, np.searchsorted(array, wanted))
    unsigned = np.array([0, 2**32 - 1], np.uint32)
    found = vd.searchsorted(vd.asbuffer(array), vd.asbuffer(unsigned), "right").read(0)
    np.testing.assert_array_equal(found, np.searchsorted(array, unsigned, "right"))


def test_nan_is_last() -> None:
    array = np.array([-np.inf, -1, -0.0, 0, 3, np.inf, np.nan, np.nan], np.float32)
    wanted = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 3, 4, -5], np.float32)
    for side in SIDES:
        found = vd.searchsorted(vd.asbuffer(array), vd.asbuffer(wanted), side).read(0)
        np.testing.assert_array_equal(found, np.searchsorted(array, wanted, side))


def test_sorter() -> None:
    array = RNG.integers(0, 300, 5001).astype(np.int32)
    order = np.argsort(array, kind="stable")
    wanted = np.arange(-5, 310, dtype=np.int32)
    for side in SIDES:
        for kind in (np.int64, np.uint32):
            found = vd.searchsorted(
                vd.asbuffer(array), vd.asbuffer(wanted), side, vd.asbuffer(order.astype(kind))
            ).read(0)
            np.testing.assert_array_equal(found, np.searchsorted(array, wanted, side, order))
    x = vd.asbuffer(array)
    found = vd.searchsorted(x, vd.asbuffer(wanted), sorter=vd.argsort(x)).read(0)
    np.testing.assert_array_equal(found, np.searchsorted(array, wanted, sorter=order))


@pytest.mark.parametrize(
    ("kind", "bad"), [("int32", -1), ("int64", 900), ("uint32", 2**32 - 1), ("uint64", 900)]
)
def test_sorter_with_invalid_indices(kind: str, bad: int) -> None:
    array = vd.asbuffer(np.arange(900, dtype=np.float32))
    sorter = np.arange(900).astype(kind)
    sorter[[700, 800]] = bad
    found = vd.searchsorted(array, array, sorter=vd.asbuffer(sorter))
    with pytest.raises(IndexError, match=rf"sorter: {bad} at \[700\] is out of bounds"):
        found.read(0)
    sorter = np.arange(900).astype(kind)
    sorter[0 if bad < 0 else 899] = bad
    found = vd.searchsorted(array, array, sorter=vd.asbuffer(sorter))
    with pytest.raises(IndexError, match=f"sorter: {bad} at"):
        vd.queue_wait_idle()
    # invalid indices are clipped, and the elements are ascending then
    np.testing.assert_array_equal(found.read(0), np.arange(900))
    sorter = np.arange(900).astype(kind)
    graph = vd.CommandGraph()
    sorter[[700, 800]] = 700, 800
    places = vd.searchsorted(array, array, sorter=vd.asbuffer(sorter), graph=graph)
    graph.submit()
    np.testing.assert_array_equal(places.read(0), np.arange(900))


def test_shapes_and_empty_arrays() -> None:
    array = np.arange(10, dtype=np.float32)
    wanted = RNG.random((3, 5, 7)).astype(np.float32) * 12
    found = vd.searchsorted(vd.asbuffer(array), vd.asbuffer(wanted))
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found.read(0), np.searchsorted(array, wanted))
    none = vd.asbuffer(np.zeros(0, np.float32))
    assert vd.searchsorted(vd.asbuffer(array), none).shape == (0,)
    assert list(vd.searchsorted(none, vd.asbuffer(array)).read(0)) == [0] * 10


def test_maps() -> None:
    array = np.arange(5000, dtype=np.float32)
    wanted = RNG.random(1000).astype(np.float32) * 80

    @vd.map
    def squared(value: vd.float32) -> vd.float32:
        return value * value

    @vd.map
    def before(place: vd.int64) -> vd.int32:
        return place.to_dtype(vd.int32) - 1

    found = vd.searchsorted(
        vd.asbuffer(array), squared(vd.asbuffer(wanted)), "right", output_map=before
    ).read(0)
    np.testing.assert_array_equal(found, np.searchsorted(array, wanted * wanted, "right") - 1)
    found = vd.searchsorted(squared(vd.asbuffer(array)), vd.asbuffer(wanted)).read(0)
    np.testing.assert_array_equal(found, np.searchsorted(array * array, wanted))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(width=32), max_size=60),
    st.lists(st.floats(width=32), min_size=1, max_size=60),
    st.sampled_from(SIDES),
)
def test_any_floats(array: list[float], wanted: list[float], side: Any) -> None:
    # GPUs may treat subnormal numbers as zero
    ordered, values = (np.array(each, np.float32) for each in (array, wanted))
    for each in (ordered, values):
        each[np.abs(each) < np.finfo(np.float32).tiny] = 0
    ordered.sort()
    found = vd.searchsorted(vd.asbuffer(ordered), vd.asbuffer(values), side).read(0)
    np.testing.assert_array_equal(found, np.searchsorted(ordered, values, side))


def test_invalid_arguments() -> None:
    x = vd.asbuffer(np.arange(4, dtype=np.float32))
    with pytest.raises(ValueError, match="side"):
        vd.searchsorted(x, x, "middle")
    with pytest.raises(ValueError, match="one axis"):
        vd.searchsorted(vd.asbuffer(np.zeros((2, 2), np.float32)), x)
    with pytest.raises(TypeError, match="sorter"):
        vd.searchsorted(x, x, sorter=x)
    with pytest.raises(ValueError, match="sorter"):
        vd.searchsorted(x, x, sorter=vd.asbuffer(np.zeros(3, np.int32)))
    with pytest.raises(TypeError, match="complex64"):
        vd.searchsorted(vd.asbuffer(np.zeros(3, np.complex64)), x)
