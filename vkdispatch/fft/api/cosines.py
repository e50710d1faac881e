"""Cosine and sine transforms of real buffers, with SciPy's definitions and normalization."""

from collections.abc import Sequence
from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import define_variant
from vkdispatch.fft.arguments.norms import Norm
from vkdispatch.fft.cosine.maps import Family
from vkdispatch.fft.cosine.transforms import CosineOptions, cosine_transform

__all__ = ["dct", "dctn", "dst", "dstn", "idct", "idctn", "idst", "idstn"]


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
def _transform_axes(  # noqa: PLR0913
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


dct = define_variant(
    _transform_axis,
    ("dct", False),
    "dct",
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
    """,
)
idct = define_variant(
    _transform_axis,
    ("dct", True),
    "idct",
    """Return the inverse of `dct` of the same type and norm, as `scipy.fft.idct`; see `dct`.

    Examples
    --------
    >>> x = vd.fft.dct(vd.asbuffer(np.array([1, 2, 3, 4], np.float32)))
    >>> vd.fft.idct(x).read(0).round(4)
    array([1., 2., 3., 4.], dtype=float32)
    """,
)
dst = define_variant(
    _transform_axis,
    ("dst", False),
    "dst",
    """Return the discrete sine transform along an axis, batched over all others, as `scipy.fft.dst`.

    The complex transform has the length of that of `dct`, but 2(N + 1) for type I, which accepts lines of one
    value and is normalized by that number. Everything else is as in `dct`.

    Examples
    --------
    >>> vd.fft.dst(vd.asbuffer(np.array([1, -1], np.float32))).read(0).round(4)
    array([0., 4.], dtype=float32)
    """,
)
idst = define_variant(
    _transform_axis,
    ("dst", True),
    "idst",
    """Return the inverse of `dst` of the same type and norm, as `scipy.fft.idst`; see `dct`.

    Examples
    --------
    >>> x = vd.fft.dst(vd.asbuffer(np.array([1, 2, 3, 4], np.float32)))
    >>> vd.fft.idst(x).read(0).round(4)
    array([1., 2., 3., 4.], dtype=float32)
    """,
)
dctn = define_variant(
    _transform_axes,
    ("dct", False),
    "dctn",
    """Return the cosine transform along some axes (default: all), as `scipy.fft.dctn`; see `dct`.

    The first axis is transformed from `buffer` to `out`, the others in `out`.

    Examples
    --------
    >>> vd.fft.dctn(vd.asbuffer(np.ones((2, 2), np.float32))).read(0).round(4)
    array([[16.,  0.],
           [ 0.,  0.]], dtype=float32)
    """,
)
idctn = define_variant(
    _transform_axes,
    ("dct", True),
    "idctn",
    """Return the inverse of `dctn`, as `scipy.fft.idctn`; see `dctn`.

    Examples
    --------
    >>> x = vd.fft.dctn(vd.asbuffer(np.array([[1, 2], [3, 4]], np.float32)))
    >>> vd.fft.idctn(x).read(0).round(4)
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """,
)
dstn = define_variant(
    _transform_axes,
    ("dst", False),
    "dstn",
    """Return the sine transform along some axes (default: all), as `scipy.fft.dstn`; see `dctn`.

    Examples
    --------
    >>> x = vd.fft.dstn(vd.asbuffer(np.array([[1, -1], [-1, 1]], np.float32)))
    >>> x.read(0).round(4)
    array([[ 0.,  0.],
           [ 0., 16.]], dtype=float32)
    """,
)
idstn = define_variant(
    _transform_axes,
    ("dst", True),
    "idstn",
    """Return the inverse of `dstn`, as `scipy.fft.idstn`; see `dctn`.

    Examples
    --------
    >>> x = vd.fft.dstn(vd.asbuffer(np.array([[1, 2], [3, 4]], np.float32)))
    >>> vd.fft.idstn(x).read(0).round(4)
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """,
)
