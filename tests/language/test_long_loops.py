"""Loops of many rounds: computed in full, or a LoopLimitError where the driver ends them."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32, i32

guards = importlib.import_module("vkdispatch.shader.traced.program")


def plain(n: Any, t: Any) -> Any:
    for _ in range(n):
        t += 1
    return t


def jumps(n: Any, t: Any) -> Any:
    for j in range(2 * n):
        if j == n:
            break
        if j % 3 == 0:
            continue
        t += 1
    else:
        t = -1
    return t


def counted(n: Any, t: Any) -> Any:
    while t < n:
        t += 1
    return t


def left(n: Any, t: Any) -> Any:
    while True:
        if t >= n:
            break
        t += 1
    return t


def flagged(n: Any, t: Any) -> Any:
    going = n > 0
    while going:
        t += 1
        if t % 7 == 0:
            continue
        going = t < n
    return t


def with_short_loop(n: Any, t: Any) -> Any:
    for _ in range(n):
        for k in range(3):
            t += k
    return t


def between(n: Any, t: Any) -> Any:
    for _ in range(n):
        t += 1
    for j in range(10):
        t += j * t & 1
    for _ in range(n):
        t ^= 1
    return t


def search(n: Any, t: Any) -> Any:
    for j in range(n):
        t ^= j
        if t == -1:
            return t
    return t


def called(n: Any, t: Any) -> Any:
    return search(n, t) + 1


def matched(n: Any, t: Any) -> Any:
    for j in range(n):
        match j & 3:
            case 0:
                t += 1
            case 1:
                continue
            case 2:
                if j > n - 5:
                    break
                t += 2
            case _:
                t += 3
        t += 1
    return t


def stepped(n: Any, t: Any) -> Any:
    for _ in range(3 * n, 0, -3):
        t += 1
    return t


BODIES = [plain, jumps, counted, left, flagged, with_short_loop, between, called, matched, stepped]


def _compute(kernel: Any, *values: Any) -> list[int]:
    out = vd.asbuffer(np.zeros(3, np.int32))
    kernel(out, *values)
    result: list[int] = out.read(0).tolist()
    return result


def _is_right(kernel: Any, expected: int, *values: Any) -> bool:
    """Whether a kernel computes what is expected; False if the driver has ended its loops."""
    try:
        assert _compute(kernel, *values) == [expected] * 3
    except vd.LoopLimitError as error:
        assert guards.find_loop_limit(vd.get_context()) is not None, error
        return False
    return True


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_long_loops_are_computed_in_full(body: Callable[..., Any]) -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[i32], n: Const[i32], start: Const[i32]) -> None:
        out[vc.global_invocation_id().x] = body(n, start)

    for n in (0, 1, 19, 20, 21, 65_533, 65_534, 65_535, 65_536, 65_537, 100_000, 500_000):
        assert _is_right(kernel, body(n, 0), n, 0) or n > 250_000
    _is_right(kernel, body(3_000_000, 0), 3_000_000, 0)
    # what a driver has ended does not disturb later calls
    assert _compute(kernel, 5, 0) == [body(5, 0)] * 3


def test_nested_loops() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[i32], n: Const[i32]) -> None:
        total = 0
        for _ in range(n):
            for k in range(n):
                total += k & 1
        out[vc.global_invocation_id().x] = total

    for n in (2, 255, 256, 257, 1000):
        assert _is_right(kernel, n * (n // 2), n)
    _is_right(kernel, 3000 * 1500, 3000)


def test_invocations_with_different_rounds() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[i32], most: Const[i32]) -> None:
        i = vc.global_invocation_id().x
        n, total = most - i.to_dtype(i32) * 1000, 0
        for _ in range(n):
            total += 1
        while total > n // 2:
            total -= 1
        out[i] = total

    out = vd.asbuffer(np.zeros(99, np.int32))
    kernel(out, 200_000)
    assert out.read(0).tolist() == [(200_000 - 1000 * i) // 2 for i in range(99)]


def test_blocks_and_returns() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[i32], n: Const[i32]) -> None:
        i, t = vc.global_invocation_id().x, vc.new_int_register(0)
        with vc.for_block(n), vc.while_block(t < n):
            t += 1
            with vc.if_block(t == n):
                out[i] = t
                vc.return_statement()
        out[i] = -7

    @vd.shader("out.size")
    def endless(out: Buff[i32], n: Const[i32]) -> None:
        i, t = vc.global_invocation_id().x, vc.new_int_register(0)
        vc.while_statement(True)
        t += 1
        with vc.if_block(t >= n):
            out[i] = t
            vc.return_statement()
        vc.end()

    assert _compute(kernel, 0) == [-7] * 3
    for each in (kernel, endless):
        for n in (1, 20, 65_535, 65_536, 100_000):
            assert _is_right(each, n, n)
        _is_right(each, 3_000_000, 3_000_000)


def test_conditions_of_all_kinds() -> None:
    @vd.shader("out.size")
    def of_memory(out: Buff[i32], n: Const[i32]) -> None:
        i = vc.global_invocation_id().x
        while out[i] != n:
            out[i] += 1

    @vd.shader("out.size")
    def of_floats(out: Buff[i32], n: Const[i32]) -> None:
        rest, count = n.to_dtype(f32), 0
        while rest > 0.0 and not count < -1:
            rest -= 1.0
            count += 1
        out[vc.global_invocation_id().x] = count

    @vd.shader("out.size")
    def of_vectors(out: Buff[i32], n: Const[i32]) -> None:
        place = vc.new_ivec2_register(0, n)
        while vc.any(place.x < n, place.y > 0):
            place.x += 1
            place.y -= 1
        out[vc.global_invocation_id().x] = place.x

    for kernel in (of_memory, of_floats, of_vectors):
        for n in (0, 3, 65_536, 100_000):
            assert _is_right(kernel, n, n)
        _is_right(kernel, 3_000_000, 3_000_000)


def test_loops_around_barriers_are_not_split() -> None:
    @vd.shader("out.size", local_size=3)
    def kernel(out: Buff[i32], n: Const[i32]) -> None:
        shared, lane = vc.shared_buffer(i32, 3), vc.local_invocation_id().x
        shared[lane] = 0
        for _ in range(n):
            vc.barrier()
            shared[lane] += 1
        vc.barrier()
        out[lane] = shared[(lane + 1) % 3]

    assert _compute(kernel, 1000) == [1000] * 3
    _is_right(kernel, 100_000, 100_000)


def test_large_buffers_and_graphs() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[i32], x: Buff[i32]) -> None:
        total = 0
        for j in range(x.size):
            total += x[j]
        out[vc.global_invocation_id().x] = total

    x = vd.asbuffer(np.ones(100_003, np.int32))
    graph = vd.CommandGraph()
    out = vd.asbuffer(np.zeros(3, np.int32))
    kernel(out, x, graph=graph)
    kernel(out, x, graph=graph)
    graph.optimize()
    graph.submit(2)
    assert out.read(0).tolist() == [100_003] * 3


def test_maps_of_functions() -> None:
    @vd.map
    def rounds(n: i32) -> i32:
        total = 0
        for _ in range(n):
            total += 1
        return total

    numbers = np.array([3, 100_000, 65_535], np.int32)
    assert int(vd.sum(rounds(vd.asbuffer(numbers)))) == numbers.sum()


needs_limit = pytest.mark.skipif("guards.find_loop_limit(vd.get_context()) is None", reason="no limit here")


@needs_limit
def test_error_names_the_line() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[i32], n: Const[i32]) -> None:
        t = 0
        while t < n:
            t += 1
        out[vc.global_invocation_id().x] = t

    out = vd.asbuffer(np.zeros(3, np.int32))
    lines, first = inspect.getsourcelines(test_error_names_the_line)
    line = first + next(index for index, text in enumerate(lines) if "while t < n" in text)
    for _ in range(2):
        kernel(out, 1 << 30)
        with pytest.raises(
            vd.LoopLimitError, match=r"kernel .*invocation \(\d, 0, 0\).*fewer rounds"
        ) as caught:
            out.read(0)
        assert f"{__file__.rsplit('/', 1)[-1]}:{line}" in str(caught.value)
        out.read(0)
    graph = vd.CommandGraph()
    kernel(out, 1 << 30, graph=graph)
    for _ in range(2):
        graph.submit()
        with pytest.raises(vd.LoopLimitError):
            out.read(0)


@needs_limit
def test_checked_kernels_raise_at_once() -> None:
    @vd.shader("out.size", check="bounds")
    def kernel(out: Buff[i32], n: Const[i32]) -> None:
        for j in range(n):
            out[vc.global_invocation_id().x] = j

    out = vd.asbuffer(np.zeros(3, np.int32))
    with pytest.raises(vd.LoopLimitError):
        kernel(out, 1 << 30)
    kernel(out, 100_000)
    assert out.read(0).tolist() == [99_999] * 3


@needs_limit
def test_short_loops_stay_as_they_are() -> None:
    @vd.shader("out.size")
    def short(out: Buff[i32], n: Const[i32]) -> None:
        total = 0
        for j in range(200):
            for k in range(100):
                total += j ^ k ^ n
        out[vc.global_invocation_id().x] = total

    expected = sum(j ^ k ^ 5 for j in range(200) for k in range(100))
    assert _compute(short, 5) == [expected] * 3
    assert all(built.loop_guard is None for built in short._built.values())


def test_limit_is_measured_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    context = vd.get_context()
    limit = guards.find_loop_limit(context)
    monkeypatch.setenv("VKDISPATCH_CACHE", str(tmp_path))
    monkeypatch.delitem(context.kept, guards._STATE_KEY)
    assert guards.find_loop_limit(context) == limit
    monkeypatch.delitem(context.kept, guards._STATE_KEY)
    monkeypatch.setattr(guards, "_measure_rounds", None)
    assert guards.find_loop_limit(context) == limit


@pytest.mark.parametrize("count", [25, 26, 27, 28, 29])
def test_guards_beside_arguments_that_just_fit(count: int) -> None:
    """The ticket of a guard may be what moves the arguments from push constants to a uniform block."""
    names = [f"n{i}" for i in range(count)]

    def body(out: Any, *numbers: Any) -> None:
        t = vc.new_int_register(0)
        with vc.while_block(t < sum(numbers)):
            t[:] = t + 1
        out[0] = t

    function = eval(f"lambda out, {', '.join(names)}: body(out, {', '.join(names)})", {"body": body})
    function.__annotations__ = {"out": Buff[i32], **dict.fromkeys(names, Const[i32])}
    kernel: Any = vd.shader("1")(function)
    out = vd.asbuffer(np.zeros(1, np.int32))
    kernel(out, *range(count))
    assert int(out.read(0)[0]) == sum(range(count))
