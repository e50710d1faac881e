"""Fixtures of the tests of transforms."""

import pkgutil
from collections.abc import Iterator

import pytest

import vkdispatch as vd
import vkdispatch.fft


@pytest.fixture
def plans_of_gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have kernels planned as for a GPU, also where the device is a CPU."""
    for module in pkgutil.iter_modules(vkdispatch.fft.__path__, "vkdispatch.fft."):
        monkeypatch.setattr(f"{module.name}.runs_on_cpu", lambda: False, raising=False)
    vd.fft.cache_clear()
    yield
    vd.fft.cache_clear()
