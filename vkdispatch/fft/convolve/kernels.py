"""Kernels of convolutions: a transform, a product with a spectrum, and the inverse transform in one."""

import functools
from typing import Any

from vkdispatch.base.dtype import DType, complex64
from vkdispatch.base.record import replace
from vkdispatch.compiler.ir.location import fixed_place
from vkdispatch.fft.arguments.types import ensure_supported_complex_precision, require_no_type
from vkdispatch.fft.convolve.long import LongConvolution, make_plain_copy, multiply_by_conjugate
from vkdispatch.fft.convolve.plans import Convolution, plan_convolution, plan_inverse, remove_outer_axes
from vkdispatch.fft.line.context import IOManager, fft_context, trace_for_maps
from vkdispatch.fft.line.iterators import global_reads_iterator, global_trasposed_write_iterator
from vkdispatch.fft.line.resources import FFTConfig
from vkdispatch.fft.plan.memory import count_allocated
from vkdispatch.fft.plan.passes import Pass, plan_for_long_maps
from vkdispatch.fft.plan.transforms import device_limits
from vkdispatch.fft.trace.line_kernel import buffer_of
from vkdispatch.fft.trace.ops import tracing_for
from vkdispatch.fft.trace.registers import FFTRegisters
from vkdispatch.shader.map import MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction


def resolve_kernel_type(kernel_map: MappingFunction | None, kernel_type: DType | None) -> DType | None:
    """Return the type of a kernel's buffer; None for a kernel map. Raises ValueError for a wrong type."""
    if kernel_map is not None:
        require_no_type("kernel", kernel_type, kernel_map)
        return None
    kernel_type = complex64 if kernel_type is None else kernel_type
    ensure_supported_complex_precision(kernel_type, role="kernel_type")
    return kernel_type


def get_convolution_kernel(convolution: Convolution) -> Any:
    """Return the kernel of a convolution."""
    return _build_convolution_kernel(convolution, device_limits())


@functools.cache
@fixed_place()
def _build_convolution_kernel(convolution: Convolution, _limits: object) -> ShaderFunction | LongConvolution:
    signal = convolution.transform
    plans = plan_convolution(signal)
    if plans is None:
        return LongConvolution(convolution)
    # a transposed kernel has the order of the usual plan
    fewer = plans[0] if convolution.spectra.transposed else plan_for_long_maps(plans[0], signal)
    return trace_for_maps(lambda plan, most: _trace(convolution, plan, most), plans[0], fewer)


def _trace(convolution: Convolution, plan: Pass, most: int | None) -> ShaderFunction:
    """Trace a convolution by a plan whose maps have at most so many statements."""
    signal, spectra, inverse = convolution.transform, convolution.spectra, plan_inverse(plan)
    least = count_allocated(inverse.split, inverse.layout) if inverse.layout else 0
    with fft_context(
        signal.shape,
        signal.axis,
        compute_type=signal.compute_type,
        name=convolution.name,
        plan=plan,
        least=least,
        most=most,
    ) as context:
        io = context.make_io_manager(
            signal.output_map,
            signal.output_type,
            signal.input_type,
            signal.input_map,
            spectra.kernel,
            words=True,
        )
        io.read_input(signal_range=signal.signal_range)
        context.execute(inverse=False)
        if inverse is plan:
            context.register_shuffle()
            registers = context.registers
        else:
            config = FFTConfig(signal.shape, signal.axis, compute_type=signal.compute_type, plan=inverse)
            registers = context.registers.view_as(context.resources.view_as(config))
        saved = None
        if spectra.count > 1:
            saved = context.allocate_registers("spectrum")
            saved.read_from_registers(registers)
        for number in range(spectra.count):
            if number and saved is not None:
                registers.read_from_registers(saved)
            with tracing_for(kernel=number):
                _apply_kernel(registers, io, convolution, number)
                context.execute(inverse=True, registers=registers)
                if signal.normalize:
                    registers.normalize()
                io.write_output(registers)
    return context.get_callable()


def _apply_kernel(registers: FFTRegisters, io: IOManager, convolution: Convolution, number: int) -> None:
    """Multiply the signal's spectrum by the conjugate of a kernel's, or call the kernel map for it."""
    spectra = convolution.spectra
    layout: dict[str, Any] = {"format_transposed": spectra.transposed, "inner_only": spectra.inner_only}
    if spectra.kernel_map is not None:
        io.read_kernel(registers, **layout)
        return
    assert io.kernel_proxy.variables is not None
    (buffer,) = io.kernel_proxy.variables
    offset = convolution.kernel_elements // spectra.count * number
    for op in global_reads_iterator(registers, **layout):
        multiply_by_conjugate(op, buffer, offset)


# ---- the transposed layout of kernels -------------------------------------------------------------


def get_transpose_kernel(convolution: Convolution) -> ShaderFunction:
    """Return the kernel that writes a convolution's kernel in the transposed layout."""
    return _build_transpose_kernel(convolution, device_limits())


@functools.cache
@fixed_place()
def _build_transpose_kernel(convolution: Convolution, _limits: object) -> ShaderFunction:
    signal, inner_only = convolution.transform, convolution.spectra.inner_only
    shape, axis, compute_type = signal.shape, signal.axis, signal.compute_type
    input_type, output_type = signal.input_type or complex64, signal.output_type or complex64
    plans = plan_convolution(signal)
    if plans is None:
        return make_plain_copy(convolution.natural_elements, input_type, output_type)
    plan = replace(remove_outer_axes(plans[1]) if inner_only else plans[1], layout=None)
    name = f"transpose_{'x'.join(map(str, shape))}_axis{axis}"
    with fft_context(shape, axis, compute_type=compute_type, name=name, plan=plan) as context:
        written, read = context.declare_shader_args([buffer_of(output_type), buffer_of(input_type)])
        for op in global_reads_iterator(context.registers, inner_only=inner_only):
            op.read_from_buffer(read)
        for target in global_trasposed_write_iterator(context.registers, inner_only=inner_only):
            target.write_to_buffer(written)
    return context.get_callable()


def clear_convolutions() -> None:
    """Forget the kernels of convolutions and of `transpose`."""
    _build_convolution_kernel.cache_clear()
    _build_transpose_kernel.cache_clear()
