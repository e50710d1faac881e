"""Branches, loops, scopes and early ends on the device, against the same steps in Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, Var, f32, i32, u32

from .running import SIZES, buffer_of, close, evaluate, filled, integers, same


@pytest.mark.parametrize("count", SIZES)
def test_if_chain(count: int) -> None:
    @vd.shader("out.size")
    def body(out: Buff[i32], source: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        x = source[i].to_register()
        with vc.if_block(x < -100):
            out[i] = 1
        with vc.else_if_block(x < 0):
            out[i] = 2
            x += 1
        with vc.else_if_block(vc.all(x >= 0, x < 100)):
            out[i] = 3
        with vc.else_block():
            out[i] = 4
        out[i] += x * 10

    x = (np.arange(count, dtype=np.int32) * 37) % 401 - 200
    out = filled(count, i32)
    body(out, buffer_of(i32, x))
    chosen = np.select([x < -100, x < 0, x < 100], [1, 2, 3], 4)
    same(out.read(0), chosen + 10 * (x + (chosen == 2)))


def test_nested_blocks_and_python_conditions() -> None:
    @vd.shader("out.size")
    def body(out: Buff[i32], limit: Const[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32).to_register()
        total = vc.new_int_register()
        with vc.if_block(i % 2 == 0):
            with vc.if_block(i % 3 == 0):
                total += 1
                with vc.if_block(i > limit):
                    total += 10
                with vc.else_block():
                    total += 20
            with vc.else_block():
                total += 2
        with vc.else_block(), vc.if_block(i % 5 == 0):
            total += 5
        with vc.if_block(True):
            total += 100
        with vc.if_block(False):
            total += 1000
        with vc.else_block():
            total += 200
        out[i] = total

    out = filled(100, i32)
    body(out, 50)
    i = np.arange(100)
    even = np.where(i % 3 == 0, 1 + np.where(i > 50, 10, 20), 2)
    same(out.read(0), np.where(i % 2 == 0, even, np.where(i % 5 == 0, 5, 0)) + 300)


def test_numbers_as_conditions() -> None:
    def forms(a: Any, b: Any) -> list[Any]:
        hit = vc.new_int_register()
        with vc.if_block(a):
            hit += 1
        with vc.if_block(b):
            hit += 2
        return [hit, vc.all(a, b).to_register(), vc.any(a, b).to_register()]

    x, y = np.int32([0, 1, -5, 0]), np.float32([0, 0, 0.5, -1])
    hit, both, either = evaluate(forms, (i32, x), (f32, y))
    same(hit, (x != 0) + 2 * (y != 0))
    same(both, (x != 0) & (y != 0))
    same(either, (x != 0) | (y != 0))


def test_any_and_all() -> None:
    x, y, z = (integers(i32, 257, seed) % 7 for seed in (1, 2, 3))

    def forms(a: Any, b: Any, c: Any) -> list[Any]:
        return [
            vc.any(a > 0, b > 0, c > 0), vc.all(a > 0, b > 0, c > 0), vc.any(a == b), vc.all(a != b),
            vc.any(vc.all(a < b, b < c), c == 0), vc.all(vc.any(a < b, b < c), ~(c == 0)),
            vc.any(a > 3, True), vc.all(a > 3, True), vc.any(a > 3, False), vc.logical_and(a > 0, b > 0),
            vc.logical_or(a > 0, b > 0),
        ]  # fmt: skip

    a, b, c = x > 0, y > 0, z > 0
    expected = [
        a | b | c, a & b & c, x == y, x != y, ((x < y) & (y < z)) | (z == 0), ((x < y) | (y < z)) & (z != 0),
        a | True, x > 3, x > 3, a & b, a | b,
    ]  # fmt: skip
    for place, (actual, values) in enumerate(
        zip(evaluate(forms, (i32, x), (i32, y), (i32, z)), expected, strict=True)
    ):
        same(actual, values, f"result {place}")


@pytest.mark.parametrize("count", SIZES)
def test_greatest_common_divisor(count: int) -> None:
    @vd.shader("out.size")
    def gcd(out: Buff[u32], left: Buff[u32], right: Buff[u32]) -> None:
        i = vc.global_invocation_id().x
        a, b = left[i].to_register("a"), right[i].to_register("b")
        with vc.while_block(b != 0):
            rest = (a % b).to_register("rest")
            a[:] = b
            b[:] = rest
        out[i] = a

    a, b = (np.random.default_rng(seed).integers(0, 2**31, count, np.uint32) for seed in (1, 2))
    out = filled(count, u32)
    gcd(out, buffer_of(u32, a), buffer_of(u32, b))
    same(out.read(0), np.gcd(a, b))


def test_loops_in_loops() -> None:
    @vd.shader("out.size")
    def count_primes(out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32).to_register("limit")
        count, n = vc.new_int_register(var_name="count"), vc.new_int_register(2, var_name="n")
        with vc.while_block(n <= i):
            divisor, prime = vc.new_int_register(2, var_name="divisor"), vc.new_int_register(1)
            with vc.while_block(vc.all(divisor * divisor <= n, prime == 1)):
                with vc.if_block(n % divisor == 0):
                    prime[:] = 0
                divisor += 1
            count += prime
            n += 1
        out[i] = count

    out = filled(257, i32)
    count_primes(out)
    primes = [n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1)) for n in range(257)]
    same(out.read(0), np.cumsum(primes))


def test_while_condition_is_evaluated_each_round() -> None:
    @vd.shader("out.size")
    def body(out: Buff[i32], work: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        steps = vc.new_int_register()
        with vc.while_block(work[i] > 1):
            with vc.if_block(work[i] % 2 == 0):
                work[i] //= 2
            with vc.else_block():
                work[i] = work[i] * 3 + 1
            steps += 1
        out[i] = steps

    out = filled(64, i32)
    body(out, buffer_of(i32, np.arange(64)))

    def collatz(n: int) -> int:
        steps = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    same(out.read(0), [collatz(n) for n in range(64)])


def test_rolled_loop() -> None:
    """A hint to compilers, which changes no result."""

    @vd.shader("out.size")
    def body(out: Buff[i32], most: Const[i32]) -> None:
        number = vc.to_int(1).to_register()
        with vc.while_block(number < most, rolled=True):
            number *= 3
        out[vc.global_invocation_id().x] = number

    out = filled(5, i32)
    body(out, 100)
    same(out.read(0), np.full(5, 243))
    assert "[[dont_unroll]] while" in body.source


def test_loops_that_never_run() -> None:
    def forms(a: Any) -> list[Any]:
        with vc.while_block(a < 0):
            a += 1
        with vc.while_block(False):
            a += 1000
        return [a]

    same(evaluate(forms, (i32, [-3, 0, 4]))[0], [0, 0, 4])


def test_long_loop() -> None:
    @vd.shader("out.size")
    def body(out: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        total, k = vc.new_float_register(), vc.new_int_register()
        with vc.while_block(k < 60000):
            total += 1
            k += 1
        out[i] = total

    out = filled(64, f32)
    body(out)
    same(out.read(0), 60000)


@pytest.mark.parametrize("count", SIZES)
def test_return(count: int) -> None:
    @vd.shader("out.size")
    def body(out: Buff[i32], limit: Var[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32).to_register()
        out[i] = 1
        with vc.if_block(i >= limit):
            with vc.if_block(i % 2 == 0):
                vc.return_statement()
            out[i] = 2
            n = vc.new_int_register()
            with vc.while_block(n < 10):
                with vc.if_block(n == i % 7):
                    vc.return_statement()
                out[i] += 10
                n += 1
        out[i] = 3

    for limit in (0, count // 2, count):
        out = filled(count, i32)
        body(out, limit)
        i = np.arange(count)
        same(out.read(0), np.where(i < limit, 3, np.where(i % 2 == 0, 1, 2 + 10 * (i % 7))))


def test_return_at_the_end_and_in_the_middle() -> None:
    @vd.shader("out.size")
    def body(out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        out[i] = 1
        vc.return_statement()
        out[i] = 2

    out = filled(7, i32)
    body(out)
    same(out.read(0), 1)


def test_scopes() -> None:
    @vd.shader("out.size")
    def body(out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        total = vc.new_int_register(var_name="total")
        for factor in (1, 10, 100):
            with vc.scope_block(comment=f"times {factor} */ total = 5;"):
                term = (i * factor).to_dtype(i32).to_register("term")
                total += term
        with vc.scope_block(indent=False):
            vc.comment("a comment\nof two lines")
            total += 1
        out[i] = total

    out = filled(64, i32)
    body(out)
    same(out.read(0), np.arange(64) * 111 + 1)


def test_expressions_shared_between_branches() -> None:
    """A value that several branches use is computed where all of them see it."""

    @vd.shader("out.size")
    def body(out: Buff[i32], a: Const[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        shared = (i * a + 3) * (i - a)
        total = vc.new_int_register()
        with vc.if_block(i % 3 == 0):
            total += shared
        with vc.else_if_block(shared > 100):
            total -= shared
        with vc.else_block():
            n = vc.new_int_register()
            with vc.while_block(n < shared % 5 + 5):
                total += shared + n
                n += 1
        out[vc.global_invocation_id().x] = total

    out = filled(100, i32)
    body(out, 7)

    def step(i: int) -> int:
        shared = (i * 7 + 3) * (i - 7)
        if i % 3 == 0:
            return shared
        if shared > 100:
            return -shared
        return sum(shared + n for n in range(shared % 5 + 5))

    i = np.arange(100)
    # GLSL leaves % of negative numbers open
    sure = (i % 3 == 0) | ((i * 7 + 3) * (i - 7) >= 0)
    same(out.read(0)[sure], np.array([step(int(n)) for n in i])[sure])


def test_divisions_stay_inside_their_guard() -> None:
    """What a branch protects from zero may not be computed before it."""

    @vd.shader("out.size")
    def body(out: Buff[i32], divisors: Buff[i32], index: Buff[u32]) -> None:
        i = vc.global_invocation_id().x
        d = divisors[i].to_register()
        with vc.if_block(d != 0):
            out[i] = 1000 // d + 1000 % d
        with vc.else_block():
            out[i] = -1
        with vc.if_block(index[i] < 4):
            out[i] += divisors[index[i]]

    divisors = np.arange(64, dtype=np.int32) % 5
    index = np.arange(64, dtype=np.uint32) % 8
    out = filled(64, i32)
    body(out, buffer_of(i32, divisors), buffer_of(u32, index))
    safe = np.maximum(divisors, 1)
    expected = np.where(divisors > 0, 1000 // safe + 1000 % safe, -1)
    same(out.read(0), expected + np.where(index < 4, divisors[index % 4], 0))


# -- blocks opened and closed by hand


def test_statements_opened_and_closed_by_hand() -> None:
    @vd.shader("out.size")
    def body(out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32).to_register("i")
        total = vc.new_int_register(var_name="total")
        vc.if_statement(i < 10)
        total += 1
        vc.else_if_statement(i < 20)
        total += 2
        vc.else_if_all(i >= 20, i < 30)
        total += 3
        vc.else_if_any(i == 30, i == 31)
        total += 4
        vc.else_statement()
        vc.if_any(i == 40, i == 50)
        total += 5
        vc.end()
        vc.if_all(i > 40, i < 45)
        total += 6
        vc.else_statement()
        total += 7
        vc.end()
        vc.end()
        n = vc.new_int_register(var_name="n")
        vc.while_statement(n < i % 4)
        total += 100
        n += 1
        vc.end()
        vc.new_scope(comment="a block")
        total += 1000
        vc.end()
        vc.if_statement(i == 3, "total = -1;")
        out[i] = total

    out = filled(64, i32)
    body(out)

    def step(i: int) -> int:
        if i == 3:
            return -1
        if i < 30:
            total = i // 10 + 1
        elif i < 32:
            total = 4
        else:
            total = 5 * (i in (40, 50)) + (6 if 40 < i < 45 else 7)
        return total + 100 * (i % 4) + 1000

    same(out.read(0), [step(i) for i in range(64)])


def test_newton_iteration_until_it_settles() -> None:
    @vd.shader("out.size")
    def root(out: Buff[f32], source: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        a = source[i].to_register("a")
        x, steps = (a * 1).to_register("x"), vc.new_int_register()
        with vc.while_block(vc.all(abs(x * x - a) > 1e-5 * a, steps < 50)):
            x[:] = 0.5 * (x + a / x)
            steps += 1
        out[i] = x

    a = np.linspace(0.1, 1000, 1000, dtype=np.float32)
    out = filled(1000, f32)
    root(out, buffer_of(f32, a))
    close(out.read(0), np.sqrt(a), 1e-5)
