"""The version under test. What a version does not have yet is skipped, with the reason in the results."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import vkdispatch as vd
import vkdispatch_native as native
from benchmarks import fresh
from benchmarks.libraries import our_arrays, vulkan, vulkan_transforms
from benchmarks.libraries.vulkan import add_const, all_equal, saxpy_kernel, sixty_operations, wait, zeros
from benchmarks.timing import Sizes, SkipCase, Trial, Values, pattern, time_bytes

CHAIN = 10


transform = vulkan_transforms.transform


def describe() -> dict[str, Any]:
    return vulkan.describe(vd.__version__)


def need(owner: object, name: str) -> Any:
    """Return what is there by that name, or skip the case."""
    found = getattr(owner, name, None)
    if found is None:
        raise SkipCase(f"{getattr(owner, '__name__', owner)}.{name} does not exist yet")
    return found


# ---- compiling


def compile_kernel(sizes: Sizes) -> Trial:
    """trace_ms: decorator and GLSL; spirv_ms: GLSL to SPIR-V; build_ms: all from GLSL to the pipeline."""
    number = 0

    def once() -> Values:
        nonlocal number
        number += 1
        function = sixty_operations(1.0 + number / 64)
        start = time.perf_counter()
        kernel = vd.shader("data.size")(function)
        code = kernel.get_src(build=False, line_numbers=False).code
        traced = time.perf_counter()
        native.compile_glsl(code)
        compiled = time.perf_counter()
        kernel.build()
        built = time.perf_counter()
        return {
            "trace_ms": (traced - start) * 1e3,
            "spirv_ms": (compiled - traced) * 1e3,
            "build_ms": (built - compiled) * 1e3,
        }

    return vulkan.median_of(once, int(sizes["kernels"]))


def startup(sizes: Sizes) -> Trial:
    return fresh.trial("vkdispatch")


# ---- memory


def download_into(sizes: Sizes) -> Trial:
    array = pattern(int(sizes["bytes"]) // 4)
    buffer, out = vd.asbuffer(array), np.zeros_like(array)
    return time_bytes(
        lambda: buffer.read(0, out=out), wait, array.nbytes, lambda _: np.array_equal(out, array), sizes
    )


def upload_pinned(sizes: Sizes) -> Trial:
    empty_pinned = need(vd, "empty_pinned")
    pinned = empty_pinned((int(sizes["bytes"]) // 4,), np.float32)
    pinned[:] = pattern(pinned.size)
    buffer = vd.Buffer(pinned.shape, vd.float32)
    return time_bytes(
        lambda: buffer.write(pinned),
        wait,
        pinned.nbytes,
        lambda _: np.array_equal(buffer.read(0), pinned),
        sizes,
    )


def download_pinned(sizes: Sizes) -> Trial:
    empty_pinned = need(vd, "empty_pinned")
    array = pattern(int(sizes["bytes"]) // 4)
    pinned = empty_pinned(array.shape, np.float32)
    buffer = vd.asbuffer(array)
    return time_bytes(
        lambda: buffer.read(0, out=pinned), wait, array.nbytes, lambda _: np.array_equal(pinned, array), sizes
    )


def copy(sizes: Sizes) -> Trial:
    copyto = need(vd, "copyto")
    host = pattern(int(sizes["elements"]))
    source, to = vd.asbuffer(host), vd.asbuffer(np.zeros_like(host))
    return time_bytes(
        lambda: copyto(to, source), wait, 2 * host.nbytes, lambda _: np.array_equal(to.read(0), host), sizes
    )


# ---- fusion


def replays_of(graph: Any, times: int) -> float:
    """Return the microseconds that one replay takes, of many."""
    for _ in range(3):
        graph.submit()
    wait()
    start = time.perf_counter()
    for _ in range(times):
        graph.submit()
    wait()
    return (time.perf_counter() - start) / times * 1e6


def fused_trial(
    record: Callable[[Any], None],
    right: Callable[[int], bool],
    figure: Callable[[float], float],
    sizes: Sizes,
) -> Trial:
    """Figures plain and fused: of the graph as recorded, and after `graph.optimize()`."""
    plain, fused = vd.CommandGraph(), vd.CommandGraph()
    optimize = need(fused, "optimize")
    record(plain)
    record(fused)
    optimize()
    once = replays_of(plain, 1)
    times = max(1, min(int(sizes["fused"]), int(sizes["seconds"] * 1e6 / once)))
    ran = 4

    def measure() -> Values:
        nonlocal ran
        ran += 2 * (times + 3)
        return {"plain": figure(replays_of(plain, times)), "fused": figure(replays_of(fused, times))}

    return Trial(measure, lambda: right(ran), times)


def fusion_tiny(sizes: Sizes) -> Trial:
    """Ten dependent additions to a small buffer; microseconds a replay."""
    data = zeros()

    def record(graph: Any) -> None:
        for _ in range(CHAIN):
            add_const(data, 1.0, graph=graph)

    def right(ran: int) -> bool:
        return ran * CHAIN >= 1 << 24 or all_equal(data, ran * CHAIN)

    return fused_trial(record, right, lambda us: us, sizes)


def fusion_saxpy(sizes: Sizes) -> Trial:
    """Ten saxpys, y += 0.5 x_k; GB/s as if each moved its memory by itself."""
    x = pattern(int(sizes["elements"]) // 4)
    sources = [vd.asbuffer(x) for _ in range(CHAIN)]
    y = vd.asbuffer(np.zeros_like(x))

    def record(graph: Any) -> None:
        for source in sources:
            saxpy_kernel(y, source, 0.5, graph=graph)

    def right(ran: int) -> bool:
        return np.array_equal(y.read(0), x * np.float32(0.5 * CHAIN * ran))

    moved = 3 * x.nbytes * CHAIN
    return fused_trial(record, right, lambda us: moved / us / 1e3, sizes)


# ---- overlap


def overlap(sizes: Sizes) -> Trial:
    """Chunks go up, are worked on and come back; one after the other, and with transfers meanwhile.

    serial_ms, overlapped_ms: wall clock for all chunks. The work on a chunk is as many saxpys as take
    about as long as its transfers.
    """
    empty_pinned = need(vd, "empty_pinned")
    need(vd.Buffer, "write_async")
    need(vd.Buffer, "read_async")
    chunks, count = 8, int(sizes["bytes"]) // 4 // 8
    host = [empty_pinned((count,), np.float32) for _ in range(chunks)]
    out = [empty_pinned((count,), np.float32) for _ in range(chunks)]
    for chunk in host:
        chunk[:] = pattern(count)
    buffers: list[Any] = [vd.Buffer((count,), vd.float32) for _ in range(chunks)]
    ones = vd.asbuffer(np.ones(count, np.float32))
    steps = int(sizes["overlap_steps"])

    def work_on(buffer: Any) -> None:
        for _ in range(steps):
            saxpy_kernel(buffer, ones, 1.0)

    def serial() -> None:
        for chunk, buffer, result in zip(host, buffers, out, strict=True):
            buffer.write(chunk)
            work_on(buffer)
            buffer.read(0, out=result)

    def overlapped() -> None:
        futures = []
        for chunk, buffer, result in zip(host, buffers, out, strict=True):
            buffer.write_async(chunk)
            work_on(buffer)
            futures.append(buffer.read_async(0, out=result))
        for future in futures:
            future.result()

    def clocked(run: Callable[[], None]) -> float:
        start = time.perf_counter()
        run()
        return (time.perf_counter() - start) * 1e3

    def right() -> bool:
        expected = pattern(count) + np.float32(steps)
        return all(np.array_equal(result, expected) for result in out)

    serial()
    overlapped()
    return Trial(lambda: {"serial_ms": clocked(serial), "overlapped_ms": clocked(overlapped)}, right, 1)


# ---- what lasts


def native_allocations() -> int | None:
    """Return how many allocations the native module has made, where it counts them."""
    count = getattr(native, "allocation_count", None)
    return count() if count is not None else None


def allocations(sizes: Sizes) -> Trial:
    """native_allocations: by our native module, queue threads included, per call."""
    python = vulkan.allocations(sizes)
    data = zeros()
    calls = python.repetitions

    def measure() -> Values:
        values = python.measure()
        add_const(data, 0.0)
        wait()
        before = native_allocations()
        if before is None:
            return values
        for _ in range(calls):
            add_const(data, 0.0)
        wait()
        after = native_allocations()
        assert after is not None
        return {**values, "native_allocations": (after - before) / calls}

    return Trial(measure, python.right, calls)


CASES = {
    **vulkan.CASES,
    **vulkan_transforms.CASES,
    **our_arrays.CASES,
    "compile": compile_kernel,
    "startup": startup,
    "download-into": download_into,
    "upload-pinned": upload_pinned,
    "download-pinned": download_pinned,
    "copy": copy,
    "fusion-tiny": fusion_tiny,
    "fusion-saxpy": fusion_saxpy,
    "overlap": overlap,
    "allocations": allocations,
}
SKIPS: dict[str, str] = {}
