"""CUDA's array interface, version 3: what `__cuda_array_interface__` shows, and what it is read as."""

import math
from operator import index
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, SharingError
from vkdispatch.base.host.layout import MAX_AXES
from vkdispatch.base.host_numpy import np
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record
from vkdispatch.base.sharing.cuda import can_link, find_link
from vkdispatch.base.sharing.cuda_link import CudaLoan
from vkdispatch.base.sharing.cuda_streams import current_stream, parse_dlpack_stream
from vkdispatch.base.sharing.imports import is_in_c_order, refuse_write


def lend_by_interface(context: Context, memory: native.Buffer, loan: CudaLoan | None) -> CudaLoan:
    """Return a loan of memory for consumers of the interface, or the one of before, after all work up to now.

    The owner of the memory keeps it: consumers reference the owner. Raises AttributeError where CUDA does not
    know the device.
    """
    if not can_link(context):
        raise AttributeError("__cuda_array_interface__: CUDA cannot share this memory")
    link = find_link(context)
    if loan is None:
        loan = link.lend(memory, None)
    link.give(link.stream)
    return loan


def make_interface(
    loan: CudaLoan, shape: tuple[int, ...], component: Any, strides: tuple[int, ...] | None, offset: int = 0
) -> dict[str, Any]:
    """Return the interface of elements of a NumPy dtype in lent memory. Strides and offset are in bytes."""
    return {
        "shape": shape,
        "typestr": np.dtype(component).str,
        "data": (loan.address + offset, loan.is_read_only),
        "strides": strides,
        "stream": loan.link.stream,
        "version": 3,
    }


@record(eq=False)
class CudaElements:
    """Elements of a CUDA array in C order, as its interface shows them."""

    address: int
    size: int
    shape: tuple[int, ...]
    kind: DType
    is_read_only: bool
    stream: int | None


def read_interface(obj: object, ordinal: int) -> CudaElements:
    """Return the elements of an object with `__cuda_array_interface__`, on a device with this number.

    Raises TypeError or ValueError if it has none, or one that buffers cannot have.
    """
    interface = getattr(obj, "__cuda_array_interface__", None)
    if not isinstance(interface, dict):
        raise ArgumentTypeError(
            f"obj: expected an array with __cuda_array_interface__, got {type(obj).__name__}"
        )
    missing = [name for name in ("shape", "typestr", "data") if name not in interface]
    if missing:
        raise ArgumentValueError(f"obj: its __cuda_array_interface__ lacks {', '.join(missing)}")
    if interface.get("mask") is not None:
        raise ArgumentValueError("obj: expected an array without a mask; buffers have none")
    try:
        shape, component = tuple(map(index, interface["shape"])), np.dtype(interface["typestr"])
        address, is_read_only = interface["data"]
        address, strides = index(address or 0), interface.get("strides")
        strides = None if strides is None else tuple(map(index, strides))
    except (TypeError, ValueError) as error:
        raise ArgumentValueError(f"obj: its __cuda_array_interface__ is invalid: {error}") from None
    kind = dtype.from_numpy_dtype(component, "obj")
    if len(shape) > MAX_AXES:
        raise ArgumentValueError(f"obj: a buffer has at most {MAX_AXES} axes, got {len(shape)} in {shape}")
    size = math.prod(shape) * component.itemsize
    if min(shape, default=0) < 0 or (strides is not None and len(strides) != len(shape)):
        raise ArgumentValueError(f"obj: no array has the shape {shape} and the strides {strides}")
    if address < 0 or address + size >= 1 << 64 or (size and not address):
        raise ArgumentValueError(f"obj: no memory has {size} bytes at the address {address:#x}")
    if strides is not None and not is_in_c_order(shape, strides, component.itemsize):
        raise ArgumentValueError("obj: expected elements in C order; copy it so, with cupy.ascontiguousarray")
    stream = parse_dlpack_stream(interface.get("stream") or current_stream(ordinal, obj))
    return CudaElements(address, size, shape, kind, bool(is_read_only), stream)


def find_elements(elements: CudaElements, context: Context, is_read_only: bool) -> native.Buffer:
    """Return the device memory of elements, in the order of their stream.

    Raises SharingError if it is CUDA's own, or begins where the device cannot bind it.
    """
    alignment = context._native.binding_alignment
    if elements.address % alignment:
        raise SharingError(
            f"obj: its address {elements.address:#x} is not a multiple of {alignment} bytes, as the device "
            "requires; copy it with vd.from_dlpack(obj)"
        )
    link = find_link(context)
    end = elements.address + elements.size
    memory = link.find(elements.address, end, refuse_write if is_read_only else None)
    if memory is None:
        raise SharingError(
            "obj: its memory is CUDA's own, which others cannot use; copy it with vd.from_dlpack(obj)"
        )
    if elements.stream is not None:
        link.take(elements.stream)
    return memory
