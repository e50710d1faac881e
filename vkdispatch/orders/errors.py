"""The errors of orders, except for invalid arguments."""

from vkdispatch.base.errors import CheckError, VkDispatchError
from vkdispatch.base.record import record


@record
class Attempt:
    """A failed attempt to build a section.

    Attributes
    ----------
    model
        The programming model.
    line
        The line of the section's header in the order's text.
    message
        Why it could not be built, with the compiler's messages.
    """

    model: str
    line: int
    message: str


class OrderBuildError(VkDispatchError, RuntimeError):
    """None of the requested sections of an order could be built on this machine.

    Attributes
    ----------
    attempts
        An `Attempt` for each section and model, in order.
    """

    def __init__(self, message: str, attempts: tuple[Attempt, ...] = ()) -> None:
        super().__init__(message)
        self.attempts = attempts


class OrderRunError(VkDispatchError, RuntimeError):
    """The native code of an order, or its device, reported a failure."""


class OrderMismatchError(CheckError, AssertionError):
    """Two sections of an order gave different results.

    Attributes
    ----------
    models
        The names of the two models that were compared.
    argument
        The name of the output.
    index
        The index of the largest error.
    """

    def __init__(self, message: str, models: tuple[str, str], argument: str, index: tuple[int, ...]) -> None:
        super().__init__(message)
        self.models = models
        self.argument = argument
        self.index = index
