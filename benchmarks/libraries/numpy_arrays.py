"""NumPy's functions on arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.libraries import arrays
from benchmarks.problems.problem import Array, Problem
from benchmarks.timing import SkipCase, Work, nothing

# Beyond, a case takes so long that the others' memory and time are wasted on it.
MOST_BYTES = 2**27
MOST_OPERATIONS = 2e10

random = np.random.Generator(np.random.Philox(1))


def sort(x: Array, descending: bool = False) -> Array:
    found = np.sort(x)
    return found[::-1] if descending else found


def sort_by_key(keys: Array, values: Array) -> tuple[Array, Array]:
    order = np.argsort(keys, kind="stable")
    return keys[order], values[order]


def topk(x: Array, k: int) -> tuple[Array, Array]:
    order = np.argpartition(x, -k, axis=-1)[..., -k:]
    found = np.take_along_axis(x, order, -1)
    at = np.argsort(-found, axis=-1)
    return np.take_along_axis(found, at, -1), np.take_along_axis(order, at, -1)


def put(x: Array, indices: Array, values: Array) -> Array:
    x[indices] = values
    return x


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "sum-wide": lambda x: np.sum(x, dtype=np.float32),
    "mean": np.mean,
    "var": np.var,
    "norm": np.linalg.norm,
    "max": np.max,
    "count_nonzero": np.count_nonzero,
    "argmax": np.argmax,
    "dot": np.dot,
    "cumsum": np.cumsum,
    "cumsum-i32": lambda x: np.cumsum(x, dtype=np.int32),
    "cumprod": np.cumprod,
    "cummax": np.maximum.accumulate,
    "sort": sort,
    "argsort": lambda x: np.argsort(x, kind="stable"),
    "sort_by_key": sort_by_key,
    "topk": topk,
    "unique": np.unique,
    "nonzero": np.flatnonzero,
    "compact": lambda x, mask: x[mask],
    "searchsorted": np.searchsorted,
    "histogram": lambda x, bins: np.histogram(x, bins, (0, 1))[0],
    "bincount": lambda x, below: np.bincount(x, minlength=below),
    "matmul": np.matmul,
    "matmul-relu": lambda a, b: np.maximum(a @ b, 0),
    "matmul-transposed": lambda a, b: a @ b.T,
    "uniform": lambda count: random.random(count, np.float32),
    "uniform-f64": lambda count: random.random(count),
    "normal": lambda count: random.standard_normal(count, np.float32),
    "integers": lambda count: random.integers(0, 1000, count, np.int32),
    "permutation": lambda count: random.permutation(count),
    "copy": np.copy,
    "fill": lambda count, value: np.full(count, value, np.float32),
    "transpose": lambda x, axes: np.ascontiguousarray(x.transpose(axes)),
    "take": np.take,
    "put": put,
    "where": np.where,
    "concatenate": lambda *parts: np.concatenate(parts),
    "roll": lambda x, shift: np.roll(x, shift),
    "pad": lambda x, width: np.pad(x, width),
}


def prepare(problem: Problem) -> tuple[Work, arrays.Fetch]:
    """Return a call with the arrays, and what returns the last results."""
    operations = problem.counted * 1e3 if problem.figure == "tflops" else 0
    if problem.nbytes > MOST_BYTES or operations > MOST_OPERATIONS:
        raise SkipCase("takes seconds for so much")
    writable = problem.function == "put"
    return arrays.eager(problem, FUNCTIONS, np.copy if writable else np.asarray, np.asarray)


CASES = arrays.cases(prepare, nothing)
