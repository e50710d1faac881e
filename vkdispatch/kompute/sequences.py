"""Sequences: recorded operations that can be evaluated repeatedly."""

import operator
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentTypeError, VkDispatchError
from vkdispatch.kompute import log
from vkdispatch.kompute.enums import KomputeError, Opaque
from vkdispatch.kompute.operations import Commands, LegacyRecordMethods, OpBase

if TYPE_CHECKING:
    from vkdispatch.execution_pipeline.command_graph import CommandGraph


_MAX_NANOSECONDS = 1 << 63
_S = TypeVar("_S", bound="Sequence")


# ---- Sequences: recorded operations, and their evaluation ------------------------------------------------


class Sequence(LegacyRecordMethods, Opaque):
    """Operations recorded in order, to be evaluated any number of times on one queue.

    Recording after an evaluation starts a new recording, which the next evaluation runs. The sequence keeps
    earlier operations for `rerecord` and `get_timestamps` until `clear`.
    """

    __slots__ = (
        "_commands",
        "_context",
        "_earlier_timestamps",
        "_host_operations",
        "_initialized",
        "_objects",
        "_operations",
        "_queue",
        "_recording",
        "_running",
        "_spare",
        "_timestamp_capacity",
    )

    _maker = "kp.Manager.sequence"
    _context: Context
    _commands: Commands | None  # submitted by an evaluation
    _spare: Commands | None  # empty commands, reused by the next recording
    _operations: list[OpBase]
    _host_operations: list[OpBase]  # operations with a `pre_eval` or `post_eval`
    _objects: "weakref.WeakSet[Any]"  # destroyed together with the Manager
    _queue: int
    _timestamp_capacity: int  # the number of operations that can be timed
    _earlier_timestamps: list[int]  # of operations whose commands were replaced
    _recording: bool
    _running: int | None  # the submitted batch, until it has been waited for; 0 without commands
    _initialized: bool

    def init(self) -> None:
        """Do nothing. Raises RuntimeError if the sequence was destroyed."""
        self._require()

    def begin(self: _S) -> _S:
        """Start a new recording without the previous operations, unless the sequence is recording.

        Raises
        ------
        RuntimeError
            The sequence is running or was destroyed.
        """
        self._require_idle("record")
        if not self._recording:
            self.clear()
            self._start_commands()
            if log.lowest <= log.TRACE:
                log.trace("sequence: recording begins")
        return self

    def end(self: _S) -> _S:
        """End the recording. `eval` also ends it. Raises RuntimeError if the sequence was destroyed."""
        self._require()
        self._recording = False
        if log.lowest <= log.TRACE:
            log.trace("sequence: recording ends, number of operations %d", len(self._operations))
        return self

    def _start_commands(self) -> Commands:
        commands = self._commands
        if commands is None:
            self._commands = commands = Commands(self._context)
        else:
            commands.restart()
        self._recording = True
        if self._timestamp_capacity and not self._earlier_timestamps:
            commands.timestamp()
        return commands

    def record(self: _S, op: OpBase) -> _S:
        """Record an operation: its commands in their present state, including push constants.

        If it raises, the operation is not recorded. A sequence that is recording continues; otherwise it
        keeps its previous recording.

        Returns
        -------
        The sequence itself.

        Raises
        ------
        TypeError
            `op` is not an operation.
        RuntimeError
            The sequence is running or was destroyed, cannot time one more operation, or the operation cannot
            be recorded.
        """
        self._check(op)
        if self._timestamp_capacity and len(self._operations) >= self._timestamp_capacity:
            raise KomputeError(
                f"total_timestamps: the sequence was made for {self._timestamp_capacity} operations, and has "
                "recorded that many"
            )
        if self._recording:
            self._append(op)
        elif self._commands is None:
            self._start_commands()
            self._append(op)
        else:
            self._start_over(op, clear=False)
        return self

    def _check(self, op: object) -> None:
        if not isinstance(op, OpBase):
            raise ArgumentTypeError(f"op: expected an operation such as kp.OpAlgoDispatch(...), got {op!r}")
        if self._running is not None or not self._initialized:
            self._require_idle("record")

    def _append(self, op: OpBase) -> None:
        self._record_commands(op).keep_push_constants()
        self._operations.append(op)
        if op._has_host_hooks:
            self._host_operations.append(op)
        if log.lowest <= log.TRACE:
            log.trace("sequence: %s recorded, operation %d", type(op).__name__, len(self._operations))

    def _start_over(self, op: OpBase, *, clear: bool) -> None:
        """Replace the commands by those of one operation. With `clear`, drop the previous operations too.

        If that raises, nothing changes.
        """
        before = (
            self._commands,
            self._operations,
            self._host_operations,
            self._earlier_timestamps,
            self._recording,
        )
        if clear:
            self.clear()
        elif self._timestamp_capacity and self._operations and self._commands is not None:
            self._earlier_timestamps = self.get_timestamps()
        # The previous commands stay intact: they are evaluated again if the operation is rejected.
        self._commands, self._spare = self._spare, None
        try:
            self._start_commands()
            self._append(op)
        except BaseException:
            self._recycle(self._commands)
            (
                self._commands,
                self._operations,
                self._host_operations,
                self._earlier_timestamps,
                self._recording,
            ) = before
            raise
        self._recycle(before[0])

    def _recycle(self, commands: Commands | None) -> None:
        if commands is not None:
            commands.restart()
        self._spare = commands

    def _record_commands(self, op: OpBase) -> Commands:
        commands = self._commands
        assert commands is not None
        mark = commands.mark()
        try:
            op.init()
            op.record(commands)
            if self._timestamp_capacity:
                commands.timestamp()
        except BaseException:
            commands.rewind(mark)
            raise
        return commands

    def clear(self) -> None:
        """Drop the operations and end the recording. The last recording can still be evaluated.

        Raises
        ------
        RuntimeError
            The sequence was destroyed.
        """
        self._require()
        self._operations = []
        self._host_operations = []
        self._earlier_timestamps = []
        self._recording = False

    def rerecord(self) -> None:
        """Record all operations again in their present state, for example after a change of an algorithm.

        If it raises, the sequence keeps its commands.

        Raises
        ------
        RuntimeError
            The sequence is running or was destroyed, or an operation cannot be recorded.
        """
        self._require_idle("rerecord")
        before = (self._commands, self._earlier_timestamps, self._recording)
        self._commands, self._earlier_timestamps = None, []
        commands: Commands | None = None
        try:
            commands = self._start_commands()
            for op in self._operations:
                self._record_commands(op)
            commands.keep_push_constants()
        except BaseException:
            if commands is not None:
                commands.rewind()
            self._commands, self._earlier_timestamps, self._recording = before
            raise

    @property
    def graph(self) -> "CommandGraph":
        """The `vd.CommandGraph` that an evaluation submits. Do not change it.

        Raises
        ------
        RuntimeError
            Nothing was recorded, or the sequence was destroyed.
        """
        self._require()
        if self._commands is None:
            raise KomputeError("graph: nothing was recorded")
        return self._commands.graph

    def is_init(self) -> bool:
        """Whether the sequence can be used: neither it nor its Manager was destroyed."""
        return self._initialized

    def is_recording(self) -> bool:
        """Whether it is recording: from the first `record` to the next evaluation or `clear`."""
        return self._recording

    is_rec = is_recording

    def get_timestamps(self) -> list[int]:
        """Return the device's time before the first recorded operation and after each one, in ticks.

        A tick takes `kp.Manager.timestamp_period` nanoseconds. Before the first evaluation all values are 0.

        Raises
        ------
        RuntimeError
            The sequence was made without `total_timestamps`, or was destroyed.
        """
        self._require()
        if not self._timestamp_capacity:
            raise KomputeError(
                "total_timestamps: make the sequence with the number of operations to be timed"
            )
        if self._running is not None:
            self.eval_await()
        latest = self._commands.graph.timestamps(self._queue) if self._commands is not None else []
        count = len(self._operations) + 1  # fewer than were written, after `clear`
        ticks = (self._earlier_timestamps + latest)[:count]
        return ticks + [0] * (count - len(ticks))

    # -- evaluation

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
        for operation in host_operations:
            operation.pre_eval()
        commands.evaluate(self._queue)
        for operation in host_operations:
            operation.post_eval()
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
            for operation in self._host_operations:
                operation.pre_eval()
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
        seconds = None if wait_for is None else min(operator.index(wait_for), _MAX_NANOSECONDS) * 1e-9
        try:
            done = self._context._native.wait_until([(self._queue, self._running)], seconds)
        except VkDispatchError:
            self._running = None  # the evaluation failed and no longer runs
            raise
        if done:
            self._running = None
            for operation in self._host_operations:
                operation.post_eval()
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

    def _require(self) -> None:
        if not self._initialized:
            raise KomputeError("this kp.Sequence was destroyed, or its Manager was; make a new one")

    def _require_idle(self, call: str) -> None:
        self._require()
        if self._running is not None:
            raise KomputeError(f"{call}: the sequence is running; wait for it with eval_await()")


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


# ---- Sequences that behave as those of Kompute 0.5 and 0.6 -----------------------------------------------


class LegacySequence(Sequence):
    """The sequence that `kp.Manager.create_sequence` makes after `kp.use("0.6")`.

    It records only between `begin` and `end`, and `eval_async` does not wait. Calls return whether they had
    an effect; if not, the logger states the reason.
    """

    __slots__ = ()

    def begin(self) -> Any:
        """Start a new recording. Return False if the sequence is recording or running."""
        if self._is_busy("begin"):
            return False
        super().begin()
        return True

    def end(self) -> Any:
        """End the recording. Return False if the sequence is not recording."""
        if not self._recording:
            log.warning("end: the sequence is not recording")
            return False
        super().end()
        return True

    def record(self, op: OpBase) -> Any:
        """Record an operation. Return False if `begin` was not called."""
        if not self._recording:
            log.error("record: the sequence is not recording; call begin() first")
            return False
        super().record(op)
        return True

    def eval(self, op: OpBase | None = None) -> Any:
        """Run the recorded operations and wait. Return False if the sequence is recording or running."""
        if op is None and self._is_busy("eval"):
            return False
        super().eval(op)
        return True

    def eval_async(self, op: OpBase | None = None, *, blocking: bool | None = False) -> Any:
        """Start the recorded operations. Return False if the sequence is recording or running."""
        if op is None and self._is_busy("eval_async"):
            return False
        super().eval_async(op, blocking=blocking)
        return True

    def eval_await(self, wait_for: int | None = None) -> Any:
        """Wait for at most `wait_for` nanoseconds. Return whether an evaluation was running and is done."""
        is_running = self.is_running()
        super().eval_await(wait_for)
        return is_running and not self.is_running()

    def _is_busy(self, call: str) -> bool:
        """Whether the sequence is recording or running. Logs a warning if so."""
        if self._recording:
            log.warning("%s: the sequence is recording", call)
            return True
        if self.is_running():
            log.warning("%s: the sequence is running; wait for it with eval_await()", call)
            return True
        return False
