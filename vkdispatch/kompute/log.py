"""Python's logger "kp". The module `logging` is imported on first use: it takes longer than this package."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

TRACE, DEBUG = 5, 10  # TRACE is an additional level; the others are those of `logging`
_LEVELS = (TRACE, DEBUG, 20, 30, 40)

# The lowest level that is logged. Frequent calls compare it before they call `trace` or `debug`; each message
# logged elsewhere updates it.
lowest = 100
_logger: "logging.Logger | None" = None


def logger() -> "logging.Logger":
    """Return the logger, configured to print messages as in Kompute."""
    import logging

    if logging.getLevelName(TRACE) == f"Level {TRACE}":
        logging.addLevelName(TRACE, "TRACE")
    logging.basicConfig()
    return logging.getLogger("kp")


def configure() -> None:
    """Configure the logger if the program has imported `logging`. Otherwise the first message does."""
    if "logging" in sys.modules:
        logger()


def log_level(level: int) -> None:
    """Set the level of the logger "kp": 0 trace, 1 debug, 2 info, 3 warnings, 4 errors.

    Debug messages report managers, memory, algorithms and sequences that are made and destroyed, and
    evaluations. Trace messages report each recorded operation too.

    Raises
    ------
    TypeError
        `level` is not an int.
    RuntimeError
        `level` is not 0 to 4.
    """
    from vkdispatch.base.errors import ArgumentTypeError
    from vkdispatch.kompute.enums import KomputeError

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
    global lowest, _logger
    if _logger is None:
        # Without the module, no program can have enabled messages below the level of warnings.
        if "logging" not in sys.modules:
            return
        import logging

        _logger = logging.getLogger("kp")
    enabled = _logger.isEnabledFor
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
