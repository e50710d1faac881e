"""`vd.vkfft` as programs written for vkdispatch 0.1.0 call it."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd


def names(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_names_and_parameters() -> None:
    vkfft = vd.vkfft
    transforms = [
        f"{way}{dimensions}" for way in ("fft", "ifft", "rfft", "irfft") for dimensions in ("", 2, 3)
    ]
    others = ["VkFFTPlan", "clear_plan_cache", "convolve2D", "transpose_kernel2D"]
    assert sorted(vkfft.__all__) == sorted([*transforms, *others])
    assert names(vkfft.fft) == [
        *("buffer", "input_buffer", "buffer_shape", "graph", "print_shader", "axis", "inverse"),
        *("normalize_inverse", "r2c"),
    ]
    for name in ("fft2", "fft3", "ifft2", "ifft3", "rfft2", "rfft3", "irfft2", "irfft3"):
        assert names(getattr(vkfft, name)) == ["buffer", "graph", "print_shader"]
    assert names(vkfft.ifft) == ["buffer", "graph", "print_shader", "axis", "normalize"]
    assert names(vkfft.rfft) == ["buffer", "graph", "print_shader", "axis"]
    assert names(vkfft.irfft) == ["buffer", "graph", "print_shader", "normalize", "axis"]
    assert names(vkfft.transpose_kernel2D) == ["kernel", "shape", "graph", "keep_shader_code"]
    assert names(vkfft.convolve2D) == [
        *("buffer", "kernel", "normalize", "conjugate_kernel", "graph", "keep_shader_code", "padding")
    ]
    assert names(vkfft.VkFFTPlan) == [
        *("shape", "do_r2c", "axes", "normalize", "padding", "pad_frequency_domain", "kernel_count"),
        *("input_shape", "input_type", "kernel_convolution", "conjugate_convolution", "convolution_features"),
        *("num_batches", "single_kernel_multiple_batches", "keep_shader_code"),
    ]
    assert names(vkfft.VkFFTPlan.record)[1:] == ["graph", "buffer", "inverse", "kernel", "input"]
    assert names(vkfft.VkFFTPlan.record_forward)[1:] == names(vkfft.VkFFTPlan.record_inverse)[1:]


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
