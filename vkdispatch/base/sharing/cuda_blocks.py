"""Blocks of device memory that CUDA maps, and the buffers in them that CUDA was lent."""

import os
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any

from vkdispatch.base.errors import SharingError
from vkdispatch.base.native_module import native
from vkdispatch.base.sharing.cuda_streams import check_result

WORD = 4  # bytes: kernels may access small elements as whole words
_MOST_STALE = 64  # entries, dead ones included, before they are looked through


class CudaBlocks:
    """What CUDA maps of an engine's memory. The caller holds a lock.

    Parameters
    ----------
    enter
        Makes the device's context CUDA's current one for a `with` block.
    """

    def __init__(
        self, driver: Any, engine: native.Engine, enter: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._driver = driver
        self._engine = engine
        self._enter = enter
        self._blocks: dict[int, tuple[Any, int]] = {}  # by number: imported memory, and where CUDA maps it
        self._lent: dict[int, tuple[weakref.ref[native.Buffer], int]] = {}  # by address: memory, and its end
        # Parts of these, by first address, end, and whether they are writable.
        self._parts = weakref.WeakValueDictionary[tuple[int, int, bool], native.Buffer]()

    def map(self, memory: native.Buffer) -> int:
        """Return where CUDA maps the memory of a buffer. Raises SharingError if it cannot be exported."""
        for number in self._engine.take_freed_blocks():
            self._unmap(number)
        block = memory.block()
        if block is None:
            raise SharingError("this memory was not allocated so that CUDA can share it; copy the buffer")
        number, size, offset, is_dedicated = block
        if number not in self._blocks:
            with self._enter():
                self._blocks[number] = self._import_block(memory.export_block(), size, is_dedicated)
        return self._blocks[number][1] + offset

    def _import_block(self, file: int, size: int, is_dedicated: bool) -> tuple[Any, int]:
        driver = self._driver
        description = driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC()
        description.type = driver.CUexternalMemoryHandleType.CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD
        description.handle.fd = file
        description.size = size
        description.flags = driver.CUDA_EXTERNAL_MEMORY_DEDICATED if is_dedicated else 0
        try:
            imported = check_result(driver.cuImportExternalMemory(description))
        except SharingError:
            os.close(file)
            raise
        extent = driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC()
        extent.offset, extent.size = 0, size
        try:
            return imported, int(check_result(driver.cuExternalMemoryGetMappedBuffer(imported, extent)))
        except SharingError:
            driver.cuDestroyExternalMemory(imported)
            raise

    def _unmap(self, number: int) -> None:
        imported, address = self._blocks.pop(number, (None, 0))
        if imported is not None:
            with self._enter():
                self._release_block(imported, address)

    def _release_block(self, imported: Any, address: int) -> None:
        self._driver.cuMemFree(address)
        self._driver.cuDestroyExternalMemory(imported)

    def release(self) -> None:
        """Unmap everything. The device's context is CUDA's current one."""
        for imported, address in self._blocks.values():
            self._release_block(imported, address)
        self._blocks.clear()

    def lend(self, memory: native.Buffer) -> int:
        """Return where CUDA maps the memory of a buffer, and know the buffer by its addresses from now on."""
        address = self.map(memory)
        count = len(self._lent)
        if count >= _MOST_STALE and count & (count - 1) == 0:
            self._lent = {start: each for start, each in self._lent.items() if each[0]() is not None}
        end = address + memory.size
        if self._find_whole(address, end) is None:  # else it is a part of what is known
            self._lent[address] = weakref.ref(memory), end
        return address

    def find(self, first: int, end: int, refusal: Callable[[], None] | None) -> native.Buffer | None:
        """Return a buffer of memory that CUDA was lent: see `CudaLink.find`."""
        end += -end % WORD
        found = self._find_whole(first, end)
        if found is None:
            return None
        whole, start, stop = found
        if first == start and end >= stop and refusal is None:
            return whole
        part = self._parts.get((first, end, refusal is None))
        if part is None or not self._lies_at(part, first):
            part = whole.part(first - start, min(end, stop) - first)
            if refusal is not None:
                part.refuse_writes(refusal)
            self._parts[first, end, refusal is None] = part
        return part

    def _find_whole(self, first: int, end: int) -> tuple[native.Buffer, int, int] | None:
        """Return the memory that was lent and contains the addresses, where it begins, and its end."""
        for start in chain((first,), self._lent):
            reference, stop = self._lent.get(start, (None, 0))
            whole = reference() if reference and start <= first < end <= stop + -stop % WORD else None
            if whole is not None and self._lies_at(whole, start):
                return whole, start, stop
        return None

    def _lies_at(self, memory: native.Buffer, address: int) -> bool:
        """Whether memory, which may be destroyed by now, is still where CUDA knows it."""
        try:
            return self.map(memory) == address
        except (RuntimeError, SharingError):
            return False
