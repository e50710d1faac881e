"""Transforms in one call, as `numpy.fft` has them."""

from typing import Any

from vkdispatch.arrays.axes import parse_axes
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.rfft_buffer import RFFTBuffer
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.vkfft.layout import parse_shape
from vkdispatch.vkfft.plan import VkFFTPlan


def fft(
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
    """Transform a buffer along some of its axes, in place: `numpy.fft.fft`.

    Parameters
    ----------
    buffer
        complex64, or complex128 or complex32 where the device calculates with them; axes of any length.
    input_buffer
        Read this instead, and leave it as it is.
    buffer_shape
        The shape in which to see the buffer; by default its own (of an RFFTBuffer, its real shape if `r2c`).
    graph
        Where to record; None takes the thread's `vd.global_graph()`.
    print_shader
        Print the generated kernels.
    axis
        An axis or several, negative ones counted from the end. None: the last.
    inverse
        Transform back.
    normalize_inverse
        The inverse divides by the number of elements transformed.
    r2c
        Forward from reals to the half spectrum, inverse back; in rows of `vd.RFFTBuffer`'s layout.

    Raises
    ------
    TypeError
        An argument is of the wrong kind.
    ValueError
        The dtype is none that VkFFT transforms, there is no such axis, or a buffer is too small.
    UnsupportedError
        VkFFT cannot do it on this device, or the device lacks the dtype.
    """
    if not isinstance(buffer, Buffer):
        raise ArgumentTypeError(f"buffer: expected a vd.Buffer, got {type(buffer).__name__}")
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
    """Transform along the last two axes: `numpy.fft.fft2`. Raises as `fft`."""
    fft(buffer, graph=graph, print_shader=print_shader, axis=_last(buffer, 2))


def fft3(buffer: Buffer[Any], graph: CommandGraph | None = None, print_shader: bool = False) -> None:
    """Transform along all three axes: `numpy.fft.fftn`. Raises as `fft`."""
    fft(buffer, graph=graph, print_shader=print_shader, axis=_last(buffer, 3))


def ifft(
    buffer: Buffer[Any],
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    axis: Any = None,
    normalize: bool = True,
) -> None:
    """Transform back along some axes: `numpy.fft.ifft`, or that times their length. Raises as `fft`."""
    fft(
        buffer,
        graph=graph,
        print_shader=print_shader,
        axis=axis,
        inverse=True,
        normalize_inverse=normalize,
    )


def ifft2(buffer: Buffer[Any], graph: CommandGraph | None = None, print_shader: bool = False) -> None:
    """Transform back along the last two axes: `numpy.fft.ifft2`. Raises as `fft`."""
    fft(buffer, graph=graph, print_shader=print_shader, axis=_last(buffer, 2), inverse=True)


def ifft3(buffer: Buffer[Any], graph: CommandGraph | None = None, print_shader: bool = False) -> None:
    """Transform back along all three axes: `numpy.fft.ifftn`. Raises as `fft`."""
    fft(buffer, graph=graph, print_shader=print_shader, axis=_last(buffer, 3), inverse=True)


def rfft(
    buffer: RFFTBuffer, graph: CommandGraph | None = None, print_shader: bool = False, axis: Any = None
) -> None:
    """Transform reals to their half spectrum, in place: `numpy.fft.rfft`.

    `axis` may name more axes, along which the spectrum is transformed; the last one is always among them.
    Raises as `fft`.
    """
    fft(buffer, graph=graph, print_shader=print_shader, axis=axis, r2c=True)


def rfft2(buffer: RFFTBuffer, graph: CommandGraph | None = None, print_shader: bool = False) -> None:
    """Transform reals along the last two axes: `numpy.fft.rfft2`. Raises as `fft`."""
    fft(buffer, graph=graph, print_shader=print_shader, axis=_last(buffer, 2), r2c=True)


def rfft3(buffer: RFFTBuffer, graph: CommandGraph | None = None, print_shader: bool = False) -> None:
    """Transform reals along all three axes: `numpy.fft.rfftn`. Raises as `fft`."""
    fft(buffer, graph=graph, print_shader=print_shader, axis=_last(buffer, 3), r2c=True)


def irfft(
    buffer: RFFTBuffer,
    graph: CommandGraph | None = None,
    print_shader: bool = False,
    normalize: bool = True,
    axis: Any = None,
) -> None:
    """Transform a half spectrum back to reals, in place: `numpy.fft.irfft`. Raises as `fft`."""
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
    """Transform a half spectrum back along the last two axes: `numpy.fft.irfft2`. Raises as `fft`."""
    fft(buffer, graph=graph, print_shader=print_shader, axis=_last(buffer, 2), inverse=True, r2c=True)


def irfft3(buffer: RFFTBuffer, graph: CommandGraph | None = None, print_shader: bool = False) -> None:
    """Transform a half spectrum back along all three axes: `numpy.fft.irfftn`. Raises as `fft`."""
    fft(buffer, graph=graph, print_shader=print_shader, axis=_last(buffer, 3), inverse=True, r2c=True)


def _last(buffer: object, count: int) -> tuple[int, ...]:
    """Return the last `count` axes of a buffer that has as many; of three, it has no more."""
    if not isinstance(buffer, Buffer):
        raise ArgumentTypeError(f"buffer: expected a vd.Buffer, got {type(buffer).__name__}")
    if len(buffer.shape) < count:
        raise ArgumentValueError(f"buffer: expected {count} axes or more, got shape {buffer.shape}")
    return tuple(range(-count, 0))
