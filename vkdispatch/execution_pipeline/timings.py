"""Records of timed work: which kernel ran when, how many bytes it moved, and what is known of it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, get_args

from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType, uint64
from vkdispatch.base.host_numpy import np
from vkdispatch.base.memory.data import component_dtype
from vkdispatch.base.record import record, replace
from vkdispatch.base.synchronization import TimedCommand, TimedSubmit, Timing
from vkdispatch.compiler import analyses
from vkdispatch.compiler.forms import ArgumentLayout

if TYPE_CHECKING:
    from vkdispatch.compiler.analyses.traffic import Traffic
    from vkdispatch.compiler.ir import Kernel

# ---- What profiles know about compiled kernels -----------------------------------------------------------
#
# Facts live as long as their plan, or a profile that saw it.


@record(eq=False, slots=False)
class KernelFacts:
    """A compiled kernel.

    Attributes
    ----------
    name
        Name of the kernel.
    source
        Where it is defined, such as "kernel.py:12", or None.
    local_size
        Invocations of a workgroup along x, y and z.
    find_kernel
        Returns its IR; None for GLSL and SPIR-V.
    layout
        Its argument block.
    internal
        Whether it is one of the package's own, which profiles leave out.
    build
        How it was built, for explanations.
    """

    name: str
    source: str | None
    local_size: tuple[int, int, int]
    find_kernel: Callable[[], Kernel | None]
    layout: ArgumentLayout
    internal: bool = False
    build: Any = None


_MAX_SOURCES = 3
_lock = threading.Lock()
_known: weakref.WeakValueDictionary[int, KernelFacts] = weakref.WeakValueDictionary()
holders: list[dict[int, KernelFacts]] = []


def register_facts(plan: ComputePlan, facts: KernelFacts) -> None:
    """Attach facts to a plan."""
    plan.facts = facts
    number = plan._native.id
    with _lock:
        _known[number] = facts
        for holder in holders:
            holder[number] = facts


def is_held() -> bool:
    """Whether a profile is running."""
    return bool(holders)


def note_source(plan: ComputePlan, source: str) -> None:
    """Let profiles that are running know a place of the program for which a plan is launched.

    They have the first few of them: a kernel of an expression serves many.
    """
    number = plan._native.id
    with _lock:
        for holder in holders:
            facts = holder.get(number)
            if facts is None:
                continue
            known = [] if facts.source is None else facts.source.split(", ")
            if source in known or known[-1:] == ["..."]:
                continue
            more = source if len(known) < _MAX_SOURCES else "..."
            holder[number] = replace(facts, source=", ".join([*known, more]))


def hold() -> dict[int, KernelFacts]:
    """Return the known facts by number of the plan. New ones are added to the result until `release`."""
    with _lock:
        holder = dict(_known)
        holders.append(holder)
        return holder


def release(holder: dict[int, KernelFacts]) -> None:
    """Stop adding facts to a result of `hold`."""
    with _lock:
        holders[:] = [other for other in holders if other is not holder]


# ---- Records of timed work: which kernel ran when, and how many bytes it moved ---------------------------


Kind = Literal[
    "kernel", "write buffer", "read buffer", "write image", "read image", "copy buffer", "copy image"
]
Precision = Literal["exact", "about", "at least"]

_KINDS: tuple[Kind, ...] = get_args(Kind)
Extent = tuple[int, int, int]

_KNOWN: dict[str, Precision] = {"EXACT": "exact", "ABOUT": "about", "AT_LEAST": "at least"}


@record
class ProfileRecord:
    """One command that ran on the device.

    Attributes
    ----------
    kind
        "kernel", or what the host did: "write buffer", "read buffer", "write image", "read image". A CPU
        driver's `vd.copyto` is "copy buffer", as are copies between buffers in command lists; "copy image" is
        one between an image and a buffer of the device, or another image.
    name
        Name of the kernel, or the kind of copy.
    source
        Where the kernel is defined, such as "kernel.py:12", or None if unknown.
    queue
        The queue of the context on which it ran.
    begin, end
        Seconds on the clock of `time.perf_counter`.
    groups
        Workgroups along x, y and z; None for copies.
    invocations
        Invocations along x, y and z: the `exec_size` if there is one. None for copies.
    bytes_read, bytes_written
        Bytes of the elements of buffers and images that it read and wrote, each counted once: an estimate
        from the kernel's accesses; None if unknown.
    precision
        How precisely these are known: "exact", "about" or "at least"; None if they are unknown.
    transfer
        Whether it ran on a queue of the device for transfers only, beside the queue of the context.
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
    transfer: bool = False

    @property
    def duration(self) -> float:
        """Seconds from begin to end."""
        return self.end - self.begin

    @property
    def bytes(self) -> int | None:
        """Bytes read and written together; None if unknown."""
        if self.bytes_read is None or self.bytes_written is None:
            return None
        return self.bytes_read + self.bytes_written


def format_bytes(count: float) -> str:
    """Return bytes with three digits, in powers of 1024."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} TiB"


class Recording:
    """Records everything that a context runs, until `stop`.

    `facts` has the facts of all kernels by the number of their plan, including those built meanwhile.
    """

    def __init__(self, context: Context) -> None:
        """Begin. Raises UnsupportedError if a queue has no timestamps."""
        self.facts = hold()
        try:
            self.timing = Timing(context)
        except BaseException:
            release(self.facts)
            raise

    def finish(self, *, internal: bool = False) -> tuple[list[ProfileRecord], list[TimedSubmit]]:
        """Wait for all work, and return what was recorded, in the order in which it began.

        The package's own kernels are left out unless `internal`.
        """
        commands, submits = self.timing.finish()
        reader = _Reader(self.facts, internal)
        records = filter(None, map(reader.record, commands))
        return sorted(records, key=lambda record: record.begin), submits

    @property
    def waits(self) -> list[tuple[float, float]]:
        """When the host began and ended to wait for memory that it shares; known after `finish`."""
        return self.timing.waits

    def stop(self) -> None:
        """End. Call this once, whatever happened."""
        release(self.facts)
        self.timing.stop()


class _Reader:
    """Makes records. Equal launches are analyzed once."""

    def __init__(self, facts: Mapping[int, KernelFacts], internal: bool) -> None:
        self._facts = facts
        self._internal = internal
        self._seen: dict[tuple[object, ...], tuple[Extent, Traffic | None]] = {}

    def record(self, command: TimedCommand) -> ProfileRecord | None:
        """Return the record of a command, or None if the command is not the user's."""
        kind, queue, begin, end = _KINDS[command.kind], command.queue, command.begin, command.end
        if kind != "kernel":
            read = 0 if kind.startswith("write") else command.size
            written = 0 if kind.startswith("read") else command.size
            times = (begin, end)
            return ProfileRecord(
                kind, kind, None, queue, *times, None, None, read, written, "exact", command.transfer
            )
        facts, groups = self._facts.get(command.plan), command.groups
        if facts is None:
            return ProfileRecord(kind, command.name, None, queue, begin, end, groups, None, None, None, None)
        if facts.internal and not self._internal:
            return None
        key = (command.plan, groups, command.block, command.bound)
        if key not in self._seen:
            self._seen[key] = _read_launch(facts, groups, command.block, command.bound)
        extent, moved = self._seen[key]
        known = (None, None, None) if moved is None else (moved.read, moved.written, _KNOWN[moved.known.name])
        return ProfileRecord(kind, facts.name, facts.source, queue, begin, end, groups, extent, *known)


def _read_launch(
    facts: KernelFacts, groups: Extent, block: bytes, bound: tuple[tuple[int, int, int, int], ...]
) -> tuple[Extent, Traffic | None]:
    """Return the invocations of a launch, and the bytes that it moves."""
    layout = facts.layout
    if layout.group_count_offset is not None:
        groups = _read_extent(block, layout, layout.group_count_offset)
    if layout.exec_offset is not None:
        invocations = _read_extent(block, layout, layout.exec_offset)
    else:
        x, y, z = (count * size for count, size in zip(groups, facts.local_size, strict=True))
        invocations = (x, y, z)
    kernel = facts.find_kernel()
    if kernel is None:
        return invocations, None
    index_of = {
        binding: index for index, binding in analyses.contents.resource_bindings(kernel, layout).items()
    }
    addressed = {layout.offset_of(name): index for index, name in layout.addresses.items()}
    # without the journal of a kernel whose loops are guarded
    resources = [
        (index, texel, size)
        for binding, address, texel, size in bound
        if (index := addressed[address] if binding < 0 else index_of.get(binding)) is not None
    ]
    launch = analyses.traffic.Launch(
        invocations,
        groups,
        facts.local_size,
        _read_arguments(kernel, layout, block),
        {index: size for index, _, size in resources},
        {index: texel for index, texel, _ in resources if texel},
    )
    return invocations, analyses.traffic.estimate_traffic(kernel, launch)


def _read_arguments(
    kernel: Kernel, layout: ArgumentLayout, block: bytes
) -> dict[str, tuple[int | float, ...]]:
    """Return the components of each argument of a kernel."""
    values = {member.name: _read_components(block, member.offset, member.dtype) for member in layout.members}
    for argument in kernel.arguments:
        if len(values.get(argument.name, ())) == 1:
            # In variants with 64-bit indices, each component of a shape is a member of its own.
            rest = (values.get(f"{argument.name}_{letter}", ()) for letter in "yzw")
            values[argument.name] = tuple(chain(values[argument.name], *rest))
    return values


def _read_extent(block: bytes, layout: ArgumentLayout, offset: int) -> Extent:
    wide = any(member.offset == offset and member.dtype is uint64 for member in layout.members)
    x, y, z = np.frombuffer(block, np.uint64 if wide else np.uint32, 3, offset).tolist()
    return (x, y, z)


def _read_components(block: bytes, offset: int, kind: DType) -> tuple[int | float, ...]:
    component = component_dtype(kind)
    count = kind.item_size // component.itemsize
    return tuple(np.frombuffer(block, component, count, offset).tolist())
