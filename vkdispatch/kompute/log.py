"""Python's logger "kp"."""

import logging

# As Kompute does when it is imported: what its logger lets through is seen.
logging.basicConfig()
logger = logging.getLogger("kp")

_TRACE = 5
_LEVELS = (_TRACE, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


def log_level(level: int) -> None:
    """Choose what the logger "kp" lets through: 0 all, 1 debug, 2 info, 3 warnings, 4 errors.

    Raises
    ------
    TypeError
        `level` is no int.
    RuntimeError
        `level` is none of these.
    """
    # Few programs make a mistake here, and all would pay for the import.
    from vkdispatch.base.errors import ArgumentTypeError
    from vkdispatch.kompute.errors import KomputeError

    if not hasattr(level, "__index__"):
        raise ArgumentTypeError(f"level: expected an int, 0 to 4, got {level!r}")
    if level not in range(len(_LEVELS)):
        raise KomputeError(
            f"level: expected 0 (trace), 1 (debug), 2 (info), 3 (warnings) or 4 (errors), got {level!r}"
        )
    logger.setLevel(_LEVELS[level])
