"""Division as Python means it, functions that GLSL lacks, and floats taken apart."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    c64,
    dv2,
    f16,
    f32,
    f64,
    hv3,
    i16,
    i32,
    i64,
    ihv3,
    iv2,
    m2,
    u16,
    u32,
    u64,
    uv3,
    v2,
    v3,
)

from .running import Array, bits, buffer_of, close, evaluate, filled, host, integers, need, same

SIGNED: list[DType] = [i16, i32, i64]
UNSIGNED: list[DType] = [u16, u32, u64]
DIVISORS = [1, -1, 2, -2, 3, -3, 4, -4, 7, -7, 64, -64, 100, 1 << 14, -(1 << 14)]


def pairs(kind: DType) -> tuple[Array, Array]:
    """All combinations of signs and magnitudes, without zero divisors and the quotient that overflows."""
    signed = dt.is_signed_dtype(kind)
    small = [0, 1, 2, 3, 5, 7, 8, 63, 64, 65, 1000]
    dividends = integers(kind, 60, 1).tolist() + small + [-value for value in small if signed]
    divisors = [value for value in DIVISORS if signed or value > 0] + integers(kind, 40, 2)[10:].tolist()
    lowest = -(1 << (bits(kind) - 1))
    both = [(a, b) for a, b in itertools.product(dividends, divisors) if b and not (a == lowest and b == -1)]
    left, right = zip(*both, strict=True)
    return np.array(left, host(kind)), np.array(right, host(kind))


@pytest.mark.parametrize("kind", [*SIGNED, *UNSIGNED], ids=lambda kind: kind.name)
def test_floor_division_of_integers(kind: DType) -> None:
    need(kind)
    a, b = pairs(kind)
    quotient, remainder = evaluate(
        lambda x, y: [vc.floor_divide(x, y), vc.floor_mod(x, y)], (kind, a), (kind, b)
    )
    left, right = a.tolist(), b.tolist()
    same(quotient, [x // y for x, y in zip(left, right, strict=True)])
    same(remainder, [x % y for x, y in zip(left, right, strict=True)])


@pytest.mark.parametrize("kind", [*SIGNED, *UNSIGNED], ids=lambda kind: kind.name)
def test_floor_division_by_and_of_python_ints(kind: DType) -> None:
    need(kind)
    signed = dt.is_signed_dtype(kind)
    a = np.unique(integers(kind, 100, 3))
    a = a[(a != 0) & (a > -(1 << (bits(kind) - 1)))]
    divisors = [value for value in DIVISORS if signed or value > 0]
    results = evaluate(
        lambda x: [
            part
            for d in divisors
            for part in (vc.floor_divide(x, d), vc.floor_mod(x, d), vc.floor_divide(d, x), vc.floor_mod(d, x))
        ],
        (kind, a),
    )
    for position, d in enumerate(divisors):
        expected = [[x // d, x % d, d // x, d % x] for x in a.tolist()]
        for found, column in zip(results[4 * position :], zip(*expected, strict=True), strict=False):
            same(found, column, str(d))


@pytest.mark.parametrize("kind", [iv2, ihv3, uv3, v2], ids=lambda kind: kind.name)
def test_floor_division_of_vectors(kind: DType) -> None:
    need(kind)
    low = 0 if kind is uv3 else -20
    rng = np.random.default_rng(4)
    a, b = rng.integers(low, 20, (2, 100, kind.child_count))
    b[b == 0] = 3
    quotient, remainder, by_number = evaluate(
        lambda x, y: [vc.floor_divide(x, y), vc.floor_mod(x, y), vc.floor_mod(x, 3)], (kind, a), (kind, b)
    )
    same(quotient, a // b)
    same(remainder, a % b)
    same(by_number, a % 3)


@pytest.mark.parametrize("kind", [f32, f64], ids=lambda kind: kind.name)
def test_floor_division_of_floats(kind: DType) -> None:
    need(kind)
    a = np.array([7, -7, 7, -7, 0, 5.5, -5.5, 1e6], host(kind))
    b = np.array([2, 2, -2, -2, 3, 1.25, 1.25, 1000], host(kind))
    quotient, remainder, number = evaluate(
        lambda x, y: [vc.floor_divide(x, y), vc.floor_mod(x, y), vc.floor_divide(x, 2)], (kind, a), (kind, b)
    )
    same(quotient, a // b)
    same(remainder, a % b)
    same(number, a // 2)


def test_python_division_of_a_whole_kernel() -> None:
    @vd.shader("a.size", flags=vc.ShaderFlags.PYTHON_DIVISION)
    def kernel(out: Buff[i32], a: Buff[i32], b: Buff[i32], f: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        count = 8
        results = [a[i] // b[i], a[i] % b[i], a[i] // 3, a[i] % -3, a[i] // 4, a[i] % 4, 7 // b[i], -7 % b[i]]
        for k, result in enumerate(results):
            out[i * count + k] = result
        a[i] //= b[i]
        b[i] %= 3
        f[i] //= 2
        f[i] %= 3.0

    x, y = (
        column.astype(np.int32)
        for column in np.array(list(itertools.product(range(-9, 10), (-5, -2, 1, 3)))).T
    )
    out, a, b, f = filled(8 * len(x), i32), buffer_of(i32, x), buffer_of(i32, y), buffer_of(f32, x / 2)
    kernel(out, a, b, f)
    same(
        out.read(0).reshape(-1, 8),
        np.stack([x // y, x % y, x // 3, x % -3, x // 4, x % 4, 7 // y, -7 % y], 1),
    )
    same(a.read(0), x // y)
    same(b.read(0), y % 3)
    same(f.read(0), x / 2 // 2 % 3)


def test_division_truncates_without_the_flag() -> None:
    a = np.arange(-9, 10)
    third, quarter = evaluate(lambda x: [x // 3, x // 4], (i32, a))
    same(third, np.trunc(a / 3))
    # by a power of two it has always been a shift
    same(quarter, a // 4)


def test_division_of_python_numbers_and_wrong_arguments() -> None:
    assert (vc.floor_divide(-7, 2), vc.floor_mod(-7, 2), vc.floor_divide(7.5, 2)) == (-4, 1, 3.0)
    with vc.shader_context() as context:
        x, z, m, n = context.declare_input_arguments([Const[f32], Const[c64], Const[m2], Const[i32]])
        for error, message, misuse in (
            (ValueError, "division of 3 by zero", lambda: vc.floor_divide(3, 0)),
            (TypeError, "expected integers or real numbers, got complex64", lambda: vc.floor_mod(z, 2)),
            (TypeError, "expected integers or real numbers, got mat2", lambda: vc.floor_divide(m, 2)),
            (TypeError, "both operands must be integers, got float32; see vc.floor_divide", lambda: x // 2),
            (TypeError, "both operands must be integers, got float32; see vc.mod", lambda: x % 2),
            (ValueError, "expected GPU values or numbers", lambda: vc.floor_mod("a", 2)),
            (ValueError, "//: integer division by zero", lambda: n // 0),
            (ValueError, "%: integer division by zero", lambda: n % 0),
            (ValueError, "//: integer division by zero", lambda: vc.floor_divide(n, 0)),
            (ValueError, "%: integer division by zero", lambda: vc.floor_mod(n, 0)),
        ):
            with pytest.raises(error, match=message) as raised:
                misuse()
            assert "test_arithmetic.py:" in str(raised.value)


# ---- functions that GLSL lacks -------------------------------------------------------------------

UNARY: dict[str, tuple[Any, Array]] = {
    "log10": (np.log10, np.geomspace(1e-30, 1e30, 200)),
    "log1p": (np.log1p, np.concatenate([np.geomspace(1e-20, 1e20, 100), -np.geomspace(1e-20, 0.99, 100)])),
    "expm1": (np.expm1, np.concatenate([np.geomspace(1e-20, 80, 100), -np.geomspace(1e-20, 80, 100)])),
    "cbrt": (np.cbrt, np.concatenate([np.geomspace(1e-30, 1e30, 100), -np.geomspace(1e-30, 1e30, 100), [0]])),
    "erf": (np.vectorize(math.erf), np.concatenate([np.linspace(-5, 5, 301), [1e-20, -1e-7, 30, -30]])),
}


@pytest.mark.parametrize("kind", [f32, f64, v3, f16, i32], ids=lambda kind: kind.name)
@pytest.mark.parametrize("name", list(UNARY))
def test_unary_functions(name: str, kind: DType) -> None:
    need(kind)
    rule, values = UNARY[name]
    if kind in (f16, i32):
        values = np.linspace(1, 9, 33)
    values = np.resize(values, 204).astype(host(kind))
    shaped = values.reshape(-1, 3) if kind is v3 else values
    (found,) = evaluate(getattr(vc, name), (kind, shaped))
    expected = rule(values.astype(np.float64)).reshape(shaped.shape)
    tolerance = 2e-3 if kind is f16 else 3e-6
    close(found, expected, rtol=tolerance, atol=1e-30 if name != "erf" else 4e-7, what=name)


def test_functions_of_special_values_and_numbers() -> None:
    edges = np.array([0, np.inf, -np.inf, np.nan], np.float32)
    root, error, less, finite = evaluate(
        lambda x: [vc.cbrt(x), vc.erf(x), vc.expm1(x), vc.isfinite(x)], (f32, edges)
    )
    same(root, edges)
    same(error[:3], [0, 1, -1])
    same(less[:3], [0, np.inf, -1])
    same(finite, [1, 0, 0, 0])
    assert vc.cbrt(-8) == -2 and vc.log10(1000) == 3 and vc.log1p(0) == 0 and vc.expm1(0) == 0
    assert vc.erf(0.5) == math.erf(0.5) and vc.hypot(3, 4) == 5
    assert vc.isfinite(1) is True and vc.isfinite(math.inf) is False


@pytest.mark.parametrize("kind", [f32, f64, v2, dv2, f16, i32], ids=lambda kind: kind.name)
def test_hypot(kind: DType) -> None:
    need(kind)
    large = 1e4 if kind in (f16, i32) else 1e37
    values = np.array([0, 3, -4, 5e-3 if kind is not i32 else 7, large, -large / 3, 12, 1])
    a, b = (side.ravel().astype(host(kind)) for side in np.meshgrid(values, values))
    if dt.is_vector(kind):
        a, b = a.reshape(-1, 2), b.reshape(-1, 2)
    (found,) = evaluate(vc.hypot, (kind, a), (kind, b))
    close(found, np.hypot(a.astype(float), b.astype(float)), rtol=2e-3 if kind is f16 else 5e-7)


def test_hypot_of_infinity() -> None:
    a, b = np.array([np.inf, 1, -np.inf]), np.array([1, np.inf, np.inf])
    (found,) = evaluate(vc.hypot, (f32, a), (f32, b))
    same(found, [np.inf] * 3)


@pytest.mark.parametrize("kind", [f32, f64, f16, hv3, v3], ids=lambda kind: kind.name)
def test_frexp_and_ldexp(kind: DType) -> None:
    need(kind)
    scalar = dt.component_type(kind)
    tiny = float(np.finfo(host(scalar)).tiny)
    values = np.array([0, 1, -1, 0.5, 3, -10, 1e4, tiny, -tiny * 3, 0.1, np.inf, -np.inf]).astype(
        host(scalar)
    )
    shaped = values.reshape(-1, 3) if dt.is_vector(kind) else values
    significand, exponent, back = evaluate(lambda x: [*vc.frexp(x), vc.ldexp(*vc.frexp(x))], (kind, shaped))
    expected, power = np.frexp(shaped)
    power = np.where(np.isfinite(shaped), power, 0)
    same(significand, expected)
    same(exponent, power)
    same(back, shaped)


@pytest.mark.parametrize("kind", [f32, f64], ids=lambda kind: kind.name)
def test_frexp_of_the_smallest_numbers(kind: DType) -> None:
    need(kind)
    smallest = np.finfo(host(kind)).smallest_subnormal
    values = np.array([1, 3, -5, 1000], host(kind)) * smallest
    significand, exponent, kept = evaluate(lambda x: [*vc.frexp(x), x * 2.0**30], (kind, values))
    # a device may take them for zero
    expected, power = np.frexp(values)
    same(significand, np.where(kept == 0, values, expected))
    same(exponent, np.where(kept == 0, 0, power))


def test_ldexp_of_python_numbers_and_wrong_arguments() -> None:
    x = np.array([1.5, -3, 0], np.float32)
    scaled, number, widened = evaluate(
        lambda v, n: [vc.ldexp(v, 3), vc.ldexp(0.5, n), vc.ldexp(v, vc.to_ivec2(n, 1))],
        (f32, x),
        (i32, np.array([0, 4, -3])),
    )
    same(scaled, x * 8)
    same(number, [0.5, 8, 0.0625])
    same(widened, np.stack([x * [1, 16, 0.125], x * 2], 1))
    assert vc.ldexp(1.5, 2) == 6.0 and vc.frexp(6) == (0.75, 3)
    with vc.shader_context() as context:
        v, m = context.declare_input_arguments([Const[f32], Const[m2]])
        with pytest.raises(TypeError, match="the exponent must be an integer"):
            vc.ldexp(v, 1.5)
        with pytest.raises(TypeError, match="the exponent must be an integer"):
            vc.ldexp(1.5, v)
        for misuse in (
            lambda: vc.frexp(m),
            lambda: vc.erf(m),
            lambda: vc.hypot(m, m),
            lambda: vc.ldexp(m, 1),
        ):
            with pytest.raises(ValueError, match="not defined for mat2"):
                misuse()


# ---- rays ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [v3, v2, dv2], ids=lambda kind: kind.name)
def test_rays(kind: DType) -> None:
    need(kind)
    rng = np.random.default_rng(5)
    d, n = rng.normal(size=(2, 60, kind.child_count))
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    dots = (n * d).sum(1, keepdims=True)
    mirrored, turned, bent = evaluate(
        lambda a, b: [vc.reflect(a, b), vc.faceforward(b, a, b), vc.refract(a, b, 0.7)], (kind, d), (kind, n)
    )
    close(mirrored, d - 2 * dots * n, rtol=1e-4, atol=1e-6)
    close(turned, np.where(dots < 0, n, -n), rtol=1e-4, atol=1e-6)
    k = 1 - 0.7**2 * (1 - dots**2)
    close(bent, 0.7 * d - (0.7 * dots + np.sqrt(k)) * n, rtol=1e-4, atol=1e-5)
    with vc.shader_context() as context:
        i, v = context.declare_input_arguments([Const[iv2], Const[v3]])
        with pytest.raises(ValueError, match="expected vectors of floats, got ivec2"):
            vc.reflect(i, i)
        with pytest.raises(ValueError, match="ratio must be a scalar"):
            vc.refract(v, v, v)
        with pytest.raises(ValueError, match="expected a GPU value"):
            vc.faceforward(1, v, v)


@pytest.mark.parametrize("kind", [i16, u16, i32, u32])
def test_converted_integers_compare_with_constants(kind: DType) -> None:
    need(kind, i64)

    @vd.shader("x.size")
    def compare(x: Buff[kind], out: Buff[i32]) -> None:  # type: ignore[valid-type]
        i = vc.global_invocation_id().x
        value = x[i].to_dtype(i64)
        for k, limit in enumerate((-70000, -1, 0, 5, 70000)):
            out[10 * i + 2 * k] = 1 if value < limit else 0
            out[10 * i + 2 * k + 1] = 1 if value >= limit else 0

    given = np.array([-3, -1, 0, 1, 5, 7]).astype(dt.to_numpy_dtype(kind))
    out = vd.Buffer((len(given), 5, 2), vd.int32)
    compare(vd.asbuffer(given), out)
    limits = np.array([-70000, -1, 0, 5, 70000])
    less = given[:, None].astype(np.int64) < limits
    np.testing.assert_array_equal(out.read(0), np.stack([less, ~less], -1))
