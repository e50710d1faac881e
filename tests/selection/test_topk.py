"""vd.topk against stable sorts of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vkdispatch as vd
from vkdispatch.selection.topk import plan_narrowing
from vkdispatch.selection.tuning import tuning

RNG = np.random.default_rng(12)
Array = np.ndarray[Any, Any]


def truth(data: Array, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    """Return the first k of a stable sort: NaN counts as largest, equal elements keep their order."""
    rows = np.moveaxis(data, axis, -1)
    if largest:
        order = rows.shape[-1] - 1 - np.argsort(rows[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    else:
        order = np.argsort(rows, axis=-1, kind="stable")
    order = order[..., :k]
    values = np.take_along_axis(rows, order, -1)
    return np.moveaxis(values, -1, axis), np.moveaxis(order, -1, axis)


def check(data: Array, k: int, axis: int = -1, largest: bool = True) -> None:
    values, indices = vd.topk(vd.asbuffer(data), k, axis, largest)
    expected, places = truth(data, k, axis, largest)
    assert values.shape == indices.shape == expected.shape
    assert indices.var_type is vd.int64
    np.testing.assert_array_equal(indices.read(0), places)
    np.testing.assert_array_equal(values.read(0), expected)


@pytest.mark.parametrize("length", [1, 2, 31, 33, 100, 1023, 1025, 4097, 30_011])
def test_lengths(length: int) -> None:
    for most in (3, 10 * length):
        data = RNG.integers(-most, most, length).astype(np.float32)
        data[RNG.integers(0, length, 1 + length // 50)] = np.nan
        for k in {0, 1, min(7, length), length // 2, length}:
            check(data, k)
            check(data, k, largest=False)


@pytest.mark.parametrize("shape", [(40, 33), (3, 50, 7), (2, 700, 3), (5, 6001), (3, 5001, 2)], ids=str)
def test_axes(shape: tuple[int, ...]) -> None:
    data = RNG.integers(-500, 500, shape).astype(np.float32)
    for axis in range(len(shape)):
        for k in {1, min(9, shape[axis]), shape[axis]}:
            check(data, k, axis, largest=k != 1)


@pytest.mark.parametrize(
    "kind", ["int32", "uint8", "int16", "float16", "float64", "int64", "uint64", "bool", "complex64"]
)
def test_every_dtype(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # the long row is narrowed down first
    monkeypatch.setattr(tuning, "sample_length", 5000)
    monkeypatch.setattr(tuning, "samples", 512)
    data = RNG.integers(-2, 90, 6001).astype(kind)
    if kind == "complex64":
        data = (data + 1j * RNG.integers(-2, 2, data.size)).astype(kind)
    for size in (60, data.size):
        check(data[:size], 11)
    if kind in ("int32", "float16", "bool"):
        check(data, 11, largest=False)
    if kind != "complex64":
        # more equal elements than fit
        check(np.minimum(data, data.dtype.type(1)), 11)


@pytest.mark.parametrize("cpu", [False, True])
def test_arrays_whose_samples_are_not_good(monkeypatch: pytest.MonkeyPatch, cpu: bool) -> None:
    monkeypatch.setenv("VKDISPATCH_PLAN", "cpu" if cpu else "gpu")
    monkeypatch.setattr(tuning, "sample_length", 4000)
    monkeypatch.setattr(tuning, "samples", 256)
    # repeated calls of one shape reuse a plan, so shapes differ
    length = 20_000 + cpu
    rows = RNG.random((3, length)).astype(np.float32)
    rows[1] = 0.5  # as many candidates as elements
    rows[2, 3::2] = 0.75
    for k in (1, 40, 200):
        assert plan_narrowing(length, k) is not None
        check(rows, k)
        check(rows, k, largest=False)
        check(np.sort(rows, axis=1), k)


def test_extremes() -> None:
    for kind in (np.int32, np.uint32, np.int64):
        info = np.iinfo(kind)
        data = np.array([info.min, info.max, 0, info.max, info.min, 1], kind)
        for largest in (True, False):
            check(data, 4, largest=largest)
    data = np.array([-0.0, 0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, -np.nan, 3e38], np.float32)
    for k in range(10):
        for largest in (True, False):
            check(data, k, largest=largest)


def test_bits_are_kept() -> None:
    words = np.array([0x7F800001, 0xFFC12345, 0x80000000, 1], np.uint32)
    found = vd.topk(vd.asbuffer(words.view(np.float32)), 4)[0].read(0)
    assert list(found.view(np.uint32)) == [0x7F800001, 0xFFC12345, 1, 0x80000000]


def test_equal_and_nearly_equal_elements() -> None:
    data = np.full(70_001, 2.5, np.float32)
    check(data, 100)
    data[::1000] = np.nextafter(np.float32(2.5), np.float32(9))
    check(data, 100)
    check(data, 3, largest=False)


def test_rows_of_equal_elements() -> None:
    data = np.full((3, 5000), 2, np.float32)
    data[1, 4::7] = 1
    data[2, 3::5] = 3
    for k in (1, 100):
        check(data, k)
        check(data, k, largest=False)


def test_out() -> None:
    data = RNG.random((20, 50)).astype(np.float32)
    values, indices = vd.Buffer((20, 3), vd.float32), vd.Buffer((20, 3), vd.int64)
    found = vd.topk(vd.asbuffer(data), 3, out=(values, indices))
    assert found[0] is values
    assert found[1] is indices
    np.testing.assert_array_equal(values.read(0), truth(data, 3, 1, True)[0])


def test_maps() -> None:
    data = RNG.standard_normal((5, 6000)).astype(np.float32)

    @vd.map
    def squared(value: vd.float32) -> vd.float32:
        return value * value

    @vd.map
    def negated(value: vd.float32) -> vd.float64:
        return -value.to_dtype(vd.float64)

    values, indices = vd.topk(squared(vd.asbuffer(data)), 7, output_map=negated)
    expected, places = truth(data * data, 7, 1, True)
    np.testing.assert_array_equal(indices.read(0), places)
    np.testing.assert_array_equal(values.read(0), -expected.astype(np.float64))


def test_empty_arrays() -> None:
    none = vd.asbuffer(np.zeros((0, 5), np.float32))
    assert vd.topk(none, 2)[0].shape == (0, 2)
    assert vd.topk(none, 0, axis=0)[1].shape == (0, 5)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=300), st.integers(0, 40), st.booleans())
def test_any_integers(data: list[int], k: int, largest: bool) -> None:
    check(np.array(data, np.float32), min(k, len(data)), largest=largest)


def test_invalid_arguments() -> None:
    x = vd.asbuffer(np.arange(4, dtype=np.float32))
    for k in (5, -1):
        with pytest.raises(ValueError, match="0 to 4"):
            vd.topk(x, k)
    with pytest.raises(TypeError, match="k: expected an int"):
        vd.topk(x, 2.5)
    with pytest.raises(ValueError, match="axis"):
        vd.topk(x, 1, axis=1)
    with pytest.raises(TypeError, match="booleans"):
        vd.topk(vd.Buffer(4, vd.vec2), 1)
    with pytest.raises(TypeError, match="pair"):
        vd.topk(x, 1, out=x)
    with pytest.raises(ValueError, match="read"):
        vd.topk(x, 4, out=(x, None))
