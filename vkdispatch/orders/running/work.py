"""The work of a run: what the thread of its channel does."""

import time
from collections.abc import Callable, Sequence

from vkdispatch.base.record import record
from vkdispatch.orders.arguments.argument import Argument, Array
from vkdispatch.orders.arguments.grid import Grid
from vkdispatch.orders.debugging import Debugging
from vkdispatch.orders.models import Placement, Program
from vkdispatch.orders.running.comparison import compare, run_on_copies

Work = Callable[[int], None]  # takes the id of the run


@record(eq=False)
class Request:
    """A call of `Accel.run` with its arguments parsed.

    Attributes
    ----------
    program, others
        The section that runs, and the sections that it is compared with.
    arguments, placement
        The arguments, and where the section finds them.
    grid, device, channel, timeout
        As in `Accel.run`.
    is_own
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
    is_own: bool


def make_work(request: Request) -> Work:
    """Return work that runs a section."""
    program, placement, grid = request.program, request.placement, request.grid
    device, channel = request.device, request.channel

    def work(run_id: int) -> None:
        if not grid.is_empty:
            program.run(placement, grid, run_id, device, channel)

    return work


def make_verified_work(
    request: Request, tolerance: float | None, report: Callable[[str, dict[str, float]], None]
) -> Work:
    """Return work that runs a section and compares its outputs with those of the others.

    `report` is called with the model of the section, and the error of each other section by model. The work
    raises OrderMismatchError.
    """
    run = make_work(request)
    model, arguments = request.program.model, request.arguments

    def work(run_id: int) -> None:
        results: list[tuple[str, list[Array]]] = [
            (other.model, run_on_copies(other, arguments, request.grid, run_id)) for other in request.others
        ]
        run(run_id)
        request.placement.fetch()
        outputs = [argument.read() for argument in arguments if argument.parameter.is_output]
        report(
            model,
            {
                other: compare(arguments, (model, other), outputs, result, tolerance)
                for other, result in results
            },
        )

    return work


def add_results(work: Work, arguments: Sequence[Argument], placement: Placement) -> Work:
    """Return work that also copies its results back and frees its memory."""

    def complete(run_id: int) -> None:
        try:
            work(run_id)
            placement.fetch()
            for argument in arguments:
                argument.store_items()
        finally:
            placement.close()

    return complete


def add_debugging(work: Work, debugging: Debugging, description: str) -> Work:
    """Return work that also prints when it begins and ends."""

    def report(run_id: int) -> None:
        debugging.print(f"run {run_id} begins: {description}")
        start = time.perf_counter()
        try:
            work(run_id)
        except BaseException as error:
            debugging.print(f"run {run_id} failed: {error}")
            raise
        debugging.print(f"run {run_id} ended after {(time.perf_counter() - start) * 1e3:.3f} ms")

    return report
