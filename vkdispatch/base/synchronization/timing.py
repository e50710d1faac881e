"""Timestamps of everything that a context runs, on the clock of `time.perf_counter`."""

import time

from vkdispatch.base.context import Context
from vkdispatch.base.errors import UnsupportedError
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record


@record
class TimedCommand:
    """A command that ran.

    Attributes
    ----------
    kind
        0: dispatch; 1, 2: host write, read of a buffer; 3, 4: host write, read of an image; 5: copy between
        buffers; 6: copy from or to an image on the device.
    queue, transfer
        Its queue, and whether it ran on the transfer queue beside it.
    plan, name
        Number and name of the dispatched plan.
    groups
        Workgroups along x, y and z.
    size
        Copied bytes.
    block
        The argument block.
    bound
        (binding or -1, offset of its address in the block or -1, bytes of a texel or 0, bytes) of each buffer
        and image.
    begin, end
        Seconds.
    """

    kind: int
    queue: int
    transfer: bool
    plan: int
    name: str
    groups: tuple[int, int, int]
    size: int
    block: bytes
    bound: tuple[tuple[int, int, int, int], ...]
    begin: float
    end: float


@record
class TimedSubmit:
    """Commands that the host recorded and submitted to a queue, from `begin` to `end`.

    `transfer` tells whether it was the transfer queue beside it.
    """

    queue: int
    transfer: bool
    commands: int
    begin: float
    end: float


class Timing:
    """A timing of everything that a context runs, from its construction until `stop`.

    Attributes
    ----------
    waits
        When the host began and ended to wait for memory that it shares, in seconds; set by `finish`.
    """

    def __init__(self, context: Context) -> None:
        """Start timing. Raises UnsupportedError if a queue has no timestamps."""
        self._engine = context._native
        self.waits: list[tuple[float, float]] = []
        if native.clocks_are_read_by_submits(self._engine):
            # This wait can be interrupted, and earlier work would make reading the clock imprecise.
            self._engine.wait_idle()
        try:
            self._since = native.start_timing(self._engine)
        except ValueError as error:
            raise UnsupportedError(f"this device cannot be profiled: {error}") from None

    def finish(self) -> tuple[list[TimedCommand], list[TimedSubmit]]:
        """Wait for all work, and return the timed commands and submits."""
        self._engine.wait_idle()
        commands, submits, waits = native.timings(self._engine, self._since)
        offset = _measure_offset()
        self.waits = [((begin + offset) * 1e-9, (end + offset) * 1e-9) for begin, end in waits]
        return (
            [_command(command, offset) for command in commands],
            [
                TimedSubmit(queue, transfer, count, (begin + offset) * 1e-9, (end + offset) * 1e-9)
                for queue, transfer, count, begin, end in submits
            ],
        )

    def stop(self) -> None:
        """Stop timing. Must be called once, also after errors."""
        native.stop_timing(self._engine)


def _command(raw: "native.TimedCommand", offset: int) -> TimedCommand:
    kind, queue, transfer, plan, name, groups, size, block, bound, begin, end = raw
    times = ((begin + offset) * 1e-9, (end + offset) * 1e-9)
    return TimedCommand(kind, queue, transfer, plan, name, groups, size, block, tuple(bound), *times)


def _measure_offset() -> int:
    """Return the offset from the engine's clock to `time.perf_counter`, in nanoseconds."""
    before = time.perf_counter_ns()
    engine = native.host_clock()
    after = time.perf_counter_ns()
    # On most systems both are the same clock.
    return 0 if before <= engine <= after else (before + after) // 2 - engine
