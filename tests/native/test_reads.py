"""Small reads: appended after the work they need, with a single wait that can be interrupted."""

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
from .gates import Gate
from .kernels import Array, affine_launcher

LARGEST = 256 << 10  # the largest size that is read this way
PARTS = 8  # the number of concurrent reads this way

counted = pytest.mark.skipif(
    native.allocation_count() is None, reason="sanitized builds do not count allocations"
)


class Interrupted(Exception):
    """Raised by the signal handler of the tests."""


@pytest.fixture
def interrupt_after() -> Iterator[Callable[[float], None]]:
    """Yield a function that raises `Interrupted` after a number of seconds."""

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


def test_interrupted_reads_are_dropped(
    engine: native.Engine, interrupt_after: Callable[[float], None]
) -> None:
    """More reads than there are parts are interrupted before they finish; later reads are correct."""
    if native.device_properties()[first_device()]["device_name"].startswith("SwiftShader"):
        pytest.skip("SwiftShader is through with a gate's work within milliseconds")
    out = np.full(2, 5, np.uint32)
    array = Array(engine, np.full(2, 7, np.uint32))
    with Gate(engine) as gate:
        gate.hold(array)
        for _ in range(PARTS + 2):
            with pytest.raises(Interrupted):
                interrupt_after(0.02)
                array._native.read_into(0, out)
        assert set(out) == {5} and gate.is_holding()
    for _ in range(3 * PARTS):
        np.testing.assert_array_equal(array.read(), [8, 7])


def test_handlers_may_read(engine: native.Engine, interrupt_after: Callable[[float], None]) -> None:
    other = Array(engine, np.arange(3, dtype=np.float32))
    array = Array(engine, np.full(2, 7, np.uint32))
    seen = []
    with Gate(engine) as gate:

        def handler(number: int, frame: FrameType | None) -> None:
            gate.open()
            seen.append(other.read())

        signal.signal(signal.SIGALRM, handler)
        gate.hold(array)
        interrupt_after(0.02)
        np.testing.assert_array_equal(array.read(), [8, 7])
        assert gate.is_open()
    np.testing.assert_array_equal(seen, [[0, 1, 2]])


def test_closing_during_reads() -> None:
    engine = native.Engine([first_device()], [[0]], True, True)
    array = Array(engine, np.full(2, 7, np.uint32))
    outcomes: list[Any] = []

    def read() -> None:
        try:
            outcomes.append(array.read()[1])
        except RuntimeError as error:
            outcomes.append(str(error))

    with Gate(engine) as gate:
        gate.hold(array)
        threads = [threading.Thread(target=read) for _ in range(3)]
        threads.append(threading.Thread(target=engine.close))
        for thread in threads:
            thread.start()
            time.sleep(0.02)  # so that each most likely waits before the next begins
    for thread in threads:
        thread.join()
    assert len(outcomes) == 3 and set(outcomes) <= {7, "the context was closed; make a new one"}
    assert native.take_messages() == []


def test_writes_do_not_wait() -> None:
    engine = native.Engine([first_device()], [[0]], True, True)
    array = Array(engine, np.full(2, 7, np.uint32))
    with Gate(engine) as gate:
        gate.hold(array)
        for value in range(20):
            array._native.write(0, np.full(2, value, np.uint32))
        assert gate.is_holding()
    np.testing.assert_array_equal(array.read(), [19, 19])
    engine.close()
    assert native.take_messages() == []


@counted
def test_nothing_is_allocated() -> None:
    engine = native.Engine([first_device()], [[0]], False, True)
    array = Array(engine, np.zeros(64, np.float32))
    values, out = np.arange(64, dtype=np.float32), np.empty(64, np.float32)

    def count_allocations() -> int:
        before = native.allocation_count()
        for _ in range(500):
            array._native.write(0, values)
            array._native.read_into(0, out)
        after = native.allocation_count()
        assert before is not None and after is not None
        return after - before

    assert min(count_allocations() for _ in range(5)) == 0
    np.testing.assert_array_equal(out, values)
    engine.close()
