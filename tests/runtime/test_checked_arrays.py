"""Functions on arrays whose kernels are checked on the device: arrays smaller than what their loads take."""

from __future__ import annotations

import numpy as np
import pytest

import vkdispatch as vd


@pytest.mark.parametrize("count", [1, 2, 3])
def test_arrays_of_few_bytes(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VKDISPATCH_CHECK", "1")
    values = np.arange(count, 0, -1).astype(np.int16)
    x = vd.asbuffer(values)
    np.testing.assert_array_equal(vd.cumsum(x).read(0), np.cumsum(values))
    np.testing.assert_array_equal(vd.sort(x).read(0), np.sort(values))
    np.testing.assert_array_equal(vd.unique(x).read(0), np.unique(values))
    np.testing.assert_array_equal(vd.compact(x, vd.asbuffer(values > 1)).read(0), values[values > 1])
    assert vd.sum(x).read(0) == values.sum()
