"""Mapping functions: parts of kernels that transforms and functions on arrays apply to each element."""

from __future__ import annotations

import inspect
import math
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast, overload

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch import control_flow
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.foreign import replace_arrays
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType, component_type, is_complex, is_float_dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.base.memory.protocols import HostProtocols
from vkdispatch.base.process import Listed
from vkdispatch.codegen.annotations import buffer, constant
from vkdispatch.codegen.constant_arrays import watch_copies
from vkdispatch.codegen.trace.current import has_flag, is_tracing, precise_math
from vkdispatch.compiler.ir import Register, ShaderFlags
from vkdispatch.compiler.ir.location import fixed_place, located
from vkdispatch.execution_pipeline.command_graph import pause_recording
from vkdispatch.execution_pipeline.recordable import BoundVariable
from vkdispatch.shader.arguments import check_elements, format_annotation
from vkdispatch.shader.dependencies import Edition
from vkdispatch.shader.pickling import Home, Referenced, find_home
from vkdispatch.shader.signature import (
    describe,
    describe_function,
    find_return_type,
    is_value,
    read_signature,
)


class _State(threading.local):
    index: Any = None


_state = _State()


def mapped_index() -> vc.ShaderVariable:
    """Return the flat index of the element that is being mapped.

    A GPU value (uint32) while a mapping function is traced; None outside. Raises RuntimeError in a kernel
    where no element is mapped: in a map of `vd.fft`, which has `vd.fft.read_op().io_index`, or in a map that
    a kernel calls.

    Examples
    --------
    >>> @vd.map
    ... def weighted(x: f32) -> f32:
    ...     return x * vd.mapped_index()
    >>> float(vd.sum(weighted(vd.asbuffer(np.ones(4, np.float32)))))
    6.0
    """
    if _state.index is None and is_tracing():
        raise located(
            UsageError,
            "mapped_index: no element of an array is mapped here; a map of vd.fft has "
            "vd.fft.read_op().io_index or vd.fft.write_op().io_index, and to a map that a kernel calls the "
            "index can be passed",
        )
    return cast(vc.ShaderVariable, _state.index)


mapped_io_index = mapped_index  # its name in vd.reduce


@contextmanager
def mapped_at(index: Any) -> Iterator[None]:
    """Let `mapped_index` return `index` while a mapping function is traced."""
    from vkdispatch.codegen.execution.invocation import without_invocation  # something is traced

    outer, _state.index = _state.index, index
    try:
        with without_invocation("vd.mapped_index() is the index of the element"):
            yield
    finally:
        _state.index = outer


@dataclass(frozen=True, eq=False)
class MappingFunction(Referenced, Listed):
    """A function that is traced inside other kernels.

    It is equal to maps that are made anew of the same code while what this reads is the same, and such maps
    share their kernels. What it reads from outside is noticed as with `vd.shader`.

    It is pickled by module and name, as Python functions are, or by value if no module has it: its function,
    with the values that this refers to.

    Attributes
    ----------
    buffer_types
        Annotations of its arguments, such as `Buff[f32]`. A dtype alone stands for a *value*: an element of
        the argument.
    return_type
        Dtype of the result, or None.
    mapping_function
        The Python function.
    precise_math
        Whether its mathematical functions are the precise ones and its result rounds as it is written,
        whatever kernel it is part of.
    """

    buffer_types: list[Any]
    return_type: DType | None
    mapping_function: Callable[..., Any]
    instance_id: uuid.UUID = field(default_factory=uuid.uuid4)
    precise_math: bool = False

    _edition: ClassVar[Edition | None] = None

    @property
    def arity(self) -> int:
        """The number of its arguments."""
        return len(self.buffer_types)

    @property
    def version(self) -> Any:
        """What is equal as long as what the function reads from outside is.

        It is the hash of the map, so that what is memoized for a map is made anew after a change.
        """
        edition = self._edition
        if edition is None:
            family = tuple(self.buffer_types), self.return_type, self.precise_math
            edition = Edition(self.mapping_function, first=self.instance_id, family=family)
            object.__setattr__(self, "_edition", edition)
        return edition.find()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MappingFunction) and other.version == self.version

    def __hash__(self) -> int:
        return hash(self.version)

    def _home(self) -> Home | None:
        return find_home(self.mapping_function)

    def _describe(self) -> str:
        return f"map {self.name!r}"

    def _get_state(self) -> tuple[Any, ...]:
        # Loading the evaluation imports the layer above, which computes called maps.
        options = self.return_type, self.precise_math, _evaluate
        return self.mapping_function, list(self.buffer_types), *options

    def _set_state(self, *state: Any) -> None:
        function, buffer_types, return_type, is_precise, _ = state
        MappingFunction.__init__(self, buffer_types, return_type, function, precise_math=is_precise)

    def _arrive(self, key: bytes) -> None:
        # Plans that a context keeps for a map serve an equal one that is loaded later.
        object.__setattr__(self, "instance_id", uuid.UUID(bytes=key))
        object.__setattr__(self, "_edition", None)

    def __repr__(self) -> str:
        taken = ", ".join(format_annotation(annotation) for annotation in self.buffer_types)
        result = f" -> {self.return_type.name}" if self.return_type is not None else ""
        return f"<map {self.name!r}: ({taken}){result}>"

    @property
    def name(self) -> str:
        """The name of the function."""
        return getattr(self.mapping_function, "__name__", "map")

    @property
    def parameter_names(self) -> list[str]:
        """Names of its arguments; param0, param1... where the function does not name them one by one."""
        names, count = list(inspect.signature(self.mapping_function).parameters), self.arity
        return names if len(names) == count else [f"param{i}" for i in range(count)]

    def __call__(self, *arguments: Any) -> Any:
        """Return the array that the map computes from its arguments, or a map for an output.

        Parameters
        ----------
        *arguments
            One for each parameter. A *value* parameter, annotated with a dtype alone, takes an array (a
            buffer, or a called map), of which it gets the element at the mapped index, or a number. All other
            parameters take the same arguments as in kernels. If the first parameter, a value, is left out,
            the result is a map for the output of a function on arrays, which supplies the value.

        Returns
        -------
        MappedArray or OutputMap; inside a kernel, the map's result for the arguments.

        Raises
        ------
        TypeError, ValueError
            There are too few or too many arguments, an argument has the wrong type or value, or the arrays
            for value parameters do not broadcast.
        """
        if is_tracing():
            return self.callback(*arguments)
        values = [is_value(annotation) for annotation in self.buffer_types]
        if len(arguments) == len(values):
            return MappedArray(self, arguments)
        if len(arguments) == len(values) - 1 and values[0]:
            return OutputMap(self, arguments)
        raise ArgumentTypeError(
            f"map {self.name!r}: takes {len(values)} arguments by position, got {len(arguments)}"
        )

    def trace(self, *variables: Any) -> Any:
        """Trace the function on variables of the kernel being traced, and return what it returns."""
        with fixed_place(False), precise_math(self.precise_math), watch_copies() as copied:
            result = control_flow.prepare_function(self.mapping_function)(*variables)
        if self._edition is not None:
            self._edition.settle(copied)
        if self.precise_math and isinstance(result, vc.ShaderVariable) and not _rounds(result):
            return vc.precise(result)
        return result

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
                raise ArgumentValueError(f"map {self.name!r} must return a {self.return_type.name}, got None")
            register[:] = result
        return register


class DeferredMap(MappingFunction):
    """A map of the package's own. Its annotations are made when it is traced, which launches may not need.

    Attributes
    ----------
    kinds, numbers
        Types of the elements of its buffers, and of the numbers that follow them.
    """

    __match_args__ = ("mapping_function", "kinds", "numbers", "return_type", "precise_math")

    kinds: tuple[DType, ...]
    numbers: tuple[DType, ...]

    def __init__(
        self,
        function: Callable[..., Any],
        kinds: tuple[DType, ...],
        numbers: tuple[DType, ...],
        return_type: DType,
        key: Any = None,
        *,
        precise_math: bool = False,
    ) -> None:
        """Make a map, which is equal to others of its function, types and `key`."""
        values = function, kinds, numbers, return_type, precise_math
        for name, value in zip(self.__match_args__, values, strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_version", (DeferredMap, key or function, kinds, numbers, return_type))

    @property
    def buffer_types(self) -> list[Any]:
        """Annotations of its arguments."""
        return [*(buffer[kind] for kind in self.kinds), *(constant[kind] for kind in self.numbers)]

    @property
    def arity(self) -> int:
        """The number of its arguments."""
        return len(self.kinds) + len(self.numbers)

    @property
    def version(self) -> Any:
        """What equal maps have in common."""
        return self.__dict__["_version"]


def _rounds(result: vc.ShaderVariable) -> bool:
    """Whether all that makes up a map's result rounds anyhow."""
    held = result.expr.value
    is_exact = not is_float_dtype(component_type(result.var_type))
    return is_exact or has_flag(ShaderFlags.PRECISE_MATH) or (isinstance(held, Register) and held.precise)


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
    """Make a mapping function. Also usable as the decorators `@vd.map` and `@vd.map(precise_math=True)`.

    Parameters
    ----------
    func
        The function, traced wherever the map is used. None returns a decorator with the other arguments.
    return_type
        Dtype of the result; None takes the return annotation.
    input_types
        Annotations used instead of the function's own.
    precise_math
        Whether functions of float32 and float16 such as `vc.sin` are computed as in a kernel with
        `precise_math`, in this map and in the functions that it calls, whatever kernel it is part of, and
        each operation that the result is made of rounds. False leaves that to the kernel. The kernels of
        functions on arrays use the device's own.

    Raises
    ------
    ValueError
        An argument has no annotation.
    TypeError
        An annotation has no dtype, `func` is not callable, or `precise_math` is not a bool.

    Examples
    --------
    >>> @vd.map
    ... def squared(x: f32) -> f32:
    ...     return x * x
    >>> float(vd.sum(squared(vd.asbuffer(np.array([1, 2, 3], np.float32)))))
    14.0
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
                f"{describe_function(func)}: argument {name!r}: expected an annotation such as Buff[f32] or "
                f"f32, got {annotation!r}"
            )
    return_type = return_type or find_return_type(func, f"{describe_function(func)}: ")
    return MappingFunction(list(signature.annotations), return_type, func, precise_math=precise_math)


class MappedArray(HostProtocols, Listed):
    """An array that is computed when it is read: a map and its arguments. Functions on arrays take it.

    Attributes
    ----------
    mapping
        The map.
    arguments
        Its arguments.
    shape, size
        The shape to which the arrays for value parameters broadcast, as in NumPy; if there are none, the
        shape of the first buffer.
    var_type
        The map's return type.
    context
        The context of its buffers.
    """

    __slots__ = ("__weakref__", "arguments", "context", "mapping", "shape", "size", "var_type")

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
            raise ArgumentValueError(
                f"map {name!r}: it needs a buffer among its arguments, which gives the shape"
            )
        self.shape = shape if arrays else buffers[0].shape
        self.size = math.prod(self.shape)
        self.context: Context = (arrays or buffers)[0].context

    def read(self, index: int | None = None, out: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
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
        with pause_recording():
            return self.__vkdispatch_buffer__(None).read(index, out)

    def __vkdispatch_buffer__(self, context: Context | None) -> Buffer[Any]:
        if context is not None and context is not self.context:
            raise ArgumentValueError(
                f"context: map {self.mapping.name!r} is computed in the context of its arguments, "
                "which is another one; omit context"
            )
        if _evaluate is None:
            raise UsageError("importing vkdispatch.families.calls makes maps arrays; vd.map does so")
        return _evaluate(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.mapping, self.arguments)

    def __repr__(self) -> str:
        return f"<{self.mapping.name!r} mapped: {self.shape} of {self.var_type.name}>"


# The function that computes called maps. A layer above sets it.
_evaluate: Callable[[MappedArray], Buffer[Any]] | None = None


def evaluate_with(function: Callable[[MappedArray], Buffer[Any]]) -> None:
    """Set the function that computes called maps."""
    global _evaluate
    _evaluate = function


class OutputMap(Listed):
    """A map for the output of a function on arrays, and its arguments beyond the value.

    Attributes
    ----------
    mapping
        The map.
    arguments
        Its arguments, without the first, the value.
    shape
        The shape to which the arrays for value parameters broadcast; () if there are none.
    """

    __slots__ = ("arguments", "mapping", "shape")

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
    return replace_arrays(tuple(arguments), False, "map") or tuple(arguments)


def _parse_values(
    mapping: MappingFunction, annotations: Sequence[Any], arguments: Sequence[Any]
) -> tuple[list[Any], tuple[int, ...]]:
    """Check arguments. Return the arrays among the values, and the shape to which they broadcast."""
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
                name = mapping.parameter_names[position - len(annotations) - 1]
                raise ArgumentValueError(
                    f"{where}: expected {name!r} to broadcast with the shape {shape} of the arrays "
                    f"before it, got {argument.shape}"
                ) from None
        arrays.append(argument)
    return arrays, shape
