"""Circular convolutions of images."""

import math
from collections.abc import Callable
from typing import Any

from vkdispatch.arrays.aliasing import check_apart, is_same_memory
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import is_scalar
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.vkfft.elementwise import CONJUGATE_KERNEL, check_alike, check_complex, move
from vkdispatch.vkfft.layout import parse_shape
from vkdispatch.vkfft.plan import VkFFTPlan


def transpose_kernel2D(  # noqa: N802  (the name that programs use)
    kernel: Buffer[Any],
    shape: Any = None,
    graph: CommandGraph | None = None,
    keep_shader_code: bool = False,
) -> None:
    """Make kernels ready for `convolve2D`, in place: from images to what it multiplies spectra by.

    Parameters
    ----------
    kernel
        One kernel (2 axes) or a batch of them (3 axes), as large as the images.
    shape
        The shape in which to see the buffer; None: its own.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.
    keep_shader_code
        Print the generated kernels.

    Raises
    ------
    TypeError
        `kernel` is no buffer.
    ValueError
        It has other than 2 or 3 axes, or no complex dtype.
    """
    sizes = _images(kernel, shape, "kernel")
    if _too_large(kernel, sizes[0]):

        def make_ready(part: Buffer[Any], _: int) -> None:
            transpose_kernel2D(part, None, graph, keep_shader_code)

        _one_by_one(kernel, sizes, graph, make_ready)
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
        One image (2 axes) or a batch of them (3 axes). With `input_buffer` the results go there, and it may
        have any shape that holds as many elements.
    kernel
        What `transpose_kernel2D` has made: one kernel for each image, or one for all.
    normalize
        Without it the result is H * W times as large, as transforms back that do not divide leave it.
    conjugate_kernel
        Multiply by the conjugate of the kernel's spectrum: a correlation.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.
    keep_shader_code
        Print the generated kernels.
    padding
        For each of the two axes of an image (left, right), or None: elements left <= i < right are taken for
        zeros, and are not read. The result has all its elements.
    input_buffer
        Take the images from here, and leave it as it is. Its shape counts then; its numbers are real or
        complex, and are converted to `buffer`'s dtype.

    Raises
    ------
    TypeError
        Something is no buffer.
    ValueError
        The images have other than 2 or 3 axes, dtypes differ or are not complex, `buffer` is too small for
        those of `input_buffer`, or there are other than one kernel or one for each image.
    """
    if input_buffer is None or is_same_memory(input_buffer, buffer):
        sizes = _images(buffer, None, "buffer")
        input_buffer = None
    else:
        sizes = _sources(input_buffer, buffer)
    batch, height, width = sizes
    if not isinstance(kernel, Buffer):
        raise ArgumentTypeError(f"kernel: expected a vd.Buffer, got {type(kernel).__name__}")
    check_complex(kernel, "kernel")
    if kernel.size not in (height * width, batch * height * width):
        raise ArgumentValueError(
            f"kernel: expected {height} x {width} elements, or {batch} times that, got shape {kernel.shape}"
        )
    check_apart("kernel", kernel, "buffer", buffer)
    check_alike(kernel, "kernel", buffer)
    single = kernel.size != batch * height * width
    ranges = padding
    images = buffer if input_buffer is None else input_buffer
    if padding is not None and len(padding) == len(images.shape) == 3:
        if padding[0] not in (None, (0, 0), [0, 0]):
            raise ArgumentValueError(f"padding: images are not padded along the batch, got {padding!r}")
        ranges = padding[1:]
    if input_buffer is not None:
        move(buffer, 0, input_buffer, 0, batch * height * width, graph)
    if _too_large(buffer, batch):
        own = kernel if single else function_buffer((height, width), kernel.var_type)

        def convolve_one(part: Buffer[Any], number: int) -> None:
            if not single:
                move(own, 0, kernel, number * height * width, height * width, graph)
            convolve2D(part, own, normalize, conjugate_kernel, graph, keep_shader_code, ranges)

        _one_by_one(buffer, sizes, graph, convolve_one)
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


def _sources(input_buffer: object, buffer: object) -> tuple[int, int, int]:
    """Return batch, height and width of images that are not where the results go."""
    if not isinstance(buffer, Buffer):
        raise ArgumentTypeError(f"buffer: expected a vd.Buffer, got {type(buffer).__name__}")
    check_complex(buffer, "buffer")
    sizes = _images(input_buffer, None, "input_buffer", real=True)
    if buffer.size < math.prod(sizes):
        raise ArgumentValueError(
            f"buffer: {math.prod(sizes)} elements of input_buffer do not fit in shape {buffer.shape}"
        )
    return sizes


def _too_large(buffer: Buffer[Any], batch: int) -> bool:
    """Whether VkFFT's kernels cannot be given a whole batch, but perhaps one image of it."""
    return batch > 1 and buffer.mem_size > buffer.context.max_storage_buffer_range


def _one_by_one(
    buffer: Buffer[Any],
    sizes: tuple[int, int, int],
    graph: CommandGraph | None,
    change: Callable[[Buffer[Any], int], None],
) -> None:
    """Change each image of a batch in memory of its own, to which kernels of ours bring it and back."""
    batch, height, width = sizes
    elements = height * width
    part: Buffer[Any] = function_buffer((height, width), buffer.var_type)
    for number in range(batch):
        move(part, 0, buffer, number * elements, elements, graph)
        change(part, number)
        move(buffer, number * elements, part, 0, elements, graph)


def _images(buffer: object, shape: Any, name: str, *, real: bool = False) -> tuple[int, int, int]:
    """Return batch, height and width; `real` where the numbers need not be complex."""
    if not isinstance(buffer, Buffer):
        raise ArgumentTypeError(f"{name}: expected a vd.Buffer, got {type(buffer).__name__}")
    if not (real and is_scalar(buffer.var_type)):
        check_complex(buffer, name)
    sizes = parse_shape(buffer.shape or (1,) if shape is None else shape, name if shape is None else "shape")
    if len(sizes) < 2:
        raise ArgumentValueError(f"{name}: expected images, 2 or 3 axes, got shape {sizes}")
    batch, height, width = (1, *sizes)[-3:]
    return batch, height, width
