"""Timed work as records: which kernel ran when, and how many bytes it moved."""

import time
from collections.abc import Mapping
from typing import Literal

import numpy as np

import vkdispatch_native as native
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import UnsupportedError
from vkdispatch.base.packing import component_dtype
from vkdispatch.base.record import record
from vkdispatch.codegen.launch_values import Extent, Launch
from vkdispatch.codegen.traffic import Known, Traffic, traffic
from vkdispatch.execution_pipeline import kernel_facts
from vkdispatch.execution_pipeline.kernel_facts import KernelFacts

Kind = Literal["kernel", "write buffer", "read buffer", "write image", "read image"]
Precision = Literal["exact", "about", "at least"]

_KINDS: tuple[Kind, ...] = ("kernel", "write buffer", "read buffer", "write image", "read image")
_KNOWN: dict[Known, Precision] = {
    Known.EXACT: "exact",
    Known.ABOUT: "about",
    Known.AT_LEAST: "at least",
}


@record
class ProfileRecord:
    """One command that ran on the device.

    Attributes
    ----------
    kind
        "kernel", or what the host did: "write buffer", "read buffer", "write image", "read image".
    name
        Name of the kernel; of what is no kernel the kind.
    source
        Where the kernel is defined, such as "kernel.py:12"; None if that is not known.
    queue
        The queue of the context on which it ran.
    begin, end
        Seconds on the clock of `time.perf_counter`.
    groups
        Workgroups along x, y and z; None for copies.
    invocations
        Invocations along x, y and z: the `exec_size` where there is one. None for copies.
    bytes_read, bytes_written
        Bytes of the elements of buffers and images that it read and wrote, each counted once, as known from
        the kernel's accesses; None where that is not known.
    precision
        How well these are known: "exact", "about" or "at least"; None where they are not.
    """

    kind: Kind
    name: str
    source: str | None
    queue: int
    begin: float
    end: float
    groups: Extent | None
    invocations: Extent | None
    bytes_read: int | None
    bytes_written: int | None
    precision: Precision | None

    @property
    def duration(self) -> float:
        """Seconds from begin to end."""
        return self.end - self.begin

    @property
    def bytes(self) -> int | None:
        """Bytes read and written together; None where they are not known."""
        if self.bytes_read is None or self.bytes_written is None:
            return None
        return self.bytes_read + self.bytes_written


@record
class SubmitRecord:
    """Commands that the host recorded and gave to a queue, from `begin` to `end` as in `ProfileRecord`."""

    queue: int
    commands: int
    begin: float
    end: float


class Recording:
    """Everything that a context runs is timed from here on, until `stop`."""

    def __init__(self, context: Context) -> None:
        """Begin. Raises UnsupportedError where a queue has no timestamps."""
        self._engine = context._native
        self._facts = kernel_facts.hold()
        try:
            self._since = native.start_timing(self._engine)
        except BaseException as error:
            kernel_facts.release(self._facts)
            if isinstance(error, ValueError):
                raise UnsupportedError(f"this device cannot be profiled: {error}") from None
            raise

    def finish(self) -> tuple[list[ProfileRecord], list[SubmitRecord]]:
        """Wait for all work, and return what was recorded, in the order in which it began."""
        self._engine.wait_idle()
        commands, submits = native.timings(self._engine, self._since)
        offset = _host_offset()
        reader = _Reader(self._facts, offset)
        records = [found for command in commands if (found := reader.record(command)) is not None]
        records.sort(key=lambda item: item.begin)
        host = [
            SubmitRecord(queue, count, (begin + offset) * 1e-9, (end + offset) * 1e-9)
            for queue, count, begin, end in submits
        ]
        return records, host

    def stop(self) -> None:
        """End. To be called once, whatever happened."""
        kernel_facts.release(self._facts)
        native.stop_timing(self._engine)


def _host_offset() -> int:
    """Return what to add to the engine's clock to get that of `time.perf_counter`, in nanoseconds."""
    before = time.perf_counter_ns()
    engine = native.host_clock()
    after = time.perf_counter_ns()
    return (before + after) // 2 - engine if not before <= engine <= after else 0


class _Reader:
    """Makes records; equal launches are looked at once."""

    def __init__(self, facts: Mapping[int, KernelFacts], offset: int) -> None:
        self._facts = facts
        self._offset = offset
        self._seen: dict[tuple[object, ...], tuple[Extent, Traffic | None]] = {}

    def record(self, command: "native.TimedCommand") -> ProfileRecord | None:
        """Return the record of a command; None for what is not the user's."""
        kind, queue, plan, name, groups, size, block, bound, begin, end = command
        times = ((begin + self._offset) * 1e-9, (end + self._offset) * 1e-9)
        if kind:
            label = _KINDS[kind]
            read = size if label.startswith("read") else 0
            return ProfileRecord(
                label, label, None, queue, *times, None, None, read, size - read, "exact"
            )
        facts = self._facts.get(plan)
        if facts is None:
            return ProfileRecord("kernel", name, None, queue, *times, groups, None, None, None, None)
        if facts.internal:
            return None
        key = (plan, groups, block, tuple(bound))
        if key not in self._seen:
            self._seen[key] = _read_launch(facts, groups, block, bound)
        invocations, moved = self._seen[key]
        read_written = (None, None, None) if moved is None else (moved.read, moved.written, _KNOWN[moved.known])
        return ProfileRecord(
            "kernel", facts.name, facts.source, queue, *times, groups, invocations, *read_written
        )


def _read_launch(
    facts: KernelFacts, groups: Extent, block: bytes, bound: list[tuple[int, int, int]]
) -> tuple[Extent, Traffic | None]:
    """Return how many invocations a launch has, and what it moves."""
    layout = facts.layout
    if layout.group_count_offset is not None:
        groups = _extent(block, layout.group_count_offset)
    if layout.exec_offset is not None:
        invocations = _extent(block, layout.exec_offset)
    else:
        x, y, z = (count * size for count, size in zip(groups, facts.local_size, strict=True))
        invocations = (x, y, z)
    if facts.kernel is None:
        return invocations, None
    base = 1 if layout.uniform else 0
    launch = Launch(
        invocations,
        groups,
        facts.local_size,
        {member.name: _components(block, member.offset, member.dtype) for member in layout.members},
        {binding - base: size for binding, _, size in bound},
        {binding - base: texel for binding, texel, _ in bound if texel},
    )
    return invocations, traffic(facts.kernel, launch)


def _extent(block: bytes, offset: int) -> Extent:
    x, y, z = np.frombuffer(block, np.uint32, 3, offset).tolist()
    return (x, y, z)


def _components(block: bytes, offset: int, kind: DType) -> tuple[int | float, ...]:
    component = component_dtype(kind)
    count = kind.item_size // component.itemsize
    return tuple(np.frombuffer(block, component, count, offset).tolist())
