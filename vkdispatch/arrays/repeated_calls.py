"""Repeated calls: the first call of a kind is recorded, and one native call repeats it for equal calls.

Calls are equal if all that a function depends on is equal: the function, options, dtypes, shapes, maps, which
arguments are the same memory, and the context. Real numbers among the arguments of maps may differ. The
launches and new buffers of the first call are bound to the buffers of the others. A call that waits for the
device is never bound.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.kinds import RFFTBuffer
from vkdispatch.base.context import Context
from vkdispatch.base.memory.data import layout_of
from vkdispatch.base.native_module import native
from vkdispatch.execution_pipeline.command_graph import current
from vkdispatch.shader.map import MappedArray, MappingFunction, OutputMap

_P = ParamSpec("_P")
_R = TypeVar("_R")
# Of the context, the buffers among the arguments, and new memory.
_Finish = Callable[[Any, list[Any], list[Any]], Any]

native.set_repeated_types(
    (Buffer, RFFTBuffer), (MappedArray, OutputMap), (MappingFunction,), (type(np.dtype(np.float32)),)
)


def repeatable(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a part of a function on arrays that does not wait, while the function may."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        result: _R = call_repeatedly(function, args, kwargs)
        return result

    return call


def call_repeatedly(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], plain: bool = False
) -> Any:
    """Call a function on arrays, or repeat an equal call unless it is `plain` or in a graph."""
    found = None if plain or current.chosen is not None else native.repeat(function, args, kwargs)
    if found is None:
        return function(*args, **kwargs)
    if isinstance(found, tuple):
        return found[0]
    try:
        with found:
            result = function(*found.args, **found.kwargs)
        _bind(found, result)
        return result
    finally:
        found.drop()


def call_with_parameters(
    function: Callable[..., Any], args: tuple[Any, ...], parameters: tuple[int, ...], context: Context
) -> Any:
    """Call a function that passes its last arguments, the parameters, to kernels unchanged.

    Calls with other parameters are equal.
    """
    found = native.repeat(function, args, {}, parameters, context)
    if found is None:
        return function(*args, *parameters)
    if isinstance(found, tuple):
        return found[0]
    try:
        with found:
            result = function(*found.args, **found.kwargs)
        _bind(found, result)
        return result
    finally:
        found.drop()


def _bind(recorder: native.CallRecorder, result: Any) -> None:
    """Bind a recorded call, if its result can be made again."""
    made: list[Buffer[Any]] = []
    parts = [
        _find_finish(each, recorder.arguments, made)
        for each in (result if isinstance(result, tuple) else (result,))
    ]
    finishes = [part for part in parts if part is not None]
    if len(finishes) < len(parts):
        native.refuse_repeating(recorder)
    finish = (
        _finish_tuple(type(result), finishes) if isinstance(result, tuple) else (*finishes, _return_none)[0]
    )
    recorder.keep([each._native for each in made], finish)


def _return_none(*_: object) -> None:
    """Return None, the result of a function without one."""


def _find_finish(result: Any, arguments: Sequence[Any], made: list[Buffer[Any]]) -> _Finish | None:
    """Return the function that makes a part of a result; None if there is none."""
    if result is None:
        return _return_none
    for position, argument in enumerate(arguments):
        if argument is result:
            return lambda context, given, memory: given[position]
    if type(result) is not Buffer or result._order is not None:
        return None
    number, layout = len(made), layout_of(result.shape, result.var_type)
    made.append(result)

    def finish(context: Context, given: list[Any], memory: list[Any]) -> Buffer[Any]:
        return Buffer._of_result(context, memory[number], layout)

    return finish


def _finish_tuple(kind: type, parts: Sequence[_Finish]) -> _Finish:
    make = getattr(kind, "_make", kind)
    return lambda context, given, memory: make([part(context, given, memory) for part in parts])
