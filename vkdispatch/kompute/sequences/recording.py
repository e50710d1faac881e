"""The recording of a sequence: its operations, and the commands they record."""

import weakref
from typing import TYPE_CHECKING, Any, TypeVar

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.kompute import log
from vkdispatch.kompute.errors import KomputeError
from vkdispatch.kompute.opaque import Opaque
from vkdispatch.kompute.operations.operation import OpBase

if TYPE_CHECKING:
    from vkdispatch.execution_pipeline.command_graph import CommandGraph
    from vkdispatch.kompute.commands.commands import Commands

_R = TypeVar("_R", bound="Recording")


class Recording(Opaque):
    """The part of a sequence that records operations. See `kp.Sequence`."""

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
    _commands: "Commands | None"  # submitted by an evaluation
    _spare: "Commands | None"  # empty commands, reused by the next recording
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

    def begin(self: _R) -> _R:
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

    def end(self: _R) -> _R:
        """End the recording. `eval` also ends it. Raises RuntimeError if the sequence was destroyed."""
        self._require()
        self._recording = False
        if log.lowest <= log.TRACE:
            log.trace("sequence: recording ends, number of operations %d", len(self._operations))
        return self

    def _start_commands(self) -> "Commands":
        commands = self._commands
        if commands is None:
            # Imported here: not every program needs graphs.
            from vkdispatch.kompute.commands.commands import Commands

            self._commands = commands = Commands(self._context)
        else:
            commands.restart()
        self._recording = True
        if self._timestamp_capacity and not self._earlier_timestamps:
            commands.timestamp()
        return commands

    def record(self: _R, op: OpBase) -> _R:
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

    def _recycle(self, commands: "Commands | None") -> None:
        if commands is not None:
            commands.restart()
        self._spare = commands

    def _record_commands(self, op: OpBase) -> "Commands":
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

    def eval_await(self: _R, wait_for: int | None = None) -> _R:
        """Wait for the running evaluation. See `kp.Sequence`."""
        raise NotImplementedError

    def _require(self) -> None:
        if not self._initialized:
            raise KomputeError("this kp.Sequence was destroyed, or its Manager was; make a new one")

    def _require_idle(self, call: str) -> None:
        self._require()
        if self._running is not None:
            raise KomputeError(f"{call}: the sequence is running; wait for it with eval_await()")
