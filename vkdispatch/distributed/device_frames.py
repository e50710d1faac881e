"""Frames in device memory that processes of one machine share, so that one GPU copies them from another.

The sender copies a frame to memory of its device that CUDA lets other processes map, and the GPU of the
receiver copies it from there. A file of `shared_frames` goes with each frame: its number becomes 0 when the
receiver is done, and its first byte 1 if the receiver cannot map the memory. From then on, the sender sends
that process frames in host memory.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import dask
from dask.utils import parse_bytes

from vkdispatch.base.context import Context
from vkdispatch.base.errors import SharingError
from vkdispatch.base.native_module import native
from vkdispatch.base.sharing.cuda_link import can_link, find_link
from vkdispatch.base.sharing.cuda_memory import MappedMemories, SharedDeviceMemory
from vkdispatch.distributed import shared_frames
from vkdispatch.distributed.handshakes import find_cuda_recipient
from vkdispatch.distributed.results import check_memory

_logger = logging.getLogger(__name__)
_PART_OF_DEVICE = 16  # "auto" shares this part of the device's memory
_ALIGNMENT = 256  # bytes
_NOTE = 64  # bytes of the file that goes with a frame


def send_memory(
    context: Context, memory: native.Buffer, start: int, size: int, wishes: Mapping[str, Any] | None
) -> shared_frames.Place | None:
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
    recipient = find_cuda_recipient(wishes) if size >= shared_frames.MIN_SHARED else None
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


def is_on_device(places: Sequence[shared_frames.Place]) -> bool:
    """Whether what a header says of its frames is for `receive_memory`."""
    return bool(places) and "handle" in places[0]


def receive_memory(place: shared_frames.Place, context: Context, memory: native.Buffer, size: int) -> None:
    """Copy bytes that a sender has put in place to the beginning of a new buffer.

    Raises
    ------
    SharedFramesLostError
        The sender has ended, or took the message for lost; or CUDA cannot map the sender's memory here, which
        the sender notices.
    """
    with shared_frames.receive_frames([place]) as (note,):
        try:
            mapped: MappedMemories = context._keep("device memory of other processes", MappedMemories)
            mapped.read(find_link(context), place["pid"], place["handle"], place["first"], memory, size)
        except SharingError as error:
            note[0] = 1
            raise shared_frames.SharedFramesLostError(
                f"the device memory of process {place['pid']} cannot be mapped ({error}); it will send "
                "arrays through host memory"
            ) from error


class _Part:
    """A part of the memory, from `first` to `end`, which a message uses."""

    def __init__(self, first: int, end: int, file: shared_frames.SharedFile, recipient: str) -> None:
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
        self._lock = Lock()
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
            file = shared_frames.lend_file(_NOTE)
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
