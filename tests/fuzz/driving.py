"""Mutants given to worker processes one at a time, and what came of them counted."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import IO, Any

from tests.workers import drive

CRASHED, HUNG = "crash", "hang"
_MUTANTS = 500  # of one process, so that what it leaks, and what it breaks, is seen with it


class Worker:
    """A process that tries mutants."""

    def __init__(self, module: str) -> None:
        self.command = [sys.executable, "-m", module, "--worker"]
        self.task: tuple[int] | None = None
        self.since = 0.0
        self.start()

    def start(self) -> None:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(
            self.command, **pipes, stderr=subprocess.DEVNULL, text=True, bufsize=1
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.left = _MUTANTS
        self.input: IO[str] = self.process.stdin
        self.output: IO[str] = self.process.stdout

    def give(self, task: tuple[int]) -> None:
        if not self.left:
            self.end()
            self.start()
        self.left -= 1
        self.task, self.since = task, time.monotonic()
        self.input.write(f"{task[0]}\n")

    def answer(self) -> tuple[int, str]:
        """Read the verdict that is there, or tell of a crash."""
        assert self.task is not None
        (seed,), self.task = self.task, None
        line = self.output.readline()
        if line:
            return seed, json.loads(line)
        status = self.process.wait()
        self.start()
        return seed, f"{CRASHED}: exit status {status}"

    def give_up(self) -> tuple[int, str]:
        assert self.task is not None
        (seed,), self.task = self.task, None
        self.process.kill()
        self.process.wait()
        self.start()
        return seed, HUNG

    def end(self) -> None:
        self.input.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def work(attempt: Callable[[int], str]) -> None:
    """Try the mutants whose seeds come in, and answer with the verdicts."""
    answers = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        print(json.dumps(attempt(int(line))), file=answers, flush=True)


def run(module: str, seeds: Sequence[int], jobs: int, timeout: float) -> tuple[Counter[str], dict[int, str]]:
    """Try mutants in processes; return how many had each verdict, and those that crashed or hung."""
    verdicts: Counter[str] = Counter()
    failures: dict[int, str] = {}

    def record(seed: int, verdict: str) -> None:
        verdicts[verdict] += 1
        if verdict.startswith((CRASHED, HUNG)):
            failures[seed] = verdict
            print(f"seed {seed}: {verdict}", file=sys.stderr, flush=True)

    drive([(seed,) for seed in seeds], [Worker(module) for _ in range(jobs)], timeout, record)
    return verdicts, failures


def main(module: str, description: str, attempt: Callable[[int], str], show: Callable[[int], object]) -> None:
    """Be the program of a fuzzer."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--count", type=int, default=10_000, help="mutants")
    parser.add_argument("--seed", type=int, default=0, help="of the first; each has the next number")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--timeout", type=float, default=120, help="seconds of one mutant")
    parser.add_argument("--show", action="store_true", help="write the mutant of the seed to stdout, no more")
    parser.add_argument("--here", action="store_true", help="try the mutant of the seed in this process")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(attempt)
    elif options.show:
        print(show(options.seed))
    elif options.here:
        print(attempt(options.seed))
    else:
        begin = time.monotonic()
        seeds = range(options.seed, options.seed + options.count)
        verdicts, failures = run(module, seeds, options.jobs, options.timeout)
        for verdict, count in verdicts.most_common():
            print(f"{count:7d} {verdict}")
        seconds = time.monotonic() - begin
        print(f"{options.count} mutants in {seconds:.0f} s; {len(failures)} crashed or hung")
        sys.exit(bool(failures))
