"""The functions that rewritten code calls in place of the functions in the source."""

import builtins
import functools
import types
from collections import deque
from collections.abc import Callable
from typing import Any

from vkdispatch.rewrite import interface
from vkdispatch.rewrite.branches.builtin_functions import REPLACED
from vkdispatch.rewrite.branches.conditions import require_known
from vkdispatch.rewrite.calls.host_draws import is_host_draw, wrap_host_draw
from vkdispatch.rewrite.loops.loop_index import LoopIndex
from vkdispatch.rewrite.replacement import CALLING, EFFECTS, rewrite_plain_function
from vkdispatch.rewrite.state.tracer import Retry, find_tracer


def choose_callee(function: Any) -> Any:
    """Return the function to call in place of another: a rewritten one, a replacement, or itself."""
    kind = type(function)
    if kind is types.FunctionType:
        return rewrite_plain_function(function)
    if is_host_draw(function):
        return wrap_host_draw(function)
    if kind is types.MethodType:
        inner = choose_callee(function.__func__)
        return function if inner is function.__func__ else types.MethodType(inner, function.__self__)
    if kind is functools.partial:
        inner = choose_callee(function.func)
        same = inner is function.func
        return function if same else functools.partial(inner, *function.args, **function.keywords)
    if kind is types.BuiltinMethodType and isinstance(function.__self__, _CONTAINERS):
        return _wrap_filling_method(function)
    try:
        replaced = _REPLACED_CALLS.get(function)
    except TypeError:
        replaced = None
    if replaced is not None:
        return replaced
    return _rewrite_object(function)


def _wrap_filling_method(method: Any) -> Any:
    """Return a method of a container that freezes the values it stores."""
    active = find_tracer()
    if method.__name__ not in _FILLING or active is None or not active.gpu:
        return method

    def fill(*args: Any, **kwargs: Any) -> Any:
        return method(*map(active.freeze, args), **kwargs)

    return fill


def _map(function: Any, *iterables: Any, **kwargs: Any) -> Any:
    return builtins.map(choose_callee(function), *iterables, **kwargs)


def _filter(function: Any, values: Any) -> Any:
    test = bool if function is None else choose_callee(function)
    return builtins.filter(lambda value: require_known(test(value), "filter"), values)


def _reduce(function: Any, *args: Any) -> Any:
    return functools.reduce(choose_callee(function), *args)


def _wrap_effect(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function with side effects, so that the loops around it are unrolled."""

    def run(*args: Any, **kwargs: Any) -> Any:
        active = find_tracer()
        if active is not None and active.attempts:
            raise Retry(active.attempts[-1])
        return function(*args, **kwargs)

    return run


def _wrap_type_test(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that inspects the type of a value, so that loops over its index are unrolled."""

    def run(*args: Any) -> Any:
        if args and isinstance(args[0], LoopIndex):
            args[0].unroll()
        return function(*args)

    return run


_CONTAINERS = (list, dict, set, deque)
_FILLING = frozenset(("append", "appendleft", "extend", "insert", "add", "update", "setdefault"))
_OF_FUNCTIONS: tuple[Callable[..., Any], ...] = (_map, _filter, _reduce)
_REPLACED_CALLS = {
    **REPLACED,
    **dict(zip(CALLING, _OF_FUNCTIONS, strict=True)),
    **{function: _wrap_effect(function) for function in EFFECTS},
    **{function: _wrap_type_test(function) for function in (builtins.isinstance, builtins.type)},
}


def _rewrite_object(value: Any) -> Any:
    """Return the rewritten `__call__` of an object of a user-defined class, or the object."""
    method = getattr(type(value), "__call__", None)  # noqa: B004
    if type(method) is types.FunctionType and not isinstance(value, type):
        inner = rewrite_plain_function(method)
        if inner is not method:
            return types.MethodType(inner, value)
    return value


interface.choose_callee = choose_callee
