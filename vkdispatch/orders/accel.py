"""Accel: an order, its arguments and the section that is run."""

import sys
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, VkDispatchError
from vkdispatch.base.logging import log_info, log_warning
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.orders.arguments import Array, make_arguments, plain, split
from vkdispatch.orders.building import Builder
from vkdispatch.orders.comparing import Verification, best_time, compare, outcome
from vkdispatch.orders.errors import Attempt
from vkdispatch.orders.grid import Grid, Workers, make_grid
from vkdispatch.orders.models import EngineProgram, Placement, Program
from vkdispatch.orders.order import checked_compile
from vkdispatch.orders.runs import Runs, checked_timeout

_OFF = -1.0  # a tolerance that nothing has


class Accel:
    """A task that is handed to an accelerator: inputs, an order, outputs.

    Parameters
    ----------
    args
        Inputs, then one `Order`, then outputs. Inputs are arrays, or what `numpy.asarray` makes arrays of;
        outputs are writable arrays, which are filled in place. Both may be a `vd.Buffer`.
    kind
        The name of a programming model, or a list of names, the best first. None tries every section of the
        order, accelerators first (`vkdispatch.orders.order.MODELS`), until one can be built here.
    compile
        A compiler command, or a list of them, in place of those that are looked for.
    verify
        True: each run is made by every section that can be built here, and those that differ from the first
        by more than rounding raise OrderMismatchError, when they are waited for. A number: the error that is
        allowed, in units of an output's largest value. The others run on copies of the outputs.

    Attributes
    ----------
    model
        The name of the model that runs.
    attempts
        What was tried and could not be built.
    verification
        What `verify` found in the latest run, or None.

    Raises
    ------
    OrderBuildError
        No section can be built here: for each that was tried, it says why.
    TypeError, ValueError
        The arguments do not fit to the order, or an argument cannot be used.

    Notes
    -----
    Inputs are read when a run finds them not yet at the accelerator: leave them alone between `run` and
    `stop`.
    """

    def __init__(
        self,
        *args: object,
        kind: str | Sequence[str] | None = None,
        compile: str | Sequence[str] | None = None,
        verify: bool | float = False,
    ) -> None:
        order, inputs, outputs = split(args)
        self.order = order
        self._arguments = make_arguments(order, inputs, outputs)
        self._builder = Builder(order, [item.parameter for item in self._arguments], checked_compile(compile))
        self._tolerance = _checked_tolerance(verify)
        self._program: Program = self._builder.first() if kind is None else self._builder.chosen(kind)
        self._verifies = self._tolerance != _OFF
        self._verified = self._builder.others(self._program) if self._verifies else ()
        if self._verifies and not self._verified:
            log_warning(f"{order.label}: verify has nothing to compare {self.model} with: see attempts")
        self.verification: Verification | None = None
        self._runs = Runs()
        self._lock = threading.RLock()
        self._placement: Placement | None = None
        self._device = 0
        log_info(f"{order.label}: {self._program.model}, by {self._program.description}")

    @property
    def model(self) -> str:
        """The name of the programming model that runs."""
        return self._program.model

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """What was tried and could not be built, in order."""
        return tuple(self._builder.attempts)

    @property
    def output(self) -> Any:
        """The output, or a tuple of the outputs, once all runs are over.

        Raises
        ------
        OrderRunError
            A run failed.
        """
        with self._lock:
            error = self._runs.wait_all(None)
            if error is None and self._placement is not None:
                self._placement.fetch()
        if error is not None:
            raise error
        values = tuple(item.value for item in self._arguments if item.parameter.output)
        return values[0] if len(values) == 1 else values

    def run(
        self,
        *workers: Workers,
        device: int = 0,
        channel: int = 0,
        timeout: float | None = None,
        graph: CommandGraph | None = None,
    ) -> int:
        """Start the order, and return at once.

        Parameters
        ----------
        workers
            Members, teams and assignments, each an int or a tuple of up to three; what is left out is 1.
        device
            The number of the accelerator, among those of the model. Runs on another one wait for the runs
            before, and take the data along.
        channel
            Runs of one channel are made one after another; those of different channels at the same time.
        timeout
            Seconds from now, after which whoever waits for this run gets a WaitTimeoutError.
        graph
            Where to record the run, in place of making it: each submit of the graph makes it then. For the
            models `glsl` and `vkdispatch`, and arrays that are `vd.Buffer` objects; scalars stay as they are
            now, and the run has nothing to wait for.

        Returns
        -------
        The run's id, for `wait`.

        Raises
        ------
        TypeError, ValueError
            An argument cannot be used, or there is no such device.
        """
        grid = make_grid(workers)
        seconds = checked_timeout(timeout)
        number, lane = _checked_number(device, "device"), _checked_number(channel, "channel")
        with self._lock:
            program = self._program
            if graph is not None:
                return self._recorded(program, grid, number, graph)
            placement = self._placed(program, number)
            if isinstance(program, EngineProgram) and not self._verifies:
                # given to the device now, before whatever this thread gives it next
                run_id = self._runs.reserve()
                started = program.start(placement, grid, run_id)
                return self._runs.submit(started, lane, seconds, run_id)

            def work(run_id: int) -> None:
                if not grid.empty:
                    program.run(placement, grid, run_id, number, lane)

            if not self._verifies:
                return self._runs.submit(work, lane, seconds)
            others = self._verified

            def verified_work(run_id: int) -> None:
                found = [(other.model, outcome(other, self._arguments, grid, run_id)) for other in others]
                work(run_id)
                self._verify(program.model, placement, found)

            # one after another: the outputs are looked at in between
            return self._runs.submit(verified_work, 0, seconds)

    def wait(self, run_id: int, timeout: float | None = None) -> None:
        """Wait for one run. Outputs are certain to be in their arrays after `stop` only.

        Raises
        ------
        OrderRunError
            The run failed. So says every wait for it.
        WaitTimeoutError
            It takes longer than `timeout` seconds, or than its own.
        ValueError
            There is no such run.
        """
        self._runs.wait(run_id, checked_timeout(timeout))

    def isbusy(self) -> bool:
        """Whether any run is not over yet."""
        return self._runs.busy()

    def stop(self, timeout: float | None = None) -> None:
        """Wait for all runs, and bring the results to the output arrays. It may be run again afterwards.

        Raises
        ------
        OrderRunError
            A run failed, and no `wait` has said so; the outputs hold whatever it left.
        WaitTimeoutError
            The runs take longer than `timeout` seconds; they go on, and may be stopped again.
        """
        seconds = checked_timeout(timeout)
        end = None if seconds is None else time.monotonic() + seconds
        error = None
        while True:
            left = None if end is None else max(0.0, end - time.monotonic())
            late = self._runs.wait_all(left)
            error = error or late
            with self._lock:
                # another thread may have started one more
                if self._runs.busy():
                    continue
                try:
                    self._leave()
                except VkDispatchError as failure:
                    error = error or failure
                break
        if error is not None:
            raise error

    def swap(self, kind: str | Sequence[str]) -> None:
        """Go on in another programming model: the runs to come are made by that section.

        It is built while runs go on. Where the arguments have to be elsewhere for it, the runs given so far
        are waited for and the data is taken along; between two models of the host it stays where it is.

        Parameters
        ----------
        kind
            A model, or a list of them, the best first.

        Raises
        ------
        OrderBuildError
            It cannot be built here; the task goes on as before.
        OrderRunError
            A run of before failed.
        TypeError, ValueError
            `kind` names no model of the order.
        """
        program = self._builder.chosen(kind)
        with self._lock:
            # there need not be such a device in the other model
            device = self._device if self._placement is None or program.model == self.model else 0
            if self._placement is not None:
                self._placed(program, device)
            self._program = program
            if self._verifies:
                self._verified = self._builder.others(program)

    def race(self, *workers: Workers, repeats: int = 3, device: int = 0) -> dict[str, float]:
        """Time every section that can be built here, and go on with the fastest.

        Each runs on the given inputs and on copies of the outputs, which stay as they are.

        Parameters
        ----------
        workers
            As of `run`.
        repeats
            How often each is timed; the shortest time counts.
        device
            The number of the accelerator, in models that have as many; others take their first.

        Returns
        -------
        Seconds of a run by model, the fastest first, without copies to or from the accelerator. `attempts`
        says why others are missing.

        Raises
        ------
        OrderRunError
            A section fails when it is run.
        TypeError, ValueError
            An argument cannot be used.
        """
        grid = make_grid(workers)
        number, count = _checked_number(device, "device"), _checked_number(repeats, "repeats")
        if count == 0:
            raise ArgumentValueError("repeats: expected 1 or more, got 0")
        if grid.empty:
            raise ArgumentValueError(f"members, teams: nobody runs in {workers!r}; there is nothing to time")
        with self._lock:
            self._settle()
            times = {}
            for program in (self._program, *self._builder.others(self._program)):
                there = number if program.devices() > number else 0
                times[program.model] = best_time(program, self._arguments, grid, there, count)
            ranked = dict(sorted(times.items(), key=lambda item: item[1]))
            self.swap(next(iter(ranked)))
        return ranked

    def __enter__(self) -> "Accel":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except Exception:
            # what went wrong in the block comes first
            if error is None:
                raise

    def __repr__(self) -> str:
        state = "busy" if self.isbusy() else "idle"
        return f"<Accel of {self.order!r}: {self.model}, {state}>"

    def _verify(self, model: str, placement: Placement, found: Sequence[tuple[str, list[Array]]]) -> None:
        """Compare the outputs with those of other sections. Raises OrderMismatchError."""
        placement.fetch()
        ours = [argument.read() for argument in self._arguments if argument.parameter.output]
        errors = {
            other: compare(self._arguments, (model, other), ours, theirs, self._tolerance)
            for other, theirs in found
        }
        self.verification = Verification((model, *errors), errors, self.attempts)

    def _recorded(self, program: Program, grid: Grid, device: int, graph: CommandGraph) -> int:
        """Record a run, and return its id."""
        if not isinstance(program, EngineProgram):
            raise ArgumentValueError(
                f"graph: the model {program.model} cannot be recorded; glsl and vkdispatch can, see kind="
            )
        if self._verifies:
            raise ArgumentValueError("graph: verify compares runs, and recording makes none; leave one out")
        run_id = self._runs.reserve()
        program.record(self._placed(program, device), grid, run_id, graph)
        return run_id

    def _placed(self, program: Program, device: int) -> Placement:
        """Return the arguments where this program can use them."""
        if self._placement is not None and not (
            device == self._device and program.serves(self._placement, device)
        ):
            self._settle()
        if self._placement is None:
            self._placement = program.place(self._arguments, device)
            self._device = device
        return self._placement

    def _settle(self) -> None:
        """Wait for all runs, and bring outputs back. Raises what a run raised."""
        error = self._runs.wait_all(None)
        try:
            self._leave()
        except VkDispatchError as failure:
            error = error or failure
        if error is not None:
            raise error

    def _leave(self) -> None:
        """Bring outputs back, and give up the accelerator's memory."""
        placement = self._placement
        if placement is None:
            return
        try:
            placement.fetch()
        except KeyboardInterrupt:
            raise  # the outputs are still there: the next call brings them
        except BaseException:
            self._placement = None
            placement.close()
            raise
        self._placement = None
        placement.close()


def _checked_number(given: object, what: str) -> int:
    number = plain(given)
    if isinstance(number, bool) or not isinstance(number, int):
        raise ArgumentTypeError(f"{what}: expected an int, got {given!r}")
    if not 0 <= number < 2**31:
        raise ArgumentValueError(f"{what}: expected a number from 0 on, got {given!r}")
    return number


def _checked_tolerance(given: object) -> float | None:
    """Return the tolerance that `verify` asks for; None: by dtype, `_OFF`: nothing is verified."""
    number = plain(given)
    if isinstance(number, bool):
        return None if number else _OFF
    if not isinstance(number, (int, float)):
        raise ArgumentTypeError(f"verify: expected True, False or an error that is allowed, got {given!r}")
    if not 0 <= number <= sys.float_info.max:
        raise ArgumentValueError(f"verify: expected an error that is allowed, from 0 on, got {given!r}")
    return float(number)
