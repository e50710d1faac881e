"""Functions inside functions: variables that they share, on the device as in Python.

VKDISPATCH_PROGRAMS sets how many random programs, VKDISPATCH_FIRST_PROGRAM with which to begin.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from . import closures, rounds
from .running import agree, on_gpu

FIRST = int(os.environ.get("VKDISPATCH_FIRST_PROGRAM", "0"))
PROGRAMS = int(os.environ.get("VKDISPATCH_PROGRAMS", "24"))
COUNT = 64


def reassigns_captured(a: Any, b: Any) -> Any:
    def inner(u: Any) -> Any:
        return b + u

    b = inner(a)
    return b


def in_branch(i: Any) -> Any:
    x = 3
    if i % 3 == 1:
        x = reassigns_captured(i, 5)
    return x


def in_range(i: Any) -> Any:
    x = i
    for k in range(i % 5):
        x = reassigns_captured(x, k) % 1009
    return x


def in_while(i: Any) -> Any:
    x = n = 1
    while n < i % 5:
        x = reassigns_captured(x, n) % 1009
        n += 1
    return x


def in_condition(i: Any) -> Any:
    return reassigns_captured(i, 2) if i % 2 and reassigns_captured(i, i) > 9 else 7


def counts_in_loop(i: Any) -> Any:
    def accumulate(start: Any, rounds: Any) -> Any:
        def shifted(u: Any) -> Any:
            return start + u

        for start in range(rounds):
            total = shifted(start)
            if total > 4:
                return total
        return start

    x = 1
    while x < 50:
        x += accumulate(i, x % 7 + 1) + 1
    return x


def make_adder(start: Any) -> Any:
    total = start

    def add(amount: Any) -> Any:
        nonlocal total
        total = total + amount
        return total

    return add


def kept_by_closure(i: Any) -> Any:
    add = make_adder(i % 4)
    if i > 3:
        add(1)
    for k in range(i % 7):
        add(k)
    return add(1)


def made_in_loop(i: Any) -> Any:
    total = 0
    for _ in range(i % 5):
        add = make_adder(2)
        total += add(1) + add(1)
    return total


def operand_changes_closure(i: Any) -> Any:
    add = make_adder(0)
    flag = i > 3 and add(2) > 1
    chosen = add(1) if i % 2 else 3
    return add(1) + 10 * chosen + (100 if flag else 0)


def make_pair() -> Any:
    count = 0

    def step() -> None:
        nonlocal count
        count = count + 1

    def get() -> Any:
        return count

    return step, get


def left_early(i: Any) -> Any:
    step, get = make_pair()

    def advance() -> Any:
        if i % 3 == 1:
            step()
            return get()
        step()
        step()
        return 10 * get()

    return advance() + 100 * get()


def left_by_break(i: Any) -> Any:
    step, get = make_pair()
    for k in range(5):
        step()
        if k * 2 > i:
            break
    for k in [1, 2, 3]:
        step()
        if k == i:
            break
        step()
    return get()


def left_by_return(i: Any) -> Any:
    step, get = make_pair()
    k = 0
    while k < 4:
        step()
        k += 1
        if i == k:
            return get()
    return 10 + get()


def traced_again(i: Any) -> Any:
    # the first construct of the GPU makes the kernel be traced once more
    step, get = make_pair()
    step()
    r = 0
    if i > 2:
        r = 5
    return r + get()


EXAMPLES = [
    in_branch,
    in_range,
    in_while,
    in_condition,
    counts_in_loop,
    kept_by_closure,
    made_in_loop,
    operand_changes_closure,
    left_early,
    left_by_break,
    left_by_return,
    traced_again,
]


@pytest.mark.parametrize("function", EXAMPLES)
def test_closures_agree_with_python(function: Any) -> None:
    agree(function, COUNT)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + PROGRAMS))
@pytest.mark.parametrize("program", [closures.program, rounds.program], ids=["closures", "rounds"])
def test_random_programs_with_closures(program: Callable[[int], str], seed: int, tmp_path: Path) -> None:
    path = tmp_path / f"closures_{seed}.py"
    path.write_text(program(seed))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    expected = [module.main(i) for i in range(COUNT)]
    assert on_gpu(module.main, COUNT).tolist() == expected, f"seed {seed}:\n{program(seed)}"
