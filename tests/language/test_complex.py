"""Complex numbers on the device: algebra, parts, conjugates, stores."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import Buff, Const, c64, c128, f32, f64, i32

from .running import (
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
)

KINDS = [c64, c128]
TOLERANCE = {c64: 2e-6, c128: 1e-13}


def complexes(kind: DType, count: int, seed: int) -> Any:
    return (floats(f64, count, seed) + 1j * floats(f64, count, seed + 100)).astype(host(kind))


def check(kind: DType, found: list[Any], expected: list[Any]) -> None:
    for place, (actual, values) in enumerate(zip(found, expected, strict=True)):
        close(actual, values, TOLERANCE[kind], 50 * TOLERANCE[kind], f"result {place}")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_complex_operators(kind: DType) -> None:
    need(kind)
    a, b = complexes(kind, 257, 1), complexes(kind, 257, 2)
    rules = [operator.add, operator.sub, operator.mul, operator.truediv]

    def forms(x: Any, y: Any) -> list[Any]:
        total, difference, product, quotient = (x.to_register() for _ in range(4))
        total += y
        difference -= y
        product *= y
        quotient /= y
        return [*(rule(x, y) for rule in rules), total, difference, product, quotient]

    assert set(result_types(forms, [kind, kind])) == {kind}
    expected = [rule(a, b) for rule in rules]
    check(kind, evaluate(forms, (kind, a), (kind, b)), expected * 2)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_operators_with_python_numbers(kind: DType) -> None:
    need(kind)
    a = complexes(kind, 100, 1)
    numbers = (2, -0.5, 1, 3 - 4j)
    rules = [operator.add, operator.sub, operator.mul, operator.truediv]

    def forms(x: Any) -> list[Any]:
        return [result for n in numbers for rule in rules for result in (rule(x, n), rule(n, x))]

    assert set(result_types(forms, [kind])) == {kind}
    expected = [values for n in numbers for rule in rules for values in (rule(a, n), rule(n, a))]
    check(kind, evaluate(forms, (kind, a)), expected)


@pytest.mark.parametrize("real", [f32, i32], ids=lambda kind: kind.name)
def test_operators_with_real_values(real: DType) -> None:
    a = complexes(c64, 100, 1)
    r = (integers(i32, 100, 2) % 50 + 1).astype(host(real))
    rules = [operator.add, operator.sub, operator.mul, operator.truediv]

    def forms(x: Any, y: Any) -> list[Any]:
        return [result for rule in rules for result in (rule(x, y), rule(y, x))]

    assert set(result_types(forms, [c64, real])) == {c64}
    check(c64, evaluate(forms, (c64, a), (real, r)), [v for rule in rules for v in (rule(a, r), rule(r, a))])


def test_complex64_with_complex128_gives_complex128() -> None:
    need(c128)
    a, b, r = complexes(c64, 64, 1), complexes(c128, 64, 2), floats(f64, 64, 3)

    def forms(x: Any, y: Any, z: Any) -> list[Any]:
        return [x + y, x * y, vc.mult_complex(x, y), x * z, x.to_dtype(c128), y.to_dtype(c64)]

    assert result_types(forms, [c64, c128, f64]) == [c128] * 5 + [c64]
    found = evaluate(forms, (c64, a), (c128, b), (f64, r))
    check(c128, found[:5], [a + b, a * b, a * b, a * r, a])
    check(c64, found[5:], [b.astype(np.complex64)])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_parts_and_magnitude(kind: DType) -> None:
    need(kind)
    a = complexes(kind, 257, 1)
    part = dt.component_type(kind)

    def forms(z: Any) -> list[Any]:
        return [z.real, z.imag, z[0], z[1], abs(z), vc.abs(z), -z, z.conjugate(), z.conjugate().conjugate()]

    assert result_types(forms, [kind]) == [part] * 6 + [kind] * 3
    expected = [a.real, a.imag, a.real, a.imag, np.abs(a), np.abs(a), -a, a.conj(), a]
    check(kind, evaluate(forms, (kind, a)), expected)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_conjugates_are_applied_in_every_use(kind: DType) -> None:
    need(kind)
    a, b = complexes(kind, 64, 1), complexes(kind, 64, 2)

    def forms(x: Any, y: Any) -> list[Any]:
        stored = vc.new_register(kind)
        stored[:] = x.conjugate()
        return [
            stored, x.conjugate().to_register(), x.conjugate() * 2, x.conjugate() * y, x * y.conjugate(),
            vc.mult_complex(x.conjugate(), y), vc.mult_complex(x, y.conjugate()), x.conjugate() + y,
            x / y.conjugate(), (x * y).conjugate(), x.conjugate().imag,
        ]  # fmt: skip

    c, d = a.conj(), b.conj()
    expected = [c, c, c * 2, c * b, a * d, c * b, a * d, c + b, a / d, (a * b).conj(), c.imag]
    check(kind, evaluate(forms, (kind, a), (kind, b)), expected)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_mult_complex(kind: DType) -> None:
    need(kind)
    a, b = complexes(kind, 64, 1), complexes(kind, 64, 2)

    def forms(x: Any, y: Any) -> list[Any]:
        return [
            vc.mult_complex(x, y),
            vc.mult_complex(x, 2 - 1j),
            vc.mult_complex(1j, y),
            vc.mult_complex(x, 3),
        ]

    assert result_types(forms, [kind, kind]) == [kind] * 4
    check(kind, evaluate(forms, (kind, a), (kind, b)), [a * b, a * (2 - 1j), 1j * b, a * 3])
    same(evaluate(lambda x: vc.mult_complex(2 + 1j, 3j) + x * 0, (c64, [0j, 1j]))[0], [-3 + 6j] * 2)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_euler(kind: DType) -> None:
    need(kind)
    angle = floats(dt.component_type(kind), 257, 1, -4, 4)
    (found,) = evaluate(vc.complex_from_euler_angle, (dt.component_type(kind), angle))
    assert found.dtype == host(kind)
    close(found, np.exp(1j * angle.astype(float)), 0, 1e-15 if kind is c128 else sine_error())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_whole_powers(kind: DType) -> None:
    need(kind)
    a = complexes(kind, 64, 1) / 8
    found = evaluate(lambda z: [z**1, z**2, z**3, z**5, z**-1, z**-2], (kind, a))
    for actual, power in zip(found, (1, 2, 3, 5, -1, -2), strict=True):
        close(actual, a.astype(np.complex128) ** power, 20 * TOLERANCE[kind], what=str(power))


def test_equality() -> None:
    a, b = complexes(c64, 64, 1), complexes(c64, 64, 2)
    b[::2] = a[::2]
    b[1::4] = a[1::4].conj()
    equal, unequal = evaluate(lambda x, y: [x == y, x != y], (c64, a), (c64, b))
    same(equal, a == b)
    same(unequal, a != b)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_conversions_and_registers(kind: DType) -> None:
    need(kind)
    real, whole = floats(dt.component_type(kind), 64, 1), integers(i32, 64, 2) % 100
    to_kind = vc.to_complex64 if kind is c64 else vc.to_complex128
    new_kind = vc.new_complex64_register if kind is c64 else vc.new_complex128_register

    def forms(x: Any, n: Any) -> list[Any]:
        return [
            to_kind(x), to_kind(x, n), to_kind(2 - 3j), to_kind(1, 2.5), vc.to_dtype(kind, n),
            new_kind(), new_kind(1), new_kind(x), new_kind(x, 2), new_kind(1j), vc.new_register(kind, 1),
            vc.to_complex(x), vc.to_complex(x, n), vc.new_complex_register(x, x), x.to_dtype(kind),
        ]  # fmt: skip

    assert result_types(forms, [dt.component_type(kind), i32]) == [kind] * 15
    r, n, one = real.astype(host(kind)), whole.astype(host(kind)), np.ones(64)
    expected = [
        r, r + 1j * n, one * (2 - 3j), one * (1 + 2.5j), n, one * 0, one, r, r + 2j, one * 1j, one,
        r, r + 1j * n, r + 1j * r, r,
    ]  # fmt: skip
    check(kind, evaluate(forms, (dt.component_type(kind), real), (i32, whole)), expected)


def test_inferred_types() -> None:
    def forms(n: Any) -> list[Any]:
        return [vc.to_complex(1), vc.to_complex(n), vc.to_complex(1 + 2j), vc.new_complex_register()]

    assert result_types(forms, [i32]) == [c64] * 4
    found = evaluate(forms, (i32, [4]))
    same(np.concatenate(found), [1, 4, 1 + 2j, 0])


@pytest.mark.parametrize("count", SIZES)
def test_stores_of_parts(count: int) -> None:
    @vd.shader("out.size")
    def body(out: Buff[c64], source: Buff[c64], factor: Const[c64]) -> None:
        i = vc.global_invocation_id().x
        z = source[i].to_register()
        z.real = z.real + 1
        z.imag *= 2
        z[0] += 1
        out[i].real = z.imag
        out[i].imag = z.real
        out[i] *= factor
        out[i] += 1
        out[i].real -= 0.5

    a = complexes(c64, count, 1)
    out = filled(count, c64)
    body(out, buffer_of(c64, a), 2 - 1j)
    z = (a.real + 2) + 2j * a.imag
    close(out.read(0), (z.imag + 1j * z.real) * (2 - 1j) + 0.5, 2e-6, 1e-5)


def test_stores_of_python_numbers() -> None:
    @vd.shader(exec_size=1)
    def body(out: Buff[c64]) -> None:
        out[0] = 1 - 2j
        out[1] = 3
        out[2] = 0.5
        register = vc.new_complex64_register(7)
        register[:] = 4j
        out[3] = register
        out[4] = register.conjugate()

    out = filled(5, c64, 9)
    body(out)
    same(out.read(0), [1 - 2j, 3, 0.5, 4j, -4j])


def test_mandelbrot_counts() -> None:
    @vd.shader("out.size")
    def body(out: Buff[i32], points: Buff[c64]) -> None:
        i = vc.global_invocation_id().x
        c = points[i].to_register("c")
        z = vc.new_complex64_register(var_name="z")
        n = vc.new_int_register(var_name="n")
        with vc.while_block(vc.all(z.real * z.real + z.imag * z.imag < 4, n < 50)):
            z[:] = z * z + c
            n += 1
        out[i] = n

    x, y = np.meshgrid(np.linspace(-2, 1, 48), np.linspace(-1.2, 1.2, 40))
    points = (x + 1j * y).astype(np.complex64).ravel()
    out = filled(points.size, i32)
    body(out, buffer_of(c64, points))
    z, counts = np.zeros_like(points), np.zeros(points.size, int)
    for _ in range(50):
        inside = np.abs(z) < 2
        counts += inside
        z = np.where(inside, z * z + points, z)
    # rounding may move a few points of the border
    assert np.mean(out.read(0) != counts) < 0.02
