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


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **arrays.functions_of_numpys_names(cupy, random),
    "sort": descending_sort,
    "argsort": cupy.argsort,
    "permutation": lambda count: cupy.random.permutation(count),
}


def prepare(problem: Problem) -> tuple[Work, arrays.Fetch]:
    """Return a call with arrays of the device, and what fetches the last results."""
    return arrays.eager(problem, FUNCTIONS, cupy.asarray, lambda array: np.asarray(array.get()))


CASES = arrays.cases(prepare, cupy.cuda.runtime.deviceSynchronize)
