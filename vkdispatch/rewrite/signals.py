"""What a block of a rewritten function returns when a jump leaves it, and what is open around it."""

from typing import Any, Literal

from vkdispatch.base.record import record


class Signal:
    """How a block was left."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


BREAK = Signal("break")
CONTINUE = Signal("continue")
# The jump is recorded for the GPU: nothing behind it in this block runs.
GONE = Signal("gone")


@record
class Returned:
    """The function returns a value at trace time."""

    value: Any


@record(frozen=False)
class Entry:
    """Something open: the function, a branch on the GPU, a loop at trace time, or one on the GPU.

    `depth` is the recorder's inside of it.
    """

    kind: Literal["function", "branch", "loop", "gpu loop"]
    depth: int
    loop: object | None = None
