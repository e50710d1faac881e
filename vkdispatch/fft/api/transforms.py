"""Fourier transforms of buffers: of one axis, two or three, complex and real."""

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec

from vkdispatch.base.buffers.kinds import RFFTBuffer
from vkdispatch.base.dtype import DType
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import array_function, bind_variant, variant_of
from vkdispatch.fft.arguments import Norm, Options, SignalRange, takes_options
from vkdispatch.fft.many.calls import (
    transform_axis,
    transform_last_axes,
    transform_last_real_axes,
    transform_real,
)
from vkdispatch.shader.map import MappingFunction

__all__ = [
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
]

_P = ParamSpec("_P")
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
