"""Fourier transforms of buffers: of one axis, two or three, complex and real."""

import math
from collections.abc import Sequence
from typing import Any

from vkdispatch.arrays.calls import array_function
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.rfft_buffer import RFFTBuffer
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.fft.arguments.buffers import (
    argument_count,
    checked_map,
    require_count,
    require_rfft_buffer,
    require_room,
    show,
    takes_options,
)
from vkdispatch.fft.arguments.norms import Norm, scaling
from vkdispatch.fft.arguments.shapes import (
    SignalRange,
    checked_axis,
    checked_range,
    checked_shape,
    require_neighbours,
)
from vkdispatch.fft.arguments.types import resolve_compute_type, resolve_input_type, resolve_output_type
from vkdispatch.fft.many.kernels import fft_kernel, plane_kernel
from vkdispatch.fft.plan.transforms import Transform
from vkdispatch.shader.map import MappingFunction


@array_function
def fft(
    *buffers: Any,
    buffer_shape: Sequence[int] | None = None,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    axis: int | None = None,
    name: str | None = None,
    inverse: bool = False,
    normalize_inverse: bool = True,
    r2c: bool = False,
    input_map: MappingFunction | None = None,
    output_map: MappingFunction | None = None,
    output_type: DType | None = None,
    input_type: DType | None = None,
    compute_type: DType | None = None,
    input_signal_range: SignalRange | None = None,
    norm: Norm | None = None,
) -> None:
    """Transform along one axis, in place unless there are maps, batched over all other axes.

    Forward the exponent is negative and nothing is normalized, as in `numpy.fft.fft`.

    Parameters
    ----------
    *buffers
        The output: a complex buffer, or the arguments of `output_map`. Then the input: a complex buffer or
        the arguments of `input_map`. One buffer, both read and written, where there are no maps.
    buffer_shape
        Shape of the data; default: that of the first buffer.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.
    print_shader
        Whether to print the kernel.
    axis
        Default: the last; negative ones count from the end.
    name
        Ignored.
    inverse, normalize_inverse
        Direction, and whether an inverse transform is divided by the length.
    r2c
        Whether the buffer is an RFFTBuffer, with `buffer_shape` the shape of its reals.
    input_map, output_map
        Functions made by `vd.map` that read and write instead; see `read_op` and `write_op`.
    output_type, input_type
        Complex types of the buffers, where they are other than the buffers' own dtypes.
    compute_type
        Complex type of the computation; default: the wider of those, at least complex64.
    input_signal_range
        (start, end): values outside are not read and count as zero.
    norm
        "backward", "ortho" or "forward", as in NumPy, in either direction; it takes the place of
        `normalize_inverse`. None leaves it to that.

    Raises
    ------
    TypeError, ValueError
        Arguments are missing or wrong, or a buffer is too small.
    AxisError
        There is no such axis.
    """
    input_map, output_map = checked_map(input_map, "input_map"), checked_map(output_map, "output_map")
    if not buffers:
        raise ArgumentValueError("buffers: a transform needs at least one buffer, got none")
    written = resolve_output_type(buffers, output_map, output_type)
    read = resolve_input_type(buffers, input_map, output_map, input_type, written)
    shape, axis = _shape_and_axis(buffers, buffer_shape, axis, r2c)
    if r2c:
        require_neighbours(shape, axis)
    normalize, scale = scaling(norm, bool(inverse), bool(normalize_inverse), shape[axis])
    spec = Transform(
        shape,
        axis,
        bool(inverse),
        normalize,
        bool(r2c),
        input_map,
        output_map,
        read,
        written,
        resolve_compute_type(compute_type, read, written),
        checked_range(input_signal_range, shape[axis]),
        scale=scale,
    )
    _launch("fft", spec, buffers, graph, print_shader)


def _shape_and_axis(
    buffers: Sequence[Any], buffer_shape: Any, axis: int | None, r2c: bool
) -> tuple[tuple[int, ...], int]:
    if buffer_shape is None:
        first = next((each for each in buffers if isinstance(each, Buffer)), None)
        if first is None:
            raise ArgumentValueError("buffer_shape: none of the arguments is a buffer that tells it; give it")
        buffer_shape = first.real_shape if r2c and isinstance(first, RFFTBuffer) else first.shape
    shape = checked_shape(buffer_shape)
    return shape, checked_axis(axis, len(shape))


def _launch(who: str, spec: Transform, args: Sequence[Any], graph: CommandGraph | None, shown: bool) -> None:
    """Check a transform's arguments, and record or queue its kernel."""
    written, read = argument_count(spec.output_map), argument_count(spec.input_map)
    if spec.input_map is None and spec.output_map is None and not spec.separate:
        require_count(who, args, [("buffer", 1)])
    else:
        require_count(who, args, [("output", written), ("input", read)])
    elements = math.prod(spec.shape)
    if spec.r2c:
        elements = elements // spec.length * (spec.length // 2 + 1)
    if spec.output_type is not None:
        require_room(args[0], elements, spec.output_type, "output buffer")
    if spec.input_type is not None:
        require_room(args[-1], elements, spec.input_type, "input buffer")
    kernel = fft_kernel(spec)
    if shown:
        show(kernel)
    kernel(*args, graph=graph)


@array_function
@takes_options(
    "graph",
    "print_shader",
    "axis",
    "name",
    "normalize",
    "input_map",
    "output_map",
    "output_type",
    "input_type",
    "compute_type",
)
def ifft(
    buffer: Any,
    *buffers: Any,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    axis: int | None = None,
    name: str | None = None,
    normalize: bool = True,
    input_map: MappingFunction | None = None,
    output_map: MappingFunction | None = None,
    output_type: DType | None = None,
    input_type: DType | None = None,
    compute_type: DType | None = None,
    buffer_shape: Sequence[int] | None = None,
    norm: Norm | None = None,
) -> None:
    """Transform back along one axis, divided by its length if `normalize`; the rest is as in `fft`."""
    fft(
        buffer,
        *buffers,
        buffer_shape=buffer_shape,
        graph=graph,
        print_shader=print_shader,
        axis=axis,
        inverse=True,
        normalize_inverse=normalize,
        input_map=input_map,
        output_map=output_map,
        output_type=output_type,
        input_type=input_type,
        compute_type=compute_type,
        norm=norm,
    )


# ---- several axes ----------------------------------------------------------------------------------


def _transform_axes(
    who: str,
    buffers: Sequence[Any],
    count: int,
    most: int,
    inverse: bool,
    normalize: bool,
    graph: CommandGraph | None,
    shown: bool,
    input_map: MappingFunction | None,
    output_map: MappingFunction | None,
    output_type: DType | None,
    input_type: DType | None,
    compute_type: DType | None,
    buffer_shape: Sequence[int] | None,
    norm: Norm | None,
) -> None:
    """Transform the last `count` axes of data that has at most `most`; maps go to the first and last pass."""
    input_map, output_map = checked_map(input_map, "input_map"), checked_map(output_map, "output_map")
    if not buffers:
        raise ArgumentValueError("buffers: a transform needs at least one buffer, got none")
    written = resolve_output_type(buffers, output_map, output_type)
    read = resolve_input_type(buffers, input_map, output_map, input_type, written)
    kind = resolve_compute_type(compute_type, read, written)
    if input_map is None and output_map is None:
        sides = [("buffer", 1)]
    else:
        sides = [("output", argument_count(output_map)), ("input", argument_count(input_map))]
    require_count(who, buffers, sides)
    into = argument_count(output_map)
    outputs = buffers[:into]
    inputs = buffers[into:] if len(sides) > 1 else buffers
    # the data's own buffer tells the shape, where there is one
    telling = buffers if written is not None or read is None else inputs
    shape, _ = _shape_and_axis(telling, buffer_shape, None, False)
    if not count <= len(shape) <= (most if buffer_shape is None else len(shape)):
        wanted = f"{count}" if most == count else f"{count} or {most}"
        raise ArgumentValueError(f"buffer: {who} takes one of {wanted} axes, got the shape {shape}")
    if input_map is None and output_map is None and written is not None:
        divided, scale = scaling(norm, inverse, normalize, shape[-1] * shape[-2])
        kernel = plane_kernel(shape, inverse, divided, written, kind, scale)
        if kernel is not None:
            require_room(buffers[0], math.prod(shape), written, "output buffer")
            for axis in range(len(shape) - count, len(shape) - 2):
                divided, scale = scaling(norm, inverse, normalize, shape[axis])
                same = (None, None, written, written, kind, None)
                spec = Transform(shape, axis, inverse, divided, False, *same, scale=scale)
                _launch(who, spec, buffers, graph, shown)
            if shown:
                show(kernel)
            kernel(*buffers, graph=graph)
            return
    # what lies between the first pass and the last
    middle: Any = outputs[0] if output_map is None else function_buffer(shape, kind)
    held = written if written is not None else kind
    for step in range(count):
        first, last = step == 0, step == count - 1
        reads = input_map if first else None
        writes = output_map if last else None
        source = inputs if first else [middle]
        target = outputs if last else [middle]
        apart = bool(first and read is not None and output_map is not None)
        axis = len(shape) - count + step
        divided, scale = scaling(norm, inverse, normalize, shape[axis])
        spec = Transform(
            shape,
            axis,
            inverse,
            divided,
            False,
            reads,
            writes,
            None if reads is not None else (read if first else held),
            None if writes is not None else held,
            kind,
            None,
            apart,
            scale=scale,
        )
        in_place = reads is None and writes is None and not apart
        _launch(who, spec, target if in_place else [*target, *source], graph, shown)


_OPTIONS_OF_MANY = ("input_map", "output_map", "output_type", "input_type", "compute_type")


@array_function
@takes_options("graph", "print_shader", *_OPTIONS_OF_MANY)
def fft2(
    buffer: Any,
    *buffers: Any,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    input_map: MappingFunction | None = None,
    output_map: MappingFunction | None = None,
    output_type: DType | None = None,
    input_type: DType | None = None,
    compute_type: DType | None = None,
    buffer_shape: Sequence[int] | None = None,
    norm: Norm | None = None,
) -> None:
    """Transform the last two axes of a buffer of two or three, as `numpy.fft.fft2`.

    The input map belongs to the first pass and the output map to the last; their arguments come first, as in
    `fft`. With an output map the input is left as it is: what lies between takes memory of its own.

    Parameters
    ----------
    buffer, *buffers
        What `fft` takes as its buffers.
    graph, print_shader, input_map, output_map, output_type, input_type, compute_type
        As for `fft`.
    buffer_shape, norm
        As for `fft`.

    Raises
    ------
    TypeError, ValueError
        As `fft`; also for another number of axes.
    """
    maps = (input_map, output_map, output_type, input_type, compute_type, buffer_shape, norm)
    _transform_axes("fft2", (buffer, *buffers), 2, 3, False, True, graph, print_shader, *maps)


@array_function
@takes_options("graph", "print_shader", *_OPTIONS_OF_MANY)
def fft3(
    buffer: Any,
    *buffers: Any,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    input_map: MappingFunction | None = None,
    output_map: MappingFunction | None = None,
    output_type: DType | None = None,
    input_type: DType | None = None,
    compute_type: DType | None = None,
    buffer_shape: Sequence[int] | None = None,
    norm: Norm | None = None,
) -> None:
    """Transform a buffer of three axes; see `fft2`."""
    maps = (input_map, output_map, output_type, input_type, compute_type, buffer_shape, norm)
    _transform_axes("fft3", (buffer, *buffers), 3, 3, False, True, graph, print_shader, *maps)


@array_function
@takes_options("graph", "print_shader", "normalize", *_OPTIONS_OF_MANY)
def ifft2(
    buffer: Any,
    *buffers: Any,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    normalize: bool = True,
    input_map: MappingFunction | None = None,
    output_map: MappingFunction | None = None,
    output_type: DType | None = None,
    input_type: DType | None = None,
    compute_type: DType | None = None,
    buffer_shape: Sequence[int] | None = None,
    norm: Norm | None = None,
) -> None:
    """Transform the last two axes back, divided by their lengths if `normalize`; see `fft2`."""
    maps = (input_map, output_map, output_type, input_type, compute_type, buffer_shape, norm)
    _transform_axes("ifft2", (buffer, *buffers), 2, 3, True, bool(normalize), graph, print_shader, *maps)


@array_function
@takes_options("graph", "print_shader", "normalize", *_OPTIONS_OF_MANY)
def ifft3(
    buffer: Any,
    *buffers: Any,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    normalize: bool = True,
    input_map: MappingFunction | None = None,
    output_map: MappingFunction | None = None,
    output_type: DType | None = None,
    input_type: DType | None = None,
    compute_type: DType | None = None,
    buffer_shape: Sequence[int] | None = None,
    norm: Norm | None = None,
) -> None:
    """Transform a buffer of three axes back, divided by their lengths if `normalize`; see `fft2`."""
    maps = (input_map, output_map, output_type, input_type, compute_type, buffer_shape, norm)
    _transform_axes("ifft3", (buffer, *buffers), 3, 3, True, bool(normalize), graph, print_shader, *maps)


# ---- real transforms -------------------------------------------------------------------------------


@array_function
def rfft(
    buffer: RFFTBuffer,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    name: str | None = None,
    compute_type: DType | None = None,
    norm: Norm | None = None,
) -> None:
    """Transform the reals of an RFFTBuffer along the last axis into their half spectrum, in place.

    Parameters
    ----------
    buffer
        Its reals become n // 2 + 1 complex numbers for each n.
    graph, print_shader, name, compute_type, norm
        As for `fft`.

    Raises
    ------
    TypeError
        `buffer` is no RFFTBuffer.
    ValueError
        As `fft`.
    """
    shape = require_rfft_buffer(buffer).real_shape
    options: dict[str, Any] = {"graph": graph, "print_shader": print_shader, "compute_type": compute_type}
    fft(buffer, buffer_shape=shape, r2c=True, norm=norm, **options)


@array_function
def irfft(
    buffer: RFFTBuffer,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    name: str | None = None,
    normalize: bool = True,
    compute_type: DType | None = None,
    norm: Norm | None = None,
) -> None:
    """Transform the half spectrum of an RFFTBuffer along the last axis into reals, in place; see `rfft`."""
    shape = require_rfft_buffer(buffer).real_shape
    options: dict[str, Any] = {"graph": graph, "print_shader": print_shader, "compute_type": compute_type}
    fft(buffer, buffer_shape=shape, r2c=True, inverse=True, normalize_inverse=normalize, norm=norm, **options)


def _real_transform(
    who: str,
    buffer: RFFTBuffer,
    count: int,
    inverse: bool,
    normalize: bool,
    graph: CommandGraph | None,
    shown: bool,
    compute_type: DType | None,
    norm: Norm | None,
) -> None:
    """Transform the last `count` axes of an RFFTBuffer, the real one first, or last if inverse."""
    dimensions = len(require_rfft_buffer(buffer).real_shape)
    if not count <= dimensions <= 3:
        wanted = "2 or 3" if count == 2 else "3"
        raise ArgumentValueError(f"buffer: {who} takes one of {wanted} axes, got {buffer.real_shape}")
    others = range(dimensions - count, dimensions - 1)
    if not inverse:
        rfft(buffer, graph=graph, print_shader=shown, compute_type=compute_type, norm=norm)
    for axis in others if inverse else reversed(others):
        fft(
            buffer,
            graph=graph,
            print_shader=shown,
            axis=axis,
            inverse=inverse,
            normalize_inverse=normalize,
            compute_type=compute_type,
            norm=norm,
        )
    if inverse:
        options: dict[str, Any] = {"graph": graph, "print_shader": shown, "compute_type": compute_type}
        irfft(buffer, normalize=normalize, norm=norm, **options)


@array_function
def rfft2(
    buffer: RFFTBuffer,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    compute_type: DType | None = None,
    norm: Norm | None = None,
) -> None:
    """Transform the last two axes of an RFFTBuffer of two or three, as `numpy.fft.rfft2`; see `rfft`."""
    _real_transform("rfft2", buffer, 2, False, True, graph, print_shader, compute_type, norm)


@array_function
def rfft3(
    buffer: RFFTBuffer,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    compute_type: DType | None = None,
    norm: Norm | None = None,
) -> None:
    """Transform an RFFTBuffer of three axes, as `numpy.fft.rfftn`; see `rfft`."""
    _real_transform("rfft3", buffer, 3, False, True, graph, print_shader, compute_type, norm)


@array_function
def irfft2(
    buffer: RFFTBuffer,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    normalize: bool = True,
    compute_type: DType | None = None,
    norm: Norm | None = None,
) -> None:
    """Transform back what `rfft2` made, divided by both lengths if `normalize`."""
    _real_transform("irfft2", buffer, 2, True, bool(normalize), graph, print_shader, compute_type, norm)


@array_function
def irfft3(
    buffer: RFFTBuffer,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    normalize: bool = True,
    compute_type: DType | None = None,
    norm: Norm | None = None,
) -> None:
    """Transform back what `rfft3` made, divided by the three lengths if `normalize`."""
    _real_transform("irfft3", buffer, 3, True, bool(normalize), graph, print_shader, compute_type, norm)
