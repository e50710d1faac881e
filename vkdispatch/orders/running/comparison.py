"""Comparison of the sections of an order: their results, and their times."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vkdispatch.base.record import record
from vkdispatch.orders.arguments.argument import Argument, Array, copy_arguments
from vkdispatch.orders.arguments.grid import Grid
from vkdispatch.orders.errors import Attempt, OrderMismatchError
from vkdispatch.orders.models import Placement, Program


@record
class Verification:
    """The result of `verify=True` for the latest run.

    Attributes
    ----------
    models
        The compared models, beginning with that of the results. A single one: nothing was compared.
    errors
        The largest error of each other model, relative to the output's largest value.
    missing
        The sections that could not be built.
    """

    models: tuple[str, ...]
    errors: Mapping[str, float]
    missing: tuple[Attempt, ...]


def run_on_copies(program: Program, arguments: Sequence[Argument], grid: Grid, run_id: int) -> list[Array]:
    """Run a program on copies of the outputs, and return the copies."""
    copies = copy_arguments(arguments)
    placement = program.place(copies, 0)
    try:
        if not grid.is_empty:
            program.run(placement, grid, run_id, 0, 0)
        placement.fetch()
    finally:
        placement.close()
    return [copy.read() for copy in copies if copy.parameter.is_output]


def compare(
    arguments: Sequence[Argument],
    models: tuple[str, str],
    first: Sequence[Array],
    second: Sequence[Array],
    tolerance: float | None,
) -> float:
    """Return the largest error between the outputs of two models, relative to an output's largest value.

    Raises
    ------
    OrderMismatchError
        The error exceeds `tolerance`, or the default tolerance of the dtype.
    """
    worst = 0.0
    outputs = [argument for argument in arguments if argument.parameter.is_output]
    for output, a, b in zip(outputs, first, second, strict=True):
        allowed = tolerance if tolerance is not None else find_tolerance(output.parameter.dtype)
        error, index = _find_largest_error(a, b)
        worst = max(worst, error)
        # This form fails for NaN.
        if not error <= allowed:
            name = output.parameter.name
            place = f"{name}({', '.join(map(str, index))})" if index else name
            raise OrderMismatchError(
                f"verify: the sections {models[0]} and {models[1]} disagree: {place} is {a[index]!s} and "
                f"{b[index]!s}, a relative error of {error:.2g}; the tolerance is {allowed:.2g}",
                models,
                name,
                index,
            )
    return worst


def find_tolerance(dtype: np.dtype[Any]) -> float:
    """Return the tolerance between sections, relative to the largest value of an output.

    Integers and bools must be equal. Floats may differ by the square root of their precision: half of the
    digits agree, and sums in another order differ by far less.
    """
    return float(np.sqrt(np.finfo(dtype).eps)) if dtype.kind in "fc" else 0.0


def measure_best_time(
    program: Program, arguments: Sequence[Argument], grid: Grid, device: int, repeats: int
) -> float:
    """Return the shortest time of several runs in seconds, without copies to or from the accelerator."""
    placement: Placement = program.place(copy_arguments(arguments), device)
    times = []
    try:
        # The first run loads code and allocates memory.
        for _ in range(repeats + 1):
            start = time.perf_counter()
            program.run(placement, grid, 0, device, 0)
            times.append(time.perf_counter() - start)
    finally:
        placement.close()
    return min(times[1:])


def _find_largest_error(a: Array, b: Array) -> tuple[float, tuple[int, ...]]:
    """Return the largest error, relative to the largest finite value, and its index."""
    if a.size == 0:
        return 0.0, (0,) * a.ndim
    if a.dtype.kind not in "fc":
        # Floats cannot represent every int64: only compare.
        differ = a != b
        at = np.unravel_index(int(np.argmax(differ)), a.shape)
        index = tuple(int(i) for i in at)
        return (float("inf") if differ.any() else 0.0), index
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    same = (a == b) | (np.isnan(x) & np.isnan(y))
    values = np.abs(np.concatenate((x.ravel(), y.ravel())))
    scale = float(np.max(values, where=np.isfinite(values), initial=0.0)) or 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.where(same, 0.0, np.abs(x - y) / scale)
    # One value is a number and the other is not.
    errors = np.where(np.isnan(errors), np.inf, errors)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(errors)), a.shape))
    return float(errors[index]), index
