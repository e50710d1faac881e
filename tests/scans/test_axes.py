"""Scans along any axis: rows that begin anywhere in a vector, and columns; few and many of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd

from .truth import scanned

SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((1, 1), (0, 1)),
    ((2, 3), (-2, -1)),
    ((33, 31), (0, 1)),
    ((600, 64), (0, 1)),
    ((3, 20_001), (0, 1)),
    ((20_001, 3), (0, 1)),
    ((4, 1000, 6), (0, 1, 2)),
]


def check(x: np.ndarray[Any, Any], axis: int, **options: Any) -> None:
    identity = 0 if options.get("exclusive") else None
    result = vd.cumsum(vd.asbuffer(x), axis, dtype=x.dtype, **options)
    assert result.shape == x.shape
    expected = scanned("cumsum", x, axis, **{**options, "exclusive": identity}, dtype=x.dtype)
    np.testing.assert_array_equal(result.read(0), expected, f"{x.shape} along {axis}")


def test_every_axis() -> None:
    rng = np.random.default_rng(0)
    for shape, axes in SHAPES:
        x = rng.integers(-9, 9, shape).astype(np.float32)
        for axis in axes:
            check(x, axis)


def test_small_elements() -> None:
    # rows that are shorter than a load
    for shape, axes in SHAPES[3:]:
        x = np.random.default_rng(1).integers(0, 200, shape).astype(np.uint8)
        for axis in axes:
            check(x, axis)


@pytest.mark.parametrize(("exclusive", "reverse"), [(False, True), (True, False), (True, True)])
def test_directions(exclusive: bool, reverse: bool) -> None:
    for shape in ((40, 44), (20_001, 4), (7, 130, 3)):
        x = np.random.default_rng(2).integers(-9, 9, shape).astype(np.int32)
        for axis in range(x.ndim):
            check(x, axis, exclusive=exclusive, reverse=reverse)


def test_axis_none_flattens() -> None:
    x = np.random.default_rng(3).integers(-9, 9, (30, 50)).astype(np.int32)
    result = vd.cumsum(vd.asbuffer(x))
    assert result.shape == (1500,)
    np.testing.assert_array_equal(result.read(0), np.cumsum(x))


def test_nan_stays_in_its_row() -> None:
    x = np.ones((50, 70), np.float32)
    x[7, 30] = np.nan
    x[9, 0] = np.inf
    for axis in (0, 1):
        for name in ("cumsum", "cummax", "cummin"):
            np.testing.assert_array_equal(
                getattr(vd, name)(vd.asbuffer(x), axis).read(0), scanned(name, x, axis), name
            )


@pytest.mark.parametrize("axis", [2, -3, 1.5, "0", (0, 1)])
def test_invalid_axes(axis: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="axis"):
        vd.cumsum(vd.asbuffer(np.zeros((2, 3), np.float32)), axis)
