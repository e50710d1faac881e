"""The processes that measure, one for each library, kept between cases, and what is said to them."""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.floor import PROGRAM

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / "benchmarks" / ".peers"

OURS = "vkdispatch"
OLD = "vkdispatch-0.1.0"
FLOOR = "floor"
# The library VkFFT on Vulkan, as our build has it.
VKFFT = "vd.vkfft"
MODULES = {
    OURS: "ours",
    OLD: "vkdispatch_peer",
    "kp": "kp_peer",
    "torch": "torch_peer",
    "cupy": "cupy_peer",
    "triton": "triton_peer",
    VKFFT: "vkfft_peer",
    "pyvkfft": "pyvkfft_peer",
    "numpy": "numpy_peer",
}
PEER_NAMES = [OLD, "kp", "torch", "cupy", "triton", VKFFT, "pyvkfft", "numpy", FLOOR]
# What pip installs for peers that get an environment of their own.
INSTALLED = {OLD: ["vkdispatch==0.1.0", "numpy"], "kp": ["kp==0.9.0", "numpy<2"]}

Reply = dict[str, Any]


class ProcessLost(Exception):
    """The process ended, or did not answer in time; the text has the last of what it printed."""


@dataclass
class Process:
    """A running process that answers lines with lines of JSON."""

    name: str
    command: list[str]
    environment: dict[str, str]
    _running: subprocess.Popen[str] = field(init=False)
    _lines: "queue.Queue[str | None]" = field(init=False)

    def __post_init__(self) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._running = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=self.environment,
            # not the checkout: Python would find our vkdispatch in it
            cwd="/",
        )
        self._lines = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._running.stdout is not None
        for line in self._running.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def reply(self, seconds: float) -> Reply:
        """Return the next line; raises ProcessLost when there is none in time."""
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            self.stop()
            raise ProcessLost(f"no answer within {seconds:.0f} s") from None
        if line is None:
            code = self._running.wait()
            raise ProcessLost(f"ended with {code}:\n{self.last_words()}")
        parsed: Reply = json.loads(line)
        return parsed

    def send(self, line: str) -> None:
        """Write a line; raises ProcessLost if nobody reads it."""
        assert self._running.stdin is not None
        try:
            self._running.stdin.write(line + "\n")
            self._running.stdin.flush()
        except OSError as error:
            raise ProcessLost(f"{error}:\n{self.last_words()}") from error

    def last_words(self) -> str:
        """Return the last lines that the process printed."""
        self._errors.seek(0)
        return "".join(self._errors.readlines()[-20:])

    def stop(self) -> None:
        """End the process: by the end of its input, and if that does not do, by force."""
        assert self._running.stdin is not None
        try:
            self._running.stdin.close()
            self._running.wait(timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            self._running.kill()
            self._running.wait()


class Participant:
    """A library or the floor: starts its process when it is needed, and again after it was lost."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        self.name = name
        self.command = command
        self.environment = environment
        self.process: Process | None = None
        self.about: Reply = {}

    def start(self) -> None:
        """Start the process unless it runs, and learn what it is or, in `about["absent"]`, why not."""
        if self.process is not None or "absent" in self.about:
            return
        try:
            self.process = Process(self.name, self.command, self.environment)
            self.about = self.process.reply(120)
        except (OSError, ProcessLost) as error:
            self.about = {"absent": str(error)}
        if "error" in self.about:
            self.about = {"absent": self.about["error"]}
        if "absent" in self.about:
            self.stop()

    def why_not(self, case: str) -> str | None:
        """Return why this cannot do a case, or None."""
        if "absent" in self.about:
            return str(self.about["absent"])
        if case in self.about["cases"]:
            return None
        return str(self.about["skips"].get(case, "does not do this"))

    def load(self, case: str, sizes: dict[str, float], seconds: float) -> Reply:
        """Make what a case is given, which takes none of the device."""
        return self._ask({"do": "load", "case": case, "sizes": sizes}, seconds)

    def prepare(self, case: str, sizes: dict[str, float], seconds: float) -> Reply:
        """Make a case ready."""
        return self._ask({"do": "prepare", "case": case, "sizes": sizes}, seconds)

    def round(self, seconds: float) -> Reply:
        """Run one round of the case that was made ready."""
        return self._ask({"do": "round"}, seconds)

    def transform(self, source: Path, to: Path, seconds: float) -> Reply:
        """Transform the arrays of a file into another."""
        return self._ask({"do": "transform", "source": str(source), "to": str(to)}, seconds)

    def finish(self, seconds: float) -> Reply:
        """Check the results and free everything."""
        return self._ask({"do": "finish"}, seconds)

    def _ask(self, request: Reply, seconds: float) -> Reply:
        try:
            self.start()
            if self.process is None:
                return {"error": self.about["absent"]}
            self.process.send(json.dumps(request))
            return self.process.reply(seconds)
        except ProcessLost as error:
            self.process = None
            return {"error": str(error)}

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.stop()
            self.process = None


# One dispatch, whatever the arguments are.
SAME = {"call-buffer": "call", "call-const": "call", "call-var": "call"}


class FloorParticipant(Participant):
    """The C++ program: it makes everything ready and checks it within each round."""

    def __init__(self) -> None:
        super().__init__(FLOOR, [str(PROGRAM)], dict(os.environ))
        self.line = ""
        self.correct = True

    def start(self) -> None:
        """Start the program unless it runs."""
        if not PROGRAM.exists():
            self.about = {"absent": "not built: python -m benchmarks.floor build"}
        super().start()
        if "measures" in self.about:
            measures = self.about.pop("measures")
            same = [case for case, measure in SAME.items() if measure in measures]
            self.about |= {"cases": [*measures, *same], "skips": {}, "version": "Vulkan 1.2 in C++"}

    def load(self, case: str, sizes: dict[str, float], seconds: float) -> Reply:
        """Do nothing: the program makes its data itself."""
        return {}

    def prepare(self, case: str, sizes: dict[str, float], seconds: float) -> Reply:
        """Remember what to ask."""
        numbers = " ".join(f"{name}={value:.0f}" for name, value in sizes.items() if value >= 1)
        self.line = f"{SAME.get(case, case)} {numbers}"
        self.correct = True
        return {"repetitions": 1}

    def round(self, seconds: float) -> Reply:
        """Run one round."""
        try:
            self.start()
            if self.process is None:
                return {"error": self.about["absent"]}
            self.process.send(self.line)
            reply = self.process.reply(seconds)
        except ProcessLost as error:
            self.process = None
            return {"error": str(error)}
        self.correct = self.correct and reply.get("correct", True)
        return reply

    def finish(self, seconds: float) -> Reply:
        """Say whether all rounds were right."""
        return {"correct": self.correct}


def clean_environment() -> dict[str, str]:
    """Return the environment less what points Python at modules, with our disk cache off."""
    drop = ("PYTHONPATH", "PYTHONHOME", "BENCHMARKS_LIBRARY")
    kept = {name: value for name, value in os.environ.items() if name not in drop}
    return {**kept, "VKDISPATCH_CACHE": "off"}


def python_of(name: str, given: dict[str, Path]) -> tuple[str, dict[str, str]] | str:
    """Return the Python that has a library, and what its environment adds; or why there is none.

    `given` has what the user said: a Python, or a folder that `pip install --target` made for this Python.
    """
    place = given.get(name)
    if place is not None:
        if place.is_dir():
            return sys.executable, {"PYTHONPATH": str(place.absolute())}
        if place.is_file():
            return str(place.absolute()), {}
        return f"there is no {place}"
    if name in INSTALLED:
        python = PEERS / name / "bin" / "python"
        if python.exists():
            return str(python), {}
        return f"no environment for it: --install-peers, or --peer-python {name}=PATH"
    inherited = os.environ.get("PYTHONPATH")
    return sys.executable, {"PYTHONPATH": inherited} if inherited else {}


def participant(name: str, given: dict[str, Path]) -> Participant:
    """Return a library's participant, its process not started yet."""
    if name == FLOOR:
        return FloorParticipant()
    worker = str(ROOT / "benchmarks" / "worker.py")
    found = python_of(name, given)
    if isinstance(found, str):
        absent = Participant(name, [], {})
        absent.about = {"absent": found}
        return absent
    python, added = found
    environment = clean_environment() | added
    if name in (OURS, VKFFT) and any(ROOT.glob("vkdispatch_native*.so")):
        environment["BENCHMARKS_LIBRARY"] = "checkout"
    return Participant(name, [python, worker, MODULES[name]], environment)


def install_peers() -> None:
    """Make the environments of peers that need one; raises CalledProcessError when pip fails."""
    for name, packages in INSTALLED.items():
        folder = PEERS / name
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", *packages]
        subprocess.run(pip, check=name == OLD)
