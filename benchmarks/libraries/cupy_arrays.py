"""CuPy's functions on arrays: CUB's and Thrust's, cuBLAS, cuRAND."""

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

from benchmarks.libraries import arrays
from benchmarks.problems.problem import Problem
from benchmarks.timing import Work

random = cupy.random.Generator(cupy.random.Philox4x3210(1))


def descending_sort(x: Any, descending: bool = False) -> Any:
    found = cupy.sort(x)
    return found[::-1].copy() if descending else found


def put(x: Any, indices: Any, values: Any) -> Any:
    x[indices] = values
    return x


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": cupy.sum,
    "sum-wide": lambda x: cupy.sum(x, dtype=cupy.float32),
    "mean": cupy.mean,
    "var": cupy.var,
    "norm": cupy.linalg.norm,
    "max": cupy.max,
    "count_nonzero": cupy.count_nonzero,
    "argmax": cupy.argmax,
    "dot": cupy.dot,
    "cumsum": cupy.cumsum,
    "cumsum-i32": lambda x: cupy.cumsum(x, dtype=cupy.int32),
    "cumprod": cupy.cumprod,
    "sort": descending_sort,
    "argsort": cupy.argsort,
    "unique": cupy.unique,
    "nonzero": cupy.flatnonzero,
    "compact": lambda x, mask: x[mask],
    "searchsorted": cupy.searchsorted,
    "histogram": lambda x, bins: cupy.histogram(x, bins, (0, 1))[0],
    "bincount": lambda x, below: cupy.bincount(x, minlength=below),
    "matmul": cupy.matmul,
    "matmul-relu": lambda a, b: cupy.maximum(a @ b, 0),
    "matmul-transposed": lambda a, b: a @ b.T,
    "uniform": lambda count: random.random(count, cupy.float32),
    "uniform-f64": lambda count: random.random(count),
    "normal": lambda count: random.standard_normal(count, cupy.float32),
    "integers": lambda count: random.integers(0, 1000, count, cupy.int32),
    "permutation": lambda count: cupy.random.permutation(count),
    "copy": cupy.copy,
    "fill": lambda count, value: cupy.full(count, value, cupy.float32),
    "transpose": lambda x, axes: cupy.ascontiguousarray(x.transpose(axes)),
    "take": cupy.take,
    "put": put,
    "where": cupy.where,
    "concatenate": lambda *parts: cupy.concatenate(parts),
    "roll": cupy.roll,
    "pad": lambda x, width: cupy.pad(x, width),
}


def prepare(problem: Problem) -> tuple[Work, arrays.Fetch]:
    """Return a call with arrays of the device, and what fetches the last results."""
    return arrays.eager(problem, FUNCTIONS, cupy.asarray, lambda array: np.asarray(array.get()))


CASES = arrays.cases(prepare, cupy.cuda.runtime.deviceSynchronize)
