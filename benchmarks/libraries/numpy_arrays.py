"""NumPy's functions on arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.libraries import arrays
from benchmarks.problems.problem import Array, Problem
from benchmarks.timing import SkipCase, Work, nothing

# Beyond, a case takes so long that the others' memory and time are wasted on it.
MAX_BYTES = 2**27
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


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **arrays.functions_of_numpys_names(np, random),
    "cummax": np.maximum.accumulate,
    "sort": sort,
    "argsort": lambda x: np.argsort(x, kind="stable"),
    "sort_by_key": sort_by_key,
    "topk": topk,
    "permutation": lambda count: random.permutation(count),
}


def prepare(problem: Problem) -> tuple[Work, arrays.Fetch]:
    """Return a call with the arrays, and what returns the last results."""
    operations = problem.counted * 1e3 if problem.figure == "tflops" else 0
    if problem.nbytes > MAX_BYTES or operations > MOST_OPERATIONS:
        raise SkipCase("takes seconds for so much")
    writable = problem.function == "put"
    return arrays.eager(problem, FUNCTIONS, np.copy if writable else np.asarray, np.asarray)


CASES = arrays.cases(prepare, nothing)
