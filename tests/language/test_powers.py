"""Powers and remainders of floats and integers, as those of Python and NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import Buff, Const, f16, f32, f64, hv2, i32, i64, iv2, u16, u32, u64, v2

from .running import (
    FLOATS,
    INTEGERS,
    Array,
    close,
    evaluate,
    filled,
    floats,
    host,
    integers,
    need,
    result_types,
    same,
    wrapped,
)

TOLERANCE = {f16: 1e-3, f32: 4e-6, f64: 1e-14}
WAYS = pytest.mark.parametrize("interpret", [False, True], ids=["device", "interpreter"])
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# ---- powers of integers --------------------------------------------------------------------------


def whole_power(base: int, exponent: int) -> int:
    """Return a power modulo 2**64; rounded towards zero, and 0 of 0, for negative exponents."""
    if exponent >= 0:
        return pow(base, exponent, 1 << 64)
    return base**-exponent if abs(base) == 1 else 0


@WAYS
@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_a_power_of_integers_is_an_integer(kind: DType, interpret: bool) -> None:
    need(kind)
    base, exponent = integers(kind, 210, 1), integers(kind, 210, 2)[::-1].copy()
    base[::3], exponent[::2] = wrapped(np.arange(70) - 35, kind), np.arange(105) % 70
    if dt.is_signed_dtype(kind):
        exponent[::5] = np.arange(42) - 21

    def forms(x: Any, n: Any) -> list[Any]:
        in_place = x.to_register()
        in_place **= n
        return [x**n, in_place, 3**n, x**1, x**2, x**3, x**70]

    assert result_types(forms, [kind, kind]) == [kind] * 7
    found = evaluate(forms, (kind, base), (kind, exponent), interpret=interpret)
    powers = [whole_power(int(x), int(n)) for x, n in zip(base, exponent, strict=True)]
    expected = [powers, powers, [whole_power(3, int(n)) for n in exponent]]
    expected += [[int(x) ** n for x in base] for n in (1, 2, 3, 70)]
    for values, exact in zip(found, expected, strict=True):
        same(values, wrapped(exact, kind))


def test_types_of_powers() -> None:
    def forms(a: Any, b: Any, c: Any, d: Any, e: Any) -> list[Any]:
        return [a**b, b**a, c**a, d**2, 2**d, d**b, (a > b) ** b, a**-2, a**2.0, vc.pow(a, 2), e**a, a**e]

    kinds = [i32, u32, u16, iv2, f16]
    expected = [i32, i32, i32, iv2, iv2, iv2, i32, f32, f32, f32, f16, f16]
    assert result_types(forms, kinds) == expected
    # a negative number needs a signed type
    assert result_types(lambda a, b, c, d, e: [(-3) ** b, (-3) ** c, (-3) ** a], kinds) == [i32] * 3
    found = evaluate(lambda v, n: [v**n, v**2, 2**v, (-3) ** n], (iv2, [[3, -2]]), (u32, [3]))
    assert [values.tolist() for values in found] == [[[27, -8]], [[9, 4]], [[8, 0]], [-27]]


def test_powers_of_integers_in_places_of_floats() -> None:
    # they were floats in vkdispatch 0.1.0
    @vd.shader("out.size")
    def squares(out: Buff[f32], a: Const[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        out[i] = (i - a) ** 2 + i**2

    out = vd.Buffer(4, f32)
    squares(out, 2)
    assert out.read(0).tolist() == [4, 2, 4, 10]
    with pytest.raises(ValueError, match="cannot store int32 in float16"), vc.shader_context() as context:
        halves, n = context.declare_input_arguments([Buff[f16], Const[i32]])
        halves[0] = n**2


# ---- powers of floats ----------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("kind", [*FLOATS, f16], ids=lambda kind: kind.name)
def test_whole_powers_of_negative_numbers(kind: DType, interpret: bool) -> None:
    need(kind)
    special = [-2, 3, -1, 0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, 0.75, -1.25]
    x, n = (side.ravel() for side in np.meshgrid(special, [0, 1, 2, 3, -1, -2, -3, 17, 18, -17, 5]))
    x, n = x.astype(host(kind)), n.astype(np.int32)
    constants = [1.0, 2.0, 3, 3.0, -1.0, -2, -3.0, 17, 17.0, 20.0, -20.0]

    def forms(a: Any, k: Any) -> list[Any]:
        in_place = a.to_register()
        in_place **= k
        return [a**k, in_place, vc.pow(a, k), (-1.5) ** k, *(a**number for number in constants)]

    found = evaluate(forms, (kind, x), (i32, n), interpret=interpret)
    wide = x.astype(float)
    expected = [wide**n] * 3 + [(-1.5) ** n] + [wide**number for number in constants]
    for values, exact, what in zip(found, expected, ["n"] * 4 + constants, strict=True):
        exact = exact.astype(values.dtype)
        rtol = max(TOLERANCE[kind], np.finfo(values.dtype).eps)
        close(values, exact, rtol, 1e-38 if kind is f32 else 0.0, str(what))
        same(np.signbit(values)[~np.isnan(exact)], np.signbit(exact)[~np.isnan(exact)], str(what))


@WAYS
def test_the_sign_of_a_large_odd_power(interpret: bool) -> None:
    n = np.array([2**24 + 1, 2**24 + 2, 2**31 - 1, -(2**31) + 1], np.int32)
    (found,) = evaluate(lambda x, k: x**k, (f32, [-1.0] * 4), (i32, n), interpret=interpret)
    assert found.tolist() == [-1, 1, -1, -1]


def test_small_powers_of_whole_numbers_are_exact() -> None:
    x, n = (side.ravel().astype(np.int32) for side in np.meshgrid(np.arange(-9, 10), np.arange(8)))
    found = evaluate(lambda a, k: [a.to_dtype(f32) ** k, 2.0**k, a**2.0], (i32, x), (i32, n))
    exact = [x.astype(float) ** n, 2.0**n, x.astype(float) ** 2]
    for values, expected in zip(found, exact, strict=True):
        same(values, np.where(np.abs(expected) < 2**24, expected, values))


@WAYS
def test_a_power_of_one_half_is_a_square_root(interpret: bool) -> None:
    i = np.arange(1500)
    root, whole, inverse = evaluate(
        lambda a: [(a * a) ** 0.5, ((a * a) ** 0.5).to_dtype(i32), (a * a) ** -0.5],
        (i32, i), interpret=interpret,
    )  # fmt: skip
    same(root, i)
    same(whole, i)
    close(inverse[1:], 1 / i[1:], 4e-7)
    assert inverse[0] == math.inf


@pytest.mark.parametrize("exponent", [1, 2, 3, 4, 5, 7, 16, 64, -1, -2, -3, -4])
@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
def test_whole_powers(kind: DType, exponent: int) -> None:
    need(kind)
    x = np.concatenate([floats(kind, 100, 1, -3, -0.5), floats(kind, 100, 2, 0.5, 3)])

    def forms(a: Any) -> list[Any]:
        in_place = a.to_register()
        in_place **= exponent
        return [a**exponent, (a + 0) ** exponent, in_place]

    for actual in evaluate(forms, (kind, x)):
        assert actual.dtype == host(kind)
        close(actual, x.astype(np.float64) ** exponent, 5 * TOLERANCE[kind])


@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
def test_other_powers(kind: DType) -> None:
    need(kind)
    x, y = floats(kind, 257, 1, 0.1, 8), floats(kind, 257, 2, -3, 3)

    def forms(a: Any, b: Any) -> list[Any]:
        in_place, once = a.to_register(), a.to_register()
        in_place **= b
        once **= 0
        return [a**b, a**0.5, a**1.75, 2**b, 0.5**b, in_place, once, a**17]

    assert result_types(forms, [kind, kind]) == [kind] * 8
    wide, power = x.astype(float), y.astype(float)
    expected = [wide**power, wide**0.5, wide**1.75, 2**power, 0.5**power, wide**power, wide**0, wide**17]
    for actual, values in zip(evaluate(forms, (kind, x), (kind, y)), expected, strict=True):
        # that of a device goes through exp2 and log2
        close(actual, values, 2e-5 if kind is f32 else 1e-14)


def test_power_of_zero_is_a_number() -> None:
    def rule(a: Any) -> Any:
        assert a**0 == 1 and isinstance(a**0, int)
        return a + a**0 + vc.pow(a, 0.0)

    same(evaluate(rule, (f32, [1.0, -2.0, 0.0]))[0], [3, 0, 2])


# ---- remainders ----------------------------------------------------------------------------------


def extremes(kind: DType, count: int = 3000) -> tuple[Array, Array]:
    """Return pairs of special numbers, of numbers of all magnitudes, and of ordinary ones."""
    limits, word = np.finfo(host(kind)), np.dtype(f"i{host(kind).itemsize}")
    draw = np.random.default_rng(3)
    special = np.array(
        [0, 1, 2, 3, 0.5, 7, 0.1, 1e4, limits.max, limits.tiny, limits.smallest_subnormal, np.inf], host(kind)
    )
    a, b = (side.ravel() for side in np.meshgrid(*[np.concatenate([special, -special, [np.nan]])] * 2))
    largest = int(np.array(limits.max, host(kind)).view(word))
    x, y = (
        draw.integers(0, largest, count).astype(word).view(host(kind)) * draw.choice([-1, 1], count)
        for _ in range(2)
    )
    c, d = draw.uniform(-50, 50, count), draw.uniform(-7, 7, count)
    return (np.concatenate([a, x, c]).astype(host(kind)), np.concatenate([b, y, d]).astype(host(kind)))


def identical(found: Array, expected: Array, what: str) -> None:
    """Fail unless all bits are the same, but for those of NaN."""
    assert found.dtype == expected.dtype
    known = ~np.isnan(expected)
    same(np.isnan(found), ~known, what)
    word = f"u{found.dtype.itemsize}"
    same(found[known].view(word), expected[known].view(word), what)


@WAYS
@pytest.mark.parametrize("kind", [f16, f32, f64], ids=lambda kind: kind.name)
def test_remainders_are_those_of_numpy(kind: DType, interpret: bool) -> None:
    need(kind)
    x, y = extremes(kind)
    if not interpret and not vd.get_context().device_infos[0].is_llvmpipe() and kind is f32:
        # other devices flush what is below the least normal number, before and after
        kept = (np.abs(x) > 1e-30) & (np.abs(y) > 1e-30)
        x, y = x[kept], y[kept]
    found = evaluate(
        lambda a, b: [vc.fmod(a, b), vc.floor_mod(a, b), vc.copysign(a, b), vc.floor_divide(a, b)],
        (kind, x), (kind, y), interpret=interpret,
    )  # fmt: skip
    for values, rule in zip(found, (np.fmod, np.mod, np.copysign), strict=False):
        identical(values, rule(x, y), rule.__name__)
    # quotients are the device's, which may be off in the last place
    close(found[3], np.floor_divide(x, y), TOLERANCE[kind])


@pytest.mark.parametrize("kind", [v2, hv2], ids=lambda kind: kind.name)
def test_remainders_of_vectors_and_numbers(kind: DType) -> None:
    x = np.array([[7.5, -7.5], [0.25, -3], [1e4, -0.0]], host(kind))
    y = np.array([[2, 2], [-0.75, 7], [0.7, -3]], host(kind))
    found = evaluate(
        lambda a, b: [vc.fmod(a, b), vc.floor_mod(a, b), vc.copysign(a, b), vc.fmod(a, 3),
                      vc.floor_mod(-2, b), vc.copysign(2, a), vc.copysign(b, a.y), vc.fmod(a.x, b)],
        (kind, x), (kind, y),
    )  # fmt: skip
    two = host(kind).type(2)
    expected = [np.fmod(x, y), np.mod(x, y), np.copysign(x, y), np.fmod(x, two + 1), np.mod(-two, y)]
    expected += [np.copysign(two, x), np.copysign(y, x[:, 1:]), np.fmod(x[:, :1], y)]
    for place, (values, exact) in enumerate(zip(found, expected, strict=True)):
        identical(values, exact, str(place))


def test_remainders_of_integers_are_floats_and_of_numbers_numbers() -> None:
    assert result_types(lambda a, b: [vc.fmod(a, b), vc.copysign(a, -1)], [i32, u64]) == [f64, f32]
    assert (vc.fmod(-7.5, 2), vc.copysign(2, -0.0)) == (-1.5, -2.0)
    assert math.isnan(vc.fmod(1, 0)) and math.isnan(vc.fmod(math.inf, 1))
    with vc.shader_context() as context:
        z, x = context.declare_input_arguments([Const[vd.complex64], Const[f32]])
        with pytest.raises(TypeError, match="fmod: expected integers or real numbers, got complex64"):
            vc.fmod(x, z)
        with pytest.raises(ValueError, match="copysign: not defined for complex64"):
            vc.copysign(z, 1)


def test_functions_of_math_in_kernels() -> None:
    @vd.shader("x.shape[0]")
    def kernel(out: Buff[f32], x: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        fraction, whole = math.modf(x[i])
        significand, exponent = math.frexp(x[i])
        values = (
            math.fmod(x[i], 2.5), math.fmod(7, x[i]), math.copysign(x[i], -1.0), math.copysign(2, x[i]),
            math.log(abs(x[i])), math.log(abs(x[i]), 2), math.log2(abs(x[i])), math.log10(abs(x[i])),
            math.log1p(abs(x[i])), math.expm1(x[i]), math.cbrt(x[i]), math.hypot(x[i], 3), math.erf(x[i]),
            math.atan2(x[i], 2.0), math.ldexp(x[i], 3), fraction, whole, significand, float(exponent),
            1.0 if math.isfinite(x[i]) else 0.0, math.lgamma(abs(x[i]) + 0.5), math.fmod(7.5, 2),
        )  # fmt: skip
        for k, value in enumerate(values):
            out[i, k] = value

    x = np.array([-3.75, 0.5, 6.25], np.float32)
    out = vd.Buffer((3, 22), f32)
    kernel(out, vd.asbuffer(x))
    expected = [
        [
            math.fmod(v, 2.5), math.fmod(7, v), math.copysign(v, -1.0), math.copysign(2, v),
            math.log(abs(v)), math.log(abs(v), 2), math.log2(abs(v)), math.log10(abs(v)), math.log1p(abs(v)),
            math.expm1(v), math.cbrt(v), math.hypot(v, 3), math.erf(v), math.atan2(v, 2.0), math.ldexp(v, 3),
            *math.modf(v), *math.frexp(v), 1.0, math.lgamma(abs(v) + 0.5), 1.5,
        ]
        for v in x.tolist()
    ]  # fmt: skip
    close(out.read(0), expected, 2e-5, 1e-6)


# ---- the table of the documentation --------------------------------------------------------------


@WAYS
def test_what_signs_and_literals_do(interpret: bool) -> None:
    unsigned = np.array([7, 0xFFFFFFFF, 0x80000000, 5], np.uint32)
    signed = np.array([2, -2, 3, -1], np.int32)

    def forms(u: Any, i: Any) -> list[Any]:
        return [
            vc.min(u, i), vc.max(u, i), vc.clip(u, i, 5), u // i, vc.floor_mod(u, i),
            u < i, u <= i, u > i, u >= i, u == i, u != i, vc.min(u.to_dtype(i64), i), (u & 7) % (i & 3 | 1),
        ]  # fmt: skip

    expected_types = [i32] * 5 + [vd.bool_] * 6 + [i64, i32]
    assert result_types(forms, [u32, i32]) == expected_types
    found = evaluate(forms, (u32, unsigned), (i32, signed), interpret=interpret)
    as_signed, wide = unsigned.astype(np.int32), unsigned.astype(np.int64)
    same(found[0], np.minimum(as_signed, signed))
    same(found[1], np.maximum(as_signed, signed))
    same(found[2][:3], np.minimum(np.maximum(as_signed, signed), 5)[:3])
    same(found[3], np.trunc(as_signed / signed.astype(float)))
    same(found[4], as_signed.astype(np.int64) % signed)
    rules = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)
    for values, rule in zip(found[5:11], rules, strict=True):
        same(values.astype(bool), rule(wide, signed.astype(np.int64)))
    same(found[11], np.minimum(wide, signed))
    same(found[12], (unsigned & 7) % (signed & 3 | 1))


@WAYS
def test_limits_of_nan_are_nan_or_the_other(interpret: bool) -> None:
    x = np.array([np.nan, 1, -0.0], np.float32)
    y = np.array([1, np.nan, 0], np.float32)
    found = evaluate(
        lambda a, b: [vc.min(a, b), vc.max(a, b), vc.clip(a, b, b), vc.sign(a), vc.min(a, a), a < b, a != a],
        (f32, x), (f32, y), interpret=interpret,
    )  # fmt: skip
    for values in found[:3]:
        assert all(np.isnan(value) or value == 1 for value in values[:2]) and values[2] == 0
    assert np.isnan(found[3][0]) or found[3][0] == 0
    assert found[5].tolist() == [0, 0, 0] and found[6].tolist() == [1, 0, 0]


def test_choices_of_two_literals() -> None:
    with vc.shader_context() as context:
        (c,) = context.declare_input_arguments([Const[i32]])
        pairs = [(1, 0), (1, -1), (1, 2**31), (2**31, -1), (1, 0.5), (2**32, 0)]
        found = [vc.select(c > 0, a, b).var_type for a, b in pairs]
        assert found == [u32, i32, u32, i64, f32, u64]

    with pytest.warns(vd.KernelWarning, match="wraps around to large numbers"):

        @vd.shader(1)
        def wraps(halves: Buff[f32], c: Const[i32]) -> None:
            halves[0] = (vc.select(c > 0, 1, 0) - 2) * 0.5

    @vd.shader("out.size")
    def chosen(out: Buff[i32], halves: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        step = 1 if i > 1 else 0
        out[i] = step - 2
        halves[i] = (step - 2) * 0.5

    out, halves = filled(4, i32), filled(4, f32)
    chosen(out, halves)
    assert out.read(0).tolist() == [-2, -2, -1, -1] and halves.read(0).tolist() == [-1, -1, -0.5, -0.5]
