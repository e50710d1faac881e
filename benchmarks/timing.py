"""Clocks around a piece of work. This runs in every library's process: NumPy is all that it needs."""

import gc
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Sizes = dict[str, float]
Values = dict[str, float]
Work = Callable[[], object]
Check = Callable[[int], bool]


class SkipCase(Exception):
    """The library, or its version, cannot do what the case asks for; the text says why."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A case made ready in one process.

    Attributes
    ----------
    measure
        One round: runs the work and returns its figures by name.
    right
        Whether the data is what all the work that ran must have made of it.
    repetitions
        How often a round does the work.
    """

    measure: Callable[[], Values]
    right: Callable[[], bool]
    repetitions: int


def pattern(count: int) -> npt.NDArray[np.float32]:
    """Return 0 to 6 again and again: multiples of it by halves are exact, and it is not constant."""
    return np.resize(np.arange(7, dtype=np.float32), count)


def nothing() -> None:
    """Wait for nothing."""


def repetitions_for(work: Work, wait: Work, seconds: float, most: int) -> tuple[int, int]:
    """Return how often `work` fits into `seconds`, and how often it ran to find out.

    It runs twice before the clock starts, so that what the first calls build is not timed.
    """
    work()
    work()
    wait()
    tries = 1
    ran = 2
    while True:
        start = time.perf_counter()
        for _ in range(tries):
            work()
        wait()
        took = time.perf_counter() - start
        ran += tries
        if took >= seconds / 10 or tries >= most:
            return max(1, min(most, int(seconds * tries / max(took, 1e-9)))), ran
        tries = min(most, tries * 8)


def time_calls(work: Work, wait: Work, right: Check, sizes: Sizes) -> Trial:
    """Figures of a call that returns before the device is done.

    host_us: CPU time of the calling thread, per call. loop_us: wall clock over the calls, per call. total_us:
    wall clock to the end of the wait that follows, per call.
    """
    repetitions, ran = repetitions_for(work, wait, sizes["seconds"], int(sizes["calls"]))

    def measure() -> Values:
        nonlocal ran
        cpu, wall = time.thread_time(), time.perf_counter()
        for _ in range(repetitions):
            work()
        cpu, loop = time.thread_time() - cpu, time.perf_counter() - wall
        wait()
        total = time.perf_counter() - wall
        ran += repetitions
        per_call = 1e6 / repetitions
        return {"host_us": cpu * per_call, "loop_us": loop * per_call, "total_us": total * per_call}

    return Trial(measure, lambda: right(ran), repetitions)


def time_each(work: Work, right: Check, sizes: Sizes, wait: Work = nothing) -> Trial:
    """Figures of work that is over when it returns. wall_us: the calls' median. mean_us: their mean.

    On a busy machine the mean is that of its interruptions. `wait` comes after the clock.
    """
    repetitions, ran = repetitions_for(work, wait, sizes["seconds"], int(sizes["calls"]))

    def measure() -> Values:
        nonlocal ran
        times = np.empty(repetitions + 1)
        times[0] = time.perf_counter()
        for number in range(1, repetitions + 1):
            work()
            times[number] = time.perf_counter()
        wait()
        ran += repetitions
        each = np.diff(times) * 1e6
        return {"wall_us": float(np.median(each)), "mean_us": float(each.mean())}

    return Trial(measure, lambda: right(ran), repetitions)


def time_bytes(work: Work, wait: Work, bytes_moved: float, right: Check, sizes: Sizes) -> Trial:
    """Figure of work that moves memory. gbps: `bytes_moved` (10^9) per second, with the wait."""
    repetitions, ran = repetitions_for(work, wait, sizes["seconds"], int(sizes["passes"]))

    def measure() -> Values:
        nonlocal ran
        start = time.perf_counter()
        for _ in range(repetitions):
            work()
        wait()
        seconds = time.perf_counter() - start
        ran += repetitions
        return {"gbps": bytes_moved * repetitions / seconds / 1e9}

    return Trial(measure, lambda: right(ran), repetitions)


def time_passes(
    work: Work, wait: Work, passes: int, bytes_moved: float, points: float, right: Check, sizes: Sizes
) -> Trial:
    """Figures of work that goes over its data several times, in `passes` that are alike.

    ms: wall clock of a pass. gbps: `bytes_moved` (10^9) by a pass, per second. gpoints: `points` (10^9) of a
    pass, per second. The work runs again and again before the wait, so the device is never without any. A
    tenth as much comes before the clock: after others' turns, the device's may be slow. Where the sizes say
    for how many seconds the device is to be kept `warm`, it is for so long before the first round, and for a
    quarter of that before others: GPUs that waited for the host take a while to be fast again.
    """
    repetitions, ran = repetitions_for(work, wait, sizes["seconds"], int(sizes["passes"]))
    warm = 1 + repetitions // 10
    busy = sizes.get("warm", 0.0)

    def measure() -> Values:
        nonlocal ran, busy
        until = time.perf_counter() + busy
        while True:
            for _ in range(warm):
                work()
            wait()
            ran += warm
            if time.perf_counter() >= until:
                break
        # other libraries' turns keep it so
        busy = sizes.get("warm", 0.0) / 4
        start = time.perf_counter()
        for _ in range(repetitions):
            work()
        wait()
        seconds = (time.perf_counter() - start) / (repetitions * passes)
        ran += repetitions
        return {"ms": seconds * 1e3, "gbps": bytes_moved / seconds / 1e9, "gpoints": points / seconds / 1e9}

    return Trial(measure, lambda: right(ran), repetitions)


def time_recording(
    make: Callable[[], tuple[Work, Work]], wait: Work, right: Check, sizes: Sizes, warm: int = 2
) -> Trial:
    """Figures of a recording that is replayed.

    `make` returns what records everything, and what replays it once. record_us: CPU time of the recording
    thread, per dispatch. submit_us: CPU time of a replay's call. dispatch_us: wall clock of the replays and
    the wait that follows, per dispatch. `warm` replays come before the clock. `right` is given how often
    everything ran.
    """
    length, replays = int(sizes["length"]), int(sizes["replays"])
    ran = 0

    def measure() -> Values:
        nonlocal ran
        # the last round's recording goes now, not while the clock runs
        gc.collect()
        record, replay = make()
        start = time.thread_time()
        record()
        recording = time.thread_time() - start
        for _ in range(warm):
            replay()
        wait()
        cpu, wall = time.thread_time(), time.perf_counter()
        for _ in range(replays):
            replay()
        cpu = time.thread_time() - cpu
        wait()
        wall = time.perf_counter() - wall
        ran += replays + warm
        return {
            "record_us": recording * 1e6 / length,
            "submit_us": cpu * 1e6 / replays,
            "dispatch_us": wall * 1e6 / (replays * length),
        }

    return Trial(measure, lambda: right(ran), replays)


def time_threads(
    work_of: Callable[[int], Work], wait: Work, right: Callable[[list[int]], bool], sizes: Sizes
) -> Trial:
    """Figures of launching from several threads.

    launches_<n>: launches a second by n threads together, wall clock. `work_of(k)` is what thread k calls
    again and again; the clock stops after the wait that follows. `right` is given how often each thread's
    work ran.
    """
    counts = [1, 2, 4, 8, 16]
    works = [work_of(number) for number in range(counts[-1])]
    ran = [0] * counts[-1]
    for number, work in enumerate(works):
        work()
        ran[number] += 1
    launches, tried = repetitions_for(works[0], wait, sizes["seconds"], int(sizes["launches"]))
    launches = max(launches, counts[-1])
    ran[0] += tried

    def one_thread(number: int, start: threading.Barrier, times: int) -> None:
        work = works[number]
        start.wait()
        for _ in range(times):
            work()
        ran[number] += times

    def measure() -> Values:
        values = {}
        for count in counts:
            times = launches // count
            start = threading.Barrier(count + 1)
            threads = [
                threading.Thread(target=one_thread, args=(number, start, times)) for number in range(count)
            ]
            for thread in threads:
                thread.start()
            start.wait()
            begun = time.perf_counter()
            for thread in threads:
                thread.join()
            wait()
            values[f"launches_{count}"] = times * count / (time.perf_counter() - begun)
        return values

    return Trial(measure, lambda: right(ran), launches)
