"""One library's process: `worker.py MODULE`, with JSON lines in and out.

The first line out says what the library is, or why it is not there. Then {"do": "load", "case": ...,
"sizes": {...}}, {"do": "prepare"} with the same, {"do": "round"} any number of times, and {"do": "finish"}
are answered one by one; all libraries are given the first and the last together, the others in turn.
{"do": "transform", "source": ..., "to": ...} transforms the arrays of a file (see `accuracy.py`).
"""

import gc
import importlib
import json
import os
import platform
import sys
import traceback
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[1]


def find_modules() -> None:
    """Make `benchmarks` importable, and `vkdispatch` be the one that this process is to measure.

    The folder of this file would hide modules, and the checkout an installed vkdispatch: only our own process
    is told to take the checkout's.
    """
    sys.path[0] = str(ROOT)
    import benchmarks.timing  # noqa: F401

    if os.environ.get("BENCHMARKS_LIBRARY") != "checkout":
        sys.path.append(sys.path.pop(0))


class Worker:
    """A library's module and the case that is under way."""

    def __init__(self, name: str) -> None:
        self.module: Any = importlib.import_module(f"benchmarks.libraries.{name}")
        self.trial: Any = None

    def describe(self) -> dict[str, Any]:
        """Say what is measured, and what it cannot do."""
        import numpy as np

        python = f"{platform.python_version()}, NumPy {np.__version__}"
        cases = sorted(self.module.CASES)
        return {**self.module.describe(), "python": python, "cases": cases, "skips": self.module.SKIPS}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what a request says."""
        match request["do"]:
            case "load":
                self.drop()
                from benchmarks.libraries import arrays

                arrays.load(request["case"], request["sizes"])
                return {}
            case "prepare":
                self.drop()
                self.trial = self.module.CASES[request["case"]](request["sizes"])
                return {"repetitions": self.trial.repetitions}
            case "round":
                # what the last round left is not this one's to collect
                gc.collect()
                return {"values": self.trial.measure()}
            case "finish":
                correct = bool(self.trial.right())
                self.drop()
                return {"correct": correct}
            case "transform":
                return self.transform(Path(request["source"]), Path(request["to"]))
            case other:
                raise ValueError(f"there is no request {other!r}")

    def transform(self, source: Path, to: Path) -> dict[str, Any]:
        """Transform the rows of a file's arrays and write the results to another; say which could not be."""
        import numpy as np

        waiting, refused = {}, {}
        with np.load(source) as arrays:
            for name, array in arrays.items():
                try:
                    waiting[name] = self.module.transform(array)
                except Exception as error:
                    refused[name] = f"{type(error).__name__}: {error}"
        np.savez(to, **{name: finish() for name, finish in waiting.items()})
        waiting.clear()
        self.drop()
        return {"refused": refused}

    def drop(self) -> None:
        """Free what the last case held."""
        self.trial = None
        gc.collect()
        clean = getattr(self.module, "clean", None)
        if clean is not None:
            clean()


def say(out: IO[str], reply: dict[str, Any]) -> None:
    """Write a line of JSON."""
    out.write(json.dumps(reply) + "\n")
    out.flush()


def main(name: str) -> int:
    """Serve until the input ends."""
    # replies have the pipe to themselves: whatever a library prints goes to the errors
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    find_modules()
    from benchmarks.timing import SkipCase

    try:
        worker = Worker(name)
        say(out, worker.describe())
    except (ImportError, SkipCase) as error:
        say(out, {"absent": str(error)})
        return 0
    for line in sys.stdin:
        try:
            say(out, worker.answer(json.loads(line)))
        except SkipCase as error:
            say(out, {"skipped": str(error)})
        except Exception as error:
            traceback.print_exc()
            say(out, {"error": f"{type(error).__name__}: {error}"})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
