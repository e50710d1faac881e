"""vd.concatenate and vd.stack."""

from __future__ import annotations

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import *  # noqa: F403

from .arrays import KINDS, filled, same


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_dtypes(kind: DType) -> None:
    x, a = filled((3, 5), kind)
    y, b = filled((3, 2), kind, 1)
    same(vd.concatenate([x, y, x], 1), np.concatenate([a, b, a], 1))
    same(vd.stack([x, x], 0), np.stack([a, a], 0))


@pytest.mark.parametrize("kind", [vd.uint8, vd.float32], ids=lambda kind: kind.name)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, None], ids=str)
@pytest.mark.parametrize("lengths", [(1,), (3, 4), (0, 5), (16, 16), (7, 0, 260, 1)], ids=str)
def test_axes(lengths: tuple[int, ...], axis: int | None, kind: DType) -> None:
    shapes = []
    for length in lengths:
        shape = [4, 6, 8]
        shape[axis or 0] = length
        shapes.append(tuple(shape))
    pairs = [filled(shape, kind, k) for k, shape in enumerate(shapes)]
    got = vd.concatenate([x for x, _ in pairs], axis)
    same(got, np.concatenate([host for _, host in pairs], axis), lengths, axis)


def test_shapes_may_differ_for_flat_arrays() -> None:
    pairs = [filled(shape, vd.int16) for shape in ((), (3,), (2, 2), (0, 4))]
    flat = np.concatenate([host for _, host in pairs], None)
    same(vd.concatenate([x for x, _ in pairs], None), flat)


def test_promotion_of_dtypes() -> None:
    hosts = [
        np.arange(k, k + 4).astype(kind) for k, kind in enumerate((np.uint8, np.int8, np.int32, np.float32))
    ]
    for first in range(4):
        for second in range(4):
            pair = [hosts[first], hosts[second]]
            same(vd.concatenate([vd.asbuffer(each) for each in pair]), np.concatenate(pair), first, second)


@pytest.mark.parametrize("shape", [(), (5,), (4, 3)], ids=str)
def test_stack(shape: tuple[int, ...]) -> None:
    pairs = [filled(shape, vd.float32, k) for k in range(3)]
    for axis in range(-1 - len(shape), 1 + len(shape)):
        got = vd.stack([x for x, _ in pairs], axis)
        same(got, np.stack([host for _, host in pairs], axis), axis)


@pytest.mark.parametrize("kind", [vd.uint8, vd.float16, vd.float32, vd.float64], ids=lambda kind: kind.name)
def test_elements_alternate(kind: DType) -> None:
    for count, size in ((3, 4096), (3, 1000), (2, 36), (4, 516), (7, 200), (3, 1001), (9, 64)):
        pairs = [filled((size,), kind, k) for k in range(count)]
        same(vd.stack([x for x, _ in pairs], 1), np.stack([host for _, host in pairs], 1), count, size)


@vd.map
def halved(x: f32) -> f32:  # noqa: F405
    return x * 0.5


@vd.map
def placed(value: f32) -> i32:  # noqa: F405
    return value.to_dtype(i32) + vd.mapped_index().to_dtype(i32)  # noqa: F405


def test_maps_and_graphs() -> None:
    host = np.arange(12, dtype=np.float32).reshape(3, 4) * 2
    x = vd.asbuffer(host)
    graph = vd.CommandGraph()
    out = vd.concatenate([halved(x), x], 1, output_map=placed, graph=graph)
    graph.submit()
    expected = np.concatenate([host / 2, host], 1).astype(np.int32)
    same(out, expected + np.arange(24, dtype=np.int32).reshape(3, 8))
    x.write(host + 2)
    graph.submit()
    expected = np.concatenate([host / 2 + 1, host + 2], 1).astype(np.int32)
    same(out, expected + np.arange(24, dtype=np.int32).reshape(3, 8))
