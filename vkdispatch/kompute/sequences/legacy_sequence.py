"""Sequences that behave as those of Kompute 0.5 and 0.6."""

from typing import Any

from vkdispatch.kompute import log
from vkdispatch.kompute.operations.operation import OpBase
from vkdispatch.kompute.sequences.sequence import Sequence


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
