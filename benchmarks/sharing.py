"""What sharing memory costs: ``python -m benchmarks.sharing``.

Hand-overs between PyTorch and kernels on one NVIDIA GPU, both at work on 1 GiB in turn, copies of memory that
cannot be shared, the import of a block, copies between contexts, and what calls cost that share nothing, with
and without memory that can be exported. Each case has a process of its own.
"""

import json
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from benchmarks.libraries_apart import run_apart, time_calls
from vkdispatch.codegen.abbreviations import Buff, Const, f32

Cases = dict[str, Callable[[int], dict[str, float]]]
PLAIN = "plain"


@vd.shader("y.size")
def saxpy(y: Buff[f32], x: Buff[f32], a: Const[f32]) -> None:
    """Add a multiple of x to y."""
    i = vc.global_invocation_id().x
    y[i] = a * x[i] + y[i]


def measure_hand_overs(size: int) -> dict[str, float]:
    """Time a round of a small operation of PyTorch and a small kernel, ordered in three ways."""
    import torch

    y, x = (vd.asbuffer(np.ones(1 << 10, np.float32)) for _ in range(2))
    t = torch.from_dlpack(y)

    def by_argument() -> None:
        t.mul_(0.5)
        saxpy(t, x, 1.0)

    def by_stream() -> None:
        t.mul_(0.5)
        with vd.cuda.stream():
            saxpy(y, x, 1.0)

    def by_host() -> None:
        t.mul_(0.5)
        torch.cuda.synchronize()
        saxpy(y, x, 1.0)
        vd.queue_wait_idle()

    rounds = {"as an argument": by_argument, "with vd.cuda.stream()": by_stream, "by waiting": by_host}
    return {f"round, {name}, us": time_calls(each, wait_for_both)[0] for name, each in rounds.items()}


def wait_for_both() -> None:
    """Wait for PyTorch and for the queues."""
    import torch

    torch.cuda.synchronize()
    vd.queue_wait_idle()


def measure_turns(size: int) -> dict[str, float]:
    """Time y = a * x + y on `size` bytes, by PyTorch and by a kernel in turn."""
    import torch

    y, x = (vd.asbuffer(np.zeros(size // 4, np.float32)) for _ in range(2))
    t, u = torch.from_dlpack(y), torch.from_dlpack(x)

    def take_turns() -> None:
        t.add_(u, alpha=0.5)
        saxpy(t, x, 0.5)

    took = time_calls(take_turns, wait_for_both)[0]
    alone = time_calls(partial(saxpy, y, x, 0.5), wait_for_both)[0]
    return {"in turn, TB/s": 6 * size / took / 1e6, "kernel alone, TB/s": 3 * size / alone / 1e6}


def measure_copies(size: int) -> dict[str, float]:
    """Time the copy of a tensor in memory of CUDA's own."""
    import torch

    t = torch.ones(size // 4, device="cuda")
    took = time_calls(lambda: vd.from_dlpack(t), wait_for_both)[0]
    return {"from_dlpack of a tensor of PyTorch's memory, TB/s": 2 * size / took / 1e6}


def measure_imports(size: int) -> dict[str, float]:
    """Time the first and the second time that new memory is shared."""
    import torch

    torch.from_dlpack(vd.asbuffer(np.ones(4, np.float32)))
    first: list[float] = []
    second: list[float] = []
    # all at once: memory that is freed is used again, and CUDA would know it
    for buf in [vd.Buffer(size // 4, vd.float32) for _ in range(5)]:
        for times in (first, second):
            start = time.perf_counter()
            tensor = torch.from_dlpack(buf)
            times.append((time.perf_counter() - start) * 1e6)
            del tensor
    return {
        "first share of memory, us": statistics.median(first),
        "second share, us": statistics.median(second),
    }


def measure_contexts(size: int) -> dict[str, float]:
    """Time copies between two contexts, on two devices where there are two."""
    other = 1 if len([info for info in vd.get_devices() if not info.is_cpu()]) > 1 else 0
    contexts = [vd.Context([device], [[0]]) for device in (0, other)]
    buffers = []
    for context in contexts:
        with vd.use_context(context):
            buffers.append(vd.asbuffer(np.ones(size // 4, np.float32)))
    source, target = buffers

    def wait() -> None:
        for context in contexts:
            with vd.use_context(context):
                vd.queue_wait_idle()

    took = time_calls(lambda: vd.copyto(target, source), wait)[0]
    where = "two devices" if other else "one device"
    return {f"copy between contexts of {where}, GB/s": size / took / 1e3}


def measure_plain(size: int) -> dict[str, float]:
    """Time calls that share nothing."""
    small, large = (vd.asbuffer(np.ones(count, np.float32)) for count in (1 << 10, size // 4))
    spectrum = vd.asbuffer(np.ones((max(size >> 16, 1), 1 << 10), np.complex64))
    cases: dict[str, Callable[[], object]] = {
        "small kernel": partial(saxpy, small, small, 0.5),
        "large kernel": partial(saxpy, large, large, 0.5),
        "FFT": partial(vd.fft.fft, spectrum),
        "sum": partial(vd.sum, large),
        "sum of few": partial(vd.sum, small),
        "buffer of 64 KiB": partial(vd.Buffer, 1 << 14, vd.float32),
        "large buffer": partial(vd.Buffer, size // 4, vd.float32),
    }
    return {f"{name}, us": time_calls(call, vd.queue_wait_idle)[0] for name, call in cases.items()}


CASES: Cases = {
    "hand-overs": measure_hand_overs,
    "turns": measure_turns,
    "copies": measure_copies,
    "imports": measure_imports,
    "contexts": measure_contexts,
    PLAIN: measure_plain,
}


def measure_all(size: int) -> dict[str, Any]:
    """Return the figures of all cases that run here, and how plain calls compare with and without export."""
    found: dict[str, Any] = {"device": str(vd.get_devices()[0].device_name), "bytes": size}
    for case in CASES:
        if case != PLAIN:
            found[case] = run_apart("benchmarks.sharing", "--case", case, "--size", str(size))
    rounds: dict[str, list[dict[str, float]]] = {"exported": [], "not exported": []}
    for _ in range(3):  # in turn, since clocks drift
        for name, value in (("exported", ""), ("not exported", "1")):
            os.environ["VKDISPATCH_NO_EXPORT"] = value
            figures = run_apart("benchmarks.sharing", "--case", PLAIN, "--size", str(size))
            if figures is not None:
                rounds[name].append(figures)
    found[PLAIN] = {
        call: [min(each[call] for each in rounds[name]) for name in rounds] for call in rounds["exported"][0]
    }
    return found


@click.command()
@click.option("--case", type=click.Choice(list(CASES)), help="Measure this one, and print its figures.")
@click.option("--size", default=1 << 30, show_default=True, help="Bytes of large memory.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Where the figures go.")
def main(case: str | None, size: int, path: Path | None) -> None:
    """Measure what sharing memory costs."""
    if case is not None:
        click.echo(json.dumps({name: round(value, 3) for name, value in CASES[case](size).items()}))
        return
    found = measure_all(size)
    text = json.dumps(found, indent=1)
    if path is not None:
        path.write_text(text + "\n")
    click.echo(text)


if __name__ == "__main__":
    main()
