"""Frames in host memory that processes of one machine share, so that sockets carry headers alone.

Frames lie in anonymous files, which the receiver opens and copies from to its device. Each file begins with a
number, which is that of the message while it is on its way, and 0 when the receiver is done with it. The
sender keeps files for later messages, as their pages are there already. If memory is short, frames go through
the socket.
"""

import ctypes
import mmap
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from distributed import protocol

from vkdispatch.distributed.loading import wrap

_Octets = np.ndarray[Any, np.dtype[np.uint8]]
Place = dict[str, Any]

PLACES = "vkdispatch-frames"  # in headers of messages
MIN_SHARED = 1 << 18  # bytes: smaller frames are not worth it
_HEAD = 4096  # bytes before the elements, with the number of the message
_MAX_SHARED = 2 << 30  # bytes of all files of a process
_MAX_IDLE = 1 << 30  # bytes of files that no message uses
# Seconds after which a message is taken for lost. A receiver that still wants it notices.
_LOST = 120.0
_MAX_HEADERS = 1 << 18  # bytes of a frame that may have headers


class SharedFramesLostError(ConnectionError):
    """The frames of a message are gone: Dask asks for the data again."""


class SharedFile:
    """An anonymous file, mapped by its sender.

    Attributes
    ----------
    size
        Bytes that it has room for.
    lent_at
        When it was lent.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.lent_at = 0.0
        self.descriptor = os.memfd_create("vkdispatch", os.MFD_CLOEXEC)
        try:
            os.posix_fallocate(self.descriptor, 0, _HEAD + size)  # so that a lack of memory is an error here
            self.memory = mmap.mmap(self.descriptor, _HEAD + size)
        except BaseException:
            os.close(self.descriptor)
            raise
        self.inode = os.fstat(self.descriptor).st_ino
        self._number = ctypes.c_uint64.from_buffer(self.memory)

    @property
    def number(self) -> int:
        """The number of the message that uses it, or 0."""
        return self._number.value

    @number.setter
    def number(self, value: int) -> None:
        self._number.value = value

    def is_idle(self, now: float) -> bool:
        """Whether no message uses it, or its message is lost."""
        return not self.number or now - self.lent_at > _LOST

    def show(self, size: int) -> _Octets:
        """Return its first bytes."""
        return np.frombuffer(self.memory, np.uint8, size, _HEAD)

    def describe(self, size: int) -> Place:
        """Return what the receiver opens it by."""
        return {
            "pid": os.getpid(),
            "file": self.descriptor,
            "inode": self.inode,
            "number": self.number,
            "size": size,
        }

    def close(self) -> None:
        """Give the memory back to the system, once no array shows it and no receiver has it open."""
        os.close(self.descriptor)


class _Files:
    """The files of this process. Those that were used last are at the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[SharedFile] = []
        self._count = 0

    def lend(self, size: int) -> SharedFile | None:
        """Return a file with room for this many bytes; None if memory is short."""
        with self._lock:
            now = time.monotonic()
            idle = [file for file in self._all if file.is_idle(now)]
            file = next((file for file in reversed(idle) if size <= file.size <= 2 * size), None)
            if file is None:
                self._drop(idle, size)
                if size + sum(file.size for file in self._all) > _MAX_SHARED:
                    return None
                try:
                    file = SharedFile(size)
                except (OSError, ValueError):
                    return None
            else:
                self._all.remove(file)
            self._all.append(file)
            self._count += 1
            file.number, file.lent_at = self._count, now
            return file

    def _drop(self, idle: list[SharedFile], size: int) -> None:
        """Close idle files, the oldest first, until there is room for this many bytes."""
        kept = sum(file.size for file in idle)
        total = sum(file.size for file in self._all)
        for file in idle:
            if kept <= _MAX_IDLE and total + size <= _MAX_SHARED:
                return
            self._all.remove(file)
            file.close()
            kept, total = kept - file.size, total - file.size


_files = _Files()


def lend_file(size: int) -> SharedFile | None:
    """Return a file for a message of this process, with room for this many bytes; None if memory is short."""
    return _files.lend(size)


# ---- messages


def watch_messages() -> None:
    """Have `distributed` in this process copy from shared memory in a thread, as from large messages."""
    from distributed.comm import tcp
    from distributed.utils import run_in_executor_with_context

    executor = ThreadPoolExecutor(1, thread_name_prefix="vkdispatch-frames")

    @wrap(tcp, "from_frames")
    async def from_frames(
        load: Any,
        frames: Any,
        deserialize: bool = True,
        deserializers: Any = None,
        allow_offload: bool = True,
    ) -> Any:
        if not (deserialize and allow_offload and any(map(_has_places, frames))):
            return await load(frames, deserialize, deserializers, allow_offload)
        return await run_in_executor_with_context(
            executor, protocol.loads, frames, deserialize=True, deserializers=deserializers
        )


def _has_places(frame: Any) -> bool:
    view = memoryview(frame)
    return view.nbytes <= _MAX_HEADERS and PLACES.encode() in bytes(view)


# ---- frames


@contextmanager
def receive_frames(places: list[Place]) -> Iterator[list[_Octets]]:
    """Yield the frames of a message, which nobody may keep, and give them back.

    Raises
    ------
    SharedFramesLostError
        The sender has ended, or took the message for lost.
    """
    memories = [_map(each) for each in places]
    frames = [
        np.frombuffer(memory, np.uint8, place["size"], _HEAD)
        for memory, place in zip(memories, places, strict=True)
    ]
    lost = None
    try:
        yield frames
    finally:
        for memory, place in zip(memories, places, strict=True):
            number = ctypes.c_uint64.from_buffer(memory)
            if number.value == place["number"]:
                number.value = 0
            else:
                lost = place
    if lost is not None:
        raise _lost(lost)


def _map(place: Place) -> mmap.mmap:
    try:
        descriptor = os.open(f"/proc/{place['pid']}/fd/{place['file']}", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise _lost(place) from error
    try:
        if os.fstat(descriptor).st_ino != place["inode"]:
            raise _lost(place)
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        memory = mmap.mmap(descriptor, _HEAD + place["size"], flags)
    except (OSError, ValueError) as error:
        raise _lost(place) from error
    finally:
        os.close(descriptor)
    if ctypes.c_uint64.from_buffer(memory).value != place["number"]:
        raise _lost(place)
    return memory


def _lost(place: Place) -> SharedFramesLostError:
    return SharedFramesLostError(
        f"the {place['size']} bytes that process {place['pid']} has put into shared memory are gone"
    )
