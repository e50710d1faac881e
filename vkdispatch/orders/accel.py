"""Accel: an order with its arguments, and the section that runs."""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, ClassVar

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, VkDispatchError
from vkdispatch.base.process.logging import log_info, log_warning
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.orders.arguments import (
    Argument,
    Array,
    copy_results,
    do_overlap,
    make_arguments,
    make_targets,
    replace_arguments,
    split_arguments,
    to_python_number,
)
from vkdispatch.orders.building import Builder
from vkdispatch.orders.comparing import Verification, compare, measure_best_time, run_on_copies
from vkdispatch.orders.debugging import Debugging
from vkdispatch.orders.errors import Attempt
from vkdispatch.orders.grid import Grid, Workers, make_grid
from vkdispatch.orders.models import EngineProgram, Placement, Program
from vkdispatch.orders.order import parse_commands
from vkdispatch.orders.output import Output
from vkdispatch.orders.runs import Run, Runs, parse_timeout

_OFF = -1.0  # stands for no verification

RunIds = int | Sequence[int] | None


@record(eq=False)
class _Request:
    """One call of `run`, with its arguments parsed.

    Attributes
    ----------
    program, others
        The section that runs, and the sections that it is compared with.
    arguments, placement
        The arguments, and where the section finds them.
    grid, device, channel, timeout
        As in `Accel.run`.
    own
        Whether the arguments are those of the Accel.
    """

    program: Program
    others: Sequence[Program]
    arguments: Sequence[Argument]
    placement: Placement
    grid: Grid
    device: int
    channel: int
    timeout: float | None
    own: bool


class Accel:
    """A task for an accelerator: inputs, an order, outputs.

    Parameters
    ----------
    args
        Inputs, then one `Order`, then outputs. Inputs are arrays, or what `numpy.asarray` makes arrays of;
        outputs are writable arrays, or lists of numbers (nested or not), which are filled in place. Both may
        be a `vd.Buffer`.
    kind
        The name of a programming model, or a list of names, the best first. None tries every section of the
        order, accelerators first (`vkdispatch.orders.order.MODELS`), until one can be built here.
    compile
        A compiler command, or a list of them, in place of those that are looked for. A command begins with a
        program, or with a vendor: gnu, cray, amd, ibm, nvidia, pgi or intel, which stands for that vendor's
        compiler of the section's language.
    debug
        True: print builds and runs to standard error, write generated sources to the folder
        `_accelpy_debug_`, and compile them with -O0 -g.
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

    name: ClassVar[str | None] = None
    """The model of a class that has one alone, such as `CppAccel`."""

    def __init__(
        self,
        *args: object,
        kind: str | Sequence[str] | None = None,
        compile: str | Sequence[str] | None = None,
        debug: bool = False,
        verify: bool | float = False,
    ) -> None:
        order, inputs, outputs = split_arguments(args)
        self.order = order
        self._arguments = make_arguments(order, inputs, outputs)
        self._debugging = Debugging(order.label) if _parse_flag(debug, "debug") else None
        self._compile = parse_commands(compile)
        self._builders: dict[object, Builder] = {}
        self._builder = self._find_builder(self._arguments)
        self._tolerance = _parse_tolerance(verify)
        chosen = self._choose_kind(kind)
        self._program: Program = (
            self._builder.build_first() if chosen is None else self._builder.build_chosen(chosen)
        )
        self._verifies = self._tolerance != _OFF
        self._verified = self._builder.build_others(self._program) if self._verifies else ()
        if self._verifies and not self._verified:
            log_warning(f"{order.label}: verify has nothing to compare {self.model} with: see attempts")
        self.verification: Verification | None = None
        self._runs = Runs()
        self._separate_runs: list[
            tuple[Run, Sequence[Argument]]
        ] = []  # unfinished runs with arrays of their own
        self._separate_ids: set[int] = set()
        self._lock = threading.RLock()
        self._placement: Placement | None = None
        self._is_fetched = True  # whether the outputs have the results in the placement
        self._device = 0
        log_info(f"{order.label}: {self._program.model}, by {self._program.description}")
        if self._debugging is not None:
            self._debugging.say(f"{self.model} is chosen, by {self._program.description}")

    @property
    def model(self) -> str:
        """The name of the programming model that runs."""
        return self._program.model

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The sections that could not be built, in order."""
        return tuple(self._builder.attempts)

    @property
    def output(self) -> Any:
        """The output, or a tuple of the outputs; also a method that copies results back.

        The attribute stands for the array, list or buffer that was given, or for a tuple of them. Using it
        waits for all runs and copies their results back. `numpy.asarray` returns the output array itself.

        The method `output(run_id=0, output=None, force=False, timeout=None)` waits for one run, copies
        results back while other runs continue, and returns the output or the tuple. It returns None for a
        run that was given other arrays: that run copies its results itself.

        Parameters
        ----------
        run_id
            What `run` returned, a list of that, or None for all runs.
        output
            An array, or a list with an array, list or buffer for each output: results are copied there too.
        force
            Copy results back even if they have not changed since the last copy.
        timeout
            Seconds to wait.

        Raises
        ------
        OrderRunError
            A run failed.
        WaitTimeoutError
            It takes longer than `timeout` seconds, or than its own.
        TypeError, ValueError
            `run` never returned this id, or an argument cannot be used.
        """
        return Output(_list_outputs(self._arguments), self._finish_and_fetch, self._call_output)

    def run(
        self,
        *workers: Workers,
        device: int = 0,
        channel: int = 0,
        timeout: float | None = None,
        inputs: Sequence[object] | None = None,
        outputs: Sequence[object] | None = None,
        graph: CommandGraph | None = None,
    ) -> int:
        """Start the order, and return immediately.

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
        inputs, outputs
            Other arrays for this run alone: a list or tuple with one item for each input or output. None
            means those of the Accel. The run copies its results itself, so `wait` is enough. The section is
            compiled again for other dtypes or numbers of dimensions. A run that shares an array with earlier
            runs, and one of them writes it, waits for all earlier runs.
        graph
            Where to record the run, in place of making it: each submit of the graph makes it then. For the
            models `glsl` and `vkdispatch`, and arrays that are `vd.Buffer` objects; scalars stay as they are
            now, and the run has nothing to wait for.

        Returns
        -------
        The run's id, for `wait`, `output` and `stop`.

        Raises
        ------
        OrderBuildError
            The section cannot be built for the dtypes of this run's arrays.
        OrderRunError
            An earlier run, which this one had to wait for, failed.
        TypeError, ValueError
            An argument cannot be used, or there is no such device.
        """
        grid = make_grid(workers)
        seconds = parse_timeout(timeout)
        number, lane = _parse_number(device, "device"), _parse_number(channel, "channel")
        own = inputs is None and outputs is None
        arguments = self._arguments if own else replace_arguments(self._arguments, inputs, outputs)
        other_types = None if own else self._other_programs(arguments)
        with self._lock:
            program, others = other_types or (self._program, self._verified)
            if graph is not None:
                return self._record(program, grid, number, graph, None if own else arguments)
            if self._separate_runs or not own:
                self._wait_for_others(arguments, own)
            placement = self._place(program, number) if own else program.place(arguments, number)
            if own:
                self._is_fetched = False  # before the run starts: an interrupt may come in between
            try:
                request = _Request(program, others, arguments, placement, grid, number, lane, seconds, own)
                run = self._submit(request)
            except BaseException:
                if not own:
                    placement.close()
                raise
            if not own:
                self._separate_runs.append((run, arguments))
                self._separate_ids.add(run.id)
            return run.id

    def wait(self, run_id: RunIds = None, timeout: float | None = None) -> None:
        """Wait for runs, without copying results: only `stop` and `output` guarantee that outputs are filled.

        Parameters
        ----------
        run_id
            What `run` returned, a list of that, or None for all runs.
        timeout
            Seconds to wait.

        Raises
        ------
        OrderRunError
            The run failed. So says every wait for it.
        WaitTimeoutError
            It takes longer than `timeout` seconds, or than its own.
        TypeError, ValueError
            `run` never returned this id.
        """
        self._runs.wait(self._runs.parse_ids(run_id), parse_timeout(timeout))

    def isbusy(self) -> bool:
        """Whether any run has not finished."""
        return self._runs.is_busy()

    def stop(self, run_id: RunIds = None, output: object = True, timeout: float | None = None) -> None:
        """Wait for runs, and copy the results to the outputs. The task can be run again afterwards.

        Parameters
        ----------
        run_id
            What `run` returned, a list of that, or None for all runs. Other runs continue. After the last
            run the accelerator's memory is freed.
        output
            False: the results are not copied until `output` or another `stop` does it. An array, or a list
            with one item for each output: results are copied there too.
        timeout
            Seconds to wait.

        Raises
        ------
        OrderRunError
            A run failed, and no `wait` has said so; the outputs hold whatever it left.
        WaitTimeoutError
            The runs take longer than `timeout` seconds, or than their own; they go on, and may be stopped
            again.
        TypeError, ValueError
            `run` never returned this id, or an argument cannot be used.
        """
        seconds = parse_timeout(timeout)
        ids = self._runs.parse_ids(run_id)
        flag = to_python_number(output)
        bring = flag if isinstance(flag, bool) else True
        targets = () if isinstance(flag, bool) else self._make_targets(ids, output)
        end = None if seconds is None else time.monotonic() + seconds
        error = None
        while True:
            left = None if end is None else max(0.0, end - time.monotonic())
            late = self._runs.finish(ids, left)
            error = error or late
            with self._lock:
                # another thread may have started one more
                if ids is None and not self._runs.is_empty():
                    continue
                self._drop_finished_runs()
                if bring:
                    try:
                        # the memory is given up with the last run
                        (self._release if self._runs.is_empty() else self._fetch)()
                        if targets:
                            copy_results(self._arguments, targets)
                    except VkDispatchError as failure:
                        error = error or failure
                break
        if error is not None:
            raise error

    def swap(self, kind: str | Sequence[str]) -> None:
        """Switch to another programming model for the runs that follow.

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
            `kind` names no model of the order, or not that of the class.
        """
        program = self._builder.build_chosen(self._choose_kind(kind))
        with self._lock:
            # there need not be such a device in the other model
            device = self._device if self._placement is None or program.model == self.model else 0
            if self._placement is not None:
                self._place(program, device)
            self._program = program
            if self._verifies:
                self._verified = self._builder.build_others(program)

    def race(self, *workers: Workers, repeats: int = 3, device: int = 0) -> dict[str, float]:
        """Time every section that can be built here, and switch to the fastest.

        A class of one model, such as `CppAccel`, stays with that. Each section runs on the given inputs and
        on copies of the outputs, which stay as they are.

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
        number, count = _parse_number(device, "device"), _parse_number(repeats, "repeats")
        if count == 0:
            raise ArgumentValueError("repeats: expected 1 or more, got 0")
        if grid.is_empty:
            raise ArgumentValueError(f"members, teams: nobody runs in {workers!r}; there is nothing to time")
        with self._lock:
            self._finish_runs()
            times = {}
            for program in (self._program, *self._builder.build_others(self._program)):
                there = number if program.devices() > number else 0
                times[program.model] = measure_best_time(program, self._arguments, grid, there, count)
            ranked = dict(sorted(times.items(), key=lambda item: item[1]))
            if self.name is None:
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

    def _find_builder(self, arguments: Sequence[Argument]) -> Builder:
        """Return the builder of sections for arguments of these types."""
        key = tuple((each.parameter.code, each.parameter.ndim) for each in arguments)
        found = self._builders.get(key)
        if found is None:
            parameters = [each.parameter for each in arguments]
            found = self._builders[key] = Builder(self.order, parameters, self._compile, self._debugging)
        return found

    def _other_programs(self, arguments: Sequence[Argument]) -> tuple[Program, Sequence[Program]] | None:
        """Return the section that runs and those that it is compared with, if types are others than ours."""
        builder = self._find_builder(arguments)
        if builder is self._builder:
            return None
        program = builder.build_chosen(self.model)
        return program, builder.build_others(program) if self._verifies else ()

    def _choose_kind(self, kind: object) -> object:
        """Return `kind`, or what stands for it in a class of one model. Raises ValueError for another one."""
        if self.name is None:
            return kind
        if kind is None or kind == self.name or (isinstance(kind, (list, tuple)) and self.name in kind):
            return self.name
        raise ArgumentValueError(
            f"kind: {type(self).__name__} is of the model {self.name}, got {kind!r}; Accel takes them all"
        )

    def _submit(self, request: "_Request") -> Run:
        """Submit a run, and return it."""
        program, placement, grid = request.program, request.placement, request.grid
        device, channel = request.device, request.channel

        def make(run_id: int) -> None:
            if not grid.is_empty:
                program.run(placement, grid, run_id, device, channel)

        def make_and_verify(run_id: int) -> None:
            found = [
                (other.model, run_on_copies(other, request.arguments, grid, run_id))
                for other in request.others
            ]
            make(run_id)
            self._verify(program.model, request.arguments, placement, found)

        work: Callable[[int], None] = make
        run_id: int | None = None
        if self._verifies:
            work = make_and_verify
        elif isinstance(program, EngineProgram):
            # queued on the device now, before anything that this thread queues next
            run_id = self._runs.reserve()
            work = program.start(placement, grid, run_id)
        if not request.own:
            work = _wrap_results(work, request.arguments, placement)
        if self._debugging is not None:
            how = f"{program.model}, {grid}, device {device}, channel {channel}"
            work = _wrap_debugging(work, self._debugging, how)
        # verified runs share one channel: their outputs are compared in between
        return self._runs.submit(work, 0 if self._verifies else channel, request.timeout, run_id)

    def _verify(
        self,
        model: str,
        arguments: Sequence[Argument],
        placement: Placement,
        found: Sequence[tuple[str, list[Array]]],
    ) -> None:
        """Compare the outputs with those of other sections. Raises OrderMismatchError."""
        placement.fetch()
        ours = [argument.read() for argument in arguments if argument.parameter.output]
        errors = {
            other: compare(arguments, (model, other), ours, theirs, self._tolerance)
            for other, theirs in found
        }
        self.verification = Verification((model, *errors), errors, self.attempts)

    def _record(
        self,
        program: Program,
        grid: Grid,
        device: int,
        graph: CommandGraph,
        arguments: Sequence[Argument] | None,
    ) -> int:
        """Record a run, of other arguments if there are any, and return its id."""
        if not isinstance(program, EngineProgram):
            raise ArgumentValueError(
                f"graph: the model {program.model} cannot be recorded; glsl and vkdispatch can, see kind="
            )
        if self._verifies:
            raise ArgumentValueError("graph: verify compares runs, and recording makes none; leave one out")
        run_id = self._runs.reserve()
        placement = self._place(program, device) if arguments is None else program.place(arguments, device)
        program.record(placement, grid, run_id, graph)
        return run_id

    def _wait_for_others(self, arguments: Sequence[Argument], own: bool) -> None:
        """Wait for all runs if one with other arrays writes to what these are in, or the other way round."""
        self._drop_finished_runs()
        groups = [theirs for _, theirs in self._separate_runs]
        if not own and self._placement is not None:
            groups.append(self._arguments)
        if any(do_overlap(arguments, theirs) for theirs in groups):
            self._finish_runs()

    def _drop_finished_runs(self) -> None:
        """Drop finished runs and their arrays."""
        self._separate_runs = [(run, theirs) for run, theirs in self._separate_runs if not run.is_over]

    def _place(self, program: Program, device: int) -> Placement:
        """Return a placement of the arguments that this program can use."""
        if self._placement is not None and not (
            device == self._device and program.serves(self._placement, device)
        ):
            self._finish_runs()
        if self._placement is None:
            for argument in self._arguments:
                argument.load_items()
            self._placement = program.place(self._arguments, device)
            self._device = device
        return self._placement

    def _make_targets(self, ids: Sequence[int] | None, given: object) -> Sequence[Argument]:
        """Return where results are copied to. Raises TypeError or ValueError if that cannot be done."""
        apart = [number for number in ids or () if number in self._separate_ids]
        if apart:
            raise ArgumentValueError(
                f"output: run {apart[0]} was given outputs of its own, and its results are there"
            )
        return make_targets(self._arguments, given)

    def _call_output(self, run_id: object, output: object, force: object, timeout: object) -> object:
        """Wait for runs, copy results back, and return the outputs: `output` as a method."""
        again, seconds = _parse_flag(force, "force"), parse_timeout(timeout)
        ids = self._runs.parse_ids(run_id)
        targets = () if output is None else self._make_targets(ids, output)
        self._runs.wait(ids, seconds)
        with self._lock:
            self._fetch(again)
            if targets:
                copy_results(self._arguments, targets)
        apart = ids is not None and self._separate_ids.issuperset(ids)
        return None if apart else _list_outputs(self._arguments)

    def _finish_and_fetch(self) -> None:
        """Wait for all runs, and copy their results back: `output` as an attribute."""
        with self._lock:
            error = self._runs.finish(None, None)
            if error is None:
                self._fetch()
        if error is not None:
            raise error

    def _fetch(self, again: bool = False) -> None:
        """Copy outputs back if they have changed."""
        if self._placement is None or (self._is_fetched and not again):
            return
        still = self._runs.is_busy()
        self._placement.fetch()
        for argument in self._arguments:
            argument.store_items()
        self._is_fetched = not still

    def _finish_runs(self) -> None:
        """Wait for all runs, and copy outputs back. Raises the error of a run."""
        error = self._runs.finish(None, None)
        try:
            self._release()
        except VkDispatchError as failure:
            error = error or failure
        if error is not None:
            raise error

    def _release(self) -> None:
        """Copy outputs back, and free the accelerator's memory."""
        placement = self._placement
        if placement is None:
            return
        try:
            self._fetch()
        except KeyboardInterrupt:
            raise  # the outputs are still in place: the next call copies them
        except BaseException:
            self._placement = None
            placement.close()
            raise
        self._placement = None
        placement.close()


def _list_outputs(arguments: Sequence[Argument]) -> object:
    """Return the output that was given, or a tuple of the outputs."""
    values = tuple(each.given for each in arguments if each.parameter.output)
    return values[0] if len(values) == 1 else values


def _wrap_results(
    work: Callable[[int], None], arguments: Sequence[Argument], placement: Placement
) -> Callable[[int], None]:
    """Wrap work so that it copies its results back and frees its memory."""

    def complete(run_id: int) -> None:
        try:
            work(run_id)
            placement.fetch()
            for argument in arguments:
                argument.store_items()
        finally:
            placement.close()

    return complete


def _wrap_debugging(work: Callable[[int], None], debugging: Debugging, how: str) -> Callable[[int], None]:
    """Return work that tells when it begins and ends."""

    def tell(run_id: int) -> None:
        debugging.say(f"run {run_id} begins: {how}")
        start = time.perf_counter()
        try:
            work(run_id)
        except BaseException as error:
            debugging.say(f"run {run_id} failed: {error}")
            raise
        debugging.say(f"run {run_id} is over, after {(time.perf_counter() - start) * 1e3:.3f} ms")

    return tell


def _parse_flag(given: object, what: str) -> bool:
    flag = to_python_number(given)
    if not isinstance(flag, bool):
        raise ArgumentTypeError(f"{what}: expected True or False, got {given!r}")
    return flag


def _parse_number(given: object, what: str) -> int:
    number = to_python_number(given)
    if isinstance(number, bool) or not isinstance(number, int):
        raise ArgumentTypeError(f"{what}: expected an int, got {given!r}")
    if not 0 <= number < 2**31:
        raise ArgumentValueError(f"{what}: expected a number from 0 on, got {given!r}")
    return number


def _parse_tolerance(given: object) -> float | None:
    """Return the tolerance that `verify` asks for; None: by dtype, `_OFF`: nothing is verified."""
    number = to_python_number(given)
    if isinstance(number, bool):
        return None if number else _OFF
    if not isinstance(number, (int, float)):
        raise ArgumentTypeError(f"verify: expected True, False or an error that is allowed, got {given!r}")
    if not 0 <= number <= sys.float_info.max:
        raise ArgumentValueError(f"verify: expected an error that is allowed, from 0 on, got {given!r}")
    return float(number)
