"""`with vd.profile() as p:`: what ran on the device, when, for how long, and how much memory it moved."""

import json
import threading
import time
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, get_args

from vkdispatch.base.context import Context, get_context
from vkdispatch.base.errors import UsageError, VkDispatchError
from vkdispatch.base.record import record
from vkdispatch.base.sharing.formats import HandOver, HandOverKind, Journal
from vkdispatch.base.synchronization import TimedSubmit
from vkdispatch.execution_pipeline.timings import Precision, ProfileRecord, Recording, format_bytes
from vkdispatch.shader.measurement.devices import measure_copy_bandwidth

# ---- Profiles in the Trace Event Format, which chrome://tracing and Perfetto read ------------------------


_Span = ProfileRecord | TimedSubmit | HandOver

_HOST, _DEVICE = 1, 2
# Overlapping commands go to different tracks: events on one track must nest.
_LANES = 1000
_SHARING = 1_000_000  # the track of hand-overs, beside those of the host's submits


def write_trace(
    path: "str | PathLike[str]",
    records: Sequence[ProfileRecord],
    submits: Sequence[TimedSubmit],
    origin: float,
    hand_overs: Sequence[HandOver] = (),
) -> None:
    """Write records to a file; times are microseconds since `origin`."""

    def add(
        name: str, category: str, process: int, track: int, span: _Span, arguments: Mapping[str, Any]
    ) -> None:
        event = {"ph": "X", "name": name, "cat": category, "pid": process, "tid": track, "args": arguments}
        times = {"ts": (span.begin - origin) * 1e6, "dur": (span.end - span.begin) * 1e6}
        events.append(event | times)

    events = [
        _make_name_event("process_name", _HOST, 0, "host"),
        _make_name_event("process_name", _DEVICE, 0, "device"),
    ]
    ends: dict[int, list[float]] = {}  # of each queue: where each of its lanes ends
    for item in records:
        queue = _number_queue(item)
        lanes = ends.setdefault(queue, [])
        lane = next((lane for lane, end in enumerate(lanes) if end <= item.begin), len(lanes))
        track = queue * _LANES + lane
        if lane == len(lanes):
            lanes.append(item.end)
            suffix = f", beside {lane}" if lane else ""
            events.append(
                _make_name_event("thread_name", _DEVICE, track, f"{_describe_queue(queue)}{suffix}")
            )
        lanes[lane] = item.end
        add(item.name, item.kind, _DEVICE, track, item, _list_arguments(item))
    queues = sorted({_number_queue(submit) for submit in submits})
    events += [
        _make_name_event("thread_name", _HOST, queue, f"submits to {_describe_queue(queue)}")
        for queue in queues
    ]
    for submit in submits:
        add("submit", "submit", _HOST, _number_queue(submit), submit, {"commands": submit.commands})
    if hand_overs:
        events.append(_make_name_event("thread_name", _HOST, _SHARING, "hand-overs to other libraries"))
    for hand_over in hand_overs:
        add(hand_over.kind, "hand-over", _HOST, _SHARING, hand_over, {})
    Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}), encoding="utf-8")


def _number_queue(span: ProfileRecord | TimedSubmit) -> int:
    """Return a number for a queue, and another for its transfer queue."""
    return 2 * span.queue + span.transfer


def _describe_queue(number: int) -> str:
    return f"queue {number // 2}" + (", transfers" if number % 2 else "")


def _make_name_event(what: str, process: int, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": track, "args": {"name": name}}


def _list_arguments(item: ProfileRecord) -> dict[str, Any]:
    fields = {
        "source": item.source,
        "groups": item.groups,
        "invocations": item.invocations,
        "bytes read": item.bytes_read,
        "bytes written": item.bytes_written,
        "precision": item.precision,
    }
    return {name: value for name, value in fields.items() if value is not None}


_MARKS: dict[Precision | None, str] = {"exact": "", "about": "~", "at least": ">=", None: ""}
_WORST: tuple[Precision, ...] = get_args(Precision)
_HAND_OVERS: dict[HandOverKind, str] = {
    "lend": "memory shared with other libraries",
    "take": "memory of other libraries taken",
    "host wait": "host waits, as memory is shared in order",
    "device wait": "device waits for CUDA streams",
    "stream wait": "CUDA streams wait for the device",
}
_HEADER = ("kernel", "where", "calls", "total ms", "mean us", "min us", "bytes", "GB/s", "of copy")


@record
class ProfileRow:
    """All launches of one kernel, or all copies of one kind: a line of `Profile.table`.

    Attributes
    ----------
    name
        Name of the kernel, or the kind of copy.
    source
        Where the kernel is defined, or None.
    calls
        The number of launches or copies.
    total, mean, least
        Seconds.
    bytes
        Bytes read and written by all of them; None if unknown.
    precision
        How precisely these are known.
    bandwidth
        Bytes per second; None if the bytes are unknown.
    share
        `bandwidth` as a fraction of that of the device's copy kernel; None for copies from and to the host.
    """

    name: str
    source: str | None
    calls: int
    total: float
    mean: float
    least: float
    bytes: int | None
    precision: Precision | None
    bandwidth: float | None
    share: float | None


class Profile:
    """Times everything that the context runs inside a `with` block, from any thread.

    The block ends when all of it has run. A profile may be used again, which clears it. Profiles may nest.

    Attributes
    ----------
    records
        What ran, in order of its begin; empty until the block has ended.
    submits
        When the host recorded and submitted it.
    hand_overs
        Hand-overs of memory between the context and other libraries, and waits for them, in order of their
        begin; see `HandOver`.
    """

    def __init__(self) -> None:
        self.records: list[ProfileRecord] = []
        self.submits: list[TimedSubmit] = []
        self.hand_overs: list[HandOver] = []
        self._journal: Journal | None = None
        self._begin = self._end = 0.0
        self._context: Context | None = None
        self._recording: Recording | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> "Profile":
        """Begin.

        Raises
        ------
        RuntimeError
            This profile is running already, or the backend is the dummy one.
        NotImplementedError
            The device has no timestamps.
        """
        with self._lock:
            if self._recording is not None:
                raise UsageError("this profile is running already; create another one with vd.profile()")
            self.records, self.submits, self.hand_overs = [], [], []
            self._context = get_context()
            self._recording = Recording(self._context)
            self._journal = Journal(self._context)
            self._begin = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait for all work and collect what ran.

        Raises
        ------
        RuntimeError
            The context was destroyed inside the block; not where the block itself has raised.
        VkDispatchError
            Work of the block failed, such as with DeviceLostError; likewise.
        """
        with self._lock:
            recording, self._recording = self._recording, None
            journal, self._journal = self._journal, None
        if recording is None or journal is None:
            return
        journal.close()
        try:
            self.records, self.submits = recording.finish()
            waits = [HandOver("host wait", begin, end) for begin, end in recording.waits]
            self.hand_overs = sorted((*journal.entries, *waits), key=lambda item: item.begin)
        except (VkDispatchError, RuntimeError) as failure:
            if error is None and self._context is not None and self._context.closed:
                raise UsageError(f"nothing is left of the profile: {failure}") from failure
            if error is None:
                failure.add_note("nothing is left of the profile")
                raise
        finally:
            self._end = time.perf_counter()
            recording.stop()

    @property
    def seconds(self) -> float:
        """Wall-clock time of the block in seconds, including the wait for its work."""
        return self._end - self._begin

    def _require_end(self) -> None:
        if self._recording is not None:
            raise UsageError("the profile is still running; read it after its with block")

    def rows(self) -> list[ProfileRow]:
        """Return one row for each kernel and kind of copy, in descending order of total time.

        The first call on a device measures its copy bandwidth, unless an earlier process has.

        Raises
        ------
        RuntimeError
            The profile is still running.
        """
        self._require_end()
        groups: dict[tuple[str, str, str | None], list[ProfileRecord]] = {}
        for item in self.records:
            groups.setdefault((item.kind, item.name, item.source), []).append(item)
        rows = [self._make_row(items) for items in groups.values()]
        return sorted(rows, key=lambda row: -row.total)

    def _make_row(self, items: Sequence[ProfileRecord]) -> ProfileRow:
        first = items[0]
        total = sum(item.duration for item in items)
        sizes = [item.bytes for item in items]
        size = None if None in sizes else sum(filter(None, sizes))
        ranks = [_WORST.index(item.precision) for item in items if item.precision is not None]
        bandwidth = None if size is None or total <= 0 else size / total
        share = None
        if bandwidth is not None and first.kind == "kernel":
            limits = [(item.duration, self._find_limit(item.queue)) for item in items]
            possible = sum(duration * limit for duration, limit in limits if limit is not None)
            if possible and all(limit is not None for _, limit in limits) and size is not None:
                share = size / possible
        return ProfileRow(
            first.name,
            first.source,
            len(items),
            total,
            total / len(items),
            min(item.duration for item in items),
            size,
            _WORST[max(ranks)] if size is not None and ranks else None,
            bandwidth,
            share,
        )

    def _find_limit(self, queue: int) -> float | None:
        context = self._context
        if context is None or not context.usable or get_context() is not context:
            return None
        return measure_copy_bandwidth(context, queue)

    def table(self) -> str:
        """Return the rows as text.

        Bytes are those of one call, on average. `~` marks approximate values, `>=` lower bounds, `-` unknown
        ones. Hand-overs to and from other libraries follow, if there were any. Raises as `rows`.
        """
        rows = self.rows()
        lines = [_HEADER, *map(_format_row, rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADER))]
        text = [
            "  ".join(
                cell.ljust(width) if column < 2 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        busy = _count_busy_seconds(self.records)
        text.append(
            f"{len(self.records)} commands in {self.seconds * 1e3:.3f} ms; the device was busy for "
            f"{busy * 1e3:.3f} ms of them"
        )
        text += _describe_hand_overs(self.hand_overs)
        return "\n".join(text)

    def to_chrome_trace(self, path: "str | PathLike[str]") -> None:
        """Write the records as JSON that chrome://tracing and ui.perfetto.dev show.

        Each queue of the context is a track, and so are the submits of the host to it. Hand-overs to and from
        other libraries are another one.

        Raises
        ------
        RuntimeError
            The profile is still running.
        OSError
            The file cannot be written.
        """
        self._require_end()
        write_trace(path, self.records, self.submits, self._begin, self.hand_overs)

    def __str__(self) -> str:
        return self.table() if self._recording is None else repr(self)

    def __repr__(self) -> str:
        state = "running" if self._recording is not None else f"{len(self.records)} commands"
        return f"<vd.profile(): {state}>"


def profile() -> Profile:
    """Time what runs on the device inside a `with` block.

    ::

        with vd.profile() as p:
            saxpy(y, x, 2.0)
        print(p)

    The block waits for its work at the end. Recorded graphs are streamed launch by launch meanwhile, which
    costs the host more than a replay.

    Examples
    --------
    >>> x = vd.asbuffer(np.ones(4, np.float32))
    >>> with vd.profile() as profile:
    ...     total = vd.sum(x)
    >>> [row.calls for row in profile.rows()]
    [1]
    """
    return Profile()


def _format_row(row: ProfileRow) -> tuple[str, ...]:
    mark = _MARKS[row.precision]
    return (
        row.name,
        row.source or "-",
        str(row.calls),
        f"{row.total * 1e3:.3f}",
        f"{row.mean * 1e6:.2f}",
        f"{row.least * 1e6:.2f}",
        "-" if row.bytes is None else mark + format_bytes(row.bytes / row.calls),
        "-" if row.bandwidth is None else f"{mark}{row.bandwidth * 1e-9:.1f}",
        "-" if row.share is None else f"{mark}{row.share:.0%}",
    )


def _describe_hand_overs(hand_overs: Sequence[HandOver]) -> list[str]:
    """Return lines that say how many hand-overs of each kind there were, and what they took of the host."""
    lines = []
    for kind, text in _HAND_OVERS.items():
        durations = [item.duration for item in hand_overs if item.kind == kind]
        if durations:
            total = sum(durations)
            lines.append(
                f"{text}: {len(durations)} times, {total * 1e3:.3f} ms of the host, "
                f"{total / len(durations) * 1e6:.2f} us each"
            )
    return lines


def _count_busy_seconds(records: Sequence[ProfileRecord]) -> float:
    """Return the seconds in which at least one of the commands ran."""
    busy, reached = 0.0, 0.0
    for item in records:
        begin = max(item.begin, reached)
        if item.end > begin:
            busy += item.end - begin
            reached = item.end
    return busy
