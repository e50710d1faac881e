"""Hand-overs between a context and other libraries, noted while profiles run."""

import time
from typing import Literal

from vkdispatch.base.context import Context
from vkdispatch.base.record import record

HandOverKind = Literal["lend", "take", "host wait", "device wait", "stream wait"]


@record
class HandOver:
    """A hand-over of memory, or of the turn to use it, between a context and another library.

    Attributes
    ----------
    kind
        "lend": memory was shared with another library. "take": memory of another library was taken. "host
        wait": a call waited for the device, since memory that it used is shared in order. "device wait": the
        context's work waits for a CUDA stream. "stream wait": a CUDA stream waits for the context's work.
    begin, end
        What it took of the host: seconds on the clock of `time.perf_counter`.
    """

    kind: HandOverKind
    begin: float
    end: float

    @property
    def duration(self) -> float:
        """Seconds from begin to end."""
        return self.end - self.begin


class Journal:
    """The hand-overs of a context from its construction until `close`."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.entries: list[HandOver] = []
        _journals.append(self)

    def close(self) -> None:
        """Note no more. Idempotent."""
        if self in _journals:
            _journals.remove(self)


_journals: list[Journal] = []


def start_clock() -> float:
    """Return the time if a hand-over that begins is to be noted, else 0."""
    return time.perf_counter() if _journals else 0.0


def note(kind: HandOverKind, context: Context | None, begin: float) -> None:
    """Note a hand-over that ends now. `begin` is what `start_clock` gave."""
    if begin:
        entry = HandOver(kind, begin, time.perf_counter())
        for journal in tuple(_journals):
            if journal.context is context:
                journal.entries.append(entry)
