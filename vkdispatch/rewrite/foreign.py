"""Which code is not the user's: this package, NumPy and the standard library."""

import functools
import os
import sysconfig
from pathlib import Path

import numpy as np

_OWN = str(Path(__file__).resolve().parents[1]) + os.sep
_NUMPY = str(Path(np.__file__).resolve().parent) + os.sep
_STANDARD = tuple({str(Path(sysconfig.get_path(name))) + os.sep for name in ("stdlib", "platstdlib")})
_INSTALLED = tuple({str(Path(sysconfig.get_path(name))) + os.sep for name in ("purelib", "platlib")})


@functools.lru_cache(maxsize=4096)
def is_foreign(file: str) -> bool:
    """Whether a file of code is neither the user's nor an installed package's."""
    if file.startswith((_OWN, _NUMPY, "<frozen")):
        return True
    return file.startswith(_STANDARD) and not file.startswith(_INSTALLED)
