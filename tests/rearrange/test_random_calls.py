"""Calls that hypothesis makes up, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vkdispatch as vd

from .arrays import filled, same

KINDS = st.sampled_from([vd.uint8, vd.int16, vd.float32, vd.complex64])
FEW = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def shapes(least: int = 0, smallest: int = 0) -> st.SearchStrategy[tuple[int, ...]]:
    sizes = st.one_of(st.integers(smallest, 9), st.sampled_from([16, 31, 33, 64, 100]))
    return st.lists(sizes, min_size=least, max_size=3).map(tuple)


@FEW
@given(st.data(), KINDS, shapes())
def test_transpose(data: st.DataObject, kind: Any, shape: tuple[int, ...]) -> None:
    x, host = filled(shape, kind)
    axes = data.draw(st.permutations(range(len(shape))))
    same(vd.transpose(x, axes), host.transpose(axes))


@FEW
@given(st.data(), KINDS, shapes(1))
def test_roll(data: st.DataObject, kind: Any, shape: tuple[int, ...]) -> None:
    x, host = filled(shape, kind)
    axes = data.draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=4))
    shifts = [data.draw(st.integers(-200, 200)) for _ in axes]
    same(vd.roll(x, shifts, axes), np.roll(host, shifts, axes))


@FEW
@given(st.data(), KINDS, shapes(1, 1), st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]))
def test_pad(data: st.DataObject, kind: Any, shape: tuple[int, ...], mode: Any) -> None:
    x, host = filled(shape, kind)
    width = st.integers(0, 20)
    widths = [(data.draw(width), data.draw(width)) for _ in shape]
    same(vd.pad(x, widths, mode), np.pad(host, widths, mode))


@FEW
@given(st.data(), KINDS, shapes(1, 1), st.sampled_from(["wrap", "clip", "raise"]))
def test_take_and_put(data: st.DataObject, kind: Any, shape: tuple[int, ...], mode: Any) -> None:
    x, host = filled(shape, kind)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    size, reach = shape[axis], 1 if mode == "raise" else 3
    where = data.draw(st.lists(st.integers(-reach * size, reach * size - 1), max_size=20).map(np.int64))
    same(vd.take(x, vd.asbuffer(where), axis, mode=mode), np.take(host, where, axis, mode=mode))
    places = data.draw(
        st.lists(st.integers(-reach * host.size, reach * host.size - 1), max_size=40).map(np.int64)
    )
    values, new = filled((max(1, places.size // 2),), kind, 1)
    vd.put(x, vd.asbuffer(places), values, mode)
    np.put(host, places, new, mode)
    same(x, host)


@FEW
@given(st.data(), KINDS, shapes(1))
def test_concatenate(data: st.DataObject, kind: Any, shape: tuple[int, ...]) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    pairs = []
    for k, length in enumerate(data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=4))):
        piece = list(shape)
        piece[axis] = length
        pairs.append(filled(tuple(piece), kind, k))
    same(vd.concatenate([x for x, _ in pairs], axis), np.concatenate([host for _, host in pairs], axis))
