"""Long lines and large primes with maps, ranges, real data and convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from tests.fft.signals import bound, check_convolution, complex_signal, error, real_signal
from vkdispatch.base.record import replace
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f32
from vkdispatch.fft.kernels.passes import Program

N = 16384


@vd.map
def read_it(source: Buff[c64]) -> None:
    vd.fft.read_op().read_from_buffer(source)


@vd.map
def write_scaled(target: Buff[c64], scale: Const[f32]) -> None:
    op = vd.fft.write_op()
    target[op.io_index] = op.register * scale


@pytest.mark.parametrize(("shape", "axis"), [((2, N), 1), ((N, 2), 0), ((3, 101), 1), ((211, 3), 0)])
def test_maps_and_range(shape: tuple[int, int], axis: int) -> None:
    n = shape[axis]
    a = complex_signal(*shape)
    hold = a.copy()
    np.moveaxis(hold, axis, 0)[:5] = 0
    np.moveaxis(hold, axis, 0)[n // 3 :] = 0
    out: Any = vd.Buffer(shape, vd.complex64)
    options: Any = {"axis": axis, "input_signal_range": (5, n // 3)}
    vd.fft.fft(out, 0.5, vd.asbuffer(a), input_map=read_it, output_map=write_scaled, **options)
    truth = np.fft.fft(hold.astype(np.complex128), axis=axis)
    assert error(out.read(0), truth * 0.5) < 2 * bound(n)
    vd.fft.fft(out, 0.5, vd.asbuffer(a), output_map=write_scaled, **options)
    assert error(out.read(0), truth * 0.5) < 2 * bound(n)


@pytest.mark.parametrize("n", [N, 101])
def test_convolution(n: int) -> None:
    a, k = complex_signal(2, n), complex_signal(2, n, seed=1)
    check_convolution(a, k)


@pytest.mark.parametrize("n", [N, 37, 101])
def test_real(n: int) -> None:
    a = real_signal(2, n)
    buffer = vd.asrfftbuffer(a)
    vd.fft.rfft(buffer)
    assert error(buffer.read_fourier(0), np.fft.rfft(a.astype(np.float64))) < 2 * bound(n)
    vd.fft.irfft(buffer)
    assert error(buffer.read_real(0), a) < 4 * bound(n)


def test_graph_submitted_between_two_steps_of_a_call() -> None:
    # as another thread may do at any time
    n = 8 * N  # several steps on every device
    a, b = complex_signal(3, n), complex_signal(3, n, seed=1)
    first, second = vd.asbuffer(a), vd.asbuffer(b)
    graph = vd.CommandGraph()
    vd.fft.fft(second, graph=graph)
    program = vd.fft.make_fft_shader((3, n))
    assert isinstance(program, Program)

    def submitting(kernel: Any) -> Any:
        def launch(*args: Any, **options: Any) -> None:
            graph.submit()
            second.write(b)
            kernel(*args, **options)

        return launch

    steps = tuple(replace(step, kernel=submitting(step.kernel)) for step in program.steps)
    replace(program, steps=steps)(first)
    assert error(first.read(0), np.fft.fft(a.astype(np.complex128))) < 2 * bound(N)
