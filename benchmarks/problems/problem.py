"""What a problem is: arrays, a function's name and options, what is counted, and whether results are right.

This runs in every library's process: NumPy is all that it needs.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.timing import Sizes

Array = npt.NDArray[Any]
Results = tuple[Array, ...]
# Random numbers, again and again; so many that no power of two of them repeats a block.
BLOCK = 1_000_003
# Results that are long are compared at about so many places.
COMPARED = 2**20


@dataclass(frozen=True, slots=True)
class Problem:
    """What a function on arrays is given, and what of it is counted.

    Attributes
    ----------
    function, options
        Its name in the libraries' modules, and what it is given beside the arrays.
    inputs
        The arrays.
    nbytes
        Bytes that have to be read and written.
    right
        Whether the results, as arrays of the host, are right.
    figure, counted
        Another figure than GB/s, and how many of what it counts there are: its unit is 10^9 of them a second.
    """

    function: str
    inputs: tuple[Array, ...]
    nbytes: float
    right: Callable[..., bool]
    options: dict[str, Any] = field(default_factory=dict)
    figure: str = ""
    counted: float = 0


Maker = Callable[[Sizes], Problem]


def count_of(sizes: Sizes) -> int:
    """Return how many elements: those of an array, or the part of them that a case asks for."""
    return int(sizes["array"] // sizes.get("part", 1))


@functools.lru_cache(maxsize=2)
def noise(count: int, dtype: str = "f4", seed: int = 0) -> Array:
    """Return random numbers in [0, 1), always the same; the last are kept, and read-only."""
    found = np.resize(block(seed).astype(dtype), count)
    found.flags.writeable = False
    return found


@functools.lru_cache(maxsize=4)
def block(seed: int = 0) -> Array:
    """Return the numbers that `noise` repeats."""
    return np.random.default_rng(8 + seed).uniform(0, 1, BLOCK).astype(np.float32)


def sum_over(count: int, function: Callable[[Array], Array] = np.positive) -> float:
    """Return the sum of a function of the elements of `noise(count)`, without going over all of them."""
    values = function(block().astype(np.float64))
    whole, rest = divmod(count, BLOCK)
    return float(whole * values.sum() + values[:rest].sum())


@functools.lru_cache(maxsize=1)
def keys(count: int, dtype: str) -> Array:
    """Return random numbers over all the values of a type (of floats: finite ones of both signs)."""
    random = np.random.default_rng(9)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        found = (random.standard_normal(count, dtype=np.float32) * 100).astype(kind)
    else:
        ends = np.iinfo(kind)
        found = random.integers(ends.min, ends.max, count, kind, endpoint=True)
    found.flags.writeable = False
    return found


def repeated(count: int, below: int) -> Array:
    """Return integers from zero to below a number: those of `noise`, so a block of them again and again."""
    return np.resize((block() * below).astype(np.int32), count)


def scattered(count: int) -> Array:
    """Return the indices from zero to below a count, in an order without any pattern."""
    bits = count.bit_length() - 1
    if count != 1 << bits or bits < 2:
        return np.random.default_rng(11).permutation(count).astype(np.int32)
    # much faster: odd factors, and xors with what is shifted right, move each number to one place
    places = np.arange(count, dtype=np.uint32)
    for factor in (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D):
        places ^= places >> np.uint32((bits + 1) // 2)
        places *= np.uint32(factor)
        places &= np.uint32(count - 1)
    return places.view(np.int32)


def integers(count: int, below: int, dtype: str = "i4", seed: int = 0) -> Array:
    """Return random integers from zero to below a number."""
    return np.random.default_rng(10 + seed).integers(0, below, count, dtype)


def some(array: Array) -> Array:
    """Return elements from all over an array, in order: all if there are few, and the last one."""
    flat = array.reshape(-1)
    # an odd step, so that they are not always at the same place of a power of two
    step = max(1, flat.size // COMPARED) | 1
    return np.concatenate((flat[::step], flat[-1:])) if flat.size > COMPARED else flat


def is_close(got: Array, want: Array | float, share: float) -> bool:
    """Return whether shapes are the same, and no value differs by more than a share of it."""
    want = np.asarray(want)
    return got.shape == want.shape and bool(np.allclose(got, want, rtol=share, atol=0))
