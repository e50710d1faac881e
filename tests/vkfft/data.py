"""Random arrays, and the error of a result."""

from __future__ import annotations

from typing import Any

import numpy as np

TOLERANCE = {np.dtype(np.complex64): 6e-7, np.dtype(np.complex128): 3e-15}


def complexes(shape: Any, kind: Any = np.complex64, seed: int = 0) -> Any:
    """Return normally distributed complex numbers."""
    random = np.random.default_rng(seed)
    return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(kind)


def reals(shape: Any, kind: Any = np.float32, seed: int = 0) -> Any:
    """Return normally distributed numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(kind)


def distance(result: Any, truth: Any) -> float:
    """Return the relative L2 error. NaN is an error of infinity."""
    assert result.shape == truth.shape
    error = float(np.linalg.norm(result - truth) / max(float(np.linalg.norm(truth)), 1e-30))
    return error if error == error else float("inf")
