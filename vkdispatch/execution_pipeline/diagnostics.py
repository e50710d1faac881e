"""Reports of observed kernels: the buffer that they write to, and the text and exceptions made of it."""

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vkdispatch.base import errors
from vkdispatch.base.buffer import Buffer, renew_contents
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import uint32
from vkdispatch.base.host_numpy import np
from vkdispatch.base.record import record
from vkdispatch.compiler.ir.location import located
from vkdispatch.compiler.passes import diagnostics as words

_RING_VARIABLE = "VKDISPATCH_PRINT_BUFFER"
_RING_BYTES = 1 << 20
# In a larger ring, the device's 32-bit cursor could overflow.
_MAX_RING_BYTES = 1 << 28
# Rounds of a while loop, unless the kernel says how many.
_ROUNDS = 1_000_000

_Words = np.ndarray[Any, np.dtype[np.uint32]]


@record
class Probe:
    """A launch of an observed kernel.

    Attributes
    ----------
    who
        The kernel, as messages call it.
    sites
        What the numbers in its reports mean.
    shapes
        Shape of each bound buffer, by its position among the resources.
    """

    who: str
    sites: tuple[words.Site, ...]
    shapes: Mapping[int, tuple[int, ...]]


@record
class Findings:
    """The reports of launches: the text of their prints, and the first violation of a check."""

    text: str
    error: errors.CheckError | None

    def deliver(self) -> None:
        """Write the text to `sys.stdout`, then raise the error."""
        if self.text and sys.stdout is not None:
            with _output:
                sys.stdout.write(self.text)
                sys.stdout.flush()
        if self.error is not None:
            raise self.error


# Keeps messages of several threads apart.
_output = threading.RLock()


class Diagnostics:
    """A buffer that observed kernels report to. One observed submission uses it at a time.

    Attributes
    ----------
    buffer
        The buffer, to be bound to the kernels.
    """

    def __init__(self, context: Context, *, prints: bool) -> None:
        """Allocate the buffer, with a ring for messages if there will be `prints`."""
        ring = _read_ring_words() if prints else 0
        self.buffer: Buffer[uint32] = Buffer((words.HEAD_WORDS + ring,), uint32, context=context)
        self._lock = threading.Lock()
        head = np.zeros(words.HEAD_WORDS, np.uint32)
        head[words.CURSOR] = words.HEAD_WORDS
        head[words.ROUNDS] = _ROUNDS
        self._empty_head = empty = head.tobytes()
        size = self.buffer.mem_size
        self.buffer._contents = lambda: empty.ljust(size, b"\0")
        self._empty = False

    def observe(self, launch: Callable[[], bool], probes: Sequence[Probe]) -> bool:
        """Run `launch`, which submits these launches, wait, and deliver their reports.

        Parameters
        ----------
        launch
            Returns False if it submitted nothing.
        probes
            The launches, by launch number modulo their count.

        Returns
        -------
        The result of `launch`.

        Raises
        ------
        BoundsError, NanError, LoopLimitError, KernelAssertionError
            A check was violated. The text of prints is written first.
        """
        with self._lock:
            if renew_contents(self.buffer):
                self._empty = True
            if not self._empty:
                # The first submission, or the last one was interrupted.
                self._write_head()
            if not launch():
                return False
            self._empty = False
            findings = self._collect(probes)
        findings.deliver()
        # Loops that the driver ended are noted elsewhere.
        for queue in range(self.buffer.context.queue_count):
            self._read(queue, 0, 1, tells=True)
        return True

    def _collect(self, probes: Sequence[Probe]) -> Findings:
        queues = self.buffer.context.queue_count
        texts: list[str] = []
        error: errors.CheckError | None = None
        used = False
        ring_bytes = 4 * (self.buffer.size - words.HEAD_WORDS)
        for queue in range(queues):
            head = self._read(queue, 0, words.HEAD_WORDS)
            if head[words.MESSAGES]:
                used = True
                ring_words = min(int(head[words.CURSOR]), self.buffer.size) - words.HEAD_WORDS
                ring = self._read(queue, words.HEAD_WORDS, ring_words)
                label = f"queue {queue}: " if queues > 1 else ""
                texts.append(_format_ring(ring, int(head[words.MESSAGES]), probes, label, ring_bytes))
            if head[words.VIOLATIONS]:
                used = True
                error = error or _make_error(head, probes)
        if used:
            self._write_head()
        self._empty = True
        return Findings("".join(texts), error)

    def _read(self, queue: int, start: int, count: int, *, tells: bool = False) -> _Words:
        out = np.empty(count, np.uint32)
        if count:
            # For type checkers, arrays do not implement the buffer protocol of the stub.
            memory: Any = out
            self.buffer._native.read_into(queue, memory, 4 * start, tells)
        return out

    def _write_head(self) -> None:
        self.buffer._native.write(-1, self._empty_head, 0)
        self._empty = True


def _read_ring_words() -> int:
    text = os.environ.get(_RING_VARIABLE, "").strip()
    if not text:
        return _RING_BYTES // 4
    if not (text.isascii() and text.isdigit()) or not 64 <= int(text) <= _MAX_RING_BYTES:
        raise errors.ArgumentValueError(
            f"{_RING_VARIABLE}: expected bytes from 64 to {_MAX_RING_BYTES}, got {text!r}"
        )
    return int(text) // 4


# ---- prints --------------------------------------------------------------------------------------


def _format_ring(ring: _Words, count: int, probes: Sequence[Probe], label: str, ring_bytes: int) -> str:
    """Format the messages of a ring, in order, and say how many of `count` are missing."""
    messages: list[tuple[tuple[int, ...], str]] = []
    at = 0
    while at < len(ring) and ring[at]:
        launch, x, y, z = (int(word) for word in ring[at + 1 : at + words.MESSAGE_HEAD_WORDS])
        site = probes[launch % len(probes)].sites[int(ring[at]) - 1]
        assert isinstance(site, words.PrintSite)
        text = _format_message(site, ring[at + words.MESSAGE_HEAD_WORDS : at + site.words])
        messages.append(((launch, z, y, x), label + text))
        at += site.words
    # The sort is stable: messages of one invocation keep their order.
    messages.sort(key=lambda message: message[0])
    shown = "".join(text for _, text in messages)
    lost = count - len(messages)
    if not lost:
        return shown
    gap = "" if not shown or shown.endswith("\n") else "\n"
    return (
        f"{shown}{gap}{label}vkdispatch: {lost} more messages did not fit in the print buffer of "
        f"{ring_bytes} bytes; set {_RING_VARIABLE} to a larger number of bytes\n"
    )


def _format_message(site: words.PrintSite, data: _Words) -> str:
    values: list[Any] = []
    at = 0
    for kind in site.kinds:
        size = words.word_count(kind)
        values.append(words.value_of_words(kind, data[at : at + size].copy()))
        at += size
    return words.message_text(site.format, site.style, values)


# ---- violations ----------------------------------------------------------------------------------


def _make_error(head: _Words, probes: Sequence[Probe]) -> errors.CheckError:
    """Make the exception for the first violation, as the head describes it."""
    probe = probes[int(head[words.LAUNCH]) % len(probes)]
    site = probe.sites[int(head[words.SITE])]
    x, y, z = (int(word) for word in head[words.INVOCATION : words.INVOCATION + 3])
    total = int(head[words.VIOLATIONS])
    low, high, length = (int(word) for word in head[words.INDEX : words.LENGTH + 1])
    where = f"in invocation ({x}, {y}, {z})" + (f"; {total} violations in all" if total > 1 else "")
    kind: type[errors.CheckError] = errors.BoundsError
    if isinstance(site, words.BoundsSite):
        length |= int(head[words.LENGTH + 1]) << 32
        index = _format_index(site, low, high)
        what = f"index {index} is out of bounds for {_describe_extent(site, length, probe.shapes)}"
    elif isinstance(site, words.AxesSite):
        numbers = head[words.INDEX : words.INDEX + 6].view(np.int32).reshape(2, 3)[:, : site.axes]
        indices, sizes = numbers.tolist()
        shape = tuple(sizes) if site.resource is None else probe.shapes.get(site.resource, tuple(sizes))
        # As on the device, a negative number counts as a large one.
        axis = next(n for n, (i, size) in enumerate(zip(indices, sizes, strict=True)) if not 0 <= i < size)
        what = f"index {tuple(indices)} is out of bounds for axis {axis} of {site.what} of shape {shape}"
    elif isinstance(site, words.TexelSite):
        numbers = head[words.INDEX : words.INDEX + 6].view(np.int32).reshape(2, 3)[:, : site.coordinates]
        texel, size = (", ".join(map(str, row)) for row in numbers.tolist())
        what = f"texel ({texel}) is out of bounds for {site.what} of ({size})"
    elif isinstance(site, words.NanSite):
        kind = errors.NanError
        what = f"NaN stored in {site.what}" + (f" at index {low | high << 32}" if site.indexed else "")
    elif isinstance(site, words.AssertSite):
        kind = errors.KernelAssertionError
        what = "assertion failed" + (f": {site.message}" if site.message else "")
    else:
        kind = errors.LoopLimitError
        what = f"a while loop was ended after {low} rounds"
        where += '; check="loops=<rounds>" allows more'
    return located(kind, f"{probe.who}: {what}, {where}", site.loc)


def _format_index(site: words.BoundsSite, low: int, high: int) -> str:
    value = low | high << 32 if site.bits == 64 else low
    negative = value - (1 << site.bits)
    if value < 1 << (site.bits - 1):
        return str(value)
    # So large an unsigned number is the result of a negative one.
    return str(negative) if site.signed else f"{negative} (as uint{site.bits}: {value})"


def _describe_extent(site: words.BoundsSite, length: int, shapes: Mapping[int, tuple[int, ...]]) -> str:
    """Return what was indexed, with its size."""
    shape = None if site.resource is None else shapes.get(site.resource)
    if shape is None:
        return f"{site.what} of {length}"
    flat = "" if shape == (length,) else f" ({length} elements)"
    return f"{site.what} of shape {shape}{flat}"
