"""Rows and columns that several workgroups share, with values that show wrong partial results."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.scans.planning import tuning


@pytest.mark.parametrize(("shape", "axis"), [((3, 30011), 1), ((2, 5, 9001), 2), ((30011, 7), 0)])
@pytest.mark.parametrize("reverse", [False, True])
def test_identities_other_than_zero(
    shape: tuple[int, ...], axis: int, reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "lookback", 0)
    x = 1 + np.random.default_rng(1).random(shape, np.float32)
    # no segment begins in most of the ranges
    begins = np.random.default_rng(2).random(shape) < 1e-4
    given = np.flip(x, axis) if reverse else x
    exact = np.minimum.accumulate(given, axis=axis)
    found = vd.cummin(vd.asbuffer(x), axis, reverse=reverse).read(0)
    assert np.array_equal(found, np.flip(exact, axis) if reverse else exact)

    found = vd.cummin(vd.asbuffer(x), axis, reverse=reverse, segments=vd.asbuffer(begins)).read(0)
    lines, flags = (np.moveaxis(array, axis, -1).reshape(-1, shape[axis]) for array in (x, begins))
    for line, flag, got in zip(lines, flags, np.moveaxis(found, axis, -1).reshape(lines.shape), strict=True):
        edges = [0, *np.flatnonzero(flag[1:]) + 1, line.size]
        for start, end in pairwise(edges):
            part = line[start:end][::-1] if reverse else line[start:end]
            want = np.minimum.accumulate(part)
            assert np.array_equal(got[start:end], want[::-1] if reverse else want)
