"""Calls that are repeated: the first of a kind is recorded, equal ones are done by one native call.

Calls are equal if everything is that a function can decide by: the function, options, dtypes, shapes, maps, which
arguments are one memory, and the context. What the first one gave to the queues, the buffers that it made included,
is bound to the buffers of the others. A call that waits, or writes from the host, is never bound.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import vkdispatch_native as native
from vkdispatch.base.buffer import Buffer
from vkdispatch.shader.map import MappedArray, MappingFunction, OutputMap

Finish = Callable[[list[Any], list[Any]], Any]

native.set_repeated_types(Buffer, (MappedArray, OutputMap), (MappingFunction, type(np.dtype(np.float32))))


def call_repeatedly(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], plain: bool = False
) -> Any:
    """Call a function on arrays, or do what an equal call came to; with `plain`, call it."""
    found = None if plain else native.repeat(function, args, kwargs)
    if type(found) is tuple:
        return found[0]
    if found is None:
        return function(*args, **kwargs)
    try:
        with found:
            result = function(*args, **kwargs)
        _keep(found, result)
        return result
    finally:
        found.drop()


def _keep(recorder: native.CallRecorder, result: Any) -> None:
    """Bind a call that was recorded, if what it returned can be made again."""
    made: list[Buffer[Any]] = []
    if isinstance(result, tuple):
        parts = [_part(each, recorder.arguments, made) for each in result]
        if None in parts:
            native.refuse_repeating(recorder)
        recorder.keep([each._native for each in made], _finish_tuple(type(result), parts))
        return
    part = _part(result, recorder.arguments, made)
    if part is None:
        native.refuse_repeating(recorder)
    recorder.keep([each._native for each in made], part)


def _part(result: Any, arguments: Sequence[Any], made: list[Buffer[Any]]) -> Finish | None:
    """Return what makes a result of the arguments and new memory; None: it is none that can be made."""
    if type(result) is not Buffer:
        return None
    for position, argument in enumerate(arguments):
        if argument is result:
            return lambda given, _: given[position]
    number, shape, kind = len(made), result.shape, result.var_type
    made.append(result)

    def finish(given: list[Any], memory: list[Any]) -> Buffer[Any]:
        return Buffer.of_memory(given[0].context, memory[number], shape, kind)

    return finish


def _finish_tuple(kind: type, parts: Sequence[Any]) -> Finish:
    make = getattr(kind, "_make", kind)
    return lambda given, memory: make([part(given, memory) for part in parts])
