"""Points in the work of a queue that can be waited for."""

from __future__ import annotations

from collections.abc import Callable

from vkdispatch.base.context import Context, get_context, parse_queue
from vkdispatch.base.errors import ArgumentTypeError, UsageError
from vkdispatch.base.process.unshared import Unshared

# Says how far a queue, and the one beside it that only moves data, must have come.
Use = Callable[[int], list[tuple[int, int]]]


class Signal(Unshared):
    """Set once the work that it stands for was submitted, and again, as seen by `wait`, once it is done.

    `vd.Signal()` stands for all the work given to the queues so far. Those of `buffer.signals` follow their
    buffer: each stands for the last work given to its queue that writes the buffer.
    """

    _instead = "take another one of buffer.signals"

    def __init__(self, ptr_addr: int | None = None) -> None:
        """Mark the work given to every queue until now.

        Parameters
        ----------
        ptr_addr
            Kept for old programs; must be None.

        Raises
        ------
        TypeError
            `ptr_addr` is given: there are no native signals to be adopted.
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
        # Raises why the work of a queue was not done, where that is known apart from its other work.
        self._check = check
        self._use: Use | None = use

    @classmethod
    def _of(cls, context: Context, use: Use, check: Callable[[int], None]) -> Signal:
        """Return a signal for the work that `use` names."""
        signal = cls.__new__(cls)
        signal._follow(context, use, check)
        return signal

    def wait(self, wait_for_timestamp: bool = True, queue_index: int = 0) -> None:
        """Wait until the work was submitted to the device or, with `wait_for_timestamp`, is done.

        Raises
        ------
        ValueError
            There is no such queue.
        RuntimeError
            The signal was freed, or its context is gone.
        """
        self._look(wait_for_timestamp, queue_index, block=True)

    def try_wait(self, wait_for_timestamp: bool = True, queue_index: int = 0) -> bool:
        """Return whether `wait` would return at once. Raises as `wait`."""
        return self._look(wait_for_timestamp, queue_index, block=False)

    def _look(self, done: bool, queue_index: int, *, block: bool) -> bool:
        if self._use is None:
            raise UsageError("this Signal was freed; make a new one")
        if self._context.closed:
            raise UsageError("this Signal belongs to a context that is gone; make a new one")
        queue = parse_queue(queue_index, self._context, "queue_index")
        engine = self._context._native
        points = self._use(queue)
        if not done:
            # Waiting submits: what was given to a queue is on its way to the device from here on.
            for slot, value in points:
                engine.flush(slot, value)
            return True
        done = engine.wait_until(points, None if block else 0.0, self._check is not None)
        if done and self._check is not None:
            self._check(queue)
        return done

    def free(self) -> None:
        """Give the signal up. Idempotent."""
        self._use = None
