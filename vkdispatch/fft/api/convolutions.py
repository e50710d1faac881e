"""Convolutions of buffers along one axis or two, and the layout of kernels that makes them fastest."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.kinds import RFFTBuffer
from vkdispatch.base.dtype import DType
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import array_function
from vkdispatch.fft.arguments import Options, SignalRange
from vkdispatch.fft.convolve.calls import (
    convolve_axis,
    convolve_planes,
    convolve_real_planes,
    transpose_buffer,
)
from vkdispatch.fft.convolve.kernels import Spectra
from vkdispatch.shader.map import MappingFunction

__all__ = ["convolve", "convolve2D", "convolve2DR", "transpose"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


# the signature of 0.1.0
@array_function
def convolve(  # noqa: PLR0913
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
    """Correlate along an axis with a kernel, in place.

    Transforms, multiplies by the conjugate of the kernel's spectrum, and transforms back. The result is the
    circular cross-correlation with the kernel.

    Parameters
    ----------
    *buffers
        The output and the input as in `fft` (one buffer without maps), then the spectrum of the kernel: a
        complex buffer, or the arguments of `kernel_map`.
    kernel_map
        A map that changes each value of the spectrum, `read_op().register`.
    kernel_num
        The number of kernels that are applied to one spectrum. A buffer holds them one after another; in
        maps, `mapped_kernel_index()` is the current one. An output map writes each result.
    buffer_shape, graph, print_shader, axis, name
        As for `fft`.
    input_map, output_map, output_type, input_type, compute_type
        As for `fft`.
    normalize
        Whether the result is divided by the length.
    transposed_kernel
        Whether the kernel has the layout that `transpose` writes.
    kernel_inner_only
        Whether the kernel has no axes before the transformed one, so that it is the same along those.
    kernel_type
        Complex type of the kernel's buffer, if other than its dtype.
    input_signal_range
        (start, end): values outside are not read, and are zero.

    Raises
    ------
    TypeError, ValueError
        Arguments are missing or invalid, or a buffer is too small.
    AxisError
        There is no such axis.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([1, 2, 3, 4], np.complex64))
    >>> kernel = vd.asbuffer(np.array([0, 1, 0, 0], np.complex64))
    >>> vd.fft.fft(kernel)
    >>> vd.fft.convolve(x, kernel)  # a convolution would be [4, 1, 2, 3]
    >>> x.read(0).real.round(4)
    array([2., 3., 4., 1.], dtype=float32)
    """
    spectra = Spectra(kernel_map, kernel_type, kernel_num, bool(transposed_kernel), bool(kernel_inner_only))
    io = (input_map, output_map, input_type, output_type, compute_type)
    options = Options(
        graph, print_shader, *io, buffer_shape, axis, normalize=normalize, signal_range=input_signal_range
    )
    convolve_axis(buffers, spectra, options)


def _takes_kernel_arguments(function: _Function) -> _Function:
    """Let the arguments of a kernel map follow one another, if the map is passed by name."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if len(args) > 2 and options.get("kernel_map") is not None:
            args = (args[0], args[1:])
        return function(*args, **options)

    return cast(_Function, call)


# the signature of 0.1.0
@array_function
@_takes_kernel_arguments
def convolve2D(  # noqa: N802, PLR0913
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
    """Correlate along the last two axes with a kernel, in place; see `convolve`.

    The spectrum is multiplied by the conjugate of the kernel's, so the result is the circular
    cross-correlation: `result[m, n]` is the sum of `x[m + i, n + j] * conj(kernel[i, j])`. For a
    convolution pass a `kernel_map` that multiplies by the spectrum itself, as in the example.

    Parameters
    ----------
    buffer
        Complex, of at least two axes: the output, and the signal unless there is an input map.
    kernel
        The spectrum of the kernel, from `fft2`, of the same shape. With `kernel_map`: its argument, or a
        tuple of its arguments, which can also be passed separately if `kernel_map` is passed by name.
    kernel_map, buffer_shape, graph, print_shader, normalize, transposed_kernel, kernel_inner_only
        As for `convolve`; the kernel is applied along the axis before the last.
    input_map, output_map
        Maps that read the signal and write the result; `buffer` holds the values in between.
    output_type, input_type, kernel_type, compute_type
        As for `convolve`.
    input_args, output_args
        Arguments of the maps; default: `buffer` alone.

    Raises
    ------
    TypeError, ValueError
        As `convolve`; also for fewer axes.

    Examples
    --------
    >>> data = np.array([[1, 2, 3], [4, 5, 6]], np.complex64)
    >>> x = vd.asbuffer(data)
    >>> kernel = vd.asbuffer(np.array([[0, 1, 0], [0, 0, 0]], np.complex64))
    >>> vd.fft.fft2(kernel)
    >>> vd.fft.convolve2D(x, kernel)
    >>> x.read(0).real.round(4)
    array([[2., 3., 1.],
           [5., 6., 4.]], dtype=float32)

    A convolution shifts the data in the other direction:

    >>> @vd.map
    ... def multiply(spectrum: Buff[c64]) -> None:
    ...     op = vd.fft.read_op()
    ...     op.register[:] = vc.mult_complex(op.register, spectrum[op.io_index])
    >>> x = vd.asbuffer(data)
    >>> vd.fft.convolve2D(x, kernel, kernel_map=multiply)
    >>> x.read(0).real.round(4)
    array([[3., 1., 2.],
           [6., 4., 5.]], dtype=float32)
    """
    spectra = Spectra(kernel_map, kernel_type, 1, bool(transposed_kernel), bool(kernel_inner_only))
    io = (input_map, output_map, input_type, output_type, compute_type)
    options = Options(graph, print_shader, *io, buffer_shape=buffer_shape, normalize=normalize)
    convolve_planes(buffer, kernel, spectra, options, (input_args, output_args))


# the signature of 0.1.0
@array_function
@_takes_kernel_arguments
def convolve2DR(  # noqa: N802, PLR0913
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
    """Correlate real numbers along the last two axes with a kernel, in place.

    The result is the circular cross-correlation, as for `convolve2D`. For a convolution, flip the kernel
    before its transform with `np.roll(kernel[::-1, ::-1], 1, axis=(0, 1))`, or pass a `kernel_map`.

    Parameters
    ----------
    buffer
        Real, of at least two axes: the signal and the output.
    kernel
        The half spectrum of the kernel, from `rfft2`. With `kernel_map`: its argument, or a tuple of these.
    buffer_shape
        Shape of the reals; default: `buffer.real_shape`.
    kernel_map, transposed_kernel, kernel_inner_only, graph, print_shader, normalize, compute_type
        As for `convolve2D`. `transpose` takes the shape of the half spectrum.

    Raises
    ------
    TypeError, ValueError
        As `convolve2D`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    >>> kernel = vd.asrfftbuffer(np.array([[0, 1, 0], [0, 0, 0]], np.float32))
    >>> vd.fft.rfft2(kernel)
    >>> vd.fft.convolve2DR(x, kernel)  # a convolution would be [[3, 1, 2], [6, 4, 5]]
    >>> x.read_real(0).round(4)
    array([[2., 3., 1.],
           [5., 6., 4.]], dtype=float32)
    """
    spectra = Spectra(kernel_map, None, 1, bool(transposed_kernel), bool(kernel_inner_only))
    options = Options(
        graph, print_shader, buffer_shape=buffer_shape, normalize=normalize, compute_type=compute_type
    )
    convolve_real_planes(buffer, kernel, spectra, options)


# ---- the transposed layout of kernels -------------------------------------------------------------


# the signature of 0.1.0
def transpose(  # noqa: PLR0913
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
    """Copy the spectrum of a kernel to the layout that convolutions along an axis read fastest.

    Parameters
    ----------
    in_buffer
        The kernel's spectrum.
    conv_shape, axis
        Shape and axis of the convolution; default: the shape of `in_buffer`, and the last axis.
    out_buffer
        The output; None creates a buffer of one axis. It needs `get_transposed_size(conv_shape, axis)`
        elements; without the outer axes, those of the shape without them.
    graph, print_shader
        As for `fft`.
    kernel_inner_only
        Whether the kernel has no axes before the transformed one.
    input_type, output_type
        Complex types of the buffers, if other than their dtypes.
    compute_type
        Complex type of the convolution's computation; default: the wider of those, at least complex64.

    Returns
    -------
    `out_buffer`, or the new one.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid, or a buffer is too small or has another dtype.
    AxisError
        There is no such axis.

    Examples
    --------
    >>> x = vd.asbuffer(np.ones((8, 16), np.complex64))
    >>> vd.fft.transpose(x).size == vd.fft.get_transposed_size((8, 16))
    True
    """
    io = (None, None, input_type, output_type, compute_type)
    options = Options(graph, print_shader, *io, conv_shape, axis)
    return transpose_buffer(in_buffer, out_buffer, bool(kernel_inner_only), options)
