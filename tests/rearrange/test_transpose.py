"""vd.transpose: every order of axes, the edges of tiles, every dtype."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import replace
from vkdispatch.codegen.abbreviations import *  # noqa: F403
from vkdispatch.families.tuning import device_facts
from vkdispatch.rearrange import transposing
from vkdispatch.rearrange.transposing import merge_axes

from .arrays import KINDS, Array, filled, same


def turned(host: Array, axes: tuple[int, ...]) -> Array:
    return host.transpose((*axes, *range(len(axes), host.ndim)))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_dtypes(kind: DType) -> None:
    for shape in ((19, 33), (64, 32)):
        x, host = filled(shape, kind)
        same(vd.transpose(x), turned(host, (1, 0)), kind, shape)


@pytest.mark.parametrize("kind", [vd.uint8, vd.float16, vd.float32, vd.vec3], ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    "shape",
    [
        (),
        (1,),
        (5,),
        (1, 7),
        (7, 1),
        (2, 2),
        (3, 257),
        (255, 2),
        (127, 129),
        (128, 260),
        (1, 1, 1),
        (2, 1, 3),
    ],
    ids=str,
)
def test_small_shapes(shape: tuple[int, ...], kind: DType) -> None:
    x, host = filled(shape, kind)
    for axes in itertools.permutations(range(len(shape))):
        same(vd.transpose(x, axes), turned(host, axes), shape, axes)


@pytest.mark.parametrize("kind", [vd.uint8, vd.float32], ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    "shape", [(3, 5, 7), (70, 3, 66), (4, 64, 96), (17, 64, 3), (3, 64, 17), (40, 4, 4), (65, 2, 65)], ids=str
)
def test_three_axes(shape: tuple[int, ...], kind: DType) -> None:
    x, host = filled(shape, kind)
    for axes in itertools.permutations(range(3)):
        same(vd.transpose(x, axes), turned(host, axes), shape, axes)


def test_negative_axes_and_default() -> None:
    x, host = filled((3, 4, 5), vd.int32)
    same(vd.transpose(x, (-1, 0, -2)), host.transpose(2, 0, 1))
    same(vd.transpose(x, [1, 0, 2]), host.transpose(1, 0, 2))
    same(vd.transpose(x), host.T)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)], ids=str)
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    x, host = filled(shape, vd.float32)
    same(vd.transpose(x), host.T)


def test_values_that_are_not_numbers_keep_their_bits() -> None:
    host = np.array([0x7FC00001, 0xFF800000, 0x80000000, 0x7F800001, 1, 0xFFFFFFFF], np.uint32)
    x = vd.asbuffer(host.view(np.float32).reshape(2, 3).copy())
    assert vd.transpose(x).read(0).tobytes() == host.reshape(2, 3).T.tobytes()


@vd.map
def doubled(x: f32) -> f32:  # noqa: F405
    return x * 2


@vd.map
def numbered(value: f32, by: Const[f32]) -> i32:  # noqa: F405
    return vc.to_dtype(i32, value * by) + vc.to_dtype(i32, vd.mapped_index())  # noqa: F405


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((33, 65), (1, 0)),
        ((3, 40, 50), (0, 2, 1)),
        ((5, 6, 7), (1, 0, 2)),
        ((5, 6, 7), (2, 1, 0)),
        ((9,), (0,)),
    ],
    ids=str,
)
def test_maps(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    host = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    x = vd.asbuffer(host)
    same(vd.transpose(doubled(x), axes), host.transpose(axes) * 2)
    expected = (host.transpose(axes) * 2 * 3).astype(np.int32)
    expected += np.arange(host.size, dtype=np.int32).reshape(expected.shape)
    same(vd.transpose(doubled(x), axes, output_map=numbered(3.0)), expected)


@pytest.mark.parametrize("strip", [0, 2])
@pytest.mark.parametrize("sector", [0, 32, 128])
def test_strips_and_sectors(monkeypatch: pytest.MonkeyPatch, strip: int, sector: int) -> None:
    tuned = replace(transposing.tuning, strip=strip, sector=sector, segment_4=64, cells=128)
    monkeypatch.setattr(transposing, "tuning", tuned)
    for kind in (vd.uint16, vd.float32, vd.vec3, vd.vec4):
        for shape in ((101, 99), (99, 7), (128, 130), (33, 200)):
            x, host = filled(shape, kind)
            same(vd.transpose(x), turned(host, (1, 0)), kind, shape)


def test_result_given() -> None:
    x, host = filled((20, 30), vd.float32)
    out: vd.Buffer[Any] = vd.Buffer((30, 20), vd.float32)
    assert vd.transpose(x, out=out) is out
    same(out, host.T)


def test_neighbouring_axes_are_merged() -> None:
    assert merge_axes((2, 3, 4), (0, 1, 2)) == ((24,), (0,))
    assert merge_axes((2, 3, 4), (2, 0, 1)) == ((6, 4), (1, 0))
    assert merge_axes((2, 1, 4), (2, 1, 0)) == ((2, 4), (1, 0))
    assert merge_axes((2, 3, 4), (2, 1, 0)) == ((2, 3, 4), (2, 1, 0))
    assert merge_axes((1, 1), (1, 0)) == ((), ())


@pytest.mark.parametrize("most", [128, 256])
def test_workgroups_are_no_larger_than_the_device_has(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    forms: list[Any] = []
    made = transposing.make_tile_kernel
    monkeypatch.setattr(transposing, "make_tile_kernel", lambda form: forms.append(form) or made(form))
    monkeypatch.setattr(transposing, "tuning", replace(transposing.tuning, narrow=0))
    monkeypatch.setattr(transposing, "device_facts", lambda: replace(device_facts(), max_group=most))
    for run in (1, 2, 3, 17, 31):
        host = np.arange(70 * 90 * run, dtype=np.uint32).astype(np.uint8).reshape(70, 90, run)
        same(vd.transpose(vd.asbuffer(host), (1, 0, 2)), turned(host, (1, 0, 2)), run)
    assert len(forms) == 5
    assert max(form.group for form in forms) <= most
