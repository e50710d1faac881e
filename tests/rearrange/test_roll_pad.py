"""vd.roll, flip, tile, repeat and pad."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import *  # noqa: F403

from .arrays import KINDS, filled, same

MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_dtypes(kind: DType) -> None:
    x, host = filled((4, 6), kind)
    same(vd.roll(x, 1, 1), np.roll(host, 1, 1))
    same(vd.roll(x, -9, 0), np.roll(host, -9, 0))
    same(vd.flip(x), np.flip(host, (0, 1)))
    same(vd.tile(x, 2), np.concatenate([host, host], 1))
    same(vd.repeat(x, 3, 0), np.repeat(host, 3, 0))
    rest = [(0, 0)] * (host.ndim - 2)
    same(vd.pad(x, ((1, 2), (3, 0)), "edge"), np.pad(host, [(1, 2), (3, 0), *rest], "edge"))
    same(vd.pad(x, 2), np.pad(host, [(2, 2), (2, 2), *rest]))


@pytest.mark.parametrize("shape", [(), (1,), (7,), (4, 6), (3, 1, 5), (2, 3, 4), (0, 3)], ids=str)
def test_roll(shape: tuple[int, ...]) -> None:
    x, host = filled(shape, vd.float32)
    for shift in (0, 1, -1, 5, 1000, -(10**12), 10**12):
        for axis in (None, *range(-len(shape), len(shape))):
            same(vd.roll(x, shift, axis), np.roll(host, shift, axis), shift, axis)
    if len(shape) > 1:
        for shifts, axes in (((1, 2), (0, 1)), (3, (0, 1)), ((1, 1), (0, 0)), ((4, -1), 1)):
            same(vd.roll(x, shifts, axes), np.roll(host, shifts, axes), shifts, axes)


@pytest.mark.parametrize("shape", [(), (7,), (4, 6), (2, 3, 4), (0, 3)], ids=str)
def test_flip_tile_repeat(shape: tuple[int, ...]) -> None:
    x, host = filled(shape, vd.uint16)
    for count in range(len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            same(vd.flip(x, axes), np.flip(host, axes), axes)
    same(vd.flip(x), np.flip(host))
    for reps in (0, 1, 3, (2, 1), (1, 2), (2, 3, 2), (2, 1, 1), (1, 1, 5)):
        same(vd.tile(x, reps), np.tile(host, reps), reps)
    for repeats in (0, 1, 2, 5):
        for axis in (None, *range(-len(shape), len(shape))):
            same(vd.repeat(x, repeats, axis), np.repeat(host, repeats, axis), repeats, axis)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [vd.uint8, vd.float32], ids=lambda kind: kind.name)
def test_pad(kind: DType, mode: Any) -> None:
    cases: tuple[tuple[tuple[int, ...], Any], ...] = (
        ((5,), 2),
        ((5,), 17),
        ((1,), 4),
        ((2,), (0, 9)),
        ((4, 6), 3),
        ((4, 6), ((1, 2), (3, 4))),
        ((4, 6), ((0, 0), (16, 16))),
        ((4, 6), ((5, 7), (0, 0))),
        ((1, 6), ((2, 2), (0, 1))),
        ((3, 4, 5), ((0, 1), (2, 0), (9, 11))),
        ((3, 4, 5), ((1,), (2,), (3,))),
        ((3, 4, 8), ((0, 0), (2, 3), (0, 0))),
        ((3, 4), 0),
        ((3, 4), [[2, 1]]),
    )
    for shape, width in cases:
        x, host = filled(shape, kind)
        same(vd.pad(x, width, mode), np.pad(host, width, mode), shape, width)


@pytest.mark.parametrize("kind", [vd.uint8, vd.float16, vd.float32, vd.complex64], ids=lambda kind: kind.name)
def test_pad_constants(kind: DType) -> None:
    x, host = filled((3, 4), kind)
    for values in (7, (1, 2), ((1, 2), (3, 4)), ((5,), (6,))):
        same(vd.pad(x, 2, constant_values=values), np.pad(host, 2, constant_values=values), values)
    if kind is vd.float32:
        same(vd.pad(x, 1, constant_values=np.nan), np.pad(host, 1, constant_values=np.nan))
    empty = vd.Buffer((0, 2), kind)
    same(vd.pad(empty, 1, constant_values=3), np.pad(empty.read(0), 1, constant_values=3))
    assert vd.pad(x, (2, 1), "empty").read(0)[2:5, 2:6].tobytes() == host.tobytes()
    same(vd.pad(x, {1: (1, 2)}), np.pad(host, ((0, 0), (1, 2))))
    same(vd.pad(x, {-2: 1}), np.pad(host, ((1, 1), (0, 0))))


@vd.map
def halved(x: f32) -> f32:  # noqa: F405
    return x * 0.5


@vd.map
def rounded(value: f32) -> i32:  # noqa: F405
    return value.to_dtype(i32)  # noqa: F405


def test_maps_and_graphs() -> None:
    host = np.arange(24, dtype=np.float32).reshape(4, 6) * 2
    x = vd.asbuffer(host)
    graph = vd.CommandGraph()
    rolled = vd.roll(halved(x), (1, 2), (0, 1), graph=graph)
    padded = vd.pad(halved(x), 1, constant_values=5, output_map=rounded, graph=graph)
    flipped = vd.flip(x, 1, output_map=halved, graph=graph)
    for factor in (1, 3):
        x.write(host * factor)
        graph.submit()
        half = host * factor / 2
        same(rolled, np.roll(half, (1, 2), (0, 1)))
        same(padded, np.pad(half, 1, constant_values=5).astype(np.int32))
        same(flipped, np.flip(half, 1))


@pytest.mark.parametrize("kind", [vd.hvec3, vd.ihvec3, vd.vec3, vd.mat3], ids=lambda kind: str(kind.name))
@pytest.mark.parametrize("columns", [1, 2, 4, 8, 16])
def test_rows_padded_with_a_constant_of_three_components(kind: type, columns: int) -> None:
    """Whole rows move in words, which are no multiples of such an element: a constant did not fill them."""
    x = vd.Buffer((3, columns), kind)
    x.write(np.ones(x.read(0).shape, x.read(0).dtype))
    result = vd.pad(x, ((1, 2), (0, 0)), constant_values=-1).read(0)
    assert result.shape[0] == 6
    np.testing.assert_array_equal(result[1:4], x.read(0))
    assert (np.delete(result, slice(1, 4), axis=0) == -1).all()
