"""Warnings about a kernel's source, shown at the user's line after the trace.

They are collected during the trace, since parts of a trace may be undone and traced again.
"""

import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from vkdispatch.base.errors import KernelWarning
from vkdispatch.base.record import record
from vkdispatch.ir.location import Loc, here


@record
class Warned:
    """A message and the place in the user's Python that it is about."""

    message: str
    loc: Loc | None


class _ThreadState(threading.local):
    collected: list[Warned] | None = None


_state = _ThreadState()


def collect_warnings(collected: list[Warned] | None) -> None:
    """Make `warn` add to a list in this thread, or show warnings at once (None)."""
    _state.collected = collected


def warn(message: str, loc: Loc | None = None) -> None:
    """Warn about the user's line, or the one at `loc`, by a `KernelWarning`."""
    warned = Warned(message, loc or here())
    if _state.collected is None:
        show_warnings([warned])
    else:
        _state.collected.append(warned)


def warn_once_each(message: str, locs: Iterable[Loc | None]) -> None:
    """Warn as `warn` does about several places, once about each: unrolled loops repeat them."""
    for loc in {repr(loc): loc for loc in locs}.values():
        warn(message, loc)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Discard the warnings of this block."""
    before = _state.collected
    _state.collected = []
    try:
        yield
    finally:
        _state.collected = before


def show_warnings(collected: list[Warned]) -> None:
    """Issue warnings through Python's `warnings`, each once, and empty the list."""
    shown: set[tuple[str, str]] = set()
    for warned in collected:
        loc = warned.loc
        key = (warned.message, repr(loc))
        if key in shown:
            continue
        shown.add(key)
        if loc is None:
            warnings.warn(warned.message, KernelWarning, stacklevel=3)
            continue
        excerpt = loc.excerpt()
        text = f"{warned.message} ({loc})" + (f"\n{excerpt}" if excerpt else "")
        warnings.warn_explicit(text, KernelWarning, loc.file, loc.line)
    collected.clear()
