"""Every function of Vulkan that the engine calls, made to fail in every way that the specification allows.

    python -m tests.faults.sweep --count 3000 --seed 0 --jobs 2 --only eager,graphs

Workloads (`workloads.py`) run in processes of their own, under a layer that makes chosen calls fail. A fault
may be absorbed, with right results, or raise a VkDispatchError. Afterwards the same context works, or a
new one where the device was lost, and nothing is left over. What is not so is listed with a command that
repeats it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

from tests.workers import Worker, drive

from .building import ROOT, build, layer_environment
from .layer_control import FOREVER, Fault
from .results import DEVICE_LOST, NAMES, RESULTS
from .workloads import WORKLOADS

Case = dict[str, Any]
CRASHED, HUNG, FAILED = "crashed", "hung", "FAILED"
VERDICTS = ("absorbed", "raised", "unreached", FAILED, CRASHED, HUNG)
_BAD = (FAILED, CRASHED, HUNG)
# called once
_FRESH = {"vkCreateInstance", "vkEnumeratePhysicalDevices", "vkCreateDebugUtilsMessengerEXT"}


class Found(NamedTuple):
    """What came of a case: failures by kind, which must not be, and errors that were raised."""

    case: Case
    verdict: str
    failures: list[list[str]]
    errors: list[str]

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {kind}: {text}" for kind, text in self.failures]
        return "\n".join([*lines, *self.errors, command_of(self.case)])


class Cases(Worker):
    """A process that does cases."""

    most = 150
    ending = signal.SIGABRT  # faulthandler then says where it was

    def __init__(self, environment: dict[str, str]) -> None:
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (for as long as the worker)
        command = [sys.executable, "-X", "faulthandler", "-m", "tests.faults.child"]
        super().__init__(command, stderr=self.errors, env=environment, cwd=ROOT)

    def start(self) -> None:
        self.errors.seek(0)
        self.errors.truncate()
        super().start()

    def give(self, task: Case) -> None:
        if self.done and task.get("fresh"):
            self.restart()
        super().give(task)

    def judge(self, task: Case, answer: dict[str, Any]) -> Found:
        if answer["verdict"] == FAILED or task.get("fresh"):
            self.restart()  # nothing of it shall show in the next case
        return Found(task, answer["verdict"], answer["failures"], answer["errors"])

    def judge_crash(self, task: Case, status: str) -> Found:
        return Found(task, CRASHED, [[status, self.said()]], [])

    def judge_hang(self, task: Case) -> Found:
        return Found(task, HUNG, [["no answer", self.said()]], [])

    def do(self, task: Case, timeout: float) -> Found:
        """Do a case and return what came of it."""
        self.give(task)
        ready, _, _ = select.select([self.output], [], [], timeout)
        return Found(*(self.answer() if ready else self.give_up()))

    def said(self) -> str:
        """Return the end of what the process wrote to stderr."""
        self.errors.seek(0)
        return self.errors.read()[-3000:]


def environment_of(cache: str) -> dict[str, str]:
    """Return the environment of the processes: the layer, and a cache of their own."""
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    return {**os.environ, **layer_environment(build()), "VKDISPATCH_CACHE": cache, "PYTHONPATH": paths}


Counts = dict[str, dict[str, int]]


def count_calls(worker: Cases, workload: str) -> Counts:
    """Return how often a workload calls each function; see `child.count`."""
    worker.ask({"count": workload})
    line = worker.output.readline()
    if not line:
        raise SystemExit(f"{workload} does not run without any fault:\n{worker.said()}")
    counts: Counts = json.loads(line)
    return counts


def places(calls: int, seed: random.Random) -> list[int]:
    """Return calls spread over a run: the first, the last, and some in between."""
    chosen = {1, 2, calls, max(1, calls - 1), max(1, calls // 2)}
    chosen |= {seed.randint(1, max(1, calls)) for _ in range(2)}
    return sorted(n for n in chosen if 1 <= n <= calls)


def faults_of(function: str, calls: int, seed: random.Random) -> Iterator[Fault]:
    """Return what can go wrong with a function that is called so often."""
    for result in RESULTS[function] if calls else ():
        for n in places(calls, seed):
            yield Fault(function, result, n)
        if result >= 0:
            yield Fault(function, result, 1, 3)
            continue
        for n in sorted({1, max(1, calls // 2), calls}):
            yield Fault(function, result, n, FOREVER)
        yield Fault(function, result, seed.randint(1, calls), 2)
        if result == DEVICE_LOST:
            for n, settles in itertools.product(places(calls, seed), (False, True)):
                yield Fault(function, result, n, 1, True, settles)


def cases_of(workload: str, counts: Counts, seed: random.Random) -> list[Case]:
    """Return all cases of a workload, in an order that spreads functions and results evenly."""
    cases: list[Case] = []
    for function in [name for name in RESULTS if name not in _FRESH]:
        run, ended = (counts[key].get(function, 0) for key in ("run", "all"))
        if run:
            cases += [case_of(workload, fault) for fault in faults_of(function, run, seed)]
        if ended > run:
            for fault in faults_of(function, ended - run, seed):
                later = {**asdict(fault), "n": fault.n + run}
                cases.append(case_of(workload, Fault(**later), closing=True))
        elif run:
            for result in RESULTS[function]:
                if result < 0:
                    fault = Fault(function, result, max(1, run // 2), FOREVER)
                    cases.append(case_of(workload, fault, closing=True))
    seed.shuffle(cases)
    return cases


def fresh_cases(workload: str, counts: Counts, seed: random.Random) -> list[Case]:
    """Return the cases of what a process calls once; each takes one of its own."""
    return [
        case_of(workload, fault, fresh=True)
        for function in sorted(_FRESH)
        for fault in faults_of(function, counts["fresh"][function], seed)
    ]


def case_of(workload: str, fault: Fault, *, closing: bool = False, fresh: bool = False) -> Case:
    """Return a case as processes are given it; see `child.Case`."""
    return {"workload": workload, "fault": asdict(fault), "closing": closing, "fresh": fresh}


def command_of(case: Case) -> str:
    """Return what repeats a case."""
    return f"python -m tests.faults.sweep --one '{json.dumps(case)}'"


def shown(case: Case) -> str:
    """Return a case in words."""
    fault = case["fault"]
    how = (
        "from then on"
        if fault["times"] == FOREVER
        else f"{fault['times']} times"
        if fault["times"] > 1
        else ""
    )
    more = [how, "the device stays lost" * fault["sticky"], "has stopped" * fault["settles"]]
    more += ["closing too" * case["closing"], "new process" * case["fresh"]]
    text = ", ".join(filter(None, more))
    return f"{case['workload']}: call {fault['n']} of {fault['function']} gives {NAMES[fault['result']]}" + (
        f" ({text})" if text else ""
    )


class Record:
    """What came of the cases."""

    def __init__(self, examples: int) -> None:
        self.examples = examples
        self.by_workload: Counter[tuple[str, str]] = Counter()
        self.by_function: Counter[tuple[str, str]] = Counter()
        self.causes: dict[str, list[Case]] = {}
        self.start = time.monotonic()

    def add(self, case: Case, verdict: str, failures: list[list[str]], errors: list[str]) -> None:
        self.by_workload[case["workload"], verdict] += 1
        self.by_function[case["fault"]["function"], verdict] += 1
        done = sum(self.by_workload.values())
        if done % 500 == 0:
            print(f"{done} cases in {time.monotonic() - self.start:.0f} s", file=sys.stderr, flush=True)
        for kind in dict.fromkeys(kind for kind, _ in failures):
            cause = f"{verdict}: {kind}"
            known = self.causes.setdefault(cause, [])
            known.append(case)
            if len(known) <= self.examples:
                texts = [text for found, text in failures if found == kind][:3]
                print(
                    f"==== {cause}: {shown(case)}",
                    *texts,
                    *errors[:3],
                    command_of(case),
                    sep="\n    ",
                    flush=True,
                )

    @property
    def failures(self) -> int:
        return sum(count for (_, verdict), count in self.by_workload.items() if verdict in _BAD)

    @property
    def count(self) -> int:
        """How many faults were made."""
        return sum(count for (_, verdict), count in self.by_workload.items() if verdict != "unreached")

    def finish(self) -> None:
        """Print tables, causes and the sum."""
        for table in (self.by_function, self.by_workload):
            print(f"\n{'':48}" + "".join(f"{verdict:>10}" for verdict in VERDICTS))
            for name in [*sorted({name for name, _ in table}), "all"]:
                row = [
                    sum(n for (each, found), n in table.items() if found == verdict and name in (each, "all"))
                    for verdict in VERDICTS
                ]
                print(f"{name[:47]:48}" + "".join(f"{n:10}" for n in row))
        for cause, cases in sorted(self.causes.items(), key=lambda item: -len(item[1])):
            functions = Counter(case["fault"]["function"] for case in cases)
            print(f"{len(cases):5}  {cause}   {dict(functions.most_common(6))}")
        if missing := sorted(RESULTS.keys() - {name for name, _ in self.by_function}):
            print(f"\nnot made to fail, or never called: {', '.join(missing)}")
        seconds = time.monotonic() - self.start
        print(f"\n{self.count} faults in {seconds:.0f} s: {self.failures} must not be")


def plan(workers: list[Cases], only: list[str], functions: list[str], seed: int) -> list[Case]:
    """Return all cases, those of the workloads in turn."""
    chances = random.Random(seed)
    counts = {name: count_calls(workers[0], name) for name in only}
    workers[0].restart()  # cases get new processes
    lists = [fresh_cases(only[0], counts[only[0]], chances)]
    lists += [cases_of(name, counts[name], chances) for name in only]
    if functions:
        lists = [[case for case in cases if case["fault"]["function"] in functions] for cases in lists]
    return [case for row in itertools.zip_longest(*lists) for case in row if case is not None]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=3000, help="how many faults at most (0: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", default="", help="workloads, with commas between")
    parser.add_argument("--function", default="", help="functions of Vulkan, with commas between")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for a case, after which it hangs")
    parser.add_argument("--examples", type=int, default=2, help="cases to show for each cause")
    parser.add_argument("--one", help="a case, as printed for a failure")
    given = parser.parse_args()
    only = given.only.split(",") if given.only else list(WORKLOADS)
    unknown = sorted(set(only) - set(WORKLOADS))
    if unknown:
        parser.error(f"--only: no workloads {unknown}; there are {', '.join(WORKLOADS)}")
    record = Record(given.examples)
    with tempfile.TemporaryDirectory(prefix="vkdispatch-faults-") as cache:
        workers = [Cases(environment_of(cache)) for _ in range(given.jobs)]
        if given.one:
            cases = [json.loads(given.one)]
        else:
            cases = plan(workers, only, given.function.split(",") if given.function else [], given.seed)
        print(f"{len(cases)} cases, of which {given.count or len(cases)} at most", file=sys.stderr)
        drive(cases[: given.count or None], workers, given.timeout, record.add)
    record.finish()
    return 1 if record.failures else 0


if __name__ == "__main__":
    sys.exit(main())
