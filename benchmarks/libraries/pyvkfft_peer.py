"""The library VkFFT on CUDA, by pyvkfft on CuPy's arrays. In place, as its users have it."""

import ctypes
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from benchmarks.signals import (
    Array,
    Signal,
    error_of,
    is_convolved,
    lines_of,
    planes_of,
    real_lines,
    real_nbytes,
    unit_kernel,
)
from benchmarks.timing import Sizes, SkipCase, Trial, time_passes


def load_compiler() -> None:
    """Load NVRTC where pip has put it: pyvkfft's own library looks for it on the system's path alone."""
    found = find_spec("nvidia")
    for folder in found.submodule_search_locations or () if found is not None else ():
        # the others of these files are its parts
        for path in sorted(Path(folder).glob("*/lib/libnvrtc.so.*")):
            ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
            return


try:
    cupy.cuda.runtime.getDeviceCount()
except cupy.cuda.runtime.CUDARuntimeError as error:
    raise SkipCase(f"CuPy finds no CUDA device: {error}") from error
load_compiler()
try:
    from pyvkfft.cuda import VkFFTApp, vkfft_version
except OSError as error:
    raise SkipCase(f"not built: {error}") from error

wait = cupy.cuda.runtime.deviceSynchronize


def describe() -> dict[str, Any]:
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    try:
        own = version("pyvkfft")
    except PackageNotFoundError:
        own = "unpacked"
    return {"version": f"{own}, VkFFT {vkfft_version()}", "device": name}


def upload(signal: Signal) -> Any:
    if signal.bits == 16:
        raise SkipCase("has no complex32 for CuPy's arrays")
    return cupy.array(signal.host())


def planned(data: Any, signal: Signal) -> Any:
    """Return the plan of the signal's transforms; its inverse is normalised, at no cost."""
    return VkFFTApp(data.shape, data.dtype, axes=signal.axes, inplace=True, norm=1)


def there_and_back(signal: Signal, sizes: Sizes) -> Trial:
    data = upload(signal)
    plan = planned(data, signal)
    plan.fft(data)
    transformed = signal.is_transformed(data[signal.samples()].get())
    plan.ifft(data)

    def work() -> None:
        plan.fft(data)
        plan.ifft(data)

    def right(_: int) -> bool:
        return transformed and signal.is_back(data[signal.samples()].get())

    return time_passes(work, wait, 2, 2 * signal.nbytes, signal.points, right, sizes)


def rfft(sizes: Sizes) -> Trial:
    host = real_lines(sizes)
    many, n = host.shape
    data = cupy.array(host)
    half = cupy.empty((many, n // 2 + 1), np.complex64)
    plan = VkFFTApp(data.shape, data.dtype, ndim=1, inplace=False, norm=1, r2c=True)
    some = slice(0, None, max(1, many // 3))

    def work() -> None:
        plan.fft(data, half)
        plan.ifft(half, data)

    def right(_: int) -> bool:
        same = error_of(data[some].get(), host[some]) < 1e-3
        return same and error_of(half[some].get(), np.fft.rfft(host[some].astype(np.float64))) < 1e-3

    return time_passes(work, wait, 2, real_nbytes(host), host.size, right, sizes)


def convolution2(sizes: Sizes) -> Trial:
    signal = planes_of(sizes)
    kernel = unit_kernel(signal)
    data, factors = upload(signal), cupy.asarray(kernel)
    plan = planned(data, signal)

    def work() -> None:
        plan.fft(data)
        cupy.multiply(data, factors, out=data)
        plan.ifft(data)

    work()
    convolved = is_convolved(signal, kernel, data[0].get())
    return time_passes(work, wait, 1, 2 * signal.nbytes, signal.points, lambda _: convolved, sizes)


def scaled(sizes: Sizes) -> Trial:
    signal = lines_of(sizes)
    data = upload(signal)
    plan = planned(data, signal)
    factor = np.float32(-1)

    def work() -> None:
        plan.fft(data)
        cupy.multiply(data, factor, out=data)
        plan.ifft(data)

    def right(ran: int) -> bool:
        return signal.is_back(data[signal.samples()].get(), (-1) ** ran)

    return time_passes(work, wait, 1, 2 * signal.nbytes, signal.points, right, sizes)


def transform(array: Array) -> Callable[[], Array]:
    """Begin the transforms of an array's rows, for their accuracy; what is returned waits for them."""
    data = cupy.array(array)
    VkFFTApp(data.shape, data.dtype, ndim=1, inplace=True).fft(data)
    # the plan is gone once this returns, and its kernels with it
    wait()
    return lambda: np.asarray(data.get())


def clean() -> None:
    """Give memory back to the device between cases."""
    cupy.get_default_memory_pool().free_all_blocks()


CASES: dict[str, Callable[[Sizes], Trial]] = {
    "fft": lambda sizes: there_and_back(lines_of(sizes), sizes),
    "fft2": lambda sizes: there_and_back(planes_of(sizes), sizes),
    "rfft": rfft,
    "convolution2": convolution2,
    "scaled": scaled,
}
SKIPS: dict[str, str] = {}
