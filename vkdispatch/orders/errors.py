"""The errors of orders, except for invalid arguments, and the messages and files of `debug=True`."""

import os
import sys
import threading
from collections.abc import Sequence

from vkdispatch.base.errors import CheckError, VkDispatchError
from vkdispatch.base.record import record

# ---- The errors of orders, except for invalid arguments --------------------------------------------------


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

    def describe(self) -> str:
        """Return a line for it in a message."""
        return f"{self.model} (section of line {self.line}): {self.message}"


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


# ---- The messages and files of `debug=True` --------------------------------------------------------------


FOLDER = "_accelpy_debug_"
"""The folder for generated sources, in the current one. accelpy uses the same name."""


class Debugging:
    """Prints builds and runs of an order to standard error, and writes the compiled sources to a folder."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._lock = threading.Lock()

    def print(self, text: str) -> None:
        """Print one or more lines."""
        with self._lock:
            for line in text.splitlines():
                print(f"{self._label}: {line}", file=sys.stderr)
            sys.stderr.flush()

    def write_file(self, name: str, text: str) -> None:
        """Write a file to the folder, and print its path or why it cannot be written."""
        path = os.path.join(FOLDER, name)
        try:
            os.makedirs(FOLDER, exist_ok=True)
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
        except OSError as error:
            self.print(f"{path} cannot be written ({error})")
        else:
            self.print(f"source in {path}")


def drop_optimization(options: Sequence[str]) -> tuple[str, ...]:
    """Return compiler options for debugging: without optimization, with debug information."""
    return (*("-O0" if option == "-O3" else option for option in options), "-g")
