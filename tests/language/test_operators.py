"""Operators of scalars on the device: every operator, form and type, with the edges of each type."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
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
    f16,
    f32,
    f64,
    i16,
    i32,
    i64,
    iv3,
    u16,
    u32,
    u64,
    uv3,
)

from .running import (
    FLOATS,
    INTEGERS,
    SCALARS,
    SIZES,
    bits,
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
    truncated,
    wrapped,
)

Rule = Callable[[Any, Any], Any]

WRAPPING: dict[str, Rule] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
IN_PLACE: dict[str, Rule] = {
    "+": operator.iadd,
    "-": operator.isub,
    "*": operator.imul,
    "/": operator.itruediv,
    "//": operator.ifloordiv,
    "%": operator.imod,
    "**": operator.ipow,
    "<<": operator.ilshift,
    ">>": operator.irshift,
    "&": operator.iand,
    "|": operator.ior,
    "^": operator.ixor,
}
COMPARISONS: dict[str, Rule] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
TOLERANCE = {f16: 2e-3, f32: 1e-6, f64: 1e-14}


def forms_of(symbol: str, rule: Rule, numbers: Sequence[int | float]) -> Callable[[Any, Any], list[Any]]:
    """x op y and x op= y; then for each number x op n, n op y and x op= n."""
    in_place = IN_PLACE[symbol]

    def forms(x: Any, y: Any) -> list[Any]:
        changed = x.to_register()
        assert in_place(changed, y) is changed
        results = [rule(x, y), changed]
        for number in numbers:
            changed = x.to_register()
            changed = in_place(changed, number)
            results += [rule(x, number), rule(number, y), changed]
        return results

    return forms


def names_of(symbol: str, numbers: Sequence[int | float]) -> list[str]:
    """What the forms look like, for messages."""
    names = [f"x {symbol} y", f"x {symbol}= y"]
    for number in numbers:
        names += [f"x {symbol} {number}", f"{number} {symbol} y", f"x {symbol}= {number}"]
    return names


def check_integers(
    symbol: str, kind: DType, rule: Rule, exact: Rule, x: Any, y: Any, numbers: Sequence[int]
) -> None:
    """Compare all forms with `exact`, a function of Python ints."""
    forms = forms_of(symbol, rule, numbers)
    assert set(result_types(forms, [kind, kind])) == {kind}
    by_variable = [exact(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    expected = [by_variable, by_variable]
    for number in numbers:
        by_number = [exact(int(a), number) for a in x]
        expected += [by_number, [exact(number, int(b)) for b in y], by_number]
    found = evaluate(forms, (kind, x), (kind, y))
    for name, actual, values in zip(names_of(symbol, numbers), found, expected, strict=True):
        same(actual, wrapped(values, kind), name)


# -- integers


@pytest.mark.parametrize("symbol", WRAPPING)
@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_wrapping_operators(kind: DType, symbol: str) -> None:
    need(kind)
    x, y = integers(kind, 257, 1), integers(kind, 257, 2)[::-1]
    check_integers(symbol, kind, WRAPPING[symbol], WRAPPING[symbol], x, y, (0, 1, 3, 8, 100))


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_floor_division_truncates(kind: DType) -> None:
    need(kind)
    x, y = integers(kind, 257, 1), integers(kind, 257, 2)[::-1].copy()
    # neither division by zero nor the one quotient that does not fit
    y[(y == 0) | (y == wrapped([-1], kind)[0])] = 5
    check_integers("//", kind, operator.floordiv, truncated, x, y, (3, 7, 1000))


@pytest.mark.parametrize("number", [1, 2, 8, 1024])
@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_floor_division_by_powers_of_two_floors(kind: DType, number: int) -> None:
    need(kind)
    x = integers(kind, 257, 1)

    def forms(a: Any) -> list[Any]:
        in_place = a.to_register()
        in_place //= number
        return [a // number, in_place]

    for actual in evaluate(forms, (kind, x)):
        same(actual, x // host(kind).type(number))


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_quotients_of_powers_of_two(kind: DType) -> None:
    need(kind)
    y = integers(kind, 257, 1)
    y[y == 0] = 5
    for actual, number in zip(evaluate(lambda a: [8 // a, 1 // a], (kind, y)), (8, 1), strict=True):
        same(actual, wrapped([truncated(number, int(b)) for b in y], kind))


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_modulo_of_nonnegative_values(kind: DType) -> None:
    need(kind)
    half = np.iinfo(host(kind)).max
    x = integers(kind, 257, 1) & half
    y = np.maximum(integers(kind, 257, 2)[::-1] & half, 1)
    check_integers("%", kind, operator.mod, operator.mod, x, y, (1, 3, 8, 1000))


@pytest.mark.parametrize("symbol", ["<<", ">>"])
@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_shifts(kind: DType, symbol: str) -> None:
    need(kind)
    rule = operator.lshift if symbol == "<<" else operator.rshift
    x = integers(kind, 257, 1)
    y = (np.arange(257) % bits(kind)).astype(host(kind))
    check_integers(symbol, kind, rule, rule, x, y, (0, 1, 5, bits(kind) - 1))


@pytest.mark.parametrize("interpret", [False, True], ids=["device", "interpreter"])
@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_a_shift_has_the_type_of_its_left_operand(kind: DType, interpret: bool) -> None:
    need(kind)
    x = integers(kind, 257, 1)
    amounts = np.arange(257) % bits(kind)

    def forms(a: Any, *counts: Any) -> list[Any]:
        left, right = a.to_register(), a.to_register()
        left <<= counts[0]
        right >>= counts[1]
        return [left, right, *(a << count for count in counts), *(a >> count for count in counts)]

    inputs = [(kind, x), *((other, amounts.astype(host(other))) for other in INTEGERS)]
    assert result_types(forms, [kind, *INTEGERS]) == [kind] * (2 + 2 * len(INTEGERS))
    found = evaluate(forms, *inputs, interpret=interpret)
    up = wrapped([int(value) << int(n) for value, n in zip(x, amounts, strict=True)], kind)
    down = [int(value) >> int(n) for value, n in zip(x, amounts, strict=True)]
    same(found[0], up)
    same(found[1], down)
    for other, left, right in zip(INTEGERS, found[2:8], found[8:], strict=True):
        same(left, up, other.name)
        same(right, down, other.name)


def test_shifts_of_vectors_and_by_what_python_and_loops_count() -> None:
    x = np.array([[0xFFFFFFFF, 0x80000000, 5], [7, 1 << 31, 0xDEADBEEF]], np.uint32)
    n = np.array([[31, 28, 1], [2, 0, 16]], np.int32)
    each, one, across, bit = evaluate(
        lambda a, b: [a >> b, a >> b.y, a.x >> b, a >> (b.x > 4)], (uv3, x), (iv3, n)
    )
    assert each.dtype == one.dtype == across.dtype == np.uint32
    same(each, x >> n.astype(np.uint32))
    same(one, x >> n[:, 1:2].astype(np.uint32))
    same(across, x[:, :1] >> n.astype(np.uint32))
    same(bit, x >> (n[:, :1] > 4).astype(np.uint32))

    @vd.shader("x.size")
    def bytes_of(out: Buff[u32], x: Buff[u32], count: Const[i32], all_bits: Const[u32]) -> None:
        i = vc.global_invocation_id().x
        for k in range(count):
            out[i * 8 + k] = x[i] >> (24 - 8 * k)
            out[i * 8 + 4 + k] = all_bits >> 8 * k | (1 << k).to_dtype(u32)

    words = np.array([0x80000001, 0xFEDCBA98], np.uint32)
    out = filled(16, u32)
    bytes_of(out, buffer_of(u32, words), 4, 0xFFFFFFFF)
    places = np.arange(4, dtype=np.uint32)
    masks = np.uint32(0xFFFFFFFF) >> 8 * places | np.uint32(1) << places
    same(out.read(0).reshape(2, 8), [[*(int(word) >> 24 - 8 * places.astype(int)), *masks] for word in words])


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_unary_operators_of_integers(kind: DType) -> None:
    need(kind)
    x = integers(kind, 257)
    negative, inverted, plus, absolute, twice = evaluate(lambda a: [-a, ~a, +a, abs(a), -(0 - a)], (kind, x))
    same(negative, wrapped([-int(a) for a in x], kind))
    same(inverted, wrapped([~int(a) for a in x], kind))
    same(plus, x)
    # the magnitude of the lowest number does not fit and stays as it is
    same(absolute, wrapped([abs(int(a)) for a in x], kind))
    same(twice, x)


@pytest.mark.parametrize("kind", [i32, u32, i64, u64], ids=lambda kind: kind.name)
def test_wide_literals(kind: DType) -> None:
    need(kind)
    info = np.iinfo(host(kind))
    x = integers(kind, 64)
    for number in (info.min, info.max, info.max - 1, info.max // 2 + 1):
        found = evaluate(lambda a, n=int(number): [a + n, n - a, a & n, a ^ n], (kind, x))
        expected = [
            [int(a) + int(number) for a in x],
            [int(number) - int(a) for a in x],
            [int(a) & int(number) for a in x],
            [int(a) ^ int(number) for a in x],
        ]
        for actual, values in zip(found, expected, strict=True):
            assert actual.dtype == host(kind)
            same(actual, wrapped(values, kind))


@pytest.mark.parametrize("count", SIZES)
def test_every_size(count: int) -> None:
    x, y = integers(i32, count, 3), integers(i32, count, 4)
    total, product = evaluate(lambda a, b: [a + b, a * b], (i32, x), (i32, y))
    same(total, x + y)
    same(product, x * y)


# -- floats


def float_operands(kind: DType) -> tuple[Any, Any]:
    edges = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5]
    pairs = np.array(list(itertools.product(edges, edges)))
    x = np.concatenate([pairs[:, 0], floats(kind, 193, 1, -1e3, 1e3)]).astype(host(kind))
    y = np.concatenate([pairs[:, 1], floats(kind, 193, 2, -1e3, 1e3)]).astype(host(kind))
    return x, y


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/"])
@pytest.mark.parametrize("kind", [f16, *FLOATS], ids=lambda kind: kind.name)
def test_arithmetic_of_floats(kind: DType, symbol: str) -> None:
    need(kind)
    rule = {**WRAPPING, "/": operator.truediv}[symbol]
    x, y = float_operands(kind)
    numbers = (2, 0.5, -3.25, 1, 10)
    forms = forms_of(symbol, rule, numbers)
    assert set(result_types(forms, [kind, kind])) == {kind}
    with np.errstate(all="ignore"):
        expected = [rule(x, y)] * 2
        for number in numbers:
            literal = host(kind).type(number)
            expected += [rule(x, literal), rule(literal, y), rule(x, literal)]
    found = evaluate(forms, (kind, x), (kind, y))
    for name, actual, values in zip(names_of(symbol, numbers), found, expected, strict=True):
        close(actual, values, TOLERANCE[kind], what=name)


@pytest.mark.parametrize("kind", [f16, *FLOATS], ids=lambda kind: kind.name)
def test_unary_operators_of_floats(kind: DType) -> None:
    need(kind)
    x, _ = float_operands(kind)
    negative, plus, absolute = evaluate(lambda a: [-a, +a, abs(a)], (kind, x))
    same(negative, -x)
    same(np.signbit(negative)[~np.isnan(x)], np.signbit(-x)[~np.isnan(x)])
    same(plus, x)
    same(absolute, np.abs(x))


def test_double_literals_keep_their_digits() -> None:
    need(f64)
    x = floats(f64, 64)
    third, tenth = evaluate(lambda a: [a + 1 / 3, a * 0.1], (f64, x))
    close(third, x + 1 / 3, 1e-15)
    close(tenth, x * 0.1, 1e-15)


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_true_division_of_integers(kind: DType) -> None:
    real = dt.make_floating_dtype(kind)
    need(kind, real)
    x = np.clip(integers(kind, 257, 1), -2000 if dt.is_signed_dtype(kind) else 0, 2000)
    y = np.clip(integers(kind, 257, 2)[::-1], 1, 2000)

    def forms(a: Any, b: Any) -> list[Any]:
        return [a / b, a / 4, 7 / b, a / 0.5]

    assert result_types(forms, [kind, kind])[:3] == [real] * 3
    found = evaluate(forms, (kind, x), (kind, y))
    for actual, expected in zip(found, (x / y, x / 4, 7 / y, x / 0.5), strict=True):
        close(actual, expected, TOLERANCE[real])


# -- comparisons


@pytest.mark.parametrize("kind", [f16, *SCALARS], ids=lambda kind: kind.name)
def test_comparisons(kind: DType) -> None:
    need(kind)
    if dt.is_float_dtype(kind):
        x, y = float_operands(kind)
    else:
        x, y = integers(kind, 257, 1), integers(kind, 257, 1)
        y[::3] = np.roll(y, 1)[::3]
    numbers, rules = (0, 1, 7), list(COMPARISONS.values())

    def forms(a: Any, b: Any) -> list[Any]:
        by_number = [(rule(a, number), rule(number, b)) for rule in rules for number in numbers]
        return [rule(a, b) for rule in rules] + [result for pair in by_number for result in pair]

    literals = [host(kind).type(number) for number in numbers]
    pairs = [(rule(x, literal), rule(literal, y)) for rule in rules for literal in literals]
    expected = [rule(x, y) for rule in rules] + [values for pair in pairs for values in pair]
    for place, (actual, values) in enumerate(
        zip(evaluate(forms, (kind, x), (kind, y)), expected, strict=True)
    ):
        same(actual, values.astype(np.int32), f"result {place}")


def test_truth_values_as_numbers_and_bits() -> None:
    x, y = integers(i32, 257, 1), integers(i32, 257, 2)

    def forms(a: Any, b: Any) -> list[Any]:
        low, positive = a < b, a > 0
        flag = vc.new_int_register()
        flag[:] = low
        as_float = vc.new_float_register()
        as_float[:] = positive
        return [
            flag, as_float, low & positive, low | positive, low ^ positive, ~low, low == positive,
            low.to_dtype(u32), low.to_register(), positive + low, positive * a,
        ]  # fmt: skip

    low, positive = x < y, x > 0
    expected = [
        low, positive, low & positive, low | positive, low ^ positive, ~low, low == positive, low, low,
        positive.astype(int) + low, positive * x,
    ]  # fmt: skip
    for actual, values in zip(evaluate(forms, (i32, x), (i32, y)), expected, strict=True):
        same(actual, values)


# -- mixed types


def small(kind: DType, seed: int) -> Any:
    """Values that every type but the unsigned ones holds exactly, and whose products float16 holds."""
    drawn = np.random.default_rng(seed).integers(-12, 12, 64)
    return (drawn if dt.is_float_dtype(kind) or dt.is_signed_dtype(kind) else np.abs(drawn)).astype(
        host(kind)
    )


@pytest.mark.parametrize(
    ("a", "b"), list(itertools.product([f16, *SCALARS], repeat=2)), ids=lambda kind: kind.name
)
def test_mixed_types_are_promoted(a: DType, b: DType) -> None:
    kind = dt.cross_type(a, b)
    real = dt.make_floating_dtype(kind)
    need(a, b, kind, real)
    x, y = small(a, 1), small(b, 2)
    y[y == 0] = 3

    def forms(left: Any, right: Any) -> list[Any]:
        results = [left + right, left - right, left * right, left / right, left < right, left == right]
        if dt.is_integer_dtype(kind):
            results += [left & right, left | right, left ^ right]
        return results

    types = result_types(forms, [a, b])
    assert types == [kind, kind, kind, real, dt.bool_, dt.bool_, *[kind] * (len(types) - 6)]
    found = evaluate(forms, (a, x), (b, y))
    left, right = x.astype(host(kind)), y.astype(host(kind))
    for actual, rule in zip(found, (operator.add, operator.sub, operator.mul), strict=False):
        same(actual, rule(left, right))
    close(found[3], x.astype(host(real)) / y.astype(host(real)), TOLERANCE[real])
    as_floats = dt.is_float_dtype(kind)
    same(found[4], left < right if as_floats else [int(p) < int(q) for p, q in zip(x, y, strict=True)])
    same(found[5], left == right if as_floats else [int(p) == int(q) for p, q in zip(x, y, strict=True)])
    for actual, rule in zip(found[6:], (operator.and_, operator.or_, operator.xor), strict=False):
        same(actual, rule(left, right))


@pytest.mark.parametrize(("a", "b"), list(itertools.permutations(INTEGERS, 2)), ids=lambda kind: kind.name)
def test_mixed_integers_convert_bits(a: DType, b: DType) -> None:
    kind = dt.cross_type(a, b)
    need(a, b, kind)
    x, y = integers(a, 64, 1), integers(b, 64, 2)

    def forms(left: Any, right: Any) -> list[Any]:
        return [left + right, left * right, left ^ right]

    assert result_types(forms, [a, b]) == [kind] * 3
    found = evaluate(forms, (a, x), (b, y))
    left, right = wrapped(x, kind), wrapped(y, kind)
    same(found[0], wrapped([int(p) + int(q) for p, q in zip(left, right, strict=True)], kind))
    same(found[1], wrapped([int(p) * int(q) for p, q in zip(left, right, strict=True)], kind))
    same(found[2], wrapped([int(p) ^ int(q) for p, q in zip(left, right, strict=True)], kind))


def test_in_place_with_lower_types() -> None:
    x, y = floats(f32, 64), integers(i32, 64) % 100
    unsigned = integers(u32, 64, 5)

    def forms(a: Any, b: Any, c: Any) -> list[Any]:
        a += b
        a -= b * 2
        a /= 2
        b += c
        b <<= 1
        return [a, b]

    total, shifted = evaluate(forms, (f32, x), (i32, y), (u32, unsigned))
    close(total, (x - y.astype(np.float32)) / 2, 1e-5, 1e-5)
    same(shifted, wrapped([(int(p) + int(q)) * 2 for p, q in zip(y, unsigned, strict=True)], i32))


# -- elements of buffers


@pytest.mark.parametrize("kind", SCALARS, ids=lambda kind: kind.name)
def test_elements_of_buffers_change_in_place(kind: DType) -> None:
    need(kind)

    @vd.shader("out.size")
    def update(out: Buff[kind], other: Buff[kind]) -> None:
        i = vc.global_invocation_id().x
        out[i] += other[i]
        out[i] *= 3
        out[i] -= 1
        out[i] = out[i] + out[i]

    x, y = np.arange(100).astype(host(kind)), np.arange(100)[::-1].astype(host(kind)) + 1
    out = buffer_of(kind, x)
    update(out, buffer_of(kind, y))
    same(out.read(0), ((x + y) * 3 - 1) * 2)


def test_value_used_twice_is_the_same() -> None:
    @vd.shader("out.size")
    def body(out: Buff[i32], log: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        value = out[i] + 1
        copied = value.to_register()
        out[i] = value
        log[i * 2] = value
        log[i * 2 + 1] = copied

    out, log = filled(7, i32, 10), filled(14, i32)
    body(out, log)
    same(out.read(0), 11)
    same(log.read(0).reshape(7, 2), [[11, 11]] * 7)


@pytest.mark.parametrize("kind", [i16, u16], ids=lambda kind: kind.name)
def test_python_numbers_adopt_short_types(kind: DType) -> None:
    need(kind)
    x = integers(kind, 64)

    def forms(a: Any) -> list[Any]:
        a += 1
        return [a, a * 2, 5 - a, a // 2]

    assert result_types(forms, [kind]) == [kind] * 4
    raised = [int(value) for value in wrapped([int(a) + 1 for a in x], kind)]
    expected = [raised, [a * 2 for a in raised], [5 - a for a in raised], [a // 2 for a in raised]]
    for actual, values in zip(evaluate(forms, (kind, x)), expected, strict=True):
        same(actual, wrapped(values, kind))


def test_numpy_numbers_on_either_side() -> None:
    x = integers(i32, 64)
    found = evaluate(
        lambda a: [a + np.int64(3), np.int16(3) + a, np.float64(1.5) * (a & 15), (a & 15) - np.float32(0.5)],
        (i32, x),
    )
    same(found[0], wrapped([int(a) + 3 for a in x], i32))
    same(found[1], found[0])
    same(found[2], (x & 15) * np.float32(1.5))
    same(found[3], (x & 15) - np.float32(0.5))
