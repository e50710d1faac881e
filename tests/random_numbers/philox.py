"""Philox in NumPy, for tests: from the paper, apart from the package's own."""

import numpy as np
from numpy.typing import NDArray

U32 = NDArray[np.uint32]
_LOW = np.uint64(0xFFFFFFFF)


def blocks(counters: NDArray[np.uint64], key: tuple[int, int]) -> U32:
    """Return Philox4x32-10 of counters (n x 4 words of 32 bits)."""
    a, b, c, d = counters.astype(np.uint64).T
    for turn in range(10):
        k0, k1 = (
            (part + turn * step) % 2**32 for part, step in zip(key, (0x9E3779B9, 0xBB67AE85), strict=True)
        )
        one, two = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b, c, d = (two >> 32) ^ b ^ np.uint64(k0), two & _LOW, (one >> 32) ^ d ^ np.uint64(k1), one & _LOW
    return np.stack([a, b, c, d], axis=1).astype(np.uint32)


def words(key: tuple[int, int], first: int, count: int, start: int = 0) -> U32:
    """Return words of a stream whose first block has the counter `start`."""
    block, inside = divmod(first, 4)
    numbers = [start + block + i for i in range((inside + count + 3) // 4)]
    counters = np.array([[n >> 32 * i & 0xFFFFFFFF for i in range(4)] for n in numbers], np.uint64)
    return blocks(counters.reshape(-1, 4), key).reshape(-1)[inside : inside + count]
