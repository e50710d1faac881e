"""Memoization: sources, sinks and kernels are made once for equal arguments."""

import math
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar, cast

_P = ParamSpec("_P")
_Result = TypeVar("_Result")
_Function = TypeVar("_Function", bound=Callable[..., Any])
# The maximum number of results stored for each function, so that those of short-lived maps are dropped.
_MOST = 1024


def memoize(function: _Function) -> _Function:
    """Decorate a function to be called once for equal arguments, which must be hashable."""
    return cast(_Function, lru_cache(_MOST)(function))


def memoize_numbers(function: Callable[_P, _Result]) -> Callable[_P, _Result]:
    """Decorate a function of numbers and types, which is called once for equal arguments of the same type.

    It may be called with any arguments: those that == does not tell apart from others, such as -0.0, and
    those that may not be hashable are passed on to the function.
    """
    known = lru_cache(_MOST, typed=True)(function)

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _Result:
        for each in args:
            plain = type(each) is int or isinstance(each, type) or (type(each) is float and each != 0)
            if not plain and not (type(each) is float and math.copysign(1.0, each) > 0):
                return function(*args, **kwargs)
        return known(*args, **kwargs)  # type: ignore[arg-type]

    return call
