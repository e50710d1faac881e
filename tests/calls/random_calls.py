"""Random calls of the public functions on arrays, against NumPy.

    python -m tests.calls.random_calls --count 1000 --seed 0 --jobs 2 --only scans,sorts --repeat 4

Each call gives what NumPy gives, or raises a VkDispatchError that names an argument; what does
neither is made smaller and written as lines of Python. Gaps, calls that are refused though NumPy computes
them and the documentation does not say so, are listed for themselves and are no failures. Calls run in
processes of their own, so that a crash or a hang ends only one. With --repeat each call is made so many
times, with other values each time and another call of the function in between.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.workers import Worker, drive

from .choices import Choices
from .surface import FAMILIES, writers

Task = tuple[int, str, str]
CRASHED, HUNG = "crashed", "hung"
_BAD = ("failed", CRASHED, HUNG)


@dataclass(frozen=True)
class Tool:
    """Random calls of one kind of functions.

    Attributes
    ----------
    module
        The module that `python -m` runs.
    families
        Names of groups of functions.
    writers
        The functions of a family, as the keys of a mapping.
    check
        Makes a call of a function by choices, leaving out causes that are known, within so many seconds, so
        many times. Returns an outcome, and the choices.
    show
        The call of a function that choices make, as text.
    """

    module: str
    families: tuple[str, ...]
    writers: Callable[[str], Mapping[str, Any]]
    check: Callable[[str, Choices, set[str], float, int], tuple[Any, list[int]]]
    show: Callable[[Choices, str], str]


def tasks_of(
    first: int, count: int, only: tuple[str, ...], functions: Callable[[str], Mapping[str, Any]] = writers
) -> list[Task]:
    """Return seeds, families and functions: each family in turn, and of each its functions in turn."""
    found: list[Task] = []
    for seed in range(first, first + count):
        family = only[seed % len(only)]
        names = list(functions(family))
        found.append((seed, family, names[seed // len(only) % len(names)]))
    return found


def write(choices: Choices, function: str) -> Any:
    """Return the call of a function that choices make."""
    from .case import Sketch

    for family in FAMILIES:
        if function in writers(family):
            return writers(family)[function](Sketch(choices, function))
    raise KeyError(function)


def check(
    function: str, choices: Choices, known: set[str], seconds: float, repeat: int = 1
) -> tuple[Any, list[int]]:
    """Make a call by choices, so many times; a failure that is not known is made smaller first."""
    from . import repeating, running

    if repeat > 1:
        writer = functools.partial(repeating.write_series, rounds=repeat)
        return running.check(writer, repeating.run_series, function, choices, known, seconds)
    return running.check(write, running.run, function, choices, known, seconds)


def answer_tasks(tool: Tool, examples: int, seconds: float, repeat: int) -> None:
    """Make the calls whose seeds and functions come in, one JSON line each; answer likewise."""
    from . import running

    seen: Counter[str] = Counter()
    # what others print goes nowhere; a crash says where Python was
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        seed, _, function = json.loads(line)
        known = {cause for cause, count in seen.items() if count >= examples}
        start = time.monotonic()
        try:
            found, made = tool.check(function, Choices(seed=seed), known, seconds, repeat)
            answer = [found.verdict, found.cause, found.text, made]
            if found.cause:
                seen[found.cause] += 1
        except Exception as error:
            import traceback

            text = "".join(traceback.format_exception(error)[-3:])
            answer = [
                "failed",
                f"{function}: the generator: {type(error).__name__}: {running.masked(str(error))}",
                text,
                [],
            ]
        print(json.dumps([*answer, time.monotonic() - start]), file=answers, flush=True)
        if "DeviceLost" in str(answer[1]):
            return


class Calls(Worker):
    """A process that makes calls."""

    most = 400  # its kernels take memory

    def __init__(self, options: list[str], tool: Tool | None = None) -> None:
        self._tool = tool or TOOL
        super().__init__([sys.executable, "-m", self._tool.module, "--worker", *options])

    def judge(self, task: Task, answer: Any) -> tuple[Task, str, str, str]:
        verdict, cause, text, _, _ = answer
        return task, verdict, cause, text

    def judge_crash(self, task: Task, status: str) -> tuple[Task, str, str, str]:
        return task, CRASHED, f"{task[2]}: crash, {status}", self._show_apart(task)

    def judge_hang(self, task: Task) -> tuple[Task, str, str, str]:
        return task, HUNG, f"{task[2]}: hangs", self._show_apart(task)

    def _show_apart(self, task: Task) -> str:
        """Return the call of a task, written by another process: this one must not end as well."""
        options = ["--show", "--count=1", f"--seed={task[0]}", f"--only={task[2]}"]
        command = [sys.executable, "-m", self._tool.module, *options]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            return "hangs already when it is written"
        return done.stdout or f"ends when it is written, exit status {done.returncode}"


def _show(choices: Choices, function: str) -> str:
    from . import running

    return running.describe(write(choices, function))


TOOL = Tool("tests.calls.random_calls", FAMILIES, writers, check, _show)


def shown(task: Task, tool: Tool = TOOL) -> str:
    """Return the call of a task as it is written at first."""
    try:
        return tool.show(Choices(seed=task[0]), task[2])
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class Record:
    """What came of the calls, by verdict, by family and by cause."""

    def __init__(self, examples: int, lines: int) -> None:
        self.examples, self.lines = examples, lines
        self.verdicts: Counter[tuple[str, str]] = Counter()
        self.causes: dict[tuple[str, str], list[Task]] = {}
        self.texts: dict[tuple[str, str], list[str]] = {}
        self.start = time.monotonic()

    def add(self, task: Task, verdict: str, cause: str, text: str) -> None:
        seed, family, function = task
        self.verdicts[family, verdict] += 1
        if not cause:
            return
        known = self.causes.setdefault((verdict, cause), [])
        known.append(task)
        if len(known) <= self.examples:
            rows = text.splitlines()
            more = [f"... {len(rows) - self.lines} more lines"] if len(rows) > self.lines else []
            head = f"==== {verdict}: {cause}\n# seed {seed}, --only {family}, {function}"
            print("", head, *rows[: self.lines], *more, sep="\n", flush=True)

    @property
    def failures(self) -> int:
        return sum(count for (_, verdict), count in self.verdicts.items() if verdict in _BAD)

    def finish(self, count: int) -> None:
        seconds = time.monotonic() - self.start
        print(f"\n{count} calls in {seconds:.0f} s, {60 * count / max(seconds, 1e-3):.0f} a minute")
        verdicts = ("equal", "refused", "gap", *_BAD)
        families = sorted({family for family, _ in self.verdicts})
        print(f"{'':14}" + "".join(f"{verdict:>9}" for verdict in verdicts))
        for family in [*families, "all"]:
            row = [
                sum(
                    n
                    for (each, found), n in self.verdicts.items()
                    if found == verdict and family in (each, "all")
                )
                for verdict in verdicts
            ]
            print(f"{family:14}" + "".join(f"{n:9}" for n in row))
        for (verdict, cause), tasks in sorted(
            self.causes.items(), key=lambda item: (item[0][0], -len(item[1]))
        ):
            print(f"{len(tasks):5}  {verdict}: {cause}   seeds {[seed for seed, _, _ in tasks][:6]}")


def main(tool: Tool = TOOL, description: str | None = __doc__) -> int:
    """Make the calls that the command line asks for; return 1 if one failed, else 0."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200, help="how many calls")
    parser.add_argument("--seed", type=int, default=0, help="with which to begin")
    parser.add_argument("--repeat", type=int, default=1, help="how often to make each")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--only", default=",".join(tool.families), help="families or functions, with commas between"
    )
    parser.add_argument("--timeout", type=float, default=240, help="seconds for a call and making it small")
    parser.add_argument("--shrink", type=float, default=40, help="seconds for making a failure small")
    parser.add_argument("--examples", type=int, default=1, help="calls to make small for each cause")
    parser.add_argument("--lines", type=int, default=40, help="lines of each to show")
    parser.add_argument("--show", action="store_true", help="only write the calls")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        answer_tasks(tool, given.examples, given.shrink, given.repeat)
        return 0
    tasks = chosen(given.seed, given.count, tuple(given.only.split(",")), tool)
    if given.show:
        for task in tasks:
            print(f"# seed {task[0]}, {task[2]}", shown(task, tool), "", sep="\n")
        return 0
    record = Record(given.examples, given.lines)
    options = [f"--examples={given.examples}", f"--shrink={given.shrink}", f"--repeat={given.repeat}"]
    workers = [Calls(options, tool) for _ in range(min(given.jobs, max(1, len(tasks))))]
    drive(tasks, workers, given.timeout, record.add)
    record.finish(given.count)
    return 1 if record.failures else 0


def chosen(first: int, count: int, only: tuple[str, ...], tool: Tool = TOOL) -> list[Task]:
    """Return the tasks for families, or for functions."""
    if all(each in tool.families for each in only):
        return tasks_of(first, count, only, tool.writers)
    homes = {function: family for family in tool.families for function in tool.writers(family)}
    unknown = [each for each in only if each not in homes]
    if unknown:
        raise SystemExit(
            f"--only: expected families ({', '.join(tool.families)}) or functions, got {unknown}"
        )
    return [
        (seed, homes[only[seed % len(only)]], only[seed % len(only)]) for seed in range(first, first + count)
    ]


if __name__ == "__main__":
    sys.exit(main())
