"""A soak: everything a user does, for as long as one likes, while what a process holds must stay flat."""

from __future__ import annotations

import datetime
import gc
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import vkdispatch as vd
from benchmarks import report, soak_work

SCHEMA = "soak-1"
LEAST_SAMPLES = 20  # a short run looks more often than each minute
WARM_UP = 0.25  # share of the samples


class Sample(NamedTuple):
    """What the process holds at one time, with nothing under way."""

    minutes: float
    operations: int
    descriptors: int
    threads: int
    objects: int
    resident: int


class Bound(NamedTuple):
    """How much a figure may grow each minute, after the warm-up; one leak a round is far beyond it."""

    figure: str
    name: str
    most: float
    unit: str
    divisor: int


BOUNDS = (
    Bound("descriptors", "file descriptors", 0.1, "", 1),
    Bound("threads", "threads", 0.1, "", 1),
    Bound("objects", "Vulkan objects", 0.5, "", 1),
    Bound("resident", "resident memory", 0.25, " MiB", 1 << 20),
)


class Verdict(NamedTuple):
    """What became of a figure: `slope` is per minute, in the figure's own unit."""

    bound: Bound
    slope: float

    @property
    def flat(self) -> bool:
        """Whether it grew no more than it may."""
        return self.slope / self.bound.divisor <= self.bound.most

    def __str__(self) -> str:
        bound, slope = self.bound, self.slope / self.bound.divisor
        word = "flat" if self.flat else "GROWS"
        return f"{bound.name}: {word}: {slope:+.3f}{bound.unit} a minute, at most {bound.most:g}{bound.unit}"


def entries(folder: str) -> int:
    """Return how many entries a folder has."""
    return sum(1 for _ in Path(folder).iterdir())


def sample(minutes: float, operations: int) -> Sample:
    """Finish what is under way, drop what nobody holds, and look."""
    gc.collect()
    vd.queue_wait_idle()
    engine = vd.get_context()._native
    # The queue's thread does the last of it.
    pause = threading.Event()
    for _ in range(1000):
        statistics = engine.statistics()
        if statistics["waiting_frees"] == 0:
            break
        pause.wait(0.01)
    memory = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return Sample(
        minutes,
        operations,
        entries("/proc/self/fd"),
        entries("/proc/self/task"),
        statistics["live_objects"],
        memory,
    )


def work(minutes: float, do_round: Callable[[int], int] = soak_work.do_round) -> Iterator[Sample]:
    """Do rounds of work for so long; give a sample each minute, or more often in a short run."""
    begin = time.perf_counter()
    interval = min(1.0, minutes / LEAST_SAMPLES)
    operations, due = 0, interval
    for turn in itertools.count():
        operations += do_round(turn)
        now = (time.perf_counter() - begin) / 60
        if now >= due:
            yield sample(now, operations)
            due = now + interval
        if now >= minutes:
            return


def slope(times: Sequence[float], values: Sequence[float]) -> float:
    """Return the median of the slopes of all pairs, which single jumps do not move."""
    pairs = itertools.combinations(zip(times, values, strict=True), 2)
    return median([(after[1] - before[1]) / (after[0] - before[0]) for before, after in pairs])


def judge(samples: Sequence[Sample]) -> list[Verdict]:
    """Return what became of each figure after the warm-up. Raises ValueError for fewer than four samples."""
    if len(samples) < 4:
        raise ValueError(f"{len(samples)} samples are too few to judge: let it run for longer")
    warm = samples[int(len(samples) * WARM_UP) :]
    times = [each.minutes for each in warm]
    return [Verdict(bound, slope(times, [getattr(each, bound.figure) for each in warm])) for bound in BOUNDS]


HEADER = f"{'minutes':>7} {'operations':>11} {'descriptors':>11} {'threads':>7} {'objects':>7} {'MiB':>8}"


def row(found: Sample) -> str:
    """Return a sample as a line of the table."""
    return (
        f"{found.minutes:7.1f} {found.operations:11} {found.descriptors:11} {found.threads:7} "
        f"{found.objects:7} {found.resident / 2**20:8.1f}"
    )


def as_report(samples: Sequence[Sample], verdicts: Sequence[Verdict], commit: str) -> dict[str, Any]:
    """Return what is written to the result file."""
    (device, *_) = vd.get_context().device_infos
    return {
        "schema": SCHEMA,
        "date": datetime.datetime.now().isoformat(timespec="seconds"),
        "device": device.device_name,
        "commit": commit,
        "machine": report.machine(),
        "work": [each.__name__ for each in soak_work.WORK],
        "samples": [each._asdict() for each in samples],
        "slopes": {each.bound.figure: each.slope for each in verdicts},
        "flat": all(each.flat for each in verdicts),
    }
