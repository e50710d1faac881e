"""PyTorch on CUDA."""

import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks import fresh
from benchmarks.libraries import torch_arrays, torch_transforms
from benchmarks.timing import (
    Sizes,
    SkipCase,
    Trial,
    Values,
    pattern,
    time_bytes,
    time_calls,
    time_each,
    time_recording,
    time_threads,
)

if not torch.cuda.is_available():
    raise SkipCase("torch finds no CUDA device")

ELEMENTS = 64
LONGEST_GRAPH = 10_000
transform = torch_transforms.transform
wait = torch.cuda.synchronize


def describe() -> dict[str, Any]:
    driver = torch.version.cuda
    return {"version": torch.__version__, "device": torch.cuda.get_device_name(), "driver_version": driver}


def zeros() -> torch.Tensor:
    return torch.zeros(ELEMENTS, device="cuda")


def all_equal(tensor: torch.Tensor, value: float) -> bool:
    return bool((tensor == value).all())


def call_buffer(sizes: Sizes) -> Trial:
    data = zeros()
    return time_calls(lambda: data.add_(1), wait, lambda n: all_equal(data, n), sizes)


def call_const(sizes: Sizes) -> Trial:
    data = zeros()
    return time_calls(lambda: data.add_(2.0), wait, lambda n: all_equal(data, 2 * n), sizes)


def launch_wait(sizes: Sizes) -> Trial:
    data = zeros()

    def work() -> None:
        data.add_(1)
        wait()

    return time_each(work, lambda n: all_equal(data, n), sizes)


def launch_read(sizes: Sizes) -> Trial:
    data = zeros()

    def work() -> None:
        data.add_(1)
        data.cpu()

    return time_each(work, lambda n: all_equal(data, n), sizes)


def threads(sizes: Sizes) -> Trial:
    tensors = [zeros() for _ in range(16)]

    def work_of(number: int) -> Callable[[], object]:
        data = tensors[number]
        return lambda: data.add_(1.0)

    def right(ran: list[int]) -> bool:
        return all(all_equal(data, count) for data, count in zip(tensors, ran, strict=True))

    return time_threads(work_of, wait, right, sizes)


def graph_dependent(sizes: Sizes) -> Trial:
    length = int(sizes["length"])
    if length > LONGEST_GRAPH:
        raise SkipCase("capturing and instantiating so many nodes takes minutes")
    data = zeros()
    data.add_(0)
    wait()

    side = torch.cuda.Stream()

    def make() -> tuple[Callable[[], None], Callable[[], None]]:
        graph = torch.cuda.CUDAGraph()

        def record() -> None:
            with torch.cuda.stream(side):
                graph.capture_begin()
                for _ in range(length):
                    data.add_(1)
                # instantiates the graph, too
                graph.capture_end()

        return record, graph.replay

    def right(ran: int) -> bool:
        return ran * length >= 1 << 24 or all_equal(data, ran * length)

    return time_recording(make, wait, right, sizes)


# ---- memory


def host_tensor(count: int, pinned: bool = False) -> torch.Tensor:
    tensor = torch.from_numpy(pattern(count))
    return tensor.pin_memory() if pinned else tensor


def upload_from(sizes: Sizes, pinned: bool) -> Trial:
    host = host_tensor(int(sizes["bytes"]) // 4, pinned)
    data = torch.empty_like(host, device="cuda")
    return time_bytes(
        lambda: data.copy_(host, non_blocking=pinned),
        wait,
        host.nbytes,
        lambda _: torch.equal(data.cpu(), host),
        sizes,
    )


def upload(sizes: Sizes) -> Trial:
    return upload_from(sizes, pinned=False)


def upload_pinned(sizes: Sizes) -> Trial:
    return upload_from(sizes, pinned=True)


def download(sizes: Sizes) -> Trial:
    data = host_tensor(int(sizes["bytes"]) // 4).cuda()
    expected = data.cpu()
    return time_bytes(
        lambda: data.cpu(), wait, expected.nbytes, lambda _: torch.equal(data.cpu(), expected), sizes
    )


def download_to(sizes: Sizes, pinned: bool) -> Trial:
    expected = host_tensor(int(sizes["bytes"]) // 4)
    data = expected.cuda()
    out = torch.zeros_like(expected, pin_memory=pinned)
    return time_bytes(
        lambda: out.copy_(data, non_blocking=pinned),
        wait,
        out.nbytes,
        lambda _: torch.equal(out, expected),
        sizes,
    )


def download_into(sizes: Sizes) -> Trial:
    return download_to(sizes, pinned=False)


def download_pinned(sizes: Sizes) -> Trial:
    return download_to(sizes, pinned=True)


def saxpy(sizes: Sizes) -> Trial:
    host = host_tensor(int(sizes["elements"]))
    x = host.cuda()
    y = torch.zeros_like(x)

    def right(ran: int) -> bool:
        return bool(torch.equal(y, x * (0.5 * ran)))

    return time_bytes(lambda: y.add_(x, alpha=0.5), wait, 3 * x.nbytes, right, sizes)


def copy(sizes: Sizes) -> Trial:
    source = host_tensor(int(sizes["elements"])).cuda()
    to = torch.zeros_like(source)
    return time_bytes(
        lambda: to.copy_(source), wait, 2 * source.nbytes, lambda _: torch.equal(to, source), sizes
    )


def overlap(sizes: Sizes) -> Trial:
    """See the same case of vkdispatch: one stream, and three."""
    chunks, count, steps = 8, int(sizes["bytes"]) // 4 // 8, int(sizes["overlap_steps"])
    host = [host_tensor(count, pinned=True) for _ in range(chunks)]
    out = [torch.zeros(count).pin_memory() for _ in range(chunks)]
    buffers = [torch.zeros(count, device="cuda") for _ in range(chunks)]
    ones = torch.ones(count, device="cuda")
    up, down = torch.cuda.Stream(), torch.cuda.Stream()

    def work_on(buffer: torch.Tensor) -> None:
        for _ in range(steps):
            buffer.add_(ones, alpha=1.0)

    def serial() -> None:
        for chunk, buffer, result in zip(host, buffers, out, strict=True):
            buffer.copy_(chunk)
            work_on(buffer)
            result.copy_(buffer)

    def overlapped() -> None:
        compute = torch.cuda.current_stream()
        for chunk, buffer, result in zip(host, buffers, out, strict=True):
            with torch.cuda.stream(up):
                buffer.copy_(chunk, non_blocking=True)
            compute.wait_stream(up)
            work_on(buffer)
            down.wait_stream(compute)
            with torch.cuda.stream(down):
                result.copy_(buffer, non_blocking=True)
        wait()

    def clocked(run: Callable[[], None]) -> float:
        start = time.perf_counter()
        run()
        return (time.perf_counter() - start) * 1e3

    def measure() -> Values:
        return {"serial_ms": clocked(serial), "overlapped_ms": clocked(overlapped)}

    def right() -> bool:
        expected = host_tensor(count) + steps
        return all(torch.equal(result, expected) for result in out)

    serial()
    overlapped()
    return Trial(measure, right, 1)


def startup(sizes: Sizes) -> Trial:
    return fresh.trial("torch")


def clean() -> None:
    """Give memory back to the device between cases."""
    torch_transforms.clean()
    torch.cuda.empty_cache()


CASES = {
    "call-buffer": call_buffer,
    "call-const": call_const,
    "call-var": call_const,
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
    "overlap": overlap,
    "startup": startup,
    **torch_transforms.CASES,
    **torch_arrays.CASES,
}
SKIPS = {
    "call-many": "has no operation on eight tensors and eight numbers",
    "graph-independent": "a capture of one stream puts its nodes one after another",
}
