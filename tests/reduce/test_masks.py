"""The argument `where`: masks of other shapes that NumPy broadcasts."""

from __future__ import annotations

import numpy as np
import pytest

import vkdispatch as vd


@pytest.mark.parametrize(
    ("shape", "mask"),
    [
        ((1, 31), (31,)),
        ((4, 5), (5,)),
        ((4, 5), (4, 1)),
        ((1, 5, 1), (5, 1)),
        ((2, 3, 4), (3, 1)),
        ((7,), (1,)),
    ],
)
def test_masks_of_fewer_elements_or_axes(shape: tuple[int, ...], mask: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=np.int32).reshape(shape) + 1
    keep = np.arange(np.prod(mask)).reshape(mask) % 2 == 0
    x, where = vd.asbuffer(values), vd.asbuffer(keep)
    for axis in (None, *range(-len(shape), 0)):
        expected = np.sum(values, axis=axis, where=keep)
        np.testing.assert_array_equal(vd.sum(x, axis=axis, where=where).read(0), expected)


def test_columns_of_wide_loads_whose_mask_has_too_few_bytes() -> None:
    values = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)
    keep = values % 3 != 1
    x, where = vd.asbuffer(values), vd.asbuffer(keep)
    for axis in (0, 1):
        np.testing.assert_array_equal(vd.sum(x, axis=axis, where=where).read(0), values.sum(axis, where=keep))
