"""Copies between queues of several devices, in parts, through host memory that they may share."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import vkdispatch_native as native

from .conftest import first_device
from .kernels import SPIN, Array, affine_launcher
from .test_transfers import pinned

MIB = 1 << 20
DEVICES = 3
# Several parts, the last one shorter; more successive parts than blocks.
FLOATS = (5 * MIB + 12) // 4


@pytest.fixture(params=["mapped", "staged", "staged, 2 twins", "staged, 1 twin, apart", "mapped, apart"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[native.Engine]:
    """Yield an engine on one device opened several times, with shared or separate host memory."""
    twins = next((count for count in (1, 2) if f"{count} twin" in request.param), 0)
    monkeypatch.setenv("VKDISPATCH_FORCE_TRANSFER_QUEUE", str(twins))
    monkeypatch.setenv("VKDISPATCH_NO_HOST_IMPORT", str(int("apart" in request.param)))
    staged = request.param.startswith("staged")
    engine = native.Engine([first_device()] * DEVICES, [[0]] * DEVICES, True, staged)
    assert engine.transfer_queues == DEVICES * twins
    native.take_messages()
    yield engine
    engine.close()
    assert native.take_messages() == []


def test_copies_of_every_size_are_complete(engine: native.Engine) -> None:
    """Copies go from each device to the next, so that the blocks of each pair are reused."""
    random = np.random.default_rng(5)
    for size in (MIB + 1, 1, 3, MIB - 1, MIB, 8 * MIB - 1, 8 * MIB + 5, 34 * MIB + 2, 2 * MIB + 2):
        data = random.integers(0, 256, size, np.uint8)
        array = Array(engine, np.zeros(size, np.uint8))
        array._native.write(0, data)
        for source, target in ((0, 1), (1, 2), (2, 0)):
            array._native.copy_between(source, target)
            np.testing.assert_array_equal(array.read(target), data)
            array._native.write(source, np.zeros(size, np.uint8))
        np.testing.assert_array_equal(array.read(0), data)
        assert not array.read(1).any() and not array.read(2).any()


def test_copies_keep_their_order_among_launches(engine: native.Engine) -> None:
    """No copy overtakes an earlier launch on either queue, and no later launch overtakes a copy."""
    _, launch = affine_launcher(engine)
    array = Array(engine, np.zeros(FLOATS, np.float32))
    expected = [0.0] * DEVICES
    random = np.random.default_rng(6)
    for _ in range(24):
        source, target = random.choice(DEVICES, 2, replace=False)
        for queue, factor in ((source, 0.5), (target, 3.0), (source, 0.25)):
            launch.launch((array, factor), FLOATS, False, int(queue))
            expected[queue] = float(np.float32(expected[queue] * factor) + np.float32(1))
        array._native.copy_between(int(source), int(target))
        expected[target] = expected[source]
        launch.launch((array, 0.5), FLOATS, False, int(source))
        expected[source] = float(np.float32(expected[source] * 0.5) + np.float32(1))
    for queue in range(DEVICES):
        np.testing.assert_allclose(array.read(queue), expected[queue], rtol=1e-6)


def test_copies_keep_their_order_among_transfers(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(FLOATS, np.float32))
    outs, points = [pinned(engine, FLOATS) for _ in range(5)], []
    for number, out in enumerate(outs):
        array._native.write_async(1, np.full(FLOATS, number, np.float32))
        array._native.copy_between(1, 0)
        array._native.write_async(1, np.full(FLOATS, -1, np.float32))
        points += array._native.read_async(0, out)
        array._native.write_async(0, np.full(FLOATS, -2, np.float32))
    assert engine.wait_until(points, 100)
    assert [set(out) for out in outs] == [{float(number)} for number in range(5)]
    assert set(array.read(1)) == {-1.0}


def test_copies_recorded_far_ahead_of_the_device(engine: native.Engine) -> None:
    """More parts than may wait for their submit, after work that takes long."""
    plan = native.Plan(engine, native.compile_glsl(SPIN), [1], 4, "spin")
    slots = [native.BufferSlot(binding=0), native.ScalarSlot(offset=0, code="I")]
    spin = native.Launcher(engine, plan, slots, 4, -1, -1, -1, (64, 1, 1), (65535,) * 3, None)
    _, launch = affine_launcher(engine)
    busy = Array(engine, np.ones(1, np.uint32))
    arrays = [Array(engine, np.full(FLOATS, value, np.float32)) for value in range(3)]
    spin.launch((busy, 60_000), 1, True, 0)
    for number in range(40):
        source = number % 2
        for array in arrays:
            launch.launch((array, 1.0), FLOATS, False, source)
            array._native.copy_between(source, 1 - source)
    for value, array in enumerate(arrays):
        assert set(array.read(0)) == set(array.read(1)) == {40.0 + value}
        assert set(array.read(2)) == {float(value)}


def test_threads_copy_in_every_direction_at_once(engine: native.Engine) -> None:
    _, launch = affine_launcher(engine)
    wrong = []

    def work(seed: int) -> None:
        array = Array(engine, np.full(FLOATS // 2, seed, np.float32))
        for step in range(9):
            source, target = (seed + step) % DEVICES, (seed + step + 1 + seed % 2) % DEVICES
            launch.launch((array, 1.0), FLOATS // 2, False, source)
            array._native.copy_between(source, target)
            array._native.copy_between(target, source)
            array._native.copy_between(source, (source + 1) % DEVICES)
            array._native.copy_between(source, (source + 2) % DEVICES)
        found = [set(array.read(queue)) for queue in range(DEVICES)]
        if found != [{seed + 9.0}] * DEVICES:
            wrong.append((seed, found))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_dropping_and_closing_during_copies(engine: native.Engine) -> None:
    kept = Array(engine, np.full(FLOATS, 7, np.float32))
    for number in range(8):
        array = Array(engine, np.full(FLOATS, number, np.float32))
        array._native.copy_between(0, 1)
        array._native.copy_between(1, 2)
        if number % 2:
            array._native.destroy()
        kept._native.copy_between(number % 2, 2)
    assert set(kept.read(2)) == {7.0}
    kept._native.copy_between(0, 1)
    engine.close()
    with pytest.raises(RuntimeError, match="context was closed"):
        kept._native.copy_between(0, 1)
