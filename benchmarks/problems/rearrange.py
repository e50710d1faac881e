"""Copies, what fills memory, and what moves elements."""

import math

import numpy as np

from benchmarks.problems.problem import Array, Maker, Problem, count_of, integers, noise, scattered, some
from benchmarks.timing import Sizes

FILLED = 1.5
PADDED = 1


def copy(sizes: Sizes) -> Problem:
    """Return the problem of a copy."""
    x = noise(count_of(sizes))
    return Problem("copy", (x,), 2 * x.nbytes, lambda got: np.array_equal(some(got), some(x)))


def fill(sizes: Sizes) -> Problem:
    """Return the problem of filling memory with a number."""
    count = count_of(sizes)

    def right(got: Array) -> bool:
        return got.shape == (count,) and bool((some(got) == np.float32(FILLED)).all())

    return Problem("fill", (), count * 4, right, {"count": count, "value": FILLED})


def transpose(axes: tuple[int, ...], dtype: str = "f4") -> Maker:
    """Return the problem of a transpose: of a square, or of three axes, the last of which have 1024."""

    def make(sizes: Sizes) -> Problem:
        count = count_of(sizes)
        side = math.isqrt(count)
        inner = min(1024, math.isqrt(count // 4))
        shape = (side, side) if len(axes) == 2 else (count // inner**2, inner, inner)
        size = math.prod(shape)
        x = (noise(size) if dtype == "f4" else np.resize(np.arange(251).astype(dtype), size)).reshape(shape)

        def right(got: Array) -> bool:
            want = x.transpose(axes)
            if got.shape != want.shape:
                return False
            at = tuple(np.linspace(0, length - 1, min(length, 80)).astype(int) for length in got.shape)
            return np.array_equal(got[np.ix_(*at)], want[np.ix_(*at)])

        return Problem("transpose", (x,), 2 * x.nbytes, right, {"axes": axes})

    return make


def take(sizes: Sizes) -> Problem:
    """Return the problem of taking single elements, or whole rows, by random indices."""
    count = count_of(sizes)
    if "columns" not in sizes:
        x, indices = noise(count), integers(count, count)
        nbytes = 2 * x.nbytes + indices.nbytes
    else:
        x = noise(count).reshape(-1, min(int(sizes["columns"]), count // 4))
        indices = integers(len(x), len(x))
        nbytes = 2 * x.nbytes + indices.nbytes

    def right(got: Array) -> bool:
        if got.shape != x.shape:
            return False
        if x.ndim == 1:
            return np.array_equal(some(got), x[some(indices)])
        at = np.linspace(0, len(x) - 1, 256).astype(int)
        return np.array_equal(got[at], x[indices[at]])

    return Problem("take", (x, indices), nbytes, right, {"axis": 0})


def put(sizes: Sizes) -> Problem:
    """Return the problem of writing each element of an array, in random order."""
    count = count_of(sizes)
    indices = scattered(count)
    values = noise(count)

    def right(got: Array) -> bool:
        return got.shape == (count,) and np.array_equal(got[some(indices)], some(values))

    return Problem("put", (np.zeros(count, np.float32), indices, values), 3 * values.nbytes, right)


def where(sizes: Sizes) -> Problem:
    """Return the problem of choosing one of two elements by a boolean."""
    count = count_of(sizes)
    x, y = noise(count), noise(count, seed=1)
    mask = x > np.float32(0.5)

    def right(got: Array) -> bool:
        return got.shape == x.shape and np.array_equal(some(got), np.where(some(mask), some(x), some(y)))

    return Problem("where", (mask, x, y), 3 * x.nbytes + mask.nbytes, right)


def concatenate(sizes: Sizes) -> Problem:
    """Return the problem of two arrays of unlike lengths one after the other."""
    count = count_of(sizes)
    x = noise(count)
    at = count // 3

    def right(got: Array) -> bool:
        return got.shape == x.shape and np.array_equal(some(got), some(x))

    return Problem("concatenate", (x[:at], x[at:]), 2 * x.nbytes, right)


def roll(sizes: Sizes) -> Problem:
    """Return the problem of moving elements on by an odd number of places."""
    x = noise(count_of(sizes))
    by = x.size // 3 | 1

    def right(got: Array) -> bool:
        return got.shape == x.shape and np.array_equal(some(np.roll(got, -by)), some(x))

    return Problem("roll", (x,), 2 * x.nbytes, right, {"shift": by})


def pad(sizes: Sizes) -> Problem:
    """Return the problem of a border of zeros around a plane."""
    side = math.isqrt(count_of(sizes)) - 2 * PADDED
    x = noise(side * side).reshape(side, side)
    inside = slice(PADDED, -PADDED)

    def right(got: Array) -> bool:
        if got.shape != (side + 2 * PADDED,) * 2:
            return False
        same = np.array_equal(some(got[inside, inside]), some(x))
        return (
            same and not got[0].any() and not got[:, 0].any() and not got[-1].any() and not got[:, -1].any()
        )

    return Problem("pad", (x,), 2 * x.nbytes, right, {"width": PADDED})


PROBLEMS: dict[str, Maker] = {
    "device-copy": copy,
    "device-fill": fill,
    "transpose-f32": transpose((1, 0)),
    "transpose-u8": transpose((1, 0), "u1"),
    "transpose-last": transpose((0, 2, 1)),
    "transpose-turned": transpose((2, 0, 1)),
    "take": take,
    "put": put,
    "where": where,
    "concatenate": concatenate,
    "roll": roll,
    "pad": pad,
}
