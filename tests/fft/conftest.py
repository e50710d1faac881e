"""Fixtures of the tests of transforms."""

import pytest


@pytest.fixture
def plans_of_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have kernels planned as for a GPU, also where the device is a CPU."""
    monkeypatch.setenv("VKDISPATCH_PLAN", "gpu")


@pytest.fixture
def plans_of_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have kernels planned as for a CPU, also where the device is a GPU."""
    monkeypatch.setenv("VKDISPATCH_PLAN", "cpu")
