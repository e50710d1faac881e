"""Scans of maps, output maps, and scans in graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *  # noqa: F403

from .truth import scanned

SHAPES = ((1,), (999,), (70_001,), (40, 300), (300, 40))


@vd.map
def weighted(x: f32, w: f32) -> f32:  # noqa: F405
    return x * w


@vd.map
def halved(value: f32) -> f64:  # noqa: F405
    return value.to_dtype(vd.float64) / 2


def whole(shape: Any, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("reverse", [False, True])
def test_map_of_two_buffers(reverse: bool) -> None:
    for shape in SHAPES:
        x, w = whole(shape), whole(shape, 1)
        for axis in range(len(shape)):
            result = vd.cumsum(
                weighted(vd.asbuffer(x), vd.asbuffer(w)), axis, reverse=reverse, output_map=halved
            )
            assert result.var_type is vd.float64
            expected = scanned("cumsum", x * w, axis, reverse=reverse) / 2
            np.testing.assert_array_equal(result.read(0), expected)


def test_map_that_reads_other_elements() -> None:
    @vd.map
    def shifted(x: Buff[f32], by: Const[i32]) -> f32:  # noqa: F405
        return x[(vd.mapped_index() + by) % x.shape.w.to_dtype(vd.int32)]

    for shape in SHAPES:
        x = whole(shape)
        expected = np.roll(x.reshape(-1), -3).reshape(shape)
        for axis in range(len(shape)):
            result = vd.cumsum(shifted(vd.asbuffer(x), 3), axis).read(0)
            np.testing.assert_array_equal(result, np.cumsum(expected, axis))


def test_mapped_index_in_output_map() -> None:
    @vd.map
    def mean(value: f32, first: Const[f32]) -> f32:  # noqa: F405
        return value / (vd.mapped_index().to_dtype(vd.float32) + first)

    x = np.full(5000, 2, np.float32)
    result = vd.cumsum(vd.asbuffer(x), output_map=mean(1.0)).read(0)
    np.testing.assert_allclose(result, x, rtol=1e-6)


def test_map_that_writes_runs_once_for_each_element() -> None:
    @vd.map
    def counted(x: Buff[f32], counts: Buff[u32]) -> f32:  # noqa: F405
        i = vd.mapped_index()
        vc.atomic_add(counts[i], 1)
        return x[i]

    for shape, axis in (((1000,), 0), ((20_000,), 0), ((5, 9001), 1), ((9000, 5), 0)):
        x = whole(shape)
        counts = vd.asbuffer(np.zeros(shape, np.uint32))
        result = vd.cumsum(counted(vd.asbuffer(x), counts), axis).read(0)
        np.testing.assert_array_equal(result, np.cumsum(x, axis))
        assert (counts.read(0) == 1).all()


def test_graphs_scan_current_data() -> None:
    x = vd.asbuffer(np.zeros((50, 900), np.float32))
    graph = vd.CommandGraph()
    rows = vd.cumsum(x, 1, graph=graph)
    columns = vd.cummax(x, 0, graph=graph)
    flat = vd.cumsum(x, dtype=np.float64, output_map=None, graph=graph)
    for seed in range(3):
        data = whole((50, 900), seed)
        x.write(data)
        graph.submit()
        np.testing.assert_array_equal(rows.read(0), np.cumsum(data, 1))
        np.testing.assert_array_equal(columns.read(0), np.maximum.accumulate(data, 0))
        np.testing.assert_array_equal(flat.read(0), np.cumsum(data, dtype=np.float64))


def test_variables_of_graphs() -> None:
    @vd.map
    def scaled(x: f32, factor: Var[f32]) -> f32:  # noqa: F405
        return x * factor

    x = whole(5000)
    graph = vd.CommandGraph()
    result = vd.cumsum(scaled(vd.asbuffer(x), graph.bind_var("factor")), graph=graph)
    for factor in (1.0, 4.0):
        graph.set_var("factor", factor)
        graph.submit()
        np.testing.assert_array_equal(result.read(0), np.cumsum(x * np.float32(factor)))
