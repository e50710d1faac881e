"""Sorts of maps, by maps, in graphs, and of segments."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vkdispatch as vd
from vkdispatch.codegen.abbreviations import *  # noqa: F403

from .truth import assert_same_bits, keys, order, ordered


@vd.map
def distance(x: f32, y: f32) -> f32:  # noqa: F405
    return abs(x - y)


@vd.map
def reversed_in_memory(x: Buff[i32]) -> i32:  # noqa: F405
    return x[x.shape.w - 1 - vd.mapped_index().to_dtype(vd.int32)]


@vd.map
def plus_bias(value: f32, bias: Buff[f32]) -> f32:  # noqa: F405
    return value + bias[vd.mapped_index() % bias.shape.w]


@vd.map
def halved(value: i64) -> f32:  # noqa: F405
    return value.to_dtype(vd.float32) / 2


X = np.random.default_rng(1).standard_normal((7, 300)).astype(np.float32)
Y = np.random.default_rng(2).standard_normal((7, 300)).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1])
def test_maps_as_keys_and_values(axis: int) -> None:
    x, y = vd.asbuffer(X), vd.asbuffer(Y)
    host = np.abs(X - Y)
    np.testing.assert_array_equal(vd.sort(distance(x, y), axis).read(0), np.sort(host, axis))
    np.testing.assert_array_equal(vd.argsort(distance(x, y), axis).read(0), order(host, axis))
    found, values = vd.sort_by_key(distance(x, y), distance(y, 0.0), axis, descending=True)
    np.testing.assert_array_equal(found.read(0), ordered(host, axis, descending=True))
    expected = np.take_along_axis(np.abs(Y), order(host, axis, descending=True), axis)
    np.testing.assert_array_equal(values.read(0), expected)


def test_maps_of_whole_buffers() -> None:
    host = keys(vd.int32, 5000, few=True)
    x = vd.asbuffer(host)
    np.testing.assert_array_equal(vd.argsort(reversed_in_memory(x)).read(0), order(host[::-1]))
    np.testing.assert_array_equal(vd.sort(reversed_in_memory(x), out=x).read(0), np.sort(host))


@pytest.mark.parametrize("axis", [0, 1])
def test_mapped_index_in_output_maps(axis: int) -> None:
    x, bias = vd.asbuffer(X), vd.asbuffer(np.arange(11, dtype=np.float32))
    place = np.arange(X.size).reshape(X.shape) % 11
    found = vd.sort(x, axis, output_map=plus_bias(bias)).read(0)
    np.testing.assert_array_equal(found, np.sort(X, axis) + place.astype(np.float32))
    found = vd.argsort(x, axis, output_map=halved).read(0)
    np.testing.assert_array_equal(found, order(X, axis).astype(np.float32) / 2)
    keys_found, values = vd.sort_by_key(x, x, axis, output_map=plus_bias(bias))
    np.testing.assert_array_equal(keys_found.read(0), np.sort(X, axis) + place.astype(np.float32))
    np.testing.assert_array_equal(values.read(0), np.sort(X, axis))


def by_segments(host: Any, starts: Any, axis: int, descending: bool) -> Any:
    parts = [part for part in np.split(host, starts, axis) if part.shape[axis]]
    return np.concatenate([ordered(part, axis, descending=descending) for part in parts], axis)


@pytest.mark.parametrize("starts", [[], [0], [0, 0, 300], [5, 5, 100, 101, 299], list(range(300))])
@pytest.mark.parametrize("descending", [False, True])
def test_segments_of_rows(starts: list[int], descending: bool) -> None:
    x = vd.asbuffer(X)
    expected = by_segments(X, starts, 1, descending)
    found = vd.sort(x, segments=starts, descending=descending)
    assert_same_bits(found.read(0), expected)
    positions = vd.argsort(x, segments=starts, descending=descending).read(0)
    np.testing.assert_array_equal(np.take_along_axis(X, positions, 1), expected)
    buffer = vd.asbuffer(np.array([*starts, 300], np.int64))
    again, values = vd.sort_by_key(x, x, segments=buffer, descending=descending, out=(x, None))
    assert_same_bits(again.read(0), expected)
    assert_same_bits(values.read(0), expected)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 2000), max_size=40).map(sorted), st.booleans(), st.integers(0, 99))
def test_any_segments(starts: list[int], descending: bool, seed: int) -> None:
    host = keys(vd.float32, 2000, seed, few=True)
    found = vd.argsort(vd.asbuffer(host), segments=np.array(starts, np.uint32), descending=descending)
    bounds = [0, *starts, 2000]
    expected = [a + order(host[a:b], descending=descending) for a, b in itertools.pairwise(bounds)]
    np.testing.assert_array_equal(found.read(0), np.concatenate(expected))


def test_segments_along_other_axes() -> None:
    host = keys(vd.int16, (40, 6), few=True)
    found = vd.sort(vd.asbuffer(host), 0, segments=[10, 11, 30])
    np.testing.assert_array_equal(found.read(0), by_segments(host, [10, 11, 30], 0, False))


@pytest.mark.parametrize("size", [30, 900, 5000])
def test_graphs_sort_current_data(size: int) -> None:
    x, w = vd.asbuffer(np.zeros(size, np.float32)), vd.asbuffer(np.zeros(size, np.float32))
    graph = vd.CommandGraph()
    sorted_x = vd.sort(x, graph=graph)
    positions = vd.argsort(distance(x, w), descending=True, graph=graph)
    found, values = vd.sort_by_key(x, w, segments=[size // 3], graph=graph)
    for seed in range(3):
        host = keys(vd.float32, size, seed, few=True)
        weights = np.random.default_rng(seed).standard_normal(size).astype(np.float32)
        x.write(host)
        w.write(weights)
        graph.submit()
        assert_same_bits(sorted_x.read(0), ordered(host))
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(positions.read(0), order(abs(host - weights), descending=True))
        assert_same_bits(found.read(0), by_segments(host, [size // 3], 0, False))
        third = size // 3
        moved = np.concatenate([weights[:third][order(host[:third])], weights[third:][order(host[third:])]])
        np.testing.assert_array_equal(values.read(0), moved)


OTHER_FORMS = """
import numpy as np, vkdispatch as vd
from vkdispatch.sorting.launching import tuning
rng = np.random.default_rng(0)
def check(host, axis=-1):
    x = vd.asbuffer(host)
    order = np.argsort(host, axis, kind="stable")
    found = vd.argsort(x, axis).read(0)
    assert (found == order).all(), (host.dtype, host.shape, axis)
    assert (vd.sort(x, axis).read(0) == np.sort(host, axis)).all()
    keys, values = vd.sort_by_key(x, x, axis)
    assert (keys.read(0) == values.read(0)).all()
    starts = np.sort(rng.integers(0, host.shape[axis], 9))
    parts = [np.sort(part, axis) for part in np.split(host, starts, axis)]
    assert (vd.sort(x, axis, segments=starts).read(0) == np.concatenate(parts, axis)).all()
def check_all(kinds):
    for kind in kinds:
        make = lambda shape: rng.integers(-100, 100, shape).astype(kind)
        check(make(2000)); check(make(9000)); check(make((3, 3000))); check(make((40, 30)), 0)
        check(make((3000, 2)), 0)
"""


def test_kernels_of_large_buffers(run_python: Callable[..., CompletedProcess[str]]) -> None:
    code = OTHER_FORMS + "check_all([np.int32])"
    done = run_python(code, VKDISPATCH_FORCE_VARIANT="wide", VKDISPATCH_DEBUG="1")
    assert done.returncode == 0, done.stderr


# One thread: CPU drivers have no forward progress otherwise.
SWEEPS = """
tuning.width = 4
tuning.group, tuning.items, tuning.sweep_items, tuning.block_group, tuning.block_items = 32, 2, 2, 32, 2
def check_few(shape):
    host = rng.integers(-100, 100, shape).astype(np.int16)
    order = np.argsort(host, -1, kind="stable")
    x = vd.asbuffer(host)
    assert (vd.argsort(x).read(0) == order).all(), shape
    assert (vd.sort(x).read(0) == np.sort(host)).all(), shape
    keys, values = vd.sort_by_key(x, vd.asbuffer(np.take_along_axis(host, order, -1)))
ways = (1, 1), (1, 3), (0, 1)
for number, (tuning.onesweep, tuning.window) in enumerate(ways):
    for shape in ((3000,), (3, 65), (5, 64), (2, 700)):
        check_few((*shape[:-1], shape[-1] + number))  # calls of one shape are repeated as they were planned
    # whole tiles of one digit: the largest count
    same = vd.asbuffer(np.full(640 + 64 * number, 7, np.int16))
    assert (vd.argsort(same).read(0) == np.arange(same.size)).all()
tuning.onesweep, tuning.group, tuning.sweep_items = 1, 64, 3
odd = rng.integers(-9, 9, 1555).astype(np.float32)
odd[::7], odd[1::7], odd[2::7] = np.nan, np.inf, -0.0
odd[3::7] = -np.array([np.nan, np.inf, 0.0], np.float32)[np.arange(odd[3::7].size) % 3]
for host in (odd, (odd * 1e9).astype(np.complex64), rng.integers(-(2**62), 2**62, 1536)):
    x, values = vd.asbuffer(host), rng.integers(0, 256, host.size).astype(np.uint8)
    order = np.argsort(host, kind="stable")
    assert (vd.argsort(x).read(0) == order).all(), host.dtype
    assert vd.sort(x).read(0).tobytes() == host[order].tobytes(), host.dtype
    assert (vd.sort_by_key(x, vd.asbuffer(values))[1].read(0) == values[order]).all(), host.dtype
"""


def test_kernels_of_gpus(run_python: Callable[..., CompletedProcess[str]]) -> None:
    """With look-back; then digit by digit in three launches."""
    done = run_python(OTHER_FORMS + SWEEPS, LP_NUM_THREADS="0", VKDISPATCH_PLAN="gpu", VKDISPATCH_DEBUG="1")
    assert done.returncode == 0, done.stderr


# Short and long runs, of one workgroup and several, with digits of both widths; and merged rows, in numbers
# that are not multiples of blocks and workgroups.
RUNS = """
from vkdispatch.sorting import launching
tuning.run_least, tuning.run_most, tuning.run_count = 16, 400, 24
tuning.long_run, tuning.long_run_width, tuning.short_work = 200, 11, 1 << 12
make = lambda shape, kind: rng.integers(-100, 100, shape).astype(kind)
for kind in (np.int8, np.int32, np.float64, np.complex64):
    check(make((9, 17), kind)); check(make((3, 4099), kind))
for kind in (np.int32, np.complex64):
    check(make(1000, kind)); check(make(9001, kind)); check(make((130, 37), kind), 0)
rare = np.full(5000, 7, np.uint32)
rare[[3, 4000]] = 1 << 31, 2
check(rare); check(np.zeros((4, 4000), np.int16)); check(np.zeros((4, 4001), np.int16))
check(rng.standard_normal((5, 4000)).astype(np.float32)); check(rng.standard_normal((2, 4000)))
launching.MAX_NARROW = 5000  # longer rows have counters and positions of 64 bits
check(rng.integers(0, 1 << 31, 5003).astype(np.int32))
"""
SERIAL = """
from vkdispatch.families.tuning import device_facts
device_facts().has_ballot = False
check_all([np.int32])
# drivers compile such kernels for seconds: of the wider keys, those that move without positions
wide = rng.integers(-(2**62), 2**62, (2, 2500))
assert (vd.sort(vd.asbuffer(wide)).read(0) == np.sort(wide)).all()
"""


def test_kernels_of_cpu_drivers(run_python: Callable[..., CompletedProcess[str]]) -> None:
    done = run_python(OTHER_FORMS + RUNS, VKDISPATCH_PLAN="cpu", VKDISPATCH_DEBUG="1")
    assert done.returncode == 0, done.stderr


def test_kernels_of_gpus_without_votes(run_python: Callable[..., CompletedProcess[str]]) -> None:
    done = run_python(OTHER_FORMS + SERIAL, VKDISPATCH_PLAN="gpu", VKDISPATCH_DEBUG="1")
    assert done.returncode == 0, done.stderr
