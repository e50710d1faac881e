"""Errors of sums of floats, and that their bits are reproducible."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd

from .truth import tuned


def bound(x: np.ndarray[Any, Any], unit: float) -> np.ndarray[Any, Any]:
    """Return an error bound: each sum is a tree of few levels above runs of few elements."""
    depth = 64 + 4 * math.log2(max(x.size, 2))
    return depth * unit * np.cumsum(np.abs(x.astype(np.float64)))


@pytest.mark.parametrize("size", [1000, 200_003])
def test_error_is_within_the_bound_of_pairwise_sums(size: int) -> None:
    rng = np.random.default_rng(size)
    for x in (rng.random(size), rng.standard_normal(size) * 10.0 ** rng.integers(-6, 6, size)):
        single = x.astype(np.float32)
        exact = np.cumsum(single.astype(np.float64))
        for options in ({}, {"lookback": 0, "bytes_each": 16, "few_cpu": 4}):
            with tuned(**options):
                error = np.abs(vd.cumsum(vd.asbuffer(single)).read(0) - exact)
            assert (error <= bound(single, 2.0**-24)).all()


def test_error_is_smaller_than_that_of_sequential_sums() -> None:
    x = np.full(300_000, 0.1, np.float32)
    exact = np.arange(1, x.size + 1) * float(Fraction(float(x[0])))
    ours = np.abs(vd.cumsum(vd.asbuffer(x)).read(0) - exact).max()
    assert ours * 10 < np.abs(np.cumsum(x) - exact).max()


def test_bits_are_reproducible() -> None:
    rng = np.random.default_rng(1)
    for shape, axis in (((100_003,), 0), ((300, 500), 0), ((300, 500), 1)):
        x = vd.asbuffer(rng.standard_normal(shape).astype(np.float32))
        first = vd.cumsum(x, axis).read(0)
        for _ in range(5):
            assert vd.cumsum(x, axis).read(0).tobytes() == first.tobytes()
