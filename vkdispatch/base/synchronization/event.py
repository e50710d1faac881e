"""Moments in the work of the device that programs can wait for, and queues too."""

import atexit
import contextlib
import os
import weakref
from _thread import allocate_lock
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from vkdispatch.base.context import Context, get_context, parse_queue, wrong_context
from vkdispatch.base.errors import (
    ArgumentTypeError,
    WaitTimeoutError,
)
from vkdispatch.base.host_numpy import np
from vkdispatch.base.process.listing import Listed
from vkdispatch.base.process.logging import log_error
from vkdispatch.base.process.timeouts import parse_timeout
from vkdispatch.base.process.unshared import Unshared

Array = np.ndarray[Any, Any]
# A queue, or its twin that moves data, and the number of a batch of its work.
Point = tuple[int, int]
_T = TypeVar("_T")

# Others are looked at this often while one is slept on: device and host have no common way to be woken by the
# first of several.
_LOOK_SECONDS = 0.0005
_IDLE_SECONDS = 1.0


class _Moment(Unshared, Listed, Generic[_T]):
    """Work on the device that ends at some time, and what it leaves."""

    # Whether its points are batches of its own: what failed before them is none of its business.
    _alone = False

    def __init__(self, context: Context, points: "list[Point]") -> None:
        self._context = context
        self._points = points
        self._done = not points

    def done(self) -> bool:
        """Return whether the work is done. Never waits."""
        return self._wait_until_reached(0.0)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the work is done, at most `timeout` seconds; return whether it is.

        Raises
        ------
        TypeError, ValueError
            `timeout` is no number of seconds.
        VkDispatchError
            The work failed, such as with OutOfDeviceMemoryError or DeviceLostError.
        """
        return self._wait_until_reached(parse_timeout(timeout))

    def add_done_callback(self, callback: "Callable[[Any], object]") -> None:
        """Call `callback` with this object once the work is done, soon and in a thread of vkdispatch's.

        It is called at once, in this thread, if the work is done already. It must not wait: other callbacks
        of the context come after it. What it raises is logged. Work that failed calls back as well; what
        is pending when the interpreter ends does not.
        """
        if not callable(callback):
            raise ArgumentTypeError(f"callback: expected a callable, got {type(callback).__name__}")
        if self._is_settled():
            callback(self)
            return
        with _watchers_lock:
            watcher = _watchers.get(self._context)
            if watcher is None:
                watcher = _watchers[self._context] = _Watcher()
        watcher.watch(self, callback)

    def __await__(self) -> Generator[Any, None, _T]:
        """Wait in an asyncio program, and return what `_outcome` has."""
        # imported on first use: programs that await have it already
        import asyncio

        if not self.done():
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()

            def finish() -> None:
                if not waiter.done():
                    waiter.set_result(None)

            def wake(_: object) -> None:
                # the loop may be closed by now
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(finish)

            self.add_done_callback(wake)
            yield from waiter
        return self._outcome()

    def _outcome(self) -> _T:
        raise NotImplementedError

    def _is_settled(self) -> bool:
        """Whether the work is done or has failed."""
        return self._state() != "pending"

    def _state(self) -> str:
        try:
            return "done" if self.done() else "pending"
        except Exception:
            return "failed"

    def _wait_until_reached(self, timeout: float | None, tells: bool = True) -> bool:
        """Wait, and return whether the work is done. With `tells`, raise errors that the device found."""
        context = self._context
        if self._done and (timeout == 0 or not tells or context.closed):
            return True
        try:
            if not context.closed:
                self._done = context._native.wait_until(self._points, timeout, self._alone, tells)
                return self._done
        except RuntimeError:
            if not context.closed:
                raise
        context._native.close()  # which finishes all work, perhaps in another thread at this very moment
        context.require_finished()
        self._done = True
        return True


class Event(_Moment[None]):
    """A moment in the work of some queues; it is done when all that was given to them before is.

    Made by `vd.record_event` and `Buffer.write_async`. `await event` waits in an asyncio program.
    """

    _instead = "record another one with vd.record_event()"

    @classmethod
    def _of(cls, context: Context, points: "list[Point]") -> "Event":
        """Return an event for these batches alone, whatever has failed before."""
        made = cls(context, points)
        made._alone = True
        return made

    def _outcome(self) -> None:
        self._wait_until_reached(None)

    def __repr__(self) -> str:
        return f"<vd.Event, {self._state()}>"


class ReadFuture(_Moment[Array]):
    """The contents of a buffer on their way to an array, which `await future` gives in an asyncio program."""

    _instead = "take the array that future.result() returns"
    _alone = True

    def __init__(
        self,
        context: Context,
        points: "list[Point]",
        array: Array,
        convert: "Callable[[Array], Array] | None",
    ) -> None:
        super().__init__(context, points)
        self._array = array
        self._convert = convert
        self._converting = allocate_lock()

    def result(self, timeout: float | None = None) -> Array:
        """Wait, at most `timeout` seconds, and return the array; every call returns the same one.

        Raises
        ------
        WaitTimeoutError
            A TimeoutError: the contents were not there in time. Ask again later.
        TypeError, ValueError
            `timeout` is no number of seconds.
        VkDispatchError
            The read failed, or what should have written the buffer; every call says so.
        """
        if not self.wait(timeout):
            raise WaitTimeoutError(
                f"timeout: the contents were not there after {timeout} seconds; ask again later"
            )
        return self._outcome()

    def _outcome(self) -> Array:
        self._wait_until_reached(None)
        with self._converting:
            if self._convert is not None:
                self._array, self._convert = self._convert(self._array), None
        return self._array

    def __repr__(self) -> str:
        shape, kind = self._array.shape, self._array.dtype
        return f"<vd.ReadFuture of shape {shape}, {kind}, {self._state()}>"


def record_event(queue_index: int | None = None) -> Event:
    """Return an event for all the work given so far to a queue, or with None to every queue.

    Asynchronous copies count as work of the queue whose copy of the buffer they read or write.

    Raises
    ------
    ValueError
        There is no such queue.
    """
    context = get_context()
    queue = -1 if queue_index is None else parse_queue(queue_index, context, "queue_index")
    return Event(context, context._native.work_points(queue))


def wait_event(event: Event, queue_index: int | None = None) -> None:
    """Have the work that is given to a queue from here on, or with None to every queue, come after an event.

    The device waits, the host does not: this returns at once. Queues of another device than the event's are
    held back by the host, behind the program's back.

    Parameters
    ----------
    event
        What `vd.record_event` or `Buffer.write_async` returned; a `ReadFuture` will do too.
    queue_index
        The queue that waits.

    Raises
    ------
    TypeError
        `event` is no event.
    ValueError
        There is no such queue.
    RuntimeError
        The event belongs to another context.
    """
    if not isinstance(event, _Moment):
        raise ArgumentTypeError(f"event: expected what vd.record_event() returns, got {type(event).__name__}")
    context = get_context()
    queue = -1 if queue_index is None else parse_queue(queue_index, context, "queue_index")
    if event._context is not context:
        raise wrong_context("event: it", event._context)
    context._native.follow(event._points, queue)


class _Watcher:
    """Calls back when work is done. Its thread lives while there is something to wait for."""

    def __init__(self) -> None:
        import threading  # few programs come here, and all would pay for it at the import

        self._lock = threading.Condition()
        self._watched: list[tuple[_Moment[Any], Callable[[Any], object]]] = []
        self._running = False
        self._stopped = False
        self._new_thread = threading.Thread
        self._thread: threading.Thread | None = None

    def watch(self, moment: "_Moment[Any]", callback: "Callable[[Any], object]") -> None:
        """Call `callback(moment)` when it is done."""
        with self._lock:
            if not self._running:
                thread = self._new_thread(target=self._run, name="vkdispatch events", daemon=True)
                thread.start()  # first of all: the system may give no more threads
                self._thread, self._running = thread, True
            self._watched.append((moment, callback))
            self._lock.notify()

    def stop(self) -> None:
        """End the thread, and call nobody any more."""
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
            # What is kept here would keep arrays and contexts alive while the thread sleeps.
            del watched, finished
            moment = callback = None  # type: ignore[assignment]


def _sleep_on(moment: "_Moment[Any]") -> None:
    with contextlib.suppress(Exception):  # whoever waits for it gets it, too
        moment._wait_until_reached(_LOOK_SECONDS, tells=False)


_watchers: "weakref.WeakKeyDictionary[Context, _Watcher]" = weakref.WeakKeyDictionary()
_watchers_lock = allocate_lock()


def _forget_watchers() -> None:
    """In a forked process: their threads did not come along, and may have held the locks."""
    global _watchers, _watchers_lock
    _watchers, _watchers_lock = weakref.WeakKeyDictionary(), allocate_lock()


def _stop_watchers() -> None:
    with _watchers_lock:
        watchers = list(_watchers.values())
    for watcher in watchers:
        watcher.stop()


# The interpreter must not end under a thread that waits for the device. Runs before the context goes.
atexit.register(_stop_watchers)
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget_watchers)
