"""Convolutions of lines that no workgroup holds, in several kernels."""

import math
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import replace
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.fft.arguments.buffers import argument_count
from vkdispatch.fft.convolve.plans import Convolution
from vkdispatch.fft.many.kernels import get_fft_kernel
from vkdispatch.fft.many.program import KernelSequence
from vkdispatch.fft.plan.indices import add, multiply
from vkdispatch.fft.trace.io import IOProxy, spot_at
from vkdispatch.fft.trace.line_kernel import buffer_of
from vkdispatch.fft.trace.ops import GlobalReadOp, Line, tracing_for
from vkdispatch.shader.shader_function import ShaderFunction


def multiply_by_conjugate(op: GlobalReadOp, buffer: Any, offset: int) -> None:
    """Multiply `op.register` by the conjugate of an element, `offset` elements behind `op.io_index`."""
    value = vc.new_register(op.register.var_type)
    op.read_from_buffer(buffer, value, op.io_index + offset if offset else None)
    op.register[:] = op.register * value.conjugate()


class LongConvolution(KernelSequence):
    """A convolution in several kernels, which is called like a kernel.

    Attributes
    ----------
    name
        Name of the whole.
    """

    def __init__(self, convolution: Convolution) -> None:
        signal, spectra = convolution.transform, convolution.spectra
        self.name = convolution.name
        kind = signal.compute_type
        self._shape, self._kind = signal.shape, kind
        self._written = argument_count(signal.output_map)
        self._read = argument_count(signal.input_map) if signal.is_mapped else 0
        self._in_place = not signal.is_mapped and spectra.count == 1 and signal.output_type is kind
        forward = signal
        back = replace(signal, inverse=True, signal_range=None)
        if not self._in_place:
            forward = replace(signal, output_map=None, output_type=kind, separate=signal.input_map is None)
            back = replace(back, input_map=None, input_type=kind, separate=signal.output_map is None)
        self._forward = get_fft_kernel(forward)
        numbers = range(spectra.count)
        self._products = [_make_product(convolution, number) for number in numbers]
        self._back = [get_fft_kernel(replace(back, kernel_index=number)) for number in numbers]

    def __call__(self, *args: Any, graph: CommandGraph | None = None) -> None:
        """Launch the kernels, or record them in a graph.

        Raises
        ------
        TypeError, ValueError
            An argument is missing or wrong.
        """
        outputs = args[: self._written]
        inputs = args[self._written : self._written + self._read] or outputs
        kernel = args[self._written + self._read :]
        if self._in_place:
            self._forward(*outputs, graph=graph)
            self._products[0](*outputs, *kernel, graph=graph)
            self._back[0](*outputs, graph=graph)
            return
        spectrum: Any = function_buffer(self._shape, self._kind)
        several = len(self._products) > 1
        product: Any = function_buffer(self._shape, self._kind) if several else spectrum
        self._forward(spectrum, *inputs, graph=graph)
        for apply, back in zip(self._products, self._back, strict=True):
            apply(*((product, spectrum) if several else (spectrum,)), *kernel, graph=graph)
            back(*outputs, product, graph=graph)

    def _kernels(self) -> list[Any]:
        steps = [each for pair in zip(self._products, self._back, strict=True) for each in pair]
        return [self._forward, *steps]


def _make_product(convolution: Convolution, number: int) -> ShaderFunction:
    """Make the kernel that applies one of the kernels to a spectrum, in place if it is the only one."""
    signal, spectra = convolution.transform, convolution.spectra
    kind, length, stride = signal.compute_type, signal.length, signal.stride
    proxy = IOProxy(spectra.kernel, "kernel")
    with vc.shader_context() as context:
        buffers = [buffer_of(kind)] * (2 if spectra.count > 1 else 1)
        variables = context.declare_input_arguments([*buffers, *proxy.buffer_types])
        proxy.bind(variables[len(buffers) :])
        flat = vc.global_invocation_id().x.to_register()
        rest = flat // stride if stride > 1 else flat
        inner: Any = flat % stride if stride > 1 else 0
        index = (rest % length).to_register()
        first = flat - multiply(index, stride)
        line = Line(length, stride, first, inner, add(multiply(rest // length, stride), inner))
        value = variables[len(buffers) - 1][flat].to_register()
        spot = spot_at(line, index, "inner" if spectra.inner_only else "natural")
        op = GlobalReadOp(spot, value)
        with tracing_for(kernel=number):
            if proxy.map_func is None:
                multiply_by_conjugate(op, variables[-1], number * convolution.natural_elements)
            else:
                proxy.read(op)
        variables[0][flat] = value
    return ShaderFunction(context.get_description("product"), None, None, math.prod(signal.shape))


def make_plain_copy(elements: int, input_type: DType, output_type: DType) -> ShaderFunction:
    """Make a kernel that copies complex numbers into its first buffer from its second, and casts them."""
    with vc.shader_context() as context:
        written, read = context.declare_input_arguments([buffer_of(output_type), buffer_of(input_type)])
        index = vc.global_invocation_id().x
        written[index] = read[index].to_dtype(output_type)
    return ShaderFunction(context.get_description("copy"), None, None, elements)
