"""Buffers on a part of another buffer's memory."""

import gc
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from tests.sharing.arrays import add, double


def part_of(whole: vd.Buffer[Any], first: int, count: int) -> vd.Buffer[Any]:
    memory = whole._native.part(4 * first, 4 * count)
    return vd.Buffer.of_memory(whole.context, memory, (count,), vd.float32)


def test_both_show_what_either_writes_in_order() -> None:
    host = np.arange(1000, dtype=np.float32)
    whole = vd.asbuffer(host)
    middle, end = part_of(whole, 64, 192), part_of(whole, 960, 40)
    for _ in range(20):  # a missing barrier shows as a lost step
        double(middle)
        add(whole, y=whole)
        double(end)
        host[64:256] *= 2
        host *= 2
        host[960:] *= 2
        whole.write(host / 4)
        host /= 4
    np.testing.assert_array_equal(middle.read(0), host[64:256])
    np.testing.assert_array_equal(end.read(0), host[960:])
    np.testing.assert_array_equal(whole.read(0), host)
    assert float(vd.sum(middle).read(0)) == host[64:256].sum()
    middle.write(np.zeros(192, np.float32))
    vd.copyto(end, vd.asbuffer(np.ones(40, np.float32)))
    host[64:256], host[960:] = 0, 1
    np.testing.assert_array_equal(whole.read(0), host)


def test_a_part_keeps_the_memory_and_lets_it_go() -> None:
    context = vd.get_context()

    def use() -> None:
        whole = vd.asbuffer(np.ones(1 << 20, np.float32))
        part = part_of(whole, 1 << 10, 1 << 10)
        inner = vd.Buffer.of_memory(context, part._native.part(512, 1024), (256,), vd.float32)
        whole.destroy()
        part.destroy()
        del whole, part
        gc.collect()
        others = [vd.asbuffer(np.zeros(1 << 20, np.float32)) for _ in range(3)]  # must not lie there
        double(inner)
        np.testing.assert_array_equal(inner.read(0), np.full(256, 2, np.float32))
        del inner, others

    for _ in range(5):
        use()
    before = context._native.statistics()["device_memory"]
    for _ in range(30):
        use()
    assert context._native.statistics()["device_memory"] - before < 30 << 20


def test_parts_lie_within() -> None:
    memory = vd.asbuffer(np.ones(100, np.float32))._native
    for offset, size in ((0, 404), (400, 4), (256, 256), (0, 0), (1 << 63, 8)):
        with pytest.raises(ValueError, match="within"):
            memory.part(offset, size)
    memory.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        memory.part(0, 4)


def test_parts_of_what_must_not_be_written() -> None:
    whole = vd.asbuffer(np.ones(100, np.float32))

    def refuse() -> None:
        raise ValueError("read only")

    whole._native.refuse_writes(refuse)
    part = part_of(whole, 0, 10)
    with pytest.raises(ValueError, match="read only"):
        double(part)
    np.testing.assert_array_equal(part.read(0), 1)
