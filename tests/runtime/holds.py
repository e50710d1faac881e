"""A queue that stands still until it is let go: it takes no processor meanwhile, and never ends by itself."""

from __future__ import annotations

from ctypes import POINTER, Structure, byref, c_uint32, c_uint64, c_void_p, cast, pointer
from types import TracebackType

import vkdispatch as vd

from .by_hand import call, vk

_ALL_COMMANDS = 0x10000


class _TypeInfo(Structure):
    _fields_ = (("type", c_uint32), ("next", c_void_p), ("kind", c_uint32), ("value", c_uint64))


class _SemaphoreInfo(Structure):
    _fields_ = (("type", c_uint32), ("next", c_void_p), ("flags", c_uint32))


class _TimelineInfo(Structure):
    _fields_ = (
        ("type", c_uint32),
        ("next", c_void_p),
        ("wait_count", c_uint32),
        ("waits", POINTER(c_uint64)),
        ("signal_count", c_uint32),
        ("signals", POINTER(c_uint64)),
    )


class _SubmitInfo(Structure):
    _fields_ = (
        ("type", c_uint32),
        ("next", c_void_p),
        ("wait_count", c_uint32),
        ("waits", POINTER(c_uint64)),
        ("stages", POINTER(c_uint32)),
        ("buffer_count", c_uint32),
        ("buffers", c_void_p),
        ("signal_count", c_uint32),
        ("signals", c_void_p),
    )


class _SignalInfo(Structure):
    _fields_ = (("type", c_uint32), ("next", c_void_p), ("semaphore", c_uint64), ("value", c_uint64))


class Hold:
    """Holds back all that is given to a queue of a context from here on, until `open`.

    The queue waits for a semaphore that only `open` signals: nothing that comes behind it is done before,
    however long that takes. Used in a `with` statement it is opened at the end.
    """

    def __init__(self, context: vd.Context, queue: int = 0) -> None:
        vd.queue_wait_idle(context=context)
        devices = context.handles.devices
        places = [(device, handle) for device in devices for handle in device.queues]
        device, handle = places[queue]
        self._device = c_void_p(device.device)
        self._semaphore = c_uint64()
        kind = _TypeInfo(type=1000207002, kind=1, value=0)
        info = _SemaphoreInfo(type=9, next=cast(pointer(kind), c_void_p))
        call("vkCreateSemaphore", self._device, byref(info), None, byref(self._semaphore))
        value, stage = c_uint64(1), c_uint32(_ALL_COMMANDS)
        timeline = _TimelineInfo(type=1000207003, wait_count=1, waits=pointer(value))
        submit = _SubmitInfo(
            type=4,
            next=cast(pointer(timeline), c_void_p),
            wait_count=1,
            waits=pointer(self._semaphore),
            stages=pointer(stage),
        )
        call("vkQueueSubmit", c_void_p(handle.handle), 1, byref(submit), c_uint64(0))
        self._opened = False

    def open(self) -> None:
        """Let go of the queue. Idempotent."""
        if not self._opened:
            self._opened = True
            info = _SignalInfo(type=1000207005, semaphore=self._semaphore, value=1)
            call("vkSignalSemaphore", self._device, byref(info))

    def is_open(self) -> bool:
        """Whether `open` was called."""
        return self._opened

    def destroy(self) -> None:
        """Destroy the semaphore. The queue must be idle."""
        vk.vkDestroySemaphore(self._device, self._semaphore, None)

    def __enter__(self) -> Hold:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.open()
