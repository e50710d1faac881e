"""The workers of a run: members, teams and assignments."""

import math
import operator
from collections.abc import Sequence

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record

Counts = tuple[int, int, int]
Workers = int | Sequence[int]

_LARGEST = 2**31 - 1
_WHAT = ("members", "teams", "assignments")


@record
class Grid:
    """The three arguments of `run`, each as three counts.

    Attributes
    ----------
    members
        The workers of a team: threads of a CUDA block, OpenMP threads, invocations of a workgroup.
    teams
        Teams: CUDA blocks, gangs, workgroups.
    assignments
        Numbers that bodies can read, such as the loop count of each member.
    """

    members: Counts
    teams: Counts
    assignments: Counts

    @property
    def is_empty(self) -> bool:
        """Whether there are no workers."""
        return 0 in (*self.members, *self.teams)

    @property
    def workers(self) -> int:
        """The number of workers: the members of all teams."""
        return math.prod(self.members) * math.prod(self.teams)


def make_grid(workers: Sequence[object]) -> Grid:
    """Return the grid of `run(*workers)`.

    Raises
    ------
    TypeError, ValueError
        There are more than three arguments, or one is neither an int nor a tuple of up to three ints.
    """
    if len(workers) > len(_WHAT):
        raise ArgumentTypeError(
            f"run: expected members, teams and assignments at most, got {len(workers)} arguments"
        )
    counts = [_parse_counts(value, what) for value, what in zip(workers, _WHAT, strict=False)]
    return Grid(*counts, *[(1, 1, 1)] * (len(_WHAT) - len(counts)))


def _parse_counts(value: object, what: str) -> Counts:
    items = value if isinstance(value, (tuple, list)) else (value,)
    if not 1 <= len(items) <= 3:
        raise ArgumentValueError(f"{what}: expected an int or a tuple of one to three, got {value!r}")
    counts = [_parse_count(item, value, what) for item in items]
    if math.prod(counts) > _LARGEST:
        raise ArgumentValueError(f"{what}: expected at most {_LARGEST} in all, got {value!r}")
    return counts[0], counts[1] if len(counts) > 1 else 1, counts[2] if len(counts) > 2 else 1


def _parse_count(item: object, value: object, what: str) -> int:
    try:
        if isinstance(item, bool):
            raise TypeError
        count = operator.index(item)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(
            f"{what}: expected an int or a tuple of up to three ints, got {value!r}"
        ) from None
    if count < 0:
        raise ArgumentValueError(f"{what}: expected 0 or more, got {value!r}")
    return count
