"""Infinities, NaN and overflows in reductions and scans: NumPy's results, wherever in an array they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd

INF, NAN = np.inf, np.nan
REAL = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
LARGEST = {"float32": 3e38, "float64": 1e308}
# several workgroups, rows, columns
SHAPES: list[tuple[int, ...]] = [(70_001,), (5, 700), (700, 5)]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def kinds_of(array: Any) -> Any:
    """Return of each number, or part of one, whether it is finite, infinite (and which), or NaN."""
    parts = [array.real, array.imag] if np.iscomplexobj(array) else [array]
    return [np.where(np.isnan(part), 2, np.where(np.isinf(part), np.sign(part), 0)) for part in parts]


def alike(found: vd.Buffer[Any], expected: Any) -> None:
    np.testing.assert_array_equal(kinds_of(found.read(0)), kinds_of(np.asarray(expected)))


def with_numbers(shape: tuple[int, ...], kind: str, *numbers: Any) -> Any:
    """Return an array with some numbers in it, at places spread over it."""
    pick = np.random.default_rng(len(shape))
    array = pick.standard_normal(shape)
    if kind in COMPLEX:
        array = array + 1j * pick.standard_normal(shape)
    array = array.astype(kind)
    for each in numbers:
        array.reshape(-1)[pick.integers(array.size)] = each
    return array


@pytest.mark.parametrize(
    "values", [[INF], [-INF], [NAN], [1, INF], [INF, 1], [INF, INF], [INF, -INF, 2], [1, NAN]]
)
@pytest.mark.parametrize("kind", REAL + COMPLEX)
def test_variances_of_infinities(values: list[float], kind: str) -> None:
    array = np.array(values, kind)
    for ddof in (0, 1, 2):
        alike(vd.std(vd.asbuffer(array), ddof=ddof), np.std(array, ddof=ddof))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["float16", "complex64"])
def test_variances_of_arrays_with_infinities(shape: tuple[int, ...], kind: str) -> None:
    for number in (INF, NAN):
        array = with_numbers(shape, kind, number)
        # float16 is added up in float32, which NumPy's `var` does not do
        host = array.astype(np.float32) if kind == "float16" else array
        for axis in range(len(shape)):
            alike(vd.var(vd.asbuffer(array), axis, keepdims=True), np.var(host, axis, keepdims=True))
        mask = np.random.default_rng(1).random(shape) < 0.5
        found = vd.std(vd.asbuffer(array), -1, where=vd.asbuffer(mask))
        alike(found, np.std(host, -1, where=mask))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_variances_that_overflow_are_infinite(shape: tuple[int, ...], kind: str) -> None:
    array = with_numbers(shape, kind, LARGEST[kind], -LARGEST[kind])
    for axis in range(len(shape)):
        alike(vd.var(vd.asbuffer(array), axis), np.var(array, axis))
    pair = np.array([LARGEST[kind], -LARGEST[kind]], kind)
    assert vd.var(vd.asbuffer(pair)).read(0) == np.inf
    # nor does a NaN come of what is finite where NumPy's own sums overflow
    assert vd.std(vd.asbuffer(np.full(1000, LARGEST[kind], kind))).read(0) == 0


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_means_of_complex_infinities(shape: tuple[int, ...]) -> None:
    for number in (complex(INF, 1), complex(2, -INF), complex(NAN, 0), complex(INF, INF)):
        array = with_numbers(shape, "complex64", number)
        for axis in range(len(shape)):
            alike(vd.mean(vd.asbuffer(array), axis), np.mean(array, axis))
        mask = np.random.default_rng(1).random(shape) < 0.5
        alike(vd.mean(vd.asbuffer(array), -1, where=vd.asbuffer(mask)), np.mean(array, -1, where=mask))


@pytest.mark.parametrize(
    "values",
    [
        [complex(INF, 0)],
        [complex(0, INF)],
        [complex(INF, 0), 1],
        [1, complex(0, INF)],
        [1, 1, complex(INF, 0)],
        [2 + 1j, complex(INF, 0), 1j],
        [complex(NAN, 1), 2],
        [complex(1, INF), complex(1, INF)],
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", COMPLEX)
def test_products_of_complex_infinities(values: list[complex], kind: str) -> None:
    array = np.array(values, kind)
    alike(vd.prod(vd.asbuffer(array)), np.prod(array))
    alike(vd.cumprod(vd.asbuffer(array)), np.cumprod(array))
    for shape, axis in (((-1, 1), 0), ((-1, 1), 1)):
        alike(vd.prod(vd.asbuffer(array.reshape(shape)), axis), np.prod(array.reshape(shape), axis))


@pytest.mark.parametrize("shape", [(700, 3), (3, 700), (70_001,)], ids=str)
def test_products_with_a_complex_infinity_first(shape: tuple[int, ...]) -> None:
    array = np.ones(shape, np.complex64) * 1j
    array.reshape(-1)[0] = complex(INF, 0)
    for axis in (None, *range(len(shape))):
        found, expected = vd.prod(vd.asbuffer(array), axis).read(0), np.prod(array, axis)
        np.testing.assert_array_equal(kinds_of(found), kinds_of(expected))
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(found[finite], expected[finite])


def test_products_of_complex_numbers_begin_with_the_first_element() -> None:
    array = np.array([[2 + 1j, 3j], [1 - 1j, 2]], np.complex64)
    np.testing.assert_array_equal(vd.prod(vd.asbuffer(array), 0).read(0), np.prod(array, 0))
    np.testing.assert_array_equal(
        vd.prod(vd.asbuffer(array), 1, initial=2j).read(0), np.prod(array, 1, initial=2j)
    )
    nothing = np.zeros((0, 3), np.complex64)
    np.testing.assert_array_equal(vd.prod(vd.asbuffer(nothing), 0).read(0), np.prod(nothing, 0))


@pytest.mark.parametrize("kind", ["float16", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(1,), (5, 700)], ids=str)
def test_sums_norms_and_extremes_of_infinities(shape: tuple[int, ...], kind: str) -> None:
    for numbers in ((INF,), (-INF,), (NAN,), (INF, -INF)):
        array = with_numbers(shape, kind, *numbers)
        buffer = vd.asbuffer(array)
        wide = array.astype(np.float32) if kind == "float16" else array
        for axis in range(len(shape)):
            alike(vd.sum(buffer, axis), np.sum(wide, axis))
            alike(vd.mean(buffer, axis), np.mean(wide, axis))
            alike(vd.cumsum(buffer, axis), np.cumsum(wide, axis))
            for order in (None, 1, INF):
                alike(vd.norm(buffer, order, axis), np.linalg.norm(wide, order, axis))
            if kind in REAL:
                alike(vd.max(buffer, axis), np.max(array, axis))
                alike(vd.min(buffer, axis), np.min(array, axis))
