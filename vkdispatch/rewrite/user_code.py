"""Tells the user's code from this package, NumPy and the standard library."""

import functools
import os

from vkdispatch.base.absent import is_absent
from vkdispatch.base.host_numpy import np


def _folder(file: str) -> str:
    return os.path.dirname(os.path.abspath(file)) + os.sep


_OWN = _folder(os.path.dirname(__file__))
# without NumPy nothing starts with it
_NUMPY = _OWN if is_absent(np) else _folder(np.__file__)
_STANDARD = _folder(os.__file__)
# Folders of installed packages lie inside of it.
_INSTALLED = (f"{_STANDARD}site-packages{os.sep}", f"{_STANDARD}dist-packages{os.sep}")


@functools.lru_cache(maxsize=4096)
def is_foreign(file: str) -> bool:
    """Whether a file of code is neither the user's nor an installed package's."""
    if file.startswith((_OWN, _NUMPY, "<frozen")):
        return True
    return file.startswith(_STANDARD) and not file.startswith(_INSTALLED)
