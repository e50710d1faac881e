"""A machine with CUDA in the test: streams and queues run in any order that semaphores and events allow."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

OK, FAILED, IMPLICIT, ALREADY = 0, 400, 906, 704


class Code(int):
    """A result of the driver."""

    @property
    def name(self) -> str:
        return f"CODE_{int(self)}"


class Point:
    """Work that runs when what it waits for has come to pass."""

    def __init__(self, is_ready: Callable[[], bool], run: Callable[[], None]) -> None:
        self.is_ready, self.run = is_ready, run


class Timeline:
    """A timeline semaphore."""

    def __init__(self) -> None:
        self.value = 0

    def signal(self, value: int) -> Point:
        return Point(lambda: True, lambda: self.set(value))

    def set(self, value: int) -> None:
        assert value > self.value, f"a timeline goes from {self.value} to {value}"
        self.value = value

    def wait(self, value: int) -> Point:
        return Point(lambda: self.value >= value, lambda: None)


class Stream:
    """A queue of points. `device` is CUDA's number."""

    def __init__(self, number: int, device: int) -> None:
        self.number, self.device = number, device
        self.points: list[Point] = []
        self.is_captured = False


class Machine:
    """CUDA's driver, devices with one context of ours each, and a log of the work that has run."""

    def __init__(self, devices: int = 1) -> None:
        self.log: list[str] = []
        self.streams: dict[Any, Stream] = {}
        self.numbers = 0
        self.current: list[int] = []
        self.files: list[Timeline] = []
        self.engines = [Engine(self) for _ in range(devices)]
        self.contexts: list[Any] = [Context(engine, device) for device, engine in enumerate(self.engines)]
        self.peers: set[tuple[int, int]] = set()
        self.memory: dict[int, object] = {}  # what copies move, by the address that they begin at
        self.allocated = 1 << 40
        self.mapped: list[int] = []  # memory of other processes, which has one address in all of them here
        self.synchronized = 0
        self.lost: set[int] = set()
        self.capture_mode = 0
        self.in_signal: Callable[[], None] = lambda: None
        names = [name for name in dir(self) if name.startswith("cu")]
        self.driver = SimpleNamespace(**{name: getattr(self, name) for name in names})
        self.driver.CUstream = int
        self.driver.CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)
        self.driver.CUevent_flags = SimpleNamespace(CU_EVENT_DISABLE_TIMING=2)
        self.driver.CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2)
        self.driver.CUstreamCaptureStatus = SimpleNamespace(CU_STREAM_CAPTURE_STATUS_NONE=0)
        self.driver.CUresult = SimpleNamespace(
            CUDA_ERROR_STREAM_CAPTURE_IMPLICIT=IMPLICIT, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED=ALREADY
        )
        kinds = SimpleNamespace(CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD=9)
        self.driver.CUexternalSemaphoreHandleType = kinds
        self.driver.CUexternalMemoryHandleType = SimpleNamespace(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD=1)
        self.driver.CUDA_EXTERNAL_MEMORY_DEDICATED = 1
        self.driver.CUipcMemHandle = SimpleNamespace
        lazily = SimpleNamespace(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS=SimpleNamespace(value=1))
        self.driver.CUipcMem_flags = lazily
        for name in ("SEMAPHORE_HANDLE_DESC", "MEMORY_HANDLE_DESC", "MEMORY_BUFFER_DESC"):
            setattr(self.driver, "CUDA_EXTERNAL_" + name, lambda: SimpleNamespace(handle=SimpleNamespace()))
        for name in ("WAIT", "SIGNAL"):
            setattr(self.driver, f"CUDA_EXTERNAL_SEMAPHORE_{name}_PARAMS", self._make_parameters)

    @staticmethod
    def _make_parameters() -> Any:
        return SimpleNamespace(params=SimpleNamespace(fence=SimpleNamespace(value=0)))

    # -- the test's side

    def work(self, stream: int, name: str) -> None:
        """Let a stream do some work, whose name is logged when it runs."""
        self._find(stream).points.append(Point(lambda: True, lambda: self.log.append(name)))

    def destroy(self, stream: int) -> None:
        """Let the next stream have the handle of this one; its work remains."""
        self.streams[object()] = self.streams.pop(stream)

    def run(self, seed: int = 0) -> list[str]:
        """Run everything, in a random order. Return the log."""
        source = random.Random(seed)
        for engine in self.engines:
            engine.submit_all(0)
        while self._list_waiting():
            self._run_one(source)
        return self.log

    def _list_waiting(self) -> list[list[Point]]:
        queues = [each.points for each in self.streams.values()] + [e.points for e in self.engines]
        return [points for points in queues if points]

    def _run_one(self, source: random.Random) -> None:
        ready = [points for points in self._list_waiting() if points[0].is_ready()]
        assert ready, "all wait for each other"
        source.choice(ready).pop(0).run()

    def _find(self, stream: int) -> Stream:
        if stream in (1, 2):
            key = (stream, self.current[-1] if self.current else 0, threading.get_ident() * (stream == 2))
            if key not in self.streams:
                self.numbers += 1
                self.streams[key] = Stream(self.numbers if stream == 1 else 2, key[1])
            return self.streams[key]
        return self.streams[stream]

    # -- the driver

    def cuInit(self, flags: int) -> Any:
        return (Code(OK),)

    def cuDeviceGetCount(self) -> Any:
        return Code(OK), len(self.engines)

    def cuDeviceGet(self, ordinal: int) -> Any:
        return Code(OK), ordinal

    def cuDeviceGetUuid(self, device: int) -> Any:
        return Code(OK), SimpleNamespace(bytes=bytes([device] * 16))

    def cuDevicePrimaryCtxRetain(self, device: int) -> Any:
        return Code(OK), device

    def cuDevicePrimaryCtxRelease(self, device: int) -> Any:
        return (Code(OK),)

    def cuCtxPushCurrent(self, primary: int) -> Any:
        if primary in self.lost:
            return (Code(FAILED),)
        self.current.append(primary)
        return (Code(OK),)

    def cuCtxPopCurrent(self) -> Any:
        return Code(OK), self.current.pop()

    def cuThreadExchangeStreamCaptureMode(self, mode: int) -> Any:
        before, self.capture_mode = self.capture_mode, mode
        return Code(OK), before

    def cuCtxSynchronize(self) -> Any:
        self.synchronized += 1
        return (Code(OK),)

    def cuCtxEnablePeerAccess(self, other: int, flags: int) -> Any:
        pair = self.current[-1], other
        code = Code(ALREADY if pair in self.peers else OK)
        self.peers.add(pair)
        return (code,)

    def cuDeviceCanAccessPeer(self, device: int, other: int) -> Any:
        return Code(OK), 1

    def _require_relaxed(self) -> None:
        """Calls that are unsafe during a capture of this thread end it."""
        if self.capture_mode == 0 and any(each.is_captured for each in self.streams.values()):
            raise AssertionError("this call ends the capture")

    def cuStreamCreate(self, flags: int) -> Any:
        self.numbers += 1
        handle = next(handle for handle in range(1000, 9000) if handle not in self.streams)
        self.streams[handle] = Stream(self.numbers + 100, self.current[-1])
        return Code(OK), handle

    def cuStreamDestroy(self, stream: int) -> Any:
        return (Code(OK),)

    def cuStreamSynchronize(self, stream: int) -> Any:
        while self._find(stream).points and any(points[0].is_ready() for points in self._list_waiting()):
            self._run_one(random.Random(len(self.log)))
        return (Code(OK),)

    def cuStreamGetId(self, stream: int) -> Any:
        return Code(OK), self._find(stream).number

    def cuStreamGetCtx(self, stream: int) -> Any:
        return Code(OK), self._find(stream).device

    def cuStreamIsCapturing(self, stream: int) -> Any:
        if stream == 1 and any(each.is_captured for each in self.streams.values()):
            return Code(IMPLICIT), None
        if stream not in (1, 2) and stream not in self.streams:
            return Code(FAILED), None
        return Code(OK), int(self._find(stream).is_captured)

    def cuEventCreate(self, flags: int) -> Any:
        return Code(OK), SimpleNamespace(is_done=lambda: True)

    def cuEventDestroy(self, event: Any) -> Any:
        return (Code(OK),)

    def cuEventRecord(self, event: Any, stream: int) -> Any:
        done: list[bool] = []
        event.is_done = lambda: bool(done)
        self._find(stream).points.append(Point(lambda: True, lambda: done.append(True)))
        return (Code(OK),)

    def cuStreamWaitEvent(self, stream: int, event: Any, flags: int) -> Any:
        self._find(stream).points.append(Point(event.is_done, lambda: None))
        return (Code(OK),)

    def cuImportExternalSemaphore(self, description: Any) -> Any:
        self._require_relaxed()
        return Code(OK), self.files[description.handle.fd]

    def cuDestroyExternalSemaphore(self, semaphore: Any) -> Any:
        return (Code(OK),)

    def cuWaitExternalSemaphoresAsync(self, timelines: Any, waits: Any, count: int, stream: int) -> Any:
        assert self._find(stream).device == self.current[-1]
        for timeline, wait in zip(timelines, waits, strict=True):
            self._find(stream).points.append(timeline.wait(wait.params.fence.value))
        return (Code(OK),)

    def cuSignalExternalSemaphoresAsync(self, timelines: Any, signals: Any, count: int, stream: int) -> Any:
        assert self._find(stream).device == self.current[-1]
        self.in_signal()
        self._find(stream).points.append(timelines[0].signal(signals[0].params.fence.value))
        return (Code(OK),)

    def cuImportExternalMemory(self, description: Any) -> Any:
        self._require_relaxed()
        return Code(OK), description.handle.fd

    def cuExternalMemoryGetMappedBuffer(self, imported: int, extent: Any) -> Any:
        return Code(OK), 0x10000 * (imported + 1)

    def cuDestroyExternalMemory(self, imported: int) -> Any:
        return (Code(OK),)

    def cuMemAlloc(self, size: int) -> Any:
        self.allocated += size
        return Code(OK), self.allocated - size

    def cuMemFree(self, address: int) -> Any:
        return (Code(OK),)

    def cuIpcGetMemHandle(self, address: int) -> Any:
        return Code(OK), SimpleNamespace(reserved=address.to_bytes(64, "little"))

    def cuIpcOpenMemHandle(self, handle: Any, flags: int) -> Any:
        assert flags == 1, "memory of another device cannot be mapped"
        address = int.from_bytes(handle.reserved, "little")
        self.mapped.append(address)
        return Code(OK), address

    def cuIpcCloseMemHandle(self, address: int) -> Any:
        self.mapped.remove(address)
        return (Code(OK),)

    def cuMemcpyPeerAsync(self, target: int, to: int, source: int, start: int, size: int, stream: int) -> Any:
        return self.cuMemcpyDtoDAsync(target, source, size, stream)

    def cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int) -> Any:
        def copy() -> None:
            self.memory[target] = self.memory.get(source)

        self._find(stream).points.append(Point(lambda: True, copy))
        return (Code(OK),)


class Engine:
    """A context's queue."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.timeline, self.value = Timeline(), 0
        self.incoming: dict[int, Timeline] = {}
        self.points: list[Point] = []
        self.is_idle = True

    def work(self, name: str) -> None:
        """Do some work, whose name is logged when it runs."""
        self.do(lambda: self.machine.log.append(name))

    def do(self, run: Callable[[], None]) -> None:
        """Call a function where other work would run."""
        self.points.append(Point(lambda: True, run))
        self.is_idle = False

    def submit_all(self, queue: int) -> list[tuple[int, int]]:
        if not self.is_idle:
            self.is_idle = True
            self.value += 1
            self.points.append(self.timeline.signal(self.value))
        return [(0, self.value)]

    def _export(self, timeline: Timeline) -> int:
        self.machine.files.append(timeline)
        return len(self.machine.files) - 1

    def export_timeline(self, slot: int) -> int:
        return self._export(self.timeline)

    def export_incoming(self, number: int) -> int:
        return self._export(self.incoming.setdefault(number, Timeline()))

    def wait_for_incoming(self, queue: int, number: int, value: int) -> None:
        self.submit_all(queue)
        self.points.append(self.incoming[number].wait(value))

    def take_freed_blocks(self) -> list[int]:
        return []


class Context:
    """What a link asks of a context."""

    def __init__(self, engine: Engine, device: int) -> None:
        self._native = engine
        self.device_infos = [SimpleNamespace(uuid=bytes([device] * 16))]
        self._devices = f"device {device}"
        self.closed = False


class Memory:
    """A buffer that is a block of its own. `holds` counts loans."""

    read_only = False
    size = 64

    def __init__(self, number: int = 1) -> None:
        self.number, self.holds = number, 0

    def block(self) -> tuple[int, int, int, bool]:
        return self.number, self.size, 0, True

    def export_block(self) -> int:
        return self.number

    def lend_on_device(self) -> Any:
        memory = self

        class Loan:
            def __init__(self) -> None:
                memory.holds += 1

            def __del__(self) -> None:
                memory.holds -= 1

        return Loan()
