"""Flags and numbers among the arguments of calls."""

import sys
import threading

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError

UNVERIFIED = -1.0
"""The tolerance that `parse_tolerance` returns for `verify=False`."""


def to_python_number(value: object) -> object:
    """Convert a NumPy scalar to a Python number. Return anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def parse_flag(value: object, argument: str) -> bool:
    """Return a bool. Raises TypeError for anything else."""
    flag = to_python_number(value)
    if not isinstance(flag, bool):
        raise ArgumentTypeError(f"{argument}: expected True or False, got {value!r}")
    return flag


def parse_number(value: object, argument: str) -> int:
    """Return an int from 0 to 2**31 - 1. Raises TypeError or ValueError for anything else."""
    number = to_python_number(value)
    if isinstance(number, bool) or not isinstance(number, int):
        raise ArgumentTypeError(f"{argument}: expected an int, got {value!r}")
    if not 0 <= number < 2**31:
        raise ArgumentValueError(f"{argument}: expected an int from 0 to 2**31 - 1, got {value!r}")
    return number


def parse_timeout(timeout: object) -> float | None:
    """Return a timeout in seconds, or None. Raises TypeError or ValueError for anything else."""
    if timeout is None:
        return None
    seconds = to_python_number(timeout)
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise ArgumentTypeError(f"timeout: expected seconds or None, got {timeout!r}")
    if not 0 <= seconds <= threading.TIMEOUT_MAX:
        raise ArgumentValueError(f"timeout: expected seconds, 0 or more, got {timeout!r}")
    return float(seconds)


def parse_tolerance(verify: object) -> float | None:
    """Return the tolerance of `verify`: None for the default by dtype, or UNVERIFIED."""
    number = to_python_number(verify)
    if isinstance(number, bool):
        return None if number else UNVERIFIED
    if not isinstance(number, (int, float)):
        raise ArgumentTypeError(f"verify: expected True, False or a tolerance, got {verify!r}")
    if not 0 <= number <= sys.float_info.max:
        raise ArgumentValueError(f"verify: expected a tolerance of 0 or more, got {verify!r}")
    return float(number)
