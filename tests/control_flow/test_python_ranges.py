"""Loops over a plain `range`: many rounds become a loop of the GPU where that means the same.

The truth is NumPy: the bodies run on its arrays as they are, and its promotion of Python's numbers is ours.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, f32, i32, u32
from vkdispatch.codegen.random import philox4x32
from vkdispatch.control_flow.replacement import choose_callee

COUNT = 4
SIZES = [63, 64, 65, 1100]
FEW_SIZES = [63, 64, 65, 100]
TABLE = [(7 * j) % 11 for j in range(200)]
LOOPS: list[tuple[Callable[..., Any], int]] = []
UNROLLED: list[Callable[..., Any]] = []


def looped(count: int = 1) -> Callable[[Any], Any]:
    """Say that a body becomes this many loops of the GPU from 64 rounds on."""

    def note(body: Any) -> Any:
        LOOPS.append((body, count))
        return body

    return note


def unrolled(body: Any) -> Any:
    """Say that a body needs Python's number, or has other types from round to round."""
    UNROLLED.append(body)
    return body


@looped()
def weighted(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(n):
        total += x[k] * k
    return total


@looped()
def from_a_value(n: int, i: Any, x: Any, u: Any) -> Any:
    total = x[i] + 1
    for k in range(n):
        total = total * 0.5 + x[k] * (k + 1)
    return total


@looped()
def of_unsigned(n: int, i: Any, x: Any, u: Any) -> Any:
    total = u[i] + 1
    for k in range(n):
        total = total * 3 + u[k] * k + k // 2 + k % 3
    return total


@looped()
def with_halves(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(n):
        total = total * 0.25 + x[k] * (k * 0.5 - 3.25) - k / 4
    return total


@looped()
def quotients(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(n):
        total += x[k] / (k + 1)
    return total


@looped()
def of_bits(n: int, i: Any, x: Any, u: Any) -> Any:
    total = u[i] + 0
    for k in range(n):
        total = (total * 5) ^ ((k & 7) | (k >> 2)) ^ (k << 1) ^ (u[k] >> (k & 15))
    return total


@looped()
def backwards(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(n - 1, -1, -1):
        total = total * 0.5 + x[k] * -k
    return total


@looped()
def in_steps(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(2, 3 * n, 3):
        total = total * 0.5 + k * x[i]
    return total


@looped()
def from_below_zero(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(-40, n - 40):
        total = total * 0.5 + (k // 3) * x[i] + k % 7 + (-k) + (k >> 2) + abs(k)
    return total


@looped()
def powers(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(n):
        total = total * 0.5 + x[k] + k**2
    return total


@looped()
def reads_last_index(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(n):
        total += x[k]
    return total * 0 + k


@looped()
def product(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 1.0
    for k in range(n):
        total = total * x[k] + 0.5
    return total


@looped()
def pair(n: int, i: Any, x: Any, u: Any) -> Any:
    t = (0.0, 1.0)
    for k in range(n):
        t = (t[0] * 0.5 + x[k], t[1] * x[k] + 1)
    return t[0] + t[1]


@looped()
def fibonacci(n: int, i: Any, x: Any, u: Any) -> Any:
    a, b = 0, u[i] + 1
    for _ in range(n):
        a, b = b, a + b
    return b


@looped()
def largest(n: int, i: Any, x: Any, u: Any) -> Any:
    most = 0.0
    for k in range(n):
        most = max(most, x[k])
    return most


def helper(value: Any, k: Any) -> Any:
    shifted = value + k
    return shifted * 2


@looped()
def of_a_helper(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(n):
        total = total * 0.5 + helper(x[k], k)
    return total


@looped()
def of_a_closure(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0

    def add(value: Any) -> None:
        nonlocal total
        total = total * 0.5 + value

    for k in range(n):
        add(x[k] * k)
    return total


@looped()
def decided_for_all(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(n):
        if k >= 0:
            total += x[k]
        if k < 0 or k > n or k == -1:
            total = 5.0
    return total


@looped()
def branches(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(n):
        if x[k] > 0.5:
            total += k
        elif k < i:
            total -= x[k]
    return total


@looped()
def first_largest(n: int, i: Any, x: Any, u: Any) -> Any:
    best, where = x[0] + 0, 0
    for k in range(n):
        if x[k] > best:
            best, where = x[k], k
    return where


@looped()
def counts(n: int, i: Any, x: Any, u: Any) -> Any:
    found = 0
    for k in range(n):
        if x[k] > 0.5:
            found += 1
    return found


@looped()
def chooses(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(n):
        total += x[k] if k < i else -x[k]
    return total


@looped(2)
def nested(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for j in range(65):
        part = 0.0
        for k in range(n):
            part += x[k] * j + k * j
        total = total * 0.5 + part
    return total


@looped()
def of_widening_type(n: int, i: Any, x: Any, u: Any) -> Any:
    total = i + 1
    for k in range(n):
        total = total * 0.5 + x[k]
    return total


@looped()
def of_changed_start(n: int, i: Any, x: Any, u: Any) -> Any:
    """The first round computes with Python's number, the others do not: it stands in front of the loop."""
    total, previous = 0.0, 2
    for k in range(n):
        total = (previous + 1) * 0.5 + x[k]
        previous = total
    return total


def find(x: Any, n: int, least: float) -> Any:
    for k in range(n):
        if x[k] > least:
            return k
    return -1


@looped(2)
def returns(n: int, i: Any, x: Any, u: Any) -> Any:
    return find(x, n, 0.99) + 10 * find(x, n, 2.0)


@looped()
def left(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(n):
        if x[k] > 0.995:
            break
        if x[k] > 0.5:
            continue
        total += x[k] * k
    else:
        total = -1.0
    return total


@unrolled
def of_inexact_float(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(n):
        total += x[k] * (k * 0.1)
    return total


@unrolled
def of_a_list(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(n):
        total += x[k] * TABLE[k]
    return total


@unrolled
def known_branches(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(n):
        if k % 2:
            total += x[k]
        elif k == 4:
            total = total * 2
    return total


@unrolled
def counts_in_python(n: int, i: Any, x: Any, u: Any) -> Any:
    total, rounds = 0.0, 0
    for k in range(n):
        rounds += 2
        total += x[k] * rounds
    return total


@unrolled
def toggles(n: int, i: Any, x: Any, u: Any) -> Any:
    total, flag = 0.0, True
    for k in range(n):
        total += x[k] if flag else -x[k]
        flag = not flag
    return total


@unrolled
def draws(n: int, i: Any, x: Any, u: Any) -> Any:
    generator, total = random.Random(3), 0.0
    for k in range(n):
        total += x[k] * generator.random()
    return total


@unrolled
def draws_globally(n: int, i: Any, x: Any, u: Any) -> Any:
    random.seed(5)
    total = 0.0
    for k in range(n):
        total += x[k] * random.random()
    return total


@unrolled
def iterates(n: int, i: Any, x: Any, u: Any) -> Any:
    items, total = iter(TABLE), 0.0
    for k in range(n):
        total += x[k] * next(items)
        for item in items:
            total += item
            break
    return total


class Counter:
    def __init__(self) -> None:
        self.rounds = 0


@unrolled
def counts_in_an_object(n: int, i: Any, x: Any, u: Any) -> Any:
    counter, total = Counter(), 0.0
    for k in range(n):
        counter.rounds += 1
        total += x[k] * counter.rounds
    return total


@unrolled
def appends(n: int, i: Any, x: Any, u: Any) -> Any:
    items: list[Any] = []
    add = items.append
    for k in range(n):
        add(x[k])
    total = 0.0
    for item in items:
        total += item
    return total + len(items)


@unrolled
def grows(n: int, i: Any, x: Any, u: Any) -> Any:
    items: tuple[Any, ...] = ()
    for k in range(n):
        items = (*items, x[k])
    return sum(items) + len(items)


@unrolled
def captures(n: int, i: Any, x: Any, u: Any) -> Any:
    functions: dict[int, Any] = {}
    for k in range(n):
        functions[len(functions)] = lambda value, k=k: value * k
    total = 0.0
    for function in functions.values():
        total += function(x[0])
    return total


@unrolled
def looks_at_type(n: int, i: Any, x: Any, u: Any) -> Any:
    total = 0.0
    for k in range(n):
        total += x[k] if isinstance(k, int) and type(k) is int else 100.0
    return total


@unrolled
def reads_value_behind(n: int, i: Any, x: Any, u: Any) -> Any:
    for k in range(n):
        last = x[k] * 2
    return last + k


@unrolled
def subtracts_below_zero(n: int, i: Any, x: Any, u: Any) -> Any:
    total = i + 0
    for k in range(n):
        total = total + (k - 5) * (k if k > 3 else 1)
    return total


def run(body: Callable[..., Any], n: int, *, interpret: bool = False) -> tuple[Any, Any]:
    """Results of a body for each invocation, and the kernel."""

    def kernel(out: Any, x: Any, u: Any) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        value = body(n, i, x, u)
        out[i] = value.to_dtype(f32) if isinstance(value, vc.ShaderVariable) else float(value)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vd.KernelWarning)
        run_kernel = vd.shader(
            exec_size=COUNT,
            arg_type_annotations=[Buff[f32], Buff[f32], Buff[u32]],
            flags=vc.ShaderFlags.PYTHON_DIVISION,
        )(kernel)
    x, u = inputs(n)
    if interpret:
        found = np.zeros(COUNT, np.float32)
        run_kernel.interpret(found, x, u)
        return found, run_kernel
    out = vd.Buffer(COUNT, vd.float32)
    run_kernel(out, vd.asbuffer(x), vd.asbuffer(u))
    return out.read(0), run_kernel


def inputs(n: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(n)
    x = (generator.random(3 * n) * 0.999).astype(np.float32)
    return x, generator.integers(0, 1000, 3 * n).astype(np.uint32)


def expected(body: Callable[..., Any], n: int) -> Any:
    x, u = inputs(n)
    with np.errstate(over="ignore"):
        return np.array([body(n, np.int32(i), x, u) for i in range(COUNT)]).astype(np.float32)


def loop_count(kernel: Any) -> int:
    return str(kernel).count("for (")


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("body", "loops"), LOOPS, ids=lambda each: getattr(each, "__name__", ""))
def test_python_range_becomes_a_gpu_loop(body: Callable[..., Any], loops: int, n: int) -> None:
    # Mesa's llvmpipe leaves loops after 65,535 rounds taken together
    found, kernel = run(body, n, interpret=body is nested and n > 1000)
    if n >= 64:
        assert loop_count(kernel) == loops
    np.testing.assert_allclose(found, expected(body, n), rtol=2e-5 if n < 1000 else 1e-3)


@pytest.mark.parametrize(("body", "loops"), LOOPS, ids=lambda each: getattr(each, "__name__", ""))
def test_gpu_loop_gives_the_bits_of_the_unrolled_loop(body: Callable[..., Any], loops: int) -> None:
    """The interpreter computes with NumPy, in the order of the program."""
    assert run(body, 65, interpret=True)[0].tolist() == expected(body, 65).tolist()


@pytest.mark.parametrize("n", FEW_SIZES)
@pytest.mark.parametrize("body", UNROLLED, ids=lambda body: body.__name__)
def test_loop_that_needs_the_index_is_unrolled(body: Callable[..., Any], n: int) -> None:
    found, kernel = run(body, n)
    assert loop_count(kernel) == 0
    np.testing.assert_allclose(found, expected(body, n), rtol=1e-5)


def test_index_is_stored_in_buffers() -> None:
    @vd.shader(exec_size=1)
    def kernel(ints: Buff[i32], floats: Buff[f32]) -> None:
        for k in range(300):
            ints[k] = 2 * k - 7
            floats[k] = k

    ints, floats = vd.Buffer(300, vd.int32), vd.Buffer(300, vd.float32)
    kernel(ints, floats)
    assert loop_count(kernel) == 1
    assert ints.read(0).tolist() == [2 * k - 7 for k in range(300)]
    assert floats.read(0).tolist() == list(range(300))


def test_indices_of_two_axes() -> None:
    @vd.shader(exec_size=1)
    def kernel(out: Buff[f32], x: Buff[f32]) -> None:
        total = 0.0
        for j in range(70):
            for k in range(80):
                total += x[j, k] * (j + k)
        out[0] = total

    x = np.random.default_rng(1).random((70, 80)).astype(np.float32)
    out = vd.Buffer(1, vd.float32)
    kernel(out, vd.asbuffer(x))
    assert loop_count(kernel) == 2
    weights = np.add.outer(np.arange(70), np.arange(80))
    np.testing.assert_allclose(out.read(0)[0], (x.astype(np.float64) * weights).sum(), rtol=1e-5)


def test_index_beyond_a_known_size() -> None:
    with pytest.raises(IndexError, match="index 70 is out of range"):

        @vd.shader(exec_size=1)
        def kernel(out: Buff[f32]) -> None:
            shared = vc.shared_buffer(vd.float32, 70)
            for k in range(80):
                shared[k] = 1.0
            out[0] = shared[0]


def test_index_that_the_element_type_cannot_hold() -> None:
    with pytest.raises(ValueError, match="69000 in uint16: it does not fit"):

        @vd.shader(exec_size=1)
        def kernel(out: Buff[vd.uint16]) -> None:  # type: ignore[valid-type]
            for k in range(69_000, 70_001):
                out[0] = k


def test_component_by_index() -> None:
    with pytest.raises(IndexError, match="index 4 is out of range"):

        @vd.shader(exec_size=1)
        def kernel(out: Buff[f32]) -> None:
            v = vc.new_vec4_register(1.0)
            for k in range(70):
                out[k] = v[k]


class Settings:
    last: Any = None


def test_index_stored_where_only_python_sees_it() -> None:
    with pytest.raises(RuntimeError, match="was stored where only Python sees it"):

        @vd.shader(exec_size=1)
        def kernel(out: Buff[f32]) -> None:
            for k in range(70):
                Settings.last = k
                out[k] = 1.0
            out[0] = TABLE[Settings.last]


def test_gpu_asserts_and_prints_in_a_recorded_loop() -> None:
    @vd.shader(exec_size=1, check="asserts")
    def kernel(out: Buff[i32], x: Buff[i32]) -> None:
        for k in range(70):
            assert x[k] == k, "wrong"
            out[k] = k

    out, x = vd.Buffer(70, vd.int32), vd.asbuffer(np.arange(70, dtype=np.int32))
    kernel(out, x)
    assert loop_count(kernel) == 1
    x.write(np.arange(1, 71, dtype=np.int32))
    with pytest.raises(AssertionError, match="wrong"):
        kernel(out, x)


def test_exception_in_the_body_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):

        @vd.shader(exec_size=1)
        def kernel(out: Buff[f32]) -> None:
            for k in range(100):
                out[k] = 1.0 / (k - 70)


def test_python_print_runs_in_each_round(capsys: pytest.CaptureFixture[str]) -> None:
    def told(text: str) -> None:
        print(text)

    @vd.shader(exec_size=1)
    def kernel(out: Buff[f32]) -> None:
        for k in range(70):
            told("round")
            out[k] = 1.0

    assert capsys.readouterr().out == "round\n" * 70
    assert loop_count(kernel) == 0


def test_library_kernels_are_unchanged() -> None:
    """Code of the package is not rewritten: its loops are unrolled."""

    @vd.shader(exec_size=1)
    def kernel(out: Buff[f32]) -> None:
        assert choose_callee(philox4x32) is philox4x32
        if out[0] > 0:
            out[0] = 1


def test_long_unrolled_loop_warns() -> None:
    with pytest.warns(
        vd.KernelWarning, match="this for loop is unrolled: each of more than 1,024 rounds"
    ) as found:

        @vd.shader(exec_size=1)
        def kernel(out: Buff[f32], x: Buff[f32]) -> None:
            total = 0.0
            for k in range(1025):
                total += x[k] * TABLE[k % 200]
            out[0] = total

    assert len(found) == 1
    assert found[0].filename == __file__
    with pytest.warns(vd.KernelWarning, match="this while loop is unrolled"):

        @vd.shader(exec_size=1)
        def with_while(out: Buff[f32], x: Buff[f32]) -> None:
            k, total = 0, 0.0
            while k < 1025:
                total += x[k]
                k += 1
            out[0] = total


@pytest.mark.parametrize("sizes", [(63, 63), (2, 63, 63), (11, 11, 11), (40, 30)], ids=str)
def test_nested_short_loops_are_not_written_out(sizes: tuple[int, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        def nest(x: Any, i: Any, depth: int, place: Any) -> Any:
            total = 0
            if depth == len(sizes):
                return x[i, place % 64]
            for k in range(sizes[depth]):
                total += nest(x, i, depth + 1, place + k)
            return total

        @vd.shader("out.size")
        def kernel(out: Buff[i32], x: Buff[i32]) -> None:
            i = vc.global_invocation_id().x
            out[i] = nest(x, i, 0, 0)

    assert loop_count(kernel) >= 1
    assert len(str(kernel)) < 30_000
    x = (np.arange(192, dtype=np.int32) * 7 % 5).reshape(3, 64)
    out = vd.asbuffer(np.zeros(3, np.int32))
    kernel(out, vd.asbuffer(x))
    places = sum(np.ix_(*map(np.arange, sizes)))
    assert out.read(0).tolist() == x[:, (places % 64).ravel()].sum(axis=1).tolist()


def test_nested_loops_that_are_written_out_warn_once() -> None:
    with pytest.warns(vd.KernelWarning, match="loop, with those around it, is unrolled: each of") as found:

        @vd.shader(exec_size=1)
        def kernel(out: Buff[f32], x: Buff[f32]) -> None:
            total = 0.0
            for j in range(35):
                for k in range(35):
                    total += x[k] * TABLE[(j + k) % 200]
            out[0] = total

    assert len(found) == 1
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @vd.shader(exec_size=1)
        def short(out: Buff[f32], x: Buff[f32]) -> None:
            total = 0.0
            for j in range(32):
                for k in range(32):
                    total += x[k] * TABLE[(j + k) % 200]
            out[0] = total


def test_short_or_recorded_loops_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @vd.shader(exec_size=1)
        def kernel(out: Buff[f32], x: Buff[f32]) -> None:
            total = 0.0
            for k in range(1024):
                total += x[k] * TABLE[k % 200]
            for k in range(5000):
                total += x[k] * k
            # nothing of this is written out
            table = {}
            for k in range(5000):
                table[k] = k * 0.1
            out[0] = total + table[7]


def test_body_is_traced_few_times() -> None:
    """A body that becomes a loop is traced a few times, however many rounds it has."""

    def body(x: Any, k: Any) -> Any:
        return x[k] * k

    def traced(n: int) -> int:
        calls = 0

        def kernel(out: Any, x: Any) -> None:
            total = 0.0
            for k in range(n):
                total += body(x, k)
            out[0] = total

        def profile(frame: Any, event: str, argument: Any) -> None:
            nonlocal calls
            calls += event == "call" and frame.f_code.co_name == "body"

        sys.setprofile(profile)
        try:
            vd.shader(exec_size=1, arg_type_annotations=[Buff[f32], Buff[f32]])(kernel)
        finally:
            sys.setprofile(None)
        return calls

    assert traced(4000) == traced(64) <= 6
