"""What a kernel call costs on the host, beside vkdispatch 0.1.0 from PyPI.

    python benchmarks/launch.py --peer-python /tmp/peer/bin/python

Each measurement is a process of its own, ours and the peer's in turn, and the same code runs in both.
host: the calling thread's CPU time. loop: the wall clock over the calls. total: the wall clock to the end of
the read that follows, so it includes what the device does. Results are checked, printed and written to
benchmarks/results/.
"""

import argparse
import datetime
import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

RESULTS = Path(__file__).resolve().parent / "results"
ELEMENTS = 64
GRAPH_LENGTH = 1000
GRAPH_REPLAYS = 100

Measurement = dict[str, float]
Measurements = dict[str, Measurement]


# ---- one process: everything here runs on both libraries


def make_cases() -> Iterator[tuple[str, Callable[[], None], Callable[[int], bool]]]:
    """Yield name, one call, and whether the data is right after so many calls."""
    import vkdispatch as vd
    import vkdispatch.codegen as vc
    from vkdispatch.codegen.abbreviations import Buff, Const, Var, f32

    @vd.shader("data.size")
    def increment(data: Buff[f32]) -> None:
        tid = vc.global_invocation_id().x
        data[tid] = data[tid] + 1

    @vd.shader("data.size")
    def add_const(data: Buff[f32], step: Const[f32]) -> None:
        tid = vc.global_invocation_id().x
        data[tid] = data[tid] + step

    @vd.shader("data.size")
    def add_var(data: Buff[f32], step: Var[f32]) -> None:
        tid = vc.global_invocation_id().x
        data[tid] = data[tid] + step

    @vd.shader("param0.size", arg_type_annotations=[Buff[f32]] * 8 + [Const[f32]] * 8)
    def add_many(*arguments: Any) -> None:
        tid = vc.global_invocation_id().x
        for data, step in zip(arguments[:8], arguments[8:]):  # noqa: B905
            data[tid] = data[tid] + step

    buffers = [vd.asbuffer(np.zeros(ELEMENTS, np.float32)) for _ in range(11)]
    single, const, var, *many = buffers
    steps = [float(step) for step in range(8)]

    def holds(buffer: Any, step: float) -> Callable[[int], bool]:
        return lambda calls: bool((buffer.read(0) == np.float32(calls * step)).all())

    yield "1 buffer", lambda: increment(single), holds(single, 1)
    yield "1 buffer, 1 Const", lambda: add_const(const, 2.0), holds(const, 2)
    yield "1 buffer, 1 Var", lambda: add_var(var, 3.0), holds(var, 3)
    yield (
        "8 buffers, 8 Const",
        lambda: add_many(*many, *steps),
        lambda calls: all(holds(b, s)(calls) for b, s in zip(many, steps)),  # noqa: B905
    )


def measure_calls(call: Callable[[], None], right: Callable[[int], bool], calls: int) -> Measurement:
    """Time `calls` eager calls; microseconds a call."""
    # Built and warm: a few calls before the clock starts.
    for _ in range(20):
        call()
    right(20)
    cpu, wall = time.thread_time(), time.perf_counter()
    for _ in range(calls):
        call()
    cpu, loop = time.thread_time() - cpu, time.perf_counter() - wall
    correct = right(calls + 20)
    total = time.perf_counter() - wall
    per_call = 1e6 / calls
    return {
        "host_us": cpu * per_call,
        "loop_us": loop * per_call,
        "total_us": total * per_call,
        "correct": correct,
    }


def measure_graph() -> Measurement:
    """Time recording a graph of dependent dispatches and replaying it.

    Microseconds: to record a dispatch, to submit the graph, and in all for each dispatch that ran.
    """
    import vkdispatch as vd
    import vkdispatch.codegen as vc
    from vkdispatch.codegen.abbreviations import Buff, Const, f32

    @vd.shader("data.size")
    def add_const(data: Buff[f32], step: Const[f32]) -> None:
        tid = vc.global_invocation_id().x
        data[tid] = data[tid] + step

    data = vd.asbuffer(np.zeros(ELEMENTS, np.float32))
    graph = vd.CommandGraph()
    add_const(data, 1.0, graph=graph)
    start = time.thread_time()
    for _ in range(GRAPH_LENGTH - 1):
        add_const(data, 1.0, graph=graph)
    record = (time.thread_time() - start) / (GRAPH_LENGTH - 1)
    for _ in range(2):
        graph.submit()
    data.read(0)
    cpu, wall = time.thread_time(), time.perf_counter()
    for _ in range(GRAPH_REPLAYS):
        graph.submit()
    cpu = time.thread_time() - cpu
    result = data.read(0)
    wall = time.perf_counter() - wall
    return {
        "record_us": record * 1e6,
        "submit_us": cpu / GRAPH_REPLAYS * 1e6,
        "total_us": wall / (GRAPH_REPLAYS * GRAPH_LENGTH) * 1e6,
        "correct": bool((result == np.float32((GRAPH_REPLAYS + 2) * GRAPH_LENGTH)).all()),
    }


def work(calls: int) -> dict[str, Any]:
    """Measure everything in this process."""
    import vkdispatch as vd

    start = time.perf_counter()
    # The peer's default refuses machines whose only device is a CPU driver.
    context = vd.make_context(use_cpu=True)
    made = time.perf_counter() - start
    info = context.device_infos[0]
    cases = {name: measure_calls(call, right, calls) for name, call, right in make_cases()}
    cases["graph"] = measure_graph()
    driver = {"device": info.device_name, "driver_version": info.driver_version}
    return {**driver, "context_ms": made * 1e3, "cases": cases}


# ---- all processes


def run_worker(python: str, calls: int) -> dict[str, Any]:
    """Run `work` in a process of the given Python; raises RuntimeError with its output if it fails."""
    command = [python, str(Path(__file__).resolve()), "--worker", "--calls", str(calls)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def medians(runs: list[dict[str, Any]]) -> Measurements:
    """Return the median over runs of each number; `correct` only if every run was."""
    summary: Measurements = {}
    for case in runs[0]["cases"]:
        rows = [run["cases"][case] for run in runs]
        summary[case] = {key: median(row[key] for row in rows) for key in rows[0] if key != "correct"}
        summary[case]["correct"] = all(row["correct"] for row in rows)
    return summary


def print_table(ours: Measurements, peer: Measurements | None) -> None:
    """Print host cost and totals side by side."""
    print(f"{'microseconds':<34}{'ours':>10}{'peer':>10}{'ratio':>8}")
    for case, row in ours.items():
        for key in row:
            if key == "correct":
                continue
            other = peer[case][key] if peer else float("nan")
            label = f"{case}: {key.removesuffix('_us')}"
            print(f"{label:<34}{row[key]:>10.2f}{other:>10.2f}{other / row[key]:>8.1f}")
        if not row["correct"] or (peer and not peer[case]["correct"]):
            print(f"{case}: WRONG RESULT ({'ours' if not row['correct'] else 'peer'})")


def save(report: dict[str, Any]) -> Path:
    """Write the report as benchmarks/results/<device>-<date>.json."""
    device = re.sub(r"[^a-z0-9]+", "-", report["device"].lower()).strip("-")
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{device}-{datetime.date.today().isoformat()}.json"
    path.write_text(json.dumps(report, indent=2) + "\n")
    return path


def main() -> int:
    """Run ours and the peer in turn; return 1 if a result of ours was wrong."""
    parser = argparse.ArgumentParser(description="Host cost of a kernel call, beside vkdispatch 0.1.0.")
    parser.add_argument("--peer-python", help="a Python that has vkdispatch 0.1.0; without it only ours runs")
    parser.add_argument("--calls", type=int, default=20_000, help="eager calls per case (default 20000)")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each (default 3)")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(work(options.calls)))
        return 0
    ours: list[dict[str, Any]] = []
    peer: list[dict[str, Any]] = []
    for turn in range(options.rounds):
        print(f"round {turn + 1} of {options.rounds}", file=sys.stderr, flush=True)
        ours.append(run_worker(sys.executable, options.calls))
        if options.peer_python:
            peer.append(run_worker(options.peer_python, options.calls))
    summary, peer_summary = medians(ours), medians(peer) if peer else None
    report = {
        "device": ours[0]["device"],
        "driver_version": ours[0]["driver_version"],
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {platform.platform()}, Python {platform.python_version()}",
        "calls": options.calls,
        "rounds": options.rounds,
        "context_ms": median(run["context_ms"] for run in ours),
        "ours": summary,
        "peer": peer_summary,
        "peer_context_ms": median(run["context_ms"] for run in peer) if peer else None,
    }
    print_table(summary, peer_summary)
    print(f"written to {save(report)}")
    return int(not all(row["correct"] for row in summary.values()))


if __name__ == "__main__":
    sys.exit(main())
