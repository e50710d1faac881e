"""vd.histogram against NumPy: edges, counts, weights, and elements outside."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vkdispatch as vd
from vkdispatch.selection import counting, histogram
from vkdispatch.selection.tuning import tuning

RNG = np.random.default_rng(7)
KINDS = ["float32", "int32", "uint8", "bool", "float64", "int64", "uint64", "int16", "float16"]


def count_by_edges(data: Any, bins: int) -> tuple[Any, Any]:
    """Return NumPy's edges, and counts by them: of float16, np.histogram's counts may be off by a bin."""
    histogram = np.histogram_bin_edges(data, bins)
    places = np.searchsorted(histogram.astype(np.float64), data.astype(np.float64), "right") - 1
    return np.bincount(np.minimum(places, bins - 1), minlength=bins), histogram


def same(found: tuple[vd.Buffer[Any], vd.Buffer[Any]], expected: Any) -> None:
    counts, histogram = (buffer.read(0) for buffer in found)
    np.testing.assert_array_equal(counts, expected[0])
    np.testing.assert_array_equal(histogram, expected[1])
    assert counts.dtype == expected[0].dtype
    assert histogram.dtype == expected[1].dtype


@pytest.mark.parametrize("kind", KINDS)
def test_every_dtype(kind: str) -> None:
    data = RNG.integers(0, 2 if kind == "bool" else 100, 3001).astype(kind)
    expected_of = data.astype(np.uint8) if kind == "bool" else data
    buffer = vd.asbuffer(data)
    same(vd.histogram(buffer, 13), np.histogram(expected_of, 13))
    same(vd.histogram(buffer, 7, (3, 50)), np.histogram(expected_of, 7, (3, 50)))


@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 257, 4095, 4096, 4099, 70_001])
def test_sizes(size: int) -> None:
    data = RNG.standard_normal(size).astype(np.float32)
    same(vd.histogram(vd.asbuffer(data), 10), np.histogram(data, 10))


@pytest.mark.parametrize("bins", [1, 2, 255, 256, 1000, 5000, 100_000])
def test_numbers_of_bins(bins: int) -> None:
    data = RNG.random(20_001).astype(np.float32)
    same(vd.histogram(vd.asbuffer(data), bins, (0, 1)), np.histogram(data, bins, (0, 1)))


def test_bins_of_elements_on_edges() -> None:
    histogram = np.linspace(0, 1, 11)
    for kind in (np.float32, np.float64):
        # not at 0: its neighbours are subnormal, and devices may treat them as 0
        near = np.concatenate([np.nextafter(histogram[1:].astype(kind), kind(side)) for side in (-9, 9)])
        data = np.concatenate([histogram.astype(kind), near])
        same(vd.histogram(vd.asbuffer(data), 10, (0, 1)), np.histogram(data, 10, (0, 1)))
        same(vd.histogram(vd.asbuffer(data), list(histogram)), np.histogram(data, list(histogram)))


@pytest.mark.parametrize("bins", [2, 10, 50, 155])
@pytest.mark.parametrize("scale", [2.0**-16, 0.01, 10.0, 3000.0])
def test_edges_of_float16_are_rounded_to_float16(bins: int, scale: float) -> None:
    data = (RNG.standard_normal(23_911) * scale).astype(np.float16)
    buffer = vd.asbuffer(data)
    outer = (float(data.min()) / 2, float(data.max()) / 3)
    for arguments in ((bins,), (bins, outer), (bins, (np.float64(outer[0]), np.float64(outer[1])))):
        try:
            expected = (count_by_edges if len(arguments) == 1 else np.histogram)(data, *arguments)
        except ValueError:  # more bins than there are numbers
            with pytest.raises(ValueError, match="bins"):
                vd.histogram(buffer, *arguments)
            continue
        same(vd.histogram(buffer, *arguments), expected)
        found = vd.histogram(buffer, *arguments, density=True)[0].read(0)
        shares = expected[0] / np.diff(expected[1]) / expected[0].sum()
        np.testing.assert_allclose(found, shares, rtol=1e-6)
        if len(arguments) == 1:
            graph = vd.CommandGraph()
            recorded = vd.histogram(buffer, bins, graph=graph)
            graph.submit()
            same(recorded, expected)


def test_single_value_of_float16() -> None:
    for value in (0.1, 100.0, 2.0**-20):
        data = np.full(9, value, np.float16)
        same(vd.histogram(vd.asbuffer(data), 4), np.histogram(data, 4))
        graph = vd.CommandGraph()
        recorded = vd.histogram(vd.asbuffer(data), 4, graph=graph)
        graph.submit()
        same(recorded, np.histogram(data, 4))


@pytest.mark.parametrize("kind", ["float32", "float64", "int8", "uint16", "int32", "int64"])
def test_ranges_and_edges_of_any_type(kind: str) -> None:
    pick = np.random.default_rng(list(kind.encode()))
    for _ in range(4):
        if kind.startswith("float"):
            data = (pick.standard_normal(4001) * 10.0 ** pick.integers(-3, 4) + 3).astype(kind)
        else:
            least, most = np.iinfo(kind).min, np.iinfo(kind).max
            data = pick.integers(least, most, 4001, kind, endpoint=True)
        buffer, bins = vd.asbuffer(data), int(pick.integers(1, 99))
        low, high = np.sort(pick.choice(data, 2))
        for outer in ((low.item(), high.item()), (np.float64(low), np.float64(high)), (low, high)):
            same(vd.histogram(buffer, bins, outer), np.histogram(data, bins, outer))
        same(vd.histogram(buffer, bins), np.histogram(data, bins))
        histogram = np.sort(pick.choice(data, 20))
        same(vd.histogram(buffer, histogram), np.histogram(data, histogram))


def test_nan_and_elements_outside_are_not_counted() -> None:
    data = np.array([np.nan, np.inf, -np.inf, -0.0, 0.5, 1, 1.5, -1e-30], np.float32)
    same(vd.histogram(vd.asbuffer(data), 4, (0, 1)), np.histogram(data, 4, (0, 1)))
    counts, _ = vd.histogram(vd.asbuffer(data), np.array([0.0, 0.5, 1.0]))
    assert list(counts.read(0)) == [1, 2]


def test_edges_of_any_width() -> None:
    data = RNG.integers(-50, 50, 5001).astype(np.int32)
    histogram = [-40, -40, -3, 0, 0.5, 17, 49]
    same(vd.histogram(vd.asbuffer(data), histogram), np.histogram(data, histogram))
    on_device = vd.asbuffer(np.array(histogram))
    counts, returned = vd.histogram(vd.asbuffer(data), on_device)
    assert returned is on_device
    np.testing.assert_array_equal(counts.read(0), np.histogram(data, histogram)[0])


def test_extreme_values_of_dtypes() -> None:
    data = np.array([-(2**63), 2**63 - 1, 0, 5], np.int64)
    same(vd.histogram(vd.asbuffer(data), 3), np.histogram(data, 3))
    far = np.array([2**63 - 1, 2**63 - 2, 2**63 - 3], np.int64)
    histogram = np.array([2**63 - 3, 2**63 - 2, 2**63 - 1])
    same(vd.histogram(vd.asbuffer(far), histogram), np.histogram(far, histogram))


def test_empty_arrays() -> None:
    none = vd.asbuffer(np.zeros((0, 3), np.float32))
    same(vd.histogram(none, 4), np.histogram(np.zeros(0, np.float32), 4))
    counts, _ = vd.histogram(none, 3, (0, 1), weights=none)
    assert list(counts.read(0)) == [0, 0, 0]


@pytest.mark.parametrize("kind", ["float32", "int32", "float64", "bool"])
def test_weights(kind: str) -> None:
    data = RNG.random(5003).astype(np.float32)
    weights = RNG.integers(-99, 99, data.size).astype(kind)
    counts, histogram = vd.histogram(vd.asbuffer(data), 9, (0, 1), weights=vd.asbuffer(weights))
    expected, expected_edges = np.histogram(data, 9, (0, 1), weights=weights.astype(np.float64))
    np.testing.assert_array_equal(counts.read(0), expected)
    np.testing.assert_array_equal(histogram.read(0), expected_edges.astype(np.float32))


def test_sums_of_weights_are_exact_and_reproducible() -> None:
    data = RNG.integers(0, 5, 40_001).astype(np.int32)
    weights = (RNG.standard_normal(data.size) * 10.0 ** RNG.integers(-12, 12, data.size)).astype(np.float64)

    def call() -> Any:
        return vd.histogram(vd.asbuffer(data), 5, (0, 5), weights=vd.asbuffer(weights))[0].read(0)

    first = call()
    exact = [math.fsum(weights[data == number]) for number in range(5)]
    np.testing.assert_allclose(first, exact, rtol=3e-16)
    for _ in range(3):
        assert call().tobytes() == first.tobytes()


def test_weights_that_are_not_finite() -> None:
    data = np.repeat(np.arange(5), 3).astype(np.float32)
    weights = np.array([1, np.inf, 2, -np.inf, 1, 1, np.inf, -np.inf, 0, np.nan, 1, 1, 1, 2, 3], np.float32)
    counts = vd.histogram(vd.asbuffer(data), 5, (0, 5), weights=vd.asbuffer(weights))[0].read(0)
    np.testing.assert_array_equal(counts, np.array([np.inf, -np.inf, np.nan, np.nan, 6], np.float32))


def test_density() -> None:
    data = RNG.standard_normal(3001).astype(np.float32)
    for bins in (11, [-3, -1, 0.5, 4]):
        found = vd.histogram(vd.asbuffer(data), bins, density=True)[0].read(0)
        np.testing.assert_allclose(found, np.histogram(data, bins, density=True)[0], rtol=1e-6)


def test_maps() -> None:
    data = RNG.random(3001).astype(np.float32)

    @vd.map
    def squared(value: vd.float32) -> vd.float32:
        return value * value

    @vd.map
    def halved(count: vd.int64) -> vd.float32:
        return count.to_dtype(vd.float32) / 2

    counts, _ = vd.histogram(squared(vd.asbuffer(data)), 10, (0, 1), output_map=halved)
    np.testing.assert_array_equal(counts.read(0), np.histogram(data * data, 10, (0, 1))[0] / 2)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(-30, 30), min_size=1, max_size=300),
    st.integers(1, 40),
    st.tuples(st.integers(-40, 40), st.integers(1, 60)),
)
def test_any_integers(data: list[int], bins: int, around: tuple[int, int]) -> None:
    outer = (around[0], around[0] + around[1])
    array = np.array(data, np.float32)
    same(vd.histogram(vd.asbuffer(array), bins, outer), np.histogram(array, bins, outer))
    same(vd.histogram(vd.asbuffer(array), bins), np.histogram(array, bins))


def test_invalid_arguments() -> None:
    x = vd.asbuffer(np.arange(4, dtype=np.float32))
    with pytest.raises(TypeError, match=r"vd\.asbuffer"):
        vd.histogram([0, 1, 2], 3)
    with pytest.raises(ValueError, match="bins: expected an int from 1 to"):
        vd.histogram(x, 0)
    with pytest.raises(TypeError, match="bins"):
        vd.histogram(x, 2.5)
    with pytest.raises(ValueError, match="ascending edges"):
        vd.histogram(x, [3, 2, 1])
    with pytest.raises(ValueError, match="finite"):
        vd.histogram(x, 3, (0, np.inf))
    with pytest.raises(ValueError, match="less than the first"):
        vd.histogram(x, 3, (2, 1))
    with pytest.raises(ValueError, match="weights"):
        vd.histogram(x, 3, weights=vd.asbuffer(np.arange(3, dtype=np.float32)))
    with pytest.raises(ValueError, match="range"):
        vd.histogram(vd.asbuffer(np.array([1, np.nan], np.float32)), 3)
    with pytest.raises(TypeError, match="complex64"):
        vd.histogram(vd.asbuffer(np.zeros(3, np.complex64)), 3)


@pytest.mark.parametrize("cpu", [False, True])
@pytest.mark.parametrize("size", [1, 255, 4099, 70_001])
def test_plans_of_cpus_and_gpus(monkeypatch: pytest.MonkeyPatch, size: int, cpu: bool) -> None:
    monkeypatch.setenv("VKDISPATCH_PLAN", "cpu" if cpu else "gpu")
    for kind in ("uint8", "float32"):
        data = RNG.integers(0, 200, size).astype(kind)
        found = vd.histogram(vd.asbuffer(data), list(range(0, 130, 7)))[0].read(0)
        np.testing.assert_array_equal(found, np.histogram(data, list(range(0, 130, 7)))[0])
        weights = RNG.integers(0, 50, size).astype(np.float32)
        found = vd.histogram(vd.asbuffer(data), 9, (0, 200), weights=vd.asbuffer(weights))[0].read(0)
        np.testing.assert_array_equal(found, np.histogram(data, 9, (0, 200), weights=weights)[0])


@pytest.mark.parametrize(
    ("kind", "bins"),
    [*((kind, 7) for kind in ("int8", "bool", "int32", "uint32", "int64")), ("bool", 3000), ("int32", 3000)],
)
def test_weights_without_64_bit_atomics(monkeypatch: pytest.MonkeyPatch, kind: str, bins: int) -> None:
    monkeypatch.setattr(counting, "_HAS_LONGS", {"what no device has"})
    numbers = np.iinfo(np.uint8 if kind == "bool" else kind)
    data = RNG.random(20_011).astype(np.float32)
    weights = RNG.integers(numbers.min, numbers.max, data.size, endpoint=True).astype(kind)
    with tuning.change(stream_few_cpu=1):  # half of what a CPU driver has to compile
        found = vd.histogram(vd.asbuffer(data), bins, (0, 1), weights=vd.asbuffer(weights))[0].read(0)
    histogram = np.histogram_bin_edges(data, bins, (0, 1))
    places = np.minimum(np.searchsorted(histogram, data, "right") - 1, bins - 1)
    expected = np.zeros(bins, np.int64)
    np.add.at(expected, places, weights.astype(np.int64))
    np.testing.assert_array_equal(found, expected.astype(found.dtype))


@pytest.mark.parametrize("kind", ["int8", "uint8", "bool", "int32", "uint32", "float16", "float32"])
def test_edges_without_float64(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(histogram, "_must_narrow", lambda x, kind: kind is vd.float64)
    if kind.startswith("float"):
        data = (RNG.integers(-40, 40, 5003) / 16).astype(kind)
    else:
        limits = np.iinfo(np.uint8 if kind == "bool" else kind)
        data = RNG.integers(limits.min, limits.max, 5003, endpoint=True).astype(kind)
        data[:3] = limits.min, limits.max, 1
    expected_of = data.astype(np.uint8) if kind == "bool" else data
    many = [
        -math.inf,
        -1e300,
        -2.1,
        -2,
        -0.1,
        0,
        0.3,
        0.7,
        1,
        1 + 1e-12,
        2,
        127,
        2.0**31,
        4e9,
        1e300,
        math.inf,
    ]
    for bins in (many, many[2:-4], [0.2, 0.8], [0.5, 1], [1.5, 1.5, 1.5], [-3, 2.25]):
        same(vd.histogram(vd.asbuffer(data), bins), np.histogram(expected_of, bins))
    if not kind.startswith("float"):
        for ends in ((0, 100), (-0.5, 1.5), (-3e9, 5e9), (7, 7)):
            same(vd.histogram(vd.asbuffer(data), 9, ends), np.histogram(expected_of, 9, ends))
        same(vd.histogram(vd.asbuffer(data), 300), np.histogram(expected_of, 300))
