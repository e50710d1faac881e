"""Kernels of transforms and convolutions, to be launched by the caller."""

from typing import Any

from vkdispatch.arrays.numbers import checked_int
from vkdispatch.base.dtype import DType, complex64
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.fft.arguments.buffers import checked_map
from vkdispatch.fft.arguments.shapes import (
    SignalRange,
    checked_axis,
    checked_range,
    checked_shape,
    require_neighbours,
)
from vkdispatch.fft.arguments.types import checked_types, ensure_supported_complex_precision
from vkdispatch.fft.convolve.kernels import (
    Convolution,
    checked_kernel_type,
    convolution_kernel,
    transpose_kernel,
)
from vkdispatch.fft.many.kernels import fft_kernel
from vkdispatch.fft.plan.transforms import Transform, limits
from vkdispatch.shader.map import MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction


def make_fft_shader(
    buffer_shape: Any,
    axis: int | None = None,
    inverse: bool = False,
    normalize_inverse: bool = True,
    r2c: bool = False,
    input_map: MappingFunction | None = None,
    output_map: MappingFunction | None = None,
    input_type: DType | None = None,
    output_type: DType | None = None,
    compute_type: DType | None = None,
    input_signal_range: SignalRange | None = None,
) -> Any:
    """Make the kernel of a transform along an axis, batched over all others. Equal arguments give one kernel.

    Parameters
    ----------
    buffer_shape, axis
        Shape of the data, and the axis (default: the last).
    inverse, normalize_inverse
        Direction, and whether an inverse transform is divided by the length.
    r2c
        Whether the data is an RFFTBuffer's; `buffer_shape` is then the shape of the reals.
    input_map, output_map
        What reads and writes instead of a buffer; see `read_op` and `write_op`.
    input_type, output_type
        Complex types of the buffers (default complex64).
    compute_type
        Complex type of the computation; default: the widest of those, at least complex64.
    input_signal_range
        (start, end): what is outside of it counts as zero.

    Returns
    -------
    ShaderFunction
        Its arguments are the output (a buffer or the output map's), then the input's; one buffer if there are
        no maps.

    Raises
    ------
    TypeError, ValueError
        A wrong argument, such as a type that is not complex.
    AxisError
        There is no such axis.
    """
    shape = checked_shape(buffer_shape)
    axis = checked_axis(axis, len(shape))
    if r2c:
        require_neighbours(shape, axis)
    input_map, output_map = checked_map(input_map, "input_map"), checked_map(output_map, "output_map")
    kinds = checked_types(input_map, output_map, input_type, output_type, compute_type)
    if input_map is None and output_map is None and kinds[0] is not kinds[1]:
        raise ArgumentValueError(
            f"input_type, output_type: one buffer is read and written, so they must be the same; got "
            f"{kinds[0].name if kinds[0] else None}, {kinds[1].name if kinds[1] else None}"
        )
    spec = Transform(
        shape,
        axis,
        bool(inverse),
        bool(normalize_inverse),
        bool(r2c),
        input_map,
        output_map,
        *kinds,
        checked_range(input_signal_range, shape[axis]),
    )
    return fft_kernel(spec)


def make_convolution_shader(
    buffer_shape: Any,
    kernel_map: MappingFunction | None = None,
    kernel_num: int = 1,
    axis: int | None = None,
    normalize: bool = True,
    transposed_kernel: bool = False,
    kernel_inner_only: bool = False,
    input_map: MappingFunction | None = None,
    output_map: MappingFunction | None = None,
    input_type: DType | None = None,
    output_type: DType | None = None,
    kernel_type: DType | None = None,
    compute_type: DType | None = None,
    input_signal_range: SignalRange | None = None,
) -> Any:
    """Make the kernel of a convolution along an axis, batched over all others; see `convolve`.

    Equal arguments give one kernel. Its arguments are the output, the input (only with maps: without there is
    one buffer for both), and the kernel: a complex buffer each, or the arguments of a map.

    Raises
    ------
    TypeError, ValueError
        A wrong argument, such as a type that is not complex.
    AxisError
        There is no such axis.
    """
    shape = checked_shape(buffer_shape)
    axis = checked_axis(axis, len(shape))
    input_map, output_map = checked_map(input_map, "input_map"), checked_map(output_map, "output_map")
    kernel_map = checked_map(kernel_map, "kernel_map")
    kernel_type = checked_kernel_type(kernel_map, kernel_type)
    kinds = checked_types(input_map, output_map, input_type, output_type, compute_type, kernel_type)
    if input_map is None and output_map is None and kinds[0] is not kinds[1]:
        raise ArgumentValueError(
            "input_type, output_type: one buffer is read and written, so they must be the same"
        )
    transform = Transform(
        shape,
        axis,
        False,
        bool(normalize),
        False,
        input_map,
        output_map,
        *kinds,
        checked_range(input_signal_range, shape[axis]),
    )
    return convolution_kernel(
        Convolution(
            transform,
            kernel_map,
            kernel_type,
            checked_int(kernel_num, "kernel_num", least=1),
            bool(transposed_kernel),
            bool(kernel_inner_only),
        )
    )


def make_transpose_shader(
    buffer_shape: Any,
    axis: int | None = None,
    kernel_inner_only: bool = False,
    input_type: DType = complex64,
    output_type: DType = complex64,
    compute_type: DType = complex64,
) -> ShaderFunction:
    """Make the kernel that brings a convolution's kernel into the layout that convolutions read fastest.

    Its arguments are the output and the input buffer; see `transpose`. Equal arguments give one kernel.

    Raises
    ------
    TypeError, ValueError
        A wrong argument, such as a type that is not complex.
    AxisError
        There is no such axis.
    """
    shape = checked_shape(buffer_shape)
    axis = checked_axis(axis, len(shape))
    kinds = {"input_type": input_type, "output_type": output_type, "compute_type": compute_type}
    for role, kind in kinds.items():
        ensure_supported_complex_precision(kind, role=role)
    signal = Transform(
        shape, axis, False, True, False, None, None, input_type, output_type, compute_type, None
    )
    spec = Convolution(signal, None, output_type, 1, True, bool(kernel_inner_only))
    return transpose_kernel(spec, limits())
