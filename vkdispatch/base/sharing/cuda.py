"""CUDA on the device of a context: memory that both map, and the order of their work, by semaphores.

Memory: a block of device memory is exported once as a file descriptor, and CUDA maps it. Order: a stream
waits for the timelines of the context's queues, and the queues for a timeline that the stream signals. The
host waits for neither.
"""

import os
import sys
import weakref
from _thread import RLock, allocate_lock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, SharingError
from vkdispatch.base.native_module import native
from vkdispatch.base.sharing.journal import note, start_clock

CUDA = 2  # DLPack's number
LEGACY_STREAM = 1
_NVIDIA = 0x10DE
_MOST_STREAMS = 64
_MOST_STALE = 64  # entries, dead ones included, before they are looked through
WORD = 4  # bytes: kernels may access small elements as whole words

_links: "weakref.WeakKeyDictionary[Context, CudaLink]" = weakref.WeakKeyDictionary()
_lock = allocate_lock()


def load_driver() -> Any:
    """Return the module of CUDA's driver functions. Raises SharingError if it is not installed."""
    try:
        from cuda.bindings import driver
    except ImportError:
        raise SharingError(
            "sharing memory with CUDA needs the package cuda-bindings: pip install 'vkdispatch-gpu[cuda]'"
        ) from None
    return driver


def can_link(context: Context) -> bool:
    """Whether CUDA may know the device of a context."""
    return (
        context.queue_count == 1
        and context._native.exports
        and context.device_infos[0].vendor_id == _NVIDIA
        and context.device_infos[0].uuid is not None
    )


def find_link(context: Context) -> "CudaLink":
    """Return the link of a context and CUDA, which the first call makes.

    Raises
    ------
    SharingError
        CUDA cannot share the device's memory, or the package cuda-bindings is missing.
    """
    with _lock:
        link = _links.get(context)
        if link is None:
            if not can_link(context):
                raise SharingError(f"CUDA cannot share memory of {context._devices}")
            link = _links[context] = CudaLink(context)
        return link


def end_visits(context: Context) -> None:
    """Let the CUDA streams whose arrays were arguments of a call wait for its work."""
    link = _links.get(context) if _links else None
    if link is not None:
        link.dismiss_visitors()


def parse_stream(stream: Any, name: str = "stream") -> int | None:
    """Return the handle of a CUDA stream: DLPack's int, or an object of CuPy, PyTorch or cuda-core.

    None and 0 stand for the legacy default stream, -1 for no order at all, for which this returns None.

    Raises
    ------
    TypeError, ValueError
        It is neither.
    """
    if stream is None:
        return LEGACY_STREAM
    for attribute in ("cuda_stream", "ptr", "handle"):
        stream = getattr(stream, attribute, stream)
    try:
        number = int(stream)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{name}: expected a CUDA stream, an int or None, got {type(stream).__name__}"
        ) from None
    if number == -1:
        return None
    if number < -1:
        raise ArgumentValueError(f"{name}: expected a CUDA stream, 1, 2 or -1, got {number}")
    return number or LEGACY_STREAM


def current_stream(x: Any = None) -> int:
    """Return the current CUDA stream of the library of an array, or of PyTorch or CuPy if one is loaded."""
    library = (type(x).__module__ or "").partition(".")[0]
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and library != "cupy" and torch.cuda.is_initialized():
        return int(torch.cuda.current_stream().cuda_stream) or LEGACY_STREAM
    if cupy is not None:
        return int(cupy.cuda.get_current_stream().ptr) or LEGACY_STREAM
    return LEGACY_STREAM


class CudaLink:
    """What a context and CUDA share.

    Attributes
    ----------
    ordinal
        CUDA's number of the device.
    stream
        The handle of a stream of the link's own.
    visitors
        Streams whose arrays are arguments of the call that runs; they will wait for it.
    """

    def __init__(self, context: Context) -> None:
        driver = self._driver = load_driver()
        self._context = weakref.ref(context)
        self._engine = context._native
        self._mutex = RLock()
        self._check(driver.cuInit(0))
        self.ordinal, self._device = self._find_device(context)
        self._cuda = self._check(driver.cuDevicePrimaryCtxRetain(self._device))
        self._blocks: dict[int, tuple[Any, int]] = {}  # by number: imported memory, and where CUDA maps it
        self._lent: dict[int, tuple[weakref.ref[native.Buffer], int]] = {}  # by address: memory, and its end
        # Parts of these, by first address, end, and whether they are writable.
        self._parts = weakref.WeakValueDictionary[tuple[int, int, bool], native.Buffer]()
        self._waited: dict[tuple[int, int], int] = {}  # by stream and queue: the value that it waited for
        # By stream: the number of the timeline that it signals, that timeline in CUDA, and its last value.
        self._incoming: dict[int, tuple[int, Any, int]] = {}
        self.visitors: set[int] = set()
        with self._enter():
            flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
            self._stream = self._check(driver.cuStreamCreate(flags))
            self.stream = int(self._stream)
            self._event = self._check(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING))
            self._timelines = {
                slot: self._import_semaphore(self._engine.export_timeline(slot))
                for slot, _ in self._engine.submit_all(0)
            }
            timeline = self._import_semaphore(self._engine.export_incoming(0))
            self._incoming[self.stream] = 0, timeline, 0

    def _check(self, result: tuple[Any, ...]) -> Any:
        """Return what a function of the driver gave. Raises SharingError if it failed."""
        code, *values = result
        if int(code) != 0:
            raise SharingError(f"CUDA: {code.name}")
        return values[0] if len(values) == 1 else tuple(values) or None

    def _find_device(self, context: Context) -> tuple[int, Any]:
        """Return CUDA's number of a context's device, and its handle."""
        wanted = context.device_infos[0].uuid
        for ordinal in range(self._check(self._driver.cuDeviceGetCount())):
            device = self._check(self._driver.cuDeviceGet(ordinal))
            if bytes(self._check(self._driver.cuDeviceGetUuid(device)).bytes) == wanted:
                return ordinal, device
        raise SharingError(f"CUDA does not see {context._devices}; is it hidden by CUDA_VISIBLE_DEVICES?")

    @contextmanager
    def _enter(self) -> Iterator[None]:
        """Make the device's primary context CUDA's current one."""
        self._check(self._driver.cuCtxPushCurrent(self._cuda))
        try:
            yield
        finally:
            self._driver.cuCtxPopCurrent()

    # -- memory

    def _import_semaphore(self, file: int) -> Any:
        description = self._driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC()
        kinds = self._driver.CUexternalSemaphoreHandleType
        description.type = kinds.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
        description.handle.fd = file
        try:
            return self._check(self._driver.cuImportExternalSemaphore(description))
        except SharingError:
            os.close(file)
            raise

    def map(self, memory: native.Buffer) -> int:
        """Return where CUDA maps the memory of a buffer. Raises SharingError if it cannot be exported."""
        with self._mutex:
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
            imported = self._check(driver.cuImportExternalMemory(description))
        except SharingError:
            os.close(file)
            raise
        extent = driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC()
        extent.offset, extent.size = 0, size
        return imported, int(self._check(driver.cuExternalMemoryGetMappedBuffer(imported, extent)))

    def _unmap(self, number: int) -> None:
        imported, address = self._blocks.pop(number, (None, 0))
        if imported is not None:
            with self._enter():
                self._release_block(imported, address)

    def _release_block(self, imported: Any, address: int) -> None:
        self._driver.cuMemFree(address)
        self._driver.cuDestroyExternalMemory(imported)

    def lend(self, memory: native.Buffer, stream: int | None) -> "CudaLoan":
        """Return the memory of a buffer for CUDA, after all work up to now in the order of a stream."""
        loan = memory.lend_on_device()
        with self._mutex:
            address = self.lend_for_good(memory)
            if stream is not None:
                self.give(stream)
        return CudaLoan(self, loan, address, stream)

    def lend_for_good(self, memory: native.Buffer) -> int:
        """Return where CUDA maps the memory of a buffer, which the caller keeps, and know it by that."""
        with self._mutex:
            address = self.map(memory)
            count = len(self._lent)
            if count >= _MOST_STALE and count & (count - 1) == 0:
                self._lent = {start: each for start, each in self._lent.items() if each[0]() is not None}
            end = address + memory.size
            if self._find_whole(address, end) is None:  # else it is a part of what is known
                self._lent[address] = weakref.ref(memory), end
            return address

    def find(self, first: int, end: int, refusal: Callable[[], None] | None = None) -> native.Buffer | None:
        """Return a buffer of memory that CUDA was lent, from one address to another; None if there is none.

        The first address is a multiple of the alignment of bindings. The last word belongs to the buffer. The
        refusal is a function that raises an exception, for memory that must not be written.
        """
        end += -end % WORD
        with self._mutex:
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

    # -- order

    def give(self, stream: int) -> None:
        """Let later work of a stream wait for the context's work up to now."""
        driver, begin = self._driver, start_clock()
        with self._mutex:
            semaphores, parameters = [], []
            for slot, value in self._engine.submit_all(0):
                if value > self._waited.get((stream, slot), 0):
                    self._waited[stream, slot] = value
                    wait = driver.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS()
                    wait.params.fence.value = value
                    semaphores.append(self._timelines[slot])
                    parameters.append(wait)
            if len(self._waited) > 1000:
                self._waited.clear()
            if semaphores:
                with self._enter():
                    self._check(
                        driver.cuWaitExternalSemaphoresAsync(
                            semaphores, parameters, len(semaphores), driver.CUstream(stream)
                        )
                    )
                note("stream wait", self._context(), begin)

    def take(self, stream: int) -> None:
        """Let the context's later work wait for the work of a stream up to now."""
        driver, begin = self._driver, start_clock()
        with self._mutex, self._enter():
            if stream not in self._incoming:
                number = len(self._incoming)
                if number >= _MOST_STREAMS:
                    self._check(driver.cuEventRecord(self._event, driver.CUstream(stream)))
                    self._check(driver.cuStreamWaitEvent(self._stream, self._event, 0))
                    stream = self.stream
                else:
                    timeline = self._import_semaphore(self._engine.export_incoming(number))
                    self._incoming[stream] = number, timeline, 0
            # a stream of its own for signals would cost two milliseconds: the GPU waits for a time slice
            number, timeline, value = self._incoming[stream]
            self._incoming[stream] = number, timeline, value + 1
            signal = driver.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS()
            signal.params.fence.value = value + 1
            self._check(
                driver.cuSignalExternalSemaphoresAsync([timeline], [signal], 1, driver.CUstream(stream))
            )
            self._engine.wait_for_incoming(0, number, value + 1)
            note("device wait", self._context(), begin)

    def copy_in(self, memory: native.Buffer, address: int, size: int, stream: int) -> None:
        """Copy bytes of CUDA's memory to a buffer, in the order of a stream.

        Later work of the context waits for the copy.
        """
        driver = self._driver
        with self._mutex:
            target = self.map(memory)
            self.give(stream)
            with self._enter():
                self._check(driver.cuMemcpyDtoDAsync(target, address, size, driver.CUstream(stream)))
            self.take(stream)
        self.visitors.discard(stream)

    def send(self, memory: native.Buffer, other: "CudaLink", target: native.Buffer, size: int) -> None:
        """Copy bytes to a buffer of another context, which may be on another GPU.

        It is in the order of both contexts' work: after all up to now, and before all later work.
        """
        driver = self._driver
        # two threads that copy in opposite directions take the locks in one order
        first, second = sorted((self, other), key=id)
        with first._mutex, second._mutex:
            source, goal = self.map(memory), other.map(target)
            self.give(LEGACY_STREAM)
            with self._enter():
                self._check(driver.cuEventRecord(self._event, driver.CUstream(LEGACY_STREAM)))
            other.give(LEGACY_STREAM)
            with other._enter():
                stream = driver.CUstream(LEGACY_STREAM)
                self._check(driver.cuStreamWaitEvent(stream, self._event, 0))
                self._check(driver.cuMemcpyPeerAsync(goal, other._cuda, source, self._cuda, size, stream))
                self._check(driver.cuEventRecord(other._event, stream))
            other.take(LEGACY_STREAM)
            with self._enter():
                self._check(driver.cuStreamWaitEvent(driver.CUstream(LEGACY_STREAM), other._event, 0))
            self.take(LEGACY_STREAM)

    def dismiss_visitors(self) -> None:
        """Let later work of the visitors' streams wait for the context's work up to now."""
        while self.visitors:
            self.give(self.visitors.pop())

    def __del__(self) -> None:
        if sys.is_finalizing() or not hasattr(self, "_cuda"):
            return
        driver = self._driver
        driver.cuCtxPushCurrent(self._cuda)
        driver.cuStreamSynchronize(self._stream)
        for imported, address in self._blocks.values():
            self._release_block(imported, address)
        incoming = [timeline for _, timeline, _ in self._incoming.values()]
        for timeline in (*incoming, *self._timelines.values()):
            driver.cuDestroyExternalSemaphore(timeline)
        driver.cuEventDestroy(self._event)
        driver.cuStreamDestroy(self._stream)
        driver.cuCtxPopCurrent()
        driver.cuDevicePrimaryCtxRelease(self._device)

    def take_back(self, stream: int | None) -> None:
        """Order the context's later work after that of a stream, whatever has become of it."""
        context = self._context()
        if context is None or context.closed:
            return
        try:
            self.take(LEGACY_STREAM if stream is None else stream)
        except SharingError:  # the stream is gone, or CUDA is
            with self._enter():
                self._driver.cuCtxSynchronize()


class CudaLoan:
    """Memory of a buffer that CUDA uses. The context uses it again after the stream that it was lent to."""

    __slots__ = ("_link", "_loan", "_stream", "address")

    def __init__(self, link: CudaLink, loan: native.Loan, address: int, stream: int | None) -> None:
        self._link = link
        self._loan = loan
        self._stream = stream
        self.address = address

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self._link.take_back(self._stream)
