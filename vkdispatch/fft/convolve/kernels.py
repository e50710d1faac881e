"""Kernels of convolutions: a transform, a product with a kernel's spectrum and the way back, in one."""

import functools
import math
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType, complex64
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record, replace
from vkdispatch.fft.arguments.shapes import checked_axis, checked_shape
from vkdispatch.fft.arguments.types import ensure_supported_complex_precision
from vkdispatch.fft.convolve.long import LongConvolution, make_plain_copy, multiply_by_conjugate
from vkdispatch.fft.line.context import IOManager, fft_context
from vkdispatch.fft.line.iterators import global_reads_iterator, global_trasposed_write_iterator
from vkdispatch.fft.line.resources import FFTConfig, transposed_size
from vkdispatch.fft.plan.memory import allocation, plan_layout
from vkdispatch.fft.plan.passes import Pass, plan_pass
from vkdispatch.fft.plan.stages import Split
from vkdispatch.fft.plan.transforms import Transform, limits
from vkdispatch.fft.trace.ops import current_kernel
from vkdispatch.fft.trace.registers import FFTRegisters
from vkdispatch.shader.map import MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction


@record
class Convolution:
    """All that tells one convolution's kernel from another's.

    Attributes
    ----------
    transform
        Of the signal, forward; `normalize` is that of the way back.
    kernel_map, kernel_type
        What changes the spectrum, or else the type of the kernel's buffer.
    kernel_num
        How many kernels are applied to one spectrum.
    transposed_kernel
        Whether the kernel is in the layout that `transpose` makes.
    kernel_inner_only
        Whether the kernel lacks the axes before the transformed one.
    """

    transform: Transform
    kernel_map: MappingFunction | None
    kernel_type: DType | None
    kernel_num: int
    transposed_kernel: bool
    kernel_inner_only: bool


def plan_back(plan: Pass) -> Pass:
    """Plan the way back of a pass: its radices in reverse order.

    What the last stage leaves is then where the first one on the way back takes it. Where workgroup memory
    does not allow that it is the same plan, and values are to be brought there.
    """
    radices = plan.split.radices
    if plan.layout is None or radices[0] == radices[-1]:
        return plan
    split = Split(plan.split.length, radices[::-1], plan.split.threads)
    size = plan.compute_type.item_size
    grid, most = plan.grid, get_context().max_shared_memory
    layout = plan_layout(split, grid.lines, grid.interleaved, size, most, plan.layout.parts)
    return plan if layout is None else replace(plan, split=split, layout=layout)


def kernel_elements(spec: Convolution) -> int:
    """Return how many elements a kernel's buffer needs."""
    transform = spec.transform
    shape, axis = transform.shape, transform.axis
    if spec.transposed_kernel:
        plan = plan_pass(shape, axis, transform.compute_type)
        if plan is not None:
            back = plan_back(plan)
            size = transposed_size(_inner_plan(back) if spec.kernel_inner_only else back)
            return size * spec.kernel_num
    return math.prod(shape[axis:] if spec.kernel_inner_only else shape) * spec.kernel_num


def checked_kernel_type(kernel_map: MappingFunction | None, kernel_type: DType | None) -> DType | None:
    """Return the type of a kernel's buffer, None for a kernel map. Raises ValueError for a bad one."""
    if kernel_map is not None:
        if kernel_type is not None:
            raise ArgumentValueError("kernel_type: kernel_map decides what is read; leave it out")
        return None
    kernel_type = complex64 if kernel_type is None else kernel_type
    ensure_supported_complex_precision(kernel_type, role="kernel_type")
    return kernel_type


def convolution_kernel(spec: Convolution) -> Any:
    """Return the kernel of a convolution."""
    return _convolution_kernel(spec, limits())


@functools.cache
def _convolution_kernel(spec: Convolution, _limits: object) -> ShaderFunction | LongConvolution:
    signal = spec.transform
    plan = plan_pass(signal.shape, signal.axis, signal.compute_type)
    if plan is None:
        kernel = spec.kernel_map or spec.kernel_type
        return LongConvolution(signal, kernel, spec.kernel_num, spec.kernel_inner_only)
    name = f"convolution_{'x'.join(map(str, signal.shape))}_axis{signal.axis}"
    back = plan_back(plan)
    least = allocation(back.split, back.layout) if back.layout else 0
    with fft_context(
        signal.shape, signal.axis, compute_type=signal.compute_type, name=name, plan=plan, least=least
    ) as context:
        io = context.make_io_manager(
            signal.output_map,
            signal.output_type,
            signal.input_type,
            signal.input_map,
            spec.kernel_map or spec.kernel_type,
            words=True,
        )
        io.read_input(signal_range=signal.signal_range)
        context.execute(inverse=False)
        if back is plan:
            context.register_shuffle()
            registers = context.registers
        else:
            config = FFTConfig(signal.shape, signal.axis, compute_type=signal.compute_type, plan=back)
            registers = context.registers.seen_as(context.resources.seen_as(config))
        spectrum = None
        if spec.kernel_num > 1:
            spectrum = context.allocate_registers("spectrum")
            spectrum.read_from_registers(registers)
        for number in range(spec.kernel_num):
            if number and spectrum is not None:
                registers.read_from_registers(spectrum)
            with current_kernel(number):
                _apply_kernel(registers, io, spec, number)
                context.execute(inverse=True, registers=registers)
                if signal.normalize:
                    registers.normalize()
                io.write_output(registers)
    return context.get_callable()


def _apply_kernel(registers: FFTRegisters, io: IOManager, spec: Convolution, number: int) -> None:
    """Multiply the spectrum by a kernel's conjugate, or have the kernel map change it."""
    transposed, inner_only = spec.transposed_kernel, spec.kernel_inner_only
    if spec.kernel_map is not None:
        io.read_kernel(registers, format_transposed=transposed, inner_only=inner_only)
        return
    assert io.kernel_proxy.variables is not None
    (buffer,) = io.kernel_proxy.variables
    offset = kernel_elements(spec) // spec.kernel_num * number
    for op in global_reads_iterator(registers, format_transposed=transposed, inner_only=inner_only):
        multiply_by_conjugate(op, buffer, offset)


# ---- kernels in the layout that convolutions read fastest ------------------------------------------


def get_transposed_size(buffer_shape: Any, axis: int | None = None, compute_type: DType = complex64) -> int:
    """Return how many elements `transpose` writes for convolutions of a shape along an axis.

    Raises
    ------
    TypeError, ValueError
        `buffer_shape` is no shape, or `compute_type` not complex.
    AxisError
        There is no such axis.
    """
    shape = checked_shape(buffer_shape)
    axis = checked_axis(axis, len(shape))
    ensure_supported_complex_precision(compute_type, role="compute_type")
    plan = plan_pass(shape, axis, compute_type)
    return math.prod(shape) if plan is None else transposed_size(plan_back(plan))


def _inner_plan(plan: Pass) -> Pass:
    """Return a plan of the lines that differ in the axes behind the transformed one only."""
    lines = plan.grid.lines if plan.grid.interleaved else 1
    return replace(plan, grid=replace(plan.grid, outer=1, lines=lines))


@functools.cache
def transpose_kernel(spec: Convolution, _limits: object) -> ShaderFunction:
    """Return the kernel that brings a convolution's kernel into the transposed layout."""
    signal, inner_only = spec.transform, spec.kernel_inner_only
    shape, axis, compute_type = signal.shape, signal.axis, signal.compute_type
    input_type, output_type = signal.input_type or complex64, signal.output_type or complex64
    plan = plan_pass(shape, axis, compute_type)
    if plan is None:
        return make_plain_copy(math.prod(shape[axis:] if inner_only else shape), input_type, output_type)
    plan = replace(_inner_plan(plan_back(plan)) if inner_only else plan_back(plan), layout=None)
    name = f"transpose_{'x'.join(map(str, shape))}_axis{axis}"
    with fft_context(shape, axis, compute_type=compute_type, name=name, plan=plan) as context:
        annotations = [vc.Buffer[output_type], vc.Buffer[input_type]]  # type: ignore[valid-type]
        written, read = context.declare_shader_args(annotations)
        for op in global_reads_iterator(context.registers, inner_only=inner_only):
            op.read_from_buffer(read)
        for target in global_trasposed_write_iterator(context.registers, inner_only=inner_only):
            target.write_to_buffer(written)
    return context.get_callable()


def clear_convolutions() -> None:
    """Forget the kernels of convolutions and of `transpose`."""
    _convolution_kernel.cache_clear()
    transpose_kernel.cache_clear()
