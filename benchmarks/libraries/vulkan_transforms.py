"""Transforms and reductions, which we, vkdispatch 0.1.0 and VkFFT by way of `vd.vkfft` are asked for alike.

All are in place, so each round's work is there and back: numbers that grow without end are infinite soon.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import vkdispatch as vd
from benchmarks.signals import (
    Array,
    Signal,
    error_of,
    is_convolved,
    is_reduced,
    lines_of,
    planes_of,
    real_lines,
    real_nbytes,
    reduced_inputs,
    unit_kernel,
)
from benchmarks.timing import Sizes, SkipCase, Trial, time_passes
from vkdispatch.codegen.abbreviations import Buff, Const, f32

Recording = Callable[[Any], object]


def module(name: str, function: str = "") -> Any:
    """Return `vd.fft`, `vd.vkfft` or `vd.reduce`, or skip the case where there is no such thing."""
    found = getattr(vd, name, None)
    if found is None:
        raise SkipCase(f"vd.{name} does not exist yet")
    if function and not hasattr(found, function):
        raise SkipCase(f"vd.{name}.{function} does not exist yet")
    return found


def wait() -> None:
    vd.queue_wait_idle()


def graph_of(record: Recording) -> Any:
    """Return a graph of what is recorded."""
    graph = vd.CommandGraph()
    record(graph)
    return graph


# ---- transforms


def upload(signal: Signal) -> Any:
    """Return a buffer with the signal's numbers."""
    host = signal.host()
    if signal.bits != 16:
        return vd.asbuffer(host)
    buffer = vd.Buffer(signal.shape, vd.complex32)
    buffer.write(np.stack([host.real, host.imag], -1).astype(np.float16))
    return buffer


def there_and_back(
    signal: Signal, forward: Callable[..., Any], inverse: Callable[..., Any], sizes: Sizes
) -> Trial:
    """Figures of two functions, which take a buffer and `graph`."""
    buffer = upload(signal)
    forward(buffer, graph=None)
    transformed = signal.is_transformed(buffer.read(0)[signal.samples()])
    inverse(buffer, graph=None)
    graph = graph_of(lambda graph: (forward(buffer, graph=graph), inverse(buffer, graph=graph)))

    def right(_: int) -> bool:
        return transformed and signal.is_back(buffer.read(0)[signal.samples()])

    return time_passes(graph.submit, wait, 2, 2 * signal.nbytes, signal.points, right, sizes)


def fft(sizes: Sizes, api: str = "fft") -> Trial:
    transforms, signal = module(api), lines_of(sizes)
    (axis,) = signal.axes

    def forward(buffer: Any, graph: Any) -> None:
        transforms.fft(buffer, axis=axis, graph=graph)

    def inverse(buffer: Any, graph: Any) -> None:
        transforms.ifft(buffer, axis=axis, graph=graph)

    return there_and_back(signal, forward, inverse, sizes)


def fft2(sizes: Sizes, api: str = "fft") -> Trial:
    transforms = module(api)
    return there_and_back(planes_of(sizes), transforms.fft2, transforms.ifft2, sizes)


def rfft(sizes: Sizes, api: str = "fft") -> Trial:
    transforms, host = module(api), real_lines(sizes)
    buffer = vd.asrfftbuffer(host)
    some = slice(0, None, max(1, len(host) // 3))
    transforms.rfft(buffer)
    transformed = error_of(buffer.read_fourier(0)[some], np.fft.rfft(host[some].astype(np.float64))) < 5e-6
    transforms.irfft(buffer)
    graph = graph_of(
        lambda graph: (transforms.rfft(buffer, graph=graph), transforms.irfft(buffer, graph=graph))
    )

    def right(_: int) -> bool:
        return transformed and error_of(buffer.read_real(0)[some], host[some]) < 1e-3

    return time_passes(graph.submit, wait, 2, real_nbytes(host), host.size, right, sizes)


def convolution2(sizes: Sizes) -> Trial:
    transforms, signal = module("fft", "convolve2D"), planes_of(sizes)
    kernel = unit_kernel(signal)
    # it multiplies by the conjugate
    buffer, factors = vd.asbuffer(signal.host()), vd.asbuffer(kernel.conj())
    transforms.convolve2D(buffer, factors)
    convolved = is_convolved(signal, kernel, buffer.read(0)[0])
    graph = graph_of(lambda graph: transforms.convolve2D(buffer, factors, graph=graph))

    def right(_: int) -> bool:
        # factors of magnitude 1 keep the squares' sum
        now, before = (float(np.linalg.norm(plane)) for plane in (buffer.read(0)[0], signal.host()[0]))
        return convolved and abs(now / before - 1) < 1e-3

    return time_passes(graph.submit, wait, 1, 2 * signal.nbytes, signal.points, right, sizes)


def scaled(sizes: Sizes) -> Trial:
    """One kernel: the spectrum is scaled where it is."""
    transforms, signal = module("fft", "convolve"), lines_of(sizes)

    @vd.map
    def scale(factor: Const[f32]) -> None:
        operation = transforms.read_op()
        operation.register[:] = operation.register * factor

    buffer = vd.asbuffer(signal.host())

    def record(graph: Any) -> None:
        transforms.convolve(buffer, np.float32(-1), kernel_map=scale, graph=graph)

    record(None)
    first = signal.is_back(buffer.read(0)[signal.samples()], -1)
    graph = graph_of(record)

    def right(ran: int) -> bool:
        return first and signal.is_back(buffer.read(0)[signal.samples()], (-1) ** (ran + 1))

    return time_passes(graph.submit, wait, 1, 2 * signal.nbytes, signal.points, right, sizes)


def transform(array: Array, api: str = "fft") -> Callable[[], Array]:
    """Begin the transforms of an array's rows, for their accuracy; what is returned waits for them."""
    transforms = module(api)
    buffer = vd.asbuffer(array)
    transforms.fft(buffer)
    return lambda: np.asarray(buffer.read(0))


# ---- reductions


def reduction(work: str, sizes: Sizes) -> Any:
    """Return the function that reduces each row of a buffer."""
    reduce: Any = module("reduce")
    if work == "reduce-squares":

        def square(x: Buff[f32]) -> f32:
            value = x[reduce.mapped_io_index()]
            return value * value

        return reduce.map_reduce(reduce.SubgroupAdd, axes=[1])(square)
    if work == "reduce-max":

        def same(x: Buff[f32]) -> f32:
            return x[reduce.mapped_io_index()]

        return reduce.map_reduce(reduce.SubgroupMax, axes=[1])(same)

    def add(a: f32, b: f32) -> f32:
        return a + b

    return reduce.reduce(0, axes=[1])(add)


def reduce_case(work: str) -> Callable[[Sizes], Trial]:
    """Return the case of a reduction."""

    def case(sizes: Sizes) -> Trial:
        function = reduction(work, sizes)
        hosts = reduced_inputs(sizes)
        buffers = [vd.asbuffer(host) for host in hosts]
        results: list[Any] = []
        graph = graph_of(lambda graph: results.extend(function(buffer, graph=graph) for buffer in buffers))
        moved = sum(host.nbytes for host in hosts)

        def right(_: int) -> bool:
            return all(map(is_right, hosts, results))

        def is_right(host: Array, result: Any) -> bool:
            return is_reduced(work, host, result.read(0)[0])

        return time_passes(graph.submit, wait, 1, moved, moved // 4, right, sizes)

    return case


REDUCTIONS: Sequence[str] = ("reduce-sum", "reduce-max", "reduce-squares", "reduce-rows")
CASES: dict[str, Callable[[Sizes], Trial]] = {
    "fft": fft,
    "rfft": rfft,
    "fft2": fft2,
    "convolution2": convolution2,
    "scaled": scaled,
    **{work: reduce_case(work) for work in REDUCTIONS},
}
