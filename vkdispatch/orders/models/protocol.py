"""What a programming model can do: protocols; `models/__init__.py` is the table of models."""

from collections.abc import Sequence
from typing import Protocol

from vkdispatch.base.record import record
from vkdispatch.orders.arguments import Argument, Parameter
from vkdispatch.orders.debugging import Debugging
from vkdispatch.orders.grid import Grid
from vkdispatch.orders.order import Order, Section


@record
class Task:
    """What a model builds: one section for arguments of these types.

    Attributes
    ----------
    order
        The order.
    section
        The section.
    parameters
        The arguments, inputs first.
    compile
        Compiler commands in place of the search, or None.
    debugging
        Who is told what is done, or None.
    """

    order: Order
    section: Section
    parameters: tuple[Parameter, ...]
    compile: tuple[str, ...] | None
    debugging: Debugging | None = None


class Placement(Protocol):
    """The arguments where a program can reach them."""

    def fetch(self) -> None:
        """Bring the outputs to the caller's arrays. No run may be going on."""

    def close(self) -> None:
        """Give back what memory was taken. No run may be going on."""


class Program(Protocol):
    """A section that is built, for arguments of one kind."""

    @property
    def model(self) -> str:
        """The name of its model."""

    @property
    def description(self) -> str:
        """What built it, in words."""

    def devices(self) -> int:
        """How many devices it can run on."""

    def place(self, arguments: Sequence[Argument], device: int) -> Placement:
        """Copy arguments to where the program can reach them, if they are not there already.

        Raises
        ------
        ValueError
            There is no such device.
        """

    def serves(self, placement: Placement, device: int) -> bool:
        """Whether it can use what another program, or it itself, has placed."""

    def run(self, placement: Placement, grid: Grid, run_id: int, device: int, channel: int) -> None:
        """Run the body, and return when it has ended; called in a thread of the channel.

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
        """The options of sections that it knows, beside `enable` and `compile`."""

    def build(self, task: Task) -> Program:
        """Build a section.

        Raises
        ------
        BuildFailure
            This machine cannot: the message says why, with what compilers said, by the order's lines.
        """
