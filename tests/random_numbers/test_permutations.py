"""Permutations: every number once, every order alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import vkdispatch as vd
from vkdispatch.codegen.abbreviations import *  # noqa: F403
from vkdispatch.families.operands import parse_output
from vkdispatch.random import generator as permuting
from vkdispatch.random.generator import RANKED


@pytest.mark.parametrize("ranked", [RANKED, 0], ids=["ranks", "network"])
def test_permutations_contain_every_number_once(ranked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permuting, "RANKED", ranked)
    generator = vd.random.Generator(1)
    for count in (
        0,
        1,
        2,
        3,
        4,
        5,
        7,
        8,
        9,
        31,
        64,
        65,
        RANKED - 1,
        RANKED,
        RANKED + 1,
        4095,
        4096,
        4097,
        70_001,
    ):
        for _ in range(2 if count < 100 else 1):
            drawn = generator.permutation(count).read(0)
            assert drawn.dtype == np.int32
            assert np.array_equal(np.sort(drawn), np.arange(count))


@pytest.mark.parametrize("ranked", [RANKED, 0], ids=["ranks", "network"])
@pytest.mark.parametrize("count", [3, 4])
def test_all_orders_are_equally_probable(ranked: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many draws in one graph; for the network, which small ones do not take, as well."""
    monkeypatch.setattr(permuting, "RANKED", ranked)
    generator = vd.random.Generator(2)
    graph = vd.CommandGraph()
    drawn = [generator.permutation(count, graph=graph) for _ in range(40)]
    found = []
    for _ in range(12 * math.factorial(count) // 24 * 4):
        graph.submit()
        found += [each.read(0) for each in drawn]
    orders = np.array(found) @ count ** np.arange(count)
    _, often = np.unique(orders, return_counts=True)
    assert len(often) == math.factorial(count)
    assert stats.chisquare(often).pvalue > 1e-3


def test_networks_are_like_random_orders() -> None:
    """Where elements go, which are neighbours, fixed points, cycles and inversions."""
    generator = vd.random.Generator(3)
    count = 1500
    orders = np.array([generator.permutation(count).read(0) for _ in range(200)])
    bins = np.zeros((10, 10))
    np.add.at(bins, (np.broadcast_to(np.arange(count) * 10 // count, orders.shape), orders * 10 // count), 1)
    # rows and columns add up: 81 degrees of freedom
    assert stats.chi2.sf(((bins - bins.mean()) ** 2 / bins.mean()).sum(), 81) > 1e-3
    steps = (np.diff(orders, axis=1) % count).reshape(-1)
    assert stats.chisquare(np.bincount(steps * 20 // count)).pvalue > 1e-3
    assert (steps == 1).sum() < 200 + 5 * 200**0.5
    fixed = (orders == np.arange(count)).sum(axis=1)
    expected = 200 * stats.poisson.pmf(np.arange(3), 1)
    seen = [*np.bincount(np.minimum(fixed, 3), minlength=4)]
    assert stats.chisquare(seen, [*expected, 200 - expected.sum()]).pvalue > 1e-3
    # the places of the last elements against those of the first, and of even against odd ones
    for a, b in ((orders[:, :750], orders[:, 750:]), (orders[:, ::2], orders[:, 1::2])):
        assert abs(np.corrcoef(a.reshape(-1), b.reshape(-1))[0, 1]) < 4 / 150_000**0.5 + 1 / count
    odd = sum(_is_odd(order) for order in orders)
    assert abs(odd - 100) < 4 * 50**0.5
    assert len({tuple(order[:4]) for order in orders}) == 200


def _is_odd(order: Any) -> bool:
    seen, cycles = np.zeros(len(order), bool), 0
    for start in range(len(order)):
        if not seen[start]:
            cycles += 1
            while not seen[start]:
                seen[start] = True
                start = order[start]
    return bool((len(order) - cycles) % 2)


def test_permutations_are_the_same_on_every_device() -> None:
    """Fixed by seed and place alone: a change of these numbers is one of everybody's results."""
    generator = vd.random.Generator(key=(1, 2))
    assert generator.permutation(8).read(0).tolist() == [4, 7, 6, 5, 2, 3, 1, 0]
    assert generator.permutation(5000).read(0)[:8].tolist() == [1726, 903, 266, 3487, 3610, 401, 3151, 4346]
    wide = vd.random.Generator(4, "philox4x64")
    assert np.array_equal(np.sort(wide.permutation(3001).read(0)), np.arange(3001))


def test_networks_of_more_than_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel for 64-bit places, on a small count, gives the same order."""
    plain = vd.random.Generator(5).permutation(3000).read(0)
    keys = vd.random.Generator(5)
    words = keys.integers(0, 1 << 32, permuting.ROUNDS, vd.uint32)
    distance = keys.integers(0, 3000, 1, vd.uint32).read(0).astype(np.uint64)
    monkeypatch.setattr(permuting, "place_type", lambda count: vd.uint64)
    result = vd.Buffer(3000, vd.int32)
    permuting.permute(
        result, 3000, words, vd.asbuffer(distance), parse_output(None, vd.int32), vd.global_graph()
    )
    assert np.array_equal(result.read(0), plain)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_rows_of_arrays(axis: int) -> None:
    given = np.arange(5 * 7 * 6, dtype=np.float32).reshape(5, 7, 6)
    moved = vd.random.Generator(6).permutation(vd.asbuffer(given), axis=axis).read(0)
    order = vd.random.Generator(6).permutation(given.shape[axis]).read(0)
    assert np.array_equal(moved, np.take(given, order, axis))


@pytest.mark.parametrize("kind", [np.int8, np.float16, np.float64, np.complex64])
def test_rows_of_any_type(kind: Any) -> None:
    given = (np.arange(2 * 1100) % 101).astype(kind).reshape(1100, 2)
    moved = vd.random.Generator(7).permutation(vd.asbuffer(given)).read(0)
    assert moved.dtype == kind
    assert np.array_equal(moved, given[vd.random.Generator(7).permutation(1100).read(0)])


def test_shuffles_in_place() -> None:
    given = np.arange(3000, dtype=np.int32).reshape(1500, 2)
    buffer = vd.asbuffer(given)
    assert vd.random.Generator(8).shuffle(buffer) is None
    assert np.array_equal(buffer.read(0), given[vd.random.Generator(8).permutation(1500).read(0)])
    empty = vd.Buffer((0, 3), vd.float32)
    vd.random.Generator(8).shuffle(empty)
    assert vd.random.Generator(8).permutation(empty).shape == (0, 3)


@vd.map
def _thrice(value: i32) -> f32:  # noqa: F405
    return value * 3.0


@vd.map
def _next(x: i32) -> i32:  # noqa: F405
    return x + 1


def test_maps_and_places_of_results() -> None:
    order = vd.random.Generator(9).permutation(50).read(0)
    assert np.array_equal(
        vd.random.Generator(9).permutation(50, output_map=_thrice).read(0), order * np.float32(3)
    )
    given = vd.asbuffer(np.arange(50, dtype=np.int32))
    assert np.array_equal(vd.random.Generator(9).permutation(_next(given)).read(0), order + 1)
    out = vd.Buffer(50, vd.uint8)
    assert vd.random.Generator(9).permutation(50, dtype=vd.uint8, out=out) is out
    assert np.array_equal(out.read(0), order)


@pytest.mark.parametrize("kind", [vd.float16, vd.bfloat16, vd.hvec3, vd.complex32])
@pytest.mark.parametrize("count", [5, 2000])
def test_every_bit_of_halves_is_kept(kind: type[vd.dtype], count: int) -> None:
    buffer = vd.Buffer((count,), kind)
    words = np.random.default_rng(1).integers(0, 1 << 16, buffer.mem_size // 2).astype(np.uint16)
    buffer.write(words.tobytes())
    moved = vd.random.Generator(3).permutation(buffer).view(vd.uint16).read(0)
    order = vd.random.Generator(3).permutation(count).read(0)
    np.testing.assert_array_equal(moved.reshape(count, -1), words.reshape(count, -1)[order])
