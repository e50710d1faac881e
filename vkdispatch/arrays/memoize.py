"""Memoization: sources, sinks and kernels are made once for equal arguments."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

_Result = TypeVar("_Result")
_Function = TypeVar("_Function", bound=Callable[..., Any])
# Results kept of each function. Those of maps that a program makes again and again are dropped at last.
_MOST = 1024


def memoize(function: _Function) -> _Function:
    """Decorate a function to be called once for equal arguments, which must be hashable."""
    return cast(_Function, lru_cache(_MOST)(function))


def memoize_by_type(function: _Function) -> _Function:
    """Do so for equal arguments of the same type: 1, 1.0 and True differ. See `call_memoized`."""
    return cast(_Function, lru_cache(_MOST, typed=True)(function))


def call_memoized(function: Callable[..., _Result], *args: Any) -> _Result:
    """Call a memoized function with any arguments. Values that == does not tell apart are not memoized."""
    for each in args:
        plain = type(each) is int or isinstance(each, type) or (type(each) is float and each != 0)
        if not plain and not (type(each) is float and math.copysign(1.0, each) > 0):
            return getattr(function, "__wrapped__", function)(*args)
    return function(*args)
