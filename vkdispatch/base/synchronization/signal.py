"""Signals: 0.1.0's way to wait for the work of a queue."""

from __future__ import annotations

from collections.abc import Callable

from vkdispatch.base.context import Context, get_context, parse_queue
from vkdispatch.base.errors import ArgumentTypeError, UsageError
from vkdispatch.base.process.unshared import Unshared

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
            raise ArgumentTypeError(
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
            raise UsageError("this Signal was freed; make a new one")
        if self._context.closed:
            raise UsageError("the context of this Signal has ended; create a new Signal")
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
