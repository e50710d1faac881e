"""How exact sums are, and that they are the same every time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.reduce import SubgroupAdd

from .reductions import answer, plain

total = plain(SubgroupAdd, vd.float32)


def _adversarial(kind: str, size: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(size)
    if kind == "equal":
        return np.full(size, 0.1, np.float32)  # each addition to a large sum rounds the same way
    if kind == "wide":
        return (rng.random(size) * 10.0 ** rng.integers(-6, 7, size)).astype(np.float32)
    if kind == "cancelling":
        half = (rng.random(size // 2) * 10.0 ** rng.integers(-3, 4, size // 2)).astype(np.float32)
        data = np.concatenate([half, -half, np.full(size % 2, 1e-3, np.float32)])
        return rng.permutation(data)
    return np.sort(rng.exponential(size=size).astype(np.float32))[::-1].copy()


def _allowed(data: np.ndarray[Any, Any]) -> float:
    """Return the worst error of pairwise summation as NumPy does it.

    Blocks of 128 elements are added up by 8 sums, of 16 additions each, and the blocks in pairs.
    """
    steps = 15 + 3 + max(0, math.ceil(math.log2(max(1, data.size / 128))))
    return steps * float(np.finfo(np.float32).eps) / 2 * float(np.abs(data).sum(dtype=np.float64))


@pytest.mark.parametrize("kind", ["equal", "wide", "cancelling", "falling"])
def test_sums_are_as_exact_as_pairwise_sums(kind: str) -> None:
    for size in (129, 10_007, 1 << 20):
        data = _adversarial(kind, size)
        exact = math.fsum(data.tolist())
        error = abs(float(answer(total(vd.asbuffer(data)))) - exact)
        assert error <= _allowed(data), size
        # most sums are far better than the worst case
        assert error <= max(4 * abs(float(data.sum()) - exact), _allowed(data) / 4), size


def test_sequential_sums_are_less_exact() -> None:
    data = _adversarial("equal", 1 << 20)
    one_by_one = float(np.cumsum(data)[-1])
    assert abs(one_by_one - math.fsum(data.tolist())) > _allowed(data)


def test_sums_of_rows() -> None:
    data = _adversarial("wide", 12 * 70_001).reshape(12, 70_001)
    found = answer(plain(SubgroupAdd, vd.float32, [1])(vd.asbuffer(data)))
    for row, sum_of_row in zip(data, found, strict=True):
        assert abs(float(sum_of_row) - math.fsum(row.tolist())) <= _allowed(row)


@pytest.mark.parametrize("shape", [(777,), (200_003,), (3, 70_000), (70_000, 3)], ids=str)
def test_the_same_bits_every_time(shape: tuple[int, ...]) -> None:
    data = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    buffer = vd.asbuffer(data)
    for axes in (None, [0], [-1]):
        reduction = plain(SubgroupAdd, vd.float32, axes)
        first = answer(reduction(buffer))
        for _ in range(3):
            assert np.array_equal(answer(reduction(buffer)), first)
        # also by another function, and from another buffer
        assert np.array_equal(answer(plain(SubgroupAdd, vd.float32, axes)(vd.asbuffer(data))), first)
