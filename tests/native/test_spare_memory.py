"""Memory of buffers that are gone: the next ones of their size get it, and nobody sees it otherwise."""

from __future__ import annotations

import numpy as np

import vkdispatch_native as native

from .conftest import first_device


def test_memory_that_is_kept_is_not_in_use() -> None:
    engine = native.Engine([first_device()], [[0]], True, False)
    before = engine.statistics()["device_memory"]
    for size in (1 << 20, 3 << 20, 5 << 20) * 20:
        buffer = native.Buffer(engine, size, False)
        assert before + size <= engine.statistics()["device_memory"] < before + 2 * size + (64 << 20)
        buffer.destroy()
        assert engine.statistics()["device_memory"] <= before + (1 << 20)
    engine.close()
    assert native.take_messages() == []


def test_reused_memory_holds_what_was_written_last() -> None:
    engine = native.Engine([first_device()], [[0]], True, False)
    for number in range(8):
        values = np.full(1 << 19, number, np.float32)
        first, second = (native.Buffer(engine, values.nbytes, False) for _ in range(2))
        first.write(-1, values)
        second.copy_from(first)
        first.destroy()  # while the copy may still be under way
        third = native.Buffer(engine, values.nbytes, False)
        third.write(-1, values + 1)
        for buffer, expected in ((second, values), (third, values + 1)):
            found = np.empty_like(values)
            buffer.read_into(0, found)
            np.testing.assert_array_equal(found, expected)
    engine.close()
    assert native.take_messages() == []
