"""Sequences of recorded operations."""

import operator
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentTypeError, VkDispatchError
from vkdispatch.kompute import log
from vkdispatch.kompute.errors import KomputeError
from vkdispatch.kompute.named_operations import NamedRecords
from vkdispatch.kompute.opaque import Opaque
from vkdispatch.kompute.operations import OpBase

if TYPE_CHECKING:
    from vkdispatch.execution_pipeline.command_graph import CommandGraph
    from vkdispatch.kompute.commands import Commands

_S = TypeVar("_S", bound="Sequence")
_LONGEST = 1 << 63  # nanoseconds


class Sequence(NamedRecords, Opaque):
    """Operations recorded in order, to be evaluated any number of times on one queue.

    Recording after an evaluation starts a new recording, which the next evaluation runs. The sequence keeps
    earlier operations for `rerecord` and `get_timestamps` until `clear`.
    """

    __slots__ = (
        "_commands",
        "_context",
        "_host_operations",
        "_initialized",
        "_operations",
        "_owners",
        "_queue",
        "_recording",
        "_running",
        "_spare",
        "_stamps",
        "_timestamps",
    )

    _made_by = "kp.Manager.sequence"
    _context: Context
    _commands: "Commands | None"  # what an evaluation submits
    _spare: "Commands | None"  # empty ones, for operations that may be refused
    _operations: list[OpBase]
    _host_operations: list[OpBase]  # those of them that do something on the host
    _owners: "weakref.WeakSet[Any]"  # what its Manager destroys when it ends
    _queue: int
    _timestamps: int  # how many operations can be timed; 0: none
    _stamps: list[int]  # of operations that are held, but no longer part of the commands
    _recording: bool
    _running: int | None  # the batch that was submitted and not waited for, 0 where that has no commands
    _initialized: bool

    # -- recording

    def init(self) -> None:
        """Do nothing: it is ready when it is made. Raises RuntimeError where it was destroyed."""
        self._require()

    def begin(self: _S) -> _S:
        """Start recording anew, without the operations of before, if it is not recording.

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
        """End recording; `eval` does so by itself. Raises RuntimeError where the sequence was destroyed."""
        self._require()
        self._recording = False
        if log.lowest <= log.TRACE:
            log.trace("sequence: recording ends, number of operations %d", len(self._operations))
        return self

    def _start_commands(self) -> "Commands":
        commands = self._commands
        if commands is None:
            from vkdispatch.kompute.commands import Commands  # and graphs, which not every program needs

            self._commands = commands = Commands(self._context)
        else:
            commands.restart()
        self._recording = True
        if self._timestamps and not self._stamps:
            commands.timestamp()
        return commands

    def record(self: _S, op: OpBase) -> _S:
        """Record an operation: its commands as they are now, its push constants included.

        If it raises, the operation is not recorded. A sequence that is recording continues; otherwise it
        keeps its previous recording.

        Returns
        -------
        The sequence itself.

        Raises
        ------
        TypeError
            `op` is no operation.
        RuntimeError
            The sequence is running or was destroyed, has no room for the timestamp of one more operation, or
            the operation cannot be recorded.
        """
        self._check(op)
        if self._timestamps and len(self._operations) >= self._timestamps:
            raise KomputeError(
                f"total_timestamps: the sequence was made for {self._timestamps} operations, and has them"
            )
        if self._recording:
            self._append(op)
        elif self._commands is None:
            self._start_commands()
            self._append(op)
        else:
            self._start_over(op, forgets=False)
        return self

    def _check(self, op: object) -> None:
        if not isinstance(op, OpBase):
            raise ArgumentTypeError(f"op: expected an operation such as kp.OpAlgoDispatch(...), got {op!r}")
        if self._running is not None or not self._initialized:
            self._require_idle("record")

    def _append(self, op: OpBase) -> None:
        self._record_commands(op).keep_push_constants()
        self._operations.append(op)
        if op._acts_on_host:
            self._host_operations.append(op)
        if log.lowest <= log.TRACE:
            log.trace("sequence: %s recorded, operation %d", type(op).__name__, len(self._operations))

    def _start_over(self, op: OpBase, *, forgets: bool) -> None:
        """Record an operation in place of the commands, and of the operations held if it `forgets` them.

        Where that raises, nothing has changed.
        """
        before = (self._commands, self._operations, self._host_operations, self._stamps, self._recording)
        if forgets:
            self.clear()
        else:
            self._note_times()
        # in other commands: those of before are evaluated again if the operation is refused
        self._commands, self._spare = self._spare, None
        try:
            self._start_commands()
            self._append(op)
        except BaseException:
            self._set_aside(self._commands)
            self._commands, self._operations, self._host_operations, self._stamps, self._recording = before
            raise
        self._set_aside(before[0])

    def _set_aside(self, commands: "Commands | None") -> None:
        if commands is not None:
            commands.restart()
        self._spare = commands

    def _note_times(self) -> None:
        """Keep the times of operations that stay, while their commands do not."""
        if self._timestamps and self._operations and self._commands is not None:
            self._stamps = self.get_timestamps()

    def _record_commands(self, op: OpBase) -> "Commands":
        commands = self._commands
        assert commands is not None
        mark = commands.mark()
        try:
            op.init()
            op.record(commands)
            if self._timestamps:
                commands.timestamp()
        except BaseException:
            commands.rewind(mark)
            raise
        return commands

    def clear(self) -> None:
        """Forget the operations, and end recording; what was recorded last can still be evaluated.

        Raises
        ------
        RuntimeError
            The sequence was destroyed.
        """
        self._require()
        self._operations = []
        self._host_operations = []
        self._stamps = []
        self._recording = False

    def rerecord(self) -> None:
        """Record all operations anew, as they are now, such as after a change of an algorithm.

        Where it raises, the sequence keeps the commands that it had.

        Raises
        ------
        RuntimeError
            The sequence is running or was destroyed, or an operation cannot be recorded.
        """
        self._require_idle("rerecord")
        before = (self._commands, self._stamps, self._recording)
        self._commands, self._stamps = None, []
        made: Commands | None = None
        try:
            made = self._start_commands()
            for op in self._operations:
                self._record_commands(op)
            made.keep_push_constants()
        except BaseException:
            if made is not None:
                made.rewind()
            self._commands, self._stamps, self._recording = before
            raise

    @property
    def graph(self) -> "CommandGraph":
        """What an evaluation submits: a `vd.CommandGraph`, which is the sequence's own to change.

        Raises
        ------
        RuntimeError
            Nothing was recorded, or the sequence was destroyed.
        """
        self._require()
        if self._commands is None:
            raise KomputeError("graph: nothing was recorded")
        return self._commands.graph

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
            self._start_over(op, forgets=True)
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
        hooked = self._host_operations
        for held in hooked:
            held.pre_eval()
        commands.evaluate(self._queue)
        for held in hooked:
            held.post_eval()
        return self

    def eval_async(self: _S, op: OpBase | None = None, *, blocking: bool | None = None) -> _S:
        """Run an operation, and return at once; `eval_await` has to follow.

        Parameters
        ----------
        op
            As in `eval`. Without one, what was recorded is run, and as in Kompute's Python module this waits.
        blocking
            Whether to wait. None: as said above.

        Raises
        ------
        TypeError, RuntimeError
            As `record`.
        """
        if op is not None:
            self._check(op)
            self._start_over(op, forgets=True)
        if blocking or (blocking is None and op is None):
            return self.eval()
        self._require_idle("eval_async")
        self._recording = False
        if self._commands is not None:
            if log.lowest <= log.DEBUG:
                count = len(self._operations)
                log.debug("sequence: eval_async on queue %d, number of operations %d", self._queue, count)
            for held in self._host_operations:
                held.pre_eval()
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
        seconds = None if wait_for is None else min(operator.index(wait_for), _LONGEST) * 1e-9
        try:
            done = self._context._native.wait_until([(self._queue, self._running)], seconds)
        except VkDispatchError:
            self._running = None  # it failed, and does not run any more
            raise
        if done:
            self._running = None
            for held in self._host_operations:
                held.post_eval()
        if log.lowest <= log.DEBUG:
            log.debug("sequence: eval_await: %s", "done" if done else "still running")
        return self

    # -- state

    def is_init(self) -> bool:
        """Whether the sequence can be used: neither it nor its Manager was destroyed."""
        return self._initialized

    def is_recording(self) -> bool:
        """Whether it is recording: from the first `record` to the next evaluation or `clear`."""
        return self._recording

    is_rec = is_recording

    def is_running(self) -> bool:
        """Whether an asynchronous evaluation has not been waited for."""
        return self._running is not None

    def get_timestamps(self) -> list[int]:
        """Return the device's time before the first operation held, and after each, in ticks.

        A tick has `kp.Manager.timestamp_period` nanoseconds. Before the first evaluation they are zeros.

        Raises
        ------
        RuntimeError
            The sequence was made without `total_timestamps`, or was destroyed.
        """
        self._require()
        if not self._timestamps:
            raise KomputeError(
                "total_timestamps: make the sequence with the number of operations to be timed"
            )
        if self._running is not None:
            self.eval_await()
        latched = self._commands.graph.timestamps(self._queue) if self._commands is not None else []
        count = len(self._operations) + 1  # fewer than were noted, after `clear`
        stamps = (self._stamps + latched)[:count]
        return stamps + [0] * (count - len(stamps))

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
    timestamps: int,
    owners: "weakref.WeakSet[Any]",
    kind: type[Sequence] | None = None,
) -> Sequence:
    """Make an empty sequence; to `owners` it adds the tensors that it gives memory to."""
    made: Sequence = object.__new__(kind or Sequence)
    made._context = context
    made._owners = owners
    made._queue = queue
    made._timestamps = timestamps
    made._commands = made._spare = None
    made._operations = []
    made._host_operations = []
    made._stamps = []
    made._recording = False
    made._running = None
    made._initialized = True
    log.debug("sequence made on queue %d", queue)
    return made
