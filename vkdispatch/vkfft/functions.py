"""Transforms in one call, as in `numpy.fft`."""

from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.kinds import RFFTBuffer
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.operands import parse_axes, require_buffer
from vkdispatch.vkfft.plan import VkFFTPlan
from vkdispatch.vkfft.program import parse_shape


# The signature is that of vkdispatch 0.1.0.
def fft(  # noqa: PLR0913
    buffer: Buffer[Any],
    input_buffer: Buffer[Any] | None = None,
    buffer_shape: Any = None,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    axis: Any = None,
    inverse: bool = False,
    normalize_inverse: bool = True,
    r2c: bool = False,
) -> None:
    """Compute the Fourier transform of a buffer along some of its axes, in place: `numpy.fft.fft`.

    Parameters
    ----------
    buffer
        A buffer of complex64, or of complex128 or complex32 where the device supports them. Axes may have any
        length.
    input_buffer
        Read the input from this buffer, which is not modified.
    buffer_shape
        The shape to interpret the buffer with. None: its own shape, or with `r2c` the real shape of an
        RFFTBuffer.
    graph
        The graph to record to. None: the thread's `vd.global_graph()`.
    print_shader
        Print the generated GLSL.
    axis
        One axis or several; negative axes count from the end. None: the last axis.
    inverse
        Compute the inverse transform.
    normalize_inverse
        Divide the inverse transform by the number of transformed elements.
    r2c
        Transform real numbers to the half spectrum, or with `inverse` back, in the layout of
        `vd.RFFTBuffer`.

    Raises
    ------
    TypeError
        An argument has the wrong type.
    ValueError
        VkFFT does not transform the dtype, an axis does not exist, or a buffer is too small.
    UnsupportedError
        VkFFT or the device does not support this transform.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([1, 2, 3, 4], np.complex64))
    >>> vd.vkfft.fft(x)
    >>> x.read(0)
    array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    """
    require_buffer(buffer, "buffer")
    shape = buffer_shape
    if shape is None:
        if r2c and not isinstance(buffer, RFFTBuffer):
            raise ArgumentValueError(
                "buffer: expected a vd.RFFTBuffer for a real transform, or buffer_shape with the shape of "
                f"the reals; got a {type(buffer).__name__}"
            )
        shape = buffer.real_shape if r2c and isinstance(buffer, RFFTBuffer) else buffer.shape or (1,)
    shape = parse_shape(shape, "buffer_shape")
    plan = VkFFTPlan(
        shape,
        do_r2c=r2c,
        axes=parse_axes(-1 if axis is None else axis, len(shape)),
        normalize=normalize_inverse,
        keep_shader_code=print_shader,
    )
    plan.record(graph, buffer, inverse, input=input_buffer)


def fft2(buffer: Buffer[Any], graph: CommandGraph | None = None, print_shader: bool = False) -> None:
    """Compute the transform along the last two axes: `numpy.fft.fft2`. Raises the errors of `fft`.

    Examples
    --------
    >>> x = vd.asbuffer(np.ones((2, 2), np.complex64))
    >>> vd.vkfft.fft2(x)
    >>> x.read(0)
    array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    _transform_last_axes(buffer, 2, graph, print_shader)


def fft3(buffer: Buffer[Any], graph: CommandGraph | None = None, print_shader: bool = False) -> None:
    """Compute the transform along all three axes: `numpy.fft.fftn`. Raises the errors of `fft`.

    Examples
    --------
    >>> x = vd.asbuffer(np.ones((2, 2, 2), np.complex64))
    >>> vd.vkfft.fft3(x)
    >>> complex(x.read(0)[0, 0, 0])
    (8+0j)
    """
    _transform_last_axes(buffer, 3, graph, print_shader)


def ifft(
    buffer: Buffer[Any],
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    axis: Any = None,
    normalize: bool = True,
) -> None:
    """Compute the inverse transform along some axes: `numpy.fft.ifft`. Raises the errors of `fft`.

    Without `normalize`, the result is not divided by the number of transformed elements.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([10, -2 + 2j, -2, -2 - 2j], np.complex64))
    >>> vd.vkfft.ifft(x)
    >>> x.read(0)
    array([1.+0.j, 2.+0.j, 3.+0.j, 4.+0.j], dtype=complex64)
    """
    fft(buffer, graph=graph, print_shader=print_shader, axis=axis, inverse=True, normalize_inverse=normalize)


def ifft2(buffer: Buffer[Any], graph: CommandGraph | None = None, print_shader: bool = False) -> None:
    """Compute the inverse along the last two axes: `numpy.fft.ifft2`. Raises the errors of `fft`.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([[4, 0], [0, 0]], np.complex64))
    >>> vd.vkfft.ifft2(x)
    >>> x.read(0)
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)
    """
    _transform_last_axes(buffer, 2, graph, print_shader, inverse=True)


def ifft3(buffer: Buffer[Any], graph: CommandGraph | None = None, print_shader: bool = False) -> None:
    """Compute the inverse along all three axes: `numpy.fft.ifftn`. Raises the errors of `fft`.

    Examples
    --------
    >>> x = vd.asbuffer(np.full((2, 2, 2), 8, np.complex64))
    >>> vd.vkfft.ifft3(x)
    >>> complex(x.read(0)[0, 0, 0])
    (8+0j)
    """
    _transform_last_axes(buffer, 3, graph, print_shader, inverse=True)


def rfft(
    buffer: RFFTBuffer, graph: CommandGraph | None = None, print_shader: bool = False, axis: Any = None
) -> None:
    """Compute the half spectrum of real numbers, in place: `numpy.fft.rfft`.

    `axis` must include the last axis; the spectrum is transformed along any other axes. Raises the errors of
    `fft`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.array([1, 2, 3, 4], np.float32))
    >>> vd.vkfft.rfft(x)
    >>> x.read_fourier(0)
    array([10.+0.j, -2.+2.j, -2.-0.j], dtype=complex64)
    """
    fft(buffer, graph=graph, print_shader=print_shader, axis=axis, r2c=True)


def rfft2(buffer: RFFTBuffer, graph: CommandGraph | None = None, print_shader: bool = False) -> None:
    """Transform real numbers along the last two axes: `numpy.fft.rfft2`. Raises the errors of `fft`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.ones((2, 2), np.float32))
    >>> vd.vkfft.rfft2(x)
    >>> x.read_fourier(0).real
    array([[4., 0.],
           [0., 0.]], dtype=float32)
    """
    _transform_last_axes(buffer, 2, graph, print_shader, r2c=True)


def rfft3(buffer: RFFTBuffer, graph: CommandGraph | None = None, print_shader: bool = False) -> None:
    """Transform real numbers along all three axes: `numpy.fft.rfftn`. Raises the errors of `fft`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.ones((2, 2, 2), np.float32))
    >>> vd.vkfft.rfft3(x)
    >>> float(x.read_fourier(0).real.sum())
    8.0
    """
    _transform_last_axes(buffer, 3, graph, print_shader, r2c=True)


def irfft(
    buffer: RFFTBuffer,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    normalize: bool = True,
    axis: Any = None,
) -> None:
    """Compute real numbers from a half spectrum, in place: `numpy.fft.irfft`. Raises the errors of `fft`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.array([1, 2, 3, 4], np.float32))
    >>> vd.vkfft.rfft(x)
    >>> vd.vkfft.irfft(x)
    >>> x.read_real(0)
    array([1., 2., 3., 4.], dtype=float32)
    """
    fft(
        buffer,
        graph=graph,
        print_shader=print_shader,
        axis=axis,
        inverse=True,
        normalize_inverse=normalize,
        r2c=True,
    )


def irfft2(buffer: RFFTBuffer, graph: CommandGraph | None = None, print_shader: bool = False) -> None:
    """Invert `rfft2` along the last two axes: `numpy.fft.irfft2`. Raises the errors of `fft`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.ones((2, 2), np.float32))
    >>> vd.vkfft.rfft2(x)
    >>> vd.vkfft.irfft2(x)
    >>> x.read_real(0)
    array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    _transform_last_axes(buffer, 2, graph, print_shader, inverse=True, r2c=True)


def irfft3(buffer: RFFTBuffer, graph: CommandGraph | None = None, print_shader: bool = False) -> None:
    """Invert `rfft3` along all three axes: `numpy.fft.irfftn`. Raises the errors of `fft`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.ones((2, 2, 2), np.float32))
    >>> vd.vkfft.rfft3(x)
    >>> vd.vkfft.irfft3(x)
    >>> float(x.read_real(0).sum())
    8.0
    """
    _transform_last_axes(buffer, 3, graph, print_shader, inverse=True, r2c=True)


def _transform_last_axes(
    buffer: object,
    count: int,
    graph: CommandGraph | None,
    print_shader: bool,
    *,
    inverse: bool = False,
    r2c: bool = False,
) -> None:
    """Transform along the last `count` axes. Raises ValueError if the buffer has fewer axes."""
    target = require_buffer(buffer, "buffer")
    if len(target.shape) < count:
        raise ArgumentValueError(f"buffer: expected {count} axes or more, got shape {target.shape}")
    axes = tuple(range(-count, 0))
    fft(target, graph=graph, print_shader=print_shader, axis=axes, inverse=inverse, r2c=r2c)
