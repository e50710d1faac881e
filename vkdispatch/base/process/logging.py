"""Log messages on standard output, each with its level and the file and line of the caller."""

import contextlib
import enum
import os
import sys


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
