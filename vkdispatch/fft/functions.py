"""Fourier transforms and convolutions of buffers: of one axis, two or three, complex and real."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.kinds import RFFTBuffer
from vkdispatch.base.dtype import DType
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import array_function, bind_variant, variant_of
from vkdispatch.fft.arguments import (
    Norm,
    Options,
    SignalRange,
    ensure_supported_complex_precision,
    resolve_input_type,
    takes_options,
)
from vkdispatch.fft.calls import transform_axis, transform_last_axes, transform_last_real_axes, transform_real
from vkdispatch.fft.convolving import (
    Spectra,
    convolve_axis,
    convolve_planes,
    convolve_real_planes,
    transpose_buffer,
)
from vkdispatch.shader.map import MappingFunction

__all__ = [
    "convolve",
    "convolve2D",
    "convolve2DR",
    "fft",
    "fft2",
    "fft3",
    "ifft",
    "ifft2",
    "ifft3",
    "irfft",
    "irfft2",
    "irfft3",
    "rfft",
    "rfft2",
    "rfft3",
    "transpose",
]

_P = ParamSpec("_P")
_Function = TypeVar("_Function", bound=Callable[..., Any])
_MAPS_AND_TYPES = ("input_map", "output_map", "output_type", "input_type", "compute_type")


# the signature of 0.1.0
@array_function
def fft(  # noqa: PLR0913
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

    The exponent of the forward transform is negative, and it is not normalized, as in `numpy.fft.fft`.

    Parameters
    ----------
    *buffers
        The output, a complex buffer or the arguments of `output_map`; then the input, a complex buffer or the
        arguments of `input_map`. Without maps, one buffer that is read and written.
    buffer_shape
        Shape of the data; default: the shape of the first buffer.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.
    print_shader
        Whether to print the kernel.
    axis
        Default: the last; negative ones count from the end.
    name
        Ignored.
    inverse, normalize_inverse
        Direction, and whether an inverse transform is divided by the length.
    r2c
        Whether the buffer is an RFFTBuffer; `buffer_shape` is then the shape of its real numbers.
    input_map, output_map
        Functions made by `vd.map` that read and write instead; see `read_op` and `write_op`.
    output_type, input_type
        Complex types of the buffers, if other than their dtypes.
    compute_type
        Complex type of the computation; default: the wider of those, at least complex64.
    input_signal_range
        (start, end): values outside are not read, and are zero.
    norm
        "backward", "ortho" or "forward", as in NumPy; overrides `normalize_inverse` unless it is None.

    Raises
    ------
    TypeError, ValueError
        Arguments are missing or invalid, or a buffer is too small.
    AxisError
        There is no such axis.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([1, 2, 3, 4], np.complex64))
    >>> vd.fft.fft(x)
    >>> x.read(0)
    array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    """
    io = (input_map, output_map, input_type, output_type, compute_type)
    options = Options(
        graph,
        print_shader,
        *io,
        buffer_shape,
        axis,
        inverse,
        normalize_inverse,
        norm,
        r2c,
        input_signal_range,
    )
    transform_axis(buffers, options)


# the signature of 0.1.0
@array_function
@takes_options("graph", "print_shader", "axis", "name", "normalize", *_MAPS_AND_TYPES)
def ifft(  # noqa: PLR0913
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
    """Compute the inverse transform along one axis, divided by its length if `normalize`; see `fft`.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([10, -2 + 2j, -2, -2 - 2j], np.complex64))
    >>> vd.fft.ifft(x)
    >>> x.read(0)
    array([1.+0.j, 2.+0.j, 3.+0.j, 4.+0.j], dtype=complex64)
    """
    io = (input_map, output_map, input_type, output_type, compute_type)
    options = Options(
        graph, print_shader, *io, buffer_shape, axis, inverse=True, normalize=normalize, norm=norm
    )
    transform_axis((buffer, *buffers), options)


# ---- several axes ----------------------------------------------------------------------------------


_OPTIONS = ("graph", "print_shader", *_MAPS_AND_TYPES)
_INVERSE_OPTIONS = ("graph", "print_shader", "normalize", *_MAPS_AND_TYPES)


def _variant_of(
    template: Callable[Concatenate[int, _P], None], count: int, names: tuple[str, ...]
) -> Callable[[Callable[[], None]], Callable[_P, None]]:
    """Have a stub be the transform of `count` axes that takes the named options by position too."""

    def decorate(stub: Callable[[], None]) -> Callable[_P, None]:
        bound = bind_variant(template, count, stub.__name__, stub.__doc__ or "")
        return array_function(takes_options(*names)(bound))

    return decorate


# the signature of `fft2` and `fft3`
def _transform_last(  # noqa: PLR0913
    count: int,
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
    io = (input_map, output_map, input_type, output_type, compute_type)
    options = Options(graph, print_shader, *io, buffer_shape=buffer_shape, norm=norm)
    transform_last_axes(f"fft{count}", (buffer, *buffers), count, options)


# the signature of `ifft2` and `ifft3`
def _transform_last_back(  # noqa: PLR0913
    count: int,
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
    io = (input_map, output_map, input_type, output_type, compute_type)
    options = Options(
        graph, print_shader, *io, buffer_shape, inverse=True, normalize=bool(normalize), norm=norm
    )
    transform_last_axes(f"ifft{count}", (buffer, *buffers), count, options)


@_variant_of(_transform_last, 2, _OPTIONS)
def fft2() -> None:
    """Transform the last two axes of a buffer, as `numpy.fft.fft2`.

    The input map belongs to the first pass and the output map to the last; their arguments come first, as in
    `fft`. With an output map the input is not changed: the values between the passes have their own buffer.

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
        As `fft`; also for fewer axes.

    Examples
    --------
    >>> x = vd.asbuffer(np.ones((2, 2), np.complex64))
    >>> vd.fft.fft2(x)
    >>> x.read(0)
    array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """


@_variant_of(_transform_last, 3, _OPTIONS)
def fft3() -> None:
    """Transform the last three axes of a buffer; see `fft2`.

    Examples
    --------
    >>> x = vd.asbuffer(np.ones((2, 2, 2), np.complex64))
    >>> vd.fft.fft3(x)
    >>> complex(x.read(0)[0, 0, 0])
    (8+0j)
    """


@_variant_of(_transform_last_back, 2, _INVERSE_OPTIONS)
def ifft2() -> None:
    """Inverse transform of the last two axes, divided by their lengths if `normalize`; see `fft2`.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([[4, 0], [0, 0]], np.complex64))
    >>> vd.fft.ifft2(x)
    >>> x.read(0)
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)
    """


@_variant_of(_transform_last_back, 3, _INVERSE_OPTIONS)
def ifft3() -> None:
    """Inverse transform of the last three axes, divided by their lengths if `normalize`; see `fft2`.

    Examples
    --------
    >>> x = vd.asbuffer(np.full((2, 2, 2), 8, np.complex64))
    >>> vd.fft.ifft3(x)
    >>> complex(x.read(0)[0, 0, 0])
    (8+0j)
    """


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
    """Transform the real numbers of an RFFTBuffer along the last axis to their half spectrum, in place.

    Parameters
    ----------
    buffer
        An RFFTBuffer. Each line of n real numbers becomes n // 2 + 1 complex numbers.
    graph, print_shader, name, compute_type, norm
        As for `fft`.

    Raises
    ------
    TypeError
        `buffer` is not an RFFTBuffer.
    ValueError
        As `fft`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.array([1, 2, 3, 4], np.float32))
    >>> vd.fft.rfft(x)
    >>> x.read_fourier(0)
    array([10.-0.j, -2.+2.j, -2.-0.j], dtype=complex64)
    """
    options = Options(graph=graph, print_shader=print_shader, norm=norm, compute_type=compute_type)
    transform_real(buffer, options)


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
    """Transform the half spectrum of an RFFTBuffer along the last axis to real numbers, in place.

    See `rfft`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.array([1, 2, 3, 4], np.float32))
    >>> vd.fft.rfft(x)
    >>> vd.fft.irfft(x)
    >>> x.read_real(0)
    array([1., 2., 3., 4.], dtype=float32)
    """
    options = Options(
        graph, print_shader, inverse=True, normalize=normalize, norm=norm, compute_type=compute_type
    )
    transform_real(buffer, options)


def _transform_last_reals(
    count: int,
    buffer: RFFTBuffer,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    compute_type: DType | None = None,
    norm: Norm | None = None,
) -> None:
    options = Options(graph=graph, print_shader=print_shader, norm=norm, compute_type=compute_type)
    transform_last_real_axes(f"rfft{count}", buffer, count, options)


def _restore_last_reals(
    count: int,
    buffer: RFFTBuffer,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    normalize: bool = True,
    compute_type: DType | None = None,
    norm: Norm | None = None,
) -> None:
    options = Options(
        graph, print_shader, inverse=True, normalize=bool(normalize), norm=norm, compute_type=compute_type
    )
    transform_last_real_axes(f"irfft{count}", buffer, count, options)


@variant_of(_transform_last_reals, 2)
def rfft2() -> None:
    """Transform the last two axes of an RFFTBuffer, as `numpy.fft.rfft2`; see `rfft`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.ones((2, 2), np.float32))
    >>> vd.fft.rfft2(x)
    >>> x.read_fourier(0).real
    array([[4., 0.],
           [0., 0.]], dtype=float32)
    """


@variant_of(_transform_last_reals, 3)
def rfft3() -> None:
    """Transform the last three axes of an RFFTBuffer, as `numpy.fft.rfftn`; see `rfft`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.ones((2, 2, 2), np.float32))
    >>> vd.fft.rfft3(x)
    >>> float(x.read_fourier(0).real.sum())
    8.0
    """


@variant_of(_restore_last_reals, 2)
def irfft2() -> None:
    """Inverse of `rfft2`, divided by both lengths if `normalize`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.ones((2, 2), np.float32))
    >>> vd.fft.rfft2(x)
    >>> vd.fft.irfft2(x)
    >>> x.read_real(0)
    array([[1., 1.],
           [1., 1.]], dtype=float32)
    """


@variant_of(_restore_last_reals, 3)
def irfft3() -> None:
    """Inverse of `rfft3`, divided by the three lengths if `normalize`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.ones((2, 2, 2), np.float32))
    >>> vd.fft.rfft3(x)
    >>> vd.fft.irfft3(x)
    >>> float(x.read_real(0).sum())
    8.0
    """


# ---- Convolutions along one axis or two, and the layout of kernels that makes them fastest ---------------


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


def _resolve_input_precision(
    buffers: Sequence[Any],
    input_map: MappingFunction | None,
    output_map: MappingFunction | None,
    input_type: DType | None,
    output_precision: DType | None,
) -> DType | None:
    """Return the type of the buffer that is read, or None if a map reads.

    Programs for 0.1.0 call it, and replace this module's `ensure_supported_complex_precision`, which it uses.
    """
    check = ensure_supported_complex_precision
    return resolve_input_type(buffers, input_map, output_map, input_type, output_precision, check=check)
