"""Convolutions against the convolution theorem with NumPy, and padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch import vkfft

from .data import complexes, distance

CLOSE = 1e-6


def convolved(image: Any, kernel: Any, conjugate: bool = False) -> Any:
    spectrum = np.fft.fft2(kernel)
    return np.fft.ifft2(np.fft.fft2(image) * (spectrum.conj() if conjugate else spectrum))


# VkFFT convolves smooth sizes itself; other sizes use transforms and a product.
@pytest.mark.parametrize("shape", [(8, 8), (3, 4, 16), (2, 5, 7), (17, 6), (1, 8), (8, 1), (1, 1)])
def test_convolve(shape: tuple[int, ...]) -> None:
    image, kernel = complexes(shape), complexes(shape, seed=1)
    ready, buffer = vd.asbuffer(kernel), vd.Buffer(shape, vd.complex64)
    vkfft.transpose_kernel2D(ready)
    for normalize in (True, False):
        for conjugate in (False, True):
            buffer.write(image)
            vkfft.convolve2D(buffer, ready, normalize=normalize, conjugate_kernel=conjugate)
            truth = convolved(image, kernel, conjugate) * (1 if normalize else shape[-1] * shape[-2])
            assert distance(buffer.read(0), truth) < CLOSE


def test_circular_convolution_by_definition() -> None:
    image, kernel = complexes((4, 6)), complexes((4, 6), seed=1)
    direct = np.zeros((4, 6), complex)
    for y in range(4):
        for x in range(6):
            direct += kernel[y, x] * np.roll(image, (y, x), (0, 1))
    buffer, ready = vd.asbuffer(image), vd.asbuffer(kernel)
    vkfft.transpose_kernel2D(ready)
    vkfft.convolve2D(buffer, ready, normalize=True)
    assert distance(buffer.read(0), direct) < CLOSE


def test_one_kernel_for_all_images() -> None:
    images, kernel = complexes((3, 6, 8)), complexes((6, 8), seed=1)
    buffer, ready = vd.asbuffer(images), vd.asbuffer(kernel)
    vkfft.transpose_kernel2D(ready)
    vkfft.convolve2D(buffer, ready, normalize=True)
    assert distance(buffer.read(0), convolved(images, kernel[None])) < CLOSE


@pytest.mark.parametrize("kernels", [1, 3])
def test_batches_larger_than_the_binding_limit(monkeypatch: pytest.MonkeyPatch, kernels: int) -> None:
    images, kernel = complexes((3, 6, 8)), complexes((kernels, 6, 8), seed=1)
    buffer, ready = vd.asbuffer(images), vd.asbuffer(kernel)
    monkeypatch.setattr(buffer.context, "max_storage_buffer_range", images[0].nbytes)
    vkfft.transpose_kernel2D(ready)
    graph = vd.CommandGraph()
    vkfft.convolve2D(buffer, ready, normalize=True, graph=graph)
    assert distance(buffer.read(0), images) == 0
    graph.submit()
    assert distance(buffer.read(0), convolved(images, kernel)) < CLOSE


def test_shape_argument_of_the_kernel() -> None:
    kernel = complexes((48,))
    buffer = vd.asbuffer(kernel)
    vkfft.transpose_kernel2D(buffer, shape=(6, 8))
    assert distance(buffer.read(0).reshape(6, 8), np.fft.fft2(kernel.reshape(6, 8))) < CLOSE


def test_padding_treats_elements_as_zeros() -> None:
    images, kernel = complexes((2, 8, 12)), complexes((2, 8, 12), seed=1)
    ready = vd.asbuffer(kernel)
    vkfft.transpose_kernel2D(ready)
    zeroed = images.copy()
    zeroed[:, 5:, :] = 0
    zeroed[:, :, 7:] = 0
    for padding in ([(5, 8), (7, 12)], [None, (5, 8), (7, 12)]):
        buffer = vd.asbuffer(images)
        vkfft.convolve2D(buffer, ready, normalize=True, padding=padding)
        assert distance(buffer.read(0), convolved(zeroed, kernel)) < CLOSE


def test_double_precision() -> None:
    if not vd.get_devices()[0].float_64_support:
        pytest.skip("the device has no float64")
    image, kernel = complexes((6, 10), np.complex128), complexes((6, 10), np.complex128, 1)
    buffer, ready = vd.asbuffer(image), vd.asbuffer(kernel)
    vkfft.transpose_kernel2D(ready)
    vkfft.convolve2D(buffer, ready, normalize=True)
    assert distance(buffer.read(0), convolved(image, kernel)) < 3e-15


def test_kernels_and_batches() -> None:
    images, kernels = complexes((2, 6, 10)), complexes((3, 2, 6, 10), seed=1)
    ready = vd.asbuffer(kernels.reshape(-1))
    vkfft.VkFFTPlan((6, 10), num_batches=6, kernel_convolution=True).record(None, ready)
    result = vd.Buffer((3 * 2 * 60,), vd.complex64)
    plan = vkfft.VkFFTPlan((6, 10), kernel_count=3, num_batches=2, normalize=True)
    plan.record(None, result, kernel=ready, input=vd.asbuffer(images))
    assert distance(result.read(0).reshape(3, 2, 6, 10), convolved(images[None], kernels)) < CLOSE

    shared = vd.asbuffer(kernels[:, 0].reshape(-1))
    vkfft.VkFFTPlan((6, 10), num_batches=3, kernel_convolution=True).record(None, shared)
    start = np.zeros(360, np.complex64)
    start[:120] = images.reshape(-1)
    result.write(start)
    plan = vkfft.VkFFTPlan(
        (6, 10), kernel_count=3, num_batches=2, normalize=True, single_kernel_multiple_batches=True
    )
    plan.record(None, result, kernel=shared)
    assert distance(result.read(0).reshape(3, 2, 6, 10), convolved(images[None], kernels[:, :1])) < CLOSE


def test_conjugates_and_real_images() -> None:
    signal, kernel = complexes((20,)), complexes((20,), seed=1)
    ready = vd.asbuffer(np.fft.fft(kernel).astype(np.complex64))
    for conjugate in (1, 2):
        spectra = [np.fft.fft(signal), np.fft.fft(kernel)]
        spectra[conjugate - 1] = spectra[conjugate - 1].conj()
        buffer = vd.asbuffer(signal)
        plan = vkfft.VkFFTPlan(20, kernel_count=1, normalize=True, conjugate_convolution=conjugate)
        plan.record(None, buffer, kernel=ready)
        assert distance(buffer.read(0), np.fft.ifft(spectra[0] * spectra[1])) < CLOSE
    real = vd.asrfftbuffer(signal.real.copy())
    other = vd.asrfftbuffer(kernel.real.copy())
    vkfft.VkFFTPlan(20, do_r2c=True, kernel_convolution=True).record(None, other)
    vkfft.VkFFTPlan(20, do_r2c=True, kernel_count=1, normalize=True).record(None, real, kernel=other)
    truth = np.fft.irfft(np.fft.rfft(signal.real) * np.fft.rfft(kernel.real))
    assert distance(real.read_real(0), truth) < CLOSE


@pytest.mark.parametrize("shape", [(6, 8), (3, 5, 7)])
@pytest.mark.parametrize("kind", [np.complex64, np.float32, np.int32])
def test_separate_input_images(shape: tuple[int, ...], kind: Any) -> None:
    image, kernel = (10 * complexes(shape)), complexes(shape, seed=1)
    given = image.astype(np.complex64) if kind is np.complex64 else image.real.astype(kind)
    ready, source = vd.asbuffer(kernel), vd.asbuffer(given)
    vkfft.transpose_kernel2D(ready)
    # any shape with enough elements; those behind the result do not change
    result = vd.asbuffer(np.full((2, given.size), 5, np.complex64))
    vkfft.convolve2D(result, ready, normalize=True, input_buffer=source)
    assert distance(result.read(0)[0].reshape(shape), convolved(given, kernel)) < CLOSE
    assert (result.read(0)[1] == 5).all()
    assert (source.read(0) == given).all()

    alone = vd.asbuffer(kernel)
    graph = vd.CommandGraph()
    vkfft.convolve2D(alone, ready, conjugate_kernel=True, input_buffer=source, graph=graph)
    assert (alone.read(0) == kernel).all()
    graph.submit()
    truth = convolved(given, kernel, True) * shape[-1] * shape[-2]
    assert distance(alone.read(0), truth) < CLOSE


def test_input_buffer_is_the_buffer_itself() -> None:
    image, kernel = complexes((6, 8)), complexes((6, 8), seed=1)
    buffer, ready = vd.asbuffer(image), vd.asbuffer(kernel)
    vkfft.transpose_kernel2D(ready)
    vkfft.convolve2D(buffer, ready, normalize=True, input_buffer=buffer)
    assert distance(buffer.read(0), convolved(image, kernel)) < CLOSE


def test_errors_of_separate_input_images() -> None:
    source, ready = vd.asbuffer(complexes((6, 8))), vd.asbuffer(complexes((6, 8), seed=1))
    for buffer, given, message in (
        (vd.Buffer((5, 8), vd.complex64), source, "buffer: 48 elements"),
        (vd.Buffer((6, 8), vd.float32), source, "buffer: expected complex"),
        (vd.Buffer((6, 8), vd.complex64), vd.Buffer((6, 8), vd.vec2), "input_buffer: expected complex"),
        (vd.Buffer((6, 8), vd.complex64), vd.Buffer((48,), vd.complex64), "input_buffer: expected images"),
        (vd.Buffer((6, 9), vd.complex64), vd.Buffer((6, 9), vd.complex64), "kernel: expected"),
    ):
        with pytest.raises(ValueError, match=message):
            vkfft.convolve2D(buffer, ready, input_buffer=given)
    with pytest.raises(TypeError, match="input_buffer"):
        vkfft.convolve2D(vd.Buffer((6, 8), vd.complex64), ready, input_buffer=complexes((6, 8)))  # type: ignore[arg-type]
