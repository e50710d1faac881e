"""Arrays and buffers in the messages and files of `distributed`: a header, and frames of host memory.

A frame shows the memory that the device has written; nothing is copied on the host. Where the device has
memory of its own, that memory is pinned, and is used again for later frames.
"""

import weakref
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np
from distributed.protocol import pickle  # which falls back on cloudpickle
from distributed.protocol.serialize import dask_deserialize, dask_serialize

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context
from vkdispatch.base.errors import OutOfDeviceMemoryError
from vkdispatch.base.host.fresh import fresh_array
from vkdispatch.base.host.pinned import pinned_array
from vkdispatch.numpy.core.array import Array, view_of
from vkdispatch.numpy.core.blanks import has_device, reduce_array
from vkdispatch.numpy.core.conversion import from_numpy
from vkdispatch.numpy.core.kernels import gather
from vkdispatch.numpy.core.memory import View

Header = dict[str, Any]
Frames = list[Any]
_Octets = np.ndarray[Any, np.dtype[np.uint8]]

# Bytes of pinned memory that are kept for later frames.
_MOST_IDLE = 1 << 30
# Smaller frames are not worth it.
_LEAST_PINNED = 1 << 16
_DEVICE_MEMORY_OF_HOST = (1, 4)  # integrated GPUs and CPU drivers


def has_memory_of_host(context: Context) -> bool:
    """Whether the memory of a context's devices is that of the host."""
    return all(info.device_type in _DEVICE_MEMORY_OF_HOST for info in context.device_infos)


@dask_serialize.register(Array)
def serialize_array(array: Array, context: Mapping[str, Any] | None = None) -> tuple[Header, Frames]:
    """Return header and frames of an array, which is computed if it is not yet.

    Parameters
    ----------
    context
        Where the frames go, as `distributed` says it; with "pinned", which memory they take.

    Raises
    ------
    VkDispatchError
        It cannot be computed, or the device has found an error.
    """
    if not (array.size and array.shape and has_device()):
        return {"restore": pickle.dumps(reduce_array(array))}, []
    view = view_of(array)
    header: Header = {"shape": view.shape, "dtype": view.dtype.str}
    if not view.is_contiguous:
        view = gather(view)
    octets = frame_memory(view.storage.context, view.size * view.dtype.itemsize, context)
    _read_elements(view, octets.view(view.dtype))
    return header, [octets.data]


def _read_elements(view: View, memory: "np.ndarray[Any, Any]") -> None:
    view.storage.buffer.read_range(view.offset, view.offset + view.size, 0, memory)


@dask_deserialize.register(Array)
def deserialize_array(header: Header, frames: Sequence[Any]) -> Array:
    """Return an array on the device of the current context."""
    if "restore" in header:
        restore, arguments = pickle.loads(header["restore"])
        made: Array = restore(*arguments)
        return made
    return from_numpy(np.frombuffer(frames[0], np.dtype(header["dtype"])).reshape(header["shape"]))


@dask_serialize.register(Buffer)
def serialize_buffer(
    buffer: "Buffer[Any]", context: Mapping[str, Any] | None = None
) -> tuple[Header, Frames]:
    """Return header and frames of a buffer: one frame, or one for each queue if their contents differ.

    Raises as `serialize_array`.
    """
    size = buffer.mem_size
    restore, arguments, copies = buffer._reduce_into(
        lambda: frame_memory(buffer.context, size, context) if size else np.empty(0, np.uint8)
    )
    return {"restore": pickle.dumps((restore, arguments))}, [each.data for each in copies if each.size]


@dask_deserialize.register(Buffer)
def deserialize_buffer(header: Header, frames: Sequence[Any]) -> "Buffer[Any]":
    """Return a buffer in the current context."""
    restore, arguments = pickle.loads(header["restore"])
    copies = [np.frombuffer(each, np.uint8) for each in frames]
    made: Buffer[Any] = restore(*arguments, copies or [np.empty(0, np.uint8)])
    return made


# ---- memory of frames


def frame_memory(context: Context, size: int, wishes: Mapping[str, Any] | None = None) -> _Octets:
    """Return memory of the host for a frame of `size` bytes: pinned where that helps, unless told otherwise.

    `wishes` may say so: the value of "pinned" is true or false.
    """
    pinned = (wishes or {}).get("pinned", not has_memory_of_host(context))
    if pinned and size >= _LEAST_PINNED:
        try:
            pool: _PinnedMemory = context._keep("pinned frames", _PinnedMemory)
            return pool.lend(context, size)
        except OutOfDeviceMemoryError:
            pass  # pinned memory is scarce
    return fresh_array((size,), np.dtype(np.uint8))


class _Lent(np.ndarray[Any, np.dtype[np.uint8]]):
    """Pinned memory of which somebody learns when no frame shows it any more."""


class _PinnedMemory:
    """Pinned memory of a context that no frame shows: each piece is used for the next frame of its size."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: list[_Octets] = []  # the one used last is the last one

    def lend(self, context: Context, size: int) -> _Octets:
        """Return memory of this size. It comes back when nothing refers to it."""
        with self._lock:
            place = next((i for i in reversed(range(len(self._idle))) if self._idle[i].size == size), None)
            found = None if place is None else self._idle.pop(place)
        if found is None:
            found = pinned_array(context, 0, (size,), np.dtype(np.uint8))
        lent = found.view(_Lent)
        weakref.finalize(lent, self._take_back, found).atexit = False
        return lent

    def _take_back(self, memory: _Octets) -> None:
        with self._lock:
            self._idle.append(memory)
            while sum(each.size for each in self._idle) > _MOST_IDLE:
                del self._idle[0]
