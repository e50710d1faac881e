"""The arguments of an Accel at the accelerator."""

from collections.abc import Sequence

from vkdispatch.base.errors import VkDispatchError
from vkdispatch.orders.arguments.argument import Argument
from vkdispatch.orders.models import Placement, Program
from vkdispatch.orders.running.runs import Runs


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
