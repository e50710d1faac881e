"""What notebooks print of our errors: the lines of the user's code, without the frames of this package."""

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def shows_everything() -> bool:
    """Whether the environment asks for whole tracebacks."""
    return os.environ.get("VKDISPATCH_TRACEBACK") == "full"


def render(error: BaseException, shell: Any) -> list[str]:
    """Return the text of an error, written as IPython's `shell` writes tracebacks, or as Python does."""
    with _fold_frames(error):
        if shell is None:
            return traceback.format_exception(error)
        written: list[str] = shell.InteractiveTB.structured_traceback(
            type(error), error, error.__traceback__, tb_offset=1
        )
        return written


@contextmanager
def _fold_frames(error: BaseException) -> Iterator[None]:
    """Take the package's frames out of the tracebacks of an error and of those that led to it."""
    whole: list[tuple[BaseException, TracebackType | None]] = []
    each: BaseException | None = error
    while each is not None and all(each is not other for other, _ in whole):
        whole.append((each, each.__traceback__))
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    try:
        if not shows_everything():
            for each, trace in whole:
                each.__traceback__ = _users(trace)
        yield
    finally:
        # debuggers see all frames
        for each, trace in whole:
            each.__traceback__ = trace


def _users(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this package; whole if there are no others."""
    kept = []
    each = trace
    while each is not None:
        if not each.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            kept.append(each)
        each = each.tb_next
    folded = None
    for each in reversed(kept):
        folded = TracebackType(folded, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return folded or trace
