"""Frames in memory that processes of one machine share: handshakes, memory of the host, memory of a GPU."""

import ctypes
import functools
import logging
import mmap
import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import dask
import numpy as np
from dask.utils import parse_bytes
from distributed import protocol

from vkdispatch.base.context import Context
from vkdispatch.base.contexts.current import find_current_context
from vkdispatch.base.errors import SharingError
from vkdispatch.base.native_module import native
from vkdispatch.base.sharing.cuda_link import can_link, find_link, load_driver
from vkdispatch.base.sharing.cuda_memory import MappedMemories, SharedDeviceMemory
from vkdispatch.distributed.results import check_memory, wrap

# ---- Handshakes of `distributed`: who shares memory with whom --------------------------------------------
#
# A process says in the handshake of each connection whether it deserializes what it gets, and names an
# anonymous file of its own. A peer that can open that file is one that it can share memory with, in both
# directions. It also says whether CUDA shares the memory of its device.


KEY = "vkdispatch-memory"


@functools.cache
def _own_mark(pid: int) -> dict[str, Any] | None:
    """Return what shows peers whether they can open files of this process: a file with a secret."""
    if not (hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd")):
        return None
    secret = secrets.token_bytes(16)
    try:
        descriptor = os.memfd_create("vkdispatch-mark", os.MFD_CLOEXEC)
        os.write(descriptor, secret)
    except OSError:
        return None
    return {"pid": pid, "file": descriptor, "secret": secret.hex()}


def _has_cuda() -> bool:
    """Whether this process computes on a device whose memory CUDA shares."""
    context = find_current_context()
    if context is None or not context.usable or not can_link(context):
        return False
    try:
        load_driver()
    except SharingError:
        return False
    return True


def watch_handshakes() -> None:
    """Have the connections of `distributed` in this process say what memory frames may lie in."""
    from distributed.comm.core import Comm

    @wrap(Comm, "handshake_info")
    def handshake_info(inform: Any, comm: Any) -> dict[str, Any]:
        info: dict[str, Any] = inform(comm)
        # whoever passes messages on may do so to other machines
        if getattr(comm, "deserialize", False) and comm.same_host:
            mark = _own_mark(os.getpid())
            if mark is not None and dask.config.get("vkdispatch.shared-memory", True):
                info[KEY] = {**mark, "cuda": _has_cuda()}
        return info


def can_share(context: Mapping[str, Any] | None) -> bool:
    """Whether the recipient of a message can open files of this process.

    Parameters
    ----------
    context
        What `distributed` says of the message: its sender and its recipient, as in their handshakes.
    """
    own, other = _marks_of(context)
    return bool(own and other) and _can_open(other["pid"], other["file"], other["secret"])


def find_cuda_recipient(context: Mapping[str, Any] | None) -> str | None:
    """Return a name of the recipient of a message if CUDA may share this process's memory with it."""
    _, other = _marks_of(context)
    return str(other["secret"]) if can_share(context) and other.get("cuda") else None


def _marks_of(context: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    context = context or {}
    own, other = (context.get(side, {}).get(KEY) or {} for side in ("sender", "recipient"))
    return own, other


@functools.lru_cache(256)
def _can_open(pid: int, descriptor: int, secret: str) -> bool:
    """Whether this process can open a file of another process. If so, the reverse holds too."""
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
            return False
        with open(f"/proc/{pid}/fd/{descriptor}", "rb", buffering=0) as file:
            return file.read(16).hex() == secret
    except OSError:
        return False


# ---- Frames in host memory, so that sockets carry headers alone ------------------------------------------
#
# Frames lie in anonymous files, which the receiver opens and copies from to its device. Each file begins with
# a number, which is that of the message while it is on its way, and 0 when the receiver is done with it. The
# sender keeps files for later messages, as their pages are there already. If memory is short, frames go
# through the socket.


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


# ---- Frames in device memory, which one GPU copies from another ------------------------------------------
#
# The sender copies a frame to memory of its device that CUDA lets other processes map, and the GPU of the
# receiver copies it from there. A file of the host goes with each frame: its number becomes 0 when the
# receiver is done, and its first byte 1 if the receiver cannot map the memory. From then on, the sender sends
# that process frames in host memory.


_logger = logging.getLogger(__name__)
_PART_OF_DEVICE = 16  # "auto" shares this part of the device's memory
_ALIGNMENT = 256  # bytes
_NOTE = 64  # bytes of the file that goes with a frame


def send_memory(
    context: Context, memory: native.Buffer, start: int, size: int, wishes: Mapping[str, Any] | None
) -> Place | None:
    """Copy bytes of a buffer to where the recipient of a message can map them.

    Returns what the recipient calls `receive_memory` with; None if it cannot, or if memory is short.

    Parameters
    ----------
    wishes
        What `distributed` says of the message.

    Raises
    ------
    VkDispatchError
        The device has found an error in what it has written.
    """
    recipient = find_cuda_recipient(wishes) if size >= MIN_SHARED else None
    if recipient is None or not can_link(context):
        return None
    check_memory(context, memory)
    lender: _Lender = context._keep("shared device memory", _Lender)
    part = lender.lend(context, size, recipient)
    if part is None or lender.memory is None:
        return None
    try:
        lender.memory.fill(part.first, memory, start, size)
    except BaseException as error:
        part.take_back()
        if isinstance(error, SharingError):
            return None
        raise
    return {**part.file.describe(_NOTE), "handle": lender.memory.handle, "first": part.first}


def is_on_device(places: Sequence[Place]) -> bool:
    """Whether what a header says of its frames is for `receive_memory`."""
    return bool(places) and "handle" in places[0]


def receive_memory(place: Place, context: Context, memory: native.Buffer, size: int) -> None:
    """Copy bytes that a sender has put in place to the beginning of a new buffer.

    Raises
    ------
    SharedFramesLostError
        The sender has ended, or took the message for lost; or CUDA cannot map the sender's memory here, which
        the sender notices.
    """
    with receive_frames([place]) as (note,):
        try:
            mapped: MappedMemories = context._keep("device memory of other processes", MappedMemories)
            mapped.read(find_link(context), place["pid"], place["handle"], place["first"], memory, size)
        except SharingError as error:
            note[0] = 1
            raise SharedFramesLostError(
                f"the device memory of process {place['pid']} cannot be mapped ({error}); it will send "
                "arrays through host memory"
            ) from error


class _Part:
    """A part of the memory, from `first` to `end`, which a message uses."""

    def __init__(self, first: int, end: int, file: SharedFile, recipient: str) -> None:
        self.first, self.end = first, end
        self.file, self.number = file, file.number
        self.recipient = recipient

    def is_idle(self, now: float) -> bool:
        """Whether the receiver is done, or the message is lost."""
        return self.file.number != self.number or self.file.is_idle(now)

    def take_back(self) -> None:
        """Have the receiver of a lost message notice that it is lost."""
        if self.file.number == self.number:
            self.file.number = 0

    def has_refusal(self) -> bool:
        """Whether the receiver could not map the memory."""
        return not self.file.number and bool(self.file.show(_NOTE)[0])


class _Lender:
    """The memory of a context's device that messages use; None before the first one, or if there is none."""

    def __init__(self) -> None:
        self.memory: SharedDeviceMemory | None = None
        self._lock = threading.Lock()
        self._size: int | None = None
        self._parts: list[_Part] = []  # in the order of their places
        self._refusing: set[str] = set()  # recipients that cannot map it

    def lend(self, context: Context, size: int, recipient: str) -> _Part | None:
        """Return a part of this many bytes; None if there is none, or the recipient cannot map it."""
        with self._lock:
            if self._size is None:
                self._size = self._allocate(context)
            self._collect()
            if recipient in self._refusing:
                return None
            place, first = self._find_gap(size)
            if first + size > self._size:
                return None
            file = lend_file(_NOTE)
            if file is None:
                return None
            file.show(_NOTE)[0] = 0
            part = _Part(first, first + size + -size % _ALIGNMENT, file, recipient)
            self._parts.insert(place, part)
            return part

    def _allocate(self, context: Context) -> int:
        """Allocate the memory, and return its size, or 0."""
        size = _parse_limit(dask.config.get("vkdispatch.shared-device-memory", "auto"), context)
        if size:
            try:
                self.memory = SharedDeviceMemory(find_link(context), size)
            except SharingError as error:
                _logger.info("Arrays go through host memory: %s", error)
                size = 0
        return size

    def _collect(self) -> None:
        """Take back the parts that are no longer in use."""
        now = time.monotonic()
        idle = [part for part in self._parts if part.is_idle(now)]
        self._refusing.update(part.recipient for part in idle if part.has_refusal())
        self._parts = [part for part in self._parts if part not in idle]
        for part in idle:
            part.take_back()

    def _find_gap(self, size: int) -> tuple[int, int]:
        """Return where a part of a size fits: its place in the list, and its first byte."""
        first = 0
        for place, part in enumerate(self._parts):
            if first + size <= part.first:
                return place, first
            first = part.end
        return len(self._parts), first


def _parse_limit(limit: Any, context: Context) -> int:
    """Return the bytes that the option `vkdispatch.shared-device-memory` stands for."""
    if limit == "auto":
        return int(context._native.statistics()["heap_memory"]) // _PART_OF_DEVICE
    return max(0, int(parse_bytes(limit or 0)))
