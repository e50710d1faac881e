"""Signals of the FFT tests, and how far an outcome is from the truth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import vkdispatch as vd

Array = Any


def device_has(kind: type[vd.dtype]) -> bool:
    """Whether the device computes with a complex type."""
    return kind is not vd.complex128 or bool(vd.get_devices()[0].float_64_support)


def complex_signal(*shape: int, seed: int = 0, dtype: type[np.generic] = np.complex64) -> Array:
    generator = np.random.default_rng((seed, *shape))
    return (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(dtype)


def real_signal(*shape: int, seed: int = 0, dtype: type[np.generic] = np.float32) -> Array:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(dtype)


def filled(array: Array, kind: type[vd.dtype]) -> Any:
    """Return a buffer of a complex type that holds an array."""
    buffer: Any = vd.Buffer(array.shape, kind)
    if kind is vd.complex32:
        buffer.write(np.stack([array.real, array.imag], -1).astype(np.float16))
    else:
        buffer.write(array.astype(np.complex64 if kind is vd.complex64 else np.complex128))
    return buffer


def error(outcome: Array, truth: Array) -> float:
    """Relative error in the L2 norm."""
    assert outcome.shape == truth.shape
    norm = float(np.linalg.norm(truth.ravel()))
    return float(np.linalg.norm((outcome - truth).ravel())) / (norm or 1.0)


def bound(length: int, kind: type[vd.dtype] = vd.complex64) -> float:
    """What the relative error of a transform may be."""
    unit = {vd.complex32: 2e-3, vd.complex64: 2e-7, vd.complex128: 4e-16}[kind]
    return unit * math.sqrt(max(math.log2(max(length, 2)), 1))


def check_convolution(a: Array, k: Array) -> None:
    """Convolve lines along the last axis by kernels in both layouts, and compare with NumPy."""
    truth = np.fft.ifft(np.fft.fft(a.astype(np.complex128)) * np.conj(k))
    buffer, kernel = vd.asbuffer(a), vd.asbuffer(k)
    vd.fft.convolve(buffer, kernel)
    assert error(buffer.read(0), truth) < 4 * bound(a.shape[-1])
    layout = vd.fft.transpose(kernel)
    buffer.write(a)
    vd.fft.convolve(buffer, layout, transposed_kernel=True)
    assert error(buffer.read(0), truth) < 4 * bound(a.shape[-1])
