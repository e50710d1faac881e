"""Arrays as arguments of kernels, of functions on buffers, and of maps."""

from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.core.array import Array, value_of, view_of
from vkdispatch.numpy.core.expressions import Node
from vkdispatch.numpy.core.kernels import as_operand, gather, memory_of
from vkdispatch.numpy.core.memory import Shape, refuse_writes
from vkdispatch.shader.map import MappedArray


def as_argument(x: Array, is_recorded: bool = False, is_mapped: bool = False) -> Buffer[Any] | MappedArray:
    """Return what stands for an array in a call that takes buffers.

    It is the array's memory if the elements fill that in C order, else a copy, which can be read only, or
    with `is_mapped` a map that computes the elements. Arrays of more than three axes have one there.

    Raises
    ------
    ValueError
        The call is recorded in a graph, which would read the copy, not the array.
    """
    value = value_of(x)
    if is_mapped and len(x.shape) <= 3 and (type(value) is Node or not view_of(x).is_whole):
        return as_operand(value, x.shape)
    view = view_of(x)
    if view.is_whole and not view.storage.is_read_only:
        view.storage.share()
        return memory_of(view, _shape_of(view.shape, view.size))
    what = f"an array of shape {view.shape} that is a part of a larger one, not in C order, or read-only,"
    if is_recorded:
        raise ArgumentValueError(
            f"{what} cannot be an argument of a recorded call, because it would be copied now; "
            "pass x.copy(), which the graph reads each time"
        )
    copy = gather(view)
    refuse_writes(
        copy.storage,
        f"{what} is written by the kernel, but kernels get a copy of it; pass x.copy() and assign the result",
    )
    return memory_of(copy, _shape_of(copy.shape, copy.size))


def _shape_of(shape: Shape, size: int) -> Shape:
    return shape if len(shape) <= 3 else (size,)
