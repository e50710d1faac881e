"""Copies of buffers and arrays from one context to another."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
from vkdispatch.base.buffers import kinds as between_contexts
from vkdispatch.codegen.abbreviations import Buff, f32


@pytest.fixture
def other() -> Iterator[vd.Context]:
    own = vd.get_context()
    context = vd.Context(own.device_ids[:1], own.queue_families[:1])
    yield context
    context.close()


@vd.shader("x.size")
def increment(x: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    x[i] = x[i] + 1


@pytest.mark.parametrize("size", [1, 15, 16, 17, 47, 64])
def test_parts(monkeypatch: pytest.MonkeyPatch, other: vd.Context, size: int) -> None:
    monkeypatch.setattr(between_contexts, "_PART", 64)  # bytes
    data = np.random.default_rng(size).random(size, np.float32)
    src = vd.asbuffer(data)
    with vd.use_context(other):
        dst = vd.Buffer(size, vd.float32)
    increment(src)
    vd.copyto(dst, src)
    increment(src)  # does not reach the copy
    with vd.use_context(other):
        increment(dst)
        np.testing.assert_array_equal(dst.read(0), data + 1 + 1)
        vd.copyto(src, dst)  # the other way, whatever context is current
    np.testing.assert_array_equal(src.read(0), data + 1 + 1)


def test_several_parts_of_a_large_buffer(other: vd.Context) -> None:
    data = np.arange(5_000_001, dtype=np.uint32)
    with vd.use_context(other):
        dst = vd.Buffer(data.shape, vd.uint32)
    vd.copyto(dst, vd.asbuffer(data))
    np.testing.assert_array_equal(dst.read(0), data)


def test_what_cannot_be_copied(other: vd.Context) -> None:
    src = vd.asbuffer(np.zeros(4, np.float32))
    with vd.use_context(other):
        dst = vd.Buffer(4, vd.float32)
        with pytest.raises(ValueError, match="shape"):
            vd.copyto(vd.Buffer(5, vd.float32), src)
        with pytest.raises(ValueError, match="between contexts cannot be recorded"):
            vd.copyto(dst, src, graph=vd.CommandGraph())
    dst.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        vd.copyto(dst, src)


def test_contexts_of_several_queues(other: vd.Context) -> None:
    own = vd.get_context()
    several = vd.Context(own.device_ids[:1], [[own.queue_families[0][0]] * 2])
    data = np.arange(5, dtype=np.int64)
    with vd.use_context(several):
        copies = vd.Buffer(5, vd.int64)
    vd.copyto(copies, vd.asbuffer(data))
    for queue in range(2):
        np.testing.assert_array_equal(copies.read(queue), data)
    with vd.use_context(other), pytest.raises(ValueError, match="src: its context has 2 queues"):
        vd.copyto(vd.Buffer(5, vd.int64), copies)
    several.close()


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.float32, np.complex64])
def test_arrays_move(other: vd.Context, kind: Any) -> None:
    host = (np.arange(35).reshape(5, 7) % 3).astype(kind)
    x = vnp.asarray(host)
    with vd.use_context(other):
        device = vnp.zeros(1).device
    cases = [(x, host), (x[::-2, 1:].T, host[::-2, 1:].T), (x[:0], host[:0]), (x[2, 3], host[2, 3])]
    cases += [(x == 1, host == 1), (vnp.broadcast_to(x[0], (3, 7)), np.broadcast_to(host[0], (3, 7)))]
    for value, expected in cases:
        moved = value.to_device(device)
        assert moved.device == device and moved.dtype == expected.dtype
        np.testing.assert_array_equal(moved.numpy(), expected)
    moved = x.to_device(device)
    x[:] = 0
    np.testing.assert_array_equal(moved.numpy(), host)
    back = moved.to_device(x.device)
    assert back.device == x.device
    np.testing.assert_array_equal(back.numpy(), host)
