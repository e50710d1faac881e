"""vd.median against numpy.median."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vkdispatch as vd
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.codegen.abbreviations import f32

Array = np.ndarray[Any, Any]

INTEGERS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]


def values(kind: str, shape: tuple[int, ...], seed: int = 1) -> Array:
    rng = np.random.default_rng(seed)
    if kind in FLOATS:
        return rng.normal(size=shape).astype(kind)
    return rng.integers(0 if kind[0] in "ub" else -50, 2 if kind == "bool" else 90, shape).astype(kind)


def has_double() -> bool:
    return bool(vd.get_context().device_infos[0].float_64_support)


def check(x: Array, axis: Any = None, keepdims: bool = False) -> None:
    expected = np.asarray(np.median(x, axis, keepdims=keepdims))
    if expected.dtype == np.float64 and not has_double():
        pytest.skip("the device has no float64")
    found = vd.median(vd.asbuffer(x), axis, keepdims).read(0)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("shape", [(1,), (2,), (101,), (1000,), (31, 40), (40, 33)], ids=str)
def test_dtypes(kind: str, shape: tuple[int, ...]) -> None:
    for axis in (None, -1, 0):
        check(values(kind, shape), axis)


@pytest.mark.parametrize("shape", [(), (5,), (4, 9), (5, 6, 7), (3, 4, 1)], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes(shape: tuple[int, ...], keepdims: bool) -> None:
    x = values("float32", shape)
    check(x, None, keepdims)
    for count in range(1, len(shape) + 1):
        for axes in permutations(range(-len(shape), 0), count):
            check(x, axes if count > 1 else axes[0], keepdims)


@pytest.mark.parametrize("length", [4097, 30_011, 200_000])
def test_long_rows(length: int) -> None:
    check(values("float32", (length,)))
    check(values("float32", (3, length)), 1)
    check(values("float32", (length, 2)), 0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=3), st.integers(0, 1000), st.data())
def test_any_shape(shape: list[int], seed: int, data: st.DataObject) -> None:
    axis = data.draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1)))
    check(values("float32", tuple(shape), seed), axis, data.draw(st.booleans()))


@pytest.mark.parametrize("kind", FLOATS)
def test_nan_gives_nan(kind: str) -> None:
    x = values(kind, (9, 40))
    x[2, 7], x[4, 39], x[6, 0] = np.nan, -np.nan, np.nan
    x[6, 1] = np.inf
    check(x, 1)
    check(x, 0)
    check(x)


def test_infinities_and_large_numbers() -> None:
    largest = np.finfo(np.float32).max
    for row in ([np.inf, np.inf, 1], [-np.inf, 1, 2, np.inf], [largest] * 3, [-0.0, 0.0, 5]):
        check(np.array(row, np.float32))
    with np.errstate(invalid="ignore"):
        assert np.isnan(vd.median(vd.asbuffer(np.array([-np.inf, np.inf], np.float32))).read(0))


@pytest.mark.parametrize(("shape", "axis"), [((0,), None), ((0, 3), 0), ((3, 0), 1)])
def test_no_elements_give_nan_with_a_warning(shape: tuple[int, ...], axis: int | None) -> None:
    empty = vd.asbuffer(np.zeros(shape, np.float32))
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
            found = vd.median(empty, axis)
        assert np.isnan(found.read(0)).all()


def test_no_results() -> None:
    assert vd.median(vd.asbuffer(np.zeros((0, 3), np.float32)), 1).shape == (0,)


def test_dtype_of_the_result() -> None:
    x = values("int32", (6, 31))
    found = vd.median(vd.asbuffer(x), 1, dtype=vd.float32)
    assert found.var_type is vd.float32
    np.testing.assert_array_equal(found.read(0), np.median(x, 1))
    with pytest.raises(ArgumentValueError, match="dtype: median has fractions"):
        vd.median(vd.asbuffer(x), dtype=vd.int32)
    with pytest.raises(ArgumentValueError, match="dtype: the median of float32 is real"):
        vd.median(vd.asbuffer(x.astype(np.float32)), dtype=vd.complex64)
    if not has_double():
        with pytest.raises(UnsupportedError, match="float64"):
            vd.median(vd.asbuffer(x))


@vd.map
def doubled(value: f32) -> f32:
    return value * 2


def test_maps_out_and_graphs() -> None:
    x = values("float32", (40, 30))
    buffer = vd.asbuffer(x)
    np.testing.assert_array_equal(vd.median(doubled(buffer), 0).read(0), np.median(2 * x, 0))
    np.testing.assert_array_equal(vd.median(buffer, 1, output_map=doubled).read(0), 2 * np.median(x, 1))
    out = vd.Buffer((40, 1), vd.float32)
    assert vd.median(buffer, 1, True, out=out) is out
    np.testing.assert_array_equal(out.read(0), np.median(x, 1, keepdims=True))
    np.testing.assert_array_equal(buffer.read(0), x)
    graph = vd.CommandGraph()
    found = vd.median(buffer, (0, 1), graph=graph)
    for seed in range(3):
        x = values("float32", (40, 30), seed)
        buffer.write(x)
        graph.submit()
        assert found.read(0) == np.median(x)


def test_axes_of_a_map_that_are_no_neighbours() -> None:
    x = values("float32", (7, 5, 8))
    np.testing.assert_array_equal(
        vd.median(doubled(vd.asbuffer(x)), (0, 2)).read(0), np.median(2 * x, (0, 2))
    )


def test_errors() -> None:
    x = vd.asbuffer(values("float32", (4, 5)))
    for kind in (vd.complex64, vd.vec2):
        with pytest.raises(ArgumentTypeError, match="x: expected integers"):
            vd.median(vd.Buffer(4, kind))
    with pytest.raises(TypeError, match="x: expected a vd"):
        vd.median([1, 2])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="axis: 2 is out of bounds"):
        vd.median(x, 2)
    with pytest.raises(ValueError, match=r"out: expected a buffer of the shape \(4,\)"):
        vd.median(x, 1, out=vd.Buffer(5, vd.float32))
