"""Sequences as of Kompute 0.5 and 0.6."""

from typing import Any

from vkdispatch.kompute import log
from vkdispatch.kompute.operations import OpBase
from vkdispatch.kompute.sequence import Sequence


class NamedSequence(Sequence):
    """What `kp.Manager.create_sequence` makes after `kp.use("0.6")`.

    It records between `begin` and `end` alone, `eval_async` does not wait, and calls return whether they did
    something: if not, the logger says why.
    """

    __slots__ = ()

    def begin(self) -> Any:
        """Start recording, without the operations of before. Return False if it is recording or running."""
        if self._is_refused("begin"):
            return False
        super().begin()
        return True

    def end(self) -> Any:
        """End recording. Return False if it is not recording."""
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
        """Run what was recorded, and wait for it. Return False if it is recording or running."""
        if op is None and self._is_refused("eval"):
            return False
        super().eval(op)
        return True

    def eval_async(self, op: OpBase | None = None, *, blocking: bool | None = False) -> Any:
        """Run what was recorded, and return at once. Return False if it is recording or running."""
        if op is None and self._is_refused("eval_async"):
            return False
        super().eval_async(op, blocking=blocking)
        return True

    def eval_await(self, wait_for: int | None = None) -> Any:
        """Wait, `wait_for` nanoseconds at most. Return whether something ran and is done."""
        is_running = self.is_running()
        super().eval_await(wait_for)
        return is_running and not self.is_running()

    def _is_refused(self, call: str) -> bool:
        if self._recording:
            log.warning("%s: the sequence is recording", call)
            return True
        if self.is_running():
            log.warning("%s: the sequence is running; wait for it with eval_await()", call)
            return True
        return False
