"""Signals that blocks of rewritten functions return when a jump leaves them, and open constructs."""

from typing import Any, Literal

from vkdispatch.base.errors import UsageError
from vkdispatch.base.record import record


class Signal:
    """How a block was left."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


BREAK = Signal("break")
CONTINUE = Signal("continue")
# The jump is recorded for the GPU; the rest of the block is unreachable.
RECORDED = Signal("gone")


class EndlessRecursionError(UsageError):
    """A function calls itself as often as the GPU decides. Many frames lead here, so it is raised anew."""


@record
class Returned:
    """The function returns a value at trace time."""

    value: Any


@record(frozen=False)
class Entry:
    """An open construct: the function, a GPU branch, an unrolled loop or a GPU loop.

    `depth` is the nesting depth of the recorder inside of it.
    """

    kind: Literal["function", "branch", "loop", "gpu loop"]
    depth: int
    loop: object | None = None
