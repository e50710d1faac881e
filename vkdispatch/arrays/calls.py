"""What holds for the call of every function on arrays."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from vkdispatch.arrays.repeating import call_repeatedly
from vkdispatch.base.context import Context, is_current, use_context
from vkdispatch.base.errors import UsageError
from vkdispatch.base.handle import Handle
from vkdispatch.base.init import is_dummy
from vkdispatch.codegen.recording import is_tracing
from vkdispatch.execution_pipeline.command_graph import CommandGraph, current
from vkdispatch.shader.map import MappedArray

_P = ParamSpec("_P")
_R = TypeVar("_R")


def array_function(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function on arrays: it runs in the context of its first array.

    Raises
    ------
    RuntimeError
        (The decorated function.) It is called in a kernel, or kernels do not run on the backend.
    """
    name = function.__name__

    def check_and_call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if is_tracing():
            raise UsageError(f"{name}: a kernel cannot call a function on arrays; call it before, or after")
        if is_dummy():
            raise UsageError(f"{name}: kernels do not run on the dummy backend")
        context = _context_of(args, kwargs)
        if context is not None and not is_current(context) and context.usable:
            with use_context(context):
                return function(*args, **kwargs)
        return function(*args, **kwargs)

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        result: _R = call_repeatedly(check_and_call, args, kwargs, current.chosen is not None or is_tracing())
        return result

    return call


def is_recorded(graph: CommandGraph | None) -> bool:
    """Whether a call goes into a graph that runs later, so that nothing can be waited for."""
    return graph is not None or current.chosen is not None


def _context_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Context | None:
    """Return the context of the first buffer or graph among the arguments, else of the first mapped array."""
    mapped: Context | None = None
    for value in (*args, *kwargs.values()) if kwargs else args:
        for each in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(each, Handle):
                return each.context
            if mapped is None and isinstance(each, MappedArray):
                mapped = each.context
    return mapped
