"""Reductions as NumPy has them, and scans."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.problems.problem import (
    Array,
    Maker,
    Problem,
    block,
    count_of,
    is_close,
    noise,
    some,
    sum_over,
)
from benchmarks.timing import Sizes

# Of so many elements of a sampled row or column, the float64 result is the truth.
SAMPLED = 16
ROUNDING = {"f2": 2e-3, "f4": 2e-5, "f8": 1e-12}


def whole(function: str, want: Callable[[int], float], dtype: str = "f4") -> Maker:
    """Return the problem of reducing all elements; `want` is given how many there are."""

    def make(sizes: Sizes) -> Problem:
        count = count_of(sizes)
        (x,) = inputs = (noise(count, dtype),)

        def right(got: Array) -> bool:
            return is_close(got.astype(np.float64).reshape(()), want(count), 50 * ROUNDING["f4"])

        return Problem(function, inputs, x.nbytes, right)

    return make


def dot(sizes: Sizes) -> Problem:
    """Return the problem of the dot product of two arrays of half as many elements each."""
    count = count_of(sizes) // 2
    x, y = noise(count), noise(count, seed=1)

    def right(got: Array) -> bool:
        whole, rest = divmod(count, block().size)
        a, b = block().astype(np.float64), block(1).astype(np.float64)
        return is_close(
            got.reshape(()), whole * float(a @ b) + float(a[:rest] @ b[:rest]), 50 * ROUNDING["f4"]
        )

    return Problem("dot", (x, y), 2 * x.nbytes, right)


def argmax(sizes: Sizes) -> Problem:
    """Return the problem of the index of the largest of all elements."""
    x = noise(count_of(sizes))

    def right(got: Array) -> bool:
        return bool(x[int(got)] == block()[: x.size].max())

    return Problem("argmax", (x,), x.nbytes, right)


def along(function: str, reduce: Callable[..., Array], axis: int) -> Maker:
    """Return the problem of reducing an axis; its sizes say how many columns there are.

    For the middle axis the array is (rows, middle, columns).
    """

    def make(sizes: Sizes) -> Problem:
        count = count_of(sizes)
        columns = min(int(sizes["columns"]), count // 4)
        planes = min(int(sizes["middle"]), count // columns) if "middle" in sizes else 0
        shape = (-1, planes, columns) if planes else (-1, columns)
        x = noise(count)[: count - count % (columns * max(1, planes))].reshape(shape)

        def right(got: Array) -> bool:
            lines = np.moveaxis(x, axis, -1)
            if got.shape != lines.shape[:-1]:
                return False
            at = tuple(np.linspace(0, side - 1, min(side, SAMPLED)).astype(int) for side in got.shape)
            chosen = lines[np.ix_(*at)].astype(np.float64)
            return is_close(got[np.ix_(*at)], reduce(chosen, axis=-1), 50 * ROUNDING["f4"])

        return Problem(function, (x,), x.nbytes, right, {"axis": axis})

    return make


def cumulative(
    function: str, want: Callable[..., Array], dtype: str = "f4", axis: int | None = None
) -> Maker:
    """Return the problem of a cumulative sum, product or maximum; `want` is NumPy's function."""

    def make(sizes: Sizes) -> Problem:
        count = count_of(sizes)
        x = np.arange(count, dtype=dtype) % 1000 - 400 if dtype[0] == "i" else noise(count, dtype)
        if function == "cumprod":
            # powers of two, whose products are exact, and between 1/64 and 64
            x = np.exp2(np.diff(np.floor(noise(count) * np.float32(7)), prepend=np.float32(0)))
        options: dict[str, Any] = {}
        if axis is not None:
            x, options = x.reshape(-1, min(int(sizes["columns"]), count // 4)), {"axis": axis}

        def right(got: Array) -> bool:
            if got.shape != x.shape:
                return False
            if axis is None:
                exact = want(x, dtype=np.int64) if dtype[0] == "i" else want(x.astype(np.float64))
                return same(some(got), some(exact))
            at = np.linspace(0, x.shape[1 - axis] - 1, SAMPLED).astype(int)
            return same(got.take(at, 1 - axis), want(x.take(at, 1 - axis).astype(np.float64), axis=axis))

        def same(got: Array, exact: Array) -> bool:
            if dtype[0] == "i":
                return bool(np.array_equal(got.astype(np.int32), exact.astype(np.int32)))
            return is_close(got, exact, 1e-3 if dtype == "f4" else 1e-10)

        return Problem(function, (x,), 2 * x.nbytes, right, options)

    return make


def maxima(x: Array, axis: int = 0, dtype: Any = None) -> Array:
    """Return the maximum up to each element."""
    return np.asarray(np.maximum.accumulate(x, axis=axis, dtype=dtype))


def mean_of_squares(count: int) -> float:
    """Return the mean square of the numbers that are reduced."""
    return sum_over(count, np.square) / count


PROBLEMS: dict[str, Maker] = {
    "sum-all": whole("sum", sum_over),
    "sum-f16": whole("sum-wide", sum_over, "f2"),
    "sum-f64": whole("sum", sum_over, "f8"),
    "mean-all": whole("mean", lambda count: sum_over(count) / count),
    "var-all": whole("var", lambda count: mean_of_squares(count) - (sum_over(count) / count) ** 2),
    "norm-all": whole("norm", lambda count: float(np.sqrt(sum_over(count, np.square)))),
    "max-all": whole("max", lambda count: float(block()[:count].max())),
    "count-nonzero": whole("count_nonzero", lambda count: sum_over(count, np.sign)),
    "argmax-all": argmax,
    "dot": dot,
    "sum-columns": along("sum", np.sum, 0),
    "max-columns": along("max", np.max, 0),
    "var-columns": along("var", np.var, 0),
    "sum-middle": along("sum", np.sum, 1),
    "sum-rows": along("sum", np.sum, 1),
    "cumsum-f32": cumulative("cumsum", np.cumsum),
    "cumsum-i32": cumulative("cumsum-i32", np.cumsum, "i4"),
    "cumsum-f64": cumulative("cumsum", np.cumsum, "f8"),
    "cumprod-f32": cumulative("cumprod", np.cumprod),
    "cummax-f32": cumulative("cummax", maxima),
    "cumsum-rows": cumulative("cumsum", np.cumsum, axis=1),
    "cumsum-columns": cumulative("cumsum", np.cumsum, axis=0),
}
