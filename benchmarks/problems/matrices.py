"""Products of matrices, and random numbers."""

import math

import numpy as np

from benchmarks.problems.problem import Array, Maker, Problem, count_of, noise, some
from benchmarks.timing import Sizes

# So many rows of a product are compared.
ROWS = 8
TOLERANCES = {"bf16": 4e-2, "f2": 2e-2, "f4": 1e-4, "f8": 1e-12}
# NumPy has no bfloat16: the arrays have its bits.
BITS = "u2"


def to_bits(x: Array) -> Array:
    """Return the bits of float32 as bfloat16, the lower half cut off."""
    return (x.view(np.uint32) >> 16).astype(BITS)


def from_bits(x: Array) -> Array:
    """Return as float64 what is bfloat16 if its dtype is that of bits."""
    if x.dtype == BITS:
        x = (x.astype(np.uint32) << 16).view(np.float32)
    return x.astype(np.float64)


def product(dtype: str, relu: bool = False, transposed: bool = False) -> Maker:
    """Return the problem of a product; the sizes have its sides, and how many there are."""

    def make(sizes: Sizes) -> Problem:
        m, n, k = (int(sizes[name]) for name in ("height", "width", "depth"))
        batch = int(sizes.get("matrices", 1))
        # about as many negative products as others, and none too large for 16 bits
        a, b = factor(dtype, (batch, m, k), 0), factor(dtype, (batch, k, n), 1)
        if "matrices" not in sizes:
            a, b = a[0], b[0]
        given = np.ascontiguousarray(np.swapaxes(b, -1, -2)) if transposed else b

        def right(got: Array) -> bool:
            if got.shape != (*a.shape[:-1], n):
                return False
            at = np.linspace(0, m - 1, min(m, ROWS)).astype(int)
            want = from_bits((a[-1] if a.ndim == 3 else a)[at]) @ from_bits(b[-1] if b.ndim == 3 else b)
            if relu:
                want = np.maximum(want, 0)
            found = from_bits((got[-1] if got.ndim == 3 else got)[at])
            # by the size that a product of so many terms has: single ones may be close to zero
            return bool(np.abs(found - want).max() < TOLERANCES[dtype] * (1 + np.sqrt(k) / 12))

        nbytes = a.nbytes + b.nbytes + batch * m * n * a.itemsize
        plain = "matmul-bf16" if dtype == "bf16" else "matmul"
        name = "matmul-relu" if relu else "matmul-transposed" if transposed else plain
        return Problem(name, (a, given), nbytes, right, {}, "tflops", 2e-3 * batch * m * n * k)

    return make


def factor(dtype: str, shape: tuple[int, ...], seed: int) -> Array:
    """Return a factor of a product: numbers between -1/2 and 1/2."""
    given = "f4" if dtype == "bf16" else dtype
    x = (noise(math.prod(shape), given, seed) - np.asarray(0.5, given)).reshape(shape)
    return to_bits(x) if dtype == "bf16" else x


# ---- random numbers


def numbers(function: str, mean: float, deviation: float, low: float, high: float, dtype: str) -> Maker:
    """Return the problem of drawing numbers; the check is coarse, that of tests is not."""

    def make(sizes: Sizes) -> Problem:
        count = count_of(sizes)

        def right(got: Array) -> bool:
            if got.shape != (count,) or got.dtype.itemsize != np.dtype(dtype).itemsize:
                return False
            values = some(got).astype(np.float64)
            # five standard errors
            far = 5 / np.sqrt(values.size)
            inside = low <= values.min() and values.max() < high
            spread = abs(float(values.std()) / deviation - 1)
            return bool(inside and abs(float(values.mean()) - mean) < far * deviation and spread < far)

        options = {"count": count}
        return Problem(function, (), count * np.dtype(dtype).itemsize, right, options)

    return make


def permutation(sizes: Sizes) -> Problem:
    """Return the problem of the integers from zero in random order."""
    count = count_of(sizes)

    def right(got: Array) -> bool:
        if got.shape != (count,) or int(got.min()) != 0 or int(got.max()) != count - 1:
            return False
        seen = np.zeros(count, np.bool_)
        seen[got] = True
        moved = np.count_nonzero(got != np.arange(count))
        return bool(seen.all() and moved > 0.9 * count)

    return Problem("permutation", (), count * 4, right, {"count": count})


PROBLEMS: dict[str, Maker] = {
    "matmul-f32": product("f4"),
    "matmul-f16": product("f2"),
    "matmul-bf16": product("bf16"),
    "matmul-f64": product("f8"),
    "matmul-relu-f16": product("f2", relu=True),
    "matmul-transposed-f16": product("f2", transposed=True),
    "matmul-transposed-f32": product("f4", transposed=True),
    "uniform-f32": numbers("uniform", 0.5, 12**-0.5, 0, 1, "f4"),
    "uniform-f64": numbers("uniform-f64", 0.5, 12**-0.5, 0, 1, "f8"),
    "normal-f32": numbers("normal", 0, 1, -10, 10, "f4"),
    "integers-i32": numbers("integers", 499.5, (1e6 - 1) ** 0.5 / 12**0.5, 0, 1000, "i4"),
    "permutation": permutation,
}
