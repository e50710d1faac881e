"""The messages and files of `debug=True`."""

import os
import sys
import threading
from collections.abc import Sequence

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
