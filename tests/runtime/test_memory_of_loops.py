"""Loops of eager calls run in the memory of their peak, and allocate nothing after their first rounds."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.memory.data import layout_of

ROUNDS = 1000
FIRST = 70  # a device with memory of its own has then used all blocks that it reads through


def statistics() -> dict[str, int]:
    return vd.get_context()._native.statistics()


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("size", [10, 1 << 12, 1 << 17])
def test_a_loop_allocates_nothing(size: int, waits: bool) -> None:
    values = np.random.default_rng(size).integers(0, 100, size).astype(np.int32)
    x = vd.asbuffer(values)
    y = vd.cumsum(x)
    peak = allocated = 0
    for number in range(ROUNDS if size < 1 << 17 else 100):
        y = vd.cumsum(x)
        if waits:
            y.read(0)
        found = statistics()
        held = found["device_memory"] + found["idle_memory"]
        if number < FIRST:
            allocated, peak = found["allocations"], max(peak, held)
        assert found["allocations"] == allocated, number
        assert held <= peak, number
    np.testing.assert_array_equal(y.read(0), np.cumsum(values))


def test_a_chain_of_results_keeps_live_results_apart() -> None:
    values = np.random.default_rng(5).integers(0, 10, 5000).astype(np.int64)
    x = vd.asbuffer(values)
    kept, expected = [], []
    running = values
    y = x
    for number in range(60):
        y = vd.cumsum(y)
        running = np.cumsum(running)
        if number % 7 == 0:
            kept.append(y)
            expected.append(running)
    for buffer, array in zip(kept, expected, strict=True):
        np.testing.assert_array_equal(buffer.read(0), array)


def test_small_buffers_cost_no_allocation() -> None:
    for _ in range(3):
        vd.Buffer(3, vd.float32)
    vd.queue_wait_idle()
    before = statistics()["allocations"]
    for _ in range(1000):
        vd.Buffer(3, vd.float32)
    assert statistics()["allocations"] == before


def test_many_buffers_are_freed_when_dropped() -> None:
    gc.collect()
    vd.queue_wait_idle()
    before = statistics()
    for _ in range(3):
        buffers = [vd.Buffer((7, 77), vd.float32) for _ in range(300)]
        assert statistics()["live_objects"] == before["live_objects"] + 300
        del buffers
        assert statistics()["live_objects"] == before["live_objects"]
        assert statistics()["device_memory"] == before["device_memory"]
    assert statistics()["allocations"] <= before["allocations"] + 300


def test_graph_reuses_memory() -> None:
    """Results that a graph's calls make are its own while it lasts, wherever their memory comes from."""
    values = np.arange(3000, dtype=np.int32)
    x = vd.asbuffer(values)
    for _ in range(3):
        vd.cumsum(x)
    graph = vd.CommandGraph()
    y = vd.cumsum(x, graph=graph)
    others = [vd.cumsum(x) for _ in range(5)]
    x.write(values + 1)
    graph.submit()
    np.testing.assert_array_equal(y.read(0), np.cumsum(values + 1))
    for other in others:
        np.testing.assert_array_equal(other.read(0), np.cumsum(values))


def test_layout_of_matches_the_attributes_of_a_buffer() -> None:
    context = vd.get_context()
    for shape in ((), 5, (4,), [2, 3], (2, 3, 4), np.int64(3), (0, 2)):
        made: Buffer[vd.float32] = Buffer(shape, vd.float32)  # type: ignore[arg-type]
        same = Buffer._of_result(context, made._native, layout_of(shape, vd.float32))  # type: ignore[arg-type]
        result = function_buffer(shape, vd.float32)  # type: ignore[arg-type]
        for other in (same, result):
            for name in ("var_type", "shape", "size", "mem_size", "shader_shape", "context", "destroyed"):
                assert getattr(other, name) == getattr(made, name), name
        assert all(type(axis) is int for axis in made.shape)
        assert len({made._handle, same._handle, result._handle}) == 3
        assert context.handles_dict[same._handle] is same


@pytest.mark.parametrize("shape", [True, (True,), (1, False), 1.0, (2.0,), -1, (3, -1), "3", None])
def test_shapes_that_are_refused(shape: object) -> None:
    with pytest.raises((TypeError, ValueError), match="shape"):
        Buffer(shape, vd.float32)  # type: ignore[call-overload]
