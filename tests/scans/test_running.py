"""Running sums, products and extremes of one row: every dtype, and the sizes at which plans change."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd

from .truth import scanned, tuned

NAMES = ("cumsum", "cumprod", "cummax", "cummin")
REALS = (
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
)
# on CPUs a tile is 64 invocations of 64 bytes
# on CPUs a tile is 64 invocations of 64 bytes, or 32 elements; one workgroup scans four tiles
TILE = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 127, 255, 256, 257, 509, 511, 512)
EDGES = (1023, 1024, 1025, 4095, 4096, 4097, 7919, 8191, 8192, 8193, 65_536, 65_537, 100_003)


def values(name: str, dtype: Any, size: int) -> np.ndarray[Any, Any]:
    """Return numbers of which floats of the dtype know all running results."""
    rng = np.random.default_rng(zlib.crc32(f"{name}{dtype}{size}".encode()))
    kind = np.dtype(dtype)
    if name == "cumprod":
        return rng.choice(np.array([1, -1] if kind.kind != "u" else [1, 3], kind), size)
    if name == "cumsum" and kind == np.float16:
        # the sums stay below 2048
        return rng.integers(-2, 4, size).astype(kind)
    low = 0 if kind.kind == "u" else -50
    return rng.integers(low, 100 if kind.itemsize > 1 else 50, size).astype(kind)


def check(name: str, dtype: str, sizes: tuple[int, ...]) -> None:
    for size in sizes:
        x = values(name, dtype, size)
        result = getattr(vd, name)(vd.asbuffer(x)).read(0)
        expected = scanned(name, x)
        assert result.dtype == expected.dtype, size
        np.testing.assert_array_equal(result, expected, str(size))


@pytest.mark.parametrize("dtype", REALS)
def test_sums_of_every_dtype(dtype: str) -> None:
    check("cumsum", dtype, TILE)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64", "float16", "float64"])
@pytest.mark.parametrize("name", NAMES[1:])
def test_products_and_extremes_of_every_dtype(name: str, dtype: str) -> None:
    check(name, dtype, TILE)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("cumsum", "uint8"), ("cumsum", "float32"), ("cumprod", "int32"), ("cummax", "float64")],
)
def test_several_tiles_and_workgroups(name: str, dtype: str) -> None:
    check(name, dtype, EDGES)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_directions(exclusive: bool, reverse: bool) -> None:
    for size in (1, 2, 5, 64, 255, 1023, 40_000, 65_537):
        x = values("cumsum", "int32", size)
        result = vd.cumsum(vd.asbuffer(x), exclusive=exclusive, reverse=reverse).read(0)
        expected = scanned("cumsum", x, exclusive=0 if exclusive else None, reverse=reverse)
        np.testing.assert_array_equal(result, expected, str(size))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64", "float16"])
def test_identities_of_exclusive_scans(dtype: str) -> None:
    x = values("cummax", dtype, 100)
    bounds = (-np.inf, np.inf) if np.dtype(dtype).kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    for name, identity in (("cumsum", 0), ("cumprod", 1), ("cummax", bounds[0]), ("cummin", bounds[1])):
        x = values(name, dtype, 100)
        result = getattr(vd, name)(vd.asbuffer(x), exclusive=True).read(0)
        np.testing.assert_array_equal(result, scanned(name, x, exclusive=identity), name)


def test_booleans() -> None:
    x = np.random.default_rng(0).random(5000) < 0.01
    buffer = vd.asbuffer(x)
    for name in ("cumsum", "cumprod"):
        result = getattr(vd, name)(buffer).read(0)
        assert result.dtype == np.int64
        np.testing.assert_array_equal(result, scanned(name, x))
    for name, first in (("cummax", False), ("cummin", True)):
        for exclusive in (None, first):
            result = getattr(vd, name)(buffer, exclusive=exclusive is not None).read(0)
            assert result.dtype == np.bool_
            np.testing.assert_array_equal(result, scanned(name, x, exclusive=exclusive))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(dtype: str) -> None:
    rng = np.random.default_rng(2)
    x = (rng.integers(-9, 9, 9001) + 1j * rng.integers(-9, 9, 9001)).astype(dtype)
    np.testing.assert_array_equal(vd.cumsum(vd.asbuffer(x)).read(0), np.cumsum(x))
    units = rng.choice(np.array([1, 1j, -1, -1j], dtype), 9001)
    np.testing.assert_array_equal(vd.cumprod(vd.asbuffer(units)).read(0), np.cumprod(units))


def test_vectors_are_summed_component_by_component() -> None:
    x = np.random.default_rng(3).integers(-9, 9, (7000, 3)).astype(np.int32)
    buffer = vd.Buffer(7000, vd.ivec3)
    buffer.write(x)
    result = vd.cumsum(buffer, dtype=vd.ivec3)
    assert result.var_type is vd.ivec3
    np.testing.assert_array_equal(result.read(0), np.cumsum(x, axis=0))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("int32", "int32"),
        ("uint8", "uint8"),
        ("int8", "float32"),
        ("float32", "float64"),
        ("float64", "int32"),
    ],
)
def test_dtype_argument(given: str, wanted: str) -> None:
    x = np.random.default_rng(4).integers(0, 120, 6000).astype(given)
    result = vd.cumsum(vd.asbuffer(x), dtype=wanted).read(0)
    assert result.dtype == np.dtype(wanted)
    np.testing.assert_array_equal(result, np.cumsum(x, dtype=wanted))


def test_integers_wrap_around() -> None:
    x = np.full(100, 2**62, np.int64)
    np.testing.assert_array_equal(vd.cumsum(vd.asbuffer(x)).read(0), np.cumsum(x))
    y = np.full(100, 3, np.uint32)
    np.testing.assert_array_equal(
        vd.cumprod(vd.asbuffer(y), dtype=np.uint32).read(0), np.cumprod(y, dtype=np.uint32)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_nan(name: str, dtype: str) -> None:
    rng = np.random.default_rng(5)
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, 2.0, -1.0], dtype)
    for size in (1, 5, 300, 900):
        x = np.ones(size, dtype)
        x[rng.integers(size, size=min(size, 3))] = rng.choice(special, min(size, 3))
        with np.errstate(all="ignore"):
            expected = scanned(name, x)
        np.testing.assert_array_equal(getattr(vd, name)(vd.asbuffer(x)).read(0), expected)


def test_extremes_return_the_first_of_equal_zeros() -> None:
    x = np.array([-0.0, 0.0, -0.0, 0.0], np.float32)
    for name in ("cummax", "cummin"):
        assert np.signbit(getattr(vd, name)(vd.asbuffer(x)).read(0)).tolist() == [True] * 4


def test_partial_results_at_every_level() -> None:
    # 1,600 ranges of one tile each: several workgroups scan their totals, too
    small = {"bytes_each": 4, "bytes_each_cpu": 4, "few_cpu": 4}
    with tuned(lookback=0, enough_cpu=1000, enough=1000, **small):
        x = values("cumsum", "int32", 102_401)
        np.testing.assert_array_equal(
            vd.cumsum(vd.asbuffer(x), dtype=np.int32).read(0), np.cumsum(x, dtype=np.int32)
        )
