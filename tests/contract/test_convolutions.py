"""Convolutions: the contract's sentences one by one, as a program written for 0.1.0 would rely on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, c64

from .transforms import (
    close,
    correlated,
    read_plainly,
    real,
    scale_all,
    scale_spectrum,
    signal,
    write_plainly,
)

# ---- 11.6 ------------------------------------------------------------------------------------------


def test_convolution() -> None:
    a, k = signal(4, 24), signal(4, 24, seed=1)
    for axis in (0, 1, -1):
        buffer, kernel = vd.asbuffer(a), vd.asbuffer(k)
        vd.fft.fft(kernel, axis=axis)
        vd.fft.convolve(buffer, kernel, axis=axis)
        close(buffer.read(0), correlated(a, k, (axis,)))
        buffer.write(a)
        vd.fft.convolve(buffer, kernel, axis=axis, normalize=False)
        close(buffer.read(0), correlated(a, k, (axis,)) * a.shape[axis])
    with pytest.raises(ValueError, match="kernel"):
        vd.fft.convolve(vd.asbuffer(a))


def test_kernel_maps() -> None:
    a, scales = signal(4, 24), real(4, 24)
    buffer = vd.asbuffer(a)
    vd.fft.convolve(buffer, vd.asbuffer(scales), kernel_map=scale_spectrum)
    close(buffer.read(0), np.fft.ifft(np.fft.fft(a) * scales))
    buffer.write(a)
    vd.fft.convolve(buffer, np.float32(0.5), kernel_map=scale_all)
    close(buffer.read(0), a * 0.5)


def test_several_kernels() -> None:
    indices: list[int | None] = []

    def multiply(kernels: Buff[c64]) -> None:
        op, number = vd.fft.read_op(), vd.fft.mapped_kernel_index()
        indices.append(number)
        assert number is not None
        op.register[:] = vc.mult_complex(op.register, kernels[op.io_index + number * 16])

    def write(target: Buff[c64]) -> None:
        op, number = vd.fft.write_op(), vd.fft.mapped_kernel_index()
        assert number is not None
        target[op.io_index + number * 16] = op.register

    a, kernels = signal(16), signal(3, 16)
    result: Any = vd.Buffer((3, 16), vd.complex64)
    vd.fft.convolve(
        result,
        vd.asbuffer(a),
        vd.asbuffer(kernels),
        buffer_shape=(16,),
        kernel_num=3,
        kernel_map=vd.map(multiply, input_types=[Buff[c64]]),
        input_map=read_plainly,
        output_map=vd.map(write, input_types=[Buff[c64]]),
    )
    close(result.read(0), np.fft.ifft(np.fft.fft(a) * kernels))
    assert sorted({number for number in indices if number is not None}) == [0, 1, 2]


def test_convolution_of_planes() -> None:
    for shape in ((12, 20), (3, 12, 20)):
        a, k = signal(*shape), signal(*shape, seed=1)
        axes = (-2, -1)
        buffer, kernel = vd.asbuffer(a), vd.asbuffer(k)
        vd.fft.fft2(kernel)
        vd.fft.convolve2D(buffer, kernel)
        close(buffer.read(0), correlated(a, k, axes))
        buffer.write(a)
        vd.fft.convolve2D(buffer, kernel, input_map=read_plainly)
        close(buffer.read(0), correlated(a, k, axes))
        buffer.write(a)
        vd.fft.convolve2D(buffer, kernel, output_map=write_plainly, normalize=False)
        close(buffer.read(0), correlated(a, k, axes) * (12 * 20))
        buffer.write(a)
        vd.fft.convolve2D(buffer, np.float32(3), kernel_map=scale_all)
        close(buffer.read(0), a * 3)
    with pytest.raises(ValueError, match="axes"):
        vd.fft.convolve2D(vd.asbuffer(signal(8)), kernel)


@pytest.mark.parametrize("shape", [(162, 13), (12, 20), (3, 8, 9)])
def test_convolution_of_real_planes(shape: tuple[int, ...]) -> None:
    a, k = real(*shape), real(*shape, seed=1)
    buffer, kernel = vd.asrfftbuffer(a), vd.asrfftbuffer(k)
    vd.fft.rfft2(kernel)
    vd.fft.convolve2DR(buffer, kernel)
    close(buffer.read_real(0), correlated(a, k, (-2, -1)).real)


def test_kernel_without_outer_axes() -> None:
    a, k = signal(3, 12, 20), signal(12, 20, seed=1)
    buffer, kernel = vd.asbuffer(a), vd.asbuffer(k)
    vd.fft.fft2(kernel)
    vd.fft.convolve2D(buffer, kernel, kernel_inner_only=True)
    close(buffer.read(0), correlated(a, k[None], (-2, -1)))
    layout = vd.fft.transpose(kernel, conv_shape=a.shape, axis=1, kernel_inner_only=True)
    buffer.write(a)
    vd.fft.convolve2D(buffer, layout, kernel_inner_only=True, transposed_kernel=True)
    close(buffer.read(0), correlated(a, k[None], (-2, -1)))
    with pytest.raises(ValueError, match="another convolution"):
        vd.fft.convolve(
            buffer, layout, buffer_shape=(6, 12, 10), axis=1, kernel_inner_only=True, transposed_kernel=True
        )


@pytest.mark.parametrize("shape", [(12, 20), (3, 12, 20), (5, 64), (7, 9, 11)])
def test_transposed_kernels(shape: tuple[int, ...]) -> None:
    a, k = signal(*shape), signal(*shape, seed=1)
    for axis in range(len(shape)):
        kernel = vd.asbuffer(k)
        vd.fft.fft(kernel, axis=axis)
        size = vd.fft.get_transposed_size(shape, axis=axis)
        assert size >= a.size
        layout: Any = vd.Buffer((size + 5,), vd.complex64)
        assert vd.fft.transpose(kernel, axis=axis, out_buffer=layout) is layout
        buffer = vd.asbuffer(a)
        vd.fft.convolve(buffer, layout, axis=axis, transposed_kernel=True)
        close(buffer.read(0), correlated(a, k, (axis,)))
        made = vd.fft.transpose(kernel, axis=axis)
        assert made.shape == (size,)
        buffer.write(a)
        vd.fft.convolve(buffer, made, axis=axis, transposed_kernel=True)
        close(buffer.read(0), correlated(a, k, (axis,)))
    plane, kernel = vd.asbuffer(a), vd.asbuffer(k)
    vd.fft.fft2(kernel)
    layout = vd.fft.transpose(kernel, axis=len(shape) - 2)
    vd.fft.convolve2D(plane, layout, transposed_kernel=True)
    close(plane.read(0), correlated(a, k, (-2, -1)))
    with pytest.raises(ValueError, match="out_buffer"):
        vd.fft.transpose(kernel, out_buffer=vd.Buffer((4,), vd.complex64))
    with pytest.raises(ValueError, match="out_buffer"):
        vd.fft.transpose(kernel, out_buffer=vd.Buffer((a.size * 4,), vd.float32))
