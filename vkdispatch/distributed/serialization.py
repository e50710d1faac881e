"""Arrays and buffers in the messages and files of `distributed`: a header, and frames of host memory.

A frame shows the memory that the device has written; nothing is copied on the host. Where the device has
memory of its own, that memory is pinned, and is used again for later frames. Between processes of one
machine, large frames lie in memory that they share, of a GPU or of the host, and the header says where.
"""

import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
from distributed.protocol import pickle  # which falls back on cloudpickle
from distributed.protocol.serialize import dask_deserialize, dask_serialize

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context
from vkdispatch.base.errors import OutOfDeviceMemoryError
from vkdispatch.base.memory.data import fresh_array
from vkdispatch.base.memory.transfers import pinned_array
from vkdispatch.distributed.frames import (
    MIN_SHARED,
    PLACES,
    SharedFile,
    can_share,
    is_on_device,
    lend_file,
    receive_frames,
    receive_memory,
    send_memory,
)
from vkdispatch.numpy.core.array import Array, array_of, view_of
from vkdispatch.numpy.core.blanks import has_device, reduce_array
from vkdispatch.numpy.core.conversion import from_numpy
from vkdispatch.numpy.core.kernels import gather, new_view

Header = dict[str, Any]
Frames = list[Any]
_Octets = np.ndarray[Any, np.dtype[np.uint8]]

# Bytes of pinned memory that are kept for later frames.
_MAX_IDLE = 1 << 30
# Smaller frames are not worth it.
_MIN_PINNED = 1 << 16
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
    item = view.dtype.itemsize
    memory = view.storage.memory
    place = send_memory(view.storage.context, memory, view.offset * item, view.size * item, context)
    if place is not None:
        return {**header, PLACES: [place]}, []
    frames = _Frames(view.storage.context, context)
    octets = frames.lend(view.size * item)
    try:
        end = view.offset + view.size
        view.storage.buffer.read_range(view.offset, end, 0, octets.view(view.dtype))
    except BaseException:
        frames.take_back()
        raise
    return frames.finish(header, [octets])


@dask_deserialize.register(Array)
def deserialize_array(header: Header, frames: Sequence[Any]) -> Array:
    """Return an array on the device of the current context."""
    if "restore" in header:
        restore, arguments = pickle.loads(header["restore"])
        made: Array = restore(*arguments)
        return made
    shape, dtype = tuple(header["shape"]), np.dtype(header["dtype"])
    if is_on_device(header.get(PLACES, ())):
        view = new_view(shape, dtype)
        size = view.size * dtype.itemsize
        receive_memory(header[PLACES][0], view.storage.context, view.storage.memory, size)
        return array_of(view)
    with _open_frames(header, frames) as (octets,):
        return from_numpy(octets.view(dtype).reshape(shape))


@dask_serialize.register(Buffer)
def serialize_buffer(
    buffer: "Buffer[Any]", context: Mapping[str, Any] | None = None
) -> tuple[Header, Frames]:
    """Return header and frames of a buffer: one frame, or one for each queue if their contents differ.

    Raises as `serialize_array`.
    """
    size = buffer.mem_size
    buffer.require_alive()
    header: Header = {"restore": pickle.dumps(buffer._reduce_shape())}
    place = send_memory(buffer.context, buffer._native, 0, size, context)
    if place is not None:
        return {**header, PLACES: [place]}, []
    frames = _Frames(buffer.context, context)
    try:
        copies = buffer._copy_into(lambda: frames.lend(size) if size else np.empty(0, np.uint8))
    except BaseException:
        frames.take_back()
        raise
    octets = [copy for copy in copies if copy.size]
    return frames.finish(header, octets)


@dask_deserialize.register(Buffer)
def deserialize_buffer(header: Header, frames: Sequence[Any]) -> "Buffer[Any]":
    """Return a buffer in the current context."""
    restore, arguments = pickle.loads(header["restore"])
    if is_on_device(header.get(PLACES, ())):
        kind, shape_and_type = arguments
        buffer: Buffer[Any] = kind(*shape_and_type)
        receive_memory(header[PLACES][0], buffer.context, buffer._native, buffer.mem_size)
        return buffer
    with _open_frames(header, frames) as copies:
        made: Buffer[Any] = restore(*arguments, copies or [np.empty(0, np.uint8)])
        return made


# ---- memory of frames


class _Frames:
    """Memory for the frames of a value: shared with the recipient if it can be."""

    def __init__(self, context: Context, wishes: Mapping[str, Any] | None) -> None:
        self._context = context
        self._wishes = wishes
        self._can_share = can_share(wishes)
        self._files: list[tuple[SharedFile, int]] = []

    def lend(self, size: int) -> _Octets:
        """Return memory for a frame."""
        file = lend_file(size) if self._can_share and size >= MIN_SHARED else None
        if file is None:
            return frame_memory(self._context, size, self._wishes)
        self._files.append((file, size))
        return file.show(size)

    def take_back(self) -> None:
        """Take shared memory back: it is not sent."""
        for file, _ in self._files:
            file.number = 0
        self._files.clear()

    def finish(self, header: Header, octets: list[_Octets]) -> tuple[Header, Frames]:
        """Return the header and the frames of memory that is filled."""
        if self._files and len(self._files) == len(octets):
            return {**header, PLACES: [file.describe(size) for file, size in self._files]}, []
        if self._files:
            # there was not enough for all of them
            octets = [frame.copy() for frame in octets]
            self.take_back()
        return header, [frame.data for frame in octets]


@contextmanager
def _open_frames(header: Header, frames: Sequence[Any]) -> Iterator[list[_Octets]]:
    """Yield the bytes of each frame, which are copied before the end."""
    if PLACES not in header:
        yield [np.frombuffer(frame, np.uint8) for frame in frames]
        return
    with receive_frames(header[PLACES]) as octets:
        yield octets


def frame_memory(context: Context, size: int, wishes: Mapping[str, Any] | None = None) -> _Octets:
    """Return memory of the host for a frame of `size` bytes: pinned where that helps, unless told otherwise.

    `wishes` may say so: the value of "pinned" is true or false.
    """
    pinned = (wishes or {}).get("pinned", not has_memory_of_host(context))
    if pinned and size >= _MIN_PINNED:
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
            piece = None if place is None else self._idle.pop(place)
        if piece is None:
            piece = pinned_array(context, 0, (size,), np.dtype(np.uint8))
        lent = piece.view(_Lent)
        weakref.finalize(lent, self._take_back, piece).atexit = False
        return lent

    def _take_back(self, memory: _Octets) -> None:
        with self._lock:
            self._idle.append(memory)
            while sum(piece.size for piece in self._idle) > _MAX_IDLE:
                del self._idle[0]
