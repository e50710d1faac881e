"""Plans of VkFFT: a transform or a convolution of a certain shape, to be recorded any number of times."""

import math
import threading
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.execution_pipeline.command_graph import CommandGraph, current
from vkdispatch.shader.copying import copyto
from vkdispatch.vkfft.cache import program_for
from vkdispatch.vkfft.layout import (
    Shape,
    checked_axes,
    checked_padding,
    checked_shape,
    complex_bytes,
    laid_out,
    precision_of,
    stored_elements,
)
from vkdispatch.vkfft.program import BUFFER, INPUT, KERNEL, Program, Request


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
            The transform makes a kernel for convolutions, in VkFFT's own order of elements.
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
        self.shape = checked_shape(shape, "shape")
        dimensions = len(self.shape)
        self.axes = checked_axes(range(dimensions) if axes is None else axes, dimensions, "axes")
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
                f"conjugate_convolution: expected 0, 1 (the data) or 2 (the kernel), got {conjugate_convolution}"
            )
        self.single_kernel_multiple_batches = bool(single_kernel_multiple_batches)
        self.keep_shader_code = bool(keep_shader_code)
        self.input_shape = self.shape if input_shape is None else checked_shape(input_shape, "input_shape")
        self.input_type = input_type
        if len(self.input_shape) != dimensions or any(
            size > whole for size, whole in zip(self.input_shape, self.shape, strict=True)
        ):
            raise ArgumentValueError(
                f"input_shape: expected {dimensions} ints, none more than in {self.shape}, got {input_shape!r}"
            )
        if input_type is not None and not (isinstance(input_type, type) and issubclass(input_type, dtype.dtype)):
            raise ArgumentTypeError(f"input_type: expected a dtype such as vd.complex64, got {input_type!r}")
        if (self.kernel_count or self.kernel_convolution) and len(self.axes) != dimensions:
            raise ArgumentValueError(f"axes: convolutions are along all axes, got {axes!r}")
        self._programs: dict[Request, Program] = {}
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
        given = {BUFFER: _checked(buffer, "buffer")}
        if kernel is not None:
            given[KERNEL] = _checked(kernel, "kernel")
        if input is not None:
            given[INPUT] = _checked(input, "input")
        if self.is_convolution and kernel is None:
            raise ArgumentValueError("kernel: a convolution needs one")
        if kernel is not None and not self.is_convolution:
            raise ArgumentValueError("kernel: this plan does not convolve; make it with kernel_count=1")
        if self.is_convolution and inverse:
            raise ArgumentValueError("inverse: a convolution has no other direction")
        if graph is not None and not isinstance(graph, CommandGraph):
            raise ArgumentTypeError(f"graph: expected a CommandGraph or None, got {type(graph).__name__}")
        request = self._request(bool(inverse), given)
        program = self._program(request)
        if self.keep_shader_code:
            for source in program.sources:
                print(source)
        chosen = graph if graph is not None else current.chosen
        if program.empty:
            if input is not None:
                copyto(buffer, input, graph=chosen)
        elif chosen is None:
            program.launch(given)
        else:
            chosen.require_alive()
            program.record(chosen, given)

    def get_src(self, kind: DType = dtype.complex64, inverse: bool = False) -> tuple[str, ...]:
        """Return the GLSL of each pass that transforms a buffer of dtype `kind` in place.

        Raises UnsupportedError where VkFFT has no such transform on this device.
        """
        context = get_context()
        precision = precision_of(kind, "kind", context)
        return self._program(self._request_for(precision, inverse)).sources

    def _program(self, request: Request) -> Program:
        context = get_context()
        with self._lock:
            program = self._programs.get(request)
            if program is None or program.context is not context:
                program = self._programs[request] = program_for(request)
            return program

    def _request(self, inverse: bool, given: dict[int, Buffer[Any]]) -> Request:
        buffer, input, kernel = (given.get(number) for number in (BUFFER, INPUT, KERNEL))
        assert buffer is not None
        precision = precision_of(buffer.var_type, "buffer", buffer.context, self.do_r2c)
        number = complex_bytes(precision)
        _check_room(buffer, "buffer", self._elements * number)
        if kernel is not None:
            _check_precision(kernel, "kernel", precision)
            _check_room(kernel, "kernel", self._kernel_elements * number)
        if input is None:
            return self._request_for(precision, inverse)
        if inverse and self.input_shape != self.shape:
            raise ArgumentValueError("input: input_shape is for forward transforms and convolutions")
        if self.input_type is not None and input.var_type is not self.input_type:
            raise ArgumentValueError(
                f"input: expected {self.input_type.name} as the plan says, got {input.var_type.name}"
            )
        _check_precision(input, "input", precision, self.do_r2c)
        return self._request_for(precision, inverse, *self._input_layout(input, precision, inverse))

    @property
    def _copies(self) -> int:
        return max(self.convolution_features, 1) * self.num_batches

    @property
    def _elements(self) -> int:
        return stored_elements(self.shape, self.do_r2c) * self._copies * max(self.kernel_count, 1)

    @property
    def _kernel_elements(self) -> int:
        copies = max(self.convolution_features, 1) * self.kernel_count
        if not self.single_kernel_multiple_batches:
            copies *= self.num_batches
        return stored_elements(self.shape, self.do_r2c) * copies

    def _input_layout(self, input: Buffer[Any], precision: int, inverse: bool) -> tuple[int, Shape | None]:
        """Return the bytes of a separate input, and its shape in memory if that is not as the buffer's."""
        shape = self.input_shape
        needed = stored_elements(shape, self.do_r2c) * self._copies * complex_bytes(precision)
        tight = math.prod(shape) * self._copies * complex_bytes(precision) // 2
        reals = self.do_r2c and not inverse and not dtype.is_complex(input.var_type)
        if reals and tight <= input.mem_size < needed:
            return tight, shape  # rows of reals, without room for the spectrum at their ends
        _check_room(input, "input", needed)
        if shape == self.shape:
            return needed, None
        return needed, (*shape[:-1], shape[-1] // 2 + 1) if self.do_r2c else shape

    def _request_for(
        self, precision: int, inverse: bool, input_bytes: int = 0, stored: Shape | None = None
    ) -> Request:
        padding = list(self.padding)
        if input_bytes and not inverse:
            for axis, (size, whole) in enumerate(zip(self.input_shape, self.shape, strict=True)):
                if size < whole and padding[axis] is None:
                    padding[axis] = (size, whole)
        layout = laid_out(self.shape, self.axes, tuple(padding), self.do_r2c, stored)
        options: dict[str, int] = {
            "batches": layout.batches * self.num_batches,
            "precision": precision,
            "buffer_size": self._elements * complex_bytes(precision),
            "forward": not inverse,
            "inverse": inverse,
        }
        optional = {
            "real": self.do_r2c,
            "normalize": self.normalize and (inverse or self.is_convolution),
            "pad_frequency": self.pad_frequency_domain,
            "input_size": input_bytes,
            "makes_kernel": self.kernel_convolution,
            "features": self.convolution_features,
        }
        if self.is_convolution:
            optional |= {
                "kernel_size": self._kernel_elements * complex_bytes(precision),
                "kernels": self.kernel_count,
                "conjugate": self.conjugate_convolution,
            }
        options |= {name: value for name, value in optional.items() if value}
        return Request(layout.axes, tuple(sorted((name, int(value)) for name, value in options.items())))


def _check_precision(buffer: Buffer[Any], name: str, precision: int, real: bool = False) -> None:
    if precision_of(buffer.var_type, name, buffer.context, real) != precision:
        raise ArgumentValueError(
            f"{name}: its dtype {buffer.var_type.name} has another width than the buffer's"
        )


def _check_room(buffer: Buffer[Any], name: str, needed: int) -> None:
    if buffer.mem_size < needed:
        raise ArgumentValueError(
            f"{name}: the transform takes {needed} bytes; the buffer has shape {buffer.shape} of "
            f"{buffer.var_type.name}, {buffer.mem_size} bytes"
        )


def _count(value: object, name: str, least: int) -> int:
    if not isinstance(value, int) or value < least:
        raise ArgumentValueError(f"{name}: expected an int, {least} or more, got {value!r}")
    return int(value)


def _checked(buffer: object, name: str) -> Buffer[Any]:
    if not isinstance(buffer, Buffer):
        raise ArgumentTypeError(f"{name}: expected a vd.Buffer, got {type(buffer).__name__}")
    buffer.require_alive()
    if buffer.context is not get_context():
        raise UsageError(f"{name}: it belongs to a context that is gone; make it again")
    return buffer
