"""What is made once for equal arguments: sources, sinks, kernels."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

_Result = TypeVar("_Result")
_Function = TypeVar("_Function", bound=Callable[..., Any])
# Of each function: maps that a program makes over and over are forgotten in the end.
_MOST = 1024


def memoize(function: _Function) -> _Function:
    """Call a function once for equal arguments, which must be hashable."""
    return cast(_Function, lru_cache(_MOST)(function))


def memoize_by_type(function: _Function) -> _Function:
    """Do so for arguments that are equal and of the same type: 1, 1.0 and True are three. See the next."""
    return cast(_Function, lru_cache(_MOST, typed=True)(function))


def call_memoized(function: Callable[..., _Result], *args: Any) -> _Result:
    """Call a remembered function with arguments of any kind; what is told apart by more than == is new."""
    for each in args:
        plain = type(each) is int or isinstance(each, type) or (type(each) is float and each != 0)
        if not plain and not (type(each) is float and math.copysign(1.0, each) > 0):
            return getattr(function, "__wrapped__", function)(*args)
    return function(*args)
