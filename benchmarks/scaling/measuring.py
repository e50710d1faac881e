"""Timing programs on clusters, and what limits them."""

import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from benchmarks.scaling import clusters
from benchmarks.scaling.programs import CASES, Problem

Span = tuple[float, float]
# Parts of the workers' time: in tasks, in transfers alone, and the rest.
PARTS = ("computing", "transfers", "waiting")
HEAD = (
    "| library, case, scaling | workers | seconds | efficiency | computing | transfers | waiting "
    "| scheduler busy | limit |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def measure(
    library: str, counts: Sequence[int], cases: Sequence[str], scale: float, rounds: int, seconds: float
) -> Iterator[tuple[int, list[dict[str, Any]], str, str, dict[str, Any]]]:
    """Measure cases for each number of workers.

    Yield workers, their devices, case, kind of scaling and figures, as they are found. A program that fails
    has the figure "error" alone.
    """
    for workers in counts:
        with clusters.open_cluster(library, workers) as client:
            devices = clusters.list_devices(client, library)
            for case in cases:
                for kind in ("strong", "weak"):
                    if kind == "weak" and workers == 1:
                        continue  # the same
                    factor = workers if kind == "weak" else 1
                    try:
                        figures = measure_case(client, library, case, workers, factor, scale, rounds, seconds)
                    except Exception as error:
                        figures = {"error": f"{type(error).__name__}: {error}"[:500]}
                    yield workers, devices, case, kind, figures
                    clusters.release_all(client, library)


def measure_case(
    client: Any, library: str, case: str, workers: int, factor: int, scale: float, rounds: int, seconds: float
) -> dict[str, Any]:
    """Measure a case for a number of workers, and check its result."""
    begin = time.perf_counter()
    problem = CASES[case](client, library, workers, factor, scale)
    made = time.perf_counter()
    figures, result = time_runs(client, problem, rounds, seconds, workers)
    timed = time.perf_counter()
    figures["right"] = problem.check(result)
    spent = {"making": made - begin, "checking": time.perf_counter() - timed}
    return figures | {name: round(value, 3) for name, value in spent.items()}


def time_runs(
    client: Any, problem: Problem, rounds: int, seconds: float, workers: int
) -> tuple[dict[str, Any], Any]:
    """Return seconds of each round, where the workers' time went, and the last result.

    There are no more rounds after this many seconds.
    """
    held = clusters.count_tasks(client)
    start = time.perf_counter()
    result = problem.run()  # compiles
    first = time.perf_counter() - start
    found: list[float] = []
    spans: list[Span] = []
    clocks = dict.fromkeys(("scheduler", "messages"), 0.0)
    tasks: list[Any] = []
    while not found or (len(found) < rounds and sum(found) < seconds):
        result = None
        clusters.wait_for_release(client, held)
        before, begin, start = clusters.read_clocks(client), time.time(), time.perf_counter()
        result = problem.run()
        found.append(time.perf_counter() - start)
        spans.append((begin, time.time()))
        after = clusters.read_clocks(client)
        tasks += client.get_task_stream(start=begin)
        for name in clocks:
            clocks[name] += after[name] - before[name]
    computed = sum(part["action"] == "compute" for task in tasks for part in task["startstops"])
    expected = problem.tasks * len(found)
    # the clocks of workers differ by little, so that tasks near the ends of a span may be missing
    if computed < 0.9 * expected:
        raise RuntimeError(f"{computed} tasks were run, expected {expected} or more")
    shares = share_time(tasks, spans, workers)
    shares |= {name: round(value / sum(found), 3) for name, value in clocks.items()}
    figures = {
        "seconds": [round(each, 6) for each in found],
        "first": round(first, 3),
        **shares,
        "tasks": computed // len(found),
        "tasks_of_workers": count_by_worker(tasks, len(found)),
        "elements": problem.size,
    }
    return figures | {"limit": find_limit(figures)}, result


def count_by_worker(tasks: Iterable[dict[str, Any]], rounds: int) -> list[int]:
    """Return how many tasks each worker runs in a round."""
    found: dict[str, int] = {}
    for task in tasks:
        found[task["worker"]] = found.get(task["worker"], 0) + 1
    return sorted(count // rounds for count in found.values())


def share_time(tasks: Iterable[dict[str, Any]], spans: Sequence[Span], workers: int) -> dict[str, float]:
    """Return which part of the workers' time in spans they compute, transfer without computing, and wait.

    "balance" is what the busiest worker computes, as a multiple of the mean.
    """
    computing: dict[str, list[Span]] = {}
    moving: dict[str, list[Span]] = {}
    for task in tasks:
        for part in task["startstops"]:
            kinds = computing if part["action"] == "compute" else moving
            for begin, end in spans:
                first, last = max(part["start"], begin), min(part["stop"], end)
                if first < last:
                    kinds.setdefault(task["worker"], []).append((first, last))
    whole = sum(end - begin for begin, end in spans) * workers
    busy = {worker: measure_union(each) for worker, each in computing.items()}
    either = sum(
        measure_union(computing.get(worker, []) + moving.get(worker, [])) for worker in {*computing, *moving}
    )
    total = sum(busy.values())
    shares = {
        "computing": total / whole,
        "transfers": (either - total) / whole,
        "waiting": 1 - either / whole,
        "balance": max(busy.values()) * workers / total if total else 0.0,
    }
    return {name: round(value, 3) for name, value in shares.items()}


def measure_union(spans: Iterable[Span]) -> float:
    """Return how long at least one of some spans lasts."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def find_limit(figures: dict[str, Any]) -> str:
    """Return what takes most of the time that workers do not compute, or "device".

    They wait for the scheduler, or their own messages, if these are busy; else for the latency of both.
    """
    if figures["computing"] >= 0.85:
        return "device"
    if figures["transfers"] > figures["waiting"]:
        return "transfers"
    if figures["balance"] > 1.2:
        return "balance"
    busiest = max(("scheduler", "messages"), key=figures.__getitem__)
    return busiest if figures[busiest] > 0.5 else "latency"


def efficiency(kind: str, figures: dict[str, Any], workers: str) -> float:
    """Return the efficiency of a number of workers against one."""
    one, many = (statistics.median(figures[count]["seconds"]) for count in ("1", workers))
    return float(one / many / (int(workers) if kind == "strong" else 1))


def format_line(library: str, case: str, kind: str, figures: dict[str, Any], workers: str) -> str:
    """Return a row of a Markdown table. `figures` has an entry for each number of workers."""
    each, name = figures[workers], f"{library}, {case}, {kind}"
    if "error" in each:
        return f"| {name} | {workers} | {each['error']} | - | - | - | - | - | - |"
    has_one = "seconds" in figures.get("1", {})
    share = f"{efficiency(kind, figures, workers):.2f}" if has_one else "-"
    wrong = " (wrong)" if each["right"] is False else ""
    shares = " | ".join(f"{each[part]:.2f}" for part in (*PARTS, "scheduler"))
    median = statistics.median(each["seconds"])
    return f"| {name} | {workers} | {median:.4g}{wrong} | {share} | {shares} | {each['limit']} |"
