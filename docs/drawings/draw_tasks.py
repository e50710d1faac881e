"""Draw _static/many-devices-tasks.svg, for "From one GPU to many": python docs/drawings/draw_tasks.py.

It runs the transform by slabs and k-means of `benchmarks.scaling` on two workers of this machine,
and draws what each worker did, and what it held on the device.
"""

import sys
import threading
import time
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import scaling

PATH = Path(__file__).parents[1] / "_static" / "many-devices-tasks.svg"
WORKERS, PAUSE_S = 2, 0.03
PROGRAMS = ((scaling.fourier, 3.2e-2), (scaling.cluster_points, 2e-3))
COLOURS = {
    "make_block": "#b0b0b0",
    "transform": "#4878a8",
    "rechunk": "#e0a030",
    "sum_clusters": "#58a068",
    "transfer": "#c04040",
}
WORDS = {
    "make_block": "make the input",
    "transform": "FFT along an axis",
    "rechunk": "cut and join",
    "sum_clusters": "k-means, a step of a chunk",
    "transfer": "receive from the other worker",
}


def measure_memory() -> int:
    """Return the bytes that a worker holds on its device."""
    import vkdispatch as vd

    return int(vd.get_context()._native.statistics()["device_memory"])


def name_task(key: str, action: str) -> str:
    """Return which colour a part of a task has."""
    if action == "transfer":
        return "transfer"
    return next((name for name in COLOURS if name.split("_")[0] in key), "rechunk")


def watch_memory(client: Any, begin: float, done: threading.Event) -> dict[str, list[tuple[float, float]]]:
    """Return the seconds and the MiB of each worker until the event is set."""
    found: dict[str, list[tuple[float, float]]] = {}
    while not done.is_set():
        for worker, size in client.run(measure_memory).items():
            found.setdefault(worker, []).append((time.time() - begin, size / (1 << 20)))
        time.sleep(PAUSE_S)
    return found


def record() -> tuple[Any, Any]:
    """Run the programs. Return the task stream, in seconds from the beginning, and the memory of workers."""
    with scaling.open_cluster("vkdispatch", WORKERS) as client:
        for make, scale in PROGRAMS:  # compiles
            make(client, "vkdispatch", 2 * WORKERS, scale).run()
        done, begin, memory = threading.Event(), time.time(), {}
        thread = threading.Thread(target=lambda: memory.update(watch_memory(client, begin, done)))
        thread.start()
        for make, scale in PROGRAMS:
            make(client, "vkdispatch", 2 * WORKERS, scale).run()
        done.set()
        thread.join()
        stream = [
            (
                task["worker"],
                name_task(str(task["key"]), part["action"]),
                part["start"] - begin,
                part["stop"] - begin,
            )
            for task in client.get_task_stream(start=begin)
            for part in task["startstops"]
            if part["action"] in ("compute", "transfer")
        ]
    return stream, memory


def draw(stream: Any, memory: Any) -> None:
    """Draw rows of tasks above curves of memory."""
    matplotlib.rcParams.update({"svg.fonttype": "none", "font.size": 9, "svg.hashsalt": "vkdispatch"})
    figure, (above, below) = pyplot.subplots(
        2, 1, figsize=(9, 4), sharex=True, height_ratios=(2, 1.3), layout="constrained"
    )
    workers = sorted(memory)
    for name, colour in COLOURS.items():
        for row, worker in enumerate(workers):
            bars = [(start, stop - start) for at, kind, start, stop in stream if (at, kind) == (worker, name)]
            place = (row - 0.4, 0.55) if name != "transfer" else (row + 0.18, 0.22)
            above.broken_barh(bars, place, color=colour, linewidth=0, label=WORDS[name] if row == 0 else None)
    above.set_yticks(range(len(workers)), [f"worker {row}" for row in range(len(workers))])
    above.invert_yaxis()
    above.legend(ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False, fontsize=8)
    for row, worker in enumerate(workers):
        below.step(*zip(*memory[worker], strict=True), where="post", linewidth=1, label=f"worker {row}")
    below.set_ylabel("MiB on the device")
    below.set_xlabel("seconds")
    below.set_ylim(bottom=0)
    below.legend(frameon=False, fontsize=8)
    figure.savefig(PATH, metadata={"Date": None})


if __name__ == "__main__":
    draw(*record())
