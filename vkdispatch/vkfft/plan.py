"""Plans of VkFFT: a transform or a convolution of a certain shape, to be recorded any number of times."""

import math
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from vkdispatch.arrays.aliasing import check_apart, is_same_memory
from vkdispatch.arrays.axes import parse_axes
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import get_context, wrong_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph, current
from vkdispatch.shader.copying import copyto
from vkdispatch.vkfft.cache import program_for
from vkdispatch.vkfft.elementwise import check_alike, check_complex, embed, multiply
from vkdispatch.vkfft.layout import (
    Padding,
    Shape,
    checked_padding,
    complex_bytes,
    laid_out,
    parse_shape,
    precision_of,
    stored_elements,
)
from vkdispatch.vkfft.program import BUFFER, INPUT, KERNEL, Program, Request

Step = Callable[[CommandGraph | None], None]


class VkFFTPlan:
    """A transform, a convolution, or the making of a kernel for convolutions.

    A plan knows shapes; which precision it works in is said by the buffers that it is recorded with. VkFFT
    plans, and its kernels are compiled, at the first recording. A plan belongs to no context.

    Attributes
    ----------
    shape
        Shape of the data; of a real transform, of its real side.
    axes
        Along which it transforms, ascending.
    """

    def __init__(
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
            1 to 3 ints. Buffers hold `num_batches` x `convolution_features` x `kernel_count` of these.
        do_r2c
            Forward from reals to the half spectrum, inverse back, in rows of `vd.RFFTBuffer`'s layout.
        axes
            Along which to transform; negative ones count from the end. None: all.
        normalize
            Whether inverse transforms and convolutions divide by the number of elements transformed.
        padding
            For each axis (left, right), or None: elements left <= i < right are zeros, and are not read.
        pad_frequency_domain
            The padding is that of the spectrum.
        kernel_count
            Convolve with that many kernels, one result for each; 0: no convolution.
        input_shape, input_type
            Shape and dtype of a separate input. Along an axis where it is smaller than `shape`, zeros follow.
        kernel_convolution
            The transform makes a kernel for convolutions: the spectrum, in NumPy's order.
        conjugate_convolution
            Of a convolution: 0 multiplies spectra as they are, 1 (True) conjugates that of the data, 2 that
            of the kernel.
        convolution_features
            The data are so many images, each with a kernel of its own.
        num_batches
            How many of all that lie one after the other.
        single_kernel_multiple_batches
            All batches share one kernel; without it each has its own.
        keep_shader_code
            Print the generated kernels whenever the plan is recorded.

        Raises
        ------
        TypeError, ValueError
            A size, an axis, a range or a count is none; or `do_r2c` without the last axis.
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
        self.padding = checked_padding(padding, self.shape)
        self.pad_frequency_domain = bool(pad_frequency_domain)
        self.kernel_count = _count(kernel_count, "kernel_count", 0)
        self.convolution_features = _count(convolution_features, "convolution_features", 0)
        self.num_batches = _count(num_batches, "num_batches", 1)
        self.kernel_convolution = bool(kernel_convolution)
        self.conjugate_convolution = _count(conjugate_convolution, "conjugate_convolution", 0)
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
            raise ArgumentValueError("input_shape: a real transform reads inputs of the plan's own shape")
        if (self.kernel_count or self.kernel_convolution) and len(self.axes) != dimensions:
            raise ArgumentValueError(f"axes: convolutions are along all axes, got {axes!r}")
        self._lock = threading.Lock()

    @property
    def is_convolution(self) -> bool:
        """Whether it convolves, rather than transforms."""
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
        """Append the transform to a graph; one that submits what it records submits it at once.

        Parameters
        ----------
        graph
            None: the thread's `vd.global_graph()`.
        buffer
            What is transformed in place, or where the result goes.
        inverse
            Transform back.
        kernel
            Of a convolution: what a plan with `kernel_convolution` has made.
        input
            Read this instead, and leave it as it is.

        Raises
        ------
        TypeError
            Something is no buffer.
        ValueError
            A buffer is too small, the kernel is missing, or dtypes do not go together.
        UnsupportedError
            VkFFT cannot do it on this device, or the device lacks the dtype.
        """
        _checked(buffer, "buffer")
        for name, given in (("kernel", kernel), ("input", input)):
            if given is not None:
                _checked(given, name)
        check_apart("kernel", kernel, "buffer", buffer)
        if is_same_memory(input, buffer):
            if self.input_shape != self.shape:
                raise ArgumentValueError("input: it is the buffer itself, whose shape is not input_shape")
            input = None
        if self.is_convolution and kernel is None:
            raise ArgumentValueError("kernel: a convolution needs one")
        if kernel is not None and not self.is_convolution:
            raise ArgumentValueError("kernel: this plan does not convolve; make it with kernel_count=1")
        if self.is_convolution and inverse:
            raise ArgumentValueError("inverse: a convolution has no other direction")
        if graph is not None and not isinstance(graph, CommandGraph):
            raise ArgumentTypeError(f"graph: expected a CommandGraph or None, got {type(graph).__name__}")
        precision = precision_of(buffer.var_type, "buffer", buffer.context, self.do_r2c)
        _check_room(buffer, "buffer", self._elements * self._results * complex_bytes(precision))
        if kernel is not None:
            steps = self._convolution(precision, buffer, kernel, input)
        else:
            steps = self._transform(precision, bool(inverse), buffer, input)
        chosen = graph if graph is not None else current.chosen
        if chosen is None:
            for step in steps:
                step(None)
            return
        chosen.require_alive()
        with chosen.recording_together():
            for step in steps:
                step(chosen)

    def _transform(
        self, precision: int, inverse: bool, buffer: Buffer[Any], input: Buffer[Any] | None, results: int = 1
    ) -> list[Step]:
        before: list[Step] = []
        place: tuple[int, Shape | None] = (0, None)
        if input is not None:
            self._check_input(input, precision, inverse)
            if self.input_shape != self.shape:
                check_complex(buffer, "buffer")
                check_alike(input, "input", buffer)
                before = [partial(embed, buffer, input, self.shape, self.input_shape, self._copies)]
            elif inverse and self.do_r2c:
                # Back to reals VkFFT does not read a separate input where that takes several passes.
                before = [partial(_copy, buffer, input)]
            else:
                place = self._input_layout(input, precision)
        steps = []
        for axes in self._groups(inverse):
            request = self._request(precision, inverse, axes, results, *place)
            given = {BUFFER: buffer}
            if place[0] and input is not None:
                if self._program(request).empty:
                    before = [partial(_copy, buffer, input)]  # of one element VkFFT makes nothing
                else:
                    given[INPUT] = input
            steps.append(self._run(request, given))
            place = (0, None)
        return before + steps

    def _groups(self, inverse: bool) -> list[tuple[int, ...]]:
        """Return the axes that VkFFT is to transform together, in order.

        What it makes of several axes with zeros among them is wrong: then each goes by itself.
        """
        if len(self.axes) == 1 or not any(self._padding(inverse)):
            return [self.axes]
        return [(axis,) for axis in (self.axes if inverse else reversed(self.axes))]

    def _padding(self, inverse: bool) -> Padding:
        if self.is_convolution and inverse and not self.pad_frequency_domain:
            return (None,) * len(self.shape)  # it is that of the data, not of the result
        return self.padding

    def _convolution(
        self, precision: int, buffer: Buffer[Any], kernel: Buffer[Any], input: Buffer[Any] | None
    ) -> list[Step]:
        check_complex(buffer, "buffer")
        check_alike(kernel, "kernel", buffer)
        shared = self.single_kernel_multiple_batches and self.num_batches > 1
        period = self._elements // self.num_batches if shared else self._elements
        _check_room(kernel, "kernel", period * self.kernel_count * complex_bytes(precision))
        if input is None and self._in_one_go:
            request = self._request(precision, False, self.axes, convolution=True)
            # More passes than one for each way along each axis: VkFFT wants the kernel in another order.
            if len(self._program(request).sources) == 3:
                return [self._run(request, {BUFFER: buffer, KERNEL: kernel})]
        steps = self._transform(precision, False, buffer, input)
        # The last ones first: the first result takes the place of the spectrum itself.
        for number in range(self.kernel_count - 1, -1, -1):
            place = (number * self._elements, number * period, period)
            steps.append(partial(multiply, buffer, kernel, self._elements, place, self.conjugate_convolution))
        return steps + self._transform(precision, True, buffer, None, self.kernel_count)

    @property
    def _in_one_go(self) -> bool:
        """Whether VkFFT can be trusted with the whole convolution.

        The others are not right: it always divides by the length of the last axis, it conjugates data alone,
        and with primes beyond 13, or one axis, its generator fails.
        """
        return (
            self.normalize
            and self.conjugate_convolution < 2
            and self.kernel_count == 1
            and self.num_batches == 1
            and not self.do_r2c
            and len(self.shape) == 2
            and not any(self.padding)
            and all(size > 1 and _largest_prime(size) <= 13 for size in self.shape)
        )

    def _run(self, request: Request, given: Mapping[int, Buffer[Any]]) -> Step:
        program = self._program(request)
        if self.keep_shader_code:
            for source in program.sources:
                print(source)
        return partial(program.run, given)

    def get_src(self, kind: DType = dtype.complex64, inverse: bool = False) -> tuple[str, ...]:
        """Return the GLSL of each pass that transforms a buffer of dtype `kind` in place.

        Raises UnsupportedError where VkFFT has no such transform on this device.
        """
        context = get_context()
        precision = precision_of(kind, "kind", context)
        requests = (self._request(precision, inverse, axes) for axes in self._groups(inverse))
        return tuple(source for request in requests for source in self._program(request).sources)

    def _program(self, request: Request) -> Program:
        context = get_context()
        with self._lock:
            # On the context: a plan belongs to none, and keeps none alive.
            programs: dict[Request, Program] = context._state_of(self, dict)
            program = programs.get(request)
            if program is None:
                program = programs[request] = program_for(request)
            return program

    @property
    def _copies(self) -> int:
        return max(self.convolution_features, 1) * self.num_batches

    @property
    def _results(self) -> int:
        return max(self.kernel_count, 1)

    @property
    def _elements(self) -> int:
        return stored_elements(self.shape, self.do_r2c) * self._copies

    def _check_input(self, input: Buffer[Any], precision: int, inverse: bool) -> None:
        if self.input_shape != self.shape:
            if inverse:
                raise ArgumentValueError("input: input_shape is for forward transforms and convolutions")
            _check_room(input, "input", math.prod(self.input_shape) * self._copies * complex_bytes(precision))
        if self.input_type is not None and input.var_type is not self.input_type:
            raise ArgumentValueError(
                f"input: expected {self.input_type.name} as the plan says, got {input.var_type.name}"
            )
        if precision_of(input.var_type, "input", input.context, self.do_r2c) != precision:
            raise ArgumentValueError(
                f"input: its dtype {input.var_type.name} has another width than the buffer's"
            )

    def _input_layout(self, input: Buffer[Any], precision: int) -> tuple[int, Shape | None]:
        """Return the bytes of a separate input, and its shape in memory if VkFFT is to be told.

        That of reals is in reals.
        """
        shape = self.shape
        needed = stored_elements(shape, self.do_r2c) * self._copies * complex_bytes(precision)
        tight = math.prod(shape) * self._copies * complex_bytes(precision) // 2
        if not self.do_r2c:
            _check_room(input, "input", needed)
            return needed, None
        if not dtype.is_complex(input.var_type) and tight <= input.mem_size < needed:
            return tight, shape  # rows without room for the spectrum at their ends
        _check_room(input, "input", needed)
        return needed, (*shape[:-1], 2 * (shape[-1] // 2 + 1))

    def _request(
        self,
        precision: int,
        inverse: bool,
        axes: tuple[int, ...],
        results: int = 1,
        input_bytes: int = 0,
        stored: Shape | None = None,
        *,
        convolution: bool = False,
    ) -> Request:
        """Return what VkFFT is asked for: a transform along `axes`, or a whole convolution."""
        padding = [pad if axis in axes else None for axis, pad in enumerate(self._padding(inverse))]
        last = len(self.shape) - 1
        real = self.do_r2c and last in axes
        shape = self.shape
        if self.do_r2c and not real:
            shape = (*shape[:-1], shape[-1] // 2 + 1)
        layout = laid_out(shape, axes, tuple(padding), real, stored)
        size = self._elements * complex_bytes(precision)
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
        return Request(layout.axes, tuple(sorted((name, int(value)) for name, value in options.items())))


def _check_room(buffer: Buffer[Any], name: str, needed: int) -> None:
    if buffer.mem_size < needed:
        raise ArgumentValueError(
            f"{name}: the transform takes {needed} bytes; the buffer has shape {buffer.shape} of "
            f"{buffer.var_type.name}, {buffer.mem_size} bytes"
        )


def _copy(target: Buffer[Any], source: Buffer[Any], graph: CommandGraph | None) -> None:
    copyto(target, source, graph=graph)


def _largest_prime(number: int) -> int:
    largest = 1
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            largest, number = divisor, number // divisor
        divisor += 1
    return max(largest, number)


def _count(value: object, name: str, least: int) -> int:
    if not isinstance(value, int) or value < least:
        raise ArgumentValueError(f"{name}: expected an int, {least} or more, got {value!r}")
    return int(value)


def _checked(buffer: object, name: str) -> Buffer[Any]:
    if not isinstance(buffer, Buffer):
        raise ArgumentTypeError(f"{name}: expected a vd.Buffer, got {type(buffer).__name__}")
    buffer.require_alive()
    if buffer.context is not get_context():
        raise wrong_context(f"{name}: it", buffer.context)
    return buffer
