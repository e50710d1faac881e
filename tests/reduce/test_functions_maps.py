"""NumPy's reductions of mapped arrays, into maps, and in graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *  # noqa: F403

from .comparing import same

RNG = np.random.default_rng(13)
X = RNG.integers(-50, 50, (7, 90)).astype(np.float32)
Y = RNG.integers(-50, 50, (7, 90)).astype(np.float32)


@vd.map
def product(x: f32, y: f32) -> f32:  # noqa: F405
    return x * y


@vd.map
def scaled(x: f32, by: Const[f32]) -> f32:  # noqa: F405
    return x * by


@vd.map
def doubled(value: f32) -> f32:  # noqa: F405
    return value * 2


@vd.map
def beside(value: f32, bias: Buff[f32]) -> i32:  # noqa: F405
    return (value + bias[vd.mapped_index()]).to_dtype(vd.int32)


@pytest.mark.parametrize("name", ["sum", "mean", "var", "max", "argmin", "count_nonzero", "norm"])
def test_reductions_of_mapped_arrays(name: str) -> None:
    function = np.linalg.norm if name == "norm" else getattr(np, name)
    mapped = product(vd.asbuffer(X), vd.asbuffer(Y))
    for axis in (None, 1):
        expected = np.asarray(function((X * Y).astype(np.float64), axis=axis))
        if expected.dtype.kind == "f":
            expected = expected.astype(np.float32)
        same(getattr(vd, name)(mapped, axis=axis).read(0), expected, 1000)


def test_reductions_of_nested_maps_and_numbers() -> None:
    x, y = vd.asbuffer(X), vd.asbuffer(Y)
    same(vd.sum(scaled(product(x, y), 0.5), 0).read(0), (X * Y * 0.5).sum(axis=0))
    flat = vd.asbuffer(X.ravel())
    same(vd.dot(scaled(flat, 2.0), flat).read(0), 2 * np.vdot(X, X))


def test_places_in_mapped_arrays() -> None:
    @vd.map
    def distance(x: Buff[f32], to: Const[f32]) -> f32:  # noqa: F405
        return vc.abs(x[vd.mapped_index()] - to)

    data = np.linspace(0, 1, 5001, dtype=np.float32)
    assert vd.argmin(distance(vd.asbuffer(data), 0.25)).read(0) == 1250


@pytest.mark.parametrize("name", ["sum", "max", "mean", "norm"])
def test_into_maps(name: str) -> None:
    function = np.linalg.norm if name == "norm" else getattr(np, name)
    x = vd.asbuffer(X)
    expected = np.asarray(function(X.astype(np.float64), axis=1))
    same(getattr(vd, name)(x, axis=1, output_map=doubled).read(0), (2 * expected).astype(np.float32), 10)
    bias = vd.asbuffer(np.arange(7, dtype=np.float32) * 1000 + 0.5)
    found = getattr(vd, name)(x, axis=1, output_map=beside(bias))
    assert found.var_type is vd.int32
    assert np.abs(found.read(0) - (expected + bias.read(0))).max() <= 1


def test_into_maps_of_large_and_empty_arrays() -> None:
    same(vd.sum(vd.asbuffer(np.ones(100_001, np.float32)), output_map=doubled).read(0), np.float32(200_002))
    same(
        vd.sum(vd.asbuffer(np.ones((0, 3), np.float32)), 0, output_map=doubled).read(0),
        np.zeros(3, np.float32),
    )
    out = vd.Buffer((7,), vd.int32)
    bias = vd.asbuffer(np.zeros(7, np.float32))
    assert vd.sum(vd.asbuffer(X), 1, out=out, output_map=beside(bias)) is out
    same(out.read(0), X.sum(axis=1).astype(np.int32))


@pytest.mark.parametrize("name", ["sum", "var", "argmax", "norm"])
def test_in_graphs(name: str) -> None:
    function = np.linalg.norm if name == "norm" else getattr(np, name)
    x = vd.Buffer((40_013,), vd.float32)
    graph = vd.CommandGraph()
    result = getattr(vd, name)(x, graph=graph)
    for step in range(3):
        data = RNG.normal(size=40_013).astype(np.float32) + step
        x.write(data)
        graph.submit()
        expected = np.asarray(function(data.astype(np.float64)))
        same(result.read(0), expected if name == "argmax" else expected.astype(np.float32), 500)


def test_chains_stay_on_the_device() -> None:
    x = vd.asbuffer(X)
    graph = vd.CommandGraph()
    rows = vd.sum(x, 1, graph=graph)
    best = vd.argmax(rows, graph=graph)
    kept = vd.norm(x, 1, (0, 1), graph=graph)
    graph.submit()
    same(best.read(0), X.sum(axis=1).argmax())
    same(kept.read(0), np.linalg.norm(X, 1))


def test_in_the_graph_of_the_thread() -> None:
    graph = vd.CommandGraph()
    x = vd.asbuffer(X)
    vd.set_global_graph(graph)
    try:
        result = vd.sum(x, 0)
    finally:
        vd.set_global_graph(None)
    graph.submit()
    same(result.read(0), X.sum(axis=0))


def test_calls_in_kernels_are_refused() -> None:
    x = vd.asbuffer(X)

    with pytest.raises(vd.UsageError, match="sum: a kernel cannot call"):

        @vd.shader("y.size")
        def wrong(y: Buff[f32]) -> None:  # noqa: F405
            vd.sum(x)

        wrong(x)


def test_kernels_are_shared_by_calls() -> None:
    from vkdispatch.reduce import kernels

    x: list[vd.Buffer[Any]] = [vd.asbuffer(np.ones(size, np.float32)) for size in range(6000, 6020)]
    vd.sum(x[0])
    vd.sum(x[1])
    before = kernels.make_stage_kernel.cache_info().misses
    for buffer in x:
        assert vd.sum(buffer).read(0) == buffer.size
    assert kernels.make_stage_kernel.cache_info().misses <= before + 1
