"""Device memory in CUDA's hands: its array interface, other processes and GPUs."""

import math
import os
from _thread import RLock
from collections import OrderedDict
from operator import index
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, SharingError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record
from vkdispatch.base.sharing import cuda_link
from vkdispatch.base.sharing.cuda_link import CudaLink, CudaLoan, cuda
from vkdispatch.base.sharing.dlpack import is_in_c_order, refuse_write

# ---- CUDA's array interface, version 3: what `__cuda_array_interface__` shows, and what it is read as ----


def lend_by_interface(context: Context, memory: native.Buffer, loan: CudaLoan | None) -> CudaLoan:
    """Return a loan of memory for consumers of the interface, or the one of before, after all work up to now.

    The owner of the memory keeps it: consumers reference the owner. Raises AttributeError where CUDA does not
    know the device.
    """
    if not cuda_link.can_link(context):
        raise AttributeError("__cuda_array_interface__: CUDA cannot share this memory")
    link = cuda_link.find_link(context)
    if loan is None:
        loan = link.lend(memory, None)
    link.give(link.stream)
    return loan


def make_interface(
    loan: CudaLoan, shape: tuple[int, ...], component: Any, strides: tuple[int, ...] | None, offset: int = 0
) -> dict[str, Any]:
    """Return the interface of elements of a NumPy dtype in lent memory. Strides and offset are in bytes."""
    return {
        "shape": shape,
        "typestr": np.dtype(component).str,
        "data": (loan.address + offset, loan.is_read_only),
        "strides": strides,
        "stream": loan.link.stream,
        "version": 3,
    }


@record(eq=False)
class CudaElements:
    """Elements of a CUDA array in C order, as its interface shows them."""

    address: int
    size: int
    shape: tuple[int, ...]
    kind: DType
    is_read_only: bool
    stream: int | None


def read_interface(obj: object, ordinal: int) -> CudaElements:
    """Return the elements of an object with `__cuda_array_interface__`, on a device with this number.

    Raises TypeError or ValueError if it has none, or one that buffers cannot have.
    """
    interface = getattr(obj, "__cuda_array_interface__", None)
    if not isinstance(interface, dict):
        raise ArgumentTypeError(
            f"obj: expected an array with __cuda_array_interface__, got {type(obj).__name__}"
        )
    missing = [name for name in ("shape", "typestr", "data") if name not in interface]
    if missing:
        raise ArgumentValueError(f"obj: its __cuda_array_interface__ lacks {', '.join(missing)}")
    if interface.get("mask") is not None:
        raise ArgumentValueError("obj: expected an array without a mask; buffers have none")
    try:
        shape, component = tuple(map(index, interface["shape"])), np.dtype(interface["typestr"])
        address, is_read_only = interface["data"]
        address, strides = index(address or 0), interface.get("strides")
        strides = None if strides is None else tuple(map(index, strides))
    except (TypeError, ValueError) as error:
        raise ArgumentValueError(f"obj: its __cuda_array_interface__ is invalid: {error}") from None
    kind = dtype.from_numpy_dtype(component, "obj")
    size = math.prod(shape) * component.itemsize
    if min(shape, default=0) < 0 or (strides is not None and len(strides) != len(shape)):
        raise ArgumentValueError(f"obj: no array has the shape {shape} and the strides {strides}")
    if address < 0 or address + size >= 1 << 64 or (size and not address):
        raise ArgumentValueError(f"obj: no memory has {size} bytes at the address {address:#x}")
    if strides is not None and not is_in_c_order(shape, strides, component.itemsize):
        raise ArgumentValueError("obj: expected elements in C order; copy it so, with cupy.ascontiguousarray")
    stream = cuda_link.parse_dlpack_stream(interface.get("stream") or cuda_link.current_stream(ordinal, obj))
    return CudaElements(address, size, shape, kind, bool(is_read_only), stream)


def find_elements(elements: CudaElements, context: Context, is_read_only: bool) -> native.Buffer:
    """Return the device memory of elements, in the order of their stream.

    Raises SharingError if it is CUDA's own, or begins where the device cannot bind it.
    """
    alignment = context._native.binding_alignment
    if elements.address % alignment:
        raise SharingError(
            f"obj: its address {elements.address:#x} is not a multiple of {alignment} bytes, as the device "
            "requires; copy it with vd.from_dlpack(obj)"
        )
    link = cuda_link.find_link(context)
    end = elements.address + elements.size
    memory = link.find(elements.address, end, refuse_write if is_read_only else None)
    if memory is None:
        raise SharingError(
            "obj: its memory is CUDA's own, which others cannot use; copy it with vd.from_dlpack(obj)"
        )
    if elements.stream is not None:
        link.take(elements.stream)
    return memory


# ---- Device memory that processes of one machine share, by the inter-process handles of CUDA -------------


_MAX_MAPPED = 64


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
        driver = cuda_link.load_driver()
        self._link = link
        with link.enter():
            self._address = int(cuda.cuMemAlloc(size))
            try:
                self.handle = bytes(cuda.cuIpcGetMemHandle(self._address).reserved)
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
        driver, key = cuda_link.load_driver(), (process, handle)
        if key not in self._addresses:
            self._unmap_some(link)
            description = driver.CUipcMemHandle()
            description.reserved = handle
            flags = driver.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.value
            with link.enter():
                self._addresses[key] = int(cuda.cuIpcOpenMemHandle(description, flags))
        self._addresses.move_to_end(key)
        return self._addresses[key]

    def _unmap_some(self, link: CudaLink) -> None:
        """Unmap memory of processes that have ended, which holds it, and what has not been used for long."""
        ended = [key for key in self._addresses if not os.path.exists(f"/proc/{key[0]}")]
        spare = max(0, len(self._addresses) - len(ended) - _MAX_MAPPED + 1)
        others = [key for key in self._addresses if key not in ended][:spare]
        for key in (*ended, *others):
            with link.enter():
                cuda_link.load_driver().cuIpcCloseMemHandle(self._addresses.pop(key))


def _wait(link: CudaLink) -> None:
    driver = cuda_link.load_driver()
    with link.enter():
        cuda.cuStreamSynchronize(driver.CUstream(link.stream))


# ---- Copies by CUDA between the memory of two contexts, which may be on two GPUs -------------------------


def copy_between_links(
    target: CudaLink, target_memory: native.Buffer, source: CudaLink, source_memory: native.Buffer, size: int
) -> None:
    """Copy bytes to a buffer of another context, in the order of both contexts' work.

    The copy comes after all work up to now, and before all later work. The host waits for nothing.

    Raises
    ------
    SharingError
        CUDA cannot map the memory.
    """
    driver = cuda_link.load_driver()
    # two threads that copy in opposite directions take the locks in one order
    first, second = sorted((source, target), key=id)
    with first.hold(), second.hold():
        addresses = target.blocks.map(target_memory), source.blocks.map(source_memory)
        in_parts = target.ordinal != source.ordinal and _open_peers(driver, source, target)
        copy = _copy_in_parts if in_parts else _copy
        source.give(cuda_link.LEGACY_STREAM)
        target.give(cuda_link.LEGACY_STREAM)
        copy(driver, target, addresses[0], source, addresses[1], size)
        target.take(cuda_link.LEGACY_STREAM)
        source.take(cuda_link.LEGACY_STREAM)


def _copy(driver: Any, target: CudaLink, to: int, source: CudaLink, start: int, size: int) -> None:
    """Copy in one piece; a stream of each device waits for the other one's."""
    stream = driver.CUstream(cuda_link.LEGACY_STREAM)
    with source.enter():
        cuda.cuEventRecord(source.event, stream)
    with target.enter():
        cuda.cuStreamWaitEvent(stream, source.event, 0)
        cuda.cuMemcpyPeerAsync(to, target.primary, start, source.primary, size, stream)
        cuda.cuEventRecord(target.event, stream)
    with source.enter():
        cuda.cuStreamWaitEvent(stream, target.event, 0)


def _copy_in_parts(driver: Any, target: CudaLink, to: int, source: CudaLink, start: int, size: int) -> None:
    """Send parts to memory of the target's lanes, which copy one while the next one arrives."""
    senders, receivers = _fork(driver, source), _fork(driver, target)
    with target.enter():
        memory = receivers.find_memory()
    for number, first in enumerate(range(0, size, cuda_link.PART)):
        lane = number % 2
        sender, receiver, part = senders.both[lane], receivers.both[lane], memory + lane * cuda_link.PART
        count = min(cuda_link.PART, size - first)
        # streams and events know their contexts
        cuda.cuStreamWaitEvent(sender.stream, receiver.event, 0)  # the part is empty
        cuda.cuMemcpyPeerAsync(part, target.primary, start + first, source.primary, count, sender.stream)
        cuda.cuEventRecord(sender.event, sender.stream)
        cuda.cuStreamWaitEvent(receiver.stream, sender.event, 0)
        cuda.cuMemcpyDtoDAsync(to + first, part, count, receiver.stream)
        cuda.cuEventRecord(receiver.event, receiver.stream)
    _join(driver, source, senders)
    _join(driver, target, receivers)


def _fork(driver: Any, link: CudaLink) -> cuda_link.Lanes:
    """Let the lanes of a link wait for the default stream, and return them."""
    with link.enter():
        if link.lanes is None:
            link.lanes = cuda_link.Lanes(driver)
        cuda.cuEventRecord(link.event, driver.CUstream(cuda_link.LEGACY_STREAM))
        for lane in link.lanes.both:
            cuda.cuStreamWaitEvent(lane.stream, link.event, 0)
    return link.lanes


def _join(driver: Any, link: CudaLink, lanes: cuda_link.Lanes) -> None:
    """Let the default stream wait for the lanes of a link."""
    with link.enter():
        for lane in lanes.both:
            cuda.cuStreamWaitEvent(driver.CUstream(cuda_link.LEGACY_STREAM), lane.event, 0)


def _open_peers(driver: Any, link: CudaLink, other: CudaLink) -> bool:
    """Let a device access another one's memory. Return whether it does."""
    if other not in link.peers:
        if not cuda.cuDeviceCanAccessPeer(link.device, other.device):
            return False
        with link.enter():
            result = driver.cuCtxEnablePeerAccess(other.primary, 0)
        if result[0] != driver.CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED:
            cuda_link.check_result(result)
        link.peers.add(other)
    return True
