"""The cases of functions on arrays, whatever the library: `problems` says what, its module has the functions.

A library's `FUNCTIONS` have the names that problems ask for, take the arrays and then the problem's options,
and return an array or a tuple of arrays.
"""

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.problems import PROBLEMS
from benchmarks.problems.problem import Array, Problem
from benchmarks.timing import Sizes, SkipCase, Trial, Values, Work, time_passes

Fetch = Callable[[], list[Array]]
Prepare = Callable[[Problem], tuple[Work, Fetch]]


def cases(prepare: Prepare, wait: Work) -> dict[str, Callable[[Sizes], Trial]]:
    """Return a library's cases: `prepare` returns what solves a problem once, and what fetches results."""

    def case_of(work: str) -> Callable[[Sizes], Trial]:
        return lambda sizes: timed(made(work, sizes), prepare, wait, sizes)

    return {work: case_of(work) for work in PROBLEMS}


# The problem that comes next, made while others make theirs.
waiting: dict[str, tuple[Sizes, Problem]] = {}


def load(work: str, sizes: Sizes) -> None:
    """Make a problem that will be asked for."""
    waiting.clear()
    if work in PROBLEMS:
        waiting[work] = sizes, PROBLEMS[work](sizes)


def made(work: str, sizes: Sizes) -> Problem:
    """Return the problem of a work: the one that was made ahead, if it is of these sizes."""
    known, problem = waiting.pop(work, ({}, None))
    return problem if problem is not None and known == sizes else PROBLEMS[work](sizes)


def timed(problem: Problem, prepare: Prepare, wait: Work, sizes: Sizes) -> Trial:
    """Return the trial of a problem: ms and gbps, and the figure that the problem names."""
    work, fetch = prepare(problem)

    def right(_: int) -> bool:
        return bool(problem.right(*fetch()))

    trial = time_passes(work, wait, 1, problem.nbytes, problem.counted, right, sizes)

    def measure() -> Values:
        values = trial.measure()
        rate = values.pop("gpoints")
        return {**values, problem.figure: rate} if problem.figure else values

    return Trial(measure, trial.right, trial.repetitions)


def functions_of_numpys_names(xp: Any, random: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions of a library that names them as NumPy does; `random` is its generator."""
    return {
        "sum": xp.sum,
        "sum-wide": lambda x: xp.sum(x, dtype=xp.float32),
        "mean": xp.mean,
        "var": xp.var,
        "norm": xp.linalg.norm,
        "max": xp.max,
        "count_nonzero": xp.count_nonzero,
        "argmax": xp.argmax,
        "dot": xp.dot,
        "cumsum": xp.cumsum,
        "cumsum-i32": lambda x: xp.cumsum(x, dtype=xp.int32),
        "cumprod": xp.cumprod,
        "unique": xp.unique,
        "nonzero": xp.flatnonzero,
        "compact": lambda x, mask: x[mask],
        "searchsorted": xp.searchsorted,
        "histogram": lambda x, bins: xp.histogram(x, bins, (0, 1))[0],
        "bincount": lambda x, below: xp.bincount(x, minlength=below),
        "matmul": xp.matmul,
        "matmul-relu": lambda a, b: xp.maximum(a @ b, 0),
        "matmul-transposed": lambda a, b: a @ b.T,
        "uniform": lambda count: random.random(count, xp.float32),
        "uniform-f64": lambda count: random.random(count),
        "normal": lambda count: random.standard_normal(count, xp.float32),
        "integers": lambda count: random.integers(0, 1000, count, xp.int32),
        "copy": xp.copy,
        "fill": lambda count, value: xp.full(count, value, xp.float32),
        "transpose": lambda x, axes: xp.ascontiguousarray(x.transpose(axes)),
        "take": xp.take,
        "put": _put,
        "where": xp.where,
        "concatenate": lambda *parts: xp.concatenate(parts),
        "roll": lambda x, shift: xp.roll(x, shift),
        "pad": lambda x, width: xp.pad(x, width),
    }


def _put(x: Any, indices: Any, values: Any) -> Any:
    x[indices] = values
    return x


def function_of(functions: Mapping[str, Callable[..., Any]], name: str) -> Callable[..., Any]:
    """Return the function of a name, or skip the case."""
    if name not in functions:
        raise SkipCase("has no such function")
    return functions[name]


def eager(
    problem: Problem,
    functions: Mapping[str, Callable[..., Any]],
    upload: Callable[[Array], Any],
    download: Callable[[Any], Array],
) -> tuple[Work, Fetch]:
    """Return a call of a library's function with arrays of its own, and what fetches the last results."""
    function = function_of(functions, problem.function)
    arrays = [upload(array) for array in problem.inputs]
    results: list[Any] = []

    def work() -> None:
        found = function(*arrays, **problem.options)
        results[:] = found if isinstance(found, tuple) else (found,)

    return work, lambda: [download(result) for result in results]
