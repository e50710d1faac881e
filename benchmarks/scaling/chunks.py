"""What the workers compute: functions of chunks of any library with NumPy's names."""

import functools
import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

LIBRARIES = {"vkdispatch": "vkdispatch.numpy", "cupy": "cupy", "numpy": "numpy"}
PERIOD = 1021  # of the values of the inputs: a prime
PASSES = 32  # over each chunk, so that a task takes tens of milliseconds
STEPS = 32  # of the stencil between two exchanges
SPOT, STRIKE, RATE, VOLATILITY, YEARS = 100.0, 105.0, 0.02, 0.3, 1.0


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


def take_part(x: Any, rows: slice, columns: slice) -> Any:
    """Return a part of a chunk on the host."""
    return np.ascontiguousarray(to_host(x[rows, columns]))


def make_values(library: str, shape: tuple[int, ...], first: int) -> Any:
    """Return the values from `first` on of the endless sequence that all inputs are parts of."""
    m = module_of(library)
    index = m.arange(math.prod(shape), dtype=np.uint32) % PERIOD + first % PERIOD
    values = ((index * 577) % PERIOD).astype(np.float32) / np.float32(PERIOD)
    return finish(library, values.reshape(shape))


def ten_operations(x: Any) -> Any:
    """Compute ten element-wise operations."""
    return ((((x + 1) * 2 - x) / 3 + x) * x - 1) * x + x * 0.5


def scaled_operations(x: Any, scale: Any) -> Any:
    """Compute ten operations on scaled elements."""
    return ten_operations(x * scale)


@functools.cache
def operations_of(library: str) -> Callable[[Any, Any], Any]:
    """Return `scaled_operations`; for CuPy as one kernel, where its `fuse` can."""
    if library != "cupy":
        return scaled_operations
    cupy = module_of(library)
    try:
        fused: Callable[[Any, Any], Any] = cupy.fuse()(scaled_operations)
        some = cupy.arange(4, dtype=np.float32)
        if fused(some, np.float32(2)).dtype == np.float32:
            return fused
    except Exception:
        pass
    return scaled_operations


def scales() -> Any:
    """Return the scale of each pass over a chunk."""
    return (1 + np.arange(PASSES) / PASSES).astype(np.float32)


def add_up(library: str, x: Any) -> Any:
    """Return the sum of ten operations on a chunk for each scale."""
    operations = operations_of(library)
    return np.array([float(operations(x, scale).sum()) for scale in scales()])


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


def simulate(library: str, count: int, batches: int, seed: int) -> Any:
    """Return the mean discounted payoff of a call option over random paths, and the mean of its square."""
    m = module_of(library)
    drift, deviation = (RATE - VOLATILITY**2 / 2) * YEARS, VOLATILITY * math.sqrt(YEARS)
    generator = m.random.default_rng(seed)
    found = []
    for _ in range(batches):
        normal = generator.standard_normal(count, dtype=np.float32)
        payoff = m.maximum(SPOT * m.exp(normal * deviation + drift) - STRIKE, 0) * math.exp(-RATE * YEARS)
        found.append([float(payoff.mean()), float((payoff * payoff).mean())])
    return np.mean(found, axis=0)
