"""NumPy's reductions over all sets of axes and many shapes, against NumPy."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vkdispatch as vd
from vkdispatch.base.record import replace
from vkdispatch.reduce import planning

from .comparing import check, outcome, same

RNG = np.random.default_rng(7)
VALUES = RNG.normal(size=200_000).astype(np.float32) + 0.25
# whole numbers of which many are equal, and some 0
WHOLE = RNG.integers(-3, 9, 200_000).astype(np.int32)
OF_FLOATS = ("sum", "mean", "var", "std", "norm")
SHAPES: list[tuple[int, ...]] = [(1,), (7,), (4097,), (1, 50), (1000, 3), (5, 100, 37), (3, 2, 3000)]
FEW: list[tuple[int, ...]] = [(4097,), (5, 100, 37)]


def subsets(dimensions: int) -> list[Any]:
    """Return all sets of axes, None and single ones among them."""
    several = [
        each
        for count in range(1, dimensions + 1)
        for each in itertools.combinations(range(dimensions), count)
    ]
    return [None, *(axes[0] if len(axes) == 1 else axes for axes in several)]


def floats(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return VALUES[: math.prod(shape)].reshape(shape)


def numbers(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return WHOLE[: math.prod(shape)].reshape(shape)


@pytest.mark.parametrize("name", ["sum", "var"])
def test_floats_over_every_set_of_axes(name: str) -> None:
    for shape in SHAPES if name == "sum" else FEW:
        for axis in subsets(len(shape)):
            scale = math.prod(shape) ** 0.5 if name == "sum" else 1
            check(name, floats(shape), axis=axis, exact=np.float64, scale=scale)


@pytest.mark.parametrize("name", ["max", "any", "count_nonzero"])
def test_numbers_over_every_set_of_axes(name: str) -> None:
    for shape in SHAPES if name == "max" else FEW:
        for axis in subsets(len(shape)):
            check(name, numbers(shape), axis=axis)


@pytest.mark.parametrize("name", ["mean", "std", "norm", "prod", "min", "all"])
def test_other_functions_along_some_axes(name: str) -> None:
    for shape, axis in (((4097,), None), ((5, 100, 37), 1), ((1000, 3), 1)):
        data = floats(shape) if name in OF_FLOATS else numbers(shape)
        if name == "prod":
            data = 1 + floats(shape) / 100
        check(name, data, axis=axis, exact=np.float64 if data.dtype == np.float32 else None, scale=1)


@pytest.mark.parametrize("name", ["argmin", "argmax"])
def test_places_are_the_first_of_equal_ones(name: str) -> None:
    for shape in SHAPES if name == "argmin" else FEW:
        for axis in (None, *range(len(shape))):
            check(name, numbers(shape), axis=axis)


def test_lengths_at_the_edges_of_subgroups_and_workgroups() -> None:
    for length in (1, 2, 3, 4, 5, 8, 9, 31, 32, 33, 255, 256, 257, 1023, 1025, 65_537):
        check("max", numbers((length,)))
    for length in (2, 9, 33, 257, 1031):
        check("max", numbers((3, length)), axis=1)
        check("max", numbers((length, 3)), axis=0)


@pytest.mark.parametrize("keepdims", [True, False])
def test_keepdims(keepdims: bool) -> None:
    for axis in (None, 0, -1, (0, 2), (-1, 1), (), (0, 1, 2)):
        check("count_nonzero", numbers((4, 6, 8)), axis=axis, keepdims=keepdims)
    for axis in (None, 1):
        check("argmax", numbers((4, 6, 8)), axis=axis, keepdims=keepdims)


def test_results_of_all_elements_have_no_dimensions() -> None:
    buffer = vd.asbuffer(floats((3, 5)))
    for name in ("sum", "mean", "var", "min", "argmin", "any", "norm"):
        result = getattr(vd, name)(buffer)
        assert result.shape == ()
        assert result.read(0).shape == ()


def test_arrays_without_axes_are_unchanged() -> None:
    for name in ("sum", "max", "any", "argmin"):
        check(name, np.array(3.5, np.float32))
    for name in ("sum", "max", "any"):
        check(name, numbers((2, 5)), axis=())


@settings(max_examples=40, deadline=None, database=None, derandomize=True)
@given(st.data())
def test_any_shape_and_axes(data: st.DataObject) -> None:
    sizes = st.sampled_from([0, 1, 2, 3, 33])
    shape = tuple(data.draw(st.lists(sizes, min_size=0, max_size=3)))
    axes = data.draw(st.none() | st.sets(st.integers(0, max(len(shape) - 1, 0)), max_size=len(shape)))
    axis = (
        None if axes is None else tuple(axis - data.draw(st.sampled_from([0, len(shape)])) for axis in axes)
    )
    keepdims = data.draw(st.booleans())
    name = data.draw(st.sampled_from(["sum", "max"] if math.prod(shape) else ["sum", "max", "any", "argmin"]))
    check(name, numbers(shape), axis=axis, keepdims=keepdims)


def test_results_are_stored_in_out() -> None:
    x = vd.asbuffer(numbers((6, 50)))
    out = vd.Buffer((6,), vd.int64)
    assert vd.sum(x, 1, out=out) is out
    same(out.read(0), numbers((6, 50)).sum(axis=1))
    whole = vd.Buffer((), vd.int32)
    assert vd.max(x, None, whole) is whole
    same(whole.read(0), numbers((6, 50)).max())
    kept = vd.Buffer((6, 1), vd.float64)
    same(vd.mean(x, axis=1, keepdims=True, out=kept).read(0), numbers((6, 50)).mean(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: vd.sum([1.0]), "x: expected a vd.Buffer.*asbuffer"),
        (lambda x: vd.sum(x, axis=2), "axis: 2 is out of bounds"),
        (lambda x: vd.sum(x, axis=1.5), "axis: expected an int"),
        (lambda x: vd.sum(x, axis=(0, -2)), "repeated axis"),
        (lambda x: vd.sum(x, dtype="nonsense"), "nonsense"),
        (lambda x: vd.mean(x, dtype=vd.int32), "dtype: mean has fractions"),
        (lambda x: vd.sum(x, out=vd.Buffer((3,), vd.float32)), "out: expected a buffer of the shape"),
        (lambda x: vd.sum(x, out=[0.0]), "out: expected a vd.Buffer"),
        (lambda x: vd.sum(x, 0, out=vd.Buffer((5,), vd.int32)), "out: .*float32"),
        (lambda x: vd.var(x, ddof="1"), "ddof: expected a number"),
        (lambda x: vd.var(x, ddof=1, correction=1), "ddof and correction"),
        (lambda x: vd.argmax(x, axis=(0, 1)), "axis: expected an int"),
        (lambda x: vd.argmax(x, dtype=vd.float32), "dtype: argmax gives integers"),
        (lambda x: vd.sum(x, initial=1j), "initial: expected a real number"),
        (lambda x: vd.sum(x, initial="1"), "initial: expected a number"),
        (lambda x: vd.sum(x, where=[True]), "where: expected a vd.Buffer"),
        (lambda x: vd.sum(x, where=x), "where: expected booleans"),
        (lambda x: vd.sum(x, where=vd.asbuffer(np.ones(3, bool))), "where: a mask of the shape"),
        (lambda x: vd.max(x, where=vd.asbuffer(np.ones(5, bool))), "identity.*initial"),
        (lambda x: vd.sum(x, output_map=3), "output_map: expected a vd.map"),
    ],
)
def test_wrong_calls_say_what_would_do(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call(vd.asbuffer(floats((3, 5))))


def test_dtypes_without_order_or_that_are_not_numbers() -> None:
    matrices = vd.Buffer((4,), vd.mat2)
    data = np.arange(16, dtype=np.float32).reshape(4, 2, 2)
    matrices.write(data)
    same(vd.sum(matrices).read(0), data.sum(axis=0))
    same(vd.mean(matrices).read(0), data.mean(axis=0))
    for name in ("min", "argmax", "prod", "var", "any", "count_nonzero", "norm"):
        assert outcome(lambda name=name: getattr(vd, name)(matrices)) is ValueError


@pytest.mark.parametrize(("name", "together", "shape"), [("max", 4, (3, 200, 12)), ("var", 2, (300, 6))])
def test_columns_loaded_together(
    monkeypatch: pytest.MonkeyPatch, name: str, together: int, shape: tuple[int, ...]
) -> None:
    monkeypatch.setenv("VKDISPATCH_PLAN", "gpu")
    flight = {"column_flight": 32, "single": 1, "most_columns": together, "most_columns_of_states": together}
    monkeypatch.setattr(planning, "tuning", replace(planning.tuning, **flight))
    data, exact = (floats(shape), np.float64) if name == "var" else (numbers(shape), None)
    check(name, data, axis=len(shape) - 2, exact=exact)
