"""Sequences: recorded operations that can be evaluated repeatedly."""

import operator
import weakref
from typing import Any, TypeVar

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentTypeError, VkDispatchError
from vkdispatch.kompute import log
from vkdispatch.kompute.operations.operation import OpBase
from vkdispatch.kompute.sequences.legacy_methods import LegacyRecordMethods
from vkdispatch.kompute.sequences.recording import Recording

_S = TypeVar("_S", bound="Sequence")
_MOST_NANOSECONDS = 1 << 63


class Sequence(LegacyRecordMethods, Recording):
    """Operations recorded in order, to be evaluated any number of times on one queue.

    Recording after an evaluation starts a new recording, which the next evaluation runs. The sequence keeps
    earlier operations for `rerecord` and `get_timestamps` until `clear`.
    """

    __slots__ = ()

    def eval(self: _S, op: OpBase | None = None) -> _S:
        """Run the recorded operations, and wait. Other Python threads can run meanwhile.

        Parameters
        ----------
        op
            An operation that replaces all recorded ones. If it raises an error, those stay.

        Raises
        ------
        TypeError, RuntimeError
            As `record`.
        """
        if op is not None:
            self._check(op)
            self._start_over(op, clear=True)
        if self._running is not None or not self._initialized:
            self._require_idle("eval")
        self._recording = False
        commands = self._commands
        if commands is None:
            return self  # nothing was recorded
        if log.lowest <= log.DEBUG:
            log.debug(
                "sequence: eval on queue %d, number of operations %d", self._queue, len(self._operations)
            )
        host_operations = self._host_operations
        for each in host_operations:
            each.pre_eval()
        commands.evaluate(self._queue)
        for each in host_operations:
            each.post_eval()
        return self

    def eval_async(self: _S, op: OpBase | None = None, *, blocking: bool | None = None) -> _S:
        """Run an operation, and return immediately. A call of `eval_await` must follow.

        Parameters
        ----------
        op
            As in `eval`. Without it the recorded operations run, and the call waits for them, as in Kompute's
            Python module.
        blocking
            Whether to wait. None: wait only without `op`.

        Raises
        ------
        TypeError, RuntimeError
            As `record`.
        """
        if op is not None:
            self._check(op)
            self._start_over(op, clear=True)
        if blocking or (blocking is None and op is None):
            return self.eval()
        self._require_idle("eval_async")
        self._recording = False
        if self._commands is not None:
            if log.lowest <= log.DEBUG:
                count = len(self._operations)
                log.debug("sequence: eval_async on queue %d, number of operations %d", self._queue, count)
            for each in self._host_operations:
                each.pre_eval()
            self._running = self._commands.submit(self._queue)
        return self

    def eval_await(self: _S, wait_for: int | None = None) -> _S:
        """Wait for the running evaluation, and run the `post_eval` of its operations.

        Parameters
        ----------
        wait_for
            Nanoseconds to wait at most. None: no limit. `is_running()` tells whether the sequence
            is still running afterwards.

        Raises
        ------
        TypeError
            `wait_for` is not an int of 0 or more.
        VkDispatchError
            The evaluation failed.
        """
        self._require()
        if wait_for is not None and (not hasattr(wait_for, "__index__") or operator.index(wait_for) < 0):
            raise ArgumentTypeError(f"wait_for: expected nanoseconds, an int of 0 or more, got {wait_for!r}")
        if self._running is None:
            log.warning("eval_await: nothing is running")
            return self
        seconds = None if wait_for is None else min(operator.index(wait_for), _MOST_NANOSECONDS) * 1e-9
        try:
            done = self._context._native.wait_until([(self._queue, self._running)], seconds)
        except VkDispatchError:
            self._running = None  # the evaluation failed and no longer runs
            raise
        if done:
            self._running = None
            for each in self._host_operations:
                each.post_eval()
        if log.lowest <= log.DEBUG:
            log.debug("sequence: eval_await: %s", "done" if done else "still running")
        return self

    def is_running(self) -> bool:
        """Whether an asynchronous evaluation has not been waited for."""
        return self._running is not None

    def destroy(self) -> None:
        """Wait for a running evaluation, and drop all operations even if that fails. Idempotent."""
        if not self._initialized:
            return
        try:
            if self._running is not None and self._context.usable:
                self._context._native.wait_until([(self._queue, self._running)], None)
        finally:
            self._initialized = False
            self._recording = False
            self._running = None
            self._commands = self._spare = None
            self._operations = []
            self._host_operations = []
            log.debug("sequence destroyed")


def make_sequence(
    context: Context,
    queue: int,
    timestamp_capacity: int,
    objects: "weakref.WeakSet[Any]",
    kind: type[Sequence] | None = None,
) -> Sequence:
    """Make an empty sequence. Tensors that it allocates are added to `objects`."""
    sequence: Sequence = object.__new__(kind or Sequence)
    sequence._context = context
    sequence._objects = objects
    sequence._queue = queue
    sequence._timestamp_capacity = timestamp_capacity
    sequence._commands = sequence._spare = None
    sequence._operations = []
    sequence._host_operations = []
    sequence._earlier_timestamps = []
    sequence._recording = False
    sequence._running = None
    sequence._initialized = True
    log.debug("sequence made on queue %d", queue)
    return sequence
