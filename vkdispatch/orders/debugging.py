"""What `debug=True` says, and what it keeps."""

import os
import sys
import threading
from collections.abc import Sequence

FOLDER = "_accelpy_debug_"
"""The folder for what is kept, in the current one; accelpy's has this name."""


class Debugging:
    """Says on standard error what is done with an order, and keeps the sources that are compiled."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        """Print a line, or several."""
        with self._lock:
            for line in text.splitlines():
                print(f"{self._label}: {line}", file=sys.stderr)
            sys.stderr.flush()

    def keep(self, name: str, text: str) -> None:
        """Write a file to the folder, and say where it is; where the disk refuses, say that."""
        path = os.path.join(FOLDER, name)
        try:
            os.makedirs(FOLDER, exist_ok=True)
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
        except OSError as error:
            self.say(f"{path} cannot be written ({error})")
        else:
            self.say(f"source in {path}")


def drop_optimization(options: Sequence[str]) -> tuple[str, ...]:
    """Return a compiler's options for debuggers: no optimisation, lines and names in the library."""
    return (*("-O0" if option == "-O3" else option for option in options), "-g")
