"""Numbers that fill arrays, as kernels take them: in the dtype of the array, or as words."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vkdispatch.base import dtype
from vkdispatch.base.dtype import (
    DType,
    component_count,
    component_type,
    is_complex,
    is_matrix,
    is_scalar,
    to_numpy_dtype,
)
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.memory.packing import to_bfloat16
from vkdispatch.base.record import record
from vkdispatch.rearrange.moves import Move


@record
class Filler:
    """Numbers that fill arrays of a dtype: one, or two for each padded axis if they differ."""

    kind: DType
    numbers: tuple[Any, ...]

    @property
    def is_several(self) -> bool:
        """Whether there are several numbers."""
        return len(self.numbers) > 1

    def values(self, move: Move) -> list[Any]:
        """Return the numbers as arguments of a launch."""
        if move.word is not None:
            return [to_word(number, self.kind, move.word) for number in self.numbers]
        return [to_value(number, self.kind, move.register_type) for number in self.numbers]


def host_component(kind: DType) -> Any:
    """Return the NumPy type of a number that fills an element: of its components, or its complex type."""
    if kind is dtype.complex32:
        return np.complex64
    if kind is dtype.bfloat16:
        return np.float32
    return np.dtype(to_numpy_dtype(kind if is_complex(kind) else component_type(kind)))


def cast_number(value: object, kind: DType, name: str) -> Any:
    """Return a number as NumPy casts it to a dtype.

    Raises
    ------
    TypeError
        The value is not a number, or is complex and the dtype is real.
    ValueError
        The value is a Python int out of the bounds of the dtype.
    """
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        raise ArgumentTypeError(f"{name}: expected a number, got {value!r}")
    if isinstance(value, (complex, np.complexfloating)) and not is_complex(kind):
        raise ArgumentTypeError(f"{name}: {value!r} cannot be stored as {kind.name}")
    host = np.dtype(host_component(kind))
    if type(value) is int and host.kind in "iu" and not np.iinfo(host).min <= value <= np.iinfo(host).max:
        raise ArgumentValueError(f"{name}: {value} is out of bounds for {kind.name}")
    try:
        with np.errstate(all="ignore"):
            return np.asarray(value).astype(host)[()]
    except (ValueError, OverflowError, TypeError):
        raise ArgumentTypeError(f"{name}: {value!r} cannot be stored as {kind.name}") from None


def to_bytes(number: Any, kind: DType) -> bytes:
    """Return the bytes of an element whose components all are the number."""
    if kind is dtype.bfloat16:
        return to_bfloat16(np.asarray([number], np.float32)).tobytes()
    if kind is dtype.complex32:
        return np.asarray([number.real, number.imag], np.float16).tobytes()
    octets = np.asarray([number], host_component(kind)).tobytes()
    return octets * (kind.item_size // len(octets))


def to_word(number: Any, kind: DType, word: DType) -> Any:
    """Return a word of such elements, or of a part of one."""
    octets = to_bytes(number, kind)
    octets = (octets * max(1, word.item_size // len(octets)))[: word.item_size]
    if word.item_size <= 4:
        return int.from_bytes(octets, "little")
    parts: list[int] = np.frombuffer(octets, np.uint32).tolist()
    return parts


def to_value(number: Any, kind: DType, held: DType) -> Any:
    """Return a number as a kernel takes a value of the type `held`."""
    if held is dtype.bool_:
        return int(bool(number))
    if is_scalar(held):
        return number.item()
    if is_complex(held):
        return complex(number)
    if is_matrix(held):
        size = held.child_count
        return np.full((size, size), number)
    parts: Sequence[Any] = [number.item()] * component_count(held)
    return parts
