"""Random kernels computed three ways: by the device, by the interpreter and by plain Python.

    python -m tests.language.random_kernels --count 1000 --seed 0 --jobs 2 --only reads

writes what differs, made smaller, and how many of each feature were right. Programs run in processes of their
own, so that a crash or a hang ends only one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from typing import Any

from tests.workers import Worker, drive

from .random_sources import FEATURES, write
from .source_running import Difference, check, masked

Task = tuple[int, tuple[str, ...]]


def features_of(seed: int, only: tuple[str, ...]) -> tuple[str, ...]:
    """Return one feature, or for every third program two."""
    first = only[seed % len(only)]
    second = only[(seed // len(only)) % len(only)]
    return (first,) if seed // len(only) % 3 or second == first else (first, second)


def answer_tasks(examples: int, **ways: bool) -> None:
    """Run the programs whose seeds and features come in, one JSON line each; answer likewise.

    So many programs are made smaller for each cause.
    """
    seen: Counter[str] = Counter()
    for line in sys.stdin:
        seed, features = json.loads(line)
        known = {cause for cause, count in seen.items() if count >= examples}
        try:
            found = check(seed, tuple(features), leave=known, **ways)
        except Exception as error:
            found = Difference(f"generator: {type(error).__name__}: {masked(str(error))}", str(error))
        answer = ["", ""]
        if found is not None:
            answer = [found.cause, found.text]
            seen[found.cause] += 1
        print(json.dumps(answer), flush=True)


class Programs(Worker):
    """A process that runs programs."""

    def __init__(self, options: list[str]) -> None:
        super().__init__([sys.executable, "-m", "tests.language.random_kernels", "--worker", *options])

    def judge(self, task: Task, answer: Any) -> tuple[Task, str, str]:
        cause, text = answer
        return task, cause, text

    def judge_crash(self, task: Task, status: str) -> tuple[Task, str, str]:
        return task, f"crash: {status}", ""

    def judge_hang(self, task: Task) -> tuple[Task, str, str]:
        return task, "hang", ""


class Record:
    """What the programs did, by cause and by feature."""

    def __init__(self, examples: int, lines: int) -> None:
        self.examples, self.lines = examples, lines
        self.ran: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.causes: dict[str, list[Task]] = {}
        self.start = time.monotonic()

    def add(self, task: Task, cause: str, text: str) -> None:
        seed, features = task
        self.ran.update(features)
        if not cause:
            return
        self.failed.update(features)
        known = self.causes.setdefault(cause, [])
        known.append(task)
        if len(known) <= self.examples:
            rows = text.splitlines()
            more = [f"... {len(rows) - self.lines} more lines"] if len(rows) > self.lines else []
            head = f"==== {cause}\nseed {seed}, {','.join(features)}"
            print("", head, *rows[: self.lines], *more, sep="\n", flush=True)

    def finish(self, count: int) -> None:
        seconds = time.monotonic() - self.start
        total = sum(map(len, self.causes.values()))
        print(f"\n{count} programs in {seconds:.0f} s, {60 * count / seconds:.0f} a minute; {total} differ")
        print("  ".join(f"{name} {self.failed[name]}/{self.ran[name]}" for name in self.ran))
        for cause, tasks in sorted(self.causes.items(), key=lambda item: -len(item[1])):
            print(f"{len(tasks):5}  {cause}   seeds {[seed for seed, _ in tasks][:8]}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="with which to begin")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", default=",".join(FEATURES), help="features, with commas between")
    parser.add_argument("--together", action="store_true", help="every program has all of these features")
    parser.add_argument("--no-interpreter", action="store_true")
    parser.add_argument("--no-device", action="store_true")
    parser.add_argument(
        "--timeout", type=float, default=300, help="seconds for a program and making it small"
    )
    parser.add_argument("--examples", type=int, default=2, help="programs to make small for each cause")
    parser.add_argument("--lines", type=int, default=100, help="lines of each to show")
    parser.add_argument("--show", action="store_true", help="only write the program of the seed")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    only = tuple(given.only.split(","))
    if given.worker:
        answer_tasks(given.examples, interpreter=not given.no_interpreter, device=not given.no_device)
        return 0
    tasks = [
        (seed, only if given.together else features_of(seed, only))
        for seed in range(given.seed, given.seed + given.count)
    ]
    if given.show:
        print(write(*tasks[0]).description())
        return 0
    flags = ("no_interpreter", "no_device")
    options = [f"--{flag.replace('_', '-')}" for flag in flags if getattr(given, flag)]
    options.append(f"--examples={given.examples}")
    record = Record(given.examples, given.lines)
    drive(tasks, [Programs(options) for _ in range(given.jobs)], given.timeout, record.add)
    record.finish(given.count)
    return 1 if record.causes else 0


if __name__ == "__main__":
    sys.exit(main())
