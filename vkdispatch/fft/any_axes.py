"""Transforms over any axes, half spectra whose spectrum is real, and cosine and sine transforms."""

from collections.abc import Sequence
from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.kinds import RFFTBuffer
from vkdispatch.base.dtype import DType
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import variant_of
from vkdispatch.families.tuning import memoize
from vkdispatch.fft.arguments import Norm, Options, require_rfft_buffer, reverse_norm
from vkdispatch.fft.calls import transform_axes, transform_real, transform_real_axes
from vkdispatch.fft.cosine import CosineOptions, Family, cosine_transform
from vkdispatch.fft.trace.line_kernel import buffer_of
from vkdispatch.fft.trace.ops import read_op, write_op
from vkdispatch.shader.map import MappingFunction, map

__all__ = [
    "dct",
    "dctn",
    "dst",
    "dstn",
    "fftn",
    "hfft",
    "idct",
    "idctn",
    "idst",
    "idstn",
    "ifftn",
    "ihfft",
    "irfftn",
    "rfftn",
]


# ---- Transforms over any axes, and those of half spectra whose spectrum is real --------------------------


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


@variant_of(_transform_axes, False)
def fftn() -> None:
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
    """


@variant_of(_transform_axes, True)
def ifftn() -> None:
    """Transform a complex buffer back along some axes, in place, as `numpy.fft.ifftn`; see `fftn`.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([[2, 2], [0, 0]], np.complex64))
    >>> vd.fft.ifftn(x, axes=[0])
    >>> x.read(0)
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)
    """


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


@variant_of(_transform_real_axes, False)
def rfftn() -> None:
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
    """


@variant_of(_transform_real_axes, True)
def irfftn() -> None:
    """Transform the half spectrum of an RFFTBuffer into reals, as `numpy.fft.irfftn`; see `rfftn`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.ones((2, 4), np.float32))
    >>> vd.fft.rfftn(x)
    >>> vd.fft.irfftn(x)
    >>> x.read_real(0)
    array([[1., 1., 1., 1.],
           [1., 1., 1., 1.]], dtype=float32)
    """


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


@variant_of(_transform_hermitian, False)
def hfft() -> None:
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
    """


@variant_of(_transform_hermitian, True)
def ihfft() -> None:
    """Transform the reals of an RFFTBuffer into half of the Hermitian signal whose spectrum they are.

    As `numpy.fft.ihfft` along the last axis; the rest is as in `hfft`.

    Examples
    --------
    >>> x = vd.asrfftbuffer(np.ones(4, np.float32))
    >>> vd.fft.ihfft(x)
    >>> x.read_fourier(0).real
    array([1., 0., 0.], dtype=float32)
    """


@memoize
def _make_conjugating_read(kind: DType) -> MappingFunction:

    def read_conjugate(buffer: Any) -> None:
        op = read_op()
        op.read_from_buffer(buffer)
        op.register.imag = -op.register.imag

    return map(read_conjugate, input_types=[buffer_of(kind)])


@memoize
def _make_conjugating_write(kind: DType) -> MappingFunction:

    def write_conjugate(buffer: Any) -> None:
        op = write_op()
        op.register.imag = -op.register.imag
        op.write_to_buffer(buffer)

    return map(write_conjugate, input_types=[buffer_of(kind)])


# ---- Cosine and sine transforms of real buffers, with SciPy's definitions and normalization --------------


# The family, and whether the transform is the inverse one.
_Kind = tuple[Family, bool]


# the signature of `dct`
def _transform_axis(  # noqa: PLR0913
    kind: _Kind,
    buffer: Buffer[Any],
    type: int = 2,
    axis: int = -1,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    out: Buffer[Any] | None = None,
    orthogonalize: bool | None = None,
    buffer_shape: Sequence[int] | None = None,
    print_shader: bool = False,
) -> Buffer[Any]:
    options = CosineOptions(
        type, (axis,), norm, graph, out, orthogonalize, buffer_shape, print_shader, axis_name="axis"
    )
    return cosine_transform(*kind, buffer, options)


# the signature of `dctn`
def _transform_cosines(  # noqa: PLR0913
    kind: _Kind,
    buffer: Buffer[Any],
    type: int = 2,
    axes: Sequence[int] | int | None = None,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    out: Buffer[Any] | None = None,
    orthogonalize: bool | None = None,
    buffer_shape: Sequence[int] | None = None,
    print_shader: bool = False,
) -> Buffer[Any]:
    options = CosineOptions(type, axes, norm, graph, out, orthogonalize, buffer_shape, print_shader)
    return cosine_transform(*kind, buffer, options)


@variant_of(_transform_axis, ("dct", False))
def dct() -> None:
    """Return the discrete cosine transform along an axis, batched over all others, as `scipy.fft.dct`.

    One complex transform computes it, with the reordering and the rotations fused in. Its length is N for
    types II and III and for type IV of odd N, N / 2 for type IV of even N, and 2(N - 1) for type I.

    Parameters
    ----------
    buffer
        Reals: float32, float64 or float16, which is computed in float32. It is not changed.
    type
        1, 2, 3 or 4; type 1 needs at least 2 values.
    axis
        Negative ones count from the end.
    norm
        "backward" (as None): no factor here, and the inverse is divided by 2N (type I: 2(N - 1)). "forward":
        the reverse. "ortho": both are divided by the square root.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.
    out
        The buffer for the result, of the same shape and dtype; it may be `buffer`. None creates one.
    orthogonalize
        Whether the values at the ends are weighted so that, with "ortho", the matrix is orthogonal. Default:
        only with "ortho".
    buffer_shape
        Shape of the data, of any number of axes; default: the buffer's.
    print_shader
        Whether to print the kernel.

    Returns
    -------
    `out`, or the new buffer.

    Raises
    ------
    TypeError, ValueError
        An argument is wrong, such as a buffer of complex numbers.
    AxisError
        There is no such axis.

    Examples
    --------
    >>> vd.fft.dct(vd.asbuffer(np.ones(4, np.float32))).read(0).round(4)
    array([8., 0., 0., 0.], dtype=float32)
    """


@variant_of(_transform_axis, ("dct", True))
def idct() -> None:
    """Return the inverse of `dct` of the same type and norm, as `scipy.fft.idct`; see `dct`.

    Examples
    --------
    >>> x = vd.fft.dct(vd.asbuffer(np.array([1, 2, 3, 4], np.float32)))
    >>> vd.fft.idct(x).read(0).round(4)
    array([1., 2., 3., 4.], dtype=float32)
    """


@variant_of(_transform_axis, ("dst", False))
def dst() -> None:
    """Return the discrete sine transform along an axis, batched over all others, as `scipy.fft.dst`.

    The complex transform has the length of that of `dct`, but 2(N + 1) for type I, which accepts lines of one
    value and is normalized by that number. Everything else is as in `dct`.

    Examples
    --------
    >>> vd.fft.dst(vd.asbuffer(np.array([1, -1], np.float32))).read(0).round(4)
    array([0., 4.], dtype=float32)
    """


@variant_of(_transform_axis, ("dst", True))
def idst() -> None:
    """Return the inverse of `dst` of the same type and norm, as `scipy.fft.idst`; see `dct`.

    Examples
    --------
    >>> x = vd.fft.dst(vd.asbuffer(np.array([1, 2, 3, 4], np.float32)))
    >>> vd.fft.idst(x).read(0).round(4)
    array([1., 2., 3., 4.], dtype=float32)
    """


@variant_of(_transform_cosines, ("dct", False))
def dctn() -> None:
    """Return the cosine transform along some axes (default: all), as `scipy.fft.dctn`; see `dct`.

    The first axis is transformed from `buffer` to `out`, the others in `out`.

    Examples
    --------
    >>> vd.fft.dctn(vd.asbuffer(np.ones((2, 2), np.float32))).read(0).round(4)
    array([[16.,  0.],
           [ 0.,  0.]], dtype=float32)
    """


@variant_of(_transform_cosines, ("dct", True))
def idctn() -> None:
    """Return the inverse of `dctn`, as `scipy.fft.idctn`; see `dctn`.

    Examples
    --------
    >>> x = vd.fft.dctn(vd.asbuffer(np.array([[1, 2], [3, 4]], np.float32)))
    >>> vd.fft.idctn(x).read(0).round(4)
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """


@variant_of(_transform_cosines, ("dst", False))
def dstn() -> None:
    """Return the sine transform along some axes (default: all), as `scipy.fft.dstn`; see `dctn`.

    Examples
    --------
    >>> x = vd.fft.dstn(vd.asbuffer(np.array([[1, -1], [-1, 1]], np.float32)))
    >>> x.read(0).round(4)
    array([[ 0.,  0.],
           [ 0., 16.]], dtype=float32)
    """


@variant_of(_transform_cosines, ("dst", True))
def idstn() -> None:
    """Return the inverse of `dstn`, as `scipy.fft.idstn`; see `dctn`.

    Examples
    --------
    >>> x = vd.fft.dstn(vd.asbuffer(np.array([[1, 2], [3, 4]], np.float32)))
    >>> vd.fft.idstn(x).read(0).round(4)
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
