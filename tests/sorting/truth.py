"""Expected results of sorts, from NumPy; and arrays with the special values of each dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

import vkdispatch as vd

Array = np.ndarray[Any, Any]

KINDS = [
    vd.int8, vd.uint8, vd.int16, vd.uint16, vd.int32, vd.uint32, vd.int64, vd.uint64, vd.bool_,
    vd.float16, vd.float32, vd.float64, vd.complex64, vd.complex128,
]  # fmt: skip


def order(x: Array, axis: int = -1, *, descending: bool = False) -> Array:
    """Return the positions of a stable sort; if `descending` the largest first, equal keys as they lay."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    backward = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    return x.shape[axis] - 1 - backward


def ordered(x: Array, axis: int = -1, *, descending: bool = False) -> Array:
    """Return what is sorted so."""
    return np.take_along_axis(x, order(x, axis, descending=descending), axis)


def keys(kind: Any, shape: Any, seed: int = 0, *, few: bool = False) -> Array:
    """Return numbers of all magnitudes, NaNs and zeros of both signs, infinities, and equals."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(bool if kind is vd.bool_ else kind.name)
    size = int(np.prod(shape))
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low, high = (0, 5) if few else (info.min, info.max)
        found = rng.integers(low, high, size, dtype=dtype, endpoint=True)
        found[rng.random(size) < 0.02] = info.min
        found[rng.random(size) < 0.02] = info.max
        return found.reshape(shape)
    if dtype.kind == "c":
        part = vd.float32 if kind is vd.complex64 else vd.float64
        made = np.empty(shape, dtype)
        made.real, made.imag = keys(part, shape, seed + 1, few=True), keys(part, shape, seed + 2, few=few)
        return made
    if few:
        floats = rng.integers(-2, 3, size).astype(dtype)
    else:
        # any bits are a valid float
        words = rng.integers(0, 1 << 16, (size, dtype.itemsize // 2), dtype=np.uint16)
        floats = words.view(dtype).reshape(size).copy()
    for value in (0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, np.finfo(dtype).tiny, np.finfo(dtype).max):
        floats[rng.random(size) < 0.02] = value
    return floats.reshape(shape)


def assert_same_bits(found: Array, expected: Array) -> None:
    """Assert that arrays are the same, NaNs and signs of zeros too."""
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    as_bytes = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (found, expected))
    np.testing.assert_array_equal(*as_bytes)
