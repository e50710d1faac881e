"""Reads of a few bytes: given at once behind the work they need, waited for once, and open to interrupts."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import vkdispatch_native as native

from .conftest import first_device
from .kernels import SPIN, Array, affine_launcher

LARGEST = 256 << 10  # bytes that are read this way
PARTS = 8  # reads that may be under way this way

counted = pytest.mark.skipif(
    native.allocation_count() is None, reason="sanitized builds do not count allocations"
)


class Interrupted(Exception):
    """What the handler of the tests raises."""


def busy_for(engine: native.Engine, seconds: float) -> Callable[[], Array]:
    """Return what keeps queue 0 busy for about so long, and returns the buffer that it writes in the end."""
    plan = native.Plan(engine, native.compile_glsl(SPIN), [1], 4, "spin")
    slots = [("buffer", 0, -1, True, True), ("scalar", 0, "I")]
    spin = native.Launcher(engine, plan, slots, 4, -1, -1, -1, (64, 1, 1), (65535,) * 3, None)
    array = Array(engine, np.full(2, 7, np.uint32))

    def run(count: int) -> float:
        engine.wait_idle()
        begin = time.perf_counter()
        for _ in range(count):
            spin.launch((array, 60_000), 1, False)
        engine.wait_idle()
        return time.perf_counter() - begin

    count = int(seconds * 5 / min(run(5) for _ in range(5))) + 1  # in the best case, so rather too many

    def start() -> Array:
        for _ in range(count):
            spin.launch((array, 60_000), 1, False)
        return array

    return start


@pytest.fixture
def interrupting() -> Iterator[Callable[[float], None]]:
    """Yield what has `Interrupted` raised after some seconds."""

    def handler(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, handler)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds) and None
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("size", [4, 8, 252, LARGEST - 4, LARGEST, LARGEST + 4])
def test_sizes(engine: native.Engine, size: int) -> None:
    values = np.arange(size // 4, dtype=np.float32)
    array = Array(engine, values)
    _, launch = affine_launcher(engine)
    launch.launch((array, 2.0), values.size, False)
    np.testing.assert_array_equal(array.read(), 2 * values + 1)
    part = np.empty(min(values.size, 3), np.float32)
    array._native.read_into(0, part, size - part.nbytes)
    np.testing.assert_array_equal(part, (2 * values + 1)[-part.size :])
    array._native.read_into(0, part[:0], size)


def test_more_threads_than_parts(engine: native.Engine) -> None:
    wrong: list[Any] = []
    _, launch = affine_launcher(engine)

    def work(seed: int) -> None:
        size = 1 + seed * 1009
        array = Array(engine, np.full(size, seed, np.float32))
        for i in range(30):
            launch.launch((array, 1.0), size, False)
            found = array.read()
            if set(found) != {seed + i + 1.0}:
                wrong.append((seed, i, found))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2 * PARTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_interrupted(engine: native.Engine, interrupting: Callable[[float], None]) -> None:
    """More reads than there are parts are given up; each in time, and later ones are right."""
    start = busy_for(engine, 2.5)
    out = np.full(2, 5, np.uint32)
    array = start()
    began = time.perf_counter()
    for _ in range(PARTS + 2):
        interrupting(0.02)
        with pytest.raises(Interrupted):
            array._native.read_into(0, out)
    assert time.perf_counter() - began < 1.8
    assert set(out) == {5}
    seen = array.read()
    assert seen[0] != 7 and seen[1] == 7
    for _ in range(3 * PARTS):
        np.testing.assert_array_equal(array.read(), seen)


def test_handlers_may_read(engine: native.Engine, interrupting: Callable[[float], None]) -> None:
    start = busy_for(engine, 0.3)
    other = Array(engine, np.arange(3, dtype=np.float32))
    seen = []
    signal.signal(signal.SIGALRM, lambda number, frame: seen.append(other.read()))
    array = start()
    interrupting(0.02)
    assert array.read()[1] == 7
    np.testing.assert_array_equal(seen, [[0, 1, 2]])


def test_closed_meanwhile() -> None:
    engine = native.Engine([first_device()], [[0]], True, True)
    array = busy_for(engine, 0.3)()
    outcomes: list[Any] = []

    def read() -> None:
        try:
            outcomes.append(array.read()[1])
        except RuntimeError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    engine.close()
    for thread in threads:
        thread.join(30)
    assert len(outcomes) == 3 and set(outcomes) <= {7, "the context was destroyed"}
    assert native.take_messages() == []


def test_writes_do_not_wait() -> None:
    engine = native.Engine([first_device()], [[0]], True, True)
    array = busy_for(engine, 1.0)()
    begin = time.perf_counter()
    for value in range(20):
        array._native.write(0, np.full(2, value, np.uint32))
    assert time.perf_counter() - begin < 0.5
    np.testing.assert_array_equal(array.read(), [19, 19])
    engine.close()
    assert native.take_messages() == []


@counted
def test_nothing_is_allocated() -> None:
    engine = native.Engine([first_device()], [[0]], False, True)
    array = Array(engine, np.zeros(64, np.float32))
    values, out = np.arange(64, dtype=np.float32), np.empty(64, np.float32)

    def asked_for() -> int:
        before = native.allocation_count()
        for _ in range(500):
            array._native.write(0, values)
            array._native.read_into(0, out)
        after = native.allocation_count()
        assert before is not None and after is not None
        return after - before

    assert min(asked_for() for _ in range(5)) == 0
    np.testing.assert_array_equal(out, values)
    engine.close()
