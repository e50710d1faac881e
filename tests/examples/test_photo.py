"""The example's kernels against their references, on pictures of awkward sizes."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def photo() -> Iterator[ModuleType]:
    sys.path.insert(0, str(EXAMPLES))
    try:
        import photo

        yield photo
    finally:
        sys.path.remove(str(EXAMPLES))


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (33, 17), (64, 16)])
def test_device_agrees_with_cpu(photo: ModuleType, shape: tuple[int, int]) -> None:
    noisy = np.random.default_rng(3).random((*shape, 3), np.float32)
    window = photo.gaussian_window()
    clean, edges = photo.Device(shape).run(noisy, window)
    np.testing.assert_allclose(clean, photo.numpy_denoise(noisy, window), atol=1e-5)
    np.testing.assert_allclose(edges, photo.scipy_edges(clean), atol=1e-5)


def test_a_graph_gives_the_same_each_time(photo: ModuleType) -> None:
    noisy = np.random.default_rng(4).random((20, 30, 3), np.float32)
    device = photo.Device((20, 30))
    first = device.run(noisy, photo.gaussian_window())
    for _ in range(5):
        again = device.run(noisy, photo.gaussian_window())
        assert np.array_equal(first[0], again[0])
        assert np.array_equal(first[1], again[1])


def test_scikit_image_agrees_with_its_own_window(photo: ModuleType) -> None:
    noisy = photo.noisy_photo()[100:160, 200:290]
    clean, _ = photo.Device(noisy.shape[:2]).run(noisy, photo.scikit_image_window())
    np.testing.assert_allclose(clean, photo.scikit_image_denoise(noisy), atol=2e-4)


def test_demo_fails_on_wrong_results(photo: ModuleType) -> None:
    ones = np.ones((4, 4))
    assert photo.agrees("edges, SciPy", ones, ones)
    assert not photo.agrees("edges, SciPy", ones, ones + 1e-3)
    assert not photo.agrees("edges, SciPy", ones * np.nan, ones)


@pytest.mark.parametrize("spelling", ["abbreviations", "abreviations"])
def test_scale_inplace(spelling: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text((EXAMPLES / "scale_inplace.py").read_text().replace("abreviations", spelling))
    variables = runpy.run_path(str(program))
    assert variables["out"].tolist() == [2.0 * i for i in range(16)]
    assert "[ 0.  2.  4." in capsys.readouterr().out
