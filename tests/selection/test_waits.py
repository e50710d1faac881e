"""How often calls wait for the device: once if the data decides the size of the result, else never."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd

RNG = np.random.default_rng(17)
NUMBERS = RNG.integers(0, 300, 20_001)
NATIVE = ("read_into", "read_async", "wait_idle", "wait_for", "wait_until")

Call = Callable[..., Any]


def reads_of(call: Callable[[], Any]) -> list[str]:
    """Return the names of the engine's functions that a call waits in, of a call like one before."""
    call()
    found: list[str] = []

    def note(frame: Any, event: str, function: Any) -> None:
        if event == "c_call" and getattr(function, "__name__", "") in NATIVE:
            found.append(function.__name__)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


def array(kind: str) -> vd.Buffer[Any]:
    return vd.asbuffer(NUMBERS.astype(kind))


@vd.map
def is_odd(value: vd.int32) -> vd.bool_:
    return value % 2 != 0


WAITING: dict[str, Call] = {
    "unique": vd.unique,
    "unique of int64": lambda _: vd.unique(array("int64")),
    "unique with all": lambda x: vd.unique(x, True, True, True),
    "unique with index": lambda x: vd.unique(x, return_index=True),
    "unique with inverse": lambda x: vd.unique(x, return_inverse=True),
    "unique with counts": lambda x: vd.unique(x, return_counts=True, equal_nan=False),
    "nonzero": vd.nonzero,
    "nonzero of a map": lambda x: vd.nonzero(is_odd(x)),
    "compact": lambda x: vd.compact(x, x),
    "compact by a map": lambda x: vd.compact(x, is_odd),
    "bincount": vd.bincount,
    "bincount of int64": lambda _: vd.bincount(array("int64"), minlength=7),
    "bincount with weights": lambda x: vd.bincount(x, x),
    "histogram": vd.histogram,
    "histogram of int64": lambda _: vd.histogram(array("int64"), 5),
    "histogram with weights": lambda x: vd.histogram(x, 5, weights=x, density=True),
}
NOT_WAITING: dict[str, Call] = {
    "unique": lambda x: vd.unique(x, True, True, True, size=400),
    "nonzero": lambda x: vd.nonzero(x, size=400),
    "compact": lambda x: vd.compact(x, is_odd, size=400),
    "bincount": lambda x: vd.bincount(x, size=300),
    "bincount with weights": lambda x: vd.bincount(x, x, size=300),
    "histogram": lambda x: vd.histogram(x, 7, (0, 300)),
    "histogram with weights": lambda x: vd.histogram(x, 7, (0, 300), density=True, weights=x),
    "nothing": lambda _: vd.unique(vd.Buffer(0, vd.int32)),
}


@pytest.mark.parametrize("name", WAITING)
def test_calls_that_wait_once(name: str) -> None:
    x = array("int32")
    assert reads_of(lambda: WAITING[name](x)) == ["read_into"]


@pytest.mark.parametrize("name", NOT_WAITING)
def test_calls_that_do_not_wait(name: str) -> None:
    x = array("int32")
    assert reads_of(lambda: NOT_WAITING[name](x)) == []


def test_numbers_of_tiles() -> None:
    # more tiles than a workgroup has invocations
    data = RNG.integers(0, 3, 2_400_001).astype(np.uint8)
    x = vd.asbuffer(data)
    np.testing.assert_array_equal(vd.nonzero(x)[0].read(0), np.nonzero(data)[0])
    np.testing.assert_array_equal(vd.compact(x, x).read(0), data[data != 0])
    numbers = RNG.integers(0, 30_000, 60_001).astype(np.int32)
    found = vd.unique(vd.asbuffer(numbers), True, True, True)
    for ours, theirs in zip(found, np.unique(numbers, True, True, True), strict=True):
        np.testing.assert_array_equal(ours.read(0), theirs)


def test_returned_edges_are_not_cached_ones() -> None:
    x = array("float32")
    expected = np.histogram(NUMBERS, 7, (0, 300))
    for outer in ((0, 300), (0.0, 300.0), (0, 300)):
        counts, edges = vd.histogram(x, 7, outer)
        np.testing.assert_array_equal(counts.read(0), expected[0])
        np.testing.assert_array_equal(edges.read(0), expected[1].astype(np.float32))
        edges.write(np.zeros(8, np.float32))
    # equal numbers, other bits
    for first in (0.0, -0.0):
        assert np.signbit(vd.histogram(x, 2, (first, 9.0))[1].read(0)[0]) == np.signbit(
            np.histogram_bin_edges(NUMBERS.astype(np.float32), 2, (first, 9.0))[0]
        )


def test_cache_of_edges_is_bounded() -> None:
    x = array("int32")
    for most in range(100, 300):
        counts, _ = vd.histogram(x, 3, (0, most))
        np.testing.assert_array_equal(counts.read(0), np.histogram(NUMBERS, 3, (0, most))[0])
    assert len(x.context.kept["selection.histogram"]) <= 64
