"""Products as the tests make them: of small integers, which every type adds up exactly."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.record import replace
from vkdispatch.families.tuning import device_facts
from vkdispatch.matrices import plans, product

Shape = tuple[int, ...]


def numbers(shape: Shape, kind: Any, seed: int = 0) -> Any:
    """Return small numbers of a NumPy type, the same for equal arguments."""
    rng = np.random.default_rng(zlib.crc32(repr((shape, np.dtype(kind).name, seed)).encode()))
    if np.dtype(kind) == bool:
        return rng.random(shape) < 0.15
    low = 0 if np.dtype(kind).kind == "u" else -3
    values = rng.integers(low, 4, shape)
    if np.dtype(kind).kind == "c":
        values = values + 1j * rng.integers(-3, 4, shape)
    return values.astype(kind)


def plan_for(monkeypatch: pytest.MonkeyPatch, *, cpu: bool, **tuning: Any) -> None:
    """Let products be planned for a processor, or for a GPU, by a tuning with these changes."""
    facts = replace(device_facts(), is_cpu=cpu)
    monkeypatch.setattr(product, "device_facts", lambda: facts)
    monkeypatch.setattr(plans, "tuning", replace(plans.tuning, **tuning))


def swapped(x: Any, swap: bool) -> Any:
    """Return an array with the last two axes swapped, if so."""
    return np.swapaxes(x, -1, -2) if swap else x


def check(
    a: Shape,
    b: Shape,
    kind: Any = np.float32,
    other: Any = None,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> None:
    """Compare the product of matrices of these shapes, as they are multiplied, with NumPy's."""
    x, y = numbers(a, kind, 1), numbers(b, kind if other is None else other, 2)
    want = np.matmul(x, y)
    first = vd.asbuffer(np.ascontiguousarray(swapped(x, transpose_a)))
    second = vd.asbuffer(np.ascontiguousarray(swapped(y, transpose_b)))
    got = vd.matmul(first, second, transpose_a=transpose_a, transpose_b=transpose_b).read(0)
    assert got.shape == want.shape and got.dtype == want.dtype, (a, b, got.shape, got.dtype)
    assert np.array_equal(got, want), (a, b, kind, other, transpose_a, transpose_b)
