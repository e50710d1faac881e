"""Complex numbers in memory, in the form that the device moves fastest.

On a CPU driver the cost of an access depends on its elements, not its bytes: there, a complex64 is one
element of 64 bits rather than two of 32.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, complex64, uint64
from vkdispatch.families.tuning import device_facts


def cast(value: Any, kind: DType) -> Any:
    """Return a value, converted to a dtype unless it has it."""
    return value if value.var_type is kind else value.to_dtype(kind)


def word_type(kind: DType) -> DType:
    """Return the dtype of the memory for complex numbers of a type."""
    packed = kind is complex64 and device_facts().is_cpu and "shaderInt64" in device_facts().features
    return uint64 if packed else kind


class PackedValues:
    """complex64 values in an array of uint64."""

    var_type = complex64

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> Any:
        pair = vc.unpack_uint2x32(self._array[index]).to_register()
        return vc.to_complex(vc.uint_bits_to_float(pair.x), vc.uint_bits_to_float(pair.y))

    def __setitem__(self, index: Any, value: Any) -> None:
        value = vc.to_complex(value, 0) if isinstance(value, int) else value.to_register()
        pair = (vc.float_bits_to_uint(part) for part in (value.real, value.imag))
        self._array[index] = vc.pack_uint2x32(vc.to_uvec2(*pair))


def annotation_of(kind: DType) -> Any:
    """Return the annotation of a buffer of complex numbers that is accessed by `unwrap`."""
    return vc.Buffer[word_type(kind)]  # type: ignore[misc]


def unwrap(argument: Any) -> Any:
    """Return the values of an argument annotated with `annotation_of`; callers pass complex64."""
    if argument.var_type is not uint64:
        return argument
    vc.get_builder().take_argument_as(argument, complex64)
    return PackedValues(argument)


def allocate_values(kind: DType, count: int, name: str) -> Any:
    """Allocate workgroup memory for real or complex values."""
    word = word_type(kind)
    array = vc.shared_buffer(word, count, var_name=name)
    return array if word is kind else PackedValues(array)
