"""vd.compact and vd.nonzero against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vkdispatch as vd

RNG = np.random.default_rng(9)
SIZES = [1, 2, 31, 32, 33, 255, 257, 8191, 8192, 8193, 16_384, 40_009]


@pytest.mark.parametrize("part", [0, 0.01, 0.5, 1])
def test_masks_of_every_size(part: float) -> None:
    for size in SIZES:
        data = RNG.random(size).astype(np.float32)
        mask = RNG.random(size) < part
        np.testing.assert_array_equal(vd.compact(vd.asbuffer(data), vd.asbuffer(mask)).read(0), data[mask])


@pytest.mark.parametrize(
    "kind", ["uint8", "int16", "float16", "float64", "int64", "complex64", "bool", "uint32"]
)
def test_every_dtype(kind: str) -> None:
    data = RNG.integers(0, 3, 3001).astype(kind)
    mask = RNG.integers(0, 2, 3001)
    found = vd.compact(vd.asbuffer(data), vd.asbuffer(mask.astype(np.int32))).read(0)
    assert found.dtype == data.dtype
    np.testing.assert_array_equal(found, data[mask != 0])
    # and as conditions
    np.testing.assert_array_equal(vd.compact(vd.asbuffer(mask), vd.asbuffer(data)).read(0), mask[data != 0])
    np.testing.assert_array_equal(vd.nonzero(vd.asbuffer(data))[0].read(0), np.nonzero(data)[0])


def test_bits_are_kept() -> None:
    words = np.array([0x7F800001, 0xFFC12345, 0x80000000, 1], np.uint32)
    found = vd.compact(vd.asbuffer(words.view(np.float32)), vd.asbuffer(np.ones(4, bool))).read(0)
    assert list(found.view(np.uint32)) == list(words)


def test_vectors_and_several_axes() -> None:
    vectors = vd.Buffer((300,), vd.vec3)
    data = RNG.random((300, 3)).astype(np.float32)
    vectors.write(data)
    mask = RNG.random(300) < 0.3
    np.testing.assert_array_equal(vd.compact(vectors, vd.asbuffer(mask)).read(0), data[mask])
    cube = RNG.random((7, 11, 13)).astype(np.float32)
    np.testing.assert_array_equal(
        vd.compact(vd.asbuffer(cube), vd.asbuffer(cube > 0.5)).read(0), cube[cube > 0.5]
    )


def test_condition_shorter_than_the_array() -> None:
    data = np.arange(100, dtype=np.int32)
    mask = np.arange(33) % 3 == 0
    np.testing.assert_array_equal(
        vd.compact(vd.asbuffer(data), vd.asbuffer(mask)).read(0), np.compress(mask, data)
    )


def test_conditions_that_are_maps() -> None:
    data = RNG.standard_normal(9001).astype(np.float32)
    x = vd.asbuffer(data)

    @vd.map
    def positive(value: vd.float32) -> vd.bool_:
        return value > 0

    @vd.map
    def above(value: vd.float32, least: vd.float32) -> vd.bool_:
        return value > least

    @vd.map
    def doubled(value: vd.float32) -> vd.float32:
        return 2 * value

    np.testing.assert_array_equal(vd.compact(x, positive).read(0), data[data > 0])
    np.testing.assert_array_equal(vd.compact(x, above(x, 1.5)).read(0), data[data > np.float32(1.5)])
    np.testing.assert_array_equal(
        vd.compact(doubled(x), positive, output_map=doubled).read(0), 4 * data[data > 0]
    )
    np.testing.assert_array_equal(vd.nonzero(positive(x))[0].read(0), np.nonzero(data > 0)[0])
    with pytest.raises(TypeError, match="more than one parameter"):
        vd.compact(x, above)


def test_size_fills_or_truncates() -> None:
    data = np.arange(1000, dtype=np.int32)
    mask = data % 7 == 3
    x, m = vd.asbuffer(data), vd.asbuffer(mask)
    kept = data[mask]
    for size in (0, 1, 50, kept.size, kept.size + 1, 3000):
        found, count = vd.compact(x, m, size=size, fill_value=-5)
        expected = np.full(size, -5)
        expected[: kept.size] = kept[:size]
        np.testing.assert_array_equal(found.read(0), expected)
        assert list(count.read(0)) == [kept.size]
        (index,) = vd.nonzero(m, size=size, fill_value=-1)
        expected[: kept.size] = np.nonzero(mask)[0][:size]
        expected[kept.size :] = -1
        np.testing.assert_array_equal(index.read(0), expected)


@pytest.mark.parametrize("kind", [vd.vec3, vd.mat2])
def test_vectors_and_matrices_are_filled_by_component(kind: type[vd.dtype]) -> None:
    host = np.arange(4 * kind.item_size // 4, dtype=np.float32).reshape(4, *kind.true_numpy_shape)
    x: vd.Buffer = vd.Buffer(4, kind)
    x.write(host)
    condition = vd.asbuffer(np.array([0, 1, 0, 1]))
    for number in (0, -1):
        kept, count = vd.compact(x, condition, size=3, fill_value=number)
        assert np.array_equal(kept.read(0), [*host[[1, 3]], np.full_like(host[0], number)])
        assert count.read(0).tolist() == [2]
    with pytest.raises(TypeError, match="'fill_value'"):
        vd.compact(x, condition, size=3, fill_value="a")


def test_empty_arrays() -> None:
    none = vd.asbuffer(np.zeros(0, np.float32))
    assert vd.compact(none, none).shape == (0,)
    found, count = vd.compact(none, none, size=3, fill_value=2)
    assert list(found.read(0)) == [2, 2, 2]
    assert list(count.read(0)) == [0]
    assert [each.shape for each in vd.nonzero(vd.asbuffer(np.zeros((0, 3))))] == [(0,), (0,)]
    zeros = vd.asbuffer(np.zeros((5, 3), np.float32))
    assert [each.shape for each in vd.nonzero(zeros)] == [(0,), (0,)]


@pytest.mark.parametrize(
    "shape", [(1,), (9001,), (1, 1), (90, 101), (101, 3), (3, 5, 7), (11, 1, 500)], ids=str
)
def test_indices_along_every_axis(shape: tuple[int, ...]) -> None:
    data = RNG.integers(0, 3, shape).astype(np.int32)
    for found, expected in zip(vd.nonzero(vd.asbuffer(data)), np.nonzero(data), strict=True):
        assert found.var_type is vd.int64
        np.testing.assert_array_equal(found.read(0), expected)


def test_numbers_that_are_not_zero() -> None:
    data = np.array([0.0, -0.0, np.nan, np.inf, 1e-45, -1], np.float32)
    assert list(vd.nonzero(vd.asbuffer(data))[0].read(0)) == [2, 3, 4, 5]
    assert list(vd.nonzero(vd.asbuffer(np.array([0, 1j, 1, np.nan * 1j])))[0].read(0)) == [1, 2, 3]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=700))
def test_any_mask(mask: list[bool]) -> None:
    flags = np.array(mask)
    data = np.arange(flags.size, dtype=np.int32)
    np.testing.assert_array_equal(vd.compact(vd.asbuffer(data), vd.asbuffer(flags)).read(0), data[flags])


def test_invalid_arguments() -> None:
    x = vd.asbuffer(np.zeros(4, np.float32))
    with pytest.raises(TypeError, match=r"vd\.asbuffer"):
        vd.compact([0.0, 0.0, 0.0], x)
    with pytest.raises(ValueError, match="at most 4"):
        vd.compact(x, vd.asbuffer(np.zeros(5, np.float32)))
    with pytest.raises(TypeError, match="booleans"):
        vd.compact(vd.Buffer(4, vd.vec2), vd.Buffer(4, vd.vec2))
    with pytest.raises(ValueError, match="from 0 on"):
        vd.nonzero(x, size=-2)
    with pytest.raises(TypeError, match="int"):
        vd.nonzero(x, size=2.5)
    for call in (vd.nonzero, lambda x, graph: vd.compact(x, x, graph=graph)):
        with pytest.raises(RuntimeError, match="size"):
            call(x, graph=vd.CommandGraph())
