"""Where in the user's Python a value or statement came from, and errors and warnings that say so."""

import gc
import linecache
import opcode
import os
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType
from typing import TypeVar

from vkdispatch.base.errors import KernelWarning, VkDispatchError, describe_place
from vkdispatch.base.host_numpy import np
from vkdispatch.base.record import record

# ---- Where in the user's Python a value or statement came from, and errors that say so -------------------


def _folder(file: str) -> str:
    # with the separator, so that a folder such as vkdispatch_tests is not taken for it
    return os.path.dirname(os.path.abspath(file)) + os.sep


_PACKAGE = _folder(os.path.dirname(os.path.dirname(__file__)))
_NUMPY = _folder(getattr(np, "__file__", __file__))  # not installed everywhere
_STANDARD = _folder(os.__file__)
# Folders of installed packages lie inside of it.
_INSTALLED = (f"{_STANDARD}site-packages{os.sep}", f"{_STANDARD}dist-packages{os.sep}")
# What user code of a kernel calls directly, and what stands under it.
_LANGUAGE_FOLDERS = ("codegen", "compiler", "control_flow")
_LANGUAGE = tuple(os.path.join(_PACKAGE, folder) + os.sep for folder in _LANGUAGE_FOLDERS)
# Files known not to be the user's: every operation looks up each of its callers.
_foreign_files: set[str] = set()

_FILLERS = frozenset(("CACHE", "EXTENDED_ARG", "NOP"))
_NAMES = frozenset(
    ("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME")
)

_Error = TypeVar("_Error", bound=VkDispatchError)


_Position = tuple[int | None, int | None, int | None, int | None]
_MAX_CODES = 32
# By identity: hashing a code object looks through all of it.
_positions_of: dict[int, tuple[CodeType, list[_Position]]] = {}


def _positions(code: CodeType) -> list[_Position]:
    """Lines and columns of each instruction, which are decoded from the first one on."""
    known = _positions_of.get(id(code))
    if known is None:
        if len(_positions_of) >= _MAX_CODES:
            _positions_of.clear()
        known = _positions_of[id(code)] = (code, list(code.co_positions()))
    return known[1]


class Loc:
    """An expression in the user's Python: the code object and the instruction that was running there.

    Lines and columns are looked up on demand, since most traces raise no errors.
    """

    __slots__ = ("code", "offset")

    def __init__(self, code: CodeType, offset: int) -> None:
        self.code = code
        self.offset = offset

    @property
    def file(self) -> str:
        """Full path of the file."""
        return self.code.co_filename

    @property
    def line(self) -> int:
        """Line number from 1."""
        return self._position()[0] or self.code.co_firstlineno

    def _position(self) -> _Position:
        found = _positions(self.code)
        index = self.offset // 2
        return found[index] if index < len(found) else (None, None, None, None)

    def follows_name(self) -> bool:
        """Whether the instruction before this one reads a variable."""
        before = [name for name in islice(_instructions(self.code), self.offset // 2) if name not in _FILLERS]
        return bool(before) and before[-1] in _NAMES

    def unpacked_count(self) -> int | None:
        """Return how many names this instruction unpacks a sequence to; None if it does not."""
        unit = self.code.co_code[self.offset : self.offset + 2]
        return unit[1] if unit and opcode.opname[unit[0]] == "UNPACK_SEQUENCE" else None

    def excerpt(self) -> str:
        """Return the source line with carets under the expression, or "" where there is no source."""
        first, last, begin, end = self._position()
        text = linecache.getline(self.file, self.line).rstrip()
        if not text.strip():
            return ""
        margin = len(text) - len(text.lstrip())
        shown = f"    {text.lstrip()}"
        if first is None or begin is None or end is None:
            return shown
        # columns count bytes of UTF-8
        raw = text.encode()
        start = len(raw[:begin].decode(errors="replace"))
        stop = len(text) if last != first else len(raw[:end].decode(errors="replace"))
        return f"{shown}\n    {' ' * (start - margin)}{'^' * max(stop - start, 1)}"

    def __str__(self) -> str:
        return describe_place(self.file, self.line)

    def __repr__(self) -> str:
        return f"<Loc {self}>"


def _instructions(code: CodeType) -> Iterator[str]:
    return (opcode.opname[unit] for unit in code.co_code[::2])


@lru_cache(maxsize=4096)
def is_foreign(file: str) -> bool:
    """Whether a file of code is this package's, NumPy's or the standard library's: not the user's."""
    if file.startswith((_PACKAGE, _NUMPY, "<frozen")):
        return True
    return file.startswith(_STANDARD) and not file.startswith(_INSTALLED)


class _Place(threading.local):
    """The place that `here` returns in this thread without a search, in a tuple; or None."""

    fixed: tuple[Loc | None] | None = None


_place = _Place()


@contextmanager
def fixed_place(fixed: bool = True) -> Iterator[None]:
    """Have `here` return the place of this call, in a block that traces a kernel of this package.

    Each operation would else look through the same callers. Code of the user's in the block runs in one that
    is not `fixed`.
    """
    outer = _place.fixed
    try:
        _place.fixed = (here(),) if fixed else None
        yield
    finally:
        _place.fixed = outer


def here() -> Loc | None:
    """Place of the nearest caller in the user's code, or None when there is none.

    NumPy and the standard library call operators of GPU values, too; user code called them.
    """
    fixed = _place.fixed
    if fixed is not None:
        return fixed[0]
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if file not in _foreign_files:
            if not is_foreign(file):
                return Loc(code, frame.f_lasti)
            _foreign_files.add(file)
        frame = frame.f_back
    return None


def within_library() -> bool:
    """Whether the nearest caller of the kernel language is a kernel of this package, not user code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_LANGUAGE):
            return file.startswith(_PACKAGE)
        frame = frame.f_back
    return False


def located(error: type[_Error], message: str, loc: Loc | None = None) -> _Error:
    """Make an error with its place: " (kernel.py:12)", then the line with carets under the expression."""
    loc = loc or here()
    if loc is None:
        return error(message)
    excerpt = loc.excerpt()
    return error(f"{message} ({loc})\n{excerpt}" if excerpt else f"{message} ({loc})")


# ---- Warnings about a kernel's source, shown at the user's line after the trace --------------------------
#
# They are collected during the trace, since parts of a trace may be undone and traced again.


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


# ---- The garbage collector, which waits while many objects are made that all stay ------------------------


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
