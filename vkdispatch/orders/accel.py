"""Accel: an order with its arguments, and its runs."""

import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, ClassVar

from vkdispatch.base.errors import ArgumentValueError, VkDispatchError
from vkdispatch.base.process import log_info
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.orders import arguments, sections
from vkdispatch.orders.arguments import Argument, Grid, Workers
from vkdispatch.orders.errors import Attempt, Debugging
from vkdispatch.orders.models import EngineProgram, Program
from vkdispatch.orders.order import parse_commands
from vkdispatch.orders.runs import Output, PlacedArguments, Run, Runs

# ---- Accel: an order with its arguments, and the section that runs ---------------------------------------


RunIds = int | Sequence[int] | None

_REGION_OPTIONS = ("accel", "alloc", "copyin", "copyinout", "copyout", "lang", "vendor")


class Accel:
    """A task for an accelerator: inputs, an order, outputs.

    Parameters
    ----------
    args
        Inputs, then one `Order`, then outputs. An input is an array or anything that `numpy.asarray`
        converts; an output is a writable array or a (nested) list of numbers, which is filled in place.
        Either may be a `vd.Buffer`. The form of accelpy before 0.3 is taken too: `Accel(text, inputs,
        outputs)` with the text or path of an order, and a value or a tuple for each side; `wait` then copies
        the results.
    kind
        The name of a programming model, or a list of names in order of preference. None tries every section
        of the order, accelerators first (`vkdispatch.orders.order.MODELS`), until one can be built.
    compile
        A compiler command, or a list of them, that replaces the search for compilers. A command begins with a
        program or with a vendor: gnu, cray, amd, ibm, nvidia, pgi or intel. A vendor stands for its compiler
        of the section's language.
    debug
        True: print builds and runs to standard error, write generated sources to the folder
        `_accelpy_debug_`, and compile them with -O0 -g.
    verify
        True: every section that can be built makes each run. If a result differs from that of the chosen
        section by more than rounding, waiting for the run raises OrderMismatchError. A number: the tolerance,
        relative to an output's largest value. The other sections run on copies of the outputs.

    Attributes
    ----------
    model
        The name of the model that runs.
    attempts
        The sections that could not be built, and why.
    verification
        The result of `verify` for the latest run, or None.

    Raises
    ------
    OrderBuildError
        No section can be built. The message states the reason for each.
    TypeError, ValueError
        The arguments do not match the order, or an argument is invalid.

    Notes
    -----
    A run reads the inputs if they are not yet at the accelerator. Do not change them between `run` and
    `stop`.
    """

    name: ClassVar[str | None] = None
    """The model of a class with a single model, such as `CppAccel`."""

    make_region: ClassVar[Callable[..., object]]
    """Makes the `Region` of accelpy 0.6, where the data came first: `Accel(copyin=(x,), copyout=(y,))`."""

    def __new__(cls, *args: object, **options: Any) -> Any:
        """Return an Accel, or a `Region` if only lists of data are passed."""
        if args or options.keys().isdisjoint(_REGION_OPTIONS):
            return super().__new__(cls)
        return cls.make_region(**options)

    def __init__(
        self,
        *args: object,
        kind: str | Sequence[str] | None = None,
        compile: str | Sequence[str] | None = None,
        debug: bool = False,
        verify: bool | float = False,
    ) -> None:
        order, inputs, outputs = arguments.split_arguments(args)
        self._is_filled_by_wait = arguments.is_text_first(args)
        self.order = order
        self._arguments = arguments.make_arguments(order, inputs, outputs)
        self._debugging = Debugging(order.label) if arguments.parse_flag(debug, "debug") else None
        commands = parse_commands(compile)
        self._tolerance = arguments.parse_tolerance(verify)
        is_verified = self._tolerance != arguments.UNVERIFIED
        self._sections = sections.Sections(order, commands, self._debugging, self.name, is_verified)
        self._sections.build(self._arguments, kind, type(self).__name__)
        self.verification: sections.Verification | None = None
        self._runs = Runs()
        self._placed = PlacedArguments(self._arguments, self._runs)
        # Unfinished runs with arrays of their own, and the ids of all such runs.
        self._separate_runs: list[tuple[Run, Sequence[Argument]]] = []
        self._separate_ids: set[int] = set()
        self._lock = threading.RLock()
        log_info(f"{order.label}: {self.model}, by {self._program.description}")
        if self._debugging is not None:
            self._debugging.print(f"{self.model} is chosen, by {self._program.description}")

    @property
    def model(self) -> str:
        """The name of the programming model that runs."""
        return self._program.model

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The sections that could not be built, in order."""
        return self._sections.attempts

    @property
    def _program(self) -> Program:
        return self._sections.program

    @property
    def output(self) -> Any:
        """The output, or a tuple of the outputs; also a method that copies results back.

        The attribute stands for the array, list or buffer that was passed, or for a tuple of them. Using it
        waits for all runs and copies their results back. `numpy.asarray` returns the output array itself.

        The method `output(run_id=0, output=None, force=False, timeout=None)` waits for one run, copies
        results back while other runs continue, and returns the output or the tuple. It returns None for a
        run with other arrays, which copies its results itself.

        Parameters
        ----------
        run_id
            An id returned by `run`, a list of ids, or None for all runs.
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
            The wait takes longer than `timeout` seconds or than the run's own timeout.
        TypeError, ValueError
            `run` did not return this id, or an argument is invalid.
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
            Members, teams and assignments, each an int or a tuple of up to three ints. The default is 1.
        device
            The number of the accelerator among those of the model. A run on another device waits for the
            earlier runs and moves the data there.
        channel
            Runs of one channel are made in order. Runs of different channels are made concurrently.
        timeout
            Seconds from now, after which waiting for this run raises WaitTimeoutError.
        inputs, outputs
            Other arrays for this run: a list or tuple with one item for each input or output. None: those of
            the Accel. The run copies its results itself, so `wait` is enough. The section is compiled again
            for other dtypes or numbers of dimensions. A run that shares an array with earlier runs waits for
            all earlier runs if one of them writes to it.
        graph
            Record the run to this graph instead of making it; each submission of the graph makes the run.
            Only for the models `glsl` and `vkdispatch` and for `vd.Buffer` arguments. Scalars keep their
            current values, and there is nothing to wait for.

        Returns
        -------
        The id of the run, for `wait`, `output` and `stop`.

        Raises
        ------
        OrderBuildError
            The section cannot be built for the dtypes of this run's arrays.
        OrderRunError
            An earlier run that this one waits for failed.
        TypeError, ValueError
            An argument is invalid, or the device does not exist.
        """
        grid = arguments.make_grid(workers)
        seconds = arguments.parse_timeout(timeout)
        number, lane = arguments.parse_number(device, "device"), arguments.parse_number(channel, "channel")
        is_own = inputs is None and outputs is None
        operands, other_sections = self._arguments, None
        if not is_own:
            operands = arguments.replace_arguments(self._arguments, inputs, outputs)
            other_sections = self._sections.build_for(operands)
        with self._lock:
            program, others = other_sections or (self._program, self._sections.others)
            if graph is not None:
                return self._record(program, grid, number, graph, None if is_own else operands)
            if self._separate_runs or not is_own:
                self._wait_for_overlapping(operands, is_own)
            placed = self._placed
            placement = placed.place(program, number) if is_own else program.place(operands, number)
            if is_own:
                placed.is_fetched = False  # before the run starts: an interrupt may come in between
            try:
                run = self._submit(
                    sections.Request(
                        program, others, operands, placement, grid, number, lane, seconds, is_own
                    )
                )
            except BaseException:
                if not is_own:
                    placement.close()
                raise
            if not is_own:
                self._separate_runs.append((run, operands))
                self._separate_ids.add(run.id)
            return run.id

    def wait(self, run_id: RunIds = None, timeout: float | None = None) -> None:
        """Wait for runs, without copying results. Only `stop` and `output` guarantee that outputs are filled.

        Parameters
        ----------
        run_id
            An id returned by `run`, a list of ids, or None for all runs.
        timeout
            Seconds to wait.

        Raises
        ------
        OrderRunError
            The run failed. Every wait for it raises this error.
        WaitTimeoutError
            The wait takes longer than `timeout` seconds or than the run's own timeout.
        TypeError, ValueError
            `run` did not return this id.
        """
        if self._is_filled_by_wait:
            self.stop(run_id, timeout=timeout)
        else:
            self._runs.wait(self._runs.parse_ids(run_id), arguments.parse_timeout(timeout))

    def isbusy(self) -> bool:
        """Whether any run has not finished."""
        return self._runs.is_busy()

    def stop(self, run_id: RunIds = None, output: object = True, timeout: float | None = None) -> None:
        """Wait for runs, and copy the results to the outputs. The task can be run again afterwards.

        Parameters
        ----------
        run_id
            An id returned by `run`, a list of ids, or None for all runs. Other runs continue. The last run
            to stop frees the accelerator's memory.
        output
            False: `output` or another `stop` copies the results later. An array, or a list with one item for
            each output: results are copied there too.
        timeout
            Seconds to wait.

        Raises
        ------
        OrderRunError
            A run failed, and no `wait` has raised its error. The contents of the outputs are undefined.
        WaitTimeoutError
            The wait takes longer than `timeout` seconds or than a run's own timeout. The runs continue, and
            can be stopped again.
        TypeError, ValueError
            `run` did not return this id, or an argument is invalid.
        """
        seconds = arguments.parse_timeout(timeout)
        ids = self._runs.parse_ids(run_id)
        flag = arguments.to_python_number(output)
        is_fetching = flag if isinstance(flag, bool) else True
        targets = () if isinstance(flag, bool) else self._make_targets(ids, output)
        end = None if seconds is None else time.monotonic() + seconds
        error = None
        while True:
            left = None if end is None else max(0.0, end - time.monotonic())
            failure = self._runs.finish(ids, left)
            error = error or failure
            with self._lock:
                if ids is None and not self._runs.is_empty():
                    continue  # another thread has started a run
                self._drop_finished_runs()
                if is_fetching:
                    try:
                        if self._runs.is_empty():
                            self._placed.release()
                        else:
                            self._placed.fetch()
                        if targets:
                            arguments.copy_results(self._arguments, targets)
                    except VkDispatchError as failed_copy:
                        error = error or failed_copy
                break
        if error is not None:
            raise error

    def swap(self, kind: str | Sequence[str]) -> None:
        """Switch to another programming model for the runs that follow.

        The section is built while runs continue. If it needs the arguments elsewhere, the call waits for the
        earlier runs and moves the data; between two models of the host it stays in place.

        Parameters
        ----------
        kind
            A model, or a list of models in order of preference.

        Raises
        ------
        OrderBuildError
            The section cannot be built. The task continues with the previous one.
        OrderRunError
            An earlier run failed.
        TypeError, ValueError
            `kind` is not a model of the order or of the class.
        """
        program = self._sections.build_chosen(self._sections.parse_kind(kind, type(self).__name__))
        with self._lock:
            placed = self._placed
            if placed.placement is not None:
                # Another model may not have a device of this number.
                placed.place(program, placed.device if program.model == self.model else 0)
            self._sections.choose(program)

    def race(self, *workers: Workers, repeats: int = 3, device: int = 0) -> dict[str, float]:
        """Time every section that can be built, and switch to the fastest.

        A class with a single model, such as `CppAccel`, keeps its model. Each section runs on the inputs and
        on copies of the outputs, which do not change.

        Parameters
        ----------
        workers
            As in `run`.
        repeats
            The number of timed runs of each section. The shortest time counts.
        device
            The number of the accelerator. Models without such a device use their first one.

        Returns
        -------
        The seconds of a run by model, fastest first, without copies to or from the accelerator. `attempts`
        lists the sections that could not be built.

        Raises
        ------
        OrderRunError
            A section fails when it runs.
        TypeError, ValueError
            An argument is invalid.
        """
        grid = arguments.make_grid(workers)
        number, count = arguments.parse_number(device, "device"), arguments.parse_number(repeats, "repeats")
        if count == 0:
            raise ArgumentValueError("repeats: expected 1 or more, got 0")
        if grid.is_empty:
            raise ArgumentValueError(
                f"members, teams: {workers!r} has no workers, so there is nothing to time"
            )
        with self._lock:
            self._placed.finish_runs()
            times = {}
            for program in (self._program, *self._sections.build_others()):
                known = number if program.devices() > number else 0
                times[program.model] = sections.measure_best_time(
                    program, self._arguments, grid, known, count
                )
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
            # An error of the block has precedence.
            if error is None:
                raise

    def __repr__(self) -> str:
        state = "busy" if self.isbusy() else "idle"
        return f"<Accel of {self.order!r}: {self.model}, {state}>"

    def _submit(self, request: sections.Request) -> Run:
        program, placement, grid = request.program, request.placement, request.grid
        is_verified = self._sections.is_verified
        run_id: int | None = None
        if is_verified:
            work = sections.make_verified_work(request, self._tolerance, self._set_verification)
        elif isinstance(program, EngineProgram):
            # Queued on the device now, before anything that this thread queues next.
            run_id = self._runs.reserve()
            work = program.start(placement, grid, run_id)
        else:
            work = sections.make_work(request)
        if not request.is_own:
            work = sections.add_results(work, request.arguments, placement)
        if self._debugging is not None:
            where = f"{program.model}, {grid}, device {request.device}, channel {request.channel}"
            work = sections.add_debugging(work, self._debugging, where)
        # Verified runs share one channel: a run compares its outputs before the next one changes them.
        return self._runs.submit(work, 0 if is_verified else request.channel, request.timeout, run_id)

    def _set_verification(self, model: str, errors: dict[str, float]) -> None:
        self.verification = sections.Verification((model, *errors), errors, self.attempts)

    def _record(
        self,
        program: Program,
        grid: Grid,
        device: int,
        graph: CommandGraph,
        arguments: Sequence[Argument] | None,
    ) -> int:
        """Record a run to a graph, with other arguments if there are any, and return its id."""
        if not isinstance(program, EngineProgram):
            raise ArgumentValueError(
                f"graph: the model {program.model} cannot be recorded; glsl and vkdispatch can, see kind="
            )
        if self._sections.is_verified:
            raise ArgumentValueError(
                "graph: verify compares runs, but recording makes none; omit one of them"
            )
        run_id = self._runs.reserve()
        if arguments is None:
            placement = self._placed.place(program, device)
        else:
            placement = program.place(arguments, device)
        program.record(placement, grid, run_id, graph)
        return run_id

    def _wait_for_overlapping(self, operands: Sequence[Argument], is_own: bool) -> None:
        """Wait for all runs if one shares memory with these arguments and either of the two writes to it."""
        self._drop_finished_runs()
        groups = [others for _, others in self._separate_runs]
        if not is_own and self._placed.placement is not None:
            groups.append(self._arguments)
        if any(arguments.do_overlap(operands, others) for others in groups):
            self._placed.finish_runs()

    def _drop_finished_runs(self) -> None:
        self._separate_runs = [(run, arrays) for run, arrays in self._separate_runs if not run.is_over]

    def _make_targets(self, ids: Sequence[int] | None, value: object) -> Sequence[Argument]:
        """Return the targets that results are copied to. Raises TypeError or ValueError for invalid ones."""
        separate = [number for number in ids or () if number in self._separate_ids]
        if separate:
            raise ArgumentValueError(
                f"output: run {separate[0]} has outputs of its own, which hold its results"
            )
        return arguments.make_targets(self._arguments, value)

    def _call_output(self, run_id: object, output: object, force: object, timeout: object) -> object:
        """Wait for runs, copy results back, and return the outputs: `output` as a method."""
        is_forced, seconds = arguments.parse_flag(force, "force"), arguments.parse_timeout(timeout)
        ids = self._runs.parse_ids(run_id)
        targets = () if output is None else self._make_targets(ids, output)
        self._runs.wait(ids, seconds)
        with self._lock:
            self._placed.fetch(is_forced)
            if targets:
                arguments.copy_results(self._arguments, targets)
        is_separate = ids is not None and self._separate_ids.issuperset(ids)
        return None if is_separate else _list_outputs(self._arguments)

    def _finish_and_fetch(self) -> None:
        """Wait for all runs, and copy their results back: `output` as an attribute."""
        with self._lock:
            error = self._runs.finish(None, None)
            if error is None:
                self._placed.fetch()
        if error is not None:
            raise error


def _list_outputs(arguments: Sequence[Argument]) -> object:
    """Return the output as the caller passed it, or a tuple of the outputs."""
    values = tuple(argument.original for argument in arguments if argument.parameter.is_output)
    return values[0] if len(values) == 1 else values


# ---- The classes of accelpy, each for one programming model ----------------------------------------------


AccelBase = Accel
"""The base class of all of them."""


class FortranAccel(Accel):
    """`Accel` of the model `fortran`."""

    name: ClassVar[str | None] = "fortran"


class OpenaccFortranAccel(Accel):
    """`Accel` of the model `openacc_fortran`."""

    name: ClassVar[str | None] = "openacc_fortran"


class OpenmpFortranAccel(Accel):
    """`Accel` of the model `openmp_fortran`."""

    name: ClassVar[str | None] = "openmp_fortran"


class CppAccel(Accel):
    """`Accel` of the model `cpp`."""

    name: ClassVar[str | None] = "cpp"


class HipAccel(Accel):
    """`Accel` of the model `hip`."""

    name: ClassVar[str | None] = "hip"


class CudaAccel(Accel):
    """`Accel` of the model `cuda`."""

    name: ClassVar[str | None] = "cuda"


class OpenaccCppAccel(Accel):
    """`Accel` of the model `openacc_cpp`."""

    name: ClassVar[str | None] = "openacc_cpp"


class OpenmpCppAccel(Accel):
    """`Accel` of the model `openmp_cpp`."""

    name: ClassVar[str | None] = "openmp_cpp"
