"""The garbage collector, which waits while many objects are made that all stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_collection() -> Iterator[None]:
    """Let the garbage collector wait, which would walk a growing program again and again.

    Other threads' garbage waits too. A collector that is disabled stays so.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
