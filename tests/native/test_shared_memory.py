"""Buffers over pinned memory, and memory that all queues of an engine share."""

from __future__ import annotations

import gc
import struct

import numpy as np
import pytest

import vkdispatch_native as native

from .conftest import first_device
from .kernels import Array, affine_launcher

KINDS = ["upload", "host", "device_host"]


class BlockArray(Array):
    """An array on a block of host memory, used by both kernels and NumPy."""

    def __init__(self, engine: native.Engine, values: np.ndarray, kind: str = "host") -> None:
        self.dtype, self.shape = values.dtype, values.shape
        self.shader_shape = (values.size, 1, 1, values.size)
        self.block = native.HostBlock(engine, 0, values.nbytes, kind)
        self.view = np.frombuffer(self.block, values.dtype)
        self.view[:] = values
        self._native = native.Buffer.over(self.block)


def two_queues(forced_staging: bool = False) -> native.Engine:
    return native.Engine([first_device()], [[0, 0]], True, forced_staging)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 63, 64, 65, 10_007])
def test_kernels_work_on_a_block(engine: native.Engine, kind: str, size: int) -> None:
    values = np.arange(size, dtype=np.float32)
    array = BlockArray(engine, values, kind)
    assert (array._native.size, array._native.shared) == (4 * size, True)
    assert array._native.host_mapped
    _, launcher = affine_launcher(engine)
    for _ in range(3):
        assert launcher.launch((array, 2.0), size, False)
        values = values * 2 + 1
    assert engine.wait_until([(0, engine.last_value(0))], None)
    np.testing.assert_array_equal(array.view, values)  # no copy, no further call
    array.view += 1
    assert launcher.launch((array, 1.0), size, False)
    np.testing.assert_array_equal(array.read(), values + 2)


def test_a_block_and_its_buffer_share_their_order(engine: native.Engine) -> None:
    array = BlockArray(engine, np.zeros(4096, np.float32))
    other = Array(engine, np.zeros(4096, np.float32))
    _, launcher = affine_launcher(engine)
    for count in range(1, 20):
        launcher.launch((array, 1.0), 4096, False)
        other._native.write_async(0, array.view)
        launcher.launch((other, 1.0), 4096, False)
        np.testing.assert_array_equal(other.read(), count + 1)
        other._native.read_async(0, array.view)
        launcher.launch((array, 0.0), 1, False)
        array._native.write(0, np.full(4096, count, np.float32))
    engine.wait_idle()


def test_two_buffers_over_one_block(engine: native.Engine) -> None:
    array = BlockArray(engine, np.zeros(100, np.float32))
    second = BlockArray.__new__(BlockArray)
    second.__dict__.update(array.__dict__ | {"_native": native.Buffer.over(array.block)})
    _, launcher = affine_launcher(engine)
    for _ in range(50):
        launcher.launch((array, 1.0), 100, False)
        launcher.launch((second, 1.0), 100, False)
    np.testing.assert_array_equal(second.read(), 100)
    second._native.copy_from(array._native)  # a copy onto itself does nothing
    commands = native.CommandList(engine)
    plan, _ = affine_launcher(engine)
    for k in range(40):
        owner = (array, second)[k % 2]
        commands.record(plan, [(owner._native, 0, 0, 0, True, True)], (2, 1, 1), 16)
    for _ in range(4):
        commands.submit(0, struct.pack("3If", 100, 1, 1, 1.0) * 40, 1)
    np.testing.assert_array_equal(array.read(), 100 + 160)


def test_block_and_buffer_each_keep_the_memory(engine: native.Engine) -> None:
    _, launcher = affine_launcher(engine)
    array = BlockArray(engine, np.ones(1000, np.float32))
    array.view = array.block = None  # type: ignore[assignment]
    gc.collect()
    launcher.launch((array, 1.0), 1000, False)
    np.testing.assert_array_equal(array.read(), 2)
    array = BlockArray(engine, np.ones(1000, np.float32))
    launcher.launch((array, 1.0), 1000, False)
    view = array.view
    array._native.destroy()
    array.block = None  # type: ignore[assignment]
    gc.collect()
    engine.wait_idle()
    np.testing.assert_array_equal(view, 2)
    with pytest.raises(RuntimeError, match="destroyed"):
        array.read()


def test_memory_outlives_the_engine() -> None:
    engine = native.Engine([first_device()], [[0]], True, False)
    array = BlockArray(engine, np.arange(10, dtype=np.float32))
    engine.close()
    np.testing.assert_array_equal(array.view, np.arange(10))
    with pytest.raises(RuntimeError, match=r"destroyed|context was closed"):
        native.Buffer.over(array.block)
    with pytest.raises(RuntimeError, match=r"destroyed|context was closed"):
        _ = array._native.host_mapped
    del array._native, engine
    gc.collect()
    np.testing.assert_array_equal(array.view, np.arange(10))
    with pytest.raises(RuntimeError, match=r"destroyed|context was closed"):
        native.Buffer.over(array.block)


def test_invalid_blocks(engine: native.Engine) -> None:
    with pytest.raises(ValueError, match="kind: expected 'upload', 'host' or 'device_host', got 'fast'"):
        native.HostBlock(engine, 0, 16, "fast")
    with pytest.raises(ValueError, match="at least one byte"):
        native.HostBlock(engine, 0, 0, "host")
    with pytest.raises(MemoryError):
        native.HostBlock(engine, 0, 1 << 62, "host")
    with pytest.raises(TypeError):
        native.Buffer.over(None)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="not created"):
        native.Buffer.over(native.HostBlock.__new__(native.HostBlock))


@pytest.mark.parametrize("staged", [False, True])
def test_queues_share_one_memory(staged: bool) -> None:
    engine = two_queues(staged)
    array = Array(engine, np.zeros(1000, np.float32))
    array._native = native.Buffer(engine, 4000, True)
    assert array._native.shared
    array._native.write(-1, np.zeros(1000, np.float32))
    _, launcher = affine_launcher(engine)
    total = 0
    for turn in range(30):
        queue = turn % 2
        launcher.launch((array, 1.0), 1000, False, queue)
        engine.follow(engine.work_points(queue), 1 - queue)
        total += 1
    np.testing.assert_array_equal(array.read(1), total)
    launcher.launch((array, 1.0), 1000, False, 0)
    np.testing.assert_array_equal(array.read(1), total + 1)  # host copies are ordered after all queues
    array._native.write(1, np.full(1000, 7, np.float32))
    np.testing.assert_array_equal(array.read(0), 7)
    array._native.copy_between(0, 1)
    launcher.launch((array, 1.0), 1000, False, 1)
    np.testing.assert_array_equal(array.read(0), 8)
    plain = Array(engine, np.arange(1000, dtype=np.float32))
    array._native.copy_from(plain._native)
    np.testing.assert_array_equal(array.read(1), np.arange(1000))
    plain._native.copy_from(array._native)
    np.testing.assert_array_equal(plain.read(1), np.arange(1000))
    before = engine.statistics()["device_memory"]
    kept = native.Buffer(engine, 32 << 20, True)
    assert engine.statistics()["device_memory"] - before < 48 << 20  # once, not once per queue
    kept.destroy()
    engine.close()
    assert native.take_messages() == []


@pytest.mark.parametrize("staged", [False, True])
def test_queues_share_one_image(staged: bool) -> None:
    engine = two_queues(staged)
    image = native.Image(engine, 1, 100, (37, 5, 1), 1, 1, True, True)  # R32_SFLOAT
    texels = np.arange(37 * 5, dtype=np.float32)
    image.write(0, texels)
    for queue in (1, 0):
        out = np.empty_like(texels)
        image.read_into(queue, out)
        np.testing.assert_array_equal(out, texels)
    image.write(-1, texels + 1)
    image.read_into(1, out)
    np.testing.assert_array_equal(out, texels + 1)
    image.destroy()
    engine.close()
    assert native.take_messages() == []


def test_devices_share_nothing() -> None:
    index = first_device()
    engine = native.Engine([index, index], [[0], [0]], True, False)
    block = native.HostBlock(engine, 0, 16, "host")
    for make in (
        lambda: native.Buffer(engine, 16, True),
        lambda: native.Image(engine, 1, 100, (4, 4, 1), 1, 1, True, True),
        lambda: native.Buffer.over(block),
    ):
        with pytest.raises(ValueError, match="2 devices"):
            make()
    engine.close()
