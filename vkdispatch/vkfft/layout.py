"""From shapes and axes as NumPy has them to VkFFT's: contiguous axis first, axes that stay merged."""

import math
import operator
from collections.abc import Sequence

from vkdispatch.base import dtype
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.base.record import record

Shape = tuple[int, ...]
VkFFTAxis = tuple[int, bool, tuple[int, int] | None, int]
Padding = tuple[tuple[int, int] | None, ...]  # for each axis the range of elements that are zeros

HALF, SINGLE, DOUBLE = range(3)
_PRECISIONS: dict[DType, int] = {
    dtype.complex32: HALF,
    dtype.hvec2: HALF,
    dtype.complex64: SINGLE,
    dtype.vec2: SINGLE,
    dtype.complex128: DOUBLE,
    dtype.dvec2: DOUBLE,
}
_REAL_PRECISIONS: dict[DType, int] = {dtype.float16: HALF, dtype.float32: SINGLE, dtype.float64: DOUBLE}


@record
class Layout:
    """How VkFFT sees the data, the contiguous axis first.

    Attributes
    ----------
    axes
        Of each axis its size, whether it is left out (such a one may stand for several), the range of zeros
        if any, and (of an input with rows of its own) elements from one step along the next axis to another.
    batches
        How often all that follows.
    """

    axes: tuple[VkFFTAxis, ...]
    batches: int


def laid_out(
    shape: Shape, axes: Sequence[int], padding: Padding, real: bool, input_shape: Shape | None = None
) -> Layout:
    """Say how VkFFT sees a transform of `shape` along `axes`.

    Axes of length 1 are left out, except the one that makes reals of complex numbers. At least one axis is
    left in the outcome. `input_shape` are the elements that a separate input has along each axis, where that
    is not as the buffer.
    """
    found: list[VkFFTAxis] = []
    last = len(shape) - 1
    stride = 1
    for axis in range(last, -1, -1):
        size = shape[axis]
        stride *= 0 if input_shape is None else input_shape[axis]
        transformed = axis in axes and (size > 1 or (real and axis == last))
        plain = not transformed and padding[axis] is None
        if plain and found and input_shape is None and found[-1][1] and found[-1][2] is None:
            found[-1] = (found[-1][0] * size, True, None, 0)
        elif not plain or size > 1:
            found.append((size, not transformed, padding[axis], stride))
    batches = 1
    if found and found[-1][1] and found[-1][2] is None:
        batches = found.pop()[0]
    return Layout(tuple(found) or ((1, False, None, 0),), batches)


def precision_of(kind: DType, name: str, context: Context, real: bool = False) -> int:
    """Return in which precision VkFFT is to work on data of a dtype.

    Parameters
    ----------
    name
        The argument, as messages call it.
    real
        Whether reals will do, as where they lie in the padded rows of a real transform.

    Raises
    ------
    ValueError
        It is no complex dtype.
    UnsupportedError
        The device does not calculate with such numbers.
    """
    precision = _PRECISIONS.get(kind)
    if precision is None and real:
        precision = _REAL_PRECISIONS.get(kind)
    if precision is None:
        raise ArgumentValueError(
            f"{name}: VkFFT transforms complex32, complex64 and complex128, got {kind.name}"
        )
    for device in context.device_infos:
        if precision == DOUBLE and not device.float_64_support:
            raise UnsupportedError(f"{name}: the device {device.device_name!r} has no float64; use complex64")
        if precision == HALF and not (device.float_16_support and device.storage_buffer_16_bit_access):
            raise UnsupportedError(f"{name}: the device {device.device_name!r} has no float16; use complex64")
    return precision


def complex_bytes(precision: int) -> int:
    """Return the bytes of one complex number."""
    return 4 << precision


def stored_elements(shape: Shape, real: bool) -> int:
    """Return how many complex numbers a buffer for such a transform holds."""
    if real:
        return math.prod(shape[:-1]) * (shape[-1] // 2 + 1)
    return math.prod(shape)


def parse_shape(shape: object, name: str) -> Shape:
    """Return 1 to 3 positive ints. Raises ValueError or TypeError if it is something else."""
    if isinstance(shape, int) and not isinstance(shape, bool):
        shape = (shape,)
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        raise ArgumentTypeError(f"{name}: expected 1 to 3 ints, got {shape!r}")
    try:
        sizes = tuple(operator.index(size) for size in shape)
    except TypeError:
        raise ArgumentTypeError(f"{name}: expected 1 to 3 ints, got {shape!r}") from None
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise ArgumentValueError(f"{name}: expected 1 to 3 positive ints, got {shape!r}")
    return sizes


def checked_padding(padding: object, shape: Shape) -> Padding:
    """Return the range of zeros of each axis, None where it has none.

    Raises ValueError if it is not one (left, right), with 0 <= left <= right <= size, or None for each axis.
    """
    if padding is None:
        return (None,) * len(shape)
    if not isinstance(padding, Sequence) or len(padding) != len(shape):
        raise ArgumentValueError(
            f"padding: expected (left, right) or None for each of {len(shape)} axes, got {padding!r}"
        )
    found: list[tuple[int, int] | None] = []
    for size, pair in zip(shape, padding, strict=True):
        if pair is None:
            found.append(None)
            continue
        try:
            left, right = (operator.index(end) for end in pair)
        except (TypeError, ValueError):
            raise ArgumentValueError(f"padding: expected (left, right) or None, got {pair!r}") from None
        if not 0 <= left <= right <= size:
            raise ArgumentValueError(
                f"padding: expected 0 <= left <= right <= {size}, the size of its axis, got {pair!r}"
            )
        found.append((left, right) if left < right else None)
    return tuple(found)
