"""Expected results of scans, from NumPy, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from vkdispatch.scans.planning import tuning

UFUNCS = {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum}


def scanned(
    name: str,
    x: np.ndarray[Any, Any],
    axis: int | None = None,
    *,
    exclusive: Any = None,
    reverse: bool = False,
    starts: np.ndarray[Any, Any] | None = None,
    dtype: Any = None,
) -> np.ndarray[Any, Any]:
    """Scan as the documentation says; `exclusive` is the identity, `starts` are flags of x's shape."""
    if axis is None:
        x, axis = x.reshape(-1), 0
        starts = None if starts is None else starts.reshape(-1)
    if name in ("cumsum", "cumprod"):
        dtype = getattr(np, name)(x[:0].reshape(-1), dtype=dtype).dtype
    moved = np.moveaxis(x, axis, -1)
    rows = moved.reshape(-1, x.shape[axis])
    flags = None if starts is None else np.moveaxis(starts, axis, -1).reshape(rows.shape)
    out = np.empty(rows.shape, dtype or x.dtype)
    for i, row in enumerate(rows):
        begins = [] if flags is None else np.flatnonzero(flags[i])
        for part in np.split(np.arange(row.size), begins):
            values = row[part][::-1] if reverse else row[part]
            found = UFUNCS[name].accumulate(values, dtype=out.dtype)
            if exclusive is not None:
                found = np.concatenate([np.full(1, exclusive, out.dtype), found])[: part.size]
            out[i, part] = found[::-1] if reverse else found
    return np.moveaxis(out.reshape(moved.shape), -1, axis)


@contextmanager
def tuned(**changes: Any) -> Iterator[None]:
    """Plan with other numbers."""
    before = {name: getattr(tuning, name) for name in changes}
    for name, number in changes.items():
        setattr(tuning, name, number)
    try:
        yield
    finally:
        for name, number in before.items():
            setattr(tuning, name, number)
