"""Where in the user's Python a value or statement came from, and errors that say so."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from vkdispatch.base.errors import VkDispatchError

# With the separator, so that a folder such as vkdispatch_tests is not taken for it.
_PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep

_Error = TypeVar("_Error", bound=VkDispatchError)


@dataclass(frozen=True, slots=True)
class Loc:
    """A line of the user's Python: full path of the file and line number from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


def here() -> Loc | None:
    """Line of the nearest caller outside this package, or None when there is none."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return Loc(frame.f_code.co_filename, frame.f_lineno)


def located(error: type[_Error], message: str, loc: Loc | None = None) -> _Error:
    """Make an error whose message ends with the user's line, as in " (kernel.py:12)"."""
    loc = loc or here()
    return error(f"{message} ({loc})" if loc else message)
