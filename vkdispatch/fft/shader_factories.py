"""Kernels of transforms and convolutions, for the caller to launch; and their caches."""

from collections.abc import Sequence
from typing import Any

from vkdispatch.base.context import get_context, is_context_initialized
from vkdispatch.base.dtype import DType, complex64
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.families.operands import parse_int
from vkdispatch.fft import arguments, convolving
from vkdispatch.fft.calls import build_fft_kernel, build_plane_kernel, get_fft_kernel, parse_transform
from vkdispatch.fft.convolving import get_transposed_size
from vkdispatch.fft.plan.passes import Transform
from vkdispatch.fft.trace.ops import mapped_kernel_index
from vkdispatch.shader.map import MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction

__all__ = [
    "cache_clear",
    "get_cache_info",
    "get_transposed_size",
    "make_convolution_shader",
    "make_fft_shader",
    "make_transpose_shader",
    "mapped_kernel_index",
    "print_cache_info",
]


# ---- Kernels of transforms and convolutions, for the caller to launch ------------------------------------


# the signature of 0.1.0
def make_fft_shader(  # noqa: PLR0913
    buffer_shape: int | Sequence[int],
    axis: int | None = None,
    inverse: bool = False,
    normalize_inverse: bool = True,
    r2c: bool = False,
    input_map: MappingFunction | None = None,
    output_map: MappingFunction | None = None,
    input_type: DType | None = None,
    output_type: DType | None = None,
    compute_type: DType | None = None,
    input_signal_range: arguments.SignalRange | None = None,
) -> Any:
    """Return the kernel of a transform along an axis, batched over all others. Equal arguments share one.

    Parameters
    ----------
    buffer_shape, axis
        Shape of the data, and the axis (default: the last).
    inverse, normalize_inverse
        Direction, and whether an inverse transform is divided by the length.
    r2c
        Whether the data is that of an RFFTBuffer; `buffer_shape` is then the shape of the real numbers.
    input_map, output_map
        Maps that read and write; see `read_op` and `write_op`.
    input_type, output_type
        Complex types of the buffers (default complex64).
    compute_type
        Complex type of the computation; default: the widest of those, at least complex64.
    input_signal_range
        (start, end): values outside are zero.

    Returns
    -------
    ShaderFunction
        Its arguments are the output (a buffer, or the arguments of the output map), then the input; one
        buffer without maps. For long lines it is a sequence of kernels, which is called in the same way.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid, such as a type that is not complex.
    AxisError
        There is no such axis.

    Examples
    --------
    >>> kernel = vd.fft.make_fft_shader((2, 16))
    >>> x = vd.asbuffer(np.ones((2, 16), np.complex64))
    >>> kernel(x)
    >>> x.read(0)[:, 0]
    array([16.+0.j, 16.+0.j], dtype=complex64)
    """
    io = (None, False, input_map, output_map, input_type, output_type, compute_type)
    options = arguments.Options(
        *io, buffer_shape, axis, inverse, normalize_inverse, r2c=r2c, signal_range=input_signal_range
    )
    return get_fft_kernel(_parse_transform(options))


# the signature of 0.1.0
def make_convolution_shader(  # noqa: PLR0913
    buffer_shape: int | Sequence[int],
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
    input_signal_range: arguments.SignalRange | None = None,
) -> Any:
    """Return the kernel of a convolution along an axis, batched over all others; see `convolve`.

    Equal arguments share one kernel. Its arguments are the output, the input (with maps; without, one buffer
    is both), and the convolution's kernel: a complex buffer each, or the arguments of a map.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid, such as a type that is not complex.
    AxisError
        There is no such axis.

    Examples
    --------
    >>> kernel = vd.fft.make_convolution_shader((4,))
    >>> x = vd.asbuffer(np.array([1, 2, 3, 4], np.complex64))
    >>> spectrum = vd.asbuffer(np.array([1, 0, 0, 0], np.complex64))  # keeps the mean only
    >>> kernel(x, spectrum)
    >>> x.read(0).real
    array([2.5, 2.5, 2.5, 2.5], dtype=float32)
    """
    kernel_type = convolving.resolve_kernel_type(arguments.parse_map(kernel_map, "kernel_map"), kernel_type)
    io = (None, False, input_map, output_map, input_type, output_type, compute_type)
    options = arguments.Options(*io, buffer_shape, axis, normalize=normalize, signal_range=input_signal_range)
    transform = _parse_transform(options, kernel_type)
    count = parse_int(kernel_num, "kernel_num", least=1)
    spectra = convolving.Spectra(
        kernel_map, kernel_type, count, bool(transposed_kernel), bool(kernel_inner_only)
    )
    return convolving.get_convolution_kernel(convolving.Convolution(transform, spectra))


def make_transpose_shader(
    buffer_shape: int | Sequence[int],
    axis: int | None = None,
    kernel_inner_only: bool = False,
    input_type: DType = complex64,
    output_type: DType = complex64,
    compute_type: DType = complex64,
) -> ShaderFunction:
    """Return the GPU kernel of `transpose`.

    Its arguments are the output and the input buffer. Equal arguments share one kernel.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid, such as a type that is not complex.
    AxisError
        There is no such axis.

    Examples
    --------
    >>> kernel = vd.fft.make_transpose_shader((8, 16))
    """
    shape = arguments.parse_shape(buffer_shape)
    axis = arguments.parse_axis(axis, len(shape))
    kinds = {"input_type": input_type, "output_type": output_type, "compute_type": compute_type}
    for role, kind in kinds.items():
        arguments.ensure_supported_complex_precision(kind, role=role)
    signal = Transform(shape, axis, compute_type, input_type=input_type, output_type=output_type)
    return convolving.get_transpose_kernel(convolving.make_transposition(signal, bool(kernel_inner_only)))


def _parse_transform(options: arguments.Options, kernel_type: DType | None = None) -> Transform:
    """Return the transform that options describe without buffers, whose types are complex64 by default."""
    input_map = arguments.parse_map(options.input_map, "input_map")
    output_map = arguments.parse_map(options.output_map, "output_map")
    input_type, output_type = options.input_type, options.output_type
    arguments.require_no_type("input", input_type, input_map)
    arguments.require_no_type("output", output_type, output_map)
    if output_map is None:
        output_type = output_type or complex64
        arguments.ensure_supported_complex_precision(output_type, role="output_type")
    if input_map is None:
        input_type = input_type or output_type or complex64
        arguments.ensure_supported_complex_precision(input_type, role="input_type")
    if input_map is output_map is None and input_type is not output_type:
        raise ArgumentValueError(
            "input_type, output_type: one buffer is read and written, so they must be the same; got "
            f"{input_type.name if input_type else None}, {output_type.name if output_type else None}"
        )
    return parse_transform(options, (), (input_type, output_type), kernel_type)


# ---- The caches of kernels -------------------------------------------------------------------------------


def get_cache_info() -> Any:
    """Return the hits, misses and size of the cache of `make_fft_shader`, as a `functools` CacheInfo.

    Examples
    --------
    >>> vd.fft.cache_clear()
    >>> vd.fft.get_cache_info().currsize
    0
    """
    return build_fft_kernel.cache_info()


def print_cache_info() -> None:
    """Print what `get_cache_info` returns.

    Examples
    --------
    >>> vd.fft.cache_clear()
    >>> vd.fft.print_cache_info()
    CacheInfo(hits=0, misses=0, maxsize=None, currsize=0)
    """
    print(get_cache_info())


def cache_clear() -> None:
    """Clear the cache of kernels for transforms, convolutions and transpositions.

    Examples
    --------
    >>> vd.fft.cache_clear()
    >>> vd.fft.get_cache_info().currsize
    0
    """
    build_fft_kernel.cache_clear()
    build_plane_kernel.cache_clear()
    convolving.build_plane_convolution.cache_clear()
    convolving.build_convolution_kernel.cache_clear()
    convolving.build_transpose_kernel.cache_clear()
    if is_context_initialized():
        get_context().calls.clear()
