"""`vd.vkfft` as programs written for vkdispatch 0.1.0 call it."""

from __future__ import annotations

import numpy as np
import pytest

import vkdispatch as vd


def test_names() -> None:
    vkfft = vd.vkfft
    transforms = [
        f"{way}{dimensions}" for way in ("fft", "ifft", "rfft", "irfft") for dimensions in ("", 2, 3)
    ]
    others = ["VkFFTPlan", "clear_plan_cache", "convolve2D", "transpose_kernel2D"]
    assert sorted(vkfft.__all__) == sorted([*transforms, *others])


def test_recording_on_the_default_graph_submits() -> None:
    signal = (np.arange(24) % 7 + 1j).astype(np.complex64).reshape(4, 6)
    buffer = vd.asbuffer(signal)
    plan = vd.vkfft.VkFFTPlan((4, 6))
    plan.record_forward(vd.global_graph(), buffer)
    np.testing.assert_allclose(buffer.read(0), np.fft.fft2(signal), atol=1e-4)
    plan.record_inverse(vd.global_graph(), buffer)
    np.testing.assert_allclose(buffer.read(0), signal * 24, atol=1e-4)


def test_dimensions() -> None:
    with pytest.raises(ValueError):
        vd.vkfft.fft2(vd.Buffer((4,), vd.complex64))
    with pytest.raises(ValueError):
        vd.vkfft.VkFFTPlan((2, 2, 2, 2))
