"""Convolutions of buffers along one axis or two, and the layout of kernels that makes them fastest."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from vkdispatch.arrays.aliasing import check_apart
from vkdispatch.arrays.calls import array_function
from vkdispatch.arrays.numbers import checked_int
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType, is_complex
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.rfft_buffer import RFFTBuffer
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.fft.api.shaders import make_transpose_shader
from vkdispatch.fft.api.transforms import _shape_and_axis, fft
from vkdispatch.fft.arguments.buffers import (
    argument_count,
    checked_map,
    require_buffer,
    require_count,
    require_rfft_buffer,
    require_room,
    show,
)
from vkdispatch.fft.arguments.shapes import SignalRange, checked_axis, checked_range, checked_shape
from vkdispatch.fft.arguments.types import (
    choose_compute_type,
    ensure_supported_complex_precision,
    resolve_compute_type,
    resolve_input_type,
    resolve_output_type,
)
from vkdispatch.fft.convolve.kernels import (
    Convolution,
    checked_kernel_type,
    convolution_kernel,
    get_transposed_size,
    kernel_elements,
    plan_back,
)
from vkdispatch.fft.convolve.planes import PlaneConvolution, plane_convolution
from vkdispatch.fft.plan.passes import plan_pass
from vkdispatch.fft.plan.transforms import Transform
from vkdispatch.shader.map import MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction

_Function = TypeVar("_Function", bound=Callable[..., Any])


@array_function
def convolve(
    *buffers: Any,
    kernel_map: MappingFunction | None = None,
    kernel_num: int = 1,
    buffer_shape: Sequence[int] | None = None,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    axis: int | None = None,
    normalize: bool = True,
    name: str | None = None,
    transposed_kernel: bool = False,
    kernel_inner_only: bool = False,
    input_map: MappingFunction | None = None,
    output_map: MappingFunction | None = None,
    output_type: DType | None = None,
    input_type: DType | None = None,
    kernel_type: DType | None = None,
    compute_type: DType | None = None,
    input_signal_range: SignalRange | None = None,
) -> None:
    """Multiply the spectrum along an axis by the conjugate of a kernel's, and transform back, in place.

    The kernel is given as its spectrum, so that the outcome is the circular cross-correlation with what `fft`
    made the spectrum of.

    Parameters
    ----------
    *buffers
        The output and the input as in `fft` (one buffer where there are no maps), then the kernel: a complex
        buffer, or the arguments of `kernel_map`.
    kernel_map
        Called for each value of the spectrum, which it changes: `read_op().register`.
    kernel_num
        How many kernels are applied to one spectrum, one after another: a buffer has them one behind another,
        maps tell them apart by `mapped_kernel_index()`. An output map puts each outcome where it belongs.
    buffer_shape, graph, print_shader, axis, name
        As for `fft`.
    input_map, output_map, output_type, input_type, compute_type
        As for `fft`.
    normalize
        Whether the outcome is divided by the length.
    transposed_kernel
        Whether the kernel is in the layout that `transpose` makes.
    kernel_inner_only
        Whether the kernel lacks the axes before the transformed one, so that it is the same for all of them.
    kernel_type
        Complex type of the kernel's buffer, if other than its own dtype.
    input_signal_range
        (start, end): values outside are not read and count as zero.

    Raises
    ------
    TypeError, ValueError
        Arguments are missing or wrong, or a buffer is too small.
    AxisError
        There is no such axis.
    """
    input_map, output_map = checked_map(input_map, "input_map"), checked_map(output_map, "output_map")
    kernel_map = checked_map(kernel_map, "kernel_map")
    if not buffers:
        raise ArgumentValueError("buffers: a convolution needs a buffer and a kernel, got none")
    written = resolve_output_type(buffers, output_map, output_type)
    read = resolve_input_type(buffers, input_map, output_map, input_type, written)
    sides = [("signal", 1)]
    if input_map is not None or output_map is not None:
        sides = [("output", argument_count(output_map)), ("input", argument_count(input_map))]
    position = sum(count for _, count in sides)
    if kernel_map is None and len(buffers) <= position:
        raise ArgumentValueError(
            "buffers: a convolution needs a kernel, as a buffer behind the other arguments or as kernel_map; "
            f"got {len(buffers)} arguments"
        )
    require_count("convolve", buffers, [*sides, ("kernel", argument_count(kernel_map))])
    if kernel_map is None and kernel_type is None:
        kernel_type = require_buffer(buffers[position], "kernel buffer").var_type
    kernel_type = checked_kernel_type(kernel_map, kernel_type)
    shape, axis = _shape_and_axis(buffers, buffer_shape, axis, False)
    transform = Transform(
        shape,
        axis,
        False,
        bool(normalize),
        False,
        input_map,
        output_map,
        read,
        written,
        resolve_compute_type(compute_type, read, written, kernel_type),
        checked_range(input_signal_range, shape[axis]),
    )
    spec = Convolution(
        transform,
        kernel_map,
        kernel_type,
        checked_int(kernel_num, "kernel_num", least=1),
        bool(transposed_kernel),
        bool(kernel_inner_only),
    )
    elements = 1
    for size in shape:
        elements *= size
    if written is not None:
        require_room(buffers[0], elements, written, "output buffer")
    if read is not None:
        require_room(buffers[position - 1], elements, read, "input buffer")
    if kernel_type is not None:
        require_room(buffers[position], kernel_elements(spec), kernel_type, "kernel buffer")
        if transposed_kernel:
            _require_layout(buffers[position], spec)
    _check_apart(buffers, input_map, output_map)
    kernel = convolution_kernel(spec)
    if print_shader:
        show(kernel)
    kernel(*buffers, graph=graph)


def _check_apart(
    buffers: Sequence[Any], input_map: MappingFunction | None, output_map: MappingFunction | None
) -> None:
    """Raise OverlapError for a kernel, or an argument of its map, that is the outcome as well."""
    written = argument_count(output_map)
    # one buffer is both, where there are no maps
    first = written if input_map is output_map is None else written + argument_count(input_map)
    for kernel in buffers[first:]:
        for signal in buffers[:written]:
            check_apart("kernel", kernel, "the signal", signal)


def _takes_kernel_arguments(function: _Function) -> _Function:
    """Let the arguments of a kernel map follow one another, where the map itself is given by name."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if len(args) > 2 and options.get("kernel_map") is not None:
            args = (args[0], args[1:])
        return function(*args, **options)

    return cast(_Function, call)


@array_function
@_takes_kernel_arguments
def convolve2D(  # noqa: N802
    buffer: Any,
    kernel: Any,
    kernel_map: MappingFunction | None = None,
    buffer_shape: Sequence[int] | None = None,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    normalize: bool = True,
    transposed_kernel: bool = False,
    kernel_inner_only: bool = False,
    input_map: MappingFunction | None = None,
    output_map: MappingFunction | None = None,
    output_type: DType | None = None,
    input_type: DType | None = None,
    kernel_type: DType | None = None,
    compute_type: DType | None = None,
    *,
    input_args: Sequence[Any] | None = None,
    output_args: Sequence[Any] | None = None,
) -> None:
    """Convolve along the last two axes with a kernel whose spectrum `fft2` made; see `convolve`.

    Parameters
    ----------
    buffer
        Complex, of two axes or three: the outcome, and the signal unless there is an input map.
    kernel
        Complex, of the same shape. With `kernel_map`: its argument, or a tuple of its arguments, which may
        also be passed one after the other if `kernel_map` is passed by name.
    kernel_map, buffer_shape, graph, print_shader, normalize, transposed_kernel, kernel_inner_only
        As for `convolve`; the kernel is applied along the axis before the last.
    input_map, output_map
        What reads the signal, and what writes the outcome; `buffer` then holds what is between.
    output_type, input_type, kernel_type, compute_type
        As for `convolve`.
    input_args, output_args
        Arguments of the maps; default: `buffer` alone.

    Raises
    ------
    TypeError, ValueError
        As `convolve`; also for another number of axes.
    """
    input_map, output_map = checked_map(input_map, "input_map"), checked_map(output_map, "output_map")
    buffer = require_buffer(buffer, "buffer")
    kernels = _kernel_arguments("convolve2D", buffer, kernel, kernel_map)
    shape = _planes("convolve2D", buffer.shape if buffer_shape is None else buffer_shape, buffer_shape)
    for kind, mapping, side in ((output_type, output_map, "output"), (input_type, input_map, "input")):
        if kind is not None and mapping is not None:
            raise ArgumentValueError(f"{side}_type: {side}_map decides what is read or written; leave it out")
    if input_type is not None and output_type is not None and input_type is not output_type:
        raise ArgumentValueError("input_type, output_type: one buffer is both, so they must be the same")
    mapped = not (input_map is output_map is kernel_map is None) or bool(transposed_kernel)
    if not mapped and output_type is input_type is kernel_type is None:
        once = _in_one_kernel(shape, buffer, kernel, bool(kernel_inner_only), bool(normalize), compute_type)
        if once is not None:
            if print_shader:
                show(once)
            once(buffer, kernel, graph=graph)
            return
    kind = output_type or input_type
    options: dict[str, Any] = {
        "buffer_shape": shape,
        "graph": graph,
        "print_shader": print_shader,
        "compute_type": compute_type,
    }
    reads = () if input_map is None else (buffer,) if input_args is None else tuple(input_args)
    writes = (buffer,) if output_args is None else tuple(output_args)
    fft(buffer, *reads, input_map=input_map, output_type=kind, **options)
    convolve(
        buffer,
        *kernels,
        kernel_map=kernel_map,
        axis=len(shape) - 2,
        normalize=normalize,
        transposed_kernel=transposed_kernel,
        kernel_inner_only=kernel_inner_only,
        output_type=kind,
        kernel_type=kernel_type,
        **options,
    )
    back: dict[str, Any] = {"inverse": True, "normalize_inverse": normalize, **options}
    if output_map is None:
        fft(buffer, output_type=kind, **back)
    else:
        fft(*writes, buffer, output_map=output_map, input_type=kind, **back)


def _in_one_kernel(
    shape: tuple[int, ...],
    buffer: Buffer[Any],
    kernel: Any,
    inner_only: bool,
    normalize: bool,
    compute_type: DType | None,
) -> ShaderFunction | None:
    """Return what convolves planes at once; None where there is no such kernel, or something is wrong."""
    if not isinstance(kernel, Buffer) or not (is_complex(buffer.var_type) and is_complex(kernel.var_type)):
        return None
    compute_type = resolve_compute_type(compute_type, buffer.var_type, kernel.var_type)
    values, plane = math.prod(shape), shape[-2] * shape[-1]
    wanted = (plane if inner_only else values) * kernel.var_type.item_size
    if buffer.mem_size < values * buffer.var_type.item_size or kernel.mem_size < wanted:
        return None
    return plane_convolution(
        PlaneConvolution(
            values // plane,
            shape[-2],
            shape[-1],
            buffer.var_type,
            kernel.var_type,
            compute_type,
            inner_only,
            normalize,
        )
    )


@array_function
@_takes_kernel_arguments
def convolve2DR(  # noqa: N802
    buffer: RFFTBuffer,
    kernel: Any,
    kernel_map: MappingFunction | None = None,
    buffer_shape: Sequence[int] | None = None,
    transposed_kernel: bool = False,
    kernel_inner_only: bool = False,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    normalize: bool = True,
    compute_type: DType | None = None,
) -> None:
    """Convolve reals along the last two axes with a kernel whose half spectrum `rfft2` made.

    Parameters
    ----------
    buffer
        Real, of two axes or three: the signal and the outcome.
    kernel
        The same for the kernel; with `kernel_map` its argument, or a tuple of them.
    buffer_shape
        Shape of the reals; default: `buffer.real_shape`.
    kernel_map, transposed_kernel, kernel_inner_only, graph, print_shader, normalize, compute_type
        As for `convolve2D`. `transpose` takes the shape of the half spectrum.

    Raises
    ------
    TypeError, ValueError
        As `convolve2D`.
    """
    given = require_rfft_buffer(buffer).real_shape if buffer_shape is None else buffer_shape
    shape = _planes("convolve2DR", given, buffer_shape)
    options: dict[str, Any] = {"graph": graph, "print_shader": print_shader, "compute_type": compute_type}
    kernels = _kernel_arguments("convolve2DR", buffer, kernel, kernel_map)
    fft(buffer, buffer_shape=shape, r2c=True, **options)
    convolve(
        buffer,
        *kernels,
        kernel_map=kernel_map,
        buffer_shape=(*shape[:-1], shape[-1] // 2 + 1),
        axis=len(shape) - 2,
        normalize=normalize,
        transposed_kernel=transposed_kernel,
        kernel_inner_only=kernel_inner_only,
        **options,
    )
    fft(buffer, buffer_shape=shape, r2c=True, inverse=True, normalize_inverse=normalize, **options)


def _planes(who: str, given: Any, buffer_shape: Any) -> tuple[int, ...]:
    shape = checked_shape(given)
    if len(shape) < 2 or (len(shape) > 3 and buffer_shape is None):
        raise ArgumentValueError(f"buffer: {who} takes one of 2 or 3 axes, got the shape {shape}")
    return shape


def _kernel_arguments(
    who: str, buffer: Buffer[Any], kernel: Any, kernel_map: MappingFunction | None
) -> tuple[Any, ...]:
    """Return a kernel's arguments, checked before anything is done to the buffer."""
    arguments: tuple[Any, ...] = (kernel,)
    if checked_map(kernel_map, "kernel_map") is None:
        require_buffer(kernel, "kernel")
    elif kernel is None:
        arguments = ()
    elif isinstance(kernel, (tuple, list)):
        arguments = tuple(kernel)
    wanted = argument_count(kernel_map)
    if len(arguments) != wanted:
        raise ArgumentValueError(
            f"{who}: kernel: expected {wanted} arguments for kernel_map, got {len(arguments)}"
        )
    for each in arguments:
        check_apart("kernel", each, "the signal", buffer)
    return arguments


# ---- kernels in the layout that convolutions read fastest ------------------------------------------


def transpose(
    in_buffer: Any,
    conv_shape: Sequence[int] | None = None,
    axis: int | None = None,
    out_buffer: Any = None,
    graph: CommandGraph | None = None,
    kernel_inner_only: bool = False,
    print_shader: bool = False,
    input_type: DType | None = None,
    output_type: DType | None = None,
    compute_type: DType | None = None,
) -> Buffer[Any]:
    """Bring a convolution's kernel into the layout that convolutions along an axis read fastest.

    Parameters
    ----------
    in_buffer
        The kernel's spectrum.
    conv_shape, axis
        Shape and axis of the convolution; default: the shape of `in_buffer`, and the last axis.
    out_buffer
        Where to; None makes a buffer of one axis. At least `get_transposed_size(conv_shape, axis)` elements
        are needed; without the outer axes, what the shape without them needs.
    graph, print_shader
        As for `fft`.
    kernel_inner_only
        Whether the kernel lacks the axes before the transformed one.
    input_type, output_type
        Complex types of the buffers, if other than their own dtypes.
    compute_type
        What the convolution computes in; default: the wider of those, at least complex64.

    Returns
    -------
    `out_buffer`, or the new one.

    Raises
    ------
    TypeError, ValueError
        A wrong argument, or a buffer that is too small or of another dtype.
    AxisError
        There is no such axis.
    """
    source = require_buffer(in_buffer, "in_buffer")
    shape = checked_shape(source.shape if conv_shape is None else conv_shape, "conv_shape")
    axis = checked_axis(axis, len(shape))
    read = source.var_type if input_type is None else input_type
    ensure_supported_complex_precision(read, role="input_type")
    written = read if output_type is None else output_type
    ensure_supported_complex_precision(written, role="output_type")
    if compute_type is None:
        compute_type = choose_compute_type(read, written)
    ensure_supported_complex_precision(compute_type, role="compute_type")
    signal = Transform(shape, axis, False, True, False, None, None, read, written, compute_type, None)
    spec = Convolution(signal, None, written, 1, True, bool(kernel_inner_only))
    elements = kernel_elements(spec)
    natural = kernel_elements(Convolution(signal, None, written, 1, False, bool(kernel_inner_only)))
    require_room(source, natural, read, "in_buffer")
    if out_buffer is None:
        size = elements if kernel_inner_only else get_transposed_size(shape, axis, compute_type)
        target: Buffer[Any] = function_buffer((size,), written)
    else:
        target = require_buffer(out_buffer, "out_buffer")
        if target.var_type is not written:
            raise ArgumentValueError(
                f"out_buffer: expected a buffer of {written.name}, got {target.var_type.name}"
            )
        check_apart("out_buffer", target, "in_buffer", source)
        require_room(target, elements, written, "out_buffer")
    kernel = make_transpose_shader(shape, axis, kernel_inner_only, read, written, compute_type)
    if print_shader:
        show(kernel)
    kernel(target, source, graph=graph)
    target._order = _layout_of(spec)
    return target


def _layout_of(spec: Convolution) -> object:
    """Return what tells one transposed layout from another: which invocations have which values."""
    signal = spec.transform
    plan = plan_pass(signal.shape, signal.axis, signal.compute_type)
    return ("transposed",) if plan is None else (plan_back(plan).split, plan.grid, spec.kernel_inner_only)


def _require_layout(buffer: Buffer[Any], spec: Convolution) -> None:
    """Raise ValueError for a kernel that was transposed for another convolution, as far as we know."""
    if buffer._order is not None and buffer._order != _layout_of(spec):
        signal = spec.transform
        raise ArgumentValueError(
            "transposed_kernel: the kernel was transposed for another convolution; call vd.fft.transpose "
            f"with conv_shape={signal.shape}, axis={signal.axis}, "
            f"kernel_inner_only={spec.kernel_inner_only} and compute_type=vd.{signal.compute_type.name}"
        )
