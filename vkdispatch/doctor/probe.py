"""Starts child processes, and tells how they end: a driver that crashes or hangs ends its child alone."""

import json
import os
import sys
from typing import Any

Facts = dict[str, Any]

SECONDS = 60.0
"""How long a child may take, unless the caller says otherwise."""

_SAID = 12  # last lines of what a driver prints
# The child imports this very package, however the parent found it.
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from vkdispatch.doctor.child import main; main(*sys.argv[2:])"
)


def run_child(task: str, argument: str = "", *, seconds: float, **environment: str) -> Facts:
    """Run a task of `child` in a process of its own, and return what it found out.

    Further keys of the result: `ended`, None or how the process ended before its time; `doing`, what it did
    last; and `said`, the last lines that it printed.
    """
    import subprocess
    import tempfile

    if not sys.executable:
        return {"ended": "this program has no Python interpreter to start", "doing": task, "said": []}
    path = json.dumps([entry or os.getcwd() for entry in sys.path])
    command = [sys.executable, "-c", _START, path, task, argument]
    with tempfile.TemporaryFile() as found, tempfile.TemporaryFile() as log:
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=found,
            stderr=log,
            env={**os.environ, **environment},
        ) as process:
            try:
                status: int | None = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                process.kill()
        found.seek(0)
        log.seek(0)
        facts: Facts = {"ended": None, "doing": task}
        for line in found.read().decode("utf-8", "replace").splitlines():
            try:
                facts.update(json.loads(line))
            except ValueError:  # the last line of a process that was ended
                continue
        said = log.read().decode("utf-8", "replace").strip().splitlines()
    facts["said"] = [line.rstrip() for line in said if line.strip()][-_SAID:]
    if status is None:
        facts["ended"] = f"did not end within {seconds:g} s"
    elif status:
        facts["ended"] = _explain_status(status)
    return facts


def _explain_status(status: int) -> str:
    import signal

    if status < 0:
        try:
            return f"crashed ({signal.Signals(-status).name})"
        except ValueError:
            return f"crashed (signal {-status})"
    return f"ended with status {status:#x}" if status > 255 else f"ended with status {status}"
