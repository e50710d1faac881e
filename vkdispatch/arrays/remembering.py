"""What is made once for equal arguments: sources, sinks, kernels."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

_Function = TypeVar("_Function", bound=Callable[..., Any])
# Of each function: maps that a program makes over and over are forgotten in the end.
_MOST = 1024


def remembered(function: _Function) -> _Function:
    """Call a function once for equal arguments, which must be hashable."""
    return cast(_Function, lru_cache(_MOST)(function))
