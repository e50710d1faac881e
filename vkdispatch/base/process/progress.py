"""What takes more than a second says so on a terminal: a line that is rewritten, and erased in the end.

    with show_wait("compiling kernel 'blur'"):
        ...

One thread, which starts with the first wait and sleeps between waits, writes the line. Waits that follow each
other closely, such as the kernels of a transform, count as one. Nothing is written if the standard error
output is no terminal, or VKDISPATCH_PROGRESS is 0.
"""

import os
import sys
from _thread import allocate_lock
from typing import TYPE_CHECKING, Any

from vkdispatch.base.process.environment import read_switch

if TYPE_CHECKING:
    import threading

LARGE = 1 << 30
"""Bytes of a copy from or to the host that is worth a line."""

has_new_kernels = False
"""Whether there are kernels that a CPU driver compiles when they first run: the next wait may take long."""

_VARIABLE = "VKDISPATCH_PROGRESS"
_ERASE = "\r\x1b[K"  # to the start of the line, and to its end with blanks
_LONG = 1.0  # seconds that a wait may take in silence
_STEP = 0.25  # seconds between two looks at what is going on

_lock = allocate_lock()
_waits: list["Wait"] = []  # what is going on, the latest last
_begun = 0  # waits so far
_wake: "threading.Event | None" = None  # set while there are waits; None before the first one
_line: Any = None  # what is shown: tqdm's line, or True for one of our own


def show_wait(what: str) -> "Wait":
    """Show a text while the block of a `with` statement takes long.

    Parameters
    ----------
    what
        What is going on, such as "compiling kernel 'blur'". The block may change it: `wait.what = ...`.
    """
    return Wait(what)


def show_first_run() -> "Wait":
    """Show a wait for kernels that were not run before."""
    global has_new_kernels
    has_new_kernels = False
    return Wait("waiting for kernels that run for the first time")


class Wait:
    """What `show_wait` returns."""

    __slots__ = ("_is_shown", "what")

    def __init__(self, what: str) -> None:
        self.what = what
        self._is_shown = False

    def __enter__(self) -> "Wait":
        if _is_terminal() and read_switch(_VARIABLE, True):
            self._is_shown = True
            _begin(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            with _lock:
                if self in _waits:  # not in the child of a fork
                    _waits.remove(self)
                _erase()


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _begin(wait: Wait) -> None:
    global _begun, _wake
    with _lock:
        _waits.append(wait)
        _begun += 1
        if _wake is None:
            import threading  # programs without a terminal do without

            _wake = threading.Event()
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=_forget)
            threading.Thread(target=_watch, args=(_wake,), name="vkdispatch-progress", daemon=True).start()
        _wake.set()


def _forget() -> None:
    """Begin anew in the child of a fork, which has no such thread."""
    global _lock, _wake, _line
    _lock = allocate_lock()
    _waits.clear()
    _wake = _line = None


def _watch(wake: "threading.Event") -> None:
    from time import monotonic, sleep

    while True:
        wake.wait()
        since, seen = monotonic(), _begun - 1
        while True:
            with _lock:
                # Between two kernels there is a moment without a wait.
                if not _waits and seen == _begun:
                    wake.clear()
                    break
                seen = _begun
                seconds = monotonic() - since
                if _waits and seconds >= _LONG:
                    _draw(f"vkdispatch: {_waits[-1].what} ... {seconds:.0f} s")
            sleep(_STEP)


def _draw(text: str) -> None:
    global _line
    tqdm = getattr(sys.modules.get("tqdm"), "tqdm", None)
    if tqdm is not None:
        # The program may show bars of its own: tqdm finds a line below them.
        if _line is None:
            _line = tqdm(bar_format="{desc}", leave=False, file=sys.stderr)
        _line.set_description_str(text)
    else:
        _line = True
        _write(text)


def _erase() -> None:
    global _line
    if _line is True:
        _write("")
    elif _line is not None:
        _line.close()
    _line = None


def _write(text: str) -> None:
    """Write to the terminal without Python's buffer, which a thread may hold while the interpreter ends."""
    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        os.write(sys.stderr.fileno(), f"{_ERASE}{text[: width - 1]}".encode("utf-8", "replace"))
    except (OSError, ValueError, AttributeError):
        pass  # the terminal is gone
