"""What objects of vkdispatch take of the memory that Dask accounts for."""

from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.numpy.core.array import Array, view_of
from vkdispatch.numpy.core.blanks import has_device


def register_types(sizeof: Any) -> None:
    """Register the functions of this module with `dask.sizeof.sizeof`."""
    sizeof.register(Array, measure_array)
    sizeof.register(Buffer, measure_buffer)


def measure_array(x: Array) -> int:
    """Return the bytes of an Array's elements, after computing them where there is a device."""
    if has_device():
        view_of(x)
    return x.nbytes


def measure_buffer(buffer: Buffer[Any]) -> int:
    """Return the bytes of a Buffer."""
    return buffer.mem_size
