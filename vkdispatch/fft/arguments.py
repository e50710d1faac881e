"""Arguments of transforms, parsed and checked: buffers, shapes, axes, norms and types."""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from vkdispatch.base import dtype as dt
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.kinds import RFFTBuffer
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families import operands as axes
from vkdispatch.families.operands import require_buffer
from vkdispatch.shader.map import MappingFunction

# ---- The argument `norm`: the factor of a transform ------------------------------------------------------


Norm = Literal["backward", "ortho", "forward"]


def parse_norm(norm: object) -> Norm | None:
    """Return a norm or None. Raises ValueError for anything else."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ArgumentValueError(f'norm: expected "backward", "ortho", "forward" or None, got {norm!r}')
    return norm


def factor(norm: Norm | None, inverse: bool, length: int) -> float:
    """Return the factor of a transform along an axis, as in NumPy.

    "backward" and None divide inverse transforms by the length, "forward" divides forward transforms, and
    "ortho" divides both by the square root of the length.
    """
    if norm == "ortho":
        return 1 / math.sqrt(length)
    return 1 / length if inverse is (norm != "forward") else 1.0


def resolve_scaling(norm: object, inverse: bool, normalize: bool, length: int) -> tuple[bool, float]:
    """Return whether a transform is divided by its length, and its other factor.

    If `norm` is None, `normalize` decides. Raises ValueError for an unknown norm.
    """
    norm = parse_norm(norm)
    if norm is None:
        return normalize, 1.0
    if norm == "backward":
        return True, 1.0
    return False, factor(norm, inverse, length)


def reverse_norm(norm: object) -> Norm:
    """Return the norm whose factors are those of the opposite direction."""
    norm = parse_norm(norm)
    return "ortho" if norm == "ortho" else "backward" if norm == "forward" else "forward"


# ---- Shapes, axes and ranges as arguments ----------------------------------------------------------------


def parse_shape(shape: Any, what: str = "buffer_shape") -> tuple[int, ...]:
    """Return a shape as a tuple. Raises TypeError or ValueError if it is not one."""
    sizes = shape if isinstance(shape, Sequence) else (shape,)
    try:
        lengths = tuple(operator.index(size) for size in sizes)
    except TypeError:
        raise ArgumentTypeError(f"{what}: expected an int or a tuple of ints, got {shape!r}") from None
    if not lengths or min(lengths) < 1:
        raise ArgumentValueError(f"{what}: expected one or more axes of at least 1, got {shape!r}")
    return lengths


def parse_axis(axis: object, dimensions: int) -> int:
    """Return an axis counted from the front; None is the last one, and negative ones count from the end.

    Raises
    ------
    TypeError
        It is not an int.
    AxisError
        There is no such axis.
    """
    return dimensions - 1 if axis is None else axes.parse_axis(axis, dimensions)


def require_neighbours(shape: tuple[int, ...], axis: int) -> None:
    """Raise ValueError unless the values along an axis are contiguous, as real transforms require."""
    if math.prod(shape[axis + 1 :]) != 1:
        raise ArgumentValueError(
            f"axis: a real transform is along the last axis, got axis {axis} of the shape {shape}"
        )


def require_axes(name: str, shape: tuple[int, ...], least: int) -> None:
    """Raise ValueError unless a shape has `least` axes. `name` is that of the caller."""
    if len(shape) < least:
        raise ArgumentValueError(f"buffer: {name} takes one of at least {least} axes, got the shape {shape}")


SignalRange = tuple[int | None, int | None]


def parse_range(signal_range: object, length: int) -> tuple[int, int] | None:
    """Return the start and end of a signal, within 0 and `length`; None for the whole line.

    Raises TypeError or ValueError unless it is None or a pair of ints or None.
    """
    if signal_range is None:
        return None
    if not isinstance(signal_range, (tuple, list)) or len(signal_range) != 2:
        raise ArgumentValueError(f"input_signal_range: expected (start, end), got {signal_range!r}")
    try:
        start, end = (None if limit is None else operator.index(limit) for limit in signal_range)
    except TypeError:
        raise ArgumentTypeError(f"input_signal_range: expected ints or None, got {signal_range!r}") from None
    start = 0 if start is None else start
    end = length if end is None else end
    if start < 0 or end < 0:
        raise ArgumentValueError(f"input_signal_range: expected no negative numbers, got {signal_range!r}")
    start, end = min(start, length), min(end, length)
    return None if (start, end) == (0, length) else (start, end)


# ---- The options of a call -------------------------------------------------------------------------------


@record(eq=False)
class Options:
    """The options of a transform or convolution, as the caller passed them; see `vkdispatch.fft.fft`.

    Attributes
    ----------
    graph, print_shader
        Where to record, and whether to print the kernels.
    input_map, output_map
        Maps that read and write.
    input_type, output_type, compute_type
        Complex types of the buffers and of the computation.
    buffer_shape, axis
        Shape of the data and the transformed axis; None: the buffer's, and the last one.
    inverse, normalize, norm
        Direction and normalization. `norm` overrides `normalize`.
    r2c
        Whether the buffer is an RFFTBuffer.
    signal_range
        Start and end of the values that are read.
    """

    graph: CommandGraph | None = None
    print_shader: bool = False
    input_map: MappingFunction | None = None
    output_map: MappingFunction | None = None
    input_type: dt.DType | None = None
    output_type: dt.DType | None = None
    compute_type: dt.DType | None = None
    buffer_shape: int | Sequence[int] | None = None
    axis: int | None = None
    inverse: bool = False
    normalize: bool = True
    norm: Norm | None = None
    r2c: bool = False
    signal_range: SignalRange | None = None


# ---- Checks of buffers and maps --------------------------------------------------------------------------


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


def check_like(name: str, buffer: object, other_name: str, other: Buffer[Any]) -> Buffer[Any]:
    """Return a buffer. Raises TypeError or ValueError unless it is one of the shape and dtype of another."""
    like = require_buffer(buffer, name)
    if like.shape != other.shape or like.var_type is not other.var_type:
        raise ArgumentValueError(
            f"{name}: expected shape {other.shape} of {other.var_type.name} as {other_name} has, got shape "
            f"{like.shape} of {like.var_type.name}"
        )
    return like


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


def require_room(buffer: object, elements: int, kind: dt.DType, role: str) -> None:
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


# ---- Complex types of buffers and of the computation -----------------------------------------------------


def require_complex(kind: object, role: str) -> None:
    """Raise ValueError unless `kind` is complex32, complex64 or complex128; `role` names the argument."""
    if not (isinstance(kind, type) and issubclass(kind, dtype) and dt.is_complex(kind)):
        shown = kind.__name__ if isinstance(kind, type) else repr(kind)
        advice = (
            "; it is the buffer's dtype unless given; for real data make vd.asbuffer(data, vd.complex64), "
            "or vd.asrfftbuffer(data) for vd.fft.rfft and rfft2"
            if kind in (dt.float16, dt.float32, dt.float64)
            else ""
        )
        raise ArgumentValueError(
            f"{role}: expected vd.complex32, vd.complex64 or vd.complex128, got {shown}{advice}"
        )


def ensure_supported_complex_precision(dtype: Any, role: str = "type") -> None:
    """Raise ValueError unless `dtype` is a complex type, and NotImplementedError if the device lacks it.

    `role` names the argument in the message.
    """
    require_complex(dtype, role)
    if not supports(dtype):
        part = dt.component_type(dtype)
        error = UnsupportedError(
            f"{role}: {dtype.name}: the device does not compute in it, it has no {part.name}; "
            "use vd.complex64"
        )
        error._dtypes = (part,)
        raise error


def require_no_type(side: str, kind: dt.DType | None, mapping: MappingFunction | None) -> None:
    """Raise ValueError for the type of a side ("input", "output", "kernel") that a map reads or writes."""
    if kind is not None and mapping is not None:
        verb = "written" if side == "output" else "read"
        raise ArgumentValueError(f"{side}_type: {side}_map decides what is {verb}; leave it out")


def supports(kind: dt.DType) -> bool:
    """Whether the devices compute in a complex type. complex32 needs no support: it is packed in words."""
    infos = get_context().device_infos
    if kind is dt.complex128:
        return all(bool(info.float_64_support) for info in infos)
    return True


def choose_compute_type(*io_types: dt.DType | None) -> dt.DType:
    """Return the widest of some types, at least complex64; complex64 if the devices do not support it."""
    widest: dt.DType = dt.complex64
    for kind in io_types:
        if kind is not None and kind.item_size > widest.item_size:
            widest = kind
    return widest if supports(widest) else dt.complex64


def resolve_output_type(
    buffers: Sequence[Any], output_map: MappingFunction | None, output_type: dt.DType | None
) -> dt.DType | None:
    """Return the type of the output buffer, or None if a map writes."""
    if output_map is not None:
        require_no_type("output", output_type, output_map)
        return None
    kind = buffers[0].var_type if output_type is None and hasattr(buffers[0], "var_type") else output_type
    if kind is None:
        require_buffer(buffers[0], "output buffer")
    ensure_supported_complex_precision(kind, role="output_type")
    return kind


def resolve_input_type(
    buffers: Sequence[Any],
    input_map: MappingFunction | None,
    output_map: MappingFunction | None,
    input_type: dt.DType | None,
    output_precision: dt.DType | None,
    check: Callable[..., None] = ensure_supported_complex_precision,
) -> dt.DType | None:
    """Return the type of the input buffer, or None if a map reads.

    `check(kind, role=...)` raises for a wrong type.
    """
    if input_map is not None:
        require_no_type("input", input_type, input_map)
        return None
    if output_map is not None:
        position = len(output_map.buffer_types)
        if position >= len(buffers):
            raise ArgumentValueError(
                "buffers: with output_map and no input_map, an input buffer argument must be provided after "
                f"those of the map ({position}), got {len(buffers)} arguments"
            )
        if input_type is None:
            buffer = buffers[position]
            input_type = (
                buffer.var_type if hasattr(buffer, "var_type") else require_buffer(buffer, "input").var_type
            )
        check(input_type, role="input_type")
        return input_type
    kind = output_precision if input_type is None else input_type
    check(kind, role="input_type")
    if kind is not output_precision:
        raise ArgumentValueError(
            "input_type: without input_map one buffer is read and written, so it must be the same "
            f"as output_type; got {kind.name if kind else None} and "
            f"{output_precision.name if output_precision else None}"
        )
    return kind


def resolve_compute_type(compute_type: dt.DType | None, *io_types: dt.DType | None) -> dt.DType:
    """Return the type of the computation, checked; None takes what `choose_compute_type` returns."""
    if compute_type is None:
        return choose_compute_type(*io_types)
    ensure_supported_complex_precision(compute_type, role="compute_type")
    return compute_type
