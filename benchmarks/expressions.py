"""Programs over arrays as a user writes them: ``python -m benchmarks.expressions``.

Each library has a process of its own: `vkdispatch.numpy`, CuPy, PyTorch as it is called, and PyTorch with
`torch.compile`. A program is called 20 times, and then waited for; each call computes its result. The table
has the µs of a call, in brackets those of the calling thread, and for large arrays the bandwidth of a program
that reads every input and writes every output once.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

CALLS, ROUNDS, WARM_SECONDS = 20, 5, 0.8  # an idle GPU takes half a second to reach its clock
LIBRARIES = ("vkdispatch", "cupy", "torch", "torch.compile")
SIZES = (1 << 10, 1 << 13, 1 << 16, 1 << 26)

# For each program: microseconds a call, those of the calling thread, and bytes of inputs and outputs.
Figures = dict[str, list[float]]


class Library(NamedTuple):
    """A library: its module, how host arrays get to the device, and how to compute and to wait."""

    name: str
    module: Any
    put: Callable[[Any], Any]
    compute: Callable[[Any], object]
    wait: Callable[[], object]


def load(name: str) -> Library:
    """Return a library; raises ImportError where it is not installed."""
    if name == "vkdispatch":
        import vkdispatch as vd
        import vkdispatch.numpy as vnp

        return Library(name, vnp, vnp.asarray, vnp.eval, vd.queue_wait_idle)
    if name.startswith("torch"):
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        return Library(name, torch, lambda host: torch.from_numpy(host).cuda(), bool, torch.cuda.synchronize)
    import cupy

    return Library(name, cupy, cupy.asarray, bool, cupy.cuda.Stream.null.synchronize)


def ten_operations(m: Any, a: Any, b: Any) -> Any:
    """Compute ten element-wise operations."""
    return ((((a + b) * 2 - a) / 3 + b) * a - b) * a + b * 0.5


def standardize(m: Any, x: Any, y: Any) -> Any:
    """Scale columns to mean 0 and deviation 1, times a matrix."""
    return ((x - x.mean(0)) / x.std(0)).T @ y


def softmax(m: Any, x: Any) -> Any:
    """Compute the softmax of rows."""
    largest = x.amax(1, keepdim=True) if m.__name__ == "torch" else x.max(1, keepdims=True)
    e = m.exp(x - largest)
    return e / (e.sum(1, keepdim=True) if m.__name__ == "torch" else e.sum(1, keepdims=True))


def stencil(m: Any, u: Any) -> Any:
    """Take a step of the heat equation by slices."""
    return u[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])


def nearest(m: Any, x: Any, centres: Any) -> Any:
    """Find the nearest of 64 centres for each point, by broadcasting: a step of k-means."""
    return ((x[:, None, :] - centres[None]) ** 2).sum(-1).argmin(1)


def black_scholes(m: Any, price: Any, strike: Any, years: Any) -> Any:
    """Price call options, with the normal distribution by polynomial 26.2.17 of Abramowitz and Stegun."""
    rate, volatility = 0.02, 0.3
    root = m.sqrt(years)
    d1 = (m.log(price / strike) + (rate + volatility**2 / 2) * years) / (volatility * root)
    d2 = d1 - volatility * root

    def distribution(d: Any) -> Any:
        k = 1 / (1 + 0.2316419 * abs(d))
        tail = 0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
        upper = 0.3989422804 * m.exp(-0.5 * d * d) * k * tail
        return m.where(d > 0, 1 - upper, upper)

    return price * distribution(d1) - strike * m.exp(-rate * years) * distribution(d2)


def develop(m: Any, picture: Any) -> Any:
    """Apply a picture's exposure, contrast and gamma, to bytes."""
    exposed = picture * 1.4 - 0.05
    limited = m.clip(exposed, 0.0, 1.0)
    curved = limited * limited * (3 - 2 * limited)
    bright = curved ** (1 / 2.2) * 255 + 0.5
    return bright.to(m.uint8) if m.__name__ == "torch" else bright.astype(m.uint8)


def programs(library: Library) -> Iterator[tuple[str, Callable[..., Any], list[Any], int]]:
    """Yield the programs: a name, the function, its arguments, and the bytes of inputs and output."""
    rng = np.random.default_rng(0)

    def real(*shape: int) -> Any:
        return library.put(rng.random(shape, np.float32) + np.float32(0.5))

    for n in SIZES:
        yield f"x + y, {n}", lambda m, a, b: a + b, [real(n), real(n)], 12 * n
        yield f"ten operations, {n}", ten_operations, [real(n), real(n)], 12 * n
    n = 1 << 20
    yield "standardize, 2^20 x 64", standardize, [real(n, 64), real(n, 16)], n * 80 * 4
    yield "softmax, 8192 x 8192", softmax, [real(8192, 8192)], 8 * 8192**2
    yield "stencil, 8192 x 8192", stencil, [real(8192, 8192)], 8 * 8192**2
    yield "nearest of 64, 2^18 x 16", nearest, [real(1 << 18, 16), real(64, 16)], (1 << 18) * 72
    n = 1 << 24
    yield "Black-Scholes, 2^24", black_scholes, [real(n), real(n), real(n)], 16 * n
    yield "develop, 2160 x 3840 x 3", develop, [real(2160, 3840, 3)], 5 * 2160 * 3840 * 3


def time_calls(library: Library, call: Callable[[], Any]) -> list[float]:
    """Return the microseconds of a call, and those that the calling thread spends."""

    def run() -> None:
        result = call()
        if library.name == "vkdispatch":
            library.compute(result)

    end = time.perf_counter() + WARM_SECONDS
    while time.perf_counter() < end:
        run()
        library.wait()
    whole, host = [], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            run()
        host.append((time.perf_counter() - start) / CALLS * 1e6)
        library.wait()
        whole.append((time.perf_counter() - start) / CALLS * 1e6)
    return [round(statistics.median(whole), 1), round(statistics.median(host), 1)]


def measure(name: str) -> Figures:
    """Measure all programs with a library, in this process."""
    library = load(name)
    found: Figures = {}
    for case, function, arguments, size in programs(library):
        call = partial(function, library.module)
        if name == "torch.compile":
            call = library.module.compile(call)
        found[case] = [*time_calls(library, partial(call, *arguments)), size]
    return found


def table(found: dict[str, Figures]) -> str:
    """Return a table of Markdown: a row for each program."""

    def cell(library: str, case: str) -> str:
        value = found.get(library, {}).get(case)
        if value is None:
            return "-"
        speed = f", {value[2] / value[0] / 1e6:.2f} TB/s" if value[2] >= 1 << 26 else ""
        return f"{value[0]:,.0f} ({value[1]:,.0f}){speed}"

    lines = [f"| | {' | '.join(LIBRARIES)} |", "| --- |" + " --- |" * len(LIBRARIES)]
    lines += [
        f"| {case} | {' | '.join(cell(name, case) for name in LIBRARIES)} |" for case in found["vkdispatch"]
    ]
    return "\n".join(lines)


@click.command()
@click.option("--library", type=click.Choice(LIBRARIES), help="Measure this one, and print its figures.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Where the figures go.")
def main(library: str | None, path: Path | None) -> None:
    """Measure programs over arrays: µs a call, with the host's share in parentheses."""
    if library is not None:
        click.echo(json.dumps(measure(library)))
        return
    found = {}
    for name in LIBRARIES:
        command = [sys.executable, "-m", "benchmarks.expressions", "--library", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            click.echo(f"{name}: {done.stderr.strip().splitlines()[-1]}", err=True)
            continue
        found[name] = json.loads(done.stdout.splitlines()[-1])
    if path is not None:
        path.write_text(json.dumps(found, indent=1) + "\n")
    click.echo(table(found))


if __name__ == "__main__":
    main()
