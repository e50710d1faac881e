"""Mutants given to worker processes one at a time, and what came of them counted."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

from tests.workers import Worker, drive

CRASHED, HUNG = "crash", "hang"


class Mutants(Worker):
    """A process that tries mutants."""

    most = 500

    def __init__(self, module: str) -> None:
        super().__init__([sys.executable, "-m", module, "--worker"])

    def judge(self, task: tuple[int], answer: str) -> tuple[int, str]:
        return task[0], answer

    def judge_crash(self, task: tuple[int], status: str) -> tuple[int, str]:
        return task[0], f"{CRASHED}: {status}"

    def judge_hang(self, task: tuple[int]) -> tuple[int, str]:
        return task[0], HUNG


def work(attempt: Callable[[int], str]) -> None:
    """Try the mutants whose seeds come in, and answer with the verdicts."""
    answers = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        print(json.dumps(attempt(*json.loads(line))), file=answers, flush=True)


def run(module: str, seeds: Sequence[int], jobs: int, timeout: float) -> tuple[Counter[str], dict[int, str]]:
    """Try mutants in processes; return how many had each verdict, and those that crashed or hung."""
    verdicts: Counter[str] = Counter()
    failures: dict[int, str] = {}

    def record(seed: int, verdict: str) -> None:
        verdicts[verdict] += 1
        if verdict.startswith((CRASHED, HUNG)):
            failures[seed] = verdict
            print(f"seed {seed}: {verdict}", file=sys.stderr, flush=True)

    drive([(seed,) for seed in seeds], [Mutants(module) for _ in range(jobs)], timeout, record)
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
