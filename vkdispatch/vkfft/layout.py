"""Conversion of shapes and axes from NumPy's order to VkFFT's: contiguous axis first, idle axes merged."""

import math
import operator
from collections.abc import Sequence
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.base.record import record

Shape = tuple[int, ...]
VkFFTAxis = tuple[int, bool, tuple[int, int] | None, int]
Padding = tuple[tuple[int, int] | None, ...]  # for each axis, the range of elements that are zeros

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
    """The data layout in VkFFT's order, contiguous axis first.

    Attributes
    ----------
    axes
        For each axis: its size; whether it is omitted from the transform (it may then stand for several
        axes); the range of zeros, or None; and the stride of the next axis for an input with its own rows.
    batches
        The number of such arrays, one after another.
    """

    axes: tuple[VkFFTAxis, ...]
    batches: int


def make_layout(
    shape: Shape, axes: Sequence[int], padding: Padding, real: bool, input_shape: Shape | None = None
) -> Layout:
    """Return the layout of a transform of `shape` along `axes`.

    Axes of length 1 are omitted, except the last axis of a real transform. The result has at least one axis.
    `input_shape` is the shape in memory of a separate input whose rows differ from the buffer's.
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


def find_precision(kind: DType, name: str, context: Context, real: bool = False) -> int:
    """Return the precision in which VkFFT transforms a dtype.

    Parameters
    ----------
    name
        The name of the argument, for error messages.
    real
        Whether real dtypes are accepted, for the padded rows of a real transform.

    Raises
    ------
    ValueError
        The dtype is not complex.
    UnsupportedError
        The device does not support the dtype.
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


def require_buffer(buffer: object, name: str) -> Buffer[Any]:
    """Return a buffer. Raises TypeError for anything else."""
    if not isinstance(buffer, Buffer):
        raise ArgumentTypeError(f"{name}: expected a vd.Buffer, got {type(buffer).__name__}")
    return buffer


def count_complex_bytes(precision: int) -> int:
    """Return the size of a complex number in bytes."""
    return 4 << precision


def count_stored_elements(shape: Shape, real: bool) -> int:
    """Return the number of complex elements in a buffer for a transform of `shape`."""
    if real:
        return math.prod(shape[:-1]) * (shape[-1] // 2 + 1)
    return math.prod(shape)


def parse_shape(shape: object, name: str) -> Shape:
    """Return 1 to 3 positive ints. Raises TypeError or ValueError for anything else."""
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


def parse_padding(padding: object, shape: Shape) -> Padding:
    """Return the range of zeros of each axis, or None for an axis without zeros.

    Raises ValueError unless `padding` has None or a pair (left, right) with 0 <= left <= right <= size for
    each axis.
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
