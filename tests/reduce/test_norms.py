"""Norms and dot products, against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd

from .comparing import check, outcome, same

RNG = np.random.default_rng(9)
INF = np.inf
DATA = RNG.normal(size=(5, 70)).astype(np.float32)
CUBE = RNG.normal(size=(4, 5, 6)).astype(np.float32)


@pytest.mark.parametrize("order", [None, 0, 1, 2, INF, -INF, 3, -1, 0.5, 2.5, -2.5])
def test_norms_of_vectors(order: Any) -> None:
    data = DATA.copy()
    data[1, 3] = 0
    check("norm", data, order, 1, exact=np.float64, scale=5)


@pytest.mark.parametrize("order", [3, 2.5, -1.5, 2.3, -0.7])
def test_powers_of_float64_have_its_digits(order: float) -> None:
    wide = DATA.astype(np.float64) * np.exp(RNG.normal(size=DATA.shape) * 4)
    check("norm", wide, order, 1)
    check("norm", np.array([1e-300, 1e300, 0, 3]), 0.9)
    check("norm", np.array([1.0, INF]), 2.5)
    check("norm", np.array([1.0, np.nan]), 2.5)
    check("norm", np.array([1e-200, 1e200, 1]), -0.7)


@pytest.mark.parametrize("order", [2.5, 0.5, -3.5, -0.7, 7.3])
def test_powers_of_float32_are_precise_on_every_device(order: float) -> None:
    # rows of one number: a power, rounded, and its root
    x = np.exp(RNG.uniform(-40 / abs(order), 40 / abs(order), (3000, 1))).astype(np.float32)
    power, inverse = (float(np.float32(each)) for each in (order, 1 / order))
    powers = (x.astype(np.float64) ** power).astype(np.float32).astype(np.float64)
    want = powers[:, 0] ** inverse
    found = vd.norm(vd.asbuffer(x), order, 1).read(0)
    # powers that fall between two numbers may be rounded to either one
    steps = np.abs(found - want) / np.spacing(want.astype(np.float32))
    assert steps.max() <= 1 + max(1, 2 * abs(inverse))


@pytest.mark.parametrize("kind", ["float16", "float64", "complex64", "int32", "uint8"])
def test_norms_of_other_dtypes(kind: str) -> None:
    data = (DATA * 3).astype(kind) if kind != "uint8" else np.abs(DATA * 9).astype(kind)
    if kind == "complex64":
        data = (DATA + 1j * DATA[:, ::-1]).astype(kind)
    exact = {"float16": np.float64, "complex64": np.complex128}.get(kind)
    for order in (None, 1, INF):
        check("norm", data, order, 1, exact=exact)
    check("norm", data, exact=exact)


def test_magnitudes_of_complex_numbers_do_not_overflow() -> None:
    data = np.array([3e30 + 4e30j, 3e-30 + 4e-30j, 0], np.complex64)
    for order in (1, INF):
        check("norm", data, order)
    data[2] = complex(INF, np.nan)
    check("norm", data, INF)


@pytest.mark.parametrize("order", [None, "fro", 1, -1, INF, -INF])
def test_norms_of_matrices(order: Any) -> None:
    for axis in ((0, 1), (1, 0), (2, 0), (-2, -1)):
        check("norm", CUBE, order, axis, exact=np.float64)
    check("norm", CUBE, order, (0, 2), True, exact=np.float64)
    check("norm", CUBE[0], order, exact=np.float64)
    check("norm", CUBE[0].astype(np.float16), order, exact=np.float64)
    for shape in ((0, 3), (3, 0), (0, 0)):
        check("norm", np.zeros(shape, np.float32), order)


@pytest.mark.parametrize("order", [None, 0, 1, 2, INF, -INF, 3, -1])
def test_norms_of_empty_arrays(order: Any) -> None:
    check("norm", np.zeros(0, np.float32), order)
    check("norm", np.zeros((0, 2), np.float32), order, 0)


def test_invalid_norms_are_refused() -> None:
    matrix = vd.asbuffer(CUBE[0])
    for order in (2, -2, "nuc"):
        with pytest.raises(vd.UnsupportedError, match="singular values"):
            vd.norm(matrix, order)
    for order, message in ((3, "1, -1, inf"), ("x", "expected None, 'fro'"), ([1], "ord: expected")):
        with pytest.raises((TypeError, ValueError), match=message):
            vd.norm(matrix, order)
    with pytest.raises(ValueError, match="ord: over 3 axes"):
        vd.norm(vd.asbuffer(CUBE), 1)
    with pytest.raises(ValueError, match="ord: expected None, a number, or inf for vectors"):
        vd.norm(matrix, "fro", axis=0)
    with pytest.raises(ValueError, match="dtype: norm has fractions"):
        vd.norm(matrix, dtype=vd.int32)
    # of any axes there is the root of the sum of squares
    same(vd.norm(vd.asbuffer(CUBE)).read(0), np.linalg.norm(CUBE))


# ---- dot products --------------------------------------------------------------------------------


def dots(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], scale: float = 0) -> None:
    first, second = vd.asbuffer(a), vd.asbuffer(b)
    wide = a.dtype.kind == b.dtype.kind == "f"
    expected = outcome(lambda: np.asarray(np.dot(a, b)))
    if wide and not isinstance(expected, type):
        expected = np.dot(a.astype(np.float64), b.astype(np.float64)).astype(expected.dtype)
    same(
        outcome(lambda: vd.dot(first, second).read(0)), expected, scale, (a.dtype, b.dtype, a.shape, b.shape)
    )


@pytest.mark.parametrize(
    "kind", ["float32", "float16", "float64", "int32", "uint8", "int8", "bool", "complex64"]
)
def test_dots_of_one_dtype(kind: str) -> None:
    a, b = ((RNG.normal(size=1001) * 20).astype(kind) for _ in range(2))
    dots(a, b, 3e5 if kind != "float16" else 1e4)


def test_dots_of_two_dtypes() -> None:
    kinds = ("float32", "float64", "int32", "int8", "bool", "complex64")
    for a, b in itertools.islice(itertools.combinations(kinds, 2), 0, None, 2):
        dots((RNG.normal(size=9) * 9).astype(a), (RNG.normal(size=9) * 9).astype(b), 500)


def test_dots_of_all_lengths() -> None:
    for length in (0, 1, 2, 3, 4, 5, 31, 33, 1025, 70_001):
        dots(*RNG.integers(-9, 9, (2, length)).astype(np.int32))


def test_dots_of_rows_with_a_vector() -> None:
    numbers = RNG.integers(-9, 9, (6, 5, 33)).astype(np.int32)
    dots(numbers, numbers[0, 0])
    dots(numbers[0], numbers[1, 1])
    dots(CUBE, CUBE[0, 0], 5)
    dots(np.zeros((3, 0), np.float32), np.zeros(0, np.float32))


def test_invalid_dots_are_refused() -> None:
    matrix, vector = vd.asbuffer(CUBE[0]), vd.asbuffer(CUBE[0, 0])
    with pytest.raises(ValueError, match=r"vd\.matmul"):
        vd.dot(matrix, matrix)
    with pytest.raises(ValueError, match="differ in length"):
        vd.dot(vector, vd.asbuffer(DATA[0]))
    with pytest.raises(TypeError, match=r"b: expected a vd\.Buffer"):
        vd.dot(vector, [1.0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no dimensions"):
        vd.dot(vd.sum(vector), vector)
    half = vd.Buffer((6,), vd.bfloat16)
    with pytest.raises(ValueError, match="no common dtype"):
        vd.dot(vector, half)
