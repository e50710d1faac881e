"""Timeouts: how long to wait, and how long a batch of work may take."""

import math
import numbers
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.process.environment import read_seconds

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
