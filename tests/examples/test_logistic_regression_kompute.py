"""Logistic regression, as a program for Kompute and as a native one, agrees with NumPy and SciPy."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    pytest.importorskip("sklearn")
    sys.path.insert(0, str(EXAMPLES))
    try:
        import logistic_regression_kompute

        yield logistic_regression_kompute
    finally:
        sys.path.remove(str(EXAMPLES))


@pytest.mark.parametrize(("cases", "measures"), [(1, 1), (7, 3), (64, 2), (65, 9), (200, 40)])
def test_steps_on_random_cases(example: ModuleType, cases: int, measures: int) -> None:
    rng = np.random.default_rng(cases)
    rows = np.column_stack((rng.normal(size=(cases, measures)), np.ones(cases))).astype(np.float32)
    known = example.Cases(rows, (rng.random(cases) < 0.5).astype(np.float32))
    wanted = example.numpy_train(known, 20)
    found, history = example.train_with_kompute(known, 20)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    np.testing.assert_allclose(history[0], np.log(2), rtol=1e-6)
    np.testing.assert_allclose(example.train_natively(known, 20), wanted, atol=1e-5)


def test_the_figure(example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert example.make_figure(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    shares = [float(share) for share in re.findall(r"right about ([\d.]+)%", capsys.readouterr().out)]
    assert len(shares) == 2 and min(shares) > 95
