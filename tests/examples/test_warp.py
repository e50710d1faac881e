"""The example that samples a photograph, against its references."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def warp() -> Iterator[ModuleType]:
    sys.path.insert(0, str(EXAMPLES))
    try:
        import warp

        yield warp
    finally:
        sys.path.remove(str(EXAMPLES))


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (33, 17), (64, 16)])
@pytest.mark.parametrize(("angle", "scale"), [(0.0, 1.0), (0.3, 1.5), (-2.0, 3.0)])
def test_rotation(warp: ModuleType, shape: tuple[int, int], angle: float, scale: float) -> None:
    picture = np.random.default_rng(0).random((37, 53, 3), np.float32)
    ours = warp.Warper(picture).run(shape, angle, scale)
    np.testing.assert_allclose(ours, warp.scipy_warp(picture, shape, angle, scale), atol=warp.TOLERANCE)


def test_reduction(warp: ModuleType) -> None:
    picture = np.random.default_rng(0).random((40, 64, 3), np.float32)
    ours = warp.Warper(picture).run((10, 16), 0.0, 1 / 4)
    np.testing.assert_allclose(ours, warp.block_means(picture, 4), atol=warp.TOLERANCE)


def test_program_runs(warp: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert warp.main(tmp_path / "out" / "warp.png") == 0
    assert (tmp_path / "out" / "warp.png").exists()
    assert capsys.readouterr().out.count(": ok") == 2
    assert not warp.agrees("turned", np.ones((2, 2)), np.zeros((2, 2)))
    assert not warp.agrees("turned", np.full((2, 2), np.nan), np.zeros((2, 2)))
