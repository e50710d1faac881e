"""Calls of convolutions: check the arguments, choose the kernels, and launch them or record them."""

import math
from collections.abc import Sequence
from typing import Any

from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.buffers.kinds import RFFTBuffer
from vkdispatch.base.dtype import is_complex
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import replace
from vkdispatch.families.operands import check_apart, parse_int, require_buffer
from vkdispatch.fft import arguments
from vkdispatch.fft.arguments import Options
from vkdispatch.fft.convolve import kernels
from vkdispatch.fft.convolve.kernels import Spectra
from vkdispatch.fft.many.calls import parse_transform, resolve_types, transform_axis
from vkdispatch.fft.plan.passes import Transform
from vkdispatch.shader.map import MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction


def convolve_axis(buffers: Sequence[Any], spectra: Spectra, options: Options) -> None:
    """Convolve along one axis; see `vkdispatch.fft.convolve`."""
    arguments.parse_map(spectra.kernel_map, "kernel_map")
    arguments.require_any(buffers, "a convolution needs a buffer and a kernel")
    types = resolve_types(options, buffers)
    sides = [("signal", 1)]
    if options.input_map is not None or options.output_map is not None:
        sides = [
            ("output", arguments.argument_count(options.output_map)),
            ("input", arguments.argument_count(options.input_map)),
        ]
    position = sum(count for _, count in sides)
    if spectra.kernel_map is None and len(buffers) <= position:
        raise ArgumentValueError(
            "buffers: a convolution needs a kernel, as a buffer behind the other arguments or as kernel_map; "
            f"got {len(buffers)} arguments"
        )
    arguments.require_count(
        "convolve", buffers, [*sides, ("kernel", arguments.argument_count(spectra.kernel_map))]
    )
    kernel_type = spectra.kernel_type
    if spectra.kernel_map is None and kernel_type is None:
        kernel_type = require_buffer(buffers[position], "kernel buffer").var_type
    kernel_type = kernels.resolve_kernel_type(spectra.kernel_map, kernel_type)
    transform = parse_transform(options, buffers, types, kernel_type)
    count = parse_int(spectra.count, "kernel_num", least=1)
    convolution = kernels.Convolution(transform, replace(spectra, kernel_type=kernel_type, count=count))
    elements = math.prod(transform.shape)
    if transform.output_type is not None:
        arguments.require_room(buffers[0], elements, transform.output_type, "output buffer")
    if transform.input_type is not None:
        arguments.require_room(buffers[position - 1], elements, transform.input_type, "input buffer")
    if kernel_type is not None:
        arguments.require_room(buffers[position], convolution.kernel_elements, kernel_type, "kernel buffer")
        if spectra.transposed:
            _check_layout(buffers[position], convolution)
    _check_kernels_apart(buffers, transform)
    arguments.launch_kernel(kernels.get_convolution_kernel(convolution), buffers, options)


def _check_layout(buffer: Buffer[Any], convolution: kernels.Convolution) -> None:
    """Raise ValueError for a kernel that is known to be transposed for another convolution."""
    if buffer._order is not None and buffer._order != kernels.get_transposed_layout(convolution):
        signal = convolution.transform
        raise ArgumentValueError(
            "transposed_kernel: the kernel was transposed for another convolution; call vd.fft.transpose "
            f"with conv_shape={signal.shape}, axis={signal.axis}, "
            f"kernel_inner_only={convolution.spectra.inner_only} and "
            f"compute_type=vd.{signal.compute_type.name}"
        )


def _check_kernels_apart(buffers: Sequence[Any], transform: Transform) -> None:
    """Raise OverlapError for a kernel, or an argument of its map, that is the output as well."""
    outputs = arguments.argument_count(transform.output_map)
    # without maps one buffer is the output and the input
    first = outputs + arguments.argument_count(transform.input_map) if transform.is_mapped else outputs
    for kernel in buffers[first:]:
        for signal in buffers[:outputs]:
            check_apart("kernel", kernel, "the signal", signal)


# ---- two axes --------------------------------------------------------------------------------------


def convolve_planes(
    buffer: Any, kernel: Any, spectra: Spectra, options: Options, map_arguments: tuple[Any, Any]
) -> None:
    """Convolve along the last two axes; see `vkdispatch.fft.convolve2D`.

    `map_arguments` are those of the input map and of the output map, None for `buffer` alone.
    """
    input_map = arguments.parse_map(options.input_map, "input_map")
    output_map = arguments.parse_map(options.output_map, "output_map")
    buffer = require_buffer(buffer, "buffer")
    values = _parse_kernel_arguments("convolve2D", buffer, kernel, spectra.kernel_map)
    shape = _parse_planes("convolve2D", buffer.shape, options)
    input_type, output_type = options.input_type, options.output_type
    arguments.require_no_type("output", output_type, output_map)
    arguments.require_no_type("input", input_type, input_map)
    if input_type is not None and output_type is not None and input_type is not output_type:
        raise ArgumentValueError("input_type, output_type: one buffer is both, so they must be the same")
    kind = output_type or input_type
    mapped = not (input_map is output_map is spectra.kernel_map is None)
    if not (mapped or spectra.transposed or kind or spectra.kernel_type):
        plane_kernel = _get_plane_kernel(shape, buffer, kernel, spectra, options)
        if plane_kernel is not None:
            arguments.launch_kernel(plane_kernel, (buffer, kernel), options)
            return
    reads, writes = map_arguments
    inputs = () if input_map is None else (buffer,) if reads is None else tuple(reads)
    outputs = (buffer,) if writes is None else tuple(writes)
    plain = replace(options, buffer_shape=shape, input_map=None, output_map=None, input_type=None)
    plain = replace(plain, output_type=kind)
    transform_axis((buffer, *inputs), replace(plain, input_map=input_map, normalize=True))
    convolve_axis((buffer, *values), spectra, replace(plain, axis=len(shape) - 2))
    back = replace(plain, inverse=True)
    if output_map is None:
        transform_axis((buffer,), back)
    else:
        back = replace(back, output_map=output_map, output_type=None, input_type=kind)
        transform_axis((*outputs, buffer), back)


def _get_plane_kernel(
    shape: tuple[int, ...], buffer: Buffer[Any], kernel: Any, spectra: Spectra, options: Options
) -> ShaderFunction | None:
    """Return the kernel that convolves whole planes, or None if there is none, or an argument is wrong."""
    if not isinstance(kernel, Buffer) or not (is_complex(buffer.var_type) and is_complex(kernel.var_type)):
        return None
    compute_type = arguments.resolve_compute_type(options.compute_type, buffer.var_type, kernel.var_type)
    height, width = shape[-2:]
    elements, plane = math.prod(shape), height * width
    inner_only = bool(spectra.inner_only)
    wanted = (plane if inner_only else elements) * kernel.var_type.item_size
    if buffer.mem_size < elements * buffer.var_type.item_size or kernel.mem_size < wanted:
        return None
    normalize, kinds = bool(options.normalize), (buffer.var_type, kernel.var_type, compute_type)
    planes = kernels.PlaneConvolution(elements // plane, height, width, *kinds, inner_only, normalize)
    return kernels.get_plane_convolution(planes)


def convolve_real_planes(buffer: Any, kernel: Any, spectra: Spectra, options: Options) -> None:
    """Convolve reals along the last two axes; see `vkdispatch.fft.convolve2DR`."""
    buffer = arguments.require_rfft_buffer(buffer)
    shape = _parse_planes("convolve2DR", buffer.real_shape, options)
    values = _parse_kernel_arguments("convolve2DR", buffer, kernel, spectra.kernel_map)
    real = replace(options, buffer_shape=shape, r2c=True)
    half = (*shape[:-1], shape[-1] // 2 + 1)
    transform_axis((buffer,), replace(real, normalize=True))
    convolve_axis((buffer, *values), spectra, replace(options, buffer_shape=half, axis=len(shape) - 2))
    transform_axis((buffer,), replace(real, inverse=True))


def _parse_planes(name: str, default: Sequence[int], options: Options) -> tuple[int, ...]:
    """Return the shape of the planes. Raises ValueError for another number of axes."""
    shape = arguments.parse_shape(default if options.buffer_shape is None else options.buffer_shape)
    arguments.require_axes(name, shape, 2)
    return shape


def _parse_kernel_arguments(
    name: str, buffer: Buffer[Any] | RFFTBuffer, kernel: Any, kernel_map: MappingFunction | None
) -> tuple[Any, ...]:
    """Return the arguments of a kernel, checked before anything is done to the buffer."""
    values: tuple[Any, ...] = (kernel,)
    if arguments.parse_map(kernel_map, "kernel_map") is None:
        require_buffer(kernel, "kernel")
    elif kernel is None:
        values = ()
    elif isinstance(kernel, (tuple, list)):
        values = tuple(kernel)
    wanted = arguments.argument_count(kernel_map)
    if len(values) != wanted:
        raise ArgumentValueError(
            f"{name}: kernel: expected {wanted} arguments for kernel_map, got {len(values)}"
        )
    for value in values:
        check_apart("kernel", value, "the signal", buffer)
    return values


# ---- the transposed layout of kernels -------------------------------------------------------------


def transpose_buffer(in_buffer: Any, out_buffer: Any, inner_only: bool, options: Options) -> Buffer[Any]:
    """Write a convolution's kernel in the transposed layout; see `vkdispatch.fft.transpose`."""
    source = require_buffer(in_buffer, "in_buffer")
    shape = arguments.parse_shape(
        source.shape if options.buffer_shape is None else options.buffer_shape, "conv_shape"
    )
    axis = arguments.parse_axis(options.axis, len(shape))
    read = source.var_type if options.input_type is None else options.input_type
    arguments.ensure_supported_complex_precision(read, role="input_type")
    written = read if options.output_type is None else options.output_type
    arguments.ensure_supported_complex_precision(written, role="output_type")
    compute_type = arguments.resolve_compute_type(options.compute_type, read, written)
    signal = Transform(shape, axis, compute_type, input_type=read, output_type=written)
    convolution = kernels.make_transposition(signal, inner_only)
    arguments.require_room(source, convolution.natural_elements, read, "in_buffer")
    elements = convolution.kernel_elements
    if out_buffer is None:
        size = elements if inner_only else kernels.get_transposed_size(shape, axis, compute_type)
        target: Buffer[Any] = function_buffer((size,), written)
    else:
        target = require_buffer(out_buffer, "out_buffer")
        if target.var_type is not written:
            raise ArgumentValueError(
                f"out_buffer: expected a buffer of {written.name}, got {target.var_type.name}"
            )
        check_apart("out_buffer", target, "in_buffer", source)
        arguments.require_room(target, elements, written, "out_buffer")
    arguments.launch_kernel(kernels.get_transpose_kernel(convolution), (target, source), options)
    target._order = kernels.get_transposed_layout(convolution)
    return target
