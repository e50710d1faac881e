"""Circular convolutions of images."""

import math
from collections.abc import Callable
from typing import Any

from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import is_scalar
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.operands import check_apart, is_same_memory, require_buffer
from vkdispatch.vkfft.elementwise import CONJUGATE_KERNEL, check_complex, check_same_dtype, move
from vkdispatch.vkfft.plan import VkFFTPlan
from vkdispatch.vkfft.program import parse_shape


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
