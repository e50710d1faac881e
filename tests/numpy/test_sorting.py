"""Sorting, searching and sets against NumPy, for all dtypes, with NaN and signed zeros."""

from __future__ import annotations

from typing import Any

import pytest

import numpy as np
import vkdispatch.numpy as vnp
from tests.numpy.both import compare, run_texts

_KINDS = ["?", "i1", "i8", "u2", "u8", "f2", "f4", "f8", "c8"]


def _data(kind: str, count: int = 37) -> Any:
    random = np.random.default_rng(0)
    if kind == "?":
        return random.random(count) < 0.5
    if kind[0] in "iu":
        limits = np.iinfo(kind)
        data = random.integers(limits.min, limits.max, count, dtype=kind, endpoint=True)
        data[:5], data[5:9] = limits.max, limits.min
        data[9:20] = random.integers(0, 4, 11)
        return data
    if kind[0] == "f":
        data = (random.standard_normal(count) * 3).round(1).astype(kind)
        data[[3, 11, 12]], data[7], data[8], data[9], data[10] = np.nan, np.inf, -np.inf, -0.0, 0.0
        return data
    data = (random.integers(-2, 3, count) + 1j * random.integers(-2, 3, count)).astype(kind)
    data[[3, 10]], data[5], data[6] = np.nan, complex(1, np.nan), complex(np.nan, 1)
    data[7], data[8], data[9] = complex(np.inf, -np.inf), complex(0, -0.0), complex(-0.0, 0)
    return data


@pytest.mark.parametrize("kind", _KINDS)
def test_sorting_and_sets(kind: str) -> None:
    x = _data(kind)
    run_texts(
        """
        r = m.sort(x)
        r = m.sort(y, 1)
        r = m.sort(y.T, axis=0)
        r = m.sort(y, axis=None)
        r = m.argsort(x, stable=True)
        r = m.argsort(y, axis=1, stable=True)
        r = m.searchsorted(m.sort(x), z)
        r = m.searchsorted(m.sort(x), y, 'right')
        r = m.searchsorted(x, z, sorter=m.argsort(x, stable=True))
        r = m.unique(x, return_index=True, return_inverse=True, return_counts=True)
        r = m.unique(y, return_inverse=True)
        r = m.unique(x, equal_nan=False)
        r = m.unique_counts(x)
        r = m.isin(x, z)
        r = m.isin(y, z, invert=True)
        r = m.nonzero(y)
        """,
        x,
        _data(kind, 24).reshape(2, 3, 4),
        x[[1, 3, 6, 10, 9]],
    )


def test_other_arguments() -> None:
    run_texts(
        """
        r = m.sort(x[:0])
        r = m.argsort(y[:, :0], axis=0)
        r = m.sort(y, axis=3)
        r = m.sort(x[0])
        r = m.argsort(x[0])
        r = m.searchsorted(x[:0], y)
        r = m.searchsorted(y, x)
        r = m.searchsorted(z, m.asarray([2**40, 1]))
        r = m.searchsorted(z, m.asarray([1.5, 9.5]))
        r = m.searchsorted(z, 5)
        r = m.searchsorted(z, 5, side='foo')
        r = m.isin(x, y[:0])
        r = m.isin(x, 1)
        r = m.isin(x[0], x)
        r = m.unique(x[:0])
        r = m.unique(x[0])
        r = m.unique_all(y)
        r = m.unique(y % 2, axis=0, return_counts=True)
        r = m.unique(y // 3, axis=1, return_index=True, return_inverse=True)
        x.sort()
        x[::-1].sort()
        """,
        np.array([3, 1, 2, 1, 3]),
        np.arange(12).reshape(3, 4),
        np.array([1, 5, 9], np.int32),
    )


@pytest.mark.parametrize("kind", ["?", "u2", "f4", "c8"])
def test_descending_sorts_are_stable(kind: str) -> None:
    x = _data(kind)
    places = vnp.argsort(vnp.asarray(x), descending=True).numpy()
    compare(places, (len(x) - 1 - np.argsort(x[::-1], stable=True))[::-1])
    compare(vnp.sort(vnp.asarray(x), descending=True).numpy(), x[places])


def test_nan_is_one_element_along_the_only_axis() -> None:
    for values in (np.array([np.nan, 0, 0, np.nan]), np.array([np.nan, 1j, complex(0, np.nan)])):
        for options in ({"axis": 0}, {"axis": -1, "return_counts": True}, {"axis": 0, "equal_nan": False}):
            expected, found = np.unique(values, **options), vnp.unique(vnp.asarray(values), **options)
            for one, other in zip(
                *((each if isinstance(each, tuple) else (each,)) for each in (found, expected)), strict=True
            ):
                np.testing.assert_array_equal(one.numpy(), other)
    rows = np.array([[np.nan, 1], [np.nan, 1]])
    assert vnp.unique(vnp.asarray(rows), axis=0).shape == np.unique(rows, axis=0).shape
