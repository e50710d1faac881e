"""The examples of functions on arrays: nearest neighbours, and brightness spread evenly."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
try:
    import equalize
    import nearest_digits
finally:
    sys.path.pop(0)


@pytest.mark.parametrize(("rows", "known", "count"), [(1, 1, 1), (3, 40, 5), (33, 65, 7)])
def test_nearest_rows(rows: int, known: int, count: int) -> None:
    random = np.random.default_rng(rows)
    pictures = random.integers(0, 17, (rows, 64)).astype(np.float32)
    others = random.integers(0, 17, (known, 64)).astype(np.float32)
    others[-1] = others[0]
    values, indices = nearest_digits.nearest(pictures, others, count)
    exact = ((pictures[:, None].astype(int) - others[None].astype(int)) ** 2).sum(axis=2)
    order = np.argsort(exact, axis=1, kind="stable")[:, :count]
    assert np.array_equal(indices, order)
    assert np.array_equal(values, np.take_along_axis(exact, order, 1))


def test_most_frequent_names() -> None:
    labels = np.array([7, 7, 2, 2, 9])
    found = nearest_digits.named(labels, np.array([[0, 1, 2], [4, 3, 2], [0, 2, 4]]))
    assert found.tolist() == [7, 2, 2]


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (37, 41)])
def test_brightness_is_spread(shape: tuple[int, int]) -> None:
    photo = np.random.default_rng(5).integers(0, 256, (*shape, 3), np.uint8)
    ours = equalize.equalized(photo)
    grey, theirs = equalize.reference(photo)
    assert ours.shape == grey.shape == shape
    assert np.abs(ours - theirs).max() <= equalize.TOLERANCE


def test_photograph_is_spread(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert equalize.main(tmp_path / "out" / "equalize.png") == 0
    assert (tmp_path / "out" / "equalize.png").exists()
    assert "ok" in capsys.readouterr().out
