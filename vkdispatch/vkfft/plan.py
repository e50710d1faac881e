"""VkFFT plans: transforms and convolutions of fixed shape, and the elementwise kernels around them."""

import math
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import get_context, wrong_context
from vkdispatch.base.dtype import DType, complex32, complex64, complex128, is_complex, is_scalar, uint32
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.abbreviations import Buff, Const
from vkdispatch.codegen.execution.control_flow import if_block
from vkdispatch.codegen.execution.invocation import global_invocation_id
from vkdispatch.codegen.functions.vectors import to_dtype
from vkdispatch.execution_pipeline.command_graph import CommandGraph, current
from vkdispatch.families.operands import (
    check_apart,
    check_same_or_apart,
    is_same_memory,
    parse_axes,
    require_buffer,
)
from vkdispatch.families.stored import store_results
from vkdispatch.shader.copying import copyto
from vkdispatch.shader.decorator import shader
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.vkfft import program
from vkdispatch.vkfft.program import BUFFER, INPUT, KERNEL, Program, Request, Shape

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
        target[start + i] = value.to_dtype(kind)

    return _make_kernel(move_part, kind, source_kind, numbers=2)


def _make_kernel(function: Any, *buffers: DType, numbers: int) -> ShaderFunction:
    """Return the kernel of a function of buffers of some dtypes and so many u32 numbers."""
    annotation: Any = Buff
    types = [*(annotation[kind] for kind in buffers), *[Const[uint32]] * numbers]
    return shader(arg_type_annotations=types, rewrite=False)(function)


Step = Callable[[CommandGraph | None], None]


class VkFFTPlan:
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
        self.shape = program.parse_shape(shape, "shape")
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
        self.padding = program.parse_padding(padding, self.shape)
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
        self.input_shape = (
            self.shape if input_shape is None else program.parse_shape(input_shape, "input_shape")
        )
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
        precision = program.find_precision(buffer.var_type, "buffer", buffer.context, self.do_r2c)
        _check_room(buffer, "buffer", self._elements * self._results * program.count_complex_bytes(precision))
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
        _check_room(kernel, "kernel", period * self.kernel_count * program.count_complex_bytes(precision))
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
        passes = self._find_program(request)
        if self.keep_shader_code:
            for source in passes.sources:
                print(source)
        return partial(passes.run, buffers)

    def get_src(self, kind: DType = dtype.complex64, inverse: bool = False) -> tuple[str, ...]:
        """Return the GLSL of each pass that transforms a buffer of dtype `kind` in place.

        Raises UnsupportedError where VkFFT has no such transform on this device.
        """
        context = get_context()
        precision = program.find_precision(kind, "kind", context)
        requests = (self._make_request(precision, inverse, axes) for axes in self._split_axes(inverse))
        return tuple(source for request in requests for source in self._find_program(request).sources)

    def _find_program(self, request: Request) -> Program:
        context = get_context()
        with self._lock:
            # Stored with the context: a plan must not keep a context alive.
            programs: dict[Request, Program] = context._state_of(self, dict)
            if request not in programs:
                programs[request] = program.find_program(request)
            return programs[request]

    # -- the requests to VkFFT

    def _split_axes(self, inverse: bool) -> list[tuple[int, ...]]:
        """Return the axes of each VkFFT transform, in order.

        VkFFT gives wrong results for several axes with zero padding, so each axis is then transformed alone.
        The inverse to reals is alone, too, since its input is prepared.
        """
        last = len(self.shape) - 1
        if len(self.axes) == 1 or not any(self._choose_padding(inverse)):
            is_apart = inverse and self.do_r2c and len(self.axes) > 1
            return [self.axes[:-1], (last,)] if is_apart else [self.axes]
        return [(axis,) for axis in (self.axes if inverse else reversed(self.axes))]

    def _choose_padding(self, inverse: bool) -> program.Padding:
        """Return the ranges of zeros along each axis."""
        if self.kernel_count and inverse and not self.pad_frequency_domain:
            return (None,) * len(self.shape)  # the padding applies to the data, not to the result
        return self.padding

    @property
    def _is_one_program(self) -> bool:
        """Whether VkFFT computes the whole convolution correctly in one program.

        VkFFT always divides by the length of the last axis and can conjugate only the data, and its generator
        fails for one axis and for prime factors above 13.
        """
        return (
            self.normalize
            and self.conjugate_convolution < 2
            and self.kernel_count == 1
            and self.num_batches == 1
            and not self.do_r2c
            and len(self.shape) == 2
            and not any(self.padding)
            and all(size > 1 and _find_largest_prime(size) <= 13 for size in self.shape)
        )

    @property
    def _copies(self) -> int:
        """The number of arrays of `shape` in a buffer with one result."""
        return max(self.convolution_features, 1) * self.num_batches

    @property
    def _results(self) -> int:
        """The number of results."""
        return max(self.kernel_count, 1)

    @property
    def _elements(self) -> int:
        """The number of complex elements in a buffer with one result."""
        return program.count_stored_elements(self.shape, self.do_r2c) * self._copies

    def _check_input(self, input: Buffer[Any], precision: int, inverse: bool) -> None:
        """Raise ValueError unless a separate input has the right dtype and size."""
        if self.input_shape != self.shape:
            if inverse:
                raise ArgumentValueError("input: input_shape is for forward transforms and convolutions")
            _check_room(
                input,
                "input",
                math.prod(self.input_shape) * self._copies * program.count_complex_bytes(precision),
            )
        if self.input_type is not None and input.var_type is not self.input_type:
            raise ArgumentValueError(
                f"input: expected {self.input_type.name} as the plan says, got {input.var_type.name}"
            )
        if program.find_precision(input.var_type, "input", input.context, self.do_r2c) != precision:
            raise ArgumentValueError(
                f"input: its dtype {input.var_type.name} has another width than the buffer's"
            )

    def _find_input_layout(self, input: Buffer[Any], precision: int) -> tuple[int, program.Shape | None]:
        """Return the size of a separate input in bytes, and its shape in memory or None.

        VkFFT needs the shape for real transforms, in real numbers.
        """
        shape = self.shape
        needed = (
            program.count_stored_elements(shape, self.do_r2c)
            * self._copies
            * program.count_complex_bytes(precision)
        )
        tight = math.prod(shape) * self._copies * program.count_complex_bytes(precision) // 2
        if not self.do_r2c:
            _check_room(input, "input", needed)
            return needed, None
        if not dtype.is_complex(input.var_type) and tight <= input.mem_size < needed:
            return tight, shape  # rows without padding for the spectrum
        _check_room(input, "input", needed)
        return needed, (*shape[:-1], 2 * (shape[-1] // 2 + 1))

    def _make_request(
        self,
        precision: int,
        inverse: bool,
        axes: tuple[int, ...],
        results: int = 1,
        input_bytes: int = 0,
        stored: program.Shape | None = None,
        *,
        convolution: bool = False,
    ) -> program.Request:
        """Return the request for a transform along `axes`, or for a whole convolution."""
        padding = [pad if axis in axes else None for axis, pad in enumerate(self._choose_padding(inverse))]
        last = len(self.shape) - 1
        real = self.do_r2c and last in axes
        shape = self.shape
        if self.do_r2c and not real:
            shape = (*shape[:-1], shape[-1] // 2 + 1)
        layout = program.make_layout(shape, axes, tuple(padding), real, stored)
        size = self._elements * program.count_complex_bytes(precision)
        options: dict[str, int] = {
            "batches": layout.batches * (1 if convolution else self._copies * results),
            "precision": precision,
            "buffer_size": size * results,
            "forward": not inverse,
            "inverse": inverse,
        }
        optional = {
            "real": real,
            "normalize": self.normalize and (inverse or convolution),
            "pad_frequency": self.pad_frequency_domain,
            "input_size": input_bytes,
            "kernel_size": size if convolution else 0,
            "features": self.convolution_features if convolution else 0,
            "conjugate": self.conjugate_convolution == 1 and convolution,
        }
        options |= {name: value for name, value in optional.items() if value}
        return program.Request(
            layout.axes, tuple(sorted((name, int(value)) for name, value in options.items()))
        )


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


def _check_room(buffer: Buffer[Any], name: str, needed: int) -> None:
    """Raise ValueError if a buffer has less than `needed` bytes."""
    if buffer.mem_size < needed:
        raise ArgumentValueError(
            f"{name}: the transform takes {needed} bytes; the buffer has shape {buffer.shape} of "
            f"{buffer.var_type.name}, {buffer.mem_size} bytes"
        )


def _find_largest_prime(number: int) -> int:
    largest = 1
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            largest, number = divisor, number // divisor
        divisor += 1
    return max(largest, number)
