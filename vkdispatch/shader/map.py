"""Mapping functions: pieces of kernel that transforms and functions on arrays apply to each element."""

import inspect
import math
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast, overload

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.array_arguments import replace_arrays
from vkdispatch.base.buffer import Buffer, parse_dtype
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType, dtype, is_complex
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.base.host.protocols import HostProtocols
from vkdispatch.base.process.listing import Listed
from vkdispatch.codegen.trace.recording import is_tracing, precise_math
from vkdispatch.execution_pipeline.command_graph import BoundVariable, current
from vkdispatch.rewrite.functions import inlined
from vkdispatch.shader.arguments.parameters import check_element, describe
from vkdispatch.shader.arguments.references import Home, Referenced, home_of
from vkdispatch.shader.arguments.signature import read_signature


class _State(threading.local):
    index: Any = None


_state = _State()


def mapped_index() -> vc.ShaderVariable:
    """Return the flat index of the element that is being mapped.

    A GPU value (uint32) while a mapping function is traced; None outside.
    """
    return cast(vc.ShaderVariable, _state.index)


@contextmanager
def mapped_at(index: Any) -> Iterator[None]:
    """Let `mapped_index` return this while a mapping function is traced."""
    outer, _state.index = _state.index, index
    try:
        yield
    finally:
        _state.index = outer


@dataclass(frozen=True, eq=False)
class MappingFunction(Referenced, Listed):
    """A function to be traced inside another kernel. Equal only to itself.

    It is copied and pickled as Python functions are: by module and name.

    Attributes
    ----------
    buffer_types
        Annotations of its arguments, such as `Buff[f32]`; a dtype alone is a *value*: an element of what it
        is called with.
    return_type
        Dtype of the result, or None.
    mapping_function
        The Python function.
    precise_math
        Whether its functions of mathematics are the precise ones, whatever kernel it is part of.
    """

    buffer_types: list[Any]
    return_type: DType | None
    mapping_function: Callable[..., Any]
    instance_id: uuid.UUID = field(default_factory=uuid.uuid4)
    precise_math: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MappingFunction) and other.instance_id == self.instance_id

    def __hash__(self) -> int:
        return hash(self.instance_id)

    def _home(self) -> Home | None:
        return home_of(self.mapping_function)

    def _describe(self) -> str:
        return f"map {self.name!r}"

    def __repr__(self) -> str:
        taken = ", ".join(_annotation_text(each) for each in self.buffer_types)
        result = f" -> {self.return_type.name}" if self.return_type is not None else ""
        return f"<map {self.name!r}: ({taken}){result}>"

    @property
    def name(self) -> str:
        """What the function is called."""
        return getattr(self.mapping_function, "__name__", "map")

    def __call__(self, *arguments: Any) -> Any:
        """Return the array that the map makes of its arguments, or the map that awaits a value.

        Parameters
        ----------
        *arguments
            One for each parameter. A *value* parameter, annotated with a dtype alone, takes an array (a
            buffer, or a map called), of which it gets the element at the mapped index, or a number. All other
            parameters take what they take in kernels. Without the first, which is a value then, the map is
            one for the output of a function on arrays, which gives it the value.

        Returns
        -------
        MappedArray or OutputMap. Inside a kernel: the map's result for the arguments.

        Raises
        ------
        TypeError, ValueError
            There are too few or too many arguments, an argument has the wrong type or value, or the arrays
            for value parameters do not broadcast.
        """
        if is_tracing():
            return self.callback(*arguments)
        values = [is_value(each) for each in self.buffer_types]
        if len(arguments) == len(values):
            return MappedArray(self, arguments)
        if len(arguments) == len(values) - 1 and values[0]:
            return OutputMap(self, arguments)
        raise ArgumentTypeError(
            f"map {self.name!r}: takes {len(values)} arguments by position, got {len(arguments)}"
        )

    def trace(self, *variables: Any) -> Any:
        """Trace the function on variables of the kernel being traced, and return what it returns."""
        with precise_math(self.precise_math):
            return inlined(self.mapping_function)(*variables)

    def callback(self, *variables: Any) -> Any:
        """Trace the function, in a block of its own, on variables of the kernel being traced.

        Returns
        -------
        A register that holds the result, or None without `return_type`.

        Raises
        ------
        ValueError
            The function returned nothing although it has a return type.
        """
        if self.return_type is None:
            with vc.scope_block():
                result = self.trace(*variables)
            if result is not None:
                raise ArgumentValueError(
                    f"map {self.name!r} returns a value, but has no return annotation, such as -> f32"
                )
            return None
        register = vc.new_register(self.return_type)
        with vc.scope_block():
            result = self.trace(*variables)
            if result is None:
                raise ArgumentValueError(
                    f"map {self.mapping_function.__name__!r} must return a {self.return_type.name}, got None"
                )
            register[:] = result
        return register


@overload
def map(
    func: Callable[..., Any],
    return_type: DType | None = None,
    input_types: Sequence[Any] | None = None,
    *,
    precise_math: bool = False,
) -> MappingFunction: ...
@overload
def map(
    func: None = None,
    return_type: DType | None = None,
    input_types: Sequence[Any] | None = None,
    *,
    precise_math: bool = False,
) -> Callable[[Callable[..., Any]], MappingFunction]: ...
def map(
    func: Callable[..., Any] | None = None,
    return_type: DType | None = None,
    input_types: Sequence[Any] | None = None,
    *,
    precise_math: bool = False,
) -> MappingFunction | Callable[[Callable[..., Any]], MappingFunction]:
    """Make a mapping function; also usable as the decorators `@vd.map` and `@vd.map(precise_math=True)`.

    Parameters
    ----------
    func
        Traced where the map is used. None returns a decorator that has the other arguments.
    return_type
        Dtype of the result; None takes the return annotation.
    input_types
        Annotations used instead of the function's own.
    precise_math
        Whether functions of float32 and float16 such as `vc.sin` are computed as in a kernel with
        `precise_math`, in this map and in what it calls, whatever kernel it is part of. False leaves that to
        the kernel; those of functions on arrays use the device's own.

    Raises
    ------
    ValueError
        An argument has no annotation.
    TypeError
        An annotation has no dtype, `func` is not callable, or `precise_math` is no truth value.
    """
    if not isinstance(precise_math, bool):
        raise ArgumentTypeError(f"precise_math: expected True or False, got {precise_math!r}")
    if func is None:
        return lambda func: map(func, return_type, input_types, precise_math=precise_math)
    if not callable(func):
        raise ArgumentTypeError(f"func: expected a function, got {func!r}")
    signature = read_signature(func, input_types)
    for name, annotation in zip(signature.names, signature.annotations, strict=True):
        if not is_value(annotation) and not getattr(annotation, "__args__", None):
            raise ArgumentTypeError(
                f"argument {name!r}: expected an annotation such as Buff[f32] or f32, got {annotation!r}"
            )
    return MappingFunction(
        list(signature.annotations), return_type or _return_type(func), func, precise_math=precise_math
    )


# as annotations are mostly written
_SHORT: dict[Any, str] = {vc.Buffer: "Buff", vc.Constant: "Const", vc.Variable: "Var"}


def _annotation_text(annotation: Any) -> str:
    if is_value(annotation):
        return str(annotation.name)
    inner = ", ".join(_annotation_text(each) for each in getattr(annotation, "__args__", ()))
    origin = getattr(annotation, "__origin__", annotation)
    name = _SHORT.get(origin, origin.__name__)
    return f"{name}[{inner}]" if inner else name


def is_value(annotation: object) -> bool:
    """Whether a parameter with this annotation takes a value."""
    return isinstance(annotation, type) and issubclass(annotation, dtype) and hasattr(annotation, "name")


class MappedArray(HostProtocols, Listed):
    """An array that is computed where it is read: a map and its arguments. Functions on arrays take it.

    Attributes
    ----------
    mapping
        The map.
    arguments
        What it is called with.
    shape, size
        The shape to which the arrays for value parameters broadcast, as in NumPy; if there are none, the
        shape of the first buffer.
    var_type
        The map's return type.
    context
        Where its buffers are.
    """

    __slots__ = ("__weakref__", "arguments", "context", "mapping", "shape", "size", "var_type")

    mapping: MappingFunction
    arguments: tuple[Any, ...]
    shape: tuple[int, ...]
    size: int
    var_type: DType
    context: Context

    def __init__(self, mapping: MappingFunction, arguments: Sequence[Any]) -> None:
        """See `MappingFunction.__call__`."""
        name = mapping.name
        if mapping.return_type is None:
            raise ArgumentValueError(
                f"map {name!r}: it needs a return annotation, such as -> f32: the dtype of its elements"
            )
        self.mapping = mapping
        self.arguments = _with_buffers(arguments)
        self.var_type = mapping.return_type
        arrays, shape = _parse_values(mapping, mapping.buffer_types, self.arguments)
        buffers = [each for each in self.arguments if isinstance(each, (Buffer, MappedArray))]
        if not buffers:
            raise ArgumentValueError(f"map {name!r}: it needs a buffer among its arguments: the shape is its")
        self.shape = shape if arrays else buffers[0].shape
        self.size = math.prod(self.shape)
        self.context = (arrays or buffers)[0].context

    def read(
        self, index: int | None = None, out: "np.ndarray[Any, Any] | None" = None
    ) -> "np.ndarray[Any, Any]":
        """Compute the array, wait for it, and return it. A global graph does not record this.

        Parameters
        ----------
        index
            The queue whose copies of the buffers are used; None stacks the results of all queues along a new
            leading axis.
        out
            As for `Buffer.read`.

        Returns
        -------
        What `Buffer.read` returns for a buffer of this shape and dtype.

        Raises
        ------
        ValueError
            There is no such queue, `out` does not fit, or an argument is a graph's variable.
        """
        chosen, current.chosen = current.chosen, None
        try:
            return self.__vkdispatch_buffer__(None).read(index, out)
        finally:
            current.chosen = chosen

    def __vkdispatch_buffer__(self, context: Context | None) -> Buffer[Any]:
        if context is not None and context is not self.context:
            raise ArgumentValueError(
                f"context: map {self.mapping.name!r} is computed where its arguments are, and they lie in "
                "another context; leave it out"
            )
        if _evaluation.function is None:
            raise UsageError("importing vkdispatch.arrays.evaluation makes maps arrays; vd.map does so")
        return _evaluation.function(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.mapping, self.arguments)

    def __repr__(self) -> str:
        return f"<{self.mapping.name!r} mapped: {self.shape} of {self.var_type.name}>"


class _Evaluation:
    """What computes a map called with its arguments: it needs all that stands above."""

    function: Callable[[MappedArray], Buffer[Any]] | None = None


_evaluation = _Evaluation()


def evaluate_with(function: Callable[[MappedArray], Buffer[Any]]) -> None:
    """Have maps computed by a function of the layer above."""
    _evaluation.function = function


class OutputMap(Listed):
    """A map for the output of a function on arrays, and its arguments beyond the value.

    Attributes
    ----------
    mapping
        The map.
    arguments
        What it is called with, without the first, the value.
    shape
        The shape to which the arrays for value parameters broadcast; () if there are none.
    """

    __slots__ = ("arguments", "mapping", "shape")

    mapping: MappingFunction
    arguments: tuple[Any, ...]
    shape: tuple[int, ...]

    def __init__(self, mapping: MappingFunction, arguments: Sequence[Any]) -> None:
        """See `MappingFunction.__call__`."""
        self.mapping = mapping
        self.arguments = _with_buffers(arguments)
        _, self.shape = _parse_values(mapping, mapping.buffer_types[1:], self.arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.mapping, self.arguments)

    def __repr__(self) -> str:
        count = len(self.arguments)
        return f"<{self.mapping.name!r} for an output: {count} argument{'s' * (count != 1)} beyond the value>"


def _with_buffers(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return arguments with arrays of `vkdispatch.numpy` as buffers."""
    replaced = replace_arrays(tuple(arguments), {}, False)
    return tuple(arguments) if replaced is None else replaced[1]


def _parse_values(
    mapping: MappingFunction, annotations: Sequence[Any], arguments: Sequence[Any]
) -> tuple[list[Any], tuple[int, ...]]:
    """Return the arrays that give values, checked, and the shape to which they broadcast."""
    arrays: list[Any] = []
    shape: tuple[int, ...] = ()
    for position, (annotation, argument) in enumerate(zip(annotations, arguments, strict=True), 1):
        where = f"map {mapping.name!r}: argument {position}"
        if not is_value(annotation):
            if isinstance(argument, MappedArray):
                raise ArgumentTypeError(
                    f"{where}: only a value parameter, such as x: f32, takes a map; it has {annotation}"
                )
            check_elements(where, annotation, argument)
            continue
        if isinstance(argument, (int, float, complex, np.generic, BoundVariable)):
            continue
        if not isinstance(argument, (Buffer, MappedArray)):
            raise ArgumentTypeError(
                f"{where}: expected a vd.Buffer, a map called with its arguments, or a number, got "
                f"{describe(argument)}"
            )
        if is_complex(argument.var_type) and not is_complex(annotation):
            raise ArgumentValueError(
                f"{where}: expected {annotation.name}, got {argument.var_type.name}; map its parts"
            )
        if not arrays:
            shape = argument.shape
        elif argument.shape != shape:
            try:
                shape = np.broadcast_shapes(shape, argument.shape)
            except ValueError:
                raise ArgumentValueError(
                    f"{where}: expected {_name_of(mapping, len(annotations) + 1 - position)} to broadcast "
                    f"with the shape {shape} of the arrays before it, got {argument.shape}"
                ) from None
        arrays.append(argument)
    return arrays, shape


def _name_of(mapping: MappingFunction, from_last: int) -> str:
    """Return how messages call the parameter that stands so far from the end."""
    names = list(inspect.signature(mapping.mapping_function).parameters)
    return repr(names[-from_last]) if len(names) == len(mapping.buffer_types) else "an array"


def check_elements(label: str, annotation: Any, argument: Any) -> None:
    """Raise WrongBufferError where a parameter annotated `Buff[...]` gets a buffer of another dtype."""
    if isinstance(argument, Buffer) and getattr(annotation, "__origin__", None) is vc.Buffer:
        check_element(label, parse_dtype(annotation.__args__[0]), argument.var_type)


def _return_type(func: Callable[..., Any]) -> DType | None:
    annotation = inspect.signature(func).return_annotation
    if isinstance(annotation, str):
        annotation = eval(annotation, getattr(func, "__globals__", {}))
    if annotation in (inspect.Signature.empty, None):
        return None
    if not (isinstance(annotation, type) and issubclass(annotation, dtype)):
        raise ArgumentTypeError(f"return annotation: expected a dtype such as vd.float32, got {annotation!r}")
    return annotation
