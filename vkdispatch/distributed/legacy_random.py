"""The legacy generator that `da.random.RandomState` draws chunks from."""

from typing import Any

import numpy as np

from vkdispatch.numpy.core.array import Array
from vkdispatch.numpy.random import Generator
from vkdispatch.random.generator import Generator as Stream


class RandomState(Generator):
    """A generator with the names of `numpy.random.RandomState`. Its numbers are not those of NumPy's.

    Parameters
    ----------
    seed
        A nonnegative int or a sequence of these; None is unpredictable.
    """

    def __init__(self, seed: Any = None) -> None:
        super().__init__(Stream(np.random.SeedSequence(None if seed is None else np.asarray(seed).tolist())))

    def random_sample(self, size: Any = None) -> Array:
        """Return uniformly distributed numbers in [0, 1)."""
        return self.random(size)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64) -> Array:
        """Return integers of [low, high); of [0, low) without `high`."""
        return self.integers(low, high, size, dtype)

    def random_integers(self, low: Any, high: Any = None, size: Any = None) -> Array:
        """Return integers of [low, high]; of [1, low] without `high`."""
        low, high = (1, low) if high is None else (low, high)
        return self.integers(low, high, size, endpoint=True)

    def tomaxint(self, size: Any = None) -> Array:
        """Return integers of [0, 2**63)."""
        return self.integers(0, 2**63, size)
