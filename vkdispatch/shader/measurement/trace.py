"""Profiles in the Trace Event Format, which chrome://tracing and Perfetto read."""

import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from vkdispatch.base.sharing.formats import HandOver
from vkdispatch.base.synchronization import TimedSubmit
from vkdispatch.execution_pipeline.timings import ProfileRecord

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
        events.append(_make_event(item.name, item.kind, _DEVICE, track, item, origin, _list_arguments(item)))
    queues = sorted({_number_queue(submit) for submit in submits})
    events += [
        _make_name_event("thread_name", _HOST, queue, f"submits to {_describe_queue(queue)}")
        for queue in queues
    ]
    for submit in submits:
        arguments = {"commands": submit.commands}
        events.append(
            _make_event("submit", "submit", _HOST, _number_queue(submit), submit, origin, arguments)
        )
    if hand_overs:
        events.append(_make_name_event("thread_name", _HOST, _SHARING, "hand-overs to other libraries"))
    events += [_make_event(item.kind, "hand-over", _HOST, _SHARING, item, origin, {}) for item in hand_overs]
    Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}), encoding="utf-8")


def _number_queue(span: ProfileRecord | TimedSubmit) -> int:
    """Return a number for a queue, and another for its transfer queue."""
    return 2 * span.queue + span.transfer


def _describe_queue(number: int) -> str:
    return f"queue {number // 2}" + (", transfers" if number % 2 else "")


def _make_name_event(what: str, process: int, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": track, "args": {"name": name}}


def _make_event(
    name: str,
    category: str,
    process: int,
    track: int,
    span: ProfileRecord | TimedSubmit | HandOver,
    origin: float,
    arguments: dict[str, Any],
) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": process,
        "tid": track,
        "ts": (span.begin - origin) * 1e6,
        "dur": (span.end - span.begin) * 1e6,
        "args": arguments,
    }


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
