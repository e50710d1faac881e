"""Runs that go on beside Python: one thread for each channel that has any, in order."""

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError, WaitTimeoutError
from vkdispatch.orders.arguments import to_python_number

_IDLE_S = 5.0


class Run:
    """One run: to come, going on or over.

    Attributes
    ----------
    id
        What `Accel.run` returned.
    error
        What it raised, or None.
    is_reported
        Whether somebody who waited has that error.
    """

    def __init__(self, run_id: int, work: Callable[[int], None], timeout: float | None) -> None:
        self.id = run_id
        self.error: BaseException | None = None
        self.is_reported = False
        self._work: Callable[[int], None] | None = work
        self._end = None if timeout is None else time.monotonic() + timeout
        self._over = threading.Event()

    @property
    def is_over(self) -> bool:
        """Whether it has ended, one way or another."""
        return self._over.is_set()

    def perform(self) -> None:
        """Do the work, in the thread of its channel."""
        work, self._work = self._work, None
        assert work is not None
        try:
            work(self.id)
        except BaseException as error:  # whoever waits gets it
            self.error = error
        finally:
            del work  # with all that it holds: this thread may sleep for a while
            _going_on.discard(self)
            self._over.set()

    def abandon(self) -> None:
        """Be over, in a child of a fork."""
        self.error = UsageError(f"run {self.id} was started before a fork; it is the parent's")
        self._over = threading.Event()  # whose lock nobody holds
        self._over.set()

    def wait(self, end: float | None, *, own: bool = True) -> None:
        """Wait until it is over, until `end` or, with `own`, until its own time is up.

        Raises
        ------
        WaitTimeoutError
            It is not over by then. It goes on.
        """
        ends = [moment for moment in (end, self._end if own else None) if moment is not None]
        left = max(0.0, min(ends) - time.monotonic()) if ends else None
        if not self._over.wait(left):
            raise WaitTimeoutError(
                f"run {self.id} has not ended in the time given; it goes on, and may be waited for again"
            )


class _Channel:
    """Runs to come, and the thread that makes them one after another.

    The thread stays for a while when there is nothing to do: OpenMP keeps a team of threads for each that
    has asked for one.
    """

    def __init__(self, number: int) -> None:
        self._queue: deque[Run] = deque()
        self._news = threading.Condition()
        self._number = number
        self._thread: threading.Thread | None = None

    def put(self, run: Run) -> None:
        with self._news:
            self._queue.append(run)
            _going_on.add(run)
            # A fork leaves the thread behind.
            if self._thread is not None and self._thread.is_alive():
                self._news.notify()
                return
            self._thread = threading.Thread(
                target=self._serve, name=f"vkdispatch-order-{self._number}", daemon=True
            )
            try:
                self._thread.start()
            except RuntimeError as error:
                self._thread = None
                self._queue.remove(run)
                _going_on.discard(run)
                raise UsageError(f"run: there can be no more threads ({error})") from None

    def _serve(self) -> None:
        while True:
            with self._news:
                while not self._queue:
                    if not self._news.wait(_IDLE_S) and not self._queue:
                        self._thread = None
                        return
                run = self._queue.popleft()
            run.perform()
            del run  # and what it holds


class Runs:
    """The runs of one Accel."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channels: dict[int, _Channel] = {}
        self._runs: dict[int, Run] = {}
        self._failed: dict[int, BaseException] = {}  # of those that are forgotten
        self._count = 0

    def reserve(self) -> int:
        """Return the id of a run that is to be submitted later, or never."""
        with self._lock:
            self._count += 1
            return self._count - 1

    def submit(
        self, work: Callable[[int], None], channel: int, timeout: float | None, run_id: int | None = None
    ) -> Run:
        """Have work done after all that the channel has already; return the run.

        `run_id` is one that was reserved; None takes the next.

        Raises
        ------
        RuntimeError
            There can be no more threads.
        """
        with self._lock:
            run = Run(self._count if run_id is None else run_id, work, timeout)
            if channel not in self._channels:
                self._channels[channel] = _Channel(channel)
            self._channels[channel].put(run)
            self._runs[run.id] = run
            self._count += run_id is None
        return run

    def is_busy(self) -> bool:
        """Whether any run is not over."""
        with self._lock:
            return any(not run.is_over for run in self._runs.values())

    def is_empty(self) -> bool:
        """Whether there is none that is not forgotten."""
        with self._lock:
            return not self._runs

    def parse_ids(self, given: object) -> tuple[int, ...] | None:
        """Return the ids of runs, given as one, as a list or tuple of them, or as None: all that there are.

        Raises
        ------
        TypeError, ValueError
            `run` has returned no such id.
        """
        if given is None:
            return None
        ids = [to_python_number(each) for each in (given if isinstance(given, (list, tuple)) else [given])]
        found = []
        for number in ids:
            if isinstance(number, bool) or not isinstance(number, int):
                raise ArgumentTypeError(
                    f"run_id: expected what run returned, a list of that, or None for all runs, got {given!r}"
                )
            if not 0 <= number < self._count:
                known = f"0 to {self._count - 1}" if self._count else "none yet"
                raise ArgumentValueError(
                    f"run_id: there is no run {number}; run has returned {known}, and timeout= takes seconds"
                )
            found.append(number)
        if not found:
            raise ArgumentValueError("run_id: an empty list names no run; None means all of them")
        return tuple(found)

    def wait(self, ids: tuple[int, ...] | None, timeout: float | None) -> None:
        """Wait for runs, None: all, and raise what the first of them raised that failed, each time.

        Raises
        ------
        WaitTimeoutError
            It takes longer.
        """
        end = _find_deadline(timeout)
        with self._lock:
            runs = self._select(ids)
        for run in runs:
            run.wait(end)
        for number in ids if ids is not None else [run.id for run in runs]:
            with self._lock:
                run_ = self._runs.get(number)
                error = self._failed.get(number) if run_ is None else run_.error
            if error is not None:
                if run_ is not None:
                    run_.is_reported = True
                raise error

    def finish(self, ids: tuple[int, ...] | None, timeout: float | None) -> BaseException | None:
        """Wait for runs, None: all, forget them, and return the first error that nobody has been told of.

        Raises
        ------
        WaitTimeoutError
            They take longer. They are not forgotten.
        """
        end = _find_deadline(timeout)
        while True:
            with self._lock:
                runs = self._select(ids)
            for run in runs:
                run.wait(end)
            with self._lock:
                # another thread may have started one more
                runs = self._select(ids)
                if all(run.is_over for run in runs):
                    for run in runs:
                        del self._runs[run.id]
                        if run.error is not None:
                            self._failed[run.id] = run.error
                    errors = (run.error for run in runs if not run.is_reported)
                    return next(filter(None, errors), None)

    def _select(self, ids: tuple[int, ...] | None) -> list[Run]:
        """Return runs by their ids, without those that are forgotten."""
        if ids is None:
            return list(self._runs.values())
        return [self._runs[number] for number in dict.fromkeys(ids) if number in self._runs]


_going_on: set[Run] = set()


@atexit.register
def _finish_runs() -> None:
    """Wait for what is going on when Python ends: native code must not outlive the arrays."""
    for run in list(_going_on):
        run.wait(None, own=False)


def _abandon_runs() -> None:
    """End the parent's runs for a child: a fork leaves the threads behind that make them."""
    for run in _going_on:
        run.abandon()
    _going_on.clear()


os.register_at_fork(after_in_child=_abandon_runs)


def parse_timeout(timeout: object) -> float | None:
    """Return a timeout in seconds, or None. Raises TypeError or ValueError for anything else."""
    if timeout is None:
        return None
    seconds = to_python_number(timeout)
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise ArgumentTypeError(f"timeout: expected seconds or None, got {timeout!r}")
    if not 0 <= seconds <= threading.TIMEOUT_MAX:
        raise ArgumentValueError(f"timeout: expected seconds, none of them negative, got {timeout!r}")
    return float(seconds)


def _find_deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout
