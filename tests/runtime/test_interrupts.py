"""Ctrl-C while a device does not go on: every wait ends, and so does the process where it is about to end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from . import interrupted
from .interrupted import GROUPS, NAMES
from .test_queues import twice_the_cpu_driver

RunPython = Callable[..., subprocess.CompletedProcess[str]]
SCRIPT = str(Path(interrupted.__file__))
ROOT = str(Path(__file__).resolve().parents[2])
# Far longer than anything here takes: what hangs fails.
TIMEOUT = 1200


def _run(run_python: RunPython, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))
    return run_python(None, SCRIPT, *arguments, timeout=TIMEOUT, PYTHONPATH=path, **environment)


@pytest.mark.parametrize("group", GROUPS)
def test_an_interrupt_ends_every_wait(run_python: RunPython, tmp_path: Path, group: str) -> None:
    environment = {}
    if group == "staged":
        environment["VKDISPATCH_FORCE_STAGING"] = "1"
    if group == "several_devices":
        environment = twice_the_cpu_driver(tmp_path)
    done = _run(run_python, "waits", group, **environment)
    wanted = [*(f"{NAMES[step]}: ok" for step in GROUPS[group]), "messages: []"]
    assert done.stdout.splitlines() == wanted, done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("how", ["never_opened", "opened", "destroyed", "dropped", "two_queues"])
def test_an_interrupt_ends_a_close(run_python: RunPython, how: str) -> None:
    done = _run(run_python, "close", how)
    assert (done.stdout, done.returncode) == ("good\n", 0), done.stderr


def test_an_interrupt_ends_the_end_of_a_context_that_is_dropped(run_python: RunPython) -> None:
    done = _run(run_python, "drop")
    assert (done.stdout, done.returncode) == ("good\n", 0), done.stderr


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("at_the_end", ["good", "pressed"]),
        ("own", ["good"]),
        # The interrupt of a wait, which nobody catches; the next one ends the process.
        ("after_a_wait", ["good", "pressed"]),
        # It was caught, and the process says what it waits for.
        ("after_a_message", ["good", "pressed"]),
        # The context is given up already: the exit does not wait.
        ("after_a_close", ["good"]),
    ],
)
def test_an_interrupt_ends_the_process(run_python: RunPython, how: str, said: list[str]) -> None:
    done = _run(run_python, "end", how)
    assert done.stdout.splitlines() == said, done.stderr
    # as an interrupt ends Python, or as if nothing had been
    assert done.returncode in (0, 1, 120, 130, -2), (done.returncode, done.stderr)
    assert ("KeyboardInterrupt" in done.stderr) == (how != "after_a_close"), done.stderr
