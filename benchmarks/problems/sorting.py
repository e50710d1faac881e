"""Sorts, and what selects elements."""

import numpy as np

from benchmarks.problems.problem import (
    BLOCK,
    Array,
    Maker,
    Problem,
    block,
    count_of,
    keys,
    noise,
    repeated,
    some,
)
from benchmarks.timing import Sizes

# Whole numbers of 32 bits, as indices are counted whatever a library has them in.
INDEX_BYTES = 4
BINS = 256
TABLE = 2**20


def is_ascending(values: Array, reverse: bool = False) -> bool:
    """Return whether each element is at least as large as the one before it, along the last axis."""
    first, second = values[..., :-1], values[..., 1:]
    return bool((first >= second).all() if reverse else (first <= second).all())


def same_elements(got: Array, given: Array) -> bool:
    """Return whether two arrays most likely have the same elements: sums and xors agree."""
    if got.shape != given.shape or got.dtype != given.dtype:
        return False
    words = [array.reshape(-1).view(f"u{array.itemsize}") for array in (got, given)]
    sums = [int(each.sum(dtype=np.uint64)) for each in words]
    return sums[0] == sums[1] and len({int(np.bitwise_xor.reduce(each)) for each in words}) == 1


def is_permutation(got: Array, count: int) -> bool:
    """Return whether every index from zero to below a count is there once."""
    if got.shape != (count,) or int(got.min()) < 0 or int(got.max()) >= count:
        return False
    seen = np.zeros(count, np.bool_)
    seen[got] = True
    return bool(seen.all())


def sorting(dtype: str, descending: bool = False) -> Maker:
    """Return the problem of sorting; of rows where its sizes say how many columns there are."""

    def make(sizes: Sizes) -> Problem:
        x = rows_of(keys(count_of(sizes), dtype), sizes)

        def right(got: Array) -> bool:
            return got.shape == x.shape and is_ascending(got, descending) and same_elements(got, x)

        options = {"descending": True} if descending else {}
        return Problem("sort", (x,), 2 * x.nbytes, right, options, "gkeys", x.size)

    return make


def rows_of(x: Array, sizes: Sizes) -> Array:
    """Return an array as it is, or in rows of the length that the sizes name."""
    return x.reshape(-1, min(int(sizes["columns"]), x.size // 4)) if "columns" in sizes else x


def argsort(sizes: Sizes) -> Problem:
    """Return the problem of the indices that sort."""
    x = keys(count_of(sizes), "i4")

    def right(got: Array) -> bool:
        return is_permutation(got, x.size) and is_ascending(x[got])

    return Problem("argsort", (x,), x.nbytes + x.size * INDEX_BYTES, right, {}, "gkeys", x.size)


def pairs(sizes: Sizes) -> Problem:
    """Return the problem of keys with a value of 32 bits each."""
    x = keys(count_of(sizes), "i4")
    values = np.arange(x.size, dtype=np.uint32)

    def right(ordered: Array, carried: Array) -> bool:
        return (
            is_ascending(ordered) and is_permutation(carried, x.size) and np.array_equal(ordered, x[carried])
        )

    return Problem("sort_by_key", (x, values), 4 * x.nbytes, right, {}, "gkeys", x.size)


# ---- selection


def topk(sizes: Sizes) -> Problem:
    """Return the problem of the largest, of all elements or of each row."""
    x = rows_of(noise(count_of(sizes)), sizes)
    k = min(int(sizes["k"]), x.shape[-1] // 2)

    def right(values: Array, indices: Array) -> bool:
        if not values.shape == indices.shape == (*x.shape[:-1], k):
            return False
        lines = x.reshape(-1, x.shape[-1])
        at = np.linspace(0, len(lines) - 1, min(len(lines), 64)).astype(int)
        values, indices, lines = values.reshape(-1, k)[at], indices.reshape(-1, k)[at], lines[at]
        if int(indices.min()) < 0 or int(indices.max()) >= x.shape[-1]:
            return False
        want = -np.sort(-(np.partition(lines, -k, axis=1)[:, -k:]), axis=1)
        return np.array_equal(values, want) and np.array_equal(np.take_along_axis(lines, indices, 1), want)

    return Problem("topk", (x,), x.nbytes + k * x.size // x.shape[-1] * 8, right, {"k": k})


def unique(sizes: Sizes) -> Problem:
    """Return the problem of distinct values that are there often."""
    count = count_of(sizes)
    x = repeated(count, max(2, min(2**16, count // 16)))
    want = np.unique(x[:BLOCK])
    return Problem("unique", (x,), x.nbytes + want.nbytes, lambda got: np.array_equal(got, want))


def half(count: int) -> Array:
    """Return numbers of which about half are zero."""
    return (noise(count) > np.float32(0.5)).astype(np.float32)


def nonzero(sizes: Sizes) -> Problem:
    """Return the problem of the indices of about half the elements."""
    x = half(count_of(sizes))
    want = np.flatnonzero(x)

    def right(got: Array) -> bool:
        return got.size == want.size and np.array_equal(some(got), some(want))

    return Problem("nonzero", (x,), x.nbytes + want.size * INDEX_BYTES, right)


def compact(sizes: Sizes) -> Problem:
    """Return the problem of the elements that a mask has: about half of them."""
    x = noise(count_of(sizes))
    mask = x > np.float32(0.5)
    want = x[mask]

    def right(got: Array) -> bool:
        return got.size == want.size and np.array_equal(some(got), some(want))

    return Problem("compact", (x, mask), x.nbytes + mask.nbytes + want.nbytes, right)


def searchsorted(sizes: Sizes) -> Problem:
    """Return the problem of where numbers are in a sorted table of up to 2^20."""
    x = noise(count_of(sizes))
    table = np.sort(block()[: min(TABLE, x.size)])

    def right(got: Array) -> bool:
        return got.shape == x.shape and np.array_equal(some(got), np.searchsorted(table, some(x)))

    return Problem("searchsorted", (table, x), x.nbytes + x.size * INDEX_BYTES, right)


def histogram(sizes: Sizes) -> Problem:
    """Return the problem of how many numbers are in each of 256 bins of [0, 1)."""
    x = noise(count_of(sizes))

    def right(got: Array) -> bool:
        whole, rest = divmod(x.size, block().size)
        want = whole * binned(block()) + binned(block()[:rest])
        return got.shape == want.shape and bool((got.astype(np.int64) == want).all())

    return Problem("histogram", (x,), x.nbytes, right, {"bins": BINS})


def binned(values: Array) -> Array:
    """Return the histogram; 256 bins of [0, 1) have edges that float32 has exactly."""
    return np.bincount((values * BINS).astype(np.int64), minlength=BINS)


def bincount(sizes: Sizes) -> Problem:
    """Return the problem of how often each integer below a number is there."""
    below = int(sizes["below"])
    x = repeated(count_of(sizes), below)
    whole, rest = divmod(x.size, BLOCK)
    want = whole * np.bincount(x[:BLOCK], minlength=below) + np.bincount(x[:rest], minlength=below)
    return Problem(
        "bincount",
        (x,),
        x.nbytes,
        lambda got: got.shape == want.shape and bool((got.astype(np.int64) == want).all()),
        {"below": below},
    )


PROBLEMS: dict[str, Maker] = {
    **{f"sort-{name}": sorting(dtype) for name, dtype in (("i32", "i4"), ("f32", "f4"), ("i64", "i8"))},
    **{f"sort-{name}": sorting(dtype) for name, dtype in (("f16", "f2"), ("u8", "u1"))},
    "sort-descending": sorting("i4", descending=True),
    "sort-rows": sorting("i4"),
    "argsort-i32": argsort,
    "sort-pairs": pairs,
    "topk": topk,
    "unique": unique,
    "nonzero": nonzero,
    "compact": compact,
    "searchsorted": searchsorted,
    "histogram": histogram,
    "bincount": bincount,
}
