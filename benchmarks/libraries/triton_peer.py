"""Triton, on torch's tensors."""

from typing import Any

import torch
import triton
import triton.language as tl

from benchmarks.timing import Sizes, SkipCase, Trial, pattern, time_bytes, time_calls, time_each

if not torch.cuda.is_available():
    raise SkipCase("torch finds no CUDA device")

ELEMENTS = 64
BLOCK = 1024
wait = torch.cuda.synchronize


@triton.jit
def add_one(data, size: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, size)
    tl.store(data + at, tl.load(data + at) + 1.0)


@triton.jit
def add_const(data, step, size: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, size)
    tl.store(data + at, tl.load(data + at) + step)


@triton.jit
def add_many(  # type: ignore[no-untyped-def]
    d0, d1, d2, d3, d4, d5, d6, d7, s0, s1, s2, s3, s4, s5, s6, s7, size: tl.constexpr
):
    at = tl.arange(0, size)
    tl.store(d0 + at, tl.load(d0 + at) + s0)
    tl.store(d1 + at, tl.load(d1 + at) + s1)
    tl.store(d2 + at, tl.load(d2 + at) + s2)
    tl.store(d3 + at, tl.load(d3 + at) + s3)
    tl.store(d4 + at, tl.load(d4 + at) + s4)
    tl.store(d5 + at, tl.load(d5 + at) + s5)
    tl.store(d6 + at, tl.load(d6 + at) + s6)
    tl.store(d7 + at, tl.load(d7 + at) + s7)


@triton.jit
def saxpy_kernel(y, x, a, count, size: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * size + tl.arange(0, size)
    inside = at < count
    sums = a * tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(y + at, sums, mask=inside)


@triton.jit
def copy_kernel_(to, source, count, size: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * size + tl.arange(0, size)
    inside = at < count
    tl.store(to + at, tl.load(source + at, mask=inside), mask=inside)


def describe() -> dict[str, Any]:
    return {"version": triton.__version__, "device": torch.cuda.get_device_name()}


def zeros() -> torch.Tensor:
    return torch.zeros(ELEMENTS, device="cuda")


def all_equal(tensor: torch.Tensor, value: float) -> bool:
    return bool((tensor == value).all())


def call_buffer(sizes: Sizes) -> Trial:
    data = zeros()
    return time_calls(lambda: add_one[(1,)](data, ELEMENTS), wait, lambda n: all_equal(data, n), sizes)


def call_const(sizes: Sizes) -> Trial:
    data = zeros()
    return time_calls(
        lambda: add_const[(1,)](data, 2.0, ELEMENTS), wait, lambda n: all_equal(data, 2 * n), sizes
    )


def call_many(sizes: Sizes) -> Trial:
    many = [zeros() for _ in range(8)]
    # a Python 1 would be compiled in as a constant; a float is an argument
    steps = [float(step) for step in range(8)]

    def right(calls: int) -> bool:
        return all(all_equal(data, calls * step) for data, step in zip(many, steps, strict=True))

    return time_calls(lambda: add_many[(1,)](*many, *steps, ELEMENTS), wait, right, sizes)


def launch_wait(sizes: Sizes) -> Trial:
    data = zeros()

    def work() -> None:
        add_one[(1,)](data, ELEMENTS)
        wait()

    return time_each(work, lambda n: all_equal(data, n), sizes)


def saxpy(sizes: Sizes) -> Trial:
    x = torch.from_numpy(pattern(int(sizes["elements"]))).cuda()
    y = torch.zeros_like(x)
    count = x.numel()
    grid = (triton.cdiv(count, BLOCK),)

    def right(ran: int) -> bool:
        return bool(torch.equal(y, x * (0.5 * ran)))

    return time_bytes(lambda: saxpy_kernel[grid](y, x, 0.5, count, BLOCK), wait, 3 * x.nbytes, right, sizes)


def copy_kernel(sizes: Sizes) -> Trial:
    source = torch.from_numpy(pattern(int(sizes["elements"]))).cuda()
    to = torch.zeros_like(source)
    count = source.numel()
    grid = (triton.cdiv(count, BLOCK),)
    return time_bytes(
        lambda: copy_kernel_[grid](to, source, count, BLOCK),
        wait,
        2 * source.nbytes,
        lambda _: torch.equal(to, source),
        sizes,
    )


def clean() -> None:
    """Give memory back to the device between cases."""
    torch.cuda.empty_cache()


CASES = {
    "call-buffer": call_buffer,
    "call-const": call_const,
    "call-var": call_const,
    "call-many": call_many,
    "launch-wait": launch_wait,
    "saxpy": saxpy,
    "copy-kernel": copy_kernel,
}
SKIPS: dict[str, str] = {}
