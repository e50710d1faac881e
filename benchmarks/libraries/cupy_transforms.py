"""CuPy's transforms (cuFFT, with plans that are kept) and reductions; unscaled as torch's."""

from collections.abc import Callable
from typing import Any

import cupy
import cupyx.scipy.fft as transforms
import numpy as np

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

wait = cupy.cuda.runtime.deviceSynchronize
squares = cupy.ReductionKernel("float32 x", "float32 y", "x * x", "a + b", "y = a", "0", "squares")


def upload(signal: Signal) -> Any:
    if signal.bits == 16:
        raise SkipCase("has no complex32")
    return cupy.asarray(signal.host())


def there_and_back(
    signal: Signal, forward: Callable[[Any, Any], Any], inverse: Callable[[Any, Any], Any], sizes: Sizes
) -> Trial:
    """Figures of two functions of an array and its plan."""
    data = upload(signal)
    plan = transforms.get_fft_plan(data, axes=signal.axes)
    results: list[Any] = []

    def work() -> None:
        results[:] = [forward(data, plan)]
        inverse(results[0], plan)

    def right(_: int) -> bool:
        return signal.is_transformed(results[0][signal.samples()].get())

    return time_passes(work, wait, 2, 2 * signal.nbytes, signal.points, right, sizes)


def fft(sizes: Sizes) -> Trial:
    signal = lines_of(sizes)
    (axis,) = signal.axes
    return there_and_back(
        signal,
        lambda x, plan: transforms.fft(x, axis=axis, plan=plan),
        lambda y, plan: transforms.ifft(y, axis=axis, norm="forward", plan=plan),
        sizes,
    )


def fft2(sizes: Sizes) -> Trial:
    signal = planes_of(sizes)
    return there_and_back(
        signal,
        lambda x, plan: transforms.fft2(x, axes=signal.axes, plan=plan),
        lambda y, plan: transforms.ifft2(y, axes=signal.axes, norm="forward", plan=plan),
        sizes,
    )


def rfft(sizes: Sizes) -> Trial:
    host = real_lines(sizes)
    data = cupy.asarray(host)
    some = slice(0, None, max(1, len(host) // 3))

    def work() -> None:
        transforms.irfft(transforms.rfft(data), host.shape[1], norm="forward", overwrite_x=True)

    def right(_: int) -> bool:
        return error_of(transforms.rfft(data)[some].get(), np.fft.rfft(host[some].astype(np.float64))) < 5e-6

    return time_passes(work, wait, 2, real_nbytes(host), host.size, right, sizes)


def convolution2(sizes: Sizes) -> Trial:
    signal = planes_of(sizes)
    kernel = unit_kernel(signal)
    data, factors = upload(signal), cupy.asarray(kernel)
    plan = transforms.get_fft_plan(data, axes=signal.axes)
    results: list[Any] = []

    def work() -> None:
        spectrum = transforms.fft2(data, axes=signal.axes, plan=plan)
        spectrum *= factors
        results[:] = [transforms.ifft2(spectrum, axes=signal.axes, overwrite_x=True, plan=plan)]

    def right(_: int) -> bool:
        return is_convolved(signal, kernel, results[0][0].get())

    return time_passes(work, wait, 1, 2 * signal.nbytes, signal.points, right, sizes)


def scaled(sizes: Sizes) -> Trial:
    signal = lines_of(sizes)
    data = upload(signal)
    plan = transforms.get_fft_plan(data, axes=signal.axes)
    results: list[Any] = []

    def work() -> None:
        spectrum = transforms.fft(data, plan=plan)
        spectrum *= np.float32(-1)
        results[:] = [transforms.ifft(spectrum, overwrite_x=True, plan=plan)]

    def right(_: int) -> bool:
        return signal.is_back(results[0][signal.samples()].get(), -1)

    return time_passes(work, wait, 1, 2 * signal.nbytes, signal.points, right, sizes)


def transform(array: Array) -> Callable[[], Array]:
    """Begin the transforms of an array's rows, for their accuracy; what is returned waits for them."""
    found = transforms.fft(cupy.asarray(array))
    return lambda: np.asarray(found.get())


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "reduce-sum": lambda rows: rows.sum(axis=1),
    "reduce-rows": lambda rows: rows.sum(axis=1),
    "reduce-max": lambda rows: rows.max(axis=1),
    "reduce-squares": lambda rows: squares(rows, axis=1),
}


def reduce_case(work: str) -> Callable[[Sizes], Trial]:
    """Return the case of a reduction."""
    function = FUNCTIONS[work]

    def case(sizes: Sizes) -> Trial:
        hosts = reduced_inputs(sizes)
        data = [cupy.asarray(host) for host in hosts]
        results: list[Any] = []

        def passes() -> None:
            results[:] = map(function, data)

        def right(_: int) -> bool:
            return all(
                is_reduced(work, host, result.get()) for host, result in zip(hosts, results, strict=True)
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
    cupy.fft.config.get_plan_cache().clear()
