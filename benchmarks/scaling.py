"""Scaling over several devices under Dask: ``python -m benchmarks.scaling``.

Each number of workers, one for each device, has a cluster of its own on this machine. Strong scaling keeps
the size of a problem and its chunks; weak scaling gives every worker as much, in as many chunks, as one has
alone. The efficiency of n workers is t(1) / (n t(n)) for strong scaling, and t(1) / t(n) for weak scaling.
Inputs are made on the workers before the clock starts; small results end up in the client. ``--peer cupy``
runs the same programs on chunks of CuPy.
"""

import datetime
import json
import logging
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

LIBRARIES = {"vkdispatch": "vkdispatch.numpy", "cupy": "cupy", "numpy": "numpy"}
# Where a device is chosen, if the cluster does not do it.
VISIBLE = {"vkdispatch": "VKDISPATCH_DEVICE", "cupy": "CUDA_VISIBLE_DEVICES", "numpy": "OMP_NUM_THREADS"}
PERIOD = 1021  # of the values of the inputs
CENTRES, FEATURES, ITERATIONS = 64, 16, 4
STEPS = 8  # of the stencil between two exchanges
SPOT, STRIKE, RATE, VOLATILITY, YEARS = 100.0, 105.0, 0.02, 0.3, 1.0
MOST_CHECKED = 1 << 24  # elements of the largest problem that NumPy computes as well
CHUNKS = 2  # of each worker where there are most of them


class Problem(NamedTuple):
    """A problem, ready to be timed.

    `run` computes it and returns its result, `expected` returns that of NumPy, and `size` is the number of
    its elements.
    """

    run: Callable[[], Any]
    expected: Callable[[], Any]
    size: int


# -- on the workers


def module_of(library: str) -> Any:
    """Return the module of a library whose arrays are the chunks."""
    return import_module(LIBRARIES[library])


def finish(library: str, result: Any) -> Any:
    """Wait until an array is computed, and return it: a task ends with its result."""
    if library == "vkdispatch":
        import vkdispatch as vd

        module_of(library).eval(result)
        vd.queue_wait_idle()
    elif library == "cupy":
        module_of(library).cuda.get_current_stream().synchronize()
    return result


def to_host(x: Any) -> Any:
    """Return an array, or a number, of any library as one of NumPy."""
    return x.get() if hasattr(x, "get") else np.asarray(x)


def make_values(library: str, shape: tuple[int, ...], first: int) -> Any:
    """Return the values from `first` on of the endless sequence that all inputs are parts of."""
    m = module_of(library)
    index = m.arange(math.prod(shape), dtype=np.uint32) % PERIOD + first % PERIOD
    values = ((index * 577) % PERIOD).astype(np.float32) / np.float32(PERIOD)
    return finish(library, values.reshape(shape))


def make_block(library: str, block_info: Any = None) -> Any:
    """Return a block of an input, whose chunks have all columns."""
    here = block_info[None]
    shape = here["chunk-shape"]
    first = here["array-location"][0][0] * math.prod(shape[1:])
    return make_values(library, shape, first)


def ten_operations(x: Any) -> Any:
    """Compute ten element-wise operations."""
    return ((((x + 1) * 2 - x) / 3 + x) * x - 1) * x + x * 0.5


def add_up(library: str, x: Any) -> float:
    """Return the sum of ten operations on a chunk."""
    return float(ten_operations(x).sum())


def transform(library: str, axis: int, x: Any) -> Any:
    """Return the Fourier transform of a chunk along an axis."""
    return finish(library, module_of(library).fft.fft(x, axis=axis).astype(np.complex64))


def diffuse(library: str, u: Any) -> Any:
    """Return a chunk after some steps of the heat equation. What the edges lack is cut off by the caller."""
    for _ in range(STEPS):
        inner = u[1:-1, 1:-1]
        new = inner + np.float32(0.1) * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inner)
        u = u.copy()
        u[1:-1, 1:-1] = new
    return finish(library, u)


def sum_clusters(library: str, centres: Any, points: Any) -> Any:
    """Return the sum of the points next to each centre, and their number in a last column, on the host."""
    m = module_of(library)
    c = m.asarray(centres)
    nearest = ((c * c).sum(1) - 2 * (points @ c.T)).argmin(1)
    ones = (nearest[:, None] == m.arange(len(centres))).astype(np.float32)
    return np.column_stack([to_host(ones.T @ points), to_host(ones.sum(0))])


def spread(points: Any, centres: Any) -> float:
    """Return the sum of the squared distances of points to the centres next to them."""
    squares = (centres.astype(float) ** 2).sum(1) - 2 * (points.astype(float) @ centres.astype(float).T)
    return float((squares.min(1) + (points.astype(float) ** 2).sum(1)).sum())


def simulate(library: str, count: int, seed: int) -> Any:
    """Return the mean discounted payoff of a call option over random paths, and the mean of its square."""
    m = module_of(library)
    normal = m.random.default_rng(seed).standard_normal(count, dtype=np.float32)
    drift, deviation = (RATE - VOLATILITY**2 / 2) * YEARS, VOLATILITY * math.sqrt(YEARS)
    payoff = m.maximum(SPOT * m.exp(normal * deviation + drift) - STRIKE, 0) * math.exp(-RATE * YEARS)
    return np.array([float(payoff.mean()), float((payoff * payoff).mean())])


# -- in the client


def import_dask() -> tuple[Any, Any]:
    """Return the modules `dask.array` and `distributed`, which are imported when a benchmark runs."""
    return import_module("dask.array"), import_module("distributed")


def split(rows: int, parts: int) -> tuple[int, ...]:
    """Return the rows of each part."""
    return tuple(rows // parts + (index < rows % parts) for index in range(parts))


def make_input(library: str, shape: tuple[int, ...], parts: int) -> Any:
    """Make an array in blocks of rows on the workers."""
    da, distributed = import_dask()
    chunks = (split(shape[0], parts), *((size,) for size in shape[1:]))
    # the meta array needs no device
    made = da.map_blocks(
        partial(make_block, library), chunks=chunks, dtype=np.float32, meta=np.empty((0,) * len(shape))
    ).persist()
    distributed.wait(made)
    return made


def list_chunks(client: Any, x: Any) -> list[Any]:
    """Return the futures of the chunks of an array that is on the workers."""
    found: list[Any] = client.compute(x.to_delayed().ravel().tolist())
    return found


def elements(client: Any, library: str, parts: int, scale: float) -> Problem:
    """Sum ten element-wise operations: nothing is exchanged. 32 GiB a device."""
    size = max(int(scale * (1 << 33)), 1000)
    chunks = list_chunks(client, make_input(library, (size,), parts))

    def run() -> float:
        return float(sum(client.gather(client.map(partial(add_up, library), chunks, pure=False))))

    return Problem(run, lambda: ten_operations(make_values("numpy", (size,), 0).astype(float)).sum(), size)


def fourier(client: Any, library: str, parts: int, scale: float) -> Problem:
    """Transform an image by slabs: all data change places between the axes. 4 GiB a device."""
    _, distributed = import_dask()
    columns = max(int(math.sqrt(scale) * 23168) // 16 * 16, 32)
    rows = max(int(scale * (1 << 29)) // columns // 16 * 16, 32)
    x = make_input(library, (rows, columns), parts)

    def run() -> Any:
        meta = np.empty((0, 0), np.complex64)
        along = x.map_blocks(partial(transform, library, 1), dtype=np.complex64, meta=meta)
        # by tasks: the other way goes through files
        turned = along.rechunk({0: rows, 1: max(columns // parts, 1)}, method="tasks")
        result = turned.map_blocks(partial(transform, library, 0), dtype=np.complex64, meta=meta).persist()
        distributed.wait(result)
        if rows * columns > MOST_CHECKED:
            return None
        return np.concatenate(client.gather(client.map(to_host, list_chunks(client, result))), axis=1)

    return Problem(run, lambda: np.fft.fft2(make_values("numpy", (rows, columns), 0)), rows * columns)


def stencil(client: Any, library: str, parts: int, scale: float) -> Problem:
    """Take steps of the heat equation by `map_overlap`: neighbours exchange rows. 4 GiB a device."""
    _, distributed = import_dask()
    columns = max(int(math.sqrt(scale) * 32768), 40)
    rows = max(int(scale * (1 << 30)) // columns, parts * 2 * STEPS)
    x = make_input(library, (rows, columns), parts)

    def run() -> Any:
        stepped = x.map_overlap(
            partial(diffuse, library),
            depth={0: STEPS, 1: 0},
            boundary="none",
            dtype=np.float32,
            meta=np.empty((0, 0), np.float32),
        ).persist()
        distributed.wait(stepped)
        if rows * columns > MOST_CHECKED:
            return None
        return np.concatenate(client.gather(client.map(to_host, list_chunks(client, stepped))), axis=0)

    return Problem(run, lambda: diffuse("numpy", make_values("numpy", (rows, columns), 0)), rows * columns)


def improve(centres: Any, sums: Sequence[Any]) -> Any:
    """Return the means of clusters; a cluster without points keeps its centre."""
    total: Any = np.sum(sums, axis=0, dtype=np.float64)
    counts = total[:, -1:]
    return np.where(counts > 0, total[:, :-1] / np.maximum(counts, 1), centres).astype(np.float32)


def cluster_points(client: Any, library: str, parts: int, scale: float) -> Problem:
    """Find 64 clusters in 16 dimensions: their sums go to the client and back. 4 GiB a device."""
    count = max(int(scale * (1 << 26)), 40 * CENTRES)
    chunks = list_chunks(client, make_input(library, (count, FEATURES), parts))
    first = make_values("numpy", (CENTRES, FEATURES), 5 * FEATURES)

    def run() -> Any:
        centres = first
        for _ in range(ITERATIONS):
            sums = client.map(partial(sum_clusters, library, centres), chunks, pure=False)
            centres = improve(centres, client.gather(sums))
        return centres

    def expected() -> Any:
        centres, whole = first, make_values("numpy", (count, FEATURES), 0)
        for _ in range(ITERATIONS):
            centres = improve(centres, [sum_clusters("numpy", centres, whole)])
        return centres

    return Problem(run, expected, count * FEATURES)


def option(client: Any, library: str, parts: int, scale: float) -> Problem:
    """Price an option by Monte Carlo: two numbers a task come out. 2^34 paths a device."""
    tasks = 4 * parts
    count = max(int(scale * (1 << 34)) // tasks, 1000)

    def run() -> Any:
        means = client.map(partial(simulate, library, count), range(1000, 1000 + tasks), pure=False)
        return np.mean(client.gather(means), axis=0)

    return Problem(run, price, count * tasks)


def price() -> Any:
    """Return the price of the option and the mean square of its payoff, which have formulas."""
    deviation = VOLATILITY * math.sqrt(YEARS)
    at = (math.log(SPOT / STRIKE) + (RATE - VOLATILITY**2 / 2) * YEARS) / deviation

    def below(x: float) -> float:
        return 0.5 * math.erfc(-x / math.sqrt(2))

    discount = math.exp(-RATE * YEARS)
    mean = SPOT * below(at + deviation) - STRIKE * discount * below(at)
    forward = SPOT / discount
    square = forward**2 * math.exp(deviation**2) * below(at + 2 * deviation)
    square += STRIKE**2 * below(at) - 2 * STRIKE * forward * below(at + deviation)
    return np.array([mean, square * discount**2])


CASES: dict[str, Callable[[Any, str, int, float], Problem]] = {
    "element-wise and sum": elements,
    "FFT by slabs": fourier,
    "stencil": stencil,
    "k-means": cluster_points,
    "Monte Carlo": option,
}


def is_right(case: str, problem: Problem, result: Any) -> bool | None:
    """Compare a result with NumPy's; None where the problem is too large for that."""
    if case == "Monte Carlo":
        mean, square = problem.expected()
        return bool(abs(result[0] - mean) < 5 * math.sqrt((square - mean**2) / problem.size))
    if problem.size > MOST_CHECKED or result is None:
        return None
    expected = problem.expected()
    if case == "k-means":  # a point as near to two centres goes to either, by rounding
        points = make_values("numpy", (problem.size // FEATURES, FEATURES), 0)
        return bool(np.isclose(spread(points, result), spread(points, expected), rtol=5e-3))
    tolerance = 2e-5 * float(abs(np.asarray(expected)).max())
    return bool(np.allclose(result, expected, rtol=2e-5, atol=tolerance))


# -- clusters


@contextmanager
def open_cluster(library: str, workers: int) -> Iterator[Any]:
    """Yield a client of a cluster of workers on this machine, each on a device of its own."""
    _, distributed = import_dask()
    # chunks stay where they were made
    import_module("dask").config.set({"distributed.scheduler.work-stealing": False})
    try:
        local: Any = import_module("vkdispatch.distributed").LocalVulkanCluster
    except (ImportError, AttributeError):
        local = None
    if library == "vkdispatch" and local is not None:
        made = local(n_workers=workers, dashboard_address=":0")
    else:

        def spec(index: int) -> dict[str, Any]:
            device = {VISIBLE[library]: str(index % count_devices(library))}
            env = {**device, "DASK_LOGGING__DISTRIBUTED": "warning"}
            return {"cls": distributed.Nanny, "options": {"nthreads": 1, "env": env, "dashboard": False}}

        scheduler = {"cls": distributed.Scheduler, "options": {"dashboard": False, "host": "127.0.0.1"}}
        specs = {index: spec(index) for index in range(workers)}
        made = distributed.SpecCluster(specs, scheduler, silence_logs=logging.WARNING)
    with made, distributed.Client(made) as client:
        client.wait_for_workers(workers)
        client.get_task_stream()  # the scheduler records tasks from the first request on
        yield client


def count_devices(library: str) -> int:
    """Return how many devices a library has here; workers beyond that share them."""
    if library == "vkdispatch":
        import vkdispatch as vd

        return len(vd.get_devices())
    return int(module_of("cupy").cuda.runtime.getDeviceCount()) if library == "cupy" else 1


def describe_device(library: str) -> dict[str, str]:
    """Return the name of a worker's device, and of its driver."""
    if library == "vkdispatch":
        import vkdispatch as vd

        info = vd.get_context().device_infos[0]
        return {"device": info.device_name, "driver": str(info.driver_version)}
    if library == "cupy":
        runtime = module_of("cupy").cuda.runtime
        name = runtime.getDeviceProperties(0)["name"].decode()
        return {"device": name, "driver": str(runtime.driverGetVersion())}
    return {"device": platform.processor() or platform.machine(), "driver": "NumPy"}


def time_runs(client: Any, problem: Problem, rounds: int, workers: int) -> tuple[dict[str, Any], Any]:
    """Return the seconds of each round, and the share of the workers' time in computing and transfers."""
    result = problem.run()  # compiles
    seconds = []
    begin = time.time()
    for _ in range(rounds):
        start = time.perf_counter()
        result = problem.run()
        seconds.append(time.perf_counter() - start)
    spent = {"compute": 0.0, "transfer": 0.0}
    for task in client.get_task_stream(start=begin):
        for part in task["startstops"]:
            if part["action"] in spent:
                spent[part["action"]] += part["stop"] - part["start"]
    shares = {name: round(value / (sum(seconds) * workers), 3) for name, value in spent.items()}
    return {"seconds": [round(each, 6) for each in seconds], **shares, "elements": problem.size}, result


def measure(
    library: str, counts: Sequence[int], cases: Sequence[str], scale: float, rounds: int
) -> dict[str, Any]:
    """Measure cases for each number of workers. Return figures by case, kind of scaling and workers."""
    found: dict[str, Any] = {case: {"strong": {}, "weak": {}} for case in cases}
    devices: list[dict[str, str]] = []
    for workers in counts:
        with open_cluster(library, workers) as client:
            devices = list(client.run(describe_device, library).values())
            for case in cases:
                for kind, factor in (("strong", 1), ("weak", workers)):
                    if factor == 1 and kind == "weak":
                        found[case]["weak"]["1"] = found[case]["strong"]["1"]
                        continue
                    problem = CASES[case](client, library, CHUNKS * max(counts) * factor, scale * factor)
                    figures, result = time_runs(client, problem, rounds, workers)
                    figures["right"] = is_right(case, problem, result)
                    found[case][kind][str(workers)] = figures
                    del problem
    return {"library": library, "devices": devices, "cases": found}


def efficiency(kind: str, figures: dict[str, Any], workers: str) -> float:
    """Return the efficiency of a number of workers against one."""
    one, many = (statistics.median(figures[count]["seconds"]) for count in ("1", workers))
    return float(one / many / (int(workers) if kind == "strong" else 1))


def table(reports: Sequence[dict[str, Any]]) -> str:
    """Return a table of Markdown: seconds, efficiency, and the shares of computing and of transfers."""
    lines = [
        "| library, case, scaling | workers | seconds | efficiency | computing | transfers |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for report in reports:
        for case, kinds in report["cases"].items():
            for kind, figures in kinds.items():
                for workers, each in figures.items():
                    share = f"{efficiency(kind, figures, workers):.2f}" if "1" in figures else "-"
                    median = statistics.median(each["seconds"])
                    wrong = " (wrong)" if each["right"] is False else ""
                    name = f"{report['library']}, {case}, {kind}"
                    shares = f"{each['compute']:.2f} | {each['transfer']:.2f}"
                    lines.append(f"| {name} | {workers} | {median:.4g}{wrong} | {share} | {shares} |")
    return "\n".join(lines)


def _parse_counts(_: click.Context, __: click.Parameter, value: str) -> list[int]:
    counts = [int(each) for each in value.split(",") if each.strip().isdigit() and int(each) > 0]
    if not counts:
        raise click.BadParameter("expected numbers of workers, such as 1,2,4")
    return counts


@click.command(help="Measure strong and weak scaling over devices under Dask.")
@click.option("--workers", default="1,2,4", callback=_parse_counts, help="Numbers of workers, one a device.")
@click.option("--size", default=1.0, help="A factor for all sizes: 1 fits GPUs of 80 GB, 1e-6 a laptop.")
@click.option("--rounds", default=5, help="Runs of each case that are timed.")
@click.option("--only", default="", help="Cases by the words that their names begin with, with commas.")
@click.option("--peer", type=click.Choice(["cupy", "numpy"]), help="Run the same on chunks of this library.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Where the figures go.")
def main(
    workers: list[int], size: float, rounds: int, only: str, peer: str | None, path: Path | None
) -> None:
    """Measure, print the table, and write the figures. The exit code is 1 if a result is wrong."""
    begins = tuple(each.strip() for each in only.split(",")) if only else ("",)
    cases = [case for case in CASES if case.startswith(begins)]
    libraries = ["vkdispatch"]
    if peer is not None:
        try:
            import_module(peer)
            libraries.append(peer)
        except ImportError:
            click.echo(f"{peer} is not installed: it is left out", err=True)
    reports = [measure(library, workers, cases, size, rounds) for library in libraries]
    click.echo(table(reports))
    if path is not None:
        facts = {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "host": platform.node(),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "versions": {
                "vkdispatch": import_module("vkdispatch").__version__,
                **{name: _find_version(name) for name in ("dask", "distributed", "cupy")},
            },
            "size": size,
            "rounds": rounds,
        }
        path.write_text(json.dumps({**facts, "reports": reports}, indent=1) + "\n")
    kinds = (each for report in reports for case in report["cases"].values() for each in case.values())
    if any(figures["right"] is False for kind in kinds for figures in kind.values()):
        sys.exit(1)


def _find_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
