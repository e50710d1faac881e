"""Calls of functions of arrays that one native call repeats.

The second of equal calls is recorded: what it launches, and the memory that it makes. Equal calls agree in
the function, the dtype, shape, strides and place of each array, the values of other arguments, the context
and the default dtype. Of an array that is not computed, they agree in the expression, which kernels read in
place as in the first call. Expressions with numbers would make many calls: small ones are computed first, and
calls with larger ones are not repeated. Nor are calls that wait for the device, warn, or write to an array of
the caller.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ParamSpec, TypeVar

from vkdispatch.base.context import Context
from vkdispatch.base.contexts.current import find_current_context
from vkdispatch.base.native_module import native
from vkdispatch.codegen.trace.current import is_tracing
from vkdispatch.execution_pipeline.command_graph import current
from vkdispatch.numpy.core.array import Array, array_of, value_of
from vkdispatch.numpy.core.expressions import evaluate
from vkdispatch.numpy.core.memory import Storage, View, default_setting

_P = ParamSpec("_P")
_R = TypeVar("_R")
# Of the context, the arguments with memory, and new memory.
_Finish = Callable[[Context, list[Any], list[native.Buffer]], Any]


def repeat_calls(function: Callable[_P, _R], computes: bool = True) -> Callable[_P, _R]:
    """Decorate a function of arrays that writes to none of its arguments but `out`.

    `computes` is whether small expressions with numbers are computed before the call.
    """

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        context = find_current_context()
        if context is None or current.chosen is not None or is_tracing() or kwargs.get("out") is not None:
            return function(*args, **kwargs)
        settings = id(context), default_setting()
        recorder = native.repeat(function, args, kwargs, (), context, settings, computes)
        if isinstance(recorder, tuple):
            result: _R = recorder[0]
            return result
        if recorder is None:
            return function(*args, **kwargs)
        try:
            with recorder:
                result = function(*args, **kwargs)
                finish, made = _bind(result, recorder.arguments, (*args, *kwargs.values()))
            recorder.keep([storage.memory for storage in made], finish)
            return result
        finally:
            recorder.drop()

    return call


repeat_reductions = functools.partial(repeat_calls, computes=False)


def _bind(result: Any, arguments: list[Any], values: tuple[Any, ...]) -> tuple[_Finish | None, list[Storage]]:
    """Return what makes a result again, and the new memory that it shows; None if it cannot be made."""
    parts = result if isinstance(result, (tuple, list)) else (result,)
    if not all(type(part) is Array and part.size for part in parts) or any(
        value is part for value in _flatten(values) for part in parts
    ):
        return None, []
    views = [evaluate(value_of(part)) for part in parts]
    made: list[Storage] = []
    sources = [_find_source(view.storage, arguments, made) for view in views]
    if None in sources:
        return None, []
    layouts = [(view.shape, view.dtype, view.offset, view.strides) for view in views]
    kinds = [(storage.var_type, storage.size) for storage in made]
    if parts is not result and made:
        return _finish_one(*kinds[0], layouts[0]), made
    make = (lambda arrays: arrays[0]) if parts is not result else getattr(result, "_make", type(result))

    def finish(context: Context, arguments: list[Any], memory: list[native.Buffer]) -> Any:
        new = [
            Storage.over(buffer, kind, context, size)
            for buffer, (kind, size) in zip(memory, kinds, strict=True)
        ]
        storages: list[Any] = [*new, *(getattr(item, "storage", None) for item in arguments)]
        return make(
            [array_of(View(storages[at], *layout)) for at, layout in zip(places, layouts, strict=True)]
        )

    places = [source if source >= 0 else len(made) + ~source for source in sources if source is not None]
    return finish, made


def _finish_one(kind: Any, size: int, layout: tuple[Any, ...]) -> _Finish:
    def finish(context: Context, arguments: list[Any], memory: list[native.Buffer]) -> Array:
        return array_of(View(Storage.over(memory[0], kind, context, size), *layout))

    return finish


def _flatten(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _flatten(value)
        else:
            yield value


def _find_source(storage: Storage, arguments: list[Any], made: list[Storage]) -> int | None:
    """Return the number of new memory; of the memory of an argument `~number`; None for other memory."""
    for number, argument in enumerate(arguments):
        if type(argument) is View and argument.storage.memory is storage.memory:
            # others show elements of another dtype, or are read-only
            return ~number if argument.storage is storage else None
    if storage.is_shared or storage.is_read_only:
        return None
    if storage not in made:
        made.append(storage)
    return made.index(storage)
