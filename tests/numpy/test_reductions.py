"""Reductions against NumPy: axes of any pattern, masks, results given, empty arrays, expressions."""

from __future__ import annotations

import math
import pickle
import warnings
from itertools import combinations
from typing import Any

import pytest

import numpy as np
import vkdispatch as vd
import vkdispatch.numpy as vnp
from tests.numpy.both import check_evaluations, run_texts
from vkdispatch.numpy.core import expressions


def _agrees(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    values = np.asarray(expected)
    if vnp.asarray([0.5]).dtype == np.float32 and values.dtype == np.float64:
        values = values.astype(np.float32)  # the device has no float64
    assert found.dtype == values.dtype
    assert found.shape == values.shape
    np.testing.assert_allclose(found.numpy(), values, rtol=tolerance, atol=tolerance)


def test_sums_over_any_axes() -> None:
    x = np.arange(2 * 3 * 1 * 4 * 5, dtype=np.float32).reshape(2, 3, 1, 4, 5)
    y = vnp.asarray(x)
    for count in range(6):
        for axes in combinations(range(5), count):
            _agrees(vnp.sum(y, axis=axes), x.sum(axes))
    _agrees(vnp.max(y, axis=(4, 0), keepdims=True), x.max((4, 0), keepdims=True))
    _agrees(vnp.mean(y.T[::-1], axis=(-2, 0)), x.T[::-1].mean((-2, 0)))
    _agrees(vnp.var(y, axis=(1, 4)), x.var((1, 4)))


def test_expressions_are_reduced_where_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.linspace(-1, 1, 3 * 4 * 5 * 6).reshape(3, 4, 5, 6).astype(np.float32)
    y, z = vnp.asarray(x), vnp.asarray(x[:, :1])

    def refuse(*arguments: Any) -> Any:
        raise AssertionError("a temporary array is computed")

    check_evaluations(monkeypatch)
    monkeypatch.setattr(expressions, "_computing", [refuse])
    found = [vnp.sum(y * z + 1, axis=axis) for axis in (None, 1, (0, 2), (1, 3))]
    found.append(vnp.max(vnp.abs(y - z), axis=-1))
    found.append(vnp.sum(y, axis=(0, 2), where=y > z))
    found.append(vnp.cumulative_sum(y + z, axis=2))
    monkeypatch.undo()
    for got, axis in zip(found, (None, 1, (0, 2), (1, 3)), strict=False):
        _agrees(got, (x * x[:, :1] + 1).sum(axis))
    _agrees(found[4], np.abs(x - x[:, :1]).max(-1))
    _agrees(found[5], x.sum((0, 2), where=x > x[:, :1]))
    _agrees(found[6], np.cumulative_sum(x + x[:, :1], axis=2))


def test_recorded_calls_serve_other_numbers_in_expressions() -> None:
    x = np.arange(8, dtype=np.float32)
    y, calls = vnp.asarray(x), vnp.asarray(x).device.context.calls
    numbers = (1.5, 1), (0.25, 2.5), (3.5, 4), (-2.0, -0.0), (0.0, math.nan), (math.inf, 3), (1e30, -1e30)
    known = 0
    for number, other in numbers:
        found = (
            vnp.sum(y * number + other),
            vnp.sort(y * number + other),
            vnp.max(y * number, where=y < other, initial=-math.inf),
        )
        known = known or len(calls)
        with np.errstate(all="ignore"):
            shifted = x * np.float32(number) + np.float32(other)
            _agrees(found[0], shifted.sum())
            _agrees(found[1], np.sort(shifted))
            _agrees(found[2], np.max(x * np.float32(number), where=x < other, initial=-math.inf))
    assert len(calls) == known
    # numbers of this dtype are no scalars of kernels: they distinguish calls
    for number in (0.5, 2.0, 0.5):
        _agrees(vnp.sum(vnp.asarray(x.astype(np.float16)) * number), (x.astype(np.float16) * number).sum())


def test_masks_and_first_values() -> None:
    x = np.random.default_rng(1).standard_normal((4, 5, 6)).astype(np.float32)
    y = vnp.asarray(x)
    for mask in (x > 0, x[0, :, :1] > 0, np.asarray(False)):
        where = vnp.asarray(mask)
        for axis in (None, 1, (0, 2)):
            _agrees(vnp.sum(y, axis=axis, where=where, initial=2), x.sum(axis, where=mask, initial=2))
            _agrees(vnp.max(y, axis=axis, where=where, initial=-9), x.max(axis, where=mask, initial=-9))
            _agrees(vnp.any(y > 1, axis=axis, where=where), (x > 1).any(axis, where=mask))
    _agrees(vnp.std(y, axis=1, where=vnp.asarray(x > 0)), x.std(1, where=x > 0))
    with pytest.raises(ValueError, match="initial"):
        vnp.min(y, where=vnp.asarray(x > 0))


def test_a_wider_out_is_computed_in_its_dtype() -> None:
    x = np.full((3, 70), 0.1, np.float32)
    out, expected = vnp.zeros(3, dtype=np.float64), np.zeros(3)
    assert vnp.sum(vnp.asarray(x), axis=1, out=out) is out
    x.sum(1, out=expected)
    _agrees(out, expected, 1e-12)
    with pytest.raises(ValueError, match="out"):
        vnp.sum(vnp.asarray(x), axis=0, out=out)


def test_an_inexact_out_of_integers_does_not_wrap_around() -> None:
    x = np.array([[3, 7, 2, 9] * 20, [1] * 80])
    for dtype in (np.int64, np.uint64, np.int32):
        for name in ("sum", "prod"):
            for kind in (np.float16, np.float32, np.float64):
                out, expected = vnp.zeros(2, dtype=kind), np.zeros(2, kind)
                getattr(vnp, name)(vnp.asarray(x.astype(dtype)), axis=1, out=out)
                with np.errstate(all="ignore"):
                    getattr(np, name)(x.astype(dtype), axis=1, out=expected)
                np.testing.assert_allclose(out.numpy(), expected, 1e-2)


@pytest.mark.parametrize("kind", ["?", "u1", "i2", "f4"])
def test_first_values_of_extremes_fit_the_dtype_of_both(kind: str) -> None:
    texts = [
        f"r = m.{name}(x, out=m.zeros((), np.{out}), initial={initial})"
        for name in ("min", "max")
        for out in ("int8", "int64", "uint8", "float32", "complex128")
        for initial in (-1, 300, 2, 70000)
        if np.can_cast(np.promote_types(kind, out), out, "same_kind")
    ]
    run_texts("\n".join(texts), np.array([1, 0, 1], kind))


@pytest.mark.parametrize("kind", ["?", "i1", "u2", "f4"])
def test_totals_start_from_numbers_beyond_the_dtype(kind: str) -> None:
    x = np.array([[1, 0], [1, 1]], kind)
    for name in ("sum", "prod", "nansum", "nanprod"):
        for initial in (0, 7, 1000):
            found = getattr(vnp, name)(vnp.asarray(x), axis=1, initial=initial)
            _agrees(found, getattr(np, name)(x, axis=1, initial=initial))


def test_empty_arrays() -> None:
    empty = vnp.zeros((0, 3), dtype=np.float32)
    _agrees(vnp.sum(empty, axis=0), np.zeros(3, np.float32))
    _agrees(vnp.prod(empty), np.float32(1))
    _agrees(vnp.all(empty, axis=0), np.ones(3, bool))
    assert vnp.max(empty, axis=1).shape == (0,)
    for function in (vnp.max, vnp.min, vnp.argmax):
        with pytest.raises(ValueError, match=r"empty|zero-size"):
            function(empty, axis=0)
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        assert np.isnan(vnp.mean(empty, axis=0).numpy()).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert vnp.mean(empty, axis=1).shape == (0,)


@pytest.mark.parametrize("kind", ["?", "i1", "u8", "f2", "c8"])
def test_dtypes_of_results(kind: str) -> None:
    x = (np.arange(30).reshape(5, 6) % 7).astype(kind)
    if kind == "c8":
        x = (x + 1j * x[::-1]).astype(kind)
    y = vnp.asarray(x)
    for name in ("sum", "prod", "mean", "var", "min", "max", "all", "count_nonzero", "argmax", "cumsum"):
        _agrees(getattr(vnp, name)(y, axis=0), getattr(np, name)(x, axis=0), 2e-3)
    _agrees(vnp.sum(y, axis=(), dtype=np.complex64), x.sum((), dtype=np.complex64))


def test_extremes_of_complex_numbers_and_nan() -> None:
    x = np.array([1 + 2j, 1 + 3j, 0.5 + 9j, -0.0 + 0j], np.complex64)
    broken = x.copy()
    broken[2] = complex(0, np.nan)
    for values in (x, broken):
        y = vnp.asarray(values)
        _agrees(vnp.max(y), values.max())
        _agrees(vnp.argmin(y), values.argmin())


def test_axes_that_are_not_there() -> None:
    y = vnp.zeros((2, 3))
    for axis in (2, -3, (0, 0)):
        with pytest.raises(ValueError, match="axis"):
            vnp.sum(y, axis=axis)
    with pytest.raises(TypeError, match="axis"):
        vnp.sum(y, axis=1.5)


def test_errors_of_axes_are_numpys() -> None:
    x = vnp.zeros((2, 3))
    for call in (
        lambda: x.sum(axis=5),
        lambda: vnp.sort(x, axis=-3),
        lambda: x.mean(axis=(0, 0)),
        lambda: vnp.roll(x, 1, 7),
    ):
        with pytest.raises(np.exceptions.AxisError) as caught:
            call()
        for kind in (vd.AxisError, vd.VkDispatchError, ValueError, IndexError):
            assert isinstance(caught.value, kind)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (type(again), str(again)) == (vd.AxisError, str(caught.value))


@pytest.mark.parametrize("kind", [np.bool_, np.uint8, np.int32, np.float32])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_ranges_with_the_dtype_of_the_output(kind: type, axis: int | None) -> None:
    """The difference of booleans is that of numbers where `out` holds numbers."""
    x = (np.arange(12).reshape(3, 4) % 5).astype(kind)
    expected, out = (np.zeros(np.max(x, axis).shape) for _ in range(2))
    np.ptp(x, axis, out=expected)
    ours = vnp.asarray(out)
    assert vnp.ptp(vnp.asarray(x), axis, out=ours) is ours
    np.testing.assert_array_equal(ours.numpy(), expected)
