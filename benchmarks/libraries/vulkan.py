"""What we and vkdispatch 0.1.0 do alike: the same code runs on both, each in a process of its own."""

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from benchmarks.timing import (
    Sizes,
    Trial,
    Values,
    pattern,
    time_bytes,
    time_calls,
    time_each,
    time_recording,
    time_threads,
)
from vkdispatch.codegen.abbreviations import Buff, Const, Var, f32

ELEMENTS = 64
# Independent dispatches take turns on so many buffers.
BUFFERS = 256


@vd.shader("data.size")
def increment(data: Buff[f32]) -> None:
    tid = vc.global_invocation_id().x
    data[tid] = data[tid] + 1


@vd.shader("data.size")
def add_const(data: Buff[f32], step: Const[f32]) -> None:
    tid = vc.global_invocation_id().x
    data[tid] = data[tid] + step


@vd.shader("data.size")
def add_var(data: Buff[f32], step: Var[f32]) -> None:
    tid = vc.global_invocation_id().x
    data[tid] = data[tid] + step


@vd.shader("param0.size", arg_type_annotations=[Buff[f32]] * 8 + [Const[f32]] * 8)
def add_many(*arguments: Any) -> None:
    tid = vc.global_invocation_id().x
    for data, step in zip(arguments[:8], arguments[8:]):  # noqa: B905
        data[tid] = data[tid] + step


@vd.shader("y.size")
def saxpy_kernel(y: Buff[f32], x: Buff[f32], a: Const[f32]) -> None:
    tid = vc.global_invocation_id().x
    y[tid] = a * x[tid] + y[tid]


@vd.shader("to.size")
def copy_kernel_(to: Buff[f32], source: Buff[f32]) -> None:
    tid = vc.global_invocation_id().x
    to[tid] = source[tid]


def describe(version: str) -> dict[str, Any]:
    """Make the context and say what it runs on."""
    # 0.1.0's default refuses machines whose only device is a CPU driver.
    info = vd.make_context(use_cpu=True).device_infos[0]
    return {
        "version": version,
        "device": info.device_name,
        "device_type": int(info.device_type),
        "driver_version": info.driver_version,
    }


def zeros() -> Any:
    return vd.asbuffer(np.zeros(ELEMENTS, np.float32))


def all_equal(buffer: Any, value: float) -> bool:
    return bool((buffer.read(0) == np.float32(value)).all())


def wait() -> None:
    vd.queue_wait_idle()


# ---- launching


def call_buffer(sizes: Sizes) -> Trial:
    data = zeros()
    return time_calls(lambda: increment(data), lambda: data.read(0), lambda n: all_equal(data, n), sizes)


def call_const(sizes: Sizes) -> Trial:
    data = zeros()
    return time_calls(
        lambda: add_const(data, 2.0), lambda: data.read(0), lambda n: all_equal(data, 2 * n), sizes
    )


def call_var(sizes: Sizes) -> Trial:
    data = zeros()
    return time_calls(
        lambda: add_var(data, 3.0), lambda: data.read(0), lambda n: all_equal(data, 3 * n), sizes
    )


def call_many(sizes: Sizes) -> Trial:
    many = [zeros() for _ in range(8)]
    steps = [float(step) for step in range(8)]

    def right(calls: int) -> bool:
        return all(all_equal(data, calls * step) for data, step in zip(many, steps, strict=True))

    return time_calls(lambda: add_many(*many, *steps), lambda: many[0].read(0), right, sizes)


def launch_wait(sizes: Sizes) -> Trial:
    data = zeros()

    def work() -> None:
        increment(data)
        vd.queue_wait_idle()

    return time_each(work, lambda n: all_equal(data, n), sizes)


def launch_read(sizes: Sizes) -> Trial:
    data = zeros()

    def work() -> None:
        increment(data)
        data.read(0)

    return time_each(work, lambda n: all_equal(data, n), sizes)


def threads(sizes: Sizes) -> Trial:
    buffers = [zeros() for _ in range(16)]

    def work_of(number: int) -> Callable[[], None]:
        data = buffers[number]
        return lambda: add_const(data, 1.0)

    def right(ran: list[int]) -> bool:
        return all(all_equal(data, count) for data, count in zip(buffers, ran, strict=True))

    return time_threads(work_of, wait, right, sizes)


# ---- graphs


def graph_of(buffers: list[Any], sizes: Sizes) -> Trial:
    length = int(sizes["length"])

    def make() -> tuple[Callable[[], None], Callable[[], None]]:
        graph = vd.CommandGraph()

        def record() -> None:
            for number in range(length):
                add_const(buffers[number % len(buffers)], 1.0, graph=graph)

        return record, graph.submit

    def right(ran: int) -> bool:
        counts = [len(range(number, length, len(buffers))) for number in range(len(buffers))]
        # what float32 cannot count to, this cannot check
        return all(
            all_equal(data, ran * count) or ran * count >= 1 << 24
            for data, count in zip(buffers, counts, strict=True)
        )

    add_const(buffers[0], 0.0)
    wait()
    return time_recording(make, wait, right, sizes)


def graph_dependent(sizes: Sizes) -> Trial:
    return graph_of([zeros()], sizes)


def graph_independent(sizes: Sizes) -> Trial:
    return graph_of([zeros() for _ in range(min(BUFFERS, int(sizes["length"])))], sizes)


# ---- memory


def upload(sizes: Sizes) -> Trial:
    array = pattern(int(sizes["bytes"]) // 4)
    buffer = vd.Buffer(array.shape, vd.float32)
    # the write may only have been queued
    return time_bytes(
        lambda: buffer.write(array),
        wait,
        array.nbytes,
        lambda _: np.array_equal(buffer.read(0), array),
        sizes,
    )


def download(sizes: Sizes) -> Trial:
    array = pattern(int(sizes["bytes"]) // 4)
    buffer = vd.asbuffer(array)
    return time_bytes(
        lambda: buffer.read(0), wait, array.nbytes, lambda _: np.array_equal(buffer.read(0), array), sizes
    )


def saxpy(sizes: Sizes) -> Trial:
    host = pattern(int(sizes["elements"]))
    x, y = vd.asbuffer(host), vd.asbuffer(np.zeros_like(host))

    def right(calls: int) -> bool:
        return np.array_equal(y.read(0), host * np.float32(0.5 * calls))

    return time_bytes(lambda: saxpy_kernel(y, x, 0.5), wait, 3 * host.nbytes, right, sizes)


def copy_kernel(sizes: Sizes) -> Trial:
    host = pattern(int(sizes["elements"]))
    source, to = vd.asbuffer(host), vd.asbuffer(np.zeros_like(host))
    return time_bytes(
        lambda: copy_kernel_(to, source),
        wait,
        2 * host.nbytes,
        lambda _: np.array_equal(to.read(0), host),
        sizes,
    )


# ---- what a program does before its kernels run


def sixty_operations(constant: float) -> Callable[..., None]:
    """Return a kernel of sixty arithmetic operations; another constant makes it another kernel."""

    def kernel(data: Buff[f32], k: Const[f32]) -> None:
        tid = vc.global_invocation_id().x
        # registers: 0.1.0 writes out again whatever is used twice
        x = data[tid].to_register()
        y = data[tid].to_register()
        x[:] = x * constant + y - k
        y[:] = (y + k) * x - 2.0
        x[:] = vc.sqrt(x * x + 1.0)
        y[:] = vc.sin(x) * 3.0 + y
        x[:] = x * constant + y - k
        y[:] = (y + k) * x - 2.0
        x[:] = vc.sqrt(x * x + 1.0)
        y[:] = vc.sin(x) * 3.0 + y
        x[:] = x * constant + y - k
        y[:] = (y + k) * x - 2.0
        x[:] = vc.sqrt(x * x + 1.0)
        y[:] = vc.sin(x) * 3.0 + y
        x[:] = x * constant + y - k
        y[:] = (y + k) * x - 2.0
        x[:] = vc.sqrt(x * x + 1.0)
        y[:] = vc.sin(x) * 3.0 + y
        x[:] = x * constant + y - k
        y[:] = (y + k) * x - 2.0
        x[:] = vc.sqrt(x * x + 1.0)
        y[:] = vc.sin(x) * 3.0 + y
        data[tid] = x - y

    return kernel


def compile_kernel(sizes: Sizes) -> Trial:
    """trace_ms: decorator and GLSL text; build_ms: all the rest to the pipeline."""
    number = 0

    def once() -> Values:
        nonlocal number
        number += 1
        function = sixty_operations(1.0 + number / 64)
        start = time.perf_counter()
        kernel = vd.shader("data.size")(function)
        kernel.shader_description.make_source(64, 1, 1)
        traced = time.perf_counter()
        kernel.build()
        built = time.perf_counter()
        return {"trace_ms": (traced - start) * 1e3, "build_ms": (built - traced) * 1e3}

    return median_of(once, int(sizes["kernels"]))


def median_of(once: Callable[[], Values], times: int) -> Trial:
    """Return a trial whose round is the median of several runs, after two that do not count."""
    once()
    once()

    def measure() -> Values:
        runs = [once() for _ in range(times)]
        return {name: float(np.median([run[name] for run in runs])) for name in runs[0]}

    return Trial(measure, lambda: True, times)


# ---- what lasts


def allocations(sizes: Sizes) -> Trial:
    """python_blocks: growth of CPython's count of memory blocks, per call."""
    data = zeros()
    calls = min(5_000, int(sizes["launches"]))
    ran = 0

    def measure() -> Values:
        nonlocal ran
        for _ in range(100):
            add_const(data, 1.0)
        wait()
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(calls):
            add_const(data, 1.0)
        wait()
        ran += calls + 100
        return {"python_blocks": (sys.getallocatedblocks() - before) / calls}

    return Trial(measure, lambda: all_equal(data, ran), calls)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def many_launches(sizes: Sizes) -> Trial:
    """growth_mib: growth of the process's resident memory over all launches of a round."""
    data = zeros()
    calls = int(sizes["many"])
    ran = 0

    def measure() -> Values:
        nonlocal ran
        for _ in range(calls // 10):
            increment(data)
        wait()
        before = resident_bytes()
        for _ in range(calls):
            increment(data)
        wait()
        ran += calls + calls // 10
        return {"growth_mib": (resident_bytes() - before) / 2**20}

    # float32 counts no further than 2^24
    return Trial(measure, lambda: ran >= 1 << 24 or all_equal(data, ran), calls)


def create_buffer(sizes: Sizes) -> Trial:
    def work() -> None:
        vd.Buffer((256,), vd.float32)

    return time_each(work, lambda _: True, sizes, wait)


CASES: dict[str, Callable[[Sizes], Trial]] = {
    "call-buffer": call_buffer,
    "call-const": call_const,
    "call-var": call_var,
    "call-many": call_many,
    "launch-wait": launch_wait,
    "launch-read": launch_read,
    "graph-dependent": graph_dependent,
    "graph-independent": graph_independent,
    "upload": upload,
    "download": download,
    "saxpy": saxpy,
    "copy-kernel": copy_kernel,
    "compile": compile_kernel,
    "threads": threads,
    "allocations": allocations,
    "many-launches": many_launches,
    "create-buffer": create_buffer,
}
