"""Draws that are recorded: each submit draws anew."""

from __future__ import annotations

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *  # noqa: F403

from .philox import words


@pytest.mark.parametrize("kind", ["philox4x32", "philox4x64"])
def test_submits_continue_the_stream(kind: str) -> None:
    generator = vd.random.Generator(1, kind)
    before = str(generator.state)
    graph = vd.CommandGraph()
    drawn = [generator.raw(10, graph=graph), generator.raw(8, graph=graph)]
    assert str(generator.state) == before
    found = []
    for _ in range(3):
        graph.submit()
        found.append([each.read(0) for each in drawn])
    if kind == "philox4x32":
        for number, count in ((0, 10), (1, 8)):
            # a stream for each recorded draw: its number is the counter's last word
            whole = words(generator.key, 0, 36, number + 1 << 96)
            for turn in range(3):
                first = turn * 12 if count == 10 else turn * 8
                assert np.array_equal(found[turn][number], whole[first : first + count])
    else:
        for number, count in ((0, 10), (1, 8)):
            low, high = generator.key
            start = (number + 1 << 192) - 1
            whole = np.random.Philox(key=low | high << 64, counter=start).random_raw(36)
            for turn in range(3):
                first = turn * 12 if count == 10 else turn * 8
                assert np.array_equal(found[turn][number], whole[first : first + count])
    # at once it goes on as if nothing was recorded
    assert np.array_equal(generator.raw(4).read(0), vd.random.Generator(1, kind).raw(4).read(0))


def test_every_kind_of_draw() -> None:
    generator = vd.random.Generator(2)
    graph = vd.CommandGraph()
    drawn = [
        generator.random(1000, vd.float16, graph=graph),
        generator.uniform(2, 3, 1000, graph=graph),
        generator.normal(size=1001, graph=graph),
        generator.integers(3 << 30, size=1000, dtype=vd.uint32, graph=graph),
        generator.permutation(1000, graph=graph),
        generator.permutation(1100, graph=graph),
    ]
    found = []
    for _ in range(3):
        graph.submit()
        found.append([each.read(0) for each in drawn])
    for first, second, third in zip(*found, strict=True):
        assert not np.array_equal(first, second)
        assert not np.array_equal(second, third)
        assert not np.array_equal(first, third)
    for *_, ranked, network in found:
        assert np.array_equal(np.sort(ranked), np.arange(1000))
        assert np.array_equal(np.sort(network), np.arange(1100))


def test_repeated_shuffles_differ() -> None:
    given = vd.asbuffer(np.arange(64, dtype=np.int32))
    graph = vd.CommandGraph()
    vd.random.Generator(3).shuffle(given, graph=graph)
    seen = set()
    for _ in range(4):
        graph.submit()
        order = given.read(0)
        assert np.array_equal(np.sort(order), np.arange(64))
        seen.add(tuple(order))
    assert len(seen) == 4


def test_equal_recordings_draw_equal_numbers() -> None:
    found = []
    for _ in range(2):
        generator = vd.random.Generator(4)
        graph = vd.CommandGraph()
        drawn = generator.normal(size=100, graph=graph)
        graph.submit()
        graph.submit()
        found.append(drawn.read(0))
    assert np.array_equal(*found)
    # other streams for what spawned or jumped
    for other in (vd.random.Generator(4).jumped(), vd.random.Generator(4).spawn(1)[0]):
        graph = vd.CommandGraph()
        drawn = other.normal(size=100, graph=graph)
        graph.submit()
        graph.submit()
        assert not np.array_equal(drawn.read(0), found[0])


def test_kernels_after_draws() -> None:
    """A Monte Carlo estimate that gets better from submit to submit."""

    @vd.shader(exec_size="x.size")
    def count(hits: Buff[u32], x: Buff[f32], y: Buff[f32]) -> None:  # noqa: F405
        i = vc.global_invocation_id().x
        if x[i] * x[i] + y[i] * y[i] < 1:
            vc.atomic_add(hits[0], 1)

    hits = vd.asbuffer(np.zeros(1, np.uint32))
    generator = vd.random.Generator(5)
    graph = vd.CommandGraph()
    x, y = (generator.random(20_000, graph=graph) for _ in range(2))
    count(hits, x, y, graph=graph)
    for _ in range(5):
        graph.submit()
    assert abs(hits.read(0)[0] / 1e5 * 4 - np.pi) < 4 * (np.pi * (4 - np.pi) / 1e5) ** 0.5


def test_the_global_graph() -> None:
    graph = vd.CommandGraph()
    before = vd.set_global_graph(graph)
    try:
        drawn = vd.random.Generator(6).random(8)
    finally:
        vd.set_global_graph(before)
    graph.submit()
    first = drawn.read(0)
    graph.submit()
    assert not np.array_equal(drawn.read(0), first)
