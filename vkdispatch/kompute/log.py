"""Python's logger "kp". The module `logging` takes longer to import than all of Kompute: it waits for use."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

TRACE, DEBUG = 5, 10  # TRACE is ours; the others are numbers of the module logging
_LEVELS = (TRACE, DEBUG, 20, 30, 40)

# The lowest of our levels that is let through: what is done often looks at this before it calls `trace` or
# `debug`. Each line logged elsewhere, such as for an object that is made, sees whether it still holds.
lowest = 100
_known: "logging.Logger | None" = None


def logger() -> "logging.Logger":
    """Return the logger, configured to print its messages, as in Kompute."""
    import logging

    if logging.getLevelName(TRACE) == f"Level {TRACE}":
        logging.addLevelName(TRACE, "TRACE")
    logging.basicConfig()
    return logging.getLogger("kp")


def configure() -> None:
    """Configure the logger if the program has imported `logging`; else the first message does."""
    if "logging" in sys.modules:
        logger()


def log_level(level: int) -> None:
    """Choose what the logger "kp" lets through: 0 all, 1 debug, 2 info, 3 warnings, 4 errors.

    Debug lines tell of managers, memory, algorithms and sequences that are made and destroyed, and of
    evaluations; with 0, of each operation that is recorded as well.

    Raises
    ------
    TypeError
        `level` is no int.
    RuntimeError
        `level` is none of these.
    """
    from vkdispatch.base.errors import ArgumentTypeError
    from vkdispatch.kompute.errors import KomputeError

    if not hasattr(level, "__index__"):
        raise ArgumentTypeError(f"level: expected an int, 0 to 4, got {level!r}")
    if level not in range(len(_LEVELS)):
        raise KomputeError(
            f"level: expected 0 (trace), 1 (debug), 2 (info), 3 (warnings) or 4 (errors), got {level!r}"
        )
    logger().setLevel(_LEVELS[level])
    _update_lowest()


def _update_lowest() -> None:
    """Update `lowest` to the level of the logger."""
    global lowest, _known
    if _known is None:
        # Without the module there is nobody who could have asked for lines below the level of a warning.
        if "logging" not in sys.modules:
            return
        import logging

        _known = logging.getLogger("kp")
    enabled = _known.isEnabledFor
    lowest = (TRACE if enabled(TRACE) else DEBUG) if enabled(DEBUG) else 100


def trace(message: str, *values: object) -> None:
    """Log at level TRACE."""
    _update_lowest()
    if lowest <= TRACE:
        logger().log(TRACE, message, *values)


def debug(message: str, *values: object) -> None:
    """Log at level DEBUG."""
    _update_lowest()
    if lowest <= DEBUG:
        logger().debug(message, *values)


def info(message: str, *values: object) -> None:
    """Log at level INFO."""
    _update_lowest()
    if "logging" in sys.modules:
        logger().info(message, *values)


def warning(message: str, *values: object) -> None:
    """Log at level WARNING."""
    logger().warning(message, *values)


def error(message: str, *values: object) -> None:
    """Log at level ERROR."""
    logger().error(message, *values)
