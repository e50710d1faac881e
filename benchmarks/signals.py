"""What transforms and reductions are given, and whether what they made of it is right.

This runs in every library's process: NumPy is all that it needs.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.timing import Sizes

Array = npt.NDArray[Any]
# By the bits of a real number: of one transform, and of the there and back that follow.
TOLERANCES = {16: 2e-2, 32: 5e-6, 64: 1e-13}
AFTER_MANY = {16: 0.5, 32: 1e-3, 64: 1e-10}
# The middle axis of three, with so many after it.
INNER = 256
# Rows of a reduction come from this many elements.
REDUCED_ROWS = 2**24
# A block of random numbers, again and again; its length has no factor in common with a transform's.
BLOCK = 1_000_003


@functools.lru_cache(maxsize=1)
def uniform(count: int, bits: int) -> Array:
    """Return random numbers in [-1, 1), always the same; the last such array is kept, and read-only."""
    block = np.random.default_rng(5).uniform(-1, 1, min(count, BLOCK))
    found = np.resize(block.astype(np.float64 if bits == 64 else np.float32), count)
    found.flags.writeable = False
    return found


@dataclass(frozen=True, slots=True)
class Signal:
    """Complex numbers, and where in them the transforms lie.

    Attributes
    ----------
    shape, axes
        Those of the array, and which of its axes are transformed.
    bits
        Of a real number; where it is 16, the host has 32.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    bits: int

    @property
    def points(self) -> int:
        """Return how many complex numbers there are."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Return how many bytes they take on the device."""
        return self.points * self.bits // 4

    def host(self) -> Array:
        """Return the numbers, complex64 or complex128."""
        kind = np.complex128 if self.bits == 64 else np.complex64
        return uniform(2 * self.points, self.bits).view(kind).reshape(self.shape)

    def samples(self) -> tuple[Any, ...]:
        """Return an index that leaves a few of the transforms, whole."""
        index: list[Any] = []
        for axis, length in enumerate(self.shape):
            index.append(slice(None) if axis in self.axes else slice(0, None, max(1, length // 3)))
        return tuple(index)

    def is_transformed(self, got: Array) -> bool:
        """Return whether `got`, the samples of what came out, are their transforms."""
        given = self.host()[self.samples()].astype(np.complex128)
        return error_of(got, np.fft.fftn(given, axes=self.axes)) < TOLERANCES[self.bits]

    def is_back(self, got: Array, factor: float = 1.0) -> bool:
        """Return whether `got`, the samples after many transforms there and back, are those from before."""
        return error_of(got, factor * self.host()[self.samples()]) < AFTER_MANY[self.bits]


def lines_of(sizes: Sizes) -> Signal:
    """Return the signal of the case `fft`."""
    n, points, bits = int(sizes["n"]), int(sizes["points"]), int(sizes.get("bits", 32))
    match sizes.get("axis"):
        case None:
            return Signal((max(1, points // n), n), (1,), bits)
        case 0:
            return Signal((n, max(1, points // n)), (0,), bits)
        case _:
            return Signal((max(1, points // (n * INNER)), n, INNER), (1,), bits)


def planes_of(sizes: Sizes) -> Signal:
    """Return the signal of the cases `fft2` and `convolution2`."""
    n = int(sizes["n"])
    batch = int(sizes["batch"]) if "batch" in sizes else max(1, int(sizes["points"]) // (n * n))
    return Signal((batch, n, n), (1, 2), 32)


def real_lines(sizes: Sizes) -> Array:
    """Return the real numbers of the case `rfft`, (many, n), float32."""
    n = int(sizes["n"])
    many = max(1, int(sizes["points"]) // n)
    return uniform(many * n, 32).reshape(many, n)


def real_nbytes(host: Array) -> int:
    """Return the bytes that a transform of `real_lines` moves: the numbers and half the spectrum."""
    many, n = host.shape
    return int(host.nbytes + many * (n // 2 + 1) * 8)


def unit_kernel(signal: Signal) -> Array:
    """Return numbers of magnitude 1 in the signal's shape, so that products again and again stay as large."""
    angles = np.resize(np.random.default_rng(6).uniform(0, 2 * np.pi, BLOCK), signal.points)
    kernel: Array = np.exp(1j * angles.astype(np.float32)).astype(np.complex64)
    return kernel.reshape(signal.shape)


def is_convolved(signal: Signal, kernel: Array, got: Array) -> bool:
    """Return whether `got`, the first plane that came out, is its spectrum times `kernel`, back again."""
    spectrum = np.fft.fft2(signal.host()[0].astype(np.complex128))
    return error_of(got, np.fft.ifft2(spectrum * kernel[0])) < TOLERANCES[signal.bits]


def error_of(got: Array, want: Array) -> float:
    """Return the difference's share of what was wanted, both by their squares' sums."""
    return float(np.linalg.norm((got - want).ravel()) / np.linalg.norm(want.ravel()))


def reduced_inputs(sizes: Sizes) -> list[Array]:
    """Return what is reduced: one row of all, or several arrays of rows; float32 in [0, 1)."""
    count = int(sizes["reduced"])
    if "columns" not in sizes:
        return [shifted(count, 0).reshape(1, count)]
    each = min(count, REDUCED_ROWS)
    columns = min(int(sizes["columns"]), each)
    return [shifted(each, number).reshape(-1, columns) for number in range(count // each)]


def shifted(count: int, by: int) -> Array:
    """Return random numbers in [0, 1), float32; another number makes it another array."""
    block = np.random.default_rng(7).uniform(0, 1, BLOCK).astype(np.float32)
    return np.resize(np.roll(block, by), count)


REDUCED: dict[str, Callable[[Array], Array]] = {
    "reduce-sum": lambda rows: rows.sum(axis=1, dtype=np.float64),
    "reduce-rows": lambda rows: rows.sum(axis=1, dtype=np.float64),
    "reduce-max": lambda rows: rows.max(axis=1),
    "reduce-squares": lambda rows: np.einsum("ij,ij->i", rows, rows, dtype=np.float64),
}


def is_reduced(work: str, rows: Array, got: Array) -> bool:
    """Return whether `got` has each row's reduction."""
    want = REDUCED[work](rows)
    got = np.atleast_1d(got).ravel()
    return got.shape == want.shape and bool(np.allclose(got, want, rtol=2e-5, atol=0))
