"""PyTorch's transforms (cuFFT) and reductions. No inverse is scaled: that would be a pass of its own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

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
from benchmarks.timing import Sizes, Trial, time_passes

Function = Callable[[torch.Tensor], torch.Tensor]
wait = torch.cuda.synchronize


def upload(signal: Signal) -> torch.Tensor:
    data = torch.tensor(signal.host(), device="cuda")
    return data.to(torch.complex32) if signal.bits == 16 else data


def host_of(data: torch.Tensor) -> Array:
    wide = data.to(torch.complex64) if data.dtype == torch.complex32 else data
    return np.asarray(wide.cpu().numpy())


def there_and_back(signal: Signal, forward: Function, inverse: Function, sizes: Sizes) -> Trial:
    data = upload(signal)
    results: list[torch.Tensor] = []

    def work() -> None:
        results[:] = [forward(data)]
        inverse(results[0])

    def right(_: int) -> bool:
        return signal.is_transformed(host_of(results[0][signal.samples()]))

    return time_passes(work, wait, 2, 2 * signal.nbytes, signal.points, right, sizes)


def fft(sizes: Sizes) -> Trial:
    signal = lines_of(sizes)
    (axis,) = signal.axes
    return there_and_back(
        signal,
        lambda x: torch.fft.fft(x, dim=axis),
        lambda y: torch.fft.ifft(y, dim=axis, norm="forward"),
        sizes,
    )


def fft2(sizes: Sizes) -> Trial:
    return there_and_back(
        planes_of(sizes), torch.fft.fft2, lambda y: torch.fft.ifft2(y, norm="forward"), sizes
    )


def rfft(sizes: Sizes) -> Trial:
    host = real_lines(sizes)
    data = torch.tensor(host, device="cuda")
    some = slice(0, None, max(1, len(host) // 3))
    results: list[torch.Tensor] = []

    def work() -> None:
        results[:] = [torch.fft.rfft(data)]
        torch.fft.irfft(results[0], n=host.shape[1], norm="forward")

    def right(_: int) -> bool:
        return error_of(host_of(results[0][some]), np.fft.rfft(host[some].astype(np.float64))) < 5e-6

    return time_passes(work, wait, 2, real_nbytes(host), host.size, right, sizes)


def convolution2(sizes: Sizes) -> Trial:
    signal = planes_of(sizes)
    kernel = unit_kernel(signal)
    data, factors = upload(signal), torch.tensor(kernel, device="cuda")
    results: list[torch.Tensor] = []

    def work() -> None:
        results[:] = [torch.fft.ifft2(torch.fft.fft2(data) * factors)]

    def right(_: int) -> bool:
        return is_convolved(signal, kernel, host_of(results[0][0]))

    return time_passes(work, wait, 1, 2 * signal.nbytes, signal.points, right, sizes)


def scaled(sizes: Sizes) -> Trial:
    signal = lines_of(sizes)
    data = upload(signal)
    results: list[torch.Tensor] = []

    def work() -> None:
        results[:] = [torch.fft.ifft(torch.fft.fft(data).mul_(-1.0))]

    def right(_: int) -> bool:
        return signal.is_back(host_of(results[0][signal.samples()]), -1)

    return time_passes(work, wait, 1, 2 * signal.nbytes, signal.points, right, sizes)


def transform(array: Array) -> Callable[[], Array]:
    """Begin the transforms of an array's rows, for their accuracy; what is returned waits for them."""
    found = torch.fft.fft(torch.tensor(array, device="cuda"))
    return lambda: host_of(found)


FUNCTIONS: dict[str, Function] = {
    "reduce-sum": lambda rows: rows.sum(dim=1),
    "reduce-rows": lambda rows: rows.sum(dim=1),
    "reduce-max": lambda rows: rows.amax(dim=1),
    # (rows * rows).sum() would write the squares
    "reduce-squares": lambda rows: torch.dot(rows[0], rows[0]),
}


def reduce_case(work: str) -> Callable[[Sizes], Trial]:
    """Return the case of a reduction."""
    function = FUNCTIONS[work]

    def case(sizes: Sizes) -> Trial:
        hosts = reduced_inputs(sizes)
        data = [torch.from_numpy(host).cuda() for host in hosts]
        results: list[torch.Tensor] = []

        def passes() -> None:
            results[:] = map(function, data)

        def right(_: int) -> bool:
            return all(
                is_reduced(work, host, host_of(result)) for host, result in zip(hosts, results, strict=True)
            )

        moved = sum(host.nbytes for host in hosts)
        return time_passes(passes, wait, 1, moved, moved // 4, right, sizes)

    return case


CASES: dict[str, Callable[[Sizes], Trial]] = {
    "fft": fft,
    "rfft": rfft,
    "fft2": fft2,
    "convolution2": convolution2,
    "scaled": scaled,
    **{work: reduce_case(work) for work in FUNCTIONS},
}


def clean() -> None:
    """Forget plans, whose work areas hold memory."""
    cache: Any = torch.backends.cuda.cufft_plan_cache
    cache.clear()
