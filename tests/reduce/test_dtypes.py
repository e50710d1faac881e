"""NumPy's reductions of all dtypes: the dtypes of results, and what values are combined in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.context import Context
from vkdispatch.base.errors import VkDispatchError

from .comparing import check, outcome, same

RNG = np.random.default_rng(11)
REALS = [
    "float16",
    "float32",
    "float64",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
]
ALL = [*REALS, "bool", "complex64", "complex128"]
# each kernel takes some time to compile, so few shapes: an odd one, in rows
SHAPE = (9, 45)


def values(kind: str, low: float = -100, high: float = 120) -> np.ndarray[Any, Any]:
    data = RNG.uniform(0 if kind.startswith("u") else low, high, SHAPE)
    if kind == "bool":
        return data > 0
    if kind.startswith("complex"):
        return (data + 1j * RNG.uniform(low, high, SHAPE)).astype(kind)
    return data.astype(kind)


def needs(kind: object) -> None:
    info = vd.get_devices()[0]
    name = str(np.dtype(kind))  # type: ignore[call-overload]
    if name in ("float64", "complex128") and not info.float_64_support:
        pytest.skip("the device lacks float64")


def exact(kind: str) -> Any:
    """Return the dtype in which sums of a float dtype are to be right."""
    return {"float16": np.float64, "float32": np.float64, "complex64": np.complex128}.get(kind)


@pytest.mark.parametrize("kind", ALL)
def test_sums(kind: str) -> None:
    needs(kind)
    check("sum", values(kind), axis=1, exact=exact(kind), scale=500)


@pytest.mark.parametrize("kind", ALL)
def test_means(kind: str) -> None:
    needs(kind)
    check("mean", values(kind), axis=1, exact=exact(kind), scale=50)


@pytest.mark.parametrize("kind", ["float16", "float64", "int8", "uint16", "int32", "bool", "complex64"])
def test_variances(kind: str) -> None:
    needs(kind)
    check("var", values(kind), axis=1, ddof=1, exact=exact(kind))


@pytest.mark.parametrize("kind", ["float16", "float64", "int8", "uint64", "complex64"])
def test_products(kind: str) -> None:
    needs(kind)
    # integers wrap around, as NumPy's of 64 bits do
    data = values(kind, 0.9, 1.1) if "i" not in kind and "u" not in kind else values(kind)
    check("prod", data[:, :7], axis=1, exact=exact(kind))


@pytest.mark.parametrize("kind", ALL)
def test_extremes(kind: str) -> None:
    needs(kind)
    check("min", values(kind), axis=1)


@pytest.mark.parametrize("kind", ["float16", "int8", "uint32", "int64", "bool", "complex64"])
def test_positions_of_extremes(kind: str) -> None:
    needs(kind)
    check("argmax", values(kind), axis=1)


@pytest.mark.parametrize("kind", ["float16", "float64", "uint8", "int64", "bool", "complex64"])
def test_truth_and_counts(kind: str) -> None:
    needs(kind)
    data = values(kind) * (RNG.random(SHAPE) < 0.1).astype(kind)
    data[3] = 0
    data[4] = 1
    for name in ("any", "all", "count_nonzero"):
        check(name, data, axis=1)


def test_complex_numbers_are_ordered_by_real_parts_first() -> None:
    data = (RNG.integers(-2, 3, SHAPE) + 1j * RNG.integers(-2, 3, SHAPE)).astype(np.complex64)
    for name in ("min", "max", "argmin", "argmax"):
        check(name, data, axis=1)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("int8", np.int32),
        ("int32", np.float32),
        ("uint8", np.uint8),
        ("float32", np.float64),
        ("float64", np.float32),
        ("bool", np.uint32),
        ("float32", np.complex64),
        ("int16", "float32"),
    ],
)
def test_requested_dtypes(kind: str, given: Any) -> None:
    needs(kind)
    needs(given)
    data = values(kind)
    check("sum", data, axis=1, dtype=given, scale=500)
    if np.dtype(given).kind in "fc":
        check("mean", data, axis=1, dtype=given, scale=100)


def test_dtypes_of_vkdispatch_and_numpy() -> None:
    buffer = vd.asbuffer(values("int32"))
    assert vd.sum(buffer, dtype=vd.int32).var_type is vd.int32
    assert vd.sum(buffer, dtype="int32").var_type is vd.int32
    assert vd.argmax(buffer, dtype=vd.uint32).var_type is vd.uint32
    assert vd.count_nonzero(buffer, dtype=np.int32).var_type is vd.int32
    assert vd.norm(buffer, dtype=np.float32).var_type is vd.float32


def test_many_small_integers_do_not_wrap_around() -> None:
    needs("int64")
    for kind, value in (("int8", -128), ("uint8", 255), ("int16", -(1 << 15)), ("uint16", 65535)):
        check("sum", np.full(300_000, value, kind))
    check("sum", np.full(5000, 2**31 - 1, np.int32))
    check("sum", np.full(5000, 2**32 - 1, np.uint32))


def test_float16_is_added_up_in_float32() -> None:
    # each is below half a step of float16 at the sum
    data = np.full(30_000, 0.5, np.float16)
    assert vd.sum(vd.asbuffer(data)).read(0) == 15_000
    assert vd.mean(vd.asbuffer(data)).read(0) == 0.5
    # the sum itself is more than float16 holds
    data = np.full(3000, 100, np.float16)
    assert np.isinf(vd.sum(vd.asbuffer(data)).read(0))
    assert vd.sum(vd.asbuffer(data), dtype=vd.float32).read(0) == 300_000
    assert vd.mean(vd.asbuffer(data)).read(0) == 100
    assert vd.var(vd.asbuffer(data)).read(0) == 0


def test_vectors_component_by_component() -> None:
    data = RNG.normal(size=(50, 3)).astype(np.float32)
    buffer = vd.Buffer((50,), vd.vec3)
    buffer.write(data)
    for name in ("sum", "mean", "var", "max"):
        expected = getattr(np, name)(data.astype(np.float64), axis=0)
        found = getattr(vd, name)(buffer)
        assert found.var_type is vd.vec3
        np.testing.assert_allclose(found.read(0), expected, rtol=2e-6, atol=1e-5)
    for name in ("argmin", "any", "norm"):
        assert outcome(lambda name=name: getattr(vd, name)(buffer)) is ValueError


@pytest.mark.parametrize("name", ["sum", "mean", "var", "max", "argmax", "count_nonzero"])
def test_bfloat16(name: str) -> None:
    # halves are exact in it
    data = RNG.integers(-64, 64, (5, 33)).astype(np.float32) / 2
    buffer = vd.Buffer((5, 33), vd.bfloat16)
    buffer.write(data)
    found = getattr(vd, name)(buffer, axis=1)
    expected = getattr(np, name)(data, axis=1)
    if name in ("argmax", "count_nonzero"):
        same(found.read(0), expected)
        return
    assert found.var_type is vd.bfloat16
    np.testing.assert_allclose(np.asarray(found.read(0), np.float32), expected, rtol=2**-8, atol=1e-3)


def test_complex32() -> None:
    data = RNG.integers(-9, 9, (40, 2)).astype(np.float16)
    buffer = vd.Buffer((40,), vd.complex32)
    buffer.write(data)
    found = vd.sum(buffer)
    assert found.var_type is vd.complex32
    real, imaginary = data.sum(axis=0).astype(np.float32)
    assert found.read(0) == complex(real, imaginary)
    assert vd.norm(buffer).var_type is vd.float16


def test_missing_64_bit_types_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Context, "features", frozenset())
    buffer = vd.asbuffer(values("int32"))
    with pytest.raises(vd.UnsupportedError, match=r"^dtype: mean of int32 gives float64.*dtype=vd\.float32"):
        vd.mean(buffer)
    # int64 is computed with words
    check("sum", values("int32"))
    check("argmin", values("int32"))


@pytest.mark.parametrize("kind", ["bool", "int8", "uint64", "float16", "float64", "complex64"])
def test_sums_and_products_as_truth_values(kind: str) -> None:
    data = np.where(RNG.random(SHAPE) < 0.03, 0, values(kind)).astype(kind)
    data[3], data[:, 7] = 0, 0
    if kind.startswith("float"):
        data[5, 3], data[3, 9] = np.nan, 0.25
    buffer = vd.asbuffer(data)
    for dtype in (vd.bool_, np.bool_, bool, "bool"):
        host = np.bool_ if dtype is vd.bool_ else dtype
        for axis in (None, 0, 1):
            for name in ("sum", "prod"):
                result = getattr(vd, name)(buffer, axis, dtype=dtype, keepdims=True).read(0)
                expected = getattr(np, name)(data, axis, dtype=host, keepdims=True)
                assert result.dtype == np.bool_
                np.testing.assert_array_equal(result, expected)
    mask = RNG.random(SHAPE) < 0.5
    result = vd.sum(buffer, 1, dtype=bool, where=vd.asbuffer(mask), initial=0)
    np.testing.assert_array_equal(result.read(0), np.sum(data, 1, dtype=bool, where=mask, initial=0))


@pytest.mark.parametrize(
    "name", ["sum", "prod", "mean", "std", "norm", "argmax", "count_nonzero", "cumsum", "argsort", "matmul"]
)
def test_invalid_dtypes(name: str) -> None:
    x = vd.asbuffer(np.ones((2, 2), np.float32))
    call = getattr(vd, name)
    arguments = (x, x) if name == "matmul" else (x,)
    for dtype in (object, "foo", 3, np.dtype("M8[s]"), vd.vec2):
        with pytest.raises((TypeError, ValueError), match=r"dtype: |x: 'cumsum' combines vec2") as raised:
            call(*arguments, dtype=dtype)
        assert isinstance(raised.value, VkDispatchError)


def test_invalid_dtypes_of_means_and_variances() -> None:
    x = vd.asbuffer(np.ones(3, np.float32))
    for kind in (int, bool, vd.uint8):
        with pytest.raises(ValueError, match="dtype: mean has fractions"):
            vd.mean(x, dtype=kind)
    for name in ("var", "std"):
        with pytest.raises(ValueError, match=f"dtype: the {name} of float32 is real; expected a float"):
            getattr(vd, name)(x, dtype=complex)
