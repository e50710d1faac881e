"""Transforms with VkFFT against NumPy: lengths, axes, dtypes, separate inputs, real data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch import vkfft

from .data import TOLERANCE, complexes, distance, reals

CLOSE = 6e-7


# One pass, several passes, factors of 2, 3, 5, 7, 13, Rader's and Bluestein's algorithms.
@pytest.mark.parametrize("length", [1, 2, 9, 13, 17, 30, 47, 64, 182, 1021, 1155, 16384])
def test_lengths_forward_and_inverse(length: int) -> None:
    signal = complexes((2, length))
    buffer = vd.asbuffer(signal)
    vkfft.fft(buffer)
    assert distance(buffer.read(0), np.fft.fft(signal)) < CLOSE
    vkfft.ifft(buffer)
    assert distance(buffer.read(0), signal) < CLOSE


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((6, 10), (0,)),
        ((6, 10), (-2, -1)),
        ((4, 6, 5), (0,)),
        ((4, 6, 5), (-2,)),
        ((4, 6, 5), [0, 2]),
        ((4, 6, 5), (0, 1)),
        ((4, 6, 5), (0, 1, 2)),
        ((1, 9, 1), (0, 1, 2)),
        ((5, 1, 3), (1, 2)),
        ((3, 1, 4), (0,)),
    ],
)
def test_axes(shape: tuple[int, ...], axes: Any) -> None:
    signal = complexes(shape)
    buffer, apart = vd.asbuffer(signal), vd.Buffer(shape, vd.complex64)
    source = vd.asbuffer(signal)
    truth = np.fft.fftn(signal, axes=axes)
    vkfft.fft(buffer, axis=axes)
    vkfft.fft(apart, source, axis=axes)
    assert distance(buffer.read(0), truth) < CLOSE
    assert distance(apart.read(0), truth) < CLOSE
    vkfft.ifft(buffer, axis=axes, normalize=False)
    count = np.prod([shape[axis] for axis in axes])
    assert distance(buffer.read(0), signal * count) < CLOSE
    np.testing.assert_array_equal(source.read(0), signal)
    vkfft.fft(apart, source, axis=axes, inverse=True)
    assert distance(apart.read(0), np.fft.ifftn(signal, axes=axes)) < CLOSE


def test_functions_of_two_and_three_axes() -> None:
    signal = complexes((4, 6, 5))
    buffer = vd.asbuffer(signal)
    vkfft.fft2(buffer)
    assert distance(buffer.read(0), np.fft.fft2(signal)) < CLOSE
    vkfft.ifft2(buffer)
    assert distance(buffer.read(0), signal) < CLOSE
    vkfft.fft3(buffer)
    assert distance(buffer.read(0), np.fft.fftn(signal)) < CLOSE
    vkfft.ifft3(buffer)
    assert distance(buffer.read(0), signal) < CLOSE


def test_buffer_shape_argument() -> None:
    signal = complexes((24,))
    buffer = vd.asbuffer(signal)
    vkfft.fft(buffer, buffer_shape=(4, 6), axis=0)
    assert distance(buffer.read(0), np.fft.fft(signal.reshape(4, 6), axis=0).reshape(-1)) < CLOSE


@pytest.mark.parametrize("length", [1, 2, 3, 16, 17, 30, 67, 4096])
def test_real_lengths_forward_and_inverse(length: int) -> None:
    signal = reals((3, length))
    buffer = vd.asrfftbuffer(signal)
    vkfft.rfft(buffer)
    assert distance(buffer.read_fourier(0), np.fft.rfft(signal)) < CLOSE
    vkfft.irfft(buffer)
    assert distance(buffer.read_real(0), signal) < CLOSE
    vkfft.rfft(buffer)
    vkfft.irfft(buffer, normalize=False)
    assert distance(buffer.read_real(0), signal * length) < CLOSE


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", [(16,), (15,), (3, 2), (3, 14), (4, 1), (2, 3, 16), (2, 3, 15), (5, 34), (2, 16384)]
)
def test_inverse_of_spectra_that_no_reals_have(shape: tuple[int, ...], kind: Any) -> None:
    """NumPy ignores the imaginary parts at both ends; the lines do not mix."""
    if kind is np.float64 and not vd.get_devices()[0].float_64_support:
        pytest.skip("the device has no float64")
    pair = np.result_type(kind, np.complex64)
    spectrum = complexes((*shape[:-1], shape[-1] // 2 + 1), pair)
    for axes in {(len(shape) - 1,), tuple(range(len(shape)))}:
        sizes = [shape[axis] for axis in axes]
        truth = np.fft.irfftn(spectrum, sizes, axes)
        buffer = vd.asrfftbuffer(np.zeros(shape, kind))
        buffer.write_fourier(spectrum)
        vkfft.irfft(buffer, axis=axes)
        assert distance(buffer.read_real(0), truth) < TOLERANCE[pair]
        buffer.write_fourier(spectrum)
        vkfft.irfft(buffer, axis=axes, normalize=False)
        assert distance(buffer.read_real(0), truth * np.prod(sizes)) < TOLERANCE[pair]
    real = vd.Buffer(
        (*shape[:-1], 2 * (shape[-1] // 2 + 1)), vd.float32 if kind is np.float32 else vd.float64
    )
    real.write(spectrum.view(kind))
    vkfft.fft(real, buffer_shape=shape, r2c=True, inverse=True)
    truth = np.fft.irfft(spectrum, shape[-1])
    assert distance(real.read(0)[..., : shape[-1]], truth) < TOLERANCE[pair]


def test_real_transforms_of_several_axes() -> None:
    signal = reals((4, 6, 9))
    buffer = vd.asrfftbuffer(signal)
    for forward, back, axes in ((vkfft.rfft2, vkfft.irfft2, (1, 2)), (vkfft.rfft3, vkfft.irfft3, (0, 1, 2))):
        forward(buffer)
        assert distance(buffer.read_fourier(0), np.fft.rfftn(signal, axes=axes)) < CLOSE
        back(buffer)
        assert distance(buffer.read_real(0), signal) < CLOSE
    vkfft.rfft(buffer, axis=[0, 2])
    assert distance(buffer.read_fourier(0), np.fft.rfftn(signal, axes=(0, 2))) < CLOSE
    vkfft.irfft(buffer, axis=[0, -1])
    assert distance(buffer.read_real(0), signal) < CLOSE


@pytest.mark.parametrize("shape", [(34,), (5, 7), (3, 2, 8), (16384,)])
def test_real_transforms_of_a_separate_input(shape: tuple[int, ...]) -> None:
    signal = reals(shape)
    truth = np.fft.rfft(signal)
    for source in (vd.asbuffer(signal), vd.asrfftbuffer(signal)):
        result = vd.RFFTBuffer(shape)
        vkfft.fft(result, source, r2c=True)
        assert distance(result.read_fourier(0), truth) < CLOSE
    spectrum = vd.RFFTBuffer(shape)
    spectrum.write_fourier(truth.astype(np.complex64))
    vkfft.fft(result, spectrum, r2c=True, inverse=True)
    assert distance(result.read_real(0), signal) < CLOSE
    assert distance(spectrum.read_fourier(0), truth) < CLOSE


@pytest.mark.parametrize("length", [8, 17, 211, 8192])
def test_double_precision(length: int) -> None:
    if not vd.get_devices()[0].float_64_support:
        pytest.skip("the device has no float64")
    signal = complexes((2, length), np.complex128)
    buffer = vd.asbuffer(signal)
    vkfft.fft(buffer)
    assert distance(buffer.read(0), np.fft.fft(signal)) < 3e-15
    vkfft.ifft(buffer)
    assert distance(buffer.read(0), signal) < 3e-15
    real = vd.asrfftbuffer(signal.real.copy())
    vkfft.rfft(real)
    assert distance(real.read_fourier(0), np.fft.rfft(signal.real)) < 3e-15


@pytest.mark.parametrize("length", [8, 30, 67])
def test_half_precision(length: int) -> None:
    device = vd.get_devices()[0]
    if not (device.float_16_support and device.storage_buffer_16_bit_access):
        pytest.skip("the device has no float16")
    pairs = reals((2, length, 2), np.float16)
    buffer = vd.Buffer((2, length), vd.complex32)
    buffer.write(pairs)
    vkfft.fft(buffer)
    result = buffer.read(0)
    signal = pairs[..., 0] + 1j * pairs[..., 1].astype(np.float32)
    if result.dtype.kind != "c":
        result = result[..., 0] + 1j * result[..., 1]
    assert distance(result, np.fft.fft(signal)) < 2e-3


def test_shaders_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    buffer = vd.asbuffer(complexes((8,)))
    vkfft.fft(buffer)
    assert capsys.readouterr().out == ""
    vkfft.fft(buffer, print_shader=True)
    assert "void main()" in capsys.readouterr().out
