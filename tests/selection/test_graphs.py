"""Selection in graphs, with given sizes; reproducible bits; kernels for large buffers."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import numpy as np
import pytest

import vkdispatch as vd

RNG = np.random.default_rng(13)


def test_all_functions_in_one_graph() -> None:
    first = RNG.integers(0, 50, 5001).astype(np.float32)
    second = RNG.integers(20, 40, 5001).astype(np.float32)
    x = vd.asbuffer(first)

    @vd.map
    def above(value: vd.float32) -> vd.bool_:
        return value > 30

    @vd.map
    def whole(value: vd.float32) -> vd.int32:
        return value.to_dtype(vd.int32)

    graph = vd.CommandGraph()
    top, where = vd.topk(x, 5, graph=graph)
    values, counts = vd.unique(x, return_counts=True, size=60, graph=graph)
    kept, number = vd.compact(x, above, size=4000, fill_value=-1, graph=graph)
    (places,) = vd.nonzero(above(x), size=4000, fill_value=-1, graph=graph)
    bins, edges = vd.histogram(x, 7, graph=graph)
    weighed, _ = vd.histogram(x, 7, (0, 50), weights=x, graph=graph)
    numbers = vd.bincount(whole(x), size=50, graph=graph)
    found = vd.searchsorted(values, x, graph=graph)
    for data in (first, second, first):
        x.write(data)
        graph.submit()
        order = np.argsort(-data, kind="stable")[:5]
        np.testing.assert_array_equal(top.read(0), data[order])
        np.testing.assert_array_equal(where.read(0), order)
        expected, expected_counts = np.unique(data, return_counts=True)
        np.testing.assert_array_equal(values.read(0)[: expected.size], expected)
        np.testing.assert_array_equal(counts.read(0)[: expected.size], expected_counts)
        assert not counts.read(0)[expected.size :].any()
        large = data[data > 30]
        assert list(number.read(0)) == [large.size]
        np.testing.assert_array_equal(kept.read(0)[: large.size], large)
        assert (kept.read(0)[large.size :] == -1).all()
        np.testing.assert_array_equal(places.read(0)[: large.size], np.nonzero(data > 30)[0])
        assert (places.read(0)[large.size :] == -1).all()
        expected_bins, expected_edges = np.histogram(data, 7)
        np.testing.assert_array_equal(bins.read(0), expected_bins)
        np.testing.assert_array_equal(edges.read(0), expected_edges)
        np.testing.assert_array_equal(weighed.read(0), np.histogram(data, 7, (0, 50), weights=data)[0])
        np.testing.assert_array_equal(numbers.read(0), np.bincount(data.astype(int), minlength=50))
        if expected.size == 60:
            np.testing.assert_array_equal(found.read(0), np.searchsorted(expected, data))


@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "int64"])
def test_edges_computed_in_a_graph_equal_numpys(kind: str) -> None:
    for scale in (1, 1e-3, 12345):
        data = (RNG.standard_normal(1001) * scale).astype(kind)
        graph = vd.CommandGraph()
        counts, edges = vd.histogram(vd.asbuffer(data), 13, graph=graph)
        graph.submit()
        expected = np.histogram(data, 13)
        np.testing.assert_array_equal(edges.read(0), expected[1])
        np.testing.assert_array_equal(counts.read(0), expected[0])


FORMS = """
import numpy as np
import vkdispatch as vd
from vkdispatch.selection.tuning import tuning
tuning.stream_few_cpu = 1  # drivers compile half of what they would else
rng = np.random.default_rng(3)
data = rng.integers(-50, 50, 20_011).astype(np.float32)
x = vd.asbuffer(data)
mask = vd.asbuffer(data > 7)
def same(found, expected):
    np.testing.assert_array_equal(found.read(0), expected)
order = np.argsort(-data, kind="stable")
same(vd.topk(x, 5)[1], order[:5])
same(vd.topk(x, 6000)[1], order[:6000])
rows = data[:20_000].reshape(4, 2500, 2)
for found, expected in zip(vd.unique(x, True, True, True, size=100), np.unique(data, True, True, True)):
    same(found, expected)
same(vd.compact(x, mask), data[data > 7])
same(vd.compact(x, mask, size=10)[0], data[data > 7][:10])
for found, expected in zip(vd.nonzero(vd.asbuffer(rows)), np.nonzero(rows)):
    same(found, expected)
edges = np.sort(rng.integers(-60, 60, 5000)).astype(np.float32)
same(vd.searchsorted(vd.asbuffer(edges), x), np.searchsorted(edges, data))
same(vd.histogram(x, 17)[0], np.histogram(data, 17)[0])
weights = data if vd.get_devices()[0].float_64_support else data.astype(np.int32)
same(vd.histogram(x, 17, weights=vd.asbuffer(weights))[0], np.histogram(data, 17, weights=weights)[0])
whole = (data + 50).astype(np.uint8)
same(vd.bincount(vd.asbuffer(whole)), np.bincount(whole))
print("fine")
"""


@pytest.mark.parametrize("form", ["wide,addressed"])
def test_kernels_of_large_buffers(run_python: Callable[..., CompletedProcess[str]], form: str) -> None:
    ran = run_python(FORMS, VKDISPATCH_FORCE_VARIANT=form)
    assert ran.stdout.strip() == "fine", ran.stderr
