"""CuPy: RawKernel for calls, ElementwiseKernel where a user would write one."""

from collections.abc import Callable
from typing import Any

import cupy
import cupyx
import numpy as np

from benchmarks import fresh
from benchmarks.libraries import cupy_arrays, cupy_transforms
from benchmarks.timing import (
    Sizes,
    SkipCase,
    Trial,
    pattern,
    time_bytes,
    time_calls,
    time_each,
    time_recording,
    time_threads,
)

try:
    cupy.cuda.runtime.getDeviceCount()
except cupy.cuda.runtime.CUDARuntimeError as error:
    raise SkipCase(f"CuPy finds no CUDA device: {error}") from error

ELEMENTS = 64
LONGEST_GRAPH = 10_000
transform = cupy_transforms.transform
wait = cupy.cuda.runtime.deviceSynchronize

_many = ", ".join([f"float* d{k}" for k in range(8)] + [f"float s{k}" for k in range(8)])
_additions = " ".join(f"d{k}[i] += s{k};" for k in range(8))
SOURCE = f"""
extern "C" __global__ void add_one(float* data) {{ data[threadIdx.x] += 1.0f; }}
extern "C" __global__ void add_const(float* data, float step) {{ data[threadIdx.x] += step; }}
extern "C" __global__ void add_many({_many}) {{ int i = threadIdx.x; {_additions} }}
"""
module = cupy.RawModule(code=SOURCE)
add_one, add_const, add_many = (module.get_function(n) for n in ("add_one", "add_const", "add_many"))
saxpy_kernel = cupy.ElementwiseKernel("float32 x, float32 a", "float32 y", "y = a * x + y", "saxpy")
GRID, BLOCK = (1,), (ELEMENTS,)


def describe() -> dict[str, Any]:
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    driver = cupy.cuda.runtime.driverGetVersion()
    return {"version": cupy.__version__, "device": name, "driver_version": driver}


def zeros() -> Any:
    return cupy.zeros(ELEMENTS, cupy.float32)


def all_equal(array: Any, value: float) -> bool:
    return bool((array == value).all())


def call_buffer(sizes: Sizes) -> Trial:
    data = zeros()
    return time_calls(lambda: add_one(GRID, BLOCK, (data,)), wait, lambda n: all_equal(data, n), sizes)


def call_const(sizes: Sizes) -> Trial:
    data = zeros()
    return time_calls(
        lambda: add_const(GRID, BLOCK, (data, np.float32(2))), wait, lambda n: all_equal(data, 2 * n), sizes
    )


def call_many(sizes: Sizes) -> Trial:
    many = [zeros() for _ in range(8)]
    steps: list[Any] = [np.float32(step) for step in range(8)]

    def right(calls: int) -> bool:
        return all(all_equal(data, calls * step) for data, step in zip(many, steps, strict=True))

    return time_calls(lambda: add_many(GRID, BLOCK, (*many, *steps)), wait, right, sizes)


def launch_wait(sizes: Sizes) -> Trial:
    data = zeros()

    def work() -> None:
        add_one(GRID, BLOCK, (data,))
        wait()

    return time_each(work, lambda n: all_equal(data, n), sizes)


def launch_read(sizes: Sizes) -> Trial:
    data = zeros()

    def work() -> None:
        add_one(GRID, BLOCK, (data,))
        data.get()

    return time_each(work, lambda n: all_equal(data, n), sizes)


def threads(sizes: Sizes) -> Trial:
    arrays = [zeros() for _ in range(16)]
    step = np.float32(1)

    def work_of(number: int) -> Callable[[], object]:
        data = arrays[number]
        return lambda: add_const(GRID, BLOCK, (data, step))

    def right(ran: list[int]) -> bool:
        return all(all_equal(data, count) for data, count in zip(arrays, ran, strict=True))

    return time_threads(work_of, wait, right, sizes)


def graph_dependent(sizes: Sizes) -> Trial:
    length = int(sizes["length"])
    if length > LONGEST_GRAPH:
        raise SkipCase("capturing and instantiating so many nodes takes minutes")
    data = zeros()
    add_const(GRID, BLOCK, (data, np.float32(0)))
    wait()
    stream = cupy.cuda.Stream(non_blocking=True)
    step = np.float32(1)

    def make() -> tuple[Callable[[], None], Callable[[], None]]:
        graphs: list[Any] = []

        def record() -> None:
            with stream:
                stream.begin_capture()
                for _ in range(length):
                    add_const(GRID, BLOCK, (data, step))
                graphs.append(stream.end_capture())

        return record, lambda: graphs[0].launch(stream)

    def right(ran: int) -> bool:
        return ran * length >= 1 << 24 or all_equal(data, ran * length)

    return time_recording(make, wait, right, sizes)


# ---- memory


def host_array(count: int, pinned: bool = False) -> Any:
    if not pinned:
        return pattern(count)
    array = cupyx.empty_pinned((count,), np.float32)
    array[:] = pattern(count)
    return array


def upload_from(sizes: Sizes, pinned: bool) -> Trial:
    host = host_array(int(sizes["bytes"]) // 4, pinned)
    data = cupy.zeros(host.shape, host.dtype)
    return time_bytes(
        lambda: data.set(host), wait, host.nbytes, lambda _: np.array_equal(data.get(), host), sizes
    )


def upload(sizes: Sizes) -> Trial:
    return upload_from(sizes, pinned=False)


def upload_pinned(sizes: Sizes) -> Trial:
    return upload_from(sizes, pinned=True)


def download(sizes: Sizes) -> Trial:
    host = host_array(int(sizes["bytes"]) // 4)
    data = cupy.asarray(host)
    return time_bytes(
        lambda: data.get(), wait, host.nbytes, lambda _: np.array_equal(data.get(), host), sizes
    )


def download_to(sizes: Sizes, pinned: bool) -> Trial:
    host = host_array(int(sizes["bytes"]) // 4)
    data = cupy.asarray(host)
    out = host_array(host.size, pinned)
    out[:] = 0
    return time_bytes(
        lambda: data.get(out=out), wait, host.nbytes, lambda _: np.array_equal(out, host), sizes
    )


def download_into(sizes: Sizes) -> Trial:
    return download_to(sizes, pinned=False)


def download_pinned(sizes: Sizes) -> Trial:
    return download_to(sizes, pinned=True)


def saxpy(sizes: Sizes) -> Trial:
    x = cupy.asarray(pattern(int(sizes["elements"])))
    y = cupy.zeros_like(x)
    a = np.float32(0.5)

    def right(ran: int) -> bool:
        return bool((y == x * np.float32(0.5 * ran)).all())

    return time_bytes(lambda: saxpy_kernel(x, a, y), wait, 3 * x.nbytes, right, sizes)


def copy(sizes: Sizes) -> Trial:
    source = cupy.asarray(pattern(int(sizes["elements"])))
    to = cupy.zeros_like(source)
    return time_bytes(
        lambda: cupy.copyto(to, source), wait, 2 * source.nbytes, lambda _: bool((to == source).all()), sizes
    )


def startup(sizes: Sizes) -> Trial:
    return fresh.trial("cupy")


def clean() -> None:
    """Give memory back to the device between cases."""
    cupy_transforms.clean()
    cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_pinned_memory_pool().free_all_blocks()


CASES = {
    "call-buffer": call_buffer,
    "call-const": call_const,
    "call-var": call_const,
    "call-many": call_many,
    "launch-wait": launch_wait,
    "launch-read": launch_read,
    "threads": threads,
    "graph-dependent": graph_dependent,
    "upload": upload,
    "upload-pinned": upload_pinned,
    "download": download,
    "download-into": download_into,
    "download-pinned": download_pinned,
    "saxpy": saxpy,
    "copy": copy,
    "startup": startup,
    **cupy_transforms.CASES,
    **cupy_arrays.CASES,
}
SKIPS = {"graph-independent": "a capture of one stream puts its nodes one after another"}
