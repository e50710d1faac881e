"""What a context and CUDA share: memory that both map, and the order of their work, by semaphores."""

import os
import sys
import weakref
from _thread import RLock, _local
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import chain, count
from typing import Any

from vkdispatch.base import errors
from vkdispatch.base.context import Context
from vkdispatch.base.native_module import native
from vkdispatch.base.sharing.formats import note, start_clock

# ---- CUDA's driver functions, and CUDA's streams as other libraries name them ----------------------------


# Handles that stand for a stream: the default one, and the default one of the calling thread.
LEGACY_STREAM, PER_THREAD_STREAM = 1, 2


class CaptureError(errors.UsageError):
    """A CUDA stream whose work is being captured in a CUDA graph."""


def load_driver() -> Any:
    """Return the module of CUDA's driver functions. Raises SharingError if it is not installed."""
    try:
        from cuda.bindings import driver
    except ImportError:
        raise errors.SharingError(
            "sharing memory with CUDA needs the package cuda-bindings: pip install 'vkdispatch-gpu[cuda]'"
        ) from None
    return driver


def check_result(result: tuple[Any, ...]) -> Any:
    """Return what a function of the driver gave. Raises SharingError if it failed."""
    code, *values = result
    if int(code) != 0:
        raise errors.SharingError(f"CUDA: {code.name}")
    return values[0] if len(values) == 1 else tuple(values) or None


class _CheckedDriver:
    """CUDA's driver functions, which return what they give, and raise SharingError where they fail."""

    def __getattr__(self, name: str) -> Any:
        function = getattr(load_driver(), name)
        return lambda *arguments: check_result(function(*arguments))


cuda = _CheckedDriver()


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
        raise errors.ArgumentTypeError(
            f"{name}: expected a CUDA stream, an int or None, got {type(stream).__name__}"
        ) from None
    if number == -1:
        return None
    if number < -1:
        raise errors.ArgumentValueError(f"{name}: expected a CUDA stream, 1, 2 or -1, got {number}")
    return number or LEGACY_STREAM


def parse_dlpack_stream(stream: Any) -> int | None:
    """Return the handle of a stream in a protocol, as `parse_stream` does, but 0 raises ValueError."""
    if isinstance(stream, int) and stream == 0:
        raise errors.ArgumentValueError(
            "stream: 0 may be one of two streams; expected 1 (the legacy default stream), 2 (the thread's "
            "default stream), a stream's handle, or -1"
        )
    return parse_stream(stream)


def current_stream(ordinal: int, x: Any = None) -> int:
    """Return the current stream of a device: in the library of an array, else in PyTorch or CuPy."""
    library = (type(x).__module__ or "").partition(".")[0]
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and library != "cupy" and torch.cuda.is_initialized():
        return int(torch.cuda.current_stream(ordinal).cuda_stream) or LEGACY_STREAM
    if cupy is not None:
        return int(cupy.cuda.get_current_stream(ordinal).ptr) or LEGACY_STREAM
    return LEGACY_STREAM


# ---- Blocks of device memory that CUDA maps, and the buffers in them that CUDA was lent ------------------


WORD = 4  # bytes: kernels may access small elements as whole words
_MAX_STALE = 64  # entries, dead ones included, before they are looked through


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
            raise errors.SharingError(
                "this memory was not allocated so that CUDA can share it; copy the buffer"
            )
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
            imported = cuda.cuImportExternalMemory(description)
        except errors.SharingError:
            os.close(file)
            raise
        extent = driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC()
        extent.offset, extent.size = 0, size
        try:
            return imported, int(cuda.cuExternalMemoryGetMappedBuffer(imported, extent))
        except errors.SharingError:
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
        if count >= _MAX_STALE and count & (count - 1) == 0:
            self._lent = {start: loan for start, loan in self._lent.items() if loan[0]() is not None}
        end = address + memory.size
        if self._find_whole(address, end) is None:  # else it is a part of what is known
            self._lent[address] = weakref.ref(memory), end
        return address

    def find(self, first: int, end: int, refusal: Callable[[], None] | None) -> native.Buffer | None:
        """Return a buffer of memory that CUDA was lent: see `CudaLink.find`."""
        end += -end % WORD
        match = self._find_whole(first, end)
        if match is None:
            return None
        whole, start, stop = match
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
        except (RuntimeError, errors.SharingError):
            return False


# ---- What a device has for copies from and to other GPUs -------------------------------------------------
#
# Two streams, and memory that CUDA has allocated.


PART = 16 << 20  # bytes that a lane carries at a time


class Lane:
    """A stream, and the event of its last work."""

    __slots__ = ("event", "stream")

    def __init__(self, driver: Any) -> None:
        self.stream = cuda.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
        self.event = cuda.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING)


class Lanes:
    """Two lanes, for every second part: one carries a part while the other one waits for an event.

    Parts arrive in memory that CUDA has allocated, because copies between GPUs are ten times slower if both
    ends are imported memory. The device's context is CUDA's current one in all methods.
    """

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._memory: int | None = None
        self.both = Lane(driver), Lane(driver)

    def find_memory(self) -> int:
        """Return the address of memory for a part on each lane."""
        if self._memory is None:
            self._memory = int(cuda.cuMemAlloc(2 * PART))
        return self._memory

    def release(self) -> None:
        """Free all, once the lanes' work is done."""
        for lane in self.both:
            self._driver.cuStreamSynchronize(lane.stream)
        for lane in self.both:
            self._driver.cuEventDestroy(lane.event)
            self._driver.cuStreamDestroy(lane.stream)
        if self._memory is not None:
            self._driver.cuMemFree(self._memory)


# A block of device memory is exported once as a file descriptor, and CUDA maps it. A stream waits for the
# timelines of the context's queues, and the queues for a timeline that the stream signals. The host waits
# for neither.


_MAX_STREAMS = 64
_MAX_WAITED = 1000

# What tells a stream from all others: CUDA's number, and the thread's if each thread has a stream of its own.
_Key = tuple[int, int]


class _Thread(_local):
    """What belongs to a thread: its number, and the streams that will wait for the call that it runs."""

    numbers = count(1)

    def __init__(self) -> None:
        self.number = next(self.numbers)
        self.visitors: set[int] = set()


class _Incoming:
    """A timeline that a stream signals: its number in the engine, CUDA's semaphore, and the last value."""

    __slots__ = ("number", "timeline", "value")

    def __init__(self, number: int, timeline: Any) -> None:
        self.number = number
        self.timeline = timeline
        self.value = 0


class CudaLink:
    """What a context and CUDA share. All methods may be called by any thread.

    Attributes
    ----------
    ordinal
        CUDA's number of the device.
    stream
        The handle of a stream of the link's own.
    peers
        Links whose devices' memory this device accesses.
    lanes
        What copies from and to other devices use; None before the first one.
    """

    def __init__(self, context: Context) -> None:
        driver = self._driver = load_driver()
        self._context = weakref.ref(context)
        self._engine = context._native
        self._mutex = RLock()
        self._depth = 0  # calls of the thread that holds the mutex, one within the other
        self._returned: deque[tuple[native.Loan, int]] = deque()  # loans that ended within such a call
        self._thread = _Thread()
        self.peers = weakref.WeakSet[CudaLink]()
        self.lanes: Lanes | None = None
        cuda.cuInit(0)
        self.ordinal, self.device = self._find_device(context)
        self.primary = cuda.cuDevicePrimaryCtxRetain(self.device)
        self.blocks = CudaBlocks(driver, self._engine, self.enter)
        # by stream and queue, or incoming timeline from -1 down: the value that the stream waited for
        self._waited: dict[tuple[_Key, int], int] = {}
        self._incoming: dict[_Key, _Incoming] = {}  # by stream, the one used last at the end
        with self.enter():
            flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
            self._stream = cuda.cuStreamCreate(flags)
            self.stream = int(self._stream)
            self.event = cuda.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING)
            self._timelines = {
                slot: self._import_semaphore(self._engine.export_timeline(slot))
                for slot, _ in self._engine.submit_all(0)
            }

    def _find_device(self, context: Context) -> tuple[int, Any]:
        """Return CUDA's number of a context's device, and its handle."""
        wanted = context.device_infos[0].uuid
        for ordinal in range(cuda.cuDeviceGetCount()):
            device = cuda.cuDeviceGet(ordinal)
            if bytes(cuda.cuDeviceGetUuid(device).bytes) == wanted:
                return ordinal, device
        raise errors.SharingError(
            f"CUDA does not see {context._devices}; is it hidden by CUDA_VISIBLE_DEVICES?"
        )

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Make the device's primary context CUDA's current one.

        A thread may be capturing a CUDA graph when the garbage collector ends a loan: calls of the block that
        have nothing to do with the capture do not end it.
        """
        driver = self._driver
        cuda.cuCtxPushCurrent(self.primary)
        relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        _, mode = driver.cuThreadExchangeStreamCaptureMode(relaxed)
        try:
            yield
        finally:
            driver.cuThreadExchangeStreamCaptureMode(mode)
            driver.cuCtxPopCurrent()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep other threads out, and make the device's primary context CUDA's current one."""
        with self._mutex:
            self._depth += 1
            try:
                with self.enter():
                    yield
            finally:
                self._depth -= 1
        self._take_returned()

    # -- memory

    def _import_semaphore(self, file: int) -> Any:
        description = self._driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC()
        kinds = self._driver.CUexternalSemaphoreHandleType
        description.type = kinds.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
        description.handle.fd = file
        try:
            return cuda.cuImportExternalSemaphore(description)
        except errors.SharingError:
            os.close(file)
            raise

    def lend(self, memory: native.Buffer, stream: int | None) -> "CudaLoan":
        """Return the memory of a buffer for CUDA, after all work up to now in the order of a stream."""
        with self.hold():
            loan = CudaLoan(self, memory, self.blocks.lend(memory), stream)
            if stream is not None:
                self.give(stream)
            return loan

    def lend_for_good(self, memory: native.Buffer) -> int:
        """Return where CUDA maps the memory of a buffer, which the caller keeps, and know it by that."""
        with self.hold():
            return self.blocks.lend(memory)

    def find(self, first: int, end: int, refusal: Callable[[], None] | None = None) -> native.Buffer | None:
        """Return a buffer of memory that CUDA was lent, from one address to another; None if there is none.

        The first address is a multiple of the alignment of bindings. The last word belongs to the buffer. The
        refusal is a function that raises an exception, for memory that must not be written.
        """
        with self.hold():
            return self.blocks.find(first, end, refusal)

    # -- order

    def check_stream(self, stream: int, name: str) -> None:
        """Raise ValueError for a stream of another device. The error calls it `name`."""
        if stream in (LEGACY_STREAM, PER_THREAD_STREAM):
            return
        with self.enter():
            owner = cuda.cuStreamGetCtx(self._driver.CUstream(stream))
        if int(owner) != int(self.primary):
            raise errors.ArgumentValueError(
                f"{name}: the stream does not belong to CUDA's device {self.ordinal} (its primary context), "
                "on which the context computes"
            )

    def _identify(self, stream: int) -> _Key:
        """Return what tells a stream from all others, and from later ones with the same handle.

        Raises CaptureError while work of the stream is captured.
        """
        driver, handle = self._driver, self._driver.CUstream(stream)
        code, status = driver.cuStreamIsCapturing(handle)
        is_implicit = code == driver.CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
        if is_implicit or status not in (None, driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE):
            raise CaptureError(
                "a CUDA graph is being captured, and its replays would not repeat work of vkdispatch, which "
                "the host submits; make this call before or after the capture"
            )
        check_result((code,))
        number = cuda.cuStreamGetId(handle)
        return number, self._thread.number if stream == PER_THREAD_STREAM else 0

    def give(self, stream: int) -> None:
        """Let later work of a stream wait for the context's work up to now, and for what that waits for."""
        begin = start_clock()
        with self.hold():
            key = self._identify(stream)
            points = {slot: (self._timelines[slot], value) for slot, value in self._engine.submit_all(0)}
            # directly: between CUDA's work and Vulkan's, a GPU changes time slices, which takes a millisecond
            for other, incoming in self._incoming.items():
                if other != key:
                    points[-1 - incoming.number] = incoming.timeline, incoming.value
            points = {
                number: point
                for number, point in points.items()
                if point[1] > self._waited.get((key, number), 0)
            }
            if not points:
                return
            self._wait(stream, list(points.values()))
            if len(self._waited) > _MAX_WAITED:
                self._waited.clear()
            self._waited.update({(key, number): value for number, (_, value) in points.items()})
            note("stream wait", self._context(), begin)

    def _wait(self, stream: int, points: list[tuple[Any, int]]) -> None:
        """Let later work of a stream wait for values of timelines."""
        driver, parameters = self._driver, []
        for _, value in points:
            wait = driver.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS()
            wait.params.fence.value = value
            parameters.append(wait)
        timelines = [timeline for timeline, _ in points]
        cuda.cuWaitExternalSemaphoresAsync(timelines, parameters, len(timelines), driver.CUstream(stream))

    def take(self, stream: int) -> None:
        """Let the context's later work wait for the work of a stream up to now."""
        driver, begin = self._driver, start_clock()
        with self.hold():
            key = self._identify(stream)
            incoming = self._incoming.pop(key, None) or self._start_incoming(stream)
            self._incoming[key] = incoming
            incoming.value += 1
            signal = driver.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS()
            signal.params.fence.value = incoming.value
            # a stream of its own for signals would cost two milliseconds: the GPU waits for a time slice
            cuda.cuSignalExternalSemaphoresAsync([incoming.timeline], [signal], 1, driver.CUstream(stream))
            self._engine.wait_for_incoming(0, incoming.number, incoming.value)
            note("device wait", self._context(), begin)

    def _start_incoming(self, stream: int) -> _Incoming:
        """Return a timeline for a stream to signal: a new one, or the one that was used least recently."""
        number = len(self._incoming)
        if number < _MAX_STREAMS:
            return _Incoming(number, self._import_semaphore(self._engine.export_incoming(number)))
        oldest, incoming = next(iter(self._incoming.items()))
        self._wait(stream, [(incoming.timeline, incoming.value)])  # values must not go down
        del self._incoming[oldest]
        return incoming

    def copy_in(self, memory: native.Buffer, address: int, size: int, stream: int) -> None:
        """Copy bytes of CUDA's memory to a buffer, in the order of a stream.

        Later work of the context waits for the copy.
        """
        driver = self._driver
        with self.hold():
            target = self.blocks.map(memory)
            self.give(stream)
            cuda.cuMemcpyDtoDAsync(target, address, size, driver.CUstream(stream))
            self.take(stream)

    def copy_out(self, address: int, memory: native.Buffer, start: int, size: int, stream: int) -> None:
        """Copy bytes of a buffer to CUDA's memory, in the order of a stream.

        Later work of the context does not wait for the copy.
        """
        driver = self._driver
        with self.hold():
            source = self.blocks.map(memory) + start
            self.give(stream)
            cuda.cuMemcpyDtoDAsync(address, source, size, driver.CUstream(stream))

    # -- streams whose arrays are arguments of a call

    def add_visitor(self, stream: int) -> None:
        """Let a stream wait for the call that this thread runs, when the call has submitted its work."""
        self._thread.visitors.add(stream)

    def dismiss_visitors(self) -> None:
        """Let later work of the visitors' streams wait for the context's work up to now."""
        visitors = self._thread.visitors
        while visitors:
            self.give(visitors.pop())

    # -- the end

    def take_back(self, loan: native.Loan, stream: int) -> None:
        """End a loan: the context's later work comes after that of a stream, whatever has become of it.

        The garbage collector may call this at any time.
        """
        self._returned.append((loan, stream))
        self._take_returned()

    def _take_returned(self) -> None:
        # without waiting: the thread may hold another link, whose holder waits for this one
        while self._returned and self._mutex.acquire(blocking=False):
            try:
                if self._depth:
                    return  # the call that holds the mutex takes them at its end
                self._depth += 1
                try:
                    if not self._take_one():
                        return
                finally:
                    self._depth -= 1
            finally:
                self._mutex.release()

    def _take_one(self) -> bool:
        """Take back the loan that ended first. Return whether others may be taken."""
        try:
            loan, stream = self._returned.popleft()
        except IndexError:  # another thread took it
            return True
        context = self._context()
        if context is None or context.closed:
            return True
        try:
            self.take(stream)
        except CaptureError:
            self._returned.append((loan, stream))
            return False  # a call after the capture takes it
        except (errors.SharingError, errors.VulkanError):  # the stream is gone, or CUDA or the context is
            self.synchronize()
        return True

    def synchronize(self) -> None:
        """Wait on the host for all work of CUDA on the device, if there still is CUDA."""
        if int(self._driver.cuCtxPushCurrent(self.primary)[0]) == 0:
            self._driver.cuCtxSynchronize()
            self._driver.cuCtxPopCurrent()

    def __del__(self) -> None:
        if sys.is_finalizing() or not hasattr(self, "_timelines"):
            return
        driver = self._driver
        if int(driver.cuCtxPushCurrent(self.primary)[0]) == 0:
            driver.cuStreamSynchronize(self._stream)
            self.blocks.release()
            if self.lanes is not None:
                self.lanes.release()
            for incoming in self._incoming.values():
                driver.cuDestroyExternalSemaphore(incoming.timeline)
            for timeline in self._timelines.values():
                driver.cuDestroyExternalSemaphore(timeline)
            driver.cuEventDestroy(self.event)
            driver.cuStreamDestroy(self._stream)
            driver.cuCtxPopCurrent()
        driver.cuDevicePrimaryCtxRelease(self.device)


class CudaLoan:
    """Memory of a buffer that CUDA uses. The context uses it again after the stream that it was lent to."""

    __slots__ = ("_loan", "_stream", "address", "is_read_only", "link")

    def __init__(self, link: CudaLink, memory: native.Buffer, address: int, stream: int | None) -> None:
        self._loan = memory.lend_on_device()
        self._stream = LEGACY_STREAM if stream is None else stream
        self.address = address
        self.is_read_only = memory.read_only
        self.link = link

    def __del__(self) -> None:
        if hasattr(self, "link") and not sys.is_finalizing():
            self.link.take_back(self._loan, self._stream)


# ---- Which contexts CUDA knows, and their links ----------------------------------------------------------


CUDA, MANAGED = 2, 13  # DLPack's numbers
_NVIDIA = 0x10DE

_links: "weakref.WeakKeyDictionary[Context, CudaLink]" = weakref.WeakKeyDictionary()
_lock = RLock()  # the garbage collector may run anything while a link is made


def can_link(context: Context) -> bool:
    """Whether CUDA may know the device of a context."""
    return (
        context.queue_count == 1
        and context._native.exports
        and context.device_infos[0].vendor_id == _NVIDIA
        and context.device_infos[0].uuid is not None
    )


def find_link(context: Context) -> CudaLink:
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
                raise errors.SharingError(f"CUDA cannot share memory of {context._devices}")
            link = _links[context] = CudaLink(context)
        return link


def end_visits(context: Context) -> None:
    """Let the CUDA streams whose arrays were arguments of a call wait for its work."""
    link = _links.get(context) if _links else None
    if link is not None:
        link.dismiss_visitors()
