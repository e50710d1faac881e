"""Tracebacks for notebooks: the frames of the user's code, without those of this package."""

import functools
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from vkdispatch.base import make_getattr

# The frames of the native module name its sources, which are not beside it.
_OWN = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, "vkdispatch_native/")


def is_full_traceback() -> bool:
    """Whether VKDISPATCH_TRACEBACK asks for full tracebacks."""
    return os.environ.get("VKDISPATCH_TRACEBACK") == "full"


def hide_own_frames(error: Exception, shell: Any) -> None:
    """Let IPython, if there is a `shell`, print an error of the user without the frames of this package."""
    if shell is None or hasattr(error, "_render_traceback_"):
        return
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    file = "" if last is None else last.tb_frame.f_code.co_filename
    if not file.startswith(_OWN) or file == make_getattr.__code__.co_filename:
        error._render_traceback_ = functools.partial(render, error, shell)  # type: ignore[attr-defined]


def render(error: BaseException, shell: Any) -> list[str]:
    """Return the lines of an error's traceback in the style of IPython's `shell`, or of Python if None."""
    with _fold_frames(error):
        if shell is None:
            return traceback.format_exception(error)
        written: list[str] = shell.InteractiveTB.structured_traceback(
            type(error), error, error.__traceback__, tb_offset=1
        )
        return written


@contextmanager
def _fold_frames(error: BaseException) -> Iterator[None]:
    """Remove the frames of the package from the tracebacks of an error and its causes."""
    whole: list[tuple[BaseException, TracebackType | None]] = []
    current: BaseException | None = error
    while current is not None and all(current is not other for other, _ in whole):
        whole.append((current, current.__traceback__))
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    try:
        if not is_full_traceback():
            for current, trace in whole:
                current.__traceback__ = _fold_trace(trace)
        yield
    finally:
        # restored, as debuggers need all frames
        for current, trace in whole:
            current.__traceback__ = trace


def _fold_trace(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this package. If there are no others, return it unchanged."""
    kept = []
    step = trace
    while step is not None:
        if not step.tb_frame.f_code.co_filename.startswith(_OWN):
            kept.append(step)
        step = step.tb_next
    folded = None
    for step in reversed(kept):
        folded = TracebackType(folded, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return folded or trace
