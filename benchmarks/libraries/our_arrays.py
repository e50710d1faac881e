"""Our functions on arrays. They are recorded in a graph, which is submitted again and again.

What waits for the device, because its result's size depends on the data, is called instead.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from benchmarks.libraries import arrays
from benchmarks.problems.problem import Array, Problem
from benchmarks.timing import SkipCase, Work
from vkdispatch.codegen.abbreviations import Buff, Const, f16, f32

# Some versions lack some functions.
api: Any = vd


@vd.shader("to.size")
def fill_kernel(to: Buff[f32], value: Const[f32]) -> None:
    tid = vc.global_invocation_id().x
    to[tid] = value


def fill(count: int, value: float, graph: Any) -> Any:
    to: Any = vd.Buffer((count,), vd.float32)
    fill_kernel(to, value, graph=graph)
    return to


def copy(x: Any, graph: Any) -> Any:
    to = vd.Buffer(x.shape, x.var_type)
    vd.copyto(to, x, graph=graph)
    return to


def relu() -> Any:
    """Return a map of products: negative ones become zero."""

    def positive(value: f32) -> f16:
        return vc.max(value, 0.0).to_dtype(vd.float16)

    return vd.map(positive)


def put(x: Any, indices: Any, values: Any, graph: Any) -> Any:
    # as torch and CuPy, for which it is undefined which of several values for a place counts
    api.put(x, indices, values, unique=True, graph=graph)
    return x


def generator() -> Any:
    return api.random.Generator(1)


# The functions of vkdispatch that a problem needs, if their names differ from the problem's.
NEEDS = {
    "copy": "copyto",
    "fill": "shader",
    "sum-wide": "sum",
    "cumsum-i32": "cumsum",
    "matmul-relu": "matmul",
    "matmul-transposed": "matmul",
    "matmul-bf16": "matmul",
    **dict.fromkeys(("uniform", "uniform-f64", "normal", "integers", "permutation"), "random"),
}
# Called with buffers, the problem's options and `graph`.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, graph, axis=None: api.sum(x, axis=axis, graph=graph),
    "sum-wide": lambda x, graph: api.sum(x, dtype=vd.float32, graph=graph),
    "mean": lambda x, graph: api.mean(x, graph=graph),
    "var": lambda x, graph, axis=None: api.var(x, axis=axis, graph=graph),
    "norm": lambda x, graph: api.norm(x, graph=graph),
    "max": lambda x, graph, axis=None: api.max(x, axis=axis, graph=graph),
    "count_nonzero": lambda x, graph: api.count_nonzero(x, graph=graph),
    "argmax": lambda x, graph: api.argmax(x, graph=graph),
    "dot": lambda x, y, graph: api.dot(x, y, graph=graph),
    "cumsum": lambda x, graph, axis=None: api.cumsum(x, axis=axis, graph=graph),
    "cumsum-i32": lambda x, graph: api.cumsum(x, dtype=vd.int32, graph=graph),
    "cumprod": lambda x, graph: api.cumprod(x, graph=graph),
    "cummax": lambda x, graph: api.cummax(x, graph=graph),
    "sort": lambda x, graph, **options: api.sort(x, graph=graph, **options),
    "argsort": lambda x, graph: api.argsort(x, graph=graph),
    "sort_by_key": lambda keys, values, graph: api.sort_by_key(keys, values, graph=graph),
    "topk": lambda x, k, graph: api.topk(x, k, graph=graph),
    "searchsorted": lambda table, x, graph: api.searchsorted(table, x, graph=graph),
    "histogram": lambda x, bins, graph: first(api.histogram(x, bins, (0.0, 1.0), graph=graph)),
    "bincount": lambda x, below, graph: api.bincount(x, minlength=below, size=below, graph=graph),
    "matmul": lambda a, b, graph: api.matmul(a, b, graph=graph),
    "matmul-relu": lambda a, b, graph: api.matmul(a, b, output_map=relu(), graph=graph),
    "matmul-bf16": lambda a, b, graph: api.matmul(a, b, graph=graph),
    "matmul-transposed": lambda a, b, graph: api.matmul(a, b, transpose_b=True, graph=graph),
    "uniform": lambda count, graph: generator().uniform(size=count, graph=graph),
    "uniform-f64": lambda count, graph: generator().uniform(size=count, dtype=vd.float64, graph=graph),
    "normal": lambda count, graph: generator().normal(size=count, graph=graph),
    "integers": lambda count, graph: generator().integers(0, 1000, size=count, graph=graph),
    "permutation": lambda count, graph: generator().permutation(count, graph=graph),
    "copy": copy,
    "fill": fill,
    "transpose": lambda x, axes, graph: api.transpose(x, axes, graph=graph),
    "take": lambda x, indices, axis, graph: api.take(x, indices, axis=axis, graph=graph),
    "put": put,
    "where": lambda mask, x, y, graph: api.where(mask, x, y, graph=graph),
    "concatenate": lambda *parts, graph: api.concatenate(parts, graph=graph),
    "roll": lambda x, shift, graph: api.roll(x, shift, graph=graph),
    "pad": lambda x, width, graph: api.pad(x, width, graph=graph),
}
# Called without a graph.
CALLED: dict[str, Callable[..., Any]] = {
    "unique": lambda x: api.unique(x),
    "nonzero": lambda x: api.nonzero(x)[0],
    "compact": lambda x, mask: api.compact(x, mask),
}


def first(found: Any) -> Any:
    """Return the first of several results."""
    return found[0] if isinstance(found, tuple) else found


def prepare(problem: Problem) -> tuple[Work, arrays.Fetch]:
    """Return what submits a graph, or a call; and what fetches the last results."""
    needed = NEEDS.get(problem.function, problem.function)
    if not hasattr(vd, needed):
        raise SkipCase(f"vd.{needed} does not exist yet")
    drawn = problem.function.partition("-")[0]
    if needed == "random" and not hasattr(api.random.Generator, drawn):
        raise SkipCase(f"vd.random.Generator.{drawn} does not exist yet")
    try:
        if problem.function in CALLED:
            return arrays.eager(problem, CALLED, vd.asbuffer, fetched)
        function = arrays.function_of(FUNCTIONS, problem.function)
        buffers = [given(array, problem.function) for array in problem.inputs]
        graph = vd.CommandGraph()
        found = function(*buffers, **problem.options, graph=graph)
    except vd.UnsupportedError as error:
        raise SkipCase(str(error)) from error
    results = found if isinstance(found, tuple) else (found,)
    return graph.submit, lambda: [fetched(result) for result in results]


def given(array: Array, function: str) -> Any:
    """Return a buffer of an array; NumPy has no bfloat16, so it has the bits of such."""
    if function != "matmul-bf16":
        return vd.asbuffer(array)
    buffer = vd.Buffer(array.shape, vd.bfloat16)
    buffer.write(array)
    return buffer


def fetched(buffer: Any) -> Array:
    return np.asarray(buffer.read(0))


CASES = arrays.cases(prepare, vd.queue_wait_idle)
