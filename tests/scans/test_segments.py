"""Scans of segments, given as flags or as positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd

from .truth import scanned


def flags_of(shape: Any, share: float, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random(shape) < share


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_flags_in_one_row(exclusive: bool, reverse: bool) -> None:
    for size in (1, 5, 64, 999, 1000, 65_537):
        for share in (0.0, 0.001, 0.3, 1.0):
            x = np.random.default_rng(size).integers(-9, 9, size).astype(np.int32)
            starts = flags_of(size, share)
            result = vd.cumsum(
                vd.asbuffer(x),
                dtype=np.int32,
                exclusive=exclusive,
                reverse=reverse,
                segments=vd.asbuffer(starts),
            ).read(0)
            expected = scanned(
                "cumsum",
                x,
                dtype=np.int32,
                exclusive=0 if exclusive else None,
                reverse=reverse,
                starts=starts,
            )
            np.testing.assert_array_equal(result, expected, f"{size} {share}")


@pytest.mark.parametrize("reverse", [False, True])
def test_flags_along_every_axis(reverse: bool) -> None:
    for shape in ((40, 41), (5000, 4), (6, 70, 8)):
        x = np.random.default_rng(1).integers(-9, 9, shape).astype(np.float32)
        starts = flags_of(shape, 0.05)
        for axis in range(len(shape)):
            result = vd.cumsum(vd.asbuffer(x), axis, reverse=reverse, segments=vd.asbuffer(starts)).read(0)
            expected = scanned("cumsum", x, axis, reverse=reverse, starts=starts)
            np.testing.assert_array_equal(result, expected, f"{shape} along {axis}")


def test_flags_of_the_shape_of_all_elements() -> None:
    x = np.random.default_rng(2).integers(-9, 9, (30, 40)).astype(np.int64)
    starts = flags_of((30, 40), 0.1)
    for given in (starts, starts.reshape(-1)):
        result = vd.cumsum(vd.asbuffer(x), segments=vd.asbuffer(given)).read(0)
        np.testing.assert_array_equal(result, scanned("cumsum", x, starts=starts))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_positions(dtype: str) -> None:
    x = np.random.default_rng(3).random(9000).astype(np.float32)
    places = np.array([0, 1, 17, 17, 4000, 8999, 9000, 20_000], dtype)
    starts = np.zeros(9000, bool)
    starts[places[places < 9000].astype(int)] = True
    result = vd.cummax(vd.asbuffer(x), segments=vd.asbuffer(places)).read(0)
    np.testing.assert_array_equal(result, scanned("cummax", x, starts=starts))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_negative_positions(dtype: str) -> None:
    x = vd.asbuffer(np.ones(900, np.float32))
    places = np.arange(700).astype(dtype)
    places[[300, 500]] = -1, -9
    scanned = vd.cumsum(x, segments=vd.asbuffer(places))
    with pytest.raises(ValueError, match=r"segments: expected ints from 0 on, got -1 at \[300\], in cumsum"):
        scanned.read(0)
    # until the error is raised, they are ignored
    ends = np.delete(places, [300, 500])
    np.testing.assert_array_equal(scanned.read(0), vd.cumsum(x, segments=vd.asbuffer(ends)).read(0))


def test_empty_positions() -> None:
    x = np.arange(9, dtype=np.int64)
    result = vd.cumsum(vd.asbuffer(x), segments=vd.asbuffer(np.zeros(0, np.int32))).read(0)
    np.testing.assert_array_equal(result, np.cumsum(x))


def test_nan_stays_in_its_segment() -> None:
    x = np.ones(5000, np.float32)
    x[[70, 3000]] = np.nan, np.inf
    starts = flags_of(5000, 0.02, 4)
    for name in ("cumsum", "cumprod", "cummax"):
        result = getattr(vd, name)(vd.asbuffer(x), segments=vd.asbuffer(starts)).read(0)
        np.testing.assert_array_equal(result, scanned(name, x, starts=starts))


def test_segments_of_a_function_without_identity() -> None:
    @vd.scan
    def later(a: vd.int32, b: vd.int32) -> vd.int32:
        return b + 0 * a

    x = np.arange(7000, dtype=np.int32)
    result = later(vd.asbuffer(x), segments=vd.asbuffer(flags_of(7000, 0.1))).read(0)
    np.testing.assert_array_equal(result, x)


def test_graphs_read_current_flags() -> None:
    x = np.ones(300, np.int64)
    places = vd.asbuffer(np.array([0], np.int32))
    graph = vd.CommandGraph()
    sums = vd.cumsum(vd.asbuffer(x), segments=places, graph=graph)
    for place in (0, 100, 7):
        places.write(np.array([place], np.int32))
        graph.submit()
        expected = np.cumsum(x)
        expected[place:] -= place
        np.testing.assert_array_equal(sums.read(0), expected)


@pytest.mark.parametrize(
    ("segments", "message"),
    [([0, 2], "segments: expected a vd.Buffer"), (vd.float32, "segments: expected a vd.Buffer")],
)
def test_invalid_segments(segments: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        vd.cumsum(vd.asbuffer(np.zeros(4, np.float32)), segments=segments)


def test_segments_of_wrong_shape_or_dtype() -> None:
    x = vd.asbuffer(np.zeros((3, 4), np.float32))
    with pytest.raises(TypeError, match="float32"):
        vd.cumsum(x, 1, segments=vd.asbuffer(np.zeros((3, 4), np.float32)))
    with pytest.raises(ValueError, match=r"shape \(3, 4\)"):
        vd.cumsum(x, 1, segments=vd.asbuffer(np.zeros((4, 3), bool)))
    with pytest.raises(ValueError, match="one row"):
        vd.cumsum(x, 1, segments=vd.asbuffer(np.zeros(2, np.int32)))


def test_segments_of_empty_arrays_are_checked() -> None:
    nothing = vd.asbuffer(np.empty(0, np.float32))
    for right in (np.empty(0, bool), np.array([0], np.int32)):
        assert vd.cumsum(nothing, segments=vd.asbuffer(right)).shape == (0,)
    for wrong in (np.zeros(1, bool), np.zeros(2, np.float32)):
        with pytest.raises((TypeError, ValueError), match=r"^segments: "):
            vd.cumsum(nothing, segments=vd.asbuffer(wrong))
