"""`vd.scan`: any associative function, of numbers, vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *  # noqa: F403

from .truth import tuned


@vd.scan(identity=0)
def total(a: f32, b: f32) -> f32:  # noqa: F405
    return a + b


@vd.scan(identity=[1, 0])
def recurrence(a: v2, b: v2) -> v2:  # noqa: F405
    # h -> a.x * h + a.y, then h -> b.x * h + b.y
    return vc.to_vec2(a.x * b.x, b.x * a.y + b.y)


def recurred(factors: np.ndarray[Any, Any], added: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    h, out = 0.0, []
    for factor, each in zip(factors.tolist(), added.tolist(), strict=True):
        h = factor * h + each
        out.append(h)
    return np.array(out)


def test_decorator_with_and_without_arguments() -> None:
    def add(a: f32, b: f32) -> f32:  # noqa: F405
        return a + b

    x = np.arange(2000, dtype=np.float32) % 7
    for scan in (total, vd.scan(add), vd.scan(add, 0), vd.scan(add, identity=0)):
        np.testing.assert_array_equal(scan(vd.asbuffer(x)).read(0), np.cumsum(x))
    assert repr(total) == "<scan 'total' of float32>"
    assert isinstance(total, vd.ScanFunction)
    assert total.identity == 0
    assert total.var_type is vd.float32


@pytest.mark.parametrize("size", [1, 63, 1000, 70_001])
def test_linear_recurrence(size: int) -> None:
    rng = np.random.default_rng(size)
    factors, added = rng.uniform(-1, 1, size).astype(np.float32), rng.random(size).astype(np.float32)
    pairs = vd.Buffer(size, vd.vec2)
    pairs.write(np.stack([factors, added], axis=1))
    result = recurrence(pairs).read(0)
    np.testing.assert_allclose(result[:, 1], recurred(factors, added), rtol=1e-4, atol=1e-5)
    shifted = recurrence(pairs, exclusive=True).read(0)
    np.testing.assert_allclose(shifted[1:, 1], recurred(factors, added)[:-1], rtol=1e-4, atol=1e-5)
    assert shifted[0].tolist() == [1, 0]


def test_recurrence_of_a_map_of_two_arrays() -> None:
    @vd.map
    def pair(factor: f32, added: f32) -> v2:  # noqa: F405
        return vc.to_vec2(factor, added)

    @vd.map
    def height(value: v2) -> f32:  # noqa: F405
        return value.y

    rng = np.random.default_rng(1)
    factors, added = (rng.uniform(-1, 1, (6, 900)).astype(np.float32) for _ in range(2))
    for axis in (0, 1):
        heights = recurrence(pair(vd.asbuffer(factors), vd.asbuffer(added)), axis, output_map=height)
        assert heights.var_type is vd.float32
        expected = np.apply_along_axis(
            lambda both: recurred(both[: both.size // 2], both[both.size // 2 :]),
            axis,
            np.concatenate([factors, added], axis),
        )
        np.testing.assert_allclose(heights.read(0), expected, rtol=1e-4, atol=1e-5)


def test_matrix_products_keep_their_order() -> None:
    @vd.scan(identity=np.eye(2))
    def product(a: m2, b: m2) -> m2:  # noqa: F405
        return a @ b

    # matrices of determinant 1, with small integers
    steps = np.array([[[1, 1], [0, 1]], [[1, 0], [-1, 1]], [[0, -1], [1, 0]]], np.float32)
    x = steps[np.random.default_rng(2).permutation(np.arange(1500) % 3)]
    buffer = vd.Buffer(1500, vd.mat2)
    buffer.write(x)
    result, running = product(buffer).read(0).reshape(1500, 2, 2), np.eye(2)
    for each, found in zip(x[:40], result, strict=False):
        # arrays hold matrices column by column, so matrices and their products are transposed
        running = each @ running
        np.testing.assert_array_equal(found, running)
    np.testing.assert_array_equal(product(buffer, exclusive=True).read(0).reshape(-1, 2, 2)[0], np.eye(2))


def test_operands_keep_their_order() -> None:
    # returns the first operand that is not 0
    @vd.scan(identity=0)
    def first(a: i32, b: i32) -> i32:  # noqa: F405
        if a != 0:
            return a
        return b

    x = np.zeros(70_000, np.int32)
    x[[900, 5000, 69_999]] = 5, 6, 7
    forward = np.where(np.arange(x.size) < 900, 0, 5)
    backward = np.full(x.size, 7)
    np.testing.assert_array_equal(first(vd.asbuffer(x)).read(0), forward)
    np.testing.assert_array_equal(first(vd.asbuffer(x), reverse=True).read(0), backward)


def test_control_flow() -> None:
    @vd.scan(identity=1)
    def divisor(a: u32, b: u32) -> u32:  # noqa: F405
        x, y = a.to_register(), b.to_register()
        while y != 0:
            rest = (x % y).to_register()
            x[:] = y
            y[:] = rest
        return x

    x = np.random.default_rng(3).integers(1, 50, 3000).astype(np.uint32) * 12
    np.testing.assert_array_equal(divisor(vd.asbuffer(x)).read(0), np.gcd.accumulate(x))


@pytest.mark.parametrize(
    ("kind", "numpy"), [("int8", np.int8), ("uint16", np.uint16), ("float16", np.float16)]
)
def test_narrow_dtypes(kind: str, numpy: Any) -> None:
    dtype = getattr(vd, kind)

    def largest(a, b):  # type: ignore[no-untyped-def]
        return vc.max(a, b)

    largest.__annotations__["return"] = dtype
    x = np.random.default_rng(4).integers(0, 100, 3000).astype(numpy)
    result = vd.scan(largest, "-inf")(vd.asbuffer(x), exclusive=True).read(0)
    assert result.dtype == numpy
    np.testing.assert_array_equal(result[1:], np.maximum.accumulate(x)[:-1])
    assert result[0] == (-np.inf if numpy is np.float16 else np.iinfo(numpy).min)


def test_sizes_of_partial_results() -> None:
    rng = np.random.default_rng(5)
    factors, added = rng.uniform(-1, 1, 20_000).astype(np.float32), rng.random(20_000).astype(np.float32)
    pairs = vd.Buffer(20_000, vd.vec2)
    pairs.write(np.stack([factors, added], axis=1))
    with tuned(lookback=0, enough_cpu=100, few_cpu=4, bytes_each=16):
        result = recurrence(pairs).read(0)
    np.testing.assert_allclose(result[:, 1], recurred(factors, added), rtol=1e-4, atol=1e-5)


def test_invalid_functions() -> None:
    def nothing(a, b):  # type: ignore[no-untyped-def]
        return a + b

    def truth(a, b) -> vd.bool_:  # type: ignore[no-untyped-def]
        return a

    def other(a, b) -> int:  # type: ignore[no-untyped-def]
        return a  # type: ignore[no-any-return]

    with pytest.raises(ValueError, match="return annotation"):
        vd.scan(nothing)
    with pytest.raises(ValueError, match="booleans"):
        vd.scan(truth)
    with pytest.raises(TypeError, match="return annotation"):
        vd.scan(other)
    with pytest.raises(TypeError, match="pass the identity by name"):
        vd.scan(0)  # type: ignore[call-overload]


@pytest.mark.parametrize("identity", ["zero", [1, 2, 3], 0.5, 2**40, object()])
def test_invalid_identities(identity: Any) -> None:
    def add(a: i32, b: i32) -> i32:  # noqa: F405
        return a + b

    with pytest.raises((TypeError, ValueError), match="identity"):
        vd.scan(add, identity)


def test_invalid_arguments() -> None:
    @vd.scan
    def add(a: f32, b: f32) -> f32:  # noqa: F405
        return a + b

    with pytest.raises(ValueError, match="'add' has no identity"):
        add(vd.asbuffer(np.zeros(3, np.float32)), exclusive=True)
    with pytest.raises(ValueError, match="complex64"):
        add(vd.asbuffer(np.zeros(3, np.complex64)))
    with pytest.raises(TypeError, match=r"vd\.asbuffer"):
        add([0.0, 0.0, 0.0])


def test_function_that_returns_none() -> None:
    @vd.scan
    def lost(a: f32, b: f32) -> f32:  # noqa: F405
        a + b

    with pytest.raises(ValueError, match=r"lost.* must return a float32"):
        lost(vd.asbuffer(np.zeros(3, np.float32)))
