"""Asynchronous copies: their order within and across queues, and misuse."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import vkdispatch_native as native

from .conftest import first_device
from .gates import Gate
from .kernels import SPIN, Array, affine_launcher

QUEUES = 2


@pytest.fixture(
    params=["mapped", "staged", "mapped, 1 twin", "staged, 1 twin", "mapped, 2 twins", "staged, 2 twins"]
)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[native.Engine]:
    """Yield an engine with two queues in debug mode, with and without transfer queues."""
    twins = next((count for count in (1, 2) if f"{count} twin" in request.param), 0)
    monkeypatch.setenv("VKDISPATCH_FORCE_TRANSFER_QUEUE", str(twins))
    staged = request.param.startswith("staged")
    engine = native.Engine([first_device()], [[0] * QUEUES], True, staged)
    assert engine.transfer_queues == QUEUES * twins
    native.take_messages()
    yield engine
    engine.close()
    assert native.take_messages() == []


def pinned(engine: native.Engine, count: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    block: Any = native.HostBlock(engine, 0, count * np.dtype(dtype).itemsize)
    return np.frombuffer(block, dtype, count)


def spinner(engine: native.Engine) -> native.Launcher:
    plan = native.Plan(engine, native.compile_glsl(SPIN), [1], 4, "spin")
    slots = [native.BufferSlot(binding=0), native.ScalarSlot(offset=0, code="I")]
    return native.Launcher(engine, plan, slots, 4, -1, -1, -1, (64, 1, 1), (65535,) * 3, None)


def test_reads_keep_their_order(engine: native.Engine) -> None:
    """Between two launches on one buffer, each read sees the first and not the second."""
    _, launch = affine_launcher(engine)
    array = Array(engine, np.zeros(5003, np.float32))
    outs = []
    points = []
    for _ in range(40):
        launch.launch((array, 1.0), 5003, False)
        outs.append(pinned(engine, 5003))
        points += array._native.read_async(0, outs[-1])
    assert engine.wait_until(points, 100)
    assert [set(out) for out in outs] == [{float(i + 1)} for i in range(40)]


def test_writes_keep_their_order(engine: native.Engine) -> None:
    _, launch = affine_launcher(engine)
    array = Array(engine, np.zeros(5003, np.float32))
    outs = []
    points = []
    for i in range(40):
        source = pinned(engine, 5003) if i % 2 else np.empty(5003, np.float32)
        source[:] = 10 * i
        points += array._native.write_async(0, source)
        if i % 2 == 0:
            source[:] = -1  # not pinned, so it may be reused
        launch.launch((array, 1.0), 5003, False)
        outs.append(pinned(engine, 5003))
        points += array._native.read_async(0, outs[-1])
    assert engine.wait_until(points, 100)
    assert [set(out) for out in outs] == [{10.0 * i + 1} for i in range(40)]


def test_uploads_and_downloads_are_ordered(engine: native.Engine) -> None:
    """Uploads and downloads alternate on one buffer, and on one block of host memory."""
    size = 300_000
    array = Array(engine, np.zeros(size, np.float32))
    blocks = [pinned(engine, size) for _ in range(3)]
    outs = [pinned(engine, size) for _ in range(12)]
    points = []
    for number, out in enumerate(outs):
        block = blocks[number % 3]
        if number >= 3:
            assert engine.wait_until(points[number - 3], 100)
        block[:] = number
        array._native.write_async(0, block)
        points.append(array._native.read_async(0, out))
    for number, out in enumerate(outs):
        assert engine.wait_until(points[number], 100) and set(out) == {float(number)}
    # Download to a block, upload from it, download what that wrote.
    other = Array(engine, np.zeros(size, np.float32))
    array._native.read_async(0, blocks[0])
    other._native.write_async(0, blocks[0])
    points = other._native.read_async(0, blocks[1])
    assert engine.wait_until(points, 100) and set(blocks[1]) == {11.0}


def test_one_block_through_several_buffers(engine: native.Engine) -> None:
    """One copy fills memory that the next one reads: there is a barrier between them, without any wait."""
    first, second = (Array(engine, np.full(3001, value, np.float32)) for value in (1, 2))
    block = pinned(engine, 3001)
    points = first._native.read_async(0, block)
    points += second._native.write_async(0, block)
    points += first._native.write_async(0, np.full(3001, 5, np.float32))
    points += first._native.read_async(0, block)
    assert engine.wait_until(points, 100)
    assert set(second.read()) == {1.0} and set(block) == {5.0}


def test_waiting_calls_see_started_transfers(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(3001, np.float32))
    for value in range(1, 20):
        array._native.write_async(-1, np.full(3001, value, np.float32))
        assert {*array.read(0), *array.read(1)} == {float(value)}
        out = pinned(engine, 3001)
        points = array._native.read_async(1, out)
        array._native.write(-1, np.full(3001, -1, np.float32))
        assert engine.wait_until(points, 100) and set(out) == {float(value)}


def test_command_lists_wait_for_transfers(engine: native.Engine) -> None:
    plan, _ = affine_launcher(engine)
    array = Array(engine, np.zeros(64, np.float32))
    commands = native.CommandList(engine)
    commands.record(plan, [(array._native, 0, 0, 0, True, True)], (1, 1, 1), 16)
    row = np.array([64, 1, 1], np.uint32).tobytes() + np.float32(1).tobytes()
    for value in range(6):  # streamed, recorded, replayed
        array._native.write_async(-1, np.full(64, 10 * value, np.float32))
        commands.submit(-2, row, 1)
        out = pinned(engine, 64)
        points = array._native.read_async(0, out)
        commands.submit(-2, row, 1)
        assert engine.wait_until(points, 100)
        assert set(out) == {10.0 * value + 1} and set(array.read(1)) == {10.0 * value + 2}


def test_copies_between_queues_follow_transfers(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(3001, np.float32))
    for value in range(1, 10):
        array._native.write_async(0, np.full(3001, value, np.float32))
        array._native.copy_between(0, 1)
        array._native.write_async(0, np.full(3001, -1, np.float32))
        out = pinned(engine, 3001)
        points = array._native.read_async(1, out)
        assert engine.wait_until(points, 100)
        assert set(out) == {float(value)} and set(array.read(0)) == {-1.0}


def test_copies_between_buffers(engine: native.Engine) -> None:
    """They are ordered with launches and transfers of both buffers."""
    _, launch = affine_launcher(engine)
    first, second = (Array(engine, np.zeros(5003, np.float32)) for _ in range(2))
    outs = [pinned(engine, 5003) for _ in range(30)]
    points = []
    for number, out in enumerate(outs):
        first._native.write_async(-1, np.full(5003, number, np.float32))
        launch.launch((first, 1.0), 5003, False)
        second._native.copy_from(first._native)
        launch.launch((first, 2.0), 5003, False)
        launch.launch((second, 1.0), 5003, False)
        points += second._native.read_async(number % QUEUES, out)
        first._native.copy_from(second._native)
    assert engine.wait_until(points, 100)
    assert [set(out) for out in outs] == [{number + 2.0} for number in range(30)]
    np.testing.assert_array_equal(first.read(1), outs[-1])
    first._native.copy_from(first._native)
    np.testing.assert_array_equal(first.read(0), outs[-1])
    other = native.Engine([first_device()], [[0]], True, False)
    for source, text in ((native.Buffer(engine, 4), "4 bytes"), (native.Buffer(other, 5003 * 4), "engine")):
        with pytest.raises(ValueError, match=text):
            first._native.copy_from(source)
    with pytest.raises(ValueError, match="queue 2"):
        first._native.copy_from(second._native, 2)
    with pytest.raises(TypeError):
        first._native.copy_from(None)  # type: ignore[arg-type]
    other.close()
    second._native.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        first._native.copy_from(second._native)
    assert first.read()[0] == outs[-1][0]


def test_queues_wait_for_each_other(engine: native.Engine) -> None:
    """Each queue waits for the other, in rounds that are all appended before any is finished."""
    spin = spinner(engine)
    _, launch = affine_launcher(engine)
    busy = Array(engine, np.ones(1, np.uint32))
    array = Array(engine, np.zeros(100, np.float32))
    outs = []
    points = []
    for _ in range(10):
        spin.launch((busy, 20_000), 1, True, 0)
        launch.launch((array, 1.0), 100, False, 0)
        engine.follow(engine.work_points(0), 1)
        outs.append(pinned(engine, 100))
        array._native.copy_between(0, 1)
        points += array._native.read_async(1, outs[-1])
        engine.follow(engine.work_points(1), 0)
    assert engine.wait_until(points, 60)
    assert [set(out) for out in outs] == [{float(i + 1)} for i in range(10)]
    # waits for nothing new, repeatedly, in a ring
    for _ in range(20):
        engine.follow(engine.work_points(0), 1)
        engine.follow(engine.work_points(1), 0)
        engine.follow(engine.work_points(), -1)
    engine.wait_idle()


def test_launching_on_one_queue(engine: native.Engine) -> None:
    _, launch = affine_launcher(engine)
    array = Array(engine, np.zeros(100, np.float32))
    for queue, count in ((0, 1), (1, 3), (-2, 5)):
        for _ in range(count):
            assert launch.launch((array, 1.0), 100, False, queue)
    assert [set(array.read(queue)) for queue in range(2)] == [{6.0}, {8.0}]
    for _ in range(10):
        assert launch.launch((array, 1.0), 100, False, -1)
    assert sum(array.read(queue)[0] for queue in range(2)) == 24
    for queue in (2, -3, 2**20):
        with pytest.raises(ValueError, match="does not exist"):
            launch.launch((array, 1.0), 100, False, queue)


def test_dropping_buffers_during_transfers(engine: native.Engine) -> None:
    spin = spinner(engine)
    busy = Array(engine, np.ones(1, np.uint32))
    for i in range(20):
        array = Array(engine, np.full(50_000, i, np.float32))
        spin.launch((busy, 20_000), 1, True)
        out = pinned(engine, 50_000)
        points = array._native.read_async(0, out)
        array._native.write_async(-1, pinned(engine, 50_000))
        array._native.write_async(-1, np.ones(50_000, np.float32))
        if i % 2:
            array._native.destroy()
        del array
        if i % 3 == 0:
            assert engine.wait_until(points, 100) and set(out) == {float(i)}
        del out
    gc.collect()
    engine.wait_idle()


def test_closing_during_transfers(engine: native.Engine) -> None:
    spin = spinner(engine)
    busy = Array(engine, np.ones(1, np.uint32))
    array = Array(engine, np.full(50_000, 3, np.float32))
    out = pinned(engine, 50_000)
    spin.launch((busy, 50_000), 1, True)
    points = array._native.read_async(1, out)

    def wait() -> None:
        with contextlib.suppress(RuntimeError):  # the context was closed, unless this was fast enough
            engine.wait_until(points * 99, 100)

    waiting = threading.Thread(target=wait)
    waiting.start()
    engine.close()
    waiting.join()
    assert set(out) == {3.0}
    out[:] = 1
    for use in (
        lambda: array._native.read_async(0, out),
        lambda: array._native.write_async(0, out),
        lambda: engine.wait_until(points, 0),
        lambda: engine.follow(points),
        lambda: engine.work_points(),
        lambda: native.HostBlock(engine, 0, 4),
    ):
        with pytest.raises(RuntimeError):
            use()


def test_many_threads(engine: native.Engine) -> None:
    _, launch = affine_launcher(engine)
    wrong = []

    def work(seed: int) -> None:
        array = Array(engine, np.zeros(1009, np.float32))
        out = pinned(engine, 1009)
        for i in range(25):
            array._native.write_async(-1, np.full(1009, seed + i, np.float32))
            launch.launch((array, 1.0), 1009, False)
            points = array._native.read_async(i % 2, out)
            if not engine.wait_until(points, 60) or set(out) != {seed + i + 1.0}:
                wrong.append((seed, i, out[0]))

    threads = [threading.Thread(target=work, args=(100 * number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_timeouts(engine: native.Engine) -> None:
    with Gate(engine) as gate:
        gate.hold()
        points = engine.work_points()
        assert not engine.wait_until(points, 0) and not engine.wait_until(points, 0.001)
    assert engine.wait_until(points, None) and engine.wait_until(points, 0) and engine.wait_until([], 0)


def test_invalid_arguments(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(100, np.float32))
    block = pinned(engine, 101)
    other = native.Engine([first_device()], [[0]], True, False)
    foreign = pinned(other, 100)
    for out in (np.zeros(100, np.float32), foreign):
        with pytest.raises(ValueError, match="pinned"):
            array._native.read_async(0, out)
    array._native.write_async(0, foreign)  # copied, since it is not pinned
    for call in (
        lambda: array._native.read_async(0, block),
        lambda: array._native.read_async(0, block[:50], 201),
        lambda: array._native.write_async(0, block),
        lambda: array._native.write_async(0, block[:1], 2**63),
        lambda: array._native.read_async(2, block),
        lambda: array._native.write_async(2, block),
        lambda: native.HostBlock(engine, 0, 0),
        lambda: native.HostBlock(engine, 7, 4),
        lambda: engine.follow([(9, 1)]),
        lambda: engine.wait_until([(9, 1)], 0),
    ):
        with pytest.raises(ValueError):
            call()
    frozen = block[:100].view()
    frozen.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        array._native.read_async(0, frozen)
    assert array._native.write_async(0, b"") == []
    kept = native.HostBlock(engine, 0, 4)
    with pytest.raises(RuntimeError, match="once"):
        kept.__init__(engine, 0, 4)  # type: ignore[misc]
    with pytest.raises(BufferError):
        memoryview(native.HostBlock.__new__(native.HostBlock))
    engine.follow([(0, 2**40)])  # a future number means all work so far
    engine.wait_idle()
    other.close()
    foreign[:] = 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_drops_blocks() -> None:
    """It only drops them; whether it can access the memory depends on the driver."""
    engine = native.Engine([first_device()], [[0]], False, False)
    array = pinned(engine, 100)
    child = os.fork()
    if child == 0:
        del array
        gc.collect()
        os._exit(3)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 3
    array[:] = 1
    engine.close()
