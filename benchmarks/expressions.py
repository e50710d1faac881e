"""Programs over arrays as a user writes them: ``python -m benchmarks.expressions``.

Each library has a process of its own: `vkdispatch.numpy`, CuPy, PyTorch as it is called, and PyTorch with
`torch.compile`. A program is called 20 times, and then waited for; each call computes its result. The table
has the µs of a call, in brackets those of the calling thread, and for large arrays the bandwidth of a program
that reads every input and writes every output once.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.libraries_apart import Figures, make_command, time_calls

LIBRARIES = ("vkdispatch", "cupy", "torch", "torch.compile")
SIZES = (1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 26)


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


def edges(m: Any, picture: Any) -> Any:
    """Find edges in a picture: grey values, a Gaussian blur by slices, gradients, and a threshold."""

    def convert(x: Any, dtype: Any) -> Any:
        return x.to(dtype) if m.__name__ == "torch" else x.astype(dtype)

    red, green, blue = (convert(picture[..., i], m.float32) for i in range(3))
    grey = 0.299 * red + 0.587 * green + 0.114 * blue
    rows = (grey[:-4] + 4 * grey[1:-3] + 6 * grey[2:-2] + 4 * grey[3:-1] + grey[4:]) / 16
    blurred = (rows[:, :-4] + 4 * rows[:, 1:-3] + 6 * rows[:, 2:-2] + 4 * rows[:, 3:-1] + rows[:, 4:]) / 16
    down = blurred[2:, 1:-1] - blurred[:-2, 1:-1]
    across = blurred[1:-1, 2:] - blurred[1:-1, :-2]
    return convert(m.sqrt(down * down + across * across) > 20, m.uint8) * 255


def copy(m: Any, x: Any) -> Any:
    """Copy an array, by which the bandwidth of the others is judged."""
    return x.clone() if m.__name__ == "torch" else x.copy()


def programs(
    library: Library, longest: int = SIZES[-1]
) -> Iterator[tuple[str, Callable[..., Any], list[Any], int]]:
    """Yield the programs: a name, the function, its arguments, and the bytes of inputs and output.

    No axis is longer than `longest`. The names and bytes are of the full size.
    """
    rng = np.random.default_rng(0)

    def real(*shape: int) -> Any:
        cut = tuple(min(length, longest) for length in shape)
        return library.put(rng.random(cut, np.float32) + np.float32(0.5))

    for n in SIZES:
        yield f"x + y, {n}", lambda m, a, b: a + b, [real(n), real(n)], 12 * n
        yield f"ten operations, {n}", ten_operations, [real(n), real(n)], 12 * n
    yield f"copy, {SIZES[-1]}", copy, [real(SIZES[-1])], 8 * SIZES[-1]
    n = 1 << 20
    yield "standardize, 2^20 x 64", standardize, [real(n, 64), real(n, 16)], n * 80 * 4
    yield "softmax, 8192 x 8192", softmax, [real(8192, 8192)], 8 * 8192**2
    yield "stencil, 8192 x 8192", stencil, [real(8192, 8192)], 8 * 8192**2
    yield "nearest of 64, 2^18 x 16", nearest, [real(1 << 18, 16), real(64, 16)], (1 << 18) * 72
    n = 1 << 24
    yield "Black-Scholes, 2^24", black_scholes, [real(n), real(n), real(n)], 16 * n
    yield "develop, 2160 x 3840 x 3", develop, [real(2160, 3840, 3)], 5 * 2160 * 3840 * 3
    rows, columns = min(2160, longest), min(3840, longest)
    picture = library.put(rng.integers(0, 256, (rows, columns, 3), np.uint8))
    yield "edges, 2160 x 3840 x 3 bytes", edges, [picture], 4 * 2160 * 3840


def compute_on(library: Library, function: Callable[..., Any], arguments: list[Any]) -> Callable[[], None]:
    """Return what calls a program and computes its result."""
    call = partial(function, library.module)
    if library.name == "torch.compile":
        library.module.compiler.reset()  # after 8 programs it would run them as they are called
        call = library.module.compile(call)

    def run() -> None:
        result = call(*arguments)
        if library.name == "vkdispatch":
            library.compute(result)

    return run


def measure(name: str) -> Figures:
    """Measure all programs with a library, in this process."""
    library = load(name)
    found: Figures = {}
    for case, function, arguments, size in programs(library):
        found[case] = [*time_calls(compute_on(library, function, arguments), library.wait), size]
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
    lines += ["", *share_of_copies(found)]
    return "\n".join(lines)


def share_of_copies(found: dict[str, Figures]) -> Iterator[str]:
    """Yield for each library how fast ten operations read and write, as a share of a copy's bandwidth."""
    for name, figures in found.items():
        (ten, _, read), (once, _, copied) = (
            figures[f"{what}, {SIZES[-1]}"] for what in ("ten operations", "copy")
        )
        yield f"{name}: ten operations at {read / ten / (copied / once):.2f} of the speed of a copy"


main = make_command(
    "benchmarks.expressions",
    "Measure programs over arrays: µs a call, with the host's share in parentheses.",
    LIBRARIES,
    measure,
    table,
)

if __name__ == "__main__":
    main()
