"""What sharing memory costs: ``python -m benchmarks.sharing``.

Hand-overs between PyTorch and kernels on one NVIDIA GPU, both at work on 1 GiB in turn, copies of memory that
cannot be shared, the import of a block, copies between contexts and between GPUs, and what calls cost that
share nothing, with and without memory that can be exported. Each case has a process of its own. A case that
cannot run here says why on stderr. The figures are printed as a table; ``--json`` writes them to a file.

Two minutes on four GPUs; ``--only peers`` measures one case.
"""

import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from benchmarks.libraries_apart import run_apart, time_calls
from vkdispatch.base.sharing.cuda_link import can_link, find_link
from vkdispatch.codegen.abbreviations import Buff, Const, f32

Cases = dict[str, Callable[[int], dict[str, float]]]
PLAIN = "plain"
PLAIN_ROUNDS = 2
MOST_SECONDS = 60.0  # of a case; then it is given up


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


def find_gpus() -> list[int]:
    """Return the numbers of the devices that are no CPUs, or the CPU if there is nothing else."""
    return [number for number, info in enumerate(vd.get_devices()) if not info.is_cpu()] or [0]


class Peers:
    """Contexts, each with two buffers of `size` bytes, that copy to each other.

    Attributes
    ----------
    ordinals
        CUDA's number of each context's device; empty if CUDA does not know them.
    """

    def __init__(self, devices: list[int], size: int) -> None:
        self.contexts = [vd.Context([device], [[0]]) for device in devices]
        self.buffers = [
            [vd.Buffer(size // 4, vd.uint32, context=context) for _ in range(2)] for context in self.contexts
        ]
        is_known = all(can_link(context) for context in self.contexts)
        self.ordinals = [find_link(context).ordinal for context in self.contexts] if is_known else []
        self.size = size

    def copy(self, source: int, target: int) -> None:
        """Copy the first buffer of a context to the second one of another context."""
        vd.copyto(self.buffers[target][1], self.buffers[source][0])

    def wait(self) -> None:
        """Wait for all copies: a read of a buffer comes after the copies to it."""
        for _, target in self.buffers:
            target.read_range(0, 1)

    def check(self, source: int, target: int) -> None:
        """Raise AssertionError if a copy arrives with other values than it left with."""
        values = np.arange(self.size // 4, dtype=np.uint32) + np.uint32(source + 8 * target)
        self.buffers[source][0].write(values)
        self.copy(source, target)
        if not np.array_equal(self.buffers[target][1].read(0), values):
            raise AssertionError(f"wrong values in the copy from GPU {source} to {target}")


def measure_rate(size: int, copy: Callable[[], object], wait: Callable[[], object]) -> float:
    """Return the GB/s of a copy of `size` bytes: the median of three rounds of a tenth of a second."""
    copy()
    wait()
    start = time.perf_counter()
    copy()
    wait()
    count = max(1, min(20, int(0.1 / (time.perf_counter() - start))))
    rounds = []
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(count):
            copy()
        wait()
        rounds.append((time.perf_counter() - start) / count)
    return size / statistics.median(rounds) / 1e9


def measure_contexts(size: int) -> dict[str, float]:
    """Time copies between two contexts of one device."""
    peers = Peers(find_gpus()[:1] * 2, size)
    peers.check(0, 1)
    return {"copyto, GB/s": measure_rate(size, partial(peers.copy, 0, 1), peers.wait)}


def measure_peers(size: int) -> dict[str, float]:
    """Time copies between GPUs: each pair, a ring of all at once, and the same by PyTorch."""
    devices = find_gpus()
    if len(devices) < 2:
        raise SystemExit("there is one device")
    peers = Peers(devices, size)
    if not peers.ordinals:
        raise SystemExit("CUDA does not know the devices")
    places = range(len(devices))
    pairs = [(source, target) for source in places for target in places if source != target]
    for source, target in pairs:
        peers.check(source, target)
    ring = [(place, (place + 1) % len(devices)) for place in places]
    found = measure_pairs("copyto", size, pairs, ring, peers.copy, peers.wait)
    return found | measure_torch_peers(size, peers.ordinals, pairs, ring)


def measure_torch_peers(
    size: int, ordinals: list[int], pairs: list[tuple[int, int]], ring: list[tuple[int, int]]
) -> dict[str, float]:
    """Time PyTorch's copies between tensors on CUDA's devices with these numbers."""
    import torch

    tensors = [[torch.ones(size // 4, device=f"cuda:{each}") for _ in range(2)] for each in ordinals]

    def copy(source: int, target: int) -> None:
        tensors[target][1].copy_(tensors[source][0], non_blocking=True)

    def wait() -> None:
        for each in ordinals:
            torch.cuda.synchronize(each)

    return measure_pairs("torch", size, pairs, ring, copy, wait)


def measure_pairs(
    name: str,
    size: int,
    pairs: list[tuple[int, int]],
    ring: list[tuple[int, int]],
    copy: Callable[[int, int], None],
    wait: Callable[[], None],
) -> dict[str, float]:
    """Time copies between pairs of GPUs in turn, and between all GPUs of a ring concurrently."""

    def copy_all() -> None:
        for source, target in ring:
            copy(source, target)

    found = {f"{name} {i}->{j}, GB/s": measure_rate(size, partial(copy, i, j), wait) for i, j in pairs}
    return found | {
        f"{name}, ring of {len(ring)} at once, GB/s": measure_rate(size * len(ring), copy_all, wait)
    }


def measure_pinned_peers(size: int) -> dict[str, float]:
    """Time copies between GPUs without CUDA, through pinned memory, in both directions."""
    devices = find_gpus()
    os.environ["VKDISPATCH_NO_EXPORT"] = "1"
    peers = Peers(devices[:2] if len(devices) > 1 else devices * 2, size)
    assert not peers.ordinals
    found = {}
    for source, target in ((0, 1), (1, 0)):
        peers.check(source, target)
        copy = partial(peers.copy, source, target)
        found[f"copyto {source}->{target}, GB/s"] = measure_rate(size, copy, peers.wait)
    return found


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
    "peers": measure_peers,
    "peers without CUDA": measure_pinned_peers,
    PLAIN: measure_plain,
}


def measure_all(size: int, cases: Sequence[str]) -> dict[str, Any]:
    """Return the figures of cases that run here, and how plain calls compare with and without export."""
    found: dict[str, Any] = {"device": str(vd.get_devices()[0].device_name), "bytes": size}

    def run(case: str, **environment: str) -> dict[str, float] | None:
        arguments = ("benchmarks.sharing", "--case", case, "--size", str(size))
        figures: dict[str, float] | None = run_apart(*arguments, seconds=MOST_SECONDS, **environment)
        return figures

    for case in cases:
        figures = run(case) if case != PLAIN else None
        if figures is not None:
            found[case] = figures
    if PLAIN not in cases:
        return found
    rounds: dict[str, list[dict[str, float]]] = {"exported": [], "not exported": []}
    for _ in range(PLAIN_ROUNDS):  # in turn, since clocks drift
        for name, value in (("exported", ""), ("not exported", "1")):
            figures = run(PLAIN, VKDISPATCH_NO_EXPORT=value)
            if figures is not None:
                rounds[name].append(figures)
    if all(rounds.values()):
        found[PLAIN] = {
            call: [min(each[call] for each in rounds[name]) for name in rounds]
            for call in rounds["exported"][0]
        }
    return found


def format_table(found: dict[str, Any]) -> str:
    """Return the figures as lines of text. Plain calls have two: with and without exportable memory."""
    lines = [f"{found['device']}, {found['bytes']} bytes"]
    for case in CASES:
        if case in found:
            lines.append(f"{case}{' (exported, not exported)' if case == PLAIN else ''}")
            for name, value in found[case].items():
                lines.append(f"  {name:<50}{format_figures(value)}")
    return "\n".join(lines)


def format_figures(value: float | list[float]) -> str:
    """Return one figure, or two."""
    return "".join(f"{each:>12.4g}" for each in (value if isinstance(value, list) else [value]))


@click.command()
@click.option("--case", type=click.Choice(list(CASES)), help="Measure this one here, and print JSON.")
@click.option(
    "--only", type=click.Choice(list(CASES)), multiple=True, help="Measure this case. May be repeated."
)
@click.option("--size", default=1 << 30, show_default=True, help="Bytes of large memory.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Where the figures go.")
def main(case: str | None, only: tuple[str, ...], size: int, path: Path | None) -> None:
    """Measure what sharing memory costs."""
    if case is not None:
        click.echo(json.dumps({name: round(value, 3) for name, value in CASES[case](size).items()}))
        return
    found = measure_all(size, only or tuple(CASES))
    if path is not None:
        path.write_text(json.dumps(found, indent=1) + "\n")
    click.echo(format_table(found))


if __name__ == "__main__":
    main()
