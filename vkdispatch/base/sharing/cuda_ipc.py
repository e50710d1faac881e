"""Device memory that processes of one machine share, by the inter-process handles of CUDA."""

import os
from _thread import RLock
from collections import OrderedDict

from vkdispatch.base.errors import SharingError
from vkdispatch.base.native_module import native
from vkdispatch.base.sharing.cuda_link import CudaLink
from vkdispatch.base.sharing.cuda_streams import check_result, load_driver

_MOST_MAPPED = 64


class SharedDeviceMemory:
    """Memory that CUDA has allocated, and that other processes may map.

    It is never freed: CUDA forbids that while another process maps it.

    Raises
    ------
    SharingError
        There is not enough memory, or CUDA cannot share it here.

    Attributes
    ----------
    handle
        What another process maps it by.
    """

    def __init__(self, link: CudaLink, size: int) -> None:
        driver = load_driver()
        self._link = link
        with link.enter():
            self._address = int(check_result(driver.cuMemAlloc(size)))
            try:
                self.handle = bytes(check_result(driver.cuIpcGetMemHandle(self._address)).reserved)
            except SharingError:
                driver.cuMemFree(self._address)
                raise

    def fill(self, offset: int, memory: native.Buffer, start: int, size: int) -> None:
        """Copy bytes of a buffer, which nobody writes meanwhile, and wait until they are here.

        Raises SharingError if CUDA cannot map the buffer.
        """
        self._link.copy_out(self._address + offset, memory, start, size, self._link.stream)
        _wait(self._link)


class MappedMemories:
    """What a context maps of other processes' memory. Those that were used last are at the end.

    To map memory takes ten milliseconds, so it stays mapped.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._addresses: OrderedDict[tuple[int, bytes], int] = OrderedDict()  # by process and handle

    def read(
        self, link: CudaLink, process: int, handle: bytes, offset: int, memory: native.Buffer, size: int
    ) -> None:
        """Copy bytes of another process's memory to a buffer, and wait until they are there.

        Raises SharingError if CUDA cannot map the memory of either.
        """
        with self._lock:
            link.copy_in(memory, self._map(link, process, handle) + offset, size, link.stream)
            _wait(link)

    def _map(self, link: CudaLink, process: int, handle: bytes) -> int:
        driver, key = load_driver(), (process, handle)
        if key not in self._addresses:
            self._unmap_some(link)
            description = driver.CUipcMemHandle()
            description.reserved = handle
            flags = driver.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.value
            with link.enter():
                self._addresses[key] = int(check_result(driver.cuIpcOpenMemHandle(description, flags)))
        self._addresses.move_to_end(key)
        return self._addresses[key]

    def _unmap_some(self, link: CudaLink) -> None:
        """Unmap memory of processes that have ended, which holds it, and what has not been used for long."""
        ended = [key for key in self._addresses if not os.path.exists(f"/proc/{key[0]}")]
        spare = max(0, len(self._addresses) - len(ended) - _MOST_MAPPED + 1)
        others = [key for key in self._addresses if key not in ended][:spare]
        for key in (*ended, *others):
            with link.enter():
                load_driver().cuIpcCloseMemHandle(self._addresses.pop(key))


def _wait(link: CudaLink) -> None:
    driver = load_driver()
    with link.enter():
        check_result(driver.cuStreamSynchronize(driver.CUstream(link.stream)))
