"""Elementwise kernels around transforms: zero padding, products of spectra, copies."""

import math
from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, complex32, complex64, complex128, is_complex, is_scalar, uint32
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.codegen.abbreviations import Buff, Const
from vkdispatch.codegen.execution.control_flow import if_block
from vkdispatch.codegen.execution.invocation import global_invocation_id
from vkdispatch.codegen.functions.vectors import to_dtype
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.stored import store_results
from vkdispatch.shader.decorator import shader
from vkdispatch.shader.shader_function import ShaderFunction

CONJUGATE_DATA, CONJUGATE_KERNEL = 1, 2


def multiply(
    buffer: Buffer[Any],
    kernel: Buffer[Any],
    elements: int,
    place: tuple[int, int, int],
    conjugate: int,
    graph: CommandGraph | None,
) -> None:
    """Multiply the first `elements` of a buffer by those of a kernel.

    Parameters
    ----------
    place
        The offset of the products in the buffer, the offset in the kernel, and the number of elements after
        which the kernel repeats.
    conjugate
        0, CONJUGATE_DATA or CONJUGATE_KERNEL.
    """
    product = _make_product(buffer.var_type, conjugate)
    product(buffer, kernel, *place, exec_size=elements, graph=graph)


def embed(
    buffer: Buffer[Any],
    source: Buffer[Any],
    shape: tuple[int, ...],
    source_shape: tuple[int, ...],
    copies: int,
    graph: CommandGraph | None,
) -> None:
    """Copy `copies` arrays of `source_shape` to arrays of `shape`, with zeros behind them along each axis."""
    embedding = _make_embedding(buffer.var_type)
    sizes = [size for axes in (shape, source_shape) for size in (1, 1, *axes)[-3:]]
    embedding(buffer, source, *sizes, exec_size=math.prod(shape) * copies, graph=graph)


def move(
    target: Buffer[Any],
    start: int,
    source: Buffer[Any],
    first: int,
    elements: int,
    graph: CommandGraph | None,
) -> None:
    """Copy elements of `source`, from index `first` on, to the complex `target`, from index `start` on."""
    copy = _make_move(target.var_type, source.var_type)
    copy(target, source, start, first, exec_size=elements, graph=graph)


def drop_imaginary_ends(buffer: Buffer[Any], length: int, lines: int, graph: CommandGraph | None) -> None:
    """Clear the imaginary parts at frequency 0 and, if `length` is even, at the highest one.

    Half spectra of reals have none. VkFFT inverts two lines at once, and would add them to the other line.
    """
    last = 0 if length % 2 else length // 2
    _make_drop(buffer.var_type)(buffer, length // 2 + 1, last, exec_size=lines, graph=graph)


def check_complex(buffer: Buffer[Any], name: str) -> None:
    """Raise ValueError if the dtype of a buffer is not complex."""
    if buffer.var_type not in (complex32, complex64, complex128):
        raise ArgumentValueError(f"{name}: expected complex numbers, got {buffer.var_type.name}")


def check_same_dtype(other: Buffer[Any], name: str, buffer: Buffer[Any]) -> None:
    """Raise ValueError if two buffers have different dtypes."""
    if other.var_type is not buffer.var_type:
        raise ArgumentValueError(
            f"{name}: expected {buffer.var_type.name} as the buffer has, got {other.var_type.name}"
        )


@store_results
def _make_product(kind: DType, conjugate: int) -> ShaderFunction:
    def spectrum_product(data: Any, kernel: Any, target: Any, first: Any, period: Any) -> None:
        i = global_invocation_id().x
        x, k = data[i], kernel[first + i % period]
        if conjugate == CONJUGATE_DATA:
            x = x.conjugate()
        if conjugate == CONJUGATE_KERNEL:
            k = k.conjugate()
        data[target + i] = x * k

    return _make_kernel(spectrum_product, kind, kind, numbers=3)


@store_results
def _make_embedding(kind: DType) -> ShaderFunction:
    def with_zeros(
        data: Any, source: Any, depth: Any, height: Any, width: Any, planes: Any, rows: Any, columns: Any
    ) -> None:
        i = global_invocation_id().x
        x, y, z = i % width, i // width % height, i // width // height % depth
        inside = (x < columns) & (y < rows) & (z < planes)
        place = ((i // width // height // depth * planes + z) * rows + y) * columns + x
        data[i] = 0
        with if_block(inside):
            data[i] = source[place]

    return _make_kernel(with_zeros, kind, kind, numbers=6)


@store_results
def _make_drop(kind: DType) -> ShaderFunction:
    def without_imaginary_ends(data: Any, row: Any, last: Any) -> None:
        first = global_invocation_id().x * row
        for place in (first, first + last):
            if is_scalar(kind):
                data[2 * place + 1] = 0
            elif is_complex(kind):
                data[place].imag = 0
            else:
                data[place].y = 0

    return _make_kernel(without_imaginary_ends, kind, numbers=2)


@store_results
def _make_move(kind: DType, source_kind: DType) -> ShaderFunction:
    def move_part(target: Any, source: Any, start: Any, first: Any) -> None:
        i = global_invocation_id().x
        value = source[first + i]
        if is_scalar(source_kind):
            value = to_dtype(kind, value, 0)
        target[start + i] = value if value.var_type is kind else value.to_dtype(kind)

    return _make_kernel(move_part, kind, source_kind, numbers=2)


def _make_kernel(function: Any, *buffers: DType, numbers: int) -> ShaderFunction:
    """Return the kernel of a function of buffers of some dtypes and so many u32 numbers."""
    annotation: Any = Buff
    types = [*(annotation[kind] for kind in buffers), *[Const[uint32]] * numbers]
    return shader(arg_type_annotations=types, rewrite=False)(function)
