"""Any shape, axis, direction and segments, by hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import vkdispatch as vd

from .truth import scanned

_LENGTHS = st.one_of(st.integers(1, 40), st.sampled_from([63, 64, 65, 255, 256, 257, 1023, 1025]))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.data())
def test_any_shape(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(_LENGTHS, min_size=1, max_size=3)))
    if np.prod(shape) > 200_000:
        shape = shape[:2]
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    exclusive, reverse = data.draw(st.booleans()), data.draw(st.booleans())
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    x = rng.integers(-9, 9, shape).astype(np.int32)
    starts = rng.random(shape) < data.draw(st.sampled_from([0.0, 0.01, 0.5]))
    segmented = data.draw(st.booleans())
    result = vd.cumsum(
        vd.asbuffer(x),
        axis,
        np.int32,
        exclusive=exclusive,
        reverse=reverse,
        segments=vd.asbuffer(starts) if segmented else None,
    ).read(0)
    expected = scanned(
        "cumsum",
        x,
        axis,
        exclusive=0 if exclusive else None,
        reverse=reverse,
        starts=starts if segmented else None,
        dtype=np.int32,
    )
    np.testing.assert_array_equal(result, expected)
