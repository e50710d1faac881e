"""Timestamps around everything that a context runs, on the clock of `time.perf_counter`."""

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
        0 a dispatch; the host wrote (1) or read (2) a buffer, wrote (3) or read (4) an image; a copy between
        buffers (5), or from or to an image on the device (6).
    queue, transfer
        Its queue, and whether it was the one beside that only moves data.
    plan, name
        The number and the name of the plan that was dispatched.
    groups
        Workgroups along x, y and z.
    size
        Bytes that were copied.
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
    """Commands that the host recorded and gave to a queue, from `begin` to `end`.

    `transfer`: to the one beside it that only moves data.
    """

    queue: int
    transfer: bool
    commands: int
    begin: float
    end: float


class Timing:
    """Everything that a context runs is timed from here on, until `stop`."""

    def __init__(self, context: Context) -> None:
        """Begin. Raises UnsupportedError where a queue has no timestamps."""
        self._engine = context._native
        if native.clocks_are_read_by_submits(self._engine):
            # that wait can be interrupted, and what it waits for does not blur the clock
            self._engine.wait_idle()
        try:
            self._since = native.start_timing(self._engine)
        except ValueError as error:
            raise UnsupportedError(f"this device cannot be profiled: {error}") from None

    def finish(self) -> tuple[list[TimedCommand], list[TimedSubmit]]:
        """Wait for all work, and return what was timed."""
        self._engine.wait_idle()
        commands, submits = native.timings(self._engine, self._since)
        offset = _host_offset()
        return (
            [_command(command, offset) for command in commands],
            [
                TimedSubmit(queue, transfer, count, (begin + offset) * 1e-9, (end + offset) * 1e-9)
                for queue, transfer, count, begin, end in submits
            ],
        )

    def stop(self) -> None:
        """End. To be called once, whatever happened."""
        native.stop_timing(self._engine)


def _command(raw: "native.TimedCommand", offset: int) -> TimedCommand:
    kind, queue, transfer, plan, name, groups, size, block, bound, begin, end = raw
    times = ((begin + offset) * 1e-9, (end + offset) * 1e-9)
    return TimedCommand(kind, queue, transfer, plan, name, groups, size, block, tuple(bound), *times)


def _host_offset() -> int:
    """Return what to add to the engine's clock to get that of `time.perf_counter`, in nanoseconds."""
    before = time.perf_counter_ns()
    engine = native.host_clock()
    after = time.perf_counter_ns()
    # Almost everywhere they are one clock.
    return 0 if before <= engine <= after else (before + after) // 2 - engine
