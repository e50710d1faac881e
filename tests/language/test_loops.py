"""Loops over ranges, break, continue, switches and choices, against the same in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f32, i16, i32, i64, u16, u32, v3

from .running import buffer_of, evaluate, filled, same

RANGES = [(0, 5, 1), (5, 0, -1), (3, 3, 1), (0, 10, 3), (-7, 8, 4), (9, -9, -5), (2, -3, 1), (0, 1, 100)]


def numbers_of(*bounds: int) -> list[int]:
    return list(range(*bounds))


@pytest.mark.parametrize("bounds", RANGES)
def test_ranges_of_python_ints(bounds: tuple[int, int, int]) -> None:
    @vd.shader(exec_size=1)
    def kernel(out: Buff[i32]) -> None:
        count = vc.new_int_register(1)
        with vc.for_block(*bounds, var_name="n") as n:
            assert n.var_type is vd.int32
            out[count] = n
            count += 1
        out[0] = count - 1

    out = filled(20, i32)
    kernel(out)
    expected = numbers_of(*bounds)
    same(out.read(0)[: len(expected) + 1], [len(expected), *expected])


def test_ranges_of_gpu_values() -> None:
    @vd.shader("starts.size", local_size=8)
    def kernel(total: Buff[i32], starts: Buff[i32], stops: Buff[i32], steps: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        mixed = vc.new_int_register(0)
        with vc.for_block(starts[i], stops[i], steps[i]) as n:
            mixed[:] = mixed * 31 + n
        total[i] = mixed

    bounds = [*RANGES, (0, 5, 0)]
    total = filled(len(bounds), i32)
    kernel(total, *(buffer_of(i32, column) for column in zip(*bounds, strict=True)))
    expected = []
    for each in bounds:
        mixed = 0
        for n in numbers_of(*each) if each[2] else []:
            mixed = (mixed * 31 + n + 2**31) % 2**32 - 2**31
        expected.append(mixed)
    same(total.read(0), expected)


def test_bounds_are_evaluated_once() -> None:
    @vd.shader(exec_size=1)
    def kernel(out: Buff[u32]) -> None:
        limit = vc.new_uint_register(4)
        with vc.for_block(limit) as n:
            assert n.var_type is vd.uint32
            limit += 10
            out[0] += n + 1
        out[1] = limit

    out = filled(2, u32)
    kernel(out)
    same(out.read(0), [10, 44])


def test_counters_take_the_promoted_type() -> None:
    with vc.shader_context() as context:
        a, b, c, d = context.declare_input_arguments([Const[u32], Const[i32], Const[u16], Const[i16]])
        for bounds, kind in (
            ((a,), u32),
            ((b,), i32),
            ((0, a), u32),
            ((a, b), i32),
            ((c,), u32),
            ((d,), i32),
            ((a, -1, -1), i32),
            ((7,), i32),
            ((1, 2**32 - 1), u32),
        ):
            with vc.for_block(*bounds) as n:
                assert n.var_type is kind, bounds


def test_break_and_continue_apply_to_the_innermost_loop() -> None:
    @vd.shader(exec_size=1)
    def kernel(out: Buff[i32], limit: Const[i32]) -> None:
        with vc.for_block(limit) as i:
            with vc.if_block(i == 6):
                vc.break_statement()
            with vc.for_block(i, limit) as j:
                with vc.if_block((i + j) % 3 == 0):
                    vc.continue_statement()
                with vc.if_block(j > 7):
                    vc.break_statement()
                out[i] += j
            out[i] += 100

    out = filled(10, i32)
    kernel(out, 10)
    expected = [0] * 10
    for i in range(10):
        if i == 6:
            break
        for j in range(i, 10):
            if (i + j) % 3 == 0:
                continue
            if j > 7:
                break
            expected[i] += j
        expected[i] += 100
    same(out.read(0), expected)


def test_break_and_continue_in_a_while_loop() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[u32]) -> None:
        i = vc.global_invocation_id().x
        n = vc.new_uint_register(0)
        total = vc.new_uint_register(0)
        with vc.while_block(n < 100):
            n += 1
            with vc.if_block(n % 2 == 0):
                vc.continue_statement()
            with vc.if_block(n > i):
                vc.break_statement()
            total += n
        out[i] = total

    out = filled(130, u32)
    kernel(out)
    same(out.read(0), [sum(n for n in range(1, min(i, 100) + 1) if n % 2) for i in range(130)])


def test_old_style_loops() -> None:
    @vd.shader(exec_size=1)
    def kernel(out: Buff[i32]) -> None:
        n = vc.for_statement(2, 20, 3)
        vc.if_statement(n == 11)
        vc.continue_statement()
        vc.end()
        out[0] += n
        vc.end()

    out = filled(1, i32)
    kernel(out)
    same(out.read(0), [sum(range(2, 20, 3)) - 11])


@pytest.mark.parametrize("kind", [i32, u32, i16, u16])
def test_switch(kind: Any) -> None:
    def body(x: Any) -> Any:
        result = vc.new_int_register(0)
        with vc.switch_block(x):
            with vc.case_block(1, 2):
                result += 10
            with vc.case_block(3):
                result += 20
                with vc.if_block(x == 3):
                    result += 1
            with vc.default_block():
                result[:] = -5
        with vc.switch_block(x + 1), vc.case_block(5):
            result += 1000
        return result

    (result,) = evaluate(body, (kind, np.arange(70) % 7))
    table = {1: 10, 2: 10, 3: 21, 4: 995}
    same(result, [table.get(i % 7, -5) for i in range(70)])


def test_a_break_inside_a_switch_leaves_the_loop() -> None:
    def body(limit: Any) -> Any:
        total = vc.new_int_register(0)
        with vc.for_block(limit) as n:
            with vc.switch_block(n % 8):
                with vc.case_block(3):
                    vc.continue_statement()
                with vc.case_block(6):
                    vc.break_statement()
                with vc.default_block():
                    total += 1
            total += 100
        return total

    def expected(limit: int) -> int:
        total = 0
        for n in range(limit):
            if n % 8 == 3:
                continue
            if n % 8 == 6:
                break
            total += 101
        return total

    (result,) = evaluate(body, (i32, np.arange(20)))
    same(result, [expected(limit) for limit in range(20)])


def test_select() -> None:
    def body(x: Any, v: Any, z: Any) -> list[Any]:
        return [
            vc.select(x > 0, x, -1),
            vc.select(x > 0, 1, 0.5),
            vc.select(x, v, 2),
            vc.select(x > 0, z, 1 + 2j),
            vc.select(True, x, 3),
            vc.select(x < 0, True, x == 0),
        ]

    xs = np.array([-2, 0, 3, 7], np.int32)
    vs = np.arange(12, dtype=np.float32).reshape(4, 3)
    zs = np.array([1j, 2, 3, 4], np.complex64)
    a, b, c, d, e, f = evaluate(body, (i32, xs), (v3, vs), (c64, zs))
    same(a, np.where(xs > 0, xs, -1))
    same(b, np.where(xs > 0, 1, 0.5))
    same(c, np.where((xs != 0)[:, None], vs, 2))
    same(d, np.where(xs > 0, zs, 1 + 2j))
    same(e, xs)
    same(f, np.where(xs < 0, 1, xs == 0))
    assert vc.select(True, 1, 2.5) == 1
    assert vc.select(False, 1, 2.5) == 2.5


def in_kernel(*annotations: Any) -> Callable[[Callable[..., None]], None]:
    def run(body: Callable[..., None]) -> None:
        with vc.shader_context() as context:
            body(*context.declare_input_arguments(list(annotations)))

    return run


@in_kernel(Const[i32], Const[f32], Const[i64])
def _check_nothing(x: Any, f: Any, wide: Any) -> None:
    """The helper itself traces."""


@pytest.mark.parametrize(
    ("error", "message", "misuse"),
    [
        (TypeError, "start must be an integer, got 1.5", lambda x, f, wide: vc.for_block(1.5, 3)),
        (TypeError, "stop must be an integer, got float32", lambda x, f, wide: vc.for_block(f)),
        (TypeError, "stop must be an integer, got True", lambda x, f, wide: vc.for_block(True)),
        (TypeError, "stop must be an integer, got None", lambda x, f, wide: vc.for_block(None)),
        (ValueError, "step must not be 0", lambda x, f, wide: vc.for_block(0, x, 0)),
        (TypeError, "count in 32 bits, got int64", lambda x, f, wide: vc.for_block(wide)),
        (ValueError, "do not fit in 32 bits", lambda x, f, wide: vc.for_block(-1, 2**32 - 1)),
        (RuntimeError, "break: no loop is open", lambda x, f, wide: vc.break_statement()),
        (RuntimeError, "continue: no loop is open", lambda x, f, wide: vc.continue_statement()),
        (TypeError, "switch_block: expected an integer scalar", lambda x, f, wide: vc.switch_block(f)),
        (TypeError, "got 'a'", lambda x, f, wide: vc.switch_block("a")),
        (TypeError, "got int64", lambda x, f, wide: vc.switch_block(wide)),
        (ValueError, "at least one value", lambda x, f, wide: vc.case_block()),
        (TypeError, "must be a Python int, got 1.5", lambda x, f, wide: vc.case_block(1.5)),
        (TypeError, "must be a Python int", lambda x, f, wide: vc.case_block(x)),
        (TypeError, "select: expected GPU values or numbers", lambda x, f, wide: vc.select(x, "a", 1)),
        (TypeError, "select: expected a GPU value or a bool", lambda x, f, wide: vc.select(1, x, 1)),
        (TypeError, "join components", lambda x, f, wide: vc.select(vc.to_vec2(1, 2), x, 1)),
    ],
)
def test_wrong_arguments_are_refused(
    error: type[Exception], message: str, misuse: Callable[..., Any]
) -> None:
    @in_kernel(Const[i32], Const[f32], Const[i64])
    def _body(x: Any, f: Any, wide: Any) -> None:
        with pytest.raises(error, match=message) as raised:
            misuse(x, f, wide)
        assert "test_loops.py:" in str(raised.value)


def test_misplaced_blocks() -> None:
    @in_kernel(Const[i32], Const[u32])
    def _body(x: Any, u: Any) -> None:
        for block in (vc.case_block(1), vc.default_block()):
            with pytest.raises(RuntimeError, match="directly inside a switch block"), block:
                pass
        with vc.switch_block(u):
            with vc.case_block(1):
                pass
            with pytest.raises(ValueError, match="1 has a case already"), vc.case_block(1):
                pass
            with pytest.raises(ValueError, match="2 is passed twice"), vc.case_block(2, 2):
                pass
            with pytest.raises(ValueError, match="-1 is no value of uint32"), vc.case_block(-1):
                pass
            with pytest.raises(RuntimeError, match="only case and default blocks"), vc.if_block(x > 1):
                pass
            with pytest.raises(RuntimeError, match="only case and default blocks"):
                x.to_register()
            with vc.default_block():
                pass
            with pytest.raises(RuntimeError, match="has one already"), vc.default_block():
                pass
        with vc.for_block(3) as n, pytest.raises(ValueError, match="cannot be assigned to"):
            n[:] = 3


def test_a_counter_does_not_outlive_its_loop() -> None:
    with pytest.raises(RuntimeError, match="does not exist here"):

        @vd.shader(exec_size=1)
        def kernel(out: Buff[i32]) -> None:
            with vc.for_block(3) as n:
                pass
            out[0] = n


_LOW, _HIGH = -(1 << 31), (1 << 31) - 1


def _reversed_total(numbers: Any, total: Any) -> Any:
    last = -9
    for k in numbers:
        if k == 4:
            continue
        total = total * 3 + k
        last = k
    return total * 5 + last


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [
        (0, 5, 1),
        (0, 5, 2),
        (3, 17, 4),
        (5, -7, -3),
        (2, 2, 1),
        (9, -9, -1),
        (0, 3, 0),
        (_HIGH - 3, _HIGH, 3),
        (_LOW + 5, _LOW + 4, -3),
        (_HIGH - 9, _HIGH, 1),
        (_LOW + 4, _LOW, -1),
    ],
)
def test_reversed_ranges(start: int, stop: int, step: int) -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[i32], a: Const[i32], b: Const[i32], s: Const[i32]) -> None:
        i = vc.global_invocation_id().x
        out[4 * i] = _reversed_total(reversed(range(a, b, s)), 1)
        out[4 * i + 1] = _reversed_total(reversed(range(b & 15)), 2)
        out[4 * i + 2] = _reversed_total(reversed(range(a, b if s > 0 else a, 3)), 3)
        out[4 * i + 3] = _reversed_total(reversed(range(a, b if s < 0 else a, -2)), 4)

    def run(numbers: range, total: int) -> int:
        # an unsigned number as int32
        return int((_reversed_total(reversed(numbers), total) + (1 << 31)) % (1 << 32) - (1 << 31))

    expected = [
        run(range(start, stop, step), 1) if step else run(range(0), 1),
        run(range(stop & 15), 2),
        run(range(start, stop if step > 0 else start, 3), 3),
        run(range(start, stop if step < 0 else start, -2), 4),
    ]
    out, host = vd.asbuffer(np.zeros(4, np.int32)), np.zeros(4, np.int32)
    kernel(out, start, stop, step, exec_size=1)
    kernel.interpret(host, start, stop, step, exec_size=1)
    assert out.read(0).tolist() == host.tolist() == expected


def test_counters_at_the_limits_of_their_types() -> None:
    @vd.shader(1)
    def kernel(
        out: Buff[u32], low: Const[i32], high: Const[u32], byte: Buff[vd.uint8], word: Buff[i16]
    ) -> None:
        for k in range(high - 3, high):
            out[0] = out[0] * 7 + k
        for k in reversed(range(high - 3, high)):
            out[1] = out[1] * 7 + k
        for k in range(low + 3, low, -1):
            out[2] = out[2] * 7 + k.to_dtype(u32)
        for k in range(byte[0]):
            out[3] += k
        for k in range(word[0], word[1], -1000):
            out[4] += k.to_dtype(u32)

    top = (1 << 32) - 1
    expected = [0] * 5
    for k in (top - 3, top - 2, top - 1):
        expected[0] = (expected[0] * 7 + k) % (1 << 32)
    for k in (top - 1, top - 2, top - 3):
        expected[1] = (expected[1] * 7 + k) % (1 << 32)
    for k in range(_LOW + 3, _LOW, -1):
        expected[2] = (expected[2] * 7 + k) % (1 << 32)
    expected[3] = sum(range(255))
    expected[4] = sum(range(32767, -32768, -1000)) % (1 << 32)
    byte, word = np.array([255], np.uint8), np.array([32767, -32768], np.int16)
    out, host = vd.asbuffer(np.zeros(5, np.uint32)), np.zeros(5, np.uint32)
    kernel(out, _LOW, top, vd.asbuffer(byte), vd.asbuffer(word))
    kernel.interpret(host, _LOW, top, byte, word)
    assert out.read(0).tolist() == host.tolist() == expected


@pytest.mark.parametrize("bounds", [(0, _HIGH, 2), (0, _LOW, -3), (_HIGH - 1, _HIGH, 2)])
def test_counters_that_leave_their_types_are_refused(bounds: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"one step behind .* does not fit in int32"):

        @vd.shader(1)
        def kernel(out: Buff[i32]) -> None:
            for _ in vc.range(*bounds):
                out[0] += 1

    with pytest.raises(ValueError, match=r"for_block: one step behind"):

        @vd.shader(1)
        def blocks(out: Buff[i32]) -> None:
            with vc.for_block(*bounds):
                out[0] += 1


def test_counters_that_leave_their_types_are_found_by_the_interpreter() -> None:
    @vd.shader(1)
    def computed(out: Buff[i32], n: Const[i32]) -> None:
        for _ in range(n - 5, n, 3):
            out[0] += 1

    host = np.zeros(1, np.int32)
    with pytest.raises(vd.LoopLimitError, match="the counter of a loop leaves int32"):
        computed.interpret(host, _HIGH)
    computed.interpret(host, _HIGH - 3)
    assert host[0] == 2
