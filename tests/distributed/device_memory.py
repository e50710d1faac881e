"""Device memory of the test that processes share: files in place of what CUDA allocates and maps."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import uint8
from vkdispatch.base.errors import SharingError
from vkdispatch.distributed import frames

fills, reads = [0], [0]  # how many arrays this process has sent and received


class Memory:
    """In place of `SharedDeviceMemory`."""

    def __init__(self, link: Any, size: int) -> None:
        descriptor, self._path = tempfile.mkstemp(prefix=f"vkdispatch-{os.getpid()}-", dir="/dev/shm")
        os.truncate(descriptor, size)
        os.close(descriptor)
        self.handle = self._path.encode()

    def fill(self, offset: int, memory: Any, start: int, size: int) -> None:
        fills[0] += 1
        octets = Buffer.of_memory(get_context(), memory, (memory.size,), uint8).read(0)
        np.memmap(self._path, np.uint8, "r+", offset, size)[:] = octets[start : start + size]


class Mapped:
    """In place of `MappedMemories`."""

    def read(self, link: Any, process: int, handle: bytes, offset: int, memory: Any, size: int) -> None:
        assert not offset % 256
        octets = np.memmap(handle.decode(), np.uint8, "r", offset, size)
        reads[0] += 1
        whole = np.zeros(memory.size, np.uint8)
        whole[:size] = octets
        Buffer.of_memory(get_context(), memory, (memory.size,), uint8).write(whole)


class Refusing:
    """In place of `MappedMemories` where CUDA cannot map memory of other devices."""

    def read(self, *_: Any) -> None:
        reads[0] += 1
        raise SharingError("CUDA: CUDA_ERROR_PEER_ACCESS_UNSUPPORTED")


def install(put: Callable[[Any, str, Any], None] = setattr, *, refusing: bool = False) -> None:
    """Have this process share such memory, or be unable to map that of others.

    `put` sets an attribute of a module.
    """
    put(frames, "SharedDeviceMemory", Memory)
    put(frames, "MappedMemories", Refusing if refusing else Mapped)
    put(frames, "can_link", lambda _: True)
    put(frames, "find_link", lambda _: None)
    put(frames, "_has_cuda", lambda: True)


def remove() -> None:
    """Remove the files of this process."""
    for path in Path("/dev/shm").glob(f"vkdispatch-{os.getpid()}-*"):
        path.unlink()


def count() -> tuple[int, int]:
    """Return how many arrays this process has sent, and how many it has tried to receive."""
    return fills[0], reads[0]
