"""Values of environment variables. Errors name the variable."""

import os

from vkdispatch.base.errors import ArgumentValueError

VARIABLES = (
    "VKDISPATCH_BACKEND",
    "VKDISPATCH_CACHE",
    "VKDISPATCH_CHECK",
    "VKDISPATCH_CHECKPOINTS",
    "VKDISPATCH_DEBUG",
    "VKDISPATCH_DEVICE",
    "VKDISPATCH_FORCE_STAGING",
    "VKDISPATCH_FORCE_TRANSFER_QUEUE",
    "VKDISPATCH_FORCE_VARIANT",
    "VKDISPATCH_KOMPUTE_MERGE",
    "VKDISPATCH_NO_CALIBRATION",
    "VKDISPATCH_NO_EXPORT",
    "VKDISPATCH_NO_HOST_IMPORT",
    "VKDISPATCH_NO_PUSH_DESCRIPTORS",
    "VKDISPATCH_PLAN",
    "VKDISPATCH_PRINT_BUFFER",
    "VKDISPATCH_PROGRESS",
    "VKDISPATCH_TIMEOUT",
    "VKDISPATCH_TRACEBACK",
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
