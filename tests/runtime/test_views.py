"""Views: buffers that take the memory of another one for elements of another dtype."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, f32, u32


@vd.shader("data.size")
def double(data: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] * 2


@pytest.mark.parametrize("shape", [(8,), (3, 4), (2, 3, 12), (5, 0)])
@pytest.mark.parametrize("kind", [np.int16, np.uint32, np.float32, np.float64, np.complex64, np.uint8])
def test_views_agree_with_numpy(shape: Any, kind: Any) -> None:
    host = np.random.default_rng(1).integers(0, 1 << 30, shape).astype(np.int32)
    buffer = vd.asbuffer(host)
    expected = host.view(kind)
    view = buffer.view(np.dtype(kind))
    assert view.shape == expected.shape and view.size == expected.size
    assert view.mem_size == buffer.mem_size
    np.testing.assert_array_equal(view.read(0).view(np.int32), host)


def test_vectors_matrices_and_structures() -> None:
    host = np.arange(72, dtype=np.float32).reshape(6, 12)
    buffer = vd.asbuffer(host)
    for kind, shape in ((vd.vec2, (6, 6)), (vd.vec3, (6, 4)), (vd.mat2, (6, 3)), (vd.complex64, (6, 6))):
        assert buffer.view(kind).shape == shape
    np.testing.assert_array_equal(buffer.view(vd.vec3).read(0), host.reshape(6, 4, 3))
    pairs = np.dtype([("a", np.float32), ("b", np.int32)])
    assert buffer.view(pairs).read(0).tolist() == host.view(pairs).tolist()


def test_memory_is_shared_both_ways() -> None:
    buffer = vd.asbuffer(np.float32([1, 2, 3]))
    bits = buffer.view(vd.uint32)
    bits.write(np.float32([4, 5, 6]).view(np.uint32))
    double(buffer)
    double(bits.view(vd.float32))
    np.testing.assert_array_equal(bits.read(0).view(np.float32), [16, 20, 24])


@pytest.mark.parametrize(
    "shape, kind, error",
    [
        ((5,), vd.float64, ValueError),
        ((), vd.vec2, ValueError),
        ((2, 3), vd.vec2, ValueError),
        ((4,), 3, TypeError),
    ],
)
def test_invalid_views_are_refused(shape: Any, kind: Any, error: Any) -> None:
    with pytest.raises(error, match="var_type"):
        vd.Buffer(shape, vd.float32).view(kind)


def test_lifetimes() -> None:
    view = vd.asbuffer(np.float32([1, 2])).view(vd.uint32).view(vd.float32)
    gc.collect()
    double(view)
    np.testing.assert_array_equal(view.read(0), [2, 4])

    buffer = vd.asbuffer(np.float32([1, 2]))
    first, second = buffer.view(vd.uint32), buffer.view(vd.vec2)
    first.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        first.read(0)
    np.testing.assert_array_equal(second.read(0), [[1, 2]])
    buffer.destroy()
    for gone in (buffer, second):
        with pytest.raises(RuntimeError, match="destroyed"):
            gone.read(0)
    whole = vd.asbuffer(np.float32([3]))
    view = whole.view(vd.float32)
    view.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        double(view)
    double(whole)
    assert whole.read(0)[0] == 6


def test_graphs_order_work_on_views_of_one_buffer() -> None:
    @vd.shader("out.size")
    def shift(x: Buff[u32], out: Buff[u32]) -> None:
        i = vc.global_invocation_id().x
        out[i] = x[(i + 1) % 300]

    host = np.arange(1, 301, dtype=np.float32)
    buffer, out = vd.asbuffer(host), vd.asbuffer(np.zeros(300, np.uint32))
    graph = vd.CommandGraph()
    double(buffer, graph=graph)
    shift(buffer.view(vd.uint32), out, graph=graph)
    double(buffer, graph=graph)
    graph.optimize()
    graph.submit()
    np.testing.assert_array_equal(out.read(0).view(np.float32), np.roll(host * 2, -1))
    np.testing.assert_array_equal(buffer.read(0), host * 4)


def test_arguments_of_maps() -> None:
    @vd.map
    def plus(x: f32, table: Buff[f32]) -> f32:
        return x + table[0]

    x, table = vd.asbuffer(np.ones(100, np.float32)), vd.asbuffer(np.float32([7]))
    bits = vd.asbuffer(np.float32([7]).view(np.uint32))
    assert vd.sum(plus(x, table)).read(0) == 800
    with pytest.raises(
        TypeError, match="'plus': argument 2: expected elements of float32, the buffer has uint32"
    ):
        plus(x, bits)
    with pytest.raises(
        TypeError, match="'plus': argument 1: expected elements of float32, the buffer has uint32"
    ):
        vd.sum(x, output_map=plus(bits))
    assert vd.sum(plus(x, bits.view(vd.float32))).read(0) == 800
