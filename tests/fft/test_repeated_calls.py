"""Repeated calls: equal calls are bound, and different calls are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd

RNG = np.random.default_rng(5)
RTOL = 1e-4


def complex_values(*shape: int) -> np.ndarray[Any, Any]:
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(np.complex64)


def check(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> None:
    np.testing.assert_allclose(found, wanted, rtol=RTOL, atol=RTOL * np.abs(wanted).max())


@pytest.mark.parametrize("shape", [(64,), (7, 33), (3, 16, 20)])
def test_new_data_each_time(shape: tuple[int, ...]) -> None:
    calls: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
        (vd.fft.fft, np.fft.fft),
        (lambda x: vd.fft.fft(x, axis=0), lambda x: np.fft.fft(x, axis=0)),
        (vd.fft.ifft, np.fft.ifft),
        (lambda x: vd.fft.ifft(x, normalize=False), lambda x: np.fft.ifft(x) * shape[-1]),
        (vd.fft.fftn, np.fft.fftn),
    ]
    if len(shape) > 1:
        calls += [(vd.fft.fft2, np.fft.fft2), (vd.fft.ifft2, np.fft.ifft2)]
    for call, truth in calls:
        for _ in range(4):
            data = complex_values(*shape)
            x = vd.asbuffer(data)
            call(x)
            check(x.read(0), truth(data))


def test_equal_options_of_different_types() -> None:
    data = complex_values(6, 6)
    for _ in range(3):
        for axis in (1, 0, True, -1, 1):
            x = vd.asbuffer(data)
            if axis is True:
                with pytest.raises(TypeError, match="axis"):
                    vd.fft.fft(x, axis=axis)
                continue
            vd.fft.fft(x, axis=axis)
            check(x.read(0), np.fft.fft(data, axis=axis))


def test_real_shapes_are_distinguished() -> None:
    """Rows of 6 and of 7 reals have 4 complex numbers each."""
    for _ in range(3):
        for length in (6, 7):
            data = RNG.standard_normal((3, length)).astype(np.float32)
            x = vd.asrfftbuffer(data)
            vd.fft.rfft(x)
            check(x.read_fourier(0), np.fft.rfft(data))
            vd.fft.irfft(x)
            check(x.read_real(0), data)
            vd.fft.rfft2(x)
            check(x.read_fourier(0), np.fft.rfft2(data))


def test_layouts_of_kernels_are_distinguished() -> None:
    shape = (8, 16, 64)
    data, kernel = complex_values(*shape), complex_values(*shape)
    right = vd.fft.transpose(vd.asbuffer(kernel), axis=1)
    wrong = vd.fft.transpose(vd.asbuffer(kernel), axis=2, out_buffer=vd.Buffer(right.shape, vd.complex64))
    wanted = np.fft.ifft(np.fft.fft(data, axis=1) * kernel.conj(), axis=1)
    for _ in range(3):
        x = vd.asbuffer(data)
        vd.fft.convolve(x, right, axis=1, transposed_kernel=True)
        check(x.read(0), wanted)
        with pytest.raises(ValueError, match="transposed for another"):
            vd.fft.convolve(x, wrong, axis=1, transposed_kernel=True)
        check(x.read(0), wanted)


def test_kernels_are_printed_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    x = vd.asbuffer(complex_values(8, 8))
    for _ in range(3):
        vd.fft.fft2(x)
        vd.fft.fft(x, print_shader=True)
        assert "main" in capsys.readouterr().out


def test_one_buffer_in_two_roles() -> None:
    data, kernel = complex_values(4, 32), complex_values(4, 32)
    for _ in range(3):
        x, k = vd.asbuffer(data), vd.asbuffer(kernel)
        vd.fft.convolve(x, k, axis=1)
        check(x.read(0), np.fft.ifft(np.fft.fft(data) * kernel.conj()))
        with pytest.raises(ValueError, match="kernel"):
            vd.fft.convolve(x, x, axis=1)


def test_arguments_of_maps_that_are_numbers() -> None:
    @vd.map
    def scaled(buffer: vd.codegen.Buff[vd.complex64], factor: vd.codegen.Const[vd.float32]) -> None:
        op = vd.fft.read_op()
        op.register[:] = buffer[op.io_index] * factor

    data = complex_values(5, 16)
    for factor in (2.0, 3.0, 2.0, 2.0, 0.5):
        source, target = vd.asbuffer(data), vd.Buffer(data.shape, vd.complex64)
        vd.fft.fft(
            target, source, factor, input_map=scaled, buffer_shape=data.shape, output_type=vd.complex64
        )
        check(target.read(0), np.fft.fft(data * factor))
