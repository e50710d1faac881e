"""Calls that wait, compile or copy much data release the GIL, so that other threads can run."""

from __future__ import annotations

import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch_native as native

from .conftest import first_device
from .gates import Gate, disable_forced_switches, releases_the_lock
from .kernels import SPIN, Array, affine_launcher

# How often another thread must get the GIL during one call: more often than a short wait allows.
TURNS = 3
BIG = 128 << 20  # bytes


@pytest.fixture(params=["mapped", "staged"])
def plain_engine(request: pytest.FixtureRequest) -> Iterator[native.Engine]:
    """Yield an engine without debug mode."""
    engine = native.Engine([first_device()], [[0]], False, request.param == "staged")
    yield engine
    engine.close()


class Ticker:
    """A thread that counts whenever it holds the GIL."""

    def __init__(self) -> None:
        self.turns = 0
        self._done = False
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._done:
            self.turns += 1
            time.sleep(0.0002)

    def __enter__(self) -> Ticker:
        self._thread.start()
        while not self.turns:
            time.sleep(0.001)
        return self

    def __exit__(self, *_: object) -> None:
        self._done = True
        self._thread.join()


def lets_others_run(work: Callable[[], object], tries: int = 300) -> bool:
    """Whether another thread runs Python code during `work`, which must take long enough to notice."""
    # In this order: a ticker that already waits would force a switch after the previous interval.
    with disable_forced_switches(), Ticker() as ticker:
        for _ in range(tries):
            before = ticker.turns
            work()
            if ticker.turns - before >= TURNS:
                return True
    return False


def make_spinning_work(engine: native.Engine) -> tuple[native.Plan, native.Launcher, Array]:
    plan = native.Plan(engine, native.compile_glsl(SPIN), [1], 4, "spin")
    slots = [native.BufferSlot(binding=0), native.ScalarSlot(offset=0, code="I")]
    launcher = native.Launcher(engine, plan, slots, 4, -1, -1, -1, (64, 1, 1), (65535,) * 3, None)
    return plan, launcher, Array(engine, np.ones(1, np.uint32))


@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="there is no lock to hold")
def test_ticker_detects_a_held_lock() -> None:
    numbers = np.ones(3_000_000, object)
    assert not lets_others_run(numbers.sum, tries=3)
    assert lets_others_run(lambda: time.sleep(0.05))
    with Gate(vd.get_context()._native) as gate:
        gate.hold()
        assert not releases_the_lock(gate, lambda: None)
        assert gate.is_holding()


def test_waits_release_the_lock(plain_engine: native.Engine) -> None:
    def read(held: Array) -> None:
        held.read()

    def idle(held: Array) -> None:
        plain_engine.wait_idle()

    def wait_for(held: Array) -> None:
        plain_engine.wait_for(0, plain_engine.last_value(0), True)

    def write(held: Array) -> None:
        held._native.write(0, np.ones(1, np.uint32))

    mapped = Array(plain_engine, np.ones(1, np.uint32))._native.host_mapped
    # With staging, a write is ordered in the queue and need not wait.
    for work in (read, idle, wait_for, write) if mapped else (read, idle, wait_for):
        with Gate(plain_engine) as gate:
            held = gate.hold()
            assert releases_the_lock(gate, lambda: work(held)), work.__name__  # noqa: B023


def test_copies_release_the_lock(plain_engine: native.Engine) -> None:
    buffer = native.Buffer(plain_engine, BIG)
    host = np.ones(BIG, np.uint8)
    assert lets_others_run(lambda: buffer.write(0, host))
    assert lets_others_run(lambda: buffer.read_into(0, host))


def test_copies_of_images_release_the_lock(plain_engine: native.Engine) -> None:
    image = native.Image(plain_engine, 1, 109, (2048, 4096, 1), 1, 1, False)  # of four floats
    host = np.ones(4 * 2048 * 4096, np.float32)
    assert lets_others_run(lambda: image.write(0, host))
    assert lets_others_run(lambda: image.read_into(0, host))


def test_copies_of_strided_arrays_release_the_lock() -> None:
    buffer = vd.Buffer(BIG // 4, vd.float32)
    pairs = np.ones((BIG // 4, 2), np.float32)
    assert lets_others_run(lambda: buffer.write(pairs[:, 0]))
    assert lets_others_run(lambda: buffer.write(memoryview(pairs[:, 0])))
    assert lets_others_run(lambda: buffer.read(0))


def long_source(statements: int) -> str:
    body = "".join(f"    x = fma(x, {1.0 + i * 1e-4}, sin(x + {i}.0));\n" for i in range(statements))
    return (
        "#version 450\nlayout(local_size_x = 64) in;\n"
        "layout(set = 0, binding = 0) buffer Data { float data[]; };\n"
        f"void main() {{\n    float x = data[0];\n{body}    data[0] = x;\n}}\n"
    )


def test_compiling_releases_the_lock(plain_engine: native.Engine) -> None:
    source = long_source(2000)
    assert lets_others_run(lambda: native.compile_glsl(source))
    made = 0

    def plan() -> None:
        nonlocal made
        made += 1  # a new module each time: drivers cache compiled ones
        native.Plan(plain_engine, spirv[made % len(spirv)], [1], 0, f"long {made}")

    spirv = [native.compile_glsl(long_source(1000 + extra)) for extra in range(3)]
    assert lets_others_run(plan)


def test_recording_while_another_thread_submits(plain_engine: native.Engine) -> None:
    """A submit that waits for room holds the list. A thread that records into it waits without the GIL."""
    _, launcher, array = make_spinning_work(plain_engine)
    commands = native.CommandList(plain_engine)
    for _ in range(1000):
        launcher.record(commands, (array, 100), 64, False)
    # Repeated equal submits would be replayed from command buffers, which need no room.
    rows = struct.pack("I", 100) * 1000 + struct.pack("I", 101) * 1000
    thread = threading.Thread(target=lambda: commands.submit(0, rows * 35, 70))

    def record() -> None:
        launcher.record(commands, (array, 100), 64, False)
        thread.join()

    with Gate(plain_engine) as gate:
        gate.hold()
        thread.start()
        time.sleep(0.02)  # so that it most likely waits for room by now
        assert releases_the_lock(gate, record)
    assert commands.length == 1001


def test_closing_releases_the_lock() -> None:
    engine = native.Engine([first_device()], [[0]], False, False)
    with Gate(engine) as gate:
        gate.hold()
        assert releases_the_lock(gate, engine.close)


def test_graphs_far_ahead_release_the_lock() -> None:
    data = vd.asbuffer(np.zeros(1, np.float32))
    engine = vd.get_context()._native
    _, launcher = affine_launcher(engine)

    def far_ahead() -> None:
        for _ in range(70_000):
            launcher.launch((data, 1.0), 1, False)

    with Gate(engine) as gate:
        gate.hold()
        assert releases_the_lock(gate, far_ahead)
    vd.queue_wait_idle()
    assert data.read(0)[0] == 70_000
