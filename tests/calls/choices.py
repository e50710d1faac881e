"""The choices that a random call is made of, and fewer of them that do the same.

A call is a function of a list of small numbers: the same numbers make the same call, and 0 is the simplest
choice everywhere. So a call is made smaller by making the list smaller, whatever the numbers mean.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

_T = TypeVar("_T")


class Choices:
    """Numbers from a list, and behind its end from a seed, or zeros if there is none."""

    def __init__(self, known: Sequence[int] = (), seed: int | None = None) -> None:
        self._known = list(known)
        self._random = None if seed is None else random.Random(seed)
        self.made: list[int] = []

    def below(self, count: int) -> int:
        """Return a number from 0 to `count` - 1."""
        at = len(self.made)
        if at < len(self._known):
            number = min(self._known[at], count - 1)
        else:
            number = 0 if self._random is None else self._random.randrange(count)
        self.made.append(number)
        return number

    def chance(self, percent: int) -> bool:
        """Return True in so many of a hundred cases."""
        return self.below(100) >= 100 - percent

    def pick(self, options: Sequence[_T]) -> _T:
        """Return one of several, of which the first is the simplest."""
        return options[self.below(len(options))]


def shrink(made: list[int], fails: Callable[[list[int]], bool], seconds: float) -> list[int]:
    """Return a list that fails too, and of which nothing more could be left out in this time."""
    end = time.monotonic() + seconds
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(made):
            if time.monotonic() > end:
                return made
            if fails(candidate):
                made, smaller = candidate, True
                break
    return made


def _smaller(made: list[int]) -> Iterator[list[int]]:
    """Yield simpler lists, the much simpler ones first."""
    size = len(made)
    for length in (size // 4, size // 2, size - size // 4):
        if length < size:
            yield made[:length]
    for run in (8, 4, 2, 1):
        for start in range(0, size - run + 1, run):
            if any(made[start : start + run]):
                yield [*made[:start], *[0] * run, *made[start + run :]]
    for run in (4, 2, 1):
        for start in range(size - run + 1):
            yield [*made[:start], *made[start + run :]]
    for at, number in enumerate(made):
        for less in sorted({number // 2, number - number // 4, number - 1}):
            if 0 < less < number:
                yield [*made[:at], less, *made[at + 1 :]]
