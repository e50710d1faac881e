"""Counters by which workgroups know which of them is the last: zeros, which launches leave as they were."""

import threading
from collections import deque
from typing import Any

import numpy as np

from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import uint32
from vkdispatch.base.native_module import native

_LEAST = 64
_TURNS = 4


class Counters:
    """Buffers of zeros of one context, in several sizes.

    Attributes
    ----------
    turns
        Those of each size.
    """

    def __init__(self) -> None:
        """Make none yet."""
        self.turns: dict[int, deque[Buffer[Any]]] = {}
        self._lock = threading.Lock()

    def zeros(self, count: int) -> Buffer[Any]:
        """Return at least so many zeros, which a launch leaves as it found them: several buffers take turns.

        Launches that follow one another do not wait for each other on their account.
        """
        with self._lock:
            size = max(_LEAST, 1 << (count - 1).bit_length())
            turns = self.turns.get(size)
            if turns is None:
                turns = self.turns[size] = deque(_zeros(size) for _ in range(_TURNS))
                native.take_turns([each._native for each in turns])
            turns.rotate(-1)
            if turns[-1]._native.poisoned:
                turns[-1].write(np.zeros(size, np.uint32))
            return turns[-1]


def _zeros(size: int) -> Buffer[Any]:
    zeros: Buffer[Any] = function_buffer(size, uint32, steady=True)
    zeros.write(np.zeros(size, np.uint32))
    return zeros
