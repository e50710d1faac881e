"""Synchronization with queues: events, signals, timestamps."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
import weakref
from _thread import allocate_lock
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from vkdispatch.base import errors
from vkdispatch.base.context import Context, get_context, parse_queue, wrong_context
from vkdispatch.base.host_numpy import np
from vkdispatch.base.native_module import native
from vkdispatch.base.process import Listed, Unshared, log_error, parse_timeout
from vkdispatch.base.record import record

# ---- Events in the work of queues, for which programs and other queues can wait --------------------------


Array = np.ndarray[Any, Any]
# A queue (or its transfer queue), and the number of a batch of its work.
Point = tuple[int, int]
_T = TypeVar("_T")

# Interval at which other events are polled during a wait for one: there is no common way to wait for the
# first of several events of the device and the host.
_LOOK_SECONDS = 0.0005
_IDLE_SECONDS = 1.0


class _Moment(Unshared, Listed, Generic[_T]):
    """Pending work on the device, and its result."""

    # Whether its points are its own batches, so that failures of earlier batches do not matter.
    _alone = False

    def __init__(self, context: Context, points: list[Point]) -> None:
        self._context = context
        self._points = points
        self._done = not points

    def done(self) -> bool:
        """Return whether the work is done. Never waits."""
        return self._wait_until_reached(0.0)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the work is done, at most `timeout` seconds. Return whether it is done.

        Raises
        ------
        TypeError, ValueError
            `timeout` is not a number of seconds.
        VkDispatchError
            The work failed, for example with OutOfDeviceMemoryError or DeviceLostError.
        """
        return self._wait_until_reached(parse_timeout(timeout))

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Call `callback` with this object soon after the work is done, in a thread of vkdispatch.

        If the work is already done, it is called at once in this thread. It must not wait, as it delays
        the other callbacks of the context. Its exceptions are logged. Callbacks are also called for failed
        work, but not for work that is pending when the interpreter exits.
        """
        if not callable(callback):
            raise errors.ArgumentTypeError(f"callback: expected a callable, got {type(callback).__name__}")
        if self._is_settled():
            callback(self)
            return
        with _watchers_lock:
            watcher = _watchers.get(self._context)
            if watcher is None:
                watcher = _watchers[self._context] = _Watcher()
        watcher.watch(self, callback)

    def __await__(self) -> Generator[Any, None, _T]:
        """Wait in an asyncio program, and return the result."""
        # imported here, as only programs that use asyncio await
        import asyncio

        if not self.done():
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()

            def finish() -> None:
                if not waiter.done():
                    waiter.set_result(None)

            def wake(_: object) -> None:
                # the loop may have been closed
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(finish)

            self.add_done_callback(wake)
            yield from waiter
        return self._get_result()

    def _get_result(self) -> _T:
        raise NotImplementedError

    def _is_settled(self) -> bool:
        """Whether the work is done or has failed."""
        return self._state() != "pending"

    def _state(self) -> str:
        try:
            return "done" if self.done() else "pending"
        except Exception:
            return "failed"

    def _wait_until_reached(self, timeout: float | None, raise_findings: bool = True) -> bool:
        """Wait, and return whether the work is done. With `raise_findings`, raise errors of the device."""
        context = self._context
        if self._done and (timeout == 0 or not raise_findings or context.closed):
            return True
        try:
            if not context.closed:
                self._done = context._native.wait_until(self._points, timeout, self._alone, raise_findings)
                return self._done
        except RuntimeError:
            if not context.closed:
                raise
        context._native.close()  # waits for all work, which another thread may be doing as well
        context.require_finished()
        self._done = True
        return True


class Event(_Moment[None]):
    """A point in the work of queues. It is done when all earlier work of these queues is done.

    Made by `vd.record_event` and `Buffer.write_async`. `await event` waits in an asyncio program.

    Examples
    --------
    >>> x = vd.cumsum(vd.asbuffer(np.ones(3, np.float32)))
    >>> event = vd.record_event()
    >>> event.wait()
    True
    """

    _instead = "record another one with vd.record_event()"

    @classmethod
    def _of(cls, context: Context, points: list[Point]) -> Event:
        """Return an event for these batches only, which ignores earlier failures."""
        event = cls(context, points)
        event._alone = True
        return event

    def _get_result(self) -> None:
        self._wait_until_reached(None)

    def __repr__(self) -> str:
        return f"<vd.Event, {self._state()}>"


class ReadFuture(_Moment[Array]):
    """The future contents of a buffer as an array. `await future` returns it in an asyncio program.

    Examples
    --------
    >>> future = vd.asbuffer(np.array([1, 2, 3], np.float32)).read_async()
    >>> future.result()
    array([1., 2., 3.], dtype=float32)
    """

    _instead = "use the array that future.result() returns"
    _alone = True

    def __init__(
        self, context: Context, points: list[Point], array: Array, convert: Callable[[Array], Array] | None
    ) -> None:
        super().__init__(context, points)
        self._array = array
        self._convert = convert
        self._converting = allocate_lock()

    def result(self, timeout: float | None = None) -> Array:
        """Wait at most `timeout` seconds and return the array. Every call returns the same array.

        Raises
        ------
        WaitTimeoutError
            A TimeoutError: the read did not finish in time. It can be waited for again.
        TypeError, ValueError
            `timeout` is not a number of seconds.
        VkDispatchError
            The read failed, or the work that should have written the buffer. Every call raises the error.
        """
        if not self.wait(timeout):
            raise errors.WaitTimeoutError(
                f"timeout: the read did not finish within {timeout} seconds; call result() again later"
            )
        return self._get_result()

    def _get_result(self) -> Array:
        self._wait_until_reached(None)
        with self._converting:
            if self._convert is not None:
                self._array, self._convert = self._convert(self._array), None
        return self._array

    def __repr__(self) -> str:
        shape, kind = self._array.shape, self._array.dtype
        return f"<vd.ReadFuture of shape {shape}, {kind}, {self._state()}>"


def record_event(queue_index: int | None = None) -> Event:
    """Return an event for all work submitted so far to a queue, or with None to every queue.

    Asynchronous copies count as work of the queue whose copy of the buffer they read or write.

    Raises
    ------
    ValueError
        There is no such queue.

    Examples
    --------
    >>> total = vd.sum(vd.asbuffer(np.ones(4, np.float32)))
    >>> event = vd.record_event()
    >>> event.wait()
    True
    >>> event.done()
    True
    """
    context = get_context()
    queue = -1 if queue_index is None else parse_queue(queue_index, context, "queue_index")
    return Event(context, context._native.work_points(queue))


def wait_event(event: Event, queue_index: int | None = None) -> None:
    """Make all later work of a queue, or with None of every queue, wait for an event.

    The device waits, not the host: this returns at once. If the event belongs to another device than the
    queue, a thread of vkdispatch holds the work back.

    Parameters
    ----------
    event
        An event of `vd.record_event` or `Buffer.write_async`, or a `ReadFuture`.
    queue_index
        The queue that waits.

    Raises
    ------
    TypeError
        `event` is not an event.
    ValueError
        There is no such queue.
    RuntimeError
        The event belongs to another context.

    Examples
    --------
    >>> total = vd.sum(vd.asbuffer(np.ones(4, np.float32)))
    >>> vd.wait_event(vd.record_event())
    """
    errors.check_type("event", event, _Moment, "what vd.record_event() returns")
    context = get_context()
    queue = -1 if queue_index is None else parse_queue(queue_index, context, "queue_index")
    if event._context is not context:
        raise wrong_context("event: it", event._context)
    context._native.follow(event._points, queue)


class _Watcher:
    """Calls callbacks when work is done, from a thread that runs while work is pending."""

    def __init__(self) -> None:
        import threading  # imported here, as few programs need it

        self._lock = threading.Condition()
        self._watched: list[tuple[_Moment[Any], Callable[[Any], object]]] = []
        self._running = False
        self._stopped = False
        self._new_thread = threading.Thread
        self._thread: threading.Thread | None = None

    def watch(self, moment: _Moment[Any], callback: Callable[[Any], object]) -> None:
        """Call `callback(moment)` when it is done."""
        with self._lock:
            if not self._running:
                thread = self._new_thread(target=self._run, name="vkdispatch events", daemon=True)
                thread.start()  # first, as the system may refuse more threads
                self._thread, self._running = thread, True
            self._watched.append((moment, callback))
            self._lock.notify()

    def stop(self) -> None:
        """End the thread without further callbacks."""
        with self._lock:
            self._stopped = True
            self._lock.notify()
            thread = self._thread
        if thread is not None:
            thread.join(_IDLE_SECONDS)

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._watched and not self._stopped:
                    self._lock.wait(_IDLE_SECONDS)
                if not self._watched or self._stopped:
                    self._running = False
                    return
                watched = list(self._watched)
            _sleep_on(watched[0][0])
            finished = [entry for entry in watched if entry[0]._is_settled()]
            with self._lock:
                gone = {id(entry) for entry in finished}
                self._watched = [entry for entry in self._watched if id(entry) not in gone]
            for moment, callback in finished:
                try:
                    callback(moment)
                except Exception as error:
                    log_error(f"a callback of {moment!r} failed: {error!r}")
            # These variables would keep arrays and contexts alive while the thread sleeps.
            del watched, finished
            moment = callback = None  # type: ignore[assignment]


def _sleep_on(moment: _Moment[Any]) -> None:
    with contextlib.suppress(Exception):  # waits for it in the program raise the error as well
        moment._wait_until_reached(_LOOK_SECONDS, raise_findings=False)


_watchers: weakref.WeakKeyDictionary[Context, _Watcher] = weakref.WeakKeyDictionary()
_watchers_lock = allocate_lock()


def _forget_watchers() -> None:
    """Reset the state in a forked process: the threads do not exist there, and may have held locks."""
    global _watchers, _watchers_lock
    _watchers, _watchers_lock = weakref.WeakKeyDictionary(), allocate_lock()


def _stop_watchers() -> None:
    with _watchers_lock:
        watchers = list(_watchers.values())
    for watcher in watchers:
        watcher.stop()


# No thread may wait for the device while the interpreter exits. Runs before the context is destroyed.
atexit.register(_stop_watchers)
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget_watchers)


# ---- Signals: 0.1.0's way to wait for the work of a queue ------------------------------------------------


# Returns the points that a queue and its transfer queue must have reached.
Use = Callable[[int], list[tuple[int, int]]]


class Signal(Unshared):
    """A point in the work of each queue; `wait` waits until this work is submitted, or done.

    `vd.Signal()` stands for all work submitted to the queues so far. Each of `buffer.signals` stands for the
    last work of its queue that writes the buffer.
    """

    _instead = "use another one of buffer.signals"

    def __init__(self, ptr_addr: int | None = None) -> None:
        """Mark the work submitted to every queue so far.

        Parameters
        ----------
        ptr_addr
            Must be None. It is part of 0.1.0's interface.

        Raises
        ------
        TypeError
            `ptr_addr` is not None: there are no native signals to adopt.
        """
        if ptr_addr is not None:
            raise errors.ArgumentTypeError(
                f"ptr_addr: native signals cannot be adopted, got {ptr_addr!r}; leave it out"
            )
        context = get_context()
        marks = [context._native.work_points(queue) for queue in range(context.queue_count)]
        self._follow(context, lambda queue: marks[queue])

    def _follow(self, context: Context, use: Use, check: Callable[[int], None] | None = None) -> None:
        self._context = context
        # Raises the error of this work of a queue, if it is known separately from other work.
        self._check = check
        self._use: Use | None = use

    @classmethod
    def _of(cls, context: Context, use: Use, check: Callable[[int], None]) -> Signal:
        """Return a signal for the work that `use` names."""
        signal = cls.__new__(cls)
        signal._follow(context, use, check)
        return signal

    def wait(self, wait_for_timestamp: bool = True, queue_index: int = 0) -> None:
        """Wait until the work is submitted to the device or, with `wait_for_timestamp`, done.

        Raises
        ------
        ValueError
            There is no such queue.
        RuntimeError
            The signal was freed, or its context was closed.
        """
        self._check_or_wait(wait_for_timestamp, queue_index, block=True)

    def try_wait(self, wait_for_timestamp: bool = True, queue_index: int = 0) -> bool:
        """Return whether `wait` would return at once. Raises as `wait`."""
        return self._check_or_wait(wait_for_timestamp, queue_index, block=False)

    def _check_or_wait(self, done: bool, queue_index: int, *, block: bool) -> bool:
        if self._use is None:
            raise errors.UsageError("this Signal was freed; make a new one")
        if self._context.closed:
            raise errors.UsageError("the context of this Signal has ended; create a new Signal")
        queue = parse_queue(queue_index, self._context, "queue_index")
        engine = self._context._native
        points = self._use(queue)
        if not done:
            # Flush: the pending work of the queue is submitted to the device.
            for slot, value in points:
                engine.flush(slot, value)
            return True
        done = engine.wait_until(points, None if block else 0.0, self._check is not None)
        if done and self._check is not None:
            self._check(queue)
        return done

    def free(self) -> None:
        """Release the signal. Idempotent."""
        self._use = None


# ---- Timestamps of everything that a context runs, on the clock of `time.perf_counter` -------------------


@record
class TimedCommand:
    """A command that ran.

    Attributes
    ----------
    kind
        0: dispatch; 1, 2: host write, read of a buffer; 3, 4: host write, read of an image; 5: copy between
        buffers; 6: copy from or to an image on the device.
    queue, transfer
        Its queue, and whether it ran on the transfer queue beside it.
    plan, name
        Number and name of the dispatched plan.
    groups
        Workgroups along x, y and z.
    size
        Copied bytes.
    block
        The argument block.
    bound
        (binding or -1, offset of its address in the block or -1, bytes of a texel or 0, bytes) of each buffer
        and image.
    begin, end
        Seconds.
    """

    kind: int
    queue: int
    transfer: bool
    plan: int
    name: str
    groups: tuple[int, int, int]
    size: int
    block: bytes
    bound: tuple[tuple[int, int, int, int], ...]
    begin: float
    end: float


@record
class TimedSubmit:
    """Commands that the host recorded and submitted to a queue, from `begin` to `end`.

    `transfer` tells whether it was the transfer queue beside it.
    """

    queue: int
    transfer: bool
    commands: int
    begin: float
    end: float


class Timing:
    """A timing of everything that a context runs, from its construction until `stop`.

    Attributes
    ----------
    waits
        When the host began and ended to wait for memory that it shares, in seconds; set by `finish`.
    """

    def __init__(self, context: Context) -> None:
        """Start timing. Raises UnsupportedError if a queue has no timestamps."""
        self._engine = context._native
        self.waits: list[tuple[float, float]] = []
        if native.clocks_are_read_by_submits(self._engine):
            # This wait can be interrupted, and earlier work would make reading the clock imprecise.
            self._engine.wait_idle()
        try:
            self._since = native.start_timing(self._engine)
        except ValueError as error:
            raise errors.UnsupportedError(f"this device cannot be profiled: {error}") from None

    def finish(self) -> tuple[list[TimedCommand], list[TimedSubmit]]:
        """Wait for all work, and return the timed commands and submits."""
        self._engine.wait_idle()
        commands, submits, waits = native.timings(self._engine, self._since)
        offset = _measure_offset()
        self.waits = [((begin + offset) * 1e-9, (end + offset) * 1e-9) for begin, end in waits]
        return (
            [_command(command, offset) for command in commands],
            [
                TimedSubmit(queue, transfer, count, (begin + offset) * 1e-9, (end + offset) * 1e-9)
                for queue, transfer, count, begin, end in submits
            ],
        )

    def stop(self) -> None:
        """Stop timing. Must be called once, also after errors."""
        native.stop_timing(self._engine)


def _command(raw: native.TimedCommand, offset: int) -> TimedCommand:
    kind, queue, transfer, plan, name, groups, size, block, bound, begin, end = raw
    times = ((begin + offset) * 1e-9, (end + offset) * 1e-9)
    return TimedCommand(kind, queue, transfer, plan, name, groups, size, block, tuple(bound), *times)


def _measure_offset() -> int:
    """Return the offset from the engine's clock to `time.perf_counter`, in nanoseconds."""
    before = time.perf_counter_ns()
    engine = native.host_clock()
    after = time.perf_counter_ns()
    # On most systems both are the same clock.
    return 0 if before <= engine <= after else (before + after) // 2 - engine
