"""Checks of buffers and maps."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.kinds import RFFTBuffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.native_module import native
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.fft.arguments.options import Options
from vkdispatch.shader.map import MappingFunction

_Function = TypeVar("_Function", bound=Callable[..., Any])


def launch_kernel(kernel: Any, arguments: Sequence[Any], options: Options) -> None:
    """Launch or record a kernel, or a sequence of kernels, and print it if `print_shader` is set."""
    if options.print_shader:
        native.forbid_repeating()  # each call prints
        print(kernel)
    kernel(*arguments, graph=options.graph)


def takes_options(*names: str) -> Callable[[_Function], _Function]:
    """Let a function whose first argument is `buffer` take the named options by position too.

    With maps, their arguments may follow `buffer`: the options begin at the first graph or None.
    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if "buffer" in options:
                args = (options.pop("buffer"), *args)
            if not args:
                raise ArgumentValueError(f"buffer: {function.__name__} needs at least one buffer, got none")
            count = 1
            if options.get("input_map") is not None or options.get("output_map") is not None:
                while count < len(args) and not (
                    args[count] is None or isinstance(args[count], CommandGraph)
                ):
                    count += 1
            if len(args) - count > len(names):
                raise ArgumentTypeError(
                    f"{function.__name__}: takes {count + len(names)} positional arguments, got {len(args)}"
                )
            for name, value in zip(names, args[count:], strict=False):
                if name in options:
                    raise ArgumentTypeError(f"{function.__name__}: {name} is passed twice")
                options[name] = value
            return function(*args[:count], **options)

        return call  # type: ignore[return-value]

    return decorate


def require_buffer(buffer: object, name: str) -> Buffer[Any]:
    """Return a buffer. Raises TypeError for anything else."""
    if not isinstance(buffer, Buffer):
        raise ArgumentTypeError(f"{name}: expected a vd.Buffer, got {type(buffer).__name__}")
    return buffer


def check_like(name: str, buffer: object, other_name: str, other: Buffer[Any]) -> Buffer[Any]:
    """Return a buffer. Raises TypeError or ValueError unless it is one of the shape and dtype of another."""
    found = require_buffer(buffer, name)
    if found.shape != other.shape or found.var_type is not other.var_type:
        raise ArgumentValueError(
            f"{name}: expected shape {other.shape} of {other.var_type.name} as {other_name} has, got shape "
            f"{found.shape} of {found.var_type.name}"
        )
    return found


def require_rfft_buffer(buffer: object) -> RFFTBuffer:
    """Return the buffer of a real transform. Raises TypeError for anything else."""
    if not isinstance(buffer, RFFTBuffer):
        raise ArgumentTypeError(
            f"buffer: expected a vd.RFFTBuffer (see vd.asrfftbuffer), got {type(buffer).__name__}"
        )
    return buffer


def argument_count(mapping: MappingFunction | None) -> int:
    """Return the number of arguments of one side of a transform: one buffer, or the arguments of the map."""
    return 1 if mapping is None else len(mapping.buffer_types)


def require_any(buffers: Sequence[Any], needs: str) -> None:
    """Raise ValueError if there are no buffers; `needs` says what the call needs."""
    if not buffers:
        raise ArgumentValueError(f"buffers: {needs}, got none")


def require_count(name: str, args: Sequence[Any], sides: Sequence[tuple[str, int]]) -> None:
    """Raise ValueError unless there are as many arguments as the sides of a transform have."""
    wanted = sum(count for _, count in sides)
    if len(args) != wanted:
        listed = ", ".join(f"{count} for the {side}" for side, count in sides)
        numbers = any(isinstance(arg, (int, tuple)) for arg in args)
        hint = "; give options by name, such as axis=0" if numbers else ""
        raise ArgumentValueError(f"{name}: expected {wanted} arguments ({listed}), got {len(args)}{hint}")


def require_room(buffer: object, elements: int, kind: DType, role: str) -> None:
    """Raise TypeError unless it is a buffer, ValueError if it is too small."""
    buffer = require_buffer(buffer, role)
    wanted = elements * kind.item_size
    if buffer.mem_size < wanted:
        raise ArgumentValueError(
            f"{role}: {elements} values of {kind.name} take {wanted} bytes, and the buffer of shape "
            f"{tuple(buffer.shape)} and dtype {buffer.var_type.name} has {buffer.mem_size}"
        )


def parse_map(mapping: object, name: str) -> MappingFunction | None:
    """Return a map or None. Raises TypeError for anything else."""
    if mapping is not None and not isinstance(mapping, MappingFunction):
        raise ArgumentTypeError(f"{name}: expected a function decorated with @vd.map, got {mapping!r}")
    return mapping
