"""Lines that no workgroup holds: maps, ranges, real data and convolutions work as for short ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from tests.fft.signals import bound, complex_signal, error, real_signal
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f32

N = 16384


@vd.map
def read_it(source: Buff[c64]) -> None:
    vd.fft.read_op().read_from_buffer(source)


@vd.map
def write_scaled(target: Buff[c64], scale: Const[f32]) -> None:
    op = vd.fft.write_op()
    target[op.io_index] = op.register * scale


@pytest.mark.parametrize(("shape", "axis"), [((2, N), 1), ((N, 2), 0)])
def test_maps_and_range(shape: tuple[int, int], axis: int) -> None:
    a = complex_signal(*shape)
    kept = a.copy()
    np.moveaxis(kept, axis, 0)[:5] = 0
    np.moveaxis(kept, axis, 0)[N // 3 :] = 0
    out: Any = vd.Buffer(shape, vd.complex64)
    options: Any = {"axis": axis, "input_signal_range": (5, N // 3)}
    vd.fft.fft(out, 0.5, vd.asbuffer(a), input_map=read_it, output_map=write_scaled, **options)
    truth = np.fft.fft(kept.astype(np.complex128), axis=axis)
    assert error(out.read(0), truth * 0.5) < bound(N)
    vd.fft.fft(out, 0.5, vd.asbuffer(a), output_map=write_scaled, **options)
    assert error(out.read(0), truth * 0.5) < bound(N)


def test_convolution() -> None:
    a, k = complex_signal(2, N), complex_signal(2, N, seed=1)
    truth = np.fft.ifft(np.fft.fft(a.astype(np.complex128)) * np.conj(k))
    buffer, kernel = vd.asbuffer(a), vd.asbuffer(k)
    vd.fft.convolve(buffer, kernel)
    assert error(buffer.read(0), truth) < 2 * bound(N)
    layout = vd.fft.transpose(kernel)
    buffer.write(a)
    vd.fft.convolve(buffer, layout, transposed_kernel=True)
    assert error(buffer.read(0), truth) < 2 * bound(N)


def test_real() -> None:
    a = real_signal(2, N)
    buffer = vd.asrfftbuffer(a)
    vd.fft.rfft(buffer)
    assert error(buffer.read_fourier(0), np.fft.rfft(a.astype(np.float64))) < bound(N)
    vd.fft.irfft(buffer)
    assert error(buffer.read_real(0), a) < 2 * bound(N)
