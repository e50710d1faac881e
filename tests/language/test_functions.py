"""The functions of the language on the device, against NumPy; and calls of numbers alone, done by Python."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import Buff, Const, f16, f32, f64, i16, i32, i64, u16, u32, u64

from .running import (
    INTEGERS,
    SIZES,
    buffer_of,
    close,
    evaluate,
    filled,
    floats,
    host,
    integers,
    need,
    result_types,
    same,
    sine_error,
    wrapped,
)

Rule = Callable[..., Any]
WHOLE = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, -3.0, 3.0, 0.0, 1e6, -1e6, 0.49999, 2.99999])
ULP = 2.0**-23

# function: its NumPy twin, the interval it is tried on, relative and absolute tolerance in float32
UNARY: dict[str, tuple[Rule, float, float, float, float]] = {
    "sin": (np.sin, -6, 6, 0, 1e-6),
    "cos": (np.cos, -6, 6, 0, 1e-6),
    "tan": (np.tan, -1.4, 1.4, 1e-5, 1e-6),
    "asin": (np.arcsin, -1, 1, 0, 4e-4),
    "acos": (np.arccos, -1, 1, 0, 4e-4),
    "atan": (np.arctan, -20, 20, 1e-5, 1e-6),
    "sinh": (np.sinh, -5, 5, 1e-5, 1e-6),
    "cosh": (np.cosh, -5, 5, 1e-5, 0),
    "tanh": (np.tanh, -5, 5, 1e-5, 1e-6),
    "asinh": (np.arcsinh, -10, 10, 1e-5, 2e-6),
    "acosh": (np.arccosh, 1.01, 20, 1e-5, 2e-6),
    "atanh": (np.arctanh, -0.99, 0.99, 1e-5, 2e-6),
    "radians": (np.radians, -360, 360, 2 * ULP, 0),
    "degrees": (np.degrees, -7, 7, 2 * ULP, 0),
    "exp": (np.exp, -20, 20, 1e-5, 0),
    "exp2": (np.exp2, -20, 20, 1e-5, 0),
    "log": (np.log, 1e-3, 1e4, 1e-5, 1e-6),
    "log2": (np.log2, 1e-3, 1e4, 1e-5, 1e-6),
    "sqrt": (np.sqrt, 0, 1e4, 3 * ULP, 0),
    "inversesqrt": (lambda x: 1 / np.sqrt(x), 1e-3, 1e4, 4 * ULP, 0),
}
EXACT: dict[str, Rule] = {
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "round_even": np.rint,
    "fract": lambda x: x - np.floor(x),
}


def check(
    rule: Rule, inputs: list[tuple[DType, Any]], expected: list[Any], rtol: float, atol: float = 0
) -> None:
    for place, (actual, values) in enumerate(zip(evaluate(rule, *inputs), expected, strict=True)):
        close(actual, values, rtol, atol, f"result {place}")


# -- functions of one value


@pytest.mark.parametrize("name", UNARY)
def test_unary_in_single_precision(name: str) -> None:
    twin, low, high, rtol, atol = UNARY[name]
    x = floats(f32, 4099, 1, low, high)
    function = getattr(vc, name)
    assert result_types(function, [f32]) == [f32]
    if name in ("sin", "cos", "tan"):
        # the largest (1 + tan) / cos of the interval is 40
        atol = max(atol, sine_error() * (40 if name == "tan" else 1))
    check(function, [(f32, x)], [twin(x.astype(float))], rtol, atol)


@pytest.mark.parametrize("name", UNARY)
def test_unary_of_doubles(name: str) -> None:
    need(f64)
    twin, low, high, *_ = UNARY[name]
    x = floats(f64, 257, 1, low, high)
    function = getattr(vc, name)
    assert result_types(function, [f64]) == [f64]
    check(function, [(f64, x)], [twin(x)], 1e-14, 1e-15)


@pytest.mark.parametrize("name", UNARY)
def test_unary_of_halves(name: str) -> None:
    need(f16)
    twin, low, high, *_ = UNARY[name]
    x = floats(f16, 257, 1, max(low, -9), min(high, 9))
    x = x[(x > low) & (x < high)]
    function = getattr(vc, name)
    assert result_types(function, [f16]) == [f16]
    check(function, [(f16, x)], [twin(x.astype(float))], 1e-2, 4e-3)


def test_unary_of_integers_are_floats() -> None:
    x = (integers(i32, 64) % 20).astype(np.int32)
    names = ("exp2", "sqrt", "log2", "floor", "sign", "fract", "sin")

    def forms(a: Any) -> list[Any]:
        return [getattr(vc, name)(abs(a) + 1) for name in names]

    assert result_types(forms, [i32]) == [f32] * len(names)
    values = np.abs(x) + 1.0
    twins = {**{name: rule[0] for name, rule in UNARY.items()}, **EXACT}
    *others, sines = evaluate(forms, (i32, x))
    for name, found in zip(names, others, strict=False):
        close(found, twins[name](values), 1e-5, 1e-6, name)
    close(sines, np.sin(values), 0, sine_error())


@pytest.mark.parametrize("kind", [f16, f32, f64], ids=lambda kind: kind.name)
def test_rounding(kind: DType) -> None:
    need(kind)
    limit = 2000.0 if kind is f16 else 1e6
    x = np.concatenate([WHOLE.clip(-limit, limit), floats(f64, 257, 1, -40, 40)]).astype(host(kind))
    if kind is f64:
        x = np.concatenate([x, [2.0**31 + 0.7, -(2.0**40) - 0.5, 2.0**52 - 0.5, 1e300]])

    def forms(a: Any) -> list[Any]:
        return [getattr(vc, name)(a) for name in EXACT]

    assert set(result_types(forms, [kind])) == {kind}
    for (name, twin), actual in zip(EXACT.items(), evaluate(forms, (kind, x)), strict=True):
        close(actual, twin(x), 0, 2e-3 if kind is f16 and name == "fract" else 0, name)


@pytest.mark.parametrize("kind", [f16, f32, f64], ids=lambda kind: kind.name)
def test_nan_and_infinity(kind: DType) -> None:
    need(kind)
    x = np.array([0, 1, np.inf, -np.inf, np.nan, -2.5], host(kind))
    nan, infinite = evaluate(lambda a: [vc.isnan(a), vc.isinf(a)], (kind, x))
    same(nan, np.isnan(x))
    same(infinite, np.isinf(x))


def test_infinities() -> None:
    makers = [vc.inf_f32, vc.ninf_f32]
    if result_types(lambda a: [vc.inf_f64()], [f32]) == [f64]:
        need(f64)
        makers += [vc.inf_f64, vc.ninf_f64]
    found = evaluate(lambda a: [maker() for maker in makers], (f32, [0.0]))
    same(np.concatenate(found), [np.inf, -np.inf] * (len(makers) // 2))


def test_infinities_of_halves() -> None:
    need(f16)
    found = evaluate(lambda a: [vc.inf_f16(), vc.ninf_f16()], (f16, [0.0]))
    same(np.concatenate(found), [np.inf, -np.inf])


@pytest.mark.parametrize("kind", [f16, f32, f64], ids=lambda kind: kind.name)
def test_numbers_given_by_name(kind: DType) -> None:
    need(kind)

    @vd.shader(1)
    def kernel(out: Buff[kind], x: Buff[kind], largest: Const[kind] = vc.inf):  # type: ignore[valid-type]
        one = x[0] / x[0]
        out[0] = vc.inf
        out[1] = -vc.inf
        out[2] = vc.nan
        out[3] = vc.max(x[0], -vc.inf)
        out[4] = min(vc.inf, x[0])
        out[5] = vc.select(x[0] < vc.inf, one, 2)
        out[6] = vc.select(x[1] == vc.inf, one, 2)
        out[7] = vc.select(x[0] != vc.nan, one, 2)
        out[8] = vc.select(x[0] > 2, one, -vc.inf)
        out[9] = vc.select(x[0] > 5, one, -vc.inf)
        out[10] = vc.select(largest == x[1], one, 2)
        out[11] = x[0] * vc.pi
        out[12] = x[0] * vc.e
        out[13] = x[0] * vc.tau
        out[14] = vc.clip(x[1], 0, vc.inf)
        if x[0] > -vc.inf:
            out[15] = x[0] - vc.inf
        low = vc.inf
        for k in vc.range(2):
            low = min(low, x[k])
        out[16] = vc.to_dtype(kind, low)

    x = np.array([3, np.inf], host(kind))
    three, inf = host(kind).type(3), np.inf
    expected = [
        inf,
        -inf,
        np.nan,
        3,
        3,
        1,
        1,
        1,
        1,
        -inf,
        1,
        *(three * c for c in (math.pi, math.e, math.tau)),
    ]
    expected += [inf, -inf, 3]
    out = vd.Buffer((len(expected),), kind)
    kernel(out, vd.asbuffer(x))
    interpreted = np.zeros(len(expected), x.dtype)
    kernel.interpret(interpreted, x)
    for found in (out.read(0), interpreted):
        close(found, expected, 2 * np.finfo(host(kind)).eps, 0)


def test_integers_compared_with_infinity() -> None:
    @vd.shader(1)
    def kernel(out: Buff[f32], x: Buff[i32]):
        out[0] = vc.select(x[0] < out[3], 1.0, 2.0)
        out[1] = vc.max(x[0], -vc.inf).to_dtype(vd.float32)
        out[2] = x[0] * vc.inf

    out = vd.asbuffer(np.full(4, np.inf, np.float32))
    kernel(out, vd.asbuffer(np.array([-7], np.int32)))
    same(out.read(0), [1, -7, -np.inf, np.inf])
    with vc.shader_context(), pytest.raises(ValueError, match="cannot store the float inf in int32"):
        vc.new_int_register()[:] = vc.inf


@pytest.mark.parametrize("kind", [f32, f64], ids=lambda kind: kind.name)
def test_infinity_and_nan_literals(kind: DType) -> None:
    need(kind)
    x = np.array([1, -1], host(kind))
    found = evaluate(lambda a: [a * math.inf, a - math.inf, a + math.nan, vc.isnan(a * math.nan)], (kind, x))
    same(found[0], [np.inf, -np.inf])
    same(found[1], [-np.inf] * 2)
    same(found[2], [np.nan] * 2)
    same(found[3], [1, 1])


# -- limits and interpolation


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_limits_of_integers(kind: DType) -> None:
    need(kind)
    x, y, z = integers(kind, 257, 1), integers(kind, 257, 2)[::-1], integers(kind, 257, 3)
    low, high = np.minimum(y, z), np.maximum(y, z)

    def forms(a: Any, b: Any, c: Any) -> list[Any]:
        return [
            vc.min(a, b), vc.max(a, b), vc.clip(a, b, c), vc.clamp(a, b, c), vc.abs(a), vc.min(a, 9),
            vc.max(9, a), vc.clip(a, 3, 100), abs(a),
        ]  # fmt: skip

    assert result_types(forms, [kind] * 3) == [kind] * 9
    expected = [
        np.minimum(x, low), np.maximum(x, low), np.clip(x, low, high), np.clip(x, low, high),
        wrapped([abs(int(a)) for a in x], kind), np.minimum(x, 9), np.maximum(x, 9), np.clip(x, 3, 100),
        wrapped([abs(int(a)) for a in x], kind),
    ]  # fmt: skip
    found = evaluate(forms, (kind, x), (kind, low), (kind, high))
    for place, (actual, values) in enumerate(zip(found, expected, strict=True)):
        same(actual, values, f"result {place}")


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_sign_of_integers(kind: DType) -> None:
    real = dt.make_floating_dtype(kind)
    need(kind, real)
    x = np.clip(integers(kind, 257, 1), -3 if dt.is_signed_dtype(kind) else 0, 3)
    assert result_types(vc.sign, [kind]) == [real]
    same(evaluate(vc.sign, (kind, x))[0], np.sign(x))


@pytest.mark.parametrize("kind", [f16, f32, f64], ids=lambda kind: kind.name)
def test_limits_of_floats(kind: DType) -> None:
    need(kind)
    x, y, z = (floats(kind, 257, seed) for seed in (1, 2, 3))
    low, high = np.minimum(y, z), np.maximum(y, z)

    def forms(a: Any, b: Any, c: Any) -> list[Any]:
        return [
            vc.min(a, b), vc.max(a, b), vc.clip(a, b, c), vc.clamp(a, -1, 1.5), vc.min(a, 2), vc.max(0.5, a),
            vc.abs(a), vc.step(b, a), vc.step(0, a), vc.sign(a),
        ]  # fmt: skip

    assert set(result_types(forms, [kind] * 3)) == {kind}
    expected = [
        np.minimum(x, low), np.maximum(x, low), np.clip(x, low, high), np.clip(x, -1, 1.5), np.minimum(x, 2),
        np.maximum(x, 0.5), np.abs(x), x >= low, x >= 0, np.sign(x),
    ]  # fmt: skip
    found = evaluate(forms, (kind, x), (kind, low), (kind, high))
    for place, (actual, values) in enumerate(zip(found, expected, strict=True)):
        same(actual, values, f"result {place}")


@pytest.mark.parametrize("kind", [f16, f32, f64], ids=lambda kind: kind.name)
def test_interpolation(kind: DType) -> None:
    need(kind)
    x, y, a = floats(kind, 257, 1), floats(kind, 257, 2), floats(kind, 257, 3, 0, 1)
    edge = host(kind).type(4)

    def forms(p: Any, q: Any, t: Any) -> list[Any]:
        return [
            vc.mix(p, q, t), vc.mix(p, 1, 0.25), vc.smoothstep(-4, 4, p), vc.smoothstep(0.25, 0.75, t),
            vc.fma(p, q, t), vc.fma(2, p, q),
        ]  # fmt: skip

    assert set(result_types(forms, [kind] * 3)) == {kind}
    p, q, t = x.astype(float), y.astype(float), a.astype(float)
    u, w = ((p + edge) / 8).clip(0, 1), ((t - 0.25) * 2).clip(0, 1)
    expected = [
        p * (1 - t) + q * t, p * 0.75 + 0.25, u * u * (3 - 2 * u), w * w * (3 - 2 * w), p * q + t, 2 * p + q,
    ]  # fmt: skip
    tolerance = {f16: 1e-2, f32: 2e-6, f64: 1e-14}[kind]
    check(forms, [(kind, x), (kind, y), (kind, a)], expected, tolerance, 10 * tolerance)


@pytest.mark.parametrize("kind", [f32, f64], ids=lambda kind: kind.name)
def test_modulo_has_the_sign_of_the_divisor(kind: DType) -> None:
    need(kind)
    x = np.concatenate([floats(kind, 257, 1, -40, 40), [7, -7, 7.5, -7.5]]).astype(host(kind))
    y = floats(kind, x.size, 2, 0.5, 5) * np.where(np.arange(x.size) % 2, 1, -1).astype(host(kind))
    expected = x - y * np.floor(x / y)
    # where the quotient is nearly whole, either neighbour will do
    sure = np.abs(x / y - np.rint(x / y)) > 1e-4
    found = evaluate(lambda a, b: [vc.mod(a, b), vc.modf(a, b), vc.mod(a, 2.5)], (kind, x), (kind, y))
    close(found[0][sure], expected[sure], 1e-5, 1e-5)
    close(found[1][sure], expected[sure], 1e-5, 1e-5)
    sure = np.abs(x / 2.5 - np.rint(x / 2.5)) > 1e-4
    close(found[2][sure], (x - 2.5 * np.floor(x / 2.5))[sure], 1e-5, 1e-5)


def test_mixed_arguments_are_promoted() -> None:
    need(f64)
    n, x, d = integers(i32, 64) % 10, floats(f32, 64, 1), floats(f64, 64, 2)

    def forms(a: Any, b: Any, c: Any) -> list[Any]:
        return [
            vc.min(a, b), vc.max(b, c), vc.clip(a, 0, 5), vc.clip(b, a, c), vc.mix(a, b, 0.5),
            vc.fma(a, b, c), vc.min(a, 2.5), vc.pow(abs(a) + 1, b / 10),
        ]  # fmt: skip

    assert result_types(forms, [i32, f32, f64]) == [f32, f64, i32, f64, f32, f64, f32, f32]
    expected = [
        np.minimum(n, x), np.maximum(x, d), n.clip(0, 5), np.minimum(np.maximum(x, n), d), (n + x) / 2,
        n * x + d, np.minimum(n, 2.5), (np.abs(n) + 1.0) ** (x / 10),
    ]  # fmt: skip
    check(forms, [(i32, n), (f32, x), (f64, d)], expected, 1e-5, 1e-5)


# -- two-argument functions of section 8.2


@pytest.mark.parametrize("kind", [f32, f64], ids=lambda kind: kind.name)
def test_arc_tangent_of_two(kind: DType) -> None:
    need(kind)
    y, x = floats(kind, 4099, 1), floats(kind, 4099, 2)
    y[:8], x[:8] = [1, 1, -1, -1, 0, 1, -1, 3], [1, -1, 1, -1, 1, 0, 0, 4]
    found = evaluate(lambda a, b: [vc.atan2(a, b), vc.atan2(a, 2), vc.atan2(2, b)], (kind, y), (kind, x))
    wide_y, wide_x = y.astype(float), x.astype(float)
    expected = [np.arctan2(wide_y, wide_x), np.arctan2(wide_y, 2), np.arctan2(2, wide_x)]
    for actual, values in zip(found, expected, strict=True):
        assert actual.dtype == host(kind)
        close(actual, values, 1e-5, 2e-6)


@pytest.mark.parametrize("kind", [f32, f64], ids=lambda kind: kind.name)
def test_power(kind: DType) -> None:
    need(kind)
    x, y = floats(kind, 1000, 1, 0.1, 8), floats(kind, 1000, 2, -3, 3)

    def forms(a: Any, b: Any) -> list[Any]:
        return [vc.pow(a, b), vc.pow(a, 0.5), vc.pow(2, b), vc.pow(-a, 3), vc.pow(a, 0), vc.pow(a, -2)]

    assert set(result_types(forms, [kind, kind])) == {kind}
    p, q = x.astype(float), y.astype(float)
    expected = [p**q, p**0.5, 2**q, -(p**3), p**0, p**-2]
    check(forms, [(kind, x), (kind, y)], expected, 2e-5)


def test_compositions_have_known_values() -> None:
    x = floats(f32, 4099, 1, -3, 3)

    def forms(a: Any) -> list[Any]:
        sine, cosine = vc.sin(a), vc.cos(a)
        return [
            vc.exp(vc.log(abs(a) + 1)), vc.exp2(vc.log2(abs(a) + 1)), vc.degrees(vc.radians(a)),
            vc.sqrt(a * a), vc.inversesqrt(a * a + 1) * vc.sqrt(a * a + 1), vc.cosh(a) - vc.sinh(a),
            vc.tan(vc.atan(a)), sine * sine + cosine * cosine,
        ]  # fmt: skip

    p = x.astype(float)
    expected = [abs(p) + 1, abs(p) + 1, p, abs(p), 1 + 0 * p, np.exp(-p), p, 1 + 0 * p]
    # of the tangent: (1 + 3) sqrt(1 + 3^2) errors of a sine
    loose = [0, 0, 0, 0, 0, 0, 13 * sine_error(), 4 * sine_error()]
    for place, found in enumerate(evaluate(forms, (f32, x))):
        close(found, expected[place], 5e-5, 5e-6 + loose[place], f"result {place}")


@pytest.mark.parametrize("count", SIZES)
def test_a_longer_formula(count: int) -> None:
    """The error function by Abramowitz and Stegun 7.1.26, good to 1.5e-7."""

    @vd.shader("out.size")
    def erf(out: Buff[f32], source: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        x = source[i].to_register("x")
        t = (1 / (1 + 0.3275911 * abs(x))).to_register("t")
        series = vc.new_float_register(1.061405429)
        for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            series[:] = series * t + factor
        out[i] = vc.sign(x) * (1 - series * t * vc.exp(-(x * x)))

    x = np.linspace(-3, 3, count, dtype=np.float32)
    out = filled(count, f32)
    erf(out, buffer_of(f32, x))
    close(out.read(0), scipy.special.erf(x.astype(float)), 0, 2e-6)


# -- bits


def test_bits_of_floats() -> None:
    x = np.concatenate([[0.0, 1.0, -1.0, np.inf, -np.inf, 3.5], floats(f32, 64, 1)]).astype(np.float32)
    signed, unsigned, back, again = evaluate(
        lambda a: [
            vc.float_bits_to_int(a),
            vc.float_bits_to_uint(a),
            vc.int_bits_to_float(vc.float_bits_to_int(a)),
            vc.uint_bits_to_float(vc.float_bits_to_uint(a)),
        ],
        (f32, x),
    )
    assert signed.dtype == np.int32 and unsigned.dtype == np.uint32
    same(signed, x.view(np.int32))
    same(unsigned, x.view(np.uint32))
    same(back, x)
    same(again, x)


# -- numbers alone


@pytest.mark.parametrize("name", UNARY)
def test_numbers_fold(name: str) -> None:
    twin, low, high, _, _ = UNARY[name]
    for value in ((low + high) / 2 + 0.1, min(high, 2), np.float32(max(low, 0.5))):
        folded = getattr(vc, name)(value)
        assert type(folded) is float
        assert folded == pytest.approx(float(twin(float(value))), rel=1e-12)


@pytest.mark.parametrize("name", EXACT)
def test_rounding_of_numbers_folds(name: str) -> None:
    for value in (-2.5, 0.5, 1.5, 7, np.int32(-3)):
        folded = getattr(vc, name)(value)
        assert type(folded) is float
        assert folded == EXACT[name](float(value))


@pytest.mark.parametrize(
    ("function", "args", "expected"),
    [
        (vc.abs, (-3,), 3.0), (vc.min, (2, 3), 2.0), (vc.max, (2, 3.5), 3.5), (vc.clip, (7, 0, 5), 5.0),
        (vc.clamp, (-7, 0, 5), 0.0), (vc.mix, (2, 4, 0.25), 2.5), (vc.mix, (2, 4, 3), 4.0),
        (vc.step, (1, 2), 1.0), (vc.step, (2, 1), 0.0), (vc.smoothstep, (0, 2, 1), 0.5),
        (vc.smoothstep, (0, 2, 5), 1.0),
        (vc.fma, (2, 3, 4), 10.0), (vc.mod, (-7, 3), 2.0), (vc.mod, (7, -3), -2.0),
        (vc.atan2, (1, 1), math.pi / 4), (vc.pow, (2, 0.5), 2**0.5), (vc.pow, (-2, 3), -8.0),
        (vc.length, (-4,), 4.0),
        (vc.distance, (1, 4), 3.0), (vc.dot, (3, 4), 12.0),
    ],
)  # fmt: skip
def test_folded_values(function: Rule, args: tuple[float, ...], expected: float) -> None:
    folded = function(*args)
    keeps = function in (vc.abs, vc.min, vc.max, vc.clip, vc.clamp, vc.dot)
    assert type(folded) is (int if keeps and all(isinstance(arg, int) for arg in args) else float)
    assert folded == pytest.approx(expected)


def test_other_folded_values() -> None:
    assert vc.modf(2.75, 1) == (0.75, 2.0)
    assert vc.isnan(math.nan) is True and vc.isnan(1) is False
    assert vc.isinf(-math.inf) is True and vc.isinf(1) is False
    assert vc.float_bits_to_int(-1.0) == struct.unpack("<i", struct.pack("<f", -1.0))[0]
    assert vc.float_bits_to_uint(1.0) == 0x3F800000
    assert vc.int_bits_to_float(0x40000000) == 2.0
    assert vc.uint_bits_to_float(0xBF800000) == -1.0


def test_folded_values_inside_a_kernel() -> None:
    (found,) = evaluate(lambda a: a * vc.sqrt(2) + vc.max(1, 3) - vc.floor(2.5), (f32, [1.0, 2.0]))
    close(found, [2**0.5 + 1, 2 * 2**0.5 + 1])


@pytest.mark.parametrize("kind", [i16, u16, i64, u64], ids=lambda kind: kind.name)
def test_floor_and_sqrt_of_integers_of_other_sizes(kind: DType) -> None:
    real = dt.make_floating_dtype(kind)
    need(kind, real)
    x = np.arange(64).astype(host(kind))
    floor, root = evaluate(lambda a: [vc.floor(a / 4), vc.sqrt(a)], (kind, x))
    assert floor.dtype == root.dtype == host(real)
    same(floor, x // 4)
    close(root, np.sqrt(x.astype(float)), 2e-3)


def test_unsigned_values_convert_first() -> None:
    x = integers(u32, 64, 1)
    root, sign = evaluate(lambda a: [vc.sqrt(a), vc.sign(a)], (u32, x))
    close(root, np.sqrt(x.astype(float)), 1e-6)
    same(sign, np.sign(x))


def test_choices_inside_conditions() -> None:
    """A choice binds weaker than `&&` and `||`, on either side of them."""
    cases = np.array(list(itertools.product((0, 1), repeat=3)), np.uint32)
    a, b, c = (cases[:, axis].copy() for axis in range(3))
    p, q, r = (column != 0 for column in (a, b, c))

    def combine(x: Any, y: Any, z: Any) -> list[Any]:
        choice = vc.select(y != 0, False, z != 0)
        found = [vc.logical_and(x != 0, choice), vc.logical_and(choice, x != 0)]
        found += [vc.logical_or(x != 0, choice), vc.logical_or(choice, x != 0)]
        return [vc.select(each, 1, 0) for each in found]

    expected = np.where(q, False, r)
    found = evaluate(combine, (u32, a), (u32, b), (u32, c))
    for result, truth in zip(found, [p & expected] * 2 + [p | expected] * 2, strict=True):
        same(result, truth.astype(np.uint32))


@pytest.mark.parametrize("kind", [vd.int32, vd.int64, vd.float32, vd.float64])
def test_magnitudes_of_literals(kind: Any) -> None:
    @vd.shader(1)
    def store(out: Buff[kind]) -> None:  # type: ignore[valid-type]
        for place, number in enumerate((-12, 12, 0, -(2**31))):
            out[place] = abs(vc.to_dtype(kind, number))

    out = vd.Buffer(4, kind)
    store(out)
    np.testing.assert_array_equal(out.read(0), np.abs(np.array([-12, 12, 0, -(2**31)], out.read(0).dtype)))
