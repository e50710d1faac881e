"""Reductions of nothing, of NaN, infinities and zeros of both signs, and with masks, against NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd

from .comparing import check, outcome, same

NAN, INF = np.nan, np.inf
SUMS = ["sum", "prod", "mean", "var", "any", "all", "count_nonzero", "norm"]
EVERY = [*SUMS, "std", "min", "max", "argmin", "argmax"]


@pytest.mark.parametrize("name", EVERY)
def test_reductions_of_empty_arrays(name: str) -> None:
    for shape, axis in (
        ((0,), None),
        ((0, 3), 0),
        ((0, 3), 1),
        ((2, 0, 3), None),
        ((2, 0, 3), 1),
        ((3, 0), 0),
    ):
        check(name, np.zeros(shape, np.float32), axis=axis)
    check(name, np.zeros((2, 0), np.float32), axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("name", "kind"), [("mean", "float64"), ("sum", "int32"), ("mean", "int64"), ("var", "bool")]
)
def test_reductions_of_empty_arrays_of_other_dtypes(name: str, kind: str) -> None:
    check(name, np.zeros((0, 3), kind), axis=0)


def test_means_of_empty_arrays_warn() -> None:
    with pytest.warns(RuntimeWarning, match="empty slice"):
        vd.mean(vd.asbuffer(np.zeros(0, np.float32)))
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        vd.var(vd.asbuffer(np.ones(2, np.float32)), ddof=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # there are no results
        vd.mean(vd.asbuffer(np.zeros((0, 0), np.float32)), axis=0)


def placed(values: list[float], places: list[int], length: int = 3001) -> np.ndarray[Any, Any]:
    data = np.linspace(-5, 5, length, dtype=np.float32)
    data[places] = values
    return data


AMONG = [[7], [0], [3000], [2999, 12], [1000, 1001], [5, 2500]]


@pytest.mark.parametrize("name", ["min", "max", "argmin", "argmax"])
def test_nan_is_the_smallest_and_the_largest(name: str) -> None:
    for places in AMONG:
        check(name, placed([NAN] * len(places), places))
        check(name, placed([INF] * len(places), places))
        check(name, placed([-INF] * len(places), places))
        check(name, placed([NAN, -INF][: len(places)], places))
    for whole in (NAN, INF, -INF):
        check(name, np.full(33, whole, np.float32))
    rows = np.stack([placed([NAN], [i * 37], 700) for i in range(8)])
    check(name, rows, axis=1)
    check(name, rows, axis=0)


@pytest.mark.parametrize("name", ["min", "argmax"])
def test_nan_of_other_dtypes(name: str) -> None:
    for kind in ("float16", "float64"):
        check(name, placed([NAN, NAN], [10, 400]).astype(kind))
    data = (np.arange(400) % 7 + 1j * (np.arange(400) % 5)).astype(np.complex64)
    check(name, data)
    data[70] = complex(1, NAN)
    data[90] = complex(NAN, 1)
    assert np.isnan(vd.min(vd.asbuffer(data)).read(0))
    check("argmin", data)


def test_zeros_of_both_signs_are_equal() -> None:
    data = np.array([0.0, -0.0, 0.0, -0.0] * 9, np.float32)
    for name in ("argmin", "argmax", "min", "any", "all", "count_nonzero"):
        check(name, data)
    check("argmin", data[1:])


@pytest.mark.parametrize("name", SUMS)
def test_nan_and_infinities_in_sums(name: str) -> None:
    for values in ([NAN], [INF], [-INF], [INF, -INF]):
        data = placed(values, [10, 1200][: len(values)])
        data[0] = 1
        if name == "prod":
            data = np.sign(data) + (data == 0)
        check(name, data, scale=5000)
    for value in (NAN, INF):
        check(name, np.full(5, value, np.float32))


def test_numbers_near_the_largest() -> None:
    for name in ("max", "min", "argmax"):
        check(name, np.array([3.4e38, -3.4e38, 1e-45, 0] * 5, np.float32))
    for kind in ("int32", "uint32", "int64", "uint64", "int8"):
        limits = np.iinfo(kind)
        data = np.array([limits.max, limits.min, limits.max - 1, limits.min + 1] * 5, kind)
        for name in ("min", "max", "argmin", "argmax"):
            check(name, data)


# ---- where and initial ---------------------------------------------------------------------------


def with_mask(name: str, data: np.ndarray[Any, Any], mask: np.ndarray[Any, Any], **kwargs: Any) -> None:
    ours, theirs = getattr(vd, name), getattr(np, name)
    buffer, keep = vd.asbuffer(data), vd.asbuffer(mask)
    found = outcome(lambda: ours(buffer, where=keep, **kwargs).read(0))
    wide = data.astype(np.float64) if data.dtype == np.float32 else data
    expected = outcome(lambda: np.asarray(theirs(wide, where=mask, **kwargs)))
    if not isinstance(expected, type) and data.dtype == np.float32 and expected.dtype.kind == "f":
        expected = expected.astype(np.float32)
    same(found, expected, 50, (name, data.shape, kwargs))


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "any", "all"])
def test_masks(name: str) -> None:
    rng = np.random.default_rng(3)
    data = rng.normal(size=(6, 50)).astype(np.float32)
    data[2, 7] = NAN  # does not count
    mask = rng.random((6, 50)) < 0.6
    mask[2, 7] = False
    mask[4] = False
    extra: dict[str, Any] = {"initial": -0.5} if name == "max" else {}
    with_mask(name, data, mask, axis=1, **extra)
    data = rng.normal(size=(6, 50)).astype(np.float32)
    with_mask(name, data, mask[:, :1], axis=1, **extra)
    with_mask(name, data, mask[0], axis=1, **extra)


def test_masks_of_other_dtypes() -> None:
    rng = np.random.default_rng(4)
    mask = rng.random((6, 50)) < 0.6
    with_mask("sum", rng.integers(-100, 100, (6, 50)).astype(np.int8), mask, axis=1)
    with_mask("mean", rng.integers(-100, 100, (6, 50)), mask, axis=1)
    with_mask("mean", rng.integers(-100, 100, (6, 50)) * (1 + 1j), mask, axis=1)
    with_mask("var", rng.integers(-100, 100, (6, 50)) * (1 + 1j), mask, axis=1, ddof=1)


def test_initial_numbers() -> None:
    data = np.arange(1, 8, dtype=np.int32)
    for name in ("sum", "prod", "min", "max"):
        for first in (0, 3, -100, 100):
            check(name, data, initial=first)
            check(name, data[:0], initial=first)
    check("max", np.array([1.5, NAN], np.float32), initial=3.0)
    check("sum", np.array([1, 2, 3j], np.complex64), initial=1j)
    check("sum", np.zeros((0, 3), np.float32), axis=0, initial=2.5)


# ---- exactness -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "mean", "allowed"), [("float32", 10_000, 2e-6), ("float64", 1e9, 1e-12)])
def test_variances_about_a_large_mean(kind: str, mean: float, allowed: float) -> None:
    for size in (3, 1000, 200_003):
        data = (np.random.default_rng(size).normal(size=size) + mean).astype(kind)
        expected = data.astype(np.longdouble).var()
        assert abs(vd.var(vd.asbuffer(data)).read(0) / expected - 1) < allowed, size
    rows = (np.random.default_rng(1).normal(size=(300, 40)) + mean).astype(kind)
    for axis in (0, 1):
        expected = rows.astype(np.longdouble).var(axis=axis)
        np.testing.assert_allclose(
            vd.var(vd.asbuffer(rows), axis).read(0), expected.astype(kind), rtol=allowed * 5
        )


def test_a_variance_of_equal_numbers_is_zero() -> None:
    for value in (0.1, 1e30, -3.7):
        assert vd.var(vd.asbuffer(np.full(10_007, value, np.float32))).read(0) == 0


def test_sums_of_many_floats_are_exact_to_a_few_steps() -> None:
    data = np.full(3_000_001, 0.1, np.float32)
    expected = data.sum(dtype=np.float64)
    assert abs(vd.sum(vd.asbuffer(data)).read(0) / expected - 1) < 3e-7
    assert abs(vd.mean(vd.asbuffer(data)).read(0) / np.float64(data[0]) - 1) < 3e-7


@pytest.mark.parametrize("name", ["sum", "var", "argmax"])
def test_the_same_bits_every_time(name: str) -> None:
    buffer = vd.asbuffer(np.random.default_rng(2).normal(size=(40, 30_011)).astype(np.float32))
    for axis in (None, 0):
        results = [getattr(vd, name)(buffer, axis=axis) for _ in range(10)]
        assert len({each.read(0).tobytes() for each in results}) == 1


def test_refusals_name_the_array() -> None:
    nothing = vd.asbuffer(np.empty(0, np.float32))
    for function in (vd.min, vd.max, vd.argmin, vd.argmax):
        with pytest.raises(ValueError, match=r"^x: .*(zero-size array|empty sequence)"):
            function(nothing)
    for shape, axis in (((0, 0), 0), ((0, 1, 0), -3)):  # there are no results either, and NumPy refuses it
        with pytest.raises(ValueError, match="empty sequence"):
            vd.argmax(vd.Buffer(shape, vd.float32), axis=axis)
    assert vd.argmax(vd.Buffer((0, 3), vd.float32), axis=1).shape == (0,)
    with pytest.raises(ValueError, match=r"^x: zero-size array"):
        vd.norm(nothing, -np.inf)
    vectors = vd.asbuffer(np.zeros(3, np.float32))
    with pytest.raises(ValueError, match=r"^x: vec2 has no order"):
        vd.argmax(vd.Buffer(3, vd.vec2))
    with pytest.raises(ValueError, match=r"^a, b: "):
        vd.dot(vectors, vd.asbuffer(np.zeros(4, np.float32)))


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_places_of_any_integer_dtype(kind: str) -> None:
    values = np.array([[3, 1, 2], [5, 9, 7]], np.float32)
    buffer = vd.asbuffer(values)
    for ours, theirs in ((vd.argmin, np.argmin), (vd.argmax, np.argmax)):
        for axis in (None, 0, 1):
            places = ours(buffer, axis, dtype=getattr(vd, kind)).read(0)
            assert places.dtype == kind
            assert np.array_equal(places, theirs(values, axis))
