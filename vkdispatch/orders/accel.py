"""Accel: an order, its arguments and the section that is run."""

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, VkDispatchError
from vkdispatch.base.logging import log_info
from vkdispatch.orders.arguments import make_arguments, split
from vkdispatch.orders.building import Builder
from vkdispatch.orders.errors import Attempt
from vkdispatch.orders.grid import Workers, make_grid
from vkdispatch.orders.models import Placement, Program
from vkdispatch.orders.order import checked_compile
from vkdispatch.orders.runs import Runs, checked_timeout


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

    Attributes
    ----------
    model
        The name of the model that runs.
    attempts
        What was tried and could not be built.

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
    ) -> None:
        order, inputs, outputs = split(args)
        self.order = order
        self._arguments = make_arguments(order, inputs, outputs)
        self._builder = Builder(order, [item.parameter for item in self._arguments], checked_compile(compile))
        self._program: Program = self._builder.first(kind)
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

    def run(self, *workers: Workers, device: int = 0, channel: int = 0, timeout: float | None = None) -> int:
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
            placement = self._placed(program, number)

            def work(run_id: int) -> None:
                if not grid.empty:
                    program.run(placement, grid, run_id, number, lane)

            return self._runs.submit(work, lane, seconds)

    def wait(self, run_id: int, timeout: float | None = None) -> None:
        """Wait for one run. Outputs are certain to be in their arrays after `stop` only.

        Raises
        ------
        OrderRunError
            The run failed.
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
            A run failed; the outputs hold whatever it left.
        WaitTimeoutError
            The runs take longer than `timeout` seconds; they go on, and may be stopped again.
        """
        seconds = checked_timeout(timeout)
        error = self._runs.wait_all(seconds)
        with self._lock:
            try:
                self._leave()
            except VkDispatchError as late:
                error = error or late
        if error is not None:
            raise error

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

    def _placed(self, program: Program, device: int) -> Placement:
        """Return the arguments where this program can use them."""
        if self._placement is not None and not (
            device == self._device and program.serves(self._placement, device)
        ):
            error = self._runs.wait_all(None)
            if error is not None:
                raise error
            self._leave()
        if self._placement is None:
            self._placement = program.place(self._arguments, device)
            self._device = device
        return self._placement

    def _leave(self) -> None:
        """Bring outputs back, and give up the accelerator's memory."""
        placement, self._placement = self._placement, None
        if placement is not None:
            try:
                placement.fetch()
            finally:
                placement.close()


def _checked_number(given: object, what: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int):
        raise ArgumentTypeError(f"{what}: expected an int, got {given!r}")
    if not 0 <= given < 2**31:
        raise ArgumentValueError(f"{what}: expected a number from 0 on, got {given!r}")
    return given
