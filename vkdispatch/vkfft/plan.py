"""VkFFT plans: transforms and convolutions of fixed shape, to be recorded any number of times."""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import get_context, wrong_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph, current
from vkdispatch.families.arguments import parse_axes
from vkdispatch.families.operands import check_apart, check_same_or_apart, is_same_memory
from vkdispatch.shader.copying import copyto
from vkdispatch.vkfft.elementwise import check_complex, check_same_dtype, drop_imaginary_ends, embed, multiply
from vkdispatch.vkfft.program import (
    BUFFER,
    INPUT,
    KERNEL,
    Program,
    Request,
    Shape,
    count_complex_bytes,
    find_precision,
    find_program,
    parse_padding,
    parse_shape,
    require_buffer,
)
from vkdispatch.vkfft.transform import Transform, check_room

Step = Callable[[CommandGraph | None], None]


class VkFFTPlan(Transform):
    """A transform, a convolution, or the preparation of a kernel for convolutions.

    A plan fixes the shapes; the buffers that it is recorded with determine the precision. VkFFT generates and
    compiles its kernels at the first recording. A plan belongs to no context.

    Attributes
    ----------
    shape
        The shape of the data; for a real transform, the shape of the real data.
    axes
        The axes of the transform, ascending.
    """

    # The signature is that of vkdispatch 0.1.0.
    def __init__(  # noqa: PLR0913
        self,
        shape: Any,
        do_r2c: bool = False,
        axes: Any = None,
        normalize: bool = False,
        padding: Any = None,
        pad_frequency_domain: bool = False,
        kernel_count: int = 0,
        input_shape: Any = None,
        input_type: DType | None = None,
        kernel_convolution: bool = False,
        conjugate_convolution: int = False,
        convolution_features: int = 0,
        num_batches: int = 1,
        single_kernel_multiple_batches: bool = False,
        keep_shader_code: bool = False,
    ) -> None:
        """Describe the transform.

        Parameters
        ----------
        shape
            1 to 3 ints. Buffers hold `num_batches` x `convolution_features` x `kernel_count` such arrays.
        do_r2c
            Transform real numbers to the half spectrum and back, in the layout of `vd.RFFTBuffer`.
        axes
            The axes of the transform; negative axes count from the end. None: all axes.
        normalize
            Whether inverse transforms and convolutions divide by the number of transformed elements.
        padding
            For each axis (left, right), or None: elements left <= i < right are zeros and are not read.
        pad_frequency_domain
            Apply the padding to the spectrum.
        kernel_count
            Convolve with this many kernels, with one result for each. 0: do not convolve.
        input_shape, input_type
            Shape and dtype of a separate input. Axes shorter than those of `shape` are padded with zeros.
        kernel_convolution
            Prepare a kernel for convolutions: compute its spectrum, in NumPy's order.
        conjugate_convolution
            For convolutions: 0 multiplies the spectra, 1 (True) conjugates the spectrum of the data first, 2
            that of the kernel.
        convolution_features
            The number of images, each with its own kernel.
        num_batches
            The number of batches, one after another.
        single_kernel_multiple_batches
            All batches share one kernel; otherwise each batch has its own.
        keep_shader_code
            Print the generated GLSL whenever the plan is recorded.

        Raises
        ------
        TypeError, ValueError
            A size, axis, range or count is invalid, or `do_r2c` is set without the last axis.
        """
        self.shape = parse_shape(shape, "shape")
        dimensions = len(self.shape)
        self.axes = tuple(sorted(parse_axes(axes, dimensions, "axes")))
        if not self.axes:
            raise ArgumentValueError(f"axes: expected one axis or several, got {axes!r}")
        self.do_r2c = bool(do_r2c)
        if self.do_r2c and dimensions - 1 not in self.axes:
            raise ArgumentValueError(
                f"axes: a real transform runs along the last axis first, and {axes!r} of "
                f"{dimensions} axes leaves it out"
            )
        self.normalize = bool(normalize)
        self.padding = parse_padding(padding, self.shape)
        self.pad_frequency_domain = bool(pad_frequency_domain)
        self.kernel_count = _parse_count(kernel_count, "kernel_count", 0)
        self.convolution_features = _parse_count(convolution_features, "convolution_features", 0)
        self.num_batches = _parse_count(num_batches, "num_batches", 1)
        self.kernel_convolution = bool(kernel_convolution)
        self.conjugate_convolution = _parse_count(conjugate_convolution, "conjugate_convolution", 0)
        if self.conjugate_convolution > 2:
            raise ArgumentValueError(
                "conjugate_convolution: expected 0, 1 (the data) or 2 (the kernel), got "
                f"{conjugate_convolution}"
            )
        self.single_kernel_multiple_batches = bool(single_kernel_multiple_batches)
        self.keep_shader_code = bool(keep_shader_code)
        self.input_shape = self.shape if input_shape is None else parse_shape(input_shape, "input_shape")
        self.input_type = input_type
        if len(self.input_shape) != dimensions or any(
            size > whole for size, whole in zip(self.input_shape, self.shape, strict=True)
        ):
            raise ArgumentValueError(
                f"input_shape: expected {dimensions} ints, at most those of {self.shape}, got {input_shape!r}"
            )
        given_type: object = input_type
        if input_type is not None and not (
            isinstance(given_type, type) and issubclass(given_type, dtype.dtype)
        ):
            raise ArgumentTypeError(f"input_type: expected a dtype such as vd.complex64, got {input_type!r}")
        if self.do_r2c and self.input_shape != self.shape:
            raise ArgumentValueError("input_shape: real transforms read inputs of the shape of the plan")
        if (self.kernel_count or self.kernel_convolution) and len(self.axes) != dimensions:
            raise ArgumentValueError(f"axes: convolutions are along all axes, got {axes!r}")
        self._lock = threading.Lock()

    @property
    def is_convolution(self) -> bool:
        """Whether the plan is a convolution."""
        return self.kernel_count > 0

    def record_forward(self, graph: CommandGraph | None, buffer: Buffer[Any]) -> None:
        """Record the forward transform; see `record`."""
        self.record(graph, buffer)

    def record_inverse(self, graph: CommandGraph | None, buffer: Buffer[Any]) -> None:
        """Record the inverse transform; see `record`."""
        self.record(graph, buffer, inverse=True)

    def record(
        self,
        graph: CommandGraph | None,
        buffer: Buffer[Any],
        inverse: bool = False,
        kernel: Buffer[Any] | None = None,
        input: Buffer[Any] | None = None,
    ) -> None:
        """Append the transform to a graph; a graph with `submit_on_record` submits it at once.

        Parameters
        ----------
        graph
            The graph to record to. None: the thread's `vd.global_graph()`.
        buffer
            The data to transform in place, or the destination of the result.
        inverse
            Compute the inverse transform.
        kernel
            For convolutions: the result of a plan with `kernel_convolution`.
        input
            Read the input from this buffer, which is not modified.

        Raises
        ------
        TypeError
            An argument is not a buffer.
        ValueError
            A buffer is too small, the kernel is missing, or the dtypes do not match.
        UnsupportedError
            VkFFT or the device does not support this transform.
        """
        _check_buffer(buffer, "buffer")
        for name, optional in (("kernel", kernel), ("input", input)):
            if optional is not None:
                _check_buffer(optional, name)
        check_apart("kernel", kernel, "buffer", buffer)
        if is_same_memory(input, buffer):
            if self.input_shape != self.shape:
                raise ArgumentValueError("input: it is the buffer itself, whose shape is not input_shape")
            input = None
        check_same_or_apart("input", input, "buffer", buffer)
        if self.is_convolution and kernel is None:
            raise ArgumentValueError("kernel: a convolution needs one")
        if kernel is not None and not self.is_convolution:
            raise ArgumentValueError("kernel: this plan does not convolve; make it with kernel_count=1")
        if self.is_convolution and inverse:
            raise ArgumentValueError("inverse: a convolution has no other direction")
        if graph is not None and not isinstance(graph, CommandGraph):
            raise ArgumentTypeError(f"graph: expected a CommandGraph or None, got {type(graph).__name__}")
        precision = find_precision(buffer.var_type, "buffer", buffer.context, self.do_r2c)
        check_room(buffer, "buffer", self._elements * self._results * count_complex_bytes(precision))
        if kernel is not None:
            steps = self._plan_convolution(precision, buffer, kernel, input)
        else:
            steps = self._plan_transform(precision, bool(inverse), buffer, input)
        chosen = graph if graph is not None else current.chosen
        if chosen is None:
            for step in steps:
                step(None)
            return
        chosen.require_alive()
        with chosen.recording_together():
            for step in steps:
                step(chosen)

    def _plan_transform(
        self, precision: int, inverse: bool, buffer: Buffer[Any], input: Buffer[Any] | None, results: int = 1
    ) -> list[Step]:
        before: list[Step] = []
        place: tuple[int, Shape | None] = (0, None)
        if input is not None:
            self._check_input(input, precision, inverse)
            if self.input_shape != self.shape:
                check_complex(buffer, "buffer")
                check_same_dtype(input, "input", buffer)
                before = [partial(embed, buffer, input, self.shape, self.input_shape, self._copies)]
            elif inverse and self.do_r2c:
                # VkFFT ignores a separate input in inverse real transforms of several passes.
                before = [partial(_copy, buffer, input)]
            else:
                place = self._find_input_layout(input, precision)
        steps: list[Step] = []
        for axes in self._split_axes(inverse):
            if self.do_r2c and inverse and len(self.shape) - 1 in axes:
                lines = self._elements * results // (self.shape[-1] // 2 + 1)
                steps.append(partial(drop_imaginary_ends, buffer, self.shape[-1], lines))
            request = self._make_request(precision, inverse, axes, results, *place)
            buffers = {BUFFER: buffer}
            if place[0] and input is not None:
                if self._find_program(request).is_empty:
                    before = [partial(_copy, buffer, input)]  # VkFFT generates no pass for a single element
                else:
                    buffers[INPUT] = input
            steps.append(self._make_step(request, buffers))
            place = (0, None)
        return before + steps

    def _plan_convolution(
        self, precision: int, buffer: Buffer[Any], kernel: Buffer[Any], input: Buffer[Any] | None
    ) -> list[Step]:
        check_complex(buffer, "buffer")
        check_same_dtype(kernel, "kernel", buffer)
        shared = self.single_kernel_multiple_batches and self.num_batches > 1
        period = self._elements // self.num_batches if shared else self._elements
        check_room(kernel, "kernel", period * self.kernel_count * count_complex_bytes(precision))
        if input is None and self._is_one_program:
            request = self._make_request(precision, False, self.axes, convolution=True)
            # With more passes VkFFT expects the kernel in another order.
            if len(self._find_program(request).sources) == 3:
                return [self._make_step(request, {BUFFER: buffer, KERNEL: kernel})]
        steps = self._plan_transform(precision, False, buffer, input)
        # In reverse order: the first result replaces the spectrum itself.
        for number in range(self.kernel_count - 1, -1, -1):
            place = (number * self._elements, number * period, period)
            steps.append(partial(multiply, buffer, kernel, self._elements, place, self.conjugate_convolution))
        return steps + self._plan_transform(precision, True, buffer, None, self.kernel_count)

    def _make_step(self, request: Request, buffers: Mapping[int, Buffer[Any]]) -> Step:
        program = self._find_program(request)
        if self.keep_shader_code:
            for source in program.sources:
                print(source)
        return partial(program.run, buffers)

    def get_src(self, kind: DType = dtype.complex64, inverse: bool = False) -> tuple[str, ...]:
        """Return the GLSL of each pass that transforms a buffer of dtype `kind` in place.

        Raises UnsupportedError where VkFFT has no such transform on this device.
        """
        context = get_context()
        precision = find_precision(kind, "kind", context)
        requests = (self._make_request(precision, inverse, axes) for axes in self._split_axes(inverse))
        return tuple(source for request in requests for source in self._find_program(request).sources)

    def _find_program(self, request: Request) -> Program:
        context = get_context()
        with self._lock:
            # Stored with the context: a plan must not keep a context alive.
            programs: dict[Request, Program] = context._state_of(self, dict)
            program = programs.get(request)
            if program is None:
                program = programs[request] = find_program(request)
            return program


def _copy(target: Buffer[Any], source: Buffer[Any], graph: CommandGraph | None) -> None:
    copyto(target, source, graph=graph)


def _parse_count(value: object, name: str, least: int) -> int:
    if not isinstance(value, int) or value < least:
        raise ArgumentValueError(f"{name}: expected an int, {least} or more, got {value!r}")
    return int(value)


def _check_buffer(buffer: object, name: str) -> None:
    found = require_buffer(buffer, name)
    found.require_alive()
    if found.context is not get_context():
        raise wrong_context(f"{name}: it", found.context)
