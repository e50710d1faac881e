"""The inverse transform of a convolution: with reversed radices, or after a shuffle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from tests.fft.signals import bound, complex_signal, error
from vkdispatch.fft import convolving as plans
from vkdispatch.fft.plan.passes import plan_pass


@pytest.fixture(params=[True, False], ids=["reversed", "shuffled"])
def _plans(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    vd.fft.cache_clear()
    if not request.param:
        monkeypatch.setattr(plans, "plan_inverse", lambda plan: plan)
    yield
    vd.fft.cache_clear()


@pytest.mark.usefixtures("_plans")
@pytest.mark.parametrize(("shape", "axis"), [((3, 210), 1), ((64, 5), 0), ((2, 2048), 1), ((2, 66, 3), 1)])
def test_convolution_with_either_plan(shape: tuple[int, ...], axis: int) -> None:
    a, k = complex_signal(*shape), complex_signal(*shape, seed=1)
    truth = np.fft.ifft(np.fft.fft(a.astype(np.complex128), axis=axis) * np.conj(k), axis=axis)
    buffer, kernel = vd.asbuffer(a), vd.asbuffer(k)
    vd.fft.convolve(buffer, kernel, axis=axis)
    assert error(buffer.read(0), truth) < 2 * bound(shape[axis])


def test_no_shuffle_is_needed() -> None:
    for length in (128, 210, 90):
        plan: Any = plan_pass((8, length), 1, vd.complex64)
        inverse = plans.plan_inverse(plan)
        assert inverse.split.radices == plan.split.radices[::-1] and inverse.grid == plan.grid
        barriers = vd.fft.convolve_src((8, length)).code.count("barrier()")
        exchanges = len(plan.split.radices) - 1
        assert barriers <= (4 * exchanges - 1) * plan.layout.parts * plan.layout.chunks
