"""The examples of Fourier transforms agree with SciPy, on made-up data and on the real."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module", autouse=True)
def _path() -> Iterator[None]:
    sys.path.insert(0, str(EXAMPLES))
    yield
    sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def spectrogram() -> ModuleType:
    import spectrogram

    return spectrogram


@pytest.fixture(scope="module")
def template_matching() -> ModuleType:
    import template_matching

    return template_matching


@pytest.mark.parametrize(("length", "hop", "count"), [(64, 16, 640), (45, 45, 100), (10, 3, 10)])
def test_spectrogram_of_noise(spectrogram: ModuleType, length: int, hop: int, count: int) -> None:
    samples = np.random.default_rng(0).uniform(-1, 1, count).astype(np.float32)
    window = np.hamming(length).astype(np.float32)
    ours = spectrogram.spectrogram(samples, window, hop)
    assert spectrogram.agrees(ours, spectrogram.scipy_spectrogram(samples, window, hop))
    assert not spectrogram.agrees(ours + 0.1, spectrogram.scipy_spectrogram(samples, window, hop))


def test_a_full_sine_has_no_decibels(spectrogram: ModuleType) -> None:
    samples = np.sin(2 * np.pi * 8 / 64 * np.arange(640)).astype(np.float32)
    levels = spectrogram.spectrogram(samples, np.ones(64, np.float32), 32)
    np.testing.assert_allclose(levels[:, 8], 0, atol=1e-4)
    assert np.delete(levels, 8, axis=1).max() < -80


def test_spectrogram_of_the_recording(spectrogram: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    try:
        spectrogram.find_recording()
    except spectrogram.NoRecordingError as error:
        pytest.skip(str(error))
    assert spectrogram.make_figure(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


@pytest.mark.parametrize(("shape", "size"), [((20, 30), (5, 7)), ((37, 16), (37, 1)), ((9, 9), (2, 2))])
def test_matching_in_noise(
    template_matching: ModuleType, shape: tuple[int, int], size: tuple[int, int]
) -> None:
    picture = np.random.default_rng(1).random(shape, np.float32)
    row, column = (shape[0] - size[0]) // 2, (shape[1] - size[1]) // 2
    template = picture[row : row + size[0], column : column + size[1]]
    correct, likeness = template_matching.check(picture, template)
    assert correct
    assert likeness.shape == (shape[0] - size[0] + 1, shape[1] - size[1] + 1)
    assert np.unravel_index(likeness.argmax(), likeness.shape) == (row, column)


def test_coins(template_matching: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert template_matching.make_figure(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
