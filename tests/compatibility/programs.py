"""What a program for another system is: a function that runs it and checks its numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Program(NamedTuple):
    """A program, what it shows, and what differs from the system that it was written for."""

    what: str
    differs: str
    run: Callable[[], None]


class Collection:
    """The programs of one system, in the order of the page."""

    def __init__(self) -> None:
        self.programs: list[Program] = []

    def add(self, what: str, differs: str = "") -> Callable[[Callable[[], None]], Callable[[], None]]:
        """Return a decorator that adds a program."""

        def keep(run: Callable[[], None]) -> Callable[[], None]:
            self.programs.append(Program(what, differs, run))
            return run

        return keep
