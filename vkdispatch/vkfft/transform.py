"""The description of a transform, and the requests to VkFFT for it."""

import math
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.vkfft import program


class Transform:
    """The parameters of a `VkFFTPlan`, and the requests to VkFFT for it."""

    shape: program.Shape
    axes: tuple[int, ...]
    do_r2c: bool
    normalize: bool
    padding: program.Padding
    pad_frequency_domain: bool
    kernel_count: int
    input_shape: program.Shape
    input_type: DType | None
    kernel_convolution: bool
    conjugate_convolution: int
    convolution_features: int
    num_batches: int
    single_kernel_multiple_batches: bool

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
            check_room(
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
            check_room(input, "input", needed)
            return needed, None
        if not dtype.is_complex(input.var_type) and tight <= input.mem_size < needed:
            return tight, shape  # rows without padding for the spectrum
        check_room(input, "input", needed)
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


def check_room(buffer: Buffer[Any], name: str, needed: int) -> None:
    """Raise ValueError if a buffer has less than `needed` bytes."""
    if buffer.mem_size < needed:
        raise ArgumentValueError(
            f"{name}: the transform takes {needed} bytes; the buffer has shape {buffer.shape} of "
            f"{buffer.var_type.name}, {buffer.mem_size} bytes"
        )


def _find_largest_prime(number: int) -> int:
    """Return the largest prime factor."""
    largest = 1
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            largest, number = divisor, number // divisor
        divisor += 1
    return max(largest, number)
