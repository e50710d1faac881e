"""Rounds of a loop that is unrolled while tracing: run one by one, and counted."""

import math
from collections.abc import Callable
from typing import Any

from vkdispatch.base.errors import UsageError
from vkdispatch.compiler.ir.location import located, warn
from vkdispatch.rewrite.loops.loop import Loop
from vkdispatch.rewrite.state.signals import Entry
from vkdispatch.rewrite.state.tracer import Retry
from vkdispatch.rewrite.state.values import is_gpu
from vkdispatch.rewrite.state.variables import read

# Limits of the rounds of an unrolled loop: without a warning, if each adds to the kernel (a power of two),
# and in any case.
_LONG_LOOP = 1 << 10
_MANY_ROUNDS = 1 << 16
_MOST_ROUNDS = 1 << 22


class RoundCounter:
    """Counts the rounds of a loop while it is unrolled: a context for that time.

    Attributes
    ----------
    size
        How many rounds the loop has, if that is known; 1 otherwise.
    is_excessive
        Whether a loop inside is written out too often because of the loops around it.
    """

    def __init__(self, loop: Loop, size: int = 1) -> None:
        tracer = loop.frame.tracer
        self._loop = loop
        self._rounds = 0
        self._recorded = tracer.recorder.recorded if tracer is not None else 0
        self.size = size
        self.is_excessive = False
        # the loops that are being unrolled, from the outermost, and the rounds of all of them
        self._nest: list[Any] = [] if tracer is None else tracer.unrolled
        self._total = 0
        self._has_warned = False

    def __enter__(self) -> None:
        if self._nest:
            # of the round around it, only what is inside counts
            self._nest[0]._total -= 1
        self._nest.append(self)

    def __exit__(self, *_: object) -> None:
        self._nest.remove(self)

    def would_exceed(self) -> bool:
        """Whether the nest of loops is too long to be unrolled with this one in it; if so, mark them."""
        if self.size * math.prod(each.size for each in self._nest) <= _LONG_LOOP:
            return False
        for each in self._nest:
            each.is_excessive = True
        return True

    def count(self) -> None:
        """Count a round. Raises RuntimeError if there are too many."""
        self._rounds += 1
        if self._loop.frame.tracer is None:
            return
        outermost = self._nest[0]
        outermost._total += 1
        is_long = outermost._total == _LONG_LOOP + 1 and not outermost._has_warned
        if is_long and outermost._is_written_out():
            outermost._has_warned = True
            nested = "" if outermost is self else ", with those around it,"
            warn(
                f"this {self._loop.noun} loop{nested} is unrolled: each of more than {_LONG_LOOP:,} rounds "
                f"is written out in the kernel; {self._advice()}",
                self._loop.loc,
            )
        if self._rounds & (_MANY_ROUNDS - 1):
            return
        records = self._loop.tracer.recorder.recorded != self._recorded
        if records or self._rounds >= _MOST_ROUNDS:
            raise located(
                UsageError,
                f"{self._loop.where} has taken {self._rounds} rounds while the kernel is traced, "
                + ("each of which is written out in the kernel" if records else "and does not seem to end")
                + ": Python alone decides how often it runs; for a loop of the GPU use vc.range, or a "
                "condition on a value of the GPU, such as vc.new_int_register()",
            )

    def _is_written_out(self) -> bool:
        """Whether rounds add to the kernel, by statements or by values of variables."""
        if self._loop.tracer.recorder.recorded != self._recorded:
            return True
        scope = self._loop.frame.scope
        values = [read(scope.cells[name]) for name in self._loop.names.assigned if name in scope.cells]
        return any(map(_holds_gpu_value, values))

    def _advice(self) -> str:
        if self._loop.noun == "while":
            return "for a loop of the GPU use vc.range, or a condition on a value of the GPU"
        return "vc.range makes a loop of the GPU where Python need not know the numbers"


def _holds_gpu_value(value: object) -> bool:
    return any(map(_holds_gpu_value, value)) if isinstance(value, tuple) else is_gpu(value)


def run_round(loop: Loop, body: Callable[[Any], Any], item: Any) -> Any:
    """Run a round while tracing. Returns its signal, or the loop if the GPU decides about leaving it."""
    depth = loop.tracer.recorder.depth if loop.frame.tracer is not None else 0
    try:
        with loop.frame.open_entry(Entry("loop", depth, loop)):
            return body(item)
    except Retry as retry:
        if retry.target is not loop:
            raise
        return loop
