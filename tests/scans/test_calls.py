"""Calls of scans: results, empty arrays, and invalid arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc

NAMES = ("cumsum", "cumprod", "cummax", "cummin")


def test_out() -> None:
    x = np.random.default_rng(0).integers(0, 9, 9000).astype(np.float32)
    buffer, out = vd.asbuffer(x), vd.Buffer(9000, vd.float32)
    assert vd.cumsum(buffer, 0, None, out) is out
    np.testing.assert_array_equal(out.read(0), np.cumsum(x))
    assert vd.cumsum(buffer, out=buffer) is buffer
    np.testing.assert_array_equal(buffer.read(0), np.cumsum(x))


@pytest.mark.parametrize("axis", [0, 1])
def test_in_place(axis: int) -> None:
    x = np.random.default_rng(1).integers(0, 9, (3000, 4)).astype(np.float32)
    for reverse in (False, True):
        buffer = vd.asbuffer(x)
        vd.cumsum(buffer, axis, out=buffer, reverse=reverse)
        expected = np.flip(np.cumsum(np.flip(x, axis), axis), axis) if reverse else np.cumsum(x, axis)
        np.testing.assert_array_equal(buffer.read(0), expected)


def test_invalid_out() -> None:
    x = vd.asbuffer(np.zeros((3, 4), np.float32))
    with pytest.raises(ValueError, match="out"):
        vd.cumsum(x, 1, out=vd.Buffer((4, 3), vd.float32))
    with pytest.raises((TypeError, ValueError), match="out"):
        vd.cumsum(x, 1, out=vd.Buffer((3, 4), vd.int32))
    with pytest.raises(TypeError, match="out"):
        vd.cumsum(x, 1, out=[0.0])


@pytest.mark.parametrize("name", NAMES)
def test_empty_arrays(name: str) -> None:
    function = getattr(vd, name)
    kind = np.int64 if name in ("cumsum", "cumprod") else np.int32
    for shape in ((0,), (0, 3), (3, 0), (2, 0, 4)):
        x = vd.asbuffer(np.zeros(shape, np.int32))
        for axis in range(len(shape)):
            result = function(x, axis)
            assert result.shape == shape
            assert result.read(0).dtype == kind
        assert function(x).shape == (0,)
        out = vd.asbuffer(np.zeros(shape, kind))
        assert function(x, 0, out=out) is out


def test_zero_dimensional_array() -> None:
    result = vd.cumsum(vd.asbuffer(np.array(5.0)))
    assert result.shape == (1,)
    assert result.read(0).tolist() == [5.0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("x", [[1, 2], 7, None])
def test_invalid_arrays(name: str, x: Any) -> None:
    with pytest.raises(TypeError, match=r"vd\.asbuffer"):
        getattr(vd, name)(x)


def test_unsupported_dtypes() -> None:
    numbers = vd.asbuffer(np.zeros(3, np.complex64))
    with pytest.raises(ValueError, match="x: complex64 has no order"):
        vd.cummax(numbers)
    with pytest.raises(ValueError, match="x: vec2 has no order"):
        vd.cummin(vd.Buffer(3, vd.vec2))
    with pytest.raises(ValueError, match="x: the product of mat2"):
        vd.cumprod(vd.Buffer(3, vd.mat2))
    with pytest.raises(ValueError, match="complex64"):
        vd.cumsum(numbers, dtype=np.float32)
    with pytest.raises((TypeError, ValueError), match="dtype"):
        vd.cumsum(vd.asbuffer(np.zeros(3, np.float32)), dtype="text")


@pytest.mark.parametrize("kind", ["bool", "int8", "float32"])
def test_sums_and_products_as_booleans(kind: str) -> None:
    data = (np.arange(3000).reshape(6, 500) % 400 > 0).astype(kind) / (1 if kind != "float32" else 4)
    data = data.astype(kind)
    data[:, 100] = 0
    if kind == "float32":
        data[2, 7] = np.nan
    x = vd.asbuffer(data)
    for name in ("cumsum", "cumprod"):
        for axis in (None, 0, 1):
            result = getattr(vd, name)(x, axis, dtype=bool).read(0)
            assert result.dtype == np.bool_
            np.testing.assert_array_equal(result, getattr(np, name)(data, axis, dtype=bool))
        first = getattr(vd, name)(x, 1, dtype=vd.bool_, exclusive=True).read(0)[:, 0]
        assert (first == (name == "cumprod")).all()


def test_calls_in_kernels_are_refused() -> None:
    x = vd.asbuffer(np.zeros(3, np.float32))

    with pytest.raises(RuntimeError, match="cumsum: a kernel cannot call a function on arrays"):

        @vd.shader(exec_size=1)
        def kernel(data: vc.Buff[vc.f32]) -> None:  # type: ignore[valid-type]
            vd.cumsum(x)


def test_kernels_are_reused() -> None:
    from vkdispatch.scans.rows import make_rows_kernel

    x = vd.asbuffer(np.zeros(3000, np.float32))
    vd.cumsum(x)
    made = make_rows_kernel.cache_info().misses  # type: ignore[attr-defined]
    for size in (2999, 2998, 2500):
        vd.cumsum(vd.asbuffer(np.zeros(size, np.float32)))
    assert make_rows_kernel.cache_info().misses == made  # type: ignore[attr-defined]
