"""Processes that do tasks of random programs and calls, so that a crash or a hang ends only one."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence
from typing import IO, Any, Protocol


class Worker(Protocol):
    """A process that does one task at a time.

    Attributes
    ----------
    task
        What it does, or None.
    since
        When it began, by `time.monotonic`.
    """

    task: Any
    since: float

    @property
    def output(self) -> IO[str]:
        """What its answers are read from."""

    def give(self, task: Any) -> None:
        """Have it do a task."""

    def answer(self) -> tuple[Any, ...]:
        """Return what came of its task."""

    def give_up(self) -> tuple[Any, ...]:
        """End the process, which takes too long, and return that."""

    def end(self) -> None:
        """End the process."""


def drive(
    tasks: Sequence[Any], workers: Sequence[Worker], timeout: float, record: Callable[..., None]
) -> None:
    """Give the tasks to workers and record what comes of each; a task may take `timeout` seconds."""
    pending = list(tasks[::-1])
    while pending or any(each.task for each in workers):
        for each in workers:
            if each.task is None and pending:
                each.give(pending.pop())
        busy = {each.output: each for each in workers if each.task}
        ready, _, _ = select.select(list(busy), [], [], 5)
        for output in ready:
            record(*busy[output].answer())
        for each in workers:
            if each.task and time.monotonic() - each.since > timeout:
                record(*each.give_up())
    for each in workers:
        each.end()
