"""Copies of transposed views, by the tiles of `vd.transpose`."""

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import use_context
from vkdispatch.families.tuning import device_facts
from vkdispatch.numpy.core.memory import Storage, View, is_c_order
from vkdispatch.rearrange.transposing import merge_axes, transpose

# Elements below which a launch costs more than where its elements lie.
_FEW = 1 << 14
_TILED = ((1, 0), (0, 2, 1), (2, 1, 0), (1, 0, 2))
# On CPUs the other kernel is as fast unless elements are small, or lines short.
_SMALL_ITEM, _SHORT = 2, 16


def turn(view: View) -> View | None:
    """Return a copy of a view that shows a whole memory with its axes in another order; None for others."""
    memory = view.storage.buffer
    if view.size < _FEW or view.offset or view.size != memory.size or min(view.strides) <= 0:
        return None
    order = sorted(range(len(view.shape)), key=lambda axis: (-view.strides[axis], view.shape[axis] != 1))
    shape = tuple(view.shape[axis] for axis in order)
    if not is_c_order(shape, tuple(view.strides[axis] for axis in order)):
        return None
    lengths, axes = merge_axes(shape, [order.index(axis) for axis in range(len(order))])
    if axes not in _TILED:
        return None
    with use_context(memory.context):
        if device_facts().is_cpu and view.dtype.itemsize > _SMALL_ITEM and min(lengths[-2:]) > _SHORT:
            return None
    source = Buffer.of_memory(memory.context, memory._native, lengths, memory.var_type)
    return View(Storage(transpose(source, axes)), view.shape, view.dtype)
