"""Copies of a buffer's contents to a buffer of another context."""

from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentValueError, SharingError
from vkdispatch.base.host.pinned import pinned_array
from vkdispatch.base.host_numpy import np
from vkdispatch.base.sharing.cuda import can_link, find_link
from vkdispatch.base.sharing.cuda_peers import copy_between_links
from vkdispatch.base.synchronization.event import ReadFuture

_PART = 8 << 20  # bytes: long enough for the bus, short enough that the first and the last one cost little


def copy_between_contexts(dst: Buffer[Any], src: Buffer[Any]) -> None:
    """Copy the bytes of `src` to `dst`, which is as large and belongs to another context.

    Between NVIDIA GPUs that CUDA knows, CUDA copies, in the order of both contexts' work, and this returns at
    once. Elsewhere the bytes go through pinned host memory: one device fills a part of it while the other one
    empties the part before. This returns when all are written. If the context of `dst` has several queues,
    each one's copy of `dst` is written.

    Raises
    ------
    ValueError
        The context of `src` has several queues, each with its own copy of the buffer.
    """
    src.require_alive()
    dst.require_alive()
    if src.context.queue_count > 1:
        raise ArgumentValueError(
            f"src: its context has {src.context.queue_count} queues, each with its own copy of the buffer; "
            "use dst.write(src.read(index))"
        )
    if not _copy_by_cuda(dst, src):
        _copy_by_host(dst, src)


def _copy_by_cuda(dst: Buffer[Any], src: Buffer[Any]) -> bool:
    """Copy by CUDA if it knows both devices. Return whether it does."""
    if not (can_link(src.context) and can_link(dst.context)):
        return False
    dst._native.settle()  # raises if it is read-only
    try:
        source, target = find_link(src.context), find_link(dst.context)
        copy_between_links(target, dst._native, source, src._native, src.mem_size)
    except SharingError:
        return False
    return True


def _copy_by_host(dst: Buffer[Any], src: Buffer[Any]) -> None:
    size = src.mem_size
    blocks: Any = pinned_array(src.context, 0, (2, min(size, _PART)), np.dtype(np.uint8))

    def start_reading(first: int) -> ReadFuture:
        block = blocks[first // _PART % 2, : min(_PART, size - first)]
        points = src._native.read_async(0, block, first)
        return ReadFuture(src.context, points, block, None)

    future = start_reading(0)
    for first in range(0, size, _PART):
        part: Any = future.result()
        if first + _PART < size:
            future = start_reading(first + _PART)
        dst._native.write(-1, part, first)
