"""The memory of dropped buffers is reused by later ones of the same size, without other effects."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import vkdispatch_native as native

from .conftest import first_device
from .gates import Gate
from .kernels import AFFINE, Array, affine_launcher

COUNT = (1 << 14) + 64  # above the size of results in turn; times 999 it is exact in float32


class DeviceArray:
    """An array that kernels fill first, so it may reuse memory that the device is still using."""

    def __init__(self, engine: native.Engine, count: int = COUNT) -> None:
        self.shader_shape = (count, 1, 1, count)
        self._native = native.Buffer(engine, 4 * count, False, True)

    def read(self, queue: int = 0) -> np.ndarray[Any, Any]:
        out = np.empty(self.shader_shape[0], np.float32)
        self._native.read_into(queue, out)
        return out


def allocations(engine: native.Engine) -> int:
    return engine.statistics()["allocations"]


@pytest.fixture(params=["0", "1", "2"])
def transfer_engine(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[native.Engine]:
    """Yield engines with staging whose queue has zero, one or two transfer queues."""
    monkeypatch.setenv("VKDISPATCH_FORCE_TRANSFER_QUEUE", request.param)
    engine = native.Engine([first_device()], [[0]], True, True)
    yield engine
    engine.close()
    assert native.take_messages() == []


def test_spare_memory_does_not_count_as_used() -> None:
    engine = native.Engine([first_device()], [[0]], True, False)
    native.Buffer(engine, 7).destroy()  # creates the engine's own objects too
    before = engine.statistics()
    for size in (1, 300, 1 << 20, 3 << 20, 5 << 20) * 20:
        buffer = native.Buffer(engine, size, False)
        during = engine.statistics()
        assert (
            before["device_memory"] + size
            <= during["device_memory"]
            < before["device_memory"] + 2 * size + (64 << 20)
        )
        assert during["live_objects"] == before["live_objects"] + 1
        buffer.destroy()
        after = engine.statistics()
        assert after["device_memory"] == before["device_memory"]
        assert after["live_objects"] == before["live_objects"]
        assert after["waiting_frees"] == 0
    assert allocations(engine) == before["allocations"] + 5  # the first one cannot be used for these
    assert engine.statistics()["idle_memory"] >= 9 << 20
    engine.close()
    assert native.take_messages() == []


def test_reused_memory_holds_the_last_write() -> None:
    engine = native.Engine([first_device()], [[0]], True, False)
    for number in range(8):
        values = np.full(1 << 19, number, np.float32)
        first, second = (native.Buffer(engine, values.nbytes, False) for _ in range(2))
        first.write(-1, values)
        second.copy_from(first)
        first.destroy()  # the copy may still be in progress
        third = native.Buffer(engine, values.nbytes, False)
        third.write(-1, values + 1)
        for buffer, expected in ((second, values), (third, values + 1)):
            found = np.empty_like(values)
            buffer.read_into(0, found)
            np.testing.assert_array_equal(found, expected)
    engine.close()
    assert native.take_messages() == []


def test_results_reuse_memory_that_is_in_use(engine: native.Engine) -> None:
    """However far a program runs ahead, dropped buffers are reused for its next results."""
    _, launcher = affine_launcher(engine)
    source = Array(engine, np.arange(COUNT, dtype=np.float32))
    with Gate(engine) as gate:
        gate.hold()
        made = DeviceArray(engine)
        before = allocations(engine)
        total = DeviceArray(engine)
        for factor in range(1000):
            made = DeviceArray(engine)  # the previous one is dropped after this one is created
            made._native.copy_from(source._native)
            launcher.launch((made, factor), COUNT, False)
            if factor == 500:
                total._native.copy_from(made._native)
        assert allocations(engine) <= before + 2
        assert gate.is_holding()
    np.testing.assert_array_equal(total.read(), np.arange(COUNT, dtype=np.float32) * 500 + 1)
    np.testing.assert_array_equal(made.read(), np.arange(COUNT, dtype=np.float32) * 999 + 1)


def test_reuse_is_ordered_after_earlier_work(engine: native.Engine) -> None:
    _, launcher = affine_launcher(engine)
    values, others = np.arange(COUNT, dtype=np.float32), np.full(COUNT, 7, np.float32)
    other, seen = Array(engine, others), Array(engine, others)
    with Gate(engine) as gate:
        old = Array(engine, values)
        gate.hold(old)  # finally adds 1 to its first word
        launcher.launch((old, 2.0), COUNT, False)
        seen._native.copy_from(old._native)
        before = allocations(engine)
        old._native.destroy()
        new = DeviceArray(engine)
        assert allocations(engine) == before
        new._native.copy_from(other._native)
        launcher.launch((new, 3.0), COUNT, False)
        assert gate.is_holding()
    np.testing.assert_array_equal(new.read(), others * 3 + 1)
    np.testing.assert_array_equal(seen.read()[1:], values[1:] * 2 + 1)


def test_host_copies_are_ordered_after_earlier_work(engine: native.Engine) -> None:
    _, launcher = affine_launcher(engine)
    values = np.arange(COUNT, dtype=np.float32)
    seen = Array(engine, values)
    with Gate(engine) as gate:
        old = Array(engine, values)
        gate.hold()
        launcher.launch((old, 2.0), COUNT, False)
        seen._native.copy_from(old._native)
        del old
        new = DeviceArray(engine)
        opening = threading.Timer(0.05, gate.open)
        opening.start()
        new._native.write(0, values - 5)  # waits if memory is mapped
        launcher.launch((new, 2.0), COUNT, False)
        opening.join()
    np.testing.assert_array_equal(seen.read(), values * 2 + 1)
    np.testing.assert_array_equal(new.read(), (values - 5) * 2 + 1)


def test_a_write_to_a_new_buffer_does_not_wait() -> None:
    engine = native.Engine([first_device()], [[0]], True, False)
    values = np.arange(COUNT, dtype=np.float32)
    with Gate(engine) as gate:
        old = Array(engine, values)
        gate.hold(old)
        del old
        new = Array(engine, values + 3)  # written
        assert gate.is_holding()
    np.testing.assert_array_equal(new.read(), values + 3)
    engine.wait_idle()
    del new
    before = allocations(engine)
    again = native.Buffer(engine, values.nbytes)
    assert allocations(engine) == before  # it is idle by now
    del again
    engine.close()
    assert native.take_messages() == []


def test_transfer_queues_are_ordered_after_earlier_work(transfer_engine: native.Engine) -> None:
    _, launcher = affine_launcher(transfer_engine)
    values = np.arange(COUNT, dtype=np.float32)
    blocks = [native.HostBlock(transfer_engine, 0, values.nbytes) for _ in range(3)]
    given, first, second = (np.frombuffer(block, np.float32) for block in blocks)
    given[:] = values + 100
    with Gate(transfer_engine) as gate:
        gate.hold()
        old = Array(transfer_engine, values)
        launcher.launch((old, 2.0), COUNT, False)
        points = list(old._native.read_async(0, first))
        before = allocations(transfer_engine)
        del old
        new = DeviceArray(transfer_engine)
        assert allocations(transfer_engine) == before
        new._native.write_async(0, given)
        launcher.launch((new, 3.0), COUNT, False)
        points += new._native.read_async(0, second)
    assert transfer_engine.wait_until(points, 10**12)
    np.testing.assert_array_equal(first, values * 2 + 1)
    np.testing.assert_array_equal(second, (values + 100) * 3 + 1)


def test_each_queue_has_its_copy() -> None:
    for staged in (False, True):
        engine = native.Engine([first_device()], [[0, 0]], True, staged)
        _, launcher = affine_launcher(engine)
        values = np.arange(COUNT, dtype=np.float32)
        seen, source = Array(engine, values), Array(engine, values)
        with Gate(engine) as gate:
            old = Array(engine, values)
            gate.hold()  # on queue 0
            launcher.launch((old, 2.0), COUNT, False, 0)
            launcher.launch((old, 3.0), COUNT, False, 1)
            seen._native.copy_from(old._native)
            old._native.copy_between(1, 0)
            before = allocations(engine)
            del old
            new = DeviceArray(engine)
            assert allocations(engine) == before
            new._native.copy_from(source._native)
            launcher.launch((new, 4.0), COUNT, False, 0)
            launcher.launch((new, 5.0), COUNT, False, 1)
        for queue, (was, now) in enumerate(((2, 4), (3, 5))):
            np.testing.assert_array_equal(seen.read(queue), values * was + 1)
            np.testing.assert_array_equal(new.read(queue), values * now + 1)
        engine.close()
        assert native.take_messages() == []


def test_a_buffer_in_a_launch_is_not_reused(engine: native.Engine) -> None:
    """A buffer that is dropped during a launch that uses it."""
    values = np.arange(64, dtype=np.float32)
    array = Array(engine, values)
    made: list[Array] = []

    def pack(_: int, value: float) -> bytes:
        array._native.destroy()
        made.append(Array(engine, values + 1))
        return np.float32(value).tobytes()

    plan = native.Plan(engine, native.compile_glsl(AFFINE), [1], 16, "affine")
    slots = [native.BufferSlot(binding=0), native.ValueSlot(offset=12, size=4)]
    launcher = native.Launcher(engine, plan, slots, 16, -1, 0, -1, (64, 1, 1), (65535,) * 3, pack)
    assert launcher.launch((array, 2.0), 64, False)
    engine.wait_idle()
    np.testing.assert_array_equal(made[0].read(), values + 1)


def test_spare_memory_is_bounded() -> None:
    engine = native.Engine([first_device()], [[0]], False, False)
    native.Buffer(engine, 4)
    each = engine.statistics()["idle_memory"]
    most = 1 << 14
    buffers = [native.Buffer(engine, 4) for _ in range(most + 1000)]
    assert engine.statistics()["idle_memory"] == 0
    del buffers
    assert engine.statistics()["idle_memory"] == most * each
    engine.wait_idle()
    engine.close()


def test_sizes_do_not_mix(engine: native.Engine) -> None:
    sizes = (4, 8, 12, 256, 4096)
    for size, _ in itertools.product(sizes, range(3)):
        buffer = native.Buffer(engine, size)
        assert buffer.size == size
        buffer.write(0, np.full(size, size % 251, np.uint8))
        out = np.empty(size, np.uint8)
        buffer.read_into(0, out)
        assert (out == size % 251).all()
