"""Kompute's own module, kp, beside `vkdispatch.kompute`, in turn: ``python -m benchmarks.kompute``.

Both run the same programs with the same SPIR-V, in one process (starts: in fresh ones), with the validation
layer hidden, which kp would switch on. `--peer` is the folder that has kp, if Python does not find it.
"""

import datetime
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np

SCHEMA = "kompute-1"
ADD_ONE = """#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer A { float a[]; };
void main() { a[gl_GlobalInvocationID.x] += 1.0; }
"""
# Reads what another invocation wrote: dispatches of it cannot be made one.
ROTATE = """#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer A { float a[]; };
layout(set = 0, binding = 1) buffer B { float b[]; };
void main() { uint i = gl_GlobalInvocationID.x; b[i] = a[(i + 1) & 1023] + 1.0; }
"""
ELEMENTS, GROUPS = 1024, (16, 1, 1)
REPLAYED = 100
SECONDS = 0.3
NAMES = ("kp", "vkdispatch.kompute")
START = """
import numpy, time
start = time.perf_counter()
import {name} as kp
imported = time.perf_counter()
first = kp.Manager()
made = time.perf_counter()
second = kp.Manager()
again = time.perf_counter()
print((imported - start) * 1e3, (made - imported) * 1e3, (again - made) * 1e3, (made - start) * 1e3)
"""
FIGURES = {
    "eval_us": "eval() of one recorded dispatch over 1,024 floats",
    "eval_op_us": "eval(operation), recorded each time",
    "new_sequence_us": "a new sequence each time, with one dispatch",
    "async_us": "eval_async(operation) and eval_await()",
    "record_us": "record() of a dispatch, of 1,000",
    "replay_us": "a dispatch of a replayed sequence of 100, each of which adds 1 to the same tensor",
    "replay_other_us": "the same, each of which reads what other invocations of the one before wrote",
    "sync_us": "eval(OpSyncDevice) and eval(OpSyncLocal) of 1,024 floats",
    "upload_gbps": "eval(OpSyncDevice) of 64 MiB",
    "download_gbps": "eval(OpSyncLocal) of 64 MiB",
    "import_ms": "import, NumPy being there",
    "manager_ms": "the first Manager of a process",
    "manager_again_ms": "the second one",
    "ready_ms": "import and first Manager",
}


class Programs:
    """The programs on one of the two modules."""

    def __init__(self, kp: ModuleType, spirv: dict[str, bytes]) -> None:
        self.kp = kp
        self.sync_device = getattr(kp, "OpTensorSyncDevice", None) or kp.OpSyncDevice
        self.sync_local = getattr(kp, "OpTensorSyncLocal", None) or kp.OpSyncLocal
        self.manager = kp.Manager()
        self.tensor = self.manager.tensor(np.zeros(ELEMENTS, np.float32))
        self.other = self.manager.tensor(np.zeros(ELEMENTS, np.float32))
        self.manager.sequence().eval(self.sync_device([self.tensor, self.other]))
        self.add = self.manager.algorithm([self.tensor], spirv["add"], GROUPS)
        self.there = self.manager.algorithm([self.tensor, self.other], spirv["rotate"], GROUPS)
        self.back = self.manager.algorithm([self.other, self.tensor], spirv["rotate"], GROUPS)
        self.large = self.manager.tensor(np.zeros(1 << 24, np.float32))
        self.one = self.manager.sequence().record(kp.OpAlgoDispatch(self.add))
        self.reused = self.manager.sequence()
        self.many = self.manager.sequence()
        self.rotating = self.manager.sequence()
        for k in range(REPLAYED):
            self.many.record(kp.OpAlgoDispatch(self.add))
            self.rotating.record(kp.OpAlgoDispatch(self.back if k % 2 else self.there))
        self.added = 0

    def measures(self) -> dict[str, Callable[[], float]]:
        """Return what gives each figure once."""
        kp = self.kp
        dispatch = kp.OpAlgoDispatch(self.add)
        up, down = self.sync_device([self.tensor]), self.sync_local([self.tensor])
        large_up, large_down = self.sync_device([self.large]), self.sync_local([self.large])

        def exchange() -> None:
            self.reused.eval(up)
            self.reused.eval(down)

        def record() -> float:
            sequence = self.manager.sequence()
            start = time.perf_counter()
            for _ in range(1000):
                sequence.record(dispatch)
            return (time.perf_counter() - start) * 1e3

        def asynchronous() -> None:
            self.reused.eval_async(dispatch)
            self.reused.eval_await()

        gigabytes = self.large.size() * 4 * 1e-3  # bytes over microseconds, in GB/s
        return {
            "eval_us": lambda: timed(self.one.eval),
            "eval_op_us": lambda: timed(lambda: self.reused.eval(dispatch)),
            "new_sequence_us": lambda: timed(lambda: self.manager.sequence().record(dispatch).eval()),
            "async_us": lambda: timed(asynchronous),
            "record_us": record,
            "replay_us": lambda: timed(self.many.eval) / REPLAYED,
            "replay_other_us": lambda: timed(self.rotating.eval) / REPLAYED,
            "sync_us": lambda: timed(exchange),
            "upload_gbps": lambda: gigabytes / timed(lambda: self.reused.eval(large_up)),
            "download_gbps": lambda: gigabytes / timed(lambda: self.reused.eval(large_down)),
        }

    def right(self) -> bool:
        """Whether a replay adds what it should."""
        self.manager.sequence().eval(self.sync_local([self.tensor]))
        before = self.tensor.data().copy()
        self.many.eval()
        self.rotating.eval()
        self.manager.sequence().eval(self.sync_local([self.tensor]))
        return bool((self.tensor.data() == np.roll(before, -REPLAYED) + 2 * REPLAYED).all())


def timed(work: Callable[[], object]) -> float:
    """Return the median time of a call, in microseconds."""
    work()
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def start_times(name: str, environment: dict[str, str]) -> dict[str, float]:
    """Return what a fresh process takes for its import and its Managers, in milliseconds."""
    done = subprocess.run(
        [sys.executable, "-c", START.format(name=name)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    figures = ("import_ms", "manager_ms", "manager_again_ms", "ready_ms")
    return dict(zip(figures, map(float, done.stdout.split()[-4:]), strict=True))


@click.command()
@click.option("--peer", type=click.Path(exists=True, path_type=Path), help="A folder with kp.")
@click.option("--rounds", default=7, show_default=True, help="Turns of each of the two.")
@click.option("--starts", default=15, show_default=True, help="Fresh processes of each.")
@click.option("--json", "out", type=click.Path(path_type=Path), help="Where the results go.")
@click.option("--commit", default="", help="What they say of the commit.")
def main(peer: Path | None, rounds: int, starts: int, out: Path | None, commit: str) -> None:
    """Time both modules in turn, and print a table."""
    os.environ["VK_LAYER_PATH"] = os.devnull
    if peer is not None:
        sys.path.insert(0, str(peer.resolve()))
    names = []
    for name in NAMES:
        try:
            importlib.import_module(name)
            names.append(name)
        except ImportError as error:
            print(f"{name} is left out: {error}")
    ours = importlib.import_module(NAMES[1])
    spirv = {"add": ours.compile_glsl(ADD_ONE), "rotate": ours.compile_glsl(ROTATE)}
    programs = {name: Programs(importlib.import_module(name), spirv) for name in names}
    values: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    measures = {name: program.measures() for name, program in programs.items()}
    for turn in range(rounds):
        for figure in measures[names[-1]]:
            for name in names if turn % 2 else reversed(names):
                values[name].setdefault(figure, []).append(measures[name][figure]())
    right = {name: program.right() for name, program in programs.items()}
    with tempfile.TemporaryDirectory() as compiled:
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        path = os.pathsep.join(
            filter(None, [str(peer or ""), str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
        )
        environment |= {"PYTHONPYCACHEPREFIX": compiled, "PYTHONPATH": path}
        for turn in range(starts + 1):
            for name in names if turn % 2 else reversed(names):
                for figure, value in start_times(name, environment).items():
                    if turn:  # the first one compiles
                        values[name].setdefault(figure, []).append(value)
    device: Any = programs[NAMES[1]].manager.get_device_properties()["device_name"]
    report(values)
    print(
        "results:",
        ", ".join(f"{name} {'right' if is_right else 'WRONG'}" for name, is_right in right.items()),
    )
    if out is not None:
        results = {
            "schema": SCHEMA,
            "date": datetime.datetime.now().isoformat(timespec="seconds"),
            "device": device,
            "driver_version": programs[NAMES[1]].manager.context.device_infos[0].driver_version,
            "commit": commit,
            "load": os.getloadavg()[0],
            "figures": FIGURES,
            "right": right,
            "results": values,
        }
        out.write_text(json.dumps(results, indent=1) + "\n")
    if not right[NAMES[1]]:
        raise SystemExit(1)


def report(values: dict[str, dict[str, list[float]]]) -> None:
    """Print medians, and how many times as good as kp's ours are."""
    for figure, text in FIGURES.items():
        medians = {name: statistics.median(each[figure]) for name, each in values.items() if figure in each}
        line = "  ".join(f"{name} {median:9.2f}" for name, median in medians.items())
        if len(medians) == len(NAMES):
            ratio = medians[NAMES[0]] / medians[NAMES[1]]
            line += f"  {1 / ratio if figure.endswith('gbps') else ratio:6.2f}x"
        print(f"{figure:18}{line}  ({text})")


if __name__ == "__main__":
    main()
