"""Python's logger "kp", without the import of `logging` where nobody could see a line: that takes 6 ms."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

# TRACE, which is ours, to ERROR: numbers of the module logging.
_LEVELS = (5, 10, 20, 30, 40)

_ready = False


def get_ready() -> None:
    """See to it that lines of the logger are shown, as Kompute does: once `logging` is imported."""
    global _ready
    if not _ready and "logging" in sys.modules:
        import logging

        _ready = True
        logging.basicConfig()


def logger() -> "logging.Logger":
    """Return the logger."""
    import logging

    get_ready()
    return logging.getLogger("kp")


def log_level(level: int) -> None:
    """Choose what the logger "kp" lets through: 0 all, 1 debug, 2 info, 3 warnings, 4 errors.

    Raises
    ------
    RuntimeError
        `level` is none of these.
    """
    if level not in range(len(_LEVELS)):
        from vkdispatch.kompute.errors import KomputeError

        raise KomputeError(
            f"level: expected 0 (trace), 1 (debug), 2 (info), 3 (warnings) or 4 (errors), got {level!r}"
        )
    logger().setLevel(_LEVELS[level])


def info(message: str, *values: object) -> None:
    """Log at level INFO."""
    # Without the module there is nobody who could have asked for lines below the level of a warning.
    if "logging" in sys.modules:
        logger().info(message, *values)


def warning(message: str, *values: object) -> None:
    """Log at level WARNING."""
    logger().warning(message, *values)


def error(message: str, *values: object) -> None:
    """Log at level ERROR."""
    logger().error(message, *values)
