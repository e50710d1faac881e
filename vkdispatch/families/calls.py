"""Calls of functions on buffers: the decorator, repeated calls, and maps evaluated into buffers."""

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, Concatenate, ParamSpec, TypeVar, cast, get_args, get_origin

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Array, Buffer
from vkdispatch.base.buffers.foreign import Given, has_arrays, has_foreign
from vkdispatch.base.buffers.kinds import RFFTBuffer
from vkdispatch.base.context import Context, Handle, get_context, is_current, use_context
from vkdispatch.base.dtype import DType, component_type, is_dtype
from vkdispatch.base.errors import ArgumentValueError, UnsupportedError, UsageError
from vkdispatch.base.init import is_dummy
from vkdispatch.base.memory.data import layout_of
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record
from vkdispatch.base.sharing.cuda_link import end_visits
from vkdispatch.codegen.annotations import buffer
from vkdispatch.codegen.trace.current import is_tracing
from vkdispatch.execution_pipeline.command_graph import CommandGraph, current
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.operands import parse_operand, parse_output, prepare_result, share_memory
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.shader import tracing
from vkdispatch.shader.map import MappedArray, MappingFunction, OutputMap, evaluate_with, map, mapped_index
from vkdispatch.shader.shader_function import ShaderFunction

__all__ = ["MappedArray", "MappingFunction", "OutputMap", "map", "mapped_index"]


# ---- Numbers that a call reads from the device before it continues, from every queue of a context --------
#
# A context with several queues has a copy of each buffer for each queue, and a call runs on all queues.
# What such a number decides is either decided for each queue separately, or has to be the same on all
# queues.


def read_queues(buffer: Buffer[Any], start: int = 0, stop: int | None = None) -> list[Array]:
    """Wait for a buffer and return its flat elements from `start` to `stop`, for each queue."""
    end = buffer.size if stop is None else stop
    return [buffer._read(start, (end - start,), queue) for queue in range(buffer.context.queue_count)]


def agree_on_size(sizes: Sequence[int], name: str, remedy: str) -> int:
    """Return the size of a result, which has to be the same on all queues.

    Parameters
    ----------
    name
        The argument that decides the size.
    remedy
        The argument that avoids the wait, such as "size=".

    Raises
    ------
    ValueError
        The sizes differ.
    """
    for queue, size in enumerate(sizes):
        if size != sizes[0]:
            raise ArgumentValueError(
                f"{name}: the queues of the context hold different numbers: the result would have {sizes[0]} "
                f"elements on queue 0 and {size} on queue {queue}; pass {remedy}, or have the copies of "
                "buffers agree with copy_between_queues(...)"
            )
    return sizes[0]


# ---- Repeated calls --------------------------------------------------------------------------------------
#
# The first call of a kind is recorded, and one native call repeats it for equal calls.
#
# Calls are equal if all that a function depends on is equal: the function, options, dtypes, shapes, maps,
# which arguments are the same memory, and the context. Real numbers among the arguments of maps may differ.
# The launches and new buffers of the first call are bound to the buffers of the others. A call that waits
# for the device is never bound.


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
        recorder = None if current.chosen is not None else native.repeat(function, args, kwargs)
        result: _R = recorder[0] if isinstance(recorder, tuple) else _run(recorder, function, args, kwargs)
        return result

    return call


def _run(
    recorder: native.CallRecorder | None,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call a function, and bind the call if there is a recorder."""
    if recorder is None:
        return function(*args, **kwargs)
    try:
        # no frame of its own: warnings name the caller by their distance
        with recorder:
            result = function(*recorder.args, **recorder.kwargs)
        _bind(recorder, result)
        return result
    finally:
        recorder.drop()


def call_with_parameters(
    function: Callable[..., Any], args: tuple[Any, ...], parameters: tuple[int, ...], context: Context
) -> Any:
    """Call a function that passes its last arguments, the parameters, to kernels unchanged.

    Calls with other parameters are equal.
    """
    recorder = native.repeat(function, args, {}, parameters, context)
    if isinstance(recorder, tuple):
        return recorder[0]
    return _run(recorder, function, args if recorder else (*args, *parameters), {})


def _bind(recorder: native.CallRecorder, result: Any) -> None:
    """Bind a recorded call, if its result can be made again."""
    made: list[Buffer[Any]] = []
    parts = [
        _find_finish(part, recorder.arguments, made)
        for part in (result if isinstance(result, tuple) else (result,))
    ]
    finishes = [part for part in parts if part is not None]
    finish: _Finish | None = None
    if len(finishes) == len(parts):
        finish = _finish_tuple(type(result), finishes) if isinstance(result, tuple) else finishes[0]
    recorder.keep([buffer._native for buffer in made], finish)


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


# ---- The decorator of functions on arrays, and what holds for each of their calls ------------------------


_Variant = TypeVar("_Variant")
# The dtype to give if a device does not compute with a dtype.
_INSTEAD = {
    dtype.float64: dtype.float32,
    dtype.complex128: dtype.complex64,
    dtype.int64: dtype.int32,
    dtype.uint64: dtype.uint32,
}


def array_function(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function on arrays: it runs in the context of its first array.

    Arrays of `vkdispatch.numpy` and of other libraries become buffers before the call, by the annotations of
    the parameters: `Buffer` or Any takes buffers, `ArrayLike` maps too, and with `np.ndarray` NumPy's arrays
    stay as they are.

    Raises
    ------
    RuntimeError
        The decorated function is called in a kernel, or kernels do not run on the backend.
    NotImplementedError
        The decorated function needs a dtype that a device does not support.
    """
    name = function.__name__

    def check_and_call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if is_tracing():
            raise UsageError(f"{name}: a kernel cannot call a function on arrays; call it before, or after")
        if is_dummy():
            raise UsageError(f"{name}: kernels do not run on the dummy backend")
        graph: Any = kwargs.get("graph")
        graph = current.chosen if graph is None else graph
        if isinstance(graph, CommandGraph) and not (graph.submit_on_record or graph.destroyed):
            with graph.recording_whole():
                return call_in_context(args, kwargs)
        if tracing.LEVEL >= tracing.LAUNCHES:
            with tracing.show_call(name):
                return call_in_context(args, kwargs)
        return call_in_context(args, kwargs)

    def call_in_context(args: Any, kwargs: Any) -> _R:
        context = _context_of(args, kwargs)
        if context is not None and not is_current(context) and context.usable:
            with use_context(context):
                return function(*args, **kwargs)
        return function(*args, **kwargs)

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        is_plain, given = current.chosen is not None or is_tracing(), None
        recorder = None if is_plain else native.repeat(check_and_call, args, kwargs)
        if isinstance(recorder, tuple):
            return cast(_R, recorder[0])
        if recorder is None and not (is_tracing() or is_dummy()):
            given, args, kwargs = _take_arrays(function, args, kwargs)  # type: ignore[assignment]
            if given is not None and not is_plain:
                recorder = native.repeat(check_and_call, args, kwargs)
        try:
            if isinstance(recorder, tuple):
                result = recorder[0]
            else:
                result = _run(recorder, check_and_call, args, kwargs)
            return cast(_R, given.restore(result, Buffer) if given is not None and given.pairs else result)
        except UnsupportedError as error:
            if error._dtypes:
                _raise_naming(function, args, kwargs, error)
            raise
        except (TypeError, ValueError) as error:
            for refusal in (given and given.refusals) or ():
                error.add_note(str(refusal))
            raise
        finally:
            if given is not None and given.pairs:
                end_visits(get_context())

    return call


def define_variant(
    template: Callable[Concatenate[_Variant, _P], _R], variant: _Variant, name: str, doc: str
) -> Callable[_P, _R]:
    """Return the function on arrays `name`: a template whose first argument is bound.

    Functions of one signature, such as `min` and `max`, share a template.
    """
    return array_function(bind_variant(template, variant, name, doc))


def variant_of(
    template: Callable[Concatenate[Any, _P], _R], variant: object = None
) -> Callable[[Callable[[], None]], Callable[_P, _R]]:
    """Have a stub be a variant of a function, with the name and docstring of the stub.

    `variant` is the first argument of the template; the name of the stub if it is None.
    """

    def decorate(stub: Callable[[], None]) -> Callable[_P, _R]:
        name = stub.__name__
        return define_variant(template, name if variant is None else variant, name, stub.__doc__ or "")

    return decorate


def bind_variant(
    template: Callable[Concatenate[_Variant, _P], _R], variant: _Variant, name: str, doc: str
) -> Callable[_P, _R]:
    """Return the callable that `define_variant` decorates, a partial object."""
    # a copy with the name of the function, which Python's own messages about arguments tell
    named: Any = FunctionType(
        template.__code__, template.__globals__, name, template.__defaults__, template.__closure__
    )
    named.__kwdefaults__ = template.__kwdefaults__
    bound: Any = functools.partial(named, variant)
    first, *_ = template.__code__.co_varnames
    bound.__module__ = template.__module__
    bound.__name__ = bound.__qualname__ = named.__qualname__ = name
    bound.__doc__ = doc
    named.__annotations__ = template.__annotations__
    bound.__annotations__ = {key: kind for key, kind in template.__annotations__.items() if key != first}
    result: Callable[_P, _R] = bound
    return result


@record
class _Parameters:
    """How a function takes arrays, by the annotations of its parameters.

    Attributes
    ----------
    names
        The positional parameters.
    foreign
        Those that take arrays of other libraries as buffers.
    raw
        Those that take arrays of NumPy as they are.
    mapped
        Those that take maps called with their arguments.
    """

    names: tuple[str, ...]
    foreign: frozenset[str]
    raw: frozenset[str]
    mapped: frozenset[str]


_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
_MORE = "*"  # the arguments behind the positional parameters
_AS_BUFFERS = (Any, Buffer, RFFTBuffer, MappingFunction)


@functools.cache
def _read_parameters(function: Callable[..., Any]) -> _Parameters:
    parameters = inspect.signature(function).parameters
    kinds = {name: set(_list_kinds(parameter.annotation)) for name, parameter in parameters.items()}
    kinds[_MORE] = {Any}
    return _Parameters(
        tuple(name for name, parameter in parameters.items() if parameter.kind is _POSITIONAL),
        *(
            frozenset(name for name, parts in kinds.items() if not parts.isdisjoint(wanted))
            for wanted in (_AS_BUFFERS, (np.ndarray,), (MappedArray,))
        ),
    )


def _list_kinds(annotation: Any) -> Iterator[Any]:
    """Yield the classes that an annotation names."""
    kind = get_origin(annotation)
    if kind in (None, Buffer, np.ndarray):
        yield kind or annotation
    else:
        for part in get_args(annotation):
            yield from _list_kinds(part)


def _take_arrays(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Given | None, tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with buffers and maps in place of arrays, and which these are."""
    values = (*args, *kwargs.values())
    if not has_arrays(values) and not has_foreign(values):
        return None, args, kwargs
    known = _read_parameters(function)
    names = (*known.names[: len(args)], *[_MORE] * (len(args) - len(known.names)), *kwargs)
    is_recorded_call = is_recorded(kwargs.get("graph"))
    for is_mapped in (False,) if is_recorded_call else (True, False):
        given = Given(is_recorded_call, refusals=[])
        taken = []
        for name, value in zip(names, values, strict=True):
            keeps = name not in known.foreign or (name in known.raw and isinstance(value, np.ndarray))
            foreign = "" if keeps else function.__name__
            taken.append(given.replace(value, foreign, is_mapped and name in known.mapped))
        written = [value for name, value in zip(names, taken, strict=True) if name not in known.mapped]
        if not is_mapped or not _maps_read_any(given, written):
            break  # else maps would read what the call writes
    return given, tuple(taken[: len(args)]), dict(zip(kwargs, taken[len(args) :], strict=True))


def _maps_read_any(given: Given, written: list[Any]) -> bool:
    """Whether maps that stand for arrays read memory that a call may write."""
    read = [item for _, array in given.pairs if isinstance(array, MappedArray) for item in array.arguments]
    return any(
        share_memory(item, buffer)
        for value in written
        for buffer in (value if isinstance(value, (tuple, list)) else (value,))
        for item in read
    )


def _raise_naming(function: Callable[..., Any], args: Any, kwargs: Any, error: UnsupportedError) -> None:
    """Raise an error that names the arguments with, or leading to, a dtype that a device lacks."""
    dtypes = {
        name: list(_dtypes_of(value))
        for name, value in inspect.signature(function).bind(*args, **kwargs).arguments.items()
    }
    reason = error._reason or str(error.args[0]).split(";")[0]
    for name, kinds in dtypes.items():
        for kind in kinds:
            if component_type(kind) in error._dtypes:
                instead = _INSTEAD.get(kind)
                hint = f"pass {instead.name}" if instead else "use another dtype"
                _raise_unsupported(f"{name}: {kind.name} was passed, but {reason}; {hint}", reason, error)
    names = [name for name, kinds in dtypes.items() if kinds]
    if names and not error._reason:
        given = ", ".join(dict.fromkeys(kind.name for name in names for kind in dtypes[name]))
        text = f"{', '.join(names)}: the call needs more than the device has for {given}: {reason}"
        _raise_unsupported(text, reason, error)


def _raise_unsupported(text: str, reason: str, cause: UnsupportedError) -> None:
    error = UnsupportedError(text)
    error._dtypes, error._reason = cause._dtypes, reason
    raise error from None


def _dtypes_of(value: Any) -> Iterator[DType]:
    """Yield the dtype of an argument, or the dtypes of the arrays in it."""
    for item in value if isinstance(value, (tuple, list)) else (value,):
        if isinstance(item, type) and is_dtype(item):
            yield item
        elif isinstance(item, (Buffer, MappedArray)):
            yield item.var_type
            for other in item.arguments if isinstance(item, MappedArray) else ():
                if isinstance(other, Buffer):
                    yield other.var_type


def is_recorded(graph: CommandGraph | None) -> bool:
    """Whether a call is recorded into a graph that runs later, so that it cannot wait."""
    return graph is not None or current.chosen is not None


def _context_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Context | None:
    """Return the context of the first buffer or graph among the arguments, else of the first mapped array."""
    mapped: Context | None = None
    for value in (*args, *kwargs.values()) if kwargs else args:
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, Handle):
                return item.context
            if mapped is None and isinstance(item, MappedArray):
                mapped = item.context
    return mapped


# ---- Evaluation of mapped arrays into buffers ------------------------------------------------------------


_GROUP = 256


@array_function
def asbuffer(array: MappedArray) -> Buffer[Any]:
    """Return a buffer of the values of a mapped array, which one kernel computes at once or in a graph."""
    values = parse_operand(array, "array")
    buffer = prepare_result(None, values.shape, values.var_type, values.context)
    if buffer.size:
        _make_store_kernel(values.source.elementwise())(buffer, *values.arguments)
    return buffer


evaluate_with(asbuffer)


@store_results
def _make_store_kernel(source: Source) -> ShaderFunction:
    sink = parse_output(None, source.out_type).sink

    def body(result: vc.BufferVariable, *variables: Any) -> None:
        index = vc.global_invocation_id().x
        sink.store(result, (), index, source.value(variables, index))

    arguments = [("result", buffer[source.out_type]), *source.parameters]
    return trace_kernel(f"evaluate_{source.mapping.name}", body, arguments, _GROUP, exec_size="result.size")
