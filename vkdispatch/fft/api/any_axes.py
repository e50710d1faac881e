"""Transforms over any axes, and those of half spectra whose spectrum is real."""

from collections.abc import Sequence
from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.kinds import RFFTBuffer
from vkdispatch.base.dtype import DType
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import define_variant
from vkdispatch.families.tuning import memoize
from vkdispatch.fft.arguments.buffers import require_rfft_buffer
from vkdispatch.fft.arguments.norms import Norm, reverse_norm
from vkdispatch.fft.arguments.options import Options
from vkdispatch.fft.many.calls import transform_axes, transform_real, transform_real_axes
from vkdispatch.fft.trace.line_kernel import buffer_of
from vkdispatch.fft.trace.ops import read_op, write_op
from vkdispatch.shader.map import MappingFunction, map

__all__ = ["fftn", "hfft", "ifftn", "ihfft", "irfftn", "rfftn"]


def _transform_axes(
    inverse: bool,
    buffer: Buffer[Any],
    axes: Sequence[int] | int | None = None,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    print_shader: bool = False,
    compute_type: DType | None = None,
    buffer_shape: Sequence[int] | None = None,
) -> None:
    options = Options(
        graph, print_shader, buffer_shape=buffer_shape, inverse=inverse, norm=norm, compute_type=compute_type
    )
    transform_axes(buffer, axes, options)


fftn = define_variant(
    _transform_axes,
    False,
    "fftn",
    """Transform a complex buffer along some axes, in place, as `numpy.fft.fftn`.

    Parameters
    ----------
    buffer
        Complex64, complex128 or complex32.
    axes
        The axes; default: all.
    norm
        "backward" (as None), "ortho" or "forward", as in NumPy.
    graph, print_shader, compute_type
        As for `fft`.
    buffer_shape
        Shape of the data, of any number of axes; default: the buffer's.

    Raises
    ------
    TypeError, ValueError
        As `fft`; also if an axis is repeated.
    AxisError
        There is no such axis.

    Examples
    --------
    >>> x = vd.asbuffer(np.ones((2, 2), np.complex64))
    >>> vd.fft.fftn(x, axes=[0])
    >>> x.read(0)
    array([[2.+0.j, 2.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """,
)
ifftn = define_variant(
    _transform_axes,
    True,
    "ifftn",
    """Transform a complex buffer back along some axes, in place, as `numpy.fft.ifftn`; see `fftn`.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([[2, 2], [0, 0]], np.complex64))
    >>> vd.fft.ifftn(x, axes=[0])
    >>> x.read(0)
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)
    """,
)


def _transform_real_axes(
    inverse: bool,
    buffer: RFFTBuffer,
    axes: Sequence[int] | int | None = None,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    print_shader: bool = False,
    compute_type: DType | None = None,
) -> None:
    options = Options(graph, print_shader, inverse=inverse, norm=norm, compute_type=compute_type)
    transform_real_axes(buffer, axes, options)


rfftn = define_variant(
    _transform_real_axes,
    False,
    "rfftn",
    """Transform the reals of an RFFTBuffer along some axes, in place, as `numpy.fft.rfftn`.

    Parameters
    ----------
    buffer
        Its reals become their half spectrum.
    axes
        The axes; default: all. The last one is that of the real transform, and must be the last axis of the
        buffer.
    norm
        "backward" (as None), "ortho" or "forward", as in NumPy.
    graph, print_shader, compute_type
        As for `fft`.

    Raises
    ------
    TypeError
        `buffer` is not an RFFTBuffer.
    ValueError
        As `fft`; also if an axis is repeated, or the last one is not the buffer's last.
    AxisError
        There is no such axis.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.ones((2, 4), np.float32))
    >>> vd.fft.rfftn(x)
    >>> x.read_fourier(0).real
    array([[8., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """,
)
irfftn = define_variant(
    _transform_real_axes,
    True,
    "irfftn",
    """Transform the half spectrum of an RFFTBuffer into reals, as `numpy.fft.irfftn`; see `rfftn`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.ones((2, 4), np.float32))
    >>> vd.fft.rfftn(x)
    >>> vd.fft.irfftn(x)
    >>> x.read_real(0)
    array([[1., 1., 1., 1.],
           [1., 1., 1., 1.]], dtype=float32)
    """,
)


# ---- spectra that are real ---------------------------------------------------------------------------


def _transform_hermitian(
    inverse: bool,
    buffer: RFFTBuffer,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    print_shader: bool = False,
    compute_type: DType | None = None,
) -> None:
    # hfft is the inverse transform of the conjugate, ihfft the conjugate of the forward transform; each has
    # the factor of its own direction
    kind = require_rfft_buffer(buffer).var_type
    options = Options(
        graph,
        print_shader,
        inverse=not inverse,
        norm=reverse_norm(norm),
        input_map=None if inverse else _make_conjugating_read(kind),
        output_map=_make_conjugating_write(kind) if inverse else None,
        compute_type=compute_type,
    )
    transform_real(buffer, options)


hfft = define_variant(
    _transform_hermitian,
    False,
    "hfft",
    """Transform half of a Hermitian signal in an RFFTBuffer into its real spectrum, in place.

    As `numpy.fft.hfft` along the last axis.

    Parameters
    ----------
    buffer
        n // 2 + 1 complex numbers become n reals.
    norm, graph, print_shader, compute_type
        As for `rfftn`.

    Raises
    ------
    TypeError, ValueError
        As `rfftn`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.ones(4, np.float32))
    >>> vd.fft.ihfft(x)
    >>> vd.fft.hfft(x)
    >>> x.read_real(0)
    array([1., 1., 1., 1.], dtype=float32)
    """,
)
ihfft = define_variant(
    _transform_hermitian,
    True,
    "ihfft",
    """Transform the reals of an RFFTBuffer into half of the Hermitian signal whose spectrum they are.

    As `numpy.fft.ihfft` along the last axis; the rest is as in `hfft`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.ones(4, np.float32))
    >>> vd.fft.ihfft(x)
    >>> x.read_fourier(0).real
    array([1., 0., 0.], dtype=float32)
    """,
)


@memoize
def _make_conjugating_read(kind: DType) -> MappingFunction:
    """Return the map that reads the conjugate."""

    def read_conjugate(buffer: Any) -> None:
        op = read_op()
        op.read_from_buffer(buffer)
        op.register.imag = -op.register.imag

    return map(read_conjugate, input_types=[buffer_of(kind)])


@memoize
def _make_conjugating_write(kind: DType) -> MappingFunction:
    """Return the map that writes the conjugate."""

    def write_conjugate(buffer: Any) -> None:
        op = write_op()
        op.register.imag = -op.register.imag
        op.write_to_buffer(buffer)

    return map(write_conjugate, input_types=[buffer_of(kind)])
