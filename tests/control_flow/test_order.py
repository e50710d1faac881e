"""What Python evaluates first is evaluated first, and what it has read stays as it was."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, i32

from .running import on_gpu

COUNT = 70


def advance(state: Any, i: Any) -> Any:
    state[i] = (state[i] * 1103 + 12345) % 65536
    return state[i]


def left_operand_is_read_first(i: Any, state: Any) -> Any:
    x = 0
    if i > 3:
        x = 1
    x += advance(state, i) * 3 + advance(state, i)
    return x + advance(state, i) - advance(state, i)


def comparisons(i: Any, state: Any) -> Any:
    n = 0
    if advance(state, i) < advance(state, i):
        n += 1
    if advance(state, i) < advance(state, i) < advance(state, i):
        n += 10
    if advance(state, i) > advance(state, i) > 100 > advance(state, i) - 65000:
        n += 100
    return n


def arguments_and_lists(i: Any, state: Any) -> Any:
    def joined(a: Any, b: Any, c: Any) -> Any:
        return a + b * 2 + c * 3 if a > b else a - b

    if i < 0:
        return 0
    both = (advance(state, i), advance(state, i))
    values = [advance(state, i), advance(state, i)]
    n = joined(advance(state, i), advance(state, i), state[i])
    return n + max(advance(state, i), advance(state, i)) + values[0] - values[1] + both[0] - both[1]


def old_value_of_a_local(i: Any, state: Any) -> Any:
    total = state[i]
    total += advance(state, i)
    return total if i >= 0 else 0


def lists_dicts_and_objects_hold_copies(i: Any, state: Any) -> Any:
    class Bag:
        pass

    bag: Any = Bag()
    bag.first = state[i]
    values = [state[i], state[i] * 2]
    named = {"a": state[i]}
    if i >= 0:
        state[i] = 1000
    bag.second = state[i]
    more = [state[i]]
    more.append(state[i] + 1)
    more[0] += state[i]
    doubled = [value + state[i] for value in values]
    state[i] = 5
    return bag.first + bag.second + sum(values) + named["a"] + sum(more) + sum(doubled) + state[i]


def exchanged(i: Any, state: Any) -> Any:
    i = i * 3 % COUNT // 3 * 3
    if i + 2 < COUNT:
        a, b, c = state[i], state[i + 1], state[i + 2]
        a, b, c = c, a, b
        return a + b * 3 + c * 7
    return 0


def sorted_in_place(i: Any, state: Any) -> Any:
    start = i * 7
    for a in range(7):
        for b in range(start, start + 6 - a):
            if state[b] > state[b + 1]:
                state[b], state[b + 1] = state[b + 1], state[b]
    return state[start] + state[start + 3] * 7 + state[start + 6] * 49


def exchanged_without_control_flow(i: Any, state: Any) -> Any:
    state[i * 3], state[i * 3 + 1], state[i * 3 + 2] = state[i * 3 + 2], state[i * 3], state[i * 3 + 1]
    return state[i * 3] + state[i * 3 + 1] * 3 + state[i * 3 + 2] * 7


def and_or_give_operands(i: Any, state: Any) -> Any:
    x = state[i] % 3
    y = (x or 7) * 10 + (x and i) + (x > 1 and 100) + (0 or x)
    if i > 5:
        y = y + (x or advance(state, i))
    return y + (x or x or 50)


def default_values(i: Any, state: Any) -> Any:
    def scaled(x: Any, by: Any = int(state[i]) + min(i, 3), *, more: Any = 5 if i > 3 else 2) -> Any:  # noqa: B008
        return x * more + by

    smaller = lambda x, limit=min(i, state[i]): min(x, limit)  # noqa: B008, E731
    state[i] = 7
    return scaled(3) + scaled(i, 2, more=1) * 3 + smaller(9) * 5


def index_of_an_augmented_element(i: Any, state: Any) -> Any:
    state[i * 2 + (0 if state[i * 2 + 1] % 2 == 0 else 1)] += int(i)
    state[i * 2 + max(0, 1 - i % 2)] -= max(i, 5)
    return state[i * 2] + state[i * 2 + 1] * 3


def make_counter() -> Any:
    count = 0

    def bump(by: Any) -> Any:
        nonlocal count
        count += by
        return count

    return bump


def counters_in_closures(i: Any, state: Any) -> Any:
    first, second = make_counter(), make_counter()
    if state[i] % 2 == 0:
        first(3)
    for k in range(i % 4):
        first(k)
        second(state[i])
    return first(1) * 100 + second(0)


def results_of_two_types(i: Any, state: Any) -> Any:
    log: list[int] = []

    def half(x: Any) -> Any:
        log.append(1)
        if x > 30:
            return 1
        if x > 60:
            return x
        return x * 0.5

    return int(half(i) * 4) + len(log) * 1000


def bare_except(i: Any, state: Any) -> Any:
    n = 0
    for k in range(6):
        try:
            if state[i] % 10 < k:
                break
            n += 1
        except:  # noqa: E722
            n += 100
    try:
        while n < i:
            n += 1
            if n > 20:
                break
    except BaseException:
        n = -5
    return n


def absolute(x: Any) -> Any:
    if x < 40:
        return -x
    return x


def functions_of_functions(i: Any, state: Any) -> Any:
    values = [state[i], i, 50]
    known = list(filter(lambda k: k > 1, [1, 2, 3]))
    return sum(map(absolute, values)) + functools.reduce(max, values) * 1000 + len(known)


def rounding(i: Any, state: Any) -> Any:
    return round(i * 0.5) + 100 * round(i * 0.25 - 3)


def is_prime(n: Any) -> Any:
    d = 2
    while d * d <= n:
        if n % d == 0:
            return False
        d += 1
    return n > 1


def values_from_before_a_call(i: Any, state: Any) -> Any:
    x = state[i]
    held = [state[i] + 1]
    pair = (state[i], i)
    y = 1 if is_prime(i) else 0
    n = 0
    for k in range(3):
        t = x + k
        n += 1 if t % 2 == 1 and is_prime(t % 100) else 2
    return x + y + held[0] + pair[0] + n


def variables_of_the_caller_changed_before_a_return(i: Any, state: Any) -> Any:
    y, z = state[i] % 7, 1.5

    def inner(k: Any) -> Any:
        nonlocal y, z
        if k == 2:
            y += 100
            return 5
        while k > 0:
            y += k
            if k == 7:
                return y
            if k % 5 == 3:
                y, z = 7, y
                return z
            k -= 2
        z = k
        return y + 1

    def visit(k: Any) -> Any:
        nonlocal y
        y += 1
        for j in range(k):
            y += j
            if j > 5:
                y += 100
                return
        y += 1000

    n = inner(i % 20) + inner(i % 19 + 1) * 3
    for q in range(i % 9):
        visit(q + i % 3)
        if y > 5000:
            break
    visit(3)
    return int(n + y * 10 + z * 1000)


def numbers_beyond_the_type(i: Any, state: Any) -> Any:
    x = state[i] - 30000
    n = 0
    if x < 3000000000:
        n += 1
    if 3000000000 <= x:  # noqa: SIM300
        n += 10
    if -(2**40) < x < 2**40:
        n += 100
    return n


PROGRAMS = [
    left_operand_is_read_first,
    comparisons,
    arguments_and_lists,
    old_value_of_a_local,
    lists_dicts_and_objects_hold_copies,
    exchanged,
    and_or_give_operands,
    default_values,
    counters_in_closures,
    results_of_two_types,
    bare_except,
    functions_of_functions,
    rounding,
    numbers_beyond_the_type,
    values_from_before_a_call,
    variables_of_the_caller_changed_before_a_return,
]


def check(function: Callable[..., Any], count: int) -> None:
    data = np.random.default_rng(5).integers(0, 65536, COUNT).astype(np.int32)
    expected = [int(function(i, data.tolist())) for i in range(count)]
    assert on_gpu(function, count, data).tolist() == expected


@pytest.mark.parametrize("function", PROGRAMS)
def test_same_as_python(function: Any) -> None:
    check(function, COUNT)


def test_several_elements() -> None:
    check(sorted_in_place, 10)
    check(exchanged_without_control_flow, 23)
    check(index_of_an_augmented_element, 35)


def test_copies_before_the_first_control_flow() -> None:
    size = 64

    @vd.shader("data.size", local_size=size)
    def running_sum(data: Buff[i32]) -> None:
        tile = vc.shared_buffer(i32, size)
        lane = vc.local_invocation_index()
        i = vc.global_invocation_id().x
        first = data[i]
        tile[lane] = first
        data[i] = 0
        vc.barrier()
        offset = 1
        while offset < size:
            before = tile[lane - offset] if lane >= offset else 0
            vc.barrier()
            tile[lane] += before
            vc.barrier()
            offset *= 2
        data[i] = tile[lane] - first

    data = np.random.default_rng(2).integers(-9, 9, 4 * size).astype(np.int32)
    expected = np.cumsum(data.reshape(-1, size), axis=1).ravel() - data
    found = vd.asbuffer(data)
    running_sum(found)
    assert found.read(0).tolist() == expected.tolist()
    running_sum.interpret(data)
    assert data.tolist() == expected.tolist()


def update_of_what_the_operand_changes(i: Any, state: Any) -> Any:
    if state[i] > 50:
        state[i] += advance(state, i)
    state[i] -= advance(state, i) * 3
    return state[i]


def test_augmented_assignment_whose_operand_changes_the_target() -> None:
    check(update_of_what_the_operand_changes, COUNT)


def test_names_of_nested_functions() -> None:
    def kernel(out: Buff[i32]) -> None:
        def two(a: Any, b: Any) -> Any:
            return a if a > b else b

        out[0] = two(out[1])  # type: ignore[call-arg]

    with pytest.raises(TypeError, match=r"kernel\.<locals>\.two\(\) missing 1 required") as caught:
        vd.shader(1)(kernel)
    assert "_vd_" not in str(caught.value)
