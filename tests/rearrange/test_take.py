"""vd.take, vd.take_along_axis and vd.put."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import replace
from vkdispatch.codegen.abbreviations import *  # noqa: F403
from vkdispatch.rearrange import taking
from vkdispatch.rearrange import taking as staging

from .arrays import KINDS, filled, same

INDICES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_take_dtypes(kind: DType) -> None:
    x, host = filled((5, 7, 3), kind)
    where = np.array([[3, -1], [0, 2]], np.int32)
    same(vd.take(x, vd.asbuffer(where[0]), axis=1), np.take(host, where[0], 1))
    same(vd.take(x, vd.asbuffer(where[1]), axis=2), np.take(host, where[1], 2))
    flat = host.reshape(105, *host.shape[3:])
    same(vd.take(x, vd.asbuffer(where)), np.take(flat, where, 0))


@pytest.mark.parametrize("kind", INDICES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_take_indices(kind: Any, mode: str) -> None:
    x, host = filled((3, 50), vd.float32)
    low, high = (-50, 50) if mode == "raise" else (-200, 1000)
    info = np.iinfo(kind)
    where = np.random.default_rng(1).integers(max(low, info.min), min(high, info.max), 300).astype(kind)
    same(vd.take(x, vd.asbuffer(where), 1, mode=mode), np.take(host, where, 1, mode=mode))
    if mode != "raise":
        where[:2] = info.min, info.max
        # NumPy goes round step by step
        meant = [int(each) % 50 if mode == "wrap" else min(max(int(each), 0), 49) for each in where]
        same(vd.take(x, vd.asbuffer(where), 1, mode=mode), host[:, meant])


@pytest.mark.parametrize("shape", [(), (1,), (6,), (4, 5), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("count", [(), (1,), (0,), (3,), (2, 3)], ids=str)
def test_take_shapes(shape: tuple[int, ...], count: tuple[int, ...]) -> None:
    x, host = filled(shape, vd.float32)
    for axis in (None, *range(-len(shape), len(shape))):
        size = host.size if axis is None else shape[axis]
        where = np.random.default_rng(0).integers(-size, size, count)
        if axis is None or len(shape) - 1 + len(count) <= 3:
            indices = vd.asbuffer(np.asarray(where))
            same(vd.take(x, indices, axis), np.take(host, where, axis), shape, axis)


def test_several_words_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "tuning", replace(taking.tuning, few=0))
    for kind in (vd.float32, vd.vec3):
        x, host = filled((7, 30, 11), kind)
        where = np.random.default_rng(0).integers(-7, 7, 40)
        indices = vd.asbuffer(where)
        for axis in range(3):
            same(vd.take(x, indices, axis), np.take(host, where, axis), axis)
        same(vd.take(x, indices), np.take(host.reshape(-1, *host.shape[3:]), where, 0))


@pytest.mark.parametrize("kind", [vd.uint8, vd.float32, vd.complex128], ids=lambda kind: kind.name)
def test_rows_in_workgroup_memory(monkeypatch: pytest.MonkeyPatch, kind: DType) -> None:
    monkeypatch.setattr(staging, "staging_tuning", replace(staging.staging_tuning, on_cpus=True))
    most = (1 << 15) // max(4, kind.item_size)
    cases = ((2, 32, 32), (70, 33, 50), (3, 1500, 1024), (5, most, 2000), (4, most + 1, 999), (130, 40, 20))
    for rows, length, count in cases:
        x, host = filled((rows, length), kind)
        rng = np.random.default_rng(length)
        where = rng.integers(-length, length, count).astype(np.int32)
        same(vd.take(x, vd.asbuffer(where), 1), np.take(host, where, 1), rows, length, count)
        clipped = rng.integers(-2 * length, 2 * length, count)
        got = vd.take(x, vd.asbuffer(clipped), 1, mode="clip")
        same(got, np.take(host, clipped, 1, mode="clip"), rows, length, count)
        along = rng.integers(-length, length, (rows, count)).astype(np.int16)
        same(vd.take_along_axis(x, vd.asbuffer(along), 1), np.take_along_axis(host, along, 1), rows, length)


@pytest.mark.parametrize("values", [[7], [0, 7, -8], [-8], [2**31 - 1], [-(2**31)]], ids=str)
def test_an_index_out_of_bounds(values: list[int]) -> None:
    x, host = filled((7, 3), vd.float32)
    indices = vd.asbuffer(np.int32(values))
    bad = next(k for k, value in enumerate(values) if not -7 <= value < 7)
    taken = vd.take(x, indices, 0)
    with pytest.raises(IndexError, match=rf"{values[bad]} at \[{bad}\].* axis 0 of 7 elements"):
        taken.read(0)
    same(taken, np.take(host, values, 0, mode="wrap"))
    narrow, host = filled((7,), vd.float32)
    for unique in (False, True):
        written = narrow.read(0)
        vd.put(narrow, indices, 1.0, unique=unique)
        with pytest.raises(IndexError, match=rf"{values[bad]} at \[{bad}\]"):
            narrow.read(0)
        written[[value for value in values if -7 <= value < 7]] = 1
        same(narrow, written)
    large, host = filled((100_000,), vd.float32)
    vd.put(
        large, vd.asbuffer(np.int32([5, 100_000, 6, 5, -100_001])), vd.asbuffer(np.float32([1, 2, 3, 4, 5]))
    )
    with pytest.raises(IndexError, match=r"100000 at \[1\]"):
        large.read(0)
    host[[6, 5]] = 3, 4
    same(large, host)


def test_the_first_index_out_of_bounds_is_named() -> None:
    where = np.zeros((300, 40), np.uint32)
    where[123, 17:] = 99
    where[200] = 50
    x, _ = filled((7,), vd.float32)
    vd.take(x, vd.asbuffer(where))
    with pytest.raises(IndexError, match=r"99 at \[123, 17\]"):
        vd.queue_wait_idle()
    with pytest.raises(IndexError, match="empty array or an axis of length 0"):
        vd.take(filled((0,), vd.float32)[0], vd.asbuffer(np.int32([0])))


@pytest.mark.parametrize("few", [0, taking.tuning.few])
@pytest.mark.parametrize("kind", [vd.float32, vd.vec3, vd.complex128], ids=lambda kind: kind.name)
def test_take_names_the_first_bad_index(monkeypatch: pytest.MonkeyPatch, kind: DType, few: int) -> None:
    monkeypatch.setattr(taking, "tuning", replace(taking.tuning, few=few))
    x, host = filled((2, 3, 9), kind)
    for bad in (0, 1234, 2570):
        where = np.random.default_rng(bad).integers(-54, 54, 2571)
        where[bad:] = np.where(np.arange(2571 - bad) % 7, where[bad:], -55)
        found = vd.take(x, vd.asbuffer(where))
        with pytest.raises(IndexError, match=rf"-55 at \[{bad}\] is out of bounds for the array of 54"):
            vd.queue_wait_idle()
        same(found, np.take(host.reshape(54, *host.shape[3:]), where, 0, mode="wrap"))
    where = np.random.default_rng(0).integers(-9, 9, (2, 3, 100)).astype(np.int32)
    where[1, 0, 99] = where[1, 2, 0] = 9
    vd.take_along_axis(x, vd.asbuffer(where))
    with pytest.raises(IndexError, match=r"9 at \[1, 0, 99\] is out of bounds for axis -1 .*take_along_axis"):
        vd.queue_wait_idle()


@pytest.mark.parametrize("kind", [vd.uint8, vd.float32, vd.vec3, vd.complex128], ids=lambda kind: kind.name)
def test_take_along_axis(kind: DType) -> None:
    x, host = filled((4, 6, 5), kind)
    for axis in range(-3, 3):
        shape = list(x.shape)
        shape[axis] = 3
        where = np.random.default_rng(axis + 9).integers(-x.shape[axis], x.shape[axis], shape)
        full = where.reshape(*shape, *[1] * (host.ndim - 3))
        whole = axis if axis >= 0 else axis + 3
        expected = np.take_along_axis(host, np.broadcast_to(full, (*shape, *host.shape[3:])), whole)
        same(vd.take_along_axis(x, vd.asbuffer(where), axis), expected, axis)


def test_indices_of_argsort_sort() -> None:
    x, host = filled((9, 40), vd.float32)
    order = vd.asbuffer(np.argsort(host, 1))
    same(vd.take_along_axis(x, order, 1), np.sort(host, 1))


@vd.map
def backwards(x: Buff[i32]) -> i32:  # noqa: F405
    return vc.to_dtype(i32, x.shape.w) - 1 - x[vd.mapped_index()]  # noqa: F405


@vd.map
def half(x: f32) -> f32:  # noqa: F405
    return x * 0.5


def test_maps() -> None:
    host = np.arange(12, dtype=np.float32).reshape(4, 3)
    x, where = vd.asbuffer(host), np.int32([0, 2, 1])
    indices = vd.asbuffer(where)
    same(vd.take(half(x), indices, 0), np.take(host, where, 0) * 0.5)
    same(vd.take(x, backwards(indices), 1, output_map=half), np.take(host, 2 - where, 1) * np.float32(0.5))
    taken = vd.take(vd.asbuffer(host[0, :2]), backwards(indices))
    with pytest.raises(IndexError, match=r"indices: 2 at \[0\]"):
        taken.read(0)
    y = vd.asbuffer(np.zeros(3, np.float32))
    vd.put(y, backwards(indices), half(vd.asbuffer(np.float32([2, 4, 6]))))
    same(y, np.float32([2, 3, 1])[[0, 2, 1]][[0, 2, 1]][[2, 0, 1]][[1, 2, 0]])


# ---- put


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_put_dtypes(kind: DType) -> None:
    x, host = filled((5, 7), kind)
    values, new = filled((4,), kind, 1)
    flat = host.reshape(35, *host.shape[2:])
    where = np.int64([3, -1, 3, 17])
    vd.put(x, vd.asbuffer(where), values)
    for place, value in zip(where, new, strict=True):
        flat[place] = value
    same(x, host)


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("size", [1, 7, 1000, 300_000])
def test_the_last_of_several_values_counts(size: int, mode: str) -> None:
    rng = np.random.default_rng(size)
    for count in (1, 3, 257, 5000):
        host = rng.integers(0, 99, size).astype(np.int32)
        reach = size if mode == "raise" else 3 * size
        where = rng.integers(-reach, reach, count).astype(np.int32)
        values = rng.integers(100, 10**6, count).astype(np.int32)
        x = vd.asbuffer(host.copy())
        vd.put(x, vd.asbuffer(where), vd.asbuffer(values), mode)
        np.put(host, where, values, mode)
        same(x, host, size, count)


def test_many_writers_of_few_places() -> None:
    where = np.int32([5, 900_000, 17]).repeat(30_000)
    np.random.default_rng(0).shuffle(where)
    values = np.arange(where.size, dtype=np.float32)
    host = np.zeros(1_000_000, np.float32)
    results = []
    for _ in range(2):
        x = vd.asbuffer(host)
        vd.put(x, vd.asbuffer(where), vd.asbuffer(values))
        results.append(x.read(0))
    np.put(host, where, values)
    assert results[0].tobytes() == results[1].tobytes() == host.tobytes()


def test_values_are_repeated_and_converted() -> None:
    host = np.zeros(10, np.float32)
    x = vd.asbuffer(host)
    where = np.arange(7, dtype=np.int32)
    vd.put(x, vd.asbuffer(where), vd.asbuffer(np.int16([1, 2, 3])))
    np.put(host, where, [1, 2, 3])
    same(x, host)
    vd.put(x, vd.asbuffer(where[:2]), 9, unique=True)
    vd.put(x, vd.asbuffer(where[3:]), vd.Buffer((0,), vd.float32))
    vd.put(x, vd.Buffer((0,), vd.int32), 5)
    np.put(host, where[:2], 9)
    same(x, host)


def test_recorded_indices_beyond_the_ends_wrap() -> None:
    x, host = filled((5,), vd.float32)
    indices = vd.asbuffer(np.int32([0, -1, 7]))
    graph = vd.CommandGraph()
    out = vd.take(x, indices, graph=graph)
    graph.submit()
    same(out, host[[0, 4, 2]])
    for replaced in ([1, 2, 3], [4, 4, -5]):
        indices.write(np.int32(replaced))
        graph.submit()
        same(out, host[replaced])
    with pytest.raises(ValueError, match="mode"):
        vd.take(x, indices, mode="raise", graph=graph)
    writing = vd.CommandGraph()
    vd.put(x, indices, 0.0, graph=writing)
    writing.submit()
    host[[4, 0]] = 0
    same(x, host)
