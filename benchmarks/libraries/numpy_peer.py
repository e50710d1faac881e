"""NumPy on the host: what a user has without any of these. Its transforms are of one thread."""

import platform
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.libraries import numpy_arrays
from benchmarks.signals import (
    REDUCED,
    Array,
    Signal,
    is_convolved,
    is_reduced,
    lines_of,
    planes_of,
    real_lines,
    real_nbytes,
    reduced_inputs,
    unit_kernel,
)
from benchmarks.timing import Sizes, SkipCase, Trial, nothing, time_passes

# Beyond, a case takes so long that the others' memory and time are wasted on it.
MOST_POINTS = 2**22
MOST_REDUCED = 2**26


def describe() -> dict[str, Any]:
    return {"version": np.__version__, "device": platform.processor() or platform.machine()}


def refuse_many(signal: Signal) -> Signal:
    if signal.points > MOST_POINTS:
        raise SkipCase("takes seconds for so much")
    if signal.bits == 16:
        raise SkipCase("has no complex32")
    return signal


def there_and_back(
    signal: Signal, forward: Callable[..., Array], inverse: Callable[..., Array], sizes: Sizes
) -> Trial:
    host = signal.host()
    results: list[Array] = []

    def work() -> None:
        results[:] = [forward(host)]
        inverse(results[0])

    def right(_: int) -> bool:
        return signal.is_transformed(results[0][signal.samples()])

    return time_passes(work, nothing, 2, 2 * signal.nbytes, signal.points, right, sizes)


def fft(sizes: Sizes) -> Trial:
    signal = refuse_many(lines_of(sizes))
    (axis,) = signal.axes
    return there_and_back(
        signal, lambda x: np.fft.fft(x, axis=axis), lambda x: np.fft.ifft(x, axis=axis), sizes
    )


def fft2(sizes: Sizes) -> Trial:
    return there_and_back(refuse_many(planes_of(sizes)), np.fft.fft2, np.fft.ifft2, sizes)


def rfft(sizes: Sizes) -> Trial:
    host = real_lines(sizes)
    if host.size > MOST_POINTS:
        raise SkipCase("takes seconds for so much")
    results: list[Array] = []

    def work() -> None:
        results[:] = [np.fft.irfft(np.fft.rfft(host), host.shape[1])]

    def right(_: int) -> bool:
        return bool(np.allclose(results[0], host, atol=1e-4))

    return time_passes(work, nothing, 2, real_nbytes(host), host.size, right, sizes)


def convolution2(sizes: Sizes) -> Trial:
    signal = refuse_many(planes_of(sizes))
    host, kernel = signal.host(), unit_kernel(signal)
    results: list[Array] = []

    def work() -> None:
        results[:] = [np.fft.ifft2(np.fft.fft2(host) * kernel)]

    def right(_: int) -> bool:
        return is_convolved(signal, kernel, results[0][0])

    return time_passes(work, nothing, 1, 2 * signal.nbytes, signal.points, right, sizes)


def scaled(sizes: Sizes) -> Trial:
    signal = refuse_many(lines_of(sizes))
    host = signal.host()
    results: list[Array] = []

    def work() -> None:
        results[:] = [np.fft.ifft(np.fft.fft(host) * np.float32(-1))]

    def right(_: int) -> bool:
        return signal.is_back(results[0][signal.samples()], -1)

    return time_passes(work, nothing, 1, 2 * signal.nbytes, signal.points, right, sizes)


# As a user writes them; see `REDUCED` for what they are checked by.
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "reduce-sum": lambda rows: rows.sum(axis=1),
    "reduce-rows": lambda rows: rows.sum(axis=1),
    "reduce-max": lambda rows: rows.max(axis=1),
    # np.dot of so many is not as exact as is asked for here
    "reduce-squares": lambda rows: (rows * rows).sum(axis=1),
}


def reduce_case(work: str) -> Callable[[Sizes], Trial]:
    """Return the case of a reduction."""
    function = FUNCTIONS[work]

    def case(sizes: Sizes) -> Trial:
        if sizes["reduced"] > MOST_REDUCED:
            raise SkipCase("takes seconds for so much")
        hosts = reduced_inputs(sizes)
        results: list[Array] = []

        def passes() -> None:
            results[:] = map(function, hosts)

        def right(_: int) -> bool:
            return all(is_reduced(work, host, result) for host, result in zip(hosts, results, strict=True))

        moved = sum(host.nbytes for host in hosts)
        return time_passes(passes, nothing, 1, moved, moved // 4, right, sizes)

    return case


def transform(array: Array) -> Callable[[], Array]:
    """Transform an array's rows, for their accuracy; what is returned returns them."""
    return lambda: np.fft.fft(array)


CASES: dict[str, Callable[[Sizes], Trial]] = {
    "fft": fft,
    "rfft": rfft,
    "fft2": fft2,
    "convolution2": convolution2,
    "scaled": scaled,
    **{work: reduce_case(work) for work in REDUCED},
    **numpy_arrays.CASES,
}
SKIPS: dict[str, str] = {}
