"""Numbers that arrays are filled with, as kernels take them: in the array's dtype, or as words."""

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
from vkdispatch.base.packing import to_bfloat16
from vkdispatch.base.record import record
from vkdispatch.rearrange.words import Moving


@record
class Filler:
    """Python numbers that go into arrays of a dtype.

    `several` tells whether they differ; then there are two of them for each axis that is padded.
    """

    kind: DType
    numbers: tuple[Any, ...]

    @property
    def several(self) -> bool:
        """Whether they differ."""
        return len(self.numbers) > 1

    def values(self, moving: Moving) -> list[Any]:
        """Return them as arguments of a launch."""
        if moving.word is not None:
            return [as_word(number, self.kind, moving.word) for number in self.numbers]
        return [as_value(number, self.kind, moving.held) for number in self.numbers]


def host_component(kind: DType) -> Any:
    """Return the NumPy type of a number that fills an element: of its components, or of it if complex."""
    if kind is dtype.complex32:
        return np.complex64
    if kind is dtype.bfloat16:
        return np.float32
    return np.dtype(to_numpy_dtype(kind if is_complex(kind) else component_type(kind)))


def checked_number(value: object, kind: DType, name: str) -> Any:
    """Return a number as NumPy casts it to a dtype.

    Raises
    ------
    TypeError
        It is none, or complex where the dtype is real.
    ValueError
        It is a Python int beyond the dtype's.
    """
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        raise ArgumentTypeError(f"{name}: expected a number, got {value!r}")
    if isinstance(value, (complex, np.complexfloating)) and not is_complex(kind):
        raise ArgumentTypeError(f"{name}: {value!r} does not go into elements of {kind.name}")
    host = np.dtype(host_component(kind))
    if type(value) is int and host.kind in "iu" and not np.iinfo(host).min <= value <= np.iinfo(host).max:
        raise ArgumentValueError(f"{name}: {value} is out of bounds for {kind.name}")
    try:
        with np.errstate(all="ignore"):
            return np.asarray(value).astype(host)[()]
    except (ValueError, OverflowError, TypeError):
        raise ArgumentTypeError(f"{name}: {value!r} does not go into elements of {kind.name}") from None


def as_bytes(number: Any, kind: DType) -> bytes:
    """Return an element of which every component, or the complex number, is the number."""
    if kind is dtype.bfloat16:
        return to_bfloat16(np.asarray([number], np.float32)).tobytes()
    if kind is dtype.complex32:
        return np.asarray([number.real, number.imag], np.float16).tobytes()
    octets = np.asarray([number], host_component(kind)).tobytes()
    return octets * (kind.item_size // len(octets))


def as_word(number: Any, kind: DType, word: DType) -> Any:
    """Return a word of elements, or of a part of one, of which every component is the number."""
    octets = as_bytes(number, kind)
    octets = (octets * max(1, word.item_size // len(octets)))[: word.item_size]
    if word.item_size <= 4:
        return int.from_bytes(octets, "little")
    parts: list[int] = np.frombuffer(octets, np.uint32).tolist()
    return parts


def as_value(number: Any, kind: DType, held: DType) -> Any:
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
