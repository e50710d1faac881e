"""Plans: graphs, padding, inputs of another shape, the cache, threads, and errors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch import vkfft
from vkdispatch.codegen.abbreviations import Buff, c64
from vkdispatch.vkfft import VkFFTPlan
from vkdispatch.vkfft import program as cache
from vkdispatch.vkfft.program import find_written_bindings

from .data import complexes, distance, reals

CLOSE = 6e-7


@vd.shader("a.size")
def double(a: Buff[c64]) -> None:
    a[vc.global_invocation_id().x] *= 2.0


def test_graph_with_kernels_between_transforms() -> None:
    signal = complexes((3, 30))
    buffer, graph = vd.asbuffer(signal), vd.CommandGraph()
    vkfft.fft(buffer, graph=graph)
    double(buffer, graph=graph)
    vkfft.ifft(buffer, graph=graph)
    np.testing.assert_array_equal(buffer.read(0), signal)
    graph.submit()
    assert distance(buffer.read(0), 2 * signal) < CLOSE
    graph.submit(3)  # replayed from the second submit on
    assert distance(buffer.read(0), 16 * signal) < 2e-6


def test_scratch_memory_of_graphs_and_calls_is_not_shared() -> None:
    signals = [complexes((65536,), seed=seed) for seed in range(3)]
    buffers = [vd.asbuffer(signal) for signal in signals]
    graphs = [vd.CommandGraph(), vd.CommandGraph()]
    for graph, buffer in zip(graphs, buffers[:2], strict=True):
        vkfft.fft(buffer, graph=graph)
    vkfft.clear_plan_cache()
    vkfft.fft(buffers[2])
    for graph in graphs:
        graph.submit()
    for buffer, signal in zip(buffers, signals, strict=True):
        assert distance(buffer.read(0), np.fft.fft(signal)) < CLOSE


@pytest.mark.parametrize("resets", [True, False])
def test_graphs_with_submit_on_record(resets: bool) -> None:
    signal = complexes((65536,))
    buffer = vd.asbuffer(signal)
    graph = vd.CommandGraph(reset_on_submit=resets, submit_on_record=True)
    VkFFTPlan(65536).record_forward(graph, buffer)  # two passes, once each
    assert distance(buffer.read(0), np.fft.fft(signal)) < CLOSE
    assert graph.submit_on_record


def test_the_global_graph() -> None:
    signal = complexes((16,))
    buffer, graph = vd.asbuffer(signal), vd.CommandGraph()
    vd.set_global_graph(graph)
    try:
        vkfft.fft(buffer)
    finally:
        vd.set_global_graph(None)
    np.testing.assert_array_equal(buffer.read(0), signal)
    graph.submit()
    assert distance(buffer.read(0), np.fft.fft(signal)) < CLOSE


def test_forward_and_inverse() -> None:
    signal = complexes((2, 3, 20))
    buffer = vd.asbuffer(signal.reshape(-1))
    plan = VkFFTPlan((3, 20), axes=[-1], num_batches=2, normalize=True)
    assert plan.shape == (3, 20) and plan.axes == (1,)
    plan.record_forward(None, buffer)
    assert distance(buffer.read(0).reshape(2, 3, 20), np.fft.fft(signal)) < CLOSE
    plan.record_inverse(None, buffer)
    assert distance(buffer.read(0).reshape(2, 3, 20), signal) < CLOSE
    assert all("void main()" in source for source in plan.get_src())


@pytest.mark.parametrize(
    ("shape", "padding"),
    [
        ((16,), [(5, 16)]),
        ((16, 12), [(5, 16), (3, 12)]),
        ((16, 12), [(0, 3), None]),
        ((4, 6, 8), [(1, 3), None, (4, 8)]),
        ((3, 67), [None, (30, 67)]),
    ],
)
def test_padding(shape: tuple[int, ...], padding: Any) -> None:
    signal = complexes(shape)
    zeroed = signal.copy()
    for axis, pad in enumerate(padding):
        if pad:
            zeroed[(slice(None),) * axis + (slice(*pad),)] = 0
    buffer = vd.asbuffer(signal)  # not zero in the padding
    plan = VkFFTPlan(shape, padding=padding, normalize=True)
    plan.record_forward(None, buffer)
    assert distance(buffer.read(0), np.fft.fftn(zeroed)) < CLOSE
    plan.record_inverse(None, buffer)
    assert distance(buffer.read(0)[zeroed != 0], signal[zeroed != 0]) < CLOSE


def test_padding_of_real_transforms() -> None:
    signal = reals((6, 20))
    signal[4:] = 0
    signal[:, 11:] = 0
    buffer = vd.asrfftbuffer(signal)
    VkFFTPlan((6, 20), do_r2c=True, padding=[(4, 6), (11, 20)]).record_forward(None, buffer)
    assert distance(buffer.read_fourier(0), np.fft.rfft2(signal)) < CLOSE


def test_an_input_of_another_shape() -> None:
    signal = complexes((2, 5, 7))
    result = vd.Buffer((2 * 8 * 16,), vd.complex64)
    plan = VkFFTPlan((8, 16), input_shape=(5, 7), input_type=vd.complex64, num_batches=2)
    plan.record(None, result, input=vd.asbuffer(signal))
    truth = np.fft.fft2(signal, s=(8, 16))
    assert distance(result.read(0).reshape(2, 8, 16), truth) < CLOSE


def test_the_cache_is_bounded_and_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    vkfft.clear_plan_cache()
    buffer = vd.asbuffer(complexes((12,)))
    vkfft.fft(buffer)
    vkfft.fft(buffer, axis=-1)
    vkfft.fft(vd.asbuffer(complexes((12,))))
    assert cache.count_cached_programs() == 1
    vkfft.ifft(buffer)
    assert cache.count_cached_programs() == 2
    monkeypatch.setattr(cache, "MAX_PROGRAMS", 2)
    vkfft.fft(buffer, buffer_shape=(3, 4))
    assert cache.count_cached_programs() == 2
    vkfft.clear_plan_cache()
    assert cache.count_cached_programs() == 0


def test_plan_outlives_its_context(run_python: Callable[..., Any]) -> None:
    code = """
import numpy as np, vkdispatch as vd
from vkdispatch.base.context import destroy_context
plan = vd.vkfft.VkFFTPlan(65536)
signal = np.arange(65536) + 0j
for _ in range(2):
    buffer = vd.asbuffer(signal.astype(np.complex64))
    plan.record(None, buffer)
    assert np.allclose(buffer.read(0), np.fft.fft(signal), rtol=1e-3, atol=1e5)
    old = buffer
    destroy_context()
new = vd.asbuffer(signal.astype(np.complex64))
try:
    plan.record(None, old)
except RuntimeError as error:
    print("refused", error)
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused")


def test_threads_share_plans() -> None:
    vkfft.clear_plan_cache()
    signals = [complexes((65536,), seed=seed) for seed in range(4)]
    failures: list[BaseException] = []

    def work(signal: Any) -> None:
        try:
            for _ in range(3):
                buffer = vd.asbuffer(signal)
                vkfft.fft(buffer)
                assert distance(buffer.read(0), np.fft.fft(signal)) < CLOSE
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(signal,)) for signal in signals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_locale_with_decimal_commas(run_python: Callable[..., Any]) -> None:
    code = """
import locale
for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C"):
    try:
        locale.setlocale(locale.LC_ALL, name)
        break
    except locale.Error:
        pass
import vkdispatch as vd
assert "7.07106781186547524e-01f" in vd.vkfft.VkFFTPlan(8).get_src()[0]
print("fine")
"""
    done = run_python(code)
    assert done.stdout == "fine\n", done.stderr


def test_find_written_bindings() -> None:
    (source,) = VkFFTPlan(8).get_src()
    assert find_written_bindings(source) == {1}


def test_errors() -> None:
    buffer = vd.asbuffer(complexes((4, 6)))
    for bad, error in (
        (lambda: vkfft.fft(complexes((4,))), TypeError),
        (lambda: vkfft.fft(buffer, axis=2), ValueError),
        (lambda: vkfft.fft(buffer, axis=-3), ValueError),
        (lambda: vkfft.fft(buffer, axis=(0, -2)), ValueError),
        (lambda: vkfft.fft(buffer, axis=()), ValueError),
        (lambda: vkfft.fft(buffer, axis=1.0), TypeError),
        (lambda: vkfft.fft(buffer, graph=3), TypeError),  # type: ignore[arg-type]
        (lambda: vkfft.fft(buffer, buffer_shape=(5, 6)), ValueError),
        (lambda: vkfft.fft(buffer, buffer_shape=(2, 2, 2, 3)), ValueError),
        (lambda: vkfft.fft(buffer, buffer_shape=0), ValueError),
        (lambda: vkfft.fft(buffer, "input"), TypeError),  # type: ignore[arg-type]
        (lambda: vkfft.fft(buffer, vd.asbuffer(complexes((4, 5)))), ValueError),
        (lambda: vkfft.fft(buffer, vd.Buffer((4, 6), vd.complex128)), (ValueError, NotImplementedError)),
        (lambda: vkfft.fft(vd.Buffer((8,), vd.float32)), ValueError),
        (lambda: vkfft.fft(vd.Buffer((8,), vd.int32)), ValueError),
        (lambda: vkfft.rfft(buffer), ValueError),  # type: ignore[arg-type]
        (lambda: vkfft.rfft(vd.RFFTBuffer((4, 6)), axis=0), ValueError),
        (lambda: vkfft.fft2(vd.Buffer((8,), vd.complex64)), ValueError),
        (lambda: vkfft.fft3(buffer), ValueError),
        (lambda: vkfft.transpose_kernel2D(vd.Buffer((8,), vd.complex64)), ValueError),
        (lambda: vkfft.convolve2D(buffer, vd.Buffer((4, 5), vd.complex64)), ValueError),
        (lambda: vkfft.convolve2D(buffer, buffer), ValueError),
        (lambda: vkfft.convolve2D(buffer, None), TypeError),  # type: ignore[arg-type]
        (lambda: vkfft.convolve2D(buffer, vd.Buffer((4, 6), vd.float32)), ValueError),
        (lambda: VkFFTPlan((2, 2, 2, 2)), ValueError),
        (lambda: VkFFTPlan(()), ValueError),
        (lambda: VkFFTPlan("8"), TypeError),
        (lambda: VkFFTPlan((4, 6), do_r2c=True, axes=[0]), ValueError),
        (lambda: VkFFTPlan(8, padding=[(3, 9)]), ValueError),
        (lambda: VkFFTPlan(8, padding=[(0, 3), (0, 3)]), ValueError),
        (lambda: VkFFTPlan(8, num_batches=0), ValueError),
        (lambda: VkFFTPlan(8, kernel_count=-1), ValueError),
        (lambda: VkFFTPlan(8, conjugate_convolution=3), ValueError),
        (lambda: VkFFTPlan(8, input_shape=9), ValueError),
        (lambda: VkFFTPlan(8, input_type="f"), TypeError),  # type: ignore[arg-type]
        (lambda: VkFFTPlan((4, 6), axes=[0], kernel_count=1), ValueError),
        (lambda: VkFFTPlan((4, 6), kernel_count=1).record(None, buffer), ValueError),
        (lambda: VkFFTPlan((4, 6)).record(None, buffer, kernel=buffer), ValueError),
        (lambda: VkFFTPlan((4, 6), num_batches=2).record(None, buffer), ValueError),
    ):
        with pytest.raises(error):  # type: ignore[arg-type]
            bad()
    buffer.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        vkfft.fft(buffer)
