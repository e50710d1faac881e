"""Asynchronous runs, each channel's in order, with their arguments at the accelerator and results."""

import atexit
import operator
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from vkdispatch.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    UsageError,
    VkDispatchError,
    WaitTimeoutError,
)
from vkdispatch.orders.arguments import Argument, to_python_number
from vkdispatch.orders.models import Placement, Program

# ---- Asynchronous runs: each channel with runs has a thread that makes them in order ---------------------


_IDLE_SECONDS = 5.0


class Run:
    """A run that is queued, in progress or over.

    Attributes
    ----------
    id
        The id returned by `Accel.run`.
    error
        The exception that it raised, or None.
    is_reported
        Whether a wait has raised that error.
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
        """Whether it has ended, successfully or not."""
        return self._over.is_set()

    def perform(self) -> None:
        """Do the work. Called in the thread of the channel."""
        work, self._work = self._work, None
        assert work is not None
        try:
            work(self.id)
        except BaseException as error:  # raised by the wait for it
            self.error = error
        finally:
            del work  # frees what it refers to: this thread may sleep for a while
            _unfinished.discard(self)
            self._over.set()

    def abandon(self) -> None:
        """End the run in the child of a fork."""
        self.error = UsageError(f"run {self.id} was started before a fork and belongs to the parent process")
        self._over = threading.Event()  # the old event's lock may be held
        self._over.set()

    def wait(self, end: float | None, *, use_timeout: bool = True) -> None:
        """Wait until it is over, or until `end` or its own timeout.

        Raises
        ------
        WaitTimeoutError
            It is not over by then. It continues.
        """
        ends = [moment for moment in (end, self._end if use_timeout else None) if moment is not None]
        left = max(0.0, min(ends) - time.monotonic()) if ends else None
        if not self._over.wait(left):
            raise WaitTimeoutError(
                f"run {self.id} has not ended within the timeout; it continues, and can be waited for again"
            )


class _Channel:
    """A queue of runs, and the thread that makes them one after another.

    An idle thread stays alive for a while, since OpenMP keeps a team of threads for each thread that uses it.
    """

    def __init__(self, number: int) -> None:
        self._queue: deque[Run] = deque()
        self._condition = threading.Condition()
        self._number = number
        self._thread: threading.Thread | None = None

    def put(self, run: Run) -> None:
        with self._condition:
            self._queue.append(run)
            _unfinished.add(run)
            # After a fork the thread no longer exists.
            if self._thread is not None and self._thread.is_alive():
                self._condition.notify()
                return
            self._thread = threading.Thread(
                target=self._serve, name=f"vkdispatch-order-{self._number}", daemon=True
            )
            try:
                self._thread.start()
            except RuntimeError as error:
                self._thread = None
                self._queue.remove(run)
                _unfinished.discard(run)
                raise UsageError(f"run: cannot start a thread ({error})") from None

    def _serve(self) -> None:
        while True:
            with self._condition:
                while not self._queue:
                    if not self._condition.wait(_IDLE_SECONDS) and not self._queue:
                        self._thread = None
                        return
                run = self._queue.popleft()
            run.perform()
            del run  # and what it refers to


class Runs:
    """The runs of one Accel."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channels: dict[int, _Channel] = {}
        self._runs: dict[int, Run] = {}
        self._failed: dict[int, BaseException] = {}  # the errors of removed runs
        self._count = 0

    def reserve(self) -> int:
        """Return an id for a run that is submitted later, or never."""
        with self._lock:
            self._count += 1
            return self._count - 1

    def submit(
        self, work: Callable[[int], None], channel: int, timeout: float | None, run_id: int | None = None
    ) -> Run:
        """Queue work in a channel, and return the run.

        `run_id` is a reserved id, or None for the next one.

        Raises
        ------
        RuntimeError
            No thread can be started.
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
        """Whether a run is not over."""
        with self._lock:
            return any(not run.is_over for run in self._runs.values())

    def is_empty(self) -> bool:
        """Whether all runs were removed by `finish`."""
        with self._lock:
            return not self._runs

    def parse_ids(self, value: object) -> tuple[int, ...] | None:
        """Return ids of runs: an id, a list or tuple of ids, or None for all runs.

        Raises
        ------
        TypeError, ValueError
            `run` did not return such an id.
        """
        if value is None:
            return None
        ids = [to_python_number(item) for item in (value if isinstance(value, (list, tuple)) else [value])]
        parsed = []
        for number in ids:
            if isinstance(number, bool) or not isinstance(number, int):
                raise ArgumentTypeError(
                    f"run_id: expected an id returned by run, a list of ids, or None for all, got {value!r}"
                )
            if not 0 <= number < self._count:
                known = f"0 to {self._count - 1}" if self._count else "none yet"
                raise ArgumentValueError(
                    f"run_id: there is no run {number}; run returned {known}. Pass seconds as timeout="
                )
            parsed.append(number)
        if not parsed:
            raise ArgumentValueError("run_id: expected an id, got an empty list; None means all runs")
        return tuple(parsed)

    def wait(self, ids: tuple[int, ...] | None, timeout: float | None) -> None:
        """Wait for runs (None: all), and raise the error of the first run that failed.

        Raises
        ------
        WaitTimeoutError
            The runs take longer.
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
        """Wait for runs (None: all), remove them, and return the first error that was not reported.

        Raises
        ------
        WaitTimeoutError
            The runs take longer. They are not removed.
        """
        end = _find_deadline(timeout)
        while True:
            with self._lock:
                runs = self._select(ids)
            for run in runs:
                run.wait(end)
            with self._lock:
                # another thread may have started a run
                runs = self._select(ids)
                if all(run.is_over for run in runs):
                    for run in runs:
                        del self._runs[run.id]
                        if run.error is not None:
                            self._failed[run.id] = run.error
                    errors = (run.error for run in runs if not run.is_reported)
                    return next(filter(None, errors), None)

    def _select(self, ids: tuple[int, ...] | None) -> list[Run]:
        """Return runs by their ids, except removed ones."""
        if ids is None:
            return list(self._runs.values())
        return [self._runs[number] for number in dict.fromkeys(ids) if number in self._runs]


_unfinished: set[Run] = set()


@atexit.register
def _finish_runs() -> None:
    """Wait for unfinished runs when Python exits: native code must not outlive the arrays."""
    for run in list(_unfinished):
        run.wait(None, use_timeout=False)


def _abandon_runs() -> None:
    """End the parent's runs in the child of a fork, which has no threads for them."""
    for run in _unfinished:
        run.abandon()
    _unfinished.clear()


os.register_at_fork(after_in_child=_abandon_runs)


def _find_deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


# ---- The arguments of an Accel at the accelerator --------------------------------------------------------


class PlacedArguments:
    """The arguments of an Accel, which are placed at an accelerator for as long as it has runs.

    Parameters
    ----------
    arguments
        The arguments.
    runs
        The runs that use them.

    Attributes
    ----------
    placement
        Where they are, or None.
    device
        The number of the device.
    is_fetched
        Whether the outputs hold the results of all runs.
    """

    def __init__(self, arguments: Sequence[Argument], runs: Runs) -> None:
        self.placement: Placement | None = None
        self.device = 0
        self.is_fetched = True
        self._arguments = arguments
        self._runs = runs

    def place(self, program: Program, device: int) -> Placement:
        """Return a placement that a program can use. Waits for all runs if the arguments must move."""
        if self.placement is not None and not (
            device == self.device and program.serves(self.placement, device)
        ):
            self.finish_runs()
        if self.placement is None:
            for argument in self._arguments:
                argument.load_items()
            self.placement = program.place(self._arguments, device)
            self.device = device
        return self.placement

    def fetch(self, force: bool = False) -> None:
        """Copy outputs back if they have changed, or in any case with `force`."""
        if self.placement is None or (self.is_fetched and not force):
            return
        is_busy = self._runs.is_busy()
        self.placement.fetch()
        for argument in self._arguments:
            argument.store_items()
        self.is_fetched = not is_busy

    def finish_runs(self) -> None:
        """Wait for all runs, copy outputs back and free the memory. Raises the error of a run."""
        error = self._runs.finish(None, None)
        try:
            self.release()
        except VkDispatchError as failure:
            error = error or failure
        if error is not None:
            raise error

    def release(self) -> None:
        """Copy outputs back, and free the accelerator's memory."""
        placement = self.placement
        if placement is None:
            return
        try:
            self.fetch()
        except KeyboardInterrupt:
            raise  # the outputs are still placed: the next call copies them
        except BaseException:
            self.placement = None
            placement.close()
            raise
        self.placement = None
        placement.close()


# ---- `Accel.output` --------------------------------------------------------------------------------------
#
# The results, which wait for the runs when used, and a method that copies them back.


_UNARY = (abs, bool, complex, dir, float, format, hash, int, iter, len, repr, reversed, round, str)
_OPERATORS = "add and floordiv lshift matmul mod mul or pow rshift sub truediv xor"
_OTHERS = "contains delitem eq ge getitem gt index invert le lt ne neg pos setitem"
_OF_ARRAYS = "__array"  # the protocols of NumPy; the supported ones are defined below


class Output:
    """Stands for the output of an `Accel`, or for the tuple of its outputs, and can be called.

    Every operation waits for all runs, copies their results back, and is then applied to that array, list,
    buffer or tuple. A call copies the results of one run; see `Accel.output`.
    """

    __slots__ = ("_output_copy", "_output_value", "_output_wait")

    def __init__(self, value: object, wait: Callable[[], None], copy: Callable[..., object]) -> None:
        object.__setattr__(self, "_output_value", value)
        object.__setattr__(self, "_output_wait", wait)
        object.__setattr__(self, "_output_copy", copy)

    def __call__(
        self, run_id: object = 0, output: object = None, force: bool = False, timeout: float | None = None
    ) -> Any:
        """Copy the results of a run back, and return the outputs. See `Accel.output`."""
        return self._output_copy(run_id, output, force, timeout)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of the value, for `isinstance`."""
        return type(self._output_value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(_OF_ARRAYS):
            raise AttributeError(name)  # NumPy gets the array from `__array__`
        return getattr(_wait_for_value(self), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(_wait_for_value(self), name, value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        array = np.asarray(_wait_for_value(self), dtype)
        return array.copy() if copy else array

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(function, method)(*_unwrap(inputs), **_unwrap(options))

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return function(*_unwrap(args), **_unwrap(options))


def _wait_for_value(output: Any) -> Any:
    """Wait for all runs, and return the value that an output stands for."""
    output._output_wait()
    return output._output_value


def _unwrap(value: Any) -> Any:
    """Replace outputs by their values, also in lists, tuples and dictionaries."""
    if type(value) is Output:
        return _wait_for_value(value)
    if type(value) in (list, tuple):
        return type(value)(_unwrap(item) for item in value)
    if type(value) is dict:
        return {name: _unwrap(item) for name, item in value.items()}
    return value


def _make_method(function: Callable[..., Any], *, swapped: bool = False) -> Callable[..., Any]:
    """Return a method that calls a function with the value as the first argument; the last if swapped."""

    def method(self: Output, *args: Any) -> Any:
        others = _unwrap(args)
        return (
            function(*others, _wait_for_value(self)) if swapped else function(_wait_for_value(self), *others)
        )

    return method


def _make_methods() -> dict[str, Callable[..., Any]]:
    """Return the methods that Python looks up in the class instead of by `__getattr__`."""
    methods = {f"__{function.__name__}__": _make_method(function) for function in _UNARY}
    for name in f"{_OPERATORS} {_OTHERS}".split():
        methods[f"__{name}__"] = _make_method(getattr(operator, f"__{name}__"))
    for name in _OPERATORS.split():
        methods[f"__i{name}__"] = _make_method(getattr(operator, f"__i{name}__"))
        methods[f"__r{name}__"] = _make_method(getattr(operator, f"__{name}__"), swapped=True)
    methods["__divmod__"], methods["__rdivmod__"] = _make_method(divmod), _make_method(divmod, swapped=True)
    # Copies and pickles are those of the value.
    methods["__reduce_ex__"] = _make_method(lambda value, protocol: value.__reduce_ex__(protocol))
    return methods


for _name, _method in _make_methods().items():
    setattr(Output, _name, _method)
