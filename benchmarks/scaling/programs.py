"""The programs, and what NumPy and formulas say of their results.

The values of all inputs have a short period, so that the results of problems of any size can be checked: few
rows, columns and points differ.
"""

import math
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from benchmarks.scaling import chunks

CENTRES, FEATURES, ITERATIONS = 64, 16, 4
BATCHES = 4  # of the paths of a task
PATIENCE = 120  # seconds for a run


class Problem(NamedTuple):
    """A problem, ready to be timed.

    `run` computes it and returns its result, `check` whether that is right, `size` is the number of its
    elements, and `tasks` how many tasks a run has at least.
    """

    run: Callable[[], Any]
    check: Callable[[Any], bool]
    size: int
    tasks: int


class Blocks(NamedTuple):
    """The chunks of an input: futures of blocks of rows, and an array of Dask that shows them."""

    futures: list[Any]
    array: Any


def import_dask() -> tuple[Any, Any]:
    """Return the modules `dask.array` and `distributed`, which are imported when a benchmark runs."""
    return import_module("dask.array"), import_module("distributed")


def split(rows: int, parts: int) -> tuple[int, ...]:
    """Return the rows of each part."""
    return tuple(rows // parts + (index < rows % parts) for index in range(parts))


def make_input(client: Any, library: str, shape: tuple[int, ...], parts: int) -> Blocks:
    """Make an array in blocks of rows on the workers, as many on each."""
    da, _ = import_dask()
    workers = list_workers(client)
    rows = split(shape[0], parts)
    name = f"input-{uuid.uuid4().hex}"
    layer, first = {}, 0
    for index, count in enumerate(rows):
        block = (count, *shape[1:])
        key = (name, index, *(0 for _ in shape[1:]))
        where = [workers[index * len(workers) // parts]]
        layer[key] = client.submit(chunks.make_values, library, block, first, key=key, workers=where)
        first += math.prod(block)
    found = list(layer.values())
    complete(found)
    # the meta array needs no device
    meta = np.empty((0,) * len(shape), np.float32)
    return Blocks(found, da.Array(layer, name, (rows, *((each,) for each in shape[1:])), meta=meta))


def list_workers(client: Any) -> list[str]:
    """Return the addresses of the workers, in order."""
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def complete(x: Any) -> None:
    """Wait for futures, or the chunks of an array; raise the first error, or TimeoutError."""
    _, distributed = import_dask()
    futures = x if isinstance(x, list) else distributed.futures_of(x)
    distributed.wait(futures, timeout=PATIENCE)
    for future in futures:
        if future.status != "finished":
            future.result()


def collect(client: Any, futures: list[Any]) -> list[Any]:
    """Return the results of futures, which do not stay on the workers."""
    complete(futures)
    found: list[Any] = client.gather(futures)
    return found


def power_of_two(size: float) -> int:
    """Return the power of two next to a size."""
    return 1 << max(round(math.log2(size)), 0)


# -- element-wise


def elements(client: Any, library: str, workers: int, factor: int, scale: float) -> Problem:
    """Sum ten element-wise operations, for 32 scales: nothing is exchanged. 32 GiB a device."""
    size, parts = max(int(scale * (1 << 33)), 1000) * factor, 16 * factor
    blocks = make_input(client, library, (size,), parts)

    def run() -> Any:
        sums = client.map(partial(chunks.add_up, library), blocks.futures, pure=False)
        return np.sum(collect(client, sums), axis=0)

    def check(result: Any) -> bool:
        values = chunks.make_values("numpy", (chunks.PERIOD,), 0).astype(float)
        counts = count_repeats(size)
        expected = [(chunks.scaled_operations(values, scale) * counts).sum() for scale in chunks.scales()]
        return bool(np.allclose(result, expected, rtol=1e-4))

    return Problem(run, check, size, parts)


def count_repeats(size: int) -> Any:
    """Return how often each of the values of a period is among the first ones of the endless sequence."""
    return size // chunks.PERIOD + (np.arange(chunks.PERIOD) < size % chunks.PERIOD)


# -- Fourier transform


def fourier(client: Any, library: str, workers: int, factor: int, scale: float) -> Problem:
    """Transform an image by slabs: all data change places between the axes. 8 GiB a device."""
    columns = max(power_of_two(math.sqrt(scale) * (1 << 15)), 32)
    rows, parts = columns * factor, 2 * workers
    x = make_input(client, library, (rows, columns), parts).array

    def run() -> Any:
        meta = np.empty((0, 0), np.complex64)
        along = x.map_blocks(partial(chunks.transform, library, 1), dtype=np.complex64, meta=meta)
        # by tasks: the other way goes through files
        turned = along.rechunk({0: rows, 1: split(columns, parts)}, method="tasks")
        slabs = turned.map_blocks(partial(chunks.transform, library, 0), dtype=np.complex64, meta=meta)
        # each worker gets as many slabs: by itself, the scheduler may give one worker most of them
        with import_module("dask").annotate(workers=partial(place_slab, list_workers(client), parts)):
            result = slabs.persist()
        complete(result)
        return result

    def check(result: Any) -> bool:
        slabs, first = chunks_of(client, result), 0
        right = True
        for slab, count in zip(slabs, split(columns, parts), strict=True):
            place = min(max(peak_near(first + count // 2, columns) - first, 0), count - 1)
            part = client.submit(chunks.take_part, slab, slice(None), slice(place, place + 1)).result()
            expected = transform_column(rows, columns, first + place)
            right &= bool(np.allclose(part[:, 0], expected, rtol=1e-3, atol=1e-5 * abs(expected).max()))
            first += count
        return right

    return Problem(run, check, rows * columns, 2 * parts)


def place_slab(workers: Sequence[str], parts: int, key: Any) -> list[str]:
    """Return the worker for a task on a slab of columns; an empty list, for any worker, otherwise."""
    if not isinstance(key, tuple) or len(key) != 3 or key[1] != 0:
        return []
    return [workers[key[2] * len(workers) // parts]]


def transform_column(rows: int, columns: int, column: int) -> Any:
    """Return a column of the two-dimensional transform of an input: as many rows differ as the period has."""
    number = min(rows, chunks.PERIOD)  # the rows repeat after as many as their first values have phases
    wave = np.exp(-2j * np.pi * ((np.arange(columns) * column) % columns) / columns)
    along = np.array(
        [chunks.make_values("numpy", (columns,), row * columns).astype(float) @ wave for row in range(number)]
    )
    return np.fft.fft(along[np.arange(rows) % number])


def peak_near(column: int, columns: int) -> int:
    """Return the column next to this one where the transform of the periodic rows has a peak."""
    return round(round(column * chunks.PERIOD / columns) * columns / chunks.PERIOD)


def chunks_of(client: Any, x: Any) -> list[Any]:
    """Return the futures of the chunks of an array that is on the workers, in order."""
    found: list[Any] = client.compute(x.to_delayed().ravel().tolist())
    return found


# -- stencil


def stencil(client: Any, library: str, workers: int, factor: int, scale: float) -> Problem:
    """Take 32 steps of the heat equation by `map_overlap`: neighbours exchange rows. 8 GiB a device."""
    steps, parts = chunks.STEPS, 8 * factor
    columns = max(int(math.sqrt(scale) * (1 << 15)), 40)
    rows = max(int(math.sqrt(scale) * (1 << 16)), 2 * steps * 8) * factor
    x = make_input(client, library, (rows, columns), parts).array

    def run() -> Any:
        stepped = x.map_overlap(
            partial(chunks.diffuse, library),
            depth={0: steps, 1: 0},
            boundary="none",
            dtype=np.float32,
            meta=np.empty((0, 0), np.float32),
        ).persist()
        complete(stepped)
        return stepped

    def check(result: Any) -> bool:
        found = chunks_of(client, result)
        first, counts = 0, split(rows, parts)
        right = True
        for chunk, count in zip(found, counts, strict=True):
            # the first and the last rows of each chunk need those of its neighbours
            for begin in (first, first + count - 3):
                place = slice(begin - first, begin - first + 3)
                part = client.submit(chunks.take_part, chunk, place, slice(None)).result()
                expected = diffuse_rows(rows, columns, begin, begin + 3)
                right &= bool(np.allclose(part, expected, rtol=2e-5, atol=2e-5))
            first += count
        return right

    return Problem(run, check, rows * columns, parts)


def diffuse_rows(rows: int, columns: int, begin: int, end: int) -> Any:
    """Return some rows of the result of the stencil."""
    first, last = max(begin - chunks.STEPS, 0), min(end + chunks.STEPS, rows)
    window = chunks.make_values("numpy", (last - first, columns), first * columns)
    return chunks.diffuse("numpy", window)[begin - first : end - first]


# -- k-means


def cluster_points(client: Any, library: str, workers: int, factor: int, scale: float) -> Problem:
    """Find 64 clusters in 16 dimensions: their sums go to the client and back. 4 GiB a device."""
    count, parts = max(int(scale * (1 << 26)), 40 * CENTRES) * factor, 8 * factor
    blocks = make_input(client, library, (count, FEATURES), parts)
    first = chunks.make_values("numpy", (CENTRES, FEATURES), 5 * FEATURES)

    def run() -> Any:
        steps = [first]
        for _ in range(ITERATIONS):
            sums = client.map(partial(chunks.sum_clusters, library, steps[-1]), blocks.futures, pure=False)
            steps.append(improve(steps[-1], collect(client, sums)))
        return np.stack(steps)

    def check(result: Any) -> bool:
        # points repeat after as many as their first values have phases
        points = chunks.make_values("numpy", (chunks.PERIOD, FEATURES), 0).astype(float)
        counts = count_repeats(count)
        return all(follows(points, counts, result[step], result[step + 1]) for step in range(ITERATIONS))

    return Problem(run, check, count * FEATURES, ITERATIONS * parts)


def follows(points: Any, counts: Any, before: Any, after: Any) -> bool:
    """Whether centres are those that follow others in a step.

    Only clusters are compared that have no point nearly as near to another centre: rounding decides where
    such points go.
    """
    centres = before.astype(float)
    squares = (centres**2).sum(1) - 2 * (points @ centres.T)
    near = squares <= squares.min(1, keepdims=True) + 1e-4
    clear = ~near[near.sum(1) > 1].any(0)
    ones = near * counts[:, None]
    expected = improve(centres, [np.column_stack([ones.T @ points, ones.sum(0)])])
    return bool(clear.mean() > 0.25 and np.allclose(after[clear], expected[clear], rtol=1e-4, atol=1e-5))


def improve(centres: Any, sums: Sequence[Any]) -> Any:
    """Return the means of clusters; a cluster without points keeps its centre."""
    total: Any = np.sum(sums, axis=0, dtype=np.float64)
    counts = total[:, -1:]
    return np.where(counts > 0, total[:, :-1] / np.maximum(counts, 1), centres).astype(np.float32)


# -- Monte Carlo


def option(client: Any, library: str, workers: int, factor: int, scale: float) -> Problem:
    """Price an option by Monte Carlo: two numbers a task come out. 2^35 paths a device."""
    tasks = 16 * factor
    count = max(int(scale * (1 << 29)), 1000)

    def run() -> Any:
        simulate = partial(chunks.simulate, library, count, BATCHES)
        seeds = range(1000, 1000 + tasks)
        return np.mean(collect(client, client.map(simulate, seeds, pure=False)), axis=0)

    def check(result: Any) -> bool:
        mean, square = price()
        # sums of single precision have a last word too
        bound = 5 * math.sqrt((square - mean**2) / (count * BATCHES * tasks)) + 1e-4 * mean
        return bool(abs(result[0] - mean) < bound)

    return Problem(run, check, count * BATCHES * tasks, tasks)


def price() -> Any:
    """Return the price of the option and the mean square of its payoff, which have formulas."""
    spot, strike, rate, volatility, years = (
        chunks.SPOT,
        chunks.STRIKE,
        chunks.RATE,
        chunks.VOLATILITY,
        chunks.YEARS,
    )
    deviation = volatility * math.sqrt(years)
    at = (math.log(spot / strike) + (rate - volatility**2 / 2) * years) / deviation

    def below(x: float) -> float:
        return 0.5 * math.erfc(-x / math.sqrt(2))

    discount = math.exp(-rate * years)
    mean = spot * below(at + deviation) - strike * discount * below(at)
    forward = spot / discount
    square = forward**2 * math.exp(deviation**2) * below(at + 2 * deviation)
    square += strike**2 * below(at) - 2 * strike * forward * below(at + deviation)
    return np.array([mean, square * discount**2])


CASES: dict[str, Callable[[Any, str, int, int, float], Problem]] = {
    "element-wise and sum": elements,
    "FFT by slabs": fourier,
    "stencil": stencil,
    "k-means": cluster_points,
    "Monte Carlo": option,
}
