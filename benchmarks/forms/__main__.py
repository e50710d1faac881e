"""Forms on trial: what each form of a kernel gains over the next general one, ``python -m benchmarks.forms``.

A family has several kernels for one function, and its planner chooses. For each such form, `trials` has the
calls for which the planner chooses it, and how to plan without it. Both plans run in turn in this process,
eagerly as users call functions, and on GPUs also as a graph where the host is too slow to tell them apart.
The results of both are compared. A form keeps its place if one call gains 1.3x by the least times.
"""

import contextlib
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

import vkdispatch as vd
from benchmarks.forms.calls import Case, Work
from benchmarks.forms.trials import TRIALS, Trial
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.tuning import device_facts

# The gain that a form has to show.
GAIN = 1.3
# Calls of less time are limited by the host: they are measured as a graph, too.
_HOST_SECONDS = 100e-6
_RECORDED = 10


class Effort(NamedTuple):
    """How long the two plans are warmed up, a round and all of them last; the least and most rounds."""

    warm: tuple[float, float]
    round: float
    rounds: tuple[int, int]
    seconds: float


_ON_GPU, _ON_CPU = Effort((0.5, 0.15), 0.02, (9, 15), 0.5), Effort((0.1, 0.1), 0.04, (9, 25), 2.5)


class Row(NamedTuple):
    """The figures of a call: microseconds with and without the form, and the kernels of both plans."""

    trial: str
    call: str
    way: str
    least: tuple[float, float]
    median: tuple[float, float]
    kernels: tuple[list[str], list[str]]
    complaint: str = ""

    @property
    def gain(self) -> float:
        """How much longer the call takes without the form, by the least times."""
        return 0.0 if self.complaint else self.least[1] / self.least[0]


@contextlib.contextmanager
def listing_kernels() -> Iterator[dict[int, str]]:
    """Let a dictionary be filled with the names of the kernels that graphs record, by their plans."""
    recorded: dict[int, str] = {}
    append: Callable[..., bool] = CommandGraph._append_dispatch

    def note(graph: CommandGraph, kernel: Any, *args: Any, **options: Any) -> bool:
        facts = getattr(kernel.plan, "facts", None)
        recorded[kernel.plan._native.id] = "?" if facts is None else facts.name
        return append(graph, kernel, *args, **options)

    CommandGraph._append_dispatch = note  # type: ignore[method-assign, assignment]
    try:
        yield recorded
    finally:
        CommandGraph._append_dispatch = append  # type: ignore[method-assign]


def record(call: Callable[[], Any], times: int) -> tuple[Callable[[], Any], dict[int, str]]:
    """Return what submits some calls as a graph, and the kernels of it."""
    graph = vd.CommandGraph()
    vd.set_global_graph(graph)
    try:
        with listing_kernels() as kernels:
            results = [call() for _ in range(times)]
    finally:
        vd.set_global_graph(None)

    def replay(_: object = results) -> None:
        graph.submit()

    return replay, kernels


def read(result: Any) -> list[Any]:
    """Return what a call returned, on the host."""
    if isinstance(result, np.ndarray):
        return [result]
    parts = result if isinstance(result, (tuple, list)) else (result,)
    return [np.asarray(part.read(0)) for part in parts if part is not None]


def agree(ours: list[Any], others: list[Any]) -> bool:
    """Whether results are equal; floating-point results may differ by rounding."""
    for x, y in zip(ours, others, strict=True):
        if x.dtype.kind not in "fc":
            if not np.array_equal(x, y):
                return False
            continue
        tolerance = 2e-2 if x.dtype.itemsize == 2 else 1e-4
        if x.dtype.itemsize == 2:
            x, y = x.astype(np.float32), y.astype(np.float32)
        error, most = np.abs(x - y).max(initial=0), np.abs(x).max(initial=0)
        if not error <= tolerance * max(most, 1):  # NaN is neither
            return False
    return True


def time_calls(call: Callable[[], Any], count: int) -> float:
    """Return the seconds of a call, of some calls and the wait for them."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    vd.queue_wait_idle()
    return (time.perf_counter() - start) / count


def warm_up(call: Callable[[], Any], seconds: float, round_seconds: float) -> int:
    """Call for some seconds. Return how many calls take `round_seconds`."""
    least, end = time_calls(call, 1), time.perf_counter() + seconds
    while time.perf_counter() < end:
        least = min(least, time_calls(call, max(1, min(200, int(round_seconds / least)))))
    return max(1, min(1000, int(round_seconds / least)))


_Enter = Callable[[], contextlib.AbstractContextManager[Any]]
_Plan = tuple[_Enter, Callable[[], Any]]


def alternate(plans: tuple[_Plan, _Plan], effort: Effort) -> list[list[float]]:
    """Return the seconds of a call in each round, of both plans."""
    counts = []
    for (enter, call), seconds in zip(plans, effort.warm, strict=True):
        with enter():
            counts.append(warm_up(call, seconds, effort.round))
    times: list[list[float]] = [[], []]
    least, most = effort.rounds
    end = time.perf_counter() + effort.seconds
    while len(times[0]) < least or (len(times[0]) < most and time.perf_counter() < end):
        for number in (0, 1) if len(times[0]) % 2 else (1, 0):
            enter, call = plans[number]
            with enter():
                time_calls(call, 1)  # the first call under other plans
                times[number].append(time_calls(call, counts[number]))
    return times


def try_case(trial: Trial, case: Case, *, is_cpu: bool, plans_only: bool = False) -> Iterator[Row]:
    """Measure one call with and without a form, or only compare the kernels of both plans."""
    work: Work = case.make()
    calls = work.call, work.without or work.call
    enters: tuple[_Enter, _Enter] = trial.also, lambda: _both(trial.also(), trial.without())
    results, kernels, replays = [], [], []
    for enter, call in zip(enters, calls, strict=True):
        with enter():
            work.reset()
            if not plans_only:
                results.append(read(call()))
            if work.is_recorded:
                replay, recorded = record(call, _RECORDED)
                kernels.append(recorded)
                replays.append(replay)
    names = (sorted(set(kernels[0].values())), sorted(set(kernels[1].values()))) if kernels else ([], [])
    complaint = ""
    if results and not agree(*results):
        complaint = "results differ"
    elif kernels and set(kernels[0]) == set(kernels[1]):
        complaint = "same kernels"
    if complaint or plans_only:
        yield Row(trial.name, case.text, "eager", (0, 0), (0, 0), names, complaint or "other kernels")
        return
    effort = _ON_CPU if is_cpu else _ON_GPU
    work.reset()
    times = alternate(((enters[0], calls[0]), (enters[1], calls[1])), effort)
    yield _make_row(trial, case, "eager", times, names)
    if replays and not is_cpu and min(times[0]) < _HOST_SECONDS:
        work.reset()
        plain = contextlib.nullcontext
        times = alternate(((plain, replays[0]), (plain, replays[1])), effort)
        times = [[seconds / _RECORDED for seconds in plan_times] for plan_times in times]
        yield _make_row(trial, case, "graph", times, names)


def _make_row(
    trial: Trial, case: Case, way: str, times: list[list[float]], names: tuple[list[str], list[str]]
) -> Row:
    least, median = (
        (function(times[0]) * 1e6, function(times[1]) * 1e6) for function in (min, statistics.median)
    )
    return Row(trial.name, case.text, way, least, median, names)


@contextlib.contextmanager
def _both(*managers: contextlib.AbstractContextManager[Any]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for manager in managers:
            stack.enter_context(manager)
        yield


def _print_row(row: Row) -> None:
    if row.complaint:
        print(f"    {row.call:<46} {row.complaint}: {row.kernels[0]} {row.kernels[1]}", flush=True)
        return
    ratio = row.median[1] / row.median[0]
    print(
        f"    {row.call:<46} {row.way:<6} {row.least[0]:>11.1f} {row.least[1]:>11.1f}"
        f"   least {row.gain:5.2f}x  median {ratio:5.2f}x",
        flush=True,
    )


@click.command()
@click.option(
    "--only", default="", help="trials whose names begin with one of these words, with commas between"
)
@click.option("--json", "path", type=click.Path(path_type=Path), help="where all figures go")
@click.option("--kernels", is_flag=True, help="print the names of the kernels of both plans")
@click.option("--plans", is_flag=True, help="only compare plans, those for GPUs with VKDISPATCH_PLAN=gpu")
@click.option("--minutes", default=60.0, help="begin no trial after so many")
def main(only: str, path: Path | None, kernels: bool, plans: bool, minutes: float) -> None:
    """Measure what each form gains, and say which ones keep their place on this device."""
    end = time.perf_counter() + 60 * minutes
    device = vd.get_context().device_infos[0]
    is_cpu = device_facts().is_cpu
    print(f"{device.device_name}, {time.strftime('%Y-%m-%d')}: µs of a call with and without the form")
    verdicts: dict[str, float] = {}
    rows: list[Row] = []
    for trial in TRIALS:
        cases = trial.cpu if is_cpu else trial.gpu
        if not cases or (only and not trial.name.startswith(tuple(only.split(",")))):
            continue
        if time.perf_counter() > end:
            print(f"{trial.name}: no time left", flush=True)
            continue
        print(f"{trial.name}: {trial.form}; next: {trial.other}", flush=True)
        for case in cases:
            try:
                mine = list(try_case(trial, case, is_cpu=is_cpu, plans_only=plans))
            except Exception as error:
                mine = [Row(trial.name, case.text, "eager", (0, 0), (0, 0), ([], []), repr(error)[:300])]
            for row in mine:
                _print_row(row)
                if kernels:
                    print(f"        {row.kernels[0]}\n        {row.kernels[1]}", flush=True)
            rows += mine
        gain = max((row.gain for row in rows if row.trial == trial.name), default=0.0)
        verdicts[trial.name] = gain
        verdict = "keeps" if gain >= GAIN else "goes" if gain else "not judged"
        print(f"    -> {verdict} ({gain:.2f}x)", flush=True)
        if path is not None:
            path.write_text(json.dumps({"device": device.device_name, "rows": [r._asdict() for r in rows]}))
    print("\nkeep:", ", ".join(name for name, gain in verdicts.items() if gain >= GAIN))
    print("go:  ", ", ".join(name for name, gain in verdicts.items() if 0 < gain < GAIN))
    print("not judged:", ", ".join(name for name, gain in verdicts.items() if not gain))


if __name__ == "__main__":
    main()
