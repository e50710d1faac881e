"""Registers and conversions between types on the device."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import Buff, Const, f16, f32, f64, i16, i32, i64, u16, u32, u64

from .running import (
    INTEGERS,
    SCALARS,
    bits,
    buffer_of,
    close,
    evaluate,
    filled,
    host,
    integers,
    need,
    same,
    wrapped,
)

TO: dict[DType, tuple[Any, Any]] = {
    f16: (vc.to_float16, vc.new_float16_register),
    f32: (vc.to_float, vc.new_float_register),
    f64: (vc.to_float64, vc.new_float64_register),
    i16: (vc.to_int16, vc.new_int16_register),
    i32: (vc.to_int, vc.new_int_register),
    i64: (vc.to_int64, vc.new_int64_register),
    u16: (vc.to_uint16, vc.new_uint16_register),
    u32: (vc.to_uint, vc.new_uint_register),
    u64: (vc.to_uint64, vc.new_uint64_register),
}
TWO = {f16: dt.hvec2, f32: dt.vec2}
ALL: list[DType] = [f16, *SCALARS]


def conversions(kind: DType) -> Any:
    to_kind, new_kind = TO[kind]

    def forms(a: Any) -> list[Any]:
        register = vc.new_register(kind)
        register[:] = a.to_dtype(kind)
        return [a.to_dtype(kind), to_kind(a), vc.to_dtype(kind, a), new_kind(a), register]

    return forms


@pytest.mark.parametrize(("a", "b"), list(itertools.product(INTEGERS, INTEGERS)), ids=lambda kind: kind.name)
def test_integer_conversions_keep_bits(a: DType, b: DType) -> None:
    need(a, b)
    x = integers(a, 257, 1)
    for actual in evaluate(conversions(b), (a, x)):
        assert actual.dtype == host(b)
        same(actual, wrapped(x, b))


@pytest.mark.parametrize("real", [f16, f32, f64], ids=lambda kind: kind.name)
@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_floats_truncate(kind: DType, real: DType) -> None:
    need(kind, real)
    x = np.concatenate([[0.0, 0.5, 0.99, 1.0, 1.5, 2.5, 1000.75], np.linspace(0, 500, 90)])
    if dt.is_signed_dtype(kind):
        x = np.concatenate([x, -x])
    x = x.astype(host(real))
    for actual in evaluate(conversions(kind), (real, x)):
        same(actual, np.trunc(x.astype(float)))


@pytest.mark.parametrize("real", [f16, f32, f64], ids=lambda kind: kind.name)
@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_integers_become_floats(kind: DType, real: DType) -> None:
    need(kind, real)
    limit = 60000 if real is f16 else 2**63
    x = np.array([value for value in integers(kind, 257, 1) if abs(int(value)) < limit], host(kind))
    for actual in evaluate(conversions(real), (kind, x)):
        assert actual.dtype == host(real)
        close(actual, x.astype(float), {f16: 1e-3, f32: 1.2e-7, f64: 2.3e-16}[real])


def test_floats_of_other_widths() -> None:
    need(f16, f64)
    x = np.linspace(-100, 100, 257)
    half, single = evaluate(lambda a: [a.to_dtype(f16), a.to_dtype(f32)], (f64, x))
    close(half, x, 1e-3)
    close(single, x.astype(np.float32), 1.2e-7)
    (wide,) = evaluate(lambda a: a.to_dtype(f64), (f32, x.astype(np.float32)))
    same(wide, x.astype(np.float32))


@pytest.mark.parametrize("kind", [*INTEGERS, f64, f32], ids=lambda kind: kind.name)
@pytest.mark.parametrize("middle", [f16, f32, f64], ids=lambda kind: kind.name)
def test_conversions_there_and_back_round(kind: DType, middle: DType) -> None:
    need(kind, middle)
    x = rounded_numbers(kind)
    limit = 0.99 * 2.0 ** (min(bits(kind), 63) - 1)
    x = x[np.abs(x.astype(np.float64)) < (min(limit, 6e4) if middle is f16 else limit)]
    named = lambda a: a.to_dtype(middle).to_register().to_dtype(kind)  # noqa: E731
    for rule in (lambda a: a.to_dtype(middle).to_dtype(kind), named):
        (actual,) = evaluate(rule, (kind, x))
        same(actual, x.astype(host(middle)).astype(host(kind)))


@pytest.mark.parametrize("kind", [i64, u64, f64], ids=lambda kind: kind.name)
@pytest.mark.parametrize("narrow", [f16, f32], ids=lambda kind: kind.name)
def test_conversions_by_way_of_float64_round_twice(kind: DType, narrow: DType) -> None:
    need(kind, narrow, f64)
    x = rounded_numbers(kind)
    with np.errstate(over="ignore"):
        expected = x.astype(np.float64).astype(host(narrow))
    pairs = lambda a: vc.to_dvec2(a, a).to_dtype(TWO[narrow]).y  # noqa: E731
    for rule in (lambda a: a.to_dtype(f64).to_dtype(narrow), pairs):
        (actual,) = evaluate(rule, (kind, x))
        same(actual, expected)


def rounded_numbers(kind: DType) -> Any:
    """Numbers near powers of two, with bits where narrower floats round."""
    if kind in (f32, f64):
        steps = [2.0**-a + 2.0**-b for a in (9, 10, 11, 23, 24) for b in (12, 24, 25, 52, 60)]
        numbers = [s * (1 + step) * 2.0**e for s in (-1, 1) for step in steps for e in (-30, -3, 0, 15)]
        return np.array(numbers, host(kind))
    limits = np.iinfo(host(kind))
    parts = [(k, k - cut) for k in range(6, 64) for cut in (11, 12, 24, 25, 53, 54) if k > cut]
    numbers = [s * (2**k + 2**low + d) for k, low in parts for d in (-1, 0, 1) for s in (-1, 1)]
    numbers += [s * (2**k + d) for k in range(6, 64) for d in (-1, 1, 3) for s in (-1, 1)]
    return np.array([x for x in numbers if limits.min <= x <= limits.max], host(kind))


def test_large_floats_to_integers() -> None:
    need(i64)
    x = np.float32([2147483520, -2147483648, 4294967040, 3e9])
    (wide,) = evaluate(lambda a: a.to_dtype(i64), (f32, x))
    same(wide, x.astype(np.int64))
    (unsigned,) = evaluate(lambda a: a.to_dtype(u32), (f32, x[[0, 2, 3]]))
    same(unsigned, x[[0, 2, 3]].astype(np.uint32))
    (signed,) = evaluate(lambda a: a.to_dtype(i32), (f32, x[:2]))
    same(signed, x[:2].astype(np.int32))


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_registers_have_their_initial_value(kind: DType) -> None:
    need(kind)
    _, new_kind = TO[kind]
    x = np.arange(64).astype(host(kind))

    def forms(a: Any) -> list[Any]:
        zero, five, copy, named = new_kind(), new_kind(5), new_kind(a), new_kind(1, var_name="some_name")
        before = copy.to_register()
        copy += 1
        named[:] = a
        named[:] = named + named
        return [zero, five, copy, before, named, vc.new_register(kind, 7, var_name="other")]

    zeros = np.zeros(64)
    expected = [zeros, zeros + 5, x + 1.0, x, 2.0 * x, zeros + 7]
    for actual, values in zip(evaluate(forms, (kind, x)), expected, strict=True):
        assert actual.dtype == host(kind)
        same(actual, values)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_stores_of_numbers(kind: DType) -> None:
    need(kind)
    info = np.finfo(host(kind)) if dt.is_float_dtype(kind) else np.iinfo(host(kind))
    low, high = info.min.item() if hasattr(info.min, "item") else info.min, info.max
    numbers = [0, 1, 100, np.int8(3), int(info.max) if dt.is_integer_dtype(kind) else 0.1]
    if dt.is_integer_dtype(kind):
        numbers += [int(low)]
    elif kind is not f16:
        numbers += [float(high), -1e-3, float("inf"), float("nan")]

    @vd.shader(exec_size=1)
    def body(out: Buff[kind]) -> None:
        for place, number in enumerate(numbers):
            out[place] = number

    out = filled(len(numbers), kind, 9)
    body(out)
    same(out.read(0), np.array(numbers, host(kind)))


def test_conditions_become_numbers() -> None:
    need(f64, i64)
    x = integers(i32, 64)
    found = evaluate(lambda a: [(a > 0).to_dtype(kind) for kind in (i32, u32, f32, f64, i64)], (i32, x))
    for actual in found:
        same(actual, x > 0)


def test_swapping_registers() -> None:
    def forms(a: Any, b: Any) -> list[Any]:
        kept = a.to_register()
        a[:] = b
        b[:] = kept
        return [a, b, kept]

    x, y = integers(i32, 64, 1), integers(i32, 64, 2)
    for actual, values in zip(evaluate(forms, (i32, x), (i32, y)), [y, x, x], strict=True):
        same(actual, values)


def test_values_do_not_change_by_later_stores() -> None:
    def forms(a: Any) -> list[Any]:
        doubled = a * 2
        a += 1
        return [doubled.to_register(), a * 2]

    before, later = evaluate(forms, (i32, [1, 10]))
    same(before, [2, 20])
    same(later, [4, 22])


def test_reserved_and_repeated_names_work() -> None:
    names = ["float", "main", "buf0", "PC", "gl_x", "gid", "x", "x", "t0", "sample", "a__b", "_9", "data"]

    @vd.shader("out.size")
    def body(out: Buff[i32], buffer: Const[i32], shared: Const[i32]) -> None:
        i = vc.global_invocation_id().x
        total = vc.new_int_register(0)
        for number, name in enumerate(names):
            register = vc.new_int_register(number, var_name=name)
            total += register
        out[i] = total + buffer + shared + i.to_dtype(i32)

    out = filled(7, i32)
    body(out, 100, 1000)
    same(out.read(0), sum(range(len(names))) + 1100 + np.arange(7))


def test_raw_glsl() -> None:
    @vd.shader("out.size")
    def body(out: Buff[f32], source: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        value = source[i].to_register("value")
        raw = vc.str_to_dtype(f32, "value * 2.0f + 1.0f", parents=[value])
        place = vc.str_to_dtype(f32, "value", settable=True, register=True, lexical_unit=True)
        place += 1
        out[i] = raw * 3

    x = np.arange(64, dtype=np.float32)
    out = filled(64, f32)
    body(out, buffer_of(f32, x))
    same(out.read(0), ((x + 1) * 2 + 1) * 3)
