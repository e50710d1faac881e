"""Transforms and circular convolutions in one call."""

import math
from collections.abc import Callable
from typing import Any

from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.buffers.kinds import RFFTBuffer
from vkdispatch.base.dtype import is_scalar
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.operands import check_apart, is_same_memory, parse_axes, require_buffer
from vkdispatch.vkfft.plan import CONJUGATE_KERNEL, VkFFTPlan, check_complex, check_same_dtype, move
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


def transpose_kernel2D(  # noqa: N802  (the name that programs use)
    kernel: Buffer[Any], shape: Any = None, graph: CommandGraph | None = None, keep_shader_code: bool = False
) -> None:
    """Transform convolution kernels in place to the spectra that `convolve2D` takes.

    Parameters
    ----------
    kernel
        One kernel (2 axes) or a batch of kernels (3 axes), of the size of the images.
    shape
        The shape to interpret the buffer with. None: its own shape.
    graph
        The graph to record to. None: the thread's `vd.global_graph()`.
    keep_shader_code
        Print the generated GLSL.

    Raises
    ------
    TypeError
        `kernel` is not a buffer.
    ValueError
        `kernel` does not have 2 or 3 axes, or its dtype is not complex.

    Examples
    --------
    >>> kernel = vd.asbuffer(np.array([[1, 0], [0, 0]], np.complex64))
    >>> vd.vkfft.transpose_kernel2D(kernel)  # kernel is now what convolve2D takes
    """
    sizes = _parse_image_shape(kernel, shape, "kernel")
    if _is_too_large(kernel, sizes[0]):

        def make_ready(part: Buffer[Any], _: int) -> None:
            transpose_kernel2D(part, None, graph, keep_shader_code)

        _change_one_by_one(kernel, sizes, graph, make_ready)
        return
    plan = VkFFTPlan(
        sizes[1:], num_batches=sizes[0], kernel_convolution=True, keep_shader_code=keep_shader_code
    )
    plan.record(graph, kernel)


def convolve2D(  # noqa: N802
    buffer: Buffer[Any],
    kernel: Buffer[Any],
    normalize: bool = False,
    conjugate_kernel: bool = False,
    graph: CommandGraph | None = None,
    keep_shader_code: bool = False,
    padding: Any = None,
    input_buffer: Buffer[Any] | None = None,
) -> None:
    """Convolve images with kernels, circularly and in place: ifft2(fft2(image) * fft2(kernel)).

    Parameters
    ----------
    buffer
        One image (2 axes) or a batch of images (3 axes). With `input_buffer`, the results are stored here,
        and the buffer may have any shape with enough elements.
    kernel
        The result of `transpose_kernel2D`: one kernel for each image, or one for all images.
    normalize
        Divide by the number of elements. Otherwise the result is H * W times as large.
    conjugate_kernel
        Multiply by the conjugate of the kernel's spectrum, which computes a correlation.
    graph
        The graph to record to. None: the thread's `vd.global_graph()`.
    keep_shader_code
        Print the generated GLSL.
    padding
        For each of the two axes of an image (left, right), or None: elements left <= i < right are treated
        as zeros and are not read. All elements of the result are computed.
    input_buffer
        Read the images from this buffer, which is not modified. Its shape is then that of the images; real
        and complex dtypes are converted to the dtype of `buffer`.

    Raises
    ------
    TypeError
        An argument is not a buffer.
    ValueError
        The images do not have 2 or 3 axes, the dtypes differ or are not complex, `buffer` is too small for
        the images of `input_buffer`, or there is neither one kernel nor one kernel for each image.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([[1, 2], [3, 4]], np.complex64))
    >>> kernel = vd.asbuffer(np.array([[0, 1], [0, 0]], np.complex64))
    >>> vd.vkfft.transpose_kernel2D(kernel)
    >>> vd.vkfft.convolve2D(x, kernel, normalize=True)
    >>> x.read(0).real.round(4)
    array([[2., 1.],
           [4., 3.]], dtype=float32)
    """
    if input_buffer is None or is_same_memory(input_buffer, buffer):
        sizes = _parse_image_shape(buffer, None, "buffer")
        input_buffer = None
    else:
        check_apart("input_buffer", input_buffer, "buffer", buffer)
        sizes = _parse_input(input_buffer, buffer)
    batch, height, width = sizes
    check_complex(require_buffer(kernel, "kernel"), "kernel")
    if kernel.size not in (height * width, batch * height * width):
        raise ArgumentValueError(
            f"kernel: expected {height} x {width} elements, or {batch} times that, got shape {kernel.shape}"
        )
    check_apart("kernel", kernel, "buffer", buffer)
    check_same_dtype(kernel, "kernel", buffer)
    single = kernel.size != batch * height * width
    ranges = padding
    images = buffer if input_buffer is None else input_buffer
    if padding is not None and len(padding) == len(images.shape) == 3:
        if padding[0] not in (None, (0, 0), [0, 0]):
            raise ArgumentValueError(f"padding: images are not padded along the batch, got {padding!r}")
        ranges = padding[1:]
    if input_buffer is not None:
        move(buffer, 0, input_buffer, 0, batch * height * width, graph)
    if _is_too_large(buffer, batch):
        single_kernel = kernel if single else function_buffer((height, width), kernel.var_type)

        def convolve_one(part: Buffer[Any], number: int) -> None:
            if not single:
                move(single_kernel, 0, kernel, number * height * width, height * width, graph)
            convolve2D(part, single_kernel, normalize, conjugate_kernel, graph, keep_shader_code, ranges)

        _change_one_by_one(buffer, sizes, graph, convolve_one)
        return
    plan = VkFFTPlan(
        (height, width),
        normalize=normalize,
        padding=ranges,
        kernel_count=1,
        conjugate_convolution=CONJUGATE_KERNEL if conjugate_kernel else 0,
        convolution_features=1 if single else batch,
        num_batches=batch if single else 1,
        single_kernel_multiple_batches=single,
        keep_shader_code=keep_shader_code,
    )
    plan.record(graph, buffer, kernel=kernel)


def _parse_input(input_buffer: object, buffer: object) -> tuple[int, int, int]:
    """Return batch, height and width of images in a separate input buffer."""
    target = require_buffer(buffer, "buffer")
    check_complex(target, "buffer")
    sizes = _parse_image_shape(input_buffer, None, "input_buffer", real=True)
    if target.size < math.prod(sizes):
        raise ArgumentValueError(
            f"buffer: {math.prod(sizes)} elements of input_buffer do not fit in shape {target.shape}"
        )
    return sizes


def _is_too_large(buffer: Buffer[Any], batch: int) -> bool:
    """Whether a batch exceeds what VkFFT's kernels can bind, so that its images are processed one by one."""
    return batch > 1 and buffer.mem_size > buffer.context.max_storage_buffer_range


def _change_one_by_one(
    buffer: Buffer[Any],
    sizes: tuple[int, int, int],
    graph: CommandGraph | None,
    change: Callable[[Buffer[Any], int], None],
) -> None:
    """Apply `change` to a copy of each image of a batch, and copy the result back."""
    batch, height, width = sizes
    elements = height * width
    part: Buffer[Any] = function_buffer((height, width), buffer.var_type)
    for number in range(batch):
        move(part, 0, buffer, number * elements, elements, graph)
        change(part, number)
        move(buffer, number * elements, part, 0, elements, graph)


def _parse_image_shape(buffer: object, shape: Any, name: str, *, real: bool = False) -> tuple[int, int, int]:
    """Return batch, height and width of images. With `real`, real dtypes are accepted too."""
    images = require_buffer(buffer, name)
    if not (real and is_scalar(images.var_type)):
        check_complex(images, name)
    sizes = parse_shape(images.shape or (1,) if shape is None else shape, name if shape is None else "shape")
    if len(sizes) < 2:
        raise ArgumentValueError(f"{name}: expected images, 2 or 3 axes, got shape {sizes}")
    batch, height, width = (1, *sizes)[-3:]
    return batch, height, width
