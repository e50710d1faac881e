"""The example's sections against NumPy, on pictures of awkward sizes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.orders.here import available

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    sys.path.insert(0, str(EXAMPLES))
    try:
        import orders_smoothing

        yield orders_smoothing
    finally:
        sys.path.remove(str(EXAMPLES))


@pytest.mark.parametrize("shape", [(1, 1), (2, 40), (37, 31)])
def test_sections_agree_with_numpy(example: ModuleType, shape: tuple[int, int]) -> None:
    noisy = np.random.default_rng(5).random(shape, np.float32)
    clean = np.zeros_like(noisy)
    accel, times = example.smooth(noisy, clean)
    np.testing.assert_allclose(clean, example.numpy_smoothed(noisy), atol=1e-6)
    here = available("cuda", "hip", "openacc_cpp", "openmp_cpp", "openmp_fortran", "cpp")
    assert set(accel.verification.models) == set(here)
    assert accel.model == next(iter(times))
