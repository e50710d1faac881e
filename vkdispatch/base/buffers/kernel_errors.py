"""Errors found by kernels: noted on the device, and raised by the next wait for the device.

A call that can fail on the device takes a ticket and passes its number to a kernel. The kernel notes errors
under the ticket in the journal, which is host memory (see vkdispatch_native/objects/journal.hpp). Each wait,
read and close then looks into the journal. An error is raised once in each thread: in every thread that waits
before the calling thread has got it, and in those that were running then. An error of a task of a scheduler
(`base.process`) is raised in the thread of the task alone. Tasks do not
get the errors that the calling thread has got already.

A kernel that can fail in any launch has a standing ticket, which its launches share: recorded ones too.
"""

import os
import sys
from _thread import RLock, get_ident
from collections import deque
from types import CodeType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType, int64, is_signed_dtype, uint32, uint64
from vkdispatch.base.errors import VkDispatchError, describe_place
from vkdispatch.base.host_numpy import np
from vkdispatch.base.native_module import native
from vkdispatch.base.process import is_in_task

if TYPE_CHECKING:
    from threading import Thread


_STATE_KEY = "deferred errors"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
# As in journal.hpp: the first place found for each ticket, and behind them a ring of notes.
_TICKETS = 1024
_HALF = _TICKETS // 2
# The first words of the notes, and behind them the standing tickets.
NOTES = range(_TICKETS, _TICKETS + 128 * 8, 8)
_STANDING = NOTES.stop
_WORDS = _STANDING + 2048
_NONE = 0xFFFFFFFF
# The most errors kept: some threads never wait, so the oldest are dropped.
_MAX_FINDINGS = 64

_Words = np.ndarray[Any, np.dtype[np.uint32]]
# The check, the code and line of the caller, the thread, and whether it runs a task.
_Note = tuple["Check", CodeType, int, int, bool]


class Check:
    """What a call checks on the device, and the error if the check fails. Equal calls may share one."""

    __slots__ = ()

    def error(self, place: int, words: _Words | None, queue: int, call: str) -> VkDispatchError:
        """Return the error.

        Parameters
        ----------
        place
            The first wrong place.
        words
            The numbers noted there, two words each; None if they were overwritten.
        queue
            The queue that found it.
        call
            The function and the place of the call, as messages name them.
        """
        raise NotImplementedError

    @property
    def function(self) -> str:
        """The function that was called."""
        raise NotImplementedError


def take_ticket(context: Context, check: Check) -> int:
    """Return the number under which a kernel notes what it finds: an argument of type uint32.

    A ticket belongs to one call; repeated calls take their own. The kernel has to be launched at once, with
    `journal_of` as another argument.
    """
    engine, findings = context._native, _find_state(context).findings

    def take() -> int:
        frame = sys._getframe(1)
        while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
            frame = frame.f_back
        note = (check, frame.f_code, frame.f_lineno, get_ident(), is_in_task())
        while True:
            ticket = engine.take_ticket(note)
            if ticket:
                return ticket
            findings.renew(engine)

    return native.repeated_parameter(take)


class StandingTicket:
    """A ticket that the launches of a kernel in a context share, as long as the object exists."""

    __slots__ = ("_findings", "number")

    def __init__(self, context: Context, check: Check) -> None:
        self._findings = _find_state(context).findings
        self.number = self._findings.hold(check)

    def __del__(self) -> None:
        self._findings.release(self.number)


def journal_of(context: Context) -> Buffer[Any]:
    """Return the buffer of uint32 in which kernels note errors."""
    return _find_state(context).journal


def read_note(words: _Words, index: int, kind: DType) -> int:
    """Return one of the numbers that `note_error` was given, of a 32- or 64-bit integer type."""
    low, high = (int(word) for word in words[2 * index : 2 * index + 2])
    bits = 64 if kind in (int64, uint64) else 32
    value = low | high << 32 if bits == 64 else low
    return value - (1 << bits) if is_signed_dtype(kind) and value >> (bits - 1) else value


# ---- on the host


class _ContextState:
    """What a context keeps: the journal, and the errors found in it."""

    __slots__ = ("findings", "journal")

    def __init__(self, context: Context) -> None:
        self.findings = _Findings(context.queue_count)
        memory = context._native.open_journal(self.findings.tell)
        self.journal: Buffer[Any] = Buffer.of_memory(context, memory, _WORDS, uint32)
        # the device destroys it after the last look
        context._disown(self.journal)


_states_lock = RLock()


def _find_state(context: Context) -> _ContextState:
    state: _ContextState | None = context.kept.get(_STATE_KEY)
    if state is None:
        with _states_lock:
            state = context.kept.get(_STATE_KEY)
            if state is None:
                state = context.kept[_STATE_KEY] = _ContextState(context)
    return state


class _Finding:
    """An error, and the threads in which it was raised."""

    def __init__(self, note: _Note) -> None:
        self.check, self.code, self.line, self.caller, self.is_of_task = note
        self.points: dict[int, int] = {}
        self.detail: tuple[int, int, _Words | None] | None = None
        self._told: WeakSet[Thread] = WeakSet()
        # The threads in which it is still to be raised; None for all others.
        self._audience: WeakSet[Thread] | None = None

    @property
    def call(self) -> str:
        return f"{self.check.function}() at {describe_place(self.code.co_filename, self.line)}"

    def is_due(self, slot: int, value: int) -> bool:
        """Whether a wait for a batch of a slot may have met the error."""
        return self.points.get(slot, value + 1) <= value

    def error(self) -> VkDispatchError:
        assert self.detail is not None
        queue, place, words = self.detail
        return self.check.error(place, words, queue, self.call)

    def concerns(self, thread: "Thread") -> bool:
        """Whether the error is still to be raised in a thread."""
        if thread.ident != self.caller and (self.is_of_task or (is_in_task() and self._audience is not None)):
            return False
        return thread not in self._told if self._audience is None else thread in self._audience

    def tell(self, thread: "Thread", running: "list[Thread]") -> None:
        """Note that the error is raised in a thread, given the running threads."""
        self._told.add(thread)
        if self.is_of_task:
            self._audience = WeakSet()
        elif self._audience is not None:
            self._audience.discard(thread)
        elif thread.ident == self.caller or all(each.ident != self.caller for each in running):
            self._audience = WeakSet(each for each in running if each not in self._told)

    def is_open(self, running: "list[Thread]") -> bool:
        """Whether one of the running threads is still to get the error."""
        if self.is_of_task and all(thread.ident != self.caller for thread in running):
            return False
        return self._audience is None or any(thread.is_alive() for thread in self._audience)


class _StandingFinding(_Finding):
    """An error of a kernel, whichever launch it was."""

    def __init__(self, check: Check, detail: tuple[int, int, _Words | None]) -> None:
        super().__init__((check, _StandingFinding.__init__.__code__, 0, 0, False))
        self.detail = detail

    @property
    def call(self) -> str:
        return self.check.function

    def is_due(self, slot: int, value: int) -> bool:
        return True


class _Findings:
    """The errors found by kernels of a context. It does not refer to the context, which refers to it."""

    def __init__(self, queue_count: int) -> None:
        self._queue_count = queue_count
        self._lock = RLock()
        self._by_ticket: dict[int, _Finding] = {}
        self._open: list[_Finding] = []
        self._standing: dict[int, Check] = {}
        # Tickets are used again as late as possible: launches of kernels that are gone may still run.
        self._unused = deque(range(_STANDING, _WORDS))

    def hold(self, check: Check) -> int:
        """Return a standing ticket. If all are in use, the oldest becomes that of two kernels."""
        with self._lock:
            number = self._unused.popleft() if self._unused else next(iter(self._standing))
            self._standing.pop(number, None)
            self._standing[number] = check
            return number

    def release(self, number: int) -> None:
        """Let a standing ticket be used again; its check is kept until then. No lock: finalizers call it."""
        self._unused.append(number)

    def tell(self, engine: native.Engine, slot: int, value: int) -> None:
        """Raise the errors found up to a batch of a slot (see `note_of`) that this thread has not got yet."""
        from threading import current_thread  # imported here, as few programs need it
        from threading import enumerate as running_threads

        thread, running = current_thread(), running_threads()
        with self._lock:
            words = self._look(engine)
            queue = slot % self._queue_count
            mine = [each for each in self._open if each.concerns(thread) and each.is_due(slot, value)]
            for finding in mine:
                if finding.detail is None:
                    self._settle(finding, queue, words[queue])
                finding.tell(thread, running)
            self._open = [each for each in self._open if each.is_open(running)][-_MAX_FINDINGS:]
            engine.set_pending_errors(bool(self._open))
        if mine:
            raise _combine_errors(mine)

    def renew(self, engine: native.Engine) -> None:
        """Wait for the calls with the tickets that come next, and collect their errors."""
        with self._lock:
            half = engine.stale_tickets()
            if half < 0:
                return
            words = self._look(engine)
            mine = [ticket for ticket in self._by_ticket if ticket // _HALF == half]
            for ticket in mine:
                finding = self._by_ticket[ticket]
                if finding.detail is None:
                    queue = min(finding.points)
                    self._settle(finding, queue, words[queue])
                del self._by_ticket[ticket]
            engine.set_pending_errors(bool(self._open))
            engine.renew_tickets(half)

    def _look(self, engine: native.Engine) -> list[_Words]:
        """Collect new errors from the journals of all queues, and return the journals.

        The caller sets afterwards whether errors are pending. Meanwhile they are, for other threads that
        wait: notes count as read before their errors are raised.
        """
        engine.set_pending_errors(True)
        journals = []
        for queue in range(self._queue_count):
            complete, octets = engine.journal(queue)
            words: _Words = np.frombuffer(octets, np.uint32)
            journals.append(words)
            for ticket in map(int, np.flatnonzero(words[1:_TICKETS] != _NONE) + 1):
                note, points = engine.note_of(ticket, queue)
                if ticket not in self._by_ticket:
                    finding = self._by_ticket[ticket] = _Finding(note)
                    self._open.append(finding)
                self._by_ticket[ticket].points.update(points)
            self._look_at_standing(engine, queue, words, complete)
            if complete:
                engine.mark_notes_read(queue, int(words[0]))
        return journals

    def _look_at_standing(self, engine: native.Engine, queue: int, words: _Words, complete: bool) -> None:
        """Collect new errors of kernels. They can be noted again once no launch may still note this one."""
        for ticket in map(int, np.flatnonzero(words[_STANDING:] != _NONE) + _STANDING):
            place = int(words[ticket])
            if ticket not in self._by_ticket:
                detail = (queue, place, _find_note(words, ticket, place))
                finding = self._by_ticket[ticket] = _StandingFinding(self._standing[ticket], detail)
                self._open.append(finding)
            if complete:
                engine.clear_standing_ticket(queue, ticket)
                del self._by_ticket[ticket]

    def _settle(self, finding: _Finding, queue: int, words: _Words) -> None:
        ticket = next(number for number, other in self._by_ticket.items() if other is finding)
        place = int(words[ticket])
        finding.detail = (queue, place, _find_note(words, ticket, place))


def _find_note(words: _Words, ticket: int, place: int) -> _Words | None:
    notes = words[_TICKETS:_STANDING].reshape(len(NOTES), NOTES.step)
    matches = notes[(notes[:, 0] == ticket) & (notes[:, 1] == place)]
    return matches[0, 2:] if len(matches) else None


def _combine_errors(findings: list[_Finding]) -> VkDispatchError:
    """Return the error of the first finding, whose message names the others."""
    error = findings[0].error()
    if len(findings) > 1:
        others = ", ".join(finding.call for finding in findings[1:])
        error.args = (f"{error}; errors were found as well by {others}", *error.args[1:])
    return error
