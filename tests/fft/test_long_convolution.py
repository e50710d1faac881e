"""Convolutions in several kernels, of lines that no workgroup holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from tests.fft.signals import bound, complex_signal, error, filled
from vkdispatch.codegen.abbreviations import Buff, c64
from vkdispatch.fft import convolving as plans
from vkdispatch.fft.convolving import LongConvolution


@pytest.fixture(autouse=True)
def _no_single_pass(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no workgroup hold a line there and back."""
    vd.fft.cache_clear()
    monkeypatch.setattr(plans, "plan_pass", lambda *_: None)
    yield
    vd.fft.cache_clear()


@vd.map
def read_it(source: Buff[c64]) -> None:
    vd.fft.read_op().read_from_buffer(source)


@vd.map
def multiply(kernels: Buff[c64]) -> None:
    op, number = vd.fft.read_op(), vd.fft.mapped_kernel_index() or 0
    op.register[:] = vc.mult_complex(op.register, kernels[op.io_index + 480 * number])


@vd.map
def write_each(target: Buff[c64]) -> None:
    op, number = vd.fft.write_op(), vd.fft.mapped_kernel_index() or 0
    target[op.io_index + 480 * number] = op.register


def product(a: Any, k: Any, axis: int) -> Any:
    return np.fft.ifft(np.fft.fft(a.astype(np.complex128), axis=axis) * k, axis=axis)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_in_place(axis: int) -> None:
    a, k = complex_signal(4, 6, 20), complex_signal(4, 6, 20, seed=1)
    buffer, kernel = vd.asbuffer(a), vd.asbuffer(k)
    vd.fft.convolve(buffer, kernel, axis=axis)
    assert error(buffer.read(0), product(a, np.conj(k), axis)) < 2 * bound(20)
    buffer.write(a)
    layout = vd.fft.transpose(kernel, axis=axis)
    vd.fft.convolve(buffer, layout, axis=axis, transposed_kernel=True, normalize=False)
    assert error(buffer.read(0), product(a, np.conj(k), axis) * a.shape[axis]) < 2 * bound(20)
    assert isinstance(vd.fft.make_convolution_shader(a.shape, axis=axis), LongConvolution)


def test_inner_kernel_and_wider_computation() -> None:
    a, k = complex_signal(4, 6, 20), complex_signal(6, 20, seed=1)
    buffer = vd.asbuffer(a)
    vd.fft.convolve(buffer, vd.asbuffer(k), axis=1, kernel_inner_only=True)
    assert error(buffer.read(0), product(a, np.conj(k)[None], 1)) < 2 * bound(20)
    if vd.get_devices()[0].float_64_support:
        wide = filled(k, vd.complex128)
        buffer.write(a)
        vd.fft.convolve(buffer, wide, axis=1, kernel_inner_only=True)
        assert error(buffer.read(0), product(a, np.conj(k)[None], 1)) < 2 * bound(20)


def test_several_kernels_with_maps() -> None:
    a, kernels = complex_signal(4, 6, 20), complex_signal(3, 4, 6, 20, seed=1)
    out: Any = vd.Buffer((3 * 480,), vd.complex64)
    source = vd.asbuffer(a)
    graph = vd.CommandGraph()
    vd.fft.convolve(
        out,
        source,
        vd.asbuffer(kernels.reshape(3, -1)),
        buffer_shape=a.shape,
        axis=1,
        kernel_num=3,
        input_map=read_it,
        output_map=write_each,
        kernel_map=multiply,
        graph=graph,
    )
    for _ in range(2):
        graph.submit()
        outcome = out.read(0).reshape(3, *a.shape)
        for number in range(3):
            assert error(outcome[number], product(a, kernels[number], 1)) < 2 * bound(6)
        source.write(a)
    assert np.array_equal(source.read(0), a)


def test_several_kernels_in_a_buffer() -> None:
    a, kernels = complex_signal(20), complex_signal(2, 20, seed=1)
    out: Any = vd.Buffer((2, 480), vd.complex64)
    vd.fft.convolve(
        out, vd.asbuffer(a), vd.asbuffer(kernels), kernel_num=2, output_map=write_each, buffer_shape=(20,)
    )
    for number in range(2):
        assert error(out.read(0)[number, :20], product(a, np.conj(kernels[number]), 0)) < 2 * bound(20)


def test_sources() -> None:
    kernel = vd.fft.make_convolution_shader((4, 20))
    sources = kernel.get_src()
    assert len(sources) == 3 and all(isinstance(source, vd.ShaderSource) for source in sources)
    assert repr(kernel).count("#version") == 3
