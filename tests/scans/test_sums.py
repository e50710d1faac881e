"""Exclusive sums of counts, on which compaction and top-k depend."""

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.scans.launching import exclusive_sum


@pytest.mark.parametrize("size", [1, 2, 7, 255, 256, 2047, 2048, 2049, 5000, 3 * 2048 * 2048 + 5])
def test_exclusive_sums(size: int) -> None:
    counts = np.random.default_rng(size).integers(0, 9, size).astype(np.uint32)
    sums = exclusive_sum(vd.asbuffer(counts)).read(0)
    assert sums.tolist() == [0, *np.cumsum(counts, dtype=np.uint32).tolist()]


def test_overflow_and_out() -> None:
    counts = np.full(5, 2**31, np.uint32)
    out = vd.Buffer(6, vd.uint32)
    assert exclusive_sum(vd.asbuffer(counts), out=out) is out
    assert out.read(0).tolist() == [0, 2**31, 0, 2**31, 0, 2**31]
