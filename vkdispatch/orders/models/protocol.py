"""The protocols of programming models. `models/__init__.py` has the table of models."""

from collections.abc import Sequence
from typing import Protocol

from vkdispatch.base.record import record
from vkdispatch.orders.arguments import Argument, Grid, Parameter
from vkdispatch.orders.errors import Debugging
from vkdispatch.orders.order import Order, Section


@record
class Task:
    """A section to build for arguments of given types.

    Attributes
    ----------
    order
        The order.
    section
        The section.
    parameters
        The arguments, inputs first.
    compile
        Compiler commands that replace the search, or None.
    debugging
        Where `debug=True` prints and writes, or None.
    """

    order: Order
    section: Section
    parameters: tuple[Parameter, ...]
    compile: tuple[str, ...] | None
    debugging: Debugging | None = None


class Placement(Protocol):
    """The arguments in memory that a program can access."""

    def fetch(self) -> None:
        """Copy the outputs to the caller's arrays. No run may be in progress."""

    def close(self) -> None:
        """Free the memory. No run may be in progress."""


class Program(Protocol):
    """A section built for arguments of given types."""

    @property
    def model(self) -> str:
        """The name of its model."""

    @property
    def description(self) -> str:
        """The compiler that built it."""

    def devices(self) -> int:
        """Return the number of devices that it can run on."""

    def place(self, arguments: Sequence[Argument], device: int) -> Placement:
        """Copy arguments to memory that the program can access, unless they are in such memory.

        Raises
        ------
        ValueError
            The device does not exist.
        """

    def serves(self, placement: Placement, device: int) -> bool:
        """Whether it can use a placement, possibly of another program."""

    def run(self, placement: Placement, grid: Grid, run_id: int, device: int, channel: int) -> None:
        """Run the body, and return when it has ended. Called in the thread of the channel.

        Raises
        ------
        OrderRunError
            The native code reports a failure.
        """


class Model(Protocol):
    """A programming model."""

    @property
    def name(self) -> str:
        """Its name in section headers."""

    @property
    def options(self) -> frozenset[str]:
        """The options of its sections, except `enable` and `compile`."""

    def build(self, task: Task) -> Program:
        """Build a section.

        Raises
        ------
        BuildFailure
            The section cannot be built. The message has the output of compilers, with the order's lines.
        """
