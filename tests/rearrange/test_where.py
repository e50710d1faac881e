"""vd.where: shapes that are stretched, numbers, dtypes that meet."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import *  # noqa: F403

from .arrays import KINDS, filled, same

HOSTS = [
    np.bool_,
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
    np.float16,
    np.float32,
    np.float64,
    np.complex64,
    np.complex128,
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_dtypes(kind: DType) -> None:
    condition, tests = filled((6, 11), vd.bool_)
    x, a = filled((6, 11), kind, 1)
    y, b = filled((6, 11), kind, 2)
    chosen = tests.reshape(6, 11, *[1] * (a.ndim - 2))
    same(vd.where(condition, x, y), np.where(chosen, a, b))
    if kind not in (vd.bool_, vd.bfloat16, vd.complex32):
        same(vd.where(condition, x, 2), np.where(chosen, a, a.dtype.type(2)))


@pytest.mark.parametrize("first", HOSTS, ids=lambda kind: kind.__name__)
def test_promotion_of_dtypes(first: Any) -> None:
    tests = np.arange(6) % 2 == 0
    a = np.arange(6).astype(first)
    condition, x = vd.asbuffer(tests), vd.asbuffer(a)
    for second in HOSTS[:: 2 if first is not np.uint8 else 1]:
        b = np.arange(6, 12).astype(second)
        same(vd.where(condition, x, vd.asbuffer(b)), np.where(tests, a, b), first, second)
    for number in (1, 1.5, 1j, True):
        same(vd.where(condition, number, x), np.where(tests, number, a), first, number)


@pytest.mark.parametrize("kind", [vd.int8, vd.float16, vd.vec2], ids=lambda kind: kind.name)
@pytest.mark.parametrize("first", HOSTS[::2], ids=lambda kind: kind.__name__)
def test_several_at_once(kind: DType, first: Any) -> None:
    for size in (16, 1026, 999):
        tests = np.random.default_rng(size).integers(0, 3, size).astype(first)
        x, a = filled((size,), kind, 1)
        y, b = filled((size,), kind, 2)
        chosen = tests.astype(bool).reshape(size, *[1] * (a.ndim - 1))
        same(vd.where(vd.asbuffer(tests), x, y), np.where(chosen, a, b), size)
        same(vd.where(vd.asbuffer(tests), 7, y), np.where(chosen, a.dtype.type(7), b), size)


SHAPES = [(), (1,), (5,), (4, 1), (1, 5), (4, 5), (3, 4, 1), (3, 1, 5), (1, 4, 1), (3, 4, 5)]


def test_shapes_are_broadcast() -> None:
    cases = itertools.product(SHAPES, repeat=3)
    for number, shapes in enumerate(cases):
        if number % 41:  # other steps have been tried too; each layout is a kernel
            continue
        arrays = [
            np.asarray(np.random.default_rng(k).integers(0, 3, s), np.int32) for k, s in enumerate(shapes)
        ]
        same(vd.where(*map(vd.asbuffer, arrays)), np.where(*arrays), shapes)


@pytest.mark.parametrize("kind", HOSTS, ids=lambda kind: kind.__name__)
def test_nonzero_conditions_hold(kind: Any) -> None:
    numbers = np.array([0, 1, 0, 3], kind)
    if np.dtype(kind).kind == "f":
        numbers = np.array([0, -0.0, np.nan, np.inf, 5], kind)
    if np.dtype(kind).kind == "c":
        numbers = np.array([0, 1j, 1, complex(0, np.nan)], kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.where(numbers, 1.0, 2.0)
    same(vd.where(vd.asbuffer(numbers), 1.0, 2.0), expected)


def test_empty_arrays() -> None:
    x = vd.Buffer((0, 3), vd.float32)
    assert vd.where(x, x, 1).shape == (0, 3)
    assert vd.where(vd.asbuffer(np.zeros(3, np.float32)), x, x).shape == (0, 3)


@vd.map
def positive(x: f32) -> u32:  # noqa: F405
    return (x > 0).to_dtype(u32)  # noqa: F405


@vd.map
def negated(x: f32) -> f32:  # noqa: F405
    return -x


def test_maps() -> None:
    host = np.linspace(-3, 3, 20, dtype=np.float32).reshape(4, 5)
    x = vd.asbuffer(host)
    same(vd.where(positive(x), x, negated(x)), abs(host))
    same(vd.where(positive(x), x, 0.0, output_map=negated), -np.where(host > 0, host, np.float32(0)))


def test_result_may_be_an_argument() -> None:
    host = np.linspace(-3, 3, 20, dtype=np.float32)
    x, condition = vd.asbuffer(host), vd.asbuffer(host > 0)
    assert vd.where(condition, x, 0.0, out=x) is x
    same(x, np.maximum(host, np.float32(0)))
    one = vd.asbuffer(np.zeros(1, np.float32))
    same(vd.where(one, one, negated(x), out=x), -np.maximum(host, np.float32(0)))
    same(vd.where(condition, negated(x), 1.0, out=x), np.where(host > 0, host, np.float32(1)))
