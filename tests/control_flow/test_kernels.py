"""Whole kernels in plain Python: buffers, shared memory, registers, maps and the GLSL that comes of them."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch_native as native
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f32, i32, u32, v2, v4
from vkdispatch.compiler.analyses.verify import verify
from vkdispatch.control_flow.replacement import prepare_function


def buffer(kind: Any, values: Any) -> vd.Buffer[Any]:
    array = np.asarray(values)
    result: vd.Buffer[Any] = vd.Buffer((len(array),), kind)
    result.write(array)
    return result


def zeros(kind: Any, count: int) -> vd.Buffer[Any]:
    return buffer(
        kind, np.zeros((count, *kind.true_numpy_shape), np.float32 if kind in (f32, v2, v4) else np.int32)
    )


def test_collatz_of_the_tutorial() -> None:
    @vd.shader("out.size")
    def collatz(out: Buff[i32], limit: Const[i32]) -> None:
        n = vc.global_invocation_id().x + 1
        steps = 0
        while n != 1 and steps < limit:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        out[vc.global_invocation_id().x] = steps

    def reference(n: int) -> int:
        steps = 0
        while n != 1 and steps < 100:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    out = zeros(i32, 1000)
    collatz(out, 100)
    assert out.read(0).tolist() == [reference(n + 1) for n in range(1000)]
    text = str(collatz.get_src(build=False))
    assert "uint n = gid_x + 1u;" in text
    assert "while (n != 1u && steps < PC.limit)" in text


def test_mandelbrot() -> None:
    width, rounds = 32, 60

    @vd.shader("out.size")
    def mandelbrot(out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        cx = (i % width) * (3.0 / width) - 2.0
        cy = (i // width) * (2.0 / width) - 1.0
        x, y = cx * 0, cy * 0
        count = 0
        for _ in range(rounds):
            if x * x + y * y > 4.0:
                break
            x, y = x * x - y * y + cx, 2 * x * y + cy
            count += 1
        out[i] = count

    out = zeros(i32, width * width)
    mandelbrot(out)
    expected = []
    for i in range(width * width):
        c = complex(i % width * (3.0 / width) - 2.0, i // width * (2.0 / width) - 1.0)
        z, count = 0j, 0
        while count < rounds and abs(z) <= 2:
            z = z * z + c
            count += 1
        expected.append(count)
    # in single precision the border moves a little
    assert np.mean(out.read(0) == expected) > 0.98
    assert str(mandelbrot.get_src(build=False)).count("for (") == 1


def test_insertion_sort_in_shared_memory() -> None:
    size = 16

    @vd.shader("data.size", local_size=size)
    def sort(data: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        own = vc.local_invocation_index()
        shared = vc.shared_buffer(i32, size)
        shared[own] = data[i]
        vc.barrier()
        if own == 0:
            for k in vc.range(1, size):
                key = shared[k]
                j = k - 1
                while j >= 0 and shared[j] > key:
                    shared[j + 1] = shared[j]
                    j -= 1
                shared[j + 1] = key
        vc.barrier()
        data[i] = shared[own]

    values = np.random.default_rng(1).integers(-50, 50, 20 * size).astype(np.int32)
    data = buffer(i32, values)
    sort(data)
    assert (data.read(0).reshape(-1, size) == np.sort(values.reshape(-1, size), axis=1)).all()


def test_binary_search_returns_from_a_loop() -> None:
    @vd.shader("out.size")
    def search(out: Buff[i32], keys: Buff[i32], wanted: Buff[i32], count: Const[i32]) -> None:
        i = vc.global_invocation_id().x
        low, high = 0, count - 1
        while low <= high:
            middle = (low + high) // 2
            if keys[middle] == wanted[i]:
                out[i] = middle
                return
            if keys[middle] < wanted[i]:
                low = middle + 1
            else:
                high = middle - 1
        out[i] = -1

    keys = np.arange(0, 200, 2, dtype=np.int32)
    wanted = np.arange(-3, 205, dtype=np.int32)
    out = zeros(i32, len(wanted))
    search(out, buffer(i32, keys), buffer(i32, wanted), len(keys))
    assert out.read(0).tolist() == [w // 2 if 0 <= w < 200 and w % 2 == 0 else -1 for w in wanted]


def test_bisection_through_a_function_argument() -> None:
    def bisect(f: Any, low: Any, high: Any) -> Any:
        while high - low > 1e-4:
            middle = 0.5 * (low + high)
            if f(middle) * f(low) <= 0:
                high = middle
            else:
                low = middle
        return low

    @vd.shader("out.size")
    def roots(out: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        square = i.to_dtype(f32) + 1.0
        out[i] = bisect(lambda x: x * x - square, 0.0, 20.0)

    out = zeros(f32, 100)
    roots(out)
    np.testing.assert_allclose(out.read(0), np.sqrt(np.arange(1, 101)), atol=1e-3)


def test_newton_with_tuple_assignment() -> None:
    def newton(a: Any) -> Any:
        x, before = a, 0.0
        rounds = 0
        while abs(x - before) > 1e-5 * x and rounds < 50:
            x, before = 0.5 * (x + a / x), x
            rounds += 1
        return x, rounds

    @vd.shader("out.size")
    def kernel(out: Buff[f32], rounds: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        root, count = newton(i + 1.0)
        out[i] = root
        rounds[i] = count

    out, rounds = zeros(f32, 50), zeros(i32, 50)
    kernel(out, rounds)
    np.testing.assert_allclose(out.read(0), np.sqrt(np.arange(1, 51)), rtol=1e-5)
    assert 2 <= rounds.read(0).max() < 20


def test_prime_sieve() -> None:
    limit = 200

    @vd.shader(1)
    def sieve(flags: Buff[i32]) -> None:
        k = 2
        while k * k < limit:
            if flags[k] == 0:
                for multiple in range(k * k, limit, k):
                    flags[multiple] = 1
            k += 1

    flags = zeros(i32, limit)
    sieve(flags)
    found = [k for k in range(2, limit) if flags.read(0)[k] == 0]
    assert found == [k for k in range(2, limit) if all(k % d for d in range(2, k))]


def test_registers_change_in_place_and_elements_are_copied() -> None:
    @vd.shader("data.size")
    def kernel(data: Buff[i32], out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        total = vc.new_int_register(10)
        k = 0
        while k < data[i]:
            total += k
            k += 1
        old = data[i]
        data[i] = 100
        if old > 2:
            total += 1000
        out[i] = total + old

    values = np.arange(6, dtype=np.int32)
    data, out = buffer(i32, values), zeros(i32, 6)
    kernel(data, out)
    expected = [10 + sum(range(v)) + (1000 if v > 2 else 0) + v for v in values]
    assert out.read(0).tolist() == expected
    assert "var0 += k" in str(kernel.get_src(build=False))


def test_types_of_locals() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[f32], whole: Buff[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        x = 0
        k = 0
        done = False
        while not done:
            # an int before, a float32 from the first round on
            x = x + 0.5 * i
            k += 1
            done = k >= 3
        out[i] = x
        y = i
        if i % 2:
            y = 0.25
        out[i] += y
        z = 4_000_000_000
        if i > 2:
            z = i.to_dtype(u32)
        whole[i] = int(z // 1000)

    out, whole = zeros(f32, 8), zeros(i32, 8)
    kernel(out, whole)
    i = np.arange(8)
    np.testing.assert_allclose(out.read(0), 1.5 * i + np.where(i % 2, 0.25, i))
    assert whole.read(0).tolist() == [4_000_000] * 3 + [0] * 5


def test_vectors_and_complex_numbers_in_registers() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[v2], turned: Buff[c64]) -> None:
        i = vc.global_invocation_id().x
        v = vc.to_vec2(1.0, 2.0)
        z = vc.to_complex64(1.0, 0.0)
        for _ in range(i):
            v = v * 2.0
            z = z * vc.to_complex64(0.0, 1.0)
        if i % 2 == 1:
            v = -v
        out[i] = v
        turned[i] = z

    out = zeros(v2, 6)
    turned: vd.Buffer[Any] = vd.Buffer((6,), c64)
    kernel(out, turned)
    i = np.arange(6)
    sign = np.where(i % 2, -1, 1)
    np.testing.assert_allclose(out.read(0), (sign * 2.0**i)[:, None] * [1.0, 2.0])
    np.testing.assert_allclose(turned.read(0), 1j**i, atol=1e-6)


def test_return_ends_an_invocation() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        out[i] = 1
        if i % 3 == 0:
            return
        for k in range(i):
            if k == 5:
                return
            out[i] = k
        out[i] += 100

    out = zeros(i32, 20)
    kernel(out)
    assert out.read(0).tolist() == [1 if i % 3 == 0 else (i - 1 + 100 if i <= 5 else 4) for i in range(20)]


def test_and_or_evaluate_only_needed_operands() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[i32], counter: Buff[i32]) -> None:
        i = vc.global_invocation_id().x

        def counted(value: Any) -> Any:
            return vc.atomic_add(counter[0], 1) >= 0 and value

        if i < 10 and counted(i % 2 == 0):
            out[i] = 1
        if i < 4 or counted(False):
            out[i] += 2

    out, counter = zeros(i32, 32), zeros(i32, 1)
    kernel(out, counter)
    assert out.read(0).tolist() == [(i < 10 and i % 2 == 0) + 2 * (i < 4) for i in range(32)]
    assert counter.read(0).tolist() == [10 + 28]


def test_while_evaluates_its_condition_each_round() -> None:
    @vd.shader(1)
    def kernel(out: Buff[i32]) -> None:
        while vc.atomic_add(out[0], 1) < 5:
            out[1] += 10

    out = zeros(i32, 2)
    kernel(out)
    assert out.read(0).tolist() == [6, 50]


class Accumulator:
    """A user's class whose methods hold control flow."""

    def __init__(self, start: int) -> None:
        self.start = start

    def __call__(self, x: Any) -> Any:
        return self.__hidden(x) + 1

    def __hidden(self, x: Any) -> Any:
        return x if x > self.start else self.start

    @staticmethod
    def plus(x: Any, *, by: int = 2) -> Any:
        if x > 5:
            x += by
        return x


def test_methods_partials_and_wrapped_functions() -> None:
    def twice(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs) * 2

        return wrapper

    @twice
    def halved(x: Any) -> Any:
        if x % 2 == 0:
            return x // 2
        return 0

    accumulate = Accumulator(3)
    add = functools.partial(Accumulator.plus, by=100)

    @vd.shader("out.size")
    def kernel(out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        out[i] = accumulate(i) * 100000 + add(i) * 100 + halved(i)

    out = zeros(i32, 12)
    kernel(out)
    expected = [
        (max(i, 3) + 1) * 100000 + (i + 100 if i > 5 else i) * 100 + (i if i % 2 == 0 else 0)
        for i in range(12)
    ]
    assert out.read(0).tolist() == expected


def test_python_functions_of_math() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[f32]) -> None:
        x = vc.global_invocation_id().x * 0.37
        out[vc.global_invocation_id().x] = (
            math.sin(x) + math.floor(x) + round(x) + float(int(x)) + math.sqrt(4)
        )

    out = zeros(f32, 20)
    kernel(out)
    x = np.arange(20, dtype=np.float32) * np.float32(0.37)
    np.testing.assert_allclose(
        out.read(0), np.sin(x) + 2 * np.floor(x) + np.rint(x) + 2, rtol=1e-4, atol=1e-4
    )


def test_maps_are_rewritten() -> None:
    @vd.map
    def clamp(x: Buff[f32]) -> f32:
        if x < 0:
            return 0.0
        return x

    @vd.shader("out.size")
    def kernel(out: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        out[i] = clamp.callback(i - 5.0)

    out = zeros(f32, 12)
    kernel(out)
    assert out.read(0).tolist() == [max(0.0, i - 5.0) for i in range(12)]


def test_python_values_decide_while_tracing() -> None:
    seen: list[int] = []

    @vd.shader("out.size", check=False)
    def kernel(out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        total = 0
        for k in range(4):
            seen.append(k)
            if k % 2:
                total += k * i
        mode = {"fast": True}
        if mode["fast"] and not mode.get("slow"):
            total += 1
        out[i] = total

    assert seen == [0, 1, 2, 3]
    assert "if (any(" in str(kernel.get_src(build=False))
    assert str(kernel.get_src(build=False)).count("if (") == 1
    assert "for (" not in str(kernel.get_src(build=False))


def _shared_text(rewrite: bool) -> str:
    @vd.shader("out.size", rewrite=rewrite)
    def kernel(out: Buff[i32], limit: Const[i32]) -> None:
        i = vc.global_invocation_id().x
        total = vc.new_int_register()
        for k in range(3):
            with vc.if_block(vc.all(i > k, limit > k)):
                total += k
        x = out[i]
        if len("ab") == 2:
            x = x + 5
        out[i + 1] = x
        with vc.while_block(total < limit):
            total *= 2
        out[i] = total if limit is not None else 0

    return "\n".join(
        line for line in str(kernel.get_src(build=False)).splitlines() if not line.startswith("#line")
    )


def test_kernels_with_context_managers_are_unchanged() -> None:
    assert _shared_text(True) == _shared_text(False)


def test_rewritten_function_keeps_the_attributes_of_the_original() -> None:
    from vkdispatch.control_flow.replacement import choose_callee

    def outer() -> Any:
        cell = 5

        def function(a: int, b: int = 2, *rest: int, c: int = 3, **more: int) -> int:
            """Do something."""
            if a > b:
                return cell
            return a + b + c + sum(rest) + sum(more.values())

        def change() -> None:
            nonlocal cell
            cell += 1

        return function, change

    function, change = outer()
    new = choose_callee(function)
    assert new is not function
    assert new.__name__ == function.__name__
    assert new.__qualname__ == function.__qualname__
    assert new.__doc__ == function.__doc__
    assert new.__annotations__ == function.__annotations__
    assert new.__globals__ is function.__globals__
    assert new.__code__.co_filename == function.__code__.co_filename
    assert new(1, 2, 3, c=4, d=5) == function(1, 2, 3, c=4, d=5) == 15
    change()
    assert new(9) == function(9) == 6
    assert choose_callee(new) is new
    assert choose_callee(np.sum) is np.sum
    assert choose_callee(len) is len


@pytest.mark.parametrize("count", [0, 1, 7])
def test_vc_range_always_loops_on_the_gpu(count: int) -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[i32]) -> None:
        total = 0
        for k in vc.range(count):
            total += k
        out[vc.global_invocation_id().x] = total

    out = zeros(i32, 3)
    kernel(out)
    assert out.read(0).tolist() == [sum(range(count))] * 3
    assert "for (" in str(kernel.get_src(build=False))


def test_registers_of_the_user_and_plain_control_flow() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        total = vc.new_int_register(1)
        k = vc.new_int_register()
        with vc.while_block(k < i):
            if k % 3 == 1:
                total += k
            elif k > 4:
                total[:] = total - 1
            k += 1
        j = 0
        while j < 4:
            with vc.scope_block():
                after = j + 1
                if after == i:
                    break
            with vc.if_block(j == 2):
                total += 100
            with vc.else_block():
                total += 10
            j = after
            if j == 2:
                total[:] = total * 2
        out[i] = total

    def expected(i: int) -> int:
        total = 1
        for k in range(i):
            total += k if k % 3 == 1 else -(k > 4)
        for j in range(4):
            if j + 1 == i:
                break
            total += 100 if j == 2 else 10
            if j == 1:
                total = total * 2
        return total

    out = zeros(i32, 12)
    kernel(out)
    assert out.read(0).tolist() == [expected(i) for i in range(12)]


def test_swap_of_elements_in_a_branch() -> None:
    @vd.shader("data.size // 2")
    def kernel(data: Buff[i32]) -> None:
        i = 2 * vc.global_invocation_id().x
        if data[i] < data[i + 1]:
            larger = data[i + 1]
            data[i + 1] = data[i]
            data[i] = larger

    values = np.random.default_rng(3).integers(0, 9, 40).astype(np.int32)
    data = buffer(i32, values)
    kernel(data)
    assert (data.read(0).reshape(-1, 2) == np.sort(values.reshape(-1, 2), axis=1)[:, ::-1]).all()


def test_buffer_elements_passed_to_functions_remain_references() -> None:
    def raise_by(place: Any, amount: int) -> None:
        place[:] = place + amount

    def count(place: Any) -> None:
        vc.atomic_add(place, 1)

    @vd.shader("data.size")
    def kernel(data: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        if data[i] > 3:
            raise_by(data[i], 10)
            count(data[i])

    data = buffer(i32, np.arange(8, dtype=np.int32))
    kernel(data)
    assert data.read(0).tolist() == [0, 1, 2, 3, 15, 16, 17, 18]


def test_arguments_that_are_expressions_are_declared_once_though_a_loop_is_traced_again() -> None:
    def steps_to_one(n: Any) -> Any:
        steps = 0
        while n != 1 and steps < 1000:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    with vc.shader_context() as context:
        out, x, add = context.declare_input_arguments([Buff[i32], Buff[i32], Const[i32]])
        i = vc.global_invocation_id().x
        result = vc.new_int_register(0)
        with vc.scope_block(), vc.scope_block():
            result[:] = prepare_function(steps_to_one)(x[i] + add)
        out[i] = result
        description = context.get_description()

    verify(description.kernel)
    native.compile_glsl(description.make_source(32, 1, 1))
