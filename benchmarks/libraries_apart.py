"""The loop that times calls as a user makes them, and the processes of the libraries, one for each."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

CALLS, ROUNDS, WARM_SECONDS = 20, 5, 0.8  # an idle GPU takes half a second to reach its clock

# For each case: microseconds per call, microseconds of the calling thread, and further values.
Figures = dict[str, list[float]]


def time_calls(call: Callable[[], Any], wait: Callable[[], object]) -> list[float]:
    """Return the microseconds of a call, and those that the calling thread spends."""
    end = time.perf_counter() + WARM_SECONDS
    while time.perf_counter() < end:
        call()
        wait()
    whole, host = [], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        host.append((time.perf_counter() - start) / CALLS * 1e6)
        wait()
        whole.append((time.perf_counter() - start) / CALLS * 1e6)
    return [round(statistics.median(whole), 1), round(statistics.median(host), 1)]


def make_command(
    module: str,
    text: str,
    libraries: Sequence[str],
    measure: Callable[[str], Figures],
    table: Callable[[dict[str, Figures]], str],
) -> click.Command:
    """Return the command of a benchmark: it measures every library that is there, and prints the table."""

    @click.command(help=text)
    @click.option("--library", type=click.Choice(libraries), help="Measure this one, and print its figures.")
    @click.option("--json", "path", type=click.Path(path_type=Path), help="Where the figures go.")
    def main(library: str | None, path: Path | None) -> None:
        if library is not None:
            click.echo(json.dumps(measure(library)))
            return
        found = {}
        for name in libraries:
            figures = run_apart(module, "--library", name)
            if figures is not None:
                found[name] = figures
        if path is not None:
            path.write_text(json.dumps(found, indent=1) + "\n")
        click.echo(table(found))

    return main


def run_apart(module: str, *arguments: str, seconds: float | None = None, **environment: str) -> Any:
    """Return the JSON that a module prints last in its own process; None, with a message, if it fails.

    A process that takes longer than `seconds` has failed.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        click.echo(f"{' '.join(arguments)}: not done after {seconds:.0f} seconds", err=True)
        return None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        click.echo(f"{' '.join(arguments)}: {reason}", err=True)
        return None
    return json.loads(done.stdout.splitlines()[-1])
