"""Services without a device: environment variables, numbers, timeouts, the log, progress, `dir()`."""

import contextlib
import enum
import math
import numbers
import operator
import os
import re
import sys
import time
from _thread import _local, allocate_lock
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    import threading


IMPORTED_AT = time.time()
"""When the package was imported, as files have their times."""


# ---- Integers that callers give: Python's and NumPy's, but no booleans -----------------------------------


def as_int(value: object) -> int | None:
    """Return a Python or NumPy integer as an int; None for everything else, booleans included."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None  # an array of several integers, say


def parse_positive(argument: str, value: object) -> int:
    """Return a positive integer. Raises ValueError, which names `argument`, for anything else."""
    number = as_int(value)
    if number is None or number < 1:
        raise ArgumentValueError(f"{argument}: expected a positive int, got {value!r}")
    return number


# ---- `dir()` and completion of objects: they list what the reference documents ---------------------------


_Member = TypeVar("_Member")

# The section "Attributes" of a docstring, whose names are lines such as "shape, size" without indentation.
_ATTRIBUTES = r"^Attributes\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)"
_NAMES = r"^(\w+(?:, \w+)*)$"
_CODE = (FunctionType, property, classmethod, staticmethod)


def internal(member: _Member) -> _Member:
    """Hide a method or property from `dir()` and the reference. Programs may still use it."""
    function: Any = member.fget if isinstance(member, property) else member
    function.__internal__ = True
    return member


def is_internal(member: object) -> bool:
    """Whether a member of a class was marked with `internal`."""
    function = member.fget if isinstance(member, property) else member
    return getattr(function, "__internal__", False) is True


def documented_names(owner: type[Any]) -> frozenset[str]:
    """Return the public names that the docstrings of a class and its bases describe."""
    from inspect import cleandoc  # slow to import

    documented: set[str] = set()
    hidden: set[str] = set()
    for base in owner.__mro__[:-1]:
        section = re.search(_ATTRIBUTES, cleandoc(base.__doc__ or ""), re.MULTILINE | re.DOTALL)
        lines = re.findall(_NAMES, section[1], re.MULTILINE) if section else ()
        documented.update(name for line in lines for name in line.split(", "))
        for name, member in vars(base).items():
            if is_internal(member):
                hidden.add(name)
            elif isinstance(member, _CODE) and member.__doc__:
                documented.add(name)
    return frozenset(name for name in documented - hidden if not name.startswith("_"))


class Listed:
    """Base of classes whose `dir()` lists documented names and those of Python itself."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        every = super().__dir__()
        # python -OO removes docstrings: list all public names
        owner: type[Any] = type(self)
        if owner.__doc__ is None:
            return sorted(name for name in every if not re.match("_[^_]", name))
        return sorted({*(name for name in every if name.startswith("__")), *documented_names(owner)})


# ---- Objects that depend on a device: they can be neither copied nor pickled -----------------------------


class Unshared:
    """Base of classes that refuse `copy.copy`, `copy.deepcopy` and `pickle`, and say what to do instead."""

    _instead: ClassVar[str] = "make another one"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Raise TypeError."""
        raise ArgumentTypeError(
            f"a {type(self).__name__} cannot be copied or pickled: it belongs to a device; {self._instead}"
        )


# ---- Values of environment variables. Errors name the variable -------------------------------------------


VARIABLES = (
    *("VKDISPATCH_BACKEND", "VKDISPATCH_CACHE", "VKDISPATCH_CHECK", "VKDISPATCH_CHECKPOINTS"),
    *("VKDISPATCH_DEBUG", "VKDISPATCH_DEVICE", "VKDISPATCH_FORCE_STAGING", "VKDISPATCH_FORCE_TRANSFER_QUEUE"),
    *("VKDISPATCH_FORCE_VARIANT", "VKDISPATCH_KOMPUTE_MERGE", "VKDISPATCH_NO_CALIBRATION"),
    *("VKDISPATCH_NO_EXPORT", "VKDISPATCH_NO_HOST_IMPORT", "VKDISPATCH_NO_PUSH_DESCRIPTORS"),
    *("VKDISPATCH_PLAN", "VKDISPATCH_PRINT_BUFFER", "VKDISPATCH_PROGRESS", "VKDISPATCH_TIMEOUT"),
    *("VKDISPATCH_TRACE", "VKDISPATCH_TRACEBACK"),
)
"""Every variable that the package and its engine read."""

_ON = ("1", "true", "yes", "on")
_OFF = ("0", "false", "no", "off")


def read_switch(name: str, default: bool = False) -> bool:
    """Return whether a variable is on; `default` if it is unset or empty.

    Raises
    ------
    ValueError
        The value is neither 1, true, yes, on nor 0, false, no, off.
    """
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if text.lower() in _ON:
        return True
    if text.lower() in _OFF:
        return False
    raise ArgumentValueError(f"{name}: expected 1 or 0, got {text!r}")


def read_seconds(name: str) -> float | None:
    """Return the positive number of seconds in a variable; None if it is unset or empty.

    Raises
    ------
    ValueError
        The value is not a positive number.
    """
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ArgumentValueError(f"{name}: expected seconds, more than 0 (inf: no limit), got {text!r}")
    return seconds


def read_number(name: str, least: int, most: int) -> int:
    """Return the integer in a variable; `least` if it is unset or empty.

    Raises
    ------
    ValueError
        The value is not an integer from `least` to `most`.
    """
    text = os.environ.get(name, "").strip()
    if text and not (text.isdecimal() and least <= int(text) <= most):
        raise ArgumentValueError(f"{name}: expected an integer from {least} to {most}, got {text!r}")
    return int(text or least)


def read_choices(name: str, choices: tuple[str, ...]) -> frozenset[str]:
    """Return the words of a variable, a comma-separated list of some of `choices`.

    Raises
    ------
    ValueError
        One of the words is not among them.
    """
    words = [word.strip() for word in os.environ.get(name, "").split(",")]
    for word in words:
        if word and word not in choices:
            raise ArgumentValueError(f"{name}: expected some of {', '.join(choices)}, got {word!r}")
    return frozenset(filter(None, words))


# ---- Timeouts: how long to wait, and how long a batch of work may take -----------------------------------


_LONGEST_SECONDS = 1e9  # 31 years
_VARIABLE = "VKDISPATCH_TIMEOUT"


def parse_timeout(timeout: object) -> float | None:
    """Return the seconds to wait, 0 or more; None means forever. Raises TypeError or ValueError."""
    seconds = _as_seconds(timeout)
    if seconds is not None and not seconds >= 0:
        raise ArgumentValueError(f"timeout: expected seconds, 0 or more, or None; got {timeout!r}")
    return None if seconds is None else min(seconds, _LONGEST_SECONDS)


def batch_timeout(timeout: object) -> float | None:
    """Return the seconds that a batch may take; None means no limit. The default is VKDISPATCH_TIMEOUT.

    Raises
    ------
    TypeError
        `timeout` is not a number.
    ValueError
        `timeout` or the variable is not greater than 0.
    """
    seconds = _as_seconds(timeout)
    if seconds is not None and not seconds > 0:
        raise ArgumentValueError(f"timeout: expected seconds, more than 0, or None; got {timeout!r}")
    if seconds is None:
        seconds = read_seconds(_VARIABLE)
    return None if seconds is None or seconds > _LONGEST_SECONDS else seconds


def as_nanoseconds(seconds: float | None) -> int:
    """Return a limit in the form of the engine: 0 means no limit."""
    return 0 if seconds is None else max(1, round(seconds * 1e9))


def _as_seconds(timeout: object) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, numbers.Real):
        raise ArgumentTypeError(f"timeout: expected seconds or None, got {timeout!r}")
    seconds: Any = timeout
    try:
        return float(seconds)
    except OverflowError:  # an int of several hundred digits
        return math.inf if seconds > 0 else -math.inf


# ---- Tasks of a scheduler, such as Dask's: an error of a task's work concerns its thread alone -----------


class _ThreadState(_local):
    depth = 0


_thread = _ThreadState()


class RunningTask:
    """A context manager: the thread runs a task, which waits for its own work before it ends."""

    def __enter__(self) -> None:
        _thread.depth += 1

    def __exit__(self, *_: object) -> None:
        _thread.depth -= 1


def is_in_task() -> bool:
    """Whether the running thread runs a task."""
    return _thread.depth > 0


# ---- Log messages on standard output, each with its level and the file and line of the caller ------------


class LogLevel(enum.Enum):
    """Log levels. A level shows its own messages and all more severe ones."""

    VERBOSE = 0
    INFO = 1
    WARNING = 2
    ERROR = 3


_threshold = LogLevel.WARNING


def set_log_level(level: LogLevel) -> None:
    """Show messages of this level and above from now on.

    Raises
    ------
    TypeError
        `level` is not a `LogLevel`.

    Examples
    --------
    >>> vd.set_log_level(vd.LogLevel.WARNING)
    """
    global _threshold
    if not isinstance(level, LogLevel):
        raise TypeError(f"level: expected a vd.LogLevel, got {level!r}")
    _threshold = level


def log(text: str, end: str = "\n", level: LogLevel = LogLevel.ERROR, stack_offset: int = 1) -> None:
    """Print `[LEVEL file.py:line] text`, with the line of the caller `stack_offset` frames up.

    Examples
    --------
    >>> vd.log("shown where the level is INFO", level=vd.LogLevel.INFO)
    """
    if level.value < _threshold.value:
        return
    frame = sys._getframe(stack_offset)
    path = frame.f_code.co_filename
    # On Windows there is no relative path to another drive: keep the full path.
    with contextlib.suppress(ValueError):
        path = os.path.relpath(path)
    print(f"[{level.name} {path}:{frame.f_lineno}] {text}", end=end, flush=True)


def log_error(text: str, end: str = "\n") -> None:
    """Log at level ERROR.

    Examples
    --------
    >>> vd.log_error("the file is not there")
    [ERROR ...] the file is not there
    """
    log(text, end, LogLevel.ERROR, 2)


def log_warning(text: str, end: str = "\n") -> None:
    """Log at level WARNING.

    Examples
    --------
    >>> vd.log_warning("the file is empty")
    [WARNING ...] the file is empty
    """
    log(text, end, LogLevel.WARNING, 2)


def log_info(text: str, end: str = "\n") -> None:
    """Log at level INFO.

    Examples
    --------
    >>> vd.log_info("not shown by default")
    """
    log(text, end, LogLevel.INFO, 2)


def log_verbose(text: str, end: str = "\n") -> None:
    """Log at level VERBOSE.

    Examples
    --------
    >>> vd.log_verbose("not shown by default")
    """
    log(text, end, LogLevel.VERBOSE, 2)


def log_trace(text: str) -> None:
    """Print a text of VKDISPATCH_TRACE on standard error."""
    print(f"[TRACE] {text}", file=sys.stderr, flush=True)


# ---- What takes more than a second says so on a terminal -------------------------------------------------
#
# A line that is rewritten, and erased in the end.
#
#     with show_wait("compiling kernel 'blur'"):
#         ...
#
# One thread, which starts with the first wait and sleeps between waits, writes the line. Waits that follow
# each other closely, such as the kernels of a transform, count as one. Nothing is written if the standard
# error output is no terminal, or VKDISPATCH_PROGRESS is 0.


LARGE = 1 << 30
"""Bytes of a copy from or to the host that is worth a line."""

has_new_kernels = False
"""Whether there are kernels that a CPU driver compiles when they first run: the next wait may take long."""

_PROGRESS_VARIABLE = "VKDISPATCH_PROGRESS"
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
        if _is_terminal() and read_switch(_PROGRESS_VARIABLE, True):
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
