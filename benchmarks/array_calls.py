"""Functions on arrays as a user calls them: ``python -m benchmarks.array_calls``.

Each library has a process of its own. A case is called 20 times, and then waited for: the time is that of a
call, and in brackets what the calling thread spends before it goes on. Beside ours stands the same call as a
graph that is submitted again and again, where it can be recorded.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.libraries_apart import Figures, make_command, time_calls

LARGE, SMALL = 1 << 26, 1 << 16
WIDE, NARROW = 4096, 256
LIBRARIES = ("vkdispatch", "torch", "cupy")


class Library(NamedTuple):
    """A library: its module, how host arrays get to the device, and how to wait for all of it."""

    name: str
    module: Any
    put: Callable[[Any], Any]
    wait: Callable[[], object]


def load(name: str) -> Library:
    """Return a library; raises ImportError where it is not installed."""
    if name == "vkdispatch":
        import vkdispatch as vd

        return Library(name, vd, vd.asbuffer, vd.queue_wait_idle)
    if name == "torch":
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        return Library(name, torch, lambda host: torch.from_numpy(host).cuda(), torch.cuda.synchronize)
    import cupy

    return Library(name, cupy, cupy.asarray, cupy.cuda.Stream.null.synchronize)


_Case = tuple[str, Callable[[], Any] | None]


def cases(library: Library) -> Iterator[_Case]:
    """Yield what is called: a name, and the call of this library; None where it has no such function."""
    for n in (LARGE, SMALL):
        yield from _cases_of_arrays(library, n)
    for n in (WIDE, NARROW):
        yield from _cases_of_matrices(library, n)
    yield from _cases_of_draws(library)


def _cases_of_arrays(library: Library, n: int) -> Iterator[_Case]:
    rng, m = np.random.default_rng(0), library.module
    x = library.put(rng.standard_normal(n).astype(np.float32))
    places = library.put(rng.integers(0, n, n).astype(np.int64 if library.name == "torch" else np.int32))
    small = library.put(rng.integers(0, 256, n).astype(np.int32))
    functions: Any = {
        "torch": {
            "cumsum": lambda: x.cumsum(0),
            "topk": lambda: x.topk(16),
            "histogram": lambda: m.histc(x, 256, -4, 4),
        },
        "cupy": {"cumsum": lambda: m.cumsum(x), "topk": None},
        "vkdispatch": {"topk": lambda: m.topk(x, 16)},
    }[library.name]
    for name in ("sum", "cumsum", "argmax", "std", "sort", "argsort"):
        yield f"{name} {n}", functions.get(name, partial(getattr(m, name), x))
    yield f"topk 16 of {n}", functions["topk"]
    for name in ("unique", "nonzero"):
        yield f"{name} {n}", partial(getattr(m, name), x)
    yield f"take {n}", lambda: m.take(x, places)
    yield f"bincount {n}", lambda: m.bincount(small, minlength=256)
    yield f"histogram {n}", functions.get("histogram", lambda: m.histogram(x, bins=256, range=(-4, 4)))


def _cases_of_matrices(library: Library, n: int) -> Iterator[_Case]:
    host, m = np.random.default_rng(0).standard_normal((n, n)).astype(np.float32), library.module
    x, half = library.put(host), library.put(host.astype(np.float16))
    yield f"matmul float32 {n}", lambda: m.matmul(x, x)
    yield f"matmul float16 {n}", lambda: m.matmul(half, half)
    transposes = {"torch": lambda: x.t().contiguous(), "cupy": lambda: m.ascontiguousarray(x.T)}
    yield f"transpose {n}", transposes.get(library.name, lambda: m.transpose(x))
    yield f"sum of rows {n}", lambda: m.sum(x, 1)
    yield f"sum of columns {n}", lambda: m.sum(x, 0)
    yield f"sort of rows {n}", lambda: m.sort(x, 1)


def _cases_of_draws(library: Library) -> Iterator[_Case]:
    m = library.module
    if library.name == "torch":
        yield f"normal {LARGE}", lambda: m.randn(LARGE, device="cuda")
        yield f"uniform {SMALL}", lambda: m.rand(SMALL, device="cuda")
        return
    generator = m.random.Generator(1) if library.name == "vkdispatch" else m.random
    normal = generator.normal if library.name == "vkdispatch" else generator.standard_normal
    uniform = generator.uniform if library.name == "vkdispatch" else generator.random
    yield f"normal {LARGE}", lambda: normal(size=LARGE, dtype=m.float32)
    yield f"uniform {SMALL}", lambda: uniform(size=SMALL, dtype=m.float32)


def record(library: Library, call: Callable[[], Any]) -> Callable[[], Any] | None:
    """Return what submits the call as a graph; None: it cannot be recorded, as it waits."""
    graph = library.module.CommandGraph()
    library.module.set_global_graph(graph)
    try:
        results = call()
    except library.module.UsageError:
        return None
    finally:
        library.module.set_global_graph(None)

    def replay(_: object = results) -> None:
        graph.submit()

    return replay


def measure(name: str) -> Figures:
    """Measure all cases of a library, in this process."""
    library = load(name)
    found: Figures = {}
    for case, call in cases(library):
        if call is None:
            continue
        found[case] = time_calls(call, library.wait)
        replay = record(library, call) if name == "vkdispatch" else None
        if replay is not None:
            found[f"{case}, graph"] = time_calls(replay, library.wait)
    return found


def table(found: dict[str, Figures]) -> str:
    """Return a table of Markdown: a row for each case."""

    def cell(library: str, case: str) -> str:
        value = found.get(library, {}).get(case)
        return "-" if value is None else f"{value[0]:,.0f} ({value[1]:,.0f})"

    lines = ["| | vkdispatch | ... in a graph | PyTorch | CuPy |", "| --- | --- | --- | --- | --- |"]
    for case in found["vkdispatch"]:
        if not case.endswith(", graph"):
            graph = cell("vkdispatch", f"{case}, graph").partition(" (")[0]
            others = " | ".join(cell(library, case) for library in LIBRARIES[1:])
            lines.append(f"| {case} | {cell('vkdispatch', case)} | {graph} | {others} |")
    return "\n".join(lines)


main = make_command(
    "benchmarks.array_calls",
    "Measure eager calls of array functions: µs per call, with the host's share in parentheses.",
    LIBRARIES,
    measure,
    table,
)

if __name__ == "__main__":
    main()
